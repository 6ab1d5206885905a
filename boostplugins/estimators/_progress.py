"""Progress of a fit on standard error, by way of the package's loggers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown(name: str, verbose: bool | int) -> Iterator[Callable[[str], None] | None]:
    """Show what a logger is told, where asked.

    Parameters
    ----------
    name : str
        Name of the logger.
    verbose : bool or int
        Whether to show it on standard error.

    Yields
    ------
    callable or None
        Takes a line of text; None where nothing is shown.
    """
    if not verbose:
        yield None
        return
    logger = logging.getLogger(name)
    handler = logging.StreamHandler()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield logger.info
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
