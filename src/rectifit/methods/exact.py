"""Prove how good the best solution is, and find better ones on the way: branch and bound (rectifit.certificate).

Starts from the best solution so far, or from `auto`. Every point that the search meets is polished by the iterative
method. It ends when the gap is at most target_gap, or with the time limit; incumbent and bound are valid at any
moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from rectifit.certificate.branching import SignSearch
from rectifit.certificate.envelope import OFF, ON
from rectifit.certificate.incumbent import Incumbent
from rectifit.certificate.reduction import reduce_rows
from rectifit.methods.auto import Auto
from rectifit.methods.iterative import majorise
from rectifit.methods.search import Halt, Search
from rectifit.problem import Point
from rectifit.solution import ROUNDING, ROUNDING_OF_SUMS, Stop

__all__ = ["TARGET_GAP", "Exact"]

TARGET_GAP = 1e-4
# Steps of the iterative method from one candidate.
MAX_ITER = 50


@dataclass(frozen=True)
class Exact:
    """Branch and bound down to a gap of search.target_gap, 1e-4 if there is none."""

    def run(self, search: Search) -> Stop:
        """Search, and put incumbent, bound and proof into the search."""
        if search.target_gap is None:
            search.target_gap = TARGET_GAP
        if search.best is None:
            Auto().run(search)
        return Proof(search).run()


class Proof:
    """One branch and bound, told to the search as it goes."""

    def __init__(self, search: Search) -> None:
        assert search.best is not None
        self.search = search
        self.reduced = reduce_rows(search.problem)
        self.incumbent = Incumbent(search.problem, self.reduced, search.best, self._polish)
        self.signs = SignSearch(self.reduced, self.incumbent, self._target, search.is_over, self._report)
        self._began = search.seconds

    def run(self) -> Stop:
        status = "interrupted"
        try:
            closed = self.signs.run()
            status = "optimal" if closed else "time_limit"
        finally:
            self._tell(status)
        if not closed:
            raise Halt(Stop.TIME_LIMIT)
        return Stop.TARGET

    def _target(self, value: float) -> float:
        """The value down to which a proof must reach, from the best value known."""
        objective = self.reduced.objective(value)
        assert self.search.target_gap is not None
        room = max(self.search.target_gap, ROUNDING_OF_SUMS) * objective
        room += ROUNDING * self.search.problem.null_objective
        return self.reduced.value(objective - room)

    def _polish(self, start: Point) -> Point:
        search, best = self.search, start
        for step in majorise(search.problem, search.solver, start, MAX_ITER, 1e-10):
            search.n_surrogates += 1
            search.record(step.active, step.solution)
            if step.point.objective < best.objective:
                best = step.point
        return best

    def _tell(self, status: str) -> None:
        search, kind, counts = self.search, self.signs.region.kind, self.reduced.counts
        if search.best is None or self.incumbent.best.objective < search.best.objective:
            search.offer(self.incumbent.best)
        search.lower_bound = max(search.lower_bound, self.reduced.objective(self.signs.lower_bound))
        n_active = int(counts[kind == ON].sum())
        n_inactive = int(counts[kind == OFF].sum()) + self.reduced.n_zero
        search.proof = {
            "status": status,
            "n_nodes": self.signs.n_nodes,
            "seconds": search.seconds - self._began,
            "n_active": n_active,
            "n_inactive": n_inactive,
            "n_undecided": search.problem.n_samples - n_active - n_inactive,
        }

    def _report(self) -> None:
        search = self.search
        objective = self.incumbent.best.objective
        bound = max(search.lower_bound, self.reduced.objective(self.signs.lower_bound))
        search.history.append((search.seconds, objective, bound))
        gap = (objective - bound) / objective if objective > 0.0 else 0.0
        text = (
            f"exact, objective {objective:.6g}, bound {bound:.6g}, gap {gap:.2%}, {self.signs.n_open:,} open"
        )
        search.note(text, self.signs.n_nodes)
