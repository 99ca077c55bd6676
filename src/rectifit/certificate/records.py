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
