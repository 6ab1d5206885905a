"""A mask of one's own: each cycle explores one stretch of the rows, such as a season."""

from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Stretches:
    count: int = 4

    def rows(self, cycle, n_rows, first_row=0):  # True for the rows that count while the cycle explores
        return np.arange(n_rows) * self.count // n_rows == cycle % self.count

    def to_dict(self):  # kept with the model
        return {"kind": "stretches", **asdict(self)}
