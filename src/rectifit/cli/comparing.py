"""compare: the package's methods and what people use otherwise, side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from rich.box import HORIZONTALS
from rich.table import Table as Grid

from rectifit.cli.options import DATA, JSON, columns_options, load_table, seconds_option
from rectifit.cli.show import make_console, print_json, print_notes
from rectifit.comparison import Comparison, Row, compare
from rectifit.model_file import describe_certificate

__all__ = ["compare_command"]

ADVICE = (
    "Mean squared errors, in the order of the cross-validated ones (five folds, the same for all). Gap: by "
    "how much the in-sample error of any fit of the form max(0, X beta + intercept) could be lower at most; "
    "proved.",
    "They answer different questions. A ReLU fit by least squares estimates the mean of y as max(0, X beta + "
    "intercept), whatever the distribution of the noise. Prefer it where zero is a value that the outcome "
    "really takes (hours, rain, spending, energy) and where predictions of the outcome itself, or effects on "
    "it, matter.",
    "Tobit estimates another thing: the coefficients of a hidden normal variable that is seen only where it "
    "is positive. Prefer it where values below zero exist but are not recorded, and the noise is normal with "
    "one variance; otherwise it is biased. Its prediction here is the mean of y that follows.",
    "Poisson and Tweedie models estimate a mean that grows exponentially with X beta. Prefer them for counts "
    "and amounts on which effects multiply.",
)


@click.command("compare")
@DATA
@columns_options(with_weights=False)
@seconds_option(10.0, "Seconds of each fit of ours, and of the proof.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the folds.")
@JSON
def compare_command(
    data: str, target: str, time_limit: float, seed: int, as_json: bool, **columns: Any
) -> None:
    """Compare all methods with ordinary alternatives on DATA.

    Side by side: least squares, least squares clipped at 0, scipy's least_squares from 20 starts,
    scikit-learn's MLPRegressor with one node, Poisson and Tweedie models, Tobit, and every method of
    rectifit; with errors in sample and cross-validated, times, and certified gaps.

    \b
    Example:
      rectifit compare rain.csv --target mm
    """
    table = load_table(data, target, **columns)
    found = compare(table.X, table.y, time_limit=time_limit, seed=seed, verbose=1)
    if as_json:
        rows = [asdict(row) for row in found.rows]
        print_json(
            {
                "target": target,
                "n_samples": int(table.y.size),
                "rows": rows,
                "certificate": describe_certificate(found.certificate),
                "notes": list(table.notes),
            }
        )
        return
    print_comparison(found, target)
    print_notes(table.notes)


def print_comparison(found: Comparison, target: str) -> None:
    """The table, its certificate, and what the rows mean."""
    console = make_console()
    console.print(f"predictions of {target}", style="bold", markup=False)
    grid = Grid(box=HORIZONTALS)
    grid.add_column("fitted by")
    for heading in ("in sample", "cross-validated", "seconds", "gap"):
        grid.add_column(heading, justify="right")
    fitted = [row for row in found.rows if row.skipped is None]
    for row in sorted(fitted, key=lambda row: row.cross_validated or row.in_sample or 0.0):
        grid.add_row(f"rectifit {row.name}" if row.ours else row.name, *_cells(row), style="bold" * row.ours)
    console.print(grid)
    for row in found.rows:
        if row.skipped is not None:
            console.print(f"{row.name} was left out: {row.skipped}", markup=False)
    console.print(f"proved about the best fit: {found.certificate}", markup=False)
    for paragraph in ADVICE:
        console.print(f"\n{paragraph}", markup=False)


def _cells(row: Row) -> list[str]:
    errors = ["-" if error is None else f"{error:.6g}" for error in (row.in_sample, row.cross_validated)]
    seconds = "-" if row.seconds is None else f"{row.seconds:.4f}"
    gap = "" if row.gap is None else f"{100.0 * row.gap:.3g} %"
    return [*errors, seconds, gap]
