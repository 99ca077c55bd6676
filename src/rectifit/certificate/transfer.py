"""Curvature transfer: choose the c of all samples that maximises the bound.

The bound LB(c) = min_b R_c(b) is concave in c, because for fixed b every e_i(u; c_i) is. Where u_i lies on
the chord from a_i to t_i of its envelope, or on the line's continuation,

    d LB / d c_i = (u_i - a_i)(t_i - u_i),

and 0 elsewhere. A barrier keeps C(c) = ridge - sum_i c_i z_i z_i' positive definite: projected L-BFGS
maximises

    LB(c) + mu log det C(c)

for shrinking mu. Samples that are not FREE have c <= 0, where LB has a kink. Every bound on the way is valid,
and every few steps the region shrinks by the ellipsoid of the bound. The loops are those of ascent_kernel.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rectifit._typing import Vector
from rectifit.certificate import ascent_kernel
from rectifit.certificate.envelope import LIMIT, ON, SLAB
from rectifit.certificate.records import (
    BEST,
    EVALUATIONS,
    SEEN,
    AscentState,
    AscentWork,
    KernelRows,
    Region,
    Samples,
)
from rectifit.preparing import prepare

__all__ = ["Ascent", "Transfer", "first_transfer"]

# The first c of samples that are ON, and of others with a lower end.
FIRST_TRANSFER_ON = -0.3
FIRST_TRANSFER = -0.002
# How often all samples are looked at in an evaluation.
EVALUATION_LOOKS = 12
# Evaluations between two notes.
NOTED_EVALUATIONS = 6
# How often the best c is noted, as long as each time closes so much of the gap.
MAX_NOTED_AGAIN = 6
MIN_GAIN_AGAIN = 0.02
# Samples times coefficients that a call may look at, that often, before the clock is looked at.
CALL_WORK = 1 << 22


class Ascent(NamedTuple):
    """Where the ascent ended: the best bound, its c and minimum, and whether nothing better is left."""

    value: float
    c: Vector
    b: Vector
    closed: bool


def first_transfer(region: Region) -> Vector:
    """A c with which C is positive definite: samples that are ON lend a third, all others very little."""
    has_end = (region.l > -np.inf) & ((region.kind != SLAB) | np.isfinite(region.U))
    has_end &= region.kind != LIMIT
    return np.where(region.kind == ON, FIRST_TRANSFER_ON, np.where(has_end, FIRST_TRANSFER, 0.0))


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
        self,
        region: Region,
        c: Vector,
        b: Vector,
        cutoff: float,
        mu: float,
        mu_end: float,
        max_steps: int,
        note: Callable[[Vector, Vector], float] | None = None,
    ) -> Ascent:
        """Maximise the bound, and shrink the region on the way.

        note is called with c and its minimum every few steps, and narrows the region to what follows from
        them, and to nothing else; it returns the bound that it finds, infinite if nothing better is left.
        """
        prepare(ascent_kernel.ascend)
        n, q = self.samples.Z.shape
        state, work, rows = AscentState.at(c, b, mu), AscentWork.empty(n, q), KernelRows.empty(2 * n, q)
        end, max_evaluations = ascent_kernel.PAUSED, max(CALL_WORK // (n * q), 1)
        max_evaluations = max_evaluations if note is None else NOTED_EVALUATIONS
        within = region if note is None else region.copy()
        while end == ascent_kernel.PAUSED and not self.is_over():
            end = ascent_kernel.ascend(
                tuple(self.samples),
                tuple(within),
                cutoff,
                mu_end,
                max_steps,
                max_evaluations,
                tuple(rows),
                tuple(state),
                tuple(work),
            )
            self.spend(EVALUATION_LOOKS * int(state.counts[EVALUATIONS]))
            for point in state.seen[: state.counts[SEEN]]:
                self.seen(point.copy())
            state.counts[SEEN] = 0
            if note is not None and end == ascent_kernel.PAUSED:
                if note(state.best_c, state.best_b) == np.inf:
                    return Ascent(np.inf, state.best_c, state.best_b, True)
                # What the kernel has concluded on the way was not noted.
                within, state.numbers[BEST] = region.copy(), -np.inf
        value = float(state.numbers[BEST])
        if note is None or value == -np.inf:
            return Ascent(value, state.best_c, state.best_b, end == ascent_kernel.CLOSED)
        # What the kernel has concluded on the way follows again from the best c, by and by.
        found, before = note(state.best_c, state.best_b), -np.inf
        for _ in range(MAX_NOTED_AGAIN):
            if found == np.inf or found - before < MIN_GAIN_AGAIN * (cutoff - found):
                break
            before, found = found, note(state.best_c, state.best_b)
        return Ascent(value, state.best_c, state.best_b, found == np.inf)
