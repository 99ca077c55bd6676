"""How well a solution fits its own data: the few numbers under every table of coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit.solution import Solution

__all__ = ["Goodness"]


@dataclass(frozen=True)
class Goodness:
    """Goodness of fit.

    Attributes
    ----------
    n_samples, n_positive : samples of positive weight, and those of them with a positive outcome
    r_squared : 1 - sum w r^2 / sum w (y - mean y)^2, mean weighted; None where all outcomes are equal
    sigma : residual standard error, sqrt(sum w r^2 / (n_samples - number of coefficients)); None where there
        are not more samples than coefficients
    share_active : share of samples with X beta + intercept > 0
    """

    n_samples: int
    n_positive: int
    r_squared: float | None
    sigma: float | None
    share_active: float

    @classmethod
    def from_solution(cls, solution: Solution) -> Goodness:
        """Evaluate a solution on the data it was fitted to.

        Examples
        --------
        >>> from rectifit import solve
        >>> Goodness.from_solution(solve([[-1.0], [0.0], [1.0], [2.0]], [0.0, 0.0, 1.0, 2.0])).r_squared
        1.0
        """
        problem = solution.problem
        if problem is None:
            raise ValueError("problem is None: this solution was stored without its data")
        used = problem.root_weight > 0.0
        y, root = problem.y[used], problem.root_weight[used]
        u = problem.preactivation(solution.beta, solution.intercept)[used]
        scaled = root * (np.maximum(u, 0.0) - y)
        squares = float(scaled @ scaled)
        centred = root * (y - np.average(y, weights=np.square(root)))
        total = float(centred @ centred)
        freedom = y.size - problem.n_features - int(problem.fit_intercept)
        return cls(
            n_samples=int(y.size),
            n_positive=int((y > 0.0).sum()),
            r_squared=1.0 - squares / total if total > 0.0 else None,
            sigma=float(np.sqrt(squares / freedom)) if freedom > 0 else None,
            share_active=float((u > 0.0).mean()),
        )
