"""No direction that is said to hold nothing better holds anything better."""

import numpy as np
import pytest
from brute import least_objective, least_with_others_off
from rays import least_mean_met
from scipy.optimize import minimize

from rectifit import Problem, solve
from rectifit.certificate.best_first import Control
from rectifit.certificate.cells import CellSearch
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.records import OFF, FaceBounds, ScaleRows, ScaleWork
from rectifit.certificate.scale import LEVELS, ScaleSearch, _pack, _unpack
from rectifit.certificate.scale_kernel import is_empty

ENOUGH = 3_000_000


def random_samples(seed, n=None):
    """Small data of many kinds, with an intercept mostly: dummies, grids, heavy tails, y < 0, ridge, ties."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 5))
    n = int(rng.integers(8, 60)) if n is None else n
    X = rng.normal(size=(n, p))
    kind = rng.integers(4)
    if kind == 1:
        X[:, 0] = rng.random(n) < 0.3
    elif kind == 2:
        X = rng.integers(0, 4, size=(n, p)).astype(float)
    elif kind == 3:
        X = rng.exponential(size=(n, p)) ** 2
    y = np.maximum(X @ rng.normal(size=p) + rng.normal(), 0.0)
    y += rng.choice([0.1, 1.0]) * (rng.standard_t(2, size=n) if rng.random() < 0.5 else rng.normal(size=n))
    if rng.random() < 0.5:
        y = np.maximum(y, 0.0)
    if rng.random() < 0.3:
        X, y = np.vstack([X, X[: n // 3]]), np.concatenate([y, y[: n // 3] + 1.0])
    intercept = bool(rng.random() < 0.8)
    alpha = float(rng.choice([0.0, 0.0, 0.1]))
    problem = Problem.from_data(X, y, sample_weight=None, fit_intercept=intercept, alpha=alpha)
    return reduce_rows(problem).samples


def lengths_and_losses(samples, D):
    """|(Zd)_+| / |d| of each line of D, |d| the largest coordinate, and the least loss on its ray."""
    on = np.maximum(D @ samples.Z.T, 0.0)
    squares = np.square(on).sum(axis=1)
    slopes = np.maximum(on @ samples.y, 0.0)
    curvature = squares + np.einsum("ij,jk,ik->i", D, samples.ridge, D)
    gain = np.divide(np.square(slopes), curvature, out=np.zeros_like(slopes), where=curvature > 1e-12)
    return np.sqrt(squares) / np.abs(D).max(axis=1), samples.y @ samples.y - gain


def walk(samples, eps, rng, n_walkers=150, n_steps=250):
    """Least loss met on rays with |(Zd)_+| <= eps |d|, and the least |(Zd)_+| / |d| of others below it."""
    q = samples.Z.shape[1]
    D = rng.normal(size=(n_walkers, q))
    lengths, losses = lengths_and_losses(samples, D)
    steps = np.ones(n_walkers)
    for _ in range(n_steps):
        new = D / np.abs(D).max(axis=1, keepdims=True) + steps[:, None] * rng.normal(size=D.shape)
        new_lengths, new_losses = lengths_and_losses(samples, new)
        better = np.where(new_lengths > eps, new_lengths < lengths, (lengths > eps) | (new_losses <= losses))
        D[better], lengths[better], losses[better] = new[better], new_lengths[better], new_losses[better]
        steps = np.where(better, np.minimum(1.5 * steps, 1.0), np.maximum(0.9 * steps, 1e-5))
    inside = lengths <= eps
    return losses[inside].min(initial=np.inf)


@pytest.mark.parametrize("chunk", range(6))
def test_nothing_better_where_it_is_proved(chunk):
    n_proved = 0
    for seed in range(25 * chunk, 25 * chunk + 25):
        samples, rng = random_samples(seed), np.random.default_rng(seed)
        if samples.Z.shape[1] < 2:
            continue
        total = float(samples.y @ samples.y)
        losses = lengths_and_losses(samples, rng.normal(size=(2000, samples.Z.shape[1])))[1]
        # Below, at, and well above the least loss.
        cutoff = losses.min() + rng.choice([-0.05, 0.0, 0.3, 0.6, 0.9]) * (total - losses.min())
        search = ScaleSearch(samples, cutoff)
        search.advance(ENOUGH)
        n_proved += search.proved > 0.0
        if search.proved > 0.0:
            assert walk(samples, search.proved, rng) >= cutoff - 1e-9 * total
    assert n_proved >= 5


def single_out(seed, n_heavy):
    """Data whose best fit is on for a few heavy samples at the end of the cloud alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    y = np.abs(0.1 * rng.normal(size=80))
    far = np.argsort(-X @ rng.normal(size=3))[:n_heavy]
    y[far] = rng.uniform(3.0, 5.0, size=n_heavy)
    return reduce_rows(Problem.from_data(X, y, sample_weight=None, fit_intercept=True, alpha=0.0)).samples


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_heavy", [1, 2, 4])
def test_a_better_ray_near_all_off_stays(seed, n_heavy):
    """Cutoffs above the loss of rays on which few samples are on."""
    samples, rng = single_out(seed, n_heavy), np.random.default_rng(seed)
    total = float(samples.y @ samples.y)
    for eps in LEVELS:
        least = walk(samples, eps, rng)
        for room in (1e-6, 1e-2, 0.1):
            search = ScaleSearch(samples, least + room * total)
            search.advance(ENOUGH)
            assert search.proved < eps


@pytest.mark.parametrize("seed", range(5))
def test_what_is_proved_is_not_far_from_the_truth(seed):
    """Light tails, a cutoff near the best fit: eps is at least a tenth of that of the best fit."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    y = np.maximum(X @ [1.0, -1.0, 0.5] + 0.3, 0.0) + 0.5 * rng.normal(size=150)
    problem = Problem.from_data(X, y, sample_weight=None, fit_intercept=True, alpha=0.0)
    samples = reduce_rows(problem).samples
    lengths, losses = lengths_and_losses(samples, rng.normal(size=(50_000, 4)))
    best = np.argmin(losses)
    search = ScaleSearch(samples, losses[best])
    search.advance(20 * ENOUGH)
    assert 0.1 * lengths[best] <= search.proved <= lengths[best]


@pytest.mark.parametrize("seed", [0, 3, 4, 9])
def test_result_depends_on_total_work_alone(seed):
    samples = random_samples(seed, n=50)
    cutoff = 0.6 * float(samples.y @ samples.y)

    def run(slices):
        search, trace = ScaleSearch(samples, cutoff), []
        for work in slices:
            search.advance(work)
            trace.append(search.proved)
        assert trace == sorted(trace)
        is_over = search.advance(ENOUGH)
        return search.proved, search.work, is_over

    rng = np.random.default_rng(seed)
    results = {run([]), run([1] * 50), run(rng.integers(1, 20_000, size=40).tolist())}
    assert len(results) == 1


def test_lower_cutoff_keeps_what_is_proved_and_goes_on():
    samples = random_samples(5, n=60)
    total = float(samples.y @ samples.y)
    search = ScaleSearch(samples, 0.95 * total)
    while not search.advance(ENOUGH):
        pass
    before = search.proved
    search.lower_cutoff(0.3 * total)
    while search.work < 10 * ENOUGH and not search.advance(ENOUGH):
        pass
    afresh = ScaleSearch(samples, 0.3 * total)
    while afresh.work < 10 * ENOUGH and not afresh.advance(ENOUGH):
        pass
    assert search.proved >= max(before, afresh.proved)
    search.lower_cutoff(0.9 * total)
    assert search.cutoff == 0.3 * total


def test_no_better_solution_to_be_excluded():
    """A cutoff above |y|^2 admits all-off directions; and data without any of those need no search."""
    samples = random_samples(1, n=40)
    search = ScaleSearch(samples, 1.1 * float(samples.y @ samples.y))
    assert search.advance(ENOUGH)
    assert search.proved == 0.0
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    problem = Problem.from_data(
        np.vstack([X, -X]), rng.normal(size=800), sample_weight=None, fit_intercept=False, alpha=0.0
    )
    samples = reduce_rows(problem).samples
    search = ScaleSearch(samples, 0.5 * float(samples.y @ samples.y))
    assert search.advance(ENOUGH)
    assert search.proved == LEVELS[-1]


def with_dummy(seed):
    """Few samples, most without the dummy, and a mass that they alone could reach."""
    rng = np.random.default_rng(seed)
    n = 12
    X = np.column_stack([rng.normal(size=n), np.arange(n) >= 8])
    y = np.maximum(rng.normal(1.0, 1.0, size=n), 0.1)
    problem = Problem.from_data(X, y, sample_weight=None, fit_intercept=True, alpha=0.0)
    return problem, reduce_rows(problem)


@pytest.mark.parametrize("seed", range(10))
def test_faces(seed):
    """A face that is closed is a demand; each is asked for once, and the answer is believed."""
    problem, reduced = with_dummy(seed)
    samples, asked = reduced.samples, []
    cutoff = reduced.value(least_objective(problem)) * 0.95

    def bound_face(kind):
        inside = kind != OFF
        rank = np.linalg.matrix_rank(samples.Z[inside])
        assert rank < samples.Z.shape[1]
        # Nothing outside of the span is inside of it.
        for i in np.flatnonzero(~inside):
            assert np.linalg.matrix_rank(np.vstack([samples.Z[inside], samples.Z[i]])) > rank
        asked.append(kind.tobytes())
        return least_with_others_off(samples, inside)

    alone = ScaleSearch(samples, cutoff)
    alone.advance(ENOUGH)
    search = ScaleSearch(samples, cutoff, bound_face)
    search.advance(ENOUGH)
    assert len(asked) == len(set(asked))
    assert search.proved >= alone.proved
    rng = np.random.default_rng(seed)
    assert walk(samples, search.proved, rng) >= cutoff - 1e-9 * float(samples.y @ samples.y)
    refused = ScaleSearch(samples, cutoff, lambda _: -np.inf)
    refused.advance(ENOUGH)
    assert refused.proved == alone.proved


def test_faces_are_needed_and_help():
    """Without the proof for a face nothing can be proved; with it, most is."""
    n_helped = 0
    for seed in range(10):
        problem, reduced = with_dummy(seed)
        samples = reduced.samples
        cutoff = reduced.value(least_objective(problem)) * 0.95
        alone = ScaleSearch(samples, cutoff)
        alone.advance(ENOUGH)
        search = ScaleSearch(samples, cutoff, lambda kind, of=samples: least_with_others_off(of, kind != OFF))
        search.advance(ENOUGH)
        n_helped += search.proved > alone.proved
    assert n_helped >= 5


def dummy_sets(samples, rng):
    """Samples inside: each side of the dummy, single samples, and sets of any kind."""
    n = samples.y.size
    # Rows of one side lie in a plane.
    planes = [np.linalg.svd(samples.Z[part])[2][-1] for part in (slice(0, 3), slice(n - 3, n))]
    sides = [np.abs(samples.Z @ normal) < 1e-9 for normal in planes]
    single = [np.arange(n) == rng.integers(n) for _ in range(2)]
    return [*sides, *single, *(rng.random(n) < share for share in (0.3, 0.5, 0.7))]


def prove_with_demands(seed, extra=0.0):
    """Search with bounds of sets that are as good as they can be, or better than is true by a share of |y|^2.

    Cutoffs are just above the least loss that is met where |(Zd)_+| <= eps |d|, and below. Returns for each
    how far below its cutoff, as a share of |y|^2, a loss is met where none should be, and the demands.
    """
    problem, reduced = with_dummy(seed)
    samples, rng, found, n_demands = reduced.samples, np.random.default_rng(seed), [], 0
    total, least = float(samples.y @ samples.y), reduced.value(least_objective(problem))
    sets = np.array(dummy_sets(samples, rng))
    bounds = np.array([least_with_others_off(samples, inside) for inside in sets]) + extra * total
    met = [(eps, walk(samples, eps, rng, 80, 120)) for eps in LEVELS[2::2]]
    known = FaceBounds(~sets, bounds)
    for cutoff in (0.95 * least, *(loss + room * total for _, loss in met for room in (1e-6, 0.01))):
        search = ScaleSearch(samples, float(cutoff), known_faces=lambda: known)
        search.advance(ENOUGH)
        n_demands += len(search._sets) - 1
        losses = [loss for eps, loss in met if eps <= search.proved]
        if search.proved > 0.0:
            losses.append(walk(samples, search.proved, rng, 80, 120))
            found.append((cutoff - min(losses)) / total)
    return found, n_demands


def test_nothing_better_where_tight_demands_prove_it():
    found, n_demands = zip(*(prove_with_demands(seed) for seed in range(12)), strict=True)
    assert max(max(below, default=0.0) for below in found) <= 1e-9
    assert sum(map(len, found)) >= 10
    assert sum(n_demands) >= 100


def test_demands_that_are_not_true_prove_what_is_not_true():
    """Otherwise the test above could not fail."""
    wrong = [max(prove_with_demands(seed, extra=0.02)[0], default=0.0) for seed in range(10)]
    assert max(wrong) > 1e-3


def test_demands_are_known_bounds_less_the_cutoff():
    _, reduced = with_dummy(0)
    samples, rng = reduced.samples, np.random.default_rng(0)
    total = float(samples.y @ samples.y)
    sets = np.array([rng.random(12) < 0.5 for _ in range(3)])
    known = [FaceBounds(~sets[:2], np.array([0.6, 0.2]) * total)]
    search = ScaleSearch(samples, 0.5 * total, known_faces=lambda: known[0])
    search.advance(1)
    # All samples that are on weigh more than |y|^2 - cutoff. The second set says nothing for this cutoff.
    np.testing.assert_allclose(search._needs, [0.5 * total, 0.1 * total], atol=1e-11 * total)
    assert np.all(search._needs < [0.5 * total, 0.1 * total])
    for bits, inside in zip(search._sets, [np.zeros(12, np.bool_), sets[0]], strict=True):
        outside = ~inside & (samples.y > 0.0)
        assert np.array_equal(_unpack(bits, search._n_positive), outside[search._order[: search._n_positive]])
    # A lower cutoff demands more, and a face that is closed by then is a demand as well.
    search.lower_cutoff(0.15 * total)
    known[0] = FaceBounds(~sets, np.array([0.6, 0.2, 0.3]) * total)
    search.advance(1)
    np.testing.assert_allclose(search._needs / total, [0.85, 0.45, 0.05, 0.15], atol=1e-11)


def parallel(a, b):
    """How far two vectors are from having the same direction."""
    return float(np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b)))


def intercept_samples(kind, seed):
    """Data in which all samples are off in some direction."""
    rng = np.random.default_rng(seed)
    n, p = 60, 1 + seed % 4
    X = rng.normal(size=(n, p))
    if kind == "dummies":
        category = rng.integers(0, p + 1, size=n)
        X = np.column_stack([category[:, None] == np.arange(1, p + 1), rng.normal(size=n)]).astype(float)
    elif kind == "skewed":
        X = rng.exponential(size=(n, p)) ** 2
    y = np.maximum(X @ rng.normal(size=X.shape[1]) + 0.2, 0.0) + 0.3 * np.abs(rng.normal(size=n))
    return reduce_rows(Problem.from_data(X, y)).samples


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["gaussian", "dummies", "skewed"])
def test_the_centre_is_a_mean_along_the_chart(kind, seed):
    samples = intercept_samples(kind, seed)
    search = ScaleSearch(samples, 0.5 * float(samples.y @ samples.y))
    v = search.centre()
    assert np.all(v >= 0.0)
    assert np.linalg.norm(v) == pytest.approx(1.0, rel=1e-12)
    mean = samples.Zt @ v
    assert parallel(mean, -search._t) <= 1e-8
    # v = (Za)_+ for some a is the condition that no other v >= 0 with this Z'v is shorter.
    on = v > 0.0
    a = np.linalg.lstsq(samples.Z[on], v[on], rcond=None)[0]
    np.testing.assert_allclose(np.maximum(samples.Z @ a, 0.0), v, atol=1e-8)


@pytest.mark.parametrize("kind", ["gaussian", "dummies", "skewed"])
def test_no_better_ray_minimum_has_a_smaller_mean(kind):
    """For cutoffs well above the least loss, so that there are better ray minima."""
    n_bounded, closest = 0, np.inf
    for seed in range(6):
        given, rng = intercept_samples(kind, seed), np.random.default_rng(seed)
        total = float(given.y @ given.y)
        losses = lengths_and_losses(given, rng.normal(size=(5000, given.Z.shape[1])))[1]
        for share in (0.05, 0.5):
            cutoff = losses.min() + share * (total - losses.min())
            control = Control(lambda cutoff=cutoff: cutoff, lambda _: None)
            cells = CellSearch(given, control)
            # With faces, without which nothing can be proved for dummies.
            search, samples = cells.scale, cells.samples
            mean = samples.Zt @ search.centre()
            assert search.least_mean(mean, np.sqrt(total)) == -np.inf
            search.advance(ENOUGH)
            low, explained = least_mean_met(samples, mean, cutoff, rng)
            bound = search.least_mean(mean, explained)
            assert bound <= low
            n_bounded += bound > -np.inf
            closest = min(closest, bound / low if low < 0.0 else np.inf)
    assert n_bounded >= 3
    # A bound a few times as high would be wrong.
    assert closest < 5.0


@pytest.mark.parametrize("explained", [0.5, 3.0])
def test_a_mean_at_the_edge_of_the_scale_is_not_ruled_out(explained):
    """A better ray minimum as far along the chart as the proved ratio lets it be."""
    samples = intercept_samples("gaussian", 2)
    search = ScaleSearch(samples, 0.3 * float(samples.y @ samples.y))
    mean = samples.Zt @ search.centre()
    search.advance(ENOUGH)
    assert search._ratio > 0.0
    farthest = explained / search._ratio * search._t / float(search._t @ search._t)
    edge = float(mean @ farthest)
    assert edge * (1.0 + 1e-6) <= search.least_mean(mean, explained) <= edge


def test_a_mean_in_another_direction_has_no_bound():
    samples = intercept_samples("gaussian", 2)
    search = ScaleSearch(samples, 0.3 * float(samples.y @ samples.y))
    mean = samples.Zt @ search.centre()
    search.advance(ENOUGH)
    assert search.proved > 0.0
    assert -np.inf < search.least_mean(mean, 1.0) < 0.0
    assert search.least_mean(2.0 * mean, 3.0) == pytest.approx(6.0 * search.least_mean(mean, 1.0))
    turned = mean + 1e-4 * np.linalg.norm(mean) * np.eye(mean.size)[0]
    for other in (-mean, turned, np.eye(mean.size)[0]):
        assert search.least_mean(other, 1.0) == -np.inf


@pytest.mark.parametrize("seed", range(3))
def test_means_of_cells_are_in_the_coordinates_of_the_samples(seed):
    """Cells have axes of their own, which make no difference to weights, means and their bounds."""
    samples = intercept_samples("gaussian", seed + 1)
    rng, total = np.random.default_rng(seed), float(samples.y @ samples.y)
    losses = lengths_and_losses(samples, rng.normal(size=(5000, samples.Z.shape[1])))[1]
    cutoff = losses.min() + 0.3 * (total - losses.min())
    control = Control(lambda: cutoff, lambda _: None)
    cells = CellSearch(samples, control)
    mean = samples.Zt @ cells.scale.centre()
    cells.scale.advance(ENOUGH)
    assert cells.scale.proved > 0.0
    assert cells.least_mean(mean) == pytest.approx(
        cells.scale.least_mean(cells.samples.Zt @ cells.scale.centre(), np.sqrt(total))
    )
    assert -np.inf < cells.least_mean(mean) <= least_mean_met(samples, mean, cutoff, rng)[0]
    # What is proved of the loss bounds |u_+|, and so the mean.
    before = cells.least_mean(mean)
    cells.know(0.75 * total)
    assert cells.least_mean(mean) == pytest.approx(0.5 * before)


def with_dummies(seed):
    """Much noise and three dummies: faces of several dimensions lie in each other."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(150, 2)), rng.random((150, 3)) < [0.15, 0.1, 0.1]])
    y = np.maximum(X @ [0.5, -0.3, 0.3, -0.3, 0.2] - 0.3, 0.0) + rng.normal(size=150)
    y = np.maximum(y, 0.0)
    solution = solve(X, y)
    reduced = reduce_rows(Problem.from_data(X, y, sample_weight=None, fit_intercept=True, alpha=0.0))
    cutoff = reduced.value(solution.objective)
    return CellSearch(reduced.samples, Control(lambda: cutoff, lambda _: None))


@pytest.mark.parametrize("seed", range(6))
def test_faces_of_faces(seed):
    """With several dummies a bound of the scale is proved, and nothing better lies beyond."""
    cells = with_dummies(seed)
    search, samples = cells.scale, cells.samples
    search.advance(10 * ENOUGH)
    assert search.proved >= 0.01
    rng = np.random.default_rng(seed)
    assert walk(samples, search.proved, rng) >= search.cutoff - 1e-9 * float(samples.y @ samples.y)


def test_an_open_face_is_tried_again():
    """A face that is open for now only delays: it is asked for again when the allowed work has doubled."""
    cells = with_dummies(0)
    ready = ScaleSearch(cells.samples, cells.cutoff, cells.bound_face)
    ready.advance(10 * ENOUGH)
    asked, patience = [], 2

    def bound_face(kind):
        asked.append(kind.tobytes())
        return cells.bound_face(kind) if asked.count(asked[-1]) > patience else -np.inf

    search = ScaleSearch(cells.samples, cells.cutoff, bound_face)
    assert search.advance(ENOUGH)
    assert search.proved == 0.0
    n_asked, allowed = len(asked), ENOUGH
    assert search.advance(allowed)
    assert len(asked) == n_asked, "not yet doubled"
    for _ in range(20):
        allowed *= 2
        search.advance(allowed)
    assert len(asked) > n_asked
    assert search.proved == ready.proved


def nearest_to_off(offset, X, is_side, reach, start):
    """The least |u_+| over rows that are no sides, from an allowed start; infinity if it leads nowhere."""

    def loss(a):
        v = np.maximum(offset + X @ a, 0.0)[~is_side]
        return 0.5 * v @ v, X[~is_side].T @ v

    sides = {"type": "ineq", "fun": lambda a: -(offset + X @ a)[is_side], "jac": lambda _: -X[is_side]}
    ball = {"type": "ineq", "fun": lambda a: reach**2 - a @ a, "jac": lambda a: -2.0 * a}
    end = minimize(loss, start, jac=True, method="SLSQP", constraints=[*[sides] * int(is_side.any()), ball]).x
    # The set is convex: a little of the start leads back inside.
    end = start + (1.0 - 1e-5) * (end - start)
    u = offset + X @ end
    is_allowed = not (u[is_side] > 0.0).any() and np.linalg.norm(end) <= reach
    return float(np.linalg.norm(np.maximum(u, 0.0)[~is_side])) if is_allowed else np.inf


@pytest.mark.parametrize("seed", range(20))
def test_empty_sets_hold_no_point(seed):
    """|u_+| <= eps and half-spaces: a set that is said to be empty holds no point of many that come close."""
    rng = np.random.default_rng(seed)
    n, size = 30, int(rng.integers(1, 4))
    X = rng.normal(size=(n, size))
    offset = rng.normal(-1.0, 0.5, size=n)
    is_side = rng.random(n) < 0.2
    rows = ScaleRows(offset, X, np.ascontiguousarray(X.T), np.zeros(0), np.zeros(1, np.int64))
    reach = 5.0
    points = rng.normal(size=(20_000, size))
    points *= reach * rng.random((20_000, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    u = np.maximum(offset + points @ X.T, 0.0)
    inside = ~(u[:, is_side] > 0.0).any(axis=1)
    lengths = np.linalg.norm(u[inside][:, ~is_side], axis=1)
    least = float(lengths.min(initial=np.inf))
    if lengths.size:
        start = points[inside][lengths.argmin()]
        least = min(least, nearest_to_off(offset, X, is_side, reach, start))
    room = ScaleWork.empty(n, size, 1)
    if np.isfinite(least):
        assert not is_empty(tuple(rows), is_side, least * (1.0 + 1e-9), reach, tuple(room))
        assert not is_empty(tuple(rows), is_side, 1.5 * least + 1e-9, reach, tuple(room))


def test_bits():
    mask = np.random.default_rng(0).random(200) < 0.5
    assert np.array_equal(_unpack(_pack(mask), mask.size), mask)
