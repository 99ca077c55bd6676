from itertools import combinations

import numpy as np
import pytest
from brute import least_objective, random_problem

from rectifit import Problem, SurrogateSolver, solve
from rectifit.datasets import make_relu
from rectifit.methods.approximation import Approximation, Enumeration, count_sets, describe_endless
from rectifit.methods.search import Search
from rectifit.running import LongRunWarning
from rectifit.solution import Solution, Stop
from rectifit.surrogate.neighbours import Neighbours
from rectifit.surrogate.rows_engine import RowsEngine, ascending


def run(problem, stage, **options):
    search = Search(RowsEngine(problem), **options)
    stopped = search.run([("stage", stage)])
    return search, Solution.of(search.finish("stage", stopped))


def enumerated_sets(problem, k):
    """The active sets of A1 as the paper has them, duplicates and all."""
    order = ascending(problem)
    members = order[problem.positive[order]]
    m = members.size
    sets = []
    for j in range(1, k + 1):
        for chosen in combinations(range(m + 1), j):
            active = np.zeros(problem.n_samples, dtype=bool)
            active[members] = True
            active[members[: chosen[0]]] = False
            active[members[[i - 1 for i in chosen[1:]]]] = False
            sets.append(active)
    return np.array(sets)


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_ratio_against_brute_force(seed, k):
    problem = random_problem(seed)
    _, solution = run(problem, Approximation(k))
    least = least_objective(problem)
    slack = 1e-9 * problem.null_objective
    n, m = (problem.root_weight > 0).sum(), (problem.positive & (problem.root_weight > 0)).sum()
    ratio = 1.0 if k >= m else max(1.0, n / k)
    assert solution.guarantee == ratio
    assert least - slack <= solution.objective <= solution.surrogate_objective + slack
    assert solution.surrogate_objective <= ratio * least + slack
    assert solution.certificate.lower_bound <= least + slack
    solution.verify()


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_result_is_that_of_the_papers_enumeration(seed, k):
    problem = random_problem(seed)
    _, solution = run(problem, Approximation(k))
    all_of_them = SurrogateSolver(problem).solve_each(enumerated_sets(problem, k))
    scale = problem.null_objective
    assert solution.surrogate_objective == pytest.approx(min(s.value for s in all_of_them), abs=1e-9 * scale)
    if problem.alpha > 0.0:
        # Then minimisers are unique, and so is the least of their true objectives.
        objectives = [problem.objective(s.beta, s.intercept) for s in all_of_them]
        assert solution.objective == pytest.approx(min(objectives), abs=1e-8 * scale)


@pytest.mark.parametrize("seed", range(100, 150))
@pytest.mark.parametrize("k", [2, 3])
def test_skipping_changes_nothing(seed, k):
    problem = random_problem(seed, n_samples=35 if k == 2 else 18)
    quick, solution = run(problem, Approximation(k))
    plain, expected = run(problem, Approximation(k, skip=False))
    scale = problem.null_objective
    assert solution.objective == pytest.approx(expected.objective, abs=1e-8 * scale)
    assert solution.surrogate_objective == pytest.approx(expected.surrogate_objective, abs=1e-8 * scale)
    assert solution.guarantee == expected.guarantee
    assert quick.n_surrogates <= plain.n_surrogates


@pytest.mark.parametrize("design", ["ternary", "gaussian"])
def test_most_sets_are_skipped_on_the_papers_instances(design):
    X, y, *_ = make_relu(200, 10, noise=0.5, design=design, random_state=0)
    problem = Problem.from_data(X, y, fit_intercept=False)
    quick, solution = run(problem, Approximation(2))
    plain, expected = run(problem, Approximation(2, skip=False))
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)
    assert solution.surrogate_objective == pytest.approx(expected.surrogate_objective, rel=1e-9)
    assert quick.n_surrogates < 0.3 * plain.n_surrogates
    m = int((y > 0).sum())
    # Each set once: prefixes, and one more sample that is not next to the prefix.
    assert plain.n_surrogates == (m + 1) + m * (m - 1) // 2 == Enumeration(plain, 2, False).total


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_neighbours_hold(seed):
    """No neighbour has a smaller minimum, or a smaller true objective, than a value it is dismissed for."""
    problem = random_problem(seed, n_samples=40)
    solver = SurrogateSolver(problem)
    order = ascending(problem)
    members = order[problem.positive[order]]
    Z = solver.rows.rows(members)
    slack = 1e-8 * problem.null_objective
    for first in range(0, members.size - 2, 5):
        active = np.zeros(problem.n_samples, dtype=bool)
        active[members[first:]] = True
        base = solver.solve(active)
        objective = problem.objective(base.beta, base.intercept)
        neighbours = Neighbours(solver, members, Z, first, base, objective)
        if not neighbours.is_regular:
            continue
        for lead in [(), (first + 1,)]:
            removal = neighbours.nothing_removed()
            for member in lead:
                removal = neighbours.without(removal, member)
            after = first + 1 + len(lead)
            for share in (0.5, 0.9, 0.99, 1.01):
                values = share * base.value, share * objective
                dismissed = ~neighbours.matter(removal, after, *values)
                for last in (after + np.flatnonzero(dismissed)).tolist():
                    there = active.copy()
                    there[members[[*lead, last]]] = False
                    solution = solver.solve(there)
                    assert solution.value > values[0] - slack
                    assert problem.objective(solution.beta, solution.intercept) > values[1] - slack


def small_problem(seed):
    """Few samples, so that a single one moves the minimum far, over kinks as well."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 10)), int(rng.integers(1, 3))
    A = rng.normal(size=(n, p))
    outcomes = np.where(rng.random(n) < 0.9, 1.0, -1.0) * rng.exponential(size=n)
    if seed % 2:
        outcomes = np.maximum(A @ rng.normal(size=p) + rng.normal(), 0.0) + 0.5 * rng.normal(size=n)
    intercept, alpha = bool(rng.integers(2)), float(rng.choice([0.0, 0.1]))
    return Problem.from_data(A, outcomes, fit_intercept=intercept, alpha=alpha)


@pytest.mark.parametrize("seed", range(150))
def test_no_neighbour_is_dismissed_that_is_the_least_by_a_hair(seed):
    """Asked with its own minimum, or its own objective, a little above: the edge of the rule.

    Many of these bounds are tight: nothing but quadratics between a minimum and its neighbour's, or a sample
    that crosses its kink and costs less than its tangent says (seeds 21, 45, 55, 104, 112).
    """
    problem = small_problem(seed)
    solver, order = SurrogateSolver(problem), ascending(problem)
    members = order[problem.positive[order]]
    Z = solver.rows.rows(members)
    for first in range(members.size - 1):
        active = np.zeros(problem.n_samples, dtype=bool)
        active[members[first:]] = True
        base = solver.solve(active)
        objective = problem.objective(base.beta, base.intercept)
        neighbours = Neighbours(solver, members, Z, first, base, objective)
        if not neighbours.is_regular:
            continue
        leads = [(), *((lead,) for lead in range(first + 1, min(first + 3, members.size - 1)))]
        for lead in leads:
            removal = neighbours.nothing_removed()
            for member in lead:
                removal = neighbours.without(removal, member)
            after = (lead[-1] if lead else first) + 1
            for last in range(after, members.size):
                there = active.copy()
                there[members[[*lead, last]]] = False
                solution = solver.solve(there)
                true = problem.objective(solution.beta, solution.intercept)
                hair = 1e-6 * problem.null_objective
                assert neighbours.matter(removal, after, solution.value + hair, -np.inf)[last - after]
                assert neighbours.matter(removal, after, -np.inf, true + hair)[last - after]


@pytest.mark.parametrize("weighted", [False, True])
def test_sorting_with_as_many_splits_as_samples_is_the_approximation_with_k_1(weighted):
    for seed in range(20):
        X, y, *_ = make_relu(40, 4, noise=0.4, random_state=seed)
        w = np.random.default_rng(seed).exponential(size=40) if weighted else None
        a = solve(X, y, "sorting", n_splits=40, sample_weight=w)
        b = solve(X, y, "approximation", k=1, sample_weight=w)
        assert a.objective == pytest.approx(b.objective, rel=1e-10)
        assert a.surrogate_objective == pytest.approx(b.surrogate_objective, rel=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_do_not_change_the_result(n_jobs):
    X, y, *_ = make_relu(120, 6, noise=0.5, random_state=3)
    one = solve(X, y, "approximation", k=2)
    many = solve(X, y, "approximation", k=2, n_jobs=n_jobs)
    assert many.objective == pytest.approx(one.objective, rel=1e-12)
    assert many.n_surrogates == one.n_surrogates
    assert many.guarantee == one.guarantee == 60.0


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_enumeration_cut_short_claims_no_guarantee(n_jobs):
    X, y, *_ = make_relu(300, 10, noise=0.5, random_state=0)
    solution = solve(X, y, "approximation", k=4, time_limit=0.5, n_jobs=n_jobs)
    assert solution.stopped == Stop.TIME_LIMIT
    assert solution.guarantee is None
    assert solution.seconds < 10.0
    assert solution.objective <= solve(X, y, "approximation", k=1).objective
    solution.verify()


def test_order_with_weights_is_by_weighted_square():
    problem = Problem.from_data(np.ones((5, 1)), [1.0, 2.0, 3.0, -1.0, 4.0], sample_weight=[25, 4, 1, 1, 0])
    # sqrt(w) y = 5, 4, 3, -1; the last sample has no weight.
    assert ascending(problem).tolist() == [3, 2, 1, 0]


def test_k_beyond_the_positive_samples_is_exact():
    problem = random_problem(7)
    _, solution = run(problem, Approximation(10**9))
    assert solution.guarantee == 1.0
    assert solution.objective == pytest.approx(least_objective(problem), abs=1e-9 * problem.null_objective)
    assert solution.certificate.gap < 1e-8


@pytest.mark.parametrize("k", [1, 2, 3, 4, 9])
def test_active_sets_are_counted_without_listing_them(k):
    for seed in range(10):
        problem = random_problem(seed)
        listed = np.unique(enumerated_sets(problem, k), axis=0)
        n_positive = np.count_nonzero(problem.positive[ascending(problem)])
        assert count_sets(int(n_positive), k) == len(listed)


@pytest.mark.parametrize(
    ("n_positive", "k", "words"),
    [
        (1454, 5, "k = 5 means 53,969,689,512,281 active sets, which take 624 days"),
        (3000, 3000, "k = 3000 means about 1e903 active sets"),
        (100_000, 50_000, "k = 50000 means about 1e30103 active sets"),
    ],
)
def test_what_cannot_end_is_described_at_once(n_positive, k, words):
    sentence = describe_endless(n_positive, k)
    assert words in sentence
    smaller = 2 if n_positive < 4000 else 1
    assert sentence.endswith(f"k = {smaller} means {count_sets(n_positive, smaller):,}")


def test_a_long_enumeration_warns_and_ends_with_its_time_limit():
    X, y, *_ = make_relu(3000, 2, noise=1.0, random_state=0)
    with pytest.warns(LongRunWarning, match="means about 1e[0-9]+ active sets"):
        solution = solve(X, y, "approximation", k=3000, time_limit=0.5)
    assert solution.stopped is Stop.TIME_LIMIT
    assert solution.guarantee is None
