"""Minimising surrogates over data in blocks, many at once, with a few passes.

A surrogate begins where a sample of the rows, kept in memory, has its minimum. After every pass

* with few near rows the model (far quadratic) + (near pieces) is minimised exactly by the compiled kernel, as
  in `rectifit.surrogate.array`: if no far row changes sides on the way, that is the minimum;
* with too many, a Newton step is made on the surrogate with smoothed kinks. Kinks are smoothed over the
  distance that the rows are expected to move still; so many kinks together are as good as smooth.

The next pass looks where that led. No pass is spent on proof: the slopes of the model's minimum are a dual
vector for the point that was read, so every pass gives the value at its point and a lower bound of the
minimum (see `rectifit.surrogate.bound`), and when they agree it is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rectifit import pieces
from rectifit.parallel import workers
from rectifit.problem import ROUNDING, Mask, Matrix, Problem, Vector
from rectifit.scale.band import Near
from rectifit.scale.blocks import Block, blas_threads
from rectifit.scale.problem import BlockProblem
from rectifit.scale.rows import Space
from rectifit.scale.sweep import Above, Probe, Rule, Swept
from rectifit.surrogate import SurrogateSolver
from rectifit.surrogate.bound import allowance, fenchel_gap, mend_slopes, solve_gram

__all__ = ["BlockSolver", "Found", "Start", "see"]

# Near rows sought: at least so many, or so many per direction; up to twice as many are kept. From some turn
# on they double, as long as they hold at most so many numbers.
NEAR_LEAST, NEAR_FACTOR, DOUBLING, NEAR_MOST = 1000, 100, 6, 1 << 23
MAX_TURNS = 60
# A loss below this share of sum y^2 is polished once more; one below the second is rounding.
POLISH, FINE = 1e-11, 1e-17
# Share of a step by which rows are expected to move after it: of a smooth step, of one with near rows, and of
# the step from one active set to the next that the sample foretells.
AFTER_SMOOTH, AFTER_EXACT, AFTER_SAMPLE = 0.3, 0.2, 0.3
# Surrogates in one pass: at most so many, and so many numbers in their Gram matrices.
TOGETHER, NUMBERS = 16, 1 << 25
# The rows of the sample from which the density of kinks is read.
TELLING = 20
NARROWEST = 1e-13


class Start(NamedTuple):
    """Where to begin, how far rows are expected to move from there, and what is known of the place."""

    gamma: Vector
    reach: float
    view: View | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """The minimum of a surrogate, in working units.

    Attributes
    ----------
    rule, gamma : of which active set, and where
    value, loss : F_I there, and how far its minimum can lie below
    objective : L there
    largest : largest |u|
    n_changed : see `rectifit.scale.sweep.Swept`
    n_turns, converged : passes, and whether value and bound agree
    ahead : what the last pass has seen of the surrogate that the iterative method goes on with from here
    """

    rule: Rule
    gamma: Vector
    value: float
    loss: float
    objective: float
    largest: float
    n_changed: int
    n_turns: int
    converged: bool
    ahead: View | None = None

    @property
    def zero(self) -> float:
        """Less than this of u counts as 0."""
        return ROUNDING * self.largest


def see(problem: BlockProblem, probe: Probe, swept: Swept, line: int) -> Found:
    """A point that a pass has looked at, of which no loss is known yet."""
    penalty = problem.penalty_at(probe.gamma)
    return Found(
        probe.rule,
        probe.gamma,
        value=float(swept.values[line]) + penalty,
        loss=math.inf,
        objective=float(swept.objectives[line]) + penalty,
        largest=max(float(swept.highest[line]), -float(swept.lowest[line])),
        n_changed=int(swept.n_changed[line]),
        n_turns=0,
        converged=False,
    )


@dataclass(frozen=True)
class View:
    """What a pass has seen of one surrogate; slope and Gram matrix include the ridge."""

    seen: Found
    width: float
    slope: Vector
    gram: Matrix
    band_slope: Vector
    band_gram: Matrix
    band_gap: float
    near: Near | None


class Step(NamedTuple):
    """The way to the minimum of the model, a slope of F_I at the point, and what the bound loses there."""

    delta: Vector
    slope: Vector
    loss: float
    remainder: float
    is_exact: bool


@dataclass
class Ask:
    """One surrogate on its way."""

    rule: Rule
    gamma: Vector
    width: float
    turn: int = 0
    polished: bool = False
    last_move: float = math.inf
    lowest: float = -math.inf
    best: Found | None = None
    done: bool = False
    # Whether the point is expected to be the last, and what the last pass has seen of the next surrogate.
    is_last: bool = False
    ahead: View | None = None
    # The last point that was accepted, its value with all that smoothing may hide, step and slope.
    base: tuple[Vector, float, Step] | None = field(default=None)
    share: float = 1.0


class BlockSolver:
    """Answers questions about surrogates of a BlockProblem.

    Parameters
    ----------
    problem : BlockProblem
    n_threads : int, optional
        Threads that minimise models between passes. Default: as many as BLAS may use.
    on_pass : called after every pass with the points that it looked at, optional
    """

    def __init__(
        self,
        problem: BlockProblem,
        n_threads: int | None = None,
        on_pass: Callable[[list[Found]], None] | None = None,
    ) -> None:
        self.problem = problem
        self._on_pass = on_pass
        self.n_threads = n_threads or blas_threads()
        sample = problem.sample
        block = Block(sample.X, sample.y, sample.w, 0)
        rows, self._v = problem.frame.rows(block, Space(block))
        self._Z = rows.dense()
        self._moves = (self._Z != 0.0).any(axis=1)
        self._solved: dict[int, tuple[Rule, Vector]] = {}

    def solve(self, rules: Sequence[Rule], starts: Sequence[Start], ahead: bool = False) -> list[Found]:
        """Minimise one surrogate per rule, in shared passes.

        With `ahead`, a pass that is expected to be a surrogate's last also looks at the surrogate that the
        iterative method goes on with, which saves the first pass there.
        """
        found: list[Found] = []
        size = max(1, min(TOGETHER, NUMBERS // self.problem.frame.n_directions**2))
        for e in range(0, len(rules), size):
            found += self._solve(rules[e : e + size], starts[e : e + size], ahead)
        return found

    def foretell(self, rules: Sequence[Rule], bases: Sequence[Found] | None = None) -> list[Start]:
        """Starts from the sample: its minimisers, or, from points found before, how far they are apart."""
        q, m = self.problem.frame.n_directions, self._v.size
        if self._sample_solver is None:
            gamma = self.problem.least_squares()
            gammas = [gamma for _ in rules] if bases is None else [base.gamma for base in bases]
            return [Start(g, self._length(gamma)) for g in gammas]
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
        length = self._length(shift)
        if base.ahead is not None and 2.0 * length <= base.ahead.width:
            return Start(base.gamma, 0.0, base.ahead)
        return Start(base.gamma + shift, AFTER_SAMPLE * length)

    def _solve(self, rules: Sequence[Rule], starts: Sequence[Start], ahead: bool) -> list[Found]:
        asks = [
            Ask(rule, start.gamma, self._width(rule, start, self._target(0)))
            for rule, start in zip(rules, starts, strict=True)
        ]
        for ask, start in zip(asks, starts, strict=True):
            if start.view is not None:
                ask.width = start.view.width
                self._advance(ask, start.view)
        with workers(self.n_threads) as mapped:
            while waiting := [ask for ask in asks if not ask.done]:
                list(mapped(self._advance, waiting, self._look(waiting, ahead)))
        return [self._finish(ask) for ask in asks]

    def _look(self, asks: list[Ask], ahead: bool) -> list[View]:
        """One pass."""
        probes: list[Probe] = []
        places = []
        for ask in asks:
            places.append(len(probes))
            probes.append(Probe(ask.gamma, ask.rule, ask.width, self._cap(ask)))
            ask.ahead = None
            if ahead and ask.is_last and ask.best is not None:
                following = Above(ask.gamma, ask.best.zero)
                probes.append(probes[-1]._replace(rule=following))
        swept = self.problem.sweep(probes)
        views = [
            self._view(probe, swept, far, e)
            for e, (probe, far) in enumerate(zip(probes, swept.far(), strict=True))
        ]
        if self._on_pass is not None:
            self._on_pass([views[place].seen for place in places])
        for ask, place, after in zip(asks, places, [*places[1:], len(probes)], strict=True):
            ask.ahead = views[place + 1] if after - place == 2 else None
        return [views[place] for place in places]

    def _view(self, probe: Probe, swept: Swept, far: Matrix, line: int) -> View:
        """What the pass has seen of one surrogate."""
        problem, seen = self.problem, see(self.problem, probe, swept, line)
        gram = far[:-1, :-1] + problem.ridge
        return View(
            seen,
            probe.width,
            2.0 * (gram @ probe.gamma - far[:-1, -1]),
            gram,
            2.0 * swept.band_slopes[line],
            swept.band_grams[line],
            float(swept.band_gaps[line]),
            swept.near_rows(line, probe.gamma.size),
        )

    def _advance(self, ask: Ask, view: View) -> None:
        """Judge the point of the pass and choose the next one."""
        total, seen = self.problem.total, view.seen
        step = self._exact_step(ask, view) if view.near is not None else self._smooth_step(ask, view)
        ask.turn += 1
        ask.lowest = max(ask.lowest, seen.value - step.loss - self._allowance(seen, step))
        if ask.best is None or seen.value <= ask.best.value:
            ask.best = seen
        reached = step.loss <= POLISH * total
        if step.loss <= FINE * total or (reached and ask.polished) or ask.turn >= MAX_TURNS:
            # The last point is the most accurate, though values may differ by rounding.
            ask.best = seen if reached else ask.best
            ask.done = True
            return
        ask.polished = reached
        hidden = 0.0 if step.is_exact else view.band_gap
        if ask.base is not None and seen.value > ask.base[1] + hidden + 1e-13 * total and not reached:
            self._shorten(ask, step)
            return
        ask.base, ask.share = (seen.gamma, seen.value + hidden, step), 1.0
        ask.gamma = seen.gamma + step.delta
        move = self._length(step.delta)
        if step.is_exact:
            reach = AFTER_EXACT * move if 4.0 * move > ask.width else 0.0
        else:
            reach = move * min(max(move / ask.last_move, AFTER_SMOOTH), 0.8)
            reach = min(reach, ask.width / 8.0)
        ask.last_move, ask.is_last = move, step.is_exact and reach == 0.0
        ask.width = self._width(ask.rule, Start(ask.gamma, reach), self._target(ask.turn))

    def _shorten(self, ask: Ask, step: Step) -> None:
        """The way led too far: go back, to where a straight line through the slopes puts the minimum."""
        assert ask.base is not None
        origin, _, way = ask.base
        down, up = float(way.slope @ way.delta), float(step.slope @ way.delta)
        ratio = down / (down - up) if up > 0.0 > down else 0.5
        ask.share *= min(max(ratio, 0.1), 0.7)
        ask.gamma, ask.is_last = origin + ask.share * way.delta, False
        reach = AFTER_SMOOTH * ask.share * self._length(way.delta)
        ask.width = self._width(ask.rule, Start(ask.gamma, reach), self._target(ask.turn))

    def _exact_step(self, ask: Ask, view: View) -> Step:
        """Minimise far quadratic plus near pieces."""
        assert view.near is not None
        Z, v, u = view.near
        if v.size == 0:
            return self._smooth_step(ask, view)
        # Imported here: the compiler takes longer to load than everything else together.
        from rectifit.surrogate import kernel
        from rectifit.surrogate.descent import Carry, Terrain, descend

        q, kink = ask.gamma.size, 2.0 * np.maximum(v, 0.0)
        right = u > kink
        norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        terrain = Terrain(Z, np.ascontiguousarray(Z.T), norms, v, u, view.slope[None], view.gram)
        state = np.where(right, kernel.QUADRATIC, kernel.FLAT).astype(np.int8)
        carry = Carry(np.zeros(q), u.copy(), state, view.gram + Z[right].T @ Z[right], np.zeros(q))
        found = descend(terrain, kink[None], carry)
        slopes, present = found.slopes[0], carry.state != kernel.FLAT
        rho = view.slope + slopes @ Z
        gram = view.gram + Z[present].T @ Z[present]
        mended = mend_slopes(Z, present, slopes, rho, gram)
        gap = max(fenchel_gap(u, v, kink, mended.slopes) + mended.decrement, 0.0)
        loss = gap if mended.reach * self.problem.reach <= 2.0 * ask.width else math.inf
        slope = view.slope + pieces.slope(u, v, kink) @ Z
        return Step(found.deltas[0], slope, loss, mended.remainder, True)

    def _smooth_step(self, ask: Ask, view: View) -> Step:
        """A Newton step with the near rows smoothed; exact where there are none."""
        slope = view.slope + view.band_slope
        delta = -0.5 * solve_gram(view.gram + view.band_gram, slope)
        v = solve_gram(view.gram, slope)
        is_safe = float(np.linalg.norm(v)) * self.problem.reach <= 2.0 * ask.width
        loss = max(view.band_gap + 0.25 * float(slope @ v), 0.0) if is_safe else math.inf
        remainder = float(np.abs(slope - view.gram @ v).sum())
        return Step(delta, slope, loss, remainder, view.near is not None)

    def _allowance(self, seen: Found, step: Step) -> float:
        """What the bound gives away for rounding; the sum of n slopes is at most 2 sqrt(n F)."""
        columns = np.abs(self.problem.frame.T @ seen.gamma)
        n, q = self.problem.n_samples, seen.gamma.size
        extent = float(columns @ self.problem.survey.largest)
        size = float(np.linalg.norm(seen.gamma))
        return allowance(n, seen.value, q, extent, 2.0 * math.sqrt(n * seen.value), step.remainder, size)

    def _finish(self, ask: Ask) -> Found:
        assert ask.best is not None
        best = ask.best
        loss = max(best.value - ask.lowest, 0.0)
        ahead = ask.ahead if ask.ahead is not None and ask.ahead.seen.gamma is best.gamma else None
        fields = vars(best) | {"loss": loss, "n_turns": ask.turn, "ahead": ahead}
        return Found(**fields | {"converged": loss <= 1e-9 * self.problem.total})

    def _target(self, turn: int) -> int:
        """Near rows wanted."""
        q = self.problem.frame.n_directions
        wanted = max(NEAR_LEAST, NEAR_FACTOR * q) * 2 ** max(0, turn - DOUBLING)
        return int(min(wanted, max(NEAR_MOST // q, 10 * q)))

    def _cap(self, ask: Ask) -> int:
        """Near rows that are brought back: none where the sample says that there are too many."""
        cap = 2 * self._target(ask.turn)
        n_near = int((self._distances(ask.gamma)[self._kinked(ask.rule)] <= ask.width).sum())
        too_many = n_near >= TELLING and n_near * self.problem.n_samples > 1.5 * cap * self._v.size
        return 0 if too_many else cap

    def _distances(self, gamma: Vector) -> Vector:
        """How far rows of the sample are from their kinks."""
        return np.asarray(np.abs(self._Z @ gamma - 2.0 * np.maximum(self._v, 0.0)))

    def _kinked(self, rule: Rule) -> Mask:
        """Rows of the sample that have a kink and may cross it."""
        return np.asarray(~self._active(rule) & self._moves)

    def _width(self, rule: Rule, start: Start, n_near: int) -> float:
        """The distance from their kinks up to which rows are near: so many rows, or all that may cross."""
        n, m = self.problem.n_samples, self._v.size
        if n <= n_near:
            return math.inf
        distances = self._distances(start.gamma)
        kinked = np.sort(distances[self._kinked(rule)])
        if kinked.size == 0:
            return max(float(distances.max()), NARROWEST)
        expected = n_near * m / n
        if expected >= TELLING:
            width = float(kinked[min(int(expected), kinked.size - 1)])
        else:
            first = min(TELLING, kinked.size)
            width = float(kinked[first - 1]) * expected / first
        return max(width, 2.0 * start.reach, NARROWEST)

    def _length(self, delta: Vector) -> float:
        """Root mean square of what rows move."""
        return math.sqrt(float(np.square(self._Z @ delta).mean()))

    def _active(self, rule: Rule) -> Mask:
        """Active rows of the sample."""
        v = self._v
        if isinstance(rule, Above):
            return np.asarray((self._Z @ rule.gamma > rule.zero) & (v > 0.0))
        cut = rule.value / self.problem.frame.scale
        tied = (v == cut) & (self.problem.sample.index >= rule.first)
        return np.asarray(((v > cut) | tied) & (v > 0.0))

    @cached_property
    def _sample_solver(self) -> SurrogateSolver | None:
        problem, sample = self.problem, self.problem.sample
        if sample.w is not None and not (sample.w > 0.0).any():
            return None
        alpha = problem.alpha * sample.y.size / problem.n_samples
        data = Problem.from_data(
            sample.X, sample.y, sample_weight=sample.w, fit_intercept=problem.fit_intercept, alpha=alpha
        )
        return SurrogateSolver(data)

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
