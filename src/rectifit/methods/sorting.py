"""A2, sorting. With all samples in ascending order, for t = 0, 1, ..., N

    I^t = the positive samples of rank floor(t n / N) + 1 to n,

minimise F over each (I^N is empty, its minimiser is 0) and keep the minimiser whose true objective is least.
With N = n these are the active sets of the approximation algorithm with k = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Mask
from rectifit.methods.finds import Batch
from rectifit.methods.order import ascending
from rectifit.methods.search import Search
from rectifit.problem import Point, Problem
from rectifit.solution import Stop

__all__ = ["Sorting", "solve_splits", "split_sets"]


def split_sets(problem: Problem, n_splits: int) -> list[Mask]:
    """The active sets I^0, ..., I^N; not more splits than samples."""
    order = ascending(problem)
    n_splits = min(n_splits, order.size)
    sets = []
    for t in range(n_splits + 1):
        active = np.zeros(problem.n_samples, dtype=np.bool_)
        active[order[t * order.size // n_splits :]] = True
        sets.append(active & problem.positive)
    return sets


def solve_splits(search: Search, n_splits: int) -> list[Point]:
    """Minimise all surrogates, a few at a time, and return their minimisers."""
    sets, points = split_sets(search.problem, n_splits), list[Point]()
    size = search.solver.batch
    for first in range(0, len(sets), size):
        search.check()
        batch = np.array(sets[first : first + size])
        solutions = search.solver.solve_each(batch)
        found = Batch.evaluate(search.problem, [(s.beta, s.intercept) for s in solutions]).points()
        for active, solution, point in zip(batch, solutions, found, strict=True):
            search.take(active, solution, point)
        points += found
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
