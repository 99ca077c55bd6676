"""The reproduction as one page: figures, tables, verdicts, theory, and the machines of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from rectifit.display import Column, Table
from rectifit.experiments.figures import MIN_ERROR, MIN_EXCESS
from rectifit.experiments.grid import COMPARED_METHODS, LABELS, OURS, PAPER_METHODS, SORTING_METHODS
from rectifit.experiments.realizable import REPRODUCED_FACTOR
from rectifit.experiments.statistics import Statistics
from rectifit.experiments.summaries import SOLVED_TOL
from rectifit.experiments.tables import make_tables
from rectifit.formatting import write_share
from rectifit.web import Figure, Page, Section

__all__ = ["make_page"]

TITLE = "Training one-node ReLU networks: the paper, reproduced"
LEAD = (
    "Every table and figure of S. S. Dey, G. Wang and Y. Xie, “An Approximation Algorithm for training "
    "One-Node ReLU Neural Network” (2020), computed by rectifit, with the paper's numbers beside ours, and a "
    "proof of how far every method is from the global optimum."
)
OPTIMALITY = (
    "The paper compares its methods with each other. Branch and bound shows how far each of them is from the "
    "best possible fit: for most of the paper's instances the global optimum is proved, for all coefficients."
)
CLAIMS = "Each order is tested in every setting of the figures, by the means over the instances."
TABLES = "Prediction and recovery error of every instance, with our median and the paper's at the foot."
# Descriptions and captions of the figures.
SOLVED_ALT = (
    "Bars: for every size and noise level, the share of instances that each method solves to optimality"
)
SOLVED = f"An instance is solved if the objective is within {SOLVED_TOL:g} of the proved lower bound."
MEASURES = (
    "Lines are means, bands reach from the first to the third quartile; values below "
    f"{MIN_ERROR:g} are drawn at {MIN_ERROR:g}."
)
EXCESS_ALT = (
    "A panel for every size and sparsity: excess of each method over the proved optimum against noise"
)
EXCESS = (
    "Excess = (objective - optimum) / optimum, on instances with noise and a proved optimum. Lines are means "
    "over the instances, bands reach from the first to the third quartile; less than "
    f"{write_share(MIN_EXCESS)} is drawn there. Shaded: within the gap of the proofs, "
    f"{write_share(SOLVED_TOL)}."
)
BOUGHT_ALT = "One panel per size: mean excess over the proved optimum against seconds, a cloud per method"
BOUGHT = (
    "A small marker is one setting (noise and sparsity): mean excess, median processor time. Large markers "
    "are the medians of these. rectifit exact is the proof, so it has no excess."
)
TIMES_ALT = "One panel per size: seconds of every method against noise"


def make_page(
    statistics: Statistics,
    figures: Mapping[str, Any],
    machines: Sequence[Mapping[str, Any]],
    theory: Sequence[Section] = (),
) -> Page:
    """Make the page of a run.

    Parameters
    ----------
    statistics : what the rows of the run show
    figures : its figures, from `draw_figures`
    machines : the entries of machine.json
    theory : sections that do not depend on the run
    """
    tables = {table.key: table for table in make_tables(statistics)}
    folded = [
        replace(table, is_folded=True) for key, table in tables.items() if key.startswith("realizable-")
    ]
    solved = Figure.from_matplotlib(figures["optimality"], SOLVED_ALT, SOLVED)
    times = Figure.from_matplotlib(figures["times"], TIMES_ALT)
    sections = [
        Section(
            "optimality",
            "How good are the methods, really?",
            [OPTIMALITY, _describe_optimality(statistics)],
            [solved, tables["optimality"]],
        ),
        *_excess_sections(statistics, figures, tables["excess"]),
        Section("claims", "The claims of the paper", [CLAIMS], [tables["claims"]]),
        Section(
            "realizable",
            "The realizable case",
            [_describe_realizable(statistics)],
            [tables["sorting-zeros"], tables["gradient-medians"]],
        ),
        *(_measures_section(size.p, figures[f"measures-p{size.p}"]) for size in statistics.sizes),
        Section("times", "Running time", (), [times, tables["seconds"]]),
        *theory,
        Section("tables", f"The {len(folded)} tables", [TABLES], folded),
        Section("machine", "What it was run on", (), [_tabulate_machines(machines)]),
    ]
    return Page(TITLE, LEAD, sections, _facts(statistics))


def _facts(statistics: Statistics) -> list[tuple[str, str]]:
    n_zeros = sum(count.n_zeros for count in statistics.zeros)
    n_entries = sum(count.n_entries for count in statistics.zeros)
    n_reproduced = sum(column.is_reproduced for column in statistics.gradient_errors)
    return [
        ("fits", f"{statistics.n_fits:,}"),
        ("instances", f"{statistics.n_instances:,}"),
        ("proved optima", f"{statistics.n_proved:,} of {statistics.n_proofs:,} attempted"),
        ("sorting entries that print 0.0", f"{n_zeros:,} of {n_entries:,}"),
        ("GD and SGD medians as in the paper", f"{n_reproduced} of {len(statistics.gradient_errors)}"),
    ]


def _describe_optimality(statistics: Statistics) -> str:
    """The shares of solved instances in words, as far as there are any."""
    noisy, noiseless = statistics.solved_with_noise, statistics.solved_without_noise
    text = "No instance with noise has a proved optimum in this run."
    if noisy:
        best = max(PAPER_METHODS, key=lambda method: noisy[method])
        others = ", ".join(f"{LABELS[method]} in {noisy[method]:.0%}" for method in ("sorting", "gd", "sgd"))
        text = (
            f"With noise, the best of the paper's methods, {LABELS[best]}, finds the global optimum in "
            f"{noisy[best]:.0%} of the proved instances, {others}; {LABELS[OURS]} in {noisy[OURS]:.0%}."
        )
    if noiseless and all(noiseless[method] == 1.0 for method in SORTING_METHODS):
        text += " Without noise, all sorting methods find it in every proved instance."
    return text


def _excess_sections(statistics: Statistics, figures: Mapping[str, Any], table: Table) -> list[Section]:
    """How far every method is from the optimum; nothing where no optimum above 0 is proved."""
    if not statistics.excesses:
        return []
    means = {
        method: fmean(excess[method].mean for excess in statistics.excesses.values())
        for method in COMPARED_METHODS
    }
    least = f"less than {write_share(MIN_EXCESS)}"
    listed = ", ".join(
        f"{LABELS[method]} {write_share(mean) if mean >= MIN_EXCESS else least}"
        for method, mean in means.items()
    )
    parts: list[Figure | Table] = [
        Figure.from_matplotlib(figures["excess"], EXCESS_ALT, EXCESS),
        Figure.from_matplotlib(figures["excess-in-time"], BOUGHT_ALT, BOUGHT),
        table,
    ]
    text = f"Mean excess over the proved optimum, over all settings with noise: {listed}."
    return [Section("excess", "How far from the optimum?", [text], parts)]


def _describe_realizable(statistics: Statistics) -> str:
    outside = ", ".join(
        f"{LABELS[c.method]} {c.measure} at p = {c.setting.p}, sparsity {c.setting.sparsity:g}"
        for c in statistics.gradient_errors
        if not c.is_reproduced
    )
    verdict = f"The exceptions are: {outside}." if outside else "There is no exception."
    return (
        "Without noise, the paper's tables print 0.0 for all sorting methods. GD and SGD stop early. Their "
        "medians over few instances scatter, and count as reproduced within a factor of "
        f"{REPRODUCED_FACTOR:g}. {verdict}"
    )


def _measures_section(p: int, figure: Any) -> Section:
    alt = f"Twenty panels: four error measures against noise for five sparsities at p = {p}"
    return Section(
        f"figure-p{p}", f"The figure for p = {p}", (), [Figure.from_matplotlib(figure, alt, MEASURES)]
    )


def _tabulate_machines(machines: Sequence[Mapping[str, Any]]) -> Table:
    names = machines[0] if machines else ()
    columns = (Column(""), *(Column(f"machine {number}") for number in range(len(machines))))
    rows = tuple((name, *(str(machine.get(name, "")) for machine in machines)) for name in names)
    return Table("machines", "", columns, rows)
