"""The engine for many rows: passes over X with BLAS, and the compiled kernel on the rows near their kinks.

A row far from its kink stays on its piece for a while, and all such rows together are one quadratic. A round
minimises, with the kernel, the model

    (quadratic of the far rows) + sum over near rows of piece_i

and follows the way to its minimum with one pass over X. If no far row changes sides, the model was the
surrogate itself, and its minimum is the answer. Otherwise the way is still a direction of descent,
because model and surrogate agree around the point: an exact line search follows it, the rows that changed
sides enter or leave the Gram matrix, and the next round begins. From some round on ever more rows are near,
in the end all of them or as many as memory allows, so the rounds end.

X is read as it is; nothing of its size is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit import pieces
from rectifit._typing import Index, Mask, Matrix, Vector
from rectifit.surrogate import kernel
from rectifit.surrogate.bound import fenchel_gap, mend_slopes, solve_gram
from rectifit.surrogate.descent import Carry, States, Terrain, descend
from rectifit.surrogate.rows import WorkingRows
from rectifit.surrogate.solution import Answers

__all__ = ["ArrayEngine"]

# Rows near their kink: at least so many, or so many per direction in the first round and in the next ones.
NEAR_LEAST, NEAR_FIRST, NEAR_NEXT = 1000, 25, 20
# From this round on their number doubles, as long as they hold at most so many numbers.
DOUBLING, NEAR_MOST = 6, 1 << 26
MAX_ROUNDS = 40
# A minimum whose loss exceeds this share of sum y^2 is polished with a gradient from the data.
POLISH = 1e-11
MAX_POLISHES = 3


@dataclass
class Point:
    """Where the engine stands: coordinates, u = Z gamma, and the state of every row."""

    gamma: Vector
    u: Vector
    quadratic: Mask
    held: Mask


@dataclass(frozen=True)
class Model:
    """Minimum of the model: the way there, and what becomes of the near rows."""

    near: Index
    Z: Matrix
    delta: Vector
    u: Vector
    state: States
    slopes: Vector
    steps: int
    converged: bool


@dataclass(frozen=True)
class Judgement:
    """Coefficients and value at a point, and how far the minimum can lie below.

    That is the loss, plus an allowance for rounding.

    slopes are those of the dual bound, residual their sum Z'slopes plus the slope of the ridge.
    """

    columns: Vector
    value: float
    loss: float
    allowance: float
    slopes: Vector
    residual: Vector


class ArrayEngine:
    """Keeps Gram matrix, states and solution from one active set to the next."""

    def __init__(self, rows: WorkingRows) -> None:
        self.rows = rows
        n = rows.n_rows
        # Gram matrix and Z'y' over the rows in `inside`; to begin with, all: the start is least squares.
        self._gram: Matrix = rows.gram.copy()
        self._cross: Vector = rows.cross.copy()
        self._inside: Mask = np.ones(n, dtype=np.bool_)
        self._largest: Vector = rows.gram.diagonal().copy()
        self.restart(solve_gram(rows.gram + rows.ridge, rows.cross))

    def restart(self, gamma: Vector) -> None:
        """Begin the next solve at gamma; the Gram matrix stays."""
        nowhere = np.zeros(self.rows.n_rows, dtype=np.bool_)
        self._point = Point(np.array(gamma), self.rows.preactivation(gamma), nowhere, nowhere.copy())
        self._model: Model | None = None

    def solve(self, actives: Mask) -> Answers:
        """One answer per line of `actives` (positive samples only), each found from the one before."""
        lines = [self._solve(pieces.kinks(self.rows.y, active)) for active in actives]
        return Answers(*(np.array(column) for column in zip(*lines, strict=True)))

    def _solve(self, kink: Vector) -> tuple[Vector, float, float, Vector, int, bool]:
        point, y = self._point, self.rows.y
        enough = POLISH * float(y @ y)
        held = point.held & (np.abs(point.u - kink) <= kernel.HOLD_TOL)
        quadratic = (point.u > kink) & ~held
        settled = np.array_equal(held, point.held) and np.array_equal(quadratic, point.quadratic)
        point.held, point.quadratic = held, quadratic
        last: Judgement | None = None
        if settled and self._model is not None:
            # The new kinks leave every row where it was: the last minimum may be this one's too.
            last = self._judge(self._model, kink)
            if last.loss <= enough:
                return last.columns, last.value, last.loss + last.allowance, last.slopes, 0, True
        steps = polishes = 0
        for turn in range(MAX_ROUNDS):
            self._update_gram(point.quadratic | point.held)
            self._model = None
            model = self._minimise_model(kink, turn, last)
            steps += model.steps
            faithful = self._follow(model, kink)
            last = None
            if faithful and model.converged:
                self._update_gram(point.quadratic | point.held)
                last = self._judge(model, kink)
                if last.loss <= enough or polishes == MAX_POLISHES:
                    self._model = model
                    break
                polishes += 1
        converged = last is not None
        last = last or self._judge(model, kink)
        return last.columns, last.value, last.loss + last.allowance, last.slopes, steps, converged

    def _update_gram(self, inside: Mask) -> None:
        """Gram matrix and Z'y' over `inside`: by the rows that differ, or anew if that is less work."""
        changed = np.flatnonzero(inside != self._inside)
        anew = bool(2 * changed.size > np.count_nonzero(inside))
        if not anew:
            self._add(changed, np.where(inside[changed], 1.0, -1.0))
            # Where most of the matrix was subtracted again, what is left has lost too many digits.
            anew = bool((self._gram.diagonal() < kernel.DRIFTED * self._largest).any())
        if anew:
            self._gram[:] = 0.0
            self._cross[:] = 0.0
            self._largest[:] = 0.0
            index = np.flatnonzero(inside)
            self._add(index, np.ones(index.size))
        self._inside = inside

    def _add(self, index: Index, sign: Vector) -> None:
        """Add these rows, or subtract them."""
        gram, cross = self.rows.gram_of(index, sign)
        self._gram += gram
        self._cross += cross
        np.maximum(self._largest, self._gram.diagonal(), out=self._largest)

    def _minimise_model(self, kink: Vector, turn: int, last: Judgement | None) -> Model:
        """Minimise far quadratic plus near pieces; a judgement of the point tells the slope exactly."""
        rows, point, q = self.rows, self._point, self.rows.n_directions
        near = self._nearest(kink, turn)
        Z = rows.rows(near)
        state = np.where(point.held[near], kernel.HELD, point.quadratic[near]).astype(np.int8)
        present = state != kernel.FLAT
        u_near = point.u[near]
        far_gram = self._gram - Z[present].T @ Z[present] + rows.ridge
        if last is None:
            far_cross = self._cross - rows.y[near][present] @ Z[present]
            far_slope = 2.0 * (far_gram @ point.gamma - far_cross)
        else:
            far_slope = last.residual - last.slopes[near] @ Z
        terrain = Terrain(
            Z, np.ascontiguousarray(Z.T), rows.norms[near], rows.y[near], u_near, far_slope[None], far_gram
        )
        carry = Carry(np.zeros(q), u_near.copy(), state, self._gram + rows.ridge, np.zeros(q))
        found = descend(terrain, kink[near][None], carry)
        return Model(
            near,
            Z,
            carry.delta,
            carry.u,
            state,
            found.slopes[0],
            int(found.steps[0]),
            bool(found.converged[0]),
        )

    def _nearest(self, kink: Vector, turn: int) -> Index:
        n, q = self.rows.n_rows, self.rows.n_directions
        size = max((NEAR_NEXT if turn else NEAR_FIRST) * q, NEAR_LEAST) * 2 ** max(0, turn - DOUBLING)
        size = min(size, max(NEAR_MOST // q, NEAR_FIRST * q))
        if size >= n:
            return np.arange(n)
        # Zero rows never move and are never near; rows at their kink always are.
        distance = np.full(n, np.inf)
        np.divide(np.abs(self._point.u - kink), self.rows.norms, out=distance, where=self.rows.norms > 0.0)
        size = max(size, np.count_nonzero(distance <= kernel.HOLD_TOL))
        return np.sort(np.argpartition(distance, min(size, n - 1))[:size])

    def _follow(self, model: Model, kink: Vector) -> bool:
        """Go to the minimum of the model, or as far as the surrogate falls. True if they were the same."""
        point, rows, near = self._point, self.rows, model.near
        du = rows.preactivation(model.delta)
        du[near] = model.u - point.u[near]
        u = point.u + du
        right = u > kink
        crossed = right != point.quadratic
        crossed[near] = False
        faithful = not crossed.any()
        step = 1.0 if faithful else min(1.0, self._line_search(kink, du, model.delta))
        point.gamma = point.gamma + step * model.delta
        if step == 1.0:
            point.u, point.quadratic = u, right
            point.quadratic[near] = model.state == kernel.QUADRATIC
            point.held = np.zeros_like(right)
            point.held[near] = model.state == kernel.HELD
        else:
            point.u = point.u + step * du
            point.quadratic = point.u > kink
            point.held = np.zeros_like(right)
        return faithful

    def _line_search(self, kink: Vector, du: Vector, delta: Vector) -> float:
        """Exact minimiser of the surrogate along the way, up to 1."""
        point, rows, y = self._point, self.rows, self.rows.y
        on = point.quadratic
        first = 2.0 * float(((point.u - y) * du) @ on + point.gamma @ rows.ridge @ delta)
        second = 2.0 * float((du * du) @ on + delta @ rows.ridge @ delta)
        # A held row stands at its kink like one on its constant.
        meets = np.flatnonzero(((point.u + du > kink) != on) & (du != 0.0))
        when = np.maximum((kink[meets] - point.u[meets]) / du[meets], 0.0)
        step, _, _ = kernel.line_search(
            when,
            np.arange(meets.size),
            meets.size,
            first,
            second,
            point.u[meets],
            du[meets],
            y[meets],
            np.where(on[meets], kernel.QUADRATIC, kernel.FLAT).astype(np.int8),
        )
        return float(step)

    def _judge(self, model: Model, kink: Vector) -> Judgement:
        """Value, slopes and loss at the point, from the data in one pass."""
        rows, point, near, y = self.rows, self._point, model.near, self.rows.y
        slopes = np.empty(rows.n_rows)
        held = np.flatnonzero(point.held)
        held_slopes = model.slopes[point.held[near]]

        def slope_of(block: slice, u: Vector) -> Vector:
            # Not below 0 where there is a kink: rounding may put u on its wrong side.
            lowest = np.where(kink[block] > -np.inf, 0.0, -np.inf)
            slopes[block] = np.maximum(2.0 * (u - y[block]) * point.quadratic[block], lowest)
            lo, hi = np.searchsorted(held, (block.start, block.stop))
            slopes[held[lo:hi]] = held_slopes[lo:hi]
            return slopes[block]

        point.u, residual = rows.sweep(point.gamma, slope_of)
        residual += 2.0 * rows.ridge @ point.gamma
        sloped = (point.quadratic | point.held) & (kink > -np.inf)
        mended = mend_slopes(model.Z, sloped[near], slopes[near], residual, self._gram + rows.ridge)
        slopes[near] = mended.slopes
        sloped[near] = False
        far_is_weak = bool((slopes < mended.reach * rows.norms)[sloped].any())
        columns = rows.T @ point.gamma
        value = float(pieces.value(point.u, y, kink).sum() + rows.penalty @ np.square(columns))
        fenchel = fenchel_gap(point.u, y, kink, slopes)
        loss = np.inf if far_is_weak else max(fenchel + mended.decrement, 0.0)
        slack = rows.allowance(value, point.gamma, columns, slopes, mended.remainder)
        return Judgement(columns, value, loss, slack, slopes, mended.rho)
