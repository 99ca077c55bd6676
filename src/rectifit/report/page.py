"""The page of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rectifit.comparison import Comparison
from rectifit.formatting import NOTHING, write_amount, write_count, write_duration, write_number, write_share
from rectifit.inference import Summary, summarise
from rectifit.report.contents import ReportData, collect
from rectifit.report.sections import make_sections
from rectifit.solution import Certificate, Solution
from rectifit.web import Page

__all__ = ["render", "write_report"]

# A larger gap proves next to nothing.
MAX_MEANINGFUL_GAP = 0.9


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
        Names of the columns of X.
    target : str, default="y"
        Name of the outcome.
    data_name : str, optional
        Name of the data.
    covariance : str, default="nonrobust"
        Kind of the standard errors, as in `inference.summarise`.
    summary : Summary, optional
        The summary of the fit, if it is known already, instead of names and covariance.
    comparison : Comparison, optional
        The result of `comparison.compare`, for a section on other ways to fit the same data.
    """
    if summary is None:
        summary = summarise(solution, names=names, covariance=covariance)
    data = collect(solution, summary, target=target, data_name=data_name, comparison=comparison)
    render(data).write(Path(path))


def render(data: ReportData) -> Page:
    """The page that shows these numbers."""
    summary = data.summary
    where = f" in {data.data_name}" if data.data_name else ""
    floor, variables = write_number(summary.floor), write_count(data.solution.beta.size, "variable")
    return Page(
        f"ReLU regression of {data.target}",
        f"How {data.target}{where} depends on {variables}: a linear model that never falls below {floor}, "
        "fitted by least squares.",
        make_sections(data),
        [
            ("rows", f"{summary.n_samples:,}"),
            (f"predicted above {floor}", write_share(summary.share_active)),
            (
                "R²: share of the variation explained",
                NOTHING if np.isnan(summary.r_squared) else f"{summary.r_squared:.3f}",
            ),
            ("sum of squared errors", write_amount(summary.objective)),
            ("no fit is better by more than", _write_gap(data.solution.certificate)),
            ("time of the fit", write_duration(summary.seconds)),
        ],
    )


def _write_gap(certificate: Certificate) -> str:
    return write_share(certificate.gap) if certificate.gap < MAX_MEANINGFUL_GAP else "not known"
