"""Thousands of surrogates of one data set at once, on a torch device; every step is a matrix product.

The kinks of problem e are smoothed over [c - h_e, c + h_e] (see `rectifit.pieces`), so that each problem is a
smooth piecewise quadratic for a Newton method with the Gram matrices Z'diag(curvature_e)Z: rows of
(curvatures) @ (products z_ij z_ik). When the minimum of a problem is near, its h shrinks, down to a width
with a negligible error.

A result is a point, F_I and L there, and a lower bound of min F_I. The slopes of the smoothed pieces are
allowed in the inequality of `rectifit.bounds`, so the bound holds whether or not a problem has converged.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit import pieces
from rectifit._typing import Mask, Matrix, Vector
from rectifit.bounds import allowance, residual_cost
from rectifit.checks import import_torch
from rectifit.surrogate.solution import SurrogateSolutions
from rectifit.surrogate.solver import SurrogateSolver
from rectifit.tolerances import BATCH_DIAGONAL

__all__ = ["BatchedSolutions", "BatchedSolver"]

# Widths h, as shares of the root mean square of y: the first without a start, the first from a given start,
# the last, and the factor from one to the next.
MAX_WIDTH = 0.1
START_WIDTH = 0.01
MIN_WIDTH = 1e-8
WIDTH_FACTOR = 0.1
# Few problems need more steps; their bounds are loose.
MAX_STEPS = 50
MAX_SHORTENINGS = 12
# A problem is at its minimum when a step promises less than this share of sum y^2.
DESCENT_TOL = 1e-15
# A step must keep this share of what its slope promises, up to rounding, a share of sum y^2.
ARMIJO_SHARE = 1e-4
ROUNDING_SHARE = 1e-13
# Shares of a step to which it may be shortened at once.
MIN_SHORTENING = 0.1
MAX_SHORTENING = 0.5
# Numbers in one array of a chunk of problems, on an accelerator and on a processor.
CHUNK_NUMBERS = 1 << 26
HOST_CHUNK_NUMBERS = 1 << 21
# Numbers in the table of products z_ij z_ik that is made at a time.
TABLE_NUMBERS = 1 << 26
# Added to the diagonals of singular matrices, as a share of the largest entry.
SINGULAR_DIAGONAL = 1e-8


class BatchedSolutions(NamedTuple):
    """One line per problem, on the user's scale: coefficients with the intercept last, F_I, its bound, L."""

    columns: Matrix
    values: Vector
    bounds: Vector
    objectives: Vector


class BatchedSolver:
    """Minimises many surrogates of one data set at once.

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
        self._kink = pieces.inactive_kink(self._y)
        self._largest = self._Z.abs().amax(0)
        q = rows.n_directions
        self._upper = torch.triu_indices(q, q, device=self.device)
        place = torch.zeros((q, q), dtype=torch.int64, device=self.device)
        place[self._upper[0], self._upper[1]] = torch.arange(self._upper.shape[1], device=self.device)
        self._place = torch.maximum(place, place.T).flatten()
        chunk = HOST_CHUNK_NUMBERS if self.device.type == "cpu" else CHUNK_NUMBERS
        # Problems that are solved together.
        self.size = max(1, chunk // max(rows.n_rows, q * q))

    def solve(self, actives: Mask, starts: Matrix | None = None) -> BatchedSolutions:
        """Minimise one surrogate per line, from coefficients, the intercept last, or from least squares."""
        torch, n_problems = self._torch, len(actives)
        with torch.no_grad():
            first, width = self._starts(n_problems, starts), MAX_WIDTH if starts is None else START_WIDTH
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

    def answer(self, actives: Mask) -> SurrogateSolutions:
        """The same as solutions on the user's scale, each taken as converged."""
        found, p = self.solve(actives), self._solver.problem.n_features
        return SurrogateSolutions(
            list(range(len(actives))),
            list(found.columns[:, :p]),
            found.columns[:, p:].sum(axis=1).tolist(),
            found.values.tolist(),
            found.bounds.tolist(),
            [True] * len(actives),
        )

    def _starts(self, n_problems: int, starts: Matrix | None) -> Any:
        rows = self._rows
        if starts is None:
            return self._put(np.repeat(rows.least_squares()[None], n_problems, axis=0))
        gammas = np.linalg.lstsq(rows.T, np.asarray(starts).T / rows.scale, rcond=None)[0].T
        return self._put(gammas)

    def _put(self, array: npt.NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.array(array, dtype=np.float64)).to(self.device)

    def _solve(self, active: Any, gamma: Any, width: float) -> tuple[Any, Any, Any, Any]:
        torch = self._torch
        gammas, widths = gamma.clone(), gamma.new_full((len(gamma), 1), width * self._unit)
        # Problems that are not at their minimum yet.
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
            narrow = h <= MIN_WIDTH * self._unit
            stays = ~(narrow & (promise <= DESCENT_TOL * self._total) & (before == h))[:, 0]
            # A step promises less than the smoothing of one row costs: smooth less.
            close = (promise <= h * self._unit) & ~narrow & (before == h)
            before, h = h, torch.where(close, h * WIDTH_FACTOR, h)
            if not bool(stays.all()):
                going, left, gamma, U, h, before = (a[stays] for a in (going, left, gamma, U, h, before))
                if len(going) == 0:
                    break
        return (gammas, *self._evaluate_with_bound(gammas, active, widths))

    def _slopes(self, U: Any, active: Any, h: Any, before: Any) -> tuple[Any, Any]:
        """Halves of slopes and of curvatures; rows are on the piece on which the width `before` puts them."""
        torch, place = self._torch, U - self._kink
        quadratic = active | (place >= before)
        in_band = place > -before
        slope = pieces.smoothed_slope(U, self._y, self._kink, h) * in_band
        half = torch.where(quadratic, U - self._y, 0.5 * slope)
        curvature = pieces.smoothed_curvature(self._y, h) * in_band
        return half, torch.where(quadratic, 1.0, 0.5 * curvature)

    def _smoothed(self, gamma: Any, U: Any, active: Any, h: Any) -> Any:
        """Smoothed surrogates, ridge included."""
        torch, r, y, c = self._torch, U - self._y, self._y, self._kink
        # Left of the band the smoothed piece is what it is at its left end.
        in_band = pieces.smoothed_value(torch.maximum(U, c - h), y, c, h)
        kinked = torch.where(c + h > U, in_band, r * r + h * h)
        return torch.where(active, r * r, kinked).sum(1, keepdim=True) + self._penalty(gamma)

    def _penalty(self, gamma: Any) -> Any:
        return ((gamma @ self._ridge) * gamma).sum(1, keepdim=True)

    def _step(
        self, gamma: Any, U: Any, delta: Any, active: Any, h: Any, promise: Any, leaps: Any
    ) -> tuple[Any, Any]:
        """The whole step, or where it leads too far, as much as a line through the slopes says."""
        dU = delta @ self._Z.T
        allowed = self._smoothed(gamma, U, active, h) + ROUNDING_SHARE * self._total
        step = gamma.new_ones((len(gamma), 1))
        for _ in range(MAX_SHORTENINGS):
            reached = self._smoothed(gamma + step * delta, U + step * dU, active, h)
            far = ((reached > allowed - ARMIJO_SHARE * step * promise) & ~leaps)[:, 0]
            if not bool(far.any()):
                break
            t, d = step[far], delta[far]
            half, _ = self._slopes(U[far] + t * dU[far], active[far], h[far], h[far])
            slope = (half * dU[far]).sum(1, keepdim=True)
            slope += ((gamma[far] + t * d) @ self._ridge * d).sum(1, keepdim=True)
            down = promise[far]
            step[far] = t * (down / (down + slope.clamp(min=0.0))).clamp(MIN_SHORTENING, MAX_SHORTENING)
        return gamma + step * delta, U + step * dU

    def _grams(self, weights: Any) -> Any:
        """Z'diag(weights)Z, one matrix per line."""
        q = self._Z.shape[1]
        i, j = self._upper
        size = max(1, TABLE_NUMBERS // len(i))
        packed = weights.new_zeros((len(weights), len(i)))
        for first in range(0, len(self._Z), size):
            Z = self._Z[first : first + size]
            packed += weights[:, first : first + size] @ (Z[:, i] * Z[:, j])
        return packed[:, self._place].view(-1, q, q)

    def _evaluate_with_bound(self, gamma: Any, active: Any, h: Any) -> tuple[Any, Any, Any]:
        """F_I, its lower bound, and L."""
        torch, y, U = self._torch, self._y, gamma @ self._Z.T
        kink = torch.where(active, -torch.inf, self._kink)
        values = pieces.value(U, y, kink)
        half, curvature = self._slopes(U, active, h, h)
        slopes = 2.0 * half
        # The set Q of the bound: rows on their quadratic. Those in the band pay their Fenchel gaps.
        far = U - kink >= h
        gaps = (values - pieces.support(U, y, kink, slopes)) * (~far & (curvature > 0.0))
        penalty = self._penalty(gamma)[:, 0]
        values = values.sum(1) + penalty
        objectives = (U.clamp(min=0.0) - y).square().sum(1) + penalty
        rho = slopes @ self._Z + 2.0 * gamma @ self._ridge
        grams = self._grams(far.to(y.dtype)) + self._ridge
        v, regular = _solve_grams(torch, grams, rho)
        decrement, remainder = residual_cost(grams, rho, v)
        # Rows with a kink have no negative slopes.
        infeasible = (far & ~active & (slopes < v @ self._Z.T)).any(1)
        extent, total_slope = gamma.abs() @ self._largest, slopes.abs().sum(1)
        n, q = self._Z.shape
        slack = allowance(n, values, q, extent, total_slope, remainder, gamma.norm(dim=1))
        bounds = values - gaps.sum(1) - decrement - slack
        return values, torch.where(regular & ~infeasible, bounds, 0.0), objectives


def _solve_grams(torch: Any, grams: Any, rhs: Any) -> tuple[Any, Any]:
    """grams^-1 rhs line by line, and which matrices are regular; the others are made regular first."""
    identity = torch.eye(grams.shape[1], dtype=grams.dtype, device=grams.device)
    largest = grams.diagonal(dim1=1, dim2=2).amax(1)[:, None, None]
    factors, failed = torch.linalg.cholesky_ex(grams + BATCH_DIAGONAL * largest * identity)
    regular = failed == 0
    if not bool(regular.all()):
        lifted = grams + (SINGULAR_DIAGONAL * largest + BATCH_DIAGONAL) * identity
        factors = torch.where(regular[:, None, None], factors, torch.linalg.cholesky_ex(lifted)[0])
    return torch.cholesky_solve(rhs[:, :, None], factors)[:, :, 0], regular
