"""What was seen of a surrogate at a point, and the way from there to the minimum of its model.

A row far from its kink stays on its piece for a while, and all far rows together are one quadratic. With few
near rows the model

    (quadratic of the far rows) + sum over near rows of piece_i

is minimised exactly by the compiled kernel. With too many, a Newton step is made on the surrogate with
smoothed kinks. The slopes at the end of either are a dual vector for the point that was read, whose bound is
that of `rectifit.bounds`. Constraints are rows of both models (see `rectifit.surrogate.walls`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rectifit import pieces
from rectifit._typing import Mask, Matrix, Vector
from rectifit.active import ActiveSet
from rectifit.bounds import fenchel_gap, residual_cost, solve_gram
from rectifit.surrogate.band import Near
from rectifit.surrogate.records import FLAT, HELD, QUADRATIC, Minima, PieceProblem, WarmState
from rectifit.surrogate.walls import Walls

__all__ = ["BandSums", "Iterate", "ModelStep", "View", "WarmModel", "step_from"]


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point that was looked at, in working units.

    Attributes
    ----------
    active, gamma : of which surrogate, and where
    value, objective : F_I and L there; L is NaN where only the surrogate is looked at
    fingerprints : of the active set and of the one at the point, where they were asked for
    """

    active: ActiveSet
    gamma: Vector
    value: float
    objective: float
    fingerprints: tuple[int, int] | None = None

    @property
    def repeats(self) -> bool:
        """Whether the active set at the point is known to be the surrogate's own."""
        return self.fingerprints is not None and self.fingerprints[0] == self.fingerprints[1]


class BandSums(NamedTuple):
    """Slope, curvature and Fenchel gap of the near rows with their kinks smoothed over a width.

    Where they are not of all near rows, neither are those of the far rows, and no bound follows from them.
    """

    slope: Vector
    gram: Matrix
    gap: float
    is_complete: bool


@dataclass(frozen=True, eq=False)
class View:
    """What a look at a point has shown; slope and Gram matrix are those of far rows and ridge.

    Attributes
    ----------
    margin : far rows on the quadratic right of a kink are away from it by at least this multiple of their
        length
    width : the same as a distance
    near : the near rows, or None where they are too many
    right_gram : Gram matrix and ridge of all rows on their quadratic, where it is known
    held : near rows that are likely to be held at their kink, where that is known
    band : the near rows smoothed, where that was asked for
    """

    at: Iterate
    slope: Vector
    gram: Matrix
    margin: float
    width: float
    near: Near | None
    right_gram: Matrix | None
    held: Mask | None
    band: BandSums | None

    @property
    def size(self) -> float:
        """The largest diagonal entry of the Gram matrix of all rows from which near ones were subtracted."""
        near = 0.0 if self.near is None else np.square(self.near.Z).sum(axis=0).max(initial=0.0)
        return float(self.gram.diagonal().max(initial=0.0) + near)

    def settled(self) -> View:
        """What is kept after the step from the point: nothing that is as large as the near rows."""
        return replace(self, near=None, band=None)


class WarmModel(NamedTuple):
    """A model that was minimised, of which the next look may see the same near rows, and the last state."""

    near: Matrix
    problem: PieceProblem
    warm: WarmState


class ModelStep(NamedTuple):
    """The way to the minimum of the model, a slope of F_I at the point, and what the bound loses there.

    near_slopes and wall_slopes are those of near rows and constraints at the end of the way; n_steps counts
    steps of the kernel.
    """

    delta: Vector
    slope: Vector
    loss: float
    remainder: float
    is_exact: bool
    near_slopes: Vector
    wall_slopes: Vector
    n_steps: int
    warm: WarmModel | None


def step_from(
    view: View, walls: Walls | None = None, last: ModelStep | None = None, fine: float = 0.0
) -> ModelStep:
    """The step to the minimum of the model.

    `last` is the step before, from the same surrogate. If its slopes already prove the point minimal, up to a
    loss of `fine`, the model is not minimised again.
    """
    if view.near is None or (view.near.v.size == 0 and view.band is not None):
        return _smooth_step(view, walls)
    return _exact_step(view, view.near, walls, last, fine)


def _exact_step(
    view: View, near: Near, walls: Walls | None, last: ModelStep | None, fine: float
) -> ModelStep:
    """Minimise far quadratic plus near pieces."""
    Z, v, u = near
    kink = pieces.inactive_kink(v)
    slope = view.slope + pieces.slope(u, v, kink) @ Z
    at_walls = np.zeros(0) if walls is None else walls.rows @ view.at.gamma
    known = None if last is None else last.warm
    if last is not None and known is not None and known.near is Z and known.problem.curvature is view.gram:
        # The same rows are near and the far rows have not changed: only the point has moved.
        gap, near_slope = fenchel_gap(u, v, kink, last.near_slopes), last.near_slopes @ Z
        loss, remainder = _loss(view, near_slope, gap, walls, at_walls, last.wall_slopes)
        if loss <= fine:
            still = np.zeros_like(view.slope)
            return ModelStep(
                still, slope, loss, remainder, True, last.near_slopes, last.wall_slopes, 0, known
            )
        u_all = np.append(u, at_walls)
        problem = known.problem._replace(u0=u_all, slope=view.slope[None])
        warm = known.warm._replace(delta=np.zeros_like(view.slope), u=u_all.copy())
    else:
        problem = _problem(view.slope, view.gram, Z, v, u, walls, at_walls)
        warm = _first_state(view, problem, kink, walls)
    found = _descend(problem, kink, walls, warm)
    slopes = found.slopes[0]
    near_slopes, wall_slopes = np.maximum(slopes[: v.size], 0.0), slopes[v.size :]
    gap = fenchel_gap(u, v, kink, near_slopes)
    loss, remainder = _loss(view, near_slopes @ Z, gap, walls, at_walls, wall_slopes)
    n_steps = int(found.steps[0])
    kept = None if view.held is None else WarmModel(Z, problem, warm)
    return ModelStep(found.deltas[0], slope, loss, remainder, True, near_slopes, wall_slopes, n_steps, kept)


def _problem(
    slope: Vector, gram: Matrix, Z: Matrix, v: Vector, u: Vector, walls: Walls | None, at_walls: Vector
) -> PieceProblem:
    """A quadratic with the pieces of rows, and constraints after them."""
    norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    if walls is not None:
        Z, norms = np.vstack([Z, walls.rows]), np.append(norms, np.ones(walls.size))
        v, u = np.append(v, walls.outcomes), np.append(u, at_walls)
    return PieceProblem(Z, np.ascontiguousarray(Z.T), norms, v, u, slope[None], gram)


def _descend(problem: PieceProblem, kink: Vector, walls: Walls | None, warm: WarmState) -> Minima:
    # Imported here: the compiler takes longer to load than everything else together.
    from rectifit.preparing import prepare
    from rectifit.surrogate.descent import descend
    from rectifit.surrogate.kernel import minimise

    prepare(minimise)
    kinks = kink if walls is None else np.append(kink, walls.kinks)
    return descend(problem, kinks[None], warm)


def _first_state(view: View, problem: PieceProblem, kink: Vector, walls: Walls | None) -> WarmState:
    """States of the near rows and the constraints at the point, and the Gram matrix that belongs to them."""
    n, u, Z = kink.size, problem.u0, problem.Z[: kink.size]
    right, q = u[:n] > kink, view.slope.size
    state = np.where(right, QUADRATIC, FLAT).astype(np.int8)
    if view.held is not None:
        state[view.held] = HELD
    known = view.right_gram is not None
    # Held rows count like those on their quadratic.
    present = Z[(state != FLAT) & ~right] if known else Z[state != FLAT]
    gram = (view.right_gram if known else view.gram) + present.T @ present
    if walls is not None:
        states = walls.first_states(u[n:])
        held = walls.rows[states == HELD]
        state, gram = np.append(state, states), gram + held.T @ held
    return WarmState(np.zeros(q), u.copy(), state, gram, np.zeros(q))


def _smooth_step(view: View, walls: Walls | None) -> ModelStep:
    """A Newton step with the near rows smoothed, within the constraints; exact where there are none near."""
    assert view.band is not None
    slope, gram = view.slope + view.band.slope, view.gram + view.band.gram
    at_walls, wall_slopes, n_steps = np.zeros(0), np.zeros(0), 1
    if walls is None:
        delta = -0.5 * solve_gram(gram, slope)
    else:
        at_walls, nothing = walls.rows @ view.at.gamma, np.zeros(0)
        problem = _problem(slope, gram, np.zeros((0, slope.size)), nothing, nothing, walls, at_walls)
        states = walls.first_states(at_walls)
        held = walls.rows[states == HELD]
        warm = WarmState(
            np.zeros(slope.size), at_walls.copy(), states, gram + held.T @ held, np.zeros(slope.size)
        )
        found = _descend(problem, nothing, walls, warm)
        delta, wall_slopes, n_steps = found.deltas[0], found.slopes[0], int(found.steps[0])
    loss, remainder = math.inf, 0.0
    if view.band.is_complete:
        loss, remainder = _loss(view, view.band.slope, view.band.gap, walls, at_walls, wall_slopes)
    return ModelStep(
        delta, slope, loss, remainder, view.near is not None, np.empty(0), wall_slopes, n_steps, None
    )


def _loss(
    view: View, near_slope: Vector, gap: float, walls: Walls | None, at_walls: Vector, wall_slopes: Vector
) -> tuple[float, float]:
    """How far the minimum can lie below the value that was read, and what of that is only rounding.

    Slopes of near rows and constraints are kept as they are, and may be those at another point, at the price
    of their Fenchel gaps. Only slopes of far rows, which are those at the point, are moved, and so far that
    the sum of all vanishes: the set Q of `rectifit.bounds` are the far rows. A far row with a kink has a
    slope of at least 2 margin |z|, so it stays feasible while |v| <= 2 margin.
    """
    rho = view.slope + near_slope
    if walls is not None:
        rho, gap = rho + wall_slopes @ walls.rows, gap + walls.gap(at_walls, wall_slopes)
    v = solve_gram(view.gram, rho, view.size)
    decrement, remainder = residual_cost(view.gram, rho, v)
    is_feasible = float(np.linalg.norm(v)) <= 2.0 * view.margin
    return max(gap + float(decrement), 0.0) if is_feasible else math.inf, float(remainder)
