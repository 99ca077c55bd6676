"""Rules of the checker for signs where they are equations, and where all errors go the wrong way.

Every number is compared with rational arithmetic, without any slack. Rows that are known up to a doubt are
taken at the end of it: what a rule says must hold for all rows nearby.
"""

import itertools
import json
import struct
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from test_proof_files import sealed

from rectifit import ProofError, check_proof
from rectifit.checking.reading import MAGIC, Allowed, data_digest
from rectifit.checking.rounding import gamma, inverse_factor, up
from rectifit.checking.rows import Rows, Walls, distinct_rows
from rectifit.checking.sign_tree import BOX, CUTOFF, NODE, POINT, SHARES, SIGNS, UNSPLIT
from rectifit.checking.signs import Curve, Curves, Line, Point, SignRules, Tilt

fractions = np.frompyfunc(Fraction, 1, 1)
NO_ROWS, NO_SLOPES = np.zeros(0, np.int64), np.zeros(0)
# How much wider than necessary an end may be.
HAIR = 1e-6


def rules_for(Z, y, cutoff, w=None, B=None, blur=0.0, walls=None):
    """Rules for rows whose entries are known up to a blur, with bounds of errors that are no larger."""
    Z, y = np.asarray(Z, dtype=float), np.asarray(y, dtype=float)
    (n, q), blur = Z.shape, np.broadcast_to(np.asarray(blur, dtype=float), Z.shape)
    w = np.ones(n) if w is None else np.asarray(w, dtype=float)
    B = np.zeros((q, q)) if B is None else np.asarray(B, dtype=float)
    size, long = up(np.abs(Z).sum(axis=1)), np.sqrt(w @ np.square(Z))
    doubt = up(blur.sum(axis=1) + gamma(2 * q + 10) * size)
    cross = (w[:, None] * np.abs(Z)).T @ blur
    error = cross + cross.T + blur.T @ (w[:, None] * blur)
    error = up(error + gamma(n + 4) * (np.outer(long, long) + np.abs(B)))
    rows = Rows(Z, doubt, size, w, y, B, 0.0 * B, error, cutoff, 0.0, 0)
    return SignRules(rows, Walls.of(Z[:0], Z[:0], y[:0], y[:0]) if walls is None else walls)


def point_at(*x):
    return Point(np.array(x, dtype=float), NO_ROWS, NO_SLOPES)


def exact_loss(rules, g, Z=None):
    """The loss at g, with the rows Z if they are others than those stored."""
    rows, g = rules.rows, fractions(np.asarray(g, dtype=object))
    u = np.maximum(fractions(rows.Z if Z is None else Z) @ g, Fraction(0))
    return fractions(rows.w) @ np.square(u - fractions(rows.y)) + g @ fractions(rows.B) @ g


def solved(K, rhs):
    """K^-1 rhs in rationals."""
    K, x = K.copy(), rhs.copy()
    for k in range(len(K)):
        for i in range(len(K)):
            if i != k:
                share = K[i, k] / K[k, k]
                K[i], x[i] = K[i] - share * K[k], x[i] - share * x[k]
    return x / np.diagonal(K)


def least_of(A, G, K):
    """The least A + G'g + g'Kg of exact numbers, and where it is."""
    at = solved(2 * K, -G)
    return A + G @ at / 2, at


def quadratic_of(rules, Z):
    """The loss where all rows Z are on, in rationals."""
    w, y, Z = fractions(rules.rows.w), fractions(rules.rows.y), fractions(Z)
    return w @ (y * y), -2 * Z.T @ (w * y), fractions(rules.rows.B) + Z.T @ (w[:, None] * Z)


def all_on(rules, cutoff):
    """A node in which all rows are on."""
    n = rules.n
    return replace(rules.root(), low=np.zeros(n), high=np.full(n, 1e3), cutoff=cutoff)


def is_between(values, low, high):
    """Whether exact numbers lie between ends, which may be infinite."""
    return bool((low.astype(object) <= values).all() and (values <= high.astype(object)).all())


# ---- what single samples cost ----


@pytest.mark.parametrize("seed", range(30))
def test_what_single_samples_cost_is_neither_more_nor_much_less(seed):
    """At the end of each interval the row costs just what all others leave below the cutoff."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(1, 8))
    w, y = 10.0 ** draw.integers(-2, 3, size=n), draw.normal(size=n).round(2)
    fixed = float((w * np.square(y))[y <= 0.0].sum())
    cutoff = fixed + 10.0 ** draw.integers(-30, 2)
    rules = rules_for(np.ones((n, 1)), y, cutoff, w)
    node = rules.below(rules.root(), cutoff)
    exact_w, exact_y = fractions(w), fractions(y)
    room = Fraction(cutoff) - (exact_w * exact_y * exact_y)[y <= 0.0].sum()
    assert not node.is_closed or room <= 0
    if node.is_closed:
        return
    for weight, target, low, high in zip(exact_w, exact_y, node.low, node.high, strict=True):
        left = room if target > 0 else room + weight * target * target
        assert weight * (Fraction(high) - target) ** 2 >= left
        # Below 0, nothing changes any more.
        assert low == -np.inf or (low > 0.0 and weight * (target - Fraction(low)) ** 2 >= left)
        if cutoff > fixed * (1.0 + 1e-3):
            reach = float(left / weight) ** 0.5 * (1.0 + HAIR) + HAIR**2
            assert high <= float(target) + reach
            assert low > -np.inf or target <= 0.0 or float(target) < reach


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_below_the_cutoff_is_not_lost_by_rounding(seed):
    """Costs of many rows take all of the cutoff, but for less than their sum is rounded by."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 60))
    y, w = -draw.random(n), draw.random(n)
    fixed = fractions(w) @ np.square(fractions(y))
    cutoff = float(fixed)
    cutoff = cutoff if Fraction(cutoff) > fixed else np.nextafter(cutoff, 1e9)
    rules = rules_for(np.ones((n, 1)), y, cutoff, w)
    # u = 0 is better than the cutoff.
    assert not rules.below(rules.root(), cutoff).is_closed


# ---- parts, and boxes ----


def test_parts_share_their_border():
    rules = rules_for([[1.0]], [1.0], 10.0)
    node = rules.below(rules.root(), 10.0)
    on, off = rules.part(node, 0, True), rules.part(node, 0, False)
    assert on.low[0] <= 0.0 <= on.high[0]
    assert off.low[0] <= 0.0 <= off.high[0]
    border = rules.part(on, 0, False)
    assert not border.is_closed
    assert border.low[0] == border.high[0] == 0.0
    assert (on.low[0], on.high[0], off.low[0]) == (0.0, node.high[0], node.low[0])


@pytest.mark.parametrize("width", [0.0, 1e-15, 1e-3, 1.0])
@pytest.mark.parametrize("seed", range(10))
def test_rows_in_a_box_reach_from_corner_to_corner(seed, width):
    """Also where a box is one point, and its terms cancel; for all rows within the doubt."""
    draw = np.random.default_rng(seed)
    q, blur = 3, 0.0 if seed % 2 else 1e-9
    Z = draw.normal(size=(4, q))
    low = draw.normal(size=q) * 1e3
    # A row that is nearly 0 in the box.
    Z[0, 2] = -(Z[0, 0] * low[0] + Z[0, 1] * low[1]) / low[2]
    high = low + width * draw.random(q)
    rules = rules_for(Z, np.ones(4), 1.0, blur=blur)
    node = rules._within(rules.root(), np.array([low, high]))
    assert not node.is_closed
    for corner in itertools.product(*zip(low.tolist(), high.tolist(), strict=True)):
        g = fractions(np.array(corner))
        for side in (-1, 1):
            rows = fractions(Z) + side * Fraction(blur) * fractions(np.sign(corner))
            u = rows @ g
            assert (fractions(node.low) <= u).all()
            assert (u <= fractions(node.high)).all()
    spread = np.abs(Z) @ (high - low) + 1e5 * (blur + 1e-14)
    assert (node.high - node.low <= spread * (1.0 + HAIR)).all()


# ---- Lemma 8 ----


def box_of(Z, y, cutoff, points, **more):
    rules = rules_for(Z, y, cutoff, **more)
    return rules.boxed(rules.root(), np.array(points, dtype=float)).box


def test_a_box_holds_the_largest_coefficient():
    """One row up and one down, in which |u_+| = |y| + sqrt(cutoff) and nothing else is lost."""
    low, high = box_of([[1.0], [-4.0]], [3.0, 0.0], 4.0, [[1.0], [-1.0]])[:, 0]
    assert 5.0 <= high <= 5.0 * (1.0 + HAIR)
    assert -1.25 * (1.0 + HAIR) <= low <= -1.25
    # Two coordinates, of which the second is up to 100 times as large.
    Z = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.01], [0.0, -0.01]])
    box = box_of(Z, np.zeros(4), 1.0, [[1.0, 0.0], [0.0, 1e4], [-1.0, 0.0], [0.0, -1e4]])
    assert np.abs(box) == pytest.approx(np.array([[1.0, 100.0]] * 2), rel=1e-6)
    assert (np.abs(box) >= [1.0, 100.0]).all()


@pytest.mark.parametrize("rest", [0.3, 0.45])
def test_a_box_pays_for_the_other_coordinates(rest):
    """Directions that are near the axes: a bound of one coordinate depends on the other."""
    Z = np.array([[1.0, -rest], [0.0, 1.0]])
    points = [[1.0, 0.0], [rest, 1.0 + rest**2], [-1.0, 0.0], [-rest, -1.0 - rest**2]]
    box = box_of(np.vstack([Z, -Z]), np.zeros(4), 1.0, points)
    # u = (cos, sin) costs 1, and then g_1 = cos + rest sin.
    assert box[1, 0] >= np.hypot(1.0, rest)
    assert box[0, 0] <= -np.hypot(1.0, rest)
    # A sum that rows hold strictly, in terms of both coordinates less a share of the other.
    steep = 1e4
    Z = np.array([[1.0, 1.0], [steep, -steep], [-steep, steep]])
    up_, down = 0.5 * (1.0 - rest), 0.5 * (1.0 + rest) / steep**2
    one, two = [up_ + down, up_ - down], [up_ - down, up_ + down]
    points = np.array([one, two]) / 2.0
    box = box_of(np.vstack([Z, -Z[:1]]), np.zeros(4), 1.0, np.vstack([points, -points]))
    # g_1 = g_2 = 1/2 has u_1 = 1, and costs 1.
    assert 0.5 <= box[1, 0] <= 0.5 * (1.0 + 1e-3)
    assert -0.5 * (1.0 + 1e-3) <= box[0, 0] <= -0.5


def test_no_box_follows_from_directions_that_are_far_from_the_axes():
    Z = np.array([[1.0, -2.0], [0.0, 1.0]])
    points = np.array([[1.0, 0.0], [2.0, 5.0], [-1.0, 0.0], [-2.0, -5.0]])
    rules = rules_for(np.vstack([Z, -Z]), np.zeros(4), 1.0)
    for a in (points, -points, 0.0 * points):
        node = rules.boxed(rules.root(), a)
        assert not node.is_closed
        assert not (node.box[1] < [1.0, 1.0]).any()
        assert not (node.box[0] > [-1.0, -1.0]).any()


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_box_pays_for_rows_that_are_known_up_to_a_doubt(side):
    """Rows that are nearly orthogonal to an axis, and rows in which the doubt adds a coordinate."""
    slope, blur = 1e-6, 1e-10
    Z = np.array([[slope, 1.0], [slope, -1.0], [-slope, 1.0], [-slope, -1.0]])
    points = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    doubt = np.array([[blur, 0.0]] * 4)
    box = box_of(Z, np.zeros(4), 1.0, points, blur=doubt)
    # On the axis two rows have u = slope g_1 each, whatever the doubt is.
    assert box[1, 0] >= 1.0 / (np.sqrt(2.0) * (slope - blur))
    assert box[0, 0] <= -1.0 / (np.sqrt(2.0) * (slope - blur))
    # g_1 = u_1 - blur g_2, where g_2 is up to 100.
    Z, blur = np.array([[1.0, 0.0], [0.0, 0.01]]), 0.01
    doubt = np.array([[0.0, blur], [0.0, 0.0]] * 2)
    points = [[1.0, 0.0], [0.0, 1e4], [-1.0, 0.0], [0.0, -1e4]]
    box = box_of(np.vstack([Z, -Z]), np.zeros(4), 1.0, points, blur=doubt)
    assert side * box[int(side > 0.0), 0] >= np.hypot(1.0, 100.0 * blur)


# ---- Lemma 5 ----


def exact_least(w, y, slope, kappa, low, high):
    """The least w (u_+ - y)^2 - slope u - kappa u^2 from low to high."""
    w, y, slope, kappa = map(Fraction, (w, y, slope, kappa))

    def at(u):
        return w * (max(u, Fraction(0)) - y) ** 2 - slope * u - kappa * u * u

    low, high = Fraction(low), Fraction(high)
    places = [low, high, min(max(Fraction(0), low), high)]
    if kappa < 0:
        places.append(min(max(-slope / (2 * kappa), low), min(high, Fraction(0))) if low < 0 else low)
    if w > kappa:
        places.append(max(min((slope + 2 * w * y) / (2 * (w - kappa)), high), max(low, Fraction(0))))
    return min(at(u) for u in places if low <= u <= high)


def test_a_row_costs_no_more_than_it_does():
    """In rationals: slopes and curvatures of all sizes, and those where all terms cancel."""
    draw = np.random.default_rng(0)
    for turn in range(1500):
        size = 10.0 ** draw.integers(-6, 7)
        w, y = float(draw.random()), float(draw.normal() * 10.0 ** draw.integers(-6, 1))
        ends = np.sort(draw.normal(size=2) * size)
        low, high = ends if turn % 3 else (max(ends[0], 0.0), max(ends[1], 0.0))
        kappa = w * float(min(draw.normal(), 1.0))
        slope = float(draw.normal() * 10.0 ** draw.integers(-6, 7))
        if turn % 5 == 1:
            # A line through an end of the parabola.
            slope = -kappa * float(ends[turn % 2])
        elif turn % 5 == 2:
            # The loss itself, whose quadratic vanishes.
            kappa, slope = w, -2.0 * w * y
        elif turn % 5 == 3:
            # A vertex just inside an end, or just outside.
            low, high = sorted((max(low, 0.0), max(high, 0.0)))
            inside = high - 0.02 * draw.normal() * (high - low)
            slope = 2.0 * (w - kappa) * inside - 2.0 * w * y
        elif turn % 5 == 4:
            low, high = sorted((min(low, 0.0), min(high, 0.0)))
            slope = -2.0 * kappa * (low + 0.02 * draw.normal() * (high - low))
        rules = rules_for([[1.0]], [y], 1.0, [w])
        node = replace(rules.root(), low=np.array([low]), high=np.array([high]))
        found = rules._least(node, np.array([slope]), np.array([kappa]))
        truth = exact_least(w, y, slope, kappa, low, high)
        assert Fraction(found) <= truth, turn
        # Up to rounding, that is the cost itself.
        scale = w * y * y + abs(slope) * max(abs(low), abs(high)) + 2.0 * w * max(abs(low), abs(high)) ** 2
        assert found >= float(truth) - 1e-13 * scale - 1e-200, turn


def test_a_row_of_all_larger_scales_costs_no_more_than_its_least():
    """From 0 to y nothing but slope and curvature, from there on what a row costs."""
    draw = np.random.default_rng(0)
    for turn in range(1000):
        w, y = float(draw.random()), float(draw.normal() * 10.0 ** draw.integers(-3, 1))
        low, high = np.sort(draw.normal(size=2) * 10.0 ** draw.integers(-2, 2)).tolist()
        kappa = w * float(min(draw.normal(), 1.0)) * draw.integers(2)
        slope = float(draw.normal() * 10.0 ** draw.integers(-6, 3))
        if turn % 3 == 1 and y > 0.0:
            # Nearly 0 at an end of the part without a cost, after large terms.
            kappa = -w * float(draw.random())
            low, high, slope = 0.0, y * draw.choice([0.95, 1.0, 1.05]), -kappa * y * 1.9
        elif turn % 3 == 2 and y > 0.0:
            kappa, low, high = -1e6 * w * float(draw.random()), y * float(draw.random()), y
            slope = -kappa * low
        rules = rules_for([[1.0]], [y], 1.0, [w])
        node = replace(rules.root(), low=np.array([low]), high=np.array([high]), far_wall=0)
        found = rules._least(node, np.array([slope]), np.array([kappa]))
        if y <= 0.0:
            truth = exact_least(w, y, slope, kappa, low, high)
        else:
            truth = np.inf
            if low <= 0.0:
                truth = exact_least(w, y, slope, kappa, low, min(high, 0.0))
            if high > 0.0 and low <= y:
                free = exact_least(w, 0.0, slope, Fraction(kappa) + Fraction(w), max(low, 0.0), min(high, y))
                truth = min(truth, free)
            if high > y:
                truth = min(truth, exact_least(w, y, slope, kappa, max(low, y), high))
        assert Fraction(found) <= truth, turn


def test_sums_over_many_rows_are_rounded_down():
    """Thousands of equal rows, so that rounding errors add up, with those that err most among many."""
    draw, n = np.random.default_rng(0), 4096
    tried = [(w, y, float(np.full(n, w * y * y).sum())) for w, y in draw.random((3000, 2)).tolist()]

    def excess(case):
        w, y, total = case
        truth = n * Fraction(w) * Fraction(y) ** 2
        return (Fraction(total) - truth) / truth

    w, y, _ = max(tried, key=excess)
    rules = rules_for(np.ones((n, 1)), np.full(n, y), 1.0, np.full(n, w))
    node = replace(rules.root(), low=-np.ones(n), high=np.zeros(n))
    # Off, with no slope: w y^2 each.
    found = rules._least(node, np.zeros(n), np.zeros(n))
    assert Fraction(found) <= n * Fraction(w) * Fraction(y) ** 2


def with_all_on(seed, blur=0.0):
    """Rows that are on around the least loss, and such rows at the end of their doubt."""
    draw = np.random.default_rng(seed)
    Z = 1.0 + 3.0 * draw.random((5, 2))
    y = Z @ draw.uniform(4.0, 6.0, size=2) + 0.1 * draw.normal(size=5)
    rules = rules_for(Z, y, 1e9, draw.uniform(0.5, 2.0, size=5), blur=blur)
    return rules, fractions(Z) + fractions(draw.choice([-blur, blur], size=Z.shape))


def at_the_end(A, G, K, cutoff, v):
    """The middle and half of the range of v'g with A + G'g + g'Kg at most the cutoff."""
    least, centre = least_of(A, G, K)
    return float(v @ centre), float((Fraction(cutoff) - least) * (v @ solved(K, v))) ** 0.5


@pytest.mark.parametrize("blur", [0.0, 1e-4])
@pytest.mark.parametrize("seed", range(20))
def test_the_bound_of_a_node_is_the_least_loss(seed, blur):
    """Where all rows are on and known, and never more, whichever rows there are within the doubt."""
    rules, Z = with_all_on(seed, blur)
    node = rules.bounded(all_on(rules, 1e9), point_at(5.0, 5.0))
    least, _ = least_of(*quadratic_of(rules, Z))
    assert Fraction(float(node.value)) <= least
    assert blur > 0.0 or node.value >= float(least) - HAIR
    # It closes the node for what is not above it.
    for share, is_closed in ((0.99, True), (1.0, False), (1.01, False)):
        rules.cutoff = float(least) * share
        closed = rules.bounded(all_on(rules, 1e9), point_at(5.0, 5.0)).is_closed
        assert closed == is_closed or (is_closed and blur > 0.0)


def test_slopes_pay_for_the_doubt_of_rows():
    """A row with a large outcome beside a large ridge: all that matters is its slope."""
    for side in (-1, 1):
        rules = rules_for([[1.0]], [100.0], 1e9, B=[[1e4]], blur=1e-3)
        node = rules.bounded(all_on(rules, 1e9), point_at(0.0))
        least, _ = least_of(*quadratic_of(rules, fractions(rules.rows.Z) + side * Fraction(1e-3)))
        assert Fraction(float(node.value)) <= least
        assert node.value >= float(least) - 1.0


def test_tilted_slopes_pay_for_the_doubt_of_rows():
    """The same, where a coordinate is tilted: all that matters is by how much the slope moves the centre."""
    rules = rules_for([[1.0]], [100.0], 1e9, B=[[1e4]], blur=1e-3)
    sides = [quadratic_of(rules, fractions(rules.rows.Z) + side * Fraction(1e-3)) for side in (-1, 1)]
    cutoff = max(float(least_of(*side)[0]) for side in sides) + 0.01
    tilts = [Tilt(1, sign, point_at(0.01 - sign * 1e-3)) for sign in (-1.0, 1.0)]
    node = rules.tilted(all_on(rules, cutoff), tilts)
    for side in sides:
        centre, half = at_the_end(*side, cutoff, fractions(np.ones(1)))
        assert node.box[0, 0] <= centre - half
        assert node.box[1, 0] >= centre + half
    assert node.box[1, 0] - node.box[0, 0] <= 1.0


@pytest.mark.parametrize("share", [1.0, 30.0])
def test_curvatures_pay_for_the_doubt_of_rows(share):
    """A row with the outcome 0, pulled away from it by another: all that matters is its curvature."""
    for side in (-1, 1):
        Z, y, blur = np.array([[1.0], [1.0]]), np.array([10.0, 0.0]), np.array([[0.0], [1e-3]])
        rules = rules_for(Z, y, 1e9, blur=blur, B=[[40.0]])
        node = replace(rules.root(), low=np.array([0.0, -1e3]), high=np.array([np.inf, 1e3]), cutoff=1e9)
        # kappa = -share: less than nothing is taken from a row that costs nothing.
        node = replace(node, shares=np.array([0.0, share]))
        curves = rules.curves(node)
        assert curves.kappa.tolist() == [1.0, -share]
        ((K, K_error, W, factor, paid),) = curves.known
        exact = Fraction(40) + 1 - Fraction(share) * (1 + side * Fraction(1e-3)) ** 2
        assert abs(exact - Fraction(K[0, 0])) <= Fraction(K_error[0, 0])
        assert 1 / exact <= Fraction(factor) * Fraction(W[0, 0]) ** 2
        found = rules.ellipsoid(Line(0.0, np.array([-20.0]), 0.0), curves.known[0], 1e9)
        assert Fraction(found.value) <= -Fraction(100) / exact
        assert paid == 0.0


@pytest.mark.parametrize("seed", range(40))
def test_the_least_of_a_quadratic_whose_terms_cancel(seed):
    """Nearly singular curvatures: sums of large terms, of which little is left."""
    draw = np.random.default_rng(seed)
    near = 1.0 - 10.0 ** -draw.uniform(3, 8)
    K, G = np.array([[1.0, near], [near, 1.0]]), draw.normal(size=2)
    G[1] = -G[0] * (1.0 + 1e-3 * draw.normal())
    W, factor = inverse_factor(K, np.zeros((2, 2)))
    # K^-1 <= factor W'W: what is left of factor W K W' - 1 has no negative eigenvalue.
    exact_W = fractions(W)
    left = exact_W @ fractions(K) @ exact_W.T * Fraction(factor) - fractions(np.eye(2))
    assert left[0, 0] >= 0
    assert left[0, 0] * left[1, 1] >= left[0, 1] * left[1, 0]
    rules = rules_for(np.eye(2), np.zeros(2), 1.0)
    curve = Curve(K, np.zeros((2, 2)), W, factor, 0.0)
    least, _ = least_of(Fraction(0), fractions(G), fractions(K))
    for A in (0.0, -float(least)):
        found = rules.ellipsoid(Line(A, G, 0.0), curve, 1e9)
        assert Fraction(found.value) <= Fraction(A) + least


@pytest.mark.parametrize("share", [0.7, 0.9, 1.0, 1.2])
def test_any_inverse_gives_the_same_ellipsoid_or_a_larger_one(share):
    """W need not be the inverse of a Cholesky factor: what that moves the centre by is paid for."""
    rules = rules_for([[1.0]], [0.0], 1.0)
    for G, cutoff in ((2.0, 3.0), (-2.0, 0.0), (0.5, 100.0)):
        curve = Curve(np.eye(1), np.zeros((1, 1)), share * np.eye(1), up(1.0 / share**2), 0.0)
        found = rules.ellipsoid(Line(0.0, np.array([G]), 0.0), curve, cutoff)
        least, half = -0.25 * G * G, np.sqrt(cutoff + 0.25 * G * G)
        reach = found.radius * abs(float(found.W[0, 0]))
        assert found.value <= least
        assert found.centre[0] + reach >= -0.5 * G + half
        assert found.centre[0] - reach <= -0.5 * G - half
        assert share > 1.0 or found.value >= least - HAIR
        ends = found.centre[0] + reach, found.centre[0] - reach
        # One of both ends is that of the set.
        assert min(ends[0] - (-0.5 * G + half), (-0.5 * G - half) - ends[1]) <= HAIR * (1.0 + half)


def test_an_ellipsoid_pays_for_all_that_is_not_exact():
    """Errors of slopes where the centre is 0, those of curvatures in a large ellipsoid, and ridges."""
    rules, one = rules_for([[1.0]], [0.0], 1.0), np.eye(1)
    W, factor = inverse_factor(one, 0.0 * one)
    exact = Curve(one, 0.0 * one, W, factor, 0.0)
    for error in (1e-3, 0.1):
        found = rules.ellipsoid(Line(1.0, np.zeros(1), error), exact, 2.0)
        # The slope may be the error.
        assert found.value <= 1.0 - 0.25 * error**2
        assert found.centre[0] + found.radius * abs(W[0, 0]) >= 0.5 * error + np.hypot(1.0, 0.5 * error)
        # So may it beside another.
        found = rules.ellipsoid(Line(0.0, np.array([2.0]), error), exact, 1e9)
        assert found.value <= -0.25 * (2.0 + error) ** 2
    for error in (1e-3, 0.1):
        doubtful = Curve(one, error * one, *inverse_factor(one, error * one), 0.0)
        found = rules.ellipsoid(Line(0.0, np.array([-2.0]), 0.0), doubtful, 1e4)
        K = 1.0 - error
        assert found.value <= -1.0 / K
        reach = found.radius * abs(found.W[0, 0])
        assert found.centre[0] + reach >= 1.0 / K + np.sqrt((1e4 + 1.0 / K) / K)
    paid = rules.ellipsoid(Line(0.0, np.zeros(1), 0.0), exact._replace(paid=0.5), 1.0)
    assert paid.value <= -0.5
    assert paid.radius * abs(W[0, 0]) >= np.sqrt(1.5)


@pytest.mark.parametrize("blur", [0.0, 1e-4])
@pytest.mark.parametrize("seed", range(10))
def test_a_node_holds_all_of_the_ellipsoid(seed, blur):
    """Rows and coordinates up to their ends, where the loss is the cutoff: by the ellipsoid, and by tilts."""
    rules, Z = with_all_on(seed, blur)
    A, G, K = quadratic_of(rules, Z)
    least, best = least_of(A, G, K)
    rules.cutoff = cutoff = float(least) + 10.0 ** (seed % 5 - 3)
    node, tilts = all_on(rules, cutoff), []
    lines = [*Z, *fractions(np.eye(2))]
    ranges = [at_the_end(A, G, K, cutoff, v) for v in lines]
    for number, (v, (_, half)) in enumerate(zip(lines, ranges, strict=True)):
        step = solved(K, v) * (Fraction(half) / (v @ solved(K, v)))
        tilts += [Tilt(number, -s, point_at(*(best + int(s) * step))) for s in (-1.0, 1.0)]
    wide = replace(node, box=np.array([[-50.0, -50.0], [50.0, 50.0]]))
    for found in (rules.bounded(node, point_at(5.0, 5.0)), rules.tilted(wide, tilts)):
        assert not found.is_closed
        ends = zip([*found.low, *found.box[0]], [*found.high, *found.box[1]], strict=True)
        for (low, high), (centre, half) in zip(ends, ranges, strict=True):
            assert low <= centre - half * (1.0 - 1e-12)
            assert high >= centre + half * (1.0 - 1e-12)
            assert blur > 0.0 or high - low <= 2.0 * half * (1.0 + HAIR) + 1e-4


@pytest.mark.parametrize(("best", "curvature"), [(0.0, 1e-8), (1e4, 1.0)])
def test_ends_of_rows_pay_for_their_doubt(best, curvature):
    """A row without weight that may depend on a coordinate that is unknown, or far away."""
    Z = np.array([[1.0, 0.0], [0.0, np.sqrt(curvature)], [1.0, 0.0]])
    blur, w = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 1e-3]]), np.array([1.0, 1.0, 1e-20])
    rules = rules_for(Z, Z @ [1.0, best] + [0.0, 0.0, 1.0], 1.0, w, blur=blur)
    node = replace(all_on(rules, 1.0), low=np.full(3, -1e5), high=np.full(3, 1e5))
    node = replace(node, low=np.array([0.0, 0.0, -1e5]), box=np.array([[-1e6] * 2, [1e6] * 2]))
    tilts = [Tilt(2, sign, point_at(1.0 - sign, best)) for sign in (-1.0, 1.0)]
    for found in (rules.bounded(node, point_at(1.0, best)), rules.tilted(node, tilts)):
        for side in (-1, 1):
            row = fractions(Z[2]) + np.array([0, side * Fraction(1e-3)])
            centre, half = at_the_end(*quadratic_of(rules, fractions(Z)), 1.0 - 1e-6, row)
            assert found.low[2] <= centre - half
            assert found.high[2] >= centre + half


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_ridge_is_paid_for(side):
    """A curvature that is singular, in a node in which the only row fits, far from 0."""
    rules = rules_for([[side, 0.0]], [1e3], 1e-12)
    node = replace(all_on(rules, 1.0), high=np.array([1e4]))
    box = np.sort([[-1e-3 * side, -1.0], [2e3 * side, 1.0]], axis=0)
    node = replace(node, box=box)
    curves = rules.curves(node)
    assert curves.known
    assert all(curve.paid > 0.0 for curve in curves.known)
    for x in (0.0, 1e3, 2e3):
        found = rules.bounded(node, point_at(x * side, 0.0))
        # Nothing is lost where |g_1| = 1000, and with the ridge that is all there is.
        assert found.value <= 0.0
        assert not found.is_closed
    tilted = rules.tilted(node, [Tilt(0, s, point_at(1e3 * side, 0.0)) for s in (-1.0, 1.0)])
    assert tilted.low[0] <= 1e3 - 1.0 + HAIR
    assert tilted.high[0] >= 1e3 + 1.0 - HAIR
    # Without a box, nothing pays for it.
    without = rules.bounded(replace(node, box=rules.root().box), point_at(1e3, 0.0))
    assert without.value <= 0.0


def test_a_quadratic_without_negative_curvature_is_bounded_in_its_box():
    """At the worst corner of it, and for the worst K and G of those that rounding allows."""
    draw = np.random.default_rng(3)
    for turn in range(60):
        rules = rules_for(draw.normal(size=(4, 2)), draw.normal(size=4), 1e3)
        ends = np.sort(draw.normal(size=(2, 2)), axis=0)
        node = replace(rules.root(), box=ends)
        G, x, blur = draw.normal(size=2), draw.normal(size=2), 1e-3 * (turn % 2)
        root = draw.normal(size=(2, 2)) * (turn % 3)
        K, error = root @ root.T, np.full((2, 2), blur)
        curves = Curves(np.zeros(4), K, error, rules.curves(node).slopes, [])
        value = rules._level(node, Line(1.0, G, blur), curves, x)
        for corner in itertools.product(*ends.T.tolist()):
            g = fractions(np.array(corner))
            low = 1 + fractions(G) @ g - Fraction(blur) * max(abs(g))
            assert value <= low + g @ fractions(K) @ g + Fraction(blur) * sum(abs(g)) ** 2
        if not K.any():
            least = 1.0 + float(np.minimum(G * ends[0], G * ends[1]).sum())
            assert value >= least - 40.0 * blur - 1e-9
        bent = curves._replace(kappa=np.array([0.0, -1e-300, 0.0, 0.0]))
        assert rules._level(node, Line(1.0, G, blur), bent, x) == -np.inf
        assert rules._level(rules.root(), Line(1.0, G, blur), curves, x) == -np.inf


@pytest.mark.parametrize("error", [1e-3, 0.25])
def test_a_quadratic_in_a_box_pays_for_errors_of_its_numbers(error):
    """Where K is all error, and a box holds one point; and where G errs outwards, with a box around 0."""
    rules = rules_for([[1.0]], [1.0], 1e3)
    slopes = rules.curves(rules.root()).slopes
    bent = Curves(np.zeros(1), np.array([[error]]), np.array([[error]]), slopes, [])
    node = replace(rules.root(), box=np.ones((2, 1)))
    # With K = 0, the quadratic is 1 - 2 error at the point.
    assert rules._level(node, Line(1.0, np.array([-2.0 * error]), 0.0), bent, np.ones(1)) <= 1.0 - 2.0 * error
    flat = Curves(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), slopes, [])
    node = replace(rules.root(), box=np.array([[-1.0], [1.0]]))
    for slope in (-0.5, 0.5):
        value = rules._level(node, Line(1.0, np.array([slope]), error), flat, np.zeros(1))
        assert 0.5 - error - 1e-6 <= value <= 0.5 - error


def test_what_single_samples_cost_needs_no_curvature():
    rules = rules_for([[1.0, 0.5], [0.5, 1.0], [1.0, -1.0]], [2.0, -1.0, 3.0], 8.0)
    off = replace(rules.root(), high=np.array([0.0, 4.0, 1.0]), cutoff=8.0)
    value = rules.bounded(off, point_at(0.0, 0.0)).value
    assert 9.0 * (1.0 - 1e-9) <= value <= 4.0 + 1.0 + 4.0


def test_slopes_of_many_rows_pay_for_the_rounding_of_their_sum():
    """Thousands of equal rows, so that rounding errors add up, with those that err most among many."""
    draw, n = np.random.default_rng(0), 1 << 15
    tried = draw.random((200, 2)).tolist()

    def excess(case):
        z, slope = case
        truth = n * Fraction(z) * Fraction(slope)
        return abs((Fraction(float((np.full((1, n), z) @ np.full(n, slope))[0])) - truth) / truth)

    z, slope = max(tried, key=excess)
    rules = rules_for(np.full((n, 1), z), np.zeros(n), 1.0)
    node = replace(rules.root(), low=-np.ones(n), high=np.ones(n))
    zero = np.zeros((1, 1))
    curves = Curves(np.zeros(n), zero, zero, rules.curves(node).slopes, [])
    point = Point(np.zeros(1), np.arange(n), np.full(n, slope))
    line = rules.support(node, curves, point)
    assert abs(Fraction(line.G[0]) - n * Fraction(z) * Fraction(slope)) <= Fraction(line.G_error)


# ---- walls ----


def walls_of(Z, low, high, blur=0.0):
    Z = np.array(Z, dtype=float)
    return Walls.of(Z, np.broadcast_to(blur, Z.shape), np.array(low), np.array(high))


def test_walls_bound_a_box():
    for low, high in ((-np.inf, 2.0), (-1.0, 2.0), (1.5, 2.0), (-3.0, -2.0)):
        rules = rules_for([[-1.0]], [3.0], 4.0, walls=walls_of([[1.0]], [low], [high]))
        node = rules.boxed(rules.root(), np.array([[1.0], [-1.0]]))
        assert node.box[1, 0] >= high
        assert node.box[0, 0] <= max(low, -5.0)
        assert node.box[1, 0] <= max(high, 0.0) + HAIR


@pytest.mark.parametrize("share", [-1.0, 30.0])
@pytest.mark.parametrize("side", [-1, 1])
def test_curvatures_of_walls_pay_for_their_doubt(share, side):
    blur = 1e-3
    walls = walls_of([[1.0, 0.5]], [-1e3], [1e3], blur)
    rules = rules_for(np.zeros((0, 2)), [], 1e9, B=40.0 * np.eye(2), walls=walls)
    curves = rules.curves(replace(rules.root(), shares=np.array([share])))
    assert curves.kappa.tolist() == [-share]
    ((K, K_error, *_),) = curves.known
    z = fractions(walls.Z[0]) + side * Fraction(blur)
    exact = 40 * fractions(np.eye(2)) - Fraction(share) * np.multiply.outer(z, z)
    assert (np.abs(fractions(K) - exact) <= fractions(K_error)).all()


@pytest.mark.parametrize("seed", range(20))
def test_a_far_node_stands_for_all_larger_scales(seed):
    """x = t g for a g on the wall: whatever is known of x holds for g, and of g for all x."""
    draw = np.random.default_rng(seed)
    Z, x, wall = draw.normal(size=(6, 2)), draw.normal(size=2) * 3.0, draw.normal(size=(1, 2))
    wall *= -np.sign(wall[0] @ x)
    y = np.where(
        draw.random(6) < 0.5, np.maximum(Z @ x, 0.0) + 1e-3 * draw.normal(size=6), draw.normal(size=6)
    )
    far = np.array([np.inf])
    rules = rules_for(Z, y, 1e9, walls=walls_of(wall, -far, far))
    lines = fractions(rules.rows.Z)
    for scale in (1, 2, 7):
        # A g whose multiple by the scale is x.
        g = fractions(x) / scale
        at = float(lines[6] @ g)
        at = at if Fraction(at) >= lines[6] @ g else np.nextafter(at, 0.0)
        g = g * (Fraction(at) / (lines[6] @ g))
        t = (lines[6] @ fractions(x)) / Fraction(at)
        assert t >= 1
        cutoff = np.nextafter(float(exact_loss(rules, fractions(x))), np.inf)
        u = lines @ fractions(x)
        low, high = u.astype(float) - 1e-12, u.astype(float) + 1e-12
        high[6] = at
        node = replace(rules.root(), low=low, high=high, box=np.array([x, x]), cutoff=cutoff)
        node = rules.below(rules.far(node, 6), cutoff)
        assert node.is_far
        assert not node.is_closed
        assert is_between(lines @ g, node.low, node.high)
        assert is_between(g, *node.box)
        # Back again, from a node around g alone.
        u = (lines @ g).astype(float)
        tight = replace(node, low=u - 1e-12, high=np.where(np.arange(7) < 6, u + 1e-12, at))
        near = rules.near(replace(tight, box=np.array([g.astype(float)] * 2)))
        assert not near.is_far
        assert not near.is_closed
        assert is_between(lines @ fractions(x), near.low, near.high)
        assert is_between(fractions(x), *near.box)
    # Nothing is far on the other side of a wall.
    for high in (np.inf, 0.0, 1.0):
        node = replace(rules.root(), high=np.append(np.full(6, np.inf), high))
        assert rules.far(node, 6) is node


# ---- trees ----


CLAIM = {
    "n_samples": 0,
    "n_features": 0,
    "fit_intercept": False,
    "weighted": False,
    "alpha": 0.0,
    "floor": 0.0,
    "digest": "",
    "beta": (),
    "intercept": 0.0,
    "lower_bound": 0.0,
    "reserve": 0.0,
    "seconds": 0.0,
    "setting": {"unit": 1.0},
    "constraints": (),
}


def as_head(X, y, weight=None, **head):
    """The head of a proof file about such data."""
    about = {"n_samples": len(y), "n_features": X.shape[1], "beta": [0.0] * X.shape[1]}
    about |= {"weighted": weight is not None, "digest": data_digest(X, y, weight)}
    text = json.dumps(CLAIM | about | head).encode()
    return MAGIC + struct.pack("<I", len(text)) + text


def written(path, X, y, nodes, **head):
    """A proof file made by hand, whose nodes are lists of steps, and the rows by which they are split."""
    d = X.shape[1]
    content = as_head(X, y, **head)
    content += struct.pack("<BI", SIGNS, d) + np.eye(d).astype("<f8").tobytes() + b"\0"
    for number, (steps, split) in nodes.items():
        content += struct.pack("<BII", NODE, number, len(steps)) + b"".join(steps) + struct.pack("<I", split)
    path.write_bytes(sealed(content + b"\0"))
    return path


def cutoff_step(cutoff):
    return struct.pack("<Bd", CUTOFF, cutoff)


def box_step(d):
    return struct.pack("<B", BOX) + np.vstack([np.eye(d), -np.eye(d)]).astype("<f8").tobytes()


def point_step(x, slopes=()):
    at = np.array(x, dtype="<f8").tobytes() + struct.pack("<I", len(slopes))
    rows = np.array([row for row, _ in slopes], "<u4").tobytes()
    return struct.pack("<B", POINT) + at + rows + np.array([s for _, s in slopes], "<f8").tobytes()


def shares_step(shares):
    return struct.pack("<B", SHARES) + np.array(shares, "<f4").tobytes()


@pytest.fixture
def four_rows(tmp_path):
    """A function that writes a proof for u = g, 2g, -g, -2g with y = |u| at g = 1: the least loss is 5.

    Nodes are split by all signs, and each leaf has its minimum. left_out: a node that is not described.
    """
    Z, n = np.array([-2.0, -1.0, 1.0, 2.0]), 4
    X, y = Z[:, None], np.abs(Z)

    def write(bound, cutoff=None, left_out=None, **head):
        nodes, todo, n_nodes = {}, [(0, ())], 1
        while todo:
            number, signs = todo.pop(0)
            if len(signs) < n:
                steps = [] if signs else [cutoff_step(bound if cutoff is None else cutoff), box_step(1)]
                nodes[number] = (steps, len(signs))
                todo += [(n_nodes, (*signs, True)), (n_nodes + 1, (*signs, False))]
                n_nodes += 2
            else:
                on = np.array(signs)
                nodes[number] = ([point_step([Z[on] @ y[on] / max(Z[on] @ Z[on], 1.0)])], UNSPLIT)
        nodes.pop(left_out, None)
        return written(tmp_path / "p", X, y, nodes, lower_bound=bound, **head), X, y

    return write


def test_a_tree_proves_the_least_loss_and_no_more(four_rows):
    for bound in (4.5, 4.9, 5.0 * (1.0 - 1e-9)):
        assert check_proof(*four_rows(bound)).lower_bound == bound
    for bound in (5.0, 5.0 * (1.0 + 1e-9), 5.02, 5.5):
        with pytest.raises(ProofError, match="neither closed nor split"):
            check_proof(*four_rows(bound))


def test_all_nodes_are_needed(four_rows):
    for number in range(31):
        with pytest.raises(ProofError, match=r"neither closed nor split|does not exist"):
            check_proof(*four_rows(4.9, left_out=number))


def test_no_step_is_about_a_lower_cutoff(four_rows):
    for cutoff in (1e-9, 2.0, 4.8):
        with pytest.raises(ProofError, match="lower cutoff"):
            check_proof(*four_rows(4.9, cutoff))
    for cutoff in (4.9, 5.0, 9.0):
        assert check_proof(*four_rows(4.9, cutoff)).lower_bound == 4.9


def test_a_constraint_proves_what_it_costs_and_holds_for_the_fit(tmp_path):
    """The least (b - 3)^2 with b <= 1 is 4."""
    X, y, path = np.ones((1, 1)), np.array([3.0]), tmp_path / "p"

    def write(bound, constraints=(([[0, 1.0]], None, 1.0),), **head):
        # The multiplier of the constraint is 4, in units in which the loss is (b - 3)^2 / 32.
        allowed = Allowed(np.ones((1, 1)), np.array([-np.inf]), np.ones(1))
        wall = distinct_rows(False, 0.0, X, y, None).walls(np.eye(1), np.zeros((1, 0)), allowed)
        slopes = [(1, 0.125 / wall.Z[0, 0])] if constraints else []
        nodes = {0: ([cutoff_step(bound), point_step([1.0], slopes)], UNSPLIT)}
        return written(path, X, y, nodes, lower_bound=bound, constraints=constraints, **head), X, y

    assert check_proof(*write(4.0 * (1.0 - 1e-9), beta=[1.0])).constraints[0][2] == 1.0
    for about in (
        {"bound": 4.0},
        {"bound": 4.0 * (1.0 + 1e-9)},
        {"bound": 3.9, "constraints": [([[0, 1.0]], None, 1.1)]},
        {"bound": 0.1, "constraints": ()},
    ):
        with pytest.raises(ProofError, match="neither closed nor split"):
            check_proof(*write(**about))
    with pytest.raises(ProofError, match="do not satisfy"):
        check_proof(*write(1.0, beta=[1.0 + 1e-7]))


def test_without_an_intercept_there_is_no_floor(tmp_path):
    """max(-1, g x) fits these outcomes with g = 1/2, and -1 + max(0, g x) does not."""
    X, y = np.array([[1.0], [2.0]]), np.array([0.5, 1.0])
    steps = {0: ([cutoff_step(0.1), point_step([1.4])], UNSPLIT)}
    for changes in ({"floor": -1.0}, {"intercept": 1.0}):
        path = written(tmp_path / "p", X, y, steps, lower_bound=0.1, **changes)
        with pytest.raises(ProofError, match="without an intercept"):
            check_proof(path, X, y)


def test_what_samples_below_the_floor_cost_needs_no_tree(tmp_path):
    X, y = np.array([[1.0], [2.0]]), np.array([-3.0, 1.0])
    for bound, is_settled in ((8.999, True), (9.0001, False), (9.1, False)):
        path = written(tmp_path / "p", X, y, {}, lower_bound=bound)
        if is_settled:
            assert check_proof(path, X, y).lower_bound == bound
        else:
            with pytest.raises(ProofError, match="neither closed nor split"):
                check_proof(path, X, y)


@pytest.mark.parametrize("changes", [{"alpha": -1.0}, {"reserve": -1.0}])
def test_what_cannot_be_negative_is_rejected(four_rows, changes):
    with pytest.raises(ProofError, match="entries of a wrong kind"):
        check_proof(*four_rows(4.9, **changes))
