"""Pictures of the library: what makes a proof hard, and how many instances solvers solve in which time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from rectifit.instances.library import Facts, best_known, describe_instance, list_instances
from rectifit.instances.profile import SolverProfile
from rectifit.plotting import AMBER, BLUE, GREEN, GREY, PURPLE, SKY, VERMILION, make_figure, style

__all__ = ["draw_hardness", "draw_profile"]

COLOURS = (BLUE, VERMILION, GREEN, AMBER, PURPLE, SKY, GREY)
MARKERS = "osD^vP*"
# Shorter times are drawn here on a logarithmic axis.
MIN_SECONDS = 1e-3


class Series(NamedTuple):
    """Instances that differ in one number."""

    label: str
    family: str
    holds: Callable[[Facts], bool]


P_SERIES = (
    Series("low signal, n = 500", "low signal", lambda facts: facts.entry.seed == 0),
    Series("pure noise, n = 20 p", "noise", lambda _: True),
    Series(
        "clipped, noise 0.5, n = 500",
        "clipped",
        lambda facts: (facts.n_samples, facts.entry.noise) == (500, 0.5),
    ),
    Series("paper, noise 0.5, n = 20 p", "paper", lambda facts: facts.entry.noise == 0.5),
)
NOISE_SERIES = (
    Series(
        "clipped, p = 6, n = 500", "clipped", lambda facts: (facts.n_samples, facts.n_features) == (500, 6)
    ),
    Series("paper, p = 20, n = 400", "paper", lambda facts: facts.n_features == 20),
    Series("paper, p = 50, n = 1,000", "paper", lambda facts: facts.n_features == 50),
)
N_SERIES = (
    Series(
        "clipped, p = 6, noise 1", "clipped", lambda facts: (facts.n_features, facts.entry.noise) == (6, 1.0)
    ),
)


def draw_hardness() -> Any:
    """Processor time of the best proof against the features, the noise and the samples.

    Hollow markers are instances that are still open: the time is that of the largest bound.
    """
    panels: tuple[tuple[str, Callable[[Facts], float], Sequence[Series], str], ...] = (
        ("features", lambda facts: facts.n_features, P_SERIES, "log"),
        ("noise", lambda facts: facts.entry.noise, NOISE_SERIES, "linear"),
        ("samples", lambda facts: facts.n_samples, N_SERIES, "log"),
    )
    with style():
        figure, (row,) = make_figure(1, 3, size=(11.0, 4.2), sharey=True)
        for axes, (name, read, several, scale) in zip(row, panels, strict=True):
            for series, colour, marker in zip(several, COLOURS, MARKERS, strict=False):
                _draw_series(axes, series, read, colour, marker)
            axes.set(xlabel=name, xscale=scale, yscale="log")
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
        row[0].set_ylabel("CPU seconds")
        figure.suptitle("Time to a proof; hollow markers: still open", fontsize=11)
    return figure


def _draw_series(axes: Any, series: Series, read: Callable[[Facts], float], colour: str, marker: str) -> None:
    chosen = [describe_instance(name) for name in list_instances(family=series.family)]
    points = []
    for facts in filter(series.holds, chosen):
        known = best_known(facts.name)
        if known is not None:
            points.append((read(facts), max(known.cpu_seconds, MIN_SECONDS), known.is_closed))
    points.sort()
    places = sorted({place for place, *_ in points})
    means = [np.exp(np.mean([np.log(time) for at, time, _ in points if at == place])) for place in places]
    axes.plot(places, means, color=colour, linewidth=1.3)
    for is_closed in (True, False):
        drawn = [(place, time) for place, time, closed in points if closed == is_closed]
        axes.plot(
            [place for place, _ in drawn],
            [time for _, time in drawn],
            marker,
            color=colour,
            markersize=5,
            markerfacecolor=colour if is_closed else "white",
        )
    axes.plot([], [], marker=marker, color=colour, linewidth=1.3, label=series.label)


def draw_profile(profiles: Sequence[SolverProfile]) -> Any:
    """The share of the instances that every solver has solved within some processor time.

    Left: its fit is within 1e-4 of the best known one. Right: it has proved a gap of 1e-4 itself. A curve
    ends with the longest run of its solver.
    """
    with style():
        figure, (panels,) = make_figure(1, 2, size=(9.0, 4.2), sharey=True)
        for profile, colour in zip(profiles, cycle(COLOURS), strict=False):
            for axes, solved in zip(panels, (profile.found, profile.proved), strict=True):
                times = [max(time, MIN_SECONDS) for time in solved]
                shares = np.arange(len(times) + 1) / profile.n_instances
                places = [MIN_SECONDS, *times, max(profile.longest, MIN_SECONDS)]
                axes.step(places, [*shares, shares[-1]], where="post", color=colour, label=profile.solver)
                axes.plot(places[-1], shares[-1], "|", color=colour, markersize=8)
        for axes, title in zip(panels, ("best known fit found", "optimum proved"), strict=True):
            axes.set(xscale="log", xlabel="CPU seconds", title=title, ylim=(-0.02, 1.02))
            axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        panels[0].set_ylabel(f"share of {profiles[0].n_instances} instances")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
