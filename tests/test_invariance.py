"""What must not change the value of the minimum."""

import numpy as np
import pytest
from optimality import solve_checked

from rectifit import Problem
from rectifit.datasets import make_relu


@pytest.fixture(params=[0, 1, 2])
def case(request):
    rng = np.random.default_rng(request.param)
    X, y, *_ = make_relu(150, 5, noise=0.5, sparsity=0.5, random_state=request.param)
    weight = rng.integers(1, 4, size=150).astype(float)
    return rng, X, y, y > np.median(y), weight


def value(X, y, active, engine, **options):
    return solve_checked(Problem.from_data(X, y, **options), active, engine=engine).value


def test_order_of_rows(case, engine):
    rng, X, y, active, weight = case
    order = rng.permutation(len(y))
    before = value(X, y, active, engine, sample_weight=weight)
    after = value(X[order], y[order], active[order], engine, sample_weight=weight[order])
    assert after == pytest.approx(before, rel=1e-12)


def test_repeated_rows_are_weights(case, engine):
    _, X, y, active, weight = case
    times = weight.astype(int)
    repeated = value(*(np.repeat(a, times, axis=0) for a in (X, y, active)), engine, alpha=0.5)
    assert value(X, y, active, engine, sample_weight=weight, alpha=0.5) == pytest.approx(repeated, rel=1e-12)


def test_rows_of_weight_zero_do_not_count(case, engine):
    rng, X, y, active, weight = case
    weight[rng.random(len(y)) < 0.3] = 0.0
    keep = weight > 0
    left = value(X[keep], y[keep], active[keep], engine, sample_weight=weight[keep])
    assert value(X, y, active, engine, sample_weight=weight) == pytest.approx(left, rel=1e-12)


def test_scale_of_columns(case, engine):
    rng, X, y, active, weight = case
    scale = 10.0 ** rng.uniform(-6, 6, size=X.shape[1])
    before = solve_checked(Problem.from_data(X, y, sample_weight=weight), active, engine=engine)
    after = solve_checked(Problem.from_data(X * scale, y, sample_weight=weight), active, engine=engine)
    assert after.value == pytest.approx(before.value, rel=1e-12)
    np.testing.assert_allclose(after.beta * scale, before.beta, rtol=1e-8, atol=1e-10)


def test_rotation_of_columns_with_ridge(case, engine):
    rng, X, y, active, weight = case
    Q, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    before = value(X, y, active, engine, sample_weight=weight, alpha=2.0)
    assert value(X @ Q, y, active, engine, sample_weight=weight, alpha=2.0) == pytest.approx(
        before, rel=1e-12
    )


def test_intercept_is_a_column_of_ones(case, engine):
    _, X, y, active, weight = case
    ones = np.column_stack([X, np.ones(len(y))])
    before = value(X, y, active, engine, sample_weight=weight)
    after = value(ones, y, active, engine, sample_weight=weight, fit_intercept=False)
    assert after == pytest.approx(before, rel=1e-12)


def test_scale_of_outcomes_and_weights(case, engine):
    _, X, y, active, weight = case
    before = value(X, y, active, engine, sample_weight=weight)
    assert value(X, 8.0 * y, active, engine, sample_weight=weight) == pytest.approx(64.0 * before, rel=1e-12)
    assert value(X, y, active, engine, sample_weight=3.0 * weight) == pytest.approx(3.0 * before, rel=1e-12)
