"""The package's own choice: sorting, the iterative method from its solutions, then from kicked ones.

The first generation of starts is the sorting solutions, least squares and random directions. Each next one
kicks the few best solutions: moves them by random directions of between a fiftieth and twice their length.
From every start the iterative method falls to the next solution. Good solutions lie close to better ones, so
this finds them sooner than independent starts do. It ends when some generations in a row were in vain.

The best sorting solution is in the first generation, so the result is never worse than sorting+iterative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit.methods.finds import Batch
from rectifit.methods.lockstep import End, descend_together
from rectifit.methods.multistart import MAX_ITER
from rectifit.methods.search import Search
from rectifit.methods.sorting import solve_splits
from rectifit.problem import Vector
from rectifit.solution import Stop

__all__ = ["Auto"]

# Least and largest length of a kick relative to the solution, and how many solutions are kicked.
SHORTEST, LONGEST, ELITE = 0.02, 2.0, 8
# A generation has as many members as make so many numbers of X, but not more than this.
NUMBERS, LARGEST = 2_000_000, 32
# Generations in all, and how many in vain end the search.
GENERATIONS, PATIENCE = 20, 4


@dataclass(frozen=True)
class Auto:
    """Sorting and generations of the iterative method, each of at most max_iter steps."""

    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: Search) -> Stop:
        """Sort, then follow one generation after the other."""
        problem, solver = search.problem, search.solver
        size = int(np.clip(NUMBERS // (problem.n_samples * problem.n_features), 1, LARGEST))
        points = sorted(solve_splits(search, self.n_splits), key=lambda point: point.objective)
        starts = [(point.beta, point.intercept) for point in points[:size]]
        starts.append(solver.least_squares())
        starts += [solver.random_direction(search.rng) for _ in range(size)]
        elite: list[End] = []
        visited: set[bytes] = set()
        in_vain = 0
        for generation in range(GENERATIONS):
            before = search.best.objective if search.best is not None else np.inf
            descents = descend_together(
                problem,
                solver,
                Batch.evaluate(problem, starts),
                max_iter=self.max_iter,
                tol=self.tol,
                visited=visited,
                is_over=search.is_over,
            )
            search.merge(descents.finds)
            search.report(generation + 1, GENERATIONS)
            search.check()
            elite = sorted(elite + descents.ends, key=lambda end: end.objective)[:ELITE]
            if search.is_proved() or not elite:
                return Stop.OPTIMAL
            if elite[0].objective < before * (1.0 - self.tol):
                in_vain = 0
            elif generation > 0:
                # A generation that met nothing but known solutions counts twice.
                in_vain += 1 if descents.ends else 2
            if in_vain >= PATIENCE:
                return Stop.PATIENCE
            starts = [self._kick(search, elite, e) for e in range(size)]
        return Stop.STARTS

    @staticmethod
    def _kick(search: Search, elite: list[End], e: int) -> tuple[Vector, float]:
        """Move the best solution, or every other time one of the elite."""
        end = elite[0 if e % 2 == 0 else int(search.rng.integers(len(elite)))]
        beta, intercept = search.solver.random_direction(search.rng)
        # Random directions have the length of y.
        share = float(np.exp(search.rng.uniform(np.log(SHORTEST), np.log(LONGEST))))
        length = share * end.length / float(np.sqrt(search.problem.null_objective))
        if length == 0.0:
            return beta, intercept
        return end.beta + length * beta, end.intercept + length * intercept
