"""The package's own choice: sorting, the iterative method from its solutions, then from perturbed ones.

The first generation of starts is the sorting solutions, least squares and random directions. Each next one
perturbs the few best solutions: it moves them by random directions of between a fiftieth and twice their
length. From every start the iterative method falls to the next solution. Good solutions lie close to better
ones, so this finds them sooner than independent starts do. The search ends after some generations in a row
without a better solution, and on small data with a look at every active set that differs from the best one in
one sample. How many starts and generations there are depends on the size of the data alone
(`rectifit.routing.search_effort`).

With very few positive samples there are so few active sets that all are minimised, which settles the matter.

Where little of the data is left unexplained, a proof often costs next to nothing: the search for one is given
a fixed amount of work, and the fit carries the bound that this proves.

The best sorting solution is in the first generation, so the result is never worse than sorting+iterative. On
small data all splits are there, so it is also never worse than the approximation algorithm with k = 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rectifit import routing
from rectifit.active import ActiveSet, Members
from rectifit.data.problem import Point
from rectifit.fit import Stop
from rectifit.methods.approximation import Approximation
from rectifit.methods.multistart import MAX_ITER
from rectifit.methods.search import Search
from rectifit.methods.sorting import solve_splits
from rectifit.surrogate.engine import Coefficients
from rectifit.surrogate.majorise import follow_together

__all__ = ["Auto"]

# Least and largest length of a perturbation relative to the solution.
MIN_PERTURBATION = 0.02
MAX_PERTURBATION = 2.0
# Solutions that are perturbed.
ELITE_SIZE = 8
# Generations without a better solution that end the search.
PATIENCE = 4
# How often a bound may look at all samples.
BOUND_LOOKS = 3_000


@dataclass(frozen=True)
class Auto:
    """Sorting and generations of the iterative method, each of at most max_iter steps; then a bound."""

    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8
    with_bound: bool = True

    def run(self, search: Search) -> Stop:
        """Find a solution, and a bound where a short search may find one."""
        if self.with_bound and search.engine.has_rows and routing.is_bounded(search.problem):
            # Imported here: it loads the compiler. What is compiled together is compiled sooner.
            from rectifit.methods.proving import prepare_bound

            prepare_bound(search)
        stop = self._find(search)
        if self.with_bound and self._is_bounded_cheaply(search):
            # Imported here: it loads more of the compiler's work.
            from rectifit.methods.proving import bound_within

            bound_within(search, BOUND_LOOKS)
            search.check()
        return stop

    @staticmethod
    def _is_bounded_cheaply(search: Search) -> bool:
        if search.best is None or not search.engine.has_rows or search.is_proved():
            return False
        return routing.can_bound_cheaply(search.problem, search.best.objective)

    def _find(self, search: Search) -> Stop:
        """Sort, then follow one generation after the other."""
        engine, effort = search.engine, routing.search_effort(search.problem)
        n_positive = search.problem.data.outcomes.n_positive
        if effort.is_enumerable and engine.has_rows:
            return Approximation(max(n_positive, 1)).run(search)
        is_exhaustive = effort.is_exhaustive and engine.has_rows
        n_splits = search.problem.n_samples if is_exhaustive else self.n_splits
        points = sorted(solve_splits(search, n_splits, follow=True), key=lambda point: point.objective)
        starts = [engine.least_squares()]
        starts += [engine.random_direction(search.rng) for _ in range(effort.n_random)]
        points = points[: effort.n_sorted] + engine.evaluate(starts)
        known = Known(search, self.max_iter, self.tol)
        in_vain = 0
        for generation in range(effort.n_generations):
            if generation > 0:
                points = engine.evaluate([perturb(search, known.elite, e) for e in range(effort.n_perturbed)])
            improved, met_new = known.follow(engine.active_at(points), points)
            search.report(generation + 1, effort.n_generations)
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
        if is_exhaustive:
            while known.follow(neighbours(search), None)[0]:
                search.check()
        return Stop.PATIENCE if in_vain >= PATIENCE else Stop.STARTS


def neighbours(search: Search) -> list[ActiveSet]:
    """The active set of the best solution with one sample switched, once for every positive sample."""
    assert search.best is not None
    problem = search.problem
    members = np.flatnonzero(problem.positive)
    active = problem.active_at(problem.preactivation(search.best.beta, search.best.intercept))
    actives = np.repeat(active[None], members.size, axis=0)
    actives[np.arange(members.size), members] ^= True
    return [Members(line) for line in actives]


def perturb(search: Search, elite: Sequence[Point], e: int) -> Coefficients:
    """Move the best solution, or every other time one of the elite."""
    end = elite[0 if e % 2 == 0 else int(search.rng.integers(len(elite)))]
    beta, intercept = search.engine.random_direction(search.rng)
    # Random directions have the norm of y.
    bounds = np.log(MIN_PERTURBATION), np.log(MAX_PERTURBATION)
    share = float(np.exp(search.rng.uniform(*bounds)))
    length = share * search.engine.length(end) / float(np.sqrt(search.problem.null_objective))
    if length == 0.0:
        return beta, intercept
    return end.beta + length * beta, end.intercept + length * intercept


class Known:
    """Active sets visited so far, and the best few solutions."""

    def __init__(self, search: Search, max_iter: int, tol: float) -> None:
        self.search, self.max_iter, self.tol = search, max_iter, tol
        self.visited: set[Hashable] = set()
        self.elite: list[Point] = []

    def follow(self, sets: Sequence[ActiveSet], starts: Sequence[Point] | None) -> tuple[bool, bool]:
        """Follow paths from active sets; whether the best got better, and whether any solution was new."""
        search = self.search
        before = search.best.objective if search.best is not None else np.inf
        paths = follow_together(
            search.engine,
            sets,
            starts,
            max_iter=self.max_iter,
            tol=self.tol,
            visited=self.visited,
            is_over=search.clock.is_over,
        )
        search.merge(paths.results)
        search.check()
        self.elite = sorted(self.elite + paths.ends, key=lambda end: end.objective)[:ELITE_SIZE]
        better = search.best is not None and search.best.objective < before * (1.0 - self.tol)
        return better, bool(paths.ends)
