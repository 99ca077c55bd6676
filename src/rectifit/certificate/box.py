"""Coefficients up to a given size on the standardised scale, for bounds that hold only there.

The standardised coefficients are those of columns with mean 0 (where there is an intercept) and variance 1,
and of y with mean square 1:

    beta_j sd_j / rms(y)   and   (intercept + mean'beta) / rms(y),      weighted alike.

If none is larger than the box, |u_i| <= box rms(y) (1 + sum_j |x_ij - mean_j| / sd_j), without the 1 and the
means where there is no intercept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.data.problem import Problem

__all__ = ["Box"]


@dataclass(frozen=True)
class Box:
    """All coefficients of a problem whose standardised size is at most `size`."""

    size: float
    has_intercept: bool
    mean: Vector
    spread: Vector
    unit: float

    @classmethod
    def around(cls, problem: Problem, size: float) -> Box:
        """The box of a problem."""
        X = problem.loaded().dense()
        w = np.square(problem.root_weight)
        w = w / w.sum()
        mean = w @ X if problem.fit_intercept else np.zeros(problem.n_features)
        spread = np.sqrt(w @ np.square(X - mean))
        return cls(size, problem.fit_intercept, mean, spread, float(np.sqrt(w @ np.square(problem.y))))

    def measure(self, beta: Vector, intercept: float) -> float:
        """The largest standardised coefficient."""
        largest = float(np.abs(beta * self.spread).max(initial=0.0))
        if self.has_intercept:
            largest = max(largest, abs(intercept + float(self.mean @ beta)))
        return largest / self.unit if self.unit > 0.0 else 0.0

    def reach(self, X: Matrix) -> Vector:
        """The largest |u| of rows of X within the box."""
        away = np.abs(X - self.mean)
        away = np.divide(away, self.spread, out=np.zeros_like(away), where=self.spread > 0.0)
        return np.asarray(self.size * self.unit * (away.sum(axis=1) + float(self.has_intercept)))
