"""Records that go into the compiled code of the certificate and come out of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix, Vector

__all__ = [
    "CONVEX",
    "FAR_FREE",
    "FAR_ON",
    "FREE",
    "OFF",
    "ON",
    "SLAB",
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
# A row without a loss, whose u = z'b is known to lie in an interval: a slab of coefficients.
SLAB = 4
# As FREE and ON, but for the least loss of a sample over all larger scales, t >= 1, of u.
FAR_FREE = 5
FAR_ON = 6

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
