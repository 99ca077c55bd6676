import os
import signal
import threading

import numpy as np
import pytest
from brute import least_objective, random_problem
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from rectifit import Problem, ReLURegressor, routing, solve
from rectifit.certificate.proof import TARGET_GAP
from rectifit.datasets import make_relu
from rectifit.instances.families import low_signal
from rectifit.methods import auto
from rectifit.methods.auto import Known, solve_largest
from rectifit.methods.gd import MAX_BACKTRACKS
from rectifit.methods.search import Search
from rectifit.methods.stages import STAGES
from rectifit.solution import Stop
from rectifit.surrogate.majorise import follow_together
from rectifit.surrogate.rows_engine import RowsEngine
from rectifit.surrogate.solver import SurrogateSolver

# Random data and random starts may well end at zero.
pytestmark = pytest.mark.filterwarnings("ignore:the fit is the zero function")

METHODS = [*STAGES, "sorting+iterative", "sorting+gd", "sorting+multistart+gd"]


def data(seed=0, n=80, p=4, noise=0.5):
    X, y, *_ = make_relu(n, p, noise=noise, random_state=seed)
    return X, y


def arguments_of(problem):
    return {
        "X": problem.X,
        "y": problem.y,
        "sample_weight": problem.sample_weight,
        "fit_intercept": problem.fit_intercept,
        "alpha": problem.alpha,
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(12))
def test_every_method_returns_a_solution_that_holds(method, seed):
    problem = random_problem(seed, n_samples=25 if seed % 2 else None)
    solution = solve(**arguments_of(problem), method=method)
    solution.verify()
    assert solution.method == method
    assert solution.objective == problem.objective(solution.beta, solution.intercept)
    assert (solution.surrogate_objective is None) == (method in ("gd", "sgd"))
    assert solution.n_iter == len(solution.trace)
    assert [row.stage for row in solution.trace if row.stage not in method.split("+")] == []
    if problem.positive.sum() <= 12:
        least = least_objective(problem)
        slack = 1e-9 * problem.null_objective
        assert solution.certificate.lower_bound - slack <= least <= solution.objective + slack


@pytest.mark.parametrize("method", ["sorting", "approximation", "sorting+iterative", "auto", "multistart"])
@pytest.mark.parametrize("sparsity", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(5))
def test_realizable_data_are_recovered_exactly(method, sparsity, seed):
    X, y, beta, *_ = make_relu(200, 10, sparsity=sparsity, noise=0.0, random_state=seed)
    solution = solve(X, y, method, fit_intercept=False)
    assert solution.objective <= 1e-20 * (y @ y)
    np.testing.assert_allclose(solution.beta, beta, atol=1e-9)
    assert solution.certificate.status == "optimal"
    assert solution.certificate.gap == 0.0


@pytest.mark.parametrize("seed", range(40))
def test_iterative_never_increases_the_objective(seed):
    problem = random_problem(seed, n_samples=60)
    rng = np.random.default_rng(seed)
    start = rng.normal(size=problem.n_features), float(rng.normal()) * problem.fit_intercept
    given = problem.objective(*start)
    solution = solve(**arguments_of(problem), method="iterative", start=start, tol=0.0, max_iter=100)
    objectives = [given, *(row.objective for row in solution.trace)]
    assert np.all(np.diff(objectives) <= 1e-10 * problem.null_objective)
    assert solution.stopped in (Stop.REPEATED, Stop.LITTLE)


def test_iterative_ends_where_its_active_set_repeats():
    X, y = data(n=300, p=8)
    solution = solve(X, y, "iterative")
    assert solution.stopped == Stop.REPEATED
    # A fixed point: the surrogate of its own active set is minimal there, and equal to the objective.
    assert solution.surrogate_objective == pytest.approx(solution.objective, rel=1e-12)
    again = solve(X, y, "iterative", start=solution)
    assert again.n_surrogates == 1
    assert again.objective == pytest.approx(solution.objective, rel=1e-12)


def test_iterative_makes_at_most_max_iter_steps():
    X, y = data(n=300, p=8)
    solution = solve(X, y, "iterative", max_iter=1)
    assert solution.stopped == Stop.MAX_ITER
    assert solution.n_surrogates == 1


@pytest.mark.parametrize("seed", range(25))
def test_auto_is_never_worse_than_sorting_and_iterative(seed):
    problem = random_problem(seed, n_samples=50)
    given = arguments_of(problem)
    auto, chain = solve(**given), solve(**given, method="sorting+iterative")
    assert auto.objective <= chain.objective + 1e-10 * problem.null_objective


@pytest.mark.parametrize("seed", range(30))
def test_auto_finds_the_least_objective_of_small_problems(seed):
    problem = random_problem(seed)
    solution = solve(**arguments_of(problem))
    slack = 1e-8 * problem.null_objective
    assert solution.objective == pytest.approx(least_objective(problem), abs=slack)


def test_auto_ends_once_the_starts_agree():
    """One minimum and a few hundred samples: the first starts say all there is to say."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = np.maximum(X @ [1.0, -0.5, 0.5] + 0.5, 0.0) + 0.7 * rng.standard_normal(400)
    solution = solve(X, y, random_state=0)
    assert solution.stopped == Stop.SETTLED
    assert solution.n_surrogates < 100
    assert {solve(X, y, random_state=seed).objective for seed in range(5)} == {solution.objective}


def test_auto_goes_on_while_starts_find_other_minima():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 20)), rng.normal(0.5, 1.0, 300)
    solution = solve(X, y, random_state=0)
    assert solution.stopped == Stop.PATIENCE
    assert solution.n_surrogates > 200


@pytest.mark.parametrize("seed", range(8))
def test_auto_takes_more_starts_where_data_are_small(seed):
    """80 samples at low signal: five random states find the best fit that 300 starts do."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 4))
    y = X @ np.full(4, 0.5) + 0.3 + rng.standard_normal(80)
    best = solve(X, y, "multistart", n_starts=300, random_state=0).objective
    for random_state in range(5):
        assert solve(X, y, random_state=random_state).objective <= best * (1.0 + 1e-6)


def test_auto_ends_where_no_neighbour_is_better(monkeypatch):
    """Random starts do not come to the best fit of these data, which differs in one sample."""
    X, y = low_signal(5, 806)
    fit = solve(X, y, random_state=0)
    u = X @ fit.beta + fit.intercept
    nearest = np.argsort(np.where(y > 0, np.abs(u), np.inf))[: auto.N_NEAREST]
    actives = np.repeat((u > 0.0)[None], nearest.size, axis=0)
    actives[np.arange(nearest.size), nearest] ^= True
    found = SurrogateSolver(fit.problem).solve_each(actives)
    least = min(fit.problem.objective(one.beta, one.intercept) for one in found)
    assert least >= fit.objective * (1.0 - 1e-9)
    monkeypatch.setattr(auto, "neighbours", lambda *_: [])
    assert solve(X, y, random_state=0).objective > fit.objective * (1.0 + 1e-6)


def test_auto_ends_once_the_gap_is_closed():
    X, y = data(n=200, p=10, noise=0.05)
    solution = solve(X, y, fit_intercept=False)
    assert solution.stopped == Stop.TARGET
    assert solution.certificate.is_within(TARGET_GAP)
    # Ten splits, the best of which is followed.
    assert solution.n_surrogates < 20


def test_large_data_are_followed_in_one_batch(monkeypatch):
    """Each further batch would read the data again."""
    X, y = data(n=300, p=5)
    batches = []

    def counted(engine, sets, *args, **options):
        batches.append(len(sets))
        return follow_together(engine, sets, *args, **options)

    monkeypatch.setattr(routing, "LARGE_ENTRIES", 1)
    monkeypatch.setattr(auto, "follow_together", counted)
    solution = solve(X, y, random_state=0)
    assert batches == [2 * routing.LARGE_STARTS + 1]
    assert solution.stopped == Stop.STARTS


def test_minima_are_told_apart_by_where_paths_end():
    """Three paths: the second joins the first, the third ends elsewhere, higher by one part in a thousand."""
    known = Known(None, 10, 1e-8)
    basins = known._basins
    first, second, third = known._wide = [basins.begin() for _ in range(3)]
    assert basins.enter(first, b"a")
    assert basins.enter(second, b"b")
    assert basins.enter(third, b"c")
    for path, objective in ((first, 2.0), (second, 3.0), (third, 1.001)):
        basins.lower(path, objective)
    assert basins.enter(first, b"d")
    assert not basins.enter(second, b"d")
    basins.lower(first, 1.0)
    assert [basins.end_of(path) for path in (first, second, third)] == [1.0, 1.0, 1.001]
    # Two paths that go on as each other have the lower end of both.
    fourth, fifth = basins.begin(), basins.begin()
    for path, key, objective in ((fourth, b"e", 5.0), (fifth, b"f", 4.0)):
        assert basins.enter(path, key)
        basins.lower(path, objective)
    assert not basins.enter(fourth, b"f")
    assert not basins.enter(fifth, b"e")
    assert basins.end_of(fourth) == basins.end_of(fifth) == 4.0
    # Where active sets cannot be told apart, each is new.
    assert basins.enter(first, None)
    assert basins.enter(second, None)


def known_after(*objectives):
    """What is known after one start has ended at each of these objectives."""
    known = Known(None, 10, 1e-8)
    for objective in objectives:
        path = known._basins.begin()
        known._wide.append(path)
        known._basins.lower(path, objective)
    return known


@pytest.mark.parametrize(("n_minima", "n_starts"), [(1, 13), (2, 17), (3, 21)])
def test_so_many_starts_settle_so_many_minima(n_minima, n_starts):
    """w <= 0.0075 n (n - 1) for the first time."""
    ends = [1.0 + (start if start < n_minima else 1e-9 * start) for start in range(n_starts)]
    assert known_after(*ends).n_missing() == 0
    for n in range(n_minima, n_starts):
        assert known_after(*ends[:n]).n_missing() == n_starts - n


def test_half_of_the_starts_must_end_in_the_best_minimum():
    ends = [1.0] * 9 + [2.0] * 15
    assert known_after(*ends).n_missing() == 6
    assert known_after(*ends, *[1.0] * 5).n_missing() == 1
    assert known_after(*ends, *[1.0] * 6).n_missing() == 0
    # A near tie is another minimum, but no sign that better ones are rare.
    tied = known_after(*[1.0] * 10, *[1.0 + 5e-6] * 30, 2.0)
    assert tied.n_missing() == 0
    assert known_after(*[1.0] * 10, *[1.0 + 5e-5] * 30).n_missing() == 20


def test_minima_that_no_wide_start_comes_near_to_do_not_keep_the_search_going():
    known = known_after(*[1.0] * 20)
    for objective in (0.9, *[0.95] * 30):
        path = known._basins.begin()
        known._close.append(path)
        known._basins.lower(path, objective)
    # Close to other solutions a better one was found by chance, and there may be more of that kind.
    assert known.n_missing() > 0
    known._heavy = known._close[:1]
    assert known.n_missing() > 0
    known.in_vain = 100
    assert known.n_missing() == 0


@pytest.mark.parametrize(("n", "w"), [(8, 1), (12, 2), (12, 5), (20, 7)])
def test_the_expected_share_of_starts_that_find_a_better_minimum(n, w):
    """The prior of the number k of minima is uniform, and so is that of their basins; n draws have met w."""
    k = np.arange(w, 1_000_000, dtype=float)
    # C(k, w) / C(n + k - 1, n) is the probability of w minima up to a factor; their unseen share has the mean
    # (k - w) / (k + n), and each that was not met is better than all w others with probability 1 / (w + 1).
    log = gammaln(k + 1.0) - gammaln(k - w + 1.0) - gammaln(n + k) + gammaln(k)
    weight = np.exp(log - log.max())
    better = (weight * (k - w) / (k + n)).sum() / weight.sum() / (w + 1)
    assert better == pytest.approx(w / (n * (n - 1)), rel=1e-4)


def test_better_minima_in_a_simulated_urn():
    """How many draws would find a better minimum, where basins are as in the prior and the first is best."""
    rng, n, shares = np.random.default_rng(0), 12, {1: [], 2: [], 3: []}
    for _ in range(20_000):
        basins = rng.dirichlet(np.ones(rng.integers(1, 60)))
        met = np.unique(rng.choice(basins.size, size=n, p=basins))
        if met.size in shares:
            shares[met.size].append(basins[: met[0]].sum())
    for w, found in shares.items():
        assert np.mean(found) == pytest.approx(w / (n * (n - 1)), abs=4.0 * np.std(found) / len(found) ** 0.5)


def heavy_data():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1000, 6))
    y = np.maximum(X @ rng.standard_normal(6) + rng.standard_normal(1000), 0.0)
    return X, y, y * np.exp(1.5 * rng.standard_normal(1000))


def test_heavy_outcomes_have_finer_splits():
    """The sets of the 1, 2, 4, ..., 64 largest outcomes, below the hundred of the last split."""
    X, light, heavy = heavy_data()
    found = {}
    for name, y in (("light", light), ("heavy", heavy)):
        search = Search(RowsEngine(Problem.from_data(X, y)))
        found[name] = solve_largest(search, 10)
        assert search.n_surrogates == len(found[name])
    assert not found["light"]
    assert len(found["heavy"]) == 7
    solver = SurrogateSolver(Problem.from_data(X, heavy))
    for size, point in zip((1, 2, 4, 8, 16, 32, 64), found["heavy"], strict=True):
        value = solver.solve(heavy >= np.sort(heavy)[-size]).value
        assert point.objective <= value * (1.0 + 1e-9)


def test_auto_gives_the_same_fit_for_the_same_seed():
    X, y = data(n=150, p=6, noise=1.0)
    first, again = solve(X, y, random_state=3), solve(X, y, random_state=3)
    assert first.objective == again.objective
    assert first.n_surrogates == again.n_surrogates
    np.testing.assert_array_equal(first.beta, again.beta)


def test_chains_start_from_the_stage_before():
    X, y = data()
    sorting = solve(X, y, "sorting")
    chain = solve(X, y, "sorting+iterative")
    assert chain.objective <= sorting.objective
    by_hand = solve(X, y, "iterative", start=sorting)
    assert chain.objective == pytest.approx(by_hand.objective, rel=1e-12)
    assert {row.stage for row in chain.trace} == {"sorting", "iterative"}


@pytest.mark.parametrize("method", ["auto", "sorting", "iterative", "gd", "sgd", "multistart"])
def test_a_start_is_never_made_worse(method):
    X, y = data(n=100, p=6)
    best = solve(X, y)
    assert solve(X, y, method, start=best).objective <= best.objective * (1 + 1e-12)


def test_sorting_follows_the_papers_ranks():
    X, y = data(n=37)
    problem = Problem.from_data(X, y)
    order = np.argsort(y, kind="stable")
    sets = [active.mask for active in RowsEngine(problem).split_sets(10)]
    assert len(sets) == 11
    for t, active in enumerate(sets):
        expected = np.zeros(37, dtype=bool)
        expected[order[t * 37 // 10 :]] = True
        assert np.array_equal(active, expected & (y > 0))
    assert not sets[-1].any()


def test_the_first_gradient_step_is_the_papers():
    X, y = data(n=60, p=3)
    solution = solve(X, y, "gd", fit_intercept=False, max_iter=1)
    # At the origin sgn(0) = 0: half of the slope; then backtracking from eta = 1.
    g = X.T @ (-y) / 60
    eta = 1.0
    while np.sum((np.maximum(-eta * X @ g, 0) - y) ** 2) >= y @ y:
        eta *= 0.6
    np.testing.assert_allclose(solution.beta, -eta * g, rtol=1e-12)
    assert solution.stopped == Stop.MAX_ITER


def test_gradient_descent_decays_its_steps_and_stops_at_eps():
    X, y = data(n=100, p=5)
    solution = solve(X, y, "gd", eps=0.5, fit_intercept=False)
    falls = -np.diff([row.objective for row in solution.trace])
    assert solution.stopped == Stop.LITTLE
    assert np.all(falls[:-1] > 0.5)
    assert 0.0 < falls[-1] <= 0.5


@pytest.mark.parametrize("method", ["gd", "sgd"])
def test_weights_of_gradient_methods_are_repetitions(method):
    X, y = data(n=30, p=3)
    w = np.random.default_rng(0).integers(1, 4, size=30)
    weighted = solve(X, y, "gd", sample_weight=w, alpha=0.5)
    repeated = solve(X.repeat(w, axis=0), y.repeat(w), "gd", alpha=0.5)
    np.testing.assert_allclose(weighted.beta, repeated.beta, rtol=1e-8)
    assert solve(X, y, method, sample_weight=w, alpha=0.5).objective < np.sum(w * y**2)


def test_backtracking_is_capped():
    # No step along a batch of one can lower this objective: the other sample pulls the other way, harder.
    X, y = np.array([[1.0], [1.0]]), np.array([1.0, 1.0])
    solution = solve(X, y, "gd", fit_intercept=False, start=np.array([1.0]))
    assert solution.stopped == Stop.NO_DESCENT
    assert MAX_BACKTRACKS < 1000


def test_sgd_depends_on_its_seed_and_on_nothing_else():
    X, y = data(n=100, p=5)
    first, again = (solve(X, y, "sgd", random_state=1) for _ in range(2))
    other = solve(X, y, "sgd", random_state=2)
    assert np.array_equal(first.beta, again.beta)
    assert not np.array_equal(first.beta, other.beta)
    assert np.array_equal(solve(X, y, "sgd").beta, solve(X, y, "sgd").beta)


@pytest.mark.parametrize("batch", [1, 10, 100])
def test_sgd_takes_its_batch(batch):
    X, y = data(n=100, p=5)
    solution = solve(X, y, "sgd", batch=batch)
    assert solution.objective <= y @ y
    if batch == 100:
        # Every sample in every batch: gradient descent.
        assert solution.objective == pytest.approx(solve(X, y, "gd").objective, rel=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_multistart_is_the_best_of_its_starts(n_jobs):
    X, y = data(n=150, p=6, noise=2.0)
    few = solve(X, y, "multistart", n_starts=1)
    many = solve(X, y, "multistart", n_starts=60, n_jobs=n_jobs)
    assert few.objective <= solve(X, y, "iterative", max_iter=100).objective * (1 + 1e-10)
    assert many.objective <= min(few.objective, solve(X, y, "sorting+iterative").objective) * (1 + 1e-12)
    assert many.objective == pytest.approx(solve(X, y, "multistart", n_starts=60).objective, rel=1e-12)


def test_multistart_does_not_depend_on_threads():
    """Of several minimisers, the one that is found must not depend on what an engine has done before."""
    X, y = data(seed=38, n=150, p=6, noise=2.0)
    one, three = (solve(X, y, "multistart", n_starts=60, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert one.objective == three.objective
    np.testing.assert_array_equal(one.beta, three.beta)


@pytest.mark.parametrize("random_state", [None, 3, np.random.RandomState(3), np.random.default_rng(3)])
def test_random_states(random_state):
    X, y = data()
    assert solve(X, y, random_state=random_state).objective < y @ y


def test_units_do_not_matter():
    X, y = data(n=120, p=5, noise=1.0)
    units = np.array([1e-6, 1.0, 1e3, 1e8, 7.0])
    plain, scaled = solve(X, y), solve(X * units, 1e-3 * y)
    assert scaled.objective == pytest.approx(1e-6 * plain.objective, rel=1e-9)
    np.testing.assert_allclose(scaled.beta * units, 1e-3 * plain.beta, rtol=1e-6)


def test_time_limit_returns_a_valid_solution():
    X, y = data(n=2000, p=30)
    for method in METHODS:
        solution = solve(X, y, method, time_limit=1e-6)
        assert solution.stopped in (Stop.TIME_LIMIT, Stop.LITTLE)
        solution.verify()


def interrupt_soon():
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_interrupt_returns_the_best_so_far(n_jobs):
    X, y = data(n=400, p=10)
    solve(X, y, "sorting")
    timer = interrupt_soon()
    solution = solve(X, y, "approximation", k=4, n_jobs=n_jobs)
    timer.join()
    assert solution.stopped == Stop.INTERRUPTED
    assert solution.guarantee is None
    assert solution.objective < y @ y
    solution.verify()


def test_target_gap_ends_the_search():
    X, y = data(n=100, p=3)
    y = y - 10 * (y <= 0)
    solution = solve(X, y, target_gap=0.9)
    assert solution.stopped == Stop.TARGET
    assert solution.certificate.status == "optimal"
    assert solution.certificate.gap <= 0.9


def test_dead_neurons_are_warned_about():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(ConvergenceWarning, match="no outcome is positive"):
        solution = solve(X, -np.ones(20))
    assert solution.objective == 20.0
    assert solution.certificate.status == "optimal"
    with pytest.warns(ConvergenceWarning, match="although 1 outcomes are positive"):
        solve([[0.0], [0.0]], [1.0, -1.0], fit_intercept=False)


DEGENERATE = {
    "all positive": ([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0]),
    "one sample": ([[2.0]], [3.0]),
    "constant column": ([[1.0, 5.0], [2.0, 5.0], [-1.0, 5.0]], [1.0, 2.0, 0.0]),
    "zero column": ([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]], [1.0, 2.0, 0.0]),
    "duplicate rows": ([[1.0]] * 4 + [[-1.0]] * 4, [1.0, 2.0, 1.0, 2.0, 0.0, 0.0, 1.0, 1.0]),
    "dependent columns": ([[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0]], [1.0, 2.0, 0.0]),
    "more columns than rows": (np.eye(2, 5).tolist(), [1.0, -1.0]),
    "tiny": ([[1e-150], [2e-150], [-1e-150]], [1e-150, 2e-150, 0.0]),
    "huge": ([[1e150], [2e150], [-1e150]], [1e150, 2e150, 0.0]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("method", ["auto", "sorting+iterative", "approximation", "gd", "multistart"])
def test_degenerate_data_are_solved(name, method):
    X, y = DEGENERATE[name]
    solution = solve(X, y, method, k=2)
    solution.verify()
    assert np.isfinite(solution.objective)
    if method == "auto":
        assert solution.objective <= np.sum(np.square(y))


def test_the_shortest_of_equal_solutions():
    # Five unknowns, one positive sample: the minimum-norm interpolation, and the other sample stays off.
    X, y = np.array([[3.0, 4.0, 0.0], [3.0, -4.0, 0.0]]), np.array([5.0, 0.0])
    solution = solve(X, y, fit_intercept=False)
    assert solution.objective <= 1e-20
    # Columns have lengths sqrt(18), sqrt(32), 0: in those units rows are (1, 1) and (1, -1) over sqrt(2).
    np.testing.assert_allclose(solution.beta, [5 / 6, 5 / 8, 0.0], atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_equal_columns_share_their_coefficient(seed):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(80, 1))
    y = np.maximum(x[:, 0] + 0.3, 0.0) + 0.5 * draw.normal(size=80)
    solution = solve(np.hstack([x, x]), y)
    assert solution.beta[0] == pytest.approx(solution.beta[1], rel=1e-9)
    assert solution.objective == pytest.approx(solve(x, y).objective, rel=1e-10)


def test_starts_in_all_forms():
    X, y = data(n=60, p=2)
    fitted = ReLURegressor("iterative").fit(X, y)
    pair = (fitted.coef_, fitted.intercept_)
    for start in (fitted, fitted.solution_, pair, list(pair), [fitted.coef_.tolist(), fitted.intercept_]):
        assert solve(X, y, "iterative", start=start).n_surrogates == 1
    assert solve(X, y, "iterative", start=(1.0, 2.0)).objective < y @ y


def test_a_solution_cannot_be_changed_and_data_are_named_when_they_were():
    X, y = data()
    solution = solve(X, y)
    with pytest.raises(ValueError, match="read-only"):
        solution.beta[0] = 0.0
    X *= 2.0
    with pytest.raises(ValueError, match="unless the data were changed"):
        solution.verify()


def test_samples_exactly_at_zero_are_tried_on_both_sides():
    X = [
        [1, -1, -1, 1],
        [-1, 0, 0, 0],
        [1, 0, 1, -1],
        [1, 1, -1, 1],
        [0, -1, -1, 0],
        [0, 1, -1, 0],
        [1, 1, 0, -1],
    ]
    y = [2, 2, 1, 0, -1, 0, 2]
    problem = Problem.from_data(X, y, fit_intercept=False)
    least = least_objective(problem)
    for seed in range(6):
        solution = solve(X, y, fit_intercept=False, random_state=seed)
        assert solution.objective == pytest.approx(least, abs=1e-9)


ERRORS = [
    ({"method": "newton"}, ValueError, ["method", "'newton'", "'sorting'"]),
    ({"method": "sorting+"}, ValueError, ["method", "''", "joined by"]),
    ({"method": 3}, TypeError, ["method", "3", "string"]),
    ({"k": 0}, ValueError, ["k is 0", "at least 1"]),
    ({"k": 1.5}, TypeError, ["k is 1.5", "whole number"]),
    ({"k": True}, TypeError, ["k is True", "whole number"]),
    ({"n_splits": 0}, ValueError, ["n_splits is 0", "at least 1"]),
    ({"n_splits": 81}, ValueError, ["n_splits is 81", "at most 80"]),
    ({"n_starts": 0}, ValueError, ["n_starts is 0", "at least 1"]),
    ({"max_iter": 0}, ValueError, ["max_iter is 0", "at least 1"]),
    ({"tol": -1.0}, ValueError, ["tol is -1.0", "at least 0"]),
    ({"eps": "a"}, TypeError, ["eps is 'a'", "number"]),
    ({"eta0": 0.0}, ValueError, ["eta0 is 0.0", "above 0"]),
    ({"gamma": np.nan}, ValueError, ["gamma is nan", "finite"]),
    ({"shrink": 1.0}, ValueError, ["shrink is 1.0", "below 1"]),
    ({"batch": 0}, ValueError, ["batch is 0", "at least 1"]),
    ({"time_limit": 0}, ValueError, ["time_limit is 0", "above 0"]),
    ({"target_gap": -0.1}, ValueError, ["target_gap is -0.1", "at least 0"]),
    ({"random_state": "x"}, ValueError, ["random_state is 'x'", "seed"]),
    ({"n_jobs": 0}, ValueError, ["n_jobs is 0", "-1"]),
    ({"n_jobs": 1.5}, TypeError, ["n_jobs is 1.5", "-1"]),
    ({"verbose": -1}, ValueError, ["verbose is -1", "at least 0"]),
    ({"start": [1.0]}, ValueError, ["start has 1 coefficients", "4"]),
    ({"start": (np.ones(4), "a")}, TypeError, ["start has intercept 'a'", "number"]),
    ({"start": (np.ones(4), None)}, TypeError, ["start has intercept None", "number"]),
    ({"start": (np.ones(4), np.inf)}, ValueError, ["start has intercept inf", "finite"]),
    ({"start": [1e308, -1e308, 1e308, 1e308]}, ValueError, ["start has an objective", "not finite"]),
    ({"start": [[1.0], [1.0, 2.0], [3.0]]}, ValueError, ["start", "ragged"]),
    ({"n_splits": np.array([1, 2])}, TypeError, ["n_splits", "whole number"]),
    ({"random_state": True}, ValueError, ["random_state is True", "seed"]),
]


@pytest.mark.parametrize(("arguments", "error", "words"), ERRORS)
def test_bad_options_are_refused_in_one_sentence(arguments, error, words):
    X, y = data()
    with pytest.raises(error) as caught:
        solve(X, y, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_many_rows_that_do_not_determine_the_coefficients():
    # A matrix with a number per pair of these rows would not fit in memory.
    X = np.repeat(np.arange(400_000.0)[:, None], 2, axis=1)
    solution = solve(X, X[:, 0], "sorting", n_splits=1)
    assert solution.objective == pytest.approx(0.0, abs=1e-6)
    assert solution.beta == pytest.approx([0.5, 0.5])
