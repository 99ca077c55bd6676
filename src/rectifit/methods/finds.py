"""What a piece of work on surrogates has found; made on any thread, merged into the search on one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rectifit._typing import Mask, Matrix, Vector
from rectifit.problem import Point, Problem
from rectifit.surrogate import SurrogateSolution

__all__ = ["Batch", "Finds"]


@dataclass(frozen=True)
class Batch:
    """Several points: coefficients and pre-activations in columns, intercepts, true objectives."""

    betas: Matrix
    intercepts: Vector
    u: Matrix
    objectives: Vector

    @classmethod
    def evaluate(cls, problem: Problem, points: Sequence[tuple[Vector, float]]) -> Batch:
        """The true objective of all points, in one product with X."""
        betas = np.array([beta for beta, _ in points]).T
        intercepts = np.array([intercept for _, intercept in points])
        u = problem.preactivation(betas, intercepts)
        return cls(betas, intercepts, u, problem.objective_at(u, betas))

    def points(self) -> list[Point]:
        """The same one by one."""
        return [
            Point(self.betas[:, e], intercept, self.u[:, e], objective)
            for e, (intercept, objective) in enumerate(
                zip(self.intercepts.tolist(), self.objectives.tolist(), strict=True)
            )
        ]


@dataclass
class Finds:
    """The least surrogate minimum with its active set, the best minimiser by the true objective, counts."""

    least: tuple[Mask, SurrogateSolution] | None = None
    best: tuple[SurrogateSolution, float] | None = None
    n_surrogates: int = 0
    lowest_bound: float = math.inf
    converged: bool = True

    def see(self, problem: Problem, actives: Mask, solutions: Sequence[SurrogateSolution]) -> Batch:
        """Take in the minimisers of some surrogates and return them as points."""
        batch = Batch.evaluate(problem, [(s.beta, s.intercept) for s in solutions])
        for active, solution, objective in zip(actives, solutions, batch.objectives.tolist(), strict=True):
            if self.least is None or solution.value < self.least[1].value:
                self.least = active, solution
            if self.best is None or objective < self.best[1]:
                self.best = solution, objective
            self.lowest_bound = min(self.lowest_bound, solution.dual_bound)
            self.converged = self.converged and solution.converged
        self.n_surrogates += len(solutions)
        return batch
