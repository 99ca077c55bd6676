"""Sorting, the iterative method and their combination over data in blocks.

The methods are those of `rectifit.methods`. An active set is never stored: it is a cut through the sorted
outcomes or a point, and all surrogates that do not depend on each other are minimised in the same passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.methods.iterative import MAX_ITER
from rectifit.methods.search import Search
from rectifit.problem import Point
from rectifit.scale.model import Found, see
from rectifit.scale.problem import BlockProblem
from rectifit.scale.ranks import Cut, find_cuts
from rectifit.scale.solver import BlockSolver
from rectifit.scale.sweep import Above, Probe, Rule
from rectifit.solution import Stop, SurrogateMinimum
from rectifit.surrogate.bound import allowance

__all__ = ["BlockAuto", "BlockIterative", "BlockSearch", "BlockSorting", "split_rules"]

ALL, NONE = Cut(0.0, 0), Cut(math.inf, 0)
# A point whose objective is less than this share below that of the zero function is one.
DEAD = 1e-12
# Starts of "auto": so many of the sorting solutions, and of random directions.
SORTED_STARTS, RANDOM_STARTS = 3, 3


class BlockSearch(Search):
    """A search over data in blocks."""

    problem: Any

    def __init__(self, problem: BlockProblem, **options: Any) -> None:
        super().__init__(problem, **options)  # type: ignore[arg-type]
        self.at: Found | None = None

    @cached_property
    def blocks_solver(self) -> BlockSolver:
        """The solver of all surrogates."""
        return BlockSolver(self.problem, self.n_threads, self.glance)

    @property
    def is_dead(self) -> bool:
        """Whether nothing better than the zero function is known, but for rounding."""
        return self.at is None or self.at.objective >= (1.0 - DEAD) * self.problem.total

    def evaluate(self, beta: Vector, intercept: float) -> Point:
        """The true objective of a candidate, by one pass."""
        return Point(beta, intercept, np.empty(0), self.problem.objective(beta, intercept))

    def look(self, gammas: Sequence[Vector]) -> list[Found]:
        """Points as if they had been found, by one pass."""
        probes = [Probe(gamma, ALL, -1.0) for gamma in gammas]
        swept = self.problem.sweep(probes)
        return [see(self.problem, probe, swept, e) for e, probe in enumerate(probes)]

    def glance(self, seen: Sequence[Found]) -> None:
        """Look at the clock after a pass; when the time is up, points on their way count too."""
        if self.is_over():
            for one in seen:
                self.keep(one)
        self.check()

    def keep(self, found: Found) -> None:
        """Offer a point."""
        beta, intercept = self.problem.frame.coefficients(found.gamma)
        objective = found.objective * self.problem.frame.scale**2
        if self.offer(Point(beta, intercept, np.empty(0), objective)):
            self.at = found

    def gather(self, found: Sequence[Found]) -> None:
        """Count surrogates that were minimised, remember the least, and offer their minimisers."""
        square = self.problem.frame.scale**2
        for one in found:
            self.n_surrogates += 1
            if self.least is None or one.value * square < self.least.value:
                beta, intercept = self.problem.frame.coefficients(one.gamma)
                bound = (one.value - one.loss) * square
                rule: Any = one.rule
                self.least = SurrogateMinimum(rule, beta, intercept, one.value * square, bound)
            self.keep(one)


def split_rules(problem: BlockProblem, n_splits: int) -> list[Rule]:
    """The active sets I^0, ..., I^N of the sorting method; not more splits than samples with weight."""
    n, m = problem.survey.n_weighted, problem.survey.n_positive
    n_splits = min(n_splits, n)
    # Ranks among the positive samples, which are the last m.
    ranks = [t * n // n_splits - (n - m) for t in range(n_splits + 1)]
    inner = [rank for rank in ranks if 0 < rank < m]

    def count(task: Any) -> Any:
        return problem.reduce(task, design=False)

    sample = problem.sample
    v = sample.y if sample.w is None else np.sqrt(sample.w) * sample.y
    cuts = iter(find_cuts(count, inner, problem.n_samples, m, np.sort(v[v > 0.0])) if inner else [])
    return [NONE if rank >= m else ALL if rank <= 0 else next(cuts) for rank in ranks]


def solve_splits(search: BlockSearch, n_splits: int) -> list[Found]:
    """Minimise the surrogates of all splits; equal ones once."""
    problem, solver = search.problem, search.blocks_solver
    rules = split_rules(problem, n_splits)
    distinct = list(dict.fromkeys(rule for rule in rules if rule != NONE))
    search.check()
    minima = solver.solve(distinct, solver.foresight.starts(distinct)) if distinct else []
    answers: dict[Rule, Found] = dict(zip(distinct, minima, strict=True))
    total = problem.total
    # Without active samples every piece is smallest at u <= 0.
    zero = np.zeros(problem.frame.n_directions)
    loss = allowance(problem.n_samples, total)
    answers[NONE] = Found(NONE, zero, total, loss, total, 0.0, 0, True)
    found = [answers[rule] for rule in rules]
    search.gather(found)
    return found


def follow(search: BlockSearch, points: Sequence[Found], max_iter: int, tol: float) -> Stop:
    """The iterative method from some points, step by step together; returns why the last path ended."""
    solver, reason = search.blocks_solver, Stop.MAX_ITER
    paths = list(points)
    for t in range(max_iter):
        search.check()
        rules = [
            Above(path.gamma, path.zero) if path.ahead is None else path.ahead.seen.rule for path in paths
        ]
        found = solver.solve(rules, solver.foresight.starts(rules, paths), ahead=True)
        search.gather(found)
        search.report(t + 1, max_iter)
        going = []
        for before, after in zip(paths, found, strict=True):
            if after.n_changed == 0:
                reason = Stop.REPEATED
            elif before.objective - after.objective <= tol * before.objective:
                reason = Stop.LITTLE
            else:
                going.append(after)
        paths = going
        if not paths:
            return reason
    return Stop.MAX_ITER


@dataclass(frozen=True)
class BlockSorting:
    """A2 with N = n_splits."""

    n_splits: int = 10

    def run(self, search: BlockSearch) -> Stop:
        """Minimise all surrogates; the search keeps the best."""
        solve_splits(search, self.n_splits)
        return Stop.COMPLETED


@dataclass(frozen=True)
class BlockIterative:
    """A3 with T = max_iter, from the stage before or from least squares."""

    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: BlockSearch) -> Stop:
        """Follow the steps from the best point so far."""
        # From the zero function nothing follows, so least squares is the start there too.
        if search.at is None or search.is_dead:
            start = search.look([search.problem.least_squares()])[0]
            search.keep(start)
            return follow(search, [start], self.max_iter, self.tol)
        return follow(search, [search.at], self.max_iter, self.tol)


@dataclass(frozen=True)
class BlockAuto:
    """Sorting, then the iterative method from its best solutions, least squares and random directions."""

    n_splits: int = 10
    max_iter: int = MAX_ITER
    tol: float = 1e-8

    def run(self, search: BlockSearch) -> Stop:
        """Follow all starts in the same passes."""
        found = sorted(solve_splits(search, self.n_splits), key=lambda one: one.objective)
        distinct = list({id(one): one for one in found}.values())
        gammas = [search.problem.least_squares()]
        gammas += [self._direction(search) for _ in range(RANDOM_STARTS)]
        return follow(search, distinct[:SORTED_STARTS] + search.look(gammas), self.max_iter, self.tol)

    @staticmethod
    def _direction(search: BlockSearch) -> Vector:
        problem = search.problem
        gamma = search.rng.standard_normal(problem.frame.n_directions)
        size = math.sqrt(float(gamma @ problem.gram @ gamma))
        return np.asarray(gamma * (math.sqrt(problem.total) / size if size > 0.0 else 1.0))
