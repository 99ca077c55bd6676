"""Minimising surrogates over data in blocks, many at once, with a few passes.

A surrogate begins where a sample of the rows has its minimum (`rectifit.scale.foresight`). After every pass a
step is made to the minimum of what was seen (`rectifit.scale.model`), and the next pass looks where that led:

* exact, with few near rows: if no far row changes sides on the way, that is the minimum;
* smooth, with too many. Kinks are smoothed over the distance that the rows are expected to move still; so
  many kinks together are as good as smooth.

No pass is spent on proof: every pass gives the value at its point and a lower bound of the minimum, and when
they agree it is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rectifit._typing import Vector
from rectifit.parallel import workers
from rectifit.scale.blocks import blas_threads
from rectifit.scale.foresight import Aim, Foresight, Start
from rectifit.scale.model import Found, Step, View, rounding_of, step_from, view_of
from rectifit.scale.problem import BlockProblem
from rectifit.scale.sweep import Above, Probe, Rule

__all__ = ["BlockSolver"]

MAX_TURNS = 60
# A loss below this share of sum y^2 is polished once more; one below the second is rounding.
POLISH, FINE = 1e-11, 1e-17
# Share of a step by which rows are expected to move after it: of a smooth step, and of one with near rows.
AFTER_SMOOTH, AFTER_EXACT = 0.3, 0.2
# Surrogates in one pass: at most so many, and so many numbers in their Gram matrices.
TOGETHER, NUMBERS = 16, 1 << 25


@dataclass
class Ask:
    """One surrogate on its way."""

    rule: Rule
    gamma: Vector
    aim: Aim
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
    base: tuple[Vector, float, Step] | None = None
    share: float = 1.0


class BlockSolver:
    """Answers questions about surrogates of a BlockProblem; starts come from its `foresight`.

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
        self.foresight = Foresight(problem)

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

    def _solve(self, rules: Sequence[Rule], starts: Sequence[Start], ahead: bool) -> list[Found]:
        asks = [
            Ask(rule, start.gamma, self.foresight.aim(rule, start, 0))
            for rule, start in zip(rules, starts, strict=True)
        ]
        for ask, start in zip(asks, starts, strict=True):
            if start.view is not None:
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
            probes.append(Probe(ask.gamma, ask.rule, *ask.aim))
            ask.ahead = None
            if ahead and ask.is_last and ask.best is not None:
                following = Above(ask.gamma, ask.best.zero)
                probes.append(probes[-1]._replace(rule=following))
        swept = self.problem.sweep(probes)
        views = [
            view_of(self.problem, probe, swept, far, e)
            for e, (probe, far) in enumerate(zip(probes, swept.far(), strict=True))
        ]
        if self._on_pass is not None:
            self._on_pass([views[place].seen for place in places])
        for ask, place, after in zip(asks, places, [*places[1:], len(probes)], strict=True):
            ask.ahead = views[place + 1] if after - place == 2 else None
        return [views[place] for place in places]

    def _advance(self, ask: Ask, view: View) -> None:
        """Judge the point of the pass and choose the next one."""
        total, seen = self.problem.total, view.seen
        step = step_from(view, self.problem.reach)
        ask.turn += 1
        ask.lowest = max(ask.lowest, seen.value - step.loss - rounding_of(self.problem, seen, step))
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
        move = self.foresight.length(step.delta)
        if step.is_exact:
            reach = AFTER_EXACT * move if 4.0 * move > view.width else 0.0
        else:
            reach = move * min(max(move / ask.last_move, AFTER_SMOOTH), 0.8)
            reach = min(reach, view.width / 8.0)
        ask.last_move, ask.is_last = move, step.is_exact and reach == 0.0
        ask.aim = self.foresight.aim(ask.rule, Start(ask.gamma, reach), ask.turn)

    def _shorten(self, ask: Ask, step: Step) -> None:
        """The way led too far: go back, to where a straight line through the slopes puts the minimum."""
        assert ask.base is not None
        origin, _, way = ask.base
        down, up = float(way.slope @ way.delta), float(step.slope @ way.delta)
        ratio = down / (down - up) if up > 0.0 > down else 0.5
        ask.share *= min(max(ratio, 0.1), 0.7)
        ask.gamma, ask.is_last = origin + ask.share * way.delta, False
        reach = AFTER_SMOOTH * ask.share * self.foresight.length(way.delta)
        ask.aim = self.foresight.aim(ask.rule, Start(ask.gamma, reach), ask.turn)

    def _finish(self, ask: Ask) -> Found:
        assert ask.best is not None
        best = ask.best
        loss = max(best.value - ask.lowest, 0.0)
        ahead = ask.ahead if ask.ahead is not None and ask.ahead.seen.gamma is best.gamma else None
        return replace(best, loss=loss, ahead=ahead, converged=loss <= 1e-9 * self.problem.total)
