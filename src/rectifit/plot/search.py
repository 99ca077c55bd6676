"""How a proof went: the best fit and the lower bound against time."""

from __future__ import annotations

from typing import Any

import numpy as np

from rectifit.fit import Certificate, fit_of
from rectifit.formatting import write_share
from rectifit.plotting import GREEN, GREY, VERMILION, open_axes

__all__ = ["proof"]

# A history of one moment is drawn over this many seconds at least.
MIN_SECONDS = 1e-3


def proof(fitted: Any, *, ax: Any = None) -> Any:
    """The sum of squared errors of the best fit so far, and its proved lower bound, against time.

    The least possible sum of squared errors is between the two lines. Where no proof was searched for, there
    is only the bound that comes with the fit.

    Parameters
    ----------
    fitted : Solution, fitted estimator or Certificate
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from rectifit import certify, plot
    >>> from rectifit.datasets import make_relu
    >>> X, y, *_ = make_relu(100, 5, noise=0.3, random_state=0)
    >>> axes = plot.proof(certify(X, y, fit_intercept=False), ax=Figure().subplots())
    >>> [line.get_label() for line in axes.lines]
    ['best fit so far', 'proved lower bound']
    """
    certificate = fitted if isinstance(fitted, Certificate) else fit_of(fitted).certificate
    history = certificate.history or ((certificate.seconds, certificate.objective, certificate.lower_bound),)
    times, objectives, bounds = np.array(history, dtype=np.float64).T
    if times.size == 1:
        # One point would be invisible: the bound held from the beginning.
        times = np.array([0.0, max(float(times[0]), MIN_SECONDS)])
        objectives, bounds = np.repeat(objectives, 2), np.repeat(bounds, 2)
    with open_axes(ax) as axes:
        axes.fill_between(
            times, bounds, objectives, step="post", color=GREY, alpha=0.25, linewidth=0, label="still open"
        )
        axes.step(times, objectives, where="post", color=VERMILION, linewidth=1.8, label="best fit so far")
        axes.step(times, bounds, where="post", color=GREEN, linewidth=1.8, label="proved lower bound")
        axes.set(xlabel="seconds", ylabel="sum of squared errors", title=_describe(certificate))
        axes.set_ylim(bottom=0.0)
        axes.legend()
    return axes


def _describe(certificate: Certificate) -> str:
    """The gap in a few words."""
    if not certificate.says_anything:
        return "no proof was searched for"
    return f"gap {write_share(certificate.gap)}"
