"""Estimates of data sets that are drawn with replacement, by rows or by whole groups of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rectifit._typing import Integers, Matrix, Vector
from rectifit.checks import check_random_state
from rectifit.fit import Fit
from rectifit.inference.sums import data_of, list_estimates
from rectifit.methods.estimate_floor import FloorPoint, descend, fit_coefficients
from rectifit.parallel import map_ordered

__all__ = ["draw_estimates"]


def draw_estimates(
    solution: Fit, n_replicates: int, groups: Integers | None, random_state: Any, n_threads: int
) -> Matrix:
    """Estimates of as many rows, or as many groups, drawn with replacement; one line per draw.

    Parameters
    ----------
    solution : Fit
        With its data in memory. Every draw is fitted by the iterative method, started from here.
    n_replicates : int
    groups : the number of its group for every row; None: rows are drawn
    random_state, n_threads : the result does not depend on the threads
    """
    problem = data_of(solution)
    units = np.arange(problem.n_samples) if groups is None else groups
    members = np.unique(units[problem.root_weight > 0.0])
    seeds = check_random_state(random_state).integers(2**63, size=n_replicates).tolist()

    def refit(seed: int) -> Vector:
        drawn = np.random.default_rng(seed).choice(members, members.size)
        times = np.bincount(drawn, minlength=int(units.max()) + 1)[units]
        weights: Vector = np.square(problem.root_weight) * times.astype(np.float64)
        sample = replace(problem, data=problem.loaded().reweighted(weights), _shifted={})
        start = FloorPoint.at(sample, solution.beta, solution.intercept, solution.floor)
        fitted = (descend if solution.floor_is_estimated else fit_coefficients)(sample, start)
        return np.array(list_estimates(solution, fitted.beta, fitted.intercept, fitted.floor))

    return np.array(list(map_ordered(refit, seeds, n_threads)))
