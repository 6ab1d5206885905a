"""What zero-inflated and hurdle families share: a base family and a probability of zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Link, Logit


class WithZeros(Family):
    """Base family first, so that an offset acts on its first parameter; then the zeros' share pi."""

    base: Family

    @property
    def params(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the base family's parameters, then "pi"."""
        return (*self.base.params, "pi")

    @property
    def links(self) -> tuple[Link, ...]:  # type: ignore[override]
        """Links of the base family, then the logit."""
        return (*self.base.links, Logit())

    @property
    def discrete(self) -> bool:  # type: ignore[override]
        """As the base family."""
        return self.base.discrete

    @property
    def atoms(self) -> tuple[float, ...]:  # type: ignore[override]
        """Zero, for a continuous base."""
        return () if self.base.discrete else (0.0,)

    @property
    def support(self) -> Support:  # type: ignore[override]
        """That of the base, and zero."""
        return Support(0.0, self.base.support.high, closed_low=True, integer=self.base.discrete)

    @property
    def equivariance(self) -> str | None:
        return "scale" if self.base.equivariance == "scale" else None

    def rescale(self, theta: ArrayLike, scale: float, shift: float = 0.0) -> np.ndarray:
        if shift != 0 or self.equivariance is None:
            raise ValueError(f"family {self.name} does not follow y -> {scale:g} y + {shift:g}")
        theta = np.asarray(theta, dtype=np.float64)
        return np.concatenate([self.base.rescale(theta[..., :-1], scale), theta[..., -1:]], axis=-1)

    def theta(self, raw: ArrayLike) -> np.ndarray:
        raw = np.asarray(raw, dtype=np.float64)
        return np.concatenate([self.base.theta(raw[..., :-1]), Logit().inverse(raw[..., -1:])], axis=-1)

    def raw(self, theta: ArrayLike) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        return np.concatenate([self.base.raw(theta[..., :-1]), Logit().forward(theta[..., -1:])], axis=-1)

    def split(self, theta: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Cut parameters into those of the base and pi.

        Parameters
        ----------
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        tuple of ndarray
            Shapes (..., K - 1) and (...).
        """
        theta = np.asarray(theta, dtype=np.float64)
        return theta[..., :-1], theta[..., -1]
