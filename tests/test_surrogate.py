import threading

import numpy as np
import pytest
from optimality import assert_optimal, solve_checked
from peers import sorting_sets

from rectifit import Problem, SurrogateSolver, solve_surrogate
from rectifit.datasets import make_relu
from rectifit.surrogate import compiled, descent, kernel


def sample(n=400, p=6, seed=0, noise=0.5, **options):
    X, y, *_ = make_relu(n, p, noise=noise, design="gaussian", random_state=seed)
    return Problem.from_data(X, y, **options)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_optimal_for_every_split(engine, fit_intercept, alpha, weighted):
    weight = 10.0 ** np.random.default_rng(1).uniform(-4, 4, 400) if weighted else None
    problem = sample(fit_intercept=fit_intercept, alpha=alpha, sample_weight=weight)
    actives = sorting_sets(problem.y)
    for active, solution in zip(actives, SurrogateSolver(problem, engine).solve_each(actives), strict=True):
        assert_optimal(problem, active, solution)


def test_engines_agree():
    problem = sample(n=3000, p=12)
    actives = sorting_sets(problem.y)
    found = [SurrogateSolver(problem, name).solve_each(actives) for name in ("compiled", "near_far")]
    for active, compiled_solution, array_solution in zip(actives, *found, strict=True):
        assert_optimal(problem, active, compiled_solution)
        assert_optimal(problem, active, array_solution)
        assert array_solution.value == pytest.approx(compiled_solution.value, rel=1e-12)


def test_array_engine_in_several_rounds_on_many_rows():
    problem = sample(n=20_000, p=3, seed=3)
    actives = sorting_sets(problem.y)
    for active, solution in zip(
        actives, SurrogateSolver(problem, "near_far").solve_each(actives), strict=True
    ):
        assert_optimal(problem, active, solution)


def test_sequence_gives_the_same_as_single_questions(engine):
    problem = sample()
    actives = sorting_sets(problem.y)
    together = SurrogateSolver(problem, engine).solve_each(actives)
    one_solver = SurrogateSolver(problem, engine)
    for active, solution in zip(actives, together, strict=True):
        alone = solve_checked(problem, active, engine=engine)
        again = one_solver.solve(active)
        assert alone.value == pytest.approx(solution.value, rel=1e-12)
        assert again.value == pytest.approx(solution.value, rel=1e-12)


def test_a_solver_that_was_reset_answers_like_a_new_one(engine):
    problem = sample()
    actives = sorting_sets(problem.y)
    solver = SurrogateSolver(problem, engine)
    new = solver.solve_each(actives)
    solver.solve_each(actives[::-1])
    solver.reset()
    for before, after in zip(new, solver.solve_each(actives), strict=True):
        np.testing.assert_array_equal(before.beta, after.beta)
        assert before.n_iter == after.n_iter


def test_more_active_sets_than_one_batch():
    problem = sample(n=60, p=2)
    actives = np.random.default_rng(0).random((2 * compiled.BATCH + 3, 60)) < 0.5
    actives[5] = False
    solutions = SurrogateSolver(problem, "compiled").solve_each(actives)
    assert len(solutions) == len(actives)
    for active, solution in zip(actives, solutions, strict=True):
        assert_optimal(problem, active, solution)


def test_warm_start_does_not_change_the_minimum(engine):
    problem = sample()
    active = problem.y > 1.0
    cold = solve_checked(problem, active, engine=engine)
    rng = np.random.default_rng(0)
    starts = [
        cold,
        (cold.beta, cold.intercept),
        cold.beta,
        (np.zeros(6), 0.0),
        (1e3 * rng.normal(size=6), 5.0),
    ]
    for start in starts:
        warm = solve_checked(problem, active, engine=engine, start=start)
        assert warm.value == pytest.approx(cold.value, rel=1e-12)
    assert solve_checked(problem, active, engine=engine, start=cold).n_iter <= cold.n_iter


def test_entries_at_non_positive_outcomes_are_ignored(engine):
    problem = sample()
    active = problem.y > 1.0
    noisy = active | (problem.y <= 0)
    assert solve_checked(problem, noisy, engine=engine).value == pytest.approx(
        solve_checked(problem, active, engine=engine).value, rel=1e-12
    )


def test_realizable_data_are_recovered(engine):
    X, y, beta, *_ = make_relu(200, 10, noise=0.0, random_state=0)
    problem = Problem.from_data(X, y, fit_intercept=False)
    solution = solve_checked(problem, y > 0, engine=engine)
    assert solution.value <= 1e-20 * problem.null_objective
    np.testing.assert_allclose(solution.beta, beta, atol=1e-12)


def degenerate_cases():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.normal(0.3, 1.0, size=60)
    ternary = rng.choice([-1.0, 0.0, 1.0], size=(60, 4), p=[0.1, 0.8, 0.1])
    integers = rng.integers(-2, 4, size=60).astype(float)
    dummies = np.eye(4)[rng.integers(0, 4, size=60)]
    return {
        "all negative": (X, -np.abs(y)),
        "all positive": (X, np.abs(y)),
        "all zero outcomes": (X, np.zeros(60)),
        "zero and one": (X, (y > 0).astype(float)),
        "ternary rows, integer outcomes": (ternary, integers),
        "zero rows": (X * (rng.random(60) < 0.5)[:, None], y),
        "repeated rows": (X[rng.integers(0, 5, size=60)], integers),
        "constant column": (np.column_stack([X, np.ones(60)]), y),
        "zero column": (np.column_stack([X, np.zeros(60)]), y),
        "equal columns": (np.column_stack([X, X[:, 0]]), y),
        "dummies": (dummies, y),
        "all positive X": (np.abs(X), y),
        "only zeros": (np.zeros((60, 2)), y),
        "more columns than rows": (rng.normal(size=(10, 25)), y[:10]),
        "one row": (X[:1], np.abs(y[:1])),
        "one row, one column": (np.array([[2.0]]), np.array([3.0])),
    }


@pytest.mark.parametrize("name", degenerate_cases())
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_degenerate_data_are_solved(engine, name, fit_intercept, alpha):
    X, y = degenerate_cases()[name]
    problem = Problem.from_data(X, y, fit_intercept=fit_intercept, alpha=alpha)
    for active in (y > 0, y > 1.0, y >= y.max()):
        solve_checked(problem, active, engine=engine)


def on_plain_scale(solution, rows=1.0, outcomes=1.0, weight=1.0):
    """The solution for X, y in place of rows * X, outcomes * y and weights."""
    return solution._replace(
        beta=solution.beta / outcomes * rows,
        intercept=solution.intercept / outcomes,
        value=solution.value / outcomes / outcomes / weight,
        dual_bound=solution.dual_bound / outcomes / outcomes / weight,
        dual=solution.dual / outcomes / weight,
    )


@pytest.mark.parametrize("rows", [1e-150, 1e-75, 1e75, 1e150])
@pytest.mark.parametrize("outcomes", [1e-150, 1.0, 1e150])
def test_extreme_scales(engine, rows, outcomes):
    plain = sample()
    active = plain.y > 0.5
    expected = solve_checked(plain, active, engine=engine)
    problem = Problem.from_data(plain.X * rows, plain.y * outcomes)
    solution = on_plain_scale(SurrogateSolver(problem, engine).solve(active), rows, outcomes)
    assert_optimal(plain, active, solution)
    assert solution.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(solution.beta, expected.beta, rtol=1e-9)


@pytest.mark.parametrize("weight", [1e-150, 1e150])
def test_extreme_weights(engine, weight):
    plain = sample()
    active = plain.y > 0.5
    expected = solve_checked(plain, active, engine=engine)
    problem = Problem.from_data(plain.X, plain.y, sample_weight=np.full(400, weight))
    solution = on_plain_scale(SurrogateSolver(problem, engine).solve(active), weight=weight)
    assert_optimal(plain, active, solution)
    assert solution.value == pytest.approx(expected.value, rel=1e-12)


def nearly_equal_columns(offset):
    """Data whose last column is the first plus a little noise, and the same data with the noise alone."""
    plain = sample()
    extra = np.random.default_rng(5).normal(size=400)
    near = np.column_stack([plain.X, plain.X[:, 0] + offset * extra])
    far = np.column_stack([plain.X, extra]) if offset else plain.X
    return Problem.from_data(near, plain.y), Problem.from_data(far, plain.y), plain.y > 0.5


@pytest.mark.parametrize("offset", [1e-3, 1e-6, 0.0])
def test_nearly_equal_columns(engine, offset):
    # The fit must use the difference, however small, and must not stumble over an exact copy.
    near, far, active = nearly_equal_columns(offset)
    solution = solve_checked(near, active, engine=engine, gap=1e-8)
    expected = solve_checked(far, active, engine=engine)
    assert solution.value == pytest.approx(expected.value, rel=1e-7)


@pytest.mark.parametrize("offset", [1e-9, 1e-12])
def test_columns_equal_up_to_rounding_get_an_honest_bound(engine, offset):
    # X beta itself now loses so many digits that no gap of 1e-9 can be shown; the bound must say so.
    near, far, active = nearly_equal_columns(offset)
    solution = SurrogateSolver(near, engine).solve(active)
    least = solve_checked(far, active, engine=engine).value
    assert solution.dual_bound <= least * (1 + 1e-3)
    assert solution.dual_bound >= 0.99 * least
    assert solution.value >= solution.dual_bound


def test_far_from_the_origin(engine):
    # Columns such as years: without care the intercept and they are one direction.
    plain = sample()
    active = plain.y > 0.5
    expected = solve_checked(plain, active, engine=engine)
    shifted = solve_checked(Problem.from_data(plain.X + 1e5, plain.y), active, engine=engine, gap=1e-7)
    assert shifted.value == pytest.approx(expected.value, rel=1e-8)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_layout_and_precision_of_the_data(engine, order, dtype):
    plain = sample()
    X = np.array(plain.X, dtype=dtype, order=order)
    active = plain.y > 0.5
    expected = solve_checked(Problem.from_data(X.astype(np.float64, order="C"), plain.y), active)
    solution = solve_checked(Problem.from_data(X, plain.y), active, engine=engine)
    assert solution.value == pytest.approx(expected.value, rel=1e-12)
    assert solution.beta.dtype == np.float64


def test_thousands_of_kinks_in_one_point(engine):
    # With few active samples beta = 0 is optimal, where all non-positive samples have their kink.
    problem = sample(n=4000, p=5, noise=0.5)
    for count in (5, 50, 200):
        active = problem.y >= np.sort(problem.y)[-count]
        solve_checked(problem, active, engine=engine)


def test_standing_still_is_overcome_by_moving_kinks(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 0.0, 1.0], size=(300, 6), p=[0.1, 0.8, 0.1])
    y = rng.integers(-2, 4, size=300).astype(float)
    problem = Problem.from_data(X, y)
    expected = solve_checked(problem, y > 2).value
    calls = []
    untangle = descent._untangle
    monkeypatch.setattr(descent, "_untangle", lambda *given: (calls.append(1), untangle(*given)))
    # A kernel that gives up at the first step of length zero.
    run = descent._run

    def impatient(problem, kinks, warm, trust, restart=False):
        result, n_converged = run(problem, kinks, warm, trust, restart)
        if np.array_equal(kinks[0], pieces_in_place) and not trust:
            result.converged[:] = False
            n_converged = 0
        return result, n_converged

    solver = SurrogateSolver(problem, "compiled")
    pieces_in_place = np.where(y > 2, -np.inf, 2 * np.maximum(y, 0)) / solver.rows.scale
    monkeypatch.setattr(descent, "_run", impatient)
    solution = solver.solve(y > 2)
    assert calls
    assert_optimal(problem, y > 2, solution)
    assert solution.value == pytest.approx(expected, rel=1e-12)


def test_bound_holds_when_the_search_is_cut_short(monkeypatch):
    problem = sample()
    actives = sorting_sets(problem.y)
    truth = [s.value for s in SurrogateSolver(problem, "compiled").solve_each(actives)]
    run = kernel.minimise

    def two_steps(*given):
        return run(*given[:2], 2, *given[3:])

    # The kernel itself is made ready first.
    solver = SurrogateSolver(problem, "compiled")
    monkeypatch.setattr(kernel, "minimise", two_steps)
    cut = solver.solve_each(actives)
    assert not all(s.converged for s in cut)
    for solution, least in zip(cut, truth, strict=True):
        assert solution.dual_bound <= least * (1 + 1e-12)
        assert solution.value >= least * (1 - 1e-12)


def test_bound_holds_at_any_slopes():
    # The bound at slopes that are not optimal, checked against the minimum.
    from rectifit.bounds import repair_dual

    rng = np.random.default_rng(0)
    for _ in range(50):
        Z, y = rng.normal(size=(30, 3)), rng.normal(size=30)
        active = (rng.random(30) < 0.5) & (y > 0)
        kink = np.where(active, -np.inf, 2 * np.maximum(y, 0))
        problem = Problem.from_data(Z, y, fit_intercept=False)
        gamma = rng.normal(size=3)
        least = solve_checked(problem, active).value
        u = Z @ gamma
        slopes = np.where(u > kink, 2 * (u - y), 0.0)
        present = u > kink
        repaired = repair_dual(Z, present & ~active, slopes, slopes @ Z, Z[present].T @ Z[present])
        r = np.where(u > kink, u, 0.0) - y
        above = repaired.slopes > 2 * (kink - y)
        conjugate = np.where(
            above, repaired.slopes**2 / 4 + repaired.slopes * y, repaired.slopes * 2 * np.maximum(y, 0) - y**2
        )
        fenchel = (r**2 + conjugate - repaired.slopes * u).sum()
        assert r @ r - fenchel - repaired.decrement - 10 * repaired.remainder * 10 <= least + 1e-9


def test_threads_give_the_same_answers():
    problems = [sample(seed=seed) for seed in range(8)]
    actives = [sorting_sets(problem.y) for problem in problems]
    expected = [SurrogateSolver(p).solve_each(a) for p, a in zip(problems, actives, strict=True)]
    found = [None] * 8

    def work(i):
        found[i] = SurrogateSolver(problems[i]).solve_each(actives[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(8):
        for active, alone, together in zip(actives[i], expected[i], found[i], strict=True):
            assert_optimal(problems[i], active, together)
            assert together.value == alone.value


def test_large_problems_go_to_the_near_far_engine():
    small, large = sample(n=50, p=2), sample(n=30_000, p=10)
    assert type(SurrogateSolver(small)._engine).__name__ == "CompiledEngine"
    assert type(SurrogateSolver(large)._engine).__name__ == "ResidentEngine"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"active": np.ones(400)}, TypeError, ["active", "float64", "boolean"]),
        ({"active": np.ones(3, dtype=bool)}, ValueError, ["active", "(3,)", "(400,)"]),
        ({"start": np.ones(5)}, ValueError, ["start", "5", "6"]),
        ({"start": (np.ones(6), np.inf)}, ValueError, ["start", "inf", "finite"]),
        ({"start": (np.full(6, np.nan), 0.0)}, ValueError, ["start", "NaN"]),
        ({"start": (np.ones(6), 1.0), "fit_intercept": False}, ValueError, ["start", "intercept", "0"]),
    ],
)
def test_bad_questions_are_refused(arguments, error, words):
    problem = sample()
    given = {"active": problem.y > 0} | arguments
    with pytest.raises(error) as caught:
        solve_surrogate(problem.X, problem.y, **given)
    for word in words:
        assert word in str(caught.value)


def test_heavy_rows_that_leave_do_not_spoil_the_gram_matrix(engine):
    # Subtracting rows of weight 1e10 from the Gram matrix leaves rounding noise of the size of the others.
    plain = sample()
    heavy = np.arange(400) < 20
    y = np.where(heavy, np.abs(plain.y) + 1.0, plain.y)
    problem = Problem.from_data(plain.X, y, sample_weight=np.where(heavy, 1e10, 1.0))
    solver = SurrogateSolver(problem, engine)
    for active in (y > 0, (y > 0) & ~heavy, y > 0, (y > 1.0) & ~heavy):
        assert_optimal(problem, active, solver.solve(active))


def test_numbers_are_plain(engine):
    solution = SurrogateSolver(sample(), engine).solve(sample().y > 0)
    assert type(solution.value) is type(solution.dual_bound) is type(solution.intercept) is float
    assert type(solution.n_iter) is int
    assert type(solution.converged) is bool


def test_unknown_engine():
    with pytest.raises(ValueError, match="'fast'; it must be one of 'auto', 'compiled', 'near_far'"):
        SurrogateSolver(sample(), "fast")


def test_what_is_left_of_a_gram_matrix_after_all_rows_are_dropped_is_rounding():
    """Dropped rows are subtracted, and the inverse of what rounding leaves would balance anything."""
    from rectifit.bounds import is_balanced, repair_dual

    n_dropped = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(3, 3))
        # No slope is large enough for the residual, so every row is dropped.
        slopes, rho = np.full(3, 1e-3), 10.0 * rng.normal(size=3)
        gram = Z.T @ Z
        repaired = repair_dual(Z, np.ones(3, dtype=bool), slopes, rho, gram)
        if repaired.slopes.any() or repaired.decrement == np.inf:
            continue
        n_dropped += 1
        assert repaired.decrement == 0.0
        assert repaired.remainder == pytest.approx(np.abs(rho - slopes @ Z).sum())
        assert not is_balanced(repaired.remainder, np.abs(slopes).sum())
    assert n_dropped > 10


@pytest.mark.parametrize("seed", range(20))
def test_repaired_slopes_bound_their_moves(seed):
    """What is left of the slopes stays non-negative when the residual is balanced."""
    from rectifit.bounds import repair_dual

    draw = np.random.default_rng(seed)
    Z, rho = draw.normal(size=(12, 4)), 3.0 * draw.normal(size=4)
    sloped, slopes = draw.random(12) < 0.7, draw.exponential(size=12)
    slopes[~sloped] = 0.0
    base = 0.1 * np.eye(4)
    gram = base + Z[sloped].T @ Z[sloped]
    repaired = repair_dual(Z, sloped, slopes, rho, gram)
    assert np.isfinite(repaired.decrement)
    kept = sloped & (repaired.slopes > 0.0)
    v = np.linalg.solve(base + Z[kept].T @ Z[kept], repaired.rho)
    np.testing.assert_allclose(repaired.rho, rho - (slopes - repaired.slopes) @ Z, atol=1e-12)
    assert (repaired.slopes[kept] >= Z[kept] @ v - 1e-12).all()
    assert repaired.decrement == pytest.approx(0.25 * repaired.rho @ v)
