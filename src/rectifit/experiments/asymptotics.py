"""The asymptotic bound, printed and corrected, against the surrogate that both bound (limits.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rectifit._typing import Vector
from rectifit.checks import check_number
from rectifit.experiments.limits import least_surrogate, simulated_surrogate
from rectifit.theory import asymptotic_bound, best_threshold, printed_asymptotic_bound

__all__ = [
    "AsymptoticRow",
    "ErratumCurves",
    "NoiseCurves",
    "ThresholdCurves",
    "asymptotic_rows",
    "erratum_curves",
]

# The threshold is drawn up to this multiple of gamma, at so many points by quadrature and by simulation.
MAX_RATIO = 6.0
N_RATIOS = 61
N_SIMULATED_RATIOS = 13
# The noise is drawn between these multiples of delta.
MIN_NOISE = 1e-3
MAX_NOISE = 3.0
N_NOISES = 31
# Where the signal vanishes, the noise is drawn as for this delta.
MIN_DELTA = 1e-3


@dataclass(frozen=True)
class AsymptoticRow:
    """Both bounds at one noise level and threshold, and the surrogate.

    Attributes
    ----------
    gamma, delta : standard deviations of the noise and of x'beta
    threshold_ratio : threshold / gamma
    surrogate : min over beta of S^t, by quadrature
    simulated : the same from a large sample
    printed : the paper's bound, stated for threshold 0
    corrected : the corrected bound at the threshold
    """

    gamma: float
    delta: float
    threshold_ratio: float
    surrogate: float
    simulated: float
    printed: float
    corrected: float


@dataclass(frozen=True)
class ThresholdCurves:
    """The surrogate and the corrected bound against threshold / gamma, at one noise level.

    Attributes
    ----------
    gamma, delta : standard deviations of the noise and of x'beta
    printed : the paper's bound
    ratios, surrogate, corrected : threshold / gamma; min over beta of S^t by quadrature; the corrected bound
    simulated_ratios, simulated : threshold / gamma; the surrogate from a sample
    n_samples : size of the sample
    """

    gamma: float
    delta: float
    printed: float
    ratios: Vector
    surrogate: Vector
    corrected: Vector
    simulated_ratios: Vector
    simulated: Vector
    n_samples: int


@dataclass(frozen=True)
class NoiseCurves:
    """The surrogate and both bounds against the noise.

    Attributes
    ----------
    delta : standard deviation of x'beta
    gammas : standard deviations of the noise
    printed, corrected : the paper's bound; the corrected one, minimised over the threshold
    at_zero, at_best : min over beta of S^t at threshold 0 and at the threshold of the corrected bound
    """

    delta: float
    gammas: Vector
    printed: Vector
    corrected: Vector
    at_zero: Vector
    at_best: Vector


@dataclass(frozen=True)
class ErratumCurves:
    """The erratum as curves: against the threshold, and against the noise."""

    thresholds: ThresholdCurves
    noises: NoiseCurves


def asymptotic_rows(
    gammas: Sequence[float] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    threshold_ratios: Sequence[float] = (0.0, 1.0, 2.0, 3.0, 4.0),
    *,
    delta: float = 1.0,
    n_samples: int = 200_000,
    random_state: int = 0,
) -> list[AsymptoticRow]:
    """Both bounds, and the surrogate by quadrature and from a large sample, for each noise and threshold.

    Parameters
    ----------
    gammas : positive numbers
    threshold_ratios : thresholds as multiples of gamma
    delta : float, default=1.0
    n_samples : int, default=200_000
    random_state : int, default=0

    Returns
    -------
    list of AsymptoticRow

    Examples
    --------
    >>> (row,) = asymptotic_rows([0.01], [0.0], n_samples=10_000)
    >>> row.printed < row.surrogate < row.corrected
    True
    """
    rows = []
    for gamma in gammas:
        for ratio in threshold_ratios:
            threshold = check_number(ratio, "threshold_ratios") * check_number(gamma, "gammas", above=0.0)
            rows.append(
                AsymptoticRow(
                    gamma=gamma,
                    delta=delta,
                    threshold_ratio=ratio,
                    surrogate=least_surrogate(gamma, delta, threshold),
                    simulated=simulated_surrogate(gamma, delta, threshold, n_samples, 1, random_state),
                    printed=printed_asymptotic_bound(gamma, delta),
                    corrected=asymptotic_bound(gamma, delta, threshold),
                )
            )
    return rows


def erratum_curves(gamma: float = 0.01, delta: float = 1.0, n_samples: int = 200_000) -> ErratumCurves:
    """Compute the curves that show where the printed bound fails.

    Parameters
    ----------
    gamma : float, default=0.01
        Noise of the curves against the threshold.
    delta : float, default=1.0
    n_samples : int, default=200_000
        Size of the simulated samples.

    Returns
    -------
    ErratumCurves
    """
    return ErratumCurves(_threshold_curves(gamma, delta, n_samples), _noise_curves(delta))


def _threshold_curves(gamma: float, delta: float, n_samples: int) -> ThresholdCurves:
    ratios = np.linspace(0.0, MAX_RATIO, N_RATIOS)
    simulated_ratios = np.linspace(0.0, MAX_RATIO, N_SIMULATED_RATIOS)
    return ThresholdCurves(
        gamma=gamma,
        delta=delta,
        printed=printed_asymptotic_bound(gamma, delta),
        ratios=ratios,
        surrogate=np.array([least_surrogate(gamma, delta, s * gamma) for s in ratios]),
        corrected=np.array([asymptotic_bound(gamma, delta, s * gamma) for s in ratios]),
        simulated_ratios=simulated_ratios,
        simulated=np.array(
            [simulated_surrogate(gamma, delta, s * gamma, n_samples) for s in simulated_ratios]
        ),
        n_samples=n_samples,
    )


def _noise_curves(delta: float) -> NoiseCurves:
    gammas = np.geomspace(MIN_NOISE, MAX_NOISE, N_NOISES) * max(delta, MIN_DELTA)
    return NoiseCurves(
        delta=delta,
        gammas=gammas,
        printed=np.array([printed_asymptotic_bound(g, delta) for g in gammas]),
        corrected=np.array([asymptotic_bound(g, delta) for g in gammas]),
        at_zero=np.array([least_surrogate(g, delta, 0.0) for g in gammas]),
        at_best=np.array([least_surrogate(g, delta, best_threshold(g, delta)) for g in gammas]),
    )
