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
from rectifit.surrogate.records import FLAT, QUADRATIC, Evaluated, Minima, PieceProblem, Source, WarmState
from rectifit.surrogate.rows_kernel import are_determined, place_rows, scale_columns
from rectifit.surrogate.small_rows import SmallRows
from rectifit.surrogate.solution import Answers

__all__ = ["CompiledEngine"]

# Active sets per call of the kernel.
BATCH = 64


class CompiledEngine:
    """Keeps Gram matrix, states and solution from one active set to the next."""

    batch = BATCH

    def __init__(self, problem: Problem) -> None:
        prepare(kernel.minimise, kernel.evaluate_with_bound, place_rows, are_determined, scale_columns)
        self.rows = rows = SmallRows(problem)
        n, q = rows.Z.shape
        self._problem = PieceProblem(
            rows.Z, rows.Zt, rows.norms, rows.y, np.zeros(n), np.zeros((1, q)), rows.ridge
        )
        self._source = Source(
            rows.At, rows.data.root_weight, np.ascontiguousarray(rows.T.T), rows.penalty, rows.largest
        )
        self._inactive_kink = pieces.inactive_kink(rows.y)
        self._gram = rows.gram + rows.ridge
        self.reset()

    def reset(self) -> None:
        """Begin the next solve at least squares, where the first one begins."""
        rows = self.rows
        self._warm = WarmState(
            delta=rows.least_squares().copy(),
            u=rows.start.copy(),
            state=np.full(rows.y.size, QUADRATIC, dtype=np.int8),
            gram=self._gram.copy(),
            largest=self._gram.diagonal().copy(),
        )

    def restart(self, gamma: Vector) -> None:
        """Begin the next solve at gamma; the Gram matrix stays."""
        self._warm.delta[:] = gamma
        self._warm.u[:] = self._problem.Z @ gamma

    def solve(self, actives: Mask) -> Answers:
        """One answer per line of `actives` (positive samples only), each found from the one before."""
        parts = [self._solve(actives[e : e + BATCH]) for e in range(0, actives.shape[0], BATCH)]
        return parts[0] if len(parts) == 1 else Answers(*map(np.concatenate, zip(*parts, strict=True)))

    def _solve(self, actives: Mask) -> Answers:
        k, n = actives.shape
        kinks = np.where(actives, -np.inf, self._inactive_kink)
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
        return Answers(
            found.columns,
            found.values,
            found.bounds,
            minima.slopes,
            minima.steps,
            minima.converged,
            found.objectives,
            found.u,
        )

    def _repaired_loss(self, kinks: Matrix, minima: Minima, found: Evaluated, e: int) -> float:
        """How far the minimum of one line can lie below its value; infeasible slopes are changed."""
        rows, Z, kink, gamma = self.rows, self._problem.Z, kinks[e], minima.deltas[e]
        slopes, present = minima.slopes[e], minima.states[e] != FLAT
        gram = Z[present].T @ Z[present] + rows.ridge
        rho = slopes @ Z + 2.0 * rows.ridge @ gamma
        repaired = repair_dual(Z, present & (kink > -np.inf), slopes, rho, gram)
        slopes[:] = repaired.slopes
        u = rows.preactivation(gamma)
        loss = max(fenchel_gap(u, rows.y, kink, slopes) + repaired.decrement, 0.0)
        scale = rows.scale
        value, columns = float(found.values[e]) / scale / scale, found.columns[e] / scale
        return (loss + rows.allowance(value, gamma, columns, slopes, repaired.remainder)) * scale * scale
