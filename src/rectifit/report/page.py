"""The page of a fit: what was fitted, how good it is, and pictures that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rectifit.comparison import Comparison, find_obstacle
from rectifit.digits import NOTHING, write_amount, write_duration, write_share
from rectifit.inference import Summary, summarise
from rectifit.inference.tables import describe_covariance
from rectifit.report.pictures import draw_fitted, draw_hinge, draw_path, draw_proof, draw_residuals
from rectifit.scale.problem import BlockProblem
from rectifit.solution import Certificate, Solution
from rectifit.web import Figure, Page, Section, TableView

__all__ = ["make_report", "write_report"]

# A gap from here on proves next to nothing.
NOTHING_PROVED = 0.9


def write_report(
    solution: Solution,
    path: str | Path,
    *,
    names: Sequence[str] | None = None,
    target: str = "y",
    data_name: str = "",
    covariance: str = "nonrobust",
    summary: Summary | None = None,
    comparison: Comparison | None = None,
) -> None:
    """Write the page of a fit to a file.

    Parameters
    ----------
    solution : Solution
        With its data.
    path : path of the HTML file
    names : sequence of str, optional
        Of the columns of X.
    target : str, default="y"
        Name of the outcome.
    data_name : str, optional
        What the data are called.
    covariance : str, default="nonrobust"
        Kind of the standard errors, as in `inference.summarise`.
    summary : Summary, optional
        The table of the fit, if it is known already, instead of names and covariance.
    comparison : Comparison, optional
        Of `comparison.compare`, for a section on other ways to fit the same data.
    """
    page = make_report(
        solution,
        names=names,
        target=target,
        data_name=data_name,
        covariance=covariance,
        summary=summary,
        comparison=comparison,
    )
    page.write(Path(path))


def make_report(
    solution: Solution,
    *,
    names: Sequence[str] | None = None,
    target: str = "y",
    data_name: str = "",
    covariance: str = "nonrobust",
    summary: Summary | None = None,
    comparison: Comparison | None = None,
) -> Page:
    """The page of a fit; arguments as of `write_report`."""
    if summary is None:
        summary = summarise(solution, names=names, covariance=covariance)
    n_variables = solution.beta.size
    where = f" in {data_name}" if data_name else ""
    pictured, of_some = _pictured(solution)
    obstacle = find_obstacle(solution) if comparison is None else None
    return Page(
        f"ReLU regression of {target}",
        f"How {target}{where} depends on {n_variables} variable{'s' * (n_variables != 1)}: a straight line "
        f"that stops at {_floor(solution)}, fitted by least squares.",
        [
            _what(solution, summary, target),
            _coefficients(summary, target),
            _fit(pictured, target, of_some),
            _residuals(pictured, target, of_some),
            _path(pictured, of_some),
            _proof(solution.certificate),
            *([_comparison(comparison)] if comparison is not None else []),
            _fine_print(summary, obstacle),
        ],
        [
            ("rows", f"{summary.n_samples:,}"),
            (f"predicted above {_floor(solution)}", write_share(summary.share_active)),
            ("R²: share of the variation explained", _defined(summary.r_squared)),
            ("sum of squared errors", write_amount(summary.objective)),
            ("a better fit would be better by at most", _possible_gain(solution.certificate)),
            ("time of the fit", write_duration(solution.seconds)),
        ],
    )


def _pictured(solution: Solution) -> tuple[Solution, list[str]]:
    """The fit with the rows that are drawn; of data in blocks, those in memory, and a sentence about it."""
    problem: Any = solution.problem
    if not isinstance(problem, BlockProblem):
        return solution, []
    sample = problem.sampled(problem.floor)
    shifted = sample.shifted(solution.floor)
    objective = shifted.objective(solution.beta, solution.intercept - solution.floor)
    n, n_drawn = problem.n_samples, sample.n_samples
    drawn = replace(solution, problem=sample, objective=objective)
    return drawn, [f"Drawn from {n_drawn:,} of the {n:,} rows, chosen at random."] * (n_drawn < n)


def _floor(solution: Solution) -> str:
    return f"{solution.floor:.4g}"


def _defined(value: float) -> str:
    return NOTHING if np.isnan(value) else f"{value:.3f}"


def _sentence(text: object) -> str:
    words = str(text)
    return f"{words[0].upper()}{words[1:]}."


def _possible_gain(certificate: Certificate) -> str:
    """The gap, unless it says nothing."""
    return write_share(certificate.gap) if certificate.gap < NOTHING_PROVED else "not known"


def _what(solution: Solution, summary: Summary, target: str) -> Section:
    problem = solution.problem
    assert problem is not None
    floor = _floor(solution)
    at_floor = 1.0 - summary.n_positive / summary.n_samples
    predicted = 1.0 - summary.n_active / summary.n_samples
    estimated = " The floor was estimated together with the coefficients." * solution.floor_is_estimated
    ridge = f" A ridge penalty of {problem.alpha:g} is part of it." if problem.alpha else ""
    weights = " Rows are weighted." * problem.is_weighted
    intercept = "coefficients times variables" + ", plus the intercept" * problem.fit_intercept
    dead = (
        " No row is predicted above the floor: the variables tell nothing, or everything is at the floor."
        if summary.n_active == 0
        else ""
    )
    return Section(
        "what",
        "What was fitted",
        [
            f"{target} ≈ max({floor}, linear part), where the linear part is {intercept}. Where the linear "
            f"part is below {floor}, the prediction is {floor}; above it, every unit of a variable counts as "
            f"its coefficient says.{estimated}",
            f"{write_share(at_floor)} of the outcomes are at {floor} or below it, and "
            f"{write_share(predicted)} of the predictions are at {floor}.{dead}{ridge}{weights}",
            "The fit has the least sum of squared errors that was found. Unlike a line through all points, "
            "it is not pulled down by outcomes that cannot go any lower.",
        ],
    )


def _coefficients(summary: Summary, target: str) -> Section:
    level, columns = f"{100.0 * summary.level:g} %", summary.columns()
    texts = [texts for _, texts in columns.values()]
    rows = [[name, *row] for name, *row in zip(summary.names, *texts, strict=True)]
    keys: list[list[float | str | None]] = [
        [name, *(float(value) if np.isfinite(value) else None for value in row)]
        for name, *row in zip(summary.names, *(values for values, _ in columns.values()), strict=True)
    ]
    notes = " ".join(_sentence(note) for note in summary.notes)
    return Section(
        "coefficients",
        "Coefficients",
        [
            f"One unit more of a variable, all others unchanged, changes the predicted {target} by its "
            "coefficient, for rows that are above the floor; on average over all rows, by that times the "
            f"share above the floor ({write_share(summary.share_active)}).",
            f"The standard error says how precise a coefficient is: the true one is between the last two "
            f"columns with {level} confidence. A small p-value, say below 0.05, means that these data could "
            "hardly come about if the true coefficient were 0.",
        ],
        [
            TableView(
                "",
                ["variable", *columns],
                rows,
                keys,
                f"Standard errors: {describe_covariance(summary.covariance)}. {notes}".strip(),
            )
        ],
    )


def _fit(solution: Solution, target: str, of_some: Sequence[str]) -> Section:
    return Section(
        "fit",
        "The fit in two pictures",
        of_some,
        [
            Figure.from_matplotlib(
                draw_hinge(solution, target),
                f"Scatter of {target} against the linear part, with the hinge",
                "Each dot is a row. The bend is where the linear part meets the floor.",
            ),
            Figure.from_matplotlib(
                draw_fitted(solution, target),
                f"Scatter of observed against fitted {target}",
                "On the line, the prediction is exact.",
            ),
        ],
    )


def _residuals(solution: Solution, target: str, of_some: Sequence[str]) -> Section:
    return Section(
        "residuals",
        "What is left",
        of_some,
        [
            Figure.from_matplotlib(
                draw_residuals(solution, target),
                "Residuals against fitted values, and their histogram",
                "Observed less predicted. A pattern in the left picture means that something is missing from "
                "the model.",
            )
        ],
    )


def _path(solution: Solution, of_some: Sequence[str]) -> Section:
    return Section(
        "path",
        "How it was found",
        [
            f"Method: {solution.method}; {solution.stopped}. Which rows are above the floor is the hard part "
            "of the problem. The sorting method guesses: the largest outcomes are. The picture shows how "
            "good each such guess is; other guesses lead further down.",
            *(f"{sentence} Its sums of squares are those of these rows." for sentence in of_some),
        ],
        [
            Figure.from_matplotlib(
                draw_path(solution), "Sum of squares against the share of outcomes taken as active"
            )
        ],
    )


def _proof(certificate: Certificate) -> Section:
    settled = certificate.n_active + certificate.n_inactive
    searched = (
        "No search for a proof was made; rectifit certify, or the method auto+exact, does that."
        if certificate.status == "bound_only" and certificate.n_nodes == 0
        else f"The proof took {write_duration(certificate.seconds)}, with {certificate.n_nodes:,} "
        f"step{'s' * (certificate.n_nodes != 1)} of a search."
    )
    paragraphs = [
        "Fits of this kind can get stuck: there may be other coefficients, far away, that are better. So a "
        f"lower bound of the sum of squared errors comes with the fit. {_sentence(certificate)} {searched}"
    ]
    if settled:
        paragraphs.append(
            f"In every better fit, if there is one, {certificate.n_active:,} rows are above the floor and "
            f"{certificate.n_inactive:,} are not; {certificate.n_undecided:,} could be either."
        )
    pictures = [
        Figure.from_matplotlib(
            draw_proof(certificate),
            "Best fit so far and lower bound against time",
            "The sum of squared errors of the best fit is somewhere between the two lines.",
        )
        for _ in certificate.history[:1]
    ]
    return Section("certificate", "How good can a fit be?", paragraphs, pictures)


def _comparison(comparison: Comparison) -> Section:
    columns = ["way to fit", "error on these rows", "error on unseen rows", "time", "better by at most"]
    fitted = [row for row in comparison.rows if row.skipped is None]
    rows, keys = [], []
    for row in sorted(fitted, key=lambda row: row.cross_validated or row.in_sample or 0.0):
        numbers = (row.in_sample, row.cross_validated, row.seconds, row.gap)
        name = f"rectifit {row.name}" if row.ours else row.name
        writers = (write_amount, write_amount, write_duration, write_share)
        texts = [
            NOTHING if value is None else write(value) for write, value in zip(writers, numbers, strict=True)
        ]
        rows.append([name, *texts])
        keys.append([name, *numbers])
    skipped = [f"{row.name} was left out: {row.skipped}." for row in comparison.rows if row.skipped]
    return Section(
        "comparison",
        "Other ways to fit these data",
        [
            "Mean squared errors: of a fit to all rows, and of rows that a fit has not seen (five-fold "
            "cross-validation), by which they are sorted. A smaller error on unseen rows means better "
            "predictions. The last column says by how much the first error of any fit of the form max(0, "
            "line) could be lower; the others are of another form.",
            "ReLU regression and Tobit estimate different things: the first the mean of what is observed, "
            "the second a hidden outcome that was cut off. Where noise enters before the floor, as with "
            "censored measurements, prefer a Tobit; where the mean itself stops at the floor, prefer this.",
        ],
        [TableView("", columns, rows, keys, " ".join(skipped))],
    )


def _fine_print(summary: Summary, obstacle: str | None) -> Section:
    compared = [f"This page has no comparison with other ways to fit: {obstacle}."] * (obstacle is not None)
    return Section(
        "assumptions",
        "When the standard errors are right",
        [
            "They hold for many rows, if the mean of the outcome is a line that stops at the floor, rows are "
            "independent, and the noise has mean zero wherever the line is. They are those of least squares "
            "on the rows above the floor. They are not for censored measurements (Tobit).",
            f"The noise above the floor has a standard deviation (sigma) of {_sigma(summary.sigma)}; at the "
            f"floor, {_sigma(summary.sigma_floor)}.",
            *compared,
        ],
    )


def _sigma(value: float) -> str:
    return "an unknown size" if np.isnan(value) else f"{value:.4g}"
