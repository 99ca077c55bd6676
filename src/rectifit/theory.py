"""Guarantees that need no data: the approximation ratio, and a bound on the surrogate for many samples.

The asymptotic bound assumes y = max(0, u) + eps, u = x'beta* + b*, E x = 0, Delta^2 = Var(x'beta*),
eps ~ N(0, gamma^2) independent of x. For a threshold t >= 0 let S^t(beta) be the limit of F_I(beta) / n for
the active set I = {i : y_i > t}. At the truth the terms of S^t are

    eps^2                       for u > 0 and y > t,    for u > 2y,    and for y <= 0
    y^2 <= t^2                  for 0 < y <= t otherwise
    u^2 + 2 |u| eps + eps^2     for u <= 0 and y = eps > t,

and with D = Delta^2 + b*^2 = E u^2, 2 |u| <= 2 (1 + u^2), and the Gaussian integrals

    P(eps > t) = erfc(t / (sqrt(2) gamma)) / 2,
    E[eps; eps > t] = gamma / sqrt(2 pi) exp(-t^2 / (2 gamma^2)) =: g,
    E[eps^2; eps > t] = t g + gamma^2 P(eps > t)

these give min S^t <= t^2 + gamma^2 + (D + gamma^2) P(eps > t) + 2 (1 + D) g + t g, for every t.

The paper has erf, which vanishes at t = 0, in place of erfc in P(eps > t), and Delta^2 in place of D. It
concludes that t = 0 gives 1.5 gamma^2 + (2 + 2 Delta^2) gamma / sqrt(2 pi). The term D / 2 is missing: a
positive threshold is needed.

The paper's bound on the least S^t over all t nevertheless holds for b* = 0. With eps^2 counted once and
2 |u| <= 1 + u^2, min S^t <= t^2 + gamma^2 + D P(eps > t) + (1 + D) g, which is at most the printed bound at
t = 0.7 gamma if gamma >= 1/2, and at t^2 = (gamma^2 + gamma) / 2 otherwise.
"""

from __future__ import annotations

import math

import numpy as np

from rectifit.checks import check_count, check_number

__all__ = ["approximation_ratio", "asymptotic_bound", "best_threshold", "printed_asymptotic_bound"]

# Larger thresholds, in standard deviations of the noise, are never best: exp(-s^2 / 2) underflows there.
MAX_RATIO = 40.0
# Points at which the sign of the slope is examined.
N_RATIOS = 4001


def approximation_ratio(n: int, k: int) -> float:
    """n / k: the largest possible ratio of the approximation algorithm's objective to the optimum.

    Parameters
    ----------
    n : int
        Number of samples.
    k : int
        As for `solve(X, y, "approximation", k=k)`.

    Returns
    -------
    float
        n / k, and 1 for k > n.

    Examples
    --------
    >>> approximation_ratio(200, 2)
    100.0
    """
    return max(1.0, check_count(n, "n") / check_count(k, "k"))


def asymptotic_bound(
    gamma: float, delta: float, threshold: float | None = None, intercept: float = 0.0
) -> float:
    """The corrected upper bound on the minimum of the surrogate, per sample, in the limit of many samples.

    Parameters
    ----------
    gamma : float
        Standard deviation of the noise, positive.
    delta : float
        Standard deviation of x'beta, where E x = 0.
    threshold : float, optional
        Samples with larger outcomes are active. Default: the threshold with the least bound.
    intercept : float, default=0.0
        The true intercept.

    Returns
    -------
    float

    Examples
    --------
    >>> round(asymptotic_bound(0.01, 1.0), 5), round(asymptotic_bound(0.01, 1.0, threshold=0.0), 3)
    (0.00158, 0.516)
    """
    noise = check_number(gamma, "gamma", above=0.0)
    if threshold is None:
        threshold = best_threshold(gamma, delta, intercept)
    t, second_moment = check_number(threshold, "threshold"), _second_moment(delta, intercept)
    tail = math.erfc(t / (math.sqrt(2.0) * noise)) / 2.0
    g = noise * _density(t / noise)
    return t * t + noise * noise * (1.0 + tail) + second_moment * tail + (2.0 + 2.0 * second_moment + t) * g


def best_threshold(gamma: float, delta: float, intercept: float = 0.0) -> float:
    """The threshold with the least `asymptotic_bound`.

    Parameters
    ----------
    gamma, delta, intercept : float
        As for `asymptotic_bound`.

    Returns
    -------
    float

    Examples
    --------
    In units of the noise, the threshold grows as the noise shrinks:

    >>> [round(best_threshold(gamma, 1.0) / gamma, 2) for gamma in (0.1, 0.01, 0.001)]
    [2.38, 3.59, 4.62]
    """
    noise, second_moment = check_number(gamma, "gamma", above=0.0), _second_moment(delta, intercept)

    def slope(s: float) -> float:
        """The derivative in s = t / gamma, divided by gamma."""
        falling = second_moment / noise + 2.0 * (1.0 + second_moment) * s + noise * s * s
        return 2.0 * noise * s - _density(s) * falling

    # Imported here because most users never need it.
    from scipy.optimize import brentq

    grid = np.linspace(0.0, MAX_RATIO, N_RATIOS).tolist()
    slopes = [slope(s) for s in grid]
    valleys = [0.0] + [
        float(brentq(slope, grid[i], grid[i + 1]))
        for i in range(N_RATIOS - 1)
        if slopes[i] < 0.0 <= slopes[i + 1]
    ]
    return min((s * noise for s in valleys), key=lambda t: asymptotic_bound(noise, delta, t, intercept))


def printed_asymptotic_bound(gamma: float, delta: float) -> float:
    """The bound as the paper prints it for threshold 0: 1.5 gamma^2 + (2 + 2 delta^2) gamma / sqrt(2 pi).

    This bound does not hold there; `asymptotic_bound` is the corrected one.

    Parameters
    ----------
    gamma, delta : float
        As for `asymptotic_bound`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(printed_asymptotic_bound(0.01, 1.0), 4)
    0.0161
    """
    noise = check_number(gamma, "gamma", above=0.0)
    return 1.5 * noise * noise + (2.0 + 2.0 * _second_moment(delta, 0.0)) * noise * _density(0.0)


def _second_moment(delta: float, intercept: float) -> float:
    return check_number(delta, "delta") ** 2 + check_number(intercept, "intercept", above=-math.inf) ** 2


def _density(s: float) -> float:
    """The density of the standard normal distribution."""
    return math.exp(-s * s / 2.0) / math.sqrt(2.0 * math.pi)
