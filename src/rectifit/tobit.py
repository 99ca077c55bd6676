"""Tobit regression by maximum likelihood, left-censored at 0:

    y = max(0, y*),     y* = u + sigma e,     u = x'beta + intercept,     e ~ N(0, 1),

    log L = sum_{y > 0} [ log phi((y - u) / sigma) - log sigma ]  +  sum_{y = 0} log Phi(-u / sigma).

The parameters are (beta, intercept, log sigma). The likelihood has one stationary point (Olsen 1978), so the
start does not matter. A ReLU fit models the mean of y as max(0, u). Tobit models the mean of y* as u, from
which the mean of y follows as Phi(u / sigma) u + sigma phi(u / sigma).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_array, check_outcome

__all__ = ["Tobit", "fit_tobit", "negative_log_likelihood"]

LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)
# As a share of the root mean square of y. Smaller sigmas are 0 up to rounding: the positive outcomes lie on a
# plane, and the likelihood has no maximum.
MIN_SIGMA = 1e-8
MAX_ITER = 5000


@dataclass(frozen=True, eq=False)
class Tobit:
    """A fitted Tobit model."""

    beta: Vector
    intercept: float
    sigma: float
    log_likelihood: float

    def predict(self, X: Matrix) -> Vector:
        """The mean of y, Phi(u / sigma) u + sigma phi(u / sigma)."""
        u = X @ self.beta + self.intercept
        z = u / self.sigma
        return np.asarray(ndtr(z) * u + self.sigma * np.exp(-0.5 * z * z - LOG_ROOT_2PI))


def fit_tobit(X: object, y: object) -> Tobit:
    """Fit a Tobit model with intercept.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Non-negative, and not all 0; outcomes of 0 are censored.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1))
    >>> model = fit_tobit(X, np.maximum(2.0 * X[:, 0] - 1.0 + rng.normal(size=5000), 0.0))
    >>> round(float(model.beta[0]), 1), round(model.intercept, 1), round(model.sigma, 1)
    (2.0, -1.0, 1.0)
    """
    table = np.asarray(check_array(X, "X", dimensions=2), dtype=np.float64)
    outcome = check_outcome(y, table.shape[0])
    if outcome.min() < 0.0:
        raise ValueError(f"y has a negative entry ({outcome.min():g}); censored outcomes must be at least 0")
    if outcome.max() == 0.0:
        raise ValueError("y is 0 everywhere; at least one outcome must be positive")
    centre, spread = table.mean(axis=0), table.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    size = float(np.sqrt(np.mean(np.square(outcome))))
    A = np.column_stack([(table - centre) / spread, np.ones(outcome.size)])
    scaled = outcome / size
    coefficients = np.linalg.lstsq(A, scaled, rcond=None)[0]
    residual = float(np.sqrt(np.mean(np.square(scaled - A @ coefficients))))
    found = minimize(
        negative_log_likelihood,
        np.append(coefficients, np.log(max(residual, MIN_SIGMA))),
        args=(A, scaled),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * A.shape[1] + [(np.log(MIN_SIGMA), None)],
        options={"maxiter": MAX_ITER, "maxfun": 2 * MAX_ITER, "ftol": 1e-15, "gtol": 1e-8 * outcome.size},
    )
    beta = size * found.x[:-2] / spread
    n_positive = int((outcome > 0.0).sum())
    return Tobit(
        beta=beta,
        intercept=float(size * found.x[-2] - beta @ centre),
        sigma=float(size * np.exp(found.x[-1])),
        log_likelihood=-float(found.fun) - n_positive * float(np.log(size)),
    )


def negative_log_likelihood(parameters: Vector, A: Matrix, y: Vector) -> tuple[float, Vector]:
    """-log L and its gradient in (coefficients of A, log sigma)."""
    sigma = np.exp(parameters[-1])
    positive = y > 0.0
    z = (y - A @ parameters[:-1]) / sigma
    # At y = 0, z is the limit -u / sigma of the censored part; its hazard phi / Phi grows like -z.
    log_share = log_ndtr(z[~positive])
    hazard = np.exp(-0.5 * np.square(z[~positive]) - LOG_ROOT_2PI - log_share)
    z1 = z[positive]
    value = 0.5 * z1 @ z1 + z1.size * (parameters[-1] + LOG_ROOT_2PI) - log_share.sum()
    by_u = np.empty_like(y)
    by_u[positive], by_u[~positive] = -z1 / sigma, hazard / sigma
    by_log_sigma = z1.size - z1 @ z1 + hazard @ z[~positive]
    return float(value), np.append(by_u @ A, by_log_sigma)
