"""What is printed: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click
import numpy as np
from rich.box import HORIZONTALS
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from rectifit.comparison import compare_fit
from rectifit.digits import write_duration
from rectifit.inference import Summary
from rectifit.inference.tables import describe_covariance
from rectifit.solution import Certificate, Solution

__all__ = [
    "make_console",
    "print_certificate",
    "print_facts",
    "print_fit",
    "print_json",
    "print_notes",
    "write_formula",
    "write_report",
]

# Characters per line where the output is not a terminal.
WIDTH = 100
# Between two columns; and the characters of a name for which room is made, at best and at worst.
GAP, LONGEST_NAME, SHORTEST_NAME = 2, 14, 8


def make_console() -> Console:
    """Standard output."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def print_json(record: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(record, indent=2, allow_nan=False))


def print_notes(notes: Iterable[str]) -> None:
    """Notes on standard error, one per line."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


def print_fit(solution: Solution, summary: Summary, names: Sequence[str], target: str) -> None:
    """The table that one would publish: coefficients, how well they fit, and what is proved."""
    problem = solution.problem
    assert problem is not None
    console = make_console()
    console.print(write_formula(solution, target), style="bold", markup=False)
    ends = [f"({name})" for name in summary.names[len(names) :]]
    console.print(_make_table(summary, [*names, *ends], console.width))
    for note in summary.notes:
        console.print(f"{note}\n", style="italic", markup=False)
    floor = f"{solution.floor:.4g}"
    weight, kind = ("the weight", "weighted sum") if problem.is_weighted else ("samples", "sum")
    freedom = f" ({summary.df:.6g} degrees of freedom)"
    facts = {
        "samples": f"{summary.n_samples:,}, {summary.n_positive:,} with an outcome above {floor}",
        "active": f"{100.0 * summary.share_active:.1f} % of {weight}: predicted above {floor}",
        "R squared": _number(summary.r_squared),
        "sigma": _number(summary.sigma) + freedom * bool(np.isfinite(summary.sigma)),
        "std. errors": describe_covariance(summary.covariance),
        "objective": f"{solution.objective:.8g} ({kind} of squared residuals)",
        "certificate": str(solution.certificate),
        "method": f"{solution.method}, {write_duration(solution.seconds)}; {solution.stopped}",
    }
    print_facts(console, facts)


def _make_table(summary: Summary, names: Sequence[str], width: int) -> Grid:
    """Estimates by name, without columns that the others tell where the terminal is too narrow for all."""
    columns = {heading: texts for heading, (_, texts) in summary.columns().items()}
    longest = min(max(map(len, names)), LONGEST_NAME)
    for heading in ("z", "p-value"):
        widths = [max(map(len, (heading, *texts))) for heading, texts in columns.items()]
        if longest + sum(widths) + GAP * (len(widths) + 1) > width:
            del columns[heading]
    grid = Grid(box=HORIZONTALS, collapse_padding=True)
    grid.add_column("variable", overflow="fold", min_width=min(longest, SHORTEST_NAME))
    for heading in columns:
        grid.add_column(heading, justify="right", no_wrap=True)
    for name, *row in zip(names, *columns.values(), strict=True):
        grid.add_row(escape(name), *row)
    return grid


def write_formula(solution: Solution, target: str) -> str:
    """The fitted equation in words."""
    assert solution.problem is not None
    intercept = " + intercept" if solution.problem.fit_intercept else ""
    estimated = ", the floor estimated" if solution.floor_is_estimated else ""
    return f"{target} ~ max({solution.floor:.6g}, X beta{intercept}){estimated}"


def print_certificate(certificate: Certificate) -> None:
    """What is proved, and how."""
    decided = certificate.n_active + certificate.n_inactive
    facts = {
        "certificate": str(certificate),
        "objective": f"{certificate.objective:.8g}",
        "lower bound": f"{certificate.lower_bound:.8g}",
        "gap": f"{100.0 * certificate.gap:.4g} %",
        "status": certificate.status.replace("_", " "),
        "samples": f"{decided:,} of {decided + certificate.n_undecided:,} are proved active "
        f"({certificate.n_active:,}) or inactive ({certificate.n_inactive:,}) in every better fit",
        "search": f"{certificate.n_nodes:,} nodes, {write_duration(certificate.seconds)}",
    }
    print_facts(make_console(), facts)


def write_report(
    solution: Solution, summary: Summary, path: str, names: Sequence[str], target: str, data_name: str
) -> None:
    """Write the HTML report of a fit; what draws it is loaded only here."""
    report = import_module("rectifit.report")
    report.write_report(
        solution,
        path,
        names=names,
        target=target,
        data_name=data_name,
        summary=summary,
        comparison=compare_fit(solution, verbose=1),
    )


def print_facts(console: Console, facts: Mapping[str, str]) -> None:
    """Names and what is to be said of them, one per line."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    for name, fact in facts.items():
        grid.add_row(name, escape(fact))
    console.print(grid)


def _number(value: float) -> str:
    return "not defined" if np.isnan(value) else f"{value:.4g}"
