"""Figures of a page, drawn by `rectifit.plot` from finished numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np

from rectifit import plot
from rectifit.inference import PredictedMargins
from rectifit.plotting import AMBER, BLUE, VERMILION, make_figure, style
from rectifit.report.contents import ReportData, SplitPath
from rectifit.web import Figure

__all__ = ["draw", "draw_effects", "draw_path"]

# Width and height, in inches: two figures stand side by side, and on a phone the letters can be read.
SIZE = (4.9, 3.5)
SMALL_SIZE = (3.4, 2.8)
# Longer labels of axes are broken into lines.
LETTERS_PER_INCH = 10.5


def draw(draw_into: Callable[..., Any], *given: Any, alt: str, caption: str = "", **options: Any) -> Figure:
    """A function of `rectifit.plot` as a figure of the page."""
    return _make(lambda axes: draw_into(*given, ax=axes, **options), alt, caption)


def draw_effects(data: ReportData) -> list[Figure]:
    """One small picture per variable, with the same scale of predictions in all."""
    target = data.label(data.target)
    ends = np.array([end for margins in data.margins for end in (*margins.low, *margins.high)])
    ends = ends[np.isfinite(ends)]
    pad = 0.05 * np.ptp(ends) if ends.size else 0.0

    def draw_one(axes: Any, margins: PredictedMargins) -> None:
        plot.effects(margins, target=target, ax=axes)
        axes.get_legend().remove()
        axes.set_xlabel(data.label(margins.feature))
        if pad > 0.0:
            axes.set_ylim(ends.min() - pad, ends.max() + pad)

    return [
        _make(
            partial(draw_one, margins=margins),
            f"Mean prediction of {target} against {margins.feature}",
            size=SMALL_SIZE,
        )
        for margins in data.margins
    ]


def draw_path(path: SplitPath, alt: str) -> Figure:
    """The sums of squares of the sorting method's fits, split by split, and that of the fit."""
    lines = (
        (path.surrogates, AMBER, "what is minimised, an upper bound"),
        (path.objectives, BLUE, "the fit that results"),
    )

    def draw_into(axes: Any) -> None:
        for values, colour, label in lines:
            axes.plot(path.shares, values, color=colour, marker="o", markersize=3, label=label)
        axes.axhline(path.reached, color=VERMILION, linewidth=1.4, label="the fit of this page")
        axes.set(
            xlabel="guess: the largest outcomes, in % of those above the floor",
            ylabel="sum of squared errors",
        )
        axes.legend()

    return _make(draw_into, alt)


def _make(
    draw_into: Callable[[Any], Any], alt: str, caption: str = "", size: tuple[float, float] = SIZE
) -> Figure:
    with style():
        figure, ((axes,),) = make_figure(size=size)
        draw_into(axes)
        width, height = (int(LETTERS_PER_INCH * inches) for inches in size)
        axes.set_xlabel(fill(axes.get_xlabel(), width))
        axes.set_ylabel(fill(axes.get_ylabel(), height))
    return Figure.from_matplotlib(figure, alt, caption)
