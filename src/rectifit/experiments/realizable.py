"""The realizable case, without noise: the errors of every instance beside the paper's numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import median

from rectifit.experiments.grid import PAPER_METHODS, SORTING_METHODS, Setting
from rectifit.experiments.rows import FitRow
from rectifit.experiments.summaries import group_rows

__all__ = [
    "REPRODUCED_FACTOR",
    "ErrorColumn",
    "ZeroCount",
    "compare_with_paper",
    "count_zeros",
    "printed_median",
    "printed_values",
]

MEASURES = ("prediction", "recovery")
# Medians of 20 instances scatter; a median within this factor of the paper's counts as reproduced.
REPRODUCED_FACTOR = 3.5


@dataclass(frozen=True)
class ErrorColumn:
    """A column of the paper's tables: an error of a method for every instance, and the printed median."""

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
class ZeroCount:
    """How many errors of a sorting method print as 0.0 with three decimals, and the largest errors."""

    method: str
    n_zeros: int
    n_entries: int
    largest_prediction_error: float
    largest_recovery_error: float


def compare_with_paper(rows: Iterable[FitRow]) -> list[ErrorColumn]:
    """The columns of the paper's tables, one table after the other."""
    return [
        ErrorColumn(
            setting,
            method,
            measure,
            tuple(getattr(row, f"{measure}_error") for row in group if row.task.method == method),
            printed_median(setting.p, setting.sparsity, method, measure),
        )
        for setting, group in group_rows(rows, lambda row: row.task.setting).items()
        for method in PAPER_METHODS
        for measure in MEASURES
    ]


def count_zeros(rows: Iterable[FitRow]) -> list[ZeroCount]:
    """Count the zeros of each sorting method; the paper prints nothing else for these methods."""
    by_method = group_rows(rows, lambda row: row.task.method)
    counts = []
    for method in SORTING_METHODS:
        prediction = [row.prediction_error for row in by_method.get(method, [])]
        recovery = [row.recovery_error for row in by_method.get(method, [])]
        errors = prediction + recovery
        n_zeros = sum(round(error, 3) == 0.0 for error in errors)
        largest = (max(prediction, default=0.0), max(recovery, default=0.0))
        counts.append(ZeroCount(method, n_zeros, len(errors), *largest))
    return counts


def printed_values(p: int, sparsity: float, method: str, measure: str) -> list[float]:
    """The 20 entries in one column of one table; `measure` is "prediction" or "recovery"."""
    name = f"{method.replace('+', '_').replace('iterative', 'iter')}_{measure}"
    return [
        float(row[name])
        for row in _printed_rows()
        if int(row["p"]) == p and float(row["sparsity"]) == sparsity
    ]


def printed_median(p: int, sparsity: float, method: str, measure: str) -> float:
    """The median of `printed_values`."""
    return median(printed_values(p, sparsity, method, measure))


@cache
def _printed_rows() -> list[dict[str, str]]:
    text = files("rectifit.datasets").joinpath("realizable.csv").read_text()
    return list(csv.DictReader(text.splitlines()))
