"""The pass of the surrogate solver: many surrogates, each at its own point, in one reading of the data.

A probe asks for one surrogate F_I at one point gamma. Kinked rows within `width` of their kink are near, all
others far. A pass returns per probe

* the values of F_I and of the true objective L (without ridge), and the range of u;
* slope and Gram matrix of the far rows on their quadratic: around the point they are one quadratic;
* the near rows themselves, unless there are more than `cap`;
* what the near rows are with their kinks smoothed: the slope rises from 0 to 2 (c + h - y), not at c at once
  but linearly over [c - h, c + h], h = width. Slope, curvature and sum of the Fenchel gaps of these slopes.

Gram matrices of neighbouring probes differ in few rows and are accumulated as differences, so that all splits
of the sorting method together cost little more than one X'X.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit.problem import Matrix, Vector
from rectifit.scale.blocks import Block
from rectifit.scale.frame import Frame
from rectifit.scale.ranks import Cut

__all__ = ["Above", "Near", "Probe", "Rule", "Sweep", "Swept", "active_rows"]


@dataclass(frozen=True, eq=False)
class Above:
    """Active are the positive samples with u > zero at the point gamma."""

    gamma: Vector
    zero: float


# Which positive samples are active: above a cut through the sorted outcomes, or where a point puts them.
Rule = Cut | Above


class Probe(NamedTuple):
    """A surrogate, a point, and the distance from their kinks up to which rows are near; below 0: none is."""

    gamma: Vector
    rule: Rule
    width: float


class Near(NamedTuple):
    """Rows near their kinks: z, outcome v and pre-activation u; the kink is at 2 max(v, 0)."""

    Z: Matrix
    v: Vector
    u: Vector


@dataclass(frozen=True)
class Swept:
    """Sums over rows, one line per probe; `grams` are differences from the next probe's.

    Attributes
    ----------
    values, objectives : F_I and L
    highest, lowest : range of u
    slopes, grams : Z'(u - v) and Z'Z over the far rows on their quadratic
    band_slopes, band_grams, band_gaps : of the near rows, smoothed: half of slope and curvature, Fenchel gaps
    n_near, near : their number, and the rows, or None where there are too many
    n_changed : of a rule `Above`, the positive samples that are active here and not there, or the reverse
    """

    values: Vector
    objectives: Vector
    highest: Vector
    lowest: Vector
    slopes: Matrix
    grams: npt.NDArray[np.float64]
    band_slopes: Matrix
    band_grams: npt.NDArray[np.float64]
    band_gaps: Vector
    n_changed: Vector
    n_near: Vector
    near: tuple[tuple[Near, ...] | None, ...]
    cap: int

    def merge(self, other: Swept) -> Swept:
        """Sums, extremes, and the near rows of both."""
        total: dict[str, Any] = {"cap": self.cap}
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if field.name == "highest":
                total[field.name] = np.maximum(mine, theirs)
            elif field.name == "lowest":
                total[field.name] = np.minimum(mine, theirs)
            elif field.name not in ("near", "cap"):
                total[field.name] = mine + theirs
        total["near"] = tuple(
            None if a is None or b is None or n > self.cap else a + b
            for a, b, n in zip(self.near, other.near, total["n_near"], strict=True)
        )
        return Swept(**total)

    def __getstate__(self) -> dict[str, Any]:
        # Few large arrays travel faster than many small ones.
        near = tuple(parts and (_join(parts),) for parts in self.near)
        return self.__dict__ | {"near": near}

    def gram(self) -> npt.NDArray[np.float64]:
        """Gram matrices from their differences."""
        return np.cumsum(self.grams[::-1], axis=0)[::-1]

    def near_rows(self, line: int, n_directions: int) -> Near | None:
        """The near rows of a probe in one piece."""
        parts = self.near[line]
        if parts is None:
            return None
        if not parts:
            return Near(np.empty((0, n_directions)), np.empty(0), np.empty(0))
        return _join(parts)


def _join(parts: tuple[Near, ...]) -> Near:
    return Near(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def active_rows(rules: tuple[Rule, ...], U: Any, v: Any, start: int, scale: float, refs: Any) -> Any:
    """Active rows of a piece, one line per rule; `refs` are the pre-activations at the rules' points."""
    active, ref = U > 0.0, 0
    for line, rule in enumerate(rules):
        if isinstance(rule, Cut):
            cut = rule.value / scale
            active[line] = v >= cut
            if rule.first > start:
                head = rule.first - start
                active[line, :head] = v[:head] > cut
        else:
            active[line] = refs[ref] > rule.zero
            ref += 1
    active &= v > 0.0
    return active


@dataclass(frozen=True)
class Sweep:
    """The task of the pass."""

    frame: Frame
    probes: tuple[Probe, ...]
    cap: int

    def __call__(self, block: Block) -> Swept:
        """Add up the pieces of a block."""
        k, q = len(self.probes), self.frame.n_directions
        total = _Totals(k, q, self.cap)
        points = [probe.gamma for probe in self.probes]
        points += [probe.rule.gamma for probe in self.probes if isinstance(probe.rule, Above)]
        gammas = block.lift(np.array(points))
        widths = block.lift(np.array([[probe.width] for probe in self.probes]))
        for piece in block.pieces():
            self._add(total, piece, gammas, widths)
        return total.finish()

    def _add(self, total: _Totals, piece: Block, gammas: Any, widths: Any) -> None:
        xp, k, rules = piece.xp, len(self.probes), tuple(probe.rule for probe in self.probes)
        Z, v = self.frame.rows(piece)
        V = gammas @ Z.T
        U, refs = V[:k], V[k:]
        active = active_rows(rules, U, v, piece.start, self.frame.scale, refs)
        kink = 2.0 * v * (v > 0.0)
        right = active | (kink < U)
        R = U * right - v
        near = (xp.abs(U - kink) <= widths) & ~active
        far = right & ~near
        on = U > 0.0
        E = U * on - v
        total.values += piece.lower(xp.einsum("ij,ij->i", R, R))
        total.objectives += piece.lower(xp.einsum("ij,ij->i", E, E))
        total.highest = np.maximum(total.highest, piece.lower(xp.amax(U, 1)))
        total.lowest = np.minimum(total.lowest, piece.lower(xp.amin(U, 1)))
        total.slopes += piece.lower(piece.product((R * far).T, Z))
        self._add_grams(total, piece, Z, far)
        counts = piece.lower(near.sum(1))
        for line in np.flatnonzero(counts).tolist():
            chosen = near[line]
            self._add_near(total, line, Z[chosen], v[chosen], U[line][chosen], piece)
        for line, rule in enumerate(rules):
            if isinstance(rule, Above):
                total.n_changed[line] += int((((U[line] > rule.zero) != active[line]) & (v > 0.0)).sum())

    @staticmethod
    def _add_grams(total: _Totals, piece: Block, Z: Any, far: Any) -> None:
        k = far.shape[0]
        first = Z[far[k - 1]]
        total.grams[k - 1] += piece.lower(piece.product(first, first))
        if k == 1:
            return
        enter, leave = far[:-1] & ~far[1:], far[1:] & ~far[:-1]
        for line in range(k - 1):
            rows = Z[enter[line]]
            total.grams[line] += piece.lower(piece.product(rows, rows))
            rows = Z[leave[line]]
            if rows.shape[0] > 0:
                total.grams[line] -= piece.lower(piece.product(rows, rows))

    def _add_near(self, total: _Totals, line: int, Z: Any, v: Any, u: Any, piece: Block) -> None:
        xp, h = piece.xp, self.probes[line].width
        # Zero rows never move, and stay on their constants.
        moves = (Z != 0.0).any(1)
        if not bool(moves.all()):
            Z, v, u = Z[moves], v[moves], u[moves]
        total.n_near[line] += Z.shape[0]
        rows = total.near[line]
        if total.n_near[line] > self.cap:
            total.near[line] = None
        elif rows is not None:
            rows.append(Near(*(np.array(piece.lower(a)) for a in (Z, v, u))))
        if h == np.inf:
            return
        kink = 2.0 * v * (v > 0.0)
        jump = 2.0 * (kink - v)
        curvature = (0.25 / h) * (jump + 2.0 * h)
        half = curvature * (u - kink + h)
        slope = 2.0 * half
        conjugate = xp.where(slope > jump, (0.25 * slope + v) * slope, slope * kink - v * v)
        residual = u * (u > kink) - v
        total.band_gaps[line] += float((residual * residual + conjugate - slope * u).sum())
        total.band_slopes[line] += piece.lower(half @ Z)
        total.band_grams[line] += piece.lower(piece.product((Z.T * curvature).T, Z))


class _Totals:
    """Sums while the pieces of a block are added up."""

    def __init__(self, k: int, q: int, cap: int) -> None:
        self.values = np.zeros(k)
        self.objectives = np.zeros(k)
        self.highest = np.full(k, -np.inf)
        self.lowest = np.full(k, np.inf)
        self.slopes = np.zeros((k, q))
        self.grams = np.zeros((k, q, q))
        self.band_slopes = np.zeros((k, q))
        self.band_grams = np.zeros((k, q, q))
        self.band_gaps = np.zeros(k)
        self.n_changed = np.zeros(k)
        self.n_near = np.zeros(k)
        self.near: list[list[Near] | None] = [[] for _ in range(k)]
        self.cap = cap

    def finish(self) -> Swept:
        """The same as a summary."""
        near = tuple(None if rows is None else tuple(rows) for rows in self.near)
        sums = {name: value for name, value in vars(self).items() if name != "near"}
        return Swept(near=near, **sums)
