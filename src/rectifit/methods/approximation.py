"""A1, the generalised approximation algorithm. With the positive samples in ascending order 1, ..., m, for

    j = 1..k,   0 <= i_1 < i_2 < ... < i_j <= m:      inactive {1..i_1} and i_2, ..., i_j,   active the rest,

minimise F over the active set, and keep the minimiser whose true objective is least. The least minimum of F,
and so that objective, is at most n/k times the least possible objective.

Sets with i_2 = i_1 + 1 are those of the next prefix and are visited once. First all prefixes are minimised.
Then, prefix by prefix, their neighbours are tested against the best values known, and those that can lower
neither the least minimum of F nor the least objective are skipped (surrogate/neighbours.py). So the result is
that of the whole enumeration. With an accelerator the others are first minimised there, thousands at a time,
and skipped for the same reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import ClassVar, NamedTuple

import numpy as np

from rectifit._typing import Mask, Matrix, Vector
from rectifit.active import Members
from rectifit.certificate.trivial_bound import guarantee_bound
from rectifit.fit import Stop
from rectifit.formatting import write_count
from rectifit.methods.pool import EnginePool
from rectifit.methods.search import Halt, Search
from rectifit.parallel import map_ordered
from rectifit.surrogate.batched import BatchedSolver
from rectifit.surrogate.engine import Engine, Minimum
from rectifit.surrogate.neighbours import Neighbours
from rectifit.surrogate.results import SurrogateResults
from rectifit.surrogate.rows_engine import ascending
from rectifit.surrogate.solver import SurrogateSolver
from rectifit.theory import approximation_ratio

__all__ = ["Approximation", "count_sets", "describe_endless"]

# Prefixes between two exchanges of the best values. Fixed, so that the work does not depend on the threads.
WAVE = 16
# Counts above this one are not exact: no computer comes so far.
MAX_COUNT = 1 << 62
# Active sets that are skipped or solved per second at best, as measured, and the seconds that are too many.
SETS_PER_SECOND = 1_000_000
MAX_SECONDS = 86400
# Active sets of a smaller k that may be suggested.
MAX_SUGGESTED = 10_000_000
# Sets that go to an accelerator at a time.
ACCELERATOR_BATCH = 16384
# Where a value from an accelerator exceeds its bound by g, the minimiser is taken to move u by at most
# ACCELERATOR_REACH sqrt(g); g above the share TIGHT_EXCESS of sum y^2 is no help.
ACCELERATOR_REACH = 100.0
TIGHT_EXCESS = 1e-8


def count_subsets(n: int, most: int) -> int:
    """Subsets of n things with up to so many members; at most `MAX_COUNT`.

    Examples
    --------
    >>> count_subsets(4, 2), count_subsets(4, 9), count_subsets(10000, 5000) == MAX_COUNT
    (11, 16, True)
    """
    count = term = 1
    for j in range(1, min(most, n) + 1):
        term = term * (n - j + 1) // j
        count += term
        if count >= MAX_COUNT:
            return MAX_COUNT
    return count


def count_sets(n_positive: int, k: int) -> int:
    """Active sets that the algorithm visits where so many outcomes are positive; at most `MAX_COUNT`.

    They are the n + 1 prefixes, and the sum of C(n - i - 1, j) over the prefixes i and over j = 1..k-1, which
    is C(n, j + 1).

    Examples
    --------
    >>> count_sets(10, 1), count_sets(10, 2), count_sets(10, 10), count_sets(10, 99)
    (11, 56, 1024, 1024)
    """
    return count_subsets(n_positive, k)


def describe_endless(n_positive: int, k: int) -> str | None:
    """What to know before an enumeration that cannot end within a day; None for any other.

    Examples
    --------
    >>> describe_endless(1000, 2) is None
    True
    >>> describe_endless(1000, 5)[:80]
    'approximation with k = 5 means 8,291,875,042,451 active sets, which take 95 days'
    """
    count = count_sets(n_positive, k)
    days = count // (SETS_PER_SECOND * MAX_SECONDS)
    if not days:
        return None
    if count < MAX_COUNT:
        sets, takes = f"{count:,}", write_count(days, "day")
    else:
        terms = np.array([_log_choose(n_positive, j) for j in range(min(k, n_positive) + 1)])
        sets, takes = f"about 1e{np.logaddexp.reduce(terms) / math.log(10.0):.0f}", f"over {days:,} days"
    smaller = 1
    while smaller + 1 < k and count_sets(n_positive, smaller + 1) <= MAX_SUGGESTED:
        smaller += 1
    return (
        f"approximation with k = {k} means {sets} active sets, which take {takes} at a million per second: "
        f"it ends by a time limit or Ctrl-C, without its guarantee; k = {smaller} means "
        f"{count_sets(n_positive, smaller):,}"
    )


def _log_choose(n: int, j: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1)


class Prefix(NamedTuple):
    """The minimiser for the active set members[first:]."""

    first: int
    beta: Vector
    intercept: float
    objective: float


@dataclass
class Visit:
    """What the neighbours of one prefix gave, and whether all were seen to."""

    results: SurrogateResults
    n_sets: int
    is_complete: bool


@dataclass(frozen=True)
class Approximation:
    """A1. `skip` False solves every surrogate, for comparison."""

    k: int = 1
    skip: bool = True
    needs_rows: ClassVar[bool] = True

    def run(self, search: Search) -> Stop:
        """Minimise all prefixes, then what matters of their neighbours."""
        return Enumeration(search, self.k, self.skip).run()


class Enumeration:
    """One run of A1."""

    def __init__(self, search: Search, k: int, skip: bool) -> None:
        self.search, self.k, self.skip = search, k, skip
        problem = search.problem
        order = ascending(problem)
        self.n_weighted = order.size
        self.members = order[problem.positive[order]]
        self.total = count_sets(self.members.size, k)
        self.done = 0
        self.lowest_bound = math.inf
        self.converged = True

    @property
    def solver(self) -> SurrogateSolver:
        return self.search.engine.row_solver()

    def run(self) -> Stop:
        search, m = self.search, self.members.size
        prefixes = self._solve_prefixes()
        if self.k > 1:
            self._solve_neighbours(prefixes)
        # With k >= m every subset was there.
        ratio = 1.0 if self.k >= m else approximation_ratio(self.n_weighted, self.k)
        least = guarantee_bound(self.lowest_bound, ratio)
        if self.converged:
            search.guarantee = ratio, least
        search.lower_bound = max(search.lower_bound, least)
        return Stop.COMPLETED

    def _n_neighbours(self, first: int) -> int:
        """Sets of up to k - 1 samples after the one that would lengthen the prefix."""
        return count_subsets(max(self.members.size - first - 1, 0), self.k - 1) - 1

    def _prefix_set(self, first: int) -> Mask:
        active = np.zeros(self.search.problem.n_samples, dtype=np.bool_)
        active[self.members[first:]] = True
        return active

    def _solve_prefixes(self) -> list[Prefix]:
        search, prefixes = self.search, []
        size = search.engine.batch
        for start in range(0, self.members.size + 1, size):
            search.check()
            firsts = range(start, min(start + size, self.members.size + 1))
            actives = np.array([self._prefix_set(first) for first in firsts])
            results, minima = SurrogateResults(), _minimise(search.engine, actives)
            results.add(minima)
            for first, minimum in zip(firsts, minima, strict=True):
                point = minimum.point
                prefixes.append(Prefix(first, point.beta, point.intercept, point.objective))
            self._merge(Visit(results, len(firsts), True))
        return prefixes

    def _solve_neighbours(self, prefixes: list[Prefix]) -> None:
        search = self.search
        # Good prefixes first: their neighbours are good too, and dismiss the rest.
        queue = sorted(
            (p for p in prefixes if self._n_neighbours(p.first)), key=lambda p: (p.objective, p.first)
        )
        Z = self.solver.rows.rows(self.members)
        accelerator = search.engine.accelerator()
        if accelerator is not None:
            self._solve_batched(accelerator, queue, Z)
            return
        engines = EnginePool(search.engine)
        for start in range(0, len(queue), WAVE):
            search.check()
            assert search.best is not None
            assert search.least is not None
            known = search.least.value, search.best.objective

            def visit(prefix: Prefix, known: tuple[float, float] = known) -> Visit:
                with engines.acquire() as engine:
                    return self._visit(engine, Z, prefix, *known)

            for done in map_ordered(
                visit, queue[start : start + WAVE], search.n_threads, search.clock.abandon
            ):
                self._merge(done)

    def _visit(
        self, engine: Engine, Z: Matrix, prefix: Prefix, least_value: float, least_objective: float
    ) -> Visit:
        """Solve the neighbours of a prefix that matter, a batch at a time."""
        results, n_sets = SurrogateResults(), self._n_neighbours(prefix.first)
        # Whichever prefix this engine has seen before, and on whichever thread: the digits are the same.
        engine.reset()
        solver, active = engine.row_solver(), self._prefix_set(prefix.first)
        base = solver.solve(active, start=(prefix.beta, prefix.intercept))
        neighbours = Neighbours(solver, self.members, Z, prefix.first, base, prefix.objective)
        sets = self._removals(neighbours, prefix.first, results, least_value, least_objective)
        while removed := list(islice(sets, engine.batch)):
            if self.search.clock.is_over():
                return Visit(results, n_sets, False)
            actives = np.repeat(active[None], len(removed), axis=0)
            for line, members in zip(actives, removed, strict=True):
                line[self.members[list(members)]] = False
            results.add(_minimise(engine, actives))
        return Visit(results, n_sets, not self.search.clock.is_over())

    def _solve_batched(self, accelerator: BatchedSolver, queue: list[Prefix], Z: Matrix) -> None:
        """Solve the neighbours that matter on an accelerator, and those that still matter here."""
        search, solver = self.search, self.solver
        waiting: list[tuple[Prefix, tuple[int, ...]]] = []
        for prefix in queue:
            search.check()
            assert search.best is not None
            assert search.least is not None
            base = solver.solve(self._prefix_set(prefix.first), start=(prefix.beta, prefix.intercept))
            neighbours = Neighbours(solver, self.members, Z, prefix.first, base, prefix.objective)
            known = search.least.value, search.best.objective
            for removed in self._removals(neighbours, prefix.first, SurrogateResults(), *known):
                waiting.append((prefix, removed))
                if len(waiting) == ACCELERATOR_BATCH:
                    self._test_batch(accelerator, waiting)
                    waiting = []
            self.done += self._n_neighbours(prefix.first)
            if search.clock.is_over():
                search.check()
                raise Halt(Stop.INTERRUPTED)
        if waiting:
            self._test_batch(accelerator, waiting)

    def _test_batch(self, accelerator: BatchedSolver, sets: list[tuple[Prefix, tuple[int, ...]]]) -> None:
        search, problem, results = self.search, self.search.problem, SurrogateResults()
        assert search.best is not None
        assert search.least is not None
        actives = np.array([self._prefix_set(prefix.first) for prefix, _ in sets])
        for line, (_, removed) in zip(actives, sets, strict=True):
            line[self.members[list(removed)]] = False
        starts = [np.append(prefix.beta, prefix.intercept) for prefix, _ in sets]
        found = accelerator.solve(actives, np.array(starts)[:, : self.solver.rows.n_columns])
        excess = np.maximum(found.values - found.bounds, 0.0)
        root = np.sqrt(found.objectives) - ACCELERATOR_REACH * np.sqrt(excess)
        matter = (found.bounds <= search.least.value) | (excess > TIGHT_EXCESS * problem.null_objective)
        matter |= root <= np.sqrt(search.best.objective)
        search.n_surrogates += int(np.count_nonzero(~matter))
        lines = actives[matter]
        for first in range(0, len(lines), search.engine.batch):
            results.add(_minimise(search.engine, lines[first : first + search.engine.batch]))
        self._merge(Visit(results, 0, True))

    def _removals(
        self,
        neighbours: Neighbours,
        first: int,
        results: SurrogateResults,
        least_value: float,
        least_objective: float,
    ) -> Iterator[tuple[int, ...]]:
        """Sets of up to k - 1 members that leave the active set, and that matter."""
        m = self.members.size
        for size in range(1, min(self.k, m - first)):
            for lead in combinations(range(first + 1, m), size - 1):
                if self.search.clock.is_over():
                    return
                after = lead[-1] + 1 if lead else first + 1
                lasts = np.arange(after, m)
                if self.skip and neighbours.is_regular and lasts.size:
                    removal = neighbours.nothing_removed()
                    for member in lead:
                        removal = neighbours.without(removal, member)
                    # What this prefix has found since the wave began counts too.
                    value = min(least_value, results.least.value) if results.least else least_value
                    objective = (
                        min(least_objective, results.best.objective) if results.best else least_objective
                    )
                    lasts = lasts[neighbours.matter(removal, after, value, objective)]
                for last in lasts.tolist():
                    yield (*lead, last)

    def _merge(self, visit: Visit) -> None:
        search, results = self.search, visit.results
        search.merge(results)
        self.lowest_bound = min(self.lowest_bound, results.lowest_bound)
        self.converged = self.converged and results.converged
        self.done += visit.n_sets
        search.report(self.done, self.total)
        if not visit.is_complete:
            search.check()
            raise Halt(Stop.INTERRUPTED)


def _minimise(engine: Engine, actives: Mask) -> list[Minimum]:
    """One surrogate per line."""
    return engine.minimise([Members(active) for active in actives])
