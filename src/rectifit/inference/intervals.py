"""Where a new observation will be: intervals from the noise and from the precision of the estimates.

The mean m = max(f, u) lies between max(f - z s_f, u - z s_u) and max(f + z s_f, u + z s_u), with s_u the
standard error of u = x'beta + b and s_f that of the floor, 0 if it is known. The noise reaches z sigma to
either side. Both are combined as independent errors, for each side separately:

    upper end = m + sqrt((upper end of the mean - m)^2 + (z sigma)^2),     and likewise for the lower end.

For u well above the floor that is the interval of least squares, u +- z sqrt(s_u^2 + sigma^2). For u well
below, it is f +- z sigma_floor: the mean is the floor and nothing about the slope matters. sigma comes from
the side on which u is, since noise at the floor is often smaller.

Noise is added after the rectifier, so a lower end may be below the floor. But if no training outcome is below
the floor, no lower end is below it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Vector
from rectifit.checks import check_design, check_number
from rectifit.data.kinds import check_columns, encoded, predict
from rectifit.fit import Fit, fit_of
from rectifit.inference.covariance import Covariance, find_covariance
from rectifit.inference.tables import Summary, quantile

__all__ = ["PredictionInterval", "prediction_interval"]


class PredictionInterval(NamedTuple):
    """The fitted mean of new rows, and the ends of the intervals for their outcomes."""

    mean: Vector
    low: Vector
    high: Vector


def prediction_interval(
    solution: Fit | Any,
    X: object,
    level: float = 0.95,
    *,
    covariance: str | Covariance | Summary | None = None,
    **options: Any,
) -> PredictionInterval:
    """Intervals that cover a new outcome, of weight 1, with probability `level` if noise is normal.

    Parameters
    ----------
    solution : Solution or fitted estimator
    X : array-like or SciPy sparse matrix of shape (n_samples, n_features)
        New rows; for a model that was read from a file, also a data frame with the columns of the fit.
    level : float, default=0.95
    covariance, **options : as in `marginal_effects`
        For the coefficients. The noise of a new outcome always has the estimated sigma, which takes noise as
        equally large for all rows on one side of the floor.

    Examples
    --------
    >>> import numpy as np
    >>> from rectifit import solve
    >>> x = np.linspace(-1.0, 1.0, 200)[:, None]
    >>> y = np.maximum(3.0 * x[:, 0], 0.0) + 0.1 * np.random.default_rng(0).normal(size=200)
    >>> mean, low, high = prediction_interval(solve(x, y), [[-1.0], [1.0]])
    >>> mean.round(1).tolist(), low.round(1).tolist(), high.round(1).tolist()
    ([0.0, 3.0], [-0.2, 2.8], [0.2, 3.2])
    """
    X, solution = encoded(solution, X), fit_of(solution)
    check_columns(X, solution.feature_names)
    z = quantile(check_number(level, "level", above=0.0, below=1.0))
    found = find_covariance(solution, covariance, **options)
    mean = predict(X, solution.beta, solution.intercept, solution.floor)
    table = check_design(X)
    u = np.asarray(table @ solution.beta + solution.intercept)
    p = solution.beta.size
    q = p + solution.fit_intercept
    C = found.matrix[:q, :q]
    cross = np.asarray(table @ C[:p])
    variance = np.asarray((table * cross[:, :p]).sum(axis=1)).ravel()
    if solution.fit_intercept:
        variance = variance + 2.0 * cross[:, -1] + C[-1, -1]
    reach = z * np.sqrt(np.maximum(variance, 0.0))
    floor_reach = z * float(found.std_error[-1]) if solution.floor_is_estimated else 0.0
    # Where one side has no rows to learn its noise from, the other side's is taken.
    sigmas = np.array([found.sigma_floor, found.sigma])
    sigmas = np.where(np.isnan(sigmas), sigmas[::-1], sigmas)
    noise = z * np.where(u > solution.floor, sigmas[1], sigmas[0])
    upper = np.maximum(u + reach, solution.floor + floor_reach)
    lower = np.maximum(u - reach, solution.floor - floor_reach)
    low, high = mean - np.hypot(mean - lower, noise), mean + np.hypot(upper - mean, noise)
    if found.moments.least >= 0.0:
        low = np.maximum(low, solution.floor)
    return PredictionInterval(mean, low, high)
