"""Running the kernel: outputs, limits, and what to do when it stands still.

Where more kinks meet in a point than there are directions, as all non-positive samples do at beta = 0, the
kernel may make steps of length zero without end. Then every kink is moved by a tiny amount of its own, which
leaves no such points. If the amounts are small enough, the states at that minimum are also those of a minimum
with the kinks in place: they are kept, the kernel finishes from there, and the result is checked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Matrix, Vector
from rectifit.surrogate import kernel

__all__ = ["Carry", "Descent", "States", "Terrain", "descend"]

States = npt.NDArray[np.int8]

# How far kinks are moved apart, relative to kink and length of the row, in one attempt after the other.
SPREADS = (1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-6, 1e-5)


class Terrain(NamedTuple):
    """What is minimised, but for the kinks: background quadratic, rows and outcomes (see kernel.py).

    slope has one line, or one per problem.
    """

    Z: Matrix
    Zt: Matrix
    norms: Vector
    y: Vector
    u0: Vector
    slope: Matrix
    curvature: Matrix


class Carry(NamedTuple):
    """What goes from one problem to the next and is changed: solution, states, Gram matrix."""

    delta: Vector
    u: Vector
    state: States
    gram: Matrix
    largest: Vector

    def copy(self) -> Carry:
        """The same in arrays of its own."""
        return Carry(
            self.delta.copy(), self.u.copy(), self.state.copy(), self.gram.copy(), self.largest.copy()
        )


class Descent(NamedTuple):
    """Where the kernel ended, one line per problem."""

    deltas: Matrix
    states: States
    slopes: Matrix
    factors: Matrix
    steps: npt.NDArray[np.int64]
    converged: Mask


def descend(terrain: Terrain, kinks: Matrix, carry: Carry, restart: bool = False) -> Descent:
    """Minimise one problem per line of kinks and of slopes, each from the end of the one before it.

    With `restart`, all from the point that is carried in.
    """
    descent, n_converged = _run(terrain, kinks, carry, trust=False, restart=restart)
    if n_converged < len(descent.converged):
        for line in np.flatnonzero(~descent.converged).tolist():
            alone = terrain._replace(slope=terrain.slope[min(line, len(terrain.slope) - 1)][None])
            _untangle(alone, kinks[min(line, len(kinks) - 1)], carry, descent, line)
    return descent


def _run(
    terrain: Terrain, kinks: Matrix, carry: Carry, trust: bool, restart: bool = False
) -> tuple[Descent, int]:
    k, n, q = max(len(kinks), len(terrain.slope)), kinks.shape[1], carry.delta.size
    # Copies only where they are used.
    first = carry.copy() if restart else carry
    descent = Descent(
        np.empty((k, q)),
        np.empty((k, n), dtype=np.int8),
        np.empty((k, n)),
        np.empty((k, q, q)),
        np.empty(k, dtype=np.int64),
        np.empty(k, dtype=np.bool_),
    )
    n_converged = kernel.minimise(
        *terrain,
        kinks,
        # No search that makes progress comes near this.
        1000 + 100 * q,
        trust,
        restart,
        *first[:4],
        *carry,
        *descent,
    )
    return descent, n_converged


def _untangle(terrain: Terrain, kink: Vector, carry: Carry, descent: Descent, line: int) -> None:
    """Solve one problem again with its kinks apart, then in place."""
    size = np.maximum(np.maximum(kink, terrain.norms), 1e-3)
    for seed, spread in enumerate(SPREADS):
        # Upwards, so that jumps stay positive.
        apart = kink + spread * size * np.random.default_rng(seed).uniform(0.5, 1.5, kink.size)
        result, _ = _run(terrain, apart[None], carry, trust=False)
        descent.steps[line] += result.steps[0]
        if not result.converged[0]:
            continue
        result, _ = _run(terrain, kink[None], carry, trust=True)
        descent.steps[line] += result.steps[0]
        if not _in_place(kink, carry):
            # The kinks were too far apart; but the point is a good one to go on from.
            result, _ = _run(terrain, kink[None], carry, trust=False)
            descent.steps[line] += result.steps[0]
        if result.converged[0]:
            descent.deltas[line] = result.deltas[0]
            descent.states[line] = result.states[0]
            descent.slopes[line] = result.slopes[0]
            descent.factors[line] = result.factors[0]
            descent.converged[line] = True
            return


def _in_place(kink: Vector, carry: Carry) -> bool:
    """Whether every row is on the side of its kink that its state says."""
    excess = np.where(carry.state == kernel.FLAT, carry.u - kink, kink - carry.u)
    return bool(excess[carry.state != kernel.HELD].max(initial=0.0) <= kernel.HOLD_TOL)
