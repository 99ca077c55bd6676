"""The package's own choice: sorting, the iterative method from its solutions, then from kicked ones.

The first generation of starts is the sorting solutions, least squares and random directions. Each next one
kicks the few best solutions: moves them by random directions of between a fiftieth and twice their length.
From every start the iterative method falls to the next solution. Good solutions lie close to better ones, so
this finds them sooner than independent starts do. It ends when some generations in a row were in vain, and on
small data with a look at every active set that differs from the best in one sample.

With very few positive samples there are so few active sets that all are minimised, which settles the matter.

Where little of the data is left unexplained, a proof often costs next to nothing: the first bound of the
search for one is made, in no more time than the fit took.

The best sorting solution is in the first generation, so the result is never worse than sorting+iterative. On
small data all splits are there, so it is also never worse than the approximation algorithm with k = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Mask, Vector
from rectifit.methods.approximation import Approximation
from rectifit.methods.finds import Batch
from rectifit.methods.lockstep import End, descend_together
from rectifit.methods.multistart import MAX_ITER
from rectifit.methods.search import Search
from rectifit.methods.sorting import solve_splits
from rectifit.solution import Stop

__all__ = ["Auto"]

# Least and largest length of a kick relative to the solution, and how many solutions are kicked.
SHORTEST, LONGEST, ELITE = 0.02, 2.0, 8
# A generation has as many members as make so many numbers of X, but not more than this.
NUMBERS, LARGEST = 2_000_000, 32
# With so few positive samples all of their active sets are tried; up to so many numbers of X times positive
# samples, all splits, and all neighbours of the best.
FEW, SMALL = 9, 100_000
# A bound is made with up to so many numbers of X, where the fit leaves at most this share of sum w y^2; it
# may take so many seconds even if the fit took fewer.
BOUNDED, EXPLAINED, LEAST_BUDGET = 200_000, 0.3, 0.05
# Generations in all, and how many in vain end the search.
GENERATIONS, PATIENCE = 20, 4


@dataclass(frozen=True)
class Auto:
    """Sorting and generations of the iterative method, each of at most max_iter steps; then a cheap bound."""

    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8
    with_bound: bool = True

    def run(self, search: Search) -> Stop:
        """Find a solution, and a bound where that is cheap."""
        began = search.seconds
        stop = self._find(search)
        if self.with_bound and self._is_bounded_cheaply(search):
            # Imported here: it loads more of the compiler's work.
            from rectifit.methods.proof import Proof

            Proof(search, budget=max(search.seconds - began, LEAST_BUDGET)).bound()
            search.check()
        return stop

    @staticmethod
    def _is_bounded_cheaply(search: Search) -> bool:
        problem = search.problem
        if search.best is None or search.is_proved():
            return False
        size = problem.n_samples * problem.n_features
        return size <= BOUNDED and search.best.objective <= EXPLAINED * problem.null_objective

    def _find(self, search: Search) -> Stop:
        """Sort, then follow one generation after the other."""
        problem, solver = search.problem, search.solver
        m = int(problem.positive.sum())
        if m <= FEW:
            return Approximation(max(m, 1)).run(search)
        size = int(np.clip(NUMBERS // (problem.n_samples * problem.n_features), 1, LARGEST))
        is_small = m * problem.n_samples * problem.n_features <= SMALL
        n_splits = problem.n_samples if is_small else self.n_splits
        points = sorted(solve_splits(search, n_splits), key=lambda point: point.objective)
        starts = [(point.beta, point.intercept) for point in points[:size]]
        starts.append(solver.least_squares())
        starts += [solver.random_direction(search.rng) for _ in range(size)]
        known = Known(search, self.max_iter, self.tol)
        in_vain = 0
        for generation in range(GENERATIONS):
            batch = Batch.evaluate(problem, starts)
            improved, met_new = known.follow(problem.active_at(batch.u).T, batch.objectives)
            search.report(generation + 1, GENERATIONS)
            if search.is_proved():
                return Stop.OPTIMAL
            if not known.elite:
                return Stop.MAX_ITER
            if improved:
                in_vain = 0
            elif generation > 0:
                # A generation that met nothing but known solutions counts twice.
                in_vain += 1 if met_new else 2
            if in_vain >= PATIENCE:
                break
            starts = [self._kick(search, known.elite, e) for e in range(size)]
        if is_small:
            while known.follow(self._flips(search), None)[0]:
                search.check()
        return Stop.PATIENCE if in_vain >= PATIENCE else Stop.STARTS

    @staticmethod
    def _flips(search: Search) -> Mask:
        """The active set of the best solution with one sample switched, once for every positive sample."""
        assert search.best is not None
        members = np.flatnonzero(search.problem.positive)
        actives = np.repeat(search.problem.active_at(search.best.u)[None], members.size, axis=0)
        actives[np.arange(members.size), members] ^= True
        return actives

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


class Known:
    """Active sets visited so far, and the best few solutions."""

    def __init__(self, search: Search, max_iter: int, tol: float) -> None:
        self.search, self.max_iter, self.tol = search, max_iter, tol
        self.visited: set[bytes] = set()
        self.elite: list[End] = []

    def follow(self, actives: Mask, objectives: Vector | None) -> tuple[bool, bool]:
        """Follow paths from active sets; whether the best got better, and whether any solution was new."""
        search = self.search
        before = search.best.objective if search.best is not None else np.inf
        descents = descend_together(
            search.problem,
            search.solver,
            actives,
            np.full(len(actives), np.inf) if objectives is None else objectives,
            max_iter=self.max_iter,
            tol=self.tol,
            visited=self.visited,
            is_over=search.is_over,
        )
        search.merge(descents.finds)
        search.check()
        self.elite = sorted(self.elite + descents.ends, key=lambda end: end.objective)[:ELITE]
        better = search.best is not None and search.best.objective < before * (1.0 - self.tol)
        return better, bool(descents.ends)
