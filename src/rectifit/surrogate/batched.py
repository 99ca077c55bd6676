"""Thousands of surrogates of one data set at once, on a torch device; every step is a matrix product.

The kinks of problem e are smoothed over [c - h_e, c + h_e]: the slope rises there linearly from 0 to
2 (c + h - y), so that each problem is a smooth piecewise quadratic,

    F(u) = y^2   |   y^2 + r (u - c + h)^2,  r = (|y| + h) / 2h   |   (u - y)^2 + h^2,

for a Newton method with the Gram matrices Z'diag(curvature_e)Z: rows of (curvatures) @ (products z_ij z_ik).
When a problem's minimum is near, its h shrinks, down to a width whose error is far below what matters.

A result is a point, F_I and L there, and a lower bound of min F_I. The slopes of the smoothed pieces are
allowed in the inequality of `rectifit.surrogate.bound`, so the bound holds whether or not a problem has
converged.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Matrix, Vector
from rectifit.checks import import_torch
from rectifit.surrogate.solution import SurrogateSolution
from rectifit.surrogate.solver import SurrogateSolver
from rectifit.tolerances import FLOAT64_EPS as EPS
from rectifit.tolerances import MAX_REACH as REACH

__all__ = ["BatchedSolutions", "BatchedSolver"]

# Widths, as shares of the root mean square of y: the first, from afar and from a given start, the last, and
# the factor between two.
WIDEST, WIDE, NARROWEST, SHRINK = 0.1, 0.01, 1e-8, 0.1
# Few problems need more steps; their bounds are loose.
MAX_STEPS, MAX_SHORTENINGS = 50, 12
# A problem is at its minimum when a step promises less than this share of sum y^2.
ENOUGH = 1e-15
# A step must keep this share of what its slope promises.
ARMIJO = 1e-4
# Numbers in one array of a chunk of problems, on an accelerator and on a processor.
CHUNK, CHUNK_ON_HOST = 1 << 26, 1 << 21
# Numbers in the table of products z_ij z_ik that is made at a time.
TABLE = 1 << 26
# Added to diagonals before they are factorised, as a share of the largest, and where that was not enough.
REGULAR, SINGULAR = 1e-14, 1e-8


class BatchedSolutions(NamedTuple):
    """One line per problem, on the user's scale: coefficients with the intercept last, F_I, its bound, L."""

    columns: Matrix
    values: Vector
    bounds: Vector
    objectives: Vector


class BatchedSolver:
    """Answers many questions about one data set at once.

    Parameters
    ----------
    solver : SurrogateSolver
        Its working coordinates are used.
    device : torch device
    """

    def __init__(self, solver: SurrogateSolver, device: Any) -> None:
        torch = self._torch = import_torch()
        rows = solver.rows
        self.device = torch.device(device)
        self._rows, self._solver = rows, solver
        self._Z = self._put(rows.rows(np.arange(rows.n_rows)))
        self._y = self._put(rows.y)
        self._ridge = self._put(rows.ridge)
        self._total = float(rows.y @ rows.y)
        self._unit = math.sqrt(self._total / rows.n_rows)
        self._kink = 2.0 * self._y.clamp(min=0.0)
        self._largest = self._Z.abs().amax(0)
        q = rows.n_directions
        self._upper = torch.triu_indices(q, q, device=self.device)
        place = torch.zeros((q, q), dtype=torch.int64, device=self.device)
        place[self._upper[0], self._upper[1]] = torch.arange(self._upper.shape[1], device=self.device)
        self._place = torch.maximum(place, place.T).flatten()
        chunk = CHUNK_ON_HOST if self.device.type == "cpu" else CHUNK
        # Problems that are solved together.
        self.size = max(1, chunk // max(rows.n_rows, q * q))

    def solve(self, actives: Mask, starts: Matrix | None = None) -> BatchedSolutions:
        """Minimise one surrogate per line, from coefficients, the intercept last, or from least squares."""
        torch, n_problems = self._torch, len(actives)
        with torch.no_grad():
            first, width = self._starts(n_problems, starts), WIDEST if starts is None else WIDE
            parts = []
            for e in range(0, n_problems, self.size):
                active = torch.from_numpy(np.array(actives[e : e + self.size])).to(self.device)
                # Samples with y <= 0 have their kink, whatever the mask says.
                parts.append(self._solve(active & (self._y > 0.0), first[e : e + self.size], width))
        gammas, values, bounds, objectives = (
            torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True)
        )
        scale = self._rows.scale
        columns = (gammas * scale) @ self._rows.T.T
        return BatchedSolutions(columns, values * scale**2, bounds * scale**2, objectives * scale**2)

    def solve_each(self, actives: Mask) -> list[SurrogateSolution]:
        """The same as solutions on the user's scale, without duals."""
        found, p, nothing = self.solve(actives), self._solver.problem.n_features, np.empty(0)
        return [
            SurrogateSolution(b[:p], float(b[p:].sum()), float(value), float(bound), nothing, 0, True)
            for b, value, bound in zip(found.columns, found.values, found.bounds, strict=True)
        ]

    def _starts(self, n_problems: int, starts: Matrix | None) -> Any:
        rows = self._rows
        if starts is None:
            columns = np.append(*self._solver.least_squares())[None, : rows.n_columns]
            starts = np.repeat(columns, n_problems, axis=0)
        gammas = np.linalg.lstsq(rows.T, np.asarray(starts).T / rows.scale, rcond=None)[0].T
        return self._put(gammas)

    def _put(self, array: npt.NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.array(array, dtype=np.float64)).to(self.device)

    def _solve(self, active: Any, gamma: Any, width: float) -> tuple[Any, Any, Any, Any]:
        torch = self._torch
        gammas, widths = gamma.clone(), gamma.new_full((len(gamma), 1), width * self._unit)
        # Problems that go on, with what is known of them.
        going, left = torch.arange(len(gamma), device=self.device), active
        h, U = widths.clone(), gamma @ self._Z.T
        before = h
        for _ in range(MAX_STEPS):
            half, curvature = self._slopes(U, left, h, before)
            slope = half @ self._Z + gamma @ self._ridge
            delta = -_solve_grams(torch, self._grams(curvature) + self._ridge, slope)[0]
            promise = -(slope * delta).sum(1, keepdim=True)
            gamma, U = self._step(gamma, U, delta, left, h, promise, before > h)
            gammas[going], widths[going] = gamma, h
            narrow = h <= NARROWEST * self._unit
            stays = ~(narrow & (promise <= ENOUGH * self._total) & (before == h))[:, 0]
            # Less than one row's error of smoothing: go on with less smoothing.
            close = (promise <= h * self._unit) & ~narrow & (before == h)
            before, h = h, torch.where(close, h * SHRINK, h)
            if not bool(stays.all()):
                going, left, gamma, U, h, before = (a[stays] for a in (going, left, gamma, U, h, before))
                if len(going) == 0:
                    break
        return (gammas, *self._judge(gammas, active, widths))

    def _slopes(self, U: Any, active: Any, h: Any, before: Any) -> tuple[Any, Any]:
        """Halves of slopes and of curvatures; rows are on the piece on which the width `before` puts them."""
        torch, place = self._torch, U - self._kink
        quadratic = active | (place >= before)
        rise = (self._y.abs() + h) / (2.0 * h) * (place > -before)
        half = torch.where(quadratic, U - self._y, rise * (place + h))
        return half, torch.where(quadratic, 1.0, rise)

    def _smoothed(self, gamma: Any, U: Any, active: Any, h: Any) -> Any:
        """Smoothed surrogates, ridge included."""
        torch, r, inside = self._torch, U - self._y, (U - (self._kink - h)).clamp(min=0.0)
        rise = (self._y.abs() + h) / (2.0 * h)
        kinked = torch.where(inside < 2.0 * h, self._y * self._y + rise * inside * inside, r * r + h * h)
        return torch.where(active, r * r, kinked).sum(1, keepdim=True) + self._penalty(gamma)

    def _penalty(self, gamma: Any) -> Any:
        return ((gamma @ self._ridge) * gamma).sum(1, keepdim=True)

    def _step(
        self, gamma: Any, U: Any, delta: Any, active: Any, h: Any, promise: Any, leaps: Any
    ) -> tuple[Any, Any]:
        """The whole step, or where it leads too far, as much as a line through the slopes says."""
        dU = delta @ self._Z.T
        allowed = self._smoothed(gamma, U, active, h) + 1e-13 * self._total
        step = gamma.new_ones((len(gamma), 1))
        for _ in range(MAX_SHORTENINGS):
            reached = self._smoothed(gamma + step * delta, U + step * dU, active, h)
            far = ((reached > allowed - ARMIJO * step * promise) & ~leaps)[:, 0]
            if not bool(far.any()):
                break
            t, d = step[far], delta[far]
            half, _ = self._slopes(U[far] + t * dU[far], active[far], h[far], h[far])
            slope = (half * dU[far]).sum(1, keepdim=True)
            slope += ((gamma[far] + t * d) @ self._ridge * d).sum(1, keepdim=True)
            down = promise[far]
            step[far] = t * (down / (down + slope.clamp(min=0.0))).clamp(0.1, 0.5)
        return gamma + step * delta, U + step * dU

    def _grams(self, weights: Any) -> Any:
        """Z'diag(weights)Z, one matrix per line."""
        q = self._Z.shape[1]
        i, j = self._upper
        size = max(1, TABLE // len(i))
        packed = weights.new_zeros((len(weights), len(i)))
        for first in range(0, len(self._Z), size):
            Z = self._Z[first : first + size]
            packed += weights[:, first : first + size] @ (Z[:, i] * Z[:, j])
        return packed[:, self._place].view(-1, q, q)

    def _judge(self, gamma: Any, active: Any, h: Any) -> tuple[Any, Any, Any]:
        """F_I, its lower bound, and L."""
        torch, y, kink, U = self._torch, self._y, self._kink, gamma @ self._Z.T
        right = active | (kink < U)
        penalty = self._penalty(gamma)[:, 0]
        values = (U * right - y).square().sum(1) + penalty
        objectives = (U.clamp(min=0.0) - y).square().sum(1) + penalty
        half, curvature = self._slopes(U, active, h, h)
        # Rows on their quadratic have curvature 1; in between it is that of the rise, which may be 1 too.
        far = (U - kink >= h) | active
        slopes = 2.0 * half
        jump = 2.0 * y.abs()
        conjugate = torch.where(slopes > jump, (0.25 * slopes + y) * slopes, slopes * kink - y * y)
        fenchel = ((U * right - y).square() + conjugate - slopes * U) * (~far & (curvature > 0.0))
        rho = slopes @ self._Z + 2.0 * gamma @ self._ridge
        grams = self._grams(far.to(y.dtype)) + self._ridge
        v, regular = _solve_grams(torch, grams, rho)
        remainder = (rho - (grams @ v[:, :, None])[:, :, 0]).abs().sum(1)
        # Rows with a kink have no negative slopes.
        weak = (far & ~active & (slopes < v @ self._Z.T)).any(1)
        extent = gamma.abs() @ self._largest
        n, q = self._Z.shape
        rounding = EPS * ((q + 4) * extent * slopes.abs().sum(1) + (8.0 + math.sqrt(n)) * values)
        slack = rounding + REACH * remainder * (1.0 + gamma.norm(dim=1))
        bounds = values - fenchel.sum(1) - 0.25 * (rho * v).sum(1).clamp(min=0.0) - slack
        return values, torch.where(regular & ~weak, bounds, 0.0), objectives


def _solve_grams(torch: Any, grams: Any, rhs: Any) -> tuple[Any, Any]:
    """grams^-1 rhs line by line, and which matrices are regular; to the others something is added."""
    identity = torch.eye(grams.shape[1], dtype=grams.dtype, device=grams.device)
    largest = grams.diagonal(dim1=1, dim2=2).amax(1)[:, None, None]
    factors, failed = torch.linalg.cholesky_ex(grams + REGULAR * largest * identity)
    regular = failed == 0
    if not bool(regular.all()):
        lifted = grams + (SINGULAR * largest + REGULAR) * identity
        factors = torch.where(regular[:, None, None], factors, torch.linalg.cholesky_ex(lifted)[0])
    return torch.cholesky_solve(rhs[:, :, None], factors)[:, :, 0], regular
