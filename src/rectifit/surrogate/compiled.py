"""The engine for small dense problems: all rows in the compiled kernel, many active sets per call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rectifit import pieces
from rectifit.problem import Mask, Matrix, Vector
from rectifit.surrogate import kernel
from rectifit.surrogate.bound import allowance, mend_slopes
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
        self._At = np.ascontiguousarray(rows.columns(slice(None)).T)
        self._none: tuple[Vector, Vector] = np.zeros(n), np.zeros(q)
        # Carried from one active set to the next.
        self._gamma: Vector = np.zeros(q)
        self._u: Vector = np.zeros(n)
        self._state: npt.NDArray[np.int8] = np.full(n, kernel.QUADRATIC, dtype=np.int8)
        self._gram: Matrix = rows.gram + rows.ridge
        self._largest: Vector = np.zeros(q)
        self._inactive_kink = pieces.kinks(rows.y, np.zeros(n, dtype=np.bool_))
        # The first start is least squares: no kinks at all.
        self._minimise(np.full((1, n), -np.inf))

    def restart(self, gamma: Vector) -> None:
        """Begin the next solve at gamma; the Gram matrix stays."""
        self._gamma[:] = gamma

    def solve(self, actives: Mask) -> Answers:
        """One answer per line of `actives` (a subset of the positive samples), each found from the one before."""
        parts = [self._solve(actives[e : e + BATCH]) for e in range(0, actives.shape[0], BATCH)]
        return parts[0] if len(parts) == 1 else Answers(*map(np.concatenate, zip(*parts, strict=True)))

    def _solve(self, actives: Mask) -> Answers:
        rows, k = self.rows, actives.shape[0]
        kinks = np.where(actives, -np.inf, self._inactive_kink)
        gammas, states, slopes, factors, steps, converged = self._minimise(kinks)
        columns, values, losses = np.empty((k, rows.n_columns)), np.empty(k), np.empty(k)
        weak = np.empty(k, dtype=np.bool_)
        kernel.judge(
            self._Zt,
            rows.norms,
            rows.y,
            kinks,
            rows.ridge,
            self._At,
            rows.problem.root_weight,
            rows.T,
            rows.penalty,
            rows.largest,
            gammas,
            states,
            slopes,
            factors,
            columns,
            values,
            losses,
            weak,
        )
        if weak.any():
            for e in np.flatnonzero(weak):
                losses[e] = self._mended_loss(kinks[e], gammas[e], states[e], slopes[e], columns[e], values[e])
        losses[~converged] = np.inf
        return Answers(columns, values, losses, slopes, steps, converged)

    def _minimise(
        self, kinks: Matrix
    ) -> tuple[Matrix, npt.NDArray[np.int8], Matrix, Matrix, npt.NDArray[np.int64], Mask]:
        rows, (k, n) = self.rows, kinks.shape
        q = rows.n_directions
        out = (
            np.empty((k, q)),
            np.empty((k, n), dtype=np.int8),
            np.empty((k, n)),
            np.empty((k, q, q)),
            np.empty(k, dtype=np.int64),
            np.empty(k, dtype=np.bool_),
        )
        kernel.minimise(
            self._Z,
            self._Zt,
            rows.norms,
            rows.y,
            kinks,
            *self._none,
            rows.ridge,
            kernel.max_steps(q),
            self._gamma,
            self._u,
            self._state,
            self._gram,
            self._largest,
            *out,
        )
        return out

    def _mended_loss(
        self,
        kink: Vector,
        gamma: Vector,
        state: npt.NDArray[np.int8],
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
        fenchel = pieces.value(u, rows.y, kink) + pieces.conjugate(slopes, rows.y, kink) - slopes * u
        size, extent = float(np.linalg.norm(gamma)), float(np.abs(columns) @ rows.largest)
        total = float(np.abs(slopes).sum())
        loss = max(float(fenchel.sum()) + mended.decrement, 0.0)
        return loss + allowance(gamma.size, mended.remainder, size, extent, total, value)
