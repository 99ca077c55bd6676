"""One question, one answer: minimise F_I over (beta, intercept) for an active set I."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Vector
from rectifit.bounds import allowance
from rectifit.checks import check_active, check_start
from rectifit.constraints import read_constraints
from rectifit.data.kinds import names_of
from rectifit.data.memory import MemoryData
from rectifit.data.problem import Problem
from rectifit.routing import is_small
from rectifit.surrogate.rows import WorkingRows, working_rows
from rectifit.surrogate.solution import Answers, SurrogateSolution, SurrogateSolutions

__all__ = ["ENGINES", "SurrogateSolver", "solve_surrogate"]

ENGINES = ("auto", "compiled", "near_far")
# Share of the value. A bound that loses more is compared with the one that needs no solver.
LOOSE_BOUND = 1e-9


class RowEngine(Protocol):
    """Minimises surrogates of rows in memory."""

    batch: int

    def reset(self) -> None: ...

    def restart(self, gamma: Vector) -> None: ...

    def solve(self, actives: Mask) -> Answers: ...


class SurrogateSolver:
    """Owns the data and is asked one active set after another.

    Gram matrix, states and solution are kept between questions, so that neighbouring active sets cost a few
    steps each.

    Parameters
    ----------
    problem : Problem
    engine : {"auto", "compiled", "near_far"}, default="auto"
        "compiled" copies the data and runs every step in compiled code; "near_far" leaves X where it is and
        multiplies it by BLAS. "auto" takes the first for small problems.

    Attributes
    ----------
    batch : how many active sets in one call of `solve_each` are answered fastest
    rows : the data in working coordinates

    Examples
    --------
    >>> import numpy as np
    >>> from rectifit import Problem
    >>> solver = SurrogateSolver(Problem.from_data([[1.0], [2.0], [3.0]], [1.0, 2.0, 6.0]))
    >>> solution = solver.solve(np.array([True, True, True]))
    >>> round(float(solution.beta[0]), 6), round(solution.intercept, 6)
    (2.5, -2.0)
    """

    def __init__(self, problem: Problem, engine: str = "auto") -> None:
        if engine not in ENGINES:
            raise ValueError(f"engine is {engine!r}; it must be one of {', '.join(map(repr, ENGINES))}")
        self.problem = problem
        if engine == "auto":
            engine = "compiled" if is_small(problem.n_samples, problem.n_features) else "near_far"
        # Imported here: numba takes longer to load than everything else together.
        self.rows: WorkingRows
        self._engine: RowEngine
        if engine == "compiled":
            from rectifit.surrogate.compiled import CompiledEngine

            self._engine = CompiledEngine(problem)
            self.rows = self._engine.rows
        else:
            from rectifit.surrogate.resident import ResidentEngine

            self.rows = working_rows(problem)
            self._engine = ResidentEngine(self.rows)
        self.batch = self._engine.batch

    def reset(self) -> None:
        """Forget all questions: the next answer does not depend on them."""
        self._engine.reset()

    def solve(self, active: npt.ArrayLike, start: Any = None) -> SurrogateSolution:
        """Minimise F_I for the active set given as a mask; entries at y <= 0 are ignored.

        Parameters
        ----------
        active : boolean mask over samples
        start : solution, pair (beta, intercept) or coefficients, optional
            Where to begin; without it, at the solution of the question before.
        """
        if np.ndim(active) != 1:
            raise ValueError(f"active has shape {np.shape(active)}; it must be one mask over samples")
        return self.solve_each(active, start=start)[0]

    def solve_each(self, actives: npt.ArrayLike, start: Any = None) -> list[SurrogateSolution]:
        """Minimise one surrogate after another, in one call: one mask per line, one solution for each."""
        masks = check_active(actives, self.problem.n_samples) & self.problem.positive
        found, answers = self._answer(
            list(masks), None if start is None else check_start(start, self.problem)
        )
        duals, steps, multipliers = list[Vector](), list[int](), list[Vector]()
        if answers is not None:
            # The scale is a power of two, so multiplying by it is exact.
            scale, root_weight = self.rows.scale, self.rows.root_weight
            duals += list(answers.slopes * (scale if root_weight is None else scale * root_weight))
            steps += answers.steps.tolist()
            if answers.wall_slopes.size and self.rows.walls is not None:
                multipliers += list(self.rows.walls.multipliers(answers.wall_slopes))
        if len(steps) < len(found.values):
            duals, steps = [*duals, np.zeros(masks.shape[1])], [*steps, 0]
        # Zeros for the empty set, and where no constraint mattered.
        multipliers += [np.zeros(self.rows.n_multipliers)] * (len(steps) - len(multipliers))
        solutions = [
            SurrogateSolution(*fields)
            for fields in zip(
                found.betas,
                found.intercepts,
                found.values,
                found.bounds,
                duals,
                steps,
                found.converged,
                multipliers,
                strict=True,
            )
        ]
        return [solutions[line] for line in found.lines]

    def answer(self, masks: Sequence[Mask], start: tuple[Vector, float] | None = None) -> SurrogateSolutions:
        """The same without duals, for masks and a start that need no check; with u where it is known."""
        return self._answer(masks, start)[0]

    def _answer(
        self, masks: Sequence[Mask], start: tuple[Vector, float] | None
    ) -> tuple[SurrogateSolutions, Answers | None]:
        """Solutions, and the engine's answers, if it was asked at all."""
        if start is not None:
            self._engine.restart(self.rows.coordinates.from_coefficients(*start))
        # Equal questions, as sorting asks them below the positive outcomes, have one answer. That about the
        # empty set is known if coefficients may be zero, and stands at the end.
        keys = [mask.tobytes() for mask in masks]
        different = dict(zip(keys, masks, strict=True))
        if self.problem.allows_zero:
            different.pop(bytes(self.problem.n_samples), None)
        line = {key: e for e, key in enumerate(different)}
        lines = [line.get(key, -1) for key in keys]
        asked = list(different.values())
        answers = self._engine.solve(np.array(asked)) if asked else None
        return self._collect(lines, asked, answers), answers

    def _collect(
        self, lines: list[int], masks: Sequence[Mask], answers: Answers | None
    ) -> SurrogateSolutions:
        if answers is None:
            found = SurrogateSolutions(lines, [], [], [], [], [], [], [])
        else:
            p, values, bounds = self.problem.n_features, answers.values.tolist(), answers.bounds.tolist()
            for e, (value, bound) in enumerate(zip(values, bounds, strict=True)):
                if not value - bound <= LOOSE_BOUND * value:
                    bounds[e] = max(bound, self._bound_without_solver(masks[e]))
            found = SurrogateSolutions(
                lines,
                list(answers.columns[:, :p]),
                answers.columns[:, p].tolist() if self.problem.fit_intercept else [0.0] * len(values),
                values,
                bounds,
                answers.converged.tolist(),
                None if answers.objectives is None else answers.objectives.tolist(),
                None if answers.u is None else list(answers.u),
            )
        if -1 in lines:
            self._append_empty(found)
        return found

    def _append_empty(self, found: SurrogateSolutions) -> None:
        """The solution for the empty set: every piece is smallest at u <= 0 then, and zero is optimal."""
        value = self.problem.null_objective
        found.betas.append(np.zeros(self.problem.n_features))
        found.intercepts.append(0.0)
        found.values.append(value)
        found.bounds.append(value - allowance(self.problem.n_samples, value))
        found.converged.append(True)
        if found.objectives is not None and found.u is not None:
            found.objectives.append(value)
            found.u.append(np.zeros(self.problem.n_samples))

    def _bound_without_solver(self, active: Mask) -> float:
        """Samples that are not active cost at least w y^2, wherever u is."""
        kinked = self.problem.loaded().weighted_y[~active]
        least = float(kinked @ kinked)
        return least - allowance(kinked.size, least)


def solve_surrogate(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    active: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
    alpha: float = 0.0,
    bounds: Any = None,
    positive: bool = False,
    monotonic_cst: Any = None,
    constraints: Any = None,
    start: Any = None,
) -> SurrogateSolution:
    """Minimise the convex surrogate F_I of the ReLU regression exactly.

        F_I(beta, b) = sum over active i of          w_i (u_i - y_i)^2
                     + sum over the rest, y_i > 0,   w_i ((u_i - y_i)^2 if u_i > 2 y_i else y_i^2)
                     + sum over y_i <= 0 of          w_i (max(0, u_i) - y_i)^2
                     + alpha |beta|^2,               u_i = x_i'beta + b

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    active : boolean mask over samples; entries at y <= 0 are ignored
    sample_weight : array-like of shape (n_samples,), optional
    fit_intercept : bool, default=True
    alpha : float, default=0.0
    bounds, positive, monotonic_cst, constraints : what is known about coefficients, as for `rectifit.solve`
    start : solution, pair (beta, intercept) or coefficients, optional
        Where to begin. The value of the minimum does not depend on it.

    Returns
    -------
    SurrogateSolution

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-1.0], [0.0], [1.0], [2.0]])
    >>> y = np.array([0.0, 0.0, 1.0, 2.0])
    >>> solution = solve_surrogate(X, y, y > 0)
    >>> round(solution.value, 9), round(float(solution.beta[0]), 6)
    (0.0, 1.0)
    """
    data = MemoryData.from_arrays(X, y, sample_weight)
    known = read_constraints(
        data.n_features,
        names_of(X),
        bounds=bounds,
        positive=positive,
        monotonic_cst=monotonic_cst,
        constraints=constraints,
    )
    return SurrogateSolver(Problem(data, fit_intercept, alpha, known)).solve(active, start=start)
