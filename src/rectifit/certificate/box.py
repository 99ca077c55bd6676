"""Coefficients up to a given size on the standardised scale, for bounds that hold only there.

The standardised coefficients are those of columns with mean 0 (where there is an intercept) and variance 1,
and of y with mean square 1:

    beta_j sd_j / rms(y)   and   (intercept + mean'beta) / rms(y),      weighted alike.

If none is larger than the box, |u_i| <= box rms(y) (1 + sum_j |x_ij - mean_j| / sd_j), without the 1 and the
means where there is no intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.data.problem import Problem
from rectifit.tolerances import BOX_RTOL

__all__ = ["Box", "stated_constraints"]


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

    @property
    def sides(self) -> tuple[Matrix, Vector]:
        """Rows and ends with |rows b| <= ends in the box, where b has the intercept, if any, at its end.

        The ends are farther away by a share that no rounding reaches.
        """
        far = self.size * self.unit * (1.0 + BOX_RTOL)
        moves = np.flatnonzero(self.spread > 0.0)
        rows, ends = np.eye(self.spread.size)[moves], far / self.spread[moves]
        if not self.has_intercept:
            return rows, ends
        rows = np.vstack([np.column_stack([rows, np.zeros(len(rows))]), np.append(self.mean, 1.0)])
        return rows, np.append(ends, far)


def stated_constraints(problem: Problem, box: Box | None) -> list[list[Any]]:
    """Constraints of a problem, and a box, as they are in the head of a proof file.

    Of each: pairs of a coefficient and its factor, and two ends, None where there is none.
    """
    found: list[list[Any]] = []

    def state(row: Vector, low: float, high: float) -> None:
        pairs = [[j, float(row[j])] for j in np.flatnonzero(row).tolist()]
        found.append([pairs, *(float(end) if np.isfinite(end) else None for end in (low, high))])

    if problem.constraints is not None:
        C, d, n_ties, _, _ = problem.constraints.half_spaces
        for e, (row, end) in enumerate(zip(C, d, strict=True)):
            state(row, end if e >= len(C) - n_ties else -np.inf, end)
    if box is not None:
        for row, end in zip(*box.sides, strict=True):
            state(row, -end, end)
    return found
