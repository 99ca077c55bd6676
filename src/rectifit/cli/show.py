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

from rectifit.goodness import Goodness
from rectifit.solution import Certificate, Solution

__all__ = [
    "coefficient_columns",
    "make_console",
    "print_certificate",
    "print_fit",
    "print_json",
    "print_notes",
    "round_together",
    "write_report",
]

# Characters per line where the output is not a terminal.
WIDTH = 100
# Digits of the smallest number of a column, and the decimals at which scientific notation takes over.
DIGITS, MOST_DECIMALS = 3, 6


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


def coefficient_columns(solution: Solution) -> dict[str, Sequence[float]]:
    """Columns of the table of coefficients by their headings, the intercept last if there is one."""
    assert solution.problem is not None
    intercept = [solution.intercept] if solution.problem.fit_intercept else []
    return {"coefficient": [*solution.beta.tolist(), *intercept]}


def print_fit(solution: Solution, names: Sequence[str], target: str) -> None:
    """The table that one would publish: coefficients, how well they fit, and what is proved."""
    assert solution.problem is not None
    console = make_console()
    columns = coefficient_columns(solution)
    intercept = ["(intercept)"] if solution.problem.fit_intercept else []
    formula = f"{target} ~ max(0, X beta{' + intercept' if intercept else ''})"
    console.print(formula, style="bold", markup=False)
    grid = Grid(box=HORIZONTALS)
    grid.add_column("variable")
    for heading in columns:
        grid.add_column(heading, justify="right")
    rows = zip(*(round_together(values) for values in columns.values()), strict=True)
    for name, row in zip([*names, *intercept], rows, strict=True):
        grid.add_row(escape(name), *row)
    console.print(grid)
    goodness = Goodness.from_solution(solution)
    kind = "sum" if solution.problem.sample_weight is None else "weighted sum"
    facts = {
        "samples": f"{goodness.n_samples:,}, {goodness.n_positive:,} with a positive outcome",
        "active": f"{100.0 * goodness.share_active:.1f} % of samples are predicted above 0",
        "R squared": _number(goodness.r_squared),
        "sigma": _number(goodness.sigma),
        "objective": f"{solution.objective:.8g} ({kind} of squared residuals)",
        "certificate": str(solution.certificate),
        "method": f"{solution.method}, {_duration(solution.seconds)}; {solution.stopped}",
    }
    _print_facts(console, facts)


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
        "search": f"{certificate.n_nodes:,} nodes, {_duration(certificate.seconds)}",
    }
    _print_facts(make_console(), facts)


def write_report(solution: Solution, path: str, names: Sequence[str], target: str, data_name: str) -> None:
    """Write the HTML report of a fit; what draws it is loaded only here."""
    report = import_module("rectifit.report")
    report.write_report(solution, path, names=names, target=target, data_name=data_name)


def round_together(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as the smallest of them needs, so that their points align.

    Examples
    --------
    >>> round_together([0.0123456, -12.3, 0.0])
    ['0.0123', '-12.3000', '0.0000']
    >>> round_together([1e-9, 1.0])
    ['1.00e-09', '1.00e+00']
    """
    sizes = np.abs([value for value in values if value != 0.0])
    if sizes.size == 0:
        return [f"{value:.{DIGITS}f}" for value in values]
    decimals = DIGITS - 1 - int(np.floor(np.log10(sizes.min())))
    if decimals > MOST_DECIMALS or sizes.max() >= 10.0**MOST_DECIMALS:
        return [f"{value:.{DIGITS - 1}e}" for value in values]
    return [f"{value:.{max(decimals, 1)}f}" for value in values]


def _print_facts(console: Console, facts: Mapping[str, str]) -> None:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    for name, fact in facts.items():
        grid.add_row(name, escape(fact))
    console.print(grid)


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.4g}"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1.0 else f"{1000.0 * seconds:.0f} ms"
