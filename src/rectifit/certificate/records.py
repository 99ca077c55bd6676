"""Records that go into the compiled code of the certificate and come out of it."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from rectifit._typing import Integers, Mask, Matrix, Vector
from rectifit.certificate.flats import lies_in

__all__ = [
    "BARRIER",
    "BEST",
    "CONVEX",
    "EVALUATIONS",
    "FAR_FREE",
    "FAR_ON",
    "FREE",
    "LIMIT",
    "OBJECTIVE",
    "OFF",
    "ON",
    "PAIRS",
    "SEEN",
    "SLAB",
    "SMALL_GAINS",
    "STEPS",
    "VALUE",
    "AscentState",
    "AscentWork",
    "BitSets",
    "Cell",
    "CellLog",
    "CellRoom",
    "CellWork",
    "Cells",
    "CornerWork",
    "FaceBounds",
    "Found",
    "FreeWork",
    "KernelRows",
    "Kinds",
    "Layout",
    "Limits",
    "PieceWork",
    "Region",
    "Samples",
    "ScaleNodes",
    "ScalePoints",
    "ScaleRows",
    "ScaleWork",
    "SmallWork",
    "make_room",
    "pack_kinds",
    "unpack_kinds",
]

# What is known of a sample in all better solutions: nothing, with y <= 0 or y > 0, or that u >= 0 or u <= 0.
CONVEX = 0
FREE = 1
ON = 2
OFF = 3
# A row without a loss that is a constraint: u = z'b lies in an interval.
LIMIT = 4
# A row without a loss, whose u = z'b is known to lie in an interval: a slab of coefficients.
SLAB = 5
# As FREE and ON, but for the least loss of a sample over all larger scales, t >= 1, of u.
FAR_FREE = 6
FAR_ON = 7

# How far points that were met in a search may exceed a constraint, whose row is long. No bound uses it.
MAX_LIMIT_EXCESS = 1e-2
# Whitened units: the length of the rows of constraints among those of samples, which are no longer than 1.
MAX_LIMIT_ROW = 10.0

# Small numbers, one per cell.
Small = Annotated[npt.NDArray[np.int16], 1]

Kinds = Annotated[npt.NDArray[np.int8], 1]
# One set of bits per line.
BitSets = Annotated[npt.NDArray[np.int64], 2]

# Corners that a cell hands down to its parts, and those at work in one cell.
KEPT_CORNERS = 12
MAX_CORNERS = 48
# Coordinates whose corners are enumerated, and samples per block of the tables of their prices.
MAX_LISTED = 12
BLOCK = 256
# In the log of a cell: numbers of a bound, and steps.
LOG_NUMBERS = 5 + 2 * MAX_CORNERS
LOG_STEPS = 15
# Steps in the log of a cell: a bound, an ellipsoid that draws in edges, a largest scale, all larger scales.
LOG_BOUND = 1
LOG_DRAW = 2
LOG_LENGTH = 3
LOG_FAR = 4


class Samples(NamedTuple):
    """Rows Z in whitened coordinates, their transpose, outcomes and ridge."""

    Z: Matrix
    Zt: Matrix
    y: Vector
    ridge: Matrix

    @classmethod
    def from_rows(cls, Z: Matrix, y: Vector, ridge: Matrix) -> Samples:
        """The same in contiguous arrays, the only ones for which code is compiled."""
        Z, Zt, y, ridge = (np.ascontiguousarray(array) for array in (Z, Z.T, y, ridge))
        return cls(Z, Zt, y, ridge)


class Limits(NamedTuple):
    """Constraints z'b <= end of a search over cells, in columns; rows are long."""

    Zt: Matrix
    ends: Vector

    @classmethod
    def none(cls, n_columns: int) -> Limits:
        """No constraints."""
        return cls(np.zeros((n_columns, 0)), np.zeros(0))

    def rows_below(self, size: float) -> Matrix:
        """Rows g, multiples of the constraints, whose (g'b)_+ have together a length of at most `size`."""
        length = np.linalg.norm(self.Zt, axis=0)
        factor, has_room = MAX_LIMIT_ROW / np.where(length > 0.0, length, 1.0), self.ends > 0.0
        share = size / np.sqrt(max(int(np.count_nonzero(has_room)), 1))
        factor[has_room] = np.minimum(factor[has_room], share / self.ends[has_room])
        return np.asarray((self.Zt * factor).T)

    def chosen(self, kept: Mask) -> Limits:
        """Some of them."""
        return Limits(np.ascontiguousarray(self.Zt[:, kept]), self.ends[kept])

    def within(self, basis: Matrix, to_white: Matrix) -> Limits:
        """Those whose rows lie in a subspace, in coordinates of it, with rows as long as they were."""
        Zt, ends = self.chosen(lies_in(self.Zt.T, basis))
        rows, before = (basis @ to_white).T @ Zt, np.linalg.norm(Zt, axis=0)
        after = np.linalg.norm(rows, axis=0)
        factor = before / np.where(after > 0.0, after, 1.0)
        return Limits(np.ascontiguousarray(rows * factor), ends * factor)

    def allow(self, points: Matrix) -> Mask:
        """Which points, in lines, satisfy them but for what penalties of a relaxation leave."""
        return np.asarray((points @ self.Zt <= self.ends + MAX_LIMIT_EXCESS).all(axis=1))

    @property
    def are_cone(self) -> bool:
        """Whether (g'b)_+ is 0 for all of them."""
        return not (self.ends > 0.0).any()

    def turned(self, turn: Matrix) -> Limits:
        """The same in coordinates turn'b."""
        return Limits(np.ascontiguousarray(turn.T @ self.Zt), self.ends)


class Region(NamedTuple):
    """What is known of all better solutions: kinds of samples and bounds of their u. Changed in place."""

    kind: Kinds
    l: Vector  # noqa: E741
    U: Vector

    def copy(self) -> Region:
        """The same in arrays of its own."""
        return Region(self.kind.copy(), self.l.copy(), self.U.copy())

    def followed_by(self, other: Region) -> Region:
        """What is known of these samples, and of others behind them."""
        return Region(
            np.append(self.kind, other.kind), np.append(self.l, other.l), np.append(self.U, other.U)
        )


class KernelRows(NamedTuple):
    """Pieces that are 0 left of their kink and (u - outcome)^2 - (kink - outcome)^2 right of it.

    norms are the lengths of the rows. A piece without a kink (-infinity) is (u - outcome)^2, and one with the
    outcome WALL of the surrogate's kernel a constraint: u must not exceed its kink.
    """

    rows: Matrix
    norms: Vector
    kinks: Vector
    outcomes: Vector

    @classmethod
    def empty(cls, size: int, n_columns: int) -> KernelRows:
        """Room for so many pieces."""
        return cls(np.empty((size, n_columns)), np.empty(size), np.empty(size), np.empty(size))

    def first(self, size: int) -> KernelRows:
        """Only so many."""
        return KernelRows(self.rows[:size], self.norms[:size], self.kinks[:size], self.outcomes[:size])


# Numbers of an ascent: the best bound, that at the present c, the barrier function there, and its weight.
BEST = 0
VALUE = 1
OBJECTIVE = 2
BARRIER = 3
# Counts: evaluations in the last call, steps, gains in a row that were small, pairs of L-BFGS, points seen.
EVALUATIONS = 0
STEPS = 1
SMALL_GAINS = 2
PAIRS = 3
SEEN = 4
# Pairs that L-BFGS remembers, and points that are kept until they are offered.
MAX_PAIRS = 10
MAX_SEEN = 8


class AscentState(NamedTuple):
    """Where an ascent in c stands, changed in place.

    Attributes
    ----------
    c, gradient : the present c, and the gradient of the barrier function
    b, state : where the relaxation is least for it, and the kernel's states of the samples there
    centre, factor : of the ellipsoid of its bound, (b - centre)'K(b - centre) <= cutoff - bound
    best_c, best_b : those of the best bound
    steps, changes, inverses : pairs of L-BFGS, the oldest first, and the inverses of their products
    seen : points that may be better solutions
    numbers, counts : see the constants above
    """

    c: Vector
    gradient: Vector
    b: Vector
    state: Kinds
    centre: Vector
    factor: Matrix
    best_c: Vector
    best_b: Vector
    steps: Matrix
    changes: Matrix
    inverses: Vector
    seen: Matrix
    numbers: Vector
    counts: Integers

    @classmethod
    def at(cls, c: Vector, b: Vector, barrier: float) -> AscentState:
        """Before the first evaluation."""
        n, q = c.size, b.size
        steps, changes = np.empty((2, MAX_PAIRS, n))
        return cls(
            c.copy(),
            np.zeros(n),
            b.copy(),
            np.zeros(n, np.int8),
            b.copy(),
            np.zeros((q, q)),
            c.copy(),
            b.copy(),
            steps,
            changes,
            np.empty(MAX_PAIRS),
            np.empty((MAX_SEEN, q)),
            np.array([-np.inf, -np.inf, -np.inf, barrier]),
            np.zeros(5, np.int64),
        )


class AscentWork(NamedTuple):
    """Room for one evaluation of an ascent: envelopes, matrices, and what belongs to a c that is tried.

    free is 1 for samples whose c is not held at a limit, otherwise 0; shares are those of L-BFGS.
    """

    envelopes: Matrix
    columns: Vector
    W: Matrix
    C: Matrix
    K: Matrix
    L: Matrix
    slope: Vector
    g: Vector
    b: Vector
    weights: Vector
    c: Vector
    gradient: Vector
    direction: Vector
    free: Vector
    shares: Vector

    @classmethod
    def empty(cls, n: int, q: int) -> AscentWork:
        """For so many samples and coefficients."""
        C, K, L = np.empty((3, q, q))
        slope, g, b = np.empty((3, q))
        c, gradient, direction, free = np.empty((4, n))
        return cls(
            np.empty((n, 8)),
            np.empty(2 * n * q),
            np.empty((q, n)),
            C,
            K,
            L,
            slope,
            g,
            b,
            np.empty(2 * n),
            c,
            gradient,
            direction,
            free,
            np.empty(MAX_PAIRS),
        )


class Cell(NamedTuple):
    """The cone of all b with sign * b_axis = s >= 0 and low_k s <= b_k <= high_k s."""

    axis: int
    sign: float
    low: Vector
    high: Vector


class Cells(NamedTuple):
    """Cells, one per line of each array.

    kinds are packed, two bits a sample; corners are the signs of those that the relaxation used, and weights
    theirs; no better ray minimum has a scale above `limit`; split is the coordinate to split next, -1 if the
    cell is too narrow.
    """

    low: Matrix
    high: Matrix
    limit: Vector
    kinds: Annotated[npt.NDArray[np.uint8], 2]
    corners: Annotated[npt.NDArray[np.int32], 2]
    weights: Annotated[npt.NDArray[np.float32], 2]
    n_corners: Small
    axis: Small
    sign: Small
    split: Small
    state: Small
    bound: Vector

    @classmethod
    def empty(cls, size: int, n_samples: int, n_columns: int) -> Cells:
        """Room for so many cells."""
        n_corners, axis, sign, split, state = (np.empty(size, np.int16) for _ in range(5))
        return cls(
            np.empty((size, n_columns)),
            np.empty((size, n_columns)),
            np.empty(size),
            np.empty((size, (n_samples + 3) // 4), np.uint8),
            np.empty((size, KEPT_CORNERS), np.int32),
            np.empty((size, KEPT_CORNERS), np.float32),
            n_corners,
            axis,
            sign,
            split,
            state,
            np.empty(size),
        )

    def grown(self, size: int) -> Cells:
        """The same cells in longer arrays."""
        old: tuple[npt.NDArray[Any], ...] = tuple(self)
        grown = [np.empty((size, *array.shape[1:]), array.dtype) for array in old]
        for array, longer in zip(old, grown, strict=True):
            longer[: len(array)] = array
        return Cells(*grown)


class FaceBounds(NamedTuple):
    """Sets of samples, one per line, and a lower bound of the loss where all samples of the set are off.

    Every sample of a set that is on lowers its bound by y^2 at most, or by nothing if y <= 0.
    """

    outside: Annotated[npt.NDArray[np.bool_], 2]
    bound: Vector

    @classmethod
    def none(cls, n_samples: int) -> FaceBounds:
        """No set yet."""
        return cls(np.zeros((0, n_samples), np.bool_), np.zeros(0))

    def plus(self, outside: Mask, bound: float) -> FaceBounds:
        """One set more, or a better bound of one."""
        same = (self.outside == outside).all(axis=1)
        if same.any():
            return FaceBounds(self.outside, np.where(same, np.maximum(self.bound, bound), self.bound))
        return FaceBounds(np.vstack([self.outside, outside]), np.append(self.bound, bound))

    def followed_by(self, n_rows: int) -> FaceBounds:
        """The same for samples with rows behind them that cost nothing."""
        if n_rows == 0:
            return self
        more = np.ones((len(self.outside), n_rows), np.bool_)
        return FaceBounds(np.hstack([self.outside, more]), self.bound)


# Means of u below 0, in units of its spread, for which hinges are tabulated: so many per unit, up to this.
HINGES_PER_UNIT = 16
MAX_HINGE_MEAN = 8


@cache
def normal_hinges() -> Vector:
    """Where the best hinge begins below 0 for all large scales, if u has a normal distribution over a cell.

    In units of its spread, for means -a of u: the h with the largest -E max(u, -h) / h (see cells.py).
    """
    a = np.arange(MAX_HINGE_MEAN * HINGES_PER_UNIT + 1)[:, None] / HINGES_PER_UNIT
    begin = np.geomspace(0.02, 10.0, 80)
    x = begin - a
    mean_above = np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) + x * ndtr(x) - begin
    best = np.argmax(-mean_above / begin, axis=1)
    return np.where(mean_above[np.arange(a.size), best] < 0.0, begin[best], 0.0)


class Layout(NamedTuple):
    """Which coordinates of a cell are enumerated, and the prices of their corners.

    first and second are tables for either half of the coordinates, by blocks of samples.
    """

    listed: Mask
    order: Integers
    n_listed: Integers
    n_first: Integers
    rest_bits: Integers
    has_rest: bool
    prices: Vector
    first: Matrix
    second: Matrix
    product: Vector
    lowest: Vector
    hinges: Vector

    @classmethod
    def of(cls, n_columns: int) -> Layout:
        """For so many coefficients."""
        size = min(n_columns - 1, MAX_LISTED)
        half = (size + 1) // 2
        n_listed, n_first, rest_bits = (np.array([number]) for number in (size, half, 0))
        first, second = np.empty((2, 1 << half, BLOCK))
        return cls(
            np.zeros(n_columns, np.bool_),
            np.zeros(n_columns, np.int64),
            n_listed,
            n_first,
            rest_bits,
            size < n_columns - 1,
            np.empty(1 << size),
            first,
            second,
            np.empty(BLOCK),
            np.empty(BLOCK),
            normal_hinges(),
        )


class FreeWork(NamedTuple):
    """Room for the FREE samples of a cell: columns, outcomes, m and its slopes, and a step of m.

    centre and radius of u / s, and lines that are chosen, are of all samples. rest is what coordinates that
    are not enumerated add to |u| / s; below says where m < y.
    """

    centre: Vector
    radius: Vector
    chosen: Integers
    Z: Matrix
    y: Vector
    rest: Vector
    m: Vector
    mu: Vector
    step: Vector
    below: Mask
    floor: Vector
    cap: Vector
    none: Kinds

    @classmethod
    def empty(cls, n_samples: int, n_columns: int) -> FreeWork:
        """For so many samples and coefficients."""
        centre, radius, y, rest, m, mu, step, floor, cap = np.empty((9, n_samples))
        chosen, below = np.empty(n_samples, np.int64), np.empty(n_samples, np.bool_)
        Z, none = np.empty((n_columns, n_samples)), np.zeros(n_samples, np.int8)
        return cls(centre, radius, chosen, Z, y, rest, m, mu, step, below, floor, cap, none)


class PieceWork(NamedTuple):
    """Room for the pieces in u of a cell: columns, u, its step and slopes, and the state of each.

    There is one per sample and constraint, and one for each end of the scale.
    """

    Z: Matrix
    u: Vector
    du: Vector
    nu: Vector
    kinks: Vector
    outcomes: Vector
    state: Kinds

    @classmethod
    def empty(cls, n_rows: int, n_columns: int) -> PieceWork:
        """For so many samples and constraints."""
        size = n_rows + 2
        u, du, nu, kinks, outcomes = np.empty((5, size))
        return cls(np.empty((n_columns, size)), u, du, nu, kinks, outcomes, np.empty(size, np.int8))


class CornerWork(NamedTuple):
    """Room for the corners at work in a cell: V, max(0, u) there, and the weights theta.

    bits are their signs. VG, P and M make up Newton's matrix of the weights that are moving.
    """

    V: Matrix
    H: Matrix
    VG: Matrix
    P: Matrix
    M: Matrix
    theta: Vector
    change: Vector
    prices: Vector
    moving: Integers
    bits: Integers
    kept_theta: Vector
    kept_bits: Integers

    @classmethod
    def empty(cls, n_samples: int, n_columns: int) -> CornerWork:
        """For so many samples and coefficients."""
        V, VG = np.empty((2, MAX_CORNERS, n_columns))
        P, M = np.empty((2, MAX_CORNERS, MAX_CORNERS))
        theta, change, prices, kept = np.empty((4, MAX_CORNERS))
        moving, bits, kept_bits = np.empty((3, MAX_CORNERS), np.int64)
        H = np.empty((MAX_CORNERS, n_samples))
        return cls(V, H, VG, P, M, theta, change, prices, moving, bits, kept, kept_bits)


class SmallWork(NamedTuple):
    """Room for matrices and vectors of the coefficients, for one cell.

    Attributes
    ----------
    K, linear : sum of z z' and of y z over the samples ON, with the ridge
    G, L, M : K with curved pieces, the factor of K, and a multiple of its inverse
    b, slope, at, rho : a point and a slope there, and those of the best bound
    weights : how much each coordinate matters
    step, direction : a step of b, and what else is moved
    shortest : a direction with a small |(Zd)_+|, for the log
    """

    K: Matrix
    G: Matrix
    L: Matrix
    M: Matrix
    linear: Vector
    b: Vector
    slope: Vector
    at: Vector
    rho: Vector
    weights: Vector
    step: Vector
    direction: Vector
    shortest: Vector

    @classmethod
    def empty(cls, n_columns: int) -> SmallWork:
        """For so many coefficients."""
        return cls(*np.zeros((4, n_columns, n_columns)), *np.zeros((9, n_columns)))


class CellWork(NamedTuple):
    """What belongs to the relaxation of one cell, but for small matrices."""

    layout: Layout
    free: FreeWork
    pieces: PieceWork
    corners: CornerWork


CellRoom = tuple[Layout, FreeWork, PieceWork, CornerWork, SmallWork, SmallWork]


def make_room(n_samples: int, n_columns: int, n_limits: int = 0) -> CellRoom:
    """Room for the relaxation of one cell, and for that of all larger scales; one per thread."""
    n, q = n_samples, n_columns
    return (
        Layout.of(q),
        FreeWork.empty(n, q),
        PieceWork.empty(n + n_limits, q),
        CornerWork.empty(n, q),
        SmallWork.empty(q),
        SmallWork.empty(q),
    )


class CellLog(NamedTuple):
    """What a proof file needs of each part of a cell: numbers, one after another, and how many.

    best, drawn: the same for the best bound, and for that of the ellipsoid, before it is known whether they
    are needed. Without lines nothing is written.
    """

    numbers: Matrix
    counts: Integers
    best: Vector
    drawn: Vector

    @classmethod
    def empty(cls, size: int, n_samples: int, n_columns: int) -> CellLog:
        """For both parts of so many cells. No sample is settled twice."""
        width = LOG_STEPS * (LOG_NUMBERS + 2 * n_columns) + n_samples
        counts = np.zeros(2 * size, np.int64)
        return cls(np.zeros((2 * size, width)), counts, np.zeros(LOG_NUMBERS), np.zeros(LOG_NUMBERS))

    def part(self, cells: slice) -> CellLog:
        """The lines of some of the cells."""
        lines = slice(2 * cells.start, 2 * cells.stop)
        numbers, counts, best, drawn = self
        return CellLog(numbers[lines], counts[lines], best.copy(), drawn.copy())


class Found(NamedTuple):
    """Of each part of a cell its minimiser, the loss there, and Newton steps and pricings."""

    points: Matrix
    losses: Vector
    counts: Annotated[npt.NDArray[np.int64], 2]

    @classmethod
    def empty(cls, size: int, n_columns: int) -> Found:
        """For both parts of so many cells."""
        counts = np.zeros((2 * size, 2), np.int64)
        return cls(np.zeros((2 * size, n_columns)), np.full(2 * size, np.inf), counts)

    def part(self, cells: slice) -> Found:
        """The lines of some of the cells."""
        lines = slice(2 * cells.start, 2 * cells.stop)
        return Found(self.points[lines], self.losses[lines], self.counts[lines])


class ScaleRows(NamedTuple):
    """Rows in a chart: u_i = offset_i + x_i'a for directions d with t'd = 1, those with y > 0 first.

    mass is y^2 of the latter, in falling order. The last rows are cuts, u <= 0 in all better solutions.
    """

    offset: Vector
    X: Matrix
    Xt: Matrix
    mass: Vector
    n_cuts: Integers


class ScaleNodes(NamedTuple):
    """A stack of nodes: samples with y > 0 that are on, off, and off by a choice, as bits; and a point.

    mass is that of the samples which are not off, in each of the demanded sets.
    """

    on: BitSets
    off: BitSets
    chosen_off: BitSets
    mass: Matrix
    points: Matrix
    height: Integers

    @classmethod
    def empty(cls, depth: int, size: int, n_words: int, n_sets: int) -> ScaleNodes:
        """Room for so many nodes."""
        on, off, chosen_off = np.zeros((3, depth, n_words), np.int64)
        mass, points = np.zeros((depth, n_sets)), np.zeros((depth, size))
        return cls(on, off, chosen_off, mass, points, np.zeros(1, np.int64))


class ScalePoints(NamedTuple):
    """Points met on the way, the oldest replaced first: bits of samples with u >= -tol and with u > tol.

    mass is that of the former, set_mass that of the latter in each of the demanded sets; is_inside says which
    points lie in the node that is searched.
    """

    points: Matrix
    weakly_on: BitSets
    on: BitSets
    mass: Vector
    set_mass: Matrix
    is_inside: Mask
    n_met: Integers

    @classmethod
    def empty(cls, n: int, size: int, n_words: int, n_sets: int) -> ScalePoints:
        """Room for n points."""
        weakly_on, on = np.zeros((2, n, n_words), np.int64)
        return cls(
            np.zeros((n, size)),
            weakly_on,
            on,
            np.zeros(n),
            np.zeros((n, n_sets)),
            np.zeros(n, np.bool_),
            np.zeros(1, np.int64),
        )


class ScaleWork(NamedTuple):
    """Room for one feasibility problem: the rows it uses, gathered, and their penalties on either side of 0.

    extent: the most that a row's u can be where |a| <= 1; place: where a row is gathered, or -1; can: samples
    that can be on in a node, and possible their mass in each of the demanded sets; last_step: when a row had
    a weight the last time; counts: samples looked at, and steps.
    """

    used: Integers
    place: Integers
    n_used: Integers
    offset: Vector
    X: Matrix
    Xt: Matrix
    extent: Vector
    above: Vector
    below: Vector
    u: Vector
    du: Vector
    u_all: Vector
    H: Matrix
    g: Vector
    a: Vector
    can: Integers
    possible: Vector
    left: Integers
    last_step: Integers
    counts: Integers

    @classmethod
    def empty(cls, n: int, size: int, n_words: int, n_sets: int = 1) -> ScaleWork:
        """Room for n rows of this size."""
        return cls(
            used=np.zeros(n, np.int64),
            place=np.full(n, -1),
            n_used=np.zeros(1, np.int64),
            offset=np.zeros(n),
            X=np.zeros((n, size)),
            Xt=np.zeros((size, n)),
            extent=np.zeros(n),
            above=np.zeros(n),
            below=np.zeros(n),
            u=np.zeros(n),
            du=np.zeros(n),
            u_all=np.zeros(n),
            H=np.zeros((size, size)),
            g=np.zeros(size),
            a=np.zeros(size),
            can=np.zeros(n_words, np.int64),
            possible=np.zeros(n_sets),
            left=np.zeros(n_words, np.int64),
            last_step=np.zeros(n, np.int64),
            counts=np.zeros(2, np.int64),
        )


def pack_kinds(kind: Kinds) -> npt.NDArray[np.uint8]:
    """Two bits a sample, as in `Cells`."""
    padded = np.zeros((kind.size + 3) // 4 * 4, np.uint8)
    padded[: kind.size] = kind
    packed = np.bitwise_or.reduce(padded.reshape(-1, 4) << np.array([0, 2, 4, 6], np.uint8), axis=1)
    return np.asarray(packed, np.uint8)


def unpack_kinds(packed: npt.NDArray[np.uint8], n_samples: int) -> Kinds:
    """Kinds of samples, one line of them for each line of packed ones."""
    kinds = packed[..., None] >> np.array([0, 2, 4, 6], np.uint8) & 3
    return kinds.reshape(*packed.shape[:-1], -1)[..., :n_samples].astype(np.int8)
