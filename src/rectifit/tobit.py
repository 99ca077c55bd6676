"""Tobit regression by maximum likelihood: a normal outcome that is censored at one or two limits,

    y = min(max(y*, l), h),     y* = u + sigma e,     u = x'beta + intercept,     e ~ N(0, 1),

    log L = sum_{l < y < h} w [ log phi((y - u) / sigma) - log sigma ]
            + sum_{y = l} w log Phi((l - u) / sigma)  +  sum_{y = h} w log Phi((u - h) / sigma).

In theta = 1 / sigma and gamma = theta (beta, intercept) it is concave (Olsen 1978), so Newton's method finds
its maximum from any start. With v = theta y - x'gamma, y being the limit where it is censored, and the row
a = (-x, y) of derivatives of v, a row adds to the negative log-likelihood

    v^2 / 2 - log theta + log(2 pi) / 2     between the limits,
    -log Phi(v) at l,     -log Phi(-v) at h.

A ReLU fit models the mean of y as max(0, u). Tobit models the mean of y* as u, from which the mean of y
follows. Standard errors come from the inverse of the observed information, carried to (beta, intercept,
sigma) by the derivatives of these in (gamma, theta).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from rectifit._typing import Mask, Matrix, Vector
from rectifit.checks import check_array, check_number, check_outcome, check_weight

__all__ = ["KINDS", "Tobit", "check_limits", "fit_tobit", "negative_log_likelihood"]

LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)
# As a share of the root mean square of y. Smaller sigmas are 0 up to rounding: the uncensored outcomes lie on
# a plane, and the likelihood has no maximum.
MIN_SIGMA = 1e-8
MAX_ITER = 500
# Newton's decrement, in units of the log-likelihood, at which the maximum is reached.
DECREMENT_TOL = 1e-14
# Share of the decrease promised by the slope that a step must keep.
ARMIJO = 1e-4
MIN_STEP = 1e-10
# Eigenvalues of the information, as a share of the greatest one, below which a direction is not determined.
RANK_TOL = 1e-12
KINDS = ("observed", "latent", "uncensored", "probability")


class Limits(NamedTuple):
    """Where outcomes are censored; infinite where they are not."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Tobit:
    """A fitted Tobit model.

    Attributes
    ----------
    beta, intercept, sigma : of the latent outcome
    log_likelihood : weighted, at its maximum
    covariance : of beta, then the intercept if there is one, then sigma; NaN where the data determine nothing
    n_low, n_high, n_samples : rows censored at the lower and at the upper limit, and all rows with weight
    limits : where outcomes are censored
    has_maximum : whether the likelihood has one; otherwise sigma is 0 up to rounding
    n_iter : Newton's steps
    """

    beta: Vector
    intercept: float
    sigma: float
    log_likelihood: float
    covariance: Matrix
    n_low: int
    n_high: int
    n_samples: int
    limits: Limits
    has_maximum: bool
    n_iter: int

    def predict(self, X: Matrix, kind: str = "observed") -> Vector:
        """What is expected of new rows.

        "observed" is the mean of y, "latent" that of y*, "uncensored" that of y between the limits, and
        "probability" that of lying between them.
        """
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(map(repr, KINDS))}")
        u = np.asarray(X @ self.beta + self.intercept)
        if kind == "latent":
            return u
        low, high = ((limit - u) / self.sigma for limit in self.limits)
        if kind == "probability":
            return np.exp(_log_between(low, high))
        if kind == "uncensored":
            log_share = _log_between(low, high)
            return u + self.sigma * (np.exp(_log_phi(low) - log_share) - np.exp(_log_phi(high) - log_share))
        mean = u * np.exp(_log_between(low, high)) + self.sigma * (_phi(low) - _phi(high))
        for limit, share in zip(self.limits, (ndtr(low), ndtr(-high)), strict=True):
            mean = mean + (limit * share if np.isfinite(limit) else 0.0)
        return mean


def fit_tobit(
    X: object,
    y: object,
    *,
    sample_weight: object = None,
    lower: float | None = 0.0,
    upper: float | None = None,
    fit_intercept: bool = True,
) -> Tobit:
    """Fit a Tobit model.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Between the limits; outcomes equal to a limit are censored there.
    sample_weight : array-like of shape (n_samples,), optional
        Factors of the rows' log-likelihoods: a row of weight 2 counts as two.
    lower, upper : float, optional
        The limits; None for no limit on that side.
    fit_intercept : bool, default=True

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
    limits = check_limits(lower, upper)
    _check_outcome(outcome, limits)
    weight = check_weight(sample_weight, outcome.size)
    w = np.ones(outcome.size) if weight is None else weight
    kept = w > 0.0
    table, outcome, w = table[kept], outcome[kept], w[kept]
    at_low, at_high = outcome == limits.low, outcome == limits.high
    if (at_low | at_high).all():
        raise ValueError(
            f"y is {_list_limits(limits, ' or ')} everywhere; at least one outcome must be uncensored"
        )
    # Standardised, so that rounding and tolerances do not depend on units.
    if fit_intercept:
        centre = np.average(table, axis=0, weights=w)
        spread = np.sqrt(np.average(np.square(table - centre), axis=0, weights=w))
    else:
        centre, spread = np.zeros(table.shape[1]), np.sqrt(np.average(np.square(table), axis=0, weights=w))
    spread = np.where(spread > 0.0, spread, 1.0)
    size = float(np.sqrt(np.average(np.square(outcome), weights=w))) or 1.0
    A = np.column_stack([(table - centre) / spread, *[np.ones(outcome.size)] * fit_intercept])
    found = _maximise(A, outcome / size, at_low, at_high, w)
    gamma, theta, p = found.x[:-1], float(found.x[-1]), table.shape[1]
    sigma = size / theta
    beta = sigma * gamma[:p] / spread
    # Derivatives of (beta, intercept, sigma) in (gamma, theta), of the standardised problem, then units.
    slopes = np.zeros((found.x.size, found.x.size))
    slopes[:-1, :-1], slopes[:-1, -1] = np.eye(gamma.size) / theta, -gamma / theta**2
    slopes[-1, -1] = -1.0 / theta**2
    units = size * np.eye(found.x.size)
    units[:p, :p] /= spread
    if fit_intercept:
        units[p, :p] = -size * centre / spread
    slopes = units @ slopes
    return Tobit(
        beta=beta,
        intercept=float(sigma * gamma[p] - beta @ centre) if fit_intercept else 0.0,
        sigma=sigma,
        log_likelihood=-found.value - float(w[~(at_low | at_high)].sum()) * float(np.log(size)),
        covariance=_invert(found.hessian, slopes) if found.has_maximum else np.full_like(slopes, np.nan),
        n_low=int(at_low.sum()),
        n_high=int(at_high.sum()),
        n_samples=outcome.size,
        limits=limits,
        has_maximum=found.has_maximum,
        n_iter=found.n_iter,
    )


def check_limits(lower: float | None, upper: float | None) -> Limits:
    """The limits as numbers, infinite where there is none."""
    given = {"lower": lower, "upper": upper}
    low, high = (
        np.copysign(np.inf, sign) if limit is None else check_number(limit, name, above=-np.inf)
        for sign, (name, limit) in zip((-1.0, 1.0), given.items(), strict=True)
    )
    if not low < high:
        raise ValueError(f"lower is {lower!r} and upper is {upper!r}; lower must be below upper")
    return Limits(float(low), float(high))


def _check_outcome(y: Vector, limits: Limits) -> None:
    if y.min() < limits.low or y.max() > limits.high:
        side, number = ("below lower", y.min()) if y.min() < limits.low else ("above upper", y.max())
        limit = limits.low if y.min() < limits.low else limits.high
        raise ValueError(
            f"y has the entry {number:g}, {side} = {limit:g}; censored outcomes must be equal to their limit"
        )


def _list_limits(limits: Limits, joint: str) -> str:
    return joint.join(f"{limit:g}" for limit in limits if np.isfinite(limit))


class _Maximum(NamedTuple):
    """(gamma, theta) with the negative log-likelihood and its second derivatives."""

    x: Vector
    value: float
    hessian: Matrix
    has_maximum: bool
    n_iter: int


def _maximise(A: Matrix, y: Vector, at_low: Mask, at_high: Mask, w: Vector) -> _Maximum:
    """Newton's method with backtracking, from least squares."""
    root = np.sqrt(w)
    coefficients = np.linalg.lstsq(A * root[:, None], y * root, rcond=None)[0]
    residual = float(np.sqrt(np.average(np.square(y - A @ coefficients), weights=w)))
    theta = 1.0 / max(residual, MIN_SIGMA)
    x = np.append(theta * coefficients, theta)
    value, gradient, hessian = negative_log_likelihood(x, A, y, at_low, at_high, w)
    for n_iter in range(MAX_ITER):  # noqa: B007 - how many there were is part of the result
        # The shortest solution: columns may depend on each other.
        step = -np.linalg.lstsq(hessian, gradient, rcond=RANK_TOL)[0]
        decrement = float(-gradient @ step)
        if decrement <= DECREMENT_TOL * (1.0 + abs(value)) or x[-1] >= 1.0 / MIN_SIGMA:
            break
        length = 1.0 if step[-1] >= 0.0 else min(1.0, -0.9 * x[-1] / step[-1])
        while length > MIN_STEP:
            trial = negative_log_likelihood(x + length * step, A, y, at_low, at_high, w)
            if trial[0] <= value - ARMIJO * length * decrement:
                break
            length *= 0.5
        else:
            # Only rounding is left.
            break
        x = x + length * step
        value, gradient, hessian = trial
    return _Maximum(x, value, hessian, bool(x[-1] < 1.0 / MIN_SIGMA), n_iter)


def negative_log_likelihood(
    x: Vector, A: Matrix, y: Vector, at_low: Mask, at_high: Mask, w: Vector
) -> tuple[float, Vector, Matrix]:
    """-log L with its gradient and second derivatives in x = (gamma, theta), theta > 0."""
    theta = x[-1]
    v = theta * y - A @ x[:-1]
    # The sign of v in Phi: censored rows below and above are mirror images.
    sign = np.where(at_high, -1.0, 1.0)
    t, censored = sign * v, at_low | at_high
    log_share = log_ndtr(t)
    # phi / Phi, which grows like -t.
    hazard = np.exp(_log_phi(t) - log_share)
    n_inside = float(w[~censored].sum())
    terms = np.where(censored, -log_share, 0.5 * v * v + LOG_ROOT_2PI)
    slope = w * np.where(censored, -sign * hazard, v)
    curvature = w * np.where(censored, hazard * (hazard + t), 1.0)
    rows = np.column_stack([-A, y])
    gradient = slope @ rows
    gradient[-1] -= n_inside / theta
    hessian = (curvature[:, None] * rows).T @ rows
    hessian[-1, -1] += n_inside / theta**2
    return float(w @ terms - n_inside * np.log(theta)), gradient, hessian


def _invert(information: Matrix, slopes: Matrix) -> Matrix:
    """slopes information^-1 slopes', NaN for estimates that the data do not determine."""
    scale = np.sqrt(np.maximum(information.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    known = values > RANK_TOL * values[-1]
    root = slopes @ (vectors[:, known] / np.sqrt(values[known]) / scale[:, None])
    covariance: Matrix = root @ root.T
    # A direction of no information that an estimate has a share in leaves it undetermined.
    lost = np.abs(slopes @ (vectors[:, ~known] / scale[:, None])).max(axis=1, initial=0.0)
    unknown = lost > np.sqrt(RANK_TOL) * np.abs(slopes / scale).max(axis=1)
    covariance[unknown], covariance[:, unknown] = np.nan, np.nan
    return covariance


def _log_phi(z: Vector) -> Vector:
    return np.asarray(-0.5 * np.square(z) - LOG_ROOT_2PI)


def _phi(z: Vector) -> Vector:
    return np.asarray(np.exp(_log_phi(z)))


def _log_between(low: Vector, high: Vector) -> Vector:
    """log(Phi(high) - Phi(low)), without cancellation in the upper tail."""
    flipped = low > 0.0
    low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
    more = log_ndtr(high)
    return np.asarray(more + np.log1p(-np.exp(log_ndtr(low) - more)))
