"""The package's own choice: sorting, the iterative method from its best, then the same from kicked solutions.

A kick moves the best solution by a random direction, between a fifth of its length and twice of it, and the
iterative method falls to the next solution from there. Good solutions lie close to better ones, so this finds
them sooner than independent starts do. It ends after a number of kicks that shrinks with the size of the data,
or when many in a row were in vain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit.methods.iterative import Iterative, majorise
from rectifit.methods.multistart import MAX_ITER, best_multiple
from rectifit.methods.search import Point, Search
from rectifit.methods.sorting import Sorting
from rectifit.problem import Problem
from rectifit.solution import Stop

__all__ = ["Auto"]

# Lengths of kicks relative to the solution.
LENGTHS = (0.2, 0.5, 1.0, 2.0)
# Kicks: as many as read so many numbers of X, within limits; and how many in vain end the search.
NUMBERS, FEWEST, MOST, PATIENCE = 4_000_000, 4, 100, 40


@dataclass(frozen=True)
class Auto:
    """Sorting, iterative and kicks; max_iter is about each run of the iterative method."""

    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: Search) -> Stop:
        """Never worse than sorting+iterative, which comes first."""
        Sorting(self.n_splits).run(search)
        Iterative(self.max_iter, self.tol).run(search)
        n_kicks = int(np.clip(NUMBERS / search.problem.X.shape[0] / search.problem.X.shape[1], FEWEST, MOST))
        in_vain = 0
        for kick in range(n_kicks):
            search.check()
            assert search.best is not None
            if search.best.objective <= search.lower_bound:
                return Stop.COMPLETED
            start = self._kicked(search, search.best)
            before = search.best.objective
            for step in majorise(search.problem, search.solver, start, self.max_iter, self.tol):
                search.take(step.active, step.solution, step.point)
                search.check()
            in_vain = in_vain + 1 if search.best.objective >= before * (1.0 - self.tol) else 0
            search.report(kick + 1, n_kicks)
            if in_vain >= PATIENCE:
                return Stop.PATIENCE
        return Stop.STARTS

    @staticmethod
    def _kicked(search: Search, best: Point) -> Point:
        problem = search.problem
        beta, intercept = search.solver.random_direction(search.rng)
        length = float(search.rng.choice(LENGTHS)) * _length_of(problem, best)
        if length > 0.0:
            beta, intercept = best.beta + length * beta, best.intercept + length * intercept
        return search.evaluate(*best_multiple(problem, beta, intercept))


def _length_of(problem: Problem, point: Point) -> float:
    """Length of the pre-activation relative to that of the outcomes, which random directions have."""
    return float(np.linalg.norm(problem.root_weight * point.u)) / float(np.sqrt(problem.null_objective))
