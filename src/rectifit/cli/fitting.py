"""fit and predict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.shell_completion import CompletionItem

from rectifit.api import solve
from rectifit.certificate.proof import TARGET_GAP
from rectifit.cli import options
from rectifit.cli.loading import choose_alpha, has_intercept, load_table
from rectifit.cli.show import FilesWritten, print_fit, print_json, print_notes, write_report
from rectifit.cli.streaming import is_large_file, open_files
from rectifit.fitted_model import FittedModel
from rectifit.inference import prediction_interval
from rectifit.inference.sandwich import KINDS
from rectifit.methods.stages import STAGES, split_method
from rectifit.model_file import SavedModel, read_model, write_model
from rectifit.model_sums import MAX_COLUMNS
from rectifit.routing import runs_in_passes
from rectifit.tables import (
    STANDARD_STREAM,
    TextFormat,
    find_gaps,
    read_table,
    refuse_faults,
    without_missing,
    write_frame,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["fit", "predict"]

PREDICTIONS = ("prediction", "prediction_low", "prediction_high")
# Kinds of standard errors besides those for independent rows.
HAC, CLUSTER = "HAC", "cluster"
# With a smaller gap, a search for a proof is not worth suggesting.
MAX_SMALL_GAP = 1.01 * TARGET_GAP


def _complete_method(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of stages; in chains, of the last stage."""
    *before, last = typed.split("+")
    return [CompletionItem("+".join([*before, name])) for name in STAGES if name.startswith(last)]


@click.command()
@click.argument("data", type=click.Path(allow_dash=True), nargs=-1, required=True)
@options.columns()
@options.text_format
@click.option(
    "--method",
    default="auto",
    metavar="M",
    shell_complete=_complete_method,
    help=f"Stages joined by +; the stages are {', '.join(STAGES)}.",
)
@click.option(
    "--k", type=click.IntRange(min=1), default=1, metavar="K", help="k of the approximation algorithm."
)
@click.option(
    "--splits", type=click.IntRange(min=1), default=10, metavar="N", help="Splits of the sorting method."
)
@click.option("--no-intercept", is_flag=True, help="Fit max(0, X beta).")
@options.constraints
@options.ALPHA
@options.FLOOR
@click.option(
    "--covariance",
    type=click.Choice([*KINDS, HAC]),
    default="nonrobust",
    help="Standard errors: for noise of equal variance, of any variance (HC0 to HC3), or correlated in time.",
)
@options.CLUSTER
@click.option(
    "--bootstrap",
    type=click.IntRange(min=2),
    metavar="N",
    help="Bootstrap standard errors, from N samples drawn with replacement; with --cluster, of whole groups.",
)
@options.time_limit(None, "Seconds after which the best fit so far is kept.")
@options.target_gap(None, "Prove that no fit can be better by more than this share, such as 0.01.")
@options.JOBS
@options.save("Save the fit for predict.")
@options.report(None)
@options.units
@options.JSON
def fit(
    data: tuple[str, ...],
    form: TextFormat,
    target: str | None,
    weights: str | None,
    method: str,
    k: int,
    splits: int,
    no_intercept: bool,
    positive: tuple[str, ...] | None,
    negative: tuple[str, ...] | None,
    bounds: tuple[str, ...] | None,
    alpha: float | str | None,
    floor: float | str | None,
    covariance: str,
    cluster: tuple[str, ...] | None,
    bootstrap: int | None,
    time_limit: float | None,
    target_gap: float | None,
    jobs: int | None,
    save: str | None,
    report: str | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Fit a ReLU regression to DATA and print its coefficients.

    By default all other numeric columns are features; --features chooses some of them. Text columns are left
    out unless --one-hot encodes them. Every fit comes with a lower bound, which limits how much better any
    other fit can be.

    Several Parquet files are fitted together. They are read in passes and never whole, as is one file above a
    gigabyte; the methods for this are sorting, iterative, their chains and auto.

    \b
    Examples:
      rectifit fit rain.csv --target mm
      rectifit fit rain.csv --target mm --features wind,pressure --save rain.json
      rectifit fit wages.parquet --target hours --one-hot region --weights w
      rectifit fit rain.csv --target mm --method auto+exact --time-limit 60
      rectifit fit rain.csv --target mm --covariance HC1 --report rain.html
      rectifit fit wages.csv --formula 'hours ~ educ + I(age**2) + C(region)' --cluster firm
      rectifit fit heating.csv --target kwh --floor estimate
      rectifit fit heating.csv --target kwh --positive degrees,wind --bounds 'area=0:2'
      rectifit fit rain.csv.gz --target mm --missing drop --json
      rectifit fit data/*.parquet --target y --method sorting+iterative

    \b
    Methods (--method):
      auto                 the default: at least as good as sorting+iterative
      auto+exact           the same, then a search for a proof (--target-gap, --time-limit)
      approximation        objective at most n/k times the least one (--k)
      sorting              N + 1 splits of the sorted outcomes (--splits)
      sorting+iterative    a stage after + starts from the best fit before it
      gd, sgd, multistart  gradient descent, stochastic, and many starts
    """
    if cluster is not None and covariance != "nonrobust":
        raise click.UsageError(
            "--cluster and --covariance are alternative kinds of standard errors; choose one."
        )
    if bootstrap is not None and covariance != "nonrobust":
        raise click.UsageError(
            "--covariance and --bootstrap are alternative kinds of standard errors; choose one."
        )
    needs_rows = {
        "--floor estimate": floor == options.ESTIMATE or None,
        "--bootstrap": bootstrap,
        "--one-hot": columns["one_hot"],
        "--formula": columns["formula"],
        "--cluster": cluster,
        "--covariance HAC": covariance if covariance == HAC else None,
        "--alpha cv": alpha if alpha == options.CHOSEN else None,
        "--missing drop": columns["missing"] if columns["missing"] == "drop" else None,
        "--target-gap": target_gap,
        "--k": k if k != 1 else None,
    }
    used = next((name for name, value in needs_rows.items() if value is not None), None)
    in_passes = len(data) > 1 or (
        is_large_file(data[0]) and used is None and runs_in_passes(split_method(method))
    )
    if in_passes and used is not None:
        raise click.UsageError(f"{used} needs all rows at once; it cannot be used with several files.")
    if in_passes:
        if target is None:
            raise click.UsageError("Missing option '--target'.")
        table = open_files(data, form, target, columns["features"], weights)
    else:
        table = load_table(data[0], form, target, weights=weights, cluster=cluster, **columns)
    if target_gap is not None and "exact" not in method.split("+"):
        # Only a proof can reach a gap.
        method = f"{method}+exact"
    settings: dict[str, Any] = {
        "method": method,
        "fit_intercept": has_intercept(table, no_intercept),
        "bounds": options.read_bounds(table.names, positive, negative, bounds),
        "floor": 0.0 if floor is None else floor,
        "k": k,
        "n_splits": splits,
        "time_limit": time_limit,
        "target_gap": target_gap,
        "n_jobs": jobs,
        "verbose": 1,
    }
    with options.collect_warnings() as notes:
        penalty, chosen = choose_alpha(table, alpha, **settings)
        solution = solve(table.X, table.y, sample_weight=table.weights, alpha=penalty, **settings)
    solution.verify()
    notes = [*table.notes, *notes, *chosen]
    summary = solution.summary(
        names=table.names,
        covariance=covariance if cluster is None or bootstrap is not None else CLUSTER,
        groups=table.groups,
        bootstrap=bootstrap,
        random_state=0,
        n_jobs=jobs,
    )
    model = SavedModel.from_solution(solution, summary, table, weights, with_sums=save is not None)
    written = FilesWritten()
    if save is not None:
        with written.trying():
            write_model(model, save)
    if report is not None:
        data_name = Path(data[0]).name if len(data) == 1 else f"{len(data)} files"
        data_name = "standard input" if data[0] == STANDARD_STREAM else data_name
        # A model knows that its columns come from a formula.
        fitted = FittedModel(solution, table.encoding, weights)
        with written.trying():
            notes.append(write_report(fitted, summary, report, table.target, data_name))
    if as_json:
        plain = model.model_dump(mode="json", exclude={"sums"})
        print_json(plain | {"notes": [*notes, *summary.notes]})
        written.check()
        return
    print_fit(solution, summary, table.target)
    certificate = solution.certificate
    if (
        not in_passes
        and certificate.status == "bound_only"
        and certificate.says_anything
        and certificate.gap > MAX_SMALL_GAP
    ):
        notes.append("rectifit certify and --method auto+exact search for a proof")
    print_notes(notes)
    written.check()


@click.command()
@click.argument("model", type=click.Path(), metavar="MODEL.json")
@options.DATA
@options.out(
    "CSV, TSV, Parquet or NDJSON by the extension. Default: CSV on standard output.", STANDARD_STREAM
)
@click.option(
    "--interval",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    metavar="LEVEL",
    help="Add prediction intervals, which cover a new outcome with this probability, such as 0.95.",
)
@options.missing("keep", "drop", "error")
@options.text_format
def predict(model: str, data: str, form: TextFormat, out: str, interval: float | None, missing: str) -> None:
    """Predict the outcome for the rows of DATA with a saved fit.

    DATA must have the columns of the fit's features. The output is DATA with one more column, 'prediction',
    which is empty where a feature is missing. --interval adds the ends of prediction intervals in the columns
    'prediction_low' and 'prediction_high'.

    \b
    Examples:
      rectifit fit rain.csv --target mm --save rain.json
      rectifit predict rain.json tomorrow.csv --out forecast.csv
      rectifit predict rain.json tomorrow.csv --interval 0.9
    """
    known = read_model(model)
    if interval is not None and known.sums is None:
        raise ValueError(
            f"the model {model!r} has no sums for prediction intervals: those are not kept with more than "
            f"{MAX_COLUMNS} coefficients, or of data that is read in passes"
        )
    read = read_table(data, form)
    for column in PREDICTIONS[: 1 if interval is None else 3]:
        if column in read.frame.columns:
            raise ValueError(f"{data!r} has a column {column!r} already; rename or remove it")
    refuse_faults(known.encoding.numbers, read.faults)
    frame, notes = predict_rows(known, read.frame, missing, interval)
    write_frame(frame, out)
    print_notes(notes)


def predict_rows(
    model: SavedModel, frame: pl.DataFrame, missing: str, interval: float | None = None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows with their predictions, those with the ends of intervals, and notes on missing values."""
    import polars as pl

    notes: tuple[str, ...] = ()
    if missing != "keep":
        frame, notes = without_missing(frame, model.encoding.columns, missing)
    gaps = find_gaps(frame, model.encoding.columns)
    if gaps.counts:
        notes = (f"{gaps.rows} without a prediction, because values are missing in {gaps.columns}",)
    positions = gaps.is_complete.arg_true().to_numpy()
    names = PREDICTIONS[: 1 if interval is None else 3]
    predicted = np.full((len(names), frame.height), np.nan)
    if positions.size:
        rows = frame[positions]
        predicted[:, positions] = (
            model.predict(rows) if interval is None else prediction_interval(model.fitted(), rows, interval)
        )
    columns = zip(names, predicted, strict=True)
    return frame.with_columns(pl.Series(name, values, nan_to_null=True) for name, values in columns), notes
