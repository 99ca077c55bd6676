"""What follows in a cell of directions from the few numbers that a file has for it.

A cell is { g : sign g_axis = s >= 0, low_k s <= g_k <= high_k s }. Statements are about better ray minima: g
with a loss below the cutoff that are the minimum along their ray. Theorem 1, Lemmas 1 and 2a, the corollary
and the ellipsoid are those of the page "Why a certificate can be trusted".

Under constraints z'g <= end, statements are about those of these g that satisfy them. That is enough if all
ends are 0, for then ray minima satisfy them if better solutions do. Otherwise statements are about all better
solutions, and nothing is used that holds for ray minima alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Integers, Mask, Matrix, Vector
from rectifit.checking.reading import ProofError
from rectifit.checking.rounding import SLACK, UNIT, gamma, inverse_factor, lower_sum, norm_up, up
from rectifit.checking.rows import Rows, Walls

__all__ = ["BOUND", "DRAW", "FACE", "FAR", "LENGTH", "Cell", "CellRules", "Corners"]

# Steps in a cell.
BOUND, DRAW, LENGTH, FAR, FACE = 1, 2, 3, 4, 5
# Kinds of rows. ALMOST_ON: u >= -eps s, with a tiny eps.
OPEN, ON, OFF, ALMOST_ON = 0, 1, 2, 3
# A row whose sign is the same in a cell up to so many times its doubt counts as settled, for what that costs.
ALMOST = 64.0
# Coordinates with 2^(q-1) corners that are all priced, and numbers in a block of them.
MAX_COLUMNS = 20
BLOCK = 1 << 22

Kinds = npt.NDArray[np.int8]

# How slopes are found. Any choice is sound: this is that of the search.
STEEP = 1001.0
# Of the square of the distance beyond a wall, where its row has the length 1, in units of the search.
WALL_WEIGHT = 1e6
SPREAD_SHARE, RAMP = 0.8, 0.1
HINGES_PER_UNIT, MAX_HINGE_MEAN = 16, 8


def _hinge_table() -> Vector:
    """For a normal u with mean -a and variance 1: the h with the largest -E max(u, -h) / h, 0 if negative."""
    a = np.arange(MAX_HINGE_MEAN * HINGES_PER_UNIT + 1)[:, None] / HINGES_PER_UNIT
    h = np.geomspace(0.02, 10.0, 80)
    x = h - a
    below = 0.5 * np.vectorize(math.erfc)(-x / math.sqrt(2.0))
    mean = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) + x * below - h
    best = np.argmax(-mean / h, axis=1)
    return np.where(mean[np.arange(a.size), best] < 0.0, h[best], 0.0)


HINGES = _hinge_table()


class HalfSpaces(NamedTuple):
    """Constraints z'g <= end, with the doubt and the size of their rows.

    weights: of the squares of z'g - end, where that is positive, in the search. Multipliers are its slopes.
    """

    Z: Matrix
    doubt: Vector
    size: Vector
    ends: Vector
    weights: Vector

    @classmethod
    def of(cls, walls: Walls, unit: float) -> HalfSpaces:
        """Both sides of walls, where they have an end; unit: as in `CellRules`."""
        Z, ends = np.vstack([walls.Z, -walls.Z]), np.append(walls.high, -walls.low)
        kept = np.isfinite(ends)
        Z, squares = Z[kept], np.square(Z[kept]).sum(axis=1)
        weights = np.where(squares > 0.0, WALL_WEIGHT * unit / np.where(squares > 0.0, squares, 1.0), 0.0)
        return cls(Z, np.tile(walls.doubt, 2)[kept], up(np.abs(Z).sum(axis=1)), ends[kept], weights)

    @property
    def are_cone(self) -> bool:
        """Whether with g all its multiples satisfy them."""
        return not self.ends.any()


class Corners(NamedTuple):
    """Corners with weights, from which p, mu and nu follow."""

    bits: Integers
    weights: Vector


@dataclass(frozen=True)
class Cell:
    """A cell, the kinds of rows in it, and between which scales all its better ray minima lie.

    Under constraints that are no cone, all its better solutions do.

    is_closed: there are none. bound: a bound of this cell or one around it, by that cell and where its
    corners are in the file. face: a tree of rows, outside of which all with y > 0 are off in the cell. Rows
    that are off only almost cost less than y^2 by up to slack s in all.
    """

    axis: int
    sign: float
    low: Vector
    high: Vector
    kind: Kinds
    least: float = 0.0
    limit: float = math.inf
    is_closed: bool = False
    bound: tuple[Cell, int] | None = None
    face: int | None = None
    slack: float = 0.0

    def part(self, at: int, is_high: bool) -> Cell:
        """One half, split at the middle of a coordinate."""
        low, high, middle = self.low.copy(), self.high.copy(), 0.5 * (self.low[at] + self.high[at])
        if not low[at] < middle < high[at]:
            raise ProofError("a cell is split that is too narrow to be split")
        (low if is_high else high)[at] = middle
        return replace(self, low=low, high=high)


class Bound(NamedTuple):
    """L(g) >= value + price s + (g - p)'K(g - p), where K = B + sum zz' over the rows in `inside`.

    K is known up to K_error.
    """

    value: float
    price: float
    p: Vector
    inside: Mask
    K_error: Matrix


class CellRules:
    """What follows in a cell from the few numbers of a step.

    unit: losses of the search times this are those of the rows. No bound rests on it. longest: where rows are
    off only almost and no scale is too large, statements are about g with a root of g'(B + sum w zz')g up to
    this; is_limited says whether there were any.
    """

    def __init__(self, rows: Rows, walls: Walls, unit: float, longest: float) -> None:
        self.rows, self.cutoff = rows, rows.cutoff
        self.n, self.q = rows.Z.shape
        self.limits = HalfSpaces.of(walls, unit)
        if not 1 <= self.q <= MAX_COLUMNS:
            raise ProofError(f"cells have 1 to {MAX_COLUMNS} coordinates")
        self.explained, self.needed = self._lengths()
        self.is_limited, self._farthest = False, self._largest_scale(longest)
        # 2 eps y_+ and eps of each row that is settled almost.
        self.eps = (ALMOST + 2.0) * rows.doubt
        self.almost = 2.0 * rows.w * self.eps * np.maximum(rows.y, 0.0)
        self.corners = np.array([[c >> k & 1 for k in range(self.q - 1)] for c in range(1 << (self.q - 1))])
        self.corners = self.corners.reshape(1 << (self.q - 1), self.q - 1).astype(np.bool_)

    def _lengths(self) -> tuple[float, float]:
        """The largest |u_+|, and the least one, or the root of the least |u_+|^2 + g'Bg.

        At ray minima |u_+|^2 + g'Bg = |y|^2 - L, and L is at least the cost of y <= 0. For all better
        solutions |u_+ - y_+| <= |u_+ - y| <= root(L).
        """
        squares = self.rows.squares
        positive = up(math.sqrt(up(float(squares[self.rows.y > 0.0].sum()))))
        every = float(squares.sum()) * (1.0 - gamma(self.n + 4))
        if self.limits.are_cone:
            return positive, math.sqrt(max(every - self.cutoff, 0.0)) * (1.0 - SLACK)
        root = up(math.sqrt(max(self.cutoff, 0.0)))
        least = math.sqrt(max(every, 0.0)) * (1.0 - SLACK) - root
        return up(positive + root), max(least, 0.0) * (1.0 - SLACK)

    def _largest_scale(self, longest: float) -> float:
        """The largest |g_k| of all g that are no longer."""
        rows = self.rows
        K = rows.B + rows.Z.T @ (rows.w[:, None] * rows.Z)
        inverse = inverse_factor(0.5 * (K + K.T), rows.K_error) if np.isfinite(K).all() else None
        if inverse is None:
            return math.inf
        W, factor = inverse
        return float(up(longest * math.sqrt(up(factor * float(up(np.square(W).sum(axis=0)).max())))))

    def loss_of_almost(self, cell: Cell) -> float:
        """What rows may cost less than y^2 in a cell because they are off only almost."""
        if cell.slack == 0.0:
            return 0.0
        self.is_limited |= cell.limit > self._farthest
        return float(up(cell.slack * min(cell.limit, self._farthest)))

    def roots(self) -> list[Cell]:
        """The pyramids, which cover everything: g lies in that of its largest coordinate."""
        cells = []
        for axis in range(self.q):
            for sign in (1.0, -1.0):
                low, high = np.full(self.q, -1.0), np.full(self.q, 1.0)
                low[axis] = high[axis] = sign
                cells.append(Cell(axis, sign, low, high, np.zeros(self.n, np.int8)))
        return cells

    def settle(self, cell: Cell) -> Cell:
        """Rows whose sign is the same in the whole cell, what they cost, and scales of Lemma 1 and of limits.

        A sample with u <= eps s costs at least y^2 - 2 eps y_+ s, so it may count as off. One with
        u >= -eps s costs at least (u - y)^2 - 2 eps y_+ s - eps^2 s^2.
        """
        rows, cell = self.rows, self._within_limits(cell)
        kind = cell.kind.copy()
        centre = rows.Z @ (0.5 * (cell.low + cell.high))
        radius = np.abs(rows.Z) @ (0.5 * (cell.high - cell.low))
        kind[(kind % 3 == OPEN) & (centre - radius >= 2.0 * rows.doubt)] = ON
        kind[(kind == OPEN) & (centre - radius >= -ALMOST * rows.doubt)] = ALMOST_ON
        off = (kind == OPEN) & (centre + radius <= ALMOST * rows.doubt)
        almost = off & (centre + radius > -2.0 * rows.doubt)
        kind[off] = OFF
        slack = cell.slack + (up(float(self.almost[almost].sum())) if almost.any() else 0.0)
        fixed = rows.squares[(kind == OFF) | ((kind % 3 == OPEN) & (rows.y <= 0.0))]
        loss = slack * cell.limit if slack > 0.0 else 0.0
        is_closed = lower_sum(float(fixed.sum()) * (1.0 - gamma(len(fixed) + 4)), -loss) >= self.cutoff
        radius = radius + 2.0 * rows.doubt
        most = np.maximum(np.abs(cell.low), np.abs(cell.high))
        longest = float(rows.w @ np.square(np.maximum(centre + radius, 0.0)))
        longest = up(longest + float(most @ (np.abs(rows.B) + rows.B_error) @ most))
        least = max(cell.least, self.needed / up(math.sqrt(longest)) * (1.0 - SLACK))
        is_closed = cell.is_closed or is_closed or least > cell.limit
        return replace(cell, kind=kind, least=least, is_closed=is_closed, slack=slack)

    def _within_limits(self, cell: Cell) -> Cell:
        """Between which scales constraints z'g <= end hold: s z'd <= end, and z'd is at least some lowest."""
        Z, doubt, _, ends, _ = self.limits
        lowest = np.minimum(Z * cell.low, Z * cell.high).sum(axis=1) - 2.0 * doubt
        is_far, is_near = (ends < 0.0) & (lowest < 0.0), (ends >= 0.0) & (lowest > 0.0)
        least = float((ends[is_far] / lowest[is_far]).max(initial=0.0)) * (1.0 - SLACK)
        limit = up(float((ends[is_near] / lowest[is_near]).min(initial=math.inf)))
        is_closed = cell.is_closed or bool(((ends < 0.0) & (lowest >= 0.0)).any())
        return self._limited(replace(cell, least=max(cell.least, least), is_closed=is_closed), limit)

    def shorten(self, cell: Cell, x: Vector) -> Cell:
        """A largest scale from |(Zd)_+| >= v'Zd, where v >= 0 has length 1 and the direction of (Zx)_+."""
        rows = self.rows
        v = np.maximum(rows.Z @ x, 0.0)
        slope = rows.Z.T @ (rows.w * v)
        error = up(float((rows.w * v) @ (rows.doubt + gamma(len(v) + 4) * rows.size)))
        lowest = float(np.minimum(slope * cell.low, slope * cell.high).sum())
        lowest -= up(gamma(self.q + 2) * float(np.abs(slope).sum())) + error
        length = norm_up(np.sqrt(rows.w) * v)
        if not lowest > 0.0:
            return cell
        limit = up(up(self.explained * length) / (lowest * (1.0 - SLACK)))
        return self._limited(cell, limit)

    def _limited(self, cell: Cell, limit: float) -> Cell:
        limit = min(limit, cell.limit)
        return replace(cell, limit=limit, is_closed=cell.is_closed or limit < cell.least)

    def relax(
        self,
        cell: Cell,
        corners: Corners,
        from_scale: float | None = None,
        rate: float = 0.0,
        with_almost: bool = False,
    ) -> Bound:
        """Theorem 1, with a multiplier of a known scale, or Lemma 2a for all scales from one on.

        with_almost: rows that are almost on are among those of K.
        """
        rows, is_far = self.rows, from_scale is not None
        Z, w, y = rows.Z, rows.w, rows.y
        almost = cell.kind == ALMOST_ON
        kind = np.where(almost, ON if with_almost else OPEN, cell.kind)
        V = np.where(corners.bits[:, None] >> np.arange(self.q) & 1, cell.high, cell.low)
        p = corners.weights @ V
        reach = float(np.abs(p).max())
        u, u_error = Z @ p, up(reach * rows.doubt)
        free, convex = (kind == OPEN) & (y > 0.0), (kind == OPEN) & (y <= 0.0)
        inside = (kind == ON) & (y <= 0.0) if is_far else kind == ON
        ramps = free | ((kind == ON) & (y > 0.0)) if is_far else free
        # nu: slopes of (u - y)_+^2, and of samples with y <= 0.
        nu = np.where(ramps, 2.0 * w * np.maximum(u - y, 0.0), 0.0)
        nu[convex] = 2.0 * (w * np.maximum(np.minimum(STEEP * u, u - y), 0.0))[convex]
        ZF, wF, yF = Z[free], w[free], y[free]
        H = ZF @ V.T
        if from_scale is None:
            floor = np.zeros(len(yF))
            mu = 2.0 * wF * np.maximum(yF - np.maximum(H, 0.0) @ corners.weights, 0.0)
        else:
            floor, mu = self._hinges(cell, ZF, wF, yF, H, corners.weights, from_scale)
        # The gradient g = 2(Kp - h) + sum nu z, of which 2 w (u - y) is the share of a row inside.
        a = np.where(inside, 2.0 * w * (u - y), nu)
        a_error = np.where(inside, 2.0 * w * u_error + 4.0 * UNIT * np.abs(a), 0.0)
        g = Z.T @ a + 2.0 * (rows.B @ p)
        g_error = up(float(np.abs(a) @ (rows.doubt + gamma(self.n + self.q + 4) * rows.size)))
        g_error += up(float(a_error @ (rows.size + rows.doubt)))
        bending = up(float((rows.B_error + gamma(self.q + 4) * np.abs(rows.B)).sum())) * reach
        g_error += 2.0 * bending
        # S: what rows cost that do not depend on g, conjugates, and p'Kp.
        squares = w * y * y
        terms = [squares[inside | (kind == OFF)], -(w * np.square(np.abs(u) + u_error))[inside]]
        if from_scale is None:
            terms += [mu * yF, -mu * mu / (4.0 * wF)]
        sloped = ramps | (convex & (nu > -2.0 * w * y))
        terms += [(-nu * y)[sloped], (-nu * nu / (4.0 * w))[sloped], squares[convex & ~sloped]]
        # Known scales: 0 >= rate (s - limit), or for a negative rate 0 >= rate (s - least).
        end = cell.limit if rate > 0.0 else cell.least
        if rate != 0.0:
            g[cell.axis] += cell.sign * rate
            g_error += 4.0 * UNIT * (abs(rate) + float(np.abs(g).max()))
            terms.append(np.array([-rate * end]))
        pull, pull_error, at_ends = self._multiplied(p, is_far)
        g, g_error = g + pull, g_error + pull_error
        terms.append(at_ends)
        values = np.concatenate(terms)
        value = float(values.sum()) - up(gamma(len(values) + 12) * float(np.abs(values).sum()))
        ridge = up(float(np.abs(p) @ (rows.B_error + gamma(self.q + 4) * np.abs(rows.B)) @ np.abs(p)))
        value -= float(p @ rows.B @ p) + ridge
        value -= up(4.0 * UNIT * abs(value))
        price = self._least_price(cell, g, g_error, ZF, mu, floor, free)
        K_error = rows.K_error
        if cell.slack > 0.0:
            price = lower_sum(price, -cell.slack)
        if with_almost:
            # With E the sum of eps^2: -E s^2 >= -2 E s_p s - E (s - s_p)^2.
            E = up(float(w[almost] @ np.square(self.eps[almost])))
            price = lower_sum(price, -up(float(self.almost[almost].sum())), -2.0 * E * reach)
            K_error = K_error.copy()
            K_error[cell.axis, cell.axis] += up(E)
        return Bound(value, price, p, inside, K_error)

    def _multiplied(self, p: Vector, is_far: bool) -> tuple[Vector, float, Vector]:
        """Constraints with multipliers m, 0 >= sum m (z'g - end): slope, its error, and all -m end.

        Of g = t g0 with t >= 1, z'g0 <= max(end, 0).
        """
        Z, doubt, size, ends, weights = self.limits
        ends = np.maximum(ends, 0.0) if is_far else ends
        m = 2.0 * weights * np.maximum(Z @ p - ends, 0.0)
        return Z.T @ m, up(float(m @ (doubt + gamma(len(m) + self.q + 4) * size))), -m * ends

    def _hinges(
        self, cell: Cell, Z: Matrix, w: Vector, y: Vector, H: Matrix, weights: Vector, scale: float
    ) -> tuple[Vector, Vector]:
        """Where hinges begin below 0 at s = 1, and slopes 0 <= mu <= y^2 / h."""
        mean = Z @ (0.5 * (cell.low + cell.high))
        spread = np.sqrt(np.square(Z) @ np.square(0.5 * SPREAD_SHARE * (cell.high - cell.low)))
        place = np.where((mean < 0.0) & (spread > 0.0), -mean / np.where(spread > 0.0, spread, 1.0), 0.0)
        index = np.minimum((0.5 + HINGES_PER_UNIT * place).astype(np.int64), len(HINGES) - 1)
        h = np.where((mean < 0.0) & (spread > 0.0), spread * HINGES[index], 0.0)
        safe = np.where(h > 0.0, h, 1.0)
        M = np.maximum(H, -h[:, None]) @ weights
        factor = y / (math.sqrt(2.0 * RAMP) * safe * scale)
        most = w * y * y / (safe * scale) * (1.0 - SLACK)
        mu = np.minimum(2.0 * w * factor * factor * np.maximum(-M, 0.0), most)
        return h, np.where(h > 0.0, mu, 0.0)

    def _least_price(
        self, cell: Cell, g: Vector, g_error: float, Z: Matrix, mu: Vector, floor: Vector, free: Mask
    ) -> float:
        """No more than D(v) = g'v - sum mu max(z'v, -floor) at any corner v of the cell."""
        used = mu > 0.0
        Z, mu, floor, doubt, size = Z[used], mu[used], floor[used], self.rows.doubt[free][used], 0.0
        others = np.arange(self.q) != cell.axis
        step, lowest = max(BLOCK // max(len(mu), 1), 1), math.inf
        for begin in range(0, len(self.corners), step):
            high = self.corners[begin : begin + step]
            V = np.empty((len(high), self.q))
            V[:, cell.axis] = cell.sign
            V[:, others] = np.where(high, cell.high[others], cell.low[others])
            prices = V @ g - np.maximum(V @ Z.T, -floor) @ mu
            lowest = min(lowest, float(prices.min())) if not np.isnan(prices).any() else -math.inf
        size = float(mu @ (self.rows.size[free][used] + floor))
        error = float(mu @ doubt) + gamma(len(mu) + 4) * size + gamma(self.q + 4) * float(np.abs(g).sum())
        return float(lowest - up(error + g_error) - up(4.0 * UNIT * abs(lowest)))

    def bound(self, cell: Cell, corners: Corners) -> float:
        """A lower bound of the loss of better ray minima of the cell: the corollary."""
        best = self._bound_by(cell, self.relax(cell, corners), False)
        if best < self.cutoff and (cell.kind == ALMOST_ON).any():
            best = max(best, self._bound_by(cell, self.relax(cell, corners, with_almost=True), True))
        return best

    def _bound_by(self, cell: Cell, found: Bound, is_regular: bool) -> float:
        """The bound that follows in a cell; is_regular: only if K is shown to be positive definite."""
        value, price, best = found.value, found.price, -math.inf
        inverse = self._inverse(found) if is_regular or price < 0.0 else None
        if is_regular and inverse is None:
            return best
        if price >= 0.0:
            return lower_sum(value, price * cell.least)
        if cell.limit < math.inf:
            best = lower_sum(value, price * cell.limit)
        if inverse is not None:
            W, factor = inverse
            s, curve = cell.sign * found.p[cell.axis], up(factor * float(W[:, cell.axis] @ W[:, cell.axis]))
            best = max(best, lower_sum(value, price * s, -0.25 * price * price * curve))
        return best

    def close_far(self, cell: Cell, scale: float, corners: Corners) -> Cell:
        """No better ray minimum has a scale from this one on, if Lemma 2a shows it."""
        if not 0.0 < scale < math.inf:
            raise ProofError("a scale is not a positive number")
        found = self.relax(cell, corners, scale)
        # Rows that are off only almost cost the less, the larger the scale is.
        if not lower_sum(found.value, found.price * scale, -self.loss_of_almost(cell)) >= self.cutoff:
            raise ProofError("a cell is not closed for all larger scales")
        cell = self._limited(cell, scale)
        cell = replace(cell, is_closed=cell.is_closed or scale <= cell.least)
        # What samples cost that are off almost depends on the scale.
        return self.settle(cell) if cell.slack > 0.0 else cell

    def _inverse(self, bound: Bound) -> tuple[Matrix, float] | None:
        Z = self.rows.Z[bound.inside]
        K = self.rows.B + Z.T @ (self.rows.w[bound.inside][:, None] * Z)
        return inverse_factor(0.5 * (K + K.T), bound.K_error)

    def draw_in(
        self,
        cell: Cell,
        corners: Corners,
        rate: float,
        ends: tuple[Vector, Vector],
        cutoff: float,
        settled: Integers,
    ) -> Cell:
        """Edges drawn in to those given, and signs of some rows, as they are in the ellipsoid of a bound.

        It holds all better solutions with a loss up to a cutoff that is no lower than the present one.
        """
        if not cutoff >= self.cutoff:
            raise ProofError("edges are drawn in for a lower cutoff than that of the proof")
        rows, (low, high) = self.rows, ends
        found = self.relax(cell, corners, rate=rate, with_almost=bool((cell.kind == ALMOST_ON).any()))
        inverse = self._inverse(found)
        if inverse is None:
            raise ProofError("edges are drawn in, but the curvature there is not positive definite")
        (W, factor), q = inverse, self.q
        inside = rows.Z[found.inside]
        K = rows.B + inside.T @ (rows.w[found.inside][:, None] * inside)
        e = np.zeros(q)
        e[cell.axis] = cell.sign
        # Around p + t, L >= rest + r'd + d'Kd.
        t = -0.5 * found.price * (W.T @ (W @ e))
        centre, K_doubt = found.p + t, found.K_error + gamma(2 * q + 6) * np.abs(K)
        far = float(np.abs(centre).max())
        s, s_error = cell.sign * float(centre[cell.axis]), 4.0 * UNIT * far
        blur = up(float(np.abs(t) @ K_doubt @ np.abs(t)) + abs(found.price) * s_error)
        rest = lower_sum(found.value, found.price * s, float(t @ K @ t), -blur)
        r = found.price * e + 2.0 * (K @ t)
        r_error = up(2.0 * K_doubt @ np.abs(t) + 4.0 * UNIT * np.abs(r))
        size = up(np.abs(W).sum() * (1.0 + SLACK))
        root = up(math.sqrt(factor))
        pull = 0.5 * up(
            root * (norm_up(W @ r) + size * float(r_error.sum() + gamma(q + 2) * np.abs(r).sum()))
        )
        room = -lower_sum(-cutoff, rest) + pull * pull
        if room < 0.0:
            return replace(cell, is_closed=True)
        radius = up((pull + up(math.sqrt(up(room)))) * root)
        # Signs of rows within the ellipsoid.
        Z, doubt = rows.Z[settled], rows.doubt[settled]
        u = Z @ centre
        spread = np.sqrt(np.square(Z @ W.T).sum(axis=1)) + size * doubt
        spread = up(radius * up(spread) + 2.0 * far * (doubt + gamma(4) * rows.size[settled]))
        if not (np.abs(u) >= spread).all():
            raise ProofError("a sample is settled whose sign is open")
        kind = cell.kind.copy()
        kind[settled] = np.where(u > 0.0, ON, OFF)

        def reach(v: Vector) -> float:
            """How far v'g is from v'centre at most, for a v with two entries."""
            length = norm_up(W @ v) + up(gamma(q + 2) * size * float(np.abs(v).max()))
            return float(up(radius * length + 8.0 * UNIT * far * float(np.abs(v).sum())))

        is_closed = s + reach(e) < 0.0
        for k in range(q):
            for end, before, side in ((low, cell.low, 1.0), (high, cell.high, -1.0)):
                if k == cell.axis or is_closed or side * (end[k] - before[k]) <= 0.0:
                    continue
                v = np.zeros(q)
                v[k], v[cell.axis] = side, -side * end[k] * cell.sign
                if not float(v @ centre) >= reach(v):
                    raise ProofError("edges of a cell are drawn in farther than the bound allows")
        low, high = np.maximum(low, cell.low), np.minimum(high, cell.high)
        is_closed = is_closed or bool((low > high).any())
        return replace(cell, kind=kind, low=low, high=high, is_closed=is_closed)
