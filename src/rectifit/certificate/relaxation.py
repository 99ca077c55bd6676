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

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from rectifit._typing import Mask, Masks, Matrix, Vector
from rectifit.bounds import is_balanced, repair_dual, residual_cost
from rectifit.certificate.envelope import ON, Envelopes
from rectifit.certificate.kernel import build, support
from rectifit.certificate.records import KernelRows, Region, Samples
from rectifit.least_distance import least_distance
from rectifit.surrogate.descent import descend
from rectifit.surrogate.records import FLAT, HELD, WALL, Minima, PieceProblem, WarmState
from rectifit.tolerances import DEFINITE_PIVOT, HOLD_TOL, MAX_PLAIN_DECREMENT, MAX_PLAIN_REACH

__all__ = ["Bound", "Pieces", "Region", "Relaxation", "Start"]

# Curvature that leads out of flat places, in whitened units. The bound knows nothing of it.
GUIDING_CURVATURE = 1e-3


class Start(NamedTuple):
    """Where a minimisation begins: a point, and the state in which the kernel left a relaxation there."""

    b: Vector
    warm: WarmState | None = None
    owner: Pieces | None = None

    def curvature(self) -> Matrix:
        """The matrix of the quadratic around the point."""
        assert self.warm is not None
        lower = np.tril(self.warm.gram)
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
        self, Z: Matrix, C: Matrix, K: Matrix, pieces: KernelRows, slope: Vector, constant: float
    ) -> None:
        self.Z, self.C, self.K = Z, C, K
        self._pieces, self._slope, self._constant = pieces, slope, constant

    def minimise(self, start: Start) -> Bound:
        """Minimise from a start, and bound; minus infinity where there is no minimum."""
        if self._factor is None:
            # Where all pieces are flat there is no way to go; a little curvature leads away from there.
            guided = self._descend(start, self._slope[None], self._guided)[0]
            start = Start(guided.deltas[0])
        found, warm = self._descend(start, self._slope[None], self.C)
        b, slopes = found.deltas[0], found.slopes
        supports, g = self._support(found.deltas, slopes, self._slope)
        centre = b
        if self._factor is None:
            value = self._repaired_value(b, slopes[0], g[0], self._slope)
        else:
            step = np.linalg.solve(self.K, g[0])
            value = float(supports[0]) - float(residual_cost(self.K, g[0], step)[0])
            centre = b - 0.5 * step
        return Bound(value, b, self.Z @ b, self._factor, centre, Start(b, warm, self))

    def minimise_tilted(self, start: Start, tilts: Matrix) -> tuple[Vector, Matrix]:
        """Bounds of min R + tilt'b, one per line of tilts, all from one start, and where they were found."""
        slopes = self._slope + tilts
        # Without definite curvature a little of it keeps minima in reach.
        C = self.C if self._factor is not None else self._guided
        found = self._descend(start, slopes, C)[0]
        return self._bounds(found.deltas, found.slopes, slopes), found.deltas

    def _descend(self, start: Start, slopes: Matrix, C: Matrix) -> tuple[Minima, WarmState]:
        found, warm = self._descend_from(start, slopes, C)
        # From outside of many constraints the kernel may hold some of them and never reach the others.
        if self._walls.any() and not (found.converged.all() and self._is_inside(found.deltas)):
            inside = self._point_inside(start.b)
            if inside is not None:
                return self._descend_from(Start(inside), slopes, C)
        return found, warm

    def _is_inside(self, points: Matrix) -> bool:
        """Whether points in lines satisfy the constraints, but for rounding."""
        beyond = points @ self._columns[:, self._walls] - self._pieces.kinks[self._walls]
        return bool((beyond <= HOLD_TOL).all())

    def _point_inside(self, b: Vector) -> Vector | None:
        """The point nearest to b that satisfies the constraints; None if b does, or none is found."""
        rows, kinks = self._pieces.rows[self._walls], self._pieces.kinks[self._walls]
        beyond = rows @ b - kinks
        farthest = float(beyond.max())
        if farthest <= HOLD_TOL:
            return None
        step = least_distance(-rows, beyond / farthest)
        return None if step is None else b + farthest * step

    def _descend_from(self, start: Start, slopes: Matrix, C: Matrix) -> tuple[Minima, WarmState]:
        rows, norms, kink, outcome = self._pieces
        n = len(self.Z)
        if start.warm is not None and start.owner is self and C is self.C:
            warm = start.warm.copy()
        else:
            u = rows @ start.b
            state = ((u > kink) & ~self._walls).astype(np.int8)
            if start.warm is not None and start.warm.state.size >= n and kink.size >= n:
                # Rows that were held at their kink are likely to be there again.
                held = (start.warm.state[:n] == HELD) & (np.abs(u[:n] - kink[:n]) <= HOLD_TOL)
                state[:n][held] = HELD
            inside = rows[state != FLAT]
            warm = WarmState(start.b.copy(), u, state, C + inside.T @ inside, np.zeros(start.b.size))
        problem = PieceProblem(rows, self._columns, norms, outcome, np.zeros(kink.size), slopes, C)
        return descend(problem, kink[None], warm, restart=len(slopes) > 1), warm

    @cached_property
    def _guided(self) -> Matrix:
        return np.asarray(self.C + GUIDING_CURVATURE * np.eye(len(self.C)))

    @cached_property
    def _columns(self) -> Matrix:
        return np.ascontiguousarray(self._pieces.rows.T)

    @cached_property
    def _products(self) -> Matrix:
        """All products of two entries of a row, one row per line."""
        rows = self._pieces.rows
        return np.asarray((rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1))

    @cached_property
    def _whole(self) -> Mask:
        """Pieces without a kink."""
        return np.asarray(self._pieces.kinks == -np.inf)

    @cached_property
    def _walls(self) -> Mask:
        """Pieces that are constraints."""
        return np.asarray(self._pieces.outcomes == WALL)

    @cached_property
    def _factor(self) -> Matrix | None:
        """Cholesky factor of K, None where it is singular."""
        try:
            factor: Matrix = np.asarray(np.linalg.cholesky(self.K), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        return factor if factor.diagonal().min() ** 2 > DEFINITE_PIVOT else None

    def _support(self, points: Matrix, lam: Matrix, slopes: Matrix) -> tuple[Vector, Matrix]:
        """Values S of the supporting functions at points in lines, and gradients g; lam are made feasible."""
        supports, turned = np.empty(len(points)), points @ self.C
        support(tuple(self._pieces), points @ self._columns, lam, self._constant, supports)
        supports += np.einsum("ij,ij->i", points, turned + slopes)
        return supports, slopes + 2.0 * turned + lam @ self._pieces.rows

    def _bounds(self, points: Matrix, lam: Matrix, slopes: Matrix) -> Vector:
        """Lower bounds from points in lines, with slopes of the pieces there."""
        supports, g = self._support(points, lam, slopes)
        if self._factor is None:
            return self._dual_values(points, lam, slopes, supports, g)
        v = solve_triangular(self._factor, g.T, lower=True, check_finite=False)
        return np.asarray(supports - 0.25 * np.einsum("ij,ij->j", v, v))

    def _dual_values(
        self, points: Matrix, lam: Matrix, slopes: Matrix, supports: Vector, g: Matrix
    ) -> Vector:
        """The bounds of bounds.py, for relaxations that only their curved pieces make definite."""
        q = g.shape[1]
        used = self._whole | (lam > 0.0)
        gram = self.C + (used.astype(np.float64) @ self._products).reshape(-1, q, q)
        try:
            v = np.linalg.solve(gram, g[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            v = np.full_like(g, np.nan)
        with np.errstate(invalid="ignore"):
            decrement, remainder = residual_cost(gram, g, v)
            moves = v @ self._columns
            if self._walls.any():
                decrement += self._cost_of_moves(points, np.abs(moves), used)
            infeasible = ((lam < moves) & used & ~self._whole).any(axis=1)
            infeasible |= ~(np.abs(v).max(axis=1) <= MAX_PLAIN_REACH)
            good = is_balanced(remainder, np.abs(lam).sum(axis=1)) & ~infeasible
            values = np.where(good, supports - decrement, -np.inf)
            doubtful = ~good | (decrement > MAX_PLAIN_DECREMENT)
        # A singular Gram matrix goes unnoticed above and amplifies rounding: bound these lines with care.
        for e in np.flatnonzero(doubtful):
            values[e] = max(values[e], self._repaired_value(points[e], lam[e], g[e], slopes[e]))
        return np.asarray(values)

    def _repaired_value(self, b: Vector, lam: Vector, g: Vector, slope: Vector) -> float:
        """One such bound after infeasible slopes are repaired; -infinity where the residual is unbalanced."""
        sloped = (lam > 0.0) & ~self._whole
        used = self._pieces.rows[self._whole | sloped]
        repaired = repair_dual(self._pieces.rows, sloped, lam, g, self.C + used.T @ used)
        if not is_balanced(repaired.remainder, float(np.abs(lam).sum())):
            return -np.inf
        supports, _ = self._support(b[None], repaired.slopes[None], slope)
        lost = repaired.decrement
        if self._walls.any():
            moves = repaired.reach * self._pieces.norms[None]
            lost += float(self._cost_of_moves(b[None], moves, repaired.slopes[None] > 0.0)[0])
        return float(supports[0]) - lost

    def _cost_of_moves(self, points: Matrix, moves: Matrix, used: Masks) -> Vector:
        """What it costs to move the slopes of constraints that much, away from their kinks."""
        walls = self._walls
        away = np.abs(points @ self._columns[:, walls] - self._pieces.kinks[walls])
        return np.asarray((moves[:, walls] * away * used[:, walls]).sum(axis=1))


class Relaxation(Pieces):
    """The relaxation for one region and one choice of c."""

    def __init__(self, samples: Samples, region: Region, c: Vector) -> None:
        self.c, self.region, self.y = c, region, samples.y
        Z, _, _, ridge = samples
        n, q = Z.shape
        table, pieces, slope = np.empty((n, 8)), KernelRows.empty(2 * n, q), np.empty(q)
        m, constant = build(tuple(samples), tuple(region), c, table, tuple(pieces), slope)
        self.envelopes = Envelopes.from_columns(table)
        C = ridge - (Z.T * c) @ Z
        whole = pieces.rows[:n][region.kind == ON]
        super().__init__(Z, C, C + whole.T @ whole, pieces.first(m), slope, constant)
