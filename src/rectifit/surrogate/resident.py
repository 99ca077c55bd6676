"""Looks at data in memory: a look costs one product with X, and the Gram matrix follows the rows that change.

The near rows are exactly those nearest to their kinks, relative to their lengths. While no far row changes
sides they stay the same from look to look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit import pieces
from rectifit._typing import Index, Mask, Matrix, Vector
from rectifit.active import ActiveSet, Members
from rectifit.surrogate.band import Near
from rectifit.surrogate.model import Iterate, ModelStep, View
from rectifit.surrogate.near_far import NearFar, Question, SurrogateStart, count_near
from rectifit.surrogate.records import FLAT, HELD, QUADRATIC
from rectifit.surrogate.rows import WorkingRows
from rectifit.surrogate.solution import Answers
from rectifit.tolerances import DRIFT_TOL, HOLD_TOL

__all__ = ["ResidentEngine", "ResidentReader"]

# Near rows per direction in the first look and in the next ones, and numbers in them at most.
FIRST_NEAR_FACTOR = 25
NEXT_NEAR_FACTOR = 20
MAX_NEAR_NUMBERS = 1 << 26


@dataclass(frozen=True, eq=False)
class RowView(View):
    """A view with what the next look at the same surrogate can use again; cross is Z'v over the far rows."""

    near: Near
    u: Vector
    right: Mask
    index: Index
    cross: Vector

    def settled(self) -> RowView:
        """The view itself: the next look uses its near rows again."""
        return self


class ResidentReader:
    """Keeps the Gram matrix of the rows on their quadratic from one look to the next."""

    def __init__(self, rows: WorkingRows) -> None:
        self.rows = rows
        self.coordinates, self.gram, self.ridge = rows.coordinates, rows.gram, rows.ridge
        self.largest, self.n_samples, self.walls = rows.largest, rows.n_rows, rows.walls
        self.total = rows.total
        # Zero rows, which never move, and one over the lengths of the others.
        self._fixed = np.flatnonzero(rows.norms == 0.0)
        self._per_length: Vector = 1.0 / np.where(rows.norms > 0.0, rows.norms, 1.0)
        self.reset()

    def reset(self) -> None:
        """Forget all looks."""
        rows = self.rows
        # Gram matrix and Z'v over the rows in `inside`; to begin with, all: the start is least squares.
        self._gram: Matrix = rows.gram.copy()
        self._cross: Vector = rows.cross.copy()
        self._inside: Mask = np.ones(rows.n_rows, dtype=np.bool_)
        self._peak: Vector = rows.gram.diagonal().copy()
        # The point of the last look and u there; the surrogate and its kinks.
        self._point: tuple[Vector, Vector] | None = None
        self._last_kinks: tuple[ActiveSet, Vector] | None = None
        # Rows that were held at their kink in the last solution.
        self._held: Mask = np.zeros(rows.n_rows, dtype=np.bool_)

    def target(self, active: ActiveSet, gamma: Vector, reach: float, turn: int) -> int:  # noqa: ARG002
        """How many rows are to be near."""
        factor = NEXT_NEAR_FACTOR if turn else FIRST_NEAR_FACTOR
        return count_near(self.rows.n_directions, factor, turn, MAX_NEAR_NUMBERS)

    def zero_target(self, width: float, is_rough: bool) -> None:
        """None: near rows are never smoothed."""

    def look(self, questions: Sequence[Question]) -> list[View]:
        """One look after another."""
        return [self._look(question) for question in questions]

    def share_of_step(self, start: tuple[View, ModelStep], end: tuple[View, ModelStep]) -> float:
        """Where the surrogate is least on the way: an exact line search, as u is known at both ends."""
        # Imported here: the compiler takes longer to load than everything else together.
        from rectifit.preparing import prepare
        from rectifit.surrogate.kernel import line_search

        prepare(line_search)

        (first, last), y = (start[0], end[0]), self.rows.y
        assert isinstance(first, RowView)
        assert isinstance(last, RowView)
        u, du, on = first.u, last.u - first.u, first.right
        gamma, delta = first.at.gamma, last.at.gamma - first.at.gamma
        slope = 2.0 * float(((u - y) * du) @ on + gamma @ self.ridge @ delta)
        curvature = 2.0 * float((du * du) @ on + delta @ self.ridge @ delta)
        meets = np.flatnonzero((last.right != on) & (du != 0.0))
        kink = pieces.inactive_kink(y[meets])
        when = np.maximum((kink - u[meets]) / du[meets], 0.0)
        state = np.where(on[meets], QUADRATIC, FLAT).astype(np.int8)
        share, _, _ = line_search(
            when, np.arange(meets.size), meets.size, slope, curvature, u[meets], du[meets], y[meets], state
        )
        return float(share)

    def slopes(self, view: View, near_slopes: Vector) -> Vector:
        """The dual solution: slopes of all rows at a point, those of the near rows given."""
        assert isinstance(view, RowView)
        slopes = 2.0 * (view.u - self.rows.y) * view.right
        kinked = ~self.rows.data.mask_of(view.at.active)
        # Rounding may put u on the wrong side of its kink.
        slopes[kinked] = np.maximum(slopes[kinked], 0.0)
        slopes[view.index] = near_slopes
        return slopes

    def remember(self, view: View, step: ModelStep) -> None:
        """Keep the rows that a step left at their kinks."""
        assert isinstance(view, RowView)
        self._held = np.zeros(self.n_samples, dtype=np.bool_)
        if step.warm is not None:
            self._held[view.index] = step.warm.warm.state[: view.index.size] == HELD

    def _look(self, question: Question) -> RowView:
        rows, y, gamma = self.rows, self.rows.y, question.gamma
        u, kink = self._preactivation(gamma), self._kinks(question.active)
        right = u > kink
        # Relative to the length of the row; infinite for zero rows, as it is for rows without a kink.
        distance = np.abs(u - kink)
        is_held = distance <= HOLD_TOL
        distance *= self._per_length
        distance[self._fixed] = np.inf
        residual = u * right - y
        penalty = float(rows.penalty @ np.square(rows.T @ gamma))
        at = Iterate(question.active, gamma, float(residual @ residual) + penalty, math.nan)
        last = None if question.last is None else question.last[0]
        if question.last is not None:
            self.remember(*question.last)
        if isinstance(last, RowView) and self._is_same_model(last, right, distance, question.target):
            index, Z, gram, cross = last.index, last.near.Z, last.gram, last.cross
            right_gram = None
        else:
            index = self._nearest(distance, question.target)
            Z = rows.rows(index)
            self._update_gram(right)
            present = Z[right[index]]
            right_gram = self._gram + self.ridge
            gram = right_gram - present.T @ present
            cross = self._cross - y[index][right[index]] @ present
        held = (self._held & is_held)[index]
        # Far rows on their constant have slope 0 and stay feasible wherever they are.
        distance[index] = np.inf
        margin = float(distance.min(initial=np.inf, where=right))
        return RowView(
            at,
            slope=2.0 * (gram @ gamma - cross),
            gram=gram,
            margin=margin,
            width=np.inf,
            near=Near(Z, y[index], u[index]),
            right_gram=right_gram,
            held=held,
            band=None,
            u=u,
            right=right,
            index=index,
            cross=cross,
        )

    def _kinks(self, active: ActiveSet) -> Vector:
        """The kinks of all rows, kept for the next look at the same surrogate."""
        if self._last_kinks is None or self._last_kinks[0] is not active:
            self._last_kinks = active, pieces.kinks(self.rows.y, self.rows.data.mask_of(active))
        return self._last_kinks[1]

    def _preactivation(self, gamma: Vector) -> Vector:
        if self._point is None or self._point[0] is not gamma:
            self._point = gamma, self.rows.preactivation(gamma)
        return self._point[1]

    @staticmethod
    def _is_same_model(last: RowView, right: Mask, distance: Vector, n_wanted: int) -> bool:
        """Whether no far row has changed sides, or come to its kink from the right, since the last look."""
        changed = (right != last.right) | ((distance <= HOLD_TOL) & right)
        changed[last.index] = False
        is_enough = last.index.size >= n_wanted or last.margin == np.inf
        return is_enough and not changed.any()

    @staticmethod
    def _nearest(distance: Vector, n_wanted: int) -> Index:
        """The rows nearest to their kinks, and all that are at their kink."""
        n_wanted = max(n_wanted, int(np.count_nonzero(distance <= HOLD_TOL)))
        n_kinked = int(np.count_nonzero(distance < np.inf))
        if n_wanted >= n_kinked:
            return np.flatnonzero(distance < np.inf)
        return np.sort(np.argpartition(distance, n_wanted)[:n_wanted])

    def _update_gram(self, inside: Mask) -> None:
        """Gram matrix and Z'v over `inside`: by the rows that differ, or anew if that is less work."""
        changed = np.flatnonzero(inside != self._inside)
        anew = bool(2 * changed.size > np.count_nonzero(inside))
        if not anew and changed.size:
            self._add(changed, np.where(inside[changed], 1.0, -1.0))
            # Where most of the matrix was subtracted again, what is left has lost too many digits.
            anew = bool((self._gram.diagonal() < DRIFT_TOL * self._peak).any())
        if anew:
            self._gram = np.zeros_like(self._gram)
            self._cross = np.zeros_like(self._cross)
            self._peak = np.zeros_like(self._peak)
            self._add(np.flatnonzero(inside), None)
        self._inside = inside

    def _add(self, index: Index, sign: Any) -> None:
        """Add these rows, or subtract them."""
        gram, cross = self.rows.gram_of(index, sign)
        self._gram = self._gram + gram
        self._cross = self._cross + cross
        np.maximum(self._peak, self._gram.diagonal(), out=self._peak)


class ResidentEngine:
    """Minimises surrogates of data in memory one after another, each from the minimum before it."""

    batch = 1

    def __init__(self, rows: WorkingRows) -> None:
        self.rows = rows
        self._reader = ResidentReader(rows)
        self._engine = NearFar(self._reader)
        self._gamma = rows.least_squares()

    def reset(self) -> None:
        """Begin the next solve at least squares, where the first one begins."""
        self._reader.reset()
        self._gamma = self.rows.least_squares()

    def restart(self, gamma: Vector) -> None:
        """Begin the next solve at gamma; the Gram matrix stays."""
        self._gamma = np.array(gamma)

    def solve(self, actives: Mask) -> Answers:
        """One answer per line of `actives` (positive samples only)."""
        return Answers(*(np.array(column) for column in zip(*map(self._solve, actives), strict=True)))

    def _solve(self, active: Mask) -> tuple[Vector, float, float, Vector, int, bool, Vector]:
        (found,) = self._engine.solve([Members(active)], [SurrogateStart(self._gamma)])
        self._gamma = found.at.gamma
        self._reader.remember(found.view, found.step)
        slopes = self._reader.slopes(found.view, found.step.near_slopes)
        scale, walls = self.rows.scale, self.rows.walls
        columns = self.rows.T @ found.at.gamma
        if walls is not None:
            columns = walls.at_bounds(columns)
        value, bound = found.at.value * scale * scale, (found.at.value - found.loss) * scale * scale
        return columns * scale, value, bound, slopes, found.n_steps, found.converged, found.step.wall_slopes
