"""The engine for small dense problems: all rows in the compiled kernel, many active sets per call."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

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
from rectifit.surrogate.walls import Walls

__all__ = ["CompiledEngine"]

# Active sets per call of the kernel.
BATCH = 64
NO_WALLS, NO_KINKS = np.zeros((0, 0)), np.zeros(0)


class System(NamedTuple):
    """What the kernel is given, the same for all active sets: with walls, or without any.

    kinks are those of the walls, which come after those of the rows.
    """

    problem: PieceProblem
    source: Source
    kinks: Vector
    walls: Walls | None


class CompiledEngine:
    """Keeps Gram matrix, states and solution from one active set to the next.

    Constraints become walls only once they matter: a minimum without them that they allow is the minimum.
    """

    batch = BATCH

    def __init__(self, problem: Problem) -> None:
        prepare(kernel.minimise, kernel.evaluate_with_bound, place_rows, are_determined, scale_columns)
        self.rows = rows = SmallRows(problem)
        (n, q), n_columns = rows.Z.shape, rows.n_columns
        free = PieceProblem(rows.Z, rows.Zt, rows.norms, rows.y, np.zeros(n), np.zeros((1, q)), rows.ridge)
        source = Source(
            rows.At,
            rows.data.root_weight,
            np.ascontiguousarray(rows.T.T),
            rows.penalty,
            rows.largest,
            np.full(n_columns, -np.inf),
            np.full(n_columns, np.inf),
            np.zeros(n_columns),
            NO_WALLS,
        )
        self._free = System(free, source, NO_KINKS, None)
        self._n_rows = n
        self._inactive_kink = pieces.inactive_kink(rows.y)
        self._gram = rows.gram + rows.ridge
        self.reset()

    @cached_property
    def _walled(self) -> System:
        """The same with all constraints."""
        (problem, source, *_), walls = self._free, self.rows.walls
        assert walls is not None
        Z, y = np.vstack([problem.Z, walls.rows]), np.append(problem.y, walls.outcomes)
        norms = np.append(problem.norms, np.ones(walls.size))
        return System(
            problem._replace(Z=Z, Zt=np.ascontiguousarray(Z.T), norms=norms, y=y, u0=np.zeros(y.size)),
            source._replace(low=walls.low, high=walls.high, near=walls.near, walls=walls.columns),
            walls.kinks,
            walls,
        )

    def reset(self) -> None:
        """Begin the next solve at least squares, where the first one begins."""
        rows = self.rows
        fit, known = rows.least_squares(), rows.problem.constraints
        if known is not None and not known.holds((rows.T @ fit)[None, : known.low.size] * rows.scale):
            self._build_walls()
            return
        self._system = self._free
        state = np.full(self._n_rows, QUADRATIC, dtype=np.int8)
        gram = self._gram.copy()
        self._warm = WarmState(fit.copy(), rows.start.copy(), state, gram, gram.diagonal().copy())

    def _build_walls(self) -> None:
        """Begin the next solve within the constraints, near least squares."""
        self._system, n = self._walled, self._n_rows
        walls = self._walled.walls
        assert walls is not None
        gamma, state = walls.allowed(self.rows.least_squares()), np.full(n, QUADRATIC, dtype=np.int8)
        u = self._walled.problem.Z @ gamma
        states = walls.first_states(u[n:])
        held = walls.rows[states == HELD]
        gram = self._gram + held.T @ held
        self._warm = WarmState(gamma, u, np.append(state, states), gram, gram.diagonal().copy())

    def restart(self, gamma: Vector) -> None:
        """Begin the next solve at gamma; the Gram matrix stays."""
        problem, walls = self._system.problem, self._system.walls
        gamma = gamma if walls is None else walls.allowed(gamma)
        self._warm.delta[:] = gamma
        self._warm.u[:] = problem.Z @ gamma

    def solve(self, actives: Mask) -> Answers:
        """One answer per line of `actives` (positive samples only), each found from the one before."""
        parts = [self._solve_allowed(actives[e : e + BATCH]) for e in range(0, actives.shape[0], BATCH)]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _solve_allowed(self, actives: Mask) -> Answers:
        """Without walls as long as there are none, and with walls if constraints do not allow the answers."""
        found, known = self._solve(actives), self.rows.problem.constraints
        if known is None or self._system.walls is not None or known.holds(found.columns[:, : known.low.size]):
            return found
        self._build_walls()
        return self._solve(actives)

    def _solve(self, actives: Mask) -> Answers:
        (k, n), (problem, source, at_walls, _) = actives.shape, self._system
        kinks = np.where(actives, -np.inf, self._inactive_kink)
        if at_walls.size:
            kinks = np.hstack([kinks, np.broadcast_to(at_walls, (k, at_walls.size))])
        minima = descend(problem, kinks, self._warm)
        found = Evaluated(
            np.empty((k, len(self.rows.At))),
            np.empty((k, n)),
            np.empty(k),
            np.empty(k),
            np.empty(k),
            np.empty(k, dtype=np.bool_),
        )
        n_infeasible = kernel.evaluate_with_bound(
            tuple(problem), kinks, tuple(source), self.rows.scale, tuple(minima), tuple(found)
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
            minima.slopes[:, :n],
            minima.steps,
            minima.converged,
            minima.slopes[:, n:],
            found.objectives,
            found.u,
        )

    def _repaired_loss(self, kinks: Matrix, minima: Minima, found: Evaluated, e: int) -> float:
        """How far the minimum of one line can lie below its value; infeasible slopes are changed."""
        (problem, source, _, walls), rows, kink, gamma = self._system, self.rows, kinks[e], minima.deltas[e]
        n, (Z, _, _, y, *_) = self._n_rows, problem
        slopes, present = minima.slopes[e], minima.states[e] != FLAT
        gram = Z[present].T @ Z[present] + rows.ridge
        rho = slopes @ Z + 2.0 * rows.ridge @ gamma
        repaired = repair_dual(Z, present & (kink > -np.inf) & (y < TIE), slopes, rho, gram)
        slopes[:] = repaired.slopes
        scale = rows.scale
        value, columns = float(found.values[e]) / scale / scale, found.columns[e] / scale
        # The u that the value is made of: where columns nearly cancel, u computed in another order differs.
        u = found.u[e] / scale * source.root_weight
        loss = fenchel_gap(u, rows.y, kink[:n], slopes[:n]) + repaired.decrement
        slack = rows.allowance(value, gamma, columns, slopes[:n], repaired.remainder)
        if walls is not None:
            lost, rounding = walls.loss(columns, slopes[n:], repaired.reach * present[n:])
            loss, slack = loss + lost, slack + rounding
        return (max(loss, 0.0) + slack) * scale * scale


def _joined(parts: list[Answers]) -> Answers:
    """Answers of several batches; those that were found without walls have no slopes there."""
    width = max(part.wall_slopes.shape[1] for part in parts)
    parts = [
        part
        if part.wall_slopes.shape[1] == width
        else part._replace(wall_slopes=np.zeros((len(part.values), width)))
        for part in parts
    ]
    return Answers(*map(np.concatenate, zip(*parts, strict=True)))
