"""What is given: data, weights, ridge and intercept, validated once; the true objective and its gradient.

    L(beta, b) = sum_i w_i (max(0, u_i) - y_i)^2 + alpha |beta|^2,      u_i = x_i'beta + b

The intercept b is an unpenalised column of ones, or 0 with fit_intercept=False.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit import pieces

__all__ = ["Problem", "check_active", "check_start", "row_blocks"]

FloatArray = npt.NDArray[np.floating[Any]]
Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Rows are read in blocks of about this many numbers, which stay in the processor's cache.
BLOCK = 1 << 17


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices over all rows, each of about BLOCK numbers."""
    size = max(1, BLOCK // max(1, n_columns))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated data of one ReLU regression. Make it with `Problem.from_data`."""

    X: FloatArray
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
        X : array-like of shape (n_samples, n_features)
            float32 and float64 arrays are kept as they are, without a copy.
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
        checked_X = _real_array(X, "X", dimensions=2)
        checked_y = _real_array(y, "y", dimensions=1).astype(np.float64, copy=False)
        _check_length(checked_y, "y", checked_X.shape[0])
        weight: Vector | None = None
        if sample_weight is not None:
            weight = _real_array(sample_weight, "sample_weight", dimensions=1).astype(np.float64, copy=False)
            _check_length(weight, "sample_weight", checked_X.shape[0])
            if weight.min() < 0.0:
                raise ValueError(
                    f"sample_weight has a negative entry ({weight.min():g}); weights must be non-negative"
                )
            if weight.max() == 0.0:
                raise ValueError("sample_weight is zero everywhere; at least one weight must be positive")
        if not isinstance(fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept is {fit_intercept!r}; it must be True or False")
        if not isinstance(alpha, Real):
            raise TypeError(f"alpha is {alpha!r}; it must be a non-negative number")
        if not 0.0 <= float(alpha) < np.inf:
            raise ValueError(f"alpha is {alpha!r}; it must be finite and non-negative")
        return cls(checked_X, checked_y, weight, bool(fit_intercept), float(alpha))

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

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

    def preactivation(self, beta: npt.ArrayLike, intercept: float = 0.0) -> Vector:
        """u = X beta + intercept, in float64."""
        b = np.asarray(beta, dtype=np.float64)
        if self.X.dtype == np.float64:
            return np.asarray(self.X @ b + intercept)
        u = np.empty(self.n_samples)
        for block in row_blocks(*self.X.shape):
            u[block] = self.X[block].astype(np.float64) @ b
        return u + intercept

    def objective(self, beta: npt.ArrayLike, intercept: float = 0.0) -> float:
        """The true objective L, the plain weighted sum of squares plus the ridge term."""
        return self._total(np.maximum(self.preactivation(beta, intercept), 0.0) - self.y, beta)

    def surrogate_value(self, active: Mask, beta: npt.ArrayLike, intercept: float = 0.0) -> float:
        """The convex surrogate F_I, never below L, for the active set I given as a mask."""
        u = np.maximum(self.preactivation(beta, intercept), pieces.kinks(self.y, active))
        return self._total(u - self.y, beta)

    def gradient(self, beta: npt.ArrayLike, intercept: float = 0.0) -> tuple[Vector, float]:
        """A (sub)gradient of L in (beta, intercept); samples with u <= 0 contribute nothing."""
        u = self.preactivation(beta, intercept)
        slope = 2.0 * np.square(self.root_weight) * (np.maximum(u, 0.0) - self.y) * (u > 0.0)
        ridge = 2.0 * self.alpha * np.asarray(beta, dtype=np.float64)
        if self.X.dtype == np.float64:
            return np.asarray(slope @ self.X) + ridge, float(slope.sum())
        for block in row_blocks(*self.X.shape):
            ridge = ridge + slope[block] @ self.X[block].astype(np.float64)
        return ridge, float(slope.sum())

    def _total(self, residual: Vector, beta: npt.ArrayLike) -> float:
        # Scaling before squaring keeps extreme weights and outcomes representable.
        scaled = self.root_weight * residual
        b = np.sqrt(self.alpha) * np.asarray(beta, dtype=np.float64)
        return float(scaled @ scaled + b @ b)


def check_active(active: object, n_samples: int) -> Mask:
    """Active sets as boolean masks over samples, one per line."""
    masks = np.asarray(active)
    if masks.dtype != np.bool_:
        raise TypeError(f"active has dtype {masks.dtype}; it must be a boolean mask over samples")
    if masks.ndim not in (1, 2) or masks.shape[-1] != n_samples:
        raise ValueError(f"active has shape {masks.shape}; it must have one entry per sample, ({n_samples},)")
    return np.ascontiguousarray(np.atleast_2d(masks))


def check_start(start: Any, problem: Problem) -> tuple[Vector, float]:
    """A start as (beta, intercept): such a pair, a solution that has both, or coefficients alone."""
    if hasattr(start, "beta") and hasattr(start, "intercept"):
        start = (start.beta, start.intercept)
    if not (isinstance(start, tuple) and len(start) == 2):
        start = (start, 0.0)
    beta = _real_array(start[0], "start", dimensions=1).astype(np.float64)
    if beta.shape != (problem.n_features,):
        raise ValueError(
            f"start has {beta.size} coefficients; X has {problem.n_features} columns and needs as many"
        )
    intercept = float(start[1])
    if not np.isfinite(intercept):
        raise ValueError(f"start has intercept {intercept}; it must be finite")
    if intercept != 0.0 and not problem.fit_intercept:
        raise ValueError(f"start has intercept {intercept}; with fit_intercept=False it must be 0")
    return beta, intercept


def _real_array(values: object, name: str, dimensions: int) -> FloatArray:
    """A finite, non-empty, real array of the given dimension; float32 stays, all else becomes float64."""
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} is a sparse matrix ({type(values).__name__}); a dense array is needed")
    array = np.asarray(values)
    if array.ndim != dimensions:
        wanted = "a table of shape (n_samples, n_features)" if dimensions == 2 else "one-dimensional"
        raise ValueError(f"{name} has shape {array.shape}; it must be {wanted}")
    if array.size == 0:
        raise ValueError(f"{name} has shape {array.shape} and is empty; at least one entry is needed")
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} has entries that are not numbers; it must be real numbers") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}; it must be real numbers")
    if array.dtype not in (np.float64, np.float32):
        array = array.astype(np.float64)
    for block in row_blocks(array.shape[0], array.size // array.shape[0]):
        if not np.isfinite(array[block]).all():
            found = "NaN" if np.isnan(array[block]).any() else "an infinite value"
            raise ValueError(f"{name} contains {found}; all entries must be finite")
    return array


def _check_length(values: Vector, name: str, n_samples: int) -> None:
    if values.shape[0] != n_samples:
        raise ValueError(
            f"{name} has {values.shape[0]} entries but X has {n_samples} rows; they must be equally many"
        )
