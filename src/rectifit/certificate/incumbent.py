"""The best solution known during a search, and how it gets better."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

from rectifit._typing import Vector
from rectifit.certificate.presolve import Reduced
from rectifit.data.problem import Problem, RowPoint

__all__ = ["Incumbent"]

# Candidates are polished if their objective is at most this many times the best, and they lose at most this
# share of what the best explains.
PROMISING, LOST = 1.5, 0.1


class Incumbent:
    """Keeps the best point of those that may be taken; promising candidates are polished first.

    Each active set is polished once.
    """

    def __init__(
        self,
        problem: Problem,
        reduced: Reduced,
        best: RowPoint,
        polish: Callable[[RowPoint], RowPoint],
        may_be_taken: Callable[[RowPoint], bool] = lambda _: True,
    ) -> None:
        self.problem, self.reduced, self.best = problem, reduced, best
        self._polish, self._may_be_taken = polish, may_be_taken
        self._tried: set[bytes] = set()
        self._lock = Lock()

    @property
    def value(self) -> float:
        """The best objective in reduced units."""
        return self.reduced.value(self.best.objective)

    @property
    def promising(self) -> float:
        """The objective in reduced units up to which candidates are polished."""
        best = self.best.objective
        # With constraints, the zero function may be better than the best that they allow.
        explained = abs(self.problem.null_objective - best)
        return self.reduced.value(min(PROMISING * best, best + LOST * explained))

    def offer(self, b: Vector) -> None:
        """Take a point in reduced coordinates as a candidate."""
        # Behind the samples there are constraints, which cost nothing.
        n = self.reduced.counts.size
        r = np.maximum(self.reduced.Z[:n] @ b, 0.0) - self.reduced.y[:n]
        if float(r @ r) > self.promising:
            return
        beta, intercept = self.reduced.coefficients(b)
        start = self.problem.evaluate(self.problem.allowed(beta), intercept)
        key = np.packbits(self.problem.active_at(start.u)).tobytes()
        with self._lock:
            if key in self._tried:
                return
            self._tried.add(key)
            for point in (start, self._polish(start)):
                if point.objective < self.best.objective and self._may_be_taken(point):
                    self.best = point
