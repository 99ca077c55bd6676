"""The engine for small dense problems: all rows in the compiled kernel, many active sets per call."""

from __future__ import annotations

import numpy as np

from rectifit import pieces
from rectifit._typing import Mask, Vector
from rectifit.surrogate import kernel
from rectifit.surrogate.bound import fenchel_gap, mend_slopes
from rectifit.surrogate.descent import Carry, States, Terrain, descend
from rectifit.surrogate.rows import WorkingRows
from rectifit.surrogate.solution import Answers

__all__ = ["CompiledEngine"]

# Active sets per call of the kernel.
BATCH = 64


class CompiledEngine:
    """Keeps Gram matrix, states and solution from one active set to the next."""

    def __init__(self, rows: WorkingRows) -> None:
        self.rows = rows
        n, q = rows.n_rows, rows.n_directions
        self._Z = rows.rows(slice(None))
        self._Zt = np.ascontiguousarray(self._Z.T)
        self._Tt = np.ascontiguousarray(rows.T.T)
        self._At = np.ascontiguousarray(rows.columns(slice(None)).T)
        self._terrain = Terrain(
            self._Z, self._Zt, rows.norms, rows.y, np.zeros(n), np.zeros((1, q)), rows.ridge
        )
        self._carry = Carry(
            delta=np.zeros(q),
            u=np.zeros(n),
            state=np.full(n, kernel.QUADRATIC, dtype=np.int8),
            gram=rows.gram + rows.ridge,
            largest=np.zeros(q),
        )
        self._inactive_kink = pieces.kinks(rows.y, np.zeros(n, dtype=np.bool_))
        # The first start is least squares: no kinks at all.
        descend(self._terrain, np.full((1, n), -np.inf), self._carry)

    def restart(self, gamma: Vector) -> None:
        """Begin the next solve at gamma; the Gram matrix stays."""
        self._carry.delta[:] = gamma
        self._carry.u[:] = self._Z @ gamma

    def solve(self, actives: Mask) -> Answers:
        """One answer per line of `actives` (positive samples only), each found from the one before."""
        parts = [self._solve(actives[e : e + BATCH]) for e in range(0, actives.shape[0], BATCH)]
        return parts[0] if len(parts) == 1 else Answers(*map(np.concatenate, zip(*parts, strict=True)))

    def _solve(self, actives: Mask) -> Answers:
        rows, k = self.rows, actives.shape[0]
        kinks = np.where(actives, -np.inf, self._inactive_kink)
        found = descend(self._terrain, kinks, self._carry)
        columns, values, losses = np.empty((k, rows.n_columns)), np.empty(k), np.empty(k)
        weak = np.empty(k, dtype=np.bool_)
        n_weak = kernel.judge(
            self._Zt,
            rows.norms,
            rows.y,
            kinks,
            rows.ridge,
            self._At,
            rows.problem.root_weight,
            self._Tt,
            rows.penalty,
            rows.largest,
            found.deltas,
            found.states,
            found.slopes,
            found.factors,
            columns,
            values,
            losses,
            weak,
        )
        if n_weak > 0:
            for e in np.flatnonzero(weak):
                losses[e] = self._mended_loss(
                    kinks[e], found.deltas[e], found.states[e], found.slopes[e], columns[e], values[e]
                )
        return Answers(columns, values, losses, found.slopes, found.steps, found.converged)

    def _mended_loss(
        self,
        kink: Vector,
        gamma: Vector,
        state: States,
        slopes: Vector,
        columns: Vector,
        value: float,
    ) -> float:
        """The loss for slopes with weak rows, which are changed."""
        rows, present = self.rows, state != kernel.FLAT
        gram = self._Z[present].T @ self._Z[present] + rows.ridge
        rho = slopes @ self._Z + 2.0 * rows.ridge @ gamma
        sloped = present & (kink > -np.inf)
        mended = mend_slopes(self._Z, sloped, slopes, rho, gram)
        slopes[:] = mended.slopes
        u = rows.preactivation(gamma)
        loss = max(fenchel_gap(u, rows.y, kink, slopes) + mended.decrement, 0.0)
        return loss + rows.allowance(value, gamma, columns, slopes, mended.remainder)
