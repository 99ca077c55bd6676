"""Running the kernel: outputs, limits, and what to do when it stands still.

Where more kinks meet in a point than there are directions, as all non-positive samples do at beta = 0, the
kernel may make steps of length zero without end. Then every kink is moved by a tiny amount of its own, which
leaves no such points. If the amounts are small enough, the states at that minimum are also those of a minimum
with the kinks in place: they are kept, the kernel finishes from there, and the result is checked.
"""

from __future__ import annotations

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.surrogate import kernel
from rectifit.surrogate.records import FLAT, HELD, Minima, PieceProblem, WarmState
from rectifit.tolerances import HOLD_TOL

__all__ = ["descend"]

# How far kinks are moved apart, relative to kink and length of the row, in one attempt after the other.
SPREADS = (1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-6, 1e-5)
# Kinks and lengths of rows below this, in working units, are spread as if they had this size.
MIN_SPREAD_SIZE = 1e-3


def descend(problem: PieceProblem, kinks: Matrix, warm: WarmState, restart: bool = False) -> Minima:
    """Minimise one problem per line of kinks and of slopes, each from the end of the one before it.

    With `restart`, all from the point that is given. `warm` ends as the last minimisation did.
    """
    minima, n_converged = _run(problem, kinks, warm, trust=False, restart=restart)
    if n_converged < len(minima.converged):
        for line in np.flatnonzero(~minima.converged).tolist():
            alone = problem._replace(slope=problem.slope[min(line, len(problem.slope) - 1)][None])
            _untangle(alone, kinks[min(line, len(kinks) - 1)], warm, minima, line)
    return minima


def _run(
    problem: PieceProblem, kinks: Matrix, warm: WarmState, trust: bool, restart: bool = False
) -> tuple[Minima, int]:
    k, n, q = max(len(kinks), len(problem.slope)), kinks.shape[1], warm.delta.size
    # A copy only where it is used.
    first = warm.copy() if restart else warm
    minima = Minima(
        np.empty((k, q)),
        np.empty((k, n), dtype=np.int8),
        np.empty((k, n)),
        np.empty((k, q, q)),
        np.empty(k, dtype=np.int64),
        np.empty(k, dtype=np.bool_),
    )
    max_steps = kernel.MAX_STEPS + kernel.MAX_STEPS_PER_COEFFICIENT * q
    n_converged = kernel.minimise(
        tuple(problem), kinks, max_steps, trust, restart, tuple(first), tuple(warm), tuple(minima)
    )
    return minima, n_converged


def _untangle(problem: PieceProblem, kink: Vector, warm: WarmState, minima: Minima, line: int) -> None:
    """Solve one problem again with its kinks apart, then in place."""
    size = np.maximum(np.maximum(kink, problem.norms), MIN_SPREAD_SIZE)
    for seed, spread in enumerate(SPREADS):
        # Upwards, so that jumps stay positive.
        apart = kink + spread * size * np.random.default_rng(seed).uniform(0.5, 1.5, kink.size)
        result, _ = _run(problem, apart[None], warm, trust=False)
        minima.steps[line] += result.steps[0]
        if not result.converged[0]:
            continue
        result, _ = _run(problem, kink[None], warm, trust=True)
        minima.steps[line] += result.steps[0]
        if not _in_place(kink, warm):
            # The kinks were too far apart; but the point is a good one to continue from.
            result, _ = _run(problem, kink[None], warm, trust=False)
            minima.steps[line] += result.steps[0]
        if result.converged[0]:
            minima.deltas[line] = result.deltas[0]
            minima.states[line] = result.states[0]
            minima.slopes[line] = result.slopes[0]
            minima.factors[line] = result.factors[0]
            minima.converged[line] = True
            return


def _in_place(kink: Vector, warm: WarmState) -> bool:
    """Whether every row is on the side of its kink that its state says."""
    excess = np.where(warm.state == FLAT, warm.u - kink, kink - warm.u)
    return bool(excess[warm.state != HELD].max(initial=0.0) <= HOLD_TOL)
