"""The data as a proof is about them: distinct rows in the coordinates g of the proof, with bounds of errors.

With beta = T g, powers of two that bring outcomes and weights to sizes near 1, and r = max(0, x'T g), samples
with the same row cost together, for every number m,

    sum_j w_j (r - y_j)^2 = W (r - m)^2 + 2 (r - m) D + sum_j w_j (m - y_j)^2,     D = sum_j w_j (m - y_j),

which is at least (W - e)(r - m)^2 - e + sum_j w_j (m - y_j)^2 if |D| <= e. So with rounded sums there are
floats w, y, one of each per distinct row, and a constant with

    L >= 2^exponent [constant + sum_i w_i (max(0, z_i'g) - y_i)^2 + g'B g]      for all g,

where z_i = x_i T without any rounding. What is stored is the rounded Z, and `doubt`: for all v whose entries
are at most 1 in size, Z_i'v as computed in any order differs from z_i'v by at most doubt_i. T must have an
inverse, so that no coefficients are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Matrix, Vector
from rectifit.checking.reading import Allowed, Claim, ProofError
from rectifit.checking.rounding import MAX_TERMS, TINY, UNIT, gamma, lower_sum, up

__all__ = ["MAX_SAMPLES", "Distinct", "Rows", "Walls", "distinct_rows", "is_zero_on", "objective_above"]

# Entries beyond this cannot be scaled to sizes near 1 without underflow.
LARGEST, SMALLEST = 1e100, 1e-100
MAX_SAMPLES = MAX_TERMS // 2
# Where rows are parallel to edges of cells but for rounding, proofs are about coefficients whose u is at most
# so many times as long as y.
FARTHEST = 1e4


class Walls(NamedTuple):
    """Rows without a loss, with their doubt, and between which ends their u is known to lie."""

    Z: Matrix
    doubt: Vector
    low: Vector
    high: Vector

    @classmethod
    def of(cls, Z: Matrix, error: Matrix, low: Vector, high: Vector) -> Walls:
        """Rows whose entries have errors."""
        size = up(np.abs(Z).sum(axis=1))
        return cls(Z, up(error.sum(axis=1) + gamma(2 * Z.shape[1] + 10) * size), low, high)

    def and_rows(self, Z: Matrix) -> Walls:
        """Also rows without errors, and without ends."""
        far = np.full(len(Z), np.inf)
        more = Walls.of(Z, np.zeros_like(Z), -far, far)
        return Walls(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))


@dataclass(frozen=True)
class Rows:
    """Rows as above: L >= constant + sum w (max(0, z'g) - y)^2 + g'Bg in units of 2^exponent.

    size: sum |Z_ik| of every row, rounded up. B_error bounds the error of the entries of B, K_error that of
    the entries of B + sum w zz' over any of the rows. cutoff: what the last two terms must be shown to reach.
    """

    Z: Matrix
    doubt: Vector
    size: Vector
    w: Vector
    y: Vector
    B: Matrix
    B_error: Matrix
    K_error: Matrix
    cutoff: float
    constant: float
    exponent: int

    def above(self, objective: float) -> float:
        """No less than an objective on the scale of the data, less the constant, in units of the rows."""
        return _above(objective, self.exponent, self.constant)

    @property
    def squares(self) -> Vector:
        """w y^2 of every row."""
        return self.w * self.y * self.y

    def followed_by(self, walls: Walls) -> Rows:
        """With walls behind them, whose weight is 1 in K_error."""
        m, none = len(self.y) + len(walls.Z), np.zeros(len(walls.Z))
        long, off = (up(np.sqrt(np.square(part).sum(axis=0))) for part in (walls.Z, walls.doubt))
        every = up(np.sqrt(self.w @ np.square(self.Z)) + long)
        K_error = self.K_error + up(np.add.outer(long, long) * off + off * off)
        K_error = up(K_error + gamma(m + 4) * (np.outer(every, every) + np.abs(self.B)))
        return replace(
            self,
            Z=np.vstack([self.Z, walls.Z]),
            doubt=np.append(self.doubt, walls.doubt),
            size=np.append(self.size, up(np.abs(walls.Z).sum(axis=1))),
            w=np.append(self.w, none),
            y=np.append(self.y, none),
            K_error=K_error,
        )


@dataclass(frozen=True)
class Distinct:
    """Distinct rows A of the data, with columns scaled by powers of two, and w, y and constant as above.

    Coefficients times 2^shift belong to A; penalty is that of each of them.
    """

    A: Matrix
    w: Vector
    y: Vector
    penalty: Vector
    constant: float
    shift: npt.NDArray[np.int64]
    exponent: int
    target: float

    @property
    def is_settled(self) -> bool:
        """Whether what samples with y <= 0 cost is all that has to be proved."""
        fixed = (self.w * self.y * self.y)[self.y <= 0.0]
        target = _above(self.target, self.exponent, self.constant)
        return self.target <= 0.0 or float(fixed.sum()) * (1.0 - gamma(len(fixed) + 4)) >= target

    @property
    def longest(self) -> float:
        """The length |u| of the longest coefficients that a proof may be limited to: far more than |y|."""
        return FARTHEST * math.sqrt(float((self.w * self.y * self.y).sum()))

    def walls(self, T: Matrix, N: Matrix, allowed: Allowed) -> Walls:
        """The constraints in coordinates g, each scaled by a power of two to the size of all rows together.

        One that depends on h, in rationals, is left out: what is proved without it holds with it.
        """
        C, ends = _scaled(allowed.rows, -self.shift), np.array([allowed.low, allowed.high])
        T, N = _scaled(T, self.shift[:, None]), _scaled(N, self.shift[:, None])
        kept = np.array([is_zero_on(row[None], N) for row in C], dtype=np.bool_)
        scale = -np.array([_exponent(row) for row in C[kept]], dtype=np.int64)
        C, ends = _scaled(C[kept], scale[:, None]), _scaled(ends[:, kept], scale)
        if not (_within(np.abs(C) @ np.abs(T)) and _within(np.where(np.isfinite(ends), ends, 0.0))):
            raise ProofError("the constraints have a range of sizes that cannot be handled")
        Z, error = C @ T, up(gamma(len(T) + 2) * (np.abs(C) @ np.abs(T)))
        size = _exponent(np.sqrt(self.w @ np.square(self.A @ T)))
        scale = size - np.array([_exponent(row) for row in Z], dtype=np.int64)
        Z, error, ends = np.ldexp(Z, scale[:, None]), np.ldexp(error, scale[:, None]), np.ldexp(ends, scale)
        return Walls.of(Z, up(error), *ends)

    def inside(self, members: Mask, T: Matrix, N: Matrix, reserve: float = 0.0) -> Rows:
        """Some rows in coordinates g, with all others at their cost w y^2, whatever the coefficients.

        Coefficients are T g + N h, for any h: [T N] has an inverse, and the rows are 0 on N, exactly. The
        ridge is left out where there is an N. The cutoff is higher by a reserve.
        """
        T, N = _scaled(T, self.shift[:, None]), np.ldexp(N, (self.shift - self.shift.min(initial=0))[:, None])
        A, w, y = self.A[members], self.w[members], self.y[members]
        if not (_within(np.abs(A) @ np.abs(T)) and _within(T) and _within(N)):
            raise ProofError("the coordinates of the proof have a range of sizes that cannot be handled")
        _check_inverse(np.column_stack([T, N]))
        _check_null(A, N)
        d, q = T.shape
        Z, error = A @ T, up(gamma(d + 2) * (np.abs(A) @ np.abs(T)))
        size = up(np.abs(Z).sum(axis=1))
        doubt = up(error.sum(axis=1) + gamma(2 * q + 10) * size)
        beta, penalty = T[: len(self.penalty)], self.penalty[:, None] * (0.0 if N.size else 1.0)
        B = beta.T @ (penalty * beta)
        B_error = up(gamma(d + 4) * (np.abs(beta).T @ (penalty * np.abs(beta))))
        # By Cauchy and Schwarz, for any set of rows.
        long, off = up(np.sqrt(w @ np.square(Z))), up(np.sqrt(w @ np.square(error)))
        K_error = np.outer(long, off) + np.outer(off, long) + np.outer(off, off) + B_error
        K_error = up(K_error + gamma(len(A) + 4) * (np.outer(long, long) + np.abs(B)))
        outside = (self.w * self.y * self.y)[~members]
        constant = lower_sum(self.constant, float(outside.sum()) * (1.0 - gamma(len(outside) + 4)))
        rows = Rows(Z, doubt, size, w, y, B, B_error, K_error, 0.0, constant, self.exponent)
        return replace(rows, cutoff=rows.above(self.target + reserve * (1.0 + 4.0 * UNIT)))


def _above(objective: float, exponent: int, constant: float) -> float:
    target = float(np.ldexp(objective, -exponent))
    return target - constant + 4.0 * UNIT * (abs(target) + abs(constant)) + TINY


def _check_inverse(T: Matrix) -> None:
    """|M T - 1| < 1 for some M shows that T has an inverse."""
    try:
        M = np.linalg.inv(T)
    except np.linalg.LinAlgError:
        raise ProofError("the coordinates of the proof do not reach all coefficients") from None
    error = gamma(len(T) + 1) * (np.abs(M) @ np.abs(T))
    gap = np.abs(M @ T - np.eye(len(T))) + up(error)
    if not up(float(gap.sum(axis=1).max(initial=0.0))) < 1.0:
        raise ProofError("the coordinates of the proof do not reach all coefficients")


def _check_null(A: Matrix, N: Matrix) -> None:
    if not is_zero_on(A, N):
        raise ProofError("rows of a face do not lie in its subspace")


def is_zero_on(A: Matrix, N: Matrix) -> bool:
    """Whether A N = 0, in rationals."""
    for column in N.T:
        used = np.flatnonzero(column)
        weights = [Fraction(x) for x in column[used].tolist()]
        for row in np.unique(A[:, used], axis=0).tolist():
            if sum(x * Fraction(value) for x, value in zip(weights, row, strict=True)) != 0:
                return False
    return True


def _exponent(values: Vector) -> int:
    """k with all |values| below 2^k, as large as they can be."""
    largest = float(np.abs(values).max(initial=0.0))
    return int(np.frexp(largest)[1]) if largest > 0.0 else 0


def _scaled(values: Vector, exponent: int | npt.NDArray[np.int64]) -> Vector:
    """2^exponent times the values, exactly."""
    scaled = np.ldexp(values, exponent)
    if not np.array_equal(np.ldexp(scaled, -exponent), values):
        raise ProofError("the data have a range of sizes that the checker cannot scale without rounding")
    return np.asarray(scaled)


def distinct_rows(
    fit_intercept: bool,
    alpha: float,
    X: Matrix,
    y: Vector,
    weight: Vector | None,
    floor: float = 0.0,
    target: float = 0.0,
) -> Distinct:
    """Rows, outcomes and ridge from the data, of which an objective is to be reached."""
    if len(y) > MAX_SAMPLES:
        raise ProofError(f"there are more than {MAX_SAMPLES:,} samples, for which rounding is not bounded")
    w = np.ones(len(y)) if weight is None else weight
    A = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    k, j = _exponent(np.append(y, floor)), _exponent(w)
    c = np.array([_exponent(column) for column in A.T], dtype=np.int64)
    A = _scaled(A, -c)
    y, floor, w = _scaled(y, -k), float(np.ldexp(floor, -k)), _scaled(w, -j)
    penalty = np.ldexp(np.full(X.shape[1], alpha), -2 * c[: X.shape[1]] - j)
    if not all(_within(values) for values in (A, w, penalty)):
        raise ProofError("the data have a range of sizes that the checker cannot handle")
    # What is lost in y - floor, exactly (Knuth).
    s = y - floor
    back = s - y
    left = np.abs((y - (s - back)) + (-floor - back))
    A, group, count = np.unique(A[w > 0.0] + 0.0, axis=0, return_inverse=True, return_counts=True)
    group, m, most = group.ravel(), len(count), int(count.max(initial=1))
    s, left, w = s[w > 0.0], left[w > 0.0], w[w > 0.0]

    def sums(values: Vector) -> Vector:
        return np.asarray(np.bincount(group, values, minlength=m), dtype=np.float64)

    total = sums(w)
    mean = sums(w * s) / total
    # One sample stays as it is.
    mean[group[count[group] == 1]] = s[count[group] == 1]
    away = np.abs(mean[group] - s)
    e = np.abs(sums(w * (mean[group] - s))) + gamma(most + 4) * sums(w * away) + sums(w * left)
    e = up(e)
    kept = np.maximum((total * (1.0 - gamma(most + 2)) - e) * (1.0 - 4.0 * UNIT), 0.0)
    constant = float(w @ np.square(away)) * (1.0 - gamma(len(s) + 8))
    constant -= up(float(2.0 * (w * away) @ left + e.sum()))
    # A row of zeros has u = 0 whatever the coefficients are.
    zero = ~A.any(axis=1)
    constant += float(kept[zero] @ np.square(mean[zero])) * (1.0 - gamma(m + 4))
    good = (kept > 0.0) & ~zero
    shift = c - k
    return Distinct(A[good], kept[good], mean[good], penalty, constant, shift, 2 * k + j, target)


def _within(values: Matrix | Vector) -> bool:
    """Whether all entries are 0 or of a size that products can have without overflow or underflow."""
    size = np.abs(values)
    return bool(((size == 0.0) | ((size > SMALLEST) & (size < LARGEST))).all())


def objective_above(claim: Claim, X: Matrix, y: Vector, weight: Vector | None) -> float:
    """No less than the objective of the coefficients in the file."""
    beta = np.array(claim.beta)
    w = np.ones(len(y)) if weight is None else weight
    k, j = _exponent(np.append(y, claim.floor)), _exponent(w)
    u = X @ beta + claim.intercept
    error = up(gamma(len(beta) + 2) * (np.abs(X) @ np.abs(beta) + abs(claim.intercept)))
    fit = np.maximum(u, claim.floor)
    residual = np.abs(fit - y)
    residual = np.ldexp(residual + error + 4.0 * UNIT * (np.abs(fit) + np.abs(y)), -k)
    ridge = np.ldexp(beta, -k)
    total = float(np.ldexp(w, -j) @ np.square(residual))
    total += float(np.ldexp(claim.alpha, -j)) * float(ridge @ ridge)
    return float(np.ldexp(total * (1.0 + gamma(len(y) + len(beta) + 20)) + TINY, 2 * k + j))
