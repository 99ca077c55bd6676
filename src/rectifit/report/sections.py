"""The sections of the page of a fit, in words, tables and figures."""

from __future__ import annotations

from dataclasses import replace

from rectifit import plot
from rectifit.comparison import Comparison
from rectifit.fit import Stop
from rectifit.formatting import write_count, write_duration, write_level, write_number, write_share
from rectifit.inference.tables import describe_covariance
from rectifit.report.contents import ReportData
from rectifit.report.figures import draw, draw_effects, draw_path
from rectifit.solution import Certificate
from rectifit.web import Section

__all__ = ["make_sections"]

BY_FORMULA = (
    "A formula made these variables. Several of them may come from one column, as age and I(age ** 2) do, "
    "and each picture moves one of them alone. Predictions for rows that differ in the column itself show "
    "what it does."
)
# Why a search stopped, where the usual words are those of the theory.
STOPPED = {
    Stop.COMPLETED: "every guess was followed to its end",
    Stop.REPEATED: "the rows predicted above the floor stayed the same",
    Stop.MAX_ITER: "the largest number of steps was reached",
}


def make_sections(data: ReportData) -> list[Section]:
    """All sections, in the order of the page."""
    return [
        _model(data),
        _coefficients(data),
        *([_effects(data)] if data.margins else []),
        _fit(data),
        _residuals(data),
        _path(data),
        _proof(data.solution.certificate),
        *([_comparison(data.comparison)] if data.comparison is not None else []),
        _assumptions(data),
    ]


def _model(data: ReportData) -> Section:
    summary, floor = data.summary, write_number(data.summary.floor)
    at_floor = 1.0 - summary.n_positive / summary.n_samples
    predicted = 1.0 - summary.n_active / summary.n_samples
    linear_part = (
        "the sum of coefficients times variables" + ", plus the intercept" * data.problem.fit_intercept
    )
    facts = [
        f"{write_share(at_floor)} of the outcomes are {floor} or less, and {write_share(predicted)} of the "
        f"predictions are {floor}."
    ]
    if summary.n_active == 0:
        facts.append("No prediction is above the floor: the fit does not depend on the variables.")
    if data.problem.alpha:
        facts.append(f"The fit includes a ridge penalty of {write_number(data.problem.alpha, 6)}.")
    if summary.constraints:
        facts.append(f"The coefficients are constrained: {', '.join(summary.constraints)}.")
    if data.problem.is_weighted:
        facts.append("The rows are weighted.")
    estimated = " The floor was estimated together with the coefficients." * summary.floor_is_estimated
    return Section(
        "what",
        "What was fitted",
        [
            f"{data.target} ≈ max({floor}, linear part), where the linear part is {linear_part}. Where the "
            f"linear part is below {floor}, the prediction is {floor}; above it, one more unit of a variable "
            f"changes the prediction by its coefficient.{estimated}",
            " ".join(facts),
            "Of all fits that were tried, this one has the smallest sum of squared errors. Unlike ordinary "
            "linear regression, it is not distorted by outcomes that cannot fall any lower.",
        ],
    )


def _coefficients(data: ReportData) -> Section:
    summary, table = data.summary, data.summary.table()
    note = " ".join([table.note, *map(_sentence, summary.notes)])
    units = [f"{name} in {data.units[name]}" for name in (data.target, *summary.names) if name in data.units]
    return Section(
        "coefficients",
        "Coefficients",
        [
            f"One more unit of a variable, with all others unchanged, changes the predicted {data.target} by "
            "its coefficient wherever the prediction is above the floor. Averaged over all rows, the change "
            "is the coefficient times the share of predictions above the floor "
            f"({write_share(summary.share_active)}).",
            "The standard error measures the precision of a coefficient: with "
            f"{write_level(summary.level)} confidence, the true coefficient lies between the last two "
            "columns. A small p-value, say below 0.05, means that such data would be unlikely if the true "
            "coefficient were 0.",
            *([f"Units: {', '.join(units)}."] if units else []),
        ],
        [replace(table, note=note)],
    )


def _effects(data: ReportData) -> Section:
    n_left = data.solution.beta.size - len(data.margins)
    kind = data.margins[0].covariance
    others = f" The {len(data.margins)} variables with the largest effects are shown." * (n_left > 0)
    return Section(
        "effects",
        "What each variable does",
        [
            f"The mean prediction of {data.target} if all rows had the same value of one variable and kept "
            f"their own values of all others.{others} Bands and bars are {write_level(data.summary.level)} "
            f"intervals {describe_covariance(kind)}. A line is curved where the variable decides how many "
            "rows are predicted above the floor.",
            *[BY_FORMULA] * data.is_by_formula,
        ],
        draw_effects(data),
    )


def _fit(data: ReportData) -> Section:
    target = data.label(data.target)
    return Section(
        "fit",
        "The fit in two pictures",
        _drawn_from(data),
        [
            draw(
                plot.fit,
                data.rows,
                alt=f"Scatter plot of {target} against the linear part, with the fitted hinge",
                caption="Each dot is a row. The line bends where the linear part reaches the floor.",
            ),
            draw(
                plot.fit,
                data.rows,
                against="prediction",
                alt=f"Scatter plot of observed against predicted {target}",
                caption="For a dot on the line, the prediction is exact.",
            ),
        ],
    )


def _residuals(data: ReportData) -> Section:
    return Section(
        "residuals",
        "Residuals",
        ["Residual = observed - predicted.", *_drawn_from(data)],
        [
            draw(
                plot.residuals,
                data.rows,
                alt="Residuals against predictions",
                caption="A pattern suggests that something is missing from the model.",
            ),
            draw(
                plot.residuals,
                data.rows,
                kind="histogram",
                alt="Histogram of the residuals",
                caption="How many rows have which residual.",
            ),
        ],
    )


def _path(data: ReportData) -> Section:
    sampled = (
        f" The sums are those of {data.n_sampled:,} of the {data.problem.n_samples:,} rows, chosen at random."
        * (data.n_sampled < data.problem.n_samples)
    )
    stopped = data.solution.stopped
    return Section(
        "path",
        "How the fit was found",
        [
            f"Method: {data.solution.method}; {STOPPED.get(stopped, stopped)}. The hard part of the problem "
            "is to find out which rows should be predicted above the floor. The sorting method guesses that "
            "these are the rows with the largest outcomes. For each guess it minimises an upper bound of the "
            "sum of squared errors that has the shape of a bowl (it is convex), so that its lowest point can "
            "always be found. The picture shows how good each guess is; other methods improve on the best "
            f"one.{sampled}",
        ],
        [
            draw_path(
                data.path, "Sum of squared errors against the share of outcomes guessed to be above the floor"
            )
        ],
    )


def _proof(certificate: Certificate) -> Section:
    if certificate.status != "bound_only":
        steps = write_count(certificate.n_nodes, "step")
        searched = f"The proof took {write_duration(certificate.seconds)} and {steps} of a search."
    else:
        searched = "The command rectifit certify and the method auto+exact search for a proof."
    paragraphs = [
        "Linear least squares always finds the global optimum; ReLU regression may not, since quite "
        "different coefficients may fit better. Therefore the fit comes with a proved lower bound of the "
        f"sum of squared errors. {_sentence(certificate)} {searched}"
    ]
    if certificate.n_active + certificate.n_inactive:
        paragraphs.append(
            f"In every better fit, if there is one, {certificate.n_active:,} rows are predicted above the "
            f"floor and {certificate.n_inactive:,} at the floor; {certificate.n_undecided:,} are undecided."
        )
    figures = [
        draw(
            plot.proof,
            certificate,
            alt="Sum of squared errors of the best fit so far, and the lower bound, against time",
            caption="The smallest possible sum of squared errors lies between the two lines.",
        )
    ] * (bool(certificate.history) and certificate.says_anything)
    return Section("certificate", "How much better could a fit be?", paragraphs, figures)


def _comparison(comparison: Comparison) -> Section:
    gaps = (
        "The gap is proved: no fit of the form "
        f"max(0, linear part){comparison.scope} reduces the error on these rows by more than this share. "
        f"Fits without a gap have a different form{' or ignore the bounds' * bool(comparison.scope)}."
    )
    return Section(
        "comparison",
        "Other ways to fit these data",
        [
            "The table shows mean squared errors: of a fit to all rows, on these rows, and on rows that the "
            "fit has not seen (five-fold cross-validation). The smaller the error on unseen rows, the better "
            "the predictions; the table is sorted by it.",
            *([gaps] if comparison.certificate.says_anything else []),
            "ReLU regression and Tobit answer different questions: ReLU regression estimates the mean of "
            "the observed outcome, Tobit the mean of a hidden outcome that was cut off. If the noise enters "
            "before the floor, as in censored measurements, prefer Tobit; if the mean itself stops at the "
            "floor, prefer ReLU regression.",
        ],
        [comparison.table()],
    )


def _assumptions(data: ReportData) -> Section:
    sigma, sigma_floor = (
        write_number(value, missing="unknown") for value in (data.summary.sigma, data.summary.sigma_floor)
    )
    paragraphs = [
        "The standard errors are valid for many rows if the mean of the outcome is a linear part that stops "
        "at the floor, the rows are independent, and the noise has mean zero everywhere. They are those of "
        "least squares on the rows predicted above the floor. They are not valid for censored measurements "
        "(Tobit).",
        f"The standard deviation of the noise (sigma) is {sigma} above the floor and {sigma_floor} at the "
        "floor.",
    ]
    if data.obstacle is not None:
        paragraphs.append(f"This page has no comparison with other ways to fit: {data.obstacle}.")
    return Section("assumptions", "When the standard errors are valid", paragraphs)


def _drawn_from(data: ReportData) -> list[str]:
    """A sentence where the figures show a sample of the rows."""
    n_drawn = data.rows.linear.size
    if n_drawn == data.summary.n_samples:
        return []
    return [f"Drawn from {n_drawn:,} of the {data.summary.n_samples:,} rows, chosen at random."]


def _sentence(text: object) -> str:
    words = str(text)
    return f"{words[0].upper()}{words[1:]}."
