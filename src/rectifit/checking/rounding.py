"""What floating-point sums may be off by: the only facts about rounding that the checker uses.

One operation on float64 numbers errs by at most u = 2^-53 of its result, or by 2^-1074 where that is tiny. So
a sum of n products, in any order and with or without fused operations, errs by at most gamma(n) times the sum
of their absolute values, gamma(n) = n u / (1 - n u) (Higham, "Accuracy and Stability of Numerical
Algorithms", section 3.1), and by less than TINY through underflow. Sums of numbers that are not negative,
which are what these bounds are made of, err by less than the share that `up` adds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rectifit._typing import Matrix, Vector

__all__ = ["MAX_TERMS", "SLACK", "TINY", "UNIT", "gamma", "inverse_factor", "lower_sum", "norm_up", "up"]

UNIT = 2.0**-53
# More than all underflows together: data are scaled to sizes near 1, and rejected where that leaves more.
TINY = 1e-200
# No less than gamma(n) for all n up to MAX_TERMS.
SLACK = 2.0**-32
MAX_TERMS = 2**20


def gamma(n: int) -> float:
    """A bound of the relative error of a sum of n products, for n up to MAX_TERMS."""
    return n * UNIT * (1.0 + SLACK)


def up(x: Any) -> Any:
    """No less than what x stands for, a result computed from numbers that are not negative."""
    return x * (1.0 + SLACK) + TINY


def inverse_factor(K: Matrix, error: Matrix) -> tuple[Matrix, float] | None:
    """W and s with K^-1 <= s W'W for every symmetric matrix whose entries differ from K by at most `error`.

    With W near the inverse of a Cholesky factor, G = W K W' is near 1. If its entries differ from those of 1
    by a matrix of norm eps < 1, then G >= (1 - eps) 1, so K is positive definite, and K^-1 = W'G^-1 W is at
    most W'W / (1 - eps). None where that does not succeed.
    """
    q = len(K)
    try:
        W: Matrix = np.linalg.inv(np.linalg.cholesky(K))
    except np.linalg.LinAlgError:
        return None
    size = np.abs(W)
    # Two products of matrices, each with gamma(q), and the error of K between them.
    doubt = size @ (error + 2.0 * gamma(q + 2) * np.abs(K)) @ size.T
    eps = up(float((np.abs(W @ K @ W.T - np.eye(q)) + up(doubt)).sum(axis=1).max()))
    return (W, up(1.0 / (1.0 - eps))) if eps < 0.5 else None


def norm_up(x: Vector) -> float:
    """No less than the length of x."""
    return float(up(np.sqrt(x @ x)))


def lower_sum(*terms: float) -> float:
    """No more than the sum of numbers, each of them exact or the product of a few exact ones."""
    return sum(terms) - float(up(8.0 * UNIT * len(terms) * sum(abs(term) for term in terms)))
