"""Several fits in one table, as papers show them: one column per fit, standard errors below coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

import numpy as np

from rectifit.display import Cell, Column, Rounded, Table
from rectifit.fit import Fit
from rectifit.formatting import match_error, write_number, write_share
from rectifit.inference.frames import make_frame
from rectifit.inference.summary import summarise
from rectifit.inference.tables import Estimates, describe_covariance

__all__ = ["ComparedSummaries", "compare_summaries"]

# Estimates that stand below all others, in this order.
LAST = ("intercept", "floor")
# Smaller gaps, other than 0, are not told apart.
SMALL_GAP = 1e-4
# Characters of a line below a narrow table.
MIN_WIDTH = 72
# Largest p-values that deserve so many stars.
STARS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))


@dataclass(frozen=True, eq=False)
class ComparedSummaries:
    """Several summaries side by side; `print` shows the table.

    Attributes
    ----------
    summaries : of the fits, Tobit models included
    names : headings of their columns
    stars : whether stars mark small p-values
    """

    summaries: tuple[Estimates, ...]
    names: tuple[str, ...]
    stars: bool = False

    @property
    def estimates(self) -> tuple[str, ...]:
        """Names of all estimates: columns as they first appear, then the intercept and an estimated floor."""
        found = dict.fromkeys(name for summary in self.summaries for name in summary.names)
        return (*(name for name in found if name not in LAST), *(name for name in LAST if name in found))

    def table(self) -> Table:
        """The table for display."""
        rows = list[tuple[Cell, ...]]()
        for name in self.estimates:
            pairs = [self._cells(summary, name) for summary in self.summaries]
            rows += [(name, *(pair[0] for pair in pairs)), ("", *(pair[1] for pair in pairs))]
        facts = self._facts()
        note = [f"Standard errors in parentheses: {'; '.join(self._kinds())}."]
        note += ["* p < 0.1, ** p < 0.05, *** p < 0.01."] * self.stars
        columns = (Column(""), *(Column(name) for name in self.names))
        title = "Regressions side by side"
        return Table("regressions", title, columns, (*rows, *facts), " ".join(note), n_foot=len(facts))

    def _cells(self, summary: Estimates, name: str) -> tuple[Cell, Cell]:
        """An estimate, and its standard error."""
        if name not in summary.names:
            return None, None
        j = summary.names.index(name)
        value, error = float(summary.coefficient[j]), float(summary.std_error[j])
        write = match_error(error)
        stars = next((marks for p, marks in STARS if self.stars and summary.p_value[j] < p), "")
        below: Cell = Rounded(error, f"({write(error)})")
        if np.isnan(error):
            below = "(at its bound)" if summary.at_bound[j] else None
        return Rounded(value, f"{write(value)}{stars}"), below

    def _facts(self) -> list[tuple[Cell, ...]]:
        """What is known about every fit as a whole."""
        facts: dict[str, tuple[str, Callable[[Any], str]]] = {
            "samples": ("n_samples", "{:,}".format),
            "active": ("share_active", write_share),
            "R squared": ("r_squared", write_number),
            "sigma": ("sigma", write_number),
            "proved gap": ("gap", _write_gap),
        }
        rows = list[tuple[Cell, ...]]()
        for name, (attribute, write) in facts.items():
            # Tobit models do not have all of them.
            known = [summary for summary in self.summaries if hasattr(summary, attribute)]
            values = {id(summary): getattr(summary, attribute) for summary in known}
            texts = {key: write(value) for key, value in values.items()}
            rows.append((name, *(texts.get(id(summary)) for summary in self.summaries)))
        return rows

    def _kinds(self) -> list[str]:
        """The kinds of the standard errors: one if all fits have the same, else one per fit."""
        kinds = [describe_covariance(summary.covariance) for summary in self.summaries]
        if len(set(kinds)) == 1:
            return kinds[:1]
        return [f"{name}, {kind}" for name, kind in zip(self.names, kinds, strict=True)]

    def to_frame(self, library: str = "pandas") -> Any:
        """Coefficients and standard errors in full as a data frame, NaN where a fit has no such estimate.

        Parameters
        ----------
        library : {"pandas", "polars"}
        """
        columns = dict[str, Any]()
        for heading, summary in zip(self.names, self.summaries, strict=True):
            for attribute, suffix in (("coefficient", ""), ("std_error", " std. error")):
                known = dict(zip(summary.names, getattr(summary, attribute).tolist(), strict=True))
                columns[heading + suffix] = np.array([known.get(name, np.nan) for name in self.estimates])
        return make_frame(library, self.estimates, columns)

    def to_latex(self) -> str:
        """The table for LaTeX, with rules of booktabs."""
        return self.table().to_latex()

    def to_html(self) -> str:
        """The table as an element of a page; all texts are escaped."""
        return self.table().to_html()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.to_html()

    def __str__(self) -> str:
        """The table as text."""
        table = self.table()
        text = replace(table, note="").to_text()
        width = max(map(len, text.splitlines()))
        return text + fill(table.note, max(width, MIN_WIDTH))


def compare_summaries(
    fits: Sequence[Estimates | Fit | Any],
    *,
    names: Sequence[str] | None = None,
    stars: bool = False,
    **options: Any,
) -> ComparedSummaries:
    """Several fits side by side in one table, for print, LaTeX or a notebook.

    Parameters
    ----------
    fits : sequence of Summary, Solution or fitted estimators
        Tobit models, too.
        Each fit may have its own columns; the table has all of them.
    names : sequence of str, optional
        Headings of the columns. Default: (1), (2), ...
    stars : bool, default=False
        Mark estimates with p-values below 0.1, 0.05 and 0.01.
    **options : covariance, level and others, as in `summarise`, for fits that are not summaries

    Examples
    --------
    >>> from rectifit import solve
    >>> from rectifit.datasets import load_drug_spending
    >>> X, y, columns, *_ = load_drug_spending()
    >>> short = solve(X[:, :2], y).summary(names=columns[:2], covariance="HC1")
    >>> full = solve(X, y).summary(names=columns, covariance="HC1")
    >>> both = compare_summaries([short, full], names=["short", "full"])
    >>> for row in both.table().texts()[:2]:
    ...     print(*row)
    age 0.7806 0.6216
     (0.0762) (0.0742)
    """
    if isinstance(fits, Estimates | Fit) or not hasattr(fits, "__len__") or isinstance(fits, str):
        raise TypeError(f"fits is {type(fits).__name__}; it must be a list of summaries or fits")
    if len(fits) == 0:
        raise ValueError("fits is empty; it must have at least one summary or fit")
    given = all(isinstance(fit, Estimates) for fit in fits)
    if given and options:
        raise TypeError(f"{', '.join(options)} cannot be given with summaries, which have them")
    headings = tuple(f"({i})" for i in range(1, len(fits) + 1)) if names is None else tuple(map(str, names))
    if len(headings) != len(fits):
        raise ValueError(f"names has {len(headings)} entries; it must have {len(fits)}, one per fit")
    if len(set(headings)) < len(headings):
        raise ValueError("names has two equal entries; every fit needs a heading of its own")
    found = tuple(fit if isinstance(fit, Estimates) else _summarise(fit, options) for fit in fits)
    return ComparedSummaries(found, headings, stars)


def _write_gap(gap: float | None) -> str:
    if gap is None:
        return "no proof"
    return f"< {write_share(SMALL_GAP)}" if 0.0 < gap < SMALL_GAP else write_share(gap)


def _summarise(fit: Any, options: dict[str, Any]) -> Estimates:
    """The summary of a fit; that of an estimator knows the names of its columns."""
    summary: Estimates = fit.summary(**options) if hasattr(fit, "summary") else summarise(fit, **options)
    return summary
