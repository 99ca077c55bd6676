"""The orders of methods that the paper claims, tested in every setting of its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rectifit._typing import Mask, Vector
from rectifit.experiments.grid import LABELS, PAPER_METHODS, Setting
from rectifit.experiments.summaries import SettingSpreads

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
    """A statement about methods, and in how many of the settings that it concerns it is true."""

    text: str
    n_true: int
    n_settings: int

    @property
    def share(self) -> float:
        """The share of the settings in which the statement is true; 0 if it concerns none."""
        return self.n_true / self.n_settings if self.n_settings else 0.0

    @property
    def verdict(self) -> str:
        if self.share >= MIN_SHARE_HOLDS:
            return "holds"
        return "mostly holds" if self.share >= MIN_SHARE_MOSTLY_HOLDS else "does not hold"


def check_claims(spreads: Mapping[Setting, SettingSpreads]) -> list[Claim]:
    """Test every claim by the means over the instances of each setting."""

    def means(method: str, measure: str) -> Vector:
        return np.array([of_setting[method, measure].mean for of_setting in spreads.values()])

    def order(measure: str, better: str, worse: str) -> Claim:
        name = {"seconds": "running time"}.get(measure, measure.replace("_", " "))
        bounds = means(worse, measure) * (1.0 + ROUNDING_TOL) + ROUNDING_TOL
        return _count(f"{name}: {LABELS[better]} ≤ {LABELS[worse]}", means(better, measure) <= bounds)

    best_first = ("sorting+iterative", "sorting+gd", "sorting", "gd", "sgd")
    factor = SIMILAR_TIME_FACTOR
    ratios = means("sorting+iterative", "seconds") / means("sorting+gd", "seconds")
    noises = np.array([setting.noise for setting in spreads])
    errors = np.array([means(method, "recovery_error") for method in PAPER_METHODS])
    is_best = errors.argmin(axis=0) == PAPER_METHODS.index("gd")
    return [
        *(order("objective", *pair) for pair in pairwise(best_first)),
        *(order("prediction_error", *pair) for pair in pairwise(best_first)),
        order("seconds", "sgd", "sorting"),
        order("seconds", "sorting", "sorting+iterative"),
        _count(
            f"running time: sorting + iterative about sorting + GD (within a factor of {factor:g})",
            (1.0 / factor <= ratios) & (ratios <= factor),
        ),
        _count("recovery error: GD best at large noise", is_best[noises >= MIN_LARGE_NOISE]),
    ]


def _count(text: str, outcomes: Mask) -> Claim:
    return Claim(text, int(outcomes.sum()), outcomes.size)
