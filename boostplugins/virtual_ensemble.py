"""Virtual ensembles: the members that one chain passed through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from boostplugins._blocks import in_blocks
from boostplugins._validation import check_integer
from boostplugins._warnings import warn
from boostplugins.losses import Loss, get_loss, loss_from_dict
from boostplugins.schedules import GradientSchedule, schedule_from_dict
from boostplugins.uncertainty import Uncertainty

_MEMBERS = 10  # of a chain without cycles, as CatBoost's own virtual ensembles


class ChainReader(Protocol):
    """What a virtual ensemble asks of a booster's trained chain."""

    @property
    def description(self) -> dict[str, Any]:
        """The chain: ``loss`` and ``schedule`` (what their ``to_dict`` gave); ``temperature`` (None for no
        noise) and the fitted ``prior``, where there are."""

    @property
    def n_iterations(self) -> int:
        """Iterations done."""

    @property
    def n_outputs(self) -> int:
        """Raw scores a row."""

    def states(self, X: Any, ends: np.ndarray) -> np.ndarray:
        """Raw scores of the rows after these numbers of iterations: (n_samples, n_members, n_outputs).

        They are states that the chain was in: shrinkage that a state met later is divided out, and the
        random prior function is not in them."""


class VirtualEnsemble:
    """Members read out of one trained chain.

    A cyclical chain gives a member at each cycle's end; any other the last state of each of `n_members`
    equal stretches of the second half. Members are exact states of the chain: shrinkage that a state
    met later is divided out, and the random prior function of its cycle is added.

    Parameters
    ----------
    reader : ChainReader
        A booster's reader.
    n_members : int, optional
        Members wanted: by default every cycle, or 10 of a chain without cycles.

    Attributes
    ----------
    ends : ndarray of shape (n_members,)
        Iterations after which the members are read.
    loss : Loss
        Loss of the chain.
    schedule : GradientSchedule
        Schedule of the chain.
    sampled : bool
        Whether the chain was trained with Langevin noise.
    prior : FittedPrior or None
        Random prior function whose values are added.

    Examples
    --------
    >>> import numpy as np
    >>> from catboost import CatBoostClassifier
    >>> from boostplugins import CosineCycle, VirtualEnsemble
    >>> from boostplugins.catboost import CyclicalSGLB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    >>> loss = CyclicalSGLB("Logloss", schedule=CosineCycle(length=10))
    >>> model = CatBoostClassifier(loss_function=loss, eval_metric="Logloss", iterations=50, verbose=False,
    ...                            **loss.catboost_params())
    >>> _ = model.fit(X, y, callbacks=[loss.callback()])
    >>> ensemble = VirtualEnsemble.from_catboost(model)
    >>> ensemble  # doctest: +ELLIPSIS
    VirtualEnsemble(5 members, after iterations 10 to 50; loss=Logistic(), schedule=CosineCycle(...))
    >>> ensemble.members(X).shape, ensemble.ends.tolist()
    ((200, 5, 1), [10, 20, 30, 40, 50])
    >>> u = ensemble.uncertainty(X)
    >>> bool(np.allclose(u.knowledge + u.data, u.total)), bool((u.knowledge >= 0).all())
    (True, True)
    """

    def __init__(self, reader: ChainReader, n_members: int | None = None) -> None:
        if n_members is not None:
            check_integer("n_members", n_members, 1)
        description = reader.description
        self._reader = reader
        self.loss: Loss = _read_loss(description["loss"], reader.n_outputs)
        self.schedule: GradientSchedule = schedule_from_dict(description["schedule"])
        self.sampled = description.get("noise", "objective") != "none" and (
            description.get("temperature", 1.0) is not None
        )
        self.prior = _read_prior(description.get("prior"))
        self.ends = self._member_ends(n_members)
        if not self.sampled:
            warn(
                "the model was trained without Langevin noise, so its members are no samples and knowledge "
                "uncertainty only shows how predictions moved; train with CyclicalSGLB, or with "
                "posterior_sampling=True and leaf_estimation_method='Gradient'",
            )

    @classmethod
    def from_catboost(cls, model: Any, n_members: int | None = None, chain: Any = None) -> VirtualEnsemble:
        """Read a CatBoost model, trained with a chain of ours or with CatBoost's own SGLB.

        Parameters
        ----------
        model : CatBoost
            Trained or loaded model.
        n_members : int, optional
            Members wanted: by default every cycle, or 10 of a chain without cycles.
        chain : CyclicalSGLB, optional
            The chain, for a model that was trained without ``**loss.catboost_params()``.

        Returns
        -------
        VirtualEnsemble
            Its members.

        Raises
        ------
        ValueError
            For an unfitted model, or one that does not say which chain it is.
        """
        from boostplugins.catboost.reader import CatBoostReader

        reader: Any = CatBoostReader(model, None if chain is None else chain.to_dict())
        return cls(reader, n_members)

    @classmethod
    def from_lightgbm(cls, model: Any, n_members: int | None = None) -> VirtualEnsemble:
        """Read a LightGBM model trained with a chain of ours.

        Parameters
        ----------
        model : Booster, LGBMModel, str or Path
            Trained model, or the file of one.
        n_members : int, optional
            Members wanted: by default every cycle, or 10 of a chain without cycles.

        Returns
        -------
        VirtualEnsemble
            Its members.
        """
        from boostplugins.lightgbm.reader import LightGBMReader

        return cls(LightGBMReader(model), n_members)

    def __repr__(self) -> str:
        first, last = int(self.ends[0]), int(self.ends[-1])
        prior = ", with a prior function" if self.prior is not None else ""
        return (
            f"VirtualEnsemble({len(self.ends)} members, after iterations {first} to {last}; "
            f"loss={self.loss!r}, schedule={self.schedule!r}{prior})"
        )

    def members(self, X: Any) -> np.ndarray:
        """Read the members' raw scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_members, n_outputs)
            Raw scores.
        """
        states = self._reader.states(X, self.ends)
        if self.prior is not None:
            states += self.prior_values(X, states.shape[2])
        return states

    def prior_values(self, X: Any, n_outputs: int) -> np.ndarray:
        """Evaluate the members' prior functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        n_outputs : int
            Raw scores a row.

        Returns
        -------
        ndarray of shape (n_samples, n_members, n_outputs)
            What they add to the raw scores; 0 for a chain without them.
        """
        if self.prior is None:
            return np.zeros((len(X), len(self.ends), n_outputs))
        cycles = [self.schedule.cycle(int(end) - 1) for end in self.ends]
        rows = _features(X, getattr(self._reader, "feature_names", ()))
        return self.prior.values_of(cycles, rows, n_outputs).transpose(1, 0, 2)

    def uncertainty(self, X: Any) -> Uncertainty:
        """Split the uncertainty of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Uncertainty
            Variances in squared units of the target (regression) or nats (classification), each of
            shape (n_samples,).
        """
        return in_blocks(lambda rows: self.loss.uncertainty(self.members(rows)), X)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the mean response, or the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Mean over members; for classes the index of the class.
        """
        if self.loss.classification:
            return self.predict_proba(X).argmax(axis=1)
        return in_blocks(lambda rows: self.loss.response(self.members(rows)).mean(axis=1), X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities, averaged over the members.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.

        Raises
        ------
        AttributeError
            For a loss without classes.
        """
        if not self.loss.classification:
            raise AttributeError(f"predict_proba needs a classification loss, got {self.loss.name}")
        return in_blocks(lambda rows: self.loss.response(self.members(rows)).mean(axis=1), X)

    def _member_ends(self, n_members: int | None) -> np.ndarray:
        total = self._reader.n_iterations
        if total < 1:
            raise ValueError("a virtual ensemble needs a model of at least one tree, got 0")
        ends = self.schedule.member_ends(total, n_members)
        if len(ends) == 0:
            ends = np.array([total])
            warn(
                f"a chain of {total} iterations has not finished a cycle: its last state is the only member "
                "and knowledge uncertainty is 0; train longer or shorten the cycle",
            )
        elif n_members is not None and len(ends) < n_members:
            warn(
                f"a chain of {total} iterations has {len(ends)} members, {n_members} were wanted; "
                "all are used",
            )
        elif n_members is None and 1 < len(ends) < _MEMBERS and not hasattr(self.schedule, "length"):
            warn(
                f"a chain of {total} iterations has only {len(ends)} members; train longer",
            )
        return ends


def _read_loss(description: dict[str, Any], n_outputs: int) -> Loss:
    try:
        loss = loss_from_dict(description)
    except ValueError as error:
        try:
            loss = get_loss(description["name"])  # CatBoost's names, of a model without our objects
        except ValueError:
            raise error from None
    if loss.classification and loss.n_outputs != n_outputs:
        loss = loss.ready(np.arange(n_outputs, dtype=np.float64))
    if loss.n_outputs != n_outputs:
        raise ValueError(
            f"the chain must have {n_outputs} raw scores a row, as the model has, got {loss.n_outputs} of "
            f"{loss!r}"
        )
    return loss


def _read_prior(description: dict[str, Any] | None) -> Any:
    if description is None:
        return None
    from boostplugins.priors import FittedPrior

    return FittedPrior.from_dict(description)


def _features(X: Any, names: Sequence[str]) -> Any:
    """Rows for a prior function: columns by name, as CatBoost takes them; a pool cannot give all back."""
    if hasattr(X, "X_"):
        X = X.X_
    if not hasattr(X, "get_features"):
        columns = list(map(str, X.columns)) if hasattr(X, "iloc") else []
        in_order = sorted(columns) != sorted(names) or columns == list(names)
        return X if in_order else X.iloc[:, [columns.index(name) for name in names]]
    if X.get_cat_feature_indices():
        raise ValueError(
            "X must be an array or a DataFrame for a chain with a prior function, got a CatBoost Pool with "
            "categories, which does not give its rows back"
        )
    return X.get_features()
