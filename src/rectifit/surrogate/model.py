"""What was seen of a surrogate at a point, and the way from there to the minimum of its model.

A row far from its kink stays on its piece for a while, and all far rows together are one quadratic. With few
near rows the model

    (quadratic of the far rows) + sum over near rows of piece_i

is minimised exactly by the compiled kernel. With too many, a Newton step is made on the surrogate with
smoothed kinks. The slopes at the end of either are a dual vector for the point that was read, whose bound is
that of `rectifit.bounds`.
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
from rectifit.surrogate.records import FLAT, HELD, QUADRATIC, PieceProblem, WarmState

__all__ = ["BandSums", "Iterate", "ModelStep", "View", "step_from"]


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

    def settled(self) -> View:
        """What is kept after the step from the point: nothing that is as large as the near rows."""
        return replace(self, near=None, band=None)


class ModelStep(NamedTuple):
    """The way to the minimum of the model, a slope of F_I at the point, and what the bound loses there.

    near_slopes are those of the near rows at the end of the way; n_steps counts steps of the kernel; warm is
    the state in which the kernel ended, where the next look may have the same near rows.
    """

    delta: Vector
    slope: Vector
    loss: float
    remainder: float
    is_exact: bool
    near_slopes: Vector
    n_steps: int
    warm: tuple[PieceProblem, WarmState] | None


def step_from(view: View, last: ModelStep | None = None, fine: float = 0.0) -> ModelStep:
    """The step to the minimum of the model.

    `last` is the step before, from the same surrogate. If its slopes already prove the point minimal, up to a
    loss of `fine`, the model is not minimised again.
    """
    if view.near is None or (view.near.v.size == 0 and view.band is not None):
        return _smooth_step(view)
    return _exact_step(view, view.near, last, fine)


def _exact_step(view: View, near: Near, last: ModelStep | None, fine: float) -> ModelStep:
    """Minimise far quadratic plus near pieces."""
    # Imported here: the compiler takes longer to load than everything else together.
    from rectifit.preparing import prepare
    from rectifit.surrogate.descent import descend
    from rectifit.surrogate.kernel import minimise

    prepare(minimise)

    Z, v, u = near
    kink = pieces.inactive_kink(v)
    slope = view.slope + pieces.slope(u, v, kink) @ Z
    known = None if last is None else last.warm
    if last is not None and known is not None and known[0].Z is Z and known[0].curvature is view.gram:
        # The same rows are near and the far rows have not changed: only the point has moved.
        loss, remainder = _loss(view, last.near_slopes @ Z, fenchel_gap(u, v, kink, last.near_slopes))
        if loss <= fine:
            still = np.zeros_like(view.slope)
            return ModelStep(still, slope, loss, remainder, True, last.near_slopes, 0, known)
        problem = known[0]._replace(u0=u, slope=view.slope[None])
        warm = known[1]._replace(delta=np.zeros_like(view.slope), u=u.copy())
    else:
        norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        problem = PieceProblem(Z, np.ascontiguousarray(Z.T), norms, v, u, view.slope[None], view.gram)
        warm = _first_state(view, Z, u, kink)
    found = descend(problem, kink[None], warm)
    slopes = np.maximum(found.slopes[0], 0.0)
    loss, remainder = _loss(view, slopes @ Z, fenchel_gap(u, v, kink, slopes))
    n_steps = int(found.steps[0])
    kept = None if view.held is None else (problem, warm)
    return ModelStep(found.deltas[0], slope, loss, remainder, True, slopes, n_steps, kept)


def _first_state(view: View, Z: Matrix, u: Vector, kink: Vector) -> WarmState:
    """States of the near rows at the point, and the Gram matrix that belongs to them."""
    right, q = u > kink, view.slope.size
    state = np.where(right, QUADRATIC, FLAT).astype(np.int8)
    if view.held is not None:
        state[view.held] = HELD
    known = view.right_gram is not None
    # Held rows count like those on their quadratic.
    present = Z[(state != FLAT) & ~right] if known else Z[state != FLAT]
    gram = (view.right_gram if known else view.gram) + present.T @ present
    return WarmState(np.zeros(q), u.copy(), state, gram, np.zeros(q))


def _smooth_step(view: View) -> ModelStep:
    """A Newton step with the near rows smoothed; exact where there are none."""
    assert view.band is not None
    slope = view.slope + view.band.slope
    delta = -0.5 * solve_gram(view.gram + view.band.gram, slope)
    loss, remainder = math.inf, 0.0
    if view.band.is_complete:
        loss, remainder = _loss(view, view.band.slope, view.band.gap)
    return ModelStep(delta, slope, loss, remainder, view.near is not None, np.empty(0), 1, None)


def _loss(view: View, near_slope: Vector, near_gap: float) -> tuple[float, float]:
    """How far the minimum can lie below the value that was read, and what of that is only rounding.

    Slopes of near rows are kept as they are, and may be those at another point, at the price of their Fenchel
    gaps. Only slopes of far rows, which are those at the point, are moved, and so far that the sum of all
    vanishes: the set Q of `rectifit.bounds` are the far rows. A far row with a kink has a slope of at least
    2 margin |z|, so it stays feasible while |v| <= 2 margin.
    """
    rho = view.slope + near_slope
    v = solve_gram(view.gram, rho)
    decrement, remainder = residual_cost(view.gram, rho, v)
    is_feasible = float(np.linalg.norm(v)) <= 2.0 * view.margin
    return max(near_gap + float(decrement), 0.0) if is_feasible else math.inf, float(remainder)
