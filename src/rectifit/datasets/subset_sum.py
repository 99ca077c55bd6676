"""Why ReLU regression is NP-hard: subset sum as a regression with intercept.

Given non-negative integers a_1, ..., a_p with sum S, the samples

    (a, S/2),  (2a, S),  (e_i, 1) and (-e_i, 1) for i = 1..p,  (0, -10p)

have an objective of p + 100 p^2 at (beta, 0) for every beta in {-1, +1}^p with a'beta = S/2, and a larger one
everywhere else. The last sample makes a positive intercept expensive. If the intercept is not positive, at
most one of (e_i, 1) and (-e_i, 1) is active and the pair costs at least 1; the first two samples then force
the intercept to 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_array

__all__ = ["make_subset_sum"]

# Whole numbers up to this limit, and their doubles, are exact in floating point.
MAX_TOTAL = 2**52


def make_subset_sum(a: npt.ArrayLike) -> tuple[Matrix, Vector]:
    """Subset sum as a ReLU regression, which must be fitted with an intercept.

    There are signs x in {-1, +1}^p with a'x = sum(a) / 2, that is, a subset of a that sums to a quarter of
    the total, if and only if the least objective is p + 100 p^2. To ask for two halves of equal sum, append
    the total: `make_subset_sum([*numbers, sum(numbers)])`.

    Parameters
    ----------
    a : array-like of p non-negative whole numbers

    Returns
    -------
    X : array of shape (2 p + 3, p)
    y : array of shape (2 p + 3,)

    Examples
    --------
    Of 3, 1, 1, 3 the subset {1, 1} sums to a quarter of the total:

    >>> X, y = make_subset_sum([3, 1, 1, 3])
    >>> from rectifit import Problem
    >>> Problem.from_data(X, y).objective([1.0, -1.0, -1.0, 1.0]), 4 + 100 * 4**2
    (1604.0, 1604)
    """
    values = check_array(a, "a", dimensions=1).astype(np.float64)
    if values.min() < 0.0 or (values != np.floor(values)).any():
        raise ValueError(f"a is {a!r}; its entries must be non-negative whole numbers")
    total = float(values.sum())
    if total > MAX_TOTAL:
        raise ValueError(f"a has the sum {total:g}; it must be at most 2^52 to be exact in floating point")
    p = values.size
    unit = np.eye(p)
    X = np.vstack([values, 2.0 * values, unit, -unit, np.zeros(p)])
    y = np.concatenate([[total / 2.0, total], np.ones(2 * p), [-10.0 * p]])
    return X, y
