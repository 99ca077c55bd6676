"""The rows of a run by setting and method, and the spread of a measure over instances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from rectifit.experiments.grid import LABELS, Setting
from rectifit.experiments.rows import FitRow

__all__ = ["MEASURES", "Fits", "SettingStatistics", "Spread", "summarise_setting"]

MEASURES = ("prediction_error", "objective", "recovery_error", "generalization_error", "seconds")


class Fits:
    """The rows of a run, by setting and method."""

    def __init__(self, rows: Iterable[FitRow]) -> None:
        self.rows = list(rows)
        self._groups: dict[tuple[Setting, str], list[FitRow]] = defaultdict(list)
        for row in self.rows:
            self._groups[row.task.setting, row.task.method].append(row)
        for group in self._groups.values():
            group.sort(key=lambda row: row.task.instance)
        self.settings = sorted({row.task.setting for row in self.rows})

    def of(self, setting: Setting, method: str) -> list[FitRow]:
        """Rows of a method in a setting, ordered by instance."""
        return self._groups.get((setting, method), [])

    @property
    def drawn(self) -> list[Setting]:
        """The settings of the paper's figures."""
        return [setting for setting in self.settings if setting.is_drawn]

    @property
    def tabled(self) -> list[Setting]:
        """The settings of the paper's tables."""
        return [setting for setting in self.settings if setting.is_tabled]


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


@dataclass(frozen=True)
class SettingStatistics:
    """Every measure of every method, over the instances of one setting."""

    setting: Setting
    spreads: dict[tuple[str, str], Spread]

    def mean(self, method: str, measure: str) -> float:
        """The mean of a measure over the instances."""
        return self.spreads[method, measure].mean


def summarise_setting(fits: Fits, setting: Setting) -> SettingStatistics:
    """Summarise the measures of all methods that were run in a setting."""
    spreads = {}
    for method in LABELS:
        rows = fits.of(setting, method)
        if rows:
            for measure in MEASURES:
                spreads[method, measure] = Spread.of([getattr(row, measure) for row in rows])
    return SettingStatistics(setting, spreads)
