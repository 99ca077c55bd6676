import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from rectifit import solve
from rectifit.datasets import make_relu
from rectifit.experiments.limits import least_surrogate, simulated_surrogate, surrogate_limit
from rectifit.theory import (
    approximation_ratio,
    asymptotic_bound,
    best_threshold,
    printed_asymptotic_bound,
)

GAMMAS = [0.01, 0.1, 0.5, 2.0]
DELTAS = [0.0, 0.3, 1.0, 4.0]
RATIOS = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0]


@pytest.mark.parametrize(("n", "k", "ratio"), [(10, 1, 10.0), (10, 4, 2.5), (3, 3, 1.0), (3, 7, 1.0)])
def test_approximation_ratio(n, k, ratio):
    assert approximation_ratio(n, k) == ratio


def test_approximation_ratio_is_the_guarantee_of_the_algorithm():
    X, y, *_ = make_relu(30, 3, noise=0.5, random_state=0)
    for k in (1, 2, 3):
        assert solve(X, y, "approximation", k=k).guarantee == approximation_ratio(30, k)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("intercept", [0.0, -1.5])
def test_bound_is_the_sum_of_its_integrals(gamma, intercept):
    delta, noise = 0.8, norm(scale=gamma)
    second_moment = delta**2 + intercept**2
    for ratio in RATIOS:
        t = ratio * gamma
        moments = [
            quad(lambda e, j=j: e**j * noise.pdf(e), t, t + 12.0 * gamma, epsabs=0.0, epsrel=1e-10)[0]
            for j in range(3)
        ]
        total = t**2 + gamma**2 + second_moment * moments[0]
        total += 2.0 * (1.0 + second_moment) * moments[1] + moments[2]
        assert asymptotic_bound(gamma, delta, t, intercept) == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("delta", DELTAS)
def test_bound_is_above_what_it_bounds(gamma, delta):
    for ratio in RATIOS:
        least = least_surrogate(gamma, delta, ratio * gamma)
        # F_I >= L, and no function of x has a mean squared error below that of the noise.
        assert gamma**2 * (1.0 - 1e-9) <= least <= asymptotic_bound(gamma, delta, ratio * gamma)


@pytest.mark.parametrize("intercept", [-3.0, -0.5, 0.0, 1.0])
def test_bound_holds_at_the_truth_with_an_intercept(intercept):
    for gamma in GAMMAS:
        for ratio in RATIOS:
            t, delta = ratio * gamma, 0.7
            at_truth = surrogate_limit(delta, gamma, delta, t, intercept=intercept, true_intercept=intercept)
            assert at_truth <= asymptotic_bound(gamma, delta, t, intercept)


def test_without_the_intercept_term_the_truth_is_above():
    at_truth = surrogate_limit(0.1, 0.1, 0.1, 0.0, intercept=-3.0, true_intercept=-3.0)
    assert asymptotic_bound(0.1, 0.1, 0.0) < 0.05 * at_truth
    assert at_truth < asymptotic_bound(0.1, 0.1, 0.0, intercept=-3.0)
    assert asymptotic_bound(0.1, 0.1, intercept=3.0) == asymptotic_bound(0.1, 0.1, intercept=-3.0)


@pytest.mark.parametrize("delta", DELTAS)
def test_least_threshold(delta):
    for gamma in [*GAMMAS, 1e-6, 0.39, 0.41, 30.0]:
        t = best_threshold(gamma, delta)
        least = asymptotic_bound(gamma, delta)
        assert least == asymptotic_bound(gamma, delta, t)
        scan = [asymptotic_bound(gamma, delta, s * gamma) for s in np.linspace(0.0, 12.0, 1201)]
        assert least <= min(scan)
        assert least == pytest.approx(min(scan), rel=1e-4)


def test_printed_bound_misses_half_the_variance_at_threshold_zero():
    for gamma in GAMMAS:
        for delta in DELTAS:
            difference = asymptotic_bound(gamma, delta, 0.0) - printed_asymptotic_bound(gamma, delta)
            assert difference == pytest.approx(delta**2 / 2.0, abs=1e-12)


def test_printed_bound_does_not_hold_at_threshold_zero():
    printed = printed_asymptotic_bound(0.01, 1.0)
    assert printed == pytest.approx(0.016, abs=5e-4)
    for surrogate in (least_surrogate(0.01, 1.0, 0.0), simulated_surrogate(0.01, 1.0, 0.0)):
        assert surrogate == pytest.approx(0.17, rel=0.02)
        assert surrogate > 10.0 * printed
    assert least_surrogate(0.01, 1.0, 0.03) == pytest.approx(0.0008, rel=0.05)


def sharp_bound(gamma, delta, t):
    tail, density = norm.sf(t / gamma), norm.pdf(t / gamma)
    return t**2 + gamma**2 + delta**2 * tail + (1.0 + delta**2) * gamma * density


def test_printed_bound_holds_for_the_best_threshold():
    for gamma in np.geomspace(1e-6, 1e4, 200):
        t = 0.7 * gamma if gamma >= 0.5 else math.sqrt((gamma**2 + gamma) / 2.0)
        for delta in np.geomspace(1e-6, 1e6, 60):
            assert sharp_bound(gamma, delta, t) <= printed_asymptotic_bound(gamma, delta)


def test_the_sharper_bound_is_one():
    for gamma in GAMMAS:
        for delta in DELTAS:
            for ratio in RATIOS:
                t = ratio * gamma
                at_truth = surrogate_limit(delta, gamma, delta, t)
                assert at_truth <= sharp_bound(gamma, delta, t) <= asymptotic_bound(gamma, delta, t)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: approximation_ratio(0, 1), ValueError, "n is 0; it must be a whole number of at least 1"),
        (lambda: approximation_ratio(10, 0), ValueError, "k is 0"),
        (lambda: approximation_ratio(10, 1.5), TypeError, "k is 1.5"),
        (lambda: asymptotic_bound(0.0, 1.0), ValueError, "gamma is 0.0; it must be a finite number, above 0"),
        (lambda: asymptotic_bound(0.1, -1.0), ValueError, "delta is -1.0"),
        (lambda: asymptotic_bound(0.1, 1.0, -0.1), ValueError, "threshold is -0.1"),
        (lambda: asymptotic_bound(0.1, 1.0, np.inf), ValueError, "threshold is inf"),
        (lambda: asymptotic_bound(0.1, 1.0, intercept=np.nan), ValueError, "intercept is nan"),
        (lambda: asymptotic_bound("0.1", 1.0), TypeError, "gamma is '0.1'"),
        (lambda: best_threshold(-1.0, 1.0), ValueError, "gamma is -1.0"),
        (lambda: printed_asymptotic_bound(0.1, np.inf), ValueError, "delta is inf"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
