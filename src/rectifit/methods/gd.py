"""A4, gradient descent. From beta^0 = 0 or the stage before, with

    g = (1/n) sum_i (max(0, u_i) - y_i) (1 + sgn(u_i)) x_i,      sgn(0) = 0,

step t goes to beta - eta g, eta = eta0 / (1 + gamma t), with eta <- shrink * eta while L does not fall. It
ends when L falls by no more than eps. (The paper calls the factor alpha, which is the ridge here.)

With weights the mean is the weighted one, and the ridge joins the sum. The intercept is a column of ones.
X is taken as it is, without any scaling, as in the paper. With constraints every step goes to the nearest
coefficients that they allow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rectifit._typing import Vector
from rectifit.data.problem import Problem, RowPoint
from rectifit.fit import Stop
from rectifit.methods.search import Search

__all__ = ["GradientDescent", "mean_gradient"]

MAX_ITER = 1000
# Backtracking steps before a direction is given up; 0.6^100 is 1e-22.
MAX_BACKTRACKS = 100


@dataclass(frozen=True)
class GradientDescent:
    """A4 with T = max_iter."""

    max_iter: int = MAX_ITER
    eps: float = 0.01
    eta0: float = 1.0
    gamma: float = 0.03
    shrink: float = 0.6
    needs_rows: ClassVar[bool] = True
    is_compiled: ClassVar[bool] = False

    def run(self, search: Search) -> Stop:
        """Step downhill until nothing is gained; the last point is the best."""
        problem, start = search.problem, search.best
        zero = problem.allowed(np.zeros(problem.n_features))
        at = (zero, 0.0) if start is None else (start.beta, start.intercept)
        point = start if isinstance(start, RowPoint) else problem.evaluate(*at)
        search.offer(point)
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(self.max_iter):
                search.check()
                g, g0 = self.direction(search, point.u, point.beta)
                take = _steps(problem, point, g, g0)
                eta = self.eta0 / (1.0 + self.gamma * t)
                for _ in range(MAX_BACKTRACKS):
                    objective, finish = take(eta)
                    if objective < point.objective:
                        break
                    eta *= self.shrink
                else:
                    return Stop.NO_DESCENT
                before = point.objective
                point = finish()
                search.offer(point)
                search.report(t + 1, self.max_iter)
                if not before - point.objective > self.eps:
                    return Stop.LITTLE
        return Stop.MAX_ITER

    def direction(self, search: Search, u: Vector, beta: Vector) -> tuple[Vector, float]:
        """The gradient over all samples."""
        return mean_gradient(search.problem, u, beta)


def _steps(
    problem: Problem, point: RowPoint, g: Vector, g0: float
) -> Callable[[float], tuple[float, Callable[[], RowPoint]]]:
    """From the length of a step to the objective there, and to the point if the step is taken."""
    if problem.constraints is not None:

        def project(eta: float) -> tuple[float, Callable[[], RowPoint]]:
            end = problem.evaluate(problem.allowed(point.beta - eta * g), point.intercept - eta * g0)
            return end.objective, lambda: end

        return project
    du = problem.preactivation(g, g0)

    def step(eta: float) -> tuple[float, Callable[[], RowPoint]]:
        # A step is judged by the pre-activation it leads to, which costs no pass over X.
        beta = point.beta - eta * g
        objective = float(problem.objective_at(point.u - eta * du, beta))
        return objective, lambda: problem.evaluate(beta, point.intercept - eta * g0)

    return step


def mean_gradient(problem: Problem, u: Vector, beta: Vector) -> tuple[Vector, float]:
    """g in the coefficients and in the intercept, which is 0 without one."""
    total = float(np.square(problem.root_weight).sum())
    g, g0 = problem.gradient_at(u, beta)
    return g / total, g0 / total * problem.fit_intercept
