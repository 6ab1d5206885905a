"""A booster of one's own: trees of scikit-learn, grown by the same chain, read by the same ensemble."""

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from boostplugins import NoMask
from boostplugins.noise import Stream, normals


class TreeChain:
    """Trains a chain, and is its own reader: see `boostplugins.virtual_ensemble.ChainReader`."""

    def __init__(self, loss, schedule, mask=None, temperature=1.0, learning_rate=0.1, seed=0):
        self.loss, self.schedule, self.mask = loss, schedule, mask or NoMask()
        self.temperature, self.learning_rate, self.seed = temperature, learning_rate, seed

    def fit(self, X, y, n_iterations=200, **tree_settings):
        self.loss = self.loss.ready(y)
        self.start, self.trees = self.loss.start(y), []
        raw = np.tile(self.start, (len(y), 1))
        size = np.sqrt(2 / (self.learning_rate * self.temperature))
        for t in range(n_iterations):
            kept = self.mask.rows(self.schedule.cycle(t), len(y)) if self.schedule.exploring(t) else None
            d = self.schedule.scale(t) * self.loss.direction(y, raw)
            if kept is not None:
                d[~kept] = 0.0
            zeta = [normals(self.seed, t, Stream.STRUCTURE, len(y), output=k) for k in range(raw.shape[1])]
            d += size * self.loss.noise_scale(raw) * np.stack(zeta, axis=1)
            tree = DecisionTreeRegressor(random_state=self.seed, **tree_settings).fit(X, d)
            self.trees.append(tree)
            raw += self.learning_rate * tree.predict(X).reshape(raw.shape)
        return self

    @property
    def description(self):
        return {
            "loss": self.loss.to_dict(),
            "schedule": self.schedule.to_dict(),
            "temperature": self.temperature,
        }

    @property
    def n_iterations(self):
        return len(self.trees)

    @property
    def n_outputs(self):
        return self.loss.n_outputs

    def states(self, X, ends):  # (rows, members, outputs)
        steps = np.stack([tree.predict(X).reshape(len(X), -1) for tree in self.trees], axis=1)
        return self.start + self.learning_rate * np.cumsum(steps, axis=1)[:, np.asarray(ends) - 1]
