"""The page of a fit: what was fitted, how good it is, and pictures that show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rectifit.comparison import Comparison
from rectifit.inference import Summary, summarise
from rectifit.report.pictures import draw_fitted, draw_hinge, draw_path, draw_proof, draw_residuals
from rectifit.solution import Certificate, Solution
from rectifit.web import Figure, Page, Section, TableView

__all__ = ["make_report", "write_report"]


def write_report(
    solution: Solution,
    path: str | Path,
    *,
    names: Sequence[str] | None = None,
    target: str = "y",
    data_name: str = "",
    covariance: str = "nonrobust",
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
    comparison : Comparison, optional
        Of `comparison.compare`, for a section on other ways to fit the same data.
    """
    page = make_report(
        solution,
        names=names,
        target=target,
        data_name=data_name,
        covariance=covariance,
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
    comparison: Comparison | None = None,
) -> Page:
    """The page of a fit; arguments as of `write_report`."""
    summary = summarise(solution, names=names, covariance=covariance)
    floor = f"{solution.floor:g}"
    where = f" in {data_name}" if data_name else ""
    return Page(
        f"ReLU regression of {target}",
        f"How {target}{where} depends on {len(solution.beta)} variable{'s' * (len(solution.beta) != 1)}: a "
        f"straight line that stops at {floor}, fitted by least squares. {_proved(solution.certificate)}",
        [
            _what(solution, summary, target),
            _coefficients(summary, target),
            _fit(solution, target),
            _residuals(solution, target),
            _path(solution),
            _proof(solution.certificate),
            *([_comparison(comparison)] if comparison is not None else []),
            _fine_print(summary),
        ],
        [
            ("rows", f"{summary.n_samples:,}"),
            ("predicted above the floor", f"{summary.share_active:.0%}"),
            ("R²", f"{summary.r_squared:.3f}"),
            ("sum of squares", f"{summary.objective:.6g}"),
            ("can be better by at most", _gap(solution.certificate)),
            ("seconds", f"{solution.seconds:.2g}"),
        ],
    )


def _gap(certificate: Certificate) -> str:
    return "0 %" if certificate.gap == 0.0 else f"{100.0 * certificate.gap:.3g} %"


def _proved(certificate: Certificate) -> str:
    sentence = str(certificate)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _what(solution: Solution, summary: Summary, target: str) -> Section:
    assert solution.problem is not None
    floor = f"{solution.floor:g}" + (" (estimated from the data)" if solution.floor_is_estimated else "")
    at_floor = float(np.mean(solution.problem.y <= solution.floor))
    ridge = f" A ridge penalty of {solution.problem.alpha:g} is part of it." if solution.problem.alpha else ""
    weights = " Rows are weighted." if solution.problem.sample_weight is not None else ""
    return Section(
        "what",
        "What was fitted",
        [
            f"{target} ≈ max({solution.floor:g}, linear part). Where the linear part is below {floor}, the "
            "prediction is exactly that floor; above it, every unit of a variable counts as its coefficient "
            f"says. {at_floor:.0%} of the outcomes are at the floor or below it, and "
            f"{1.0 - summary.share_active:.0%} of the predictions are.{ridge}{weights}",
            "The fit has the least sum of squared errors that was found. Unlike a line through all points, "
            "it is not pulled down by outcomes that cannot go any lower.",
        ],
    )


def _coefficients(summary: Summary, target: str) -> Section:
    level = f"{100.0 * summary.level:g} %"
    columns = ["variable", "coefficient", "standard error", "z", "p-value", f"{level} from", f"{level} to"]
    values = [
        list(row)
        for row in zip(
            summary.coefficient,
            summary.std_error,
            summary.z,
            summary.p_value,
            summary.low,
            summary.high,
            strict=True,
        )
    ]
    rows = [
        [
            name,
            *(_number(v) for v in row[:2]),
            f"{row[2]:.2f}",
            f"{row[3]:.3f}",
            *(_number(v) for v in row[4:]),
        ]
        for name, row in zip(summary.names, values, strict=True)
    ]
    keys: list[list[float | str | None]] = [
        [name, *map(float, row)] for name, row in zip(summary.names, values, strict=True)
    ]
    return Section(
        "coefficients",
        "Coefficients",
        [
            f"One unit more of a variable changes the predicted {target} by its coefficient, for rows that "
            "are above the floor; on average over all rows, by that times the share above the floor "
            f"({summary.share_active:.0%}).",
        ],
        [TableView("", columns, rows, keys, f"Standard errors: {summary.covariance}.")],
    )


def _fit(solution: Solution, target: str) -> Section:
    return Section(
        "fit",
        "The fit in two pictures",
        (),
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


def _residuals(solution: Solution, target: str) -> Section:
    return Section(
        "residuals",
        "What is left",
        (),
        [
            Figure.from_matplotlib(
                draw_residuals(solution, target),
                "Residuals against fitted values, and their histogram",
                "Observed less predicted. A pattern in the left picture means that something is missing from "
                "the model.",
            )
        ],
    )


def _path(solution: Solution) -> Section:
    return Section(
        "path",
        "How it was found",
        [
            f"Method: {solution.method}; {solution.stopped}. Which rows are above the floor is the hard part "
            "of the problem. The sorting method guesses: the largest outcomes are. The picture shows how "
            "good each such guess is; other guesses lead further down.",
        ],
        [
            Figure.from_matplotlib(
                draw_path(solution), "Sum of squares against the share of outcomes taken as active"
            )
        ],
    )


def _proof(certificate: Certificate) -> Section:
    scope = (
        "It holds for all coefficients."
        if certificate.box is None
        else f"It holds for coefficients up to {certificate.box:g} on the standardised scale."
    )
    settled = (
        f" In every better fit {certificate.n_active:,} rows are above the floor and "
        f"{certificate.n_inactive:,} are not; {certificate.n_undecided:,} could be either."
        if certificate.n_active + certificate.n_inactive > 0
        else ""
    )
    return Section(
        "certificate",
        "How good can a fit be?",
        [
            f"{_proved(certificate)} {scope} The search took {certificate.seconds:.2g} seconds and "
            f"{certificate.n_nodes:,} steps.{settled}",
        ],
        [Figure.from_matplotlib(draw_proof(certificate), "Best fit so far and lower bound against time")],
    )


def _comparison(comparison: Comparison) -> Section:
    columns = ["way to fit", "error in sample", "error on unseen rows", "seconds", "at most better", "note"]
    rows, keys = [], []
    for row in comparison.rows:
        numbers = (row.in_sample, row.cross_validated, row.seconds, row.gap)
        name = f"rectifit {row.name}" if row.ours else row.name
        texts = [
            *("" if v is None else f"{v:.5g}" for v in numbers[:2]),
            "" if row.seconds is None else f"{row.seconds:.3f}",
            "" if row.gap is None else f"{row.gap:.2%}",
        ]
        rows.append([name, *texts, row.skipped or ""])
        keys.append([name, *numbers, row.skipped])
    return Section(
        "comparison",
        "Other ways to fit these data",
        [
            "Mean squared errors, in the sample and in five-fold cross-validation. ReLU regression and Tobit "
            "estimate different things: the first the mean of what is observed, the second a hidden outcome "
            "that was cut off. Where noise enters before the floor, as with censored measurements, prefer a "
            "Tobit; where the mean itself stops at the floor, prefer this.",
        ],
        [TableView("", columns, rows, keys)],
    )


def _fine_print(summary: Summary) -> Section:
    return Section(
        "assumptions",
        "When the standard errors are right",
        [
            "They hold for many rows, if the mean of the outcome is a line that stops at the floor, rows are "
            "independent, and the noise has mean zero wherever the line is. They are those of least squares "
            "on the rows above the floor. They are not for censored measurements (Tobit).",
            *summary.notes,
        ],
    )


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.5g}"
