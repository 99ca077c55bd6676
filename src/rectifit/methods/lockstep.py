"""The iterative method from several points at once, step by step together.

Paths that come to an active set that some path has been at end there: what follows is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rectifit.methods.finds import Batch, Finds
from rectifit.problem import Problem, Vector
from rectifit.surrogate import SurrogateSolver

__all__ = ["Descents", "End", "descend_together"]


class End(NamedTuple):
    """Where a path ended, and the weighted length of u there."""

    objective: float
    beta: Vector
    intercept: float
    length: float


@dataclass
class Descents:
    """What was found, and where the paths ended."""

    finds: Finds = field(default_factory=Finds)
    ends: list[End] = field(default_factory=list)


def descend_together(
    problem: Problem,
    solver: SurrogateSolver,
    batch: Batch,
    *,
    max_iter: int,
    tol: float,
    visited: set[bytes],
    is_over: Callable[[], bool],
) -> Descents:
    """Follow all points of a batch; `visited` are the active sets known so far, and grows."""
    result = Descents()
    actives, objectives = problem.active_at(batch.u).T, batch.objectives
    for _ in range(max_iter):
        new = []
        for line, active in enumerate(actives):
            key = np.packbits(active).tobytes()
            if key not in visited:
                visited.add(key)
                new.append(line)
        if not new or is_over():
            break
        actives, objectives = actives[new], objectives[new]
        batch = result.finds.see(problem, actives, solver.solve_each(actives))
        following = problem.active_at(batch.u).T
        goes_on = (following != actives).any(axis=1) & (objectives - batch.objectives > tol * objectives)
        for e in np.flatnonzero(~goes_on):
            length = float(np.linalg.norm(problem.root_weight * batch.u[:, e]))
            result.ends.append(
                End(float(batch.objectives[e]), batch.betas[:, e], float(batch.intercepts[e]), length)
            )
        actives, objectives = following[goes_on], batch.objectives[goes_on]
    return result
