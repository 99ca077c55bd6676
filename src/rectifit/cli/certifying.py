"""certify: prove how good a fit is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from rectifit.api import certify, solve
from rectifit.certificate.proof import MEMORY_LIMIT, TARGET_GAP
from rectifit.cli import options
from rectifit.cli.loading import choose_alpha, has_intercept, load_table
from rectifit.cli.show import FilesWritten, print_certificate, print_json, print_notes
from rectifit.formatting import write_objective
from rectifit.model_file import SavedModel, describe_certificate, read_model, write_model
from rectifit.tables import TextFormat, make_table, read_table

__all__ = ["certify_command"]


@click.command("certify")
@options.DATA
@options.columns()
@options.text_format
@click.option("--model", metavar="MODEL.json", help="The fit to certify. Default: a new one.")
@click.option("--no-intercept", is_flag=True, help="For a new fit: max(0, X beta).")
@options.constraints
@options.ALPHA
@options.FLOOR
@options.CLUSTER
@options.time_limit(10.0, "Seconds to search.")
@options.target_gap(TARGET_GAP, "Stop as soon as no fit can be better by more than this share.")
@click.option(
    "--memory-limit",
    type=click.FloatRange(min=0.0, min_open=True),
    default=MEMORY_LIMIT,
    metavar="B",
    help="Bytes that the open nodes of the search may take.",
)
@options.JOBS
@options.PROOF
@options.save("Save the best fit found.")
@options.JSON
def certify_command(
    data: str,
    form: TextFormat,
    target: str | None,
    weights: str | None,
    model: str | None,
    no_intercept: bool,
    positive: tuple[str, ...] | None,
    negative: tuple[str, ...] | None,
    bounds: tuple[str, ...] | None,
    alpha: float | str | None,
    floor: float | str | None,
    cluster: tuple[str, ...] | None,
    time_limit: float,
    target_gap: float,
    memory_limit: float,
    jobs: int | None,
    proof: str | None,
    save: str | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Prove how good a fit to DATA is: no coefficients are better by more than the gap.

    The fit is a saved one (--model, which also names the columns) or a new one. If there are better fits, the
    search may find one. Ctrl-C ends the search early; what was proved until then remains valid.

    \b
    Examples:
      rectifit certify rain.csv --target mm
      rectifit certify rain.csv --model rain.json --time-limit 120 --save better.json
    """
    if cluster is not None and save is None:
        raise click.UsageError("--cluster is for the standard errors of the saved fit; it needs --save.")
    chosen = list[str]()
    if model is None:
        if target is None and columns["formula"] is None:
            raise click.UsageError("Missing option '--target', '--formula' or '--model'.")
        table = load_table(data, form, target, weights=weights, cluster=cluster, **columns)
        start, fit_intercept, is_estimated = None, has_intercept(table, no_intercept), isinstance(floor, str)
        constraints: dict[str, Any] = {"bounds": options.read_bounds(table.names, positive, negative, bounds)}
        known_floor = 0.0 if floor is None else floor
        penalty, chosen = choose_alpha(
            table,
            alpha,
            fit_intercept=fit_intercept,
            floor=known_floor,
            n_jobs=jobs,
            verbose=1,
            **constraints,
        )
    else:
        kept = (
            columns["features"],
            columns["one_hot"],
            columns["formula"],
            no_intercept or None,
            floor,
            alpha,
        )
        given = (*kept, positive, negative, bounds)
        if any(value is not None for value in given):
            raise click.UsageError(
                "--model determines features, intercept, ridge, bounds and floor; remove those options."
            )
        known = read_model(model)
        weights = weights or known.weights
        read = read_table(data, form)
        table = make_table(
            read.frame,
            target or known.target,
            weights=weights,
            missing=columns["missing"],
            encoding=known.encoding,
            groups=cluster or (),
            faults=read.faults,
        )
        start, fit_intercept, penalty = (known.beta, known.intercept), known.fit_intercept, known.alpha
        constraints = known.constraints
        floor, is_estimated = known.floor, known.floor_is_estimated
    settings: dict[str, Any] = {
        "sample_weight": table.weights,
        "fit_intercept": fit_intercept,
        "alpha": penalty,
        **constraints,
        "n_jobs": jobs,
        "verbose": 1,
    }
    with options.collect_warnings() as notes:
        if isinstance(floor, str):
            fitted = solve(table.X, table.y, floor=options.ESTIMATE, **settings)
            start, floor = (fitted.beta, fitted.intercept), fitted.floor
        certificate = certify(
            table.X,
            table.y,
            start,
            floor=floor,
            time_limit=time_limit,
            target_gap=target_gap,
            memory_limit=memory_limit,
            proof=proof,
            **settings,
        )
    solution, given_objective = certificate.solution, certificate.given_objective
    assert solution is not None
    if is_estimated:
        # The proof is for this floor only, and its sentence must say so.
        proved = replace(solution.certificate, floor=solution.floor)
        solution = replace(solution, certificate=proved)
        certificate = replace(proved, solution=solution)
    solution.verify()
    notes = [*table.notes, *notes, *chosen]
    if model is not None and given_objective is not None:
        objective = write_objective(given_objective)
        notes.append(f"the fit in {model!r} has the objective {objective}; a better one was found")
    written = FilesWritten()
    if save is not None:
        kind = None if cluster is None else "cluster"
        summary = solution.summary(names=table.names, covariance=kind, groups=table.groups)
        with written.trying():
            write_model(SavedModel.from_solution(solution, summary, table, weights), save)
    if as_json:
        print_json({"target": table.target} | describe_certificate(certificate) | {"notes": notes})
    else:
        print_certificate(certificate)
        print_notes(notes)
    written.check()
