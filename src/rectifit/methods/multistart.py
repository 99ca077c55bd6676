"""The iterative method from many starts: the stage before, least squares, sorting's solutions, random ones.

The active set of a start depends on its direction only, so the random starts are directions: uniform where
all columns have the same length, which makes the result independent of the units of the columns.

With an accelerator all starts go there together. Then the first few, and the best ends, are followed by the
exact solver.
"""

from __future__ import annotations

from dataclasses import dataclass

from rectifit._typing import Vector
from rectifit.methods.finds import Batch
from rectifit.methods.lockstep import Descents, descend_together
from rectifit.methods.pool import SolverPool
from rectifit.methods.search import Search
from rectifit.methods.sorting import solve_splits
from rectifit.parallel import map_ordered
from rectifit.solution import Stop

__all__ = ["Multistart"]

MAX_ITER = 100
# Starts that go together, where all rows are in the compiled kernel; fixed, whatever the number of threads.
TOGETHER = 16
# Starts that are followed by the exact solver as well, and ends of paths on an accelerator.
FIRST, ENDS = 32, 16


@dataclass(frozen=True)
class Multistart:
    """At most n_starts starts, in the order above, each followed for at most max_iter steps."""

    n_starts: int = 32
    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: Search) -> Stop:
        """Follow all starts, on several threads if there are."""
        problem, starts = search.problem, self._starts(search)
        if search.device is not None:
            starts = self._follow_batched(search, starts)
        size = TOGETHER if search.solver.batch > 1 else 1
        groups = [starts[e : e + size] for e in range(0, len(starts), size)]
        solvers, max_iter, tol = SolverPool(problem, search.solver), self.max_iter, self.tol

        def follow(group: list[tuple[Vector, float]]) -> Descents:
            batch = Batch.evaluate(problem, group)
            with solvers.lend() as solver:
                return descend_together(
                    problem,
                    solver,
                    problem.active_at(batch.u).T,
                    batch.objectives,
                    max_iter=max_iter,
                    tol=tol,
                    visited=set(),
                    is_over=search.is_over,
                )

        for done, descents in enumerate(map_ordered(follow, groups, search.n_threads, search.abandoned)):
            search.merge(descents.finds)
            search.report(done + 1, len(groups))
            search.check()
        return Stop.STARTS

    def _follow_batched(
        self, search: Search, starts: list[tuple[Vector, float]]
    ) -> list[tuple[Vector, float]]:
        """The first starts, and where the best paths from all of them end."""
        problem, batch = search.problem, Batch.evaluate(search.problem, starts)
        descents = descend_together(
            problem,
            search.batched,
            problem.active_at(batch.u).T,
            batch.objectives,
            max_iter=self.max_iter,
            tol=self.tol,
            visited=set(),
            is_over=search.is_over,
        )
        search.n_surrogates += descents.finds.n_surrogates
        ends = sorted(descents.ends, key=lambda end: end.objective)[:ENDS]
        return starts[:FIRST] + [(end.beta, end.intercept) for end in ends]

    def _starts(self, search: Search) -> list[tuple[Vector, float]]:
        starts = [] if search.best is None else [(search.best.beta, search.best.intercept)]
        starts.append(search.solver.least_squares())
        if len(starts) < self.n_starts:
            starts += [(point.beta, point.intercept) for point in solve_splits(search, self.n_splits)]
        while len(starts) < self.n_starts:
            starts.append(search.solver.random_direction(search.rng))
        return starts[: self.n_starts]
