"""What follows in a node of the search over signs from a point, curvatures and a few slopes.

A node holds all better solutions g with low_i <= u_i <= high_i, u_i = z_i'g. For any lambda and kappa let

    alpha = min over low <= u <= high of f(u) - lambda u - kappa u^2,     f(u) = w (max(0, u) - y)^2

in every row. Then the loss is in the node at least

    A + G'g + g'Kg,     A = sum alpha, G = sum lambda z, K = B + sum kappa zz',

and if K is positive definite that is a bound of all of the node, and better solutions lie in an ellipsoid.
Nothing else is used but what single samples cost, and that |u_+| <= |y| + sqrt(cutoff) (Lemmas 5 to 8 of the
page "Proof files").

Walls are rows without a loss, f = 0: constraints, whose ends are known, and a row by which the space is cut
into slabs. A node is far if it stands for all multiples t g, t >= 1, of the g in it, with a wall u = at < 0:
then f(u) = min over t of w (max(0, t u) - y)^2 (Lemma 9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rectifit._typing import Index, Matrix, Vector
from rectifit.checking.rounding import SLACK, UNIT, gamma, inverse_factor, lower_sum, norm_up, up
from rectifit.checking.rows import Rows, Walls
from rectifit.checking.slopes import Slopes

__all__ = ["Curves", "Node", "Point", "SignRules", "Tilt"]

# Curvature that makes K definite where it is singular, as shares of that of all rows.
RIDGES = (1e-10, 1e-8, 1e-6, 1e-4)
# The far wall of nodes that have none.
NEAR = -1


class Point(NamedTuple):
    """A point, and rows whose slopes do not follow from it, for it is at their kinks."""

    x: Vector
    rows: Index
    slopes: Vector


@dataclass(frozen=True)
class Node:
    """Between which ends all u of better solutions lie, and what is proved of their loss.

    box: the least and the largest of each coordinate. shares: of the curvature w of a row, or of 1 of a wall,
    the share that is taken off K. cutoff: solutions are better if their loss is below it. far_wall: of a far
    node the wall with the u at which g is; NEAR of others.
    """

    low: Vector
    high: Vector
    box: Matrix
    shares: Vector
    cutoff: float
    value: float = -math.inf
    is_closed: bool = False
    far_wall: int = NEAR

    @property
    def is_far(self) -> bool:
        """Whether it stands for all larger scales."""
        return self.far_wall != NEAR


class Tilt(NamedTuple):
    """A line, of a row or a coordinate behind the rows, with 1.0 for its low end, and a point."""

    line: int
    sign: float
    point: Point


class Curve(NamedTuple):
    """K with a bound of the error of each entry, and the W and factor of `inverse_factor`.

    paid: by how much a quadratic that is more curved than the loss may lie above it in the node.
    """

    K: Matrix
    K_error: Matrix
    W: Matrix
    factor: float
    paid: float


class Curves(NamedTuple):
    """kappa of all rows, their K and its error; as it is, if it is shown to be definite, or with ridges."""

    kappa: Vector
    K: Matrix
    K_error: Matrix
    slopes: Slopes
    known: list[Curve]


class Line(NamedTuple):
    """A + G'g, the part of a quadratic that depends on slopes; G_error: of all entries of G together."""

    A: float
    G: Vector
    G_error: float


class Ellipsoid(NamedTuple):
    """All g with a quadratic of at most the cutoff: |v'(g - centre)| <= radius |Wv|. value: its least one."""

    value: float
    centre: Vector
    W: Matrix
    radius: float


class SignRules:
    """What follows in a node from the few numbers of a step; walls are behind the other rows."""

    def __init__(self, rows: Rows, walls: Walls) -> None:
        self.n_samples, self.cutoff = len(rows.y), rows.cutoff
        self._unit = float((rows.w @ np.square(rows.Z)).mean()) if rows.Z.size else 1.0
        self.rows, self._ends = rows.followed_by(walls), (walls.low, walls.high)
        self.n, self.q = self.rows.Z.shape
        self._has_loss = np.arange(self.n) < self.n_samples
        # What shares of curvature are shares of.
        self.weight = np.where(self._has_loss, self.rows.w, 1.0)
        self._last: tuple[Node, Curves] | None = None

    def root(self) -> Node:
        """Everything that walls allow."""
        far, sides = np.full(self.n_samples, np.inf), np.array([[-np.inf], [np.inf]])
        low, high = np.append(-far, self._ends[0]), np.append(far, self._ends[1])
        return Node(low, high, np.tile(sides, self.q), np.zeros(self.n), self.cutoff)

    def below(self, node: Node, cutoff: float) -> Node:
        """A node of solutions with a loss below a cutoff, and where they are by what single samples cost.

        With room = cutoff - the cost of all y <= 0, w (u_+ - y)^2 <= room if y > 0, and
        w (u_+ - y)^2 <= room + w y^2 otherwise.
        """
        w, y, node = self.rows.w, self.rows.y, replace(node, cutoff=cutoff)
        fixed = self.rows.squares[y <= 0.0]
        room = up(-lower_sum(-cutoff, float(fixed.sum()) * (1.0 - gamma(len(fixed) + 4))))
        if not room > 0.0:
            return replace(node, is_closed=True)
        with np.errstate(divide="ignore"):
            radius = up(np.sqrt(up(room / w + np.square(np.minimum(y, 0.0)))))
        radius = up(radius + 4.0 * UNIT * (np.abs(y) + radius))
        # Of all scales in a far node, the least has the same sign, and may have a smaller u.
        low = np.where(y - radius > 0.0, 0.0 if node.is_far else y - radius, -np.inf)
        return self._narrowed(node, np.where(y > 0.0, low, -np.inf), y + radius)

    def _narrowed(self, node: Node, low: Vector, high: Vector) -> Node:
        """A node in which u also lies between these ends."""
        low, high = np.maximum(node.low, low), np.minimum(node.high, high)
        is_closed = node.is_closed or bool((low > high).any())
        return replace(node, low=low, high=high, is_closed=is_closed)

    def _within(self, node: Node, box: Matrix) -> Node:
        """A node in which coordinates also lie in a box, and what that says about u."""
        low, high = np.maximum(node.box[0], box[0]), np.minimum(node.box[1], box[1])
        node = replace(node, box=np.array([low, high]), is_closed=node.is_closed or bool((low > high).any()))
        if not np.isfinite(node.box).all():
            return node
        size = float(np.abs(node.box).max())
        centre, half = self.rows.Z @ (0.5 * (low + high)), np.abs(self.rows.Z) @ up(0.5 * (high - low))
        half = up(half + 2.0 * size * (self.rows.doubt + 4.0 * UNIT * self.rows.size))
        return self._narrowed(node, centre - half, centre + half)

    def part(self, node: Node, row: int, is_high: bool, at: float = 0.0) -> Node:
        """The part of a node in which a row has u >= at, or the one with u <= at."""
        low, high = node.low.copy(), node.high.copy()
        if is_high:
            low[row] = max(low[row], at)
        else:
            high[row] = min(high[row], at)
        return self._narrowed(node, low, high)

    def far(self, node: Node, wall: int) -> Node:
        """All t g, t >= 1, instead of a node of them, where g has the largest u of a wall, which is negative.

        What was known of u, walls and coordinates of t g holds for g after 0 is added to each interval.
        """
        at = float(node.high[wall])
        if not -np.inf < at < 0.0 or node.is_far:
            return node
        low, high = np.minimum(node.low, 0.0), np.maximum(node.high, 0.0)
        low[wall] = high[wall] = at
        box = np.array([np.minimum(node.box[0], 0.0), np.maximum(node.box[1], 0.0)])
        return replace(node, low=low, high=high, box=box, far_wall=wall)

    def near(self, node: Node) -> Node:
        """The t g that a far node stands for: their signs are those of g."""
        if not node.is_far:
            return node
        root, is_wall, wall = self.root(), ~self._has_loss, node.far_wall
        low = np.where(is_wall, root.low, np.where(node.low >= 0.0, 0.0, -np.inf))
        high = np.where(is_wall, root.high, np.where(node.high <= 0.0, 0.0, np.inf))
        high[wall] = min(high[wall], node.high[wall])
        node = replace(node, low=low, high=high, box=root.box, shares=root.shares, far_wall=NEAR)
        return self.below(node, node.cutoff)

    def boxed(self, node: Node, points: Matrix) -> Node:
        """Coordinates of better solutions: for v >= 0, sum w v z'g <= |v| |u_+| <= |v| (|y| + sqrt cutoff).

        With v = (Za)_+ for each a of the points, and multiples of the ends of walls, the left side is near
        one coordinate, up or down, and the rest is bounded by the largest coordinate.
        """
        rows, q = self.rows, self.q
        most = up(math.sqrt(up(float(rows.squares.sum())))) + up(math.sqrt(max(node.cutoff, 0.0)))
        V = points @ rows.Z.T
        # Of each wall the end that it is pushed towards, if there is one.
        ends = np.where(V > 0.0, node.high, node.low)
        V = np.where(self._has_loss, np.maximum(V, 0.0), np.where(np.isfinite(ends), V, 0.0))
        pushed = V * np.where(self._has_loss | (V == 0.0), 0.0, ends)
        sums, index, size = (V * self.weight) @ rows.Z, np.arange(2 * q), np.abs(V) * self.weight
        error = up(size @ (rows.doubt + gamma(self.n + 4) * rows.size))
        signs, axes = np.repeat([1.0, -1.0], q), np.tile(np.arange(q), 2)
        along = signs * sums[index, axes]
        rest = np.abs(sums).sum(axis=1) - np.abs(along)
        along = along * (1.0 - SLACK) - error
        if not (along > 0.0).all():
            return node
        reach = up(most * np.sqrt(up(np.square(V) @ rows.w)))
        against = pushed.sum(axis=1) + up(gamma(self.n + 4) * np.abs(pushed).sum(axis=1))
        reach = reach + against + 4.0 * UNIT * (reach + np.abs(against))
        reach = up(np.maximum(reach, 0.0) / along)
        share = up((up(rest) + error) / along)
        if not float(share.max()) < 0.5:
            return node
        largest = up(float(reach.max()) / (1.0 - float(share.max())))
        ends = up(reach + share * largest)
        return self._within(node, np.array([-ends[q:], ends[:q]]))

    def curvatures(self, node: Node) -> Vector:
        """kappa of every row: all of w where f is w (u - y)^2, and otherwise what the node says."""
        w, weight, shared = self.rows.w, self.weight, -node.shares * self.weight
        is_whole = (node.low >= 0.0) & self._has_loss & ~(node.is_far & (self.rows.y > 0.0))
        kappa = np.where(is_whole, w, np.where(self._has_loss, np.minimum(shared, weight), shared))
        return np.where(np.isinf(node.low), np.minimum(kappa, 0.0), kappa)

    def curves(self, node: Node) -> Curves:
        """K of a node, and what is needed of its inverse; that of the last node is kept."""
        last = self._last
        if last is None or last[0] is not node:
            last = self._last = node, self._find_curves(node)
        return last[1]

    def _find_curves(self, node: Node) -> Curves:
        rows, kappa = self.rows, self.curvatures(node)
        K = rows.B + rows.Z.T @ (kappa[:, None] * rows.Z)
        K, times = 0.5 * (K + K.T), max(1.0, float(np.max(np.abs(kappa) / self.weight, initial=0.0)))
        K_error = up(times * rows.K_error)
        slopes = Slopes.of(rows.w, rows.y, kappa, node.low, node.high, self._has_loss, node.is_far)
        inverse = inverse_factor(K, K_error) if np.isfinite(K).all() else None
        if inverse is not None:
            return Curves(kappa, K, K_error, slopes, [Curve(K, K_error, *inverse, 0.0)])
        known = []
        for ridge in RIDGES:
            ridge *= self._unit
            paid = up(ridge * float(np.square(node.box).max(axis=0).sum()))
            more = K + ridge * np.eye(self.q)
            error = K_error + 4.0 * UNIT * np.abs(more)
            inverse = inverse_factor(more, error) if np.isfinite(K).all() and math.isfinite(paid) else None
            if inverse is not None:
                known.append(Curve(more, error, *inverse, paid))
        return Curves(kappa, K, K_error, slopes, known)

    def support(self, node: Node, curves: Curves, point: Point) -> Line:
        """Lemma 5: a quadratic below the loss, with slopes as they are best at a point."""
        rows = self.rows
        lam = curves.slopes.at(rows.Z @ point.x)
        lam[point.rows] = point.slopes
        G_error = up(float(np.abs(lam) @ (rows.doubt + gamma(self.n + 4) * rows.size)))
        return Line(self._least(node, lam, curves.kappa), rows.Z.T @ lam, G_error)

    def _least(self, node: Node, lam: Vector, kappa: Vector) -> float:
        """No more than the sum of all alpha.

        Left of 0 a row has w y^2 - lambda u - kappa u^2, where all numbers are exact; right of it
        w y^2 - (lambda + 2 w y) u + (w - kappa) u^2, where the rounding of the two is paid for. In a far
        node, rows with y > 0 have the first without w y^2 from 0 to y, and the second from there on.
        """
        w, y, low, high = self.rows.w, self.rows.y, node.low, node.high
        squares, positive, has_loss = self.rows.squares, np.maximum(low, 0.0), self._has_loss
        found, left_error = least_on(-lam, -kappa, low, np.minimum(high, 0.0))
        best = np.where((low < 0.0) | (high <= 0.0), found, np.inf)
        error = np.where(np.isfinite(best), left_error, 0.0)
        is_right = (high > 0.0) | (low >= 0.0)
        if node.is_far:
            above = has_loss & (y > 0.0)
            found, free_error = least_on(-lam, -kappa, positive, np.minimum(high, y))
            is_free = above & is_right & (positive <= y)
            best = np.where(is_free, np.minimum(best, found - squares), best)
            error = error + np.where(is_free, free_error + 8.0 * UNIT * (np.abs(found) + squares), 0.0)
            is_right = np.where(above, high > y, is_right)
            positive = np.where(above, np.maximum(positive, y), positive)
        found, right_error = least_on(-(lam + 2.0 * w * y), w - kappa, positive, high)
        best = np.where(is_right, np.minimum(best, found), best)
        with np.errstate(invalid="ignore"):
            doubt = 8.0 * UNIT * (np.abs(lam) + 2.0 * w * np.abs(y) + (w + np.abs(kappa)) * np.abs(high))
            doubt = np.where(has_loss, doubt * np.abs(high), 0.0)
        error = error + np.where(is_right, right_error + doubt, 0.0)
        if not (np.isfinite(best) & np.isfinite(error)).all():
            return -math.inf
        total = float(squares.sum()) + float(best.sum())
        rounding = gamma(self.n + 12) * float(squares.sum() + np.abs(best).sum())
        return total - float(up(float(error.sum()) + rounding + 4.0 * UNIT * abs(total)))

    def ellipsoid(self, line: Line, curve: Curve, cutoff: float) -> Ellipsoid | None:
        """Lemma 6: the least value of a quadratic, and all g up to the cutoff; None if there is no number."""
        (A, G, G_error), (K, K_error, W, factor, paid), q = line, curve, self.q
        if not (math.isfinite(A) and math.isfinite(G_error)):
            return None
        centre = -0.5 * (W.T @ (W @ G))
        size = np.abs(centre)
        blur = gamma(2 * q + 8) * float(np.abs(G) @ size + size @ np.abs(K) @ size)
        blur = up(blur + float(size @ K_error @ size) + G_error * float(size.max(initial=0.0)))
        rest = lower_sum(A, -paid, float(G @ centre), float(centre @ K @ centre), -blur)
        r = G + 2.0 * (K @ centre)
        r_error = 2.0 * K_error @ size + gamma(2 * q + 8) * (np.abs(G) + 2.0 * np.abs(K) @ size)
        r_error = up(float(r_error.sum()) + G_error)
        reach, root = up(np.abs(W).sum() * (1.0 + SLACK)), up(math.sqrt(factor))
        pull = norm_up(W @ r) + reach * (r_error + gamma(q + 2) * float(np.abs(r).sum()))
        pull = 0.5 * up(root * up(pull))
        room = -lower_sum(-cutoff, rest) + up(pull * pull)
        value = lower_sum(rest, -up(pull * pull))
        radius = up((pull + up(math.sqrt(up(max(room, 0.0))))) * root)
        return Ellipsoid(value, centre, W, radius) if math.isfinite(value) else None

    def bounded(self, node: Node, point: Point) -> Node:
        """A node with the bound of a quadratic, and within its ellipsoid."""
        curves = self.curves(node)
        line = self.support(node, curves, point)
        found = self._best(line, curves, node.cutoff)
        nothing = np.zeros(self.n)
        # The second is what samples cost one by one.
        values = (self._level(node, line, curves, point.x), self._least(node, nothing, nothing))
        value = max(node.value, *values, -math.inf if found is None else found.value)
        node = replace(node, value=value, is_closed=node.is_closed or value >= self.cutoff)
        if node.is_closed or found is None:
            return node
        rows, far = self.rows, float(np.abs(found.centre).max())
        size = up(np.abs(found.W).sum() * (1.0 + SLACK))
        u = rows.Z @ found.centre
        spread = up(np.sqrt(np.square(rows.Z @ found.W.T).sum(axis=1))) + size * rows.doubt
        spread = up(found.radius * up(spread) + 2.0 * far * (rows.doubt + gamma(4) * rows.size))
        columns = up(np.sqrt(np.square(found.W).sum(axis=0)))
        far = up(found.radius * columns + 4.0 * UNIT * np.abs(found.centre))
        node = self._within(node, np.array([found.centre - far, found.centre + far]))
        return self._narrowed(node, u - spread, u + spread)

    def direction(self, line: int, sign: float) -> Vector:
        """The row `line`, or a coordinate behind the rows, up or down."""
        return np.asarray(sign * (self.rows.Z[line] if line < self.n else np.eye(self.q)[line - self.n]))

    def tilted(self, node: Node, tilts: list[Tilt]) -> Node:
        """One end of each of some intervals, all from what is known before.

        Lemma 7: with v = sign z and any tau > 0, v'g >= (min [A + G'g + g'Kg + tau v'g] - cutoff) / tau.
        """
        low, high, box = node.low.copy(), node.high.copy(), node.box.copy()
        far, curves = float(np.abs(node.box).max(initial=0.0)), self.curves(node)
        for line, sign, point in tilts:
            v = self.direction(line, sign)
            line_at = self.support(node, curves, point)
            least = self._end(line_at, curves, point.x, v, node.cutoff)
            if line >= self.n:
                k, side = line - self.n, int(sign < 0.0)
                box[side, k] = sign * max(least, sign * box[side, k])
            elif math.isfinite(least) and math.isfinite(far):
                least -= float(up(self.rows.doubt[line] * far + 4.0 * UNIT * abs(least)))
                ends = low if sign > 0.0 else high
                ends[line] = sign * max(least, sign * ends[line])
        return self._within(self._narrowed(node, low, high), box)

    def _best(self, line: Line, curves: Curves, cutoff: float) -> Ellipsoid | None:
        """The ellipsoid with the largest least value."""
        found = [self.ellipsoid(line, curve, cutoff) for curve in curves.known]
        return max((each for each in found if each is not None), key=lambda each: each.value, default=None)

    def _level(self, node: Node, line: Line, curves: Curves, x: Vector) -> float:
        """The least value of a quadratic in the box of a node, where no kappa is negative, so that K >= 0.

        With r its gradient at x, it is at least its value there and r'(g - x).
        """
        away = node.box - x
        wide = np.abs(away).max(axis=0)
        if not (np.isfinite(wide).all() and math.isfinite(line.A) and (curves.kappa >= 0.0).all()):
            return -math.inf
        (A, G, G_error), K, size = line, curves.K, np.abs(x)
        r, many = G + 2.0 * (K @ x), gamma(2 * self.q + 8)
        r_error = 2.0 * (curves.K_error @ size) + many * (np.abs(G) + 2.0 * np.abs(K) @ size) + G_error
        blur = many * float(np.abs(G) @ size + size @ np.abs(K) @ size) + float(size @ curves.K_error @ size)
        blur = up(blur + G_error * float(size.max(initial=0.0)))
        falls = float(np.minimum(r * away[0], r * away[1]).sum())
        lost = float(up((up(r_error) + many * np.abs(r)) @ up(wide)))
        return lower_sum(A, float(G @ x), float(x @ K @ x), falls, -blur, -lost)

    def _end(self, line: Line, curves: Curves, x: Vector, v: Vector, cutoff: float) -> float:
        """No more than v'g for all better solutions of a node, from slopes as they are best at x."""
        gradient, length = line.G + 2.0 * (curves.K @ x), float(v @ v)
        tau = -float(gradient @ v) / length if length > 0.0 else 0.0
        if not 0.0 < tau < math.inf:
            return -math.inf
        error = up(line.G_error + 4.0 * UNIT * float(np.abs(line.G).sum() + tau * np.abs(v).sum()))
        found = self._best(Line(line.A, line.G + tau * v, error), curves, cutoff)
        if found is None:
            return -math.inf
        end = lower_sum(found.value, -cutoff) / tau
        return end - float(up(8.0 * UNIT * abs(end)))


def least_on(slope: Vector, curve: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """The least slope u + curve u^2 from low to high, and a bound of the rounding of this number.

    A convex one is nowhere below that of its vertex, which counts unless the slope at an end is known to
    lead away from it. Without an end it must rise there, or be level.
    """
    with np.errstate(all="ignore"):
        ends, errors = [], []
        for x, outwards in ((low, -1.0), (high, 1.0)):
            value = slope * x + curve * x * x
            size = np.abs(slope * x) + np.abs(curve) * x * x
            rises = (curve > 0.0) | ((curve == 0.0) & (outwards * slope >= 0.0))
            ends.append(np.where(np.isinf(x), np.where(rises, np.inf, -np.inf), value))
            errors.append(np.where(np.isinf(x), 0.0, 8.0 * UNIT * size))
        least, error = np.minimum(*ends), np.maximum(*errors)
        vertex = -(slope * slope) / (4.0 * curve)
        margin = 8.0 * UNIT * (np.abs(slope) + 2.0 * curve * np.maximum(np.abs(low), np.abs(high)))
        leads = (slope + 2.0 * curve * low >= margin) | (slope + 2.0 * curve * high <= -margin)
        counts = (curve > 0.0) & ~leads
        least = np.where(counts, vertex, least)
        error = np.where(counts, 8.0 * UNIT * np.abs(vertex), error)
    return least, error
