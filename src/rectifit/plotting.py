"""The style of all figures, with colours that are distinct for every kind of colour vision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "AMBER",
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "LINE",
    "PAPER",
    "PURPLE",
    "SKY",
    "VERMILION",
    "make_figure",
    "open_axes",
    "style",
]

# The palette of Okabe and Ito.
AMBER = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#999999"
# Text and axes, grids, and what lies below them.
INK = "#1c2430"
LINE = "#d9dee5"
PAPER = "#ffffff"

STYLE: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "font.size": 9,
    "svg.hashsalt": "rectifit",
}
# Width and height of a single plot, in inches.
SIZE = (5.0, 3.6)


@contextmanager
def style() -> Iterator[None]:
    """What is drawn or written meanwhile has this style; nothing else changes, the backend included."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError("figures need matplotlib; install it with: pip install 'rectifit[cli]'") from error
    with mpl.rc_context(STYLE):
        yield


def make_figure(
    n_rows: int = 1, n_columns: int = 1, size: tuple[float, float] = SIZE, **options: Any
) -> tuple[Any, Any]:
    """A figure for files, and its axes in an array of two dimensions; call it in the style.

    The figure belongs to no window, so that it need not be closed, and a session that shows figures goes on
    to do so.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)


@contextmanager
def open_axes(ax: Any = None) -> Iterator[Any]:
    """The given axes as they are, or those of a new figure of pyplot in the style."""
    if ax is not None:
        yield ax
        return
    with style():
        import matplotlib.pyplot as plt

        yield plt.subplots(figsize=SIZE, layout="constrained")[1]
