"""A5, stochastic gradient descent: A4 with the direction from a fresh batch of floor(0.1 n) samples.

The batch is drawn without replacement in every step. Backtracking and stopping look at the full objective.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Vector
from rectifit.data.memory import MemoryData
from rectifit.data.problem import Problem
from rectifit.methods.gd import GradientDescent, mean_gradient
from rectifit.methods.search import Search

__all__ = ["StochasticGradientDescent"]


@dataclass(frozen=True)
class StochasticGradientDescent(GradientDescent):
    """A5 with T = max_iter; batch None is a tenth of the samples."""

    batch: int | None = None

    def direction(self, search: Search, u: Vector, beta: Vector) -> tuple[Vector, float]:
        """The gradient over a fresh batch."""
        problem = search.problem
        n = problem.n_samples
        size = max(1, n // 10) if self.batch is None else min(self.batch, n)
        rows = search.rng.choice(n, size, replace=False)
        weight = np.square(problem.root_weight[rows])
        total = float(weight.sum())
        if total == 0.0:
            return np.zeros(problem.n_features), 0.0
        share = total / float(np.square(problem.root_weight).sum())
        data = MemoryData(problem.X[rows], problem.y[rows], weight)
        part = Problem(data, problem.fit_intercept, problem.alpha * share)
        return mean_gradient(part, u[rows], beta)
