"""fit, predict and certify."""

from __future__ import annotations

from typing import Any

import click

from rectifit import certify, solve
from rectifit.cli.options import (
    DATA,
    GAP,
    JOBS,
    JSON,
    METHOD,
    MISSING,
    REPORT,
    collect_warnings,
    columns_options,
    load_table,
    seconds_option,
)
from rectifit.cli.show import print_certificate, print_fit, print_json, print_notes, write_report
from rectifit.methods.search import TARGET_GAP
from rectifit.model_file import Model, describe_certificate, describe_model, read_model, write_model
from rectifit.solution import ROUNDING_OF_SUMS
from rectifit.tables import (
    STANDARD_STREAM,
    check_extension,
    make_table,
    read_frame,
    without_missing,
    write_frame,
)

__all__ = ["certify_command", "fit", "predict"]

PREDICTION = "prediction"


@click.command()
@DATA
@columns_options()
@METHOD
@click.option(
    "--k", type=click.IntRange(min=1), default=1, show_default=True, metavar="K", help="k of approximation."
)
@click.option(
    "--splits", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="N of sorting."
)
@click.option("--no-intercept", is_flag=True, help="Fit max(0, X beta).")
@seconds_option(None, "Keep the best fit after so many seconds.")
@GAP
@JOBS
@click.option(
    "--save", type=click.Path(dir_okay=False), metavar="MODEL.json", help="Save the fit for predict."
)
@REPORT
@JSON
def fit(
    data: str,
    target: str,
    weights: str | None,
    method: str,
    k: int,
    splits: int,
    no_intercept: bool,
    time_limit: float | None,
    target_gap: float | None,
    jobs: int | None,
    save: str | None,
    report: str | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Fit a ReLU regression to DATA and print its coefficients.

    All other columns of numbers are features unless --features names them; columns of text are left out
    unless --one-hot encodes them. Every fit carries a lower bound: how much better any other fit can be.

    \b
    Examples:
      rectifit fit rain.csv --target mm
      rectifit fit rain.csv --target mm --features wind,pressure --save rain.json
      rectifit fit wages.parquet --target hours --one-hot region --weights w
      rectifit fit rain.csv --target mm --method auto+exact --time-limit 60
      zcat rain.csv.gz | rectifit fit - --target mm --missing drop --json

    \b
    Methods (--method):
      auto                 the default: at least as good as sorting+iterative
      auto+exact           the same, then a search for a proof (--target-gap, --time-limit)
      approximation        objective at most n/k times the least one (--k)
      sorting              N + 1 splits of the sorted outcomes (--splits)
      sorting+iterative    a stage after + starts from the best fit before it
      gd, sgd, multistart  gradient descent, stochastic, and many starts
    """
    table = load_table(data, target, weights=weights, **columns)
    with collect_warnings() as notes:
        solution = solve(
            table.X,
            table.y,
            method,
            sample_weight=table.weights,
            fit_intercept=not no_intercept,
            k=k,
            n_splits=splits,
            time_limit=time_limit,
            target_gap=target_gap,
            n_jobs=jobs,
            verbose=1,
        )
    solution.verify()
    notes = [*table.notes, *notes]
    model = Model.from_solution(solution, table, weights)
    if save is not None:
        write_model(model, save)
    if report is not None:
        write_report(solution, report, table.names, target, data)
    if as_json:
        print_json(describe_model(model) | {"notes": notes})
        return
    print_fit(solution, table.names, target)
    if solution.certificate.status == "bound_only":
        notes.append("no proof was searched for; rectifit certify, or --method auto+exact, does that")
    print_notes(notes)


@click.command()
@click.argument("model", type=click.Path(), metavar="MODEL.json")
@DATA
@click.option(
    "--out",
    default=STANDARD_STREAM,
    metavar="FILE",
    help="CSV, TSV, Parquet or NDJSON by its extension. Default: CSV on standard output.",
)
@MISSING
def predict(model: str, data: str, out: str, missing: str) -> None:
    """Predict the outcome for the rows of DATA with a saved fit.

    DATA needs the columns of the fit's features; it comes back with one more column, 'prediction'.

    \b
    Examples:
      rectifit fit rain.csv --target mm --save rain.json
      rectifit predict rain.json tomorrow.csv --out forecast.csv
    """
    if out != STANDARD_STREAM:
        check_extension(out)
    known = read_model(model)
    frame, notes = without_missing(read_frame(data), known.encoding.columns, missing)
    if PREDICTION in frame.columns:
        raise ValueError(f"{data!r} has a column {PREDICTION!r} already; rename or remove it")
    import polars as pl

    write_frame(frame.with_columns(pl.Series(PREDICTION, known.predict(frame))), out)
    print_notes(notes)


@click.command("certify")
@DATA
@columns_options(is_target_required=False)
@click.option("--model", metavar="MODEL.json", help="The fit in question. Default: a new one.")
@click.option("--no-intercept", is_flag=True, help="Of a new fit: max(0, X beta).")
@seconds_option(10.0, "Seconds to search.")
@click.option(
    "--target-gap",
    type=click.FloatRange(min=0.0),
    default=TARGET_GAP,
    show_default=True,
    metavar="G",
    help="Stop when no fit can be better by more than this share.",
)
@JOBS
@click.option(
    "--save", type=click.Path(dir_okay=False), metavar="MODEL.json", help="Save the best fit known."
)
@JSON
def certify_command(
    data: str,
    target: str | None,
    features: tuple[str, ...] | None,
    one_hot: tuple[str, ...] | None,
    missing: str,
    weights: str | None,
    model: str | None,
    no_intercept: bool,
    time_limit: float,
    target_gap: float,
    jobs: int | None,
    save: str | None,
    as_json: bool,
) -> None:
    """Prove how good a fit to DATA is: no coefficients whatever are better by more than the gap.

    The fit is a saved one (--model, whose columns are then used) or a new one. The search also finds better
    fits where there are any. Ctrl-C ends it early; what was proved until then holds.

    \b
    Examples:
      rectifit certify rain.csv --target mm
      rectifit certify rain.csv --model rain.json --time-limit 120 --save better.json
    """
    if model is None:
        if target is None:
            raise click.UsageError("Missing option '--target', or '--model'.")
        table = load_table(data, target, features, one_hot, missing, weights)
        start, fit_intercept = None, not no_intercept
    else:
        if features is not None or one_hot is not None or no_intercept:
            raise click.UsageError("--model decides on features and intercept; leave those options out.")
        known = read_model(model)
        weights = weights or known.weights
        table = make_table(
            read_frame(data),
            target or known.target,
            weights=weights,
            missing=missing,
            encoding=known.encoding,
        )
        start, fit_intercept = (list(known.coefficients), known.intercept), known.fit_intercept
    with collect_warnings() as notes:
        certificate = certify(
            table.X,
            table.y,
            start,
            sample_weight=table.weights,
            fit_intercept=fit_intercept,
            time_limit=time_limit,
            target_gap=target_gap,
            n_jobs=jobs,
            verbose=1,
        )
    solution = certificate.solution
    assert solution is not None
    assert solution.problem is not None
    solution.verify()
    notes = [*table.notes, *notes]
    if start is not None:
        given = solution.problem.objective(*start)
        if solution.objective < given * (1.0 - ROUNDING_OF_SUMS):
            notes.append(f"the fit in {model!r} has the objective {given:.8g}; a better one was found")
    if save is not None:
        write_model(Model.from_solution(solution, table, weights), save)
    if as_json:
        print_json({"target": table.target} | describe_certificate(certificate) | {"notes": notes})
        return
    print_certificate(certificate)
    print_notes(notes)
