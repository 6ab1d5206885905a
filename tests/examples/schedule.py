"""A schedule of one's own: the gradient scale falls along a straight line, cycle after cycle."""

from dataclasses import dataclass

from boostplugins.schedules import GradientSchedule


@dataclass(frozen=True)
class Sawtooth(GradientSchedule):
    kind = "sawtooth"  # stored models are read by it, once this class is defined

    length: int = 50
    top: float = 5.0

    def scale(self, iteration):  # of the gradient; 1 samples the posterior
        return max(self.top * (1 - (iteration % self.length) / self.length), 1.0)

    def cycle(self, iteration):  # a member is read at each cycle's end
        return iteration // self.length

    def exploring(self, iteration):  # masks hold while a cycle explores
        return self.scale(iteration) > 1.0
