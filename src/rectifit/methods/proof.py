"""One branch and bound, told to a search as it goes."""

from __future__ import annotations

import time

import numpy as np

from rectifit._typing import Vector
from rectifit.certificate.arrangement import least_in_plane
from rectifit.certificate.best_first import Control
from rectifit.certificate.box import Box
from rectifit.certificate.branching import SignSearch
from rectifit.certificate.cone_kernel import is_compiled
from rectifit.certificate.cones import ConeSearch
from rectifit.certificate.envelope import OFF, ON
from rectifit.certificate.incumbent import Incumbent
from rectifit.certificate.reduction import reduce_rows
from rectifit.certificate.tighten import can_shrink
from rectifit.methods.iterative import majorise
from rectifit.methods.search import TARGET_GAP, Halt, Search
from rectifit.problem import Point
from rectifit.solution import ROUNDING, ROUNDING_OF_SUMS, Stop

__all__ = ["Proof"]

# Steps of the iterative method from one candidate.
MAX_ITER = 50
# Up to so many coefficients, the intercept included, and samples the arrangement is gone through.
PLANE, PLANE_SAMPLES = 2, 1000
# Where the best fit leaves more than this share of sum w y^2, and samples can go anywhere, signs say little:
# with so many positive samples or more, and up to so many coefficients, the search is over directions. With
# very few coefficients that is the better search at any signal.
LOW_SIGNAL, MANY_SAMPLES, FEW_DIRECTIONS, VERY_FEW_DIRECTIONS = 0.3, 30, 10, 6
# Seconds between two reports.
REPORT = 0.02


class Proof:
    """Chooses and runs the searches, and keeps incumbent, bound and history of the search up to date."""

    def __init__(self, search: Search, box: float | None = None, budget: float = np.inf) -> None:
        assert search.best is not None
        self.search = search
        self._deadline = time.perf_counter() + budget
        self._gap = TARGET_GAP if search.target_gap is None else search.target_gap
        self.reduced = reduce_rows(search.problem)
        self.incumbent = Incumbent(search.problem, self.reduced, search.best, self._polish)
        self._box = box
        self._control = Control(
            self._cutoff, self.incumbent.offer, self._is_over, self._report, search.n_threads
        )
        self.engine: SignSearch | ConeSearch = SignSearch(self.reduced, self._control, self._reach())
        self._began, self._reported = search.seconds, -REPORT

    def bound(self) -> None:
        """As good a bound as the budget allows; nothing is compiled for it."""
        from threadpoolctl import threadpool_limits

        try:
            with threadpool_limits(1):
                self._prove(may_compile=False)
        finally:
            self._tell("bound_only")

    def run(self) -> Stop:
        """Prove down to the target gap, or as far as the time allows."""
        # Many small matrices: BLAS threads would only wait for each other.
        from threadpoolctl import threadpool_limits

        status = "interrupted"
        try:
            with threadpool_limits(1):
                closed = self._prove()
            status = "optimal" if closed else "time_limit"
        finally:
            self._tell(status)
        if not closed:
            raise Halt(Stop.TIME_LIMIT)
        return Stop.TARGET

    def _prove(self, may_compile: bool = True) -> bool:
        if self.search.lower_bound >= self.reduced.objective(self._cutoff()) or self._solve_plane():
            return True
        signs, by_directions = self.engine, self._has_few_directions() and (may_compile or is_compiled())
        assert isinstance(signs, SignSearch)
        if by_directions and self._is_low_signal():
            return self._search_directions()
        if signs.start():
            return True
        if by_directions and self.reduced.Z.shape[1] <= VERY_FEW_DIRECTIONS:
            return self._search_directions()
        return signs.run()

    def _search_directions(self) -> bool:
        self._keep_bound()
        reduced, best = self.reduced, self.incumbent.best
        along = reduced.from_coefficients(best.beta, best.intercept)
        self.engine = ConeSearch(reduced.Z, reduced.y, reduced.ridge, along, self._control)
        return self.engine.run()

    def _has_few_directions(self) -> bool:
        """Whether a search over directions is possible, and signs alone lead nowhere."""
        few = self.reduced.Z.shape[1] <= FEW_DIRECTIONS
        many = int((self.reduced.y > 0.0).sum()) >= MANY_SAMPLES
        return self._box is None and few and many and not can_shrink(self.reduced.Z)

    def _is_low_signal(self) -> bool:
        return self.incumbent.best.objective > LOW_SIGNAL * self.search.problem.null_objective

    def _solve_plane(self) -> bool:
        """Two coefficients and not too many samples need no search."""
        n, q = self.reduced.Z.shape
        if not (0 < q <= PLANE and n <= PLANE_SAMPLES):
            return False
        value, b = least_in_plane(self.reduced.Z, self.reduced.y, self.reduced.ridge)
        self.incumbent.offer(b)
        # The minimum itself, but for the rounding of a few sums over the samples.
        lowest = value - 1e-12 * (value + float(self.reduced.y @ self.reduced.y))
        self.search.lower_bound = max(self.search.lower_bound, self.reduced.objective(lowest))
        return True

    def _reach(self) -> Vector | None:
        """The largest |u| of every row within the box, in reduced units."""
        if self._box is None:
            return None
        box, best = Box.around(self.search.problem, self._box), self.incumbent.best
        size = box.measure(best.beta, best.intercept)
        if size > self._box:
            raise ValueError(
                f"box is {self._box:g}, but the fit in question has a standardised coefficient of size "
                f"{size:.4g}; the box must be at least as large"
            )
        # Against rounding.
        return box.reach(self.reduced.rows) * self.reduced.roots * (1.0 + 1e-9)

    def _cutoff(self) -> float:
        """The value down to which a proof must reach."""
        objective = self.incumbent.best.objective
        room = max(self._gap, ROUNDING_OF_SUMS) * objective
        room += ROUNDING * self.search.problem.null_objective
        return self.reduced.value(objective - room)

    def _is_over(self) -> bool:
        return time.perf_counter() >= self._deadline or self.search.is_over()

    def _polish(self, start: Point) -> Point:
        search, best = self.search, start
        for step in majorise(search.problem, search.solver, start, MAX_ITER, 1e-10):
            search.n_surrogates += 1
            search.record(step.active, step.solution)
            if step.point.objective < best.objective:
                best = step.point
        return best

    def _keep_bound(self) -> float:
        bound = self.reduced.objective(self.engine.lower_bound)
        self.search.lower_bound = max(self.search.lower_bound, bound)
        return self.search.lower_bound

    def _tell(self, status: str) -> None:
        search, kind, counts = self.search, self.engine.kind, self.reduced.counts
        if search.best is None or self.incumbent.best.objective < search.best.objective:
            search.offer(self.incumbent.best)
        self._keep_bound()
        n_active = int(counts[kind == ON].sum())
        n_inactive = int(counts[kind == OFF].sum()) + self.reduced.n_zero
        search.proof = {
            "status": status,
            "box": self._box,
            "n_nodes": self.engine.n_nodes,
            "seconds": search.seconds - self._began,
            "n_active": n_active,
            "n_inactive": n_inactive,
            "n_undecided": search.problem.n_samples - n_active - n_inactive,
        }

    def _report(self) -> None:
        now = time.perf_counter()
        if now - self._reported < REPORT:
            return
        self._reported = now
        search, objective = self.search, self.incumbent.best.objective
        bound = self._keep_bound()
        row = (search.seconds, objective, bound)
        if not search.history or search.history[-1][1:] != row[1:]:
            search.history.append(row)
        gap, n_open = (objective - bound) / objective if objective > 0.0 else 0.0, self.engine.n_open
        text = f"exact, objective {objective:.6g}, bound {bound:.6g}, gap {gap:.2%}, {n_open:,} open"
        search.note(text, self.engine.n_nodes)
