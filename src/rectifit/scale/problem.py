"""A ReLU regression whose data is in blocks: the counterpart of `rectifit.problem.Problem`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.checks import check_number
from rectifit.problem import Problem
from rectifit.scale.blocks import Block, Blocks, S, Total
from rectifit.scale.frame import SurveyTask, join_samples, make_frame
from rectifit.scale.rows import Space
from rectifit.scale.sweep import Above, Probe, Rule, Sweep, Swept
from rectifit.surrogate.bound import solve_gram

__all__ = ["BlockProblem"]

# Rows kept in memory: about so many per direction, and at least so many, as long as they hold at most so many
# numbers.
SAMPLE_FACTOR, SAMPLE_LEAST, SAMPLE_MOST = 200, 5000, 1 << 23


class BlockProblem:
    """Surveyed data in blocks. Only sums and a sample of the rows are in memory.

    Parameters
    ----------
    blocks : Blocks
    fit_intercept : bool, default=True
    alpha : float, default=0.0
    floor : float, default=0.0
        Outcomes are taken less this floor, here and in every pass: with it the problem has the floor 0, see
        `rectifit.methods.floor`.
    on_pass : called with the number of every pass that begins, optional

    Attributes
    ----------
    frame, gram, cross, ridge : the working coordinates, Z'Z, Z'v and the ridge in them
    reach : no row is longer than this
    sample : `rectifit.scale.frame.Sample`
    n_passes : over X so far
    """

    def __init__(
        self,
        blocks: Blocks,
        *,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        floor: float = 0.0,
        on_pass: Callable[[int], None] | None = None,
    ) -> None:
        if not isinstance(fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept is {fit_intercept!r}; it must be True or False")
        self.blocks = blocks
        self.fit_intercept = bool(fit_intercept)
        self.alpha = check_number(alpha, "alpha")
        self.floor = check_number(floor, "floor", above=-np.inf)
        self.n_passes = 0
        self._on_pass = on_pass
        n, p = blocks.n_samples, blocks.n_features
        wanted = min(max(SAMPLE_FACTOR * (p + 1), SAMPLE_LEAST), max(SAMPLE_MOST // p, 2 * (p + 1)))
        self.survey = self.reduce(SurveyTask(self.fit_intercept, wanted / n))
        if self.survey.n_weighted == 0:
            raise ValueError("sample_weight is zero everywhere; at least one weight must be positive")
        self.penalty = np.full(self.n_columns, self.alpha)
        self.penalty[p:] = 0.0
        self.frame, self.gram = make_frame(self.survey, self.penalty, self.fit_intercept, self.reduce)
        magnified = self.frame.T * self.survey.largest[:, None]
        self.cross: Vector = (self.survey.cross @ magnified) * (self.survey.top / self.frame.scale)
        penalised = np.sqrt(self.penalty)[:, None] * self.frame.T
        self.ridge = penalised.T @ penalised
        self.reach = float(np.linalg.norm(magnified))
        self.sample = join_samples(self.survey.sample)

    @property
    def n_samples(self) -> int:
        return self.blocks.n_samples

    @property
    def n_features(self) -> int:
        return self.blocks.n_features

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.blocks.has_weights

    @property
    def n_columns(self) -> int:
        """Coefficients, the intercept included."""
        return self.n_features + int(self.fit_intercept)

    @property
    def total(self) -> float:
        """sum v^2, in working units."""
        return self.survey.total * (self.survey.top / self.frame.scale) ** 2

    @property
    def null_objective(self) -> float:
        """sum w (y - floor)^2, the objective of the floor itself."""
        return self.survey.total * self.survey.top * self.survey.top

    def shifted(self, floor: float) -> BlockProblem:
        """The same: outcomes are taken less this floor already."""
        assert floor == self.floor
        return self

    def sampled(self, floor: float) -> Problem:
        """The sample as a problem in memory, for this floor, with as much ridge as is its share."""
        X, y, w, _ = self.sample
        share = y.size / self.n_samples
        return Problem.from_data(
            X, y + floor, sample_weight=w, fit_intercept=self.fit_intercept, alpha=self.alpha * share
        )

    def non_positive(self) -> tuple[int, float]:
        """Number of samples with outcomes at the floor or below, and their sum of w (y - floor)^2."""
        fixed = self.survey.fixed * self.survey.top * self.survey.top
        return self.survey.n_rows - self.survey.n_positive, fixed

    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass over the data, counted if it reads X."""
        if design:
            self.n_passes += 1
            if self._on_pass is not None:
                self._on_pass(self.n_passes)
        work: Callable[[Block], S] = _Less(self.floor, task) if self.floor else task
        return self.blocks.reduce(work, design=design)

    def sweep(self, probes: list[Probe]) -> Swept:
        """One pass at some points."""
        return self.reduce(Sweep(self.frame, tuple(probes)))

    def least_squares(self) -> Vector:
        """Working coordinates of the linear least-squares fit, ridge included."""
        return solve_gram(self.gram + self.ridge, self.cross)

    def penalty_at(self, gamma: Vector) -> float:
        """alpha |beta|^2 in working units."""
        return float(self.penalty @ np.square(self.frame.T @ gamma))

    def objective(self, beta: Any, intercept: float = 0.0) -> float:
        """The true objective L, by one pass."""
        b = np.asarray(beta, dtype=np.float64)
        return float(self.reduce(_ObjectiveTask(b, intercept)).value + self.alpha * np.square(b).sum())

    def surrogate_value(self, active: Rule, beta: Vector, intercept: float = 0.0) -> float:
        """The convex surrogate F_I of an active set given by its rule, by one pass."""
        # From the coefficients themselves: working coordinates may not have all of their digits.
        plain = self.frame.plain()
        if isinstance(active, Above):
            active = Above((self.frame.T @ active.gamma) / plain.unit, active.zero)
        probe = Probe(plain.from_coefficients(beta, intercept), active, -1.0)
        value = float(self.reduce(Sweep(plain, (probe,))).values[0])
        return value * self.frame.scale**2 + float(self.alpha * np.square(beta).sum())


@dataclass(frozen=True)
class _Less:
    """A task for blocks whose outcomes are taken less a floor."""

    floor: float
    task: Callable[[Block], Any]

    def __call__(self, block: Block) -> Any:
        return self.task(replace(block, y=block.lift(block.y) - self.floor))


@dataclass(frozen=True)
class _ObjectiveTask:
    """sum w (max(0, u) - y)^2 from the coefficients themselves, without working coordinates."""

    beta: Vector
    intercept: float

    def __call__(self, block: Block) -> Total:
        total, space = 0.0, Space(block)
        for piece in block.pieces():
            u = piece.matrix(space) @ piece.lift(self.beta)
            u += self.intercept if piece.w is None else self.intercept * piece.root_weight
            r = u * (u > 0.0) - piece.outcomes()
            total += float(r @ r)
        return Total(total)
