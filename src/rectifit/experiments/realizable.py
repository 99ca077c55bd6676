"""The realizable case, without noise: the errors of every instance beside the numbers in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from rectifit.experiments.fits import Fits
from rectifit.experiments.grid import PAPER_METHODS, SORTING_METHODS, Setting
from rectifit.experiments.printed import MEASURES, printed_median

__all__ = [
    "REPRODUCED_FACTOR",
    "ErrorColumn",
    "RealizableTable",
    "ZeroCount",
    "compare_with_paper",
    "count_zeros",
]

# Medians of 20 instances scatter; a median within this factor of the paper's counts as reproduced.
REPRODUCED_FACTOR = 3.5


@dataclass(frozen=True)
class ErrorColumn:
    """One error measure of one method over the instances of a setting, and the median in the paper."""

    setting: Setting
    method: str
    measure: str
    errors: tuple[float, ...]
    printed_median: float

    @property
    def median(self) -> float:
        return median(self.errors)

    @property
    def ratio(self) -> float:
        """Our median over the printed one, which must not be 0."""
        return self.median / self.printed_median

    @property
    def is_reproduced(self) -> bool:
        return 1.0 / REPRODUCED_FACTOR <= self.ratio <= REPRODUCED_FACTOR


@dataclass(frozen=True)
class RealizableTable:
    """One table of the paper: for each instance, both errors of all methods."""

    setting: Setting
    instances: tuple[int, ...]
    columns: tuple[ErrorColumn, ...]


@dataclass(frozen=True)
class ZeroCount:
    """How many errors of a sorting method print as 0.0 with three decimals, and the largest errors."""

    method: str
    n_zeros: int
    n_entries: int
    largest_prediction_error: float
    largest_recovery_error: float


def compare_with_paper(fits: Fits) -> list[RealizableTable]:
    """The tables of the paper, in its order."""
    return [_compare_setting(fits, setting) for setting in fits.tabled]


def _compare_setting(fits: Fits, setting: Setting) -> RealizableTable:
    columns = []
    for method in PAPER_METHODS:
        rows = fits.of(setting, method)
        for measure in MEASURES:
            errors = tuple(getattr(row, f"{measure}_error") for row in rows)
            printed = printed_median(setting.p, setting.sparsity, method, measure)
            columns.append(ErrorColumn(setting, method, measure, errors, printed))
    instances = tuple(row.task.instance for row in fits.of(setting, PAPER_METHODS[0]))
    return RealizableTable(setting, instances, tuple(columns))


def count_zeros(fits: Fits) -> list[ZeroCount]:
    """Count the zeros of each sorting method; the paper prints nothing else for these methods."""
    return [_count_zeros(fits, method) for method in SORTING_METHODS]


def _count_zeros(fits: Fits, method: str) -> ZeroCount:
    rows = [row for setting in fits.tabled for row in fits.of(setting, method)]
    prediction = [row.prediction_error for row in rows]
    recovery = [row.recovery_error for row in rows]
    n_zeros = sum(round(error, 3) == 0.0 for error in prediction + recovery)
    largest = (max(errors, default=0.0) for errors in (prediction, recovery))
    return ZeroCount(method, n_zeros, 2 * len(rows), *largest)
