"""The package's own choice: sorting, then the iterative method from many starts, until these agree.

The first start is the best sorting solution, so the result is never worse than sorting+iterative. Where
little of the data is left unexplained, a proof often costs next to nothing: the search for one is given a
fixed amount of work, the fit carries the bound that this proves, and if that settles the matter, nothing more
is done.

Otherwise starts follow in batches. Half of them are the other sorting solutions, least squares and random
directions. The other half are close to the few best solutions, moved by random directions of between a
fiftieth and twice their length: good solutions lie close to better ones. Where a single outcome has much of
sum w y^2, solutions for the few largest outcomes come first. From every start the iterative method falls to
the next solution. The search ends when the solutions that were met say that hardly any start would end in a
better one (`Known.n_missing`), or after many starts without a better solution. Last come active sets that
differ from the best one in a single sample: the few samples closest to their kinks, or on small data that are
not settled every sample. How many starts there are at most depends on the size of the data alone
(`rectifit.routing.search_effort`), and nothing depends on the time that they take.

Large data read in passes have a sample in memory. Starts fall on this sample, and only those that it does not
rule out are followed on all rows, in the same passes as the best split (`rectifit.methods.screening`).

With very few positive samples there are so few active sets that all are minimised, which settles the matter.
On small data all splits are there, so the result is also never worse than the approximation algorithm with
k = 1.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rectifit import routing
from rectifit.active import ActiveSet, Members
from rectifit.certificate.proof import TARGET_GAP
from rectifit.data.problem import Point
from rectifit.fit import Stop
from rectifit.methods.approximation import Approximation
from rectifit.methods.multistart import MAX_ITER
from rectifit.methods.screening import screen
from rectifit.methods.search import Search
from rectifit.methods.sorting import solve_splits
from rectifit.surrogate.engine import Coefficients
from rectifit.surrogate.majorise import Basins, Paths, follow_together
from rectifit.surrogate.rows_engine import ascending

__all__ = ["Auto"]

# Least and largest length of a perturbation relative to the solution.
MIN_PERTURBATION = 0.02
MAX_PERTURBATION = 2.0
# Solutions that are perturbed.
ELITE_SIZE = 8
# Full batches without a better solution that end the search.
PATIENCE = 5
# The search ends when at most this share of starts is expected to end in a better minimum than those met,
# and at least half of the starts have ended within the share CLOSE_TOL of the best. On small data, where all
# splits are tried, starts cost so little that there are more of them.
BETTER_SHARE = 0.0075
SMALL_BETTER_SHARE = 0.002
CLOSE_TOL = 1e-5
# Minima whose objectives differ by no more than this share are the same.
SAME_TOL = 1e-6
# Share of sum w y^2 that makes the largest outcome heavy: then so few outcomes decide that finer splits pay.
HEAVY_SHARE = 0.05
# How many solutions for the largest outcomes are followed.
HEAVY_FOLLOWED = 2
# Starts without a better solution that end the search where only heavy outcomes lead to the best one.
HEAVY_PATIENCE = 32
# How many samples, those closest to their kinks, are switched one by one at the end.
N_NEAREST = 16
# How often a bound may look at all samples.
BOUND_LOOKS = 3_000


@dataclass(frozen=True)
class Auto:
    """Sorting, and the iterative method from many starts, of at most max_iter steps each; a bound."""

    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8
    with_bound: bool = True

    def run(self, search: Search) -> Stop:
        """Find a solution, and a bound where a short search may find one."""
        if self._has_bound(search):
            # Imported here: it loads the compiler. What is compiled together is compiled sooner.
            from rectifit.methods.proving import prepare_bound

            prepare_bound(search)
        effort = routing.search_effort(search.problem)
        n_positive = search.problem.data.outcomes.n_positive
        if effort.is_enumerable and search.engine.has_rows:
            stop = Approximation(max(n_positive, 1)).run(search)
            self._bound(search)
            return stop
        return self._find(search, effort)

    def _find(self, search: Search, effort: routing.Effort) -> Stop:
        """Sort, follow the best split, then batches of starts until they agree or find nothing for long."""
        engine = search.engine
        is_exhaustive = effort.is_exhaustive and engine.has_rows
        better_share = SMALL_BETTER_SHARE if is_exhaustive else BETTER_SHARE
        known = Known(search, self.max_iter, self.tol, better_share)
        n_splits = search.problem.n_samples if is_exhaustive else self.n_splits
        points = sorted(solve_splits(search, n_splits), key=lambda point: point.objective)
        starts = Starts(search, points[: effort.n_sorted], effort)
        if effort.is_screened and engine.sample is not None:
            self._follow_screened(search, known, points[0], starts)
            return Stop.STARTS
        # In passes, starts that are followed together cost little more than one.
        known.follow(*starts.take(effort.n_first if engine.has_rows else effort.n_batch, known.elite))
        if engine.has_rows and not is_exhaustive and (largest := solve_largest(search, n_splits)):
            known.follow_heavy(sorted(largest, key=lambda point: point.objective)[:HEAVY_FOLLOWED])
        bounded = self._bound(search)
        if search.is_within(TARGET_GAP):
            return Stop.OPTIMAL if search.is_proved() else Stop.TARGET
        stop, n_missing = Stop.STARTS, known.n_missing()
        while starts.n_left > 0:
            count = min(n_missing, effort.n_batch) if engine.has_rows else effort.n_batch
            known.follow(*starts.take(count, known.elite))
            search.report(starts.n_taken, starts.n_taken + starts.n_left)
            if search.is_proved():
                return Stop.OPTIMAL
            if not known.elite:
                return Stop.MAX_ITER
            n_missing = known.n_missing()
            if n_missing == 0:
                stop = Stop.SETTLED
                break
            if known.in_vain >= PATIENCE * effort.n_batch:
                stop = Stop.PATIENCE
                break
        if engine.has_rows and not effort.is_screened:
            most = None if is_exhaustive and stop is not Stop.SETTLED else N_NEAREST
            while known.try_sets(neighbours(search, most)):
                search.check()
        if search.best is not None and search.best.objective < bounded:
            self._bound(search)
        return stop

    def _follow_screened(self, search: Search, known: Known, best: Point, starts: Starts) -> None:
        """Follow the best split, and with it the starts that a sample of the rows does not rule out."""
        sample = search.engine.sample
        assert sample is not None
        chosen, _ = starts.choose(starts.n_left, known.elite)
        wide = [(start.beta, start.intercept) if isinstance(start, Point) else start for start in chosen]
        kept = screen(sample, wide, max_iter=self.max_iter, tol=self.tol, is_over=search.clock.is_over)
        search.check()
        points = [best, *(search.engine.evaluate(kept) if kept else [])]
        known.follow(points, [True] * len(points))

    def _has_bound(self, search: Search) -> bool:
        return self.with_bound and search.engine.has_rows and routing.is_bounded(search.problem)

    def _bound(self, search: Search) -> float:
        """A bound, where that is cheap; returns the objective that it was made for."""
        if search.best is None:
            return np.inf
        objective = search.best.objective
        if (
            self._has_bound(search)
            and not search.is_proved()
            and routing.can_bound_cheaply(search.problem, objective)
        ):
            # Imported here: it loads more of the compiler's work.
            from rectifit.methods.proving import bound_within

            bound_within(search, BOUND_LOOKS)
            search.check()
        return objective


def solve_largest(search: Search, n_splits: int) -> list[Point]:
    """Minimisers for the 1, 2, 4, ... largest outcomes, fewer than the splits have, if the largest is heavy.

    Heavy outcomes make minima that fit a few of them almost exactly. Random starts hardly ever find these.
    """
    problem = search.problem
    order = ascending(problem)[::-1]
    largest = float(problem.loaded().weighted_y[order[0]])
    if not largest * largest >= HEAVY_SHARE * problem.null_objective > 0.0:
        return []
    # The last split that is not empty; samples without a positive outcome are in no active set.
    limit = min(math.ceil(order.size / n_splits), problem.data.outcomes.n_positive + 1)
    sizes = [2**e for e in range(limit.bit_length()) if 2**e < limit]
    if not sizes:
        return []
    masks = np.zeros((len(sizes), problem.n_samples), dtype=np.bool_)
    for mask, size in zip(masks, sizes, strict=True):
        mask[order[:size]] = True
    minima = search.engine.minimise([Members(mask) for mask in masks])
    search.take(minima)
    return [minimum.point for minimum in minima]


def neighbours(search: Search, most: int | None) -> list[ActiveSet]:
    """The active set of the best solution with one positive sample switched: those closest to their kink."""
    assert search.best is not None
    problem = search.problem
    u = problem.preactivation(search.best.beta, search.best.intercept)
    members = np.flatnonzero(problem.positive)
    if most is not None and most < members.size:
        distances = np.abs(problem.root_weight * u)[members]
        members = members[np.argpartition(distances, most)[:most]]
    active = problem.active_at(u)
    actives = np.repeat(active[None], members.size, axis=0)
    actives[np.arange(members.size), members] ^= True
    return [Members(line) for line in actives]


def perturb(search: Search, elite: Sequence[Point], e: int) -> Coefficients:
    """Move the best solution, or every other time one of the elite."""
    end = elite[0 if e % 2 == 0 else int(search.rng.integers(len(elite)))]
    beta, intercept = search.engine.random_direction(search.rng)
    # Random directions have the norm of y.
    bounds = np.log(MIN_PERTURBATION), np.log(MAX_PERTURBATION)
    share = float(np.exp(search.rng.uniform(*bounds)))
    length = share * search.engine.length(end) / float(np.sqrt(search.problem.null_objective))
    if length == 0.0:
        return beta, intercept
    return end.beta + length * beta, end.intercept + length * intercept


def size_of(active: ActiveSet) -> int:
    """How many samples are active."""
    assert isinstance(active, Members)
    return int(np.count_nonzero(active.mask))


class Starts:
    """Where to begin: at sorting's solutions and random directions in turns, and close to the best solutions.

    After the first, every other start is close to the best ones, and all are when the others are used up.
    """

    def __init__(self, search: Search, points: Sequence[Point], effort: routing.Effort) -> None:
        self._search, self._engine = search, search.engine
        # Least squares is the first of the others.
        self._sorted, self._n_others, self._n_close = deque(points), 1 + effort.n_random, effort.n_perturbed
        self._n_wide = self.n_taken = 0

    @property
    def n_left(self) -> int:
        return len(self._sorted) + self._n_others + self._n_close

    def take(self, count: int, elite: Sequence[Point]) -> tuple[list[Point], list[bool]]:
        """The next few, with their objectives, and whether each is wide."""
        chosen, is_wide = self.choose(count, elite)
        new = [start for start in chosen if not isinstance(start, Point)]
        evaluated = iter(self._engine.evaluate(new) if new else ())
        return [start if isinstance(start, Point) else next(evaluated) for start in chosen], is_wide

    def choose(self, count: int, elite: Sequence[Point]) -> tuple[list[Point | Coefficients], list[bool]]:
        """The next few, and whether each is wide: not close to the best solutions."""
        chosen, is_wide = list[Point | Coefficients](), list[bool]()
        for _ in range(min(count, self.n_left)):
            has_wide = self._n_others > 0 or bool(self._sorted)
            if elite and self._n_close > 0 and not (has_wide and self.n_taken % 2 == 0):
                chosen.append(perturb(self._search, elite, self.n_taken // 2))
                self._n_close -= 1
                is_wide.append(False)
            elif has_wide:
                chosen.append(self._take_wide())
                is_wide.append(True)
            self.n_taken += 1
        return chosen, is_wide

    def _take_wide(self) -> Point | Coefficients:
        """One of sorting's solutions, or every other time least squares at first, then a random direction."""
        self._n_wide += 1
        if self._sorted and (self._n_wide % 2 == 1 or self._n_others == 0):
            return self._sorted.popleft()
        self._n_others -= 1
        if self._n_wide == 2:
            return self._engine.least_squares()
        return self._engine.random_direction(self._search.rng)


class Known:
    """Where paths have ended so far, the best few solutions, and starts since the last that was better."""

    def __init__(self, search: Search, max_iter: int, tol: float, better_share: float = BETTER_SHARE) -> None:
        self._search, self._max_iter, self._tol = search, max_iter, tol
        self._better_share = better_share
        self._basins = Basins()
        # Paths from wide starts, from those close to other solutions, and from sets of the largest outcomes.
        self._wide, self._close, self._heavy = list[int](), list[int](), list[int]()
        self.in_vain = 0
        self.elite: list[Point] = []

    def follow(self, starts: Sequence[Point], is_wide: Sequence[bool]) -> None:
        """Follow paths from starts, of which some are wide, and count them."""
        sets, order = self._search.engine.active_at(starts), list(range(len(starts)))
        if self._search.engine.has_rows:
            # Each minimisation begins where the one before it ended, and sets of a size have much in common.
            order.sort(key=lambda e: size_of(sets[e]))
        else:
            # Passes make use of what neighbours have in common: good points lie closer together than others.
            order.sort(key=lambda e: starts[e].objective)
        is_better, paths = self._follow([sets[e] for e in order], [starts[e] for e in order])
        for e, number in zip(order, paths.numbers, strict=True):
            (self._wide if is_wide[e] else self._close).append(number)
        # Starts that meet nothing but known solutions count twice.
        self.in_vain = 0 if is_better else self.in_vain + len(starts) * (1 if paths.ends else 2)

    def follow_heavy(self, starts: Sequence[Point]) -> None:
        """Follow paths from solutions for the largest outcomes; they do not count as starts."""
        _, paths = self._follow(self._search.engine.active_at(starts), starts)
        self._heavy = paths.numbers

    def try_sets(self, sets: Sequence[ActiveSet]) -> bool:
        """Minimise surrogates of active sets; whether the best got better."""
        return self._follow(sets, None)[0]

    def n_missing(self) -> int:
        """How many more starts settle the matter, if all of them end in the best minimum: 0 if it is settled.

        If n starts have ended in w different minima, the expected share of starts that would end in others is
        w (w + 1) / (n (n - 1)) (Boender and Rinnooy Kan, 1987; all that is unknown has a uniform prior). A
        minimum that was not met is better than w others with a probability of 1 / (w + 1), if it is as likely
        as they are to be the best of all. That leaves the share w / (n (n - 1)) for better minima.

        This is a model: half of the starts are close to the best, and where good minima have small basins,
        the share is larger. That they have shows in how few starts end in the best one, so half of them must.

        Where heavy outcomes have led to a minimum that no wide start has come near to, only these count, with
        the best that they have met, once other starts find nothing better: wide starts know nothing of such
        minima, and others of nothing else.
        """
        groups = self._wide, self._close, self._heavy
        wide, close, heavy = (sorted(map(self._basins.end_of, paths)) for paths in groups)
        levels, n_others = sorted(wide + close), 0
        if heavy and wide and min(heavy[0], levels[0]) < wide[0] * (1.0 - CLOSE_TOL):
            levels, n_others = wide, HEAVY_PATIENCE - self.in_vain
        n, n_best = len(levels), bisect_right(levels, levels[0] * (1.0 + CLOSE_TOL))
        w = 1 + sum(b > a * (1.0 + SAME_TOL) for a, b in pairwise(levels))
        n_for_better = math.ceil(0.5 + math.sqrt(0.25 + w / self._better_share)) - n
        return max(n_for_better, n - 2 * n_best, n_others, 0)

    def _follow(self, sets: Sequence[ActiveSet], starts: Sequence[Point] | None) -> tuple[bool, Paths]:
        search = self._search
        before = search.best.objective if search.best is not None else np.inf
        paths = follow_together(
            search.engine,
            sets,
            starts,
            max_iter=self._max_iter,
            tol=self._tol,
            basins=self._basins,
            is_over=search.clock.is_over,
        )
        search.merge(paths.results)
        search.check()
        self.elite = sorted(self.elite + paths.ends, key=lambda end: end.objective)[:ELITE_SIZE]
        is_better = search.best is not None and search.best.objective < before * (1.0 - self._tol)
        return is_better, paths
