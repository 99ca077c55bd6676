"""fit for several Parquet files: read in blocks, one after the other, and never whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from rich.box import HORIZONTALS
from rich.markup import escape
from rich.table import Table as Grid

from rectifit import solve
from rectifit.cli.options import collect_warnings
from rectifit.cli.show import make_console, print_facts, print_json, print_notes, write_formula
from rectifit.digits import round_together, write_duration
from rectifit.model_file import describe_certificate
from rectifit.scale import open_parquet
from rectifit.solution import Solution

__all__ = ["fit_files"]


def fit_files(
    paths: Sequence[str],
    target: str,
    *,
    features: Sequence[str] | None,
    weights: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Fit rows of all files together and print the coefficients; the options are those of `solve`."""
    wrong = next((path for path in paths if not path.endswith(".parquet")), None)
    if wrong is not None:
        raise click.UsageError(
            f"{wrong!r} is not a Parquet file; several files are read only if all of them are."
        )
    try:
        blocks = open_parquet(list(paths), target=target, features=features, weights=weights)
    except ImportError as error:
        # Only the call needs the package that reads the files.
        raise click.UsageError(str(error)) from None
    with collect_warnings() as notes:
        solution = solve(blocks, None, verbose=1, **options)
    solution.verify()
    names = [*(blocks.feature_names or ()), *(["(intercept)"] if options["fit_intercept"] else [])]
    values = [*solution.beta.tolist(), solution.intercept][: len(names)]
    if as_json:
        print_json(
            {
                "target": target,
                "files": len(paths),
                "n_samples": blocks.n_samples,
                "coefficients": dict(zip(names, values, strict=True)),
                "method": solution.method,
                "objective": solution.objective,
                "seconds": solution.seconds,
                "certificate": describe_certificate(solution.certificate),
                "notes": notes,
            }
        )
        return
    _print(solution, names, values, target, len(paths), blocks.n_samples)
    print_notes(notes)


def _print(
    solution: Solution, names: Sequence[str], values: Sequence[float], target: str, n_files: int, n_rows: int
) -> None:
    console = make_console()
    console.print(
        f"{write_formula(solution, target)}, {n_rows:,} rows of {n_files} files", style="bold", markup=False
    )
    grid = Grid(box=HORIZONTALS)
    grid.add_column("variable")
    grid.add_column("coefficient", justify="right")
    for name, value in zip(names, round_together(values), strict=True):
        grid.add_row(escape(name), value)
    console.print(grid)
    print_facts(
        console,
        {
            "objective": f"{solution.objective:.8g} (sum of squared residuals)",
            "certificate": str(solution.certificate),
            "method": f"{solution.method}, {write_duration(solution.seconds)}; {solution.stopped}",
        },
    )
