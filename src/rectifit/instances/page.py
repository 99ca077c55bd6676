"""The library as one page: figures, all instances, those that are open, and the profile of solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rectifit.display import Column, Table
from rectifit.formatting import write_duration, write_share
from rectifit.instances.catalogue import FAMILIES
from rectifit.instances.figures import draw_hardness, draw_profile
from rectifit.instances.library import best_known, describe_instance
from rectifit.instances.profile import compute_profile, tabulate_profile
from rectifit.instances.results import CLOSED_GAP, Result, shipped_results
from rectifit.instances.table import tabulate_instances
from rectifit.web import Figure, Page, Section

__all__ = ["make_page", "summarise_families"]

TITLE = "A library of ReLU regression instances with proved optima"
LEAD = (
    "Regressions y ~ max(0, X beta + intercept) by least squares, of graded hardness. Each has a name and a "
    "digest, and is made again from a seed or read from a package. The best known sum of squares and the "
    "largest proved lower bound are kept, with the coefficients, so that anybody can check and improve them."
)
HARDNESS = (
    "Low signal with many features makes proofs hard: there, the time grows exponentially with the features. "
    "It grows about in proportion to the samples. Lines join geometric means; times are processor seconds of "
    "one thread. A hollow marker is an instance that is still open, at the time when its bound was kept."
)
HARDNESS_ALT = (
    "Three panels: CPU seconds to a proof against features, noise and samples, on a logarithmic axis"
)
PROFILE = (
    "Left: share of the instances on which the fit of a solver is within {gap} of the best known one, "
    "against the processor time that it took in all. Right: on which it has proved that gap itself. Local "
    "methods prove nothing. A curve ends with the longest run of its solver."
)
PROFILE_ALT = "Two panels with one step curve per solver: share of instances solved against CPU seconds"


def make_page(names: Sequence[str], results: Sequence[Result] = ()) -> Page:
    """Make the page.

    Parameters
    ----------
    names : the instances that it lists
    results : of further solvers, which get columns and a curve in the profile
    """
    known = {name: best_known(name, results) for name in names}
    still_open = [name for name, best in known.items() if best is None or not best.is_closed]
    everything = tabulate_instances(names, results)
    sections = [
        Section(
            "hardness",
            "What makes a proof hard?",
            [HARDNESS],
            [Figure.from_matplotlib(draw_hardness(), HARDNESS_ALT)],
        ),
        Section("families", "Families", (), [summarise_families(names, results)]),
    ]
    compared = [*shipped_results(), *results]
    profiles = compute_profile(compared)
    if results and profiles:
        figure = Figure.from_matplotlib(draw_profile(profiles), PROFILE_ALT)
        text = PROFILE.format(gap=write_share(CLOSED_GAP))
        table = replace(tabulate_profile(compared), title="", note="")
        sections.append(Section("profile", "Solvers", [text], [figure, table]))
    if still_open:
        title = f"Open: {len(still_open)}"
        table = replace(tabulate_instances(still_open), key="open", title="")
        sections.append(Section("open", title, ["Close one of them."], [table]))
    sections.append(Section("all", "All instances", (), [replace(everything, title="")]))
    facts = [
        ("instances", f"{len(known):,}"),
        ("closed", f"{len(known) - len(still_open):,}"),
        ("open", f"{len(still_open):,}"),
    ]
    return Page(TITLE, LEAD, sections, facts)


def summarise_families(names: Sequence[str], results: Sequence[Result] = ()) -> Table:
    """For each family: how many instances, how many are closed, and the longest proof."""
    rows = []
    for family, description in FAMILIES.items():
        members = [name for name in names if describe_instance(name).entry.family == family]
        known = [best for name in members if (best := best_known(name, results)) is not None]
        closed = [best for best in known if best.is_closed]
        if members:
            longest = max((best.cpu_seconds for best in closed), default=None)
            rows.append((f"{family}: {description}", len(members), len(closed), longest))
    columns = (
        Column("family"),
        Column("instances"),
        Column("closed"),
        Column("longest proof, CPU time", write_duration, "-"),
    )
    return Table("families", "", columns, tuple(rows))
