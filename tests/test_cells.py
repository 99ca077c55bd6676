"""Soundness of the search over cells: no bound above a loss, no better solution outside of what is left."""

from collections import Counter
from dataclasses import dataclass
from itertools import product

import numba
import numpy as np
import pytest
from brute import least_in_space, least_objective, least_with_others_off, random_problem

from rectifit import Problem, certify, solve
from rectifit.certificate import cells as cells_module
from rectifit.certificate.best_first import Control, first_kinds
from rectifit.certificate.cell_kernel import BLOCK, CLOSED, FAR_BEGIN, THIN, draw_in, expand, price
from rectifit.certificate.cells import FACE_MARGIN, CellPool, CellSearch, Face, Faces, _choose_axes
from rectifit.certificate.flats import falling_direction
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.proof import MEMORY_LIMIT
from rectifit.certificate.records import (
    CONVEX,
    FREE,
    HINGES_PER_UNIT,
    OFF,
    ON,
    Cell,
    CellLog,
    Cells,
    FaceBounds,
    Found,
    FreeWork,
    Layout,
    Limits,
    Samples,
    SmallWork,
    make_room,
    normal_hinges,
    pack_kinds,
    unpack_kinds,
)
from rectifit.certificate.scale import ScaleSearch
from rectifit.parallel import workers

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
        slopes = np.maximum(fitted @ samples.y, 0.0)
        scales = np.divide(slopes, curvature, out=np.zeros_like(slopes), where=curvature > 0.0)
        losses = float(samples.y @ samples.y) - scales * slopes
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
    limit: float = np.inf

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


def expand_cell(samples, cell, limits, faces=None, n_listed=None):
    """Both halves of a cell after they were bounded by the kernel, which enumerates so many coordinates."""
    n, q = samples.Z.shape
    cells, found = Cells.empty(2, n, q), Found.empty(1, q)
    cells.low[0], cells.high[0], cells.kinds[0] = cell.low, cell.high, pack_kinds(cell.kind)
    cells.axis[0], cells.sign[0], cells.split[0] = cell.axis, cell.sign, cell.split
    cells.bound[0], cells.n_corners[0], cells.limit[0] = cell.bound, 0, cell.limit
    if cell.corners is not None:
        size = cells.n_corners[0] = cell.corners.size
        cells.corners[0, :size], cells.weights[0, :size] = cell.corners, cell.weights
    faces = FaceBounds.none(n) if faces is None else faces
    layout, *work = make_room(n, q)
    if n_listed is not None:
        sizes = {"n_listed": np.array([n_listed]), "n_first": np.array([(n_listed + 1) // 2])}
        layout = layout._replace(**sizes, has_rest=n_listed < q - 1)
    first, second = np.array([0]), np.array([1])
    room = map(tuple, (layout, *work))
    expand(
        tuple(samples),
        tuple(Limits.none(q)),
        tuple(cells),
        first,
        second,
        limits,
        tuple(faces),
        *room,
        tuple(found),
        tuple(CellLog.empty(0, n, q)),
    )
    parts = []
    for line in range(2):
        state, size = int(cells.state[line]), int(cells.n_corners[line])
        part = OneCell(cell.axis, cell.sign, None, None, None, -1, float(cells.bound[line]), state)
        if state != CLOSED:
            part.low, part.high = cells.low[line].copy(), cells.high[line].copy()
            part.kind, part.split = unpack_kinds(cells.kinds[line], n), int(cells.split[line])
            part.limit = float(cells.limit[line])
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


def fits(u, kind, tol=0.0):
    """Whether the signs in each line of u are those that kinds say."""
    return (u[:, kind == ON] >= -tol).all(axis=1) & (u[:, kind == OFF] <= tol).all(axis=1)


def check_halves(samples, parent, limits, rays, tally, n_listed=None, faces=None):
    """Expand a cell and hold what is said of its halves against rays in them. Returns the open halves."""
    cutoff, explained, _, limit = limits
    tol = LOSS_TOL * float(samples.y @ samples.y)
    # What is said holds for minima along their ray within these limits.
    rays = rays.where((rays.scales <= min(limit, parent.limit)) & (rays.lengths <= explained))
    found = expand_cell(samples, parent, limits, faces, n_listed)
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
        assert part.contains(better.directions, EDGE_TOL).all()
        assert fits(better.directions @ samples.Zt, part.kind, EDGE_TOL).all()
        assert part.limit <= min(limit, parent.limit)
        assert (better.scales <= part.limit * (1.0 + EDGE_TOL)).all()
        tally["limited"] += part.limit < min(limit, parent.limit)
        tally["narrowed"] += (part.high - part.low).sum() < 0.999 * (half.high - half.low).sum()
        tally["settled"] += np.count_nonzero(part.kind >= ON) > 0.5 * part.kind.size
    return [part for part in found if part.state != CLOSED and part.split >= 0]


def check_cell(samples, cell, draw, n_rays, tally, depth=2, n_listed=None, faces=None):
    """Check a cell, and halves of halves, for cutoffs and limits around what its best ray has."""
    rays, total = sample_rays(samples, cell, draw, n_rays), float(samples.y @ samples.y)
    best = int(np.argmin(rays.losses))
    least, scale, length = rays.losses[best], rays.scales[best], rays.lengths[best]
    if draw.random() < 0.3:
        # Some signs are known before.
        u = samples.Z @ rays.directions[best]
        signs = np.where(u > 0.0, ON, OFF)
        cell.kind = np.where(draw.random(u.size) < 0.2, signs, cell.kind).astype(np.int8)
    bits = draw.integers(0, 1 << min(cell.low.size, 30), size=draw.integers(13))
    cell.corners, cell.weights = bits.astype(np.int32), draw.exponential(max(scale, 0.1), size=bits.size)
    middle = float(np.quantile(rays.losses, 0.3))
    explained, barely = np.sqrt(total), 1.0 + 1e-9
    for cutoff in (least - 0.01 * (total - least), least + 1e-6 * total, 0.9 * least + 0.1 * total, middle):
        far = cell.directions_of(far_points(samples, scale * rays.directions[best], cutoff - least))
        more = Rays.of(samples, np.vstack([rays.directions, far]))
        more = more.where(fits(more.directions @ samples.Zt, cell.kind))
        # Rays that are better reach so far at least; nothing need be known of that.
        needed = np.sqrt(max(total - cutoff, 0.0)) * draw.choice([0.0, 1.0])
        for reach, limit in ((explained, np.inf), (length * barely, np.inf), (explained, scale * barely)):
            limits = (float(cutoff), float(max(reach, 1e-3)), float(needed), float(max(limit, 1e-3)))
            parts = [cell]
            for _ in range(depth):
                chosen = parts[draw.integers(len(parts))]
                parts = check_halves(samples, chosen, limits, more, tally, n_listed, faces)
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


@pytest.mark.parametrize(("q", "n_listed"), [(2, 0), (3, 1), (4, 0), (5, 2)])
def test_cells_with_few_coordinates_enumerated(q, n_listed):
    """As above, with so few coordinates that the bound is tight."""
    draw, tally = np.random.default_rng(q), Counter()
    for name in DATA:
        samples = make_samples(name, 15 * q, q, 1)
        for place in PLACES * 2:
            check_cell(samples, random_cell(samples, draw, place), draw, 50, tally, n_listed=n_listed)
    assert tally["closed"] > 0.03 * tally["halves"]


@pytest.mark.parametrize("name", ["gaussian", "dummies", "heavy_tails", "ridge"])
def test_cells_with_thousands_of_samples(name):
    draw, tally = np.random.default_rng(0), Counter()
    samples = make_samples(name, 3000, 6, 0)
    for place in PLACES:
        check_cell(samples, random_cell(samples, draw, place), draw, 30, tally, depth=1)
    assert tally["closed"] > 0.03 * tally["halves"]


def test_a_hinge_below_zero_bounds_the_loss_at_all_larger_scales():
    """-mu max(u, -h) + (u - y)_+^2 <= (max(0, t u) - y)^2 for t >= 1, y, h > 0 and mu <= y^2 / h."""
    draw = np.random.default_rng(0)
    y, h = np.exp(draw.normal(size=(2, 100_000)))
    mu = y * y / h * draw.choice([1.0, 0.7, 0.0], size=y.size)
    u = draw.choice([1.0, 3.0], size=y.size) * (y + h) * draw.normal(size=y.size)
    for larger in (1.0, 1.0 + draw.exponential(size=y.size), 100.0):
        loss = np.square(np.maximum(larger * u, 0.0) - y)
        bound = -mu * np.maximum(u, -h) + np.square(np.maximum(u - y, 0.0))
        assert (bound <= loss * (1.0 + 1e-12) + 1e-12).all()
        assert (bound > 0.99 * loss).any()


# Helpers of compiled code, to be tested by themselves.
@numba.njit
def priced(n_free, cell, layout, slope, free):
    return price(n_free, cell, layout, slope, free)


@numba.njit
def drawn_in(samples, cell, kind, room, small):
    return draw_in(samples, cell, kind, room, small)


@pytest.mark.parametrize("has_floors", [False, True])
@pytest.mark.parametrize("q", [2, 3, 5, 6])
def test_the_table_of_prices_has_every_corner(q, has_floors):
    """D(v) = slope'v - sum mu max(-floor, z'v), floors included, neither more nor less than its error."""
    draw, n = np.random.default_rng(q), 2 * BLOCK + 3
    for axis in range(q):
        sign, low, high = float(draw.choice([-1, 1])), -draw.random(q), draw.random(q)
        free, layout, slope = FreeWork.empty(n, q), Layout.of(q), draw.normal(size=q)
        free.Z[:], free.mu[:] = draw.normal(size=(q, n)), draw.choice([0.0, 1.0, 3.0], size=n)
        # About as far below 0 as u is in the cell.
        free.floor[:] = draw.choice([0.3, 1.0, 2.0], size=n) * has_floors
        others = [k for k in range(q) if k != axis]
        layout.listed[others], layout.order[: q - 1] = True, draw.permutation(others)
        error = priced(n, Cell(axis, sign, low, high), layout, slope, free)
        assert 0.0 <= error <= 1e-10
        for c, found in enumerate(layout.prices):
            corner = np.where(np.arange(q) == axis, sign, low)
            for a, k in enumerate(layout.order[: q - 1]):
                corner[k] = high[k] if c >> a & 1 else low[k]
            expected = slope @ corner - free.mu @ np.maximum(-free.floor, corner @ free.Z)
            assert abs(found - expected) <= error


@pytest.mark.parametrize("seed", range(20))
def test_the_ellipsoid_of_a_cell_ends_where_the_bound_reaches_the_cutoff(seed):
    """Points b with rho'(b - p) + (b - p)'K(b - p) = room, the farthest along each sample and coordinate."""
    draw, q, n = np.random.default_rng(seed), 3, 40
    samples, small = make_samples("gaussian", n, q, seed), SmallWork.empty(q)
    root = draw.normal(size=(q, q))
    K, axis, sign = root @ root.T + 0.1 * np.eye(q), int(draw.integers(q)), 1.0
    small.L[:], small.at[:], small.rho[:] = np.linalg.cholesky(K), draw.normal(size=q), draw.normal(size=q)
    small.at[axis] = 6.0
    room = float(draw.exponential())
    low, high = np.full(q, -50.0), np.full(q, 50.0)
    kind = np.full(n, FREE, np.int8)
    drawn_in(samples, Cell(axis, sign, low, high), kind, room, small)
    centre = small.at - 0.5 * np.linalg.solve(K, small.rho)
    size = room + 0.25 * small.rho @ np.linalg.solve(K, small.rho)

    def farthest(direction):
        way = np.linalg.solve(K, direction)
        return centre + way * np.sqrt(size / (direction @ way))

    for i, z in enumerate(samples.Z):
        ends = sorted([z @ farthest(-z), z @ farthest(z)])
        assert kind[i] == (ON if ends[0] > 1e-6 else OFF if ends[1] < -1e-6 else FREE)
    edge = np.array([farthest(direction) for direction in draw.normal(size=(2000, q))])
    ratios = np.delete(edge / edge[:, [axis]], axis, axis=1)
    ratios = ratios[(edge[:, axis] > 1e-3) & (np.abs(ratios) < 50.0).all(axis=1)]
    below, above = np.delete(low, axis), np.delete(high, axis)
    assert (ratios >= below).all()
    assert (ratios <= above).all()
    if (centre[axis] > 1.5 * np.sqrt(size * np.linalg.inv(K)[axis, axis])) and len(ratios) == 2000:
        # And no wider than that.
        width = ratios.max(axis=0) - ratios.min(axis=0)
        assert (above - below <= 1.1 * width + 1e-6).all()


def least_far_loss(samples, cell, scale, draw):
    """The least loss that is found in a cell at a scale and beyond, and its direction."""

    def measure(directions):
        u = np.maximum(scale * directions @ samples.Zt, 0.0)
        # Along a ray the loss is a quadratic in the factor, which is at least 1.
        ridge = scale**2 * ((directions @ samples.ridge) * directions).sum(axis=1)
        curvature, slope = np.square(u).sum(axis=1) + ridge, u @ samples.y
        factor = np.divide(slope, curvature, out=np.ones_like(slope), where=curvature > 0.0)
        factor = np.maximum(factor, 1.0)
        return float(samples.y @ samples.y) - 2.0 * factor * slope + factor**2 * curvature

    low, high = cell.low, cell.high
    points = draw.uniform(low, high, size=(2000, low.size))
    for sweep in range(25):
        points = points[np.argsort(measure(points))[:30]]
        steps = 0.7**sweep * (high - low) * draw.normal(size=(20, *points.shape))
        points = np.vstack([points, np.clip(points + steps, low, high).reshape(-1, low.size)])
    losses = measure(points)
    return float(losses.min()), points[np.argmin(losses)]


@pytest.mark.parametrize("is_corner", [False, True])
@pytest.mark.parametrize("q", [2, 3, 4])
@pytest.mark.parametrize("name", DATA)
def test_all_larger_scales_are_closed_only_where_nothing_is_better(name, q, is_corner):
    """In cells with a direction in which all samples are off, where no length bounds the scale."""
    tally, draw = Counter(), np.random.default_rng(q)
    for seed in range(20):
        samples = make_samples(name, 5 * q, q, seed)
        down = falling_direction(samples.Z)
        if down is None:
            half = samples.Z[:, 0] < 0.0
            samples = Samples.from_rows(samples.Z[half], samples.y[half], samples.ridge)
            down = np.eye(q)[0]
        cell = cell_around(samples, down / np.linalg.norm(down), 10.0 ** draw.uniform(-1.0, 0.3))
        explained = 10.0 ** draw.uniform(-1.5, 0.5) * np.linalg.norm(samples.y)
        if is_corner:
            # With the best direction at a corner, where the relaxation loses nothing.
            best = least_far_loss(samples, cell, FAR_BEGIN * explained, draw)[1]
            down = 0.5 * (cell.low + cell.high)
            cell.low, cell.high = down - np.abs(best - down), down + np.abs(best - down)
            cell.split = int(np.argmax(cell.high - cell.low))
        least = [least_far_loss(samples, part, FAR_BEGIN * explained, draw)[0] for part in cell.halves()]
        for share in (1.0 + 1e-9, 1.001, 1.1, 0.999, 0.95, 0.8, 0.5):
            cutoff = share * min(least)
            parts = expand_cell(samples, cell, (cutoff, explained, 0.0, np.inf))
            for part, best in zip(parts, least, strict=True):
                tally["halves"] += 1
                tally["limited"] += part.limit < np.inf or part.state == CLOSED
                if best < cutoff:
                    assert part.state != CLOSED
                    assert part.limit == np.inf
    assert tally["limited"] > 0.1 * tally["halves"]


def value_of(samples, b):
    """The loss at b."""
    return float(np.square(np.maximum(samples.Z @ b, 0.0) - samples.y).sum() + b @ samples.ridge @ b)


def search_of(samples, cutoff, n_nodes=2000, **options):
    """A search for what is below a cutoff, which ends after so many nodes."""

    def is_over():
        return search.n_nodes >= n_nodes

    control = Control(lambda: cutoff, lambda _: None, is_over)
    search = CellSearch(samples, control, **options)
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
    blind = CellSearch(samples, control)
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


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("q", [2, 3, 4])
def test_steep_solutions_are_not_ruled_out(q, gap):
    """One sample with a large outcome lies so close to the others that only steep planes single it out."""
    draw, tally = np.random.default_rng(q), Counter()
    X, w = draw.normal(size=(20, q - 1)), draw.normal(size=q - 1)
    next_to = X[np.argmax(X[:-1] @ w)]
    X[-1] = next_to + gap * w / (w @ w)
    y = np.append(0.1 * draw.normal(size=19), 1.0)
    reduced = reduce_rows(Problem.from_data(X, y))
    samples, total = reduced.samples, float(reduced.y @ reduced.y)
    steep = reduced.value(float(np.square(y[:-1]).sum()))
    cutoff = 0.5 * (steep + total)
    search = search_of(samples, cutoff, 1000)
    assert not search.run()
    assert search.lower_bound <= steep + 1e-9 * total
    # The same in cells around it, which hold directions in which all samples are off.
    b = reduced.from_coefficients(w / gap, -(next_to @ w) / gap)
    axis = int(np.argmax(np.abs(b)))
    direction = b / abs(b[axis])
    ray = Rays.of(samples, direction[None])
    assert ray.losses[0] == pytest.approx(steep)
    for width in 10.0 ** np.arange(-8.0, 0.0):
        half = np.where(np.arange(q) == axis, 0.0, width)
        low, high = direction - half, direction + 1.5 * half
        cell = OneCell(axis, int(direction[axis]), low, high, first_kinds(samples.y), (axis + 1) % q)
        limits = (cutoff, np.sqrt(total), np.sqrt(total - cutoff), np.inf)
        check_halves(samples, cell, limits, ray, tally)


def test_which_rows_fall_together():
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert falling_direction(X) is None
    for rows in (np.abs(X), np.column_stack([X, np.ones(50)]), X[:2], np.zeros((0, 3))):
        assert (rows @ falling_direction(rows) <= -1.0 + 1e-9).all()


@pytest.mark.parametrize(("seed", "off"), [(1, 2), (2, 1), (3, 1), (3, 2)])
def test_points_of_a_face_are_offered_with_all_other_samples_off(seed, off):
    """So that what is met in a face is a solution, with the loss that the face says."""
    samples, _, outside, least = with_category_off(seed, 14, off)
    offered = []
    search = CellSearch(samples, Control(lambda: 0.9 * least, offered.append))
    face = search.faces.face(~outside)
    face.advance(3000)
    assert offered
    assert all((samples.Z[outside] @ b <= 1e-9).all() for b in offered)
    losses = [np.square(np.maximum(samples.Z @ b, 0.0) - samples.y).sum() for b in offered]
    assert least * (1.0 - 1e-9) <= min(losses) <= face.least * (1.0 + 1e-9)


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


def categories(seed, n=120):
    """Data with dummies: whole categories can be off, and the rest has less dimension."""
    draw = np.random.default_rng(seed)
    category = draw.integers(0, 3, size=n)
    X = np.column_stack([category == 1, category == 2, draw.normal(size=n)]).astype(float)
    return X, np.maximum(X @ [0.5, -1.0, 0.5] + 0.2 + draw.normal(size=n), 0.0), category


def with_category_off(seed, n, off):
    """Samples, kinds with a category off, and the least loss of what that leaves plus what it costs."""
    X, y, category = categories(seed, n)
    samples = reduce_rows(Problem.from_data(X, y)).samples
    # Rows are sorted and scaled: a category is told by its dummies, and without others X has two columns.
    order = np.lexsort(X.T[::-1])
    outside = category[order] == off
    scale = float(np.sqrt(samples.y @ samples.y / (y @ y)))
    rest = Problem.from_data(X[category != off], y[category != off] * scale)
    kind = np.where(outside, OFF, first_kinds(samples.y)).astype(np.int8)
    least = least_objective(rest) + float(np.square(samples.y[outside]).sum())
    return samples, kind, outside, least


@pytest.mark.parametrize("off", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_faces_have_the_bound_of_a_smaller_problem(seed, off, monkeypatch):
    samples, kind, outside, least = with_category_off(seed, 14, off)
    below, above = (search_of(samples, least * factor) for factor in (1.0 - 1e-3, 1.0 + 1e-3))
    # Nothing below the cutoff is left in the face: no better solution has the category off.
    bound = below.bound_face(kind)
    assert below.cutoff * (1.0 - 1e-12) <= bound <= least * (1.0 + 1e-9)
    known = below.faces.bounds
    (line,) = np.flatnonzero((known.outside == outside).all(axis=1))
    assert known.bound[line] == pytest.approx(bound, rel=1e-11)
    # Something is left, and the face must not be ruled out, however long it is looked at.
    for _ in range(3):
        assert above.bound_face(kind) <= least * (1.0 + 1e-9)
        above.n_nodes += 10_000
    assert not (above.faces.bounds.outside == outside).all(axis=1).any()
    n_faces = len(above.faces)
    assert n_faces > 0
    assert above.faces.face(~outside).bound < above.cutoff
    assert len(above.faces) == n_faces
    # The same where the face is left before it is closed.
    monkeypatch.setattr(cells_module, "MIN_FACE_CELLS", 1)
    monkeypatch.setattr(cells_module, "ROUND_CELLS", 2)
    monkeypatch.setattr(cells_module, "MIN_ROUND_CELLS", 1)
    early = search_of(samples, least * (1.0 - 1e-3))
    assert early.bound_face(kind) < early.cutoff
    assert not (early.faces.bounds.outside == outside).all(axis=1).any()


@pytest.mark.parametrize(("seed", "off"), [(1, 2), (2, 1), (3, 1), (3, 2)])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_more_is_proved_of_a_face_than_that_it_holds_nothing_better(seed, off, share):
    """A share of the way to its least loss and no more, and nothing is lost when the cutoff falls."""
    samples, kind, outside, least = with_category_off(seed, 14, off)
    mass = float(np.square(samples.y[outside]).sum())
    cutoff = [mass + share * (least - mass)]
    search = CellSearch(samples, Control(lambda: cutoff[0], lambda _: None))
    face = search.faces.face(~outside)
    face.advance(3000)
    assert face.search.is_closed
    target = cutoff[0] + FACE_MARGIN * (least - cutoff[0])
    assert target * (1.0 - 1e-9) <= face.bound <= least * (1.0 + 1e-9)
    assert search.bound_face(kind) == face.bound
    before = face.bound
    for _ in range(3):
        cutoff[0] *= 0.9
        assert before <= search.bound_face(kind) <= least * (1.0 + 1e-9)
        known = search.faces.bounds
        (line,) = np.flatnonzero((known.outside == outside).all(axis=1))
        assert before * (1.0 - 1e-11) <= known.bound[line] <= least * (1.0 + 1e-9)


@pytest.mark.parametrize("start", [1.3, 1.05])
def test_a_face_that_was_hopeless_is_closed_once_the_cutoff_has_fallen(start):
    samples, kind, outside, least = with_category_off(2, 14, 1)
    cutoff = [start * least]
    search = CellSearch(samples, Control(lambda: cutoff[0], lambda _: None))
    for factor in np.linspace(start, 0.9, 12):
        cutoff[0] = factor * least
        bound = search.bound_face(kind)
        assert bound <= least * (1.0 + 1e-9)
        # Known to all others only from the moment on at which it holds nothing better.
        assert bool((search.faces.bounds.outside == outside).all(axis=1).any()) == (bound >= cutoff[0])
        assert (bound >= cutoff[0]) == (factor < 1.0)


def test_samples_that_span_the_space_have_no_face():
    samples, kind, *_ = with_category_off(0, 14, 1)
    search = search_of(samples, 0.5)
    assert search.bound_face(first_kinds(samples.y)) == -np.inf
    assert search.bound_face(np.full_like(kind, OFF)) == -np.inf
    assert len(search.faces) == 0


def away_from(samples, outside):
    """The direction in which u falls for samples outside and stays where it is for the others."""
    away = np.linalg.lstsq(samples.Z, -1.0 * outside, rcond=None)[0]
    return away / np.abs(away).max()


def cell_around(samples, direction, half):
    axis = int(np.argmax(np.abs(direction)))
    q = direction.size
    direction = direction / abs(direction[axis])
    half = np.where(np.arange(q) == axis, 0.0, half)
    kind = first_kinds(samples.y)
    return OneCell(axis, int(direction[axis]), direction - half, direction + half, kind, (axis + 1) % q)


def states_with(samples, cell, limits, outside, bound):
    """What becomes of both halves of a cell with a bound where all these samples are off."""
    faces = FaceBounds(np.array(outside, dtype=np.bool_), np.array(bound, dtype=float))
    return [part.state for part in expand_cell(samples, cell, limits, faces)]


@pytest.mark.parametrize("off", [1, 2])
def test_a_bound_of_a_face_closes_only_cells_in_which_nearly_all_samples_outside_are_off(off):
    samples, _, outside, _ = with_category_off(0, 14, off)
    y, total = samples.y, float(samples.y @ samples.y)
    cell = cell_around(samples, away_from(samples, outside), 1e-3)
    cutoff = 0.999 * total
    limits = (cutoff, 2.0, 0.0, np.inf)
    open_, closed = [THIN, THIN], [CLOSED, CLOSED]
    plain = expand_cell(samples, cell, limits)
    assert [part.state for part in plain] == open_
    assert all((part.kind[outside] == OFF).all() for part in plain)
    assert states_with(samples, cell, limits, [outside], [cutoff]) == closed
    assert states_with(samples, cell, limits, [outside], [cutoff - 1e-9]) == open_
    # Samples that may be on in both halves cost what they weigh, and nothing with y <= 0.
    may = np.flatnonzero((plain[0].kind != OFF) & (plain[1].kind != OFF))
    heavy, light = may[y[may] > 0.0], may[y[may] <= 0.0]
    assert heavy.size >= 2
    assert light.size >= 1
    for chosen in (heavy[:1], heavy[:2], heavy, light, may):
        more = outside | np.isin(np.arange(y.size), chosen)
        mass = float(np.square(np.maximum(y[chosen], 0.0)).sum())
        assert states_with(samples, cell, limits, [more], [cutoff + mass + 1e-9]) == closed
        assert states_with(samples, cell, limits, [more], [cutoff + mass - 1e-9]) == open_
        # The best of several bounds counts, wherever it stands.
        two = [more, outside], [more, more], [outside, more]
        values = [cutoff, cutoff], [0.0, cutoff + mass + 1e-9], [-np.inf, cutoff + mass - 1e-9]
        for sets, bounds, state in zip(two, values, (closed, closed, open_), strict=True):
            assert states_with(samples, cell, limits, sets, bounds) == state


def tight_faces(samples, draw, sets):
    """Bounds that are as good as they can be, of these sets of samples inside and of random ones."""
    n = samples.y.size
    sets = [*sets, *(draw.random(n) < draw.choice([0.2, 0.5, 0.8]) for _ in range(3))]
    bounds = [least_with_others_off(samples, inside) for inside in sets]
    return FaceBounds(~np.array(sets, dtype=np.bool_), np.array(bounds))


@pytest.mark.parametrize("name", ["dummies", "integers", "negative", "ridge"])
def test_cells_with_tight_bounds_of_faces_keep_every_better_ray(name):
    """The bounds hold wherever samples outside are on, for any set of samples, a face or not."""
    draw, tally = np.random.default_rng(0), Counter()
    for seed in range(5):
        samples = make_samples(name, 12, 3, seed)
        half = samples.Z[:, seed % 3] > 0.0
        faces = tight_faces(samples, draw, [half, ~half])
        for place in PLACES * 2:
            check_cell(samples, random_cell(samples, draw, place), draw, 60, tally, faces=faces)
    assert tally["closed"] > 0.03 * tally["halves"]


@pytest.mark.parametrize("off", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_tight_bounds_of_faces_where_samples_outside_begin_to_be_on(seed, off):
    """Rays on which the category is off and the rest has its least loss come as close as can be."""
    samples, _, outside, least = with_category_off(seed, 14, off)
    draw, total, tally = np.random.default_rng(seed), float(samples.y @ samples.y), Counter()
    faces = FaceBounds(outside[None], np.array([least]))
    away, inside = away_from(samples, outside), ~outside
    tries = Rays.of(samples, descend_from_face(samples, inside, away, draw))
    off_there = tries.where((tries.directions @ samples.Zt[:, outside] <= 0.0).all(axis=1))
    assert least * (1.0 - 1e-9) <= off_there.losses.min() <= 1.02 * least
    best = off_there.directions[np.argmin(off_there.losses)]
    for half in (1e-3, 1e-2, 0.1, 0.5):
        cell = cell_around(samples, best, half)
        near = draw.uniform(cell.low, cell.high, size=(300, 4))
        rays = Rays.of(samples, np.vstack([near, cell.directions_of(tries.directions)]))
        for cutoff in (least * (1.0 - 1e-9), least, least * (1.0 + 1e-3), 0.5 * (least + total)):
            limits = (float(cutoff), float(np.sqrt(total)), 0.0, np.inf)
            parts = check_halves(samples, cell, limits, rays, tally, faces=faces)
            if parts:
                check_halves(samples, parts[0], limits, rays, tally, faces=faces)
            plain = expand_cell(samples, cell, limits)
            with_faces = expand_cell(samples, cell, limits, faces)
            tally["raised"] += sum(b.bound > a.bound for a, b in zip(plain, with_faces, strict=True))
    assert tally["raised"] > 0


def descend_from_face(samples, inside, away, draw):
    """Directions of small losses of the samples inside with the others off, and directions around them."""
    q = away.size
    # With every set of them that may be on: chance may miss the best one.
    sets = np.array(list(product([False, True], repeat=int(inside.sum()))))
    found = [np.linalg.lstsq(samples.Z[inside][on], samples.y[inside][on], rcond=None)[0] for on in sets]
    points = np.array([b + far * away for b in found for far in np.geomspace(0.1, 1e3, 9)])
    sizes = np.array([1e-3, 1e-2, 0.1, 0.3, 1.0])[:, None, None]
    for _ in range(4):
        is_off = (points @ samples.Zt[:, ~inside] <= 0.0).all(axis=1)
        losses = np.where(is_off, Rays.of(samples, points).losses, np.inf)
        best = points[np.argsort(losses, kind="stable")[:200]]
        points = np.vstack([best, (best + sizes * draw.normal(size=(5, len(best), q))).reshape(-1, q)])
    return points


@pytest.mark.parametrize("seed", range(4))
def test_what_a_search_notes_of_faces_holds(seed):
    """Dummies of two factors, so that faces lie in each other: each bound against brute force."""
    draw = np.random.default_rng(seed)
    first, second = draw.integers(0, 3, size=13), draw.integers(0, 2, size=13)
    X = np.column_stack([first == 1, first == 2, second == 1, draw.normal(size=13)]).astype(float)
    y = np.maximum(X @ [0.5, -0.5, 0.5, 0.5] + 0.2 + draw.normal(size=13), 0.0)
    samples = reduce_rows(Problem.from_data(X, y)).samples
    least = least_with_others_off(samples, np.ones(samples.y.size, dtype=np.bool_))
    n_faces = 0
    for factor in (0.7, 0.999, 1.2):
        search = search_of(samples, factor * least, 1500)
        search.run()
        assert search.lower_bound <= least * (1.0 + 1e-9)
        for outside, bound in zip(*search.faces.bounds, strict=True):
            n_faces += 1
            assert bound >= search.cutoff * (1.0 - 1e-9)
            assert bound <= least_with_others_off(samples, ~outside) * (1.0 + 1e-9)
    assert n_faces > 0


def test_one_face_is_searched_once():
    """Whoever asks for it: the search around it or one in another face, for the same samples."""
    samples, kind, outside, least = with_category_off(0, 14, 1)
    search = search_of(samples, 0.999 * least)
    face = search.faces.face(~outside)
    assert search.faces.face(~outside) is face
    assert face.search.faces is search.faces
    search.bound_face(kind)
    n_nodes, counted, n_faces = face.search.n_nodes, search.n_nodes, len(search.faces)
    assert 0 < n_nodes <= counted
    # What is proved is not searched for again, nor is the face another one with more samples off.
    for more in ([], np.flatnonzero(~outside)[:1]):
        again = kind.copy()
        again[more] = OFF
        assert search.bound_face(again) == face.bound
    assert (search.n_nodes, face.search.n_nodes, len(search.faces)) == (counted, n_nodes, n_faces)
    # Both categories off, asked for in the search around and in that of the face: the same samples.
    second = with_category_off(0, 14, 2)[2]
    both = np.where(outside | second, OFF, first_kinds(samples.y)).astype(np.int8)
    bound = search.bound_face(both)
    n_faces = len(search.faces)
    missing = search.faces.mass_outside(~outside)
    assert face.search.bound_face(both[~outside]) == pytest.approx(bound - missing, rel=1e-9)
    assert len(search.faces) == n_faces


def test_bounds_for_a_face_leave_out_what_is_outside_and_the_faces_that_do_not_lie_in_it():
    draw = np.random.default_rng(0)
    samples = make_samples("negative", 30, 4, 0)
    search, n = search_of(samples, 0.1), samples.y.size
    faces, members = search.faces, draw.random(n) < 0.6
    inside = members & (draw.random(n) < 0.5)
    across = inside.copy()
    across[np.flatnonzero(~members)[0]] = True
    for number, mask in enumerate((inside, across, members)):
        faces.note(mask, 2.0 + number)
    assert len(faces.bounds.bound) == 3
    outside, bound = faces.bounds_for(members)
    mass = float(np.square(samples.y[~members]).sum())
    assert np.array_equal(outside, ~np.array([inside, members])[:, members])
    np.testing.assert_allclose(bound, np.array([2.0, 4.0]) - mass, rtol=1e-11)
    everything = faces.bounds_for(np.ones(n, dtype=np.bool_))
    assert np.array_equal(everything.outside, faces.bounds.outside)
    assert np.array_equal(everything.bound, faces.bounds.bound)
    # A better bound takes the place of a worse one, and not the other way round.
    faces.note(inside, 3.0)
    faces.note(members, 1.0)
    np.testing.assert_allclose(faces.bounds.bound, [3.0, 3.0, 4.0], rtol=1e-11)
    assert np.all(faces.bounds.bound <= [3.0, 3.0, 4.0])


def test_a_bound_of_a_face_that_reaches_beyond_another_does_not_hold_in_it():
    """Samples 1 and 2 lie on both sides of the face of sample 0 and cannot both be off where that is on.

    In the problem of sample 0 alone they are said to be off, and its least loss is 0. The whole costs more
    than these two weigh, which says nothing of that problem.
    """
    Z = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    y = np.array([1.0, 0.1, 0.1, 1.0])
    samples = Samples.from_rows(Z, y, np.zeros((3, 3)))
    inside, alone = np.array([True, True, True, False]), np.array([True, False, False, False])
    larger, smaller = least_with_others_off(samples, inside), least_with_others_off(samples, alone)
    assert larger > smaller + 0.1
    search = search_of(samples, 0.5 * (larger + smaller))
    search.faces.note(inside, larger)
    assert len(search.faces.bounds_for(alone).bound) == 0
    assert search.faces.face(alone).bound <= smaller * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_categories_are_proved_by_faces(seed, monkeypatch):
    X, y, _ = categories(seed)
    best, searches = solve(X, y), []
    init = CellSearch.__init__

    def watched(self, *args, **options):
        init(self, *args, **options)
        searches.append(self)

    monkeypatch.setattr(CellSearch, "__init__", watched)
    certificate = certify(X, y, best, target_gap=1e-2, time_limit=60)
    assert certificate.status == "optimal"
    assert len(searches[0].faces) > 0
    assert len(searches[0].faces.bounds.bound) > 0


def low_signal(n, q, seed):
    """Samples that need many cells, and the least loss known."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, q - 1))
    y = X @ np.full(q - 1, 0.5) + 0.3 + draw.normal(size=n)
    reduced = reduce_rows(Problem.from_data(X, y))
    return reduced.samples, reduced.value(solve(X, y).objective)


@pytest.mark.parametrize(("name", "q"), [("no_intercept", 1), ("gaussian", 2), ("ridge", 3), ("dummies", 8)])
def test_axes_are_orthogonal_and_the_first_falls(name, q):
    samples = make_samples(name, 60, q, 0)
    axes = _choose_axes(samples)
    assert np.allclose(axes.T @ axes, np.eye(q))
    mean = samples.Z.sum(axis=0)
    assert np.allclose(axes[:, 0], -mean / np.linalg.norm(mean))


def test_axes_make_rows_sparse_where_that_is_possible():
    """Rows along q directions that are orthogonal to each other are found, however they are turned."""
    draw = np.random.default_rng(0)
    rows = np.repeat(np.eye(5), 40, axis=0) * draw.normal(size=(200, 1))
    # What they have in common is the first axis.
    rows = np.column_stack([np.full(200, -3.0), rows - rows.mean(axis=0)])
    turn = np.linalg.qr(draw.normal(size=(6, 6)))[0]
    samples = Samples.from_rows(rows @ turn, draw.exponential(size=200), np.zeros((6, 6)))
    found = np.sort(np.abs(samples.Z @ _choose_axes(samples))[:, 1:], axis=1)
    assert (found[:, :-1] < 0.3).all()
    assert np.allclose(found[:, -1], np.abs(rows[:, 1:]).max(axis=1), atol=0.3)


def test_hinges_are_the_best_for_a_normal_variable():
    draw, hinges = np.random.default_rng(0).normal(size=200_000), normal_hinges()
    assert hinges[0] == 0.0
    for mean in (0.5, 1.0, 3.0):
        tried = np.append(np.geomspace(0.05, 5.0, 40), hinges[int(mean * HINGES_PER_UNIT)])
        gains = [-np.maximum(draw - mean, -h).mean() / h for h in tried]
        assert gains[-1] >= max(gains) - 0.01


def test_kinds_are_packed_and_unpacked():
    draw = np.random.default_rng(0)
    for n in range(1, 20):
        kinds = draw.choice([CONVEX, FREE, ON, OFF], size=(5, n)).astype(np.int8)
        packed = np.array([pack_kinds(kind) for kind in kinds])
        assert packed.shape == (5, (n + 3) // 4)
        assert np.array_equal(unpack_kinds(packed, n), kinds)
        assert np.array_equal(unpack_kinds(packed[0], n), kinds[0])


def test_a_pool_grows_and_keeps_its_cells(monkeypatch):
    monkeypatch.setattr(cells_module, "FIRST_LINES", 4)
    pool = CellPool(10, 3, 1 << 20)
    lines = []
    for count in (4, 3, 8, 20):
        before = {line: pool.cells.low[line].copy() for line in lines}
        new = pool.reserve(count)
        assert len({*lines, *new}) == len(lines) + count
        assert all(np.array_equal(pool.cells.low[line], low) for line, low in before.items())
        pool.cells.low[new] = np.arange(count)[:, None]
        lines.extend(new)
        assert pool.n_used == len(lines)
    for line in lines[:5]:
        pool.release(np.array([line]))
    assert pool.n_used == len(lines) - 5
    assert set(pool.reserve(5)) == set(lines[:5])


def most_lines(search):
    """Run a search; the most lines of its pool that are in use after a round."""
    most = search._pool.n_used
    while not search.is_done:
        bound = search.lower_bound
        search.advance()
        assert search.lower_bound >= bound
        most = max(most, search._pool.n_used)
    return most


def test_growth_and_memory_change_no_proof(monkeypatch):
    samples, least = low_signal(100, 7, 0)
    cutoff = least * (1.0 - 1e-3)
    monkeypatch.setattr(cells_module, "MIN_ROUND_CELLS", 1)
    monkeypatch.setattr(cells_module, "ROUND_CELLS", 4)
    plain = search_of(samples, cutoff)
    used = most_lines(plain)
    monkeypatch.setattr(cells_module, "FIRST_LINES", 16)
    grown = search_of(samples, cutoff)
    assert most_lines(grown) == used
    assert len(grown._pool.cells.bound) >= used > 2 * 16
    assert (grown.n_nodes, grown.lower_bound) == (plain.n_nodes, plain.lower_bound)
    # With so little memory the search goes depth first. A level of the tree leaves a few cells behind.
    small = search_of(samples, cutoff, memory_limit=1)
    assert small._pool.capacity == 16
    n_levels = 7 * 5
    assert most_lines(small) <= min(16 + 4 * n_levels, used // 2)
    assert small.n_nodes < 2 * plain.n_nodes
    for search in (plain, grown, small):
        assert search.is_closed
        assert search.lower_bound == cutoff
        assert search._pool.n_used == 0


def test_cells_of_many_coefficients():
    q, draw = 140, np.random.default_rng(0)
    samples = make_samples("gaussian", 160, q, 0)
    search = search_of(samples, 0.9 * float(samples.y @ samples.y))
    assert sorted(search._pool.cells.axis[: 2 * q]) == sorted([*range(q), *range(q)])
    half = np.where(np.arange(q) == q - 2, 0.0, 1e-3)
    centre = np.where(half == 0.0, 1.0, draw.uniform(-0.9, 0.9, size=q))
    cell = OneCell(q - 2, 1, centre - half, centre + half, first_kinds(samples.y), q - 1)
    check_cell(samples, cell, draw, 20, Counter(), depth=2)


@pytest.mark.parametrize("share", [-1e-3, 0.02])
@pytest.mark.parametrize("memory_limit", [1, MEMORY_LIMIT])
def test_bounds_rise_and_stay_below_the_least_loss(share, memory_limit, monkeypatch):
    monkeypatch.setattr(cells_module, "FIRST_LINES", 16)
    samples, least = low_signal(80, 5, 1)
    search = search_of(samples, least * (1.0 + share), proved=0.1 * least, memory_limit=memory_limit)
    bounds, deepest = [search.lower_bound], 0
    while not search.is_done and search.n_nodes < 2000:
        search.advance()
        bounds.append(search.lower_bound)
        deepest = max(deepest, len(search._stack))
    assert (deepest > 0) == (memory_limit == 1)
    assert bounds[0] == 0.1 * least
    assert np.all(np.diff(bounds) >= 0.0)
    # A bound that forgets cells is too high as long as something below the cutoff is left.
    assert bounds[-1] <= least * (1.0 + 1e-9)
    assert bounds[-1] >= 0.5 * least or memory_limit == 1
    assert search.is_closed == (share < 0.0)


def test_a_search_that_is_stopped_goes_on_where_it_was():
    samples, least = low_signal(80, 6, 1)
    whole = search_of(samples, least * (1.0 - 1e-3))
    assert whole.run()
    calls = Counter()

    def is_over():
        calls["is_over"] += 1
        return calls["is_over"] % 3 == 0

    parts = CellSearch(samples, Control(whole.control.cutoff, lambda _: None, is_over))
    bounds = [parts.lower_bound]
    while not parts.run():
        bounds.append(parts.lower_bound)
    assert len(bounds) > 2
    assert np.all(np.diff(bounds) >= 0.0)
    assert bounds[-1] < parts.cutoff
    assert (parts.n_nodes, parts.lower_bound) == (whole.n_nodes, whole.lower_bound)


STEPS = [
    (CellSearch, "_take"),
    (CellSearch, "_expand"),
    (CellSearch, "_offer"),
    (CellSearch, "_sort_out"),
    (CellPool, "reserve"),
    (CellPool, "release"),
    (ScaleSearch, "advance"),
    (CellSearch, "bound_face"),
    (Face, "advance"),
    (Faces, "face"),
    (Faces, "note"),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("place", STEPS, ids=[name for _, name in STEPS])
def test_an_interrupt_leaves_a_valid_bound(place, after, monkeypatch):
    """Wherever it comes, before or after a step."""
    X, y, _ = categories(0, 40)
    reduced = reduce_rows(Problem.from_data(X, y))
    least = reduced.value(solve(X, y).objective)
    owner, name = place
    step, calls, stops = getattr(owner, name), Counter(), Counter()

    def interrupted(*args):
        calls[name] += 1
        if calls[name] == stops[name] and not after:
            raise KeyboardInterrupt
        result = step(*args)
        if calls[name] == stops[name]:
            raise KeyboardInterrupt
        return result

    n_interrupts = 0
    for stop in (1, 2, 3, 5, 8, 13):
        # With a cutoff above the least loss, a bound that forgets some cells is too high.
        search = search_of(reduced.samples, 1.2 * least, 200)
        calls[name], stops[name] = 0, stop
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupted)
            try:
                search.run()
            except KeyboardInterrupt:
                n_interrupts += 1
        assert search.lower_bound <= least * (1.0 + 1e-9)
    assert n_interrupts > 0


@pytest.mark.parametrize("name", ["gaussian", "dummies", "ridge"])
def test_threads_change_no_search(name):
    samples = make_samples(name, 120, 5, 1)
    cutoff = 0.8 * float(samples.y @ samples.y)
    found = []
    for n_threads in (1, 2, 3):
        search = search_of(samples, cutoff, 1500)
        with workers(n_threads) as mapped:
            search.run(mapped)
        proved = search.lower_bound, search.scale.proved, len(search.faces), search.kind.tobytes()
        found.append((search.n_nodes, search.work, *proved))
    assert found[0][0] > 50
    assert found[0] == found[1] == found[2]


def test_threads_change_no_certificate():
    X, y, _ = categories(1)
    best = solve(X, y)
    found = set()
    for n_jobs in (1, 2, 3):
        proof = certify(X, y, best, target_gap=1e-3, n_jobs=n_jobs, time_limit=None)
        counts = proof.n_nodes, proof.n_active, proof.n_inactive, proof.n_undecided
        found.add((proof.status, proof.objective, proof.lower_bound, *counts))
    assert len(found) == 1
    assert found.pop()[0] == "optimal"
