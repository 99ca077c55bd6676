"""The reproduction as one page: tables, figures, verdicts, theory, and what it was run on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rectifit.experiments.figures import draw_measures, draw_optimality, draw_times
from rectifit.experiments.grid import LABELS, OURS, PAPER_METHODS, PROOF
from rectifit.experiments.results import Results
from rectifit.web import Figure, Page, Section, TableView

__all__ = ["make_page"]

TITLE = "Training one-node ReLU networks: the paper, reproduced"
LEAD = (
    "Every table and figure of S. S. Dey, G. Wang and Y. Xie, “An Approximation Algorithm for training "
    "One-Node ReLU Neural Network” (2020), from the code of rectifit, with the paper's numbers beside ours, "
    "and a proof of how far every method is from the global optimum."
)


def make_page(results: Results, machines: Sequence[dict[str, Any]], theory: Sequence[Section] = ()) -> Page:
    """The page of a run; `theory` are sections that do not depend on it."""
    return Page(
        TITLE,
        LEAD,
        [
            _optimality(results),
            _claims(results),
            _realizable(results),
            *(_measures(results, p) for p in sorted({s.p for s in results.drawn})),
            _times(results),
            *theory,
            _all_tables(results),
            _machines(machines),
        ],
        _facts(results),
    )


def _facts(results: Results) -> list[tuple[str, str]]:
    proofs = [row for row in results.rows if row.method == PROOF]
    proved = sum(row.status == "optimal" for row in proofs)
    zeros, medians = results.zero_table(), results.medians_table()
    n_zeros, n_entries = (sum(int(str(row[column])) for row in zeros.rows) for column in (1, 2))
    inside = sum(row[-1] == "yes" for row in medians.rows)
    return [
        ("fits", f"{len(results.rows):,}"),
        ("instances", f"{len({(row.setting, row.instance) for row in results.rows}):,}"),
        ("proved optima", f"{proved:,} of {len(proofs):,} tried"),
        ("sorting entries that print 0.0", f"{n_zeros:,} of {n_entries:,}"),
        ("GD and SGD medians as in the paper", f"{inside} of {len(medians.rows)}"),
    ]


def _optimality(results: Results) -> Section:
    figure = Figure.from_matplotlib(
        draw_optimality(results),
        "Bars: for every size and noise level, the share of instances that each method solves to optimality",
        "An instance is solved if the objective is within 1e-4 of the certified lower bound.",
    )
    return Section(
        "optimality",
        "How good are the methods, really?",
        [
            "The paper compares its methods with each other. Branch and bound says how far each of them is "
            "from the best possible fit: for most of the paper's instances the global optimum is proved, for "
            "all coefficients.",
            _say_optimality(results),
        ],
        [figure, results.optimality_table().view(), results.excess_table().view()],
    )


def _say_optimality(results: Results) -> str:
    """What the table says, in a sentence."""
    solved = results.solved_shares(noisy=True)
    if not solved:
        return "No instance with noise has a proved optimum in this run."
    best = max(PAPER_METHODS, key=lambda method: solved[method])
    return (
        f"With noise, the best of the paper's methods, {LABELS[best]}, finds the global optimum in "
        f"{solved[best]:.0%} of the proved instances, {LABELS['sorting']} in {solved['sorting']:.0%}, "
        f"{LABELS['gd']} in {solved['gd']:.0%}, {LABELS['sgd']} in {solved['sgd']:.0%}; "
        f"{LABELS[OURS]} in {solved[OURS]:.0%}. Without noise all sorting methods find it always."
    )


def _claims(results: Results) -> Section:
    return Section(
        "claims",
        "What the paper claims",
        ["Each order is tested in every setting of the figures, by the means over the instances."],
        [results.claims_table().view()],
    )


def _realizable(results: Results) -> Section:
    medians = results.medians_table()
    outside = [row for row in medians.rows if row[-1] == "no"]
    cells = ", ".join(f"{row[2]} {row[3]} at p = {row[0]}, sparsity {row[1]:g}" for row in outside)
    verdict = f"Outside are: {cells}." if outside else "None is outside."
    return Section(
        "realizable",
        "The realizable case",
        [
            "Without noise the paper's tables print 0.0 for all sorting methods. GD and SGD stop early; "
            "their medians over few instances scatter, and within a factor 3.5 they count as reproduced. "
            f"{verdict}",
        ],
        [results.zero_table().view(), medians.view()],
    )


def _measures(results: Results, p: int) -> Section:
    figure = Figure.from_matplotlib(
        draw_measures(results, p),
        f"Twenty panels: four error measures against noise for five sparsities at p = {p}",
        "Lines are means, bands from the first to the third quartile; what is below 0.001 is drawn there.",
    )
    return Section(f"figure-p{p}", f"The figure for p = {p}", (), [figure])


def _times(results: Results) -> Section:
    figure = Figure.from_matplotlib(
        draw_times(results), "Three panels: seconds of every method against noise, one panel per size"
    )
    return Section("times", "Running time", (), [figure, results.time_table().view()])


def _all_tables(results: Results) -> Section:
    tables = results.realizable_tables()
    return Section(
        "tables",
        f"The {len(tables)} tables",
        ["Prediction and recovery error of every instance, with our median and the paper's at the foot."],
        [table.view(folded=True) for table in tables],
    )


def _machines(machines: Sequence[dict[str, Any]]) -> Section:
    names = list(machines[0]) if machines else []
    rows = [[name, *(str(machine.get(name, "")) for machine in machines)] for name in names]
    columns = ["", *(f"machine {number}" for number in range(len(machines)))]
    return Section("machine", "What it was run on", (), [TableView("", columns, rows, rows)])
