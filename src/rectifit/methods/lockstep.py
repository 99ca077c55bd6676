"""The iterative method from several points at once, step by step together.

Paths that come to an active set that some path has been at end there: what follows is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from rectifit._typing import Mask, Vector
from rectifit.methods.finds import Finds
from rectifit.problem import Problem
from rectifit.surrogate import SurrogateSolution

__all__ = ["Descents", "End", "descend_together"]


class Solver(Protocol):
    """Minimises one surrogate per line."""

    def solve_each(self, actives: Mask) -> list[SurrogateSolution]: ...


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
    solver: Solver,
    actives: Mask,
    objectives: Vector,
    *,
    max_iter: int,
    tol: float,
    visited: set[bytes],
    is_over: Callable[[], bool],
) -> Descents:
    """Follow paths from some active sets, one per line, where the objectives are known or infinite.

    `visited` are the active sets known so far, and grows.
    """
    result = Descents()
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
        following, wider = problem.active_at(batch.u).T, problem.active_at(batch.u, with_zeros=True).T
        falls = objectives - batch.objectives > tol * objectives
        goes_on = (following != actives).any(axis=1) & falls
        for e in np.flatnonzero(~goes_on):
            length = float(np.linalg.norm(problem.root_weight * batch.u[:, e]))
            result.ends.append(
                End(float(batch.objectives[e]), batch.betas[:, e], float(batch.intercepts[e]), length)
            )
            # With samples exactly at 0 there is another active set to go on with.
            if (wider[e] != following[e]).any():
                following[e], goes_on[e] = wider[e], True
        actives, objectives = following[goes_on], batch.objectives[goes_on]
    return result
