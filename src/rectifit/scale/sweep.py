"""The pass of the surrogate solver: many surrogates, each at its own point, in one reading of the data.

A probe asks for one surrogate F_I at one point gamma. Kinked rows within `width` of their kink are near, all
others far. A pass returns per probe

* the values of F_I and of the true objective L (without ridge), and the range of u;
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
from rectifit.scale.band import Band, Near, join_near
from rectifit.scale.blocks import Block
from rectifit.scale.frame import Frame
from rectifit.scale.ranks import Cut
from rectifit.scale.rows import Moments, Rows, Space

__all__ = ["Above", "Probe", "Rule", "Sweep", "Swept"]


@dataclass(frozen=True, eq=False)
class Above:
    """Active are the positive samples with u > zero at the point gamma."""

    gamma: Vector
    zero: float


# Which positive samples are active: above a cut through the sorted outcomes, or where a point puts them.
Rule = Cut | Above


class Probe(NamedTuple):
    """A surrogate, a point, and the distance from their kinks up to which rows are near; below 0: none is.

    Near rows are brought back unless there are more than `cap`.
    """

    gamma: Vector
    rule: Rule
    width: float
    cap: int = 0


@dataclass(frozen=True)
class Swept:
    """Sums over rows, one line per probe; `moments` are differences from the next probe's.

    Attributes
    ----------
    values, objectives : F_I and L
    largest : largest |u|
    moments : [Z, v]'[Z, v] over the far rows on their quadratic
    band_slopes, band_grams, band_gaps : of the near rows, smoothed (see `rectifit.scale.band`)
    n_near, near : their number, and the rows, or None where there are too many
    n_changed : of a rule `Above`, the positive samples that are active here and not there, or the reverse
    """

    values: Vector
    objectives: Vector
    largest: Vector
    moments: npt.NDArray[np.float64]
    band_slopes: Matrix
    band_grams: npt.NDArray[np.float64]
    band_gaps: Vector
    n_changed: Vector
    n_near: Vector
    near: tuple[tuple[Near, ...] | None, ...]
    caps: tuple[int, ...]

    def merge(self, other: Swept) -> Swept:
        """Sums, extremes, and the near rows of both."""
        total: dict[str, Any] = {"caps": self.caps}
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if field.name == "largest":
                total[field.name] = np.maximum(mine, theirs)
            elif field.name not in ("near", "caps"):
                total[field.name] = mine + theirs
        total["near"] = tuple(
            None if a is None or b is None or n > cap else a + b
            for a, b, n, cap in zip(self.near, other.near, total["n_near"], self.caps, strict=True)
        )
        return Swept(**total)

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


def mark_active(active: Any, rules: tuple[Rule, ...], rows: Rows, scale: float, v: Any, refs: Any) -> None:
    """Active rows of a piece, one line per rule; `refs` are the pre-activations at the rules' points."""
    xp, start, ref = rows.piece.xp, rows.piece.start, 0
    cuts = np.array([[rule.value / scale if isinstance(rule, Cut) else np.inf] for rule in rules])
    xp.greater_equal(v, rows.piece.lift(cuts), out=active)
    for line, rule in enumerate(rules):
        if isinstance(rule, Above):
            active[line] = refs[ref] > rule.zero
            ref += 1
        elif rule.first > start:
            head = rule.first - start
            active[line, :head] = v[:head] > rule.value / scale
    active &= v > 0.0


@dataclass(frozen=True)
class Sweep:
    """The task of the pass."""

    frame: Frame
    probes: tuple[Probe, ...]

    def __call__(self, block: Block) -> Swept:
        """Add up the pieces of a block."""
        k, q, space = len(self.probes), self.frame.n_directions, Space(block)
        total = _Totals(block, self.probes, q)
        points = [probe.gamma for probe in self.probes]
        points += [probe.rule.gamma for probe in self.probes if isinstance(probe.rule, Above)]
        gammas, widths = np.array(points), block.lift(np.array([[probe.width] for probe in self.probes]))
        for piece in block.pieces(len(points) + 2 * k):
            rows, v = self.frame.rows(piece, space)
            self._add(total, rows, v, gammas, widths)
        return total.finish()

    def _add(self, total: _Totals, rows: Rows, v: Any, gammas: Matrix, widths: Any) -> None:
        piece, space, xp = rows.piece, rows.space, rows.piece.xp
        k, rules = len(self.probes), tuple(probe.rule for probe in self.probes)
        V = rows.times(gammas)
        U, shape = V[:k], (k, v.shape[0])
        active = space("active", shape, "bool")
        mark_active(active, rules, rows, self.frame.scale, v, V[k:])
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
        largest = xp.maximum(xp.max(U, axis=1), -xp.min(U, axis=1))
        total.largest = np.maximum(total.largest, piece.lower(largest))
        for line in np.flatnonzero(piece.lower(xp.any(near, axis=1))).tolist():
            total.bands[line].add(rows, near[line], U[line])
        for line, rule in enumerate(rules):
            if isinstance(rule, Above):
                changed = (U[line] > rule.zero) != active[line]
                total.n_changed[line] += int(xp.sum(changed & (v > 0.0)))
        other = xp.logical_not(far, out=right)
        total.moments.add(k - 1, rows, far[k - 1])
        for line in range(k - 1):
            total.moments.add(line, rows, far[line] & other[line + 1])
            total.moments.add(line, rows, far[line + 1] & other[line], -1.0)

    @staticmethod
    def _squares(U: Any, on: Any, v: Any, out: Any, piece: Block) -> Any:
        """Sums of (u on - v)^2, line by line."""
        R = piece.xp.multiply(U, on, out=out)
        R -= v
        return piece.lower(piece.xp.vecdot(R, R))


class _Totals:
    """Sums while the pieces of a block are added up."""

    def __init__(self, block: Block, probes: tuple[Probe, ...], q: int) -> None:
        k = len(probes)
        self.values = np.zeros(k)
        self.objectives = np.zeros(k)
        self.largest = np.zeros(k)
        self.moments = Moments(block, k, q)
        self.bands = [Band(f"near {e}", q, probe.width, probe.cap) for e, probe in enumerate(probes)]
        self.n_changed = np.zeros(k)
        self.caps = tuple(probe.cap for probe in probes)

    def finish(self) -> Swept:
        """The same as a summary."""
        for band in self.bands:
            band.finish()
        return Swept(
            values=self.values,
            objectives=self.objectives,
            largest=self.largest,
            moments=self.moments.finish(),
            band_slopes=np.array([band.slope for band in self.bands]),
            band_grams=np.array([band.gram for band in self.bands]),
            band_gaps=np.array([band.gap for band in self.bands]),
            n_changed=self.n_changed,
            n_near=np.array([float(band.n_near) for band in self.bands]),
            near=tuple(None if band.near is None else tuple(band.near) for band in self.bands),
            caps=self.caps,
        )
