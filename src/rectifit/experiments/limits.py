"""The quantity in the asymptotic bound: min over beta of S^t, the limit of F_I / n for I = {i : y_i > t}.

The model is y = max(0, delta x + b) + eps with one standard normal x and eps ~ N(0, gamma^2). Given x, the
expectation over y of a surrogate term is in closed form, from

    E[y^j; low < y < high] for j = 0, 1, 2 and y ~ N(mean, gamma^2),

and the expectation over x is a quadrature with panels that end at every kink. As an independent check, the
solver minimises the surrogate of a large sample.
"""

from __future__ import annotations

import numpy as np

from rectifit._typing import Vector
from rectifit.checks import check_count
from rectifit.surrogate import solve_surrogate

__all__ = ["least_surrogate", "simulated_surrogate", "surrogate_limit"]

# The quadrature covers x up to this number of standard deviations.
MAX_X = 10.0
# Quadrature nodes per panel.
N_NODES = 24
# Around its kinks the integrand changes on the scale of the noise; panels end at these multiples of gamma.
PANEL_ENDS = (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0)


def surrogate_limit(
    beta: float,
    gamma: float,
    delta: float,
    threshold: float,
    *,
    intercept: float = 0.0,
    true_intercept: float = 0.0,
) -> float:
    """S^t(beta, intercept) by quadrature, for y = max(0, delta x + true_intercept) + eps.

    Parameters
    ----------
    beta, intercept : float
        Of the fit max(0, beta x + intercept).
    gamma, delta, true_intercept : float
        Of the model.
    threshold : float

    Returns
    -------
    float

    Examples
    --------
    At the true parameters and with a high threshold, little more than the variance of the noise remains:

    >>> round(surrogate_limit(1.0, gamma=0.01, delta=1.0, threshold=0.04), 5)
    0.00012
    """
    # Panels have length 1 at most, as the density of x bends on that scale, and are shorter around the kinks.
    ends = set(np.arange(-MAX_X, MAX_X + 1.0).tolist())
    for slope, level in ((delta, -true_intercept), (beta, -intercept), (beta, 2.0 * threshold - intercept)):
        if slope != 0.0:
            ends.update(float(level / slope + s * gamma / abs(slope)) for s in PANEL_ENDS)
    edges = np.array(sorted(end for end in ends if abs(end) <= MAX_X))
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    half = np.diff(edges)[:, None] / 2.0
    x = (edges[:-1, None] + half + half * nodes).ravel()
    measure = (half * weights).ravel() * np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi)
    mean = np.maximum(delta * x + true_intercept, 0.0)
    return float(measure @ _expected_term(beta * x + intercept, mean, gamma, threshold))


def least_surrogate(gamma: float, delta: float, threshold: float) -> float:
    """min over beta of S^t, by quadrature and a one-dimensional search; without intercept.

    Parameters
    ----------
    gamma, delta, threshold : float

    Returns
    -------
    float

    Examples
    --------
    The paper's bound for threshold 0 is 0.016 here:

    >>> round(least_surrogate(0.01, 1.0, 0.0), 3), round(least_surrogate(0.01, 1.0, 0.03), 4)
    (0.169, 0.0008)
    """
    from scipy.optimize import minimize_scalar

    # S^t is convex in beta and at least |max(0, beta x) - y|^2 in the norm of L2, where max(0, beta x) has
    # the norm |beta| / sqrt(2) and |y| < gamma + delta. S^t(0) = |y|^2, so that |beta| < 2 sqrt(2) |y| at the
    # minimum.
    limit = 3.0 * (gamma + delta)
    found = minimize_scalar(
        lambda beta: surrogate_limit(beta, gamma, delta, threshold),
        bounds=(-limit, limit),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(found.fun)


def simulated_surrogate(
    gamma: float,
    delta: float,
    threshold: float,
    n_samples: int = 200_000,
    n_features: int = 1,
    random_state: int | None = 0,
) -> float:
    """min F_I / n of one large sample, by the solver of this package.

    Parameters
    ----------
    gamma, delta, threshold : float
    n_samples : int, default=200_000
    n_features : int, default=1
        The features are standard normal, and the true coefficients have norm delta.
    random_state : int, default=0

    Returns
    -------
    float
    """
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((check_count(n_samples, "n_samples"), check_count(n_features, "n_features")))
    beta = np.full(n_features, delta / np.sqrt(n_features))
    y = np.maximum(X @ beta, 0.0) + gamma * rng.standard_normal(n_samples)
    return solve_surrogate(X, y, y > threshold, fit_intercept=False).value / n_samples


def _expected_term(u: Vector, mean: Vector, gamma: float, threshold: float) -> Vector:
    """The expected term of the surrogate at u over y ~ N(mean, gamma^2), a quadratic in y on four intervals.

    y <= 0: (max(0, u) - y)^2;   0 < y < u/2, y <= t: (u - y)^2;   u/2 <= y <= t: y^2;   y > t: (u - y)^2.
    """
    zero, level = np.zeros_like(u), np.full_like(u, threshold)
    half = np.clip(u / 2.0, 0.0, threshold)
    return (
        _squared_error(np.maximum(u, 0.0), mean, gamma, np.full_like(u, -np.inf), zero)
        + _squared_error(u, mean, gamma, zero, half)
        + _squared_error(zero, mean, gamma, half, level)
        + _squared_error(u, mean, gamma, level, np.full_like(u, np.inf))
    )


def _squared_error(at: Vector, mean: Vector, gamma: float, low: Vector, high: Vector) -> Vector:
    """E[(at - y)^2; low < y < high] for y ~ N(mean, gamma^2), in closed form."""
    from scipy.special import ndtr

    a, b, error = (low - mean) / gamma, (high - mean) / gamma, at - mean

    def density(s: Vector, power: int) -> Vector:
        """s^power times the standard normal density; 0 at infinity."""
        finite = np.where(np.isfinite(s), s, 0.0)
        value = finite**power * np.exp(-finite * finite / 2.0) / np.sqrt(2.0 * np.pi)
        return np.asarray(np.where(np.isfinite(s), value, 0.0))

    mass = ndtr(b) - ndtr(a)
    first = density(a, 0) - density(b, 0)
    second = mass + density(a, 1) - density(b, 1)
    return np.asarray(error**2 * mass - 2.0 * gamma * error * first + gamma**2 * second)
