"""The asymptotic bound, printed and corrected, against what both bound (limits.py); and a picture of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit.checks import check_number
from rectifit.experiments.limits import least_surrogate, simulated_surrogate
from rectifit.plotting import BLUE, GREEN, GREY, VERMILION
from rectifit.theory import asymptotic_bound, best_threshold, printed_asymptotic_bound

__all__ = ["AsymptoticRow", "asymptotic_rows", "draw_erratum"]

SURROGATE, PRINTED, CORRECTED, FLOOR = BLUE, VERMILION, GREEN, GREY


@dataclass(frozen=True)
class AsymptoticRow:
    """The bounds at one noise and threshold, and what they bound.

    Attributes
    ----------
    gamma, delta : standard deviations of the noise and of x'beta
    threshold_ratio : threshold / gamma
    surrogate : min over beta of S^t, by quadrature
    simulated : the same from a large sample
    printed : the paper's bound, said of threshold 0
    corrected : the corrected bound at the threshold
    """

    gamma: float
    delta: float
    threshold_ratio: float
    surrogate: float
    simulated: float
    printed: float
    corrected: float


def asymptotic_rows(
    gammas: Sequence[float] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    threshold_ratios: Sequence[float] = (0.0, 1.0, 2.0, 3.0, 4.0),
    *,
    delta: float = 1.0,
    n_samples: int = 200_000,
    random_state: int = 0,
) -> list[AsymptoticRow]:
    """Both bounds, the surrogate by quadrature and the surrogate of a large sample, over noise and threshold.

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


def draw_erratum(gamma: float = 0.01, delta: float = 1.0, n_samples: int = 200_000) -> Any:
    """The erratum as a picture: the surrogate against the threshold, and against the noise, with both bounds.

    Parameters
    ----------
    gamma, delta : float
        Noise of the left panel, and signal.
    n_samples : int, default=200_000
        Of the samples that the dots come from.

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("drawing needs matplotlib; install it with: pip install 'rectifit[cli]'") from None

    figure = Figure(figsize=(10.0, 6.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_thresholds(left, gamma, delta, n_samples)
    _draw_noises(right, delta)
    figure.suptitle("Said to hold at threshold 0, the printed bound does not: a positive threshold is needed")
    return figure


def _draw_thresholds(axes: Any, gamma: float, delta: float, n_samples: int) -> None:
    ratios, dots = np.linspace(0.0, 6.0, 61), np.linspace(0.0, 6.0, 13)
    curve = [least_surrogate(gamma, delta, s * gamma) for s in ratios]
    bound = [asymptotic_bound(gamma, delta, s * gamma) for s in ratios]
    printed = printed_asymptotic_bound(gamma, delta)
    axes.axhline(printed, color=PRINTED, linestyle="--", label="bound as printed")
    axes.plot(ratios, bound, color=CORRECTED, linestyle="-.", label="corrected bound")
    axes.plot(ratios, curve, color=SURROGATE, label="least surrogate, quadrature")
    axes.plot(
        dots,
        [simulated_surrogate(gamma, delta, s * gamma, n_samples) for s in dots],
        "o",
        color=SURROGATE,
        markerfacecolor="white",
        label=f"least surrogate, {n_samples:,} samples",
    )
    axes.axhline(gamma**2, color=FLOOR, linestyle=":", label=r"$\gamma^2$, lower bound")
    axes.annotate(
        f"at threshold 0: {curve[0]:.2g},\nprinted bound: {printed:.2g}",
        xy=(0.0, curve[0]),
        xytext=(2.2, curve[0]),
        va="center",
        arrowprops={"arrowstyle": "->", "color": "black"},
    )
    axes.set(
        yscale="log",
        xlabel=r"threshold / $\gamma$",
        ylabel="surrogate per sample",
        title=rf"Against the threshold: $\gamma$ = {gamma:g}, $\Delta$ = {delta:g}",
    )
    _put_legend_below(axes)


def _draw_noises(axes: Any, delta: float) -> None:
    gammas = np.geomspace(1e-3, 3.0, 31) * max(delta, 1e-3)
    axes.plot(
        gammas,
        [printed_asymptotic_bound(g, delta) for g in gammas],
        color=PRINTED,
        linestyle="--",
        label="bound as printed",
    )
    axes.plot(
        gammas,
        [asymptotic_bound(g, delta) for g in gammas],
        color=CORRECTED,
        linestyle="-.",
        label="corrected bound, best threshold",
    )
    axes.plot(
        gammas,
        [least_surrogate(g, delta, 0.0) for g in gammas],
        color=SURROGATE,
        linewidth=2.5,
        label="least surrogate, threshold 0",
    )
    axes.plot(
        gammas,
        [least_surrogate(g, delta, best_threshold(g, delta)) for g in gammas],
        color=SURROGATE,
        label="least surrogate, the corrected bound's threshold",
    )
    axes.plot(gammas, gammas**2, color=FLOOR, linestyle=":", label=r"$\gamma^2$, lower bound")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=r"$\gamma$, standard deviation of the noise",
        ylabel="surrogate per sample",
        title=rf"Against the noise: $\Delta$ = {delta:g}",
    )
    _put_legend_below(axes)


def _put_legend_below(axes: Any) -> None:
    # Inside it would hide the curves.
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=10, frameon=False)
