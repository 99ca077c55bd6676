"""A ReLU regression: data, ridge and intercept; the true objective, the surrogate's value and gradients.

    L(beta, b) = sum_i w_i (max(0, u_i) - y_i)^2 + alpha |beta|^2,      u_i = x_i'beta + b

The intercept b is an unpenalised column of ones, or 0 with fit_intercept=False. The coefficients beta may be
constrained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Matrix, Vector
from rectifit.active import ActiveSet, Members
from rectifit.checks import check_number
from rectifit.constraints import Constraints
from rectifit.data.base import Data
from rectifit.data.memory import MemoryData
from rectifit.data.sampling import SampleTask
from rectifit.data.sums import rounding_of_terms
from rectifit.tolerances import DEAD_TOL, ZERO_U_TOL

__all__ = ["Point", "Problem", "RowPoint"]


@dataclass(eq=False, slots=True)
class Point:
    """Coefficients and the true objective there."""

    beta: Vector
    intercept: float
    objective: float


@dataclass(eq=False, slots=True)
class RowPoint(Point):
    """A point with its pre-activation, for data in memory."""

    u: Vector


@dataclass(frozen=True, eq=False)
class Problem:
    """One ReLU regression. For data in memory, make it with `Problem.from_data`."""

    data: Data
    fit_intercept: bool = True
    alpha: float = 0.0
    constraints: Constraints | None = None
    _shifted: dict[float, Problem] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept is {self.fit_intercept!r}; it must be True or False")
        object.__setattr__(self, "fit_intercept", bool(self.fit_intercept))
        object.__setattr__(self, "alpha", check_number(self.alpha, "alpha"))

    @classmethod
    def from_data(
        cls,
        X: object,
        y: object,
        *,
        sample_weight: object = None,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        constraints: Constraints | None = None,
    ) -> Problem:
        """Check data in memory and return the problem.

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
        constraints : Constraints, optional
            What is known about coefficients, as `rectifit.constraints.read_constraints` returns it.

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
        return cls(MemoryData.from_arrays(X, y, sample_weight), fit_intercept, alpha, constraints)

    @property
    def n_samples(self) -> int:
        return self.data.n_samples

    @property
    def n_features(self) -> int:
        return self.data.n_features

    @property
    def n_columns(self) -> int:
        """Coefficients, the intercept included."""
        return self.n_features + int(self.fit_intercept)

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.data.is_weighted

    @property
    def null_objective(self) -> float:
        """sum w y^2, the objective of the zero function."""
        return self.data.outcomes.null_objective

    @property
    def penalty(self) -> Vector:
        """alpha for every coefficient, 0 for the intercept."""
        penalty = np.zeros(self.n_columns)
        penalty[: self.n_features] = self.alpha
        return penalty

    def shifted(self, floor: float) -> Problem:
        """The same problem with y - floor for y: max(floor, u) - y = max(0, u - floor) - (y - floor).

        So a fit of max(floor, X beta + b) is a fit of the shifted problem with the intercept b - floor.
        """
        if floor == 0.0:
            return self
        if floor not in self._shifted:
            # Only the last one is kept, with what it has learnt about its outcomes.
            self._shifted.clear()
            self._shifted[floor] = replace(self, data=self.data.shifted(floor), _shifted={})
        return self._shifted[floor]

    def sampled(self, n_rows: int) -> Problem:
        """About so many random rows in memory, with their share of the ridge; data in memory as it is."""
        if self.data.in_memory:
            return self
        X, y, w, _ = self.data.reduce(SampleTask(n_rows / self.n_samples)).joined()
        return self.part(MemoryData(X, y, w))

    def part(self, data: MemoryData) -> Problem:
        """A problem of some of the rows, with their share of the ridge."""
        return replace(self, data=data, alpha=self.alpha * data.n_samples / self.n_samples, _shifted={})

    @property
    def allows_zero(self) -> bool:
        """Whether all coefficients may be 0."""
        return self.constraints is None or self.constraints.holds_zero

    def is_dead(self, objective: float, beta: Vector) -> bool:
        """Whether a fit is no better than the zero function, but for rounding.

        Where coefficients may not be zero, a fit may be worse than that and yet not be zero everywhere.
        """
        if self.allows_zero:
            return bool(objective >= (1.0 - DEAD_TOL) * self.null_objective)
        zero = self.null_objective + self.alpha * float(beta @ beta)
        return bool(abs(objective - zero) <= DEAD_TOL * zero)

    def violation(self, beta: Vector) -> str | None:
        """What constraints coefficients violate beyond rounding, in words; None if none."""
        if self.constraints is None:
            return None
        unit: Vector | float = 0.0
        if self.data.in_memory:
            largest = abs(self.X).max(axis=0)
            largest = np.ravel(largest.toarray() if self.data.is_sparse else largest)
            unit = self.data.outcomes.top / np.where(largest > 0.0, largest, 1.0)
        return self.constraints.violation(beta, unit)

    def allowed(self, beta: Vector) -> Vector:
        """The given coefficients if they are allowed, else allowed ones near them."""
        return beta if self.constraints is None else self.constraints.nearest(beta)

    def settled(self, beta: Vector) -> Vector:
        """Coefficients that satisfy the constraints, from which rounding has parted them."""
        if self.constraints is None:
            return beta
        clipped = self.constraints.clipped(beta)
        if not self.constraints.is_linear:
            return clipped
        # A solution as far away as 1e10 has lost the digits of its linear constraints.
        return clipped if self.violation(clipped) is None else self.constraints.nearest(clipped)

    def objective(self, beta: npt.ArrayLike, intercept: float = 0.0) -> float:
        """The true objective L, the plain weighted sum of squares plus the ridge term."""
        b = np.asarray(beta, dtype=np.float64)
        return float(self.data.loss(b, intercept) + self.ridge(b))

    def surrogate_value(self, active: ActiveSet | Mask, beta: npt.ArrayLike, intercept: float = 0.0) -> float:
        """The convex surrogate F_I, never below L, for an active set or a mask over samples."""
        b = np.asarray(beta, dtype=np.float64)
        members = active if isinstance(active, ActiveSet) else Members(active)
        return float(self.data.surrogate_loss(members, b, intercept) + self.ridge(b))

    def rounding(self, size_of_terms: float, value: float) -> float:
        """How far apart two evaluations of L or F_I may be, of which one has found this value.

        Each is a sum of squares of numbers with errors of at most (p + 4) eps times the size of the terms of
        u, as each u is a sum of p + 1 products: by the triangle inequality the norm of these numbers errs by
        that times the norm of the sizes.
        """
        error = rounding_of_terms(self.n_features, size_of_terms)
        return float((2.0 * math.sqrt(max(value, 0.0)) + error) * error)

    def rounding_at(self, beta: Vector, intercept: float, value: float) -> float:
        """The same at a point, from the terms of all u that count.

        With u below -(|v| + sqrt(value)) a row is not on its quadratic, which alone would cost more than the
        value: it costs the same whatever the rounding of u.
        """
        reach = 2.0 * (self.data.outcomes.scale + math.sqrt(max(value, 0.0)))
        return self.rounding(self.data.size_of_terms(beta, intercept, reach), value)

    def ridge(self, beta: Vector) -> Any:
        """alpha |beta|^2; one number per column of a matrix."""
        if self.alpha == 0.0:
            return 0.0
        b = np.sqrt(self.alpha) * beta
        return b @ b if b.ndim == 1 else np.einsum("ij,ij->j", b, b)

    def loaded(self, purpose: str = "this") -> MemoryData:
        """The data in memory, or the sentence that refuses it, which begins with the purpose."""
        return self.data.load(purpose)

    # What follows needs all rows in memory.

    @property
    def X(self) -> Any:  # noqa: N802
        return self.loaded("X is asked for").X

    @property
    def y(self) -> Vector:
        outcomes: Vector = self.loaded("y is asked for").y
        return outcomes

    @property
    def sample_weight(self) -> Vector | None:
        return self.loaded("sample_weight is asked for").sample_weight

    @property
    def positive(self) -> Mask:
        """Samples with y > 0; only their terms of the objective are not convex."""
        return self.loaded().positive

    @property
    def root_weight(self) -> Vector:
        """Square roots of the weights."""
        return self.loaded().root_weight

    def preactivation(self, beta: npt.ArrayLike, intercept: npt.ArrayLike = 0.0) -> Vector:
        """u = X beta + intercept, in float64. A matrix beta has one column per candidate, and so has u."""
        return self.loaded().preactivation(beta, intercept)

    def evaluate(self, beta: Vector, intercept: float = 0.0) -> RowPoint:
        """The true objective of a candidate, with its pre-activation."""
        u = self.preactivation(beta, intercept)
        return RowPoint(beta, intercept, float(self.objective_at(u, beta)), u)

    def evaluate_all(self, points: Sequence[tuple[Vector, float]]) -> list[RowPoint]:
        """The true objectives of several candidates, in one product with X."""
        betas = np.array([beta for beta, _ in points]).T
        intercepts = np.array([intercept for _, intercept in points])
        u = self.preactivation(betas, intercepts)
        found = zip(points, self.objective_at(u, betas).tolist(), u.T, strict=True)
        return [
            RowPoint(beta, intercept, objective, column) for (beta, intercept), objective, column in found
        ]

    def objective_at(self, u: Vector, beta: npt.ArrayLike) -> Any:
        """L where the pre-activation is known; one number per column where u and beta are matrices."""
        return self.loaded().loss_at(u) + self.ridge(np.asarray(beta, dtype=np.float64))

    def active_at(self, u: Matrix, with_zeros: bool = False) -> Mask:
        """Positive samples with u > 0: the active set whose surrogate touches L there.

        A u below the rounding error of an exact 0 counts as 0, and samples at 0 may be in or out: L is
        touched either way. A matrix u has one column per candidate.
        """
        zero = ZERO_U_TOL * np.abs(u).max(axis=0)
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
        ridge = 2.0 * self.alpha * np.asarray(beta, dtype=np.float64)
        return self.loaded().transposed_product(slope) + ridge, float(slope.sum())
