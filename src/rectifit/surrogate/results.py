"""What a piece of work on surrogates has found; made on any thread, merged into the search on one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rectifit.data.problem import Point
from rectifit.surrogate.engine import Minimum

__all__ = ["SurrogateResults"]


@dataclass
class SurrogateResults:
    """The least surrogate minimum, the best minimiser by the true objective, and counts."""

    least: Minimum | None = None
    best: Point | None = None
    n_surrogates: int = 0
    lowest_bound: float = math.inf
    converged: bool = True

    def add(self, minima: Sequence[Minimum]) -> None:
        """Take in the minima of some surrogates."""
        for minimum in minima:
            if self.least is None or minimum.value < self.least.value:
                self.least = minimum
            if self.best is None or minimum.point.objective < self.best.objective:
                self.best = minimum.point
            self.lowest_bound = min(self.lowest_bound, minimum.dual_bound)
            self.converged = self.converged and minimum.converged
        self.n_surrogates += len(minima)
