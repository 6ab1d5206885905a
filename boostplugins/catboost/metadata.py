"""The description of a chain that travels with a CatBoost model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from boostplugins.catboost.binding import find_fit
from boostplugins.catboost.reader import METADATA_KEY
from boostplugins.catboost.turns import in_turns, start_of

if TYPE_CHECKING:
    from boostplugins.catboost.chain import CyclicalSGLB


class ChainMetadata(dict[str, str]):
    """The chain's description, which CatBoost stores with the model.

    The copy that CatBoost makes at the start of a fit holds what the loss takes from the data, such
    as its noise variance.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    """

    def __init__(self, chain: CyclicalSGLB) -> None:
        super().__init__({METADATA_KEY: json.dumps(chain.to_dict())})
        self.chain = chain

    def __deepcopy__(self, memo: dict[Any, Any]) -> dict[str, str]:
        fit = find_fit()
        if fit is None:  # `clone` compares parameters by identity
            return self
        loss, prior = self.chain._settled(fit, memo)
        start = start_of(loss, fit.pool) if in_turns(loss) else None
        return {METADATA_KEY: json.dumps(self.chain.to_dict(loss, prior, start))}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.chain,)
