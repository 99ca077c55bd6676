"""Curvature transfer: choose the c of all samples that maximises the bound.

The bound LB(c) = min_b R_c(b) is concave in c, because for fixed b every e_i(u; c_i) is. Where u_i lies on
the chord from a_i to t_i of its envelope, or on the line's continuation,

    d LB / d c_i = (u_i - a_i)(t_i - u_i),

and 0 elsewhere. A barrier keeps C(c) = ridge - sum_i c_i z_i z_i' positive definite: projected L-BFGS
maximises

    LB(c) + mu log det C(c)

for shrinking mu. Samples that are not FREE have c <= 0, where LB has a kink. Every bound on the way is valid,
and every few steps the region shrinks by the ellipsoid of the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from rectifit._typing import Mask, Vector
from rectifit.certificate.envelope import FAR_FREE, FAR_ON, FREE, ON, SLAB
from rectifit.certificate.records import Samples
from rectifit.certificate.relaxation import Bound, Region, Relaxation, Start
from rectifit.certificate.tighten import shrink_by_ellipsoid

__all__ = ["Ascent", "Transfer", "first_transfer"]

# The least and the largest c: no sample lends all of its curvature.
MIN_TRANSFER = -0.98
MAX_TRANSFER = 50.0
# The first c of samples that are ON, and of others with a lower end.
FIRST_TRANSFER_ON = -0.3
FIRST_TRANSFER = -0.002
# Steps that L-BFGS remembers.
MEMORY_SIZE = 10
# A stage ends after so many steps in a row that each gain less than this share of the room that is left.
MIN_GAIN = 0.002
MAX_SMALL_GAINS = 2
# The room is taken to be no smaller than this share of the cutoff.
MIN_ROOM_SHARE = 1e-7
# Between the ends of stages the region shrinks after so many steps.
STEPS_PER_TIGHTENING = 5
# From one stage to the next the barrier shrinks by this factor.
BARRIER_FACTOR = 0.15
# Backtracking: tries, factor of the length, and share of the promised gain that a step must keep.
MAX_BACKTRACKS = 8
BACKTRACK_FACTOR = 0.3
ARMIJO_SHARE = 1e-4
# Distances from the limits of c within which it stays at the limit.
LOW_LIMIT_TOL = 1e-9
HIGH_LIMIT_TOL = 1e-12
# The largest change of c in a step along the gradient.
GRADIENT_STEP = 0.05
# Pairs of steps with less curvature are not remembered.
MIN_STEP_CURVATURE = 1e-14
# How often all samples are looked at in an evaluation.
EVALUATION_LOOKS = 50


class Evaluation(NamedTuple):
    """The bound at c, the barrier function and its gradient."""

    c: Vector
    bound: Bound
    objective: float
    gradient: Vector


@dataclass
class Ascent:
    """Where the ascent ended: the best bound, its c, and whether nothing better than the cutoff is left."""

    c: Vector
    best: Bound
    closed: bool = False

    def keep(self, here: Evaluation) -> None:
        """Remember a bound if it is the best so far."""
        if here.bound.value > self.best.value:
            self.best, self.c = here.bound, here.c


def can_lend(region: Region) -> Mask:
    """Rows whose loss less some curvature has an envelope: those with a lower end, slabs with both ends."""
    has_end = (region.l > -np.inf) & ((region.kind != SLAB) | np.isfinite(region.U))
    return np.asarray((region.kind == ON) | has_end)


def first_transfer(region: Region) -> Vector:
    """A c with which C is positive definite: samples that are ON lend a third, all others very little."""
    others = np.where(can_lend(region), FIRST_TRANSFER, 0.0)
    return np.where(region.kind == ON, FIRST_TRANSFER_ON, others)


@dataclass
class Transfer:
    """The ascent for one set of data.

    `seen` is called with points that may be better solutions, `spend` with how often all samples were looked
    at.
    """

    samples: Samples
    seen: Callable[[Vector], None]
    is_over: Callable[[], bool]
    spend: Callable[[int], None] = lambda _: None

    def ascend(
        self, region: Region, c: Vector, start: Start, cutoff: float, mu: float, mu_end: float, max_steps: int
    ) -> Ascent:
        """Maximise the bound, and shrink the region on the way."""
        here = self._evaluate_within(region, c, start, mu)
        result = Ascent(c, Bound(-np.inf, start.b, self.samples.Z @ start.b, None, start.b, start))
        if here is None:
            return result
        result.keep(here)
        small, memory = 0, Memory()
        for step in range(1, max_steps + 1):
            if result.best.value >= cutoff or self.is_over():
                break
            there = self._step(region, here, memory, mu)
            if there is None:
                # Try the gradient next; if this step was along the gradient already, the stage ends.
                stage_ends, memory = memory.is_empty(), Memory()
            else:
                room = max(cutoff - result.best.value, MIN_ROOM_SHARE * abs(cutoff))
                small = small + 1 if there.objective - here.objective < MIN_GAIN * room else 0
                stage_ends, here = small >= MAX_SMALL_GAINS, there
                result.keep(here)
            stage_ends = stage_ends or step == max_steps
            if not stage_ends and step % STEPS_PER_TIGHTENING != 0:
                continue
            settled = shrink_by_ellipsoid(region, self.samples.Z, here.bound, cutoff)
            if settled < 0:
                result.closed = True
                return result
            if stage_ends:
                self.seen(here.bound.b)
                if mu <= mu_end:
                    break
                mu, small = mu * BARRIER_FACTOR, 0
            if stage_ends or settled > 0:
                memory = Memory()
            again = self._evaluate_within(region, here.c, here.bound.start, mu)
            if again is None:
                break
            here = again
            result.keep(here)
        result.closed = result.best.value >= cutoff
        return result

    def _evaluate_within(self, region: Region, c: Vector, start: Start, mu: float) -> Evaluation | None:
        return self._evaluate(region, np.clip(c, *self._limits(region)), start, mu)

    @staticmethod
    def _limits(region: Region) -> tuple[Vector, Vector]:
        lends = can_lend(region)
        low = np.where(lends, np.where(region.kind == SLAB, -MAX_TRANSFER, MIN_TRANSFER), 0.0)
        borrows = (region.kind == FREE) | (region.kind == FAR_FREE)
        return low, np.where(borrows, MAX_TRANSFER, 0.0)

    def _evaluate(self, region: Region, c: Vector, start: Start, mu: float) -> Evaluation | None:
        self.spend(EVALUATION_LOOKS)
        relaxation = Relaxation(self.samples, region, c)
        try:
            factor = np.linalg.cholesky(relaxation.C)
        except np.linalg.LinAlgError:
            return None
        bound = relaxation.minimise(start)
        if bound.value == -np.inf:
            return None
        W = solve_triangular(factor, self.samples.Z.T, lower=True, check_finite=False)
        barrier = 2.0 * float(np.log(factor.diagonal()).sum())
        gradient = self._slope(relaxation, bound.u) - mu * np.einsum("ij,ij->j", W, W)
        return Evaluation(c, bound, bound.value + mu * barrier, gradient)

    @staticmethod
    def _slope(relaxation: Relaxation, u: Vector) -> Vector:
        """d LB / d c."""
        env, kind = relaxation.envelopes, relaxation.region.kind
        goes_on = (env.left == 0.0) | (kind == SLAB) | (kind == FAR_ON)
        on_line = (env.has_chord > 0.0) & ((u > env.a) | goes_on) & ((u < env.t) | (kind > ON))
        end = np.where((kind == FAR_FREE) & (env.slope < 0.0), 0.0, env.t)
        return np.where(on_line, (u - env.a) * (end - u), 0.0)

    def _step(self, region: Region, here: Evaluation, memory: Memory, mu: float) -> Evaluation | None:
        """One step of projected L-BFGS with backtracking; None if nothing higher was found."""
        g, c = here.gradient, here.c
        low, high = self._limits(region)
        free = ~(((c <= low + LOW_LIMIT_TOL) & (g < 0.0)) | ((c >= high - HIGH_LIMIT_TOL) & (g > 0.0)))
        direction = memory.direction(np.where(free, g, 0.0), free)
        length = 1.0
        for _ in range(MAX_BACKTRACKS):
            trial = np.clip(c + length * direction, low, high)
            there = self._evaluate(region, trial, here.bound.start, mu)
            if there is not None and there.objective >= here.objective + ARMIJO_SHARE * float(
                g @ (trial - c)
            ):
                memory.add(trial - c, g - there.gradient)
                return there
            if self.is_over():
                return None
            length *= BACKTRACK_FACTOR
        return None


class Memory:
    """The last steps of L-BFGS and the changes of the gradient along them."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Vector, Vector, float]] = []

    def is_empty(self) -> bool:
        return not self._pairs

    def add(self, step: Vector, change: Vector) -> None:
        product = float(step @ change)
        if product > MIN_STEP_CURVATURE:
            self._pairs = [*self._pairs[1 - MEMORY_SIZE :], (step, change, 1.0 / product)]

    def direction(self, g: Vector, free: Mask) -> Vector:
        """A direction of ascent: the two-loop recursion, or the gradient at a cautious length."""
        largest = float(np.abs(g).max(initial=0.0))
        cautious = g * (GRADIENT_STEP / largest if largest > 0.0 else 0.0)
        if not self._pairs:
            return cautious
        q, shares = g.copy(), []
        for step, change, inverse in reversed(self._pairs):
            share = inverse * float(step @ q)
            shares.append(share)
            q -= share * change
        _, change, inverse = self._pairs[-1]
        q /= inverse * float(change @ change)
        for (step, change, inverse), share in zip(self._pairs, reversed(shares), strict=True):
            q += (share - inverse * float(change @ q)) * step
        q = np.where(free, q, 0.0)
        return q if float(q @ g) > 0.0 else cautious
