"""The asymptotic bound, printed and corrected, against the surrogate that both bound (limits.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from rectifit.checks import check_number
from rectifit.experiments.limits import least_surrogate, simulated_surrogate
from rectifit.theory import asymptotic_bound, best_threshold, printed_asymptotic_bound

__all__ = ["DELTA", "AsymptoticRow", "Erratum", "asymptotic_rows", "compute_erratum"]

# Standard deviation of x'beta.
DELTA = 1.0
# Standard deviation of the noise where the threshold varies. The threshold is drawn up to this multiple of
# it, at so many points by quadrature, and at every fifth of them by simulation.
ERRATUM_GAMMA = 0.01
MAX_RATIO = 6.0
N_RATIOS = 61
SIMULATED_EVERY = 5
# The noise is drawn between these standard deviations.
MIN_GAMMA = 1e-3
MAX_GAMMA = 3.0
N_GAMMAS = 31


@dataclass(frozen=True)
class AsymptoticRow:
    """Both bounds at one noise level and threshold, and the surrogate.

    Attributes
    ----------
    gamma : standard deviation of the noise
    threshold_ratio : threshold / gamma
    surrogate : min over beta of S^t, by quadrature
    simulated : the same from a large sample; NaN without a sample
    printed : the paper's bound, stated for threshold 0
    corrected : the corrected bound at the threshold
    """

    gamma: float
    threshold_ratio: float
    surrogate: float
    simulated: float
    printed: float
    corrected: float


@dataclass(frozen=True)
class Erratum:
    """Where the printed bound fails.

    Attributes
    ----------
    thresholds : rows of one noise level and growing thresholds; some of them have a simulated surrogate
    at_zero, at_best : rows of growing noise, at threshold 0 and at the best threshold of the corrected bound
    n_samples : size of the simulated samples
    """

    thresholds: list[AsymptoticRow]
    at_zero: list[AsymptoticRow]
    at_best: list[AsymptoticRow]
    n_samples: int


def asymptotic_rows(
    gammas: Sequence[float] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    threshold_ratios: Sequence[float] = (0.0, 1.0, 2.0, 3.0, 4.0),
    n_samples: int = 200_000,
) -> list[AsymptoticRow]:
    """Both bounds, and the surrogate by quadrature and from a large sample, for each noise and threshold.

    Parameters
    ----------
    gammas : positive numbers
    threshold_ratios : thresholds as multiples of gamma
    n_samples : int, default=200_000

    Returns
    -------
    list of AsymptoticRow

    Examples
    --------
    >>> (row,) = asymptotic_rows([0.01], [0.0], n_samples=10_000)
    >>> row.printed < row.surrogate < row.corrected
    True
    """
    return [_row(gamma, ratio, n_samples) for gamma in gammas for ratio in threshold_ratios]


def compute_erratum(n_samples: int = 200_000) -> Erratum:
    """Compute both bounds and the surrogate against the threshold, and against the noise."""
    ratios = np.linspace(0.0, MAX_RATIO, N_RATIOS).tolist()
    gammas = np.geomspace(MIN_GAMMA, MAX_GAMMA, N_GAMMAS).tolist()
    return Erratum(
        thresholds=[
            _row(ERRATUM_GAMMA, ratio, n_samples if i % SIMULATED_EVERY == 0 else None)
            for i, ratio in enumerate(ratios)
        ],
        at_zero=[_row(gamma, 0.0) for gamma in gammas],
        at_best=[_row(gamma, best_threshold(gamma, DELTA) / gamma) for gamma in gammas],
        n_samples=n_samples,
    )


def _row(gamma: float, ratio: float, n_samples: int | None = None) -> AsymptoticRow:
    threshold = check_number(ratio, "threshold_ratios") * check_number(gamma, "gammas", above=0.0)
    return AsymptoticRow(
        gamma=gamma,
        threshold_ratio=ratio,
        surrogate=least_surrogate(gamma, DELTA, threshold),
        simulated=simulated_surrogate(gamma, DELTA, threshold, n_samples) if n_samples else nan,
        printed=printed_asymptotic_bound(gamma, DELTA),
        corrected=asymptotic_bound(gamma, DELTA, threshold),
    )
