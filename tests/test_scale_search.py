"""No direction that is said to hold nothing better holds anything better."""

import numpy as np
import pytest
from brute import least_objective

from rectifit import Problem, solve
from rectifit.certificate.best_first import Control
from rectifit.certificate.cells import CellSearch
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.records import OFF, ScaleRows, ScaleWork
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
    """A face that is closed is a nogood; each is asked for once, and the answer is believed."""
    problem, reduced = with_dummy(seed)
    samples, asked = reduced.samples, []
    cutoff = reduced.value(least_objective(problem)) * 0.95

    def close_face(kind):
        inside = kind != OFF
        assert np.linalg.matrix_rank(samples.Z[inside]) < samples.Z.shape[1]
        # Nothing outside of the span is inside of it.
        asked.append(kind.tobytes())
        basis = np.linalg.svd(samples.Z[inside])[2][: np.linalg.matrix_rank(samples.Z[inside])].T
        rows = samples.Z[inside] @ basis
        face = Problem.from_data(rows, samples.y[inside], sample_weight=None, fit_intercept=False, alpha=0.0)
        return least_objective(face) + float(np.square(samples.y[~inside]).sum()) >= cutoff

    alone = ScaleSearch(samples, cutoff)
    alone.advance(ENOUGH)
    search = ScaleSearch(samples, cutoff, close_face)
    search.advance(ENOUGH)
    assert len(asked) == len(set(asked))
    assert search.proved >= alone.proved
    rng = np.random.default_rng(seed)
    assert walk(samples, search.proved, rng) >= cutoff - 1e-9 * float(samples.y @ samples.y)
    refused = ScaleSearch(samples, cutoff, lambda _: False)
    refused.advance(ENOUGH)
    assert refused.proved == alone.proved


def test_faces_are_needed_and_help():
    """Without the proof for a face nothing can be proved; with it, most is."""
    n_helped = 0
    for seed in range(10):
        problem, reduced = with_dummy(seed)
        cutoff = reduced.value(least_objective(problem)) * 0.95
        alone = ScaleSearch(reduced.samples, cutoff)
        alone.advance(ENOUGH)
        search = ScaleSearch(reduced.samples, cutoff, lambda _: True)
        search.advance(ENOUGH)
        n_helped += search.proved > alone.proved
    assert n_helped >= 5


def with_dummies(seed):
    """Much noise and three dummies: faces of several dimensions lie in each other."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(150, 2)), rng.random((150, 3)) < [0.15, 0.1, 0.1]])
    y = np.maximum(X @ [0.5, -0.3, 0.3, -0.3, 0.2] - 0.3, 0.0) + rng.normal(size=150)
    y = np.maximum(y, 0.0)
    solution = solve(X, y)
    reduced = reduce_rows(Problem.from_data(X, y, sample_weight=None, fit_intercept=True, alpha=0.0))
    along = reduced.from_coefficients(solution.beta, solution.intercept)
    cutoff = reduced.value(solution.objective)
    return CellSearch(reduced.samples, along, Control(lambda: cutoff, lambda _: None))


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
    ready = ScaleSearch(cells.samples, cells.cutoff, cells.faces.is_closed)
    ready.advance(10 * ENOUGH)
    asked, patience = [], 2

    def close_face(kind):
        asked.append(kind.tobytes())
        return asked.count(asked[-1]) > patience and cells.faces.is_closed(kind)

    search = ScaleSearch(cells.samples, cells.cutoff, close_face)
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
    least = float(np.linalg.norm(u[inside][:, ~is_side], axis=1).min(initial=np.inf))
    room = ScaleWork.empty(n, size, 1)
    if np.isfinite(least):
        assert not is_empty(tuple(rows), is_side, least * (1.0 + 1e-9), reach, tuple(room))
        assert not is_empty(tuple(rows), is_side, 1.5 * least + 1e-9, reach, tuple(room))


def test_bits():
    mask = np.random.default_rng(0).random(200) < 0.5
    assert np.array_equal(_unpack(_pack(mask), mask.size), mask)
