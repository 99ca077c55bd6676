"""What a pass has seen of one surrogate, and the way from there to the minimum of its model.

With few near rows the model, (far quadratic) + (near pieces), is minimised exactly by the compiled kernel.
With too many, a Newton step is made on the surrogate with smoothed kinks. The slopes at the end of either are
a dual vector for the point that was read, whose bound is in `rectifit.surrogate.bound`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rectifit import pieces
from rectifit._typing import Matrix, Vector
from rectifit.problem import ROUNDING
from rectifit.scale.band import Near
from rectifit.scale.problem import BlockProblem
from rectifit.scale.sweep import Probe, Rule, Swept
from rectifit.surrogate.bound import allowance, fenchel_gap, solve_gram

__all__ = ["Found", "Step", "View", "rounding_of", "see", "step_from", "view_of"]


@dataclass(frozen=True, eq=False)
class Found:
    """The minimum of a surrogate, in working units.

    Attributes
    ----------
    rule, gamma : of which active set, and where
    value, loss : F_I there, and how far its minimum can lie below
    objective : L there
    largest : largest |u|
    n_changed : see `rectifit.scale.sweep.Swept`
    converged : whether value and bound agree
    ahead : what the last pass has seen of the surrogate that the iterative method goes on with from here
    """

    rule: Rule
    gamma: Vector
    value: float
    loss: float
    objective: float
    largest: float
    n_changed: int
    converged: bool
    ahead: View | None = None

    @property
    def zero(self) -> float:
        """Less than this of u counts as 0."""
        return ROUNDING * self.largest


def see(problem: BlockProblem, probe: Probe, swept: Swept, line: int) -> Found:
    """A point that a pass has looked at, of which no loss is known yet."""
    penalty = problem.penalty_at(probe.gamma)
    return Found(
        probe.rule,
        probe.gamma,
        value=float(swept.values[line]) + penalty,
        loss=math.inf,
        objective=float(swept.objectives[line]) + penalty,
        largest=float(swept.largest[line]),
        n_changed=int(swept.n_changed[line]),
        converged=False,
    )


@dataclass(frozen=True)
class View:
    """What a pass has seen of one surrogate; slope and Gram matrix include the ridge."""

    seen: Found
    width: float
    slope: Vector
    gram: Matrix
    band_slope: Vector
    band_gram: Matrix
    band_gap: float
    near: Near | None


class Step(NamedTuple):
    """The way to the minimum of the model, a slope of F_I at the point, and what the bound loses there."""

    delta: Vector
    slope: Vector
    loss: float
    remainder: float
    is_exact: bool


def view_of(problem: BlockProblem, probe: Probe, swept: Swept, far: Matrix, line: int) -> View:
    """What the pass has seen of one surrogate."""
    gram = far[:-1, :-1] + problem.ridge
    return View(
        see(problem, probe, swept, line),
        probe.width,
        2.0 * (gram @ probe.gamma - far[:-1, -1]),
        gram,
        2.0 * swept.band_slopes[line],
        swept.band_grams[line],
        float(swept.band_gaps[line]),
        swept.near_rows(line, probe.gamma.size),
    )


def step_from(view: View, reach: float) -> Step:
    """The step to the minimum of the model; `reach` is the length of the longest row."""
    if view.near is None or view.near.v.size == 0:
        return _smooth_step(view, reach)
    return _exact_step(view, view.near, reach)


def _exact_step(view: View, near: Near, reach: float) -> Step:
    """Minimise far quadratic plus near pieces."""
    Z, v, u = near
    # Imported here: the compiler takes longer to load than everything else together.
    from rectifit.surrogate import kernel
    from rectifit.surrogate.descent import Carry, Terrain, descend

    q, kink = view.slope.size, 2.0 * np.maximum(v, 0.0)
    right = u > kink
    norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    terrain = Terrain(Z, np.ascontiguousarray(Z.T), norms, v, u, view.slope[None], view.gram)
    state = np.where(right, kernel.QUADRATIC, kernel.FLAT).astype(np.int8)
    carry = Carry(np.zeros(q), u.copy(), state, view.gram + Z[right].T @ Z[right], np.zeros(q))
    found = descend(terrain, kink[None], carry)
    slopes = np.maximum(found.slopes[0], 0.0)
    loss, remainder = _loss(view, slopes @ Z, fenchel_gap(u, v, kink, slopes), reach)
    slope = view.slope + pieces.slope(u, v, kink) @ Z
    return Step(found.deltas[0], slope, loss, remainder, True)


def _smooth_step(view: View, reach: float) -> Step:
    """A Newton step with the near rows smoothed; exact where there are none."""
    slope = view.slope + view.band_slope
    delta = -0.5 * solve_gram(view.gram + view.band_gram, slope)
    loss, remainder = _loss(view, view.band_slope, view.band_gap, reach)
    return Step(delta, slope, loss, remainder, view.near is not None)


def _loss(view: View, near_slope: Vector, near_gap: float, reach: float) -> tuple[float, float]:
    """How far the minimum can lie below the value that was read, and what of that is only rounding.

    Slopes of near rows are kept as they are, and may be those at another point, at the price of their Fenchel
    gaps. Only slopes of far rows, which are those at the point, are moved, and so far that the sum of all
    vanishes: the set Q of `rectifit.surrogate.bound` are the far rows.
    """
    rho = view.slope + near_slope
    v = solve_gram(view.gram, rho)
    is_safe = float(np.linalg.norm(v)) * reach <= 2.0 * view.width
    loss = max(near_gap + 0.25 * float(rho @ v), 0.0) if is_safe else math.inf
    return loss, float(np.abs(rho - view.gram @ v).sum())


def rounding_of(problem: BlockProblem, seen: Found, step: Step) -> float:
    """What the bound gives away for rounding; the sum of n slopes is at most 2 sqrt(n F)."""
    columns = np.abs(problem.frame.T @ seen.gamma)
    n, q = problem.n_samples, seen.gamma.size
    extent = float(columns @ problem.survey.largest)
    size = float(np.linalg.norm(seen.gamma))
    return allowance(n, seen.value, q, extent, 2.0 * math.sqrt(n * seen.value), step.remainder, size)
