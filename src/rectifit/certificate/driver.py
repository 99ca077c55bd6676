"""From data and a fit to a proof: what is searched, and what the search says."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rectifit import routing
from rectifit.bounds import allowance
from rectifit.certificate.arrangement import least_in_plane
from rectifit.certificate.best_first import Control
from rectifit.certificate.box import Box, stated_constraints
from rectifit.certificate.envelope import OFF, ON
from rectifit.certificate.incumbent import Incumbent
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.proof import MEMORY_LIMIT, ProofResult
from rectifit.certificate.recording import SIGN_CLAIM_SHARE, ProofFile, Recorder, exact_null_space
from rectifit.certificate.recording_signs import Checked
from rectifit.certificate.records import Region
from rectifit.certificate.search import Search
from rectifit.checking.reading import allowed_by
from rectifit.checking.rows import distinct_rows
from rectifit.clock import Clock
from rectifit.data.problem import Point, RowPoint
from rectifit.fit import MAX_ROUNDING_SHARE, relative_gap
from rectifit.parallel import limit_threads
from rectifit.surrogate.engine import Engine, Minimum
from rectifit.surrogate.majorise import majorise
from rectifit.tolerances import BOX_RTOL, LEAST_ROOM, SUM_TOL, ZERO_OBJECTIVE_TOL

__all__ = ["Driver", "Listener"]

# Steps of the iterative method from one candidate, and the share of the objective at which they end.
POLISH_STEPS = 50
POLISH_TOL = 1e-10
# Share of the gap that must be closed for another row of the history.
HISTORY_SHARE = 0.02
# Seconds between two lines of progress.
REPORT_SECONDS = 0.02


@dataclass(frozen=True)
class Listener:
    """Where a proof reports to: minima of surrogates that it met, and a line of progress."""

    record: Callable[[Minimum], None] = lambda _: None
    note: Callable[[str, int], None] = lambda _, __: None


class Driver:
    """Runs the search, and keeps incumbent, bound and history.

    Parameters
    ----------
    engine : Engine
        With rows in memory; polishes candidates.
    best : Point
        The fit in question.
    gap : float
        The gap down to which the proof goes.
    lower_bound : float
        What is known already.
    clock : Clock
    n_threads : int, default=1
    box : float, optional
        Prove it for coefficients up to this size on the standardised scale only.
    budget : int, optional
        Looks at all samples after which the search ends.
    memory_limit : int, optional
        Bytes that open nodes may take.
    listener : Listener, optional
    proof : ProofFile, optional
        Where the proof is written to.

    Attributes
    ----------
    lower_bound : what is proved
    best : the best point known
    """

    def __init__(
        self,
        engine: Engine,
        best: Point,
        gap: float,
        lower_bound: float,
        clock: Clock,
        *,
        n_threads: int = 1,
        box: float | None = None,
        budget: float = np.inf,
        memory_limit: int = MEMORY_LIMIT,
        listener: Listener | None = None,
        proof: ProofFile | None = None,
    ) -> None:
        self.problem, self.lower_bound = engine.problem, lower_bound
        self._engine, self._gap, self._clock = engine, gap, clock
        self._box = None if box is None else Box.around(self.problem, box)
        self._listener = listener or Listener()
        self._began, self._reported = clock.seconds, -np.inf
        self._history: list[tuple[float, float, float]] = []
        self.reduced = reduce_rows(self.problem)
        # Losses in the search are sums in which terms of the size of sum w y^2 may cancel.
        self._slack = float(allowance(self.problem.n_samples, self.problem.null_objective))
        # The rounding of the best point, which is looked up often.
        self._rounded: tuple[Point | None, float] = None, 0.0
        self._proof, self._recorder = proof, None if proof is None else self._make_recorder(proof)
        start = self.problem.evaluate(best.beta, best.intercept)
        self.incumbent = Incumbent(self.problem, self.reduced, start, self._polish, self._may_be_taken)
        control = Control(
            self._cutoff,
            self.incumbent.offer,
            self._is_over,
            self._report,
            lambda: self.incumbent.promising,
            n_threads,
        )
        self.search = Search(
            self.reduced.samples,
            control,
            self._region(),
            self.reduced.is_cone,
            box is None,
            memory_limit,
            budget,
            self._recorder,
        )

    @property
    def best(self) -> RowPoint:
        return self.incumbent.best

    def run(self) -> bool:
        """Search; True if the gap was closed, False if the time was up before, or rounding leaves it open."""
        try:
            # Many small matrices: BLAS threads would only wait for each other.
            with limit_threads():
                return self._prove()
        finally:
            self._keep_bound()

    @property
    def is_exhausted(self) -> bool:
        """Whether the search has come to its end, so that only rounding can have left the gap open."""
        return self.search.is_exhausted

    def result(self, status: str) -> ProofResult:
        """What was proved."""
        counts = self.reduced.counts
        kind = self.search.kind[: counts.size]
        n_active = int(counts[kind == ON].sum())
        n_inactive = int(counts[kind == OFF].sum()) + self.reduced.n_zero
        return ProofResult(
            status,
            None if self._box is None else self._box.size,
            self.search.n_nodes,
            self._clock.seconds - self._began,
            n_active,
            n_inactive,
            self.problem.n_samples - n_active - n_inactive,
            tuple(self._history),
            ended_by_rounding=status == "time_limit" and self.is_exhausted,
        )

    def _make_recorder(self, proof: ProofFile) -> Recorder:
        T, data, problem = self.reduced.to_coefficients, self.problem.loaded(), self.problem
        rows = self.reduced.rows
        rows = np.column_stack([rows, np.ones(len(rows))]) if problem.fit_intercept else rows
        null = exact_null_space(rows) if T.shape[0] > T.shape[1] else np.zeros((len(T), 0))
        if null is None or null.shape[1] != T.shape[0] - T.shape[1]:
            raise ValueError(
                "proof is given, but columns of X are linearly dependent up to rounding; leave some out, or "
                "set alpha, so that a proof file can be written"
            )
        X, w = data.dense().astype(np.float64), data.sample_weight
        distinct = distinct_rows(problem.fit_intercept, problem.alpha, X, data.y, w)
        found = distinct.inside(np.ones(len(distinct.y), np.bool_), T, null)
        proof.constraints = stated_constraints(problem, self._box)
        walls = distinct.walls(T, null, allowed_by(proof.constraints, len(T)))
        proof.margin = SIGN_CLAIM_SHARE
        return Recorder(proof, rows, self.reduced.objective, Checked(found, walls, T, null))

    def _prove(self) -> bool:
        if self._recorder is not None:
            return self.search.run()
        if not self._is_closed:
            self._solve_plane()
        return self._is_closed or self.search.run()

    @property
    def _is_closed(self) -> bool:
        return self.lower_bound >= self.reduced.objective(self._cutoff())

    def _solve_plane(self) -> None:
        """Two coefficients and not too many samples need no search, unless the best point is missed."""
        if self.problem.constraints is not None or not routing.is_planar(*self.reduced.Z.shape):
            return
        found = least_in_plane(self.reduced.Z, self.reduced.y, self.reduced.ridge)
        self.incumbent.offer(found.b)
        self.lower_bound = max(self.lower_bound, self.reduced.objective(found.lowest))

    def _region(self) -> Region:
        """What is known of all solutions that matter: constraints, and the largest |u| within the box."""
        region = self.reduced.region.copy()
        if self._box is None:
            return region
        size = self._box.measure(self.best.beta, self.best.intercept)
        if size > self._box.size:
            raise ValueError(
                f"box is {self._box.size:g}, but the fit in question has a standardised coefficient of size "
                f"{size:.4g}; the box must be at least as large"
            )
        reach = self._box.reach(self.reduced.rows) * self.reduced.roots * (1.0 + BOX_RTOL)
        region.l[: reach.size], region.U[: reach.size] = -reach, reach
        return region

    def _cutoff(self) -> float:
        """The value down to which a proof must reach."""
        objective = self.best.objective
        room = max(max(self._gap, SUM_TOL) * objective, self._rounding)
        if self._proof is not None:
            room *= 1.0 - 2.0 * self._proof.margin
        room += ZERO_OBJECTIVE_TOL * self.problem.null_objective
        # What rounding takes from the bound in the end is proved on top, as far as bounds of nodes can tell.
        return self.reduced.value(objective - max(room - self._slack, LEAST_ROOM * self._slack))

    @property
    def _rounding(self) -> float:
        """By how much rounding may move the best objective: a gap that is no larger is closed."""
        best = self.best
        if self._rounded[0] is not best:
            self._rounded = best, self._engine.rounding(best)
        rounding = self._rounded[1]
        # As in a certificate, which adds what the search leaves open.
        total = rounding + (1.0 + LEAST_ROOM) * self._slack
        return rounding if total <= MAX_ROUNDING_SHARE * self.problem.null_objective else 0.0

    def _is_over(self) -> bool:
        return self._clock.is_over()

    def _polish(self, start: RowPoint) -> RowPoint:
        """The best point of the iterative method from a candidate."""
        best: Point = start
        for minimum in majorise(self._engine, start, POLISH_STEPS, POLISH_TOL):
            self._listener.record(minimum)
            if minimum.point.objective < best.objective:
                best = minimum.point
        return best if isinstance(best, RowPoint) else self.problem.evaluate(best.beta, best.intercept)

    def _may_be_taken(self, point: RowPoint) -> bool:
        """Whether a point is one that a proof file may name: within the box, if there is one."""
        if self._proof is None or self._box is None:
            return True
        return self._box.measure(point.beta, point.intercept) <= self._box.size

    def _keep_bound(self) -> None:
        found = self.reduced.objective(self.search.lower_bound)
        self.lower_bound = max(self.lower_bound, found - self._slack)
        if self._proof is not None:
            self._proof.bound = found - self._slack

    def _remember(self, objective: float, bound: float) -> None:
        """A row of the history for every better fit, and where the gap has shrunk by a share."""
        if self._history:
            _, last, reached = self._history[-1]
            if objective == last and bound - reached <= HISTORY_SHARE * (objective - reached):
                return
        self._history.append((self._clock.seconds, objective, bound))

    def _report(self) -> None:
        # Always, so that what is proved does not depend on the time.
        self._keep_bound()
        objective, bound = self.best.objective, self.lower_bound
        self._remember(objective, bound)
        now = time.perf_counter()
        if now - self._reported < REPORT_SECONDS:
            return
        self._reported = now
        gap = relative_gap(objective, bound)
        text = f"gap {gap:.2%}, objective {objective:.6g}, bound {bound:.6g}, {self.search.n_open:,} open"
        self._listener.note(text, self.search.n_nodes)
