"""What is given: data, weights, ridge and intercept, validated once; the true objective and its gradient.

    L(beta, b) = sum_i w_i (max(0, u_i) - y_i)^2 + alpha |beta|^2,      u_i = x_i'beta + b

The intercept b is an unpenalised column of ones, or 0 with fit_intercept=False.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit import pieces
from rectifit._typing import Mask, Matrix, Vector
from rectifit.checks import check_design, check_number, check_outcome, check_weight, row_blocks

__all__ = ["ROUNDING", "Point", "Problem"]


class Point(NamedTuple):
    """Coefficients, their pre-activation, and the true objective there."""

    beta: Vector
    intercept: float
    u: Vector
    objective: float


# Sums of products that should be 0 come out as large as this share of the largest.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated data of one ReLU regression. Make it with `Problem.from_data`."""

    X: Any
    y: Vector
    sample_weight: Vector | None = None
    fit_intercept: bool = True
    alpha: float = 0.0

    @classmethod
    def from_data(
        cls,
        X: object,
        y: object,
        *,
        sample_weight: object = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
    ) -> Problem:
        """Check everything about the data and return the problem.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_samples, n_features)
            float32 and float64 arrays are kept as they are, without a copy; sparse ones as CSR, in float64.
        y : array-like of shape (n_samples,)
            Outcomes of any sign.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, not all zero.
        fit_intercept : bool, default=True
        alpha : float, default=0.0
            Ridge penalty, non-negative; the intercept is not penalised.

        Raises
        ------
        ValueError, TypeError
            One sentence with the argument, what was found and what is allowed.

        Examples
        --------
        >>> problem = Problem.from_data([[1.0], [2.0], [-1.0]], [1.0, 2.0, 0.0])
        >>> problem.objective([1.0])
        0.0
        """
        table = check_design(X)
        if not isinstance(fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept is {fit_intercept!r}; it must be True or False")
        return cls(
            table,
            check_outcome(y, table.shape[0]),
            check_weight(sample_weight, table.shape[0]),
            bool(fit_intercept),
            check_number(alpha, "alpha"),
        )

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.sample_weight is not None

    @cached_property
    def positive(self) -> Mask:
        """Samples with y > 0; only their terms of the objective are not convex."""
        return self.y > 0.0

    @cached_property
    def root_weight(self) -> Vector:
        """Square roots of the weights. Scaling a row and its y by it replaces the weight."""
        if self.sample_weight is None:
            return np.ones(self.n_samples)
        return np.sqrt(self.sample_weight)

    @cached_property
    def null_objective(self) -> float:
        """sum w y^2, the objective of the zero function."""
        weighted = self.root_weight * self.y
        return float(weighted @ weighted)

    def non_positive(self) -> tuple[int, float]:
        """Number of samples with y <= 0, and their sum of w y^2."""
        fixed = (self.root_weight * self.y)[~self.positive]
        return fixed.size, float(fixed @ fixed)

    def dense(self) -> Matrix:
        """X as an array, of the type that it has."""
        return self.X if isinstance(self.X, np.ndarray) else np.asarray(self.X.toarray())

    def shifted(self, floor: float) -> Problem:
        """The same problem with y - floor for y: max(floor, u) - y = max(0, u - floor) - (y - floor).

        So a fit of max(floor, X beta + b) is a fit of the shifted problem with the intercept b - floor.
        """
        return self if floor == 0.0 else replace(self, y=self.y - floor)

    def preactivation(self, beta: npt.ArrayLike, intercept: npt.ArrayLike = 0.0) -> Vector:
        """u = X beta + intercept, in float64. A matrix beta has one column per candidate, and so has u."""
        b = np.asarray(beta, dtype=np.float64)
        if self.X.dtype == np.float64:
            return np.asarray(self.X @ b + np.asarray(intercept))
        u = np.empty((self.n_samples, *b.shape[1:]))
        for block in row_blocks(*self.X.shape):
            u[block] = self.X[block].astype(np.float64) @ b
        return np.asarray(u + np.asarray(intercept))

    def evaluate(self, beta: Vector, intercept: float = 0.0) -> Point:
        """The true objective of a candidate, with all that goes with it."""
        u = self.preactivation(beta, intercept)
        return Point(beta, intercept, u, float(self.objective_at(u, beta)))

    def objective(self, beta: npt.ArrayLike, intercept: float = 0.0) -> float:
        """The true objective L, the plain weighted sum of squares plus the ridge term."""
        return float(self.objective_at(self.preactivation(beta, intercept), beta))

    def objective_at(self, u: Vector, beta: npt.ArrayLike) -> Any:
        """L where the pre-activation is known; one number per column where u and beta are matrices."""
        return self._total(np.maximum(u, 0.0), beta)

    def surrogate_value(self, active: Mask, beta: npt.ArrayLike, intercept: float = 0.0) -> float:
        """The convex surrogate F_I, never below L, for the active set I given as a mask."""
        u = np.maximum(self.preactivation(beta, intercept), pieces.kinks(self.y, active))
        return float(self._total(u, beta))

    def active_at(self, u: Vector, with_zeros: bool = False) -> Mask:
        """Positive samples with u > 0: the active set whose surrogate touches L there.

        Less than rounding can make of an exact 0 counts as 0, and samples at 0 may be in or out: L is touched
        either way. A matrix u has one column per candidate.
        """
        zero = ROUNDING * np.abs(u).max(axis=0)
        above: Mask = u >= -zero if with_zeros else u > zero
        return (above.T & self.positive).T

    def gradient(self, beta: npt.ArrayLike, intercept: float = 0.0) -> tuple[Vector, float]:
        """A generalised gradient of L in (beta, intercept); samples with u < 0 contribute nothing.

        At u = 0 it takes half of the slope to the right: with none at all, descent would never leave the
        origin.
        """
        return self.gradient_at(self.preactivation(beta, intercept), beta)

    def gradient_at(self, u: Vector, beta: npt.ArrayLike) -> tuple[Vector, float]:
        """The gradient where the pre-activation is known."""
        slope = np.square(self.root_weight) * (np.maximum(u, 0.0) - self.y) * (1.0 + np.sign(u))
        total = 2.0 * self.alpha * np.asarray(beta, dtype=np.float64)
        if self.X.dtype == np.float64:
            return np.asarray(slope @ self.X) + total, float(slope.sum())
        for block in row_blocks(*self.X.shape):
            total = total + slope[block] @ self.X[block].astype(np.float64)
        return total, float(slope.sum())

    def _total(self, fitted: Vector, beta: npt.ArrayLike) -> Any:
        # Scaling before squaring keeps extreme weights and outcomes representable.
        scaled = (self.root_weight * (fitted.T - self.y)).T
        b = np.sqrt(self.alpha) * np.asarray(beta, dtype=np.float64)
        if scaled.ndim == 1:
            return scaled @ scaled + b @ b
        return np.einsum("ij,ij->j", scaled, scaled) + np.einsum("ij,ij->j", b, b)
