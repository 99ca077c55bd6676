"""The reproduction as one page: figures, tables, verdicts, theory, and the machines of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rectifit.display import Column, Table
from rectifit.experiments.figures import MIN_ERROR
from rectifit.experiments.grid import LABELS, OURS, PAPER_METHODS, SORTING_METHODS, Size
from rectifit.experiments.optimality import SOLVED_TOL
from rectifit.experiments.realizable import REPRODUCED_FACTOR
from rectifit.experiments.statistics import Statistics
from rectifit.experiments.tables import (
    claims_table,
    excess_table,
    medians_table,
    optimality_table,
    realizable_table,
    time_table,
    zeros_table,
)
from rectifit.web import Figure, Page, Section

__all__ = ["make_page"]

TITLE = "Training one-node ReLU networks: the paper, reproduced"
LEAD = (
    "Every table and figure of S. S. Dey, G. Wang and Y. Xie, “An Approximation Algorithm for training "
    "One-Node ReLU Neural Network” (2020), computed by rectifit, with the paper's numbers beside ours, and a "
    "proof of how far every method is from the global optimum."
)


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
    return Page(
        TITLE,
        LEAD,
        [
            _optimality_section(statistics, figures["optimality"]),
            _claims_section(statistics),
            _realizable_section(statistics),
            *(_measures_section(size, figures[f"measures-p{size.p}"]) for size in statistics.sizes),
            _times_section(statistics, figures["times"]),
            *theory,
            _tables_section(statistics),
            _machines_section(machines),
        ],
        _facts(statistics),
    )


def _facts(statistics: Statistics) -> list[tuple[str, str]]:
    n_zeros = sum(count.n_zeros for count in statistics.zeros)
    n_entries = sum(count.n_entries for count in statistics.zeros)
    n_reproduced = sum(column.is_reproduced for column in statistics.gradient_columns)
    return [
        ("fits", f"{statistics.n_fits:,}"),
        ("instances", f"{statistics.n_instances:,}"),
        ("proved optima", f"{statistics.n_proved:,} of {statistics.n_proofs:,} attempted"),
        ("sorting entries that print 0.0", f"{n_zeros:,} of {n_entries:,}"),
        ("GD and SGD medians as in the paper", f"{n_reproduced} of {len(statistics.gradient_columns)}"),
    ]


def _optimality_section(statistics: Statistics, figure: Any) -> Section:
    return Section(
        "optimality",
        "How good are the methods, really?",
        [
            "The paper compares its methods with each other. Branch and bound shows how far each of them is "
            "from the best possible fit: for most of the paper's instances the global optimum is proved, for "
            "all coefficients.",
            _describe_noisy(statistics.solved_with_noise)
            + _describe_noiseless(statistics.solved_without_noise),
        ],
        [
            Figure.from_matplotlib(
                figure,
                "Bars: for every size and noise level, the share of instances that each method solves to "
                "optimality",
                f"An instance is solved if the objective is within {SOLVED_TOL:g} of the proved lower bound.",
            ),
            optimality_table(statistics),
            excess_table(statistics),
        ],
    )


def _describe_noisy(solved: Mapping[str, float]) -> str:
    """The shares of solved instances with noise, as a sentence."""
    if not solved:
        return "No instance with noise has a proved optimum in this run."
    best = max(PAPER_METHODS, key=lambda method: solved[method])
    others = ", ".join(f"{LABELS[method]} in {solved[method]:.0%}" for method in ("sorting", "gd", "sgd"))
    return (
        f"With noise, the best of the paper's methods, {LABELS[best]}, finds the global optimum in "
        f"{solved[best]:.0%} of the proved instances, {others}; {LABELS[OURS]} in {solved[OURS]:.0%}."
    )


def _describe_noiseless(solved: Mapping[str, float]) -> str:
    """A further sentence, if it is true."""
    if solved and all(solved[method] == 1.0 for method in SORTING_METHODS):
        return " Without noise, all sorting methods find it in every proved instance."
    return ""


def _claims_section(statistics: Statistics) -> Section:
    return Section(
        "claims",
        "The claims of the paper",
        ["Each order is tested in every setting of the figures, by the means over the instances."],
        [claims_table(statistics)],
    )


def _realizable_section(statistics: Statistics) -> Section:
    outside = ", ".join(
        f"{LABELS[column.method]} {column.measure} at p = {column.setting.p}, "
        f"sparsity {column.setting.sparsity:g}"
        for column in statistics.gradient_columns
        if not column.is_reproduced
    )
    verdict = f"The exceptions are: {outside}." if outside else "There is no exception."
    return Section(
        "realizable",
        "The realizable case",
        [
            "Without noise, the paper's tables print 0.0 for all sorting methods. GD and SGD stop early. "
            "Their medians over few instances scatter, and count as reproduced within a factor of "
            f"{REPRODUCED_FACTOR:g}. {verdict}",
        ],
        [zeros_table(statistics), medians_table(statistics)],
    )


def _measures_section(size: Size, figure: Any) -> Section:
    return Section(
        f"figure-p{size.p}",
        f"The figure for p = {size.p}",
        (),
        [
            Figure.from_matplotlib(
                figure,
                f"Twenty panels: four error measures against noise for five sparsities at p = {size.p}",
                "Lines are means, bands reach from the first to the third quartile; values below "
                f"{MIN_ERROR:g} are drawn at {MIN_ERROR:g}.",
            )
        ],
    )


def _times_section(statistics: Statistics, figure: Any) -> Section:
    alt = "One panel per size: seconds of every method against noise"
    return Section(
        "times",
        "Running time",
        (),
        [Figure.from_matplotlib(figure, alt), time_table(statistics)],
    )


def _tables_section(statistics: Statistics) -> Section:
    tables = [realizable_table(table) for table in statistics.realizable]
    return Section(
        "tables",
        f"The {len(tables)} tables",
        ["Prediction and recovery error of every instance, with our median and the paper's at the foot."],
        [replace(table, is_folded=True) for table in tables],
    )


def _machines_section(machines: Sequence[Mapping[str, Any]]) -> Section:
    names = list(machines[0]) if machines else []
    table = Table(
        "machines",
        "",
        (Column(""), *(Column(f"machine {number}") for number in range(len(machines)))),
        tuple((name, *(str(machine.get(name, "")) for machine in machines)) for name in names),
    )
    return Section("machine", "What it was run on", (), [table])
