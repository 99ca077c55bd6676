"""Lower bounds that need no search.

Convex relaxation. Without bounds on u the best convex function below the loss of a positive sample is
max(0, u - y)^2, which is 0 for u <= y. A non-positive sample is convex already and at least y^2. So

    L(beta) >= R(beta) = sum_{y_i > 0} w_i max(0, u_i - y_i)^2 + sum_{y_i <= 0} w_i (max(0, u_i) - y_i)^2
                         + alpha |beta|^2,

and R is smallest at beta = 0, with dual solution lambda = 0 (every piece is flat there): its minimum, and its
dual bound, is the sum of w_i y_i^2 over the non-positive samples.

Guarantee. If z is at most r times the least objective, that is at least z / r.
"""

from __future__ import annotations

from rectifit.bounds import allowance
from rectifit.data.problem import Problem

__all__ = ["floor_bound", "guarantee_bound"]


def floor_bound(problem: Problem) -> float:
    """min L >= sum of w y^2 over y <= 0, the minimum of the convex relaxation."""
    outcomes = problem.data.outcomes
    least = outcomes.fixed_objective
    return max(least - float(allowance(outcomes.n_inactive, least)), 0.0)


def guarantee_bound(least_surrogate_bound: float, ratio: float) -> float:
    """min L >= z / ratio, where z <= ratio * min L is known of a value z >= least_surrogate_bound."""
    return least_surrogate_bound / ratio
