"""Random and nasty surrogates against two general solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optimality import solve_checked
from peers import as_programme, solve_clarabel, solve_piqp

from rectifit import Problem
from rectifit.datasets import make_relu


@st.composite
def surrogates(draw):
    """Data of many kinds: ternary, repeated and zero rows, ties, zeros, one sign, few rows, wild weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(1, 60)), draw(st.integers(1, 10))
    rows = draw(
        st.sampled_from(["gaussian", "ternary", "integers", "repeated", "positive", "zeros", "twins"])
    )
    X = rng.normal(size=(n, p))
    if rows == "ternary":
        X = rng.choice([-1.0, 0.0, 1.0], size=(n, p), p=[0.25, 0.5, 0.25])
    elif rows == "integers":
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
    elif rows == "repeated":
        X = X[rng.integers(0, max(1, n // 4), size=n)]
    elif rows == "positive":
        X = np.abs(X)
    elif rows == "zeros":
        X[rng.random(n) < 0.4] = 0.0
    elif rows == "twins":
        X[:, -1] = X[:, 0]
    outcomes = draw(st.sampled_from(["gaussian", "integers", "zeros", "negative", "positive", "realizable"]))
    y = rng.normal(size=n)
    if outcomes == "integers":
        y = rng.integers(-2, 4, size=n).astype(float)
    elif outcomes == "zeros":
        y = np.maximum(y, 0.0)
    elif outcomes == "negative":
        y = -np.abs(y)
    elif outcomes == "positive":
        y = np.abs(y)
    elif outcomes == "realizable":
        y = np.maximum(X @ rng.normal(size=p), 0.0)
    weight = 10.0 ** rng.uniform(-4, 4, size=n) if draw(st.booleans()) else None
    options = {
        "sample_weight": weight,
        "fit_intercept": draw(st.booleans()),
        "alpha": draw(st.sampled_from([0.0, 0.0, 1e-3, 1.0, 10.0])),
    }
    active = rng.random(n) < draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))
    return X, y, active, options


@pytest.mark.parametrize("engine_name", ["compiled", "near_far"])
@settings(max_examples=800)
@given(case=surrogates())
def test_no_general_solver_finds_less(engine_name, case):
    X, y, active, options = case
    problem = Problem.from_data(X, y, **options)
    # Eight orders of magnitude of weight on few rows leave directions that almost nothing determines.
    solution = solve_checked(
        problem, active, engine=engine_name, gap=1e-6 if options["sample_weight"] is not None else 1e-9
    )
    scale = max(problem.null_objective, 1e-300)
    programme = as_programme(X, y, active, **options)
    for solve in (solve_clarabel, solve_piqp):
        peer = solve(programme).coefficients
        # Where columns are equal a peer may return coefficients so large that X beta is rounding noise.
        if not np.isfinite(peer).all() or np.abs(peer).max() > 1e4:
            continue
        intercept = float(peer[X.shape[1] :].sum())
        found = problem.surrogate_value(active, peer[: X.shape[1]], intercept)
        # What the peer returns is a point like any other: none may lie below the bound, or below the minimum.
        assert found >= solution.dual_bound - 1e-10 * scale
        assert solution.value <= found + 1e-10 * scale


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("sparsity", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("n", "p"), [(200, 10), (400, 20)])
def test_values_agree_on_the_instances_of_the_paper(engine, n, p, sparsity, noise):
    X, y, *_ = make_relu(n, p, sparsity=sparsity, noise=noise, random_state=n)
    problem = Problem.from_data(X, y, fit_intercept=False)
    for quantile in (0.0, 0.5, 0.9):
        active = y > max(0.0, np.quantile(y, quantile))
        solution = solve_checked(problem, active, engine=engine)
        programme = as_programme(X, y, active, fit_intercept=False)
        for solve in (solve_clarabel, solve_piqp):
            assert solve(programme).objective == pytest.approx(
                solution.value, rel=1e-7, abs=1e-7 * problem.null_objective
            )
