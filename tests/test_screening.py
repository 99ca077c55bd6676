"""Starts that fall on a sample first: which of them are worth following on all rows."""

import numpy as np
import pytest

from rectifit import routing, solve
from rectifit.data import ArrayData
from rectifit.data.problem import Problem
from rectifit.fit import Stop
from rectifit.methods.screening import is_higher, is_same, screen
from rectifit.surrogate.pass_engine import PassEngine


def two_arms(n, tilt, seed=0):
    """y = |x1| + tilt x1 and noise: a fit of the right arm and one of the left arm are both minima."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.abs(X[:, 0]) + tilt * X[:, 0] + 0.1 * rng.standard_normal(n)


def follow(problem, starts):
    return screen(problem, starts, max_iter=100, tol=1e-8, is_over=lambda: False)


RIGHT, LEFT = (np.array([1.0, 0.0, 0.0]), 0.0), (np.array([-1.0, 0.0, 0.0]), 0.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_other_minima_are_followed_unless_they_are_clearly_higher(sign):
    X, y = two_arms(2000, 0.002 * sign)
    problem = Problem.from_data(X, y)
    kept = follow(problem, [RIGHT, LEFT, RIGHT, LEFT])
    # One of the two is lower by less than the sample can tell, so both count.
    assert [np.sign(beta[0]) for beta, _ in kept] == [-1.0]
    tilted = Problem.from_data(*two_arms(2000, 0.3 * sign))
    kept = follow(tilted, [RIGHT, LEFT])
    assert len(kept) == (0 if sign > 0.0 else 1)


def test_starts_that_end_together_are_followed_once():
    X, y = two_arms(500, 0.0)
    rng = np.random.default_rng(1)
    starts = [(RIGHT[0] + 0.1 * rng.standard_normal(3), 0.0) for _ in range(5)]
    assert follow(Problem.from_data(X, y), starts) == []


def test_same_and_higher_are_about_the_rows_of_the_sample():
    X, y = two_arms(400, 0.0)
    w = np.random.default_rng(2).uniform(0.5, 2.0, 400)
    problem = Problem.from_data(X, y, sample_weight=w)
    right, left, near = problem.evaluate_all([RIGHT, LEFT, (np.array([1.001, 0.0, 0.0]), 0.0)])
    zero = problem.evaluate(np.zeros(3))
    assert is_same(problem, right, near)
    assert not is_same(problem, right, left)
    assert is_higher(problem, zero, right)
    assert not is_higher(problem, right, zero)
    assert not is_higher(problem, right, left)


@pytest.mark.parametrize("tilt", [0.01, -0.01])
@pytest.mark.parametrize("scaled", [False, True])
def test_large_data_reach_the_better_of_two_minima(monkeypatch, tilt, scaled):
    """The sample cannot tell them apart, all rows can."""
    X, y = two_arms(40_000, tilt, seed=3)
    if scaled:
        X = X * np.array([1e6, 1e-6, 1.0])
    best = solve(X, y, "multistart", n_starts=40, random_state=0).objective
    monkeypatch.setattr(routing, "LARGE_ENTRIES", 1)
    found = solve(ArrayData(X, y), None, random_state=0)
    assert found.stopped == Stop.STARTS
    assert found.objective <= best * (1.0 + 1e-8)
    chain = solve(ArrayData(X, y), None, "sorting+iterative")
    assert found.objective <= chain.objective * (1.0 + 1e-12)


def test_starts_fall_on_the_sample_and_cost_few_passes(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60_000, 5))
    y = np.maximum(X @ np.arange(1.0, 6.0) + rng.standard_normal(60_000), 0.0)
    passes = []
    for entries in (1, 10**9):
        monkeypatch.setattr(routing, "LARGE_ENTRIES", entries)
        count = [0]
        monkeypatch.setattr(PassEngine, "minimise", counted(PassEngine.minimise, count))
        solve(ArrayData(X, y), None, random_state=0)
        monkeypatch.undo()
        passes.append(count[0])
    # Besides the splits, one path is followed.
    assert passes[0] < passes[1]


def counted(minimise, count):
    def counting(self, sets, *args, **options):
        count[0] += len(sets)
        return minimise(self, sets, *args, **options)

    return counting
