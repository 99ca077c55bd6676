"""The order in which samples leave the active set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rectifit.problem import Problem

__all__ = ["ascending"]


def ascending(problem: Problem) -> npt.NDArray[np.intp]:
    """Samples that have weight, from the least to the largest outcome; with weights, by w y^2 with y's sign.

    The guarantee of the approximation algorithm needs this order of the positive samples.
    """
    signed = problem.root_weight * problem.y
    order = np.argsort(signed, kind="stable")
    return order[problem.root_weight[order] > 0.0]
