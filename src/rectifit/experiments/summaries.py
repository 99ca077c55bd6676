"""Rows summarised by setting, and by size and noise level, with the objectives against proved optima."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeVar

import numpy as np

from rectifit.experiments.grid import OURS, PROOF, Size
from rectifit.experiments.rows import FitRow

__all__ = [
    "SOLVED_TOL",
    "LevelStatistics",
    "SettingSpreads",
    "Spread",
    "group_rows",
    "solved_shares",
    "summarise_excess",
    "summarise_level",
    "summarise_setting",
]

MEASURES = ("prediction_error", "objective", "recovery_error", "generalization_error", "seconds")
# A method has solved an instance if its objective is within this relative gap of the proved lower bound.
SOLVED_TOL = 1e-4


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


Key = TypeVar("Key", bound=Any)
# The spread over the instances of a setting, by method and measure.
SettingSpreads = dict[tuple[str, str], Spread]


def group_rows(rows: Iterable[FitRow], key: Callable[[FitRow], Key]) -> dict[Key, list[FitRow]]:
    """Rows with the same key together, in the order of the keys."""
    groups: dict[Key, list[FitRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {found: groups[found] for found in sorted(groups)}


def summarise_setting(rows: Iterable[FitRow]) -> SettingSpreads:
    """Summarise the measures of all methods that were run in a setting."""
    return {
        (method, measure): Spread.of([getattr(row, measure) for row in group])
        for method, group in group_rows(rows, lambda row: row.task.method).items()
        for measure in MEASURES
    }


@dataclass(frozen=True)
class LevelStatistics:
    """The instances of one size and noise level, of all sparsities.

    Attributes
    ----------
    size, noise : the level
    n_instances, n_proved : all instances, and those with a proved optimum
    solved : for each method, the share of the proved instances that it solves
    excess : for each method, its excess as in `summarise_excess`
    seconds : for each method, the running time
    """

    size: Size
    noise: float
    n_instances: int
    n_proved: int
    solved: dict[str, float]
    excess: dict[str, Spread]
    seconds: dict[str, Spread]


def summarise_level(rows: Sequence[FitRow]) -> LevelStatistics:
    """Summarise rows of one size and noise level."""
    setting = rows[0].task.setting
    by_method = group_rows(rows, lambda row: row.task.method)
    return LevelStatistics(
        size=setting.size,
        noise=setting.noise,
        n_instances=len(by_method[OURS]),
        n_proved=sum(row.is_proved for row in by_method.get(PROOF, [])),
        solved=solved_shares(rows),
        excess=summarise_excess(rows),
        seconds={method: Spread.of([row.seconds for row in group]) for method, group in by_method.items()},
    )


def summarise_excess(rows: Iterable[FitRow]) -> dict[str, Spread]:
    """For each method, (objective - optimum) / optimum on the proved instances with noise.

    The optimum is the objective of the proof's own fit, so an excess is known up to the gap of the proof, and
    may be negative within it. Without noise the optimum is 0, and an excess is not defined.
    """
    return {
        method: Spread.of([fit.objective / proof.objective - 1.0 for fit, proof in pairs])
        for method, pairs in _match_proofs(row for row in rows if row.task.setting.noise > 0.0).items()
    }


def solved_shares(rows: Iterable[FitRow]) -> dict[str, float]:
    """For each method, the share of the proved instances that it solves."""
    return {
        method: fmean(_is_solved(fit, proof) for fit, proof in pairs)
        for method, pairs in _match_proofs(rows).items()
    }


def _is_solved(fit: FitRow, proof: FitRow) -> bool:
    # Where the optimum is 0, so is its bound, and objectives are nothing but rounding errors.
    bound = proof.lower_bound / (1.0 - SOLVED_TOL)
    return fit.objective <= bound * (1.0 + 1e-6) + 1e-12


def _match_proofs(rows: Iterable[FitRow]) -> dict[str, list[tuple[FitRow, FitRow]]]:
    """For each method with fits to proved instances, these fits with the proofs."""
    by_method = group_rows(rows, lambda row: row.task.method)
    proofs = {row.task.instance_key: row for row in by_method.pop(PROOF, []) if row.is_proved}
    pairs = {
        method: [(fit, proofs[fit.task.instance_key]) for fit in fits if fit.task.instance_key in proofs]
        for method, fits in by_method.items()
    }
    return {method: matched for method, matched in pairs.items() if matched}
