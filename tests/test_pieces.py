"""The facts of the surrogate, sample by sample and in sum."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimality import solve_checked

from rectifit import Problem, pieces

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
