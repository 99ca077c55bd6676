"""make and demo: generated data, and bundled data."""

from __future__ import annotations

from time import perf_counter

import click

from rectifit.api import certify, solve
from rectifit.cli import options
from rectifit.cli.show import make_console, print_fit, print_notes, write_report
from rectifit.datasets import load_drug_spending, make_relu
from rectifit.formatting import write_duration, write_number
from rectifit.tables import write_frame

__all__ = ["demo", "make"]

UNITS = {"drug_spending": "dollars", "age": "years", "coinsurance": "percent"}
# Seconds of loading and compiling that are mentioned.
WORTH_SAYING = 1.0


@click.command()
@click.option("--samples", type=click.IntRange(min=1), required=True, metavar="N", help="Rows.")
@click.option("--features", type=click.IntRange(min=1), required=True, metavar="P", help="Columns x1 ... xP.")
@click.option(
    "--sparsity",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.5,
    metavar="S",
    help="Share of entries of x that are +1 or -1; the others are 0.",
)
@click.option(
    "--noise",
    type=click.FloatRange(min=0.0),
    default=0.1,
    metavar="R",
    help="Standard deviation of the noise, relative to that of x'beta.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="K")
@options.out("CSV, TSV, Parquet or NDJSON; - for CSV on standard output.")
def make(samples: int, features: int, sparsity: float, noise: float, seed: int, out: str) -> None:
    """Make data y = max(0, x'beta) + noise with random coefficients.

    The data are instances of Dey, Wang and Xie, without intercept. The true coefficients are printed on
    standard error.

    \b
    Example:
      rectifit make --samples 200 --features 10 --noise 0.3 --out made.csv
      rectifit fit made.csv --target y --no-intercept
    """
    instance = make_relu(samples, features, sparsity=sparsity, noise=noise, random_state=seed)
    import polars as pl

    columns = {f"x{j + 1}": column for j, column in enumerate(instance.X.T)}
    write_frame(pl.DataFrame({"y": instance.y} | columns), out)
    beta = ", ".join(write_number(value) for value in instance.beta)
    print_notes([f"{samples:,} rows with target y; beta = {beta}"])


@click.command()
@options.time_limit(20.0, "Seconds to search for the proof.")
@options.report("rectifit-demo.html")
def demo(time_limit: float, report: str) -> None:
    """Fit and certify bundled real data: spending on drugs, where many people spend nothing.

    A page about the fit is written to the current folder; open it in a browser.

    The data are from the RAND Health Insurance Experiment and in the public domain.
    """
    X, y, names, target, description = load_drug_spending()
    console = make_console()
    console.print(f"{description}\n", markup=False)
    with options.collect_warnings() as notes:
        started = perf_counter()
        fitted = solve(X, y, verbose=1)
        certificate = certify(X, y, fitted, time_limit=time_limit, verbose=1)
        # Clocks of fits and proofs stand still while kernels are compiled.
        compiling = perf_counter() - started - fitted.seconds - certificate.seconds
    solution = certificate.solution
    assert solution is not None
    record = solution.verify()
    # HC1: spending varies more among people who spend more.
    summary = solution.summary(names=names, covariance="HC1")
    print_fit(solution, summary, target)
    # What is compiled is kept, but has to be loaded.
    seconds = write_duration(compiling)
    compiled = f"Compiling and loading code took {seconds}, less from now on. " * (compiling > WORTH_SAYING)
    recomputed = (
        "All numbers but the proved bound were recomputed from the data and agree; the proof of the bound "
        "can be written to a file that anyone can check, by rectifit certify --proof."
        if record.open
        else "All numbers were recomputed from the data and agree."
    )
    console.print(
        f"\n{compiled}The fit took {write_duration(fitted.seconds)}, and the search for a proof "
        f"{write_duration(certificate.seconds)}. {recomputed}\n",
        markup=False,
    )
    written = write_report(solution, summary, report, target, "the RAND Health Insurance Experiment", UNITS)
    print_notes([*notes, written])
    console.print(
        "To fit your own data: rectifit fit data.csv --target COL --report fit.html",
        markup=False,
        soft_wrap=True,
    )
