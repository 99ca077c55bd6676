"""The paper's theory in numbers: the NP-hardness reduction, the approximation ratio, the asymptotic bound."""

from __future__ import annotations

from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from rectifit.experiments.asymptotics import AsymptoticRow, ErratumCurves, asymptotic_rows, erratum_curves
from rectifit.experiments.ratio import RatioRow, ratio_rows
from rectifit.experiments.subset_sum import SubsetSumRow, subset_sum_rows

__all__ = ["TheoryResults", "run_theory"]


@dataclass(frozen=True)
class TheoryResults:
    """Subset sums decided by regression, ratios to the optimum, and both asymptotic bounds."""

    subset_sums: list[SubsetSumRow]
    ratios: list[RatioRow]
    asymptotics: list[AsymptoticRow]
    erratum: ErratumCurves


def run_theory() -> TheoryResults:
    """Run all experiments about the theory."""
    # The matrices are small, and BLAS threads would only slow the work down.
    with threadpool_limits(1):
        return TheoryResults(subset_sum_rows(), ratio_rows(), asymptotic_rows(), erratum_curves())
