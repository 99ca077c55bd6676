"""The paper's figures: four measures against noise, one figure per size, and running time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rectifit.experiments.grid import LABELS, OURS, PAPER_METHODS, PROOF
from rectifit.experiments.results import Results
from rectifit.plotting import AMBER, BLUE, GREEN, GREY, PURPLE, SKY, VERMILION, style

__all__ = ["COLOURS", "draw_measures", "draw_optimality", "draw_times", "save_figure"]

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
# On a logarithmic axis everything below is drawn here.
FLOOR = 1e-3
FORMATS = ("png", "svg", "pdf")


def draw_measures(results: Results, p: int) -> Any:
    """Rows: sparsity; columns: measures; lines: means of the instances; bands: middle half of them."""
    settings = [setting for setting in results.drawn if setting.p == p]
    sparsities = sorted({setting.sparsity for setting in settings})
    methods = [*PAPER_METHODS, OURS]
    with style() as plt:
        figure, axes = _grid(plt, len(sparsities), len(MEASURES), 2.6, 1.9)
        for i, sparsity in enumerate(sparsities):
            row = sorted(setting for setting in settings if setting.sparsity == sparsity)
            for j, (measure, name) in enumerate(MEASURES.items()):
                axis = axes[i][j]
                for method in methods:
                    groups = [results.values(setting, method, measure) for setting in row]
                    _line(axis, method, groups, [setting.noise for setting in row])
                axis.set_yscale("log")
                if i == 0:
                    axis.set_title(name)
                if i == len(sparsities) - 1:
                    axis.set_xlabel("noise")
                if j == 0:
                    axis.set_ylabel(f"sparsity {sparsity:g}")
        n = settings[0].n
        _finish(
            figure, methods, f"p = {p}, n = {n}: mean of the instances, band from first to third quartile"
        )
    return figure


def draw_times(results: Results) -> Any:
    """Seconds against noise, one panel per size, all sparsities together."""
    sizes = sorted({(setting.p, setting.n) for setting in results.drawn})
    methods = [*PAPER_METHODS, OURS, PROOF]
    with style() as plt:
        figure, axes = _grid(plt, 1, len(sizes), 3.4, 3.2)
        for j, (p, n) in enumerate(sizes):
            axis = axes[0][j]
            noises = sorted({s.noise for s in results.drawn if s.p == p})
            for method in methods:
                groups = [
                    [
                        t
                        for s in results.drawn
                        if (s.p, s.noise) == (p, noise)
                        for t in results.values(s, method, "seconds")
                    ]
                    for noise in noises
                ]
                _line(axis, method, groups, noises, floor=1e-5)
            axis.set_yscale("log")
            axis.set_title(f"p = {p}, n = {n}")
            axis.set_xlabel("noise")
        axes[0][0].set_ylabel("seconds")
        _finish(figure, methods, "Running time: mean, band from first to third quartile")
    return figure


def draw_optimality(results: Results) -> Any:
    """How many of the proved instances each method solves, one panel per size."""
    table = results.optimality_table()
    names = [column.name for column in table.columns]
    sizes = sorted({str(row[0]) for row in table.rows}, key=lambda name: int(name.split()[2].strip(",")))
    methods = [*PAPER_METHODS, OURS]
    with style() as plt:
        figure, axes = _grid(plt, 1, len(sizes), 3.4, 3.2)
        for axis, size in zip(axes[0], sizes, strict=True):
            rows = [row for row in table.rows if row[0] == size and row[2]]
            for k, method in enumerate(methods):
                shares = [float(row[names.index(LABELS[method])] or 0.0) for row in rows]
                places = np.arange(len(rows)) + (k - (len(methods) - 1) / 2) * 0.13
                axis.bar(places, shares, 0.12, color=COLOURS[method], label=LABELS[method])
            axis.set_xticks(range(len(rows)), [f"{row[1]:g}" for row in rows])
            axis.set_ylim(0.0, 1.0)
            axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
            axis.set_title(size)
            axis.set_xlabel("noise")
        axes[0][0].set_ylabel("solved to global optimality")
        _finish(figure, methods, "Share of the instances with a proved optimum that a method solves")
    return figure


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure in all formats, and let go of it."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in FORMATS]
    for path in paths:
        # Without a date, so that equal figures are equal files.
        metadata = (
            {"Date": None}
            if path.suffix == ".svg"
            else {"CreationDate": None}
            if path.suffix == ".pdf"
            else {}
        )
        figure.savefig(path, dpi=130, metadata=metadata)
    plt.close(figure)
    return paths


def _grid(plt: Any, n_rows: int, n_columns: int, width: float, height: float) -> Any:
    return plt.subplots(
        n_rows,
        n_columns,
        figsize=(width * n_columns, height * n_rows + 0.8),
        squeeze=False,
        layout="constrained",
    )


def _line(
    axis: Any, method: str, groups: list[list[float]], noises: Iterable[float], floor: float = FLOOR
) -> None:
    """Means and quartiles over the noise levels, at equal distances."""
    labels = [f"{noise:g}" for noise in noises]
    there = [i for i, group in enumerate(groups) if group]
    if not there:
        return
    means = [max(float(np.mean(groups[i])), floor) for i in there]
    low, high = ([max(float(np.quantile(groups[i], share)), floor) for i in there] for share in (0.25, 0.75))
    colour = COLOURS[method]
    axis.fill_between(there, low, high, color=colour, alpha=0.18, linewidth=0)
    axis.plot(
        there, means, color=colour, marker=MARKERS[method], markersize=4, linewidth=1.3, label=LABELS[method]
    )
    axis.set_xticks(range(len(labels)), labels)


def _finish(figure: Any, methods: list[str], title: str) -> None:
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = [LABELS[method] for method in methods if LABELS[method] in handles]
    figure.legend(
        [handles[name] for name in labels],
        labels,
        loc="outside lower center",
        ncols=len(labels),
        frameon=False,
    )
    figure.suptitle(title, fontsize=11)
