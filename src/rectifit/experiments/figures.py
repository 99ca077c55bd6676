"""The figures of a run: error measures, running time and solved instances against noise; and the erratum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rectifit.experiments.asymptotics import ErratumCurves, NoiseCurves, ThresholdCurves
from rectifit.experiments.fits import Spread
from rectifit.experiments.grid import COMPARED_METHODS, LABELS, OURS, PROOF, Size
from rectifit.experiments.statistics import Statistics
from rectifit.plotting import AMBER, BLUE, GREEN, GREY, PURPLE, SKY, VERMILION, style

__all__ = [
    "COLOURS",
    "MIN_ERROR",
    "draw_erratum",
    "draw_figures",
    "draw_measures",
    "draw_optimality",
    "draw_times",
    "save_figure",
]

# The same in every figure.
COLOURS = {
    "sorting": AMBER,
    "sorting+iterative": GREEN,
    "sorting+gd": SKY,
    "gd": PURPLE,
    "sgd": GREY,
    OURS: BLUE,
    PROOF: VERMILION,
}
MARKERS = {
    "sorting": "o",
    "sorting+iterative": "s",
    "sorting+gd": "^",
    "gd": "D",
    "sgd": "v",
    OURS: "*",
    PROOF: "P",
}
MEASURES = {
    "prediction_error": "prediction error",
    "objective": "objective",
    "recovery_error": "recovery error",
    "generalization_error": "generalisation error",
}
# Smaller values are drawn here on a logarithmic axis.
MIN_ERROR = 1e-3
MIN_SECONDS = 1e-5
# The width of a bar and the distance of neighbouring bars, where noise levels have distance 1.
BAR_WIDTH = 0.12
BAR_DISTANCE = 0.13
# Formats of the files, with the metadata that drop the date, so that equal figures are equal files.
FORMATS: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

# The lines of the erratum.
PRINTED: dict[str, Any] = {"color": VERMILION, "linestyle": "--", "label": "bound as printed"}
CORRECTED: dict[str, Any] = {"color": GREEN, "linestyle": "-."}
SURROGATE: dict[str, Any] = {"color": BLUE}
LOWER_BOUND: dict[str, Any] = {"color": GREY, "linestyle": ":", "label": r"$\gamma^2$, lower bound"}


def draw_figures(statistics: Statistics) -> dict[str, Any]:
    """All figures of a run, by the names of their files."""
    return {
        **{f"measures-p{size.p}": draw_measures(statistics, size) for size in statistics.sizes},
        "times": draw_times(statistics),
        "optimality": draw_optimality(statistics),
    }


def draw_measures(statistics: Statistics, size: Size) -> Any:
    """Draw four measures against noise at one size, with one row of panels per sparsity.

    Lines are means over the instances, bands reach from the first to the third quartile.
    """
    settings = [one for one in statistics.settings if one.setting.size == size]
    sparsities = sorted({one.setting.sparsity for one in settings})
    with style():
        figure, panels = _make_panels(len(sparsities), len(MEASURES), 2.6, 1.9)
        for line, sparsity in zip(panels, sparsities, strict=True):
            shown = [one for one in settings if one.setting.sparsity == sparsity]
            noises = [one.setting.noise for one in shown]
            for axes, measure in zip(line, MEASURES, strict=True):
                for method in COMPARED_METHODS:
                    spreads = [one.spreads.get((method, measure)) for one in shown]
                    _draw_line(axes, method, noises, spreads, MIN_ERROR)
                axes.set_yscale("log")
            line[0].set_ylabel(f"sparsity {sparsity:g}")
        for axes, name in zip(panels[0], MEASURES.values(), strict=True):
            axes.set_title(name)
        for axes in panels[-1]:
            axes.set_xlabel("noise")
        _add_legend(figure, f"{size}: mean of the instances, band from first to third quartile")
    return figure


def draw_times(statistics: Statistics) -> Any:
    """Draw running time against noise, one panel per size, all sparsities together."""
    with style():
        figure, (panels,) = _make_panels(1, len(statistics.sizes), 3.4, 3.2)
        for axes, size in zip(panels, statistics.sizes, strict=True):
            levels = [level for level in statistics.levels if level.size == size]
            noises = [level.noise for level in levels]
            for method in LABELS:
                spreads = [level.seconds.get(method) for level in levels]
                _draw_line(axes, method, noises, spreads, MIN_SECONDS)
            axes.set(yscale="log", title=str(size), xlabel="noise")
        panels[0].set_ylabel("seconds")
        _add_legend(figure, "Running time: mean, band from first to third quartile")
    return figure


def draw_optimality(statistics: Statistics) -> Any:
    """Draw the share of the proved instances that each method solves, one panel per size."""
    offsets = BAR_DISTANCE * (np.arange(len(COMPARED_METHODS)) - (len(COMPARED_METHODS) - 1) / 2)
    with style():
        figure, (panels,) = _make_panels(1, len(statistics.sizes), 3.4, 3.2)
        for axes, size in zip(panels, statistics.sizes, strict=True):
            levels = [level for level in statistics.levels if level.size == size and level.n_proved]
            for method, offset in zip(COMPARED_METHODS, offsets, strict=True):
                shares = [level.solved.get(method, 0.0) for level in levels]
                places = np.arange(len(levels)) + offset
                axes.bar(places, shares, BAR_WIDTH, color=COLOURS[method], label=LABELS[method])
            axes.set_xticks(range(len(levels)), [f"{level.noise:g}" for level in levels])
            axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
            axes.set(ylim=(0.0, 1.0), title=str(size), xlabel="noise")
        panels[0].set_ylabel("solved to global optimality")
        _add_legend(figure, "Share of the instances with a proved optimum that a method solves")
    return figure


def draw_erratum(curves: ErratumCurves) -> Any:
    """Draw the surrogate with both bounds, against the threshold and against the noise."""
    with style():
        figure, ((left, right),) = _make_panels(1, 2, 5.0, 5.2)
        _draw_thresholds(left, curves.thresholds)
        _draw_noises(right, curves.noises)
        for axes in (left, right):
            axes.set(yscale="log", ylabel="surrogate per sample")
            # A legend inside the axes would hide the curves.
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=10, frameon=False)
        figure.suptitle("The printed bound does not hold at threshold 0: a positive threshold is needed")
    return figure


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure in all formats."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    # Ticks are made when a figure is written, and need the style as well.
    with style():
        for suffix, metadata in FORMATS.items():
            paths.append(folder / f"{name}.{suffix}")
            figure.savefig(paths[-1], dpi=130, metadata=metadata)
    return paths


def _make_panels(n_rows: int, n_columns: int, width: float, height: float) -> tuple[Any, Any]:
    """A figure with a grid of axes; the figure belongs to no window and need not be closed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n_columns, height * n_rows + 0.8), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def _draw_line(
    axes: Any, method: str, noises: Sequence[float], spreads: Sequence[Spread | None], least: float
) -> None:
    """Draw means and quartiles over equally spaced noise levels, as far as there are any."""
    there = [(i, spread) for i, spread in enumerate(spreads) if spread is not None]
    if not there:
        return
    places = [i for i, _ in there]
    means = [max(spread.mean, least) for _, spread in there]
    low = [max(spread.first_quartile, least) for _, spread in there]
    high = [max(spread.third_quartile, least) for _, spread in there]
    colour, marker, label = COLOURS[method], MARKERS[method], LABELS[method]
    axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(places, means, color=colour, marker=marker, markersize=4, linewidth=1.3, label=label)
    axes.set_xticks(range(len(noises)), [f"{noise:g}" for noise in noises])


def _add_legend(figure: Any, title: str) -> None:
    """Add a title and one legend for all panels, in the order of the methods."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = [label for label in LABELS.values() if label in handles]
    shown = [handles[label] for label in labels]
    figure.legend(shown, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(title, fontsize=11)


def _draw_thresholds(axes: Any, curves: ThresholdCurves) -> None:
    gamma, at_zero = curves.gamma, curves.surrogate[0]
    axes.axhline(curves.printed, **PRINTED)
    axes.plot(curves.ratios, curves.corrected, **CORRECTED, label="corrected bound")
    axes.plot(curves.ratios, curves.surrogate, **SURROGATE, label="least surrogate, quadrature")
    label = f"least surrogate, {curves.n_samples:,} samples"
    axes.plot(
        curves.simulated_ratios, curves.simulated, "o", **SURROGATE, markerfacecolor="white", label=label
    )
    axes.axhline(gamma**2, **LOWER_BOUND)
    axes.annotate(
        f"at threshold 0: {at_zero:.2g},\nprinted bound: {curves.printed:.2g}",
        xy=(0.0, at_zero),
        xytext=(2.2, at_zero),
        va="center",
        arrowprops={"arrowstyle": "->", "color": "black"},
    )
    axes.set_xlabel(r"threshold / $\gamma$")
    axes.set_title(rf"Against the threshold: $\gamma$ = {gamma:g}, $\Delta$ = {curves.delta:g}")


def _draw_noises(axes: Any, curves: NoiseCurves) -> None:
    gammas = curves.gammas
    axes.plot(gammas, curves.printed, **PRINTED)
    axes.plot(gammas, curves.corrected, **CORRECTED, label="corrected bound, best threshold")
    axes.plot(gammas, curves.at_zero, **SURROGATE, linewidth=2.5, label="least surrogate, threshold 0")
    axes.plot(gammas, curves.at_best, **SURROGATE, label="least surrogate, the corrected bound's threshold")
    axes.plot(gammas, gammas**2, **LOWER_BOUND)
    axes.set_xscale("log")
    axes.set_xlabel(r"$\gamma$, standard deviation of the noise")
    axes.set_title(rf"Against the noise: $\Delta$ = {curves.delta:g}")
