"""Wald's test of linear hypotheses R theta = r:

    statistic = (R t - r)' (R V R')^-1 (R t - r),

with the estimates t and their covariance V. If the hypotheses are true, it has for many rows the chi-squared
distribution with as many degrees of freedom as there are hypotheses. The F distribution of least squares is
not used: it is exact only for a linear model with normal noise, and here the active rows are estimated, too.
For one hypothesis the statistic is the square of z in the summary, with the same p-value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from rectifit._typing import Mask, Matrix, Vector
from rectifit.formatting import write_number, write_p
from rectifit.inference.hypotheses import describe, read_hypotheses
from rectifit.tolerances import GRAM_RANK_TOL

__all__ = ["WaldTest", "wald_test"]


@dataclass(frozen=True)
class WaldTest:
    """A test of linear hypotheses; `print` shows one line.

    Attributes
    ----------
    hypotheses : what is tested, as text
    statistic : chi-squared distributed for many rows if the hypotheses are true
    df : its degrees of freedom, the number of hypotheses
    p_value : probability of a larger statistic if they are true
    """

    hypotheses: str
    statistic: float
    df: int
    p_value: float

    def __str__(self) -> str:
        """One line."""
        p_value = write_p(self.p_value)
        p_value = p_value if p_value.startswith("<") else f"= {p_value}"
        return f"{self.hypotheses}: chi2({self.df}) = {write_number(self.statistic)}, p {p_value}"


def wald_test(
    hypotheses: Any, names: Sequence[str], estimates: Vector, covariance: Matrix, unknown: Mask
) -> WaldTest:
    """Test hypotheses about estimates.

    Parameters
    ----------
    hypotheses : as for `read_hypotheses`
    names, estimates, covariance : of the estimates
    unknown : those that have no standard error

    Examples
    --------
    >>> none = np.zeros(2, dtype=bool)
    >>> print(wald_test("a = b", ["a", "b"], np.array([1.0, 4.0]), np.diag([1.0, 3.0]), none))
    a - b = 0: chi2(1) = 2.25, p = 0.134
    """
    asked = read_hypotheses(hypotheses, names)
    concerned = np.flatnonzero(unknown & asked.R.any(axis=0))
    if concerned.size:
        raise ValueError(
            f"hypotheses are about {names[int(concerned[0])]!r}, which has no standard error; leave it out"
        )
    R, V = asked.R[:, ~unknown], covariance[np.ix_(~unknown, ~unknown)]
    distance, spread = R @ estimates[~unknown] - asked.r, R @ V @ R.T
    # In units of the standard errors as they were without correlation, so that no other units matter.
    unit = np.sqrt(np.square(R) @ V.diagonal())
    if not unit.all():
        _refuse(R)
    values, E = np.linalg.eigh(spread / np.outer(unit, unit))
    if values.min() <= GRAM_RANK_TOL * len(R):
        _refuse(R)
    statistic = float(np.square((distance / unit) @ E) @ (1.0 / values))
    return WaldTest(describe(asked, names), statistic, len(R), float(chdtrc(len(R), statistic)))


def _refuse(R: Matrix) -> None:
    """ValueError for hypotheses about numbers that do not vary independently."""
    rank = int(np.linalg.matrix_rank(R / np.linalg.norm(R, axis=1, keepdims=True)))
    if rank < len(R):
        raise ValueError(
            f"hypotheses are {len(R)}, but at most {rank} of them say something independent; "
            "leave out the rest"
        )
    raise ValueError(
        "hypotheses are about numbers whose covariance matrix is singular; constraints hold them, or there "
        "are fewer groups or draws than hypotheses"
    )
