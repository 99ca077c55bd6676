"""One branch and bound, told to a search as it goes."""

from __future__ import annotations

from rectifit.certificate.arrangement import least_in_plane
from rectifit.certificate.branching import SignSearch
from rectifit.certificate.cones import ConeSearch
from rectifit.certificate.envelope import OFF, ON
from rectifit.certificate.incumbent import Incumbent
from rectifit.certificate.reduction import reduce_rows
from rectifit.certificate.tighten import can_shrink
from rectifit.methods.iterative import majorise
from rectifit.methods.search import Halt, Search
from rectifit.problem import Point
from rectifit.solution import ROUNDING, ROUNDING_OF_SUMS, Stop

__all__ = ["Proof"]

# Steps of the iterative method from one candidate.
MAX_ITER = 50
# Up to so many coefficients, the intercept included, and samples the arrangement is gone through.
PLANE, PLANE_SAMPLES = 2, 4000
# Where the best fit leaves more than this share of sum w y^2, and samples can go anywhere, signs say little:
# with so many positive samples or more, and up to so many coefficients, the search is over directions.
LOW_SIGNAL, MANY_SAMPLES, FEW_DIRECTIONS = 0.3, 30, 10


class Proof:
    """Chooses and runs the searches, and keeps incumbent, bound and history of the search up to date."""

    def __init__(self, search: Search) -> None:
        assert search.best is not None
        self.search = search
        self.reduced = reduce_rows(search.problem)
        self.incumbent = Incumbent(search.problem, self.reduced, search.best, self._polish)
        self.engine: SignSearch | ConeSearch = SignSearch(
            self.reduced, self.incumbent, self._target, search.is_over, self._report
        )
        self._began = search.seconds

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

    def _prove(self) -> bool:
        if self._solve_plane():
            return True
        signs = self.engine
        assert isinstance(signs, SignSearch)
        if self._is_low_signal() and not can_shrink(self.reduced.Z):
            along = self.reduced.from_coefficients(self.incumbent.best.beta, self.incumbent.best.intercept)
            self.engine = ConeSearch(
                self.reduced.Z,
                self.reduced.y,
                self.reduced.ridge,
                along,
                lambda: self._target(self.incumbent.value),
                self.incumbent.offer,
                self.search.is_over,
                self._report,
            )
            return self.engine.run()
        return signs.start() or signs.run()

    def _is_low_signal(self) -> bool:
        share = self.incumbent.best.objective / self.search.problem.null_objective
        many = int((self.reduced.y > 0.0).sum()) >= MANY_SAMPLES
        return share > LOW_SIGNAL and many and self.reduced.Z.shape[1] <= FEW_DIRECTIONS

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
            "n_nodes": self.engine.n_nodes,
            "seconds": search.seconds - self._began,
            "n_active": n_active,
            "n_inactive": n_inactive,
            "n_undecided": search.problem.n_samples - n_active - n_inactive,
        }

    def _report(self) -> None:
        search, objective = self.search, self.incumbent.best.objective
        bound = self._keep_bound()
        row = (search.seconds, objective, bound)
        if not search.history or search.history[-1][1:] != row[1:]:
            search.history.append(row)
        gap, n_open = (objective - bound) / objective if objective > 0.0 else 0.0, self.engine.n_open
        text = f"exact, objective {objective:.6g}, bound {bound:.6g}, gap {gap:.2%}, {n_open:,} open"
        search.note(text, self.engine.n_nodes)
