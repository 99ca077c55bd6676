"""The pass of the near/far engine: many surrogates, each at its own point, in one reading of the data.

A probe asks for one surrogate F_I at one point gamma. Kinked rows within `width` of their kink are near, all
others far. A pass returns per probe

* the values of F_I and of the true objective L (without ridge), and a fingerprint of the active set at the
  point: the sum, modulo 2^64, of a random number per active row;
* the moments of the far rows on their quadratic: around the point they are one quadratic;
* the near rows themselves, unless they are too many, and what they are with their kinks smoothed.

Moments of neighbouring probes differ in few rows and are accumulated as differences, so that all splits of
the sorting method together cost little more than one X'X.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix, Vector
from rectifit.active import ActiveSet, Sign
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block
from rectifit.data.sampling import hash_rows
from rectifit.surrogate.band import Band, Near, join_near
from rectifit.surrogate.piece_rows import MomentSums, PieceRows, read_piece

__all__ = ["PassResult", "Probe", "SweepTask"]


class Probe(NamedTuple):
    """A surrogate, a point, and the distance from their kinks up to which rows are near; below 0: none is.

    Near rows are brought back unless there are more than `cap`. With `zero`, up to which u counts as 0, the
    active set at the point gets a fingerprint, and so does the surrogate's.
    """

    gamma: Vector
    active: ActiveSet
    width: float
    cap: int = 0
    zero: float | None = None


@dataclass(frozen=True)
class PassResult:
    """Sums over rows, one line per probe; `moments` are differences from the next probe's.

    Attributes
    ----------
    values, objectives : F_I and L
    fingerprints : of the surrogates' active sets, and of those at the points
    moments : [Z, v]'[Z, v] over the far rows on their quadratic
    band_slopes, band_grams, band_gaps : of the near rows, smoothed (see `rectifit.surrogate.band`)
    n_near, near : their number, and the rows, or None where there are too many
    """

    values: Vector
    objectives: Vector
    fingerprints: npt.NDArray[np.int64]
    moments: npt.NDArray[np.float64]
    band_slopes: Matrix
    band_grams: npt.NDArray[np.float64]
    band_gaps: Vector
    n_near: Vector
    near: tuple[tuple[Near, ...] | None, ...]
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
        """Moments of the far rows, from their differences."""
        return np.cumsum(self.moments[::-1], axis=0)[::-1]

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
        """Add up the pieces of a block."""
        k, q, space = len(self.probes), self.coordinates.n_directions, block.workspace()
        total = _Totals(block, self.probes, q)
        points = [probe.gamma for probe in self.probes]
        points += [probe.active.gamma for probe in self.probes if isinstance(probe.active, Sign)]
        gammas = np.array(points)
        widths = block.to_float64(np.array([[probe.width] for probe in self.probes]))
        for piece in block.pieces(len(points) + 2 * k):
            rows, v = read_piece(self.coordinates, piece, space)
            self._add(total, rows, v, gammas, widths)
        return total.finish()

    def _add(self, total: _Totals, rows: PieceRows, v: Any, gammas: Matrix, widths: Any) -> None:
        piece, space, xp = rows.piece, rows.space, rows.piece.xp
        k = len(self.probes)
        V = rows.times(gammas)
        U, shape = V[:k], (k, v.shape[0])
        active = self._mark_active(rows, v, V[k:], space("active", shape, "bool"))
        kink = xp.multiply(v, v > 0.0, out=space("kink", shape[1:]))
        kink *= 2.0
        right = xp.greater(U, kink, out=space("right", shape, "bool"))
        right |= active
        R = xp.subtract(U, kink, out=space("residual", shape))
        near = xp.less_equal(xp.abs(R, out=R), widths, out=space("near", shape, "bool"))
        far = xp.logical_not(active, out=space("far", shape, "bool"))
        near &= far
        far = xp.logical_not(near, out=far)
        far &= right
        total.values += self._squares(U, right, v, R, piece)
        total.objectives += self._squares(U, xp.greater(U, 0.0, out=right), v, R, piece)
        for line in np.flatnonzero(piece.to_numpy(xp.any(near, axis=1))).tolist():
            total.bands[line].add(rows, near[line], U[line])
        self._add_fingerprints(total, piece, active, v, U)
        other = xp.logical_not(far, out=right)
        total.moments.add(k - 1, rows, far[k - 1])
        for line in range(k - 1):
            total.moments.add(line, rows, far[line] & other[line + 1])
            total.moments.add(line, rows, far[line + 1] & other[line], -1.0)

    def _mark_active(self, rows: PieceRows, v: Any, at_points: Any, out: Any) -> Any:
        """Active rows of a piece, one line per probe; `at_points` is u at the points that decide."""
        points = iter(at_points)
        for line, probe in enumerate(self.probes):
            u = next(points) if isinstance(probe.active, Sign) else None
            out[line] = probe.active.mark(rows.piece, v, self.coordinates.scale, u)
        return out

    def _add_fingerprints(self, total: _Totals, piece: Block, active: Any, v: Any, U: Any) -> None:
        numbers = None
        for line, probe in enumerate(self.probes):
            if probe.zero is None:
                continue
            numbers = hash_rows(piece.row_numbers()) if numbers is None else numbers
            at_point = (U[line] > probe.zero) & (v > 0.0)
            # Sums of arrays wrap around without a warning; products are faster than choosing the rows.
            both = [int(piece.xp.sum(on * numbers)) for on in (active[line], at_point)]
            total.fingerprints[line] += np.array(both)

    @staticmethod
    def _squares(U: Any, on: Any, v: Any, out: Any, piece: Block) -> Any:
        """Sums of (u on - v)^2, line by line."""
        R = piece.xp.multiply(U, on, out=out)
        R -= v
        return piece.to_numpy(piece.xp.vecdot(R, R))


class _Totals:
    """Sums while the pieces of a block are added up."""

    def __init__(self, block: Block, probes: tuple[Probe, ...], q: int) -> None:
        k = len(probes)
        self.values = np.zeros(k)
        self.objectives = np.zeros(k)
        self.fingerprints = np.zeros((k, 2), dtype=np.int64)
        self.moments = MomentSums(block, k, q)
        self.bands = [Band(f"near {e}", q, probe.width, probe.cap) for e, probe in enumerate(probes)]
        self.caps = tuple(probe.cap for probe in probes)

    def finish(self) -> PassResult:
        """The same as a summary."""
        for band in self.bands:
            band.finish()
        return PassResult(
            values=self.values,
            objectives=self.objectives,
            fingerprints=self.fingerprints,
            moments=self.moments.finish(),
            band_slopes=np.array([band.slope for band in self.bands]),
            band_grams=np.array([band.gram for band in self.bands]),
            band_gaps=np.array([band.gap for band in self.bands]),
            n_near=np.array([float(band.n_near) for band in self.bands]),
            near=tuple(None if band.near is None else tuple(band.near) for band in self.bands),
            caps=self.caps,
        )
