"""Soundness of the search over cells: no bound above a loss, no better solution outside of what is left."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from brute import least_in_space, least_objective, random_problem

from rectifit import Problem, certify, solve
from rectifit.certificate import cells as cells_module
from rectifit.certificate.best_first import Control, first_kinds
from rectifit.certificate.cell_kernel import CLOSED, expand
from rectifit.certificate.cells import CellPool, CellSearch
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.records import (
    CONVEX,
    FREE,
    OFF,
    ON,
    Cells,
    CellWork,
    Found,
    Layout,
    Samples,
    pack_kinds,
    unpack_kinds,
)

# Losses are sums of squares, and kinds and edges hold up to rounding.
LOSS_TOL = 1e-10
EDGE_TOL = 1e-9

DATA = ["gaussian", "no_intercept", "negative", "dummies", "integers", "heavy_tails", "ridge", "weights"]


def make_samples(name, n, q, seed):
    """Reduced samples with q coefficients of many kinds of data."""
    draw = np.random.default_rng([seed, n, q])
    p = q - (name != "no_intercept")
    X = draw.normal(size=(n, p))
    options = {"fit_intercept": name != "no_intercept"}
    if name == "dummies":
        category = draw.integers(0, max(p // 2, 1) + 1, size=n)
        X[:, : max(p // 2, 1)] = category[:, None] == np.arange(max(p // 2, 1))
    elif name == "integers":
        X = draw.integers(-2, 3, size=(n, p)).astype(float)
    b = draw.normal(size=p) / np.sqrt(p)
    y = np.maximum(X @ b + 0.3, 0.0) + draw.choice([0.2, 0.5, 1.0]) * draw.normal(size=n)
    if name == "negative":
        y -= 0.5
    elif name == "heavy_tails":
        X *= np.exp(draw.normal(size=(n, 1)))
        y = np.maximum(y, 0.0) * np.exp(1.5 * draw.normal(size=n))
    elif name in ("gaussian", "no_intercept"):
        y = np.maximum(y, 0.0)
    elif name == "ridge":
        options["alpha"] = float(draw.choice([0.1, 0.5, 2.0]) * n / 4)
    elif name == "weights":
        options["sample_weight"] = draw.exponential(size=n)
    return reduce_rows(Problem.from_data(X, y, **options)).samples


@dataclass
class Rays:
    """Directions, one per line, and the minimum of the loss along the ray of each."""

    directions: np.ndarray
    scales: np.ndarray
    lengths: np.ndarray
    losses: np.ndarray

    @classmethod
    def of(cls, samples, directions):
        fitted = np.maximum(directions @ samples.Zt, 0.0)
        squares = np.square(fitted).sum(axis=1)
        curvature = squares + ((directions @ samples.ridge) * directions).sum(axis=1)
        product = np.maximum(fitted @ samples.y, 0.0)
        scales = np.divide(product, curvature, out=np.zeros_like(product), where=curvature > 0.0)
        losses = float(samples.y @ samples.y) - scales * product
        return cls(directions, scales, scales * np.sqrt(squares), losses)

    def where(self, chosen):
        return Rays(self.directions[chosen], self.scales[chosen], self.lengths[chosen], self.losses[chosen])


def descend(samples, low, high, starts, n_sweeps):
    """Search along one coordinate after the other, on a grid that gets finer, from each of the starts."""
    points = starts.copy()
    for sweep in range(n_sweeps):
        width = (high - low) * 0.3**sweep
        for k in np.flatnonzero(high > low):
            tries = np.repeat(points[:, None, :], 7, axis=1)
            tries[:, :, k] = np.clip(tries[:, :, k] + width[k] * np.linspace(-1, 1, 7), low[k], high[k])
            losses = Rays.of(samples, tries.reshape(-1, low.size)).losses.reshape(len(points), 7)
            points = tries[np.arange(len(points)), losses.argmin(axis=1)]
    return points


def far_points(samples, b, room):
    """Where the loss is a quadratic around b and has risen by `room`: the points farthest out for each u."""
    on = samples.Z @ b > 0.0
    K = samples.Z[on].T @ samples.Z[on] + samples.ridge + 1e-9 * np.eye(b.size)
    rows = np.vstack([samples.Z[:: 1 + len(on) // 200], np.eye(b.size)])
    steps = np.linalg.solve(K, rows.T).T
    steps *= np.sqrt(0.99 * max(room, 0.0) / np.maximum((steps * rows).sum(axis=1), 1e-300))[:, None]
    return np.vstack([b + steps, b - steps])


@dataclass
class OneCell:
    """A cell, with what the search knows of it."""

    axis: int
    sign: int
    low: np.ndarray
    high: np.ndarray
    kind: np.ndarray
    split: int
    bound: float = 0.0
    state: int = 0
    corners: np.ndarray | None = None
    weights: np.ndarray | None = None

    def contains(self, directions, tol=0.0):
        return ((directions >= self.low - tol) & (directions <= self.high + tol)).all(axis=1)

    def directions_of(self, points):
        """The directions of points that lie in the cell, at s = 1."""
        s = self.sign * points[:, self.axis]
        directions = points[s > 1e-9] / s[s > 1e-9, None]
        directions[:, self.axis] = self.sign
        return directions[self.contains(directions)]

    def halves(self):
        """Both halves as they are before anything is known of them."""
        middle = 0.5 * (self.low[self.split] + self.high[self.split])
        at = np.arange(self.low.size) == self.split
        first = OneCell(self.axis, self.sign, self.low, np.where(at, middle, self.high), self.kind, -1)
        return first, OneCell(self.axis, self.sign, np.where(at, middle, self.low), self.high, self.kind, -1)


def expand_cell(samples, cell, limits, nogoods=None):
    """Both halves of a cell after they were bounded by the kernel."""
    n, q = samples.Z.shape
    cells, found = Cells.empty(2, n, q), Found.empty(1, q)
    cells.low[0], cells.high[0], cells.kinds[0] = cell.low, cell.high, pack_kinds(cell.kind)
    cells.axis[0], cells.sign[0], cells.split[0] = cell.axis, cell.sign, cell.split
    cells.bound[0], cells.n_corners[0] = cell.bound, 0
    if cell.corners is not None:
        size = cells.n_corners[0] = cell.corners.size
        cells.corners[0, :size], cells.weights[0, :size] = cell.corners, cell.weights
    nogoods = np.zeros((0, n), dtype=np.bool_) if nogoods is None else nogoods
    work, layout = CellWork.empty(n, q), Layout.of(q)
    first, second = np.array([0]), np.array([1])
    expand(tuple(samples), tuple(cells), first, second, limits, nogoods, tuple(layout), tuple(work), tuple(found))
    parts = []
    for line in range(2):
        state, size = int(cells.state[line]), int(cells.n_corners[line])
        part = OneCell(cell.axis, cell.sign, None, None, None, -1, float(cells.bound[line]), state)
        if state != CLOSED:
            part.low, part.high = cells.low[line].copy(), cells.high[line].copy()
            part.kind, part.split = unpack_kinds(cells.kinds[line], n), int(cells.split[line])
            part.corners, part.weights = cells.corners[line, :size].copy(), cells.weights[line, :size].copy()
        parts.append(part)
    return parts


def sample_rays(samples, cell, draw, n_rays):
    """Rays in a cell: anywhere, at its corners, and where the loss is small."""
    low, high = cell.low, cell.high
    anywhere = draw.uniform(low, high, size=(n_rays, low.size))
    corners = np.where(draw.random((n_rays // 4, low.size)) < 0.5, low, high)
    first = np.vstack([anywhere, corners, 0.5 * (low + high)])
    best = first[np.argsort(Rays.of(samples, first).losses)[:2]]
    good = descend(samples, low, high, best, 3)
    near = np.clip(good[:1] + 0.05 * (high - low) * draw.normal(size=(n_rays // 4, low.size)), low, high)
    return Rays.of(samples, np.vstack([first, good, near]))


def random_cell(samples, draw, place):
    """A cell anywhere, around the least squares of the samples with y > 0, or where almost all are off."""
    Z, y = samples.Z, samples.y
    q = Z.shape[1]
    around = draw.normal(size=q)
    if place == "good":
        on = y > 0.0
        for _ in range(10):
            gram = Z[on].T @ Z[on] + samples.ridge
            found = np.linalg.lstsq(gram, Z[on].T @ y[on], rcond=None)[0]
            around, on = (found, Z @ found > 0.0) if found.any() else (around, on)
    elif place == "off":
        around = -Z.sum(axis=0) + 0.1 * draw.normal(size=q)
    axis = int(np.argmax(np.abs(around)))
    sign = 1 if around[axis] > 0.0 else -1
    half = 10.0 ** draw.uniform(-2.5, 0.0) * draw.uniform(0.3, 1.0, size=q)
    shift = draw.uniform(-0.5, 0.5, size=q) if place != "good" else 0.2 * draw.normal(size=q)
    centre = around / abs(around[axis]) + shift * half
    low, high = np.clip(centre - half, -1.0, 1.0), np.clip(centre + half, -1.0, 1.0)
    low[axis] = high[axis] = sign
    split = int(np.argmax(high - low))
    return OneCell(axis, sign, low, high, first_kinds(y), split)


def check_halves(samples, parent, limits, rays, tally):
    """Expand a cell and hold what is said of its halves against rays that lie in them. Returns open halves."""
    cutoff, explained, limit, _ = limits
    tol = LOSS_TOL * float(samples.y @ samples.y)
    # What is said holds for minima along their ray within these limits.
    rays = rays.where((rays.scales <= limit) & (rays.lengths <= explained))
    found = expand_cell(samples, parent, limits)
    for half, part in zip(parent.halves(), found, strict=True):
        inside = rays.where(half.contains(rays.directions))
        least = float(inside.losses.min(initial=np.inf))
        tally["halves"] += 1
        if part.state == CLOSED:
            tally["closed"] += 1
            assert least >= cutoff - tol
            continue
        assert least >= min(part.bound, cutoff) - tol
        assert part.bound >= parent.bound
        # At b = 0 all u are 0, and there is no direction.
        better = inside.where((inside.losses < cutoff - tol) & (inside.scales > 0.0))
        u = better.directions @ samples.Zt
        assert part.contains(better.directions, EDGE_TOL).all()
        assert (u[:, part.kind == ON] >= -EDGE_TOL).all()
        assert (u[:, part.kind == OFF] <= EDGE_TOL).all()
        tally["narrowed"] += (part.high - part.low).sum() < 0.999 * (half.high - half.low).sum()
        tally["settled"] += np.count_nonzero(part.kind >= ON) > 0.5 * part.kind.size
    return [part for part in found if part.state != CLOSED and part.split >= 0]


def check_cell(samples, cell, draw, n_rays, tally, depth=2):
    """Check a cell, and halves of halves, for cutoffs and limits around what its best ray has."""
    rays, total = sample_rays(samples, cell, draw, n_rays), float(samples.y @ samples.y)
    best = int(np.argmin(rays.losses))
    least, scale, length = rays.losses[best], rays.scales[best], rays.lengths[best]
    bits = draw.integers(0, 1 << min(cell.low.size, 30), size=draw.integers(13))
    cell.corners, cell.weights = bits.astype(np.int32), draw.exponential(max(scale, 0.1), size=bits.size)
    middle = float(np.quantile(rays.losses, 0.3))
    explained, barely = np.sqrt(total), 1.0 + 1e-9
    for cutoff in (least - 0.01 * (total - least), least + 1e-6 * total, 0.9 * least + 0.1 * total, middle):
        far = cell.directions_of(far_points(samples, scale * rays.directions[best], cutoff - least))
        more = Rays.of(samples, np.vstack([rays.directions, far]))
        for reach, limit in ((explained, np.inf), (length * barely, np.inf), (explained, scale * barely)):
            limits = (float(cutoff), float(max(reach, 1e-3)), float(max(limit, 1e-3)), int(draw.integers(3)))
            parts = [cell]
            for _ in range(depth):
                parts = check_halves(samples, parts[draw.integers(len(parts))], limits, more, tally)
                if not parts:
                    break


PLACES = ["anywhere", "good", "off"]


@pytest.mark.parametrize("q", [2, 3, 5, 8])
@pytest.mark.parametrize("name", DATA)
def test_cells_keep_every_better_ray(name, q):
    draw, tally = np.random.default_rng(q), Counter()
    for seed in range(3):
        samples = make_samples(name, 20 * q if q < 5 else 10 * q, q, seed)
        for place in PLACES * 2:
            check_cell(samples, random_cell(samples, draw, place), draw, 80, tally)
    # Otherwise nothing was tested.
    assert tally["closed"] > 0.03 * tally["halves"]
    assert tally["settled"] > 0.1 * tally["halves"]
    assert tally["narrowed"] > 0.01 * tally["halves"]


@pytest.mark.parametrize("q", [13, 14, 17])
def test_cells_with_more_coordinates_than_are_enumerated(q):
    draw, tally = np.random.default_rng(q), Counter()
    for name in ("gaussian", "negative", "ridge"):
        samples = make_samples(name, 150, q, 0)
        for place in PLACES:
            cell = random_cell(samples, draw, place)
            check_cell(samples, cell, draw, 100, tally, depth=1)
    assert tally["closed"] > 0.03 * tally["halves"]


@pytest.mark.parametrize("name", ["gaussian", "dummies", "heavy_tails", "ridge"])
def test_cells_with_thousands_of_samples(name):
    draw, tally = np.random.default_rng(0), Counter()
    samples = make_samples(name, 3000, 6, 0)
    for place in PLACES:
        check_cell(samples, random_cell(samples, draw, place), draw, 30, tally, depth=1)
    assert tally["closed"] > 0.03 * tally["halves"]


def value_of(samples, b):
    """The loss at b."""
    return float(np.square(np.maximum(samples.Z @ b, 0.0) - samples.y).sum() + b @ samples.ridge @ b)


def search_of(samples, cutoff, n_nodes=2000, **options):
    """A search for what is below a cutoff, which ends after so many nodes."""

    def is_over():
        return search.n_nodes >= n_nodes

    control = Control(lambda: cutoff, lambda _: None, is_over)
    search = CellSearch(samples, np.ones(samples.Z.shape[1]), control, **options)
    return search


def odd_problem(seed):
    """Small data of kinds that `random_problem` does not have."""
    draw, kind = np.random.default_rng(seed), seed % 4
    n = int(draw.integers(7, 12))
    X, alpha = draw.normal(size=(n, 2)), float(draw.choice([0.0, 0.3]))
    if kind == 0:
        X = np.column_stack([draw.integers(0, 3, size=n)[:, None] == [1, 2], X[:, 0]]).astype(float)
    elif kind == 1:
        X *= draw.standard_cauchy(size=(n, 1))
    y = np.maximum(X.sum(axis=1) + 0.2, 0.0) + 0.7 * draw.normal(size=n)
    if kind == 2:
        y = np.where(draw.random(n) < 0.5, -np.exp(draw.normal(size=n)), y)
    elif kind == 3:
        y = np.maximum(y, 0.0) * np.exp(2.0 * draw.normal(size=n))
    return Problem.from_data(X, y, sample_weight=draw.exponential(size=n), alpha=alpha)


def with_copies(samples):
    """The same loss from twice as many samples: each is two of half the weight."""
    Z, y = np.repeat(samples.Z, 2, axis=0), np.repeat(samples.y, 2)
    return Samples.from_rows(Z / np.sqrt(2.0), y / np.sqrt(2.0), samples.ridge)


def check_search(problem, least, seed):
    """Hold searches against the least objective. Returns how many of two proofs were found soon."""
    reduced = reduce_rows(problem)
    samples, least = reduced.samples, reduced.value(least)
    samples = with_copies(samples) if seed % 5 == 0 else samples
    total = float(samples.y @ samples.y)
    slack, draw = 1e-9 * (1.0 + total), np.random.default_rng(seed)
    below = search_of(samples, least - 1e-3 * (least + slack), 1000)
    closed = int(below.run())
    assert below.lower_bound <= least + slack
    # What lies above the least loss is never ruled out.
    for cutoff in least + slack + (0.01, 0.3) * draw.random(2) * (total - least) + [1e-6, 1e-3]:
        above = search_of(samples, cutoff, 300)
        assert not above.run()
        assert above.lower_bound <= least + slack
    # A search that knows nothing at first finds the least loss by itself.
    best = [total]

    def offer(b):
        best[0] = min(best[0], value_of(samples, b))

    control = Control(lambda: best[0] * (1.0 - 1e-3) - slack, offer, lambda: blind.n_nodes >= 1000)
    blind = CellSearch(samples, np.zeros(samples.Z.shape[1]), control)
    if blind.run():
        closed += 1
        assert best[0] * (1.0 - 1e-3) - slack <= least + slack
    assert blind.lower_bound <= least + slack <= best[0] + 2.0 * slack
    return closed


@pytest.mark.parametrize("make", [random_problem, odd_problem])
@pytest.mark.parametrize("chunk", range(4))
def test_searches_against_brute_force(chunk, make):
    closed = 0
    for seed in range(10 * chunk, 10 * chunk + 10):
        problem = make(seed)
        closed += check_search(problem, least_objective(problem), seed)
    assert closed >= 14


@pytest.mark.parametrize("seed", range(4))
def test_searches_against_all_cells_of_an_arrangement(seed):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(24, 2))
    y = X @ [1.0, -1.0] + draw.normal(0.2, 1.0, size=24)
    problem = Problem.from_data(X, y if seed % 2 else np.maximum(y, 0.0))
    assert check_search(problem, least_in_space(problem), seed) == 2


def test_a_ridge_is_part_of_the_bound():
    problem = Problem.from_data([[1.0], [2.0], [-1.0]], [1.0, 2.0, 0.5], fit_intercept=False, alpha=3.0)
    reduced = reduce_rows(problem)
    least = reduced.value(least_objective(problem))
    assert search_of(reduced.samples, least * (1.0 - 1e-4)).run()
    assert not search_of(reduced.samples, least * (1.0 + 1e-4)).run()


@pytest.mark.parametrize("seed", range(3))
def test_low_signal_with_an_intercept_is_proved_without_a_box(seed):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(150, 3))
    y = np.maximum(X @ [0.6, -0.6, 0.5] + 0.3 + 1.5 * draw.normal(size=150), 0.0)
    best = solve(X, y)
    certificate = certify(X, y, best, target_gap=1e-2, time_limit=60)
    assert certificate.status == "optimal"
    assert certificate.box is None
    certificate.solution.verify()
    tries = solve(X, y, "multistart", n_starts=300)
    assert certificate.lower_bound <= min(tries.objective, best.objective) * (1 + 1e-9)
    blind = certify(X, y, np.zeros(3), target_gap=1e-2, time_limit=60)
    assert blind.objective == pytest.approx(certificate.objective, rel=1.01e-2)
