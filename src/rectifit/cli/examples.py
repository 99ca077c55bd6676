"""make and demo: data to try things on."""

from __future__ import annotations

import click

from rectifit import certify, solve
from rectifit.cli.options import REPORT, collect_warnings, seconds_option
from rectifit.cli.show import make_console, print_fit, print_notes, write_report
from rectifit.datasets import load_drug_spending, make_relu
from rectifit.tables import STANDARD_STREAM, check_extension, write_frame

__all__ = ["demo", "make"]


@click.command()
@click.option("--samples", type=click.IntRange(min=1), required=True, metavar="N", help="Rows.")
@click.option("--features", type=click.IntRange(min=1), required=True, metavar="P", help="Columns x1 ... xP.")
@click.option(
    "--sparsity",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.5,
    show_default=True,
    metavar="S",
    help="Share of entries of x that are +1 or -1; the rest is 0.",
)
@click.option(
    "--noise",
    type=click.FloatRange(min=0.0),
    default=0.1,
    show_default=True,
    metavar="R",
    help="Standard deviation of the noise over that of x'beta.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="K")
@click.option(
    "--out", required=True, metavar="FILE", help="CSV, TSV, Parquet or NDJSON; - for CSV on standard output."
)
def make(samples: int, features: int, sparsity: float, noise: float, seed: int, out: str) -> None:
    """Make data y = max(0, x'beta) + noise with random coefficients.

    They are instances of Dey, Wang and Xie, without intercept. The coefficients that made the data are told
    on standard error.

    \b
    Example:
      rectifit make --samples 200 --features 10 --noise 0.3 --out made.csv
      rectifit fit made.csv --target y --no-intercept
    """
    if out != STANDARD_STREAM:
        check_extension(out)
    instance = make_relu(samples, features, sparsity=sparsity, noise=noise, random_state=seed)
    import polars as pl

    columns = {f"x{j + 1}": column for j, column in enumerate(instance.X.T)}
    write_frame(pl.DataFrame({"y": instance.y} | columns), out)
    beta = ", ".join(f"{value:.4g}" for value in instance.beta)
    print_notes([f"{samples:,} rows with target y; beta = {beta}"])


@click.command()
@seconds_option(20.0, "Seconds to search for the proof.")
@REPORT
def demo(time_limit: float, report: str | None) -> None:
    """Fit and certify bundled real data: who spends how much on drugs, when many spend nothing.

    The data are from the RAND Health Insurance Experiment; they are in the public domain.
    """
    X, y, names, target, description = load_drug_spending()
    console = make_console()
    console.print(f"{description}\n", markup=False)
    with collect_warnings() as notes:
        fitted = solve(X, y, verbose=1)
        certificate = certify(X, y, fitted, time_limit=time_limit, verbose=1)
    solution = certificate.solution
    assert solution is not None
    solution.verify()
    print_fit(solution, names, target)
    if report is not None:
        write_report(solution, report, names, target, "RAND Health Insurance Experiment")
    console.print(
        f"\nThe fit took {fitted.seconds:.2f} seconds, the search for a proof {certificate.seconds:.1f} "
        f"seconds and {certificate.n_nodes:,} nodes: {certificate}. What is stated was recomputed from the "
        "data.\n\n"
        "The same on your data: rectifit fit data.csv --target COL, then rectifit certify.",
        markup=False,
    )
    print_notes(notes)
