"""What is printed: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from textwrap import fill
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.text import Text

from rectifit.cli.options import read_units
from rectifit.fit import fit_of
from rectifit.fitted_model import FittedModel
from rectifit.formatting import write_duration, write_number, write_objective, write_share
from rectifit.inference import Summary
from rectifit.inference.tables import describe_covariance
from rectifit.solution import Certificate, Solution
from rectifit.tables import WARNING

__all__ = [
    "FilesWritten",
    "make_console",
    "print_certificate",
    "print_facts",
    "print_fit",
    "print_json",
    "print_notes",
    "write_report",
]

# What to do where nothing is proved.
ADVICE = "; run rectifit certify"
# Characters per line where the output is not a terminal.
WIDTH = 100
# Characters between names and facts.
COLUMN_GAP = 2


class FilesWritten:
    """Errors of writing files, which wait until what was found has been shown."""

    def __init__(self) -> None:
        self._errors: list[OSError] = []

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Write a file within this block."""
        try:
            yield
        except OSError as error:
            self._errors.append(error)

    def check(self) -> None:
        """OSError, with the names of all files, if one could not be written."""
        if self._errors:
            names = " and ".join(str(error.filename or "a file") for error in self._errors)
            raise OSError(self._errors[0].errno, self._errors[0].strerror, names)


def make_console() -> Console:
    """Standard output."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def print_json(record: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(record, indent=2, allow_nan=False))


def print_notes(notes: Iterable[str]) -> None:
    """Notes and warnings on standard error, one per line."""
    for note in notes:
        click.echo(note if note.startswith(WARNING) else f"note: {note}", err=True)


def print_fit(solution: Solution, summary: Summary, target: str) -> None:
    """The table that one would publish: coefficients, how well they fit, and what is proved."""
    problem = solution.problem
    assert problem is not None
    console = make_console()
    console.print(solution.describe_model(target), style="bold", markup=False)
    p = solution.beta.size
    names = (*summary.names[:p], *(f"({name})" for name in summary.names[p:]))
    table = replace(summary, names=names).table()
    # z and p-values follow from the others, and so do the ends of intervals.
    optional = (("z",), ("p-value",), table.headings[-2:])
    console.print(table.to_grid(console.width, optional=optional))
    for note in summary.notes:
        console.print(f"{note}\n", style="italic", markup=False)
    floor = write_number(solution.floor)
    weight, kind = ("the weight", "weighted sum") if problem.is_weighted else ("samples", "sum")
    ridge = f", plus {write_number(solution.alpha)} |beta|^2" * (solution.alpha > 0.0)
    freedom = f" ({write_number(summary.df, 6)} degrees of freedom)"
    facts = {
        "samples": f"{summary.n_samples:,}, {summary.n_positive:,} with an outcome above {floor}",
        "active": f"{write_share(summary.share_active)} of {weight}: predicted above {floor}",
        "R squared": write_number(summary.r_squared, missing="not defined"),
        "sigma": write_number(summary.sigma, missing="not defined")
        + freedom * bool(np.isfinite(summary.sigma)),
        **({"constraints": ", ".join(summary.constraints)} if summary.constraints else {}),
        "std. errors": describe_covariance(summary.covariance),
        "objective": f"{write_objective(solution.objective)} ({kind} of squared residuals{ridge})",
        "certificate": f"{solution.certificate}{ADVICE * (not solution.certificate.says_anything)}",
        "method": f"{solution.method}, {write_duration(solution.seconds)}; {solution.stopped}",
    }
    print_facts(console, facts)


def print_certificate(certificate: Certificate) -> None:
    """What is proved, and how."""
    print_facts(make_console(), {"certificate": str(certificate)} | certificate.facts())


def write_report(
    solution: Solution | FittedModel,
    summary: Summary,
    path: str,
    target: str,
    data_name: str,
    units: Mapping[str, str] | None = None,
) -> str:
    """Write the HTML report of a fit, with a comparison where there is no obstacle to it.

    Returns a note. Ctrl-C ends the report alone: what is known of the fit is still to be shown.
    """
    try:
        _write_page(solution, summary, path, target, data_name, read_units() if units is None else units)
    except KeyboardInterrupt:
        return f"interrupted: the report {path} was not written"
    return f"the report is in {path}"


def _write_page(
    solution: Solution | FittedModel,
    summary: Summary,
    path: str,
    target: str,
    data_name: str,
    units: Mapping[str, str],
) -> None:
    # Imported here: other commands start faster without the libraries that draw.
    from rectifit.comparison import compare_fit
    from rectifit.report import write_report as write_page

    write_page(
        solution,
        path,
        target=target,
        data_name=data_name,
        units=units,
        command=click.get_current_context().find_root().obj,
        summary=summary,
        comparison=compare_fit(fit_of(solution), verbose=1),
    )


def print_facts(console: Console, facts: Mapping[str, str]) -> None:
    """Names and facts, one per line; long facts are continued below their beginning."""
    indent = max(map(len, facts)) + COLUMN_GAP
    for name, fact in facts.items():
        text = Text(fill(name.ljust(indent) + fact, console.width, subsequent_indent=" " * indent))
        text.stylize("dim", 0, indent)
        console.print(text)
