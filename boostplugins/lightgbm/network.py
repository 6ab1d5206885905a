"""Row numbers on several machines: every machine of a LightGBM network has a range of its own."""

from __future__ import annotations

import contextlib
import socket
import sys
from typing import Any

from boostplugins.lightgbm.settings import find

# Rows that a machine may hold. Ranges start at multiples, so that masks and noise are unique over
# all machines without any of them knowing how many rows the others have.
_ROWS_PER_MACHINE = 2**40


def first_row(params: dict[str, Any]) -> tuple[int, bool]:
    """Give the number of this machine's first row.

    Parameters
    ----------
    params : dict
        LightGBM's parameters.

    Returns
    -------
    first_row : int
        Number of the first row.
    distributed : bool
        Whether there are other machines.

    Raises
    ------
    ValueError
        Where this machine cannot be told from the others.
    """
    machines = find(params, "machines")
    if int(find(params, "num_machines")) < 2 or not machines:
        return 0, False
    names = machines.split(",") if isinstance(machines, str) else list(machines)
    port = str(find(params, "local_listen_port"))
    mine = [rank for rank, name in enumerate(names) if name.strip().rsplit(":", 1)[-1] == port]
    if len(mine) > 1:
        here = _addresses()
        mine = [rank for rank in mine if names[rank].strip().rsplit(":", 1)[0] in here]
    if len(mine) != 1:
        raise ValueError(
            f"machines must name this machine once (port {port}), got {names}: its rows need numbers of "
            "their own; give each machine a port of its own"
        )
    return mine[0] * _ROWS_PER_MACHINE, True


def check_classes(n_classes: int) -> None:
    """Refuse a machine's classifier that does not see every class.

    Parameters
    ----------
    n_classes : int
        Classes of all rows.

    Raises
    ------
    ValueError
        Where LightGBM's classifier has numbered fewer classes: it numbers those of its own rows, so
        that numbers would mean other classes on other machines.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "lightgbm.sklearn":
        frame = frame.f_back  # type: ignore[assignment]
    model = None if frame is None else frame.f_locals.get("self")
    seen = getattr(model, "_classes", None)
    if seen is not None and len(seen) != n_classes:
        raise ValueError(
            f"every machine must hold all {n_classes} classes for a Dask classifier, which numbers the "
            f"classes of each machine by itself, got {list(seen)} on one; use chain.fit_dask, or "
            "DaskLGBMRegressor on labels 0 .. K - 1, which takes any parts"
        )


def _addresses() -> set[str]:
    name = socket.gethostname()
    found = {name, "localhost", "127.0.0.1"}
    with contextlib.suppress(OSError):
        found |= {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    return found
