"""The orders of methods that the paper claims, tested in every setting of its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from rectifit.experiments.fits import SettingSpreads
from rectifit.experiments.grid import LABELS, PAPER_METHODS, Setting

__all__ = ["Claim", "check_claims"]

# Shares of the settings from which on a claim holds, or mostly holds.
MIN_SHARE_HOLDS = 0.95
MIN_SHARE_MOSTLY_HOLDS = 0.75
# Times within this factor of each other are about the same.
SIMILAR_TIME_FACTOR = 2.0
MIN_LARGE_NOISE = 0.32
# Means that differ by less, relatively or in the units of the data, differ by rounding only.
ROUNDING_TOL = 1e-9


@dataclass(frozen=True)
class Claim:
    """A statement about methods, and whether it is true in each setting that it concerns."""

    text: str
    outcomes: tuple[bool, ...]

    @property
    def n_true(self) -> int:
        return sum(self.outcomes)

    @property
    def share(self) -> float:
        """The share of the settings in which the statement is true; 0 if it concerns none."""
        return self.n_true / len(self.outcomes) if self.outcomes else 0.0

    @property
    def verdict(self) -> str:
        if self.share >= MIN_SHARE_HOLDS:
            return "holds"
        return "mostly holds" if self.share >= MIN_SHARE_MOSTLY_HOLDS else "does not hold"


def check_claims(spreads: Mapping[Setting, SettingSpreads]) -> list[Claim]:
    """Test every claim by the means over the instances of each setting."""
    settings = list(spreads.values())
    noisy = [methods for setting, methods in spreads.items() if setting.noise >= MIN_LARGE_NOISE]
    best_first = ("sorting+iterative", "sorting+gd", "sorting", "gd", "sgd")
    return [
        *(_order(settings, "objective", *pair) for pair in pairwise(best_first)),
        *(_order(settings, "prediction_error", *pair) for pair in pairwise(best_first)),
        _order(settings, "seconds", "sgd", "sorting"),
        _order(settings, "seconds", "sorting", "sorting+iterative"),
        _similar_times(settings, "sorting+iterative", "sorting+gd"),
        _best_recovery(noisy, "gd"),
    ]


def _order(settings: list[SettingSpreads], measure: str, better: str, worse: str) -> Claim:
    name = {"seconds": "running time"}.get(measure, measure.replace("_", " "))
    pairs = [(spreads[better, measure].mean, spreads[worse, measure].mean) for spreads in settings]
    return Claim(
        f"{name}: {LABELS[better]} ≤ {LABELS[worse]}",
        tuple(a <= b * (1.0 + ROUNDING_TOL) + ROUNDING_TOL for a, b in pairs),
    )


def _similar_times(settings: list[SettingSpreads], method: str, other: str) -> Claim:
    factor = SIMILAR_TIME_FACTOR
    ratios = [spreads[method, "seconds"].mean / spreads[other, "seconds"].mean for spreads in settings]
    return Claim(
        f"running time: {LABELS[method]} about {LABELS[other]} (within a factor of {factor:g})",
        tuple(1.0 / factor <= ratio <= factor for ratio in ratios),
    )


def _best_recovery(settings: list[SettingSpreads], method: str) -> Claim:
    errors = [
        {other: spreads[other, "recovery_error"].mean for other in PAPER_METHODS} for spreads in settings
    ]
    return Claim(
        f"recovery error: {LABELS[method]} best at large noise",
        tuple(min(means, key=means.__getitem__) == method for means in errors),
    )
