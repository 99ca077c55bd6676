"""The figures of a run: error measures, excess, running time and solved instances; and the erratum."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.experiments.asymptotics import DELTA, Erratum
from rectifit.experiments.grid import COMPARED_METHODS, LABELS, PROOF, Size
from rectifit.experiments.statistics import Statistics
from rectifit.experiments.summaries import SOLVED_TOL, Spread
from rectifit.plotting import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    LINE,
    PAPER,
    PURPLE,
    SKY,
    VERMILION,
    make_figure,
    style,
)
from rectifit.writing import write_file

__all__ = [
    "COLOURS",
    "MIN_ERROR",
    "MIN_EXCESS",
    "draw_erratum",
    "draw_excess",
    "draw_excess_in_time",
    "draw_figures",
    "draw_measures",
    "draw_optimality",
    "draw_times",
    "save_figure",
]

# The same in every figure.
COLOURS = dict(zip(LABELS, (AMBER, GREEN, SKY, PURPLE, GREY, BLUE, VERMILION), strict=True))
MARKERS = dict(zip(LABELS, "os^Dv*P", strict=True))
MEASURES = {
    "prediction_error": "prediction error",
    "objective": "objective",
    "recovery_error": "recovery error",
    "generalization_error": "generalisation error",
}
# Smaller values are drawn here on a logarithmic axis.
MIN_ERROR = 1e-3
MIN_EXCESS = 1e-6
MIN_SECONDS = 1e-5
# The width of a bar and the distance of neighbouring bars, where noise levels have distance 1.
BAR_WIDTH = 0.12
BAR_DISTANCE = 0.13
# Formats of the files, with the metadata that drop the date, so that equal figures are equal files.
FORMATS: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# Three lines of the erratum.
PRINTED: dict[str, Any] = {"color": VERMILION, "linestyle": "--", "label": "bound as printed"}
CORRECTED: dict[str, Any] = {"color": GREEN, "linestyle": "-."}
LOWER_BOUND: dict[str, Any] = {"color": GREY, "linestyle": ":", "label": r"$\gamma^2$, lower bound"}


def draw_figures(statistics: Statistics) -> dict[str, Any]:
    """All figures of a run, by the names of their files."""
    return {
        **{f"measures-p{size.p}": draw_measures(statistics, size) for size in statistics.sizes},
        "times": draw_times(statistics),
        "optimality": draw_optimality(statistics),
        # Without a proved optimum above 0 there is nothing to compare with.
        **(
            {"excess": draw_excess(statistics), "excess-in-time": draw_excess_in_time(statistics)}
            if statistics.excesses
            else {}
        ),
    }


def draw_measures(statistics: Statistics, size: Size) -> Any:
    """Draw four measures against noise at one size, with one row of panels per sparsity.

    Lines are means over the instances, bands reach from the first to the third quartile.
    """
    sparsities = sorted({setting.sparsity for setting in statistics.spreads if setting.size == size})
    with style():
        figure, panels = _make_panels(len(sparsities), len(MEASURES), 2.6, 1.9)
        for row, sparsity in zip(panels, sparsities, strict=True):
            shown = [one for one in statistics.spreads if (one.size, one.sparsity) == (size, sparsity)]
            for axes, measure in zip(row, MEASURES, strict=True):
                for method in COMPARED_METHODS:
                    line = {i: statistics.spreads[one][method, measure] for i, one in enumerate(shown)}
                    _draw_line(axes, method, line, MIN_ERROR)
                axes.set_yscale("log")
                _mark_noises(axes, [setting.noise for setting in shown])
            row[0].set_ylabel(f"sparsity {sparsity:g}")
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
            for method in LABELS:
                line = {i: level.seconds[method] for i, level in enumerate(levels) if method in level.seconds}
                _draw_line(axes, method, line, MIN_SECONDS)
            _mark_noises(axes, [level.noise for level in levels])
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
            _mark_noises(axes, [level.noise for level in levels])
            axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
            axes.set(ylim=(0.0, 1.0), title=str(size), xlabel="noise")
        panels[0].set_ylabel("solved to global optimality")
        _add_legend(figure, "Share of the instances with a proved optimum that a method solves")
    return figure


def draw_excess(statistics: Statistics) -> Any:
    """Draw the excess over the proved optimum against noise, with a panel for every size and sparsity.

    Lines are means over the instances, bands reach from the first to the third quartile.
    """
    sizes = sorted({setting.size for setting in statistics.excesses})
    sparsities = sorted({setting.sparsity for setting in statistics.excesses})
    noises = sorted({setting.noise for setting in statistics.excesses})
    with style():
        figure, panels = _make_panels(len(sizes), len(sparsities), 2.1, 2.3, sharex=True, sharey=True)
        for row, size in zip(panels, sizes, strict=True):
            for axes, sparsity in zip(row, sparsities, strict=True):
                shown = [one for one in statistics.excesses if (one.size, one.sparsity) == (size, sparsity)]
                for method in COMPARED_METHODS:
                    line = {noises.index(one.noise): statistics.excesses[one][method] for one in shown}
                    _draw_line(axes, method, line, MIN_EXCESS)
                _mark_solved(axes)
            row[0].set_ylabel(f"{size}\nexcess over the optimum")
        for axes, sparsity in zip(panels[0], sparsities, strict=True):
            axes.set_title(f"sparsity {sparsity:g}")
        for axes in panels[-1]:
            _mark_noises(axes, noises)
            axes.set_xlabel("noise")
        _add_legend(figure, "Excess over the proved optimum: mean, band from first to third quartile")
    return figure


def draw_excess_in_time(statistics: Statistics) -> Any:
    """Draw what time buys: the mean excess of every method against its time, one panel per size.

    A small marker is one setting with noise, of which the time is the median; the large one is the median of
    all these. Proofs have no excess.
    """
    sizes = sorted({setting.size for setting in statistics.excesses})
    with style():
        figure, (panels,) = _make_panels(1, len(sizes), 3.4, 3.4, sharex=True, sharey=True)
        for axes, size in zip(panels, sizes, strict=True):
            settings = [setting for setting in statistics.excesses if setting.size == size]
            for method in LABELS:
                seconds = [statistics.spreads[one][method, "seconds"].median for one in settings]
                excess = [
                    0.0 if method == PROOF else statistics.excesses[one][method].mean for one in settings
                ]
                _draw_cloud(axes, method, np.maximum(seconds, MIN_SECONDS), np.maximum(excess, MIN_EXCESS))
            axes.set(xscale="log", title=str(size), xlabel="seconds")
            _mark_solved(axes)
        panels[0].set_ylabel("excess over the optimum")
        _add_legend(figure, "Time against excess: a small marker for every setting, a large one for all")
    return figure


def draw_erratum(erratum: Erratum) -> Any:
    """Draw the surrogate with both bounds, against the threshold and against the noise."""
    with style():
        figure, ((left, right),) = _make_panels(1, 2, 5.0, 5.2)
        _draw_thresholds(left, erratum)
        _draw_noises(right, erratum)
        for axes in (left, right):
            axes.set(yscale="log", ylabel="surrogate per sample")
            # A legend inside the axes would hide the curves.
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=10, frameon=False)
        figure.suptitle("The printed bound does not hold at threshold 0: a positive threshold is needed")
    return figure


def save_figure(figure: Any, folder: Path, name: str, formats: Iterable[str] = tuple(FORMATS)) -> list[Path]:
    """Write a figure in all formats, or in some."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    # Ticks are made when a figure is written, and need the style as well.
    with style():
        for suffix in formats:
            paths.append(folder / f"{name}.{suffix}")
            drawn = io.BytesIO()
            figure.savefig(drawn, format=suffix, dpi=130, metadata=FORMATS[suffix])
            write_file(paths[-1], drawn.getvalue())
    return paths


def _make_panels(
    n_rows: int, n_columns: int, width: float, height: float, **options: bool
) -> tuple[Any, Any]:
    """A figure with a grid of axes, each of this size, and room for a title and a legend."""
    return make_figure(n_rows, n_columns, (width * n_columns, height * n_rows + 0.8), **options)


def _draw_line(axes: Any, method: str, spreads: Mapping[int, Spread], least: float) -> None:
    """Draw means and quartiles at some places of the axis."""
    means = [max(spread.mean, least) for spread in spreads.values()]
    low = [max(spread.first_quartile, least) for spread in spreads.values()]
    high = [max(spread.third_quartile, least) for spread in spreads.values()]
    places, colour = list(spreads), COLOURS[method]
    look = {"marker": MARKERS[method], "markersize": 4, "linewidth": 1.3, "label": LABELS[method]}
    axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(places, means, color=colour, **look)


def _draw_cloud(axes: Any, method: str, places: Vector, heights: Vector) -> None:
    """Draw small markers, and a large one at their medians."""
    look = {"color": COLOURS[method], "marker": MARKERS[method], "linestyle": ""}
    axes.plot(places, heights, **look, markersize=3, alpha=0.5)
    edge = {"markersize": 9, "markeredgecolor": PAPER, "label": LABELS[method]}
    axes.plot(np.median(places), np.median(heights), **look, **edge)


def _mark_solved(axes: Any) -> None:
    """Shade the excesses that are within the gap of the proofs, on an axis that ends below them."""
    axes.axhspan(MIN_EXCESS / 2.0, SOLVED_TOL, color=LINE, alpha=0.5, linewidth=0, zorder=0)
    axes.set_yscale("log")
    axes.set_ylim(bottom=MIN_EXCESS / 2.0)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100.0 * share:,.6g} %")


def _mark_noises(axes: Any, noises: Sequence[float]) -> None:
    """Label equally spaced noise levels."""
    axes.set_xticks(range(len(noises)), [f"{noise:g}" for noise in noises])


def _add_legend(figure: Any, title: str) -> None:
    """Add a title and one legend for all panels, which show the same methods."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(title, fontsize=11)


def _draw_thresholds(axes: Any, erratum: Erratum) -> None:
    rows = erratum.thresholds
    gamma, printed, at_zero = rows[0].gamma, rows[0].printed, rows[0].surrogate
    ratios, simulated = [row.threshold_ratio for row in rows], [row.simulated for row in rows]
    samples = f"least surrogate, {erratum.n_samples:,} samples"
    axes.axhline(printed, **PRINTED)
    axes.plot(ratios, [row.corrected for row in rows], **CORRECTED, label="corrected bound")
    axes.plot(ratios, [row.surrogate for row in rows], color=BLUE, label="least surrogate, quadrature")
    axes.plot(ratios, simulated, "o", color=BLUE, markerfacecolor="white", label=samples)
    axes.axhline(gamma**2, **LOWER_BOUND)
    text = f"at threshold 0: {at_zero:.2g},\nprinted bound: {printed:.2g}"
    arrow = {"arrowstyle": "->", "color": "black"}
    axes.annotate(text, (0.0, at_zero), (2.2, at_zero), va="center", arrowprops=arrow)
    axes.set_xlabel(r"threshold / $\gamma$")
    axes.set_title(rf"Against the threshold: $\gamma$ = {gamma:g}, $\Delta$ = {DELTA:g}")


def _draw_noises(axes: Any, erratum: Erratum) -> None:
    zero, best = erratum.at_zero, erratum.at_best
    gammas = [row.gamma for row in zero]
    zero_label = "least surrogate, threshold 0"
    best_label = "least surrogate, the corrected bound's threshold"
    axes.plot(gammas, [row.printed for row in zero], **PRINTED)
    axes.plot(gammas, [row.corrected for row in best], **CORRECTED, label="corrected bound, best threshold")
    axes.plot(gammas, [row.surrogate for row in zero], color=BLUE, linewidth=2.5, label=zero_label)
    axes.plot(gammas, [row.surrogate for row in best], color=BLUE, label=best_label)
    axes.plot(gammas, [gamma**2 for gamma in gammas], **LOWER_BOUND)
    axes.set_xscale("log")
    axes.set_xlabel(r"$\gamma$, standard deviation of the noise")
    axes.set_title(rf"Against the noise: $\Delta$ = {DELTA:g}")
