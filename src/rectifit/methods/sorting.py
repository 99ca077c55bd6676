"""A2, sorting. With all samples in ascending order, for t = 0, 1, ..., N

    I^t = the positive samples of rank floor(t n / N) + 1 to n,

minimise F over each (I^N is empty, its minimiser is 0) and keep the minimiser whose true objective is least.
With N = n these are the active sets of the approximation algorithm with k = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from rectifit.data.problem import Point
from rectifit.fit import Stop
from rectifit.methods.search import Search

__all__ = ["Sorting", "solve_splits"]


def solve_splits(search: Search, n_splits: int) -> list[Point]:
    """Minimise all surrogates, a few at a time, and return their minimisers."""
    sets, points = search.engine.split_sets(n_splits), list[Point]()
    size = search.engine.batch
    for first in range(0, len(sets), size):
        search.check()
        minima = search.engine.minimise(sets[first : first + size])
        search.take(minima)
        points += [minimum.point for minimum in minima]
        search.report(len(points), len(sets))
    return points


@dataclass(frozen=True)
class Sorting:
    """A2 with N = n_splits."""

    n_splits: int = 10

    def run(self, search: Search) -> Stop:
        """Minimise all surrogates; the search keeps the best."""
        solve_splits(search, self.n_splits)
        return Stop.COMPLETED
