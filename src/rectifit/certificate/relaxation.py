"""Minimise a convex relaxation exactly, and turn any approximate minimum into a lower bound.

The relaxation R(b) = sum_i e_i(z_i'b) + b'ridge b + tilt'b is a quadratic with matrix

    C = ridge - sum_i c_i z_i z_i'

plus lines plus pieces that the surrogate's kernel knows: constant left of a kink and quadratic right of it.
An envelope has one such piece for its right branch, and, on the mirrored row, one for its left branch.

Lower bound. At any b take slopes lambda_i that the envelopes may have, and the supporting lines with these
slopes; the envelope of a sample that is ON is its own second-order expansion. With g the gradient of all this
at b and

    K = C + sum over ON of (1 + c_i) z_i z_i'

every t has R(b + t) >= S + g't + t'Kt, where S is the value of the supporting functions at b. If K is
positive definite the right side is at least

    S - g'K^-1 g / 4,

a lower bound of R, and of the true loss of all coefficients that the kinds, l and U allow. It does not matter
whether b is the minimum. It also follows that coefficients with a loss up to `cutoff` lie in the ellipsoid

    (b' - b'_0)'K(b' - b'_0) <= cutoff - bound,     b'_0 = b - K^-1 g / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from rectifit._typing import Mask, Matrix, Vector
from rectifit.certificate.envelope import ON, Envelopes, Kinds
from rectifit.certificate.kernel import build, support
from rectifit.surrogate import kernel
from rectifit.surrogate.bound import EPS, mend_slopes
from rectifit.surrogate.descent import Carry, Descent, Terrain, descend

__all__ = ["Bound", "Pieces", "Region", "Relaxation", "Start"]

# K counts as singular where its Cholesky pivots fall below this, in whitened coordinates.
SINGULAR = 1e-11
# Curvature that leads out of flat places.
GUIDE = 1e-3
# A residual that costs the bound more than this may do so by accident.
SUSPICIOUS = 1e-3
# A residual outside the range of the curved pieces means that the relaxation has no minimum.
NO_REMAINDER = 1e-12


@dataclass
class Region:
    """What is known of all better solutions: kinds of samples and bounds of their u."""

    kind: Kinds
    l: Vector  # noqa: E741
    U: Vector

    def copy(self) -> Region:
        return Region(self.kind.copy(), self.l.copy(), self.U.copy())


class Start(NamedTuple):
    """Where a minimisation begins: a point, and what the kernel knew there, of which relaxation."""

    b: Vector
    carry: Carry | None = None
    owner: Pieces | None = None

    def curvature(self) -> Matrix:
        """The matrix of the quadratic around the point."""
        assert self.carry is not None
        lower = np.tril(self.carry.gram)
        return lower + np.tril(lower, -1).T


class Bound(NamedTuple):
    """A lower bound, where it was found, and the ellipsoid that goes with it: centre and factor of K."""

    value: float
    b: Vector
    u: Vector
    factor: Matrix | None
    centre: Vector
    start: Start


class Pieces:
    """A quadratic with matrix C and slope, a constant, and pieces; K is its definite part (see above)."""

    def __init__(
        self,
        Z: Matrix,
        C: Matrix,
        K: Matrix,
        rows: Matrix,
        norms: Vector,
        kink: Vector,
        outcome: Vector,
        slope: Vector,
        constant: float,
    ) -> None:
        self.Z, self.C, self.K = Z, C, K
        self._rows, self._norms, self._kink, self._outcome = rows, norms, kink, outcome
        self._slope, self.constant = slope, constant

    def minimise(self, start: Start) -> Bound:
        """Minimise from a start, and bound; minus infinity where there is no minimum."""
        C = self.C
        if self._factor is None:
            # Where all pieces are flat there is no way to go; a little curvature leads away from there.
            guided = self._descend(start, self._slope[None], C + GUIDE * np.eye(len(C)))[0]
            start = Start(guided.deltas[0])
        found, carry = self._descend(start, self._slope[None], C)
        b, lam = found.deltas[0], found.slopes[0]
        turned = self.C @ b
        g = self._slope + 2.0 * turned
        value, size = support(self._rows, self._kink, self._outcome, b, lam, g)
        value += self.constant + float(b @ (turned + self._slope)) - self._rounding(size)
        centre = b
        if self._factor is None:
            value = self._mended_value(b, lam, g, self._slope)
        else:
            step = np.linalg.solve(self.K, g)
            value -= 0.25 * float(g @ step)
            centre = b - 0.5 * step
        return Bound(value, b, self.Z @ b, self._factor, centre, Start(b, carry, self))

    def _rounding(self, size: Any) -> Any:
        """What the rounding of sums of such a size may have added."""
        return EPS * (8.0 + self.Z.shape[1]) * (size + abs(self.constant))

    def minimise_tilted(self, start: Start, tilts: Matrix) -> tuple[Vector, Matrix]:
        """Bounds of min R + tilt'b, one per line of tilts, all from one start, and where they were found."""
        slopes = self._slope + tilts
        # Without definite curvature a little of it, which the bound knows nothing of, keeps minima in reach.
        C = self.C if self._factor is not None else self.C + GUIDE * np.eye(len(self.C))
        found = self._descend(start, slopes, C)[0]
        return self._bounds(found.deltas, found.slopes, slopes), found.deltas

    def _descend(self, start: Start, slopes: Matrix, C: Matrix) -> tuple[Descent, Carry]:
        rows, kink, n = self._rows, self._kink, len(self.Z)
        if start.carry is not None and start.owner is self and C is self.C:
            carry = start.carry.copy()
        else:
            u = rows @ start.b
            state = (u > kink).astype(np.int8)
            if start.carry is not None and start.carry.state.size >= n and kink.size >= n:
                # Rows that were held at their kink are likely to be there again.
                held = (start.carry.state[:n] == kernel.HELD) & (np.abs(u[:n] - kink[:n]) <= kernel.HOLD_TOL)
                state[:n][held] = kernel.HELD
            inside = rows[state != kernel.FLAT]
            carry = Carry(start.b.copy(), u, state, C + inside.T @ inside, np.zeros(start.b.size))
        terrain = Terrain(rows, self._columns, self._norms, self._outcome, np.zeros(kink.size), slopes, C)
        return descend(terrain, kink[None], carry, restart=len(slopes) > 1), carry

    @cached_property
    def _columns(self) -> Matrix:
        return np.ascontiguousarray(self._rows.T)

    @cached_property
    def _products(self) -> Matrix:
        """All products of two entries of a row, one row per line."""
        return np.asarray((self._rows[:, :, None] * self._rows[:, None, :]).reshape(len(self._rows), -1))

    def _bounds(self, points: Matrix, multipliers: Matrix, slopes: Matrix) -> Vector:
        """Lower bounds from points in lines, with slopes of the pieces there."""
        pieces = points @ self._columns
        lam = np.where(self._whole, 2.0 * (pieces - self._outcome), np.maximum(multipliers, 0.0))
        turned = points @ self.C
        g = slopes + 2.0 * turned + lam @ self._rows
        if self._factor is None:
            return self._dual_values(points, pieces, lam, g, slopes)
        v = solve_triangular(self._factor, g.T, lower=True, check_finite=False)
        supports = self._support(pieces, lam) + np.einsum("ij,ij->i", points, turned + slopes)
        return np.asarray(supports - 0.25 * np.einsum("ij,ij->j", v, v))

    @cached_property
    def _whole(self) -> Mask:
        """Pieces without a kink."""
        return np.asarray(self._kink == -np.inf)

    @cached_property
    def _factor(self) -> Matrix | None:
        """Cholesky factor of K, None where it is singular."""
        try:
            factor: Matrix = np.asarray(np.linalg.cholesky(self.K), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        return factor if factor.diagonal().min() ** 2 > SINGULAR else None

    def _support(self, pieces: Matrix, lam: Matrix) -> Vector:
        """Values of the supporting functions with slopes lam, less what rounding may have added."""
        y, whole = self._outcome, self._whole
        kink = np.where(whole, 0.0, self._kink)
        jump = np.where(whole, -np.inf, 2.0 * (kink - y))
        # Conjugate of the piece that is 0 left of its kink, or of the whole quadratic.
        above = (0.25 * lam + y) * lam + np.where(whole, 0.0, np.square(kink - y))
        conjugate = np.where(lam > jump, above, lam * kink)
        products = lam * pieces
        size = np.abs(products).sum(axis=-1) + np.abs(conjugate).sum(axis=-1)
        total = (products - conjugate).sum(axis=-1) + self.constant
        return np.asarray(total - self._rounding(size))

    def _dual_values(self, points: Matrix, pieces: Matrix, lam: Matrix, g: Matrix, slopes: Matrix) -> Vector:
        """The bounds of surrogate/bound.py, for relaxations that only their curved pieces make definite."""
        q = self._rows.shape[1]
        used = self._whole | (lam > 0.0)
        gram = self.C + (used.astype(np.float64) @ self._products).reshape(-1, q, q)
        try:
            v = np.linalg.solve(gram, g[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            v = np.full_like(g, np.nan)
        with np.errstate(invalid="ignore"):
            remainder = np.abs(g - np.einsum("kij,kj->ki", gram, v)).sum(axis=1)
            weak = ((lam < v @ self._columns) & used & ~self._whole).any(axis=1)
            good = (remainder <= NO_REMAINDER * (1.0 + np.abs(lam).sum(axis=1))) & ~weak
            decrement = 0.25 * np.einsum("ij,ij->i", g, v)
            linear = np.einsum("ij,ij->i", points, points @ self.C + slopes)
            values = self._support(pieces, lam) + linear - np.maximum(decrement, 0.0)
        values[~good] = -np.inf
        # A singular Gram matrix goes unnoticed above, and makes much of little: once more, with care.
        for e in np.flatnonzero(~good | (decrement > SUSPICIOUS)):
            values[e] = max(values[e], self._mended_value(points[e], lam[e], g[e], slopes[e]))
        return np.asarray(values)

    def _mended_value(self, b: Vector, lam: Vector, g: Vector, slope: Vector) -> float:
        """One such bound where slopes are weak, or no bound where the residual has no counterweight."""
        sloped = lam > 0.0
        used = self._rows[self._whole | sloped]
        mended = mend_slopes(self._rows, sloped & ~self._whole, lam, g, self.C + used.T @ used)
        if not mended.remainder <= NO_REMAINDER * (1.0 + float(np.abs(lam).sum())):
            return -np.inf
        value = self._support(self._rows @ b, mended.slopes) + b @ (self.C @ b + slope)
        return float(value) - mended.decrement


class Relaxation(Pieces):
    """The relaxation for one region and one choice of c."""

    def __init__(self, Z: Matrix, y: Vector, ridge: Matrix, region: Region, c: Vector) -> None:
        self.y, self.c, self.region = y, c, region
        n, q = Z.shape
        table, rows, slope = np.empty((n, 8)), np.empty((2 * n, q)), np.empty(q)
        norms, kink, outcome = np.empty(2 * n), np.empty(2 * n), np.empty(2 * n)
        m, constant = build(
            Z, region.kind, y, region.l, region.U, c, table, rows, norms, kink, outcome, slope
        )
        self.envelopes = Envelopes.from_columns(table)
        C = ridge - (Z.T * c) @ Z
        whole = rows[:n][region.kind == ON]
        K = C + whole.T @ whole
        super().__init__(Z, C, K, rows[:m], norms[:m], kink[:m], outcome[:m], slope, constant)
