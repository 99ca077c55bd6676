"""How the rows of a table become the columns of a formula; what this learns from the data of a fit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rectifit._typing import Matrix
from rectifit.formulas.expressions import FUNCTIONS, Expression, quote, read_factor
from rectifit.tables.encoding import find_column, find_levels, is_numeric, is_text, read_numbers, shorten

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["HINT", "FormulaEncoding", "Level"]

Level = str | int | float | bool
INTERCEPT = "Intercept"
HINT = "formulas need formulaic; install it with: pip install 'rectifit[formula]'"
# The largest whole number up to which floats have all of them.
MAX_WHOLE = 2**53
# Names of formulaic's own.
RESERVED = "__FORMULAIC"


@dataclass(frozen=True)
class FormulaEncoding:
    """The right-hand side of a formula with all that was learned from the data of the fit.

    Attributes
    ----------
    terms : products of columns and expressions, without the intercept
    has_intercept : whether the model has one, which decides how many levels of a category have a column
    names : names of the features, in the order of the coefficients
    levels : of every category, by the factor in the formula
    states : of functions such as `center` and `bs`, what they learned, by the expression
    """

    terms: tuple[tuple[str, ...], ...]
    has_intercept: bool = True
    names: tuple[str, ...] = ()
    levels: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __str__(self) -> str:
        """The right-hand side of the formula, with all products written out."""
        return " + ".join(":".join(term) for term in self.terms) + " - 1" * (not self.has_intercept)

    @cached_property
    def factors(self) -> dict[str, Expression]:
        """All factors of the terms, checked."""
        texts = dict.fromkeys(text for term in self.terms for text in term)
        return {text: read_factor(text) for text in texts}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are used."""
        found = tuple(
            dict.fromkeys(c for factor in self.factors.values() for c in factor.columns + factor.texts)
        )
        _check_names(found, self.factors)
        return found

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers, as far as this is known before they are seen."""
        others = self._encoded | self._texts
        others |= {self.factors[text].columns[0] for text in self.levels}
        return tuple(column for column in self.columns if column not in others)

    @property
    def _encoded(self) -> set[str]:
        """Columns of C(...)."""
        return {factor.category for factor in self.factors.values() if factor.category is not None}

    @property
    def _texts(self) -> set[str]:
        return {column for factor in self.factors.values() for column in factor.texts}

    def learn(self, frame: pl.DataFrame) -> FormulaEncoding:
        """The encoding that these rows define."""
        matrix = self._build(self._convert(frame))
        spec = matrix.model_spec
        names = tuple(name for name in spec.column_names if name != INTERCEPT)
        texts = {factor.source: text for text, factor in self.factors.items()}
        levels = {
            texts[source]: tuple(map(_plain_level, state["categories"]))
            for source, (_, state) in spec.encoder_state.items()
            if "categories" in state
        }
        states = {text: _plain_state(state) for text, state in spec.transform_state.items() if state}
        return FormulaEncoding(self.terms, self.has_intercept, names, levels, states)

    def encode(self, frame: pl.DataFrame) -> Matrix:
        """The rows of the frame as numbers, one column per name."""
        for text, levels in self.levels.items():
            column = self.factors[text].columns[0]
            unknown = set(_entries(find_column(frame, column))) - set(levels)
            if unknown:
                raise ValueError(
                    f"column {column!r} has the level {min(unknown, key=str)!r}; "
                    f"known levels are {shorten(levels)}"
                )
        matrix = self._build(self._convert(frame))
        if {text for text, state in matrix.model_spec.transform_state.items() if state} != set(self.states):
            raise ValueError("the formula has functions of which nothing is known from the data of the fit")
        first = int(self.has_intercept)
        names = matrix.model_spec.column_names[first:]
        if tuple(names) != self.names:
            raise ValueError(
                f"the formula makes the columns {shorten(names)}; those of the fit are {shorten(self.names)}"
            )
        X = np.ascontiguousarray(np.asarray(matrix, dtype=np.float64)[:, first:])
        is_finite = np.isfinite(X).all(axis=0)
        if not is_finite.all():
            name = self.names[int(np.argmin(is_finite))]
            raise ValueError(
                f"{name!r} has entries that are not finite numbers; change the formula or these rows"
            )
        return X

    def _convert(self, frame: pl.DataFrame) -> pd.DataFrame:
        """The columns that are used, as formulaic takes them."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(HINT) from None

        columns = dict[str, Any]()
        for column in self.columns:
            series = find_column(frame, column)
            is_category = column in self._encoded
            if is_text(series) and (is_category or column in self._texts or self._is_category(column)):
                columns[column] = pd.Categorical(_entries(series), categories=list(_sort_levels(series)))
            elif is_category:
                find_levels(series)
                columns[column] = pd.Series(_entries(series))
            else:
                columns[column] = read_numbers(series, f"numeric, or a category: C({quote(column)})")
        return pd.DataFrame(columns)

    def _is_category(self, column: str) -> bool:
        """Whether a column of text is used as a category everywhere."""
        if self.names and quote(column) not in self.levels and column not in self._encoded:
            # It was a column of numbers in the fit.
            return False
        uses = [factor for factor in self.factors.values() if column in factor.columns]
        return all(factor.is_column or factor.category == column for factor in uses)

    def _build(self, columns: pd.DataFrame) -> Any:
        """formulaic's matrix, with its specification."""
        try:
            from formulaic import ModelSpec, SimpleFormula
            from formulaic.errors import FormulaicError
            from formulaic.parser.types import Factor, Term
        except ImportError:
            raise ImportError(HINT) from None
        factors = {
            text: Factor(factor.source, eval_method="lookup" if factor.is_column else "python")
            for text, factor in self.factors.items()
        }
        intercept = [Term([Factor("1", eval_method="literal")])] * self.has_intercept
        terms = [*intercept, *(Term([factors[text] for text in term]) for term in self.terms)]
        spec = ModelSpec(
            formula=SimpleFormula(terms, _ordering="none"),
            materializer="pandas",
            na_action="ignore",
            output="numpy",
            transform_state={text: _read_state(state) for text, state in self.states.items()},
            encoder_state={
                self.factors[text].source: (Factor.Kind.CATEGORICAL, {"categories": list(levels)})
                for text, levels in self.levels.items()
            },
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return spec.get_model_matrix(columns, context=FUNCTIONS)
            except FormulaicError as error:
                raise ValueError(f"the formula cannot be evaluated: {_first_line(error)}") from None


def _check_names(columns: tuple[str, ...], factors: Mapping[str, Expression]) -> None:
    """ValueError for names under which formulaic would confuse columns with each other, or with functions."""
    seen, sources = dict[str, str](), {factor.source for factor in factors.values() if not factor.is_column}
    for column in columns:
        if "`" in column or not column.strip() or RESERVED in column or column in sources:
            raise ValueError(f"the formula uses the column {column!r}; rename it")
        plain = re.sub(r"\W", "_", column)
        plain = f"_{plain}" if plain[0].isdigit() else plain
        if plain in seen:
            raise ValueError(
                f"the formula cannot tell the columns {seen[plain]!r} and {column!r} apart; rename one"
            )
        seen[plain] = column


def _entries(series: pl.Series) -> list[Level]:
    if series.null_count():
        raise ValueError(f"column {series.name!r} has missing values; every entry must have a level")
    if not (is_text(series) or is_numeric(series)):
        raise ValueError(f"column {series.name!r} is of type {series.dtype}; it must be text or numbers")
    entries: list[Level] = series.to_list()
    # A column of whole numbers is one of floats where other rows have missing values.
    is_whole = series.dtype.is_float() and all(
        isinstance(entry, float) and entry.is_integer() and abs(entry) <= MAX_WHOLE for entry in entries
    )
    return [int(entry) for entry in entries] if is_whole else entries


def _sort_levels(series: pl.Series) -> tuple[str, ...]:
    """Levels in the order of an enumeration, or of the alphabet."""
    import polars as pl

    found = find_levels(series)
    if not isinstance(series.dtype, pl.Enum):
        return found
    return tuple(level for level in series.dtype.categories.to_list() if level in set(found))


def _plain_level(level: Any) -> Level:
    found: Level = level.item() if hasattr(level, "item") else level
    return found


def _plain_state(state: Any) -> Any:
    """What a function learned, as plain data."""
    if isinstance(state, Mapping):
        return {str(key): _plain_state(value) for key, value in state.items()}
    if isinstance(state, np.ndarray | np.generic):
        return _plain_state(state.tolist())
    return [_plain_state(entry) for entry in state] if isinstance(state, list | tuple) else state


def _read_state(state: Any) -> Any:
    """The same as formulaic has it: numbers as keys, matrices as arrays."""
    if isinstance(state, Mapping):
        return {int(key) if key.isdigit() else key: _read_state(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        is_matrix = bool(state) and isinstance(state[0], list | tuple)
        return np.array(state) if is_matrix else list(state)
    return state


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
