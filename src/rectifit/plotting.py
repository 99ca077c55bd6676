"""The style of all figures, with colours that are distinct for every kind of colour vision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["AMBER", "BLUE", "GREEN", "GREY", "PURPLE", "SKY", "VERMILION", "style"]

# The palette of Okabe and Ito.
AMBER = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#999999"

STYLE: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "font.size": 9,
    "svg.hashsalt": "rectifit",
}


@contextmanager
def style() -> Iterator[Any]:
    """pyplot in this style, drawing to files only."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError("figures need matplotlib; install it with: pip install 'rectifit[cli]'") from error
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(STYLE):
        yield plt
