"""Bundled real data."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector

__all__ = ["RealData", "load_drug_spending"]

DRUG_SPENDING = (
    "Annual spending on drugs, in dollars, of the 3,307 adults in the first year of the RAND Health "
    "Insurance Experiment, who were assigned at random to plans with different coinsurance rates; 40 % spent "
    "nothing."
)


class RealData(NamedTuple):
    """Features and an outcome, with their names and a description."""

    X: Matrix
    y: Vector
    names: tuple[str, ...]
    target: str
    description: str


def load_drug_spending() -> RealData:
    """Drug spending in the RAND Health Insurance Experiment: an outcome with many zeros.

    Families were assigned at random to insurance plans, so the coefficient of `coinsurance` is a causal
    effect. There is one row per person aged 18 or more in study year 1; numbers are rounded to two decimals.

    ============== ==========================================================================
    drug_spending  outpatient drugs purchased in the year, dollars (the outcome)
    age            years
    female         0 or 1
    chronic        count of chronic diseases at the start of the study; not whole numbers in the source
    health         general health index at the start of the study, 0 to 100 (best), with imputation
    coinsurance    coinsurance rate of the plan for medical services, percent
    ============== ==========================================================================

    Returns
    -------
    RealData

    Notes
    -----
    Source: collected by the RAND Corporation; the file of A. C. Cameron and P. K. Trivedi, Microeconometrics:
    Methods and Applications, Cambridge 2005, as statsmodels distributes it (`statsmodels.datasets.randhie`,
    original data) with the statement "This is in the public domain." The study: J. P. Newhouse and the
    Insurance Experiment Group, Free for All? Lessons from the RAND Health Insurance Experiment, 1993.

    Examples
    --------
    >>> X, y, names, target, description = load_drug_spending()
    >>> X.shape, names, float((y == 0.0).mean().round(2))
    ((3307, 5), ('age', 'female', 'chronic', 'health', 'coinsurance'), 0.4)
    """
    source = files("rectifit.datasets") / "data" / "drug_spending.csv"
    header, *rows = source.read_text(encoding="utf-8").splitlines()
    target, *names = header.split(",")
    numbers = np.array([row.split(",") for row in rows], dtype=np.float64)
    return RealData(numbers[:, 1:], numbers[:, 0], tuple(names), target, DRUG_SPENDING)
