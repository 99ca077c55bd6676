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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix, Vector
from rectifit.active import ActiveSet, Sign
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block, ChosenRows, line_slices, merge_all
from rectifit.data.workspace import Workspace
from rectifit.surrogate.band import Near, NearSums, find_bands, join_near, sum_near
from rectifit.surrogate.look import Limits, Look, Masks, Seen, look
from rectifit.surrogate.piece_rows import read_piece
from rectifit.surrogate.sides import BlockSides, Sides, sum_right

__all__ = ["GlanceTask", "PassResult", "Probe", "SweepTask"]


class Probe(NamedTuple):
    """A surrogate, a point, and the distance from their kinks up to which rows are near; below 0: none is.

    Near rows are brought back unless there are more than `cap`; if `is_rough`, a part of very many stands for
    all. With `zero`, up to which u counts as 0, the active set at the point gets a fingerprint, and so does
    the surrogate's. What a former look has left may be the `base` of this one, which leaves its own in
    `sides`; both only where the blocks stay in this process.
    """

    gamma: Vector
    active: ActiveSet
    width: float
    cap: int = 0
    zero: float | None = None
    is_rough: bool = False
    base: Sides | None = None
    sides: Sides | None = None


@dataclass(frozen=True)
class PassResult:
    """Sums over rows, one line per probe.

    Attributes
    ----------
    values, objectives : F_I and L
    fingerprints : of the surrogates' active sets, and of those at the points
    moments : [Z, v]'[Z, v] over the rows on their quadratic
    band : sums over the near rows (see `rectifit.surrogate.band`)
    n_near, near : their number, and the rows, or None where there are too many
    n_skipped : how many of them others stand for in the sums
    widths, caps : up to which distance rows are near, and how many may be there
    """

    values: Vector
    objectives: Vector
    fingerprints: npt.NDArray[np.int64]
    moments: npt.NDArray[np.float64]
    band: NearSums
    n_near: Vector
    near: tuple[tuple[Near, ...] | None, ...]
    n_skipped: Vector
    widths: tuple[float, ...]
    caps: tuple[int, ...]

    def merge(self, other: PassResult) -> PassResult:
        """Sums, and the near rows of both."""
        total: dict[str, Any] = {"widths": self.widths, "caps": self.caps, "band": self.band.add(other.band)}
        for field in fields(self):
            if field.name not in ("near", *total):
                total[field.name] = getattr(self, field.name) + getattr(other, field.name)
        near: list[tuple[Near, ...] | None] = []
        for line, both in enumerate(zip(self.near, other.near, strict=True)):
            is_few = None not in both and total["n_near"][line] <= self.caps[line]
            rows = sum((part or () for part in both), ())
            near.append(rows if is_few else None)
            for part in () if is_few else rows:
                # Now that they are too many, their kinks are smoothed; their moments are there.
                for known, new in zip(total["band"][1:], sum_near(part, self.widths[line])[1:], strict=True):
                    known[line] += new[0]
        return PassResult(near=tuple(near), **total)

    def __getstate__(self) -> dict[str, Any]:
        # Few large arrays travel faster than many small ones.
        near = tuple(parts and (join_near(parts),) for parts in self.near)
        return self.__dict__ | {"near": near}

    def far(self) -> npt.NDArray[np.float64]:
        """Moments of the far rows."""
        return self.moments - self.band.moments

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
    """The task of the pass; n_samples are the rows of all blocks."""

    coordinates: Coordinates
    n_samples: int
    probes: tuple[Probe, ...]

    def __call__(self, block: Block) -> PassResult:
        """Look at all rows of a block, then sum up those that matter."""
        probes, space = self.probes, block.workspace()
        bases = [None if probe.base is None else probe.base.blocks.get(block.start) for probe in probes]
        rows = _BlockRows(block, self.coordinates, probes, bases)
        seen = rows.look(space)
        sides = sum_right(self.coordinates, block, rows.masks, bases, seen, space)
        for probe, found in zip(probes, sides, strict=True):
            if probe.sides is not None:
                probe.sides.blocks[block.start] = found
        limits = [(probe.width, probe.cap, probe.is_rough) for probe in probes]
        bands = find_bands(self.coordinates, block, limits, *rows.near_rows(), self.n_samples, space)
        return PassResult(
            values=seen.values,
            objectives=seen.objectives,
            fingerprints=seen.fingerprints,
            moments=np.array([found.moments for found in sides]),
            band=bands.sums,
            n_near=bands.n_near,
            near=bands.near,
            n_skipped=bands.n_skipped,
            widths=tuple(probe.width for probe in probes),
            caps=tuple(probe.cap for probe in probes),
        )


@dataclass(frozen=True)
class GlanceTask:
    """The task of a pass of which only values and fingerprints are wanted."""

    coordinates: Coordinates
    probes: tuple[Probe, ...]

    def __call__(self, block: Block) -> Seen:
        """Look at all rows of a block."""
        rows = _BlockRows(block, self.coordinates, self.probes, [None] * len(self.probes))
        return rows.look(block.workspace())


class _BlockRows:
    """The rows of a block, looked at piece by piece.

    Attributes
    ----------
    masks : of all rows; those near their kinks are kept as numbers
    """

    def __init__(
        self,
        block: Block,
        coordinates: Coordinates,
        probes: tuple[Probe, ...],
        bases: Sequence[BlockSides | None],
    ) -> None:
        shape = len(probes), block.n_rows
        self.masks = Masks(block.empty(shape, "bool"), block.empty(shape, "bool"))
        self._block, self._coordinates, self._probes, self._bases = block, coordinates, probes, bases
        self._limits = Limits(
            np.array([probe.width for probe in probes]),
            np.array([np.inf if probe.zero is None else probe.zero for probe in probes]),
            np.array([getattr(probe.active, "zero", 0.0) / coordinates.scale for probe in probes]),
        )
        # Near rows piece by piece: their numbers, pre-activations, and how many every line has.
        self._near: list[tuple[Any, Any, Any]] = []

    def look(self, space: Workspace) -> Seen:
        """One look at all rows."""
        known = [
            base.active
            if base is not None and probe.base is not None and probe.base.is_of(probe.active)
            else None
            for probe, base in zip(self._probes, self._bases, strict=True)
        ]
        points = [probe.gamma for probe in self._probes]
        points += [
            probe.active.gamma
            for probe, mask in zip(self._probes, known, strict=True)
            if mask is None and isinstance(probe.active, Sign)
        ]
        pieces = self._block.pieces(len(points) + 2 * len(self._probes))
        seen = [self._look_at(piece, known, np.array(points), space) for piece in pieces]
        return merge_all(seen)

    def near_rows(self) -> tuple[ChosenRows, Any]:
        """The near rows of all probes, and their pre-activations."""
        if len(self._near) == 1:
            index, u, counts = self._near[0]
            return ChosenRows(index, counts), u
        lines: list[list[tuple[Any, Any]]] = [[] for _ in self._probes]
        for index, u, counts in self._near:
            for line, rows in zip(lines, line_slices(counts), strict=True):
                line.append((index[rows], u[rows]))
        index, u = map(self._block.xp.concat, zip(*(part for line in lines for part in line), strict=True))
        return ChosenRows(index, np.sum([counts for _, _, counts in self._near], axis=0)), u

    def _look_at(self, piece: Block, known: Sequence[Any], points: Matrix, space: Workspace) -> Seen:
        """Look at a piece."""
        first, scale = piece.start - self._block.start, self._coordinates.scale
        place = slice(first, first + piece.n_rows)
        rows, v = read_piece(self._coordinates, piece, space)
        U = rows.times(points)
        masks = Masks(*(lines[:, place] for lines in self.masks))
        given = [
            mask[place]
            if mask is not None
            else None
            if isinstance(probe.active, Sign)
            else probe.active.mark(piece, v, scale)
            for probe, mask in zip(self._probes, known, strict=True)
        ]
        bases = [None if base is None else base.right[place] for base in self._bases]
        seen, where, u = _find_look(piece)(piece, v, U, given, bases, self._limits, masks, space)
        self._near.append((where % piece.n_rows + first, u, seen.n_near))
        return seen


def _find_look(piece: Block) -> Callable[..., Look]:
    """The function that looks fastest at a piece."""
    # Imported here: both load a compiler.
    if piece.has_triton:
        from rectifit.surrogate import look_triton

        return look_triton.look
    if piece.xp is np:
        from rectifit.surrogate import look_compiled

        return look_compiled.look
    return look
