"""The iterative method from many starts: the stage before, least squares, each sorting solution, random directions.

The active set of a start depends on its direction only, so the random starts are directions: uniform where all
columns have the same length, which makes the result independent of the units of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from rectifit.methods.iterative import Step, majorise
from rectifit.methods.search import Point, Search
from rectifit.methods.sorting import split_sets
from rectifit.parallel import map_ordered
from rectifit.problem import Problem, Vector
from rectifit.solution import Stop
from rectifit.surrogate import SurrogateSolver

__all__ = ["Multistart", "best_multiple"]

MAX_ITER = 100


def best_multiple(problem: Problem, beta: Vector, intercept: float) -> tuple[Vector, float]:
    """The best positive multiple of a direction; the direction itself where its best multiple is 0."""
    fitted = problem.root_weight * np.maximum(problem.preactivation(beta, intercept), 0.0)
    # Lengths before products, so that no square overflows.
    size = float(np.linalg.norm(fitted))
    if size == 0.0:
        return beta, intercept
    multiple = float((fitted / size) @ (problem.root_weight * problem.y)) / size
    return (beta * multiple, intercept * multiple) if multiple > 0.0 else (beta, intercept)


@dataclass(frozen=True)
class Multistart:
    """At most n_starts starts, in the order above, each followed for at most max_iter steps."""

    n_starts: int = 32
    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: Search) -> Stop:
        """Follow all starts, on several threads if there are."""
        starts = self._starts(search)
        solvers: SimpleQueue[SurrogateSolver] = SimpleQueue()
        solvers.put(search.solver)
        for _ in range(min(search.n_threads, len(starts)) - 1):
            solvers.put(SurrogateSolver(search.problem))

        def follow(start: Point) -> list[Step]:
            solver = solvers.get()
            try:
                steps = []
                for step in majorise(search.problem, solver, start, self.max_iter, self.tol):
                    steps.append(step)
                    if search.is_over():
                        break
                return steps
            finally:
                solvers.put(solver)

        for done, steps in enumerate(map_ordered(follow, starts, search.n_threads, search.abandoned)):
            for step in steps:
                search.take(step.active, step.solution, step.point)
            search.report(done + 1, len(starts))
            search.check()
        return Stop.STARTS

    def _starts(self, search: Search) -> list[Point]:
        problem, solver = search.problem, search.solver
        starts = [] if search.best is None else [search.best]
        if len(starts) < self.n_starts:
            starts.append(search.evaluate(*solver.least_squares()))
        for active in split_sets(problem, self.n_splits):
            if len(starts) < self.n_starts and active.any():
                search.check()
                starts.append(search.minimise(active))
        while len(starts) < self.n_starts:
            starts.append(search.evaluate(*best_multiple(problem, *solver.random_direction(search.rng))))
        return starts
