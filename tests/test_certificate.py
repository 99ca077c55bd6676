import os
import signal
import threading
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from brute import all_active_sets, least_in_space, least_objective, random_problem
from exact import exact_objective
from peers import prove_by_scip

from rectifit import Problem, SurrogateSolver, certify, routing, solve
from rectifit.certificate import best_first, branching, cells, driver, search, transfer
from rectifit.certificate.arrangement import least_in_plane
from rectifit.certificate.ascent_kernel import ascend, decide
from rectifit.certificate.best_first import first_kinds
from rectifit.certificate.box import Box
from rectifit.certificate.envelope import CONVEX, FAR_FREE, FREE, LIMIT, OFF, ON
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.records import VALUE, AscentState, AscentWork, KernelRows, Samples
from rectifit.certificate.relaxation import Region, Relaxation, Start
from rectifit.certificate.tighten import (
    MAX_TILTS,
    heaviest,
    shrink_by_box,
    shrink_by_cost,
    shrink_by_ellipsoid,
    shrink_by_tilts,
)
from rectifit.certificate.transfer import Transfer, first_transfer
from rectifit.datasets import make_relu
from rectifit.solution import Stop

pytestmark = pytest.mark.filterwarnings(
    "ignore:the fit is the zero function", "ignore:no outcome is positive"
)


def certify_problem(problem, start=None, **options):
    return certify(
        problem.X,
        problem.y,
        start,
        sample_weight=problem.sample_weight,
        fit_intercept=problem.fit_intercept,
        alpha=problem.alpha,
        **options,
    )


def assert_sound(problem, certificate, least):
    slack = 1e-8 * problem.null_objective
    assert certificate.lower_bound <= least + slack
    assert certificate.objective >= least - slack
    if certificate.status == "optimal":
        assert certificate.objective <= least * (1 + 1.01 * certificate.target_gap) + slack
    certificate.solution.verify()


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("start", ["best", "zero"])
def test_against_brute_force(seed, start):
    problem = random_problem(seed)
    zero = np.zeros(problem.n_features) if start == "zero" else None
    certificate = certify_problem(problem, zero)
    assert certificate.status == "optimal"
    assert_sound(problem, certificate, least_objective(problem))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(20))
def test_against_brute_force_many_times(chunk):
    for seed in range(1000 + 100 * chunk, 1100 + 100 * chunk):
        problem = random_problem(seed)
        zero = np.zeros(problem.n_features) if seed % 2 else None
        certificate = certify_problem(problem, zero)
        assert certificate.status == "optimal", seed
        assert_sound(problem, certificate, least_objective(problem))


def plane_problem(seed, n=40):
    draw = np.random.default_rng(seed)
    intercept = bool(seed % 2)
    X = draw.normal(size=(n, 1 if intercept else 2))
    y = np.maximum(X @ draw.normal(size=X.shape[1]), 0.0) + draw.normal(size=n)
    alpha = float(draw.choice([0.0, 0.5]))
    return Problem.from_data(X, y, fit_intercept=intercept, alpha=alpha)


@pytest.mark.parametrize("seed", range(30))
def test_against_the_arrangement_in_the_plane(seed, monkeypatch):
    problem = plane_problem(seed)
    A = np.column_stack([problem.X, np.ones(40)]) if problem.fit_intercept else problem.X
    ridge = problem.alpha * np.diag([1.0] * problem.n_features + [0.0] * int(problem.fit_intercept))
    least, b, lowest = least_in_plane(A, problem.y, ridge)
    assert lowest == pytest.approx(least, rel=1e-10)
    p = problem.n_features
    assert problem.objective(b[:p], float(b[p:].sum())) == pytest.approx(least, rel=1e-12)
    certificate = certify_problem(problem)
    assert certificate.status == "optimal"
    assert_sound(problem, certificate, least)
    monkeypatch.setattr(routing, "PLANE_COLUMNS", 0)
    assert_sound(problem, certify_problem(problem, time_limit=0.5), least)
    if problem.positive.sum() <= 12:
        assert least == pytest.approx(least_objective(problem), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_arrangement_is_the_least_of_a_fine_grid(seed):
    problem = plane_problem(seed, n=8)
    A = np.column_stack([problem.X, np.ones(8)]) if problem.fit_intercept else problem.X
    least, _, _ = least_in_plane(A, problem.y, np.zeros((2, 2)))
    turn = np.linspace(0.0, 2.0 * np.pi, 20001)
    fitted = np.maximum(np.column_stack([np.cos(turn), np.sin(turn)]) @ A.T, 0.0)
    scale = np.maximum(fitted @ problem.y, 0.0) / np.maximum(np.square(fitted).sum(axis=1), 1e-300)
    grid = np.square(scale[:, None] * fitted - problem.y).sum(axis=1).min()
    assert least <= grid + 1e-12
    assert least == pytest.approx(grid, rel=1e-3)


@pytest.mark.parametrize("seed", [0, 4, 15, 44, 59])
def test_rows_that_are_nearly_parallel_have_a_bound_in_the_plane(seed):
    """Samples that hardly determine the coefficients are fitted by large ones."""
    draw = np.random.default_rng(seed)
    size = 10.0 ** -draw.integers(3, 13)
    n = int(draw.integers(4, 9))
    X, k = draw.normal(size=(n, 2)), int(draw.integers(2, n))
    X[:k] = X[0] * (0.5 * draw.normal(size=(k, 1)) + 1.0) + size * draw.normal(size=(k, 2))
    draw.normal(size=2)
    y = np.maximum(X @ [-X[0, 1], X[0, 0]] * (draw.normal() / size), 0.0)
    y = np.where(y > 1e3 * np.median(np.abs(y)), 0.0, y) + 0.01 * draw.normal(size=n)
    y[k:] = -np.abs(draw.normal(size=n - k))
    problem = Problem.from_data(X, y, fit_intercept=False)
    found = SurrogateSolver(problem).solve_each(all_active_sets(problem))
    best = sorted(found, key=lambda s: problem.objective(s.beta))[:3]
    least = min(exact_objective(problem, s.beta, 0.0) for s in best)
    reduced = reduce_rows(problem)
    plane = least_in_plane(reduced.Z, reduced.y, reduced.ridge)
    assert plane.lowest <= plane.value
    assert Fraction(reduced.objective(plane.lowest)) <= least
    assert certify_problem(problem, time_limit=0.5).lower_bound <= least


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rows_with_weights_have_all_digits_where_columns_nearly_cancel(fit_intercept):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(20, 3))
    X[:, 2] = X[:, 0] + X[:, 1] + 1e-6 * draw.normal(size=20)
    w = 10.0 ** draw.uniform(-6.0, 6.0, size=20)
    reduced = reduce_rows(
        Problem.from_data(X, draw.normal(size=20), sample_weight=w, fit_intercept=fit_intercept)
    )
    exact = np.frompyfunc(Fraction, 1, 1)
    A = np.column_stack([reduced.rows, np.ones((20, int(fit_intercept)))])
    products = exact(A) @ exact(reduced.to_coefficients)
    rows = (exact(reduced.roots)[:, None] * products).astype(float)
    np.testing.assert_allclose(reduced.Z, rows, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("seed", range(12))
def test_against_the_arrangement_in_space(seed):
    draw = np.random.default_rng(seed)
    intercept = bool(seed % 2)
    X = draw.normal(size=(40, 2 if intercept else 3))
    y = np.maximum(X @ draw.normal(size=X.shape[1]), 0.0) + draw.choice([0.3, 1.0]) * draw.normal(size=40)
    problem = Problem.from_data(X, y, fit_intercept=intercept, alpha=float(draw.choice([0.0, 0.5])))
    least = least_in_space(problem)
    for start in (None, np.zeros(X.shape[1])):
        certificate = certify_problem(problem, start, time_limit=60)
        assert certificate.status == "optimal"
        assert_sound(problem, certificate, least)


def test_the_arrangement_in_space_is_brute_force():
    for seed in range(10):
        draw = np.random.default_rng(seed)
        problem = Problem.from_data(
            draw.normal(size=(9, 3)), draw.normal(0.5, 1, size=9), fit_intercept=False
        )
        assert least_in_space(problem) == pytest.approx(least_objective(problem), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "n", "noise"), [(3, 60, 0.3), (4, 60, 0.3), (5, 60, 0.1)])
def test_against_scip(p, n, noise):
    X, y, *_ = make_relu(n, p, noise=noise, random_state=p)
    certificate = certify(X, y, fit_intercept=False)
    found = prove_by_scip(X, y, limit=60.0)
    assert certificate.status == "optimal"
    assert certificate.lower_bound <= found.objective * (1 + 1e-6)
    assert found.lower_bound <= certificate.objective * (1 + 1e-6)
    if found.gap <= 1e-4:
        assert found.objective == pytest.approx(certificate.objective, rel=2.1e-4)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_box(intercept):
    draw = np.random.default_rng(0)
    X = draw.normal(3.0, 2.0, size=(80, 4))
    weight = draw.uniform(0.5, 2.0, size=80)
    y = np.maximum((X - 3.0) @ [1.0, -1.0, 0.5, 0.2], 0.0) + 0.3 * draw.normal(size=80)
    data = {"sample_weight": weight, "fit_intercept": intercept, "target_gap": 1e-3}
    best = solve(X, y, sample_weight=weight, fit_intercept=intercept)
    certificate = certify(X, y, best, box=5.0, **data)
    assert certificate.status == "optimal"
    assert certificate.box == 5.0
    assert str(certificate).endswith(", among coefficients of standardised size up to 5")
    assert certificate.lower_bound <= best.objective * (1 + 1e-9)
    box = Box.around(best.problem, 5.0)
    size = box.measure(best.beta, best.intercept)
    assert 0.0 < size < 5.0
    with pytest.raises(ValueError, match=r"box is 0.01, but the fit in question has a standardised coeff"):
        certify(X, y, best, box=0.01, **data)
    with pytest.raises(ValueError, match="box"):
        certify(X, y, best, box=0.0, **data)
    # No coefficients of this size reach further, and some reach all of it.
    reach = box.reach(X)
    for signs in draw.choice([-1.0, 1.0], size=(200, 5)):
        beta = 5.0 * box.unit * signs[:4] / box.spread
        intercept_ = 5.0 * box.unit * signs[4] - box.mean @ beta if intercept else 0.0
        assert box.measure(beta, intercept_) == pytest.approx(5.0)
        assert np.all(np.abs(X @ beta + intercept_) <= reach * (1 + 1e-9))
    away = np.append(np.sign(X[0] - box.mean), 1.0) * 5.0 * box.unit
    beta = away[:4] / box.spread
    u = X[0] @ beta + (away[4] - box.mean @ beta if intercept else 0.0)
    assert u == pytest.approx(reach[0])


def test_several_threads_prove_the_same():
    X, y, *_ = make_relu(160, 8, noise=0.5, random_state=1)
    best = solve(X, y)
    alone, together = (certify(X, y, best, n_jobs=n, target_gap=1e-3, time_limit=60) for n in (1, 2))
    assert alone.status == together.status == "optimal"
    assert together.objective == pytest.approx(alone.objective, rel=1e-3)
    assert together.lower_bound <= alone.objective * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_the_papers_instances_are_closed(seed, noise):
    X, y, *_ = make_relu(100, 5, noise=noise, random_state=seed)
    best = solve(X, y, fit_intercept=False)
    certificate = certify(X, y, best, fit_intercept=False)
    assert certificate.status == "optimal"
    assert certificate.box is None
    assert certificate.gap <= 1e-4 * (1 + 1e-9)
    # From nothing, the same optimum.
    blind = certify(X, y, np.zeros(5), fit_intercept=False)
    assert blind.objective == pytest.approx(certificate.objective, rel=1.01e-4)
    assert blind.lower_bound <= certificate.objective * (1 + 1e-9)
    assert certificate.lower_bound <= blind.objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_one_sign_give_no_false_certificate(seed):
    draw = np.random.default_rng(seed)
    X = np.abs(draw.normal(size=(100, 5)))
    u = X @ draw.normal(0.5, 3.0, size=5)
    y = np.maximum(u, 0.0) + 0.5 * u.std() * draw.normal(size=100)
    best = solve(X, y, fit_intercept=False)
    for start in (best, np.zeros(5)):
        certificate = certify(X, y, start, fit_intercept=False, time_limit=3)
        assert certificate.lower_bound <= best.objective * (1 + 1e-9)
        certificate.solution.verify()
    tries = [solve(X, y, "multistart", n_starts=200, random_state=i, fit_intercept=False) for i in range(3)]
    assert certificate.lower_bound <= min(s.objective for s in tries) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_dummies_and_an_intercept(seed):
    draw = np.random.default_rng(seed)
    kinds = np.eye(3)[draw.integers(0, 3, size=12)]
    X = np.column_stack([kinds, draw.normal(size=12)])
    y = np.maximum(X @ draw.normal(size=4), 0.0) + 0.5 * draw.normal(size=12)
    problem = Problem.from_data(X, y)
    certificate = certify_problem(problem)
    assert certificate.box is None
    assert_sound(problem, certificate, least_objective(problem))


def categories_problem(seed):
    """Small data with an intercept, dummies or whole numbers, so that many samples can be off together."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(9, 13))
    kinds = draw.integers(0, 3, size=n)
    designs = (
        np.column_stack([kinds == 1, kinds == 2, draw.normal(size=n)]),
        np.column_stack([draw.random((n, 2)) < 0.4, draw.normal(size=n)]),
        draw.integers(0, 3, size=(n, 2)),
    )
    X = designs[seed % 3].astype(float)
    noise, alpha = draw.choice([0.3, 1.0]), float(draw.choice([0.0, 0.0, 0.2]))
    y = np.maximum(X @ draw.normal(size=X.shape[1]) + 0.3, 0.0) + noise * draw.normal(size=n)
    return Problem.from_data(X, y if seed % 2 else np.maximum(y, 0.0), alpha=alpha)


def test_slabs_and_cells_together_against_brute_force(monkeypatch):
    """Pieces of work are so small that both go on in turn and use what the other has proved."""
    monkeypatch.setattr(branching, "MAX_FREE_WITHOUT_SLABS", 0)
    monkeypatch.setattr(search, "FIRST_PIECE_PER_SAMPLE", 0)
    monkeypatch.setattr(search, "SCALE_STEP", 500)
    cut_at, n_cuts = branching.SignSearch.cut_at, []

    def watched(self, least_mean):
        n_cuts.append(least_mean > self.least_mean)
        cut_at(self, least_mean)

    monkeypatch.setattr(branching.SignSearch, "cut_at", watched)
    for seed in range(20):
        draw = np.random.default_rng(seed)
        monkeypatch.setattr(search, "MIN_FIRST_PIECE", int(draw.choice([1, 50])))
        monkeypatch.setattr(cells, "FIRST_SCALE_WORK", int(draw.choice([1000, 1_000_000])))
        monkeypatch.setattr(cells, "MIN_FACE_CELLS", int(draw.choice([1, 200])))
        monkeypatch.setattr(cells, "ROUND_CELLS", int(draw.choice([2, 16])))
        monkeypatch.setattr(cells, "MIN_ROUND_CELLS", 2)
        problem = categories_problem(seed)
        certificate = certify_problem(problem, np.zeros(problem.n_features), target_gap=1e-2, time_limit=1)
        assert_sound(problem, certificate, least_objective(problem))
    assert any(n_cuts)


def random_region(draw, y):
    kind = np.where(y > 0, draw.choice([FREE, ON, OFF], y.size), draw.choice([CONVEX, ON, OFF], y.size))
    low = np.where(draw.random(y.size) < 0.2, -np.inf, -draw.exponential(size=y.size))
    high = np.where(draw.random(y.size) < 0.3, np.inf, draw.exponential(size=y.size))
    region = Region(kind.astype(np.int8), np.where(kind == ON, 0.0, low), np.where(kind == OFF, 0.0, high))
    c = draw.uniform(-0.9, 0.5, y.size)
    c = np.where((kind != ON) & (region.l == -np.inf), np.maximum(c, 0.0), c)
    return region, np.where(kind != FREE, np.minimum(c, 0.0), c)


@pytest.mark.parametrize("seed", range(60))
def test_envelopes_are_convex_and_below(seed):
    draw = np.random.default_rng(seed)
    y = draw.normal(size=300)
    region, c = random_region(draw, y)
    env = Relaxation(Samples.from_rows(np.ones((300, 1)), y, np.eye(1)), region, c).envelopes

    def value(u):
        right, left = np.maximum(u - env.t, 0.0), np.maximum(env.a - u, 0.0)
        line = env.constant + env.slope * u + env.right * right**2 + env.jump * right + env.left * left**2
        return np.where(region.kind == ON, (1 + c) * u * u - 2 * y * u + y * y, line)

    low, high = (
        np.where(np.isfinite(region.l), region.l, -3.0),
        np.where(np.isfinite(region.U), region.U, 3.0),
    )
    for share in np.linspace(0.0, 1.0, 101):
        u = low + share * (high - low)
        assert np.all(value(u) - c * u * u <= np.square(np.maximum(u, 0.0) - y) + 1e-10)
    grid = np.array([value(np.full(300, u)) for u in np.linspace(-4.0, 4.0, 201)])
    assert np.all(grid[2:] - 2.0 * grid[1:-1] + grid[:-2] >= -1e-10)


@pytest.mark.parametrize("kind", [FREE, FAR_FREE, CONVEX])
def test_envelopes_are_below_however_far_away_intervals_begin(kind):
    """A tangent from a point that is far away is found from differences that cost no digits."""
    ends = -np.geomspace(1.0, 1e15, 61)
    y = np.full(61, -0.3 if kind == CONVEX else 0.3)
    region = Region(np.full(61, kind, dtype=np.int8), ends, np.full(61, np.inf))
    c = np.full(61, -0.5 if kind == CONVEX else 0.0)
    env = Relaxation(Samples.from_rows(np.ones((61, 1)), y, np.eye(1)), region, c).envelopes
    for u in (-20.0, -1.0, -1e-3):
        within = ends <= u
        line = env.constant + env.slope * u - c * u * u
        assert np.all(line[within] <= np.square(y[within]) + 1e-12)


def test_lower_ends_that_are_far_away_are_given_up():
    region = Region(np.array([FREE, FREE, LIMIT], np.int8), np.array([-1e7, -1e5, -1e7]), np.full(3, np.inf))
    assert decide(tuple(region)) == 0
    assert region.l.tolist() == [-np.inf, -1e5, -1e7]


def transferred(seed):
    """A relaxation in the middle of a proof, its region, and the data."""
    X, y, *_ = make_relu(60, 4, noise=0.6, random_state=seed, design="gaussian" if seed % 2 else "ternary")
    problem = Problem.from_data(X, y, fit_intercept=False)
    reduced = reduce_rows(problem)
    n, q = reduced.Z.shape
    kind = np.where(reduced.y > 0, FREE, CONVEX).astype(np.int8)
    region = Region(kind, np.full(n, -np.inf), np.full(n, np.inf))
    cutoff = reduced.value(solve(X, y, fit_intercept=False).objective) * 1.2
    plain = Relaxation(reduced.samples, region, np.zeros(n))
    base = plain.minimise(Start(np.zeros(q)))
    assert shrink_by_tilts(region, reduced.Z, plain, base, cutoff) >= 0
    ascender = Transfer(reduced.samples, lambda _: None, lambda: False)
    ascent = ascender.ascend(region, first_transfer(region), base.start.b, cutoff, 0.05, 0.01, 8)
    assert not ascent.closed
    relaxation = Relaxation(reduced.samples, region, ascent.c)
    return reduced, region, relaxation, cutoff


def loss(reduced, b):
    r = np.maximum(reduced.Z @ b, 0.0) - reduced.y
    return float(r @ r + b @ reduced.ridge @ b)


def relaxed(reduced, relaxation, b):
    env, c, y, u = relaxation.envelopes, relaxation.c, reduced.y, relaxation.Z @ b
    right, left = np.maximum(u - env.t, 0.0), np.maximum(env.a - u, 0.0)
    line = env.constant + env.slope * u + env.right * right**2 + env.jump * right + env.left * left**2
    on = relaxation.region.kind == ON
    return float(np.where(on, (1 + c) * u * u - 2 * y * u + y * y, line).sum() + b @ relaxation.C @ b)


@pytest.mark.parametrize("seed", range(10))
def test_the_relaxation_is_below_the_loss_convex_and_bounded(seed):
    reduced, region, relaxation, _ = transferred(seed)
    draw = np.random.default_rng(seed)
    bound = relaxation.minimise(Start(np.zeros(reduced.Z.shape[1])))
    assert np.linalg.eigvalsh(relaxation.C).min() >= -1e-12
    assert bound.value == pytest.approx(relaxed(reduced, relaxation, bound.b), rel=1e-8)
    inside = 0
    for _ in range(400):
        b = bound.b + draw.normal(size=bound.b.size) * draw.choice([0.01, 0.1, 0.3, 1.0])
        other = bound.b + draw.normal(size=bound.b.size) * draw.choice([0.1, 1.0])
        middle = relaxed(reduced, relaxation, 0.5 * (b + other))
        assert middle <= 0.5 * (relaxed(reduced, relaxation, b) + relaxed(reduced, relaxation, other)) + 1e-10
        assert bound.value <= relaxed(reduced, relaxation, b) + 1e-12
        u = reduced.Z @ b
        if np.all((u >= region.l) & (u <= region.U)):
            inside += 1
            assert relaxed(reduced, relaxation, b) <= loss(reduced, b) + 1e-10
    assert inside > 10


@pytest.mark.parametrize("seed", range(10))
def test_no_tightening_cuts_off_a_better_point(seed):
    reduced, region, relaxation, cutoff = transferred(seed)
    bound = relaxation.minimise(Start(np.zeros(reduced.Z.shape[1])))
    shrink_by_ellipsoid(region, reduced.samples, bound, cutoff)
    draw = np.random.default_rng(seed)
    better = 0
    centre = bound.b
    for _ in range(3000):
        b = centre + draw.normal(size=centre.size) * draw.choice([0.02, 0.05, 0.1, 0.2])
        if loss(reduced, b) <= cutoff:
            better += 1
            u = reduced.Z @ b
            assert np.all((u >= region.l) & (u <= region.U))
            assert np.all(u[region.kind == ON] >= 0.0)
            assert np.all(u[region.kind == OFF] <= 0.0)
    assert better > 50


def with_all_signs_known(seed):
    """Data whose best fit has every sample on: the relaxation is the loss, and better points an ellipsoid."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(40, 3))
    problem = Problem.from_data(X, 9.0 + X @ [1.0, -0.5, 0.3] + draw.normal(size=40))
    reduced = reduce_rows(problem)
    n, q = reduced.Z.shape
    region = Region(np.full(n, ON, np.int8), np.full(n, -np.inf), np.full(n, np.inf))
    plain = Relaxation(reduced.samples, region.copy(), np.zeros(n))
    return reduced, region, plain, plain.minimise(Start(np.zeros(q)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("factor", [1.0 + 1e-4, 1.01, 1.5])
def test_points_on_the_edge_of_the_ellipsoid_stay_and_nothing_beyond(seed, factor):
    """For every sample the points with the least and the largest u that cost no more than the cutoff."""
    reduced, region, plain, base = with_all_signs_known(seed)
    cutoff = factor * base.value
    shrink_by_ellipsoid(region, reduced.samples, base, cutoff)
    gram = reduced.Z.T @ reduced.Z + reduced.ridge
    best = np.linalg.solve(gram, reduced.Z.T @ reduced.y)
    for i, z in enumerate(reduced.Z):
        way = np.linalg.solve(gram, z)
        way *= np.sqrt((cutoff - base.value) / float(z @ way))
        low, high = best - way, best + way
        for edge in (low, high):
            assert relaxed(reduced, plain, edge) == pytest.approx(cutoff, rel=1e-9)
        assert region.l[i] <= z @ low + 1e-12
        assert z @ high - 1e-12 <= region.U[i]
        assert region.U[i] - region.l[i] <= (z @ (high - low)) * (1.0 + 1e-6) + 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_points_on_the_edge_of_a_tilt_stay_and_nothing_beyond(seed):
    reduced, region, plain, base = with_all_signs_known(seed)
    cutoff, gram = 1.2 * base.value, reduced.Z.T @ reduced.Z + reduced.ridge
    best = np.linalg.solve(gram, reduced.Z.T @ reduced.y)
    rows = np.arange(len(reduced.Z))
    assert shrink_by_tilts(region, reduced.Z, plain, base, cutoff, only=rows) >= 0
    reach = np.sqrt(
        (cutoff - base.value) * np.einsum("ij,ji->i", reduced.Z, np.linalg.solve(gram, reduced.Z.T))
    )
    u = reduced.Z @ best
    assert np.all(region.l <= u - reach + 1e-12)
    # One length of the tilt is as good as the quadratic says, and two are tried.
    assert np.all(region.l >= u - 1.1 * reach)


def test_a_sample_that_costs_all_that_is_left_stays():
    """One sample has the whole room for itself: the ends of its interval are where it costs just that."""
    y = np.array([2.0, 0.5, -1.0, -0.1])
    n, off = y.size, float(np.square(np.minimum(y, 0.0)).sum())
    for room in (0.01, 0.2, 1.7):
        region = Region(first_kinds(y), np.full(n, -np.inf), np.full(n, np.inf))
        shrink_by_cost(region, y, off + room)
        costs = np.square(np.maximum(region.U, 0.0) - y) - np.square(np.minimum(y, 0.0))
        np.testing.assert_allclose(costs, room, rtol=1e-4)
        assert np.all(costs >= room)
        is_on = region.l > -np.inf
        assert is_on.tolist() == [bool(value > 0.0 and value * value > room) for value in y]
        low = np.square(region.l[is_on] - y[is_on])
        np.testing.assert_allclose(low, room, rtol=1e-4)
        assert np.all(low >= room)


def ascent_problem(seed):
    """A region with intervals, and what an ascent begins with."""
    reduced, region, relaxation, cutoff = transferred(seed)
    c = np.where(relaxation.c == 0.0, first_transfer(region), relaxation.c)
    return reduced, region, c, cutoff


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_and_the_slope_of_an_ascent_are_those_of_the_relaxation(seed):
    """The compiled evaluation against the relaxation, and against differences of its bound."""
    reduced, region, c, _ = ascent_problem(seed)
    n, q = reduced.Z.shape
    state, work = AscentState.at(c, np.zeros(q), 0.0), AscentWork.empty(n, q)
    rows = KernelRows.empty(2 * n, q)
    # A cutoff that is reached at once: one evaluation, no step.
    ascend(*map(tuple, (reduced.samples, region.copy())), -1e9, 0.0, 1, 1, *map(tuple, (rows, state, work)))

    def bound(c):
        return Relaxation(reduced.samples, region, c).minimise(Start(np.zeros(q)))

    at = bound(state.c)
    assert state.numbers[VALUE] == pytest.approx(at.value, rel=1e-10)
    assert state.b == pytest.approx(at.b, abs=1e-7)
    assert state.centre == pytest.approx(at.centre, abs=1e-7)
    lower, upper = np.clip(c - 1e-5, -0.98, None), c + np.where(region.kind == FREE, 1e-5, 0.0)
    for i in np.random.default_rng(seed).permutation(n)[:15]:
        ends = [np.where(np.arange(n) == i, end, c) for end in (lower, upper)]
        slope = (bound(ends[1]).value - bound(ends[0]).value) / (upper[i] - lower[i])
        assert state.gradient[i] == pytest.approx(slope, abs=1e-3 * (1.0 + np.abs(state.gradient).max()))


@pytest.mark.parametrize("seed", range(4))
def test_an_ascent_rises_stays_valid_and_may_be_interrupted(seed, monkeypatch):
    reduced, region, c, cutoff = ascent_problem(seed)
    results = []
    for work in (transfer.CALL_WORK, 1):
        monkeypatch.setattr(transfer, "CALL_WORK", work)
        here, offered = region.copy(), []
        ascender = Transfer(reduced.samples, offered.append, lambda: False)
        ascent = ascender.ascend(here, c, np.zeros(reduced.Z.shape[1]), cutoff, 0.05, 1e-4, 20)
        results.append((ascent.value, *ascent.c, *here.l, *here.U, *np.ravel(offered)))
    assert results[0] == results[1]
    start = Start(np.zeros(reduced.Z.shape[1]))
    first = Relaxation(reduced.samples, region, c).minimise(start).value
    last = Relaxation(reduced.samples, here, ascent.c).minimise(start)
    assert first <= ascent.value * (1.0 + 1e-12) <= last.value * (1.0 + 1e-9)
    assert np.linalg.eigvalsh(Relaxation(reduced.samples, here, ascent.c).C).min() > 0.0


@pytest.mark.parametrize("seed", range(4))
def test_a_relaxation_is_bounded_from_any_point(seed):
    """From points off the minimum, with the slopes of the minimum: the bound loses nothing there."""
    reduced, region, c, _ = ascent_problem(seed)
    draw, start = np.random.default_rng(seed), Start(np.zeros(reduced.Z.shape[1]))
    relaxation = Relaxation(reduced.samples, region, c)
    least = relaxation.minimise(start).value
    tilts = np.zeros((1, reduced.Z.shape[1]))
    values, points = relaxation.minimise_tilted(start, tilts)
    assert values[0] == pytest.approx(least, rel=1e-9)
    found, _ = relaxation._descend(start, relaxation._slope + tilts, relaxation.C)
    away = points + draw.normal(size=(50, points.shape[1])) * np.geomspace(1e-3, 10.0, 50)[:, None]
    lam, slopes = np.repeat(found.slopes, 50, axis=0), np.repeat(relaxation._slope + tilts, 50, axis=0)
    bounds = relaxation._bounds(away, lam, slopes)
    assert (bounds <= least * (1.0 + 1e-9)).all()
    assert bounds.max() == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("slope", [1e-10, 1e-6, 1e-4, 5e-4])
def test_a_relaxation_that_falls_without_limit_has_no_bound(slope):
    """A small slope in a direction that no row determines: lower by the slope times any distance."""
    for rows, least in (([[1.0, 0.0]], -np.inf), ([[1.0, 0.0], [0.0, -1.0]], -1e6 * slope - 0.25 * slope**2)):
        Z, n = np.array(rows), len(rows)
        samples = Samples.from_rows(Z, np.array([1.0, 1e6])[:n], np.zeros((2, 2)))
        far = np.full(n, np.inf)
        relaxation = Relaxation(samples, Region(np.full(n, FREE, np.int8), -far, far), np.zeros(n))
        slopes, origin = np.array([[0.0, slope]]), np.zeros((1, 2))
        bounds = relaxation._bounds(origin, np.zeros((1, len(relaxation._whole))), slopes)
        assert bounds[0] <= least
        assert (
            relaxation._repaired_value(origin[0], np.zeros(len(relaxation._whole)), *slopes, *slopes) <= least
        )


def better_points(reduced, b, cutoff, draw, n_steps=60):
    """Points with a loss below the cutoff that wander off from b, each in a direction of its own."""
    points, found = np.repeat(b[None], 200, axis=0), [b[None]]
    ahead = draw.normal(size=points.shape)
    length = np.full(len(points), 0.1)
    for _ in range(n_steps):
        new = points + length[:, None] * (ahead + draw.normal(size=points.shape))
        r = np.maximum(new @ reduced.Z.T, 0.0) - reduced.y
        is_better = np.square(r).sum(axis=1) + ((new @ reduced.ridge) * new).sum(axis=1) <= cutoff
        points[is_better] = new[is_better]
        length = np.where(is_better, 1.3 * length, 0.7 * length)
        found.append(new[is_better])
    return np.vstack(found)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_box_holds_every_better_point(seed, is_known):
    """Without an intercept, where coordinates can be tilted before any sign is known, and after."""
    draw = np.random.default_rng(seed)
    X, y, *_ = make_relu(80, 3, noise=0.5, random_state=seed, design="gaussian" if seed % 2 else "ternary")
    fit = solve(X, y, fit_intercept=False)
    reduced = reduce_rows(fit.problem)
    Z, n = reduced.Z, reduced.y.size
    best = reduced.from_coefficients(fit.beta, fit.intercept)
    for factor in (1.001, 1.2, 2.0):
        cutoff = reduced.value(fit.objective) * factor
        points = better_points(reduced, best, cutoff, draw)
        kind = np.where(reduced.y > 0, FREE, CONVEX).astype(np.int8)
        if is_known:
            # The signs of the best fit, and all better points that have them.
            kind = np.where(best @ Z.T > 0.0, ON, OFF).astype(np.int8)
            points = points[((points @ Z.T > 0.0) == (kind == ON)).all(axis=1)]
        assert len(points) > 10
        region = Region(kind, np.full(n, -np.inf), np.full(n, np.inf))
        plain = Relaxation(reduced.samples, region.copy(), np.zeros(n))
        assert shrink_by_box(region, Z, plain, plain.minimise(Start(np.zeros(Z.shape[1]))), cutoff) >= 0
        assert np.isfinite(region.l).all()
        assert np.isfinite(region.U).all()
        u = points @ Z.T
        assert np.all((u >= region.l) & (u <= region.U))
        assert np.all(u[:, region.kind == ON] >= 0.0)
        assert np.all(u[:, region.kind == OFF] <= 0.0)


def test_a_box_is_no_larger_than_it_has_to_be():
    """Least squares: better points are an ellipsoid, and the box is the one around it."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 3))
    problem = Problem.from_data(X, X @ [1.0, -0.5, 0.3] + draw.normal(size=60), fit_intercept=False)
    reduced = reduce_rows(problem)
    n, q = reduced.Z.shape
    region = Region(np.full(n, ON, np.int8), np.full(n, -np.inf), np.full(n, np.inf))
    plain = Relaxation(reduced.samples, region.copy(), np.zeros(n))
    base = plain.minimise(Start(np.zeros(q)))
    # No coefficients have a loss below the least.
    assert shrink_by_box(region.copy(), reduced.Z, plain, base, 0.9 * base.value) == -1
    for factor in (1.0 + 1e-9, 1.01, 1.5):
        region.l[:], region.U[:] = -np.inf, np.inf
        assert shrink_by_box(region, reduced.Z, plain, base, factor * base.value) >= 0
        # In these coordinates the Gram matrix is 1: the ellipsoid is a ball, and its box a cube.
        radius = np.sqrt((factor - 1.0) * base.value) * np.abs(reduced.Z).sum(axis=1)
        centre = reduced.Z @ base.b
        assert np.all(region.l <= centre - radius * (1.0 - 1e-6))
        assert np.all(centre + radius * (1.0 - 1e-6) <= region.U)
        assert np.all(region.U - region.l <= 2.5 * radius + 1e-6)


def test_few_rows_with_the_largest_outcomes_are_tilted():
    draw = np.random.default_rng(0)
    y, rows = draw.normal(size=3 * MAX_TILTS), draw.random(3 * MAX_TILTS) < 0.7
    chosen = heaviest(rows, y)
    assert chosen.sum() == MAX_TILTS
    assert np.all(rows[chosen])
    assert y[chosen].min() >= y[rows & ~chosen].max()
    few = rows & (np.arange(y.size) < 20)
    assert np.array_equal(heaviest(few, y), few)


@pytest.mark.parametrize("seed", range(30))
def test_reduction_keeps_the_objective(seed):
    problem = random_problem(seed)
    reduced = reduce_rows(problem)
    draw = np.random.default_rng(seed)
    for _ in range(5):
        b = draw.normal(size=reduced.Z.shape[1])
        beta, intercept = reduced.coefficients(b)
        expected = problem.objective(beta, intercept)
        assert reduced.objective(loss(reduced, b)) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(reduced.Z.T @ reduced.Z + reduced.ridge, np.eye(reduced.Z.shape[1]), atol=1e-6)


def test_history_is_monotone_and_ends_at_the_certificate():
    X, y, *_ = make_relu(200, 10, noise=0.5, random_state=0)
    certificate = certify(X, y, np.zeros(10), fit_intercept=False)
    times, incumbents, bounds = zip(*certificate.history, strict=True)
    for values, sign in ((times, 1), (incumbents, -1), (bounds, 1)):
        assert all(sign * (b - a) >= 0 for a, b in pairwise(values))
    assert certificate.history[-1][1:] == (certificate.objective, certificate.lower_bound)
    assert certificate.n_active + certificate.n_inactive + certificate.n_undecided == 200
    u = X @ certificate.solution.beta
    assert certificate.n_active <= np.count_nonzero(u >= 0)
    assert certificate.n_inactive <= np.count_nonzero(u <= 0)


def test_a_time_limit_leaves_a_valid_bound():
    X, y, *_ = make_relu(300, 15, noise=0.8, random_state=0)
    short = certify(X, y, time_limit=0.3, target_gap=1e-9)
    assert short.status == "time_limit"
    assert 0.0 < short.lower_bound < short.objective
    assert short.solution.stopped == Stop.TIME_LIMIT
    assert "no fit can be more than" in str(short)


def test_an_interrupt_leaves_a_valid_bound():
    X, y, *_ = make_relu(300, 15, noise=0.8, random_state=0)
    best = solve(X, y)
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    certificate = certify(X, y, best, time_limit=None, target_gap=1e-9)
    timer.join()
    assert certificate.status == "interrupted"
    assert certificate.lower_bound <= best.objective
    certificate.solution.verify()


def test_the_exact_stage_is_a_method():
    X, y, *_ = make_relu(80, 4, noise=0.4, random_state=1)
    chain = solve(X, y, "sorting+exact", fit_intercept=False, target_gap=1e-5)
    alone = solve(X, y, "exact", fit_intercept=False)
    assert chain.certificate.status == alone.certificate.status == "optimal"
    assert chain.certificate.gap <= 1e-5 * (1 + 1e-9)
    assert chain.objective == pytest.approx(alone.objective, rel=1.1e-4)
    assert "%" in str(chain.certificate)


def test_a_best_point_of_the_plane_that_is_missed_is_not_called_optimal(monkeypatch):
    """Its coefficients may be no numbers, or rounding may spoil them: then there is a bound, and a gap."""
    monkeypatch.setattr(driver.Incumbent, "offer", lambda self, b: None)  # noqa: ARG005
    draw = np.random.default_rng(0)
    X = draw.normal(size=(30, 1))
    y = np.maximum(X[:, 0] + 0.2 * draw.normal(size=30), 0.0)
    certificate = certify(X, y, (np.zeros(1), 0.0), time_limit=0.2)
    assert certificate.status == "time_limit"
    assert 0.0 < certificate.lower_bound < 0.9 * certificate.objective
    certificate.solution.verify()


def test_nothing_to_prove():
    certificate = certify([[1.0], [2.0]], [-1.0, -2.0])
    assert certificate.status == "optimal"
    assert certificate.gap == 0.0
    assert str(certificate) == "proved optimal"
    only_zeros = certify([[0.0], [0.0]], [1.0, 2.0], fit_intercept=False)
    assert only_zeros.status == "optimal"
    assert only_zeros.objective == 5.0


def test_what_is_proved_does_not_depend_on_when_it_is_shown(monkeypatch):
    """A better solution is found at the root, after a bound that is above the cutoff it leads to."""
    X, y, *_ = make_relu(100, 5, noise=0.5, random_state=3)
    fit = solve(X, y, "gd", fit_intercept=False)
    bounds = []
    for seconds in (0.0, np.inf):
        monkeypatch.setattr(driver, "REPORT_SECONDS", seconds)
        bounds.append(certify(X, y, fit, fit_intercept=False).lower_bound)
    assert bounds[0] == bounds[1]


def test_a_search_that_rounding_leaves_open_says_so_and_not_that_the_time_was_up(monkeypatch):
    """As where columns nearly cancel: a leaf whose bound is too low."""
    X, y, *_ = make_relu(60, 5, noise=3.0, random_state=0)
    done = best_first.BestFirst._done

    def leave(search):
        done(search)
        search._leaves = 0.9 * search.cutoff

    monkeypatch.setattr(best_first.BestFirst, "_done", leave)
    certificate = certify(X, y, fit_intercept=False, time_limit=None)
    assert certificate.status == "time_limit"
    assert certificate.ended_by_rounding
    assert 1e-3 < certificate.gap <= 0.1
    assert str(certificate).endswith(" % better; rounding keeps the rest open, and more time would not help")
    assert certificate.facts()["status"] == "ended by rounding"
    assert certificate.solution.stopped is Stop.ROUNDING
    certificate.solution.verify()


def test_a_search_whose_time_is_up_was_not_ended_by_rounding():
    X, y, *_ = make_relu(200, 8, noise=2.0, random_state=0)
    certificate = certify(X, y, time_limit=0.05, target_gap=0.0)
    assert certificate.status == "time_limit"
    assert not certificate.ended_by_rounding
    assert certificate.solution.stopped is Stop.TIME_LIMIT
    assert "rounding" not in str(certificate)
