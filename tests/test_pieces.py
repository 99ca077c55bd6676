"""The facts of the surrogate, sample by sample and in sum."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimality import solve_checked

from rectifit import Problem, bounds, pieces

numbers = st.floats(-10.0, 10.0)


def kink_of(y, active):
    return float(pieces.kinks(np.array([y]), np.array([active]))[0])


def relu_loss(u, y):
    return (max(0.0, u) - y) ** 2


@given(u=numbers, y=numbers)
def test_value_of_every_kind(u, y):
    if y > 0:
        assert pieces.value(u, y, kink_of(y, True)) == (u - y) ** 2
        sigma = (u - y) ** 2 if u > 2 * y else y**2
        assert pieces.value(u, y, kink_of(y, False)) == pytest.approx(sigma, rel=1e-15)
    else:
        for active in (True, False):
            assert pieces.value(u, y, kink_of(y, active)) == pytest.approx(relu_loss(u, y), rel=1e-15)
    assert pieces.value(u, y, -np.inf) == (u - y) ** 2


@given(u=numbers, y=numbers, active=st.booleans())
def test_pieces_majorise_the_relu_loss(u, y, active):
    # An active sample equals it where it is on, an inactive one where it is off.
    piece = pieces.value(u, y, kink_of(y, active))
    assert piece >= relu_loss(u, y)
    if y <= 0 or (u > 0) == active:
        # Inactive and off is y^2; active and on is (u - y)^2.
        assert piece == pytest.approx(relu_loss(u, y), rel=1e-12, abs=1e-12)


@given(y=numbers, active=st.booleans(), a=numbers, b=numbers, t=st.floats(0.0, 1.0))
def test_pieces_are_convex(y, active, a, b, t):
    c = kink_of(y, active)
    between = pieces.value(t * a + (1 - t) * b, y, c)
    chord = t * pieces.value(a, y, c) + (1 - t) * pieces.value(b, y, c)
    assert between <= chord + 1e-9


@given(y=numbers)
def test_continuous_at_the_kink_where_the_slope_jumps(y):
    c = kink_of(y, False)
    beyond = np.nextafter(c, np.inf)
    assert pieces.value(c, y, c) == y * y
    assert pieces.value(beyond, y, c) == pytest.approx(y * y, rel=1e-12, abs=1e-300)
    assert pieces.slope(c, y, c) == 0.0
    assert pieces.slope(beyond, y, c) == pytest.approx(2 * abs(y), rel=1e-12, abs=1e-300)
    assert pieces.slope_jump(y, c) == pytest.approx(2 * abs(y))


@given(u=numbers, y=numbers, active=st.booleans())
def test_slope_is_the_derivative(u, y, active):
    c, h = kink_of(y, active), 1e-6
    if abs(u - c) > 2 * h:
        difference = (pieces.value(u + h, y, c) - pieces.value(u - h, y, c)) / (2 * h)
        assert pieces.slope(u, y, c) == pytest.approx(difference, abs=1e-6)


@given(y=numbers, active=st.booleans(), slope=st.floats(-20.0, 20.0))
def test_conjugate_is_the_supremum(y, active, slope):
    c = kink_of(y, active)
    if c > -np.inf:
        slope = abs(slope)
    grid = np.append(np.linspace(-60.0, 60.0, 4001), [2 * max(y, 0.0), slope / 2 + y])
    supremum = (slope * grid - pieces.value(grid, y, c)).max()
    assert pieces.conjugate(slope, y, c) == pytest.approx(supremum, rel=1e-12, abs=1e-9)


@given(u=numbers, y=numbers, active=st.booleans())
def test_fenchel_equality_at_the_slope(u, y, active):
    c = kink_of(y, active)
    slope = pieces.slope(u, y, c)
    gap = pieces.value(u, y, c) + pieces.conjugate(slope, y, c) - slope * u
    assert gap == pytest.approx(0.0, abs=1e-10)


def test_a_smoothed_piece_joins_both_sides_and_lies_above():
    rng = np.random.default_rng(0)
    for y, h in zip(rng.normal(size=50), rng.uniform(0.01, 1.0, 50), strict=True):
        c = kink_of(y, False)
        assert pieces.smoothed_slope(c - h, y, c, h) == pytest.approx(0.0, abs=1e-12)
        assert pieces.smoothed_slope(c + h, y, c, h) == pytest.approx(2 * (c + h - y))
        assert pieces.smoothed_value(c - h, y, c, h) == pytest.approx(y * y)
        assert pieces.smoothed_value(c + h, y, c, h) == pytest.approx((c + h - y) ** 2 + h * h)
        u, step = c + h * rng.uniform(-0.9, 0.9, 20), 1e-4 * h
        rise = pieces.smoothed_value(u + step, y, c, h) - pieces.smoothed_value(u - step, y, c, h)
        np.testing.assert_allclose(rise / (2 * step), pieces.smoothed_slope(u, y, c, h), rtol=1e-6)
        slopes = pieces.smoothed_slope(u + step, y, c, h) - pieces.smoothed_slope(u - step, y, c, h)
        np.testing.assert_allclose(slopes / (2 * step), pieces.smoothed_curvature(y, h), rtol=1e-6)
        assert np.all(pieces.smoothed_value(u, y, c, h) >= pieces.value(u, y, c) - 1e-12)
        # The supporting line with that slope is below the piece everywhere, and the gap is its distance at u.
        slope, gap = pieces.smoothed_slope(u, y, c, h), pieces.smoothed_gap(u, y, c, h)
        assert np.all(gap >= -1e-12)
        grid = np.linspace(c - 3.0, c + 3.0, 301)[:, None]
        line = pieces.value(u, y, c) - gap + slope * (grid - u)
        assert np.all(line <= pieces.value(grid, y, c) + 1e-9)


def formula_samples():
    rng = np.random.default_rng(1)
    y = rng.normal(size=200)
    y[:20] = 0.0
    c = pieces.kinks(y, rng.random(200) < 0.3)
    u = rng.normal(size=200)
    slope = np.where(c == -np.inf, rng.normal(size=200), np.abs(rng.normal(size=200)))
    return u, y, c, slope


def test_tensors_and_arrays_share_the_formulas():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    u, y, c, slope = formula_samples()
    tensors = [torch.from_numpy(a) for a in (u, y, c, slope)]
    assert np.array_equal(pieces.support(*tensors).numpy(), pieces.support(u, y, c, slope))
    assert np.array_equal(pieces.value(*tensors[:3]).numpy(), pieces.value(u, y, c))
    rng = np.random.default_rng(2)
    rows, rho, v = rng.normal(size=(3, 9, 4)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    gram = rows.transpose(0, 2, 1) @ rows
    many = bounds.residual_cost(gram, rho, v)
    for ours, theirs in zip(many, bounds.residual_cost(*map(torch.from_numpy, (gram, rho, v))), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-12)
    for e in range(3):
        decrement, remainder = bounds.residual_cost(gram[e], rho[e], v[e])
        assert decrement == pytest.approx(max(0.25 * rho[e] @ v[e], 0.0))
        assert remainder == pytest.approx(np.abs(rho[e] - gram[e] @ v[e]).sum())
        assert (many[0][e], many[1][e]) == pytest.approx((decrement, remainder))


def test_pieces_with_any_kink_are_supported_from_below():
    """The certificate's pieces, 0 left of a kink c >= y: supporting functions against a grid."""
    from rectifit.certificate.kernel import support
    from rectifit.certificate.records import KernelRows

    rng = np.random.default_rng(3)
    y = rng.normal(size=40)
    c = np.where(rng.random(40) < 0.3, -np.inf, y + np.maximum(rng.normal(size=40), 0.0))
    grid = np.linspace(-30.0, 30.0, 60001)
    for k in range(40):
        at = np.append(grid, max(c[k], y[k]))
        shape = (at - y[k]) ** 2
        if c[k] > -np.inf:
            shape = np.where(at > c[k], shape - (c[k] - y[k]) ** 2, 0.0)
        one = KernelRows(np.ones((1, 1)), np.ones(1), c[k : k + 1], y[k : k + 1])
        u, slopes, total = rng.normal(size=(1, 1)), rng.normal(size=(1, 1)), np.empty(1)
        support(tuple(one), u, slopes, 0.0, total)
        lam = float(slopes[0, 0])
        assert lam >= 0.0 or c[k] == -np.inf
        expected = lam * u[0, 0] - (lam * at - shape).max()
        assert total[0] == pytest.approx(expected, abs=1e-5)
        assert total[0] <= expected + 1e-12


def small_problem(seed, n=8, p=2):
    rng = np.random.default_rng(seed)
    return Problem.from_data(rng.normal(size=(n, p)), rng.normal(0.5, 1.0, size=n), fit_intercept=False)


@pytest.mark.parametrize("seed", range(5))
def test_surrogate_majorises_and_touches_the_objective(seed):
    problem = small_problem(seed, n=30)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        beta = rng.normal(size=2)
        active = rng.random(30) < 0.5
        assert problem.surrogate_value(active, beta) >= problem.objective(beta)
        own = problem.positive & (problem.X @ beta > 0)
        assert problem.surrogate_value(own, beta) == pytest.approx(problem.objective(beta), rel=1e-13)


def least_objective(problem):
    """The global minimum without intercept for one feature: each sign of beta is a convex problem."""
    x, y = problem.X[:, 0], problem.y
    best = float(y @ y)
    for sign in (1.0, -1.0):
        on = sign * x > 0
        b = max(0.0, float((sign * x[on]) @ y[on]) / float(x[on] @ x[on])) if on.any() else 0.0
        best = min(best, problem.objective([sign * b]))
    return best


@pytest.mark.parametrize("seed", range(10))
def test_least_surrogate_over_all_active_sets_is_the_least_objective(seed):
    problem = small_problem(seed, n=7, p=1)
    least = least_objective(problem)
    values = []
    for choice in itertools.product([False, True], repeat=7):
        active = np.array(choice)
        if not (active & ~problem.positive).any():
            values.append(solve_checked(problem, active).value)
    assert min(values) == pytest.approx(least, rel=1e-12)
    assert all(value >= least * (1 - 1e-12) for value in values)


@pytest.mark.parametrize("engine", ["compiled", "near_far"])
def test_empty_active_set_is_solved_by_zero(engine):
    problem = small_problem(0, n=30)
    solution = solve_checked(problem, np.zeros(30, dtype=bool), engine=engine)
    assert solution.value == pytest.approx(float(problem.y @ problem.y), rel=1e-14)
    assert solution.beta.tolist() == [0.0, 0.0]
    assert solution.n_iter == 0
