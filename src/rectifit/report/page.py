"""The page of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from rectifit import __version__
from rectifit.comparison import Comparison
from rectifit.fit import Fit, fit_of
from rectifit.fitted_model import FittedModel
from rectifit.formatting import NOTHING, write_amount, write_count, write_duration, write_number, write_share
from rectifit.formulas import FormulaEncoding
from rectifit.inference import Summary, summarise
from rectifit.inference.sums import data_of
from rectifit.report.contents import ReportData, collect
from rectifit.report.sections import make_sections
from rectifit.solution import Certificate
from rectifit.web import Page

__all__ = ["render", "write_report"]

# A larger gap proves next to nothing.
MAX_MEANINGFUL_GAP = 0.9


def write_report(
    solution: Fit | Any,
    path: str | Path,
    *,
    names: Sequence[str] | None = None,
    target: str | None = None,
    data_name: str = "",
    units: Mapping[str, str] | None = None,
    command: str | None = None,
    covariance: str = "nonrobust",
    summary: Summary | None = None,
    comparison: Comparison | None = None,
) -> None:
    """Write the page of a fit to a file.

    Parameters
    ----------
    solution : Solution or fitted estimator
        With its data.
    path : path of the HTML file
    names : sequence of str, optional
        Names of the columns of X. Default: those of the data frame of the fit, else x0, x1, ...
    target : str, optional
        Name of the outcome. Default: that of the data of the fit, else y.
    data_name : str, optional
        Name of the data.
    units : mapping of str to str, optional
        Units of the outcome and of columns by their names, such as {"income": "dollars"}.
    command : str, optional
        The command that made the report, shown at the end of the page. Default: the call of the fit.
    covariance : str, default="nonrobust"
        Kind of the standard errors, as in `inference.summarise`.
    summary : Summary, optional
        The summary of the fit, if it is known already, instead of names and covariance.
    comparison : Comparison, optional
        The result of `comparison.compare`, for a section on other ways to fit the same data.
    """
    fitted = fit_of(solution)
    data_of(fitted)
    if summary is None:
        summary = summarise(fitted, names=names, covariance=covariance)
    target = target or fitted.target or "y"
    known = {target, *summary.names}
    for name in units or ():
        if name not in known:
            raise ValueError(
                f"units names {name!r}; it must be the outcome or one of {', '.join(summary.names)}"
            )
    made_by = ("call", describe_call(solution)) if command is None else ("command", command)
    data = collect(
        fitted,
        summary,
        target=target,
        data_name=data_name,
        comparison=comparison,
        units=units,
        is_by_formula=formula_of(solution) is not None,
        origin=(("made with", f"rectifit {__version__}"), ("date", _write_today()), made_by),
    )
    render(data).write(Path(path))


def formula_of(model: Any) -> FormulaEncoding | None:
    """The formula of a fit by one."""
    encoding = model.encoding if isinstance(model, FittedModel) else None
    return encoding if isinstance(encoding, FormulaEncoding) else None


def describe_call(model: Any) -> str:
    """The call that made a fit, as far as the fit knows it.

    Examples
    --------
    >>> from rectifit import solve
    >>> describe_call(solve([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], "sorting", alpha=0.5))
    "solve(X, y, 'sorting', alpha=0.5)"
    """
    formula = formula_of(model)
    if formula is not None:
        return f"relu({f'{fit_of(model).target} ~ {formula}'!r}, data)"
    if not isinstance(model, Fit):
        # Long parameters would be broken into several lines.
        return f"{' '.join(repr(model).split())}.fit(X, y)"
    options = {
        "sample_weight": "..." if model.is_weighted else None,
        "fit_intercept": None if model.fit_intercept else "False",
        "alpha": f"{model.alpha:g}" if model.alpha else None,
        "floor": "'estimate'" if model.floor_is_estimated else f"{model.floor:g}" if model.floor else None,
    }
    given = [f"{name}={value}" for name, value in options.items() if value is not None]
    constrained = ["..."] * (model.constraints is not None)
    return f"solve({', '.join(['X', 'y', repr(model.method), *given, *constrained])})"


def _write_today() -> str:
    today = date.today()
    return f"{today.day} {today:%B %Y}"


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
            ("no fit can be better by more than", _write_gap(data.solution.certificate)),
            ("time of the fit", write_duration(summary.seconds)),
        ],
        data.origin,
    )


def _write_gap(certificate: Certificate) -> str:
    return write_share(certificate.gap) if certificate.gap < MAX_MEANINGFUL_GAP else "not known"
