"""The search over signs in slabs of the mean u, and in the far region, where all scales are one."""

import numpy as np
import pytest
from brute import least_objective, random_problem
from rays import least_mean_met

from rectifit import solve
from rectifit.certificate import branching, tighten
from rectifit.certificate.best_first import Control
from rectifit.certificate.branching import SignSearch
from rectifit.certificate.envelope import FAR_FREE, FAR_ON, OFF, ON, SLAB
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.records import Samples
from rectifit.certificate.relaxation import Region, Relaxation
from rectifit.certificate.tighten import shrink_by_cost

pytestmark = pytest.mark.filterwarnings(
    "ignore:the fit is the zero function", "ignore:no outcome is positive"
)

MAX_NODES = 15


def far_loss(u, y):
    """The least loss over all larger scales."""
    return np.where(u > 0.0, np.square(np.maximum(u - y, 0.0)), y * y)


def test_the_far_loss_is_the_least_over_larger_scales():
    u, y = np.meshgrid(np.linspace(-2.0, 2.0, 41), np.linspace(0.05, 2.0, 40))
    scales = np.geomspace(1.0, 1e4, 4000)[:, None, None]
    least = np.square(np.maximum(scales * u, 0.0) - y).min(axis=0)
    assert np.all(far_loss(u, y) <= least + 1e-12)
    assert np.abs(far_loss(u, y) - least).max() < 1e-2


@pytest.mark.parametrize("seed", range(60))
def test_envelopes_of_slabs_and_far_samples_are_convex_and_below(seed):
    draw = np.random.default_rng(seed)
    y = np.abs(draw.normal(size=300))
    kind = draw.choice([SLAB, FAR_ON, FAR_FREE], y.size)
    low = np.where(kind == FAR_ON, 0.5, -2.0) * draw.exponential(size=y.size)
    low = np.where((kind == FAR_FREE) & (draw.random(y.size) < 0.2), -np.inf, low)
    high = np.maximum(low, 0.0) + draw.exponential(size=y.size) * draw.choice([0.1, 1.0, 5.0], y.size)
    c = draw.uniform(-0.9, 1.5, y.size) * draw.choice([0.01, 1.0], y.size)
    c = np.where((kind != FAR_FREE) | (low == -np.inf), np.minimum(c, 0.0), c)
    c = np.where(low == -np.inf, np.abs(c), np.where(kind == SLAB, 20.0 * c, c))
    region = Region(kind.astype(np.int8), low, high)
    env = Relaxation(Samples.from_rows(np.ones((300, 1)), y, np.eye(1)), region, c).envelopes

    def value(u):
        right, left = np.maximum(u - env.t, 0.0), np.maximum(env.a - u, 0.0)
        return env.constant + env.slope * u + env.right * right**2 + env.jump * right + env.left * left**2

    first = np.where(low > -np.inf, low, -3.0)
    for share in np.linspace(0.0, 1.0, 201):
        u = first + share * (high - first)
        loss = np.where(kind == SLAB, 0.0, far_loss(np.where(kind == FAR_ON, np.maximum(u, 1e-300), u), y))
        assert np.all(value(u) - c * u * u <= loss + 1e-10)
    grid = np.array([value(np.full(300, u)) for u in np.linspace(-4.0, 4.0, 201)])
    assert np.all(grid[2:] - 2.0 * grid[1:-1] + grid[:-2] >= -1e-9)


def equal_weights(n):
    return np.full(n, n**-0.5)


def random_weights(n, draw):
    """Weights of a mean, of very different sizes and some of them 0."""
    v = draw.exponential(size=n) ** draw.choice([0.5, 1.0, 3.0]) * (draw.random(n) < draw.choice([0.3, 1.0]))
    return v / np.linalg.norm(v) if v.any() else equal_weights(n)


def slab_search(reduced, cutoff, max_nodes=MAX_NODES, weights=None):
    """A search that begins with slabs, whether the data need them or not; None if costs close it."""

    def is_over():
        return search.n_nodes >= max_nodes

    search = SignSearch(reduced.samples, Control(lambda: cutoff, lambda _: None, is_over))
    search._take(1)
    search._done()
    if shrink_by_cost(search.region, reduced.y, cutoff) < 0:
        return None
    search.cut(reduced.Z.T @ (equal_weights(reduced.y.size) if weights is None else weights))
    return search


def run(search):
    """Search until nothing is left or the search is over; whether nothing below the cutoff is left."""
    while not search.is_done and not search.control.is_over():
        search.advance()
    return search.is_closed


def open_nodes(search):
    return [*(node for *_, node in search._open), *search._stack, *search._held]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("factor", [1.0001, 1.2])
def test_a_cutoff_above_the_optimum_is_never_proved(seed, factor):
    problem = random_problem(seed)
    reduced = reduce_rows(problem)
    least = reduced.value(least_objective(problem))
    slack = 1e-8 * float(reduced.y @ reduced.y) + 1e-12
    cutoff = least * factor + 10.0 * slack
    if not reduced.y.any():
        return
    search = slab_search(reduced, cutoff)
    assert search is not None
    assert not run(search)
    assert search.lower_bound <= least + slack


@pytest.mark.parametrize("seed", range(25))
def test_a_cutoff_below_the_optimum_is_proved(seed):
    problem = random_problem(seed)
    reduced = reduce_rows(problem)
    least = reduced.value(least_objective(problem))
    if least <= 1e-8 * float(reduced.y @ reduced.y):
        return
    search = slab_search(reduced, 0.99 * least, 4000)
    assert search is None or run(search)


def high_signal(seed, n=120, p=4):
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, p))
    b = draw.standard_normal(p)
    y = np.maximum(0.0, X @ b / np.linalg.norm(b) + 0.3) + 0.4 * draw.standard_normal(n)
    return X, np.maximum(y, 0.0) if seed % 2 else y


def holds(search, node, b):
    """Whether a point lies in a node, of which it knows signs and intervals; far ones at their own scale."""
    region, Z = node.region, search.samples.Z
    mean = float(search.mean @ b)
    if node.is_far:
        if mean > region.U[-1]:
            return False
        b = b * (region.U[-1] / mean)
    u = Z @ b
    slack = 1e-12 * (1.0 + np.abs(u))
    inside = np.all((u >= region.l - slack) & (u <= region.U + slack))
    on, off = (region.kind == ON) | (region.kind == FAR_ON), region.kind == OFF
    return bool(inside and np.all(u[on] >= -slack[on]) and np.all(u[off] <= slack[off]))


def test_nodes_keep_only_what_is_small():
    """All nodes of a round exist at once, and a relaxation is many times as large as a node."""
    reduced = reduce_rows(solve(*high_signal(0)).problem)
    search = slab_search(reduced, 0.6 * float(reduced.y @ reduced.y))
    expand, kept = search._expand, []

    def watched(node):
        parts = expand(node)
        kept.extend([node, *parts])
        return parts

    search._expand = watched
    while search.n_nodes < 30 and not search.is_done:
        search.advance()
    assert len(kept) > 20
    assert all(node.start.warm is None and node.start.owner is None for node in kept)


@pytest.mark.parametrize("seed", range(6))
def test_every_better_point_stays_in_a_node(seed):
    X, y = high_signal(seed)
    fit = solve(X, y)
    reduced = reduce_rows(fit.problem)
    cutoff = reduced.value(fit.objective) * 1.6
    search = slab_search(reduced, cutoff)
    best = reduced.from_coefficients(fit.beta, fit.intercept)
    draw = np.random.default_rng(seed)
    points = [
        best * draw.uniform(0.5, 1.5) + draw.normal(size=best.size) * draw.choice([0.03, 0.1, 0.3, 1.0])
        for _ in range(3000)
    ]
    loss = [float(np.square(np.maximum(reduced.Z @ b, 0.0) - reduced.y).sum()) for b in points]
    better = [b for b, value in zip(points, loss, strict=True) if value < cutoff]
    assert len(better) > 100
    for max_nodes in (0, 5, 10, 20):
        search.control.is_over = lambda most=max_nodes: search.n_nodes >= most
        run(search)
        assert all(any(holds(search, node, b) for node in open_nodes(search)) for b in better)


@pytest.mark.parametrize("seed", range(4))
def test_far_bounds_hold_at_all_scales(seed):
    X, y = high_signal(seed)
    reduced = reduce_rows(solve(X, y).problem)
    total = float(reduced.y @ reduced.y)
    search = slab_search(reduced, 2.0 * total)
    draw = np.random.default_rng(seed)
    size = np.sqrt(total)
    for at in (-0.5, -1.0, -4.0):
        far = search._far(at)
        search._expand_apart(far)
        for _ in range(2000):
            d = draw.normal(size=reduced.Z.shape[1])
            d += (
                (at * size * draw.uniform(1.0, 4.0) - search.mean @ d)
                * search.mean
                / float(search.mean @ search.mean)
            )
            u = reduced.Z @ d
            assert far.bound <= float(np.square(np.maximum(u, 0.0) - reduced.y).sum()) + 1e-9


def test_intercept_and_high_signal_close_without_a_box():
    X, y = high_signal(0, 300, 8)
    fit = solve(X, y)
    reduced = reduce_rows(fit.problem)
    cutoff = reduced.value(fit.objective * 0.99)
    search = SignSearch(reduced.samples, Control(lambda: cutoff, lambda _: None))
    assert not search.needs_slabs
    search.advance()
    assert search.needs_slabs
    search.cut(reduced.Z.T @ equal_weights(reduced.y.size))
    assert not search.needs_slabs
    assert run(search)
    assert search.lower_bound == cutoff


@pytest.mark.parametrize("seed", range(7))
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_cutoff_above_the_optimum_is_never_proved_with_any_mean(seed, is_cut):
    """Any weights v >= 0, and slabs that end just below the least mean of the better ray minima."""
    problem, draw = random_problem(seed), np.random.default_rng(seed)
    reduced = reduce_rows(problem)
    least = reduced.value(least_objective(problem))
    total = float(reduced.y @ reduced.y)
    slack = 1e-8 * total + 1e-12
    if least > 0.99 * total:
        return
    # So far above that a walk finds better points, if there have to be any.
    cutoff = least + (draw.choice([0.02, 0.1]) if is_cut else 1e-4) * (total - least) + 10.0 * slack
    search = slab_search(reduced, cutoff, 10, random_weights(reduced.y.size, draw))
    search.holds_far = is_cut
    if is_cut:
        low, _ = least_mean_met(reduced.samples, search.mean, cutoff, draw)
        # In steps, as the proof of the scale goes on, and after some of the slabs were looked at.
        run_rounds(search, draw.integers(4))
        for ratio in (30.0, 3.0, 1.05):
            search.cut_at(low - (ratio - 1.0) * abs(low) - slack)
            run_rounds(search, 2)
        search.release_far()
    assert not run(search)
    assert search.lower_bound <= least + slack


def run_rounds(search, count):
    """So many rounds, as long as there is anything to do but the far region."""
    for _ in range(count):
        if not (search.is_done or search.is_waiting or search.control.is_over()):
            search.advance()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_cutoff_below_the_optimum_is_proved_with_any_mean(seed, is_cut):
    problem, draw = random_problem(seed), np.random.default_rng(seed)
    reduced = reduce_rows(problem)
    least = reduced.value(least_objective(problem))
    if least <= 1e-8 * float(reduced.y @ reduced.y):
        return
    search = slab_search(reduced, 0.99 * least, 4000, random_weights(reduced.y.size, draw))
    if search is None:
        return
    if is_cut:
        # There are no better ray minima, so that slabs may end anywhere.
        search.holds_far = True
        search.cut_at(-draw.choice([0.1, 2.0, 20.0]) * float(np.linalg.norm(reduced.y)))
        run_rounds(search, 100)
        search.release_far()
    assert run(search)
    assert search.lower_bound == 0.99 * least


def test_slabs_that_end_above_a_better_point_lose_it():
    """Otherwise the tests above could not fail: cut above the best mean, too much is proved."""
    n_wrong = 0
    for seed in range(10):
        X, y = high_signal(seed, 25, 2)
        fit = solve(X, y)
        reduced = reduce_rows(fit.problem)
        cutoff = reduced.value(fit.objective) * 1.01
        search = slab_search(reduced, cutoff, 300)
        search.cut_at(0.9 * float(np.linalg.norm(reduced.y)))
        n_wrong += run(search)
    assert n_wrong > 0


def held_search(seed=0):
    """A search all of whose slabs but the far region are closed, which waits."""
    X, y = high_signal(seed, 60, 3)
    fit = solve(X, y)
    reduced = reduce_rows(fit.problem)
    cutoff = reduced.value(fit.objective) * 0.99
    search = slab_search(reduced, cutoff, 2000)
    search.holds_far = True
    # As if the bound of the far region were poor.
    tighten = search._tightened
    search._tightened = lambda node, *limits: [node] if node.is_far else tighten(node, *limits)
    run_rounds(search, 500)
    search._tightened = tighten
    return search


def test_the_far_region_is_held_back_and_counts_as_open():
    search = held_search()
    assert search.is_waiting
    assert search.n_open == 1
    assert not search.is_done
    assert not search.is_closed
    (far,) = search._held
    assert far.is_far
    assert search.lower_bound < search.cutoff
    assert search.reached == far.bound
    search.release_far()
    assert not search.is_waiting
    assert not search.holds_far
    assert search.n_open == 1
    assert run(search)
    assert search.lower_bound == search.cutoff


def test_a_held_region_ends_where_better_means_do():
    high = float(held_search()._held[0].region.U[-1])
    # A bound far below says nothing yet, one nearby leaves a slab, and one above leaves nothing.
    search = held_search()
    search.cut_at(20.0 * high)
    assert search.is_waiting
    search.cut_at(3.0 * high)
    (slab,) = open_nodes(search)
    assert not search.is_waiting
    assert not slab.is_far
    np.testing.assert_allclose([slab.region.l[-1], slab.region.U[-1]], [3.0 * high, high])
    # What was cut off does not come back.
    search.cut_at(5.0 * high)
    assert search.least_mean == 3.0 * high
    search = held_search()
    search.cut_at(0.9 * high)
    assert search.is_done
    assert search.is_closed


def better_rays(reduced, fit, cutoff, draw, n_points=1500):
    """Ray minima around a fit with a loss below the cutoff."""
    best = reduced.from_coefficients(fit.beta, fit.intercept)
    sizes = draw.choice([0.03, 0.1, 0.3, 1.0], size=(n_points, 1))
    points = best + draw.normal(size=(n_points, best.size)) * sizes
    fitted = np.maximum(points @ reduced.Z.T, 0.0)
    points *= ((fitted @ reduced.y) / np.square(fitted).sum(axis=1))[:, None]
    losses = np.square(np.maximum(points @ reduced.Z.T, 0.0) - reduced.y).sum(axis=1)
    better = points[losses < cutoff]
    assert len(better) > 100
    return better


def check_all_held(search, better, n_nodes):
    """So many nodes more, after which every better point lies in one that is open."""
    search.control.is_over = lambda most=search.n_nodes + n_nodes: search.n_nodes >= most
    run_rounds(search, n_nodes)
    assert all(any(holds(search, node, b) for node in open_nodes(search)) for b in better)


@pytest.mark.parametrize("seed", range(2))
def test_every_better_ray_minimum_stays_in_a_node_of_slabs_that_end(seed):
    X, y = high_signal(seed)
    fit = solve(X, y)
    reduced = reduce_rows(fit.problem)
    cutoff = reduced.value(fit.objective) * 1.6
    draw = np.random.default_rng(seed)
    search = slab_search(reduced, cutoff, weights=random_weights(reduced.y.size, draw))
    search.holds_far = bool(seed % 2)
    better = better_rays(reduced, fit, cutoff, draw)
    low = float((better @ search.mean).min())
    for ratio in (10.0, 2.0, 1.0):
        search.cut_at(low - (ratio - 1.0) * abs(low) - 1e-9)
        check_all_held(search, better, 5)


@pytest.mark.parametrize("seed", range(2))
def test_every_better_point_stays_where_boxes_take_the_place_of_tilts(seed, monkeypatch):
    """As where samples are too many to be tilted one by one."""
    for module in (branching, tighten):
        monkeypatch.setattr(module, "MAX_TILTS", 5)
    boxes, shrink = [], branching.shrink_by_box
    monkeypatch.setattr(branching, "shrink_by_box", lambda *args: boxes.append(shrink(*args)) or boxes[-1])
    X, y = high_signal(seed)
    fit = solve(X, y)
    reduced = reduce_rows(fit.problem)
    cutoff = reduced.value(fit.objective) * 1.6
    search = slab_search(reduced, cutoff)
    check_all_held(search, better_rays(reduced, fit, cutoff, np.random.default_rng(seed)), 8)
    assert len(boxes) >= 3
    # And what is not there is ruled out.
    below = slab_search(reduced, reduced.value(fit.objective) * 0.99, 400)
    assert run(below)
