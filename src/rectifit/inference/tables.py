"""Estimates as text to publish, as a table for display, and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_number
from rectifit.display import Cell, Column, Rounded, Table
from rectifit.formatting import (
    match_error,
    write_count,
    write_level,
    write_number,
    write_objective,
    write_p,
    write_z,
)
from rectifit.inference.balance import BalancePoint, find_balance_point
from rectifit.inference.frames import make_frame
from rectifit.inference.named_matrix import NamedMatrix
from rectifit.inference.wald import WaldTest, wald_test

__all__ = ["Estimates", "MarginalEffects", "Summary", "describe_covariance", "quantile"]

# Characters of a name and of a number in the table of a summary; more where they need more.
MIN_NAME = 9
MIN_WIDTH = 12

# Columns of a data frame.
NUMBERS = ("coefficient", "std_error", "z", "p_value", "low", "high")

MEANINGS = {
    "nonrobust": "for noise of equal variance",
    "HC0": "for noise of any variance",
    "HC1": "for noise of any variance",
    "HC2": "for noise of any variance",
    "HC3": "for noise of any variance, conservative with few rows",
    "cluster": "for noise that is correlated within groups",
    "HAC": "for noise that is correlated over time",
}


def describe_covariance(covariance: str) -> str:
    """What the standard errors are for, and their kind.

    Examples
    --------
    >>> describe_covariance("HC1")
    'for noise of any variance (HC1)'
    """
    meaning = MEANINGS.get(covariance.partition(",")[0])
    return covariance if meaning is None else f"{meaning} ({covariance})"


def quantile(level: float) -> float:
    """The number z with probability `level` of a standard normal variable in [-z, z]."""
    return float(ndtri(0.5 + 0.5 * level))


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimates:
    """Numbers with names, standard errors and normal intervals.

    Attributes
    ----------
    names, coefficient, std_error : one of each per estimate
    z, p_value : coefficient / std_error, and its two-sided probability if the true coefficient is 0
    low, high : interval that covers the true coefficient with probability `level`
    covariance : kind of the standard errors, with the number of groups, lags or draws
    notes : what a reader must know, sentences
    at_bound : whether the coefficient behind each estimate is at one of its bounds
    target : name of the outcome, where it has one
    """

    names: tuple[str, ...]
    coefficient: Vector
    std_error: Vector
    at_bound: tuple[bool, ...]
    level: float
    covariance: str
    notes: tuple[str, ...] = ()
    target: str | None = None

    # Follows the names of coefficients at a bound.
    REMARK: ClassVar[str] = ", at its bound {}"
    # What an estimate is called in a table for display.
    HEADING: ClassVar[str] = "coefficient"

    @cached_property
    def z(self) -> Vector:
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.coefficient / self.std_error

    @cached_property
    def p_value(self) -> Vector:
        return np.asarray(2.0 * ndtr(-np.abs(self.z)))

    @cached_property
    def low(self) -> Vector:
        return self.coefficient - quantile(self.level) * self.std_error

    @cached_property
    def high(self) -> Vector:
        return self.coefficient + quantile(self.level) * self.std_error

    def table(self) -> Table:
        """The estimates for display, each with the digits that its standard error allows."""
        columns = (
            Column("variable"),
            Column(self.HEADING),
            Column("std. error"),
            Column("z", write_z),
            Column("p-value", write_p),
            Column(f"{write_level(self.level)} from"),
            Column("to"),
        )
        note = f"Standard errors: {describe_covariance(self.covariance)}."
        return Table("estimates", "", columns, self._cells(), note)

    def _cells(self) -> tuple[tuple[Cell, ...], ...]:
        """The name of each estimate, followed by its numbers."""
        numbers = (self.coefficient, self.std_error, self.z, self.p_value, self.low, self.high)
        columns = (column.tolist() for column in numbers)
        rows = list[tuple[Cell, ...]]()
        for name, value, error, z, p, low, high in zip(self._labels(), *columns, strict=True):
            write = match_error(error)
            estimate, spread, start, end = (Rounded(x, write(x)) for x in (value, error, low, high))
            rows.append((name, estimate, spread, z, p, start, end))
        return tuple(rows)

    def _labels(self) -> tuple[str, ...]:
        """The names, with a word where an estimate is at its bound."""
        estimates = zip(self.names, self.coefficient.tolist(), self.at_bound, strict=True)
        return tuple(
            name + self.REMARK.format(write_number(value)) * is_held for name, value, is_held in estimates
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with None for NaN."""
        names = dict.fromkeys([*(field.name for field in fields(self) if field.repr), *NUMBERS])
        return {name: _plain(getattr(self, name)) for name in names}

    def to_frame(self, library: str = "pandas") -> Any:
        """The numbers in full as a data frame, one line per estimate.

        Parameters
        ----------
        library : {"pandas", "polars"}
            In pandas the names are the index, in polars the first column.

        Examples
        --------
        >>> from rectifit import solve
        >>> summary = solve([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 1.0, 3.0]).summary()
        >>> summary.to_frame("polars").columns
        ['name', 'coefficient', 'std_error', 'z', 'p_value', 'low', 'high']
        """
        return make_frame(library, self.names, {name: getattr(self, name) for name in NUMBERS})

    def to_latex(self) -> str:
        """The table for LaTeX, with rules of booktabs."""
        return self._page().to_latex()

    def to_html(self) -> str:
        """The table as an element of a page; all texts are escaped."""
        return self._page().to_html()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.to_html()

    def _title(self) -> str:
        """What stands above the table where it is published."""
        return "Estimates"

    def _facts(self) -> list[str]:
        """Sentences below the table where it is published, besides the notes."""
        return [f"Standard errors: {describe_covariance(self.covariance)}."]

    def _page(self) -> Table:
        notes = [f"{note[:1].upper()}{note[1:]}." for note in self.notes]
        return replace(self.table(), title=self._title(), note=" ".join([*self._facts(), *notes]))

    def _rows(self, heading: str) -> list[str]:
        """The lines of the table, all of one width."""
        tail = 0.5 - 0.5 * self.level
        ends = f"[{write_number(tail)}", f"{write_number(1.0 - tail)}]"
        lines = [["", heading, "std err", "z", "P>|z|", *ends], *self.table().texts()]
        first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
        widths = [max(MIN_WIDTH, width + 2) for width in others]
        return [
            name.ljust(max(MIN_NAME, first))
            + "".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))
            for name, *texts in lines
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class Summary(Estimates):
    """A fit as one would publish it; `print` shows the table.

    Attributes
    ----------
    objective : plain weighted sum of squares plus alpha |beta|^2
    r_squared : 1 - sum w e^2 / sum w (y - mean)^2
    share_active : share of the weight on rows above the floor
    sigma, df : standard deviation of the noise, from the active rows, and its degrees of freedom
    sigma_floor : the same from the rows at the floor; in the paper's model both agree
    floor, floor_is_estimated : the fit is max(floor, x'beta + intercept)
    n_samples, n_active : rows that have weight, and those whose fit is above the floor
    n_positive : those whose outcome is above the floor
    constraints : what was known about the coefficients, in words
    certificate : how good the fit is, one sentence
    gap : share by which another fit could be better at most; None where no proof was searched for
    method, seconds : of the fit
    cov : covariance of the estimates, by their names; NaN where the data do not determine them, and 0 where
        constraints hold them
    means : weighted means of the columns
    draws : of a bootstrap, the estimates of all draws, one line each; otherwise None

    The other attributes are those of `Estimates`.
    """

    objective: float
    r_squared: float
    share_active: float
    sigma: float
    sigma_floor: float
    df: float
    floor: float
    floor_is_estimated: bool
    n_samples: int
    n_active: int
    n_positive: int
    constraints: tuple[str, ...]
    certificate: str
    gap: float | None
    method: str
    seconds: float
    cov: NamedMatrix
    means: Vector
    draws: Matrix | None = field(default=None, repr=False)

    def wald(self, hypotheses: Any) -> WaldTest:
        """Test linear hypotheses about the estimates, by Wald's statistic.

        Parameters
        ----------
        hypotheses : str, sequence of str, matrix R, or pair (R, r)
            Equations separated by commas, such as "educ = 0, exper = tenure" or "2*educ - exper = 1"; what
            has no "=" is equal to 0. Names are those of the summary; one that could be read otherwise is
            written in `backticks`. Or R with one row per hypothesis and one column per estimate, for
            R estimates = r; r is 0 unless it is given.

        Returns
        -------
        WaldTest
            With the statistic, its degrees of freedom and the p-value, of the chi-squared distribution.

        Examples
        --------
        >>> from rectifit import solve
        >>> from rectifit.datasets import load_drug_spending
        >>> X, y, names, *_ = load_drug_spending()
        >>> print(solve(X, y).summary(names=names, covariance="HC1").wald("age = 1, health = -0.5"))
        age = 1, health = -0.5: chi2(2) = 31.06, p < 0.001
        """
        return wald_test(hypotheses, self.names, self.coefficient, self.cov.values, np.isnan(self.std_error))

    def balance_point(
        self, feature: str | int, at: Mapping[str, float] | None = None, *, level: float | None = None
    ) -> BalancePoint:
        """Where the line meets the floor along one column, with intervals.

        In an energy model it is the outdoor temperature at which heating or cooling begins.

        Parameters
        ----------
        feature : str or int
            Name or number of the column.
        at : mapping of str to float, optional
            Values of other columns. Default: their weighted means.
        level : float, optional
            Probability that an interval covers the true point. Default: that of the summary.

        Returns
        -------
        BalancePoint
            With the interval of the delta method, or of the draws if the summary comes from a bootstrap, and
            with Fieller's.

        Examples
        --------
        >>> import numpy as np
        >>> from rectifit import solve
        >>> rng = np.random.default_rng(0)
        >>> degrees = rng.uniform(-5.0, 25.0, size=(200, 1))
        >>> kwh = np.maximum(3.0 * (16.0 - degrees[:, 0]), 0.0) + 4.0 * rng.normal(size=200)
        >>> point = solve(degrees, kwh).summary(names=["degrees"]).balance_point("degrees")
        >>> print(point)  # doctest: +ELLIPSIS
        Balance point of degrees: 15.902, std. error 0.235, 95 % from 15.442 to 16.363 ...
        """
        level = self.level if level is None else check_number(level, "level", above=0.0, below=1.0)
        return find_balance_point(self, feature, at, level, quantile(level))

    def _title(self) -> str:
        return f"ReLU regression: {self._formula()}"

    def _formula(self) -> str:
        """The fitted equation in words."""
        base = "floor" if self.floor_is_estimated else f"{self.floor:g}"
        ends = " + intercept" if "intercept" in self.names else ""
        return f"{self.target or 'y'} ~ max({base}, X coef{ends})"

    def _facts(self) -> list[str]:
        rows = f"{write_count(self.n_samples, 'sample')}, {self.n_active:,} of them active"
        return [
            f"{rows}; R squared {write_number(self.r_squared)}; sigma {write_number(self.sigma)} "
            f"({write_number(self.df, 6)} degrees of freedom).",
            *super()._facts(),
            *[f"Constraints: {', '.join(self.constraints)}."] * bool(self.constraints),
            f"Certificate: {self.certificate}.",
        ]

    def __str__(self) -> str:
        """The table as text."""
        rows = self._rows("coef")
        width = len(rows[0])
        sigma = f"{write_number(self.sigma)} ({write_number(self.df, 6)} df)"
        floor = write_number(self.floor) + (" (estimated)" if self.floor_is_estimated else "")
        active = f"{self.n_active:,} ({100.0 * self.share_active:.1f} %)"
        facts = [
            _fact("Method:", self.method, "Samples:", f"{self.n_samples:,}", width),
            _fact("Covariance:", self.covariance, "Active:", active, width),
            _fact(
                "Objective:", write_objective(self.objective), "R-squared:", f"{self.r_squared:.4f}", width
            ),
            _fact("Sigma, active:", sigma, "Sigma, floor:", write_number(self.sigma_floor), width),
            _fact("Floor:", floor, "Seconds:", write_number(self.seconds, 3), width),
        ]
        head = _ends("ReLU regression", self._formula(), width)
        lines = [head, "=" * width, *facts, "=" * width, rows[0], "-" * width, *rows[1:], "=" * width]
        known = [f"Constraints: {', '.join(self.constraints)}"] * bool(self.constraints)
        return "\n".join([*lines, *known, f"Certificate: {self.certificate}", *_notes(self.notes)])


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginalEffects(Estimates):
    """Effects of the columns on E[y | x] = max(floor, x'beta + intercept); `print` shows the table.

    Attributes
    ----------
    at : "average" over the rows, or at the "means" of the columns
    share_active : share of the weight on rows above the floor

    The other attributes are those of `Estimates`.
    """

    at: str
    share_active: float

    REMARK = ", coefficient at its bound"
    HEADING = "effect"

    def _title(self) -> str:
        return "Average marginal effects" if self.at == "average" else "Marginal effects at the means"

    def __str__(self) -> str:
        """The table as text."""
        rows = self._rows(f"dE[{self.target or 'y'}]/dx")
        width = len(rows[0])
        active = f"{100.0 * self.share_active:.1f} % active"
        lines = [_ends(self._title(), active, width), "=" * width, rows[0], "-" * width]
        return "\n".join([*lines, *rows[1:], "=" * width, *_notes(self.notes)])


def _ends(left: str, right: str, width: int) -> str:
    """Two texts at the ends of a line."""
    return f"{left} {right:>{max(width - len(left) - 1, 0)}}"


def _fact(left: str, value: str, right: str, other: str, width: int) -> str:
    """Two facts on a line, the second one in its right half."""
    half = f"{left:<15}{value}"
    return f"{half:<{width // 2}} " + _ends(right, other, width - max(width // 2, len(half)) - 1)


def _notes(notes: tuple[str, ...]) -> list[str]:
    return [f"Note: {note}" for note in notes]


def _plain(value: Any) -> Any:
    if isinstance(value, NamedMatrix):
        value = value.values
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
