"""What a sample of the rows, kept in memory, says of passes to come.

It says where the minimum of a surrogate is, about; how far it moves from one active set to the next; and how
wide the band around the kinks must be that holds a given number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rectifit import pieces
from rectifit._typing import Mask, Vector
from rectifit.scale.blocks import Block
from rectifit.scale.model import Found, View
from rectifit.scale.problem import BlockProblem
from rectifit.scale.rows import Space
from rectifit.scale.sweep import Above, Rule
from rectifit.surrogate import SurrogateSolver

__all__ = ["Aim", "Foresight", "Start"]

# Near rows sought: at least so many, or `near_factor` per direction; up to twice as many are kept. From some
# turn on they double, as long as they hold at most so many numbers.
NEAR_LEAST, DOUBLING, NEAR_MOST = 1000, 6, 1 << 23
# Share of the step from one active set to the next, as the sample foretells it, by which rows still move.
AFTER_SAMPLE = 0.3
# The rows of the sample from which the density of kinks is read.
TELLING = 20
NARROWEST = 1e-13


class Start(NamedTuple):
    """Where to begin, how far rows are expected to move from there, and what is known of the place."""

    gamma: Vector
    reach: float
    view: View | None = None


class Aim(NamedTuple):
    """Up to which distance from their kinks rows are near, and how many of them are brought back."""

    width: float
    cap: int


class Foresight:
    """Answers from the sample of a BlockProblem."""

    def __init__(self, problem: BlockProblem) -> None:
        self.problem = problem
        sample = problem.sample
        block = Block(sample.X, sample.y, sample.w, 0)
        rows, self._v = problem.frame.rows(block, Space(block))
        self._Z = rows.dense()
        self._moves = (self._Z != 0.0).any(axis=1)
        self._solved: dict[int, tuple[Rule, Vector]] = {}

    def starts(self, rules: Sequence[Rule], bases: Sequence[Found] | None = None) -> list[Start]:
        """Starts from the sample: its minimisers, or, from points found before, how far they are apart."""
        q, m = self.problem.frame.n_directions, self._v.size
        if self._sample_solver is None:
            gamma = self.problem.least_squares()
            gammas = [gamma for _ in rules] if bases is None else [base.gamma for base in bases]
            return [Start(g, self.length(gamma)) for g in gammas]
        if bases is not None:
            before = self._minimise_sample([base.rule for base in bases])
            after = self._minimise_sample(rules)
            return [self._go_on(base, new - old) for base, new, old in zip(bases, after, before, strict=True)]
        starts = []
        for rule, gamma in zip(rules, self._minimise_sample(rules), strict=True):
            kink = pieces.kinks(self._v, self._active(rule))
            residual = float(pieces.value(self._Z @ gamma, self._v, kink).mean())
            whole = m >= self.problem.n_samples
            starts.append(Start(gamma, 0.0 if whole else math.sqrt(residual * q / m)))
        return starts

    def _go_on(self, base: Found, shift: Vector) -> Start:
        """From a point found before: to where the sample says, or, if that is near, by what is known here."""
        length = self.length(shift)
        if base.ahead is not None and 2.0 * length <= base.ahead.width:
            return Start(base.gamma, 0.0, base.ahead)
        return Start(base.gamma + shift, AFTER_SAMPLE * length)

    def aim(self, rule: Rule, start: Start, turn: int) -> Aim:
        """Near are as many rows as wanted, or all that may cross; they are brought back unless too many."""
        n, m, n_near = self.problem.n_samples, self._v.size, self._target(turn)
        if n <= n_near:
            return Aim(math.inf, 2 * n_near)
        distances = np.abs(self._Z @ start.gamma - 2.0 * np.maximum(self._v, 0.0))
        kinked = np.sort(distances[~self._active(rule) & self._moves])
        if kinked.size == 0:
            return Aim(max(float(distances.max()), NARROWEST), 2 * n_near)
        expected = n_near * m / n
        if expected >= TELLING:
            width = float(kinked[min(int(expected), kinked.size - 1)])
        else:
            first = min(TELLING, kinked.size)
            width = float(kinked[first - 1]) * expected / first
        width = max(width, 2.0 * start.reach, NARROWEST)
        found = int(np.searchsorted(kinked, width, side="right"))
        return Aim(width, 0 if found >= TELLING and found > 3.0 * expected else 2 * n_near)

    def _target(self, turn: int) -> int:
        """Near rows wanted."""
        q = self.problem.frame.n_directions
        wanted = max(NEAR_LEAST, self.problem.blocks.near_factor * q) * 2 ** max(0, turn - DOUBLING)
        return int(min(wanted, max(NEAR_MOST // q, 10 * q)))

    def length(self, delta: Vector) -> float:
        """Root mean square of what rows move."""
        return math.sqrt(float(np.square(self._Z @ delta).mean()))

    def _active(self, rule: Rule) -> Mask:
        """Active rows of the sample."""
        v = self._v
        if isinstance(rule, Above):
            return np.asarray((self._Z @ rule.gamma > rule.zero) & (v > 0.0))
        above = rule.above(v, self.problem.sample.index, self.problem.frame.scale)
        return np.asarray(above & (v > 0.0))

    @cached_property
    def _sample_solver(self) -> SurrogateSolver | None:
        w = self.problem.sample.w
        if w is not None and not (w > 0.0).any():
            return None
        return SurrogateSolver(self.problem.sampled(0.0))

    def _minimise_sample(self, rules: Sequence[Rule]) -> list[Vector]:
        """Minimisers of the surrogates of the sample; the last ones are remembered."""
        assert self._sample_solver is not None
        kept = [self._solved.get(id(rule)) for rule in rules]
        new = [rule for rule, known in zip(rules, kept, strict=True) if known is None]
        if new:
            solutions = self._sample_solver.solve_each(np.array([self._active(rule) for rule in new]))
            for rule, s in zip(new, solutions, strict=True):
                self._solved[id(rule)] = rule, self.problem.frame.from_coefficients(s.beta, s.intercept)
        found = [self._solved[id(rule)][1] for rule in rules]
        self._solved = {id(rule): self._solved[id(rule)] for rule in rules}
        return found
