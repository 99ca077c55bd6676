"""The iterative method from many starts: the stage before, least squares, sorting's solutions, random ones.

The active set of a start depends on its direction only, so the random starts are directions: uniform where
all columns have the same length, which makes the result independent of the units of the columns.

With an accelerator all starts go there together. Then the first few, and the best ends, are followed by the
exact solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rectifit.fit import Stop
from rectifit.methods.pool import EnginePool
from rectifit.methods.search import Search
from rectifit.methods.sorting import solve_splits
from rectifit.parallel import map_ordered
from rectifit.surrogate.batched import BatchedSolver
from rectifit.surrogate.engine import Coefficients, Engine
from rectifit.surrogate.majorise import Basins, Paths, follow_together
from rectifit.surrogate.results import SurrogateResults
from rectifit.surrogate.rows_engine import AcceleratedEngine

__all__ = ["MAX_ITER", "Multistart"]

MAX_ITER = 100
# Starts that are followed together, where an engine minimises several sets at once; whatever the threads.
MAX_TOGETHER = 16
# Starts that are followed by the exact solver after an accelerator has followed all, and ends of its paths.
FIRST_STARTS = 32
BEST_ENDS = 16


@dataclass(frozen=True)
class Multistart:
    """At most n_starts starts, in the order above, each followed for at most max_iter steps."""

    n_starts: int = 32
    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: Search) -> Stop:
        """Follow all starts, on several threads if there are."""
        engine, starts = search.engine, self._starts(search)
        accelerator = engine.accelerator()
        if accelerator is not None:
            starts = self._follow_batched(search, accelerator, starts)
        size = min(MAX_TOGETHER, engine.batch)
        groups = [starts[e : e + size] for e in range(0, len(starts), size)]
        engines, is_over = EnginePool(engine), search.clock.is_over

        def follow(group: list[Coefficients]) -> SurrogateResults:
            with engines.acquire() as one:
                # Whatever the engine has done before, and on which thread.
                one.reset()
                return self._follow(one, group, is_over).results

        n_threads = search.n_threads if engine.has_rows else 1
        for done, results in enumerate(map_ordered(follow, groups, n_threads, search.clock.abandon)):
            search.merge(results)
            search.report(done + 1, len(groups))
            search.check()
        return Stop.STARTS

    def _follow(self, engine: Engine, starts: list[Coefficients], is_over: Callable[[], bool]) -> Paths:
        points = engine.evaluate(starts)
        return follow_together(
            engine,
            engine.active_at(points),
            points,
            max_iter=self.max_iter,
            tol=self.tol,
            basins=Basins(),
            is_over=is_over,
        )

    def _follow_batched(
        self, search: Search, accelerator: BatchedSolver, starts: list[Coefficients]
    ) -> list[Coefficients]:
        """The first starts, and where the best paths from all of them end."""
        engine = AcceleratedEngine(search.problem, accelerator)
        paths = self._follow(engine, starts, search.clock.is_over)
        search.n_surrogates += paths.results.n_surrogates
        ends = sorted(paths.ends, key=lambda end: end.objective)[:BEST_ENDS]
        return starts[:FIRST_STARTS] + [(end.beta, end.intercept) for end in ends]

    def _starts(self, search: Search) -> list[Coefficients]:
        starts = [] if search.best is None else [(search.best.beta, search.best.intercept)]
        starts.append(search.engine.least_squares())
        if len(starts) < self.n_starts:
            starts += [(point.beta, point.intercept) for point in solve_splits(search, self.n_splits)]
        while len(starts) < self.n_starts:
            starts.append(search.engine.random_direction(search.rng))
        return starts[: self.n_starts]
