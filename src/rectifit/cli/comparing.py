"""compare: the package's methods and ordinary alternatives, side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rectifit.cli import options
from rectifit.cli.loading import choose_alpha, has_intercept, load_table
from rectifit.cli.show import make_console, print_json, print_notes
from rectifit.model_file import describe_certificate
from rectifit.tables import TextFormat

if TYPE_CHECKING:
    from rectifit.comparison import Comparison

__all__ = ["compare_command"]

# Columns that are left out on narrow terminals.
OPTIONAL = (("time",), ("error, these rows",))
HOW_TO_READ = (
    "Errors are mean squared errors: on these rows, of a fit to all of them, and on unseen rows (five-fold "
    "cross-validation, the same folds for all{folds}), by which the table is sorted. The gap is proved: no "
    "fit of the form max(0, X beta + intercept){scope} reduces the error on these rows{penalty} by more than "
    "this share."
)
ADVICE = (
    "These models answer different questions. A ReLU fit by least squares estimates the mean of y as "
    "max(0, X beta + intercept), for any distribution of the noise. Prefer it if the outcome really takes "
    "the value zero (hours, rain, spending, energy) and you need predictions of the outcome, or effects on "
    "it.",
    "Tobit estimates something else: the coefficients of a hidden normal variable that is seen only where it "
    "is positive. Prefer it if values below zero exist but are not recorded, and the noise is normal with "
    "constant variance; otherwise it is biased. Its prediction here is the mean of y that follows.",
    "Poisson and Tweedie models estimate a mean that grows exponentially with X beta. Prefer them for counts "
    "and amounts with multiplicative effects.",
)


@click.command("compare")
@options.DATA
@options.columns(with_weights=False)
@options.text_format
@options.constraints
@options.ALPHA
@options.CLUSTER
@options.time_limit(10.0, "Seconds for each method of rectifit, and for the proof.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the folds.")
@options.JSON
def compare_command(
    data: str,
    form: TextFormat,
    target: str | None,
    positive: tuple[str, ...] | None,
    negative: tuple[str, ...] | None,
    bounds: tuple[str, ...] | None,
    alpha: float | str | None,
    cluster: tuple[str, ...] | None,
    time_limit: float,
    seed: int,
    as_json: bool,
    **columns: Any,
) -> None:
    """Compare all methods with ordinary alternatives on DATA.

    The alternatives are least squares, least squares clipped at 0, scipy's least_squares from 20 starts,
    scikit-learn's MLPRegressor with one node, Poisson and Tweedie models, and Tobit. The table has in-sample
    and cross-validated errors, times, and certified gaps. With bounds of coefficients, bounded linear fits
    are added, and the table marks the alternatives that ignore the bounds.

    \b
    Examples:
      rectifit compare rain.csv --target mm
      rectifit compare heating.csv --target kwh --positive degrees,wind
    """
    # Imported here: other commands start faster without the alternatives.
    from rectifit.comparison import compare

    table = load_table(data, form, target, cluster=cluster, **columns)
    if not has_intercept(table, no_intercept=False):
        raise click.UsageError("--formula has no intercept, and the alternatives have one; remove '- 1'.")
    limits = options.read_bounds(table.names, positive, negative, bounds)
    penalty, chosen = choose_alpha(table, alpha, seed=seed, bounds=limits, time_limit=time_limit, verbose=1)
    comparison = compare(
        table.X,
        table.y,
        bounds=limits,
        alpha=penalty,
        groups=table.groups,
        time_limit=time_limit,
        seed=seed,
        verbose=1,
    )
    notes = [*table.notes, *chosen]
    if as_json:
        print_json(
            {
                "target": table.target,
                "alpha": penalty,
                "n_samples": int(table.y.size),
                "rows": [asdict(row) for row in comparison.rows],
                "certificate": describe_certificate(comparison.certificate),
                "notes": notes,
            }
        )
        return
    print_comparison(comparison, table.target)
    print_notes(notes)


def print_comparison(comparison: Comparison, target: str) -> None:
    """The table, remarks about it, what is proved, and what the models mean."""
    console = make_console()
    console.print(f"predictions of {target}", style="bold", markup=False)
    styles = ["bold" * row.ours for row in comparison.ranked()]
    console.print(comparison.table().to_grid(console.width, styles, OPTIONAL))
    for sentence in comparison.remarks():
        console.print(sentence, markup=False)
    console.print(f"proved about the best fit: {comparison.certificate}", markup=False)
    for paragraph in (_explain(comparison), *ADVICE):
        console.print(f"\n{paragraph}", markup=False)


def _explain(comparison: Comparison) -> str:
    return HOW_TO_READ.format(
        scope=comparison.scope,
        folds=", which do not divide groups" * comparison.is_grouped,
        penalty=", plus the ridge penalty," * (comparison.alpha > 0.0),
    )
