"""Records that go into the compiled code of the certificate and come out of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix, Vector

__all__ = [
    "CONVEX",
    "FREE",
    "OFF",
    "ON",
    "ConeBounds",
    "ConeHalves",
    "ConeShape",
    "KernelRows",
    "Kinds",
    "Region",
    "Samples",
]

# What is known of a sample in all better solutions: nothing, with y <= 0 or y > 0, or that u >= 0 or u <= 0.
CONVEX = 0
FREE = 1
ON = 2
OFF = 3

Kinds = npt.NDArray[np.int8]


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


class Region(NamedTuple):
    """What is known of all better solutions: kinds of samples and bounds of their u. Changed in place."""

    kind: Kinds
    l: Vector  # noqa: E741
    U: Vector

    def copy(self) -> Region:
        """The same in arrays of its own."""
        return Region(self.kind.copy(), self.l.copy(), self.U.copy())


class KernelRows(NamedTuple):
    """Pieces that are 0 left of their kink and (u - outcome)^2 - (kink - outcome)^2 right of it.

    norms are the lengths of the rows. A piece without a kink (-infinity) is (u - outcome)^2.
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


class ConeShape(NamedTuple):
    """The cone of all b with sign * b_axis = s >= 0 and low_k s <= b_k <= high_k s."""

    axis: int
    sign: float
    low: Vector
    high: Vector


class ConeHalves(NamedTuple):
    """Two copies of a cone, one per line, that become its halves: edges, kinds of samples, and a point.

    The halves meet in the middle of the interval of `coordinate`.
    """

    axis: int
    sign: float
    coordinate: int
    low: Matrix
    high: Matrix
    kind: Kinds
    b: Matrix

    @classmethod
    def of(
        cls, axis: int, sign: float, coordinate: int, low: Vector, high: Vector, kind: Kinds, b: Vector
    ) -> ConeHalves:
        """Two copies of this cone."""
        return cls(
            axis,
            sign,
            coordinate,
            np.stack([low, low]),
            np.stack([high, high]),
            np.stack([kind, kind]),
            np.stack([b, b]),
        )

    def half(self, e: int) -> tuple[Vector, Vector, Kinds, Vector]:
        """Edges, kinds and point of one half."""
        return self.low[e], self.high[e], self.kind[e], self.b[e]


class ConeBounds(NamedTuple):
    """Of each half its bound, what became of it, and the coordinate to split next, -1 if it is too narrow."""

    bounds: Vector
    states: npt.NDArray[np.int64]
    splits: npt.NDArray[np.int64]


class Cell(NamedTuple):
    """The cone of all b with sign * b_axis = s >= 0 and low_k s <= b_k <= high_k s."""

    axis: int
    sign: float
    low: Vector
    high: Vector


class Cells(NamedTuple):
    """Open cells, one per line of each array; free lines are kept by the search.

    kinds are packed, two bits a sample; corners are the signs of those that the relaxation used, and weights
    theirs; split is the coordinate to split next, -1 if the cell is too narrow.
    """

    low: Matrix
    high: Matrix
    kinds: npt.NDArray[np.uint8]
    corners: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]
    n_corners: npt.NDArray[np.int64]
    axis: npt.NDArray[np.int64]
    sign: npt.NDArray[np.int8]
    split: npt.NDArray[np.int64]
    state: npt.NDArray[np.int8]
    bound: Vector


class Layout(NamedTuple):
    """Which coordinates of a cell are enumerated."""

    listed: npt.NDArray[np.bool_]
    order: npt.NDArray[np.int64]
    n_listed: npt.NDArray[np.int64]
    n_first: npt.NDArray[np.int64]
    rest_bits: npt.NDArray[np.int64]
    has_rest: bool


class CellWork(NamedTuple):
    """Room for the relaxation of one cell; one per thread."""

    centre: Vector
    radius: Vector
    index: npt.NDArray[np.int64]
    ZF: Matrix
    yF: Vector
    rest: Vector
    m: Vector
    mu: Vector
    step: Vector
    below: npt.NDArray[np.bool_]
    ZU: Matrix
    u: Vector
    du: Vector
    nu: Vector
    kinks: Vector
    outcomes: Vector
    state: npt.NDArray[np.int8]
    V: Matrix
    H: Matrix
    VG: Matrix
    P: Matrix
    M: Matrix
    theta: Vector
    change: Vector
    own_prices: Vector
    free: npt.NDArray[np.int64]
    corners: npt.NDArray[np.int64]
    prices: Vector
    first: Matrix
    second: Matrix
    product: Vector


class Found(NamedTuple):
    """Of each part its minimiser, the loss there, the next coordinate; counts of cells, steps, pricings."""

    points: Matrix
    losses: Vector
    split: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


class ScaleRows(NamedTuple):
    """Rows in a chart: u_i = offset_i + x_i'a for directions d with t'd = 1, those with y > 0 first.

    mass is y^2 of the latter, in falling order. The last rows are cuts, u <= 0 in all better solutions.
    """

    offset: Vector
    X: Matrix
    Xt: Matrix
    mass: Vector
    n_cuts: npt.NDArray[np.int64]


class ScaleNodes(NamedTuple):
    """A stack of nodes: samples with y > 0 that are on, off, and off by a choice, as bits; and a point."""

    on: npt.NDArray[np.int64]
    off: npt.NDArray[np.int64]
    chosen_off: npt.NDArray[np.int64]
    points: Matrix
    height: npt.NDArray[np.int64]

    @classmethod
    def empty(cls, depth: int, size: int, n_words: int) -> ScaleNodes:
        """Room for so many nodes."""
        on, off, chosen_off = np.zeros((3, depth, n_words), np.int64)
        return cls(on, off, chosen_off, np.zeros((depth, size)), np.zeros(1, np.int64))


class ScalePoints(NamedTuple):
    """Points met on the way, the oldest replaced first: bits of samples with u >= -tol and with u > tol.

    mass is that of the former; is_inside says which points lie in the node that is searched.
    """

    points: Matrix
    weakly_on: npt.NDArray[np.int64]
    on: npt.NDArray[np.int64]
    mass: Vector
    is_inside: npt.NDArray[np.bool_]
    n_met: npt.NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, size: int, n_words: int) -> ScalePoints:
        """Room for n points."""
        weakly_on, on = np.zeros((2, n, n_words), np.int64)
        return cls(
            np.zeros((n, size)), weakly_on, on, np.zeros(n), np.zeros(n, np.bool_), np.zeros(1, np.int64)
        )


class ScaleWork(NamedTuple):
    """Room for one feasibility problem: the rows it uses, gathered, and their penalties on either side of 0.

    place: where a row is gathered, or -1; last_step: when it had a weight the last time; counts: samples
    looked at, and steps.
    """

    used: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    n_used: npt.NDArray[np.int64]
    offset: Vector
    X: Matrix
    Xt: Matrix
    above: Vector
    below: Vector
    u: Vector
    du: Vector
    u_all: Vector
    H: Matrix
    g: Vector
    a: Vector
    can: npt.NDArray[np.int64]
    last_step: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, size: int, n_words: int) -> ScaleWork:
        """Room for n rows of this size."""
        return cls(
            used=np.zeros(n, np.int64),
            place=np.full(n, -1),
            n_used=np.zeros(1, np.int64),
            offset=np.zeros(n),
            X=np.zeros((n, size)),
            Xt=np.zeros((size, n)),
            above=np.zeros(n),
            below=np.zeros(n),
            u=np.zeros(n),
            du=np.zeros(n),
            u_all=np.zeros(n),
            H=np.zeros((size, size)),
            g=np.zeros(size),
            a=np.zeros(size),
            can=np.zeros(n_words, np.int64),
            last_step=np.zeros(n, np.int64),
            counts=np.zeros(2, np.int64),
        )
