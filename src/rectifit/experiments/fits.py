"""Rows in groups, and the spread of a measure over the rows of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from rectifit.experiments.rows import FitRow

__all__ = ["SettingSpreads", "Spread", "group_rows", "summarise_setting"]

MEASURES = ("prediction_error", "objective", "recovery_error", "generalization_error", "seconds")


@dataclass(frozen=True)
class Spread:
    """Location and spread of some numbers."""

    mean: float
    first_quartile: float
    median: float
    third_quartile: float
    largest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one number."""
        first, middle, third = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        return cls(fmean(values), first, middle, third, max(values))


# The spread over the instances of a setting, by method and measure.
SettingSpreads = dict[tuple[str, str], Spread]


def group_rows(rows: Iterable[FitRow], key: Callable[[FitRow], Any]) -> dict[Any, list[FitRow]]:
    """Rows with the same key together, in the order of the keys."""
    groups: dict[Any, list[FitRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return dict(sorted(groups.items()))


def summarise_setting(rows: Iterable[FitRow]) -> SettingSpreads:
    """Summarise the measures of all methods that were run in a setting."""
    return {
        (method, measure): Spread.of([getattr(row, measure) for row in group])
        for method, group in group_rows(rows, lambda row: row.task.method).items()
        for measure in MEASURES
    }
