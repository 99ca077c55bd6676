"""The pass of the near/far engine: many surrogates, each at its own point, in one reading of the data.

A probe asks for one surrogate F_I at one point gamma. Kinked rows within `width` of their kink are near, all
others far. A pass returns per probe

* the values of F_I and of the true objective L (without ridge), and a fingerprint of the active set at the
  point: the sum, modulo 2^64, of a random number per active row;
* the moments of the rows on their quadratic: around the point the far ones are one quadratic;
* the near rows themselves, unless they are too many, and what they are with their kinks smoothed.

A block is read once, for the pre-activations at all points. All that follows is about few of its rows:
moments are mended by the rows that have changed sides (`rectifit.surrogate.sides`), or differ from the next
probe's, so that all splits of the sorting method together cost little more than one X'X.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix, Vector
from rectifit.active import ActiveSet, Sign
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block, ChosenRows
from rectifit.data.sampling import hash_rows
from rectifit.surrogate.band import Near, find_bands, join_near
from rectifit.surrogate.piece_rows import PieceRows, read_piece
from rectifit.surrogate.sides import BlockSides, Sides, sum_right

__all__ = ["PassResult", "Probe", "SweepTask"]


class Probe(NamedTuple):
    """A surrogate, a point, and the distance from their kinks up to which rows are near; below 0: none is.

    Near rows are brought back unless there are more than `cap`. With `zero`, up to which u counts as 0, the
    active set at the point gets a fingerprint, and so does the surrogate's. What a former look has
    left may be the `base` of this one, which leaves its own in `sides`; both only where the blocks stay in
    this process.
    """

    gamma: Vector
    active: ActiveSet
    width: float
    cap: int = 0
    zero: float | None = None
    base: Sides | None = None
    sides: Sides | None = None


@dataclass(frozen=True)
class PassResult:
    """Sums over rows, one line per probe.

    Attributes
    ----------
    values, objectives : F_I and L
    fingerprints : of the surrogates' active sets, and of those at the points
    moments, near_moments : [Z, v]'[Z, v] over the rows on their quadratic, and over the near ones of these
    band_slopes, band_grams, band_gaps : of the near rows, smoothed (see `rectifit.surrogate.band`)
    n_near, near : their number, and the rows, or None where there are too many
    n_skipped : how many of them others stand for in the sums
    """

    values: Vector
    objectives: Vector
    fingerprints: npt.NDArray[np.int64]
    moments: npt.NDArray[np.float64]
    near_moments: npt.NDArray[np.float64]
    band_slopes: Matrix
    band_grams: npt.NDArray[np.float64]
    band_gaps: Vector
    n_near: Vector
    near: tuple[tuple[Near, ...] | None, ...]
    n_skipped: Vector
    caps: tuple[int, ...]

    def merge(self, other: PassResult) -> PassResult:
        """Sums, and the near rows of both."""
        total: dict[str, Any] = {"caps": self.caps}
        for field in fields(self):
            if field.name not in ("near", "caps"):
                total[field.name] = getattr(self, field.name) + getattr(other, field.name)
        total["near"] = tuple(
            None if a is None or b is None or n > cap else a + b
            for a, b, n, cap in zip(self.near, other.near, total["n_near"], self.caps, strict=True)
        )
        return PassResult(**total)

    def __getstate__(self) -> dict[str, Any]:
        # Few large arrays travel faster than many small ones.
        near = tuple(parts and (join_near(parts),) for parts in self.near)
        return self.__dict__ | {"near": near}

    def far(self) -> npt.NDArray[np.float64]:
        """Moments of the far rows."""
        return self.moments - self.near_moments

    def near_rows(self, line: int, n_directions: int) -> Near | None:
        """The near rows of a probe in one piece."""
        parts = self.near[line]
        if parts is None:
            return None
        if not parts:
            return Near(np.empty((0, n_directions)), np.empty(0), np.empty(0))
        return join_near(parts)


@dataclass(frozen=True)
class SweepTask:
    """The task of the pass."""

    coordinates: Coordinates
    probes: tuple[Probe, ...]

    def __call__(self, block: Block) -> PassResult:
        """Look at all rows of a block, then sum up those that matter."""
        probes, space = self.probes, block.workspace()
        bases = [None if probe.base is None else probe.base.blocks.get(block.start) for probe in probes]
        look = _Look(block, self.coordinates, probes, bases)
        for piece in block.pieces(len(look.points) + 2 * len(probes)):
            look.add(piece, *read_piece(self.coordinates, piece, space))
        sides = sum_right(self.coordinates, block, look.active, look.right, bases, space)
        for probe, found in zip(probes, sides, strict=True):
            if probe.sides is not None:
                probe.sides.blocks[block.start] = found
        limits = [(probe.width, probe.cap) for probe in probes]
        bands = find_bands(self.coordinates, block, limits, *look.near_rows(), space)
        return PassResult(
            values=block.to_numpy(look.values),
            objectives=block.to_numpy(look.objectives),
            fingerprints=block.to_numpy(look.fingerprints),
            moments=np.array(block.to_numpy(block.xp.stack([found.moments for found in sides]))),
            near_moments=bands.moments,
            band_slopes=bands.slopes,
            band_grams=bands.grams,
            band_gaps=bands.gaps,
            n_near=bands.n_near,
            near=bands.near,
            n_skipped=bands.n_skipped,
            caps=tuple(probe.cap for probe in probes),
        )


class _Look:
    """What is seen of every row of a block: values, and on which side of its kink it is, and how near.

    Attributes
    ----------
    points : the points of the probes, and those that decide which rows are active where that is not known
    active, right : masks, one line per probe
    values, objectives, fingerprints : as in `PassResult`
    """

    def __init__(
        self,
        block: Block,
        coordinates: Coordinates,
        probes: tuple[Probe, ...],
        bases: list[BlockSides | None],
    ) -> None:
        k = len(probes)
        self._block, self._coordinates, self._probes = block, coordinates, probes
        self._known = [
            base.active
            if base is not None and probe.base is not None and probe.base.is_of(probe.active)
            else None
            for probe, base in zip(probes, bases, strict=True)
        ]
        deciding = [
            probe.active.gamma
            for probe, known in zip(probes, self._known, strict=True)
            if known is None and isinstance(probe.active, Sign)
        ]
        self.points = np.array([probe.gamma for probe in probes] + deciding)
        self._widths = block.to_float64(np.array([[probe.width] for probe in probes]))
        self.active = block.empty((k, block.n_rows), "bool")
        self.right = block.empty((k, block.n_rows), "bool")
        self.values, self.objectives = (block.to_float64(np.zeros(k)) for _ in range(2))
        self.fingerprints = block.xp.zeros_like(block.empty((k, 2), "int64"))
        zeros = [np.inf if probe.zero is None else probe.zero for probe in probes]
        self._zeros = block.to_float64(np.array(zeros)[:, None])
        self._has_fingerprints = bool(np.isfinite(zeros).any())
        self._near: list[list[tuple[Any, Any]]] = [[] for _ in probes]

    def add(self, piece: Block, rows: PieceRows, v: Any) -> None:
        """Look at a piece of the block."""
        space, xp, k = rows.space, piece.xp, len(self._probes)
        first = piece.start - self._block.start
        place = slice(first, first + piece.n_rows)
        V = rows.times(self.points)
        U, shape = V[:k], (k, v.shape[0])
        active, right = self.active[:, place], self.right[:, place]
        self._mark_active(piece, v, V[k:], active, place)
        kink = xp.multiply(v, v > 0.0, out=space("kink", shape[1:]))
        kink *= 2.0
        right[...] = xp.greater(U, kink, out=space("right", shape, "bool"))
        right |= active
        R = xp.subtract(U, kink, out=space("residual", shape))
        near = xp.less_equal(xp.abs(R, out=R), self._widths, out=space("near", shape, "bool"))
        near &= xp.logical_not(active, out=space("inactive", shape, "bool"))
        self._add_near(piece, near, U, first)
        self.values += self._squares(piece, U, right, v, R)
        self.objectives += self._squares(piece, U, xp.greater(U, 0.0, out=near), v, R)
        self._add_fingerprints(piece, active, v, U)

    def near_rows(self) -> tuple[ChosenRows, Any]:
        """The near rows of all probes, and their pre-activations."""
        xp, block = self._block.xp, self._block
        parts = [part for line in self._near for part in line] or [
            (block.line_numbers(np.zeros(0, int)), self._widths[:0, 0])
        ]
        counts = np.array([sum(int(u.shape[0]) for _, u in line) for line in self._near])
        index, u = map(xp.concat, zip(*parts, strict=True))
        return ChosenRows(index, counts), u

    def _mark_active(self, piece: Block, v: Any, at_points: Any, active: Any, place: slice) -> None:
        """Active rows of a piece; `at_points` is u at the points that decide."""
        points = iter(at_points)
        for line, (probe, known) in enumerate(zip(self._probes, self._known, strict=True)):
            if known is not None:
                active[line] = known[place]
            else:
                u = next(points) if isinstance(probe.active, Sign) else None
                active[line] = probe.active.mark(piece, v, self._coordinates.scale, u)

    def _add_near(self, piece: Block, near: Any, U: Any, first: int) -> None:
        """Keep the numbers and the pre-activations of the near rows."""
        xp = piece.xp
        counts = piece.to_numpy(xp.sum(near, axis=1))
        if not counts.any():
            return
        index, u, ends = xp.nonzero(near)[1] + first, U[near], np.cumsum(counts).tolist()
        for line, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if begin < end:
                self._near[line].append((index[begin:end], u[begin:end]))

    def _add_fingerprints(self, piece: Block, active: Any, v: Any, U: Any) -> None:
        if not self._has_fingerprints:
            return
        numbers = hash_rows(piece.row_numbers())
        at_point = (self._zeros < U) & (v > 0.0)
        # Sums of arrays wrap around without a warning; products are faster than choosing the rows.
        for column, on in enumerate((active, at_point)):
            self.fingerprints[:, column] += piece.xp.sum(on * numbers, axis=1)

    @staticmethod
    def _squares(piece: Block, U: Any, on: Any, v: Any, out: Any) -> Any:
        """Sums of (u on - v)^2, line by line."""
        R = piece.xp.multiply(U, on, out=out)
        R -= v
        return piece.squares(R)
