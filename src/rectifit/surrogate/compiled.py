"""The engine for small dense problems: all rows in the compiled kernel, many active sets per call."""

from __future__ import annotations

import numpy as np

from rectifit import pieces
from rectifit._typing import Mask, Matrix, Vector
from rectifit.bounds import fenchel_gap, repair_dual
from rectifit.data.problem import Problem
from rectifit.preparing import prepare
from rectifit.surrogate import kernel
from rectifit.surrogate.descent import descend
from rectifit.surrogate.records import (
    FLAT,
    HELD,
    QUADRATIC,
    TIE,
    Evaluated,
    Minima,
    PieceProblem,
    Source,
    WarmState,
)
from rectifit.surrogate.rows_kernel import are_determined, place_rows, scale_columns
from rectifit.surrogate.small_rows import SmallRows
from rectifit.surrogate.solution import Answers

__all__ = ["CompiledEngine"]

# Active sets per call of the kernel.
BATCH = 64
NO_WALLS = np.zeros((0, 0))


class CompiledEngine:
    """Keeps Gram matrix, states and solution from one active set to the next."""

    batch = BATCH

    def __init__(self, problem: Problem) -> None:
        prepare(kernel.minimise, kernel.evaluate_with_bound, place_rows, are_determined, scale_columns)
        self.rows = rows = SmallRows(problem)
        (n, q), walls = rows.Z.shape, rows.walls
        Z, Zt, norms, y = rows.Z, rows.Zt, rows.norms, rows.y
        low, high, near = (np.full(rows.n_columns, end) for end in (-np.inf, np.inf, 0.0))
        columns = NO_WALLS
        # Kinks of the walls, which are the same in all problems.
        self._kinks = np.zeros(0)
        if walls is not None:
            Z, norms = np.vstack([Z, walls.rows]), np.append(norms, np.ones(walls.size))
            Zt, y = np.ascontiguousarray(Z.T), np.append(y, walls.outcomes)
            low, high, near, columns = walls.low, walls.high, walls.near, walls.columns
            self._kinks = walls.kinks
        self._n_rows = n
        self._problem = PieceProblem(Z, Zt, norms, y, np.zeros(y.size), np.zeros((1, q)), rows.ridge)
        T = np.ascontiguousarray(rows.T.T)
        weight = rows.data.root_weight
        self._source = Source(rows.At, weight, T, rows.penalty, rows.largest, low, high, near, columns)
        self._inactive_kink = pieces.inactive_kink(rows.y)
        self._gram = rows.gram + rows.ridge
        self.reset()

    def reset(self) -> None:
        """Begin the next solve at least squares, where the first one begins."""
        rows, state = self.rows, np.full(self._problem.y.size, QUADRATIC, dtype=np.int8)
        if rows.walls is None:
            gamma, u, gram = rows.least_squares().copy(), rows.start.copy(), self._gram.copy()
        else:
            gamma = rows.walls.allowed(rows.least_squares())
            u = self._problem.Z @ gamma
            state[self._n_rows :] = states = rows.walls.first_states(u[self._n_rows :])
            held = rows.walls.rows[states == HELD]
            gram = self._gram + held.T @ held
        self._warm = WarmState(gamma, u, state, gram, gram.diagonal().copy())

    def restart(self, gamma: Vector) -> None:
        """Begin the next solve at gamma; the Gram matrix stays."""
        if self.rows.walls is not None:
            gamma = self.rows.walls.allowed(gamma)
        self._warm.delta[:] = gamma
        self._warm.u[:] = self._problem.Z @ gamma

    def solve(self, actives: Mask) -> Answers:
        """One answer per line of `actives` (positive samples only), each found from the one before."""
        parts = [self._solve(actives[e : e + BATCH]) for e in range(0, actives.shape[0], BATCH)]
        return parts[0] if len(parts) == 1 else Answers(*map(np.concatenate, zip(*parts, strict=True)))

    def _solve(self, actives: Mask) -> Answers:
        k, n = actives.shape
        kinks = np.where(actives, -np.inf, self._inactive_kink)
        if self._kinks.size:
            kinks = np.hstack([kinks, np.broadcast_to(self._kinks, (k, self._kinks.size))])
        minima = descend(self._problem, kinks, self._warm)
        found = Evaluated(
            np.empty((k, len(self.rows.At))),
            np.empty((k, n)),
            np.empty(k),
            np.empty(k),
            np.empty(k),
            np.empty(k, dtype=np.bool_),
        )
        n_infeasible = kernel.evaluate_with_bound(
            tuple(self._problem), kinks, tuple(self._source), self.rows.scale, tuple(minima), tuple(found)
        )
        if n_infeasible > 0:
            for e in np.flatnonzero(found.infeasible).tolist():
                loss = self._repaired_loss(kinks, minima, found, e)
                if minima.converged[e]:
                    found.bounds[e] = found.values[e] - loss
        n = self._n_rows
        return Answers(
            found.columns,
            found.values,
            found.bounds,
            minima.slopes[:, :n],
            minima.steps,
            minima.converged,
            minima.slopes[:, n:],
            found.objectives,
            found.u,
        )

    def _repaired_loss(self, kinks: Matrix, minima: Minima, found: Evaluated, e: int) -> float:
        """How far the minimum of one line can lie below its value; infeasible slopes are changed."""
        rows, Z, kink, gamma = self.rows, self._problem.Z, kinks[e], minima.deltas[e]
        n, y, slopes, present = self._n_rows, self._problem.y, minima.slopes[e], minima.states[e] != FLAT
        gram = Z[present].T @ Z[present] + rows.ridge
        rho = slopes @ Z + 2.0 * rows.ridge @ gamma
        repaired = repair_dual(Z, present & (kink > -np.inf) & (y < TIE), slopes, rho, gram)
        slopes[:] = repaired.slopes
        scale = rows.scale
        value, columns = float(found.values[e]) / scale / scale, found.columns[e] / scale
        u = rows.weighted_preactivation(columns)
        loss = fenchel_gap(u, rows.y, kink[:n], slopes[:n]) + repaired.decrement
        slack = rows.allowance(value, gamma, columns, slopes[:n], repaired.remainder)
        if rows.walls is not None:
            lost, rounding = rows.walls.loss(columns, slopes[n:], repaired.reach * present[n:])
            loss, slack = loss + lost, slack + rounding
        return (max(loss, 0.0) + slack) * scale * scale
