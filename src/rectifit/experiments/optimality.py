"""How good the methods are: their objectives against proved optima, by size and noise level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from rectifit.experiments.fits import Fits, Spread
from rectifit.experiments.grid import COMPARED_METHODS, LABELS, OURS, PROOF, Setting, Size
from rectifit.experiments.rows import FitRow

__all__ = ["SOLVED_TOL", "LevelStatistics", "solved_shares", "summarise_levels"]

# A method has solved an instance if its objective is within this relative gap of the proved lower bound.
SOLVED_TOL = 1e-4


class Match(NamedTuple):
    """A fit, and the proved optimum of its instance."""

    fit: FitRow
    proof: FitRow

    @property
    def is_solved(self) -> bool:
        # Where the optimum is 0, so is its bound, and objectives are nothing but rounding errors.
        bound = self.proof.lower_bound / (1.0 - SOLVED_TOL)
        return self.fit.objective <= bound * (1.0 + 1e-6) + 1e-12


@dataclass(frozen=True)
class LevelStatistics:
    """The instances of one size and noise level, of all sparsities.

    Attributes
    ----------
    size, noise : the level
    n_instances, n_proved : all instances, and those with a proved optimum
    solved : for each method, the share of the proved instances that it solves
    excess : for each method, objective / optimum on the proved instances; empty without noise, where the
        optimum is 0
    seconds : for each method, the running time
    """

    size: Size
    noise: float
    n_instances: int
    n_proved: int
    solved: dict[str, float]
    excess: dict[str, Spread]
    seconds: dict[str, Spread]


def summarise_levels(fits: Fits) -> list[LevelStatistics]:
    """Summarise the settings of the figures by size and noise."""
    levels = sorted({(setting.size, setting.noise) for setting in fits.drawn})
    return [_summarise_level(fits, size, noise) for size, noise in levels]


def _summarise_level(fits: Fits, size: Size, noise: float) -> LevelStatistics:
    settings = [setting for setting in fits.drawn if (setting.size, setting.noise) == (size, noise)]
    matches = _match_proofs(fits, settings)
    times = {
        method: [row.seconds for setting in settings for row in fits.of(setting, method)] for method in LABELS
    }
    return LevelStatistics(
        size=size,
        noise=noise,
        n_instances=sum(len(fits.of(setting, OURS)) for setting in settings),
        n_proved=sum(row.is_proved for setting in settings for row in fits.of(setting, PROOF)),
        solved=_count_solved(matches),
        excess={
            method: Spread.of([fit.objective / proof.objective for fit, proof in found])
            for method, found in matches.items()
            if noise > 0.0
        },
        seconds={method: Spread.of(seconds) for method, seconds in times.items() if seconds},
    )


def solved_shares(fits: Fits, settings: Iterable[Setting]) -> dict[str, float]:
    """For each method, the share of the proved instances of some settings that it solves."""
    return _count_solved(_match_proofs(fits, settings))


def _count_solved(matches: dict[str, list[Match]]) -> dict[str, float]:
    return {method: fmean(match.is_solved for match in found) for method, found in matches.items()}


def _match_proofs(fits: Fits, settings: Iterable[Setting]) -> dict[str, list[Match]]:
    """For each method with fits to proved instances, these fits with the proofs."""
    matches: dict[str, list[Match]] = {}
    for setting in settings:
        proofs = {row.task.instance: row for row in fits.of(setting, PROOF) if row.is_proved}
        for method in COMPARED_METHODS:
            for row in fits.of(setting, method):
                if row.task.instance in proofs:
                    matches.setdefault(method, []).append(Match(row, proofs[row.task.instance]))
    return matches
