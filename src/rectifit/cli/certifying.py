"""certify: prove how good a fit is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from rectifit.api import certify, solve
from rectifit.certificate.proof import TARGET_GAP
from rectifit.cli.options import (
    DATA,
    ESTIMATE,
    FLOOR,
    JOBS,
    JSON,
    collect_warnings,
    columns_options,
    gap_option,
    save_option,
    seconds_option,
)
from rectifit.cli.show import print_certificate, print_json, print_notes
from rectifit.formatting import write_objective
from rectifit.methods.estimate_floor import FloorPoint
from rectifit.model_file import SavedModel, describe_certificate, read_model, write_model
from rectifit.tables import make_table, read_frame
from rectifit.tolerances import SUM_TOL

__all__ = ["certify_command"]


@click.command("certify")
@DATA
@columns_options(is_target_required=False)
@click.option("--model", metavar="MODEL.json", help="The fit to certify. Default: a new one.")
@click.option("--no-intercept", is_flag=True, help="For a new fit: max(0, X beta).")
@FLOOR
@seconds_option(10.0, "Seconds to search.")
@gap_option(TARGET_GAP, "Stop as soon as no fit can be better by more than this share.")
@JOBS
@save_option("Save the best fit found.")
@JSON
def certify_command(
    data: str,
    target: str | None,
    weights: str | None,
    model: str | None,
    no_intercept: bool,
    floor: float | str | None,
    time_limit: float,
    target_gap: float,
    jobs: int | None,
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
    if model is None:
        if target is None:
            raise click.UsageError("Missing option '--target', or '--model'.")
        table = make_table(read_frame(data), target, weights=weights, **columns)
        start, fit_intercept, is_estimated = None, not no_intercept, isinstance(floor, str)
    else:
        if (
            columns["features"] is not None
            or columns["one_hot"] is not None
            or no_intercept
            or floor is not None
        ):
            raise click.UsageError("--model determines features, intercept and floor; remove those options.")
        known = read_model(model)
        weights = weights or known.weights
        table = make_table(
            read_frame(data),
            target or known.target,
            weights=weights,
            missing=columns["missing"],
            encoding=known.encoding,
        )
        start, fit_intercept = (known.beta, known.intercept), known.fit_intercept
        floor, is_estimated = known.floor, known.floor_is_estimated
    options: dict[str, Any] = {
        "sample_weight": table.weights,
        "fit_intercept": fit_intercept,
        "n_jobs": jobs,
        "verbose": 1,
    }
    with collect_warnings() as notes:
        if isinstance(floor, str):
            fitted = solve(table.X, table.y, floor=ESTIMATE, **options)
            start, floor = (fitted.beta, fitted.intercept), fitted.floor
        certificate = certify(
            table.X, table.y, start, floor=floor, time_limit=time_limit, target_gap=target_gap, **options
        )
    solution = certificate.solution
    assert solution is not None
    if is_estimated:
        # The proof is for this floor only, and its sentence must say so.
        proved = replace(solution.certificate, floor=solution.floor)
        solution = replace(solution, certificate=proved)
        certificate = replace(proved, solution=solution)
    solution.verify()
    notes = [*table.notes, *notes]
    if model is not None and start is not None:
        assert solution.problem is not None
        given = FloorPoint.at(solution.problem, *start, solution.floor).objective
        if solution.objective < given * (1.0 - SUM_TOL):
            notes.append(
                f"the fit in {model!r} has the objective {write_objective(given)}; a better one was found"
            )
    if save is not None:
        summary = solution.summary(names=table.names)
        write_model(SavedModel.from_solution(solution, summary, table, weights), save)
    if as_json:
        print_json({"target": table.target} | describe_certificate(certificate) | {"notes": notes})
        return
    print_certificate(certificate)
    print_notes(notes)
