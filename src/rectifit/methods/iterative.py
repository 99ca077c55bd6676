"""A3, the iterative heuristic. From beta^0, with I^t = { i in P : u_i(beta^t) > 0 },

    beta^{t+1} = argmin F_{I^t},      until I repeats, at most T times.

F_{I^t} lies above L everywhere and touches it at beta^t, so L never increases: a majorise-minimise method.
"""

from __future__ import annotations

from dataclasses import dataclass

from rectifit.fit import Stop
from rectifit.methods.search import Search
from rectifit.surrogate.majorise import majorise

__all__ = ["MAX_ITER", "Iterative"]

MAX_ITER = 20


@dataclass(frozen=True)
class Iterative:
    """A3 with T = max_iter, from the stage before or from least squares.

    It also stops when the objective falls by no more than the share `tol`; 0 leaves only the paper's rule.
    """

    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: Search) -> Stop:
        """Follow the steps from the best point so far."""
        start = search.best
        # Nothing follows from the zero function: least squares is the start there, too.
        if start is None or search.is_dead:
            (start,) = search.engine.evaluate([search.engine.least_squares()])
            search.offer(start)
        steps = majorise(search.engine, start, self.max_iter, self.tol)
        for t in range(self.max_iter + 1):
            search.check()
            try:
                minimum = next(steps)
            except StopIteration as end:
                reason: Stop = end.value
                return reason
            search.take([minimum])
            search.report(t + 1, self.max_iter)
        raise AssertionError("majorise makes at most max_iter steps")
