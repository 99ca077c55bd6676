"""A3, the iterative heuristic. From beta^0, with I^t = { i in P : u_i(beta^t) > 0 },

    beta^{t+1} = argmin F_{I^t},      until I repeats, at most T times.

F_{I^t} lies above L everywhere and touches it at beta^t, so L never increases: a majorise-minimise method.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rectifit._typing import Mask
from rectifit.methods.search import Search
from rectifit.problem import Point, Problem
from rectifit.solution import Stop
from rectifit.surrogate import SurrogateSolution, SurrogateSolver

__all__ = ["MAX_ITER", "Iterative", "Step", "majorise"]

MAX_ITER = 20


class Step(NamedTuple):
    """One round: the active set, the minimiser of its surrogate, and the true objective there."""

    active: Mask
    solution: SurrogateSolution
    point: Point


def majorise(
    problem: Problem, solver: SurrogateSolver, start: Point, max_iter: int, tol: float
) -> Generator[Step, None, Stop]:
    """The steps of the method from a start; returns why it ended."""
    objective, begin = start.objective, (start.beta, start.intercept)
    active = problem.active_at(start.u)
    for t in range(max_iter):
        solution = solver.solve(active, start=begin if t == 0 else None)
        point = problem.evaluate(solution.beta, solution.intercept)
        yield Step(active, solution, point)
        following = problem.active_at(point.u)
        if np.array_equal(following, active):
            return Stop.REPEATED
        if objective - point.objective <= tol * objective:
            return Stop.LITTLE
        active, objective = following, point.objective
    return Stop.MAX_ITER


@dataclass(frozen=True)
class Iterative:
    """A3 with T = max_iter, from the stage before or from least squares.

    It also stops when the objective falls by no more than the share `tol`; 0 leaves only the paper's rule.
    """

    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: Search) -> Stop:
        """Follow the steps from the best point so far."""
        start = search.best
        if start is None:
            start = search.evaluate(*search.solver.least_squares())
            search.offer(start)
        steps = majorise(search.problem, search.solver, start, self.max_iter, self.tol)
        for t in range(self.max_iter + 1):
            search.check()
            try:
                step = next(steps)
            except StopIteration as end:
                reason: Stop = end.value
                return reason
            search.take(step.active, step.solution, step.point)
            search.report(t + 1, self.max_iter)
        raise AssertionError("majorise makes at most max_iter steps")
