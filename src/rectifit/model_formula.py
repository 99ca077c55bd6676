"""What a model file keeps of a formula: its terms, the levels of categories and what functions learned.

A model file is data that people exchange. Its formula is checked like one that is typed: nothing but columns,
arithmetic and a short list of functions is ever evaluated.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from rectifit.formulas import FormulaEncoding, Level
from rectifit.model_sums import Record

__all__ = ["FormulaRecord"]

Text = Annotated[str, Field(min_length=1, max_length=1000)]
Number = int | float | bool | None
# Numbers, lists of numbers, and matrices; the numbers of a polynomial are named by their degrees.
State = Number | tuple[Number, ...] | tuple[tuple[Number, ...], ...] | dict[str, float]


class FormulaRecord(Record):
    """`FormulaEncoding` as plain data.

    Attributes
    ----------
    terms, has_intercept, names, levels, states : as in `FormulaEncoding`
    """

    terms: Annotated[tuple[Annotated[tuple[Text, ...], Field(min_length=1)], ...], Field(max_length=5000)]
    has_intercept: bool
    names: tuple[str, ...]
    levels: dict[str, tuple[Level, ...]]
    states: dict[str, dict[str, State]]

    @model_validator(mode="after")
    def _check(self) -> Self:
        encoding = self.read()
        # Reads every expression.
        if not encoding.columns:
            raise ValueError("'formula' must use a column")
        if not set(self.levels) <= set(encoding.factors):
            raise ValueError("'formula.levels' names a factor that is not in 'formula.terms'")
        return self

    @classmethod
    def of(cls, encoding: FormulaEncoding) -> Self:
        """That of an encoding."""
        read: Self = cls.model_validate(
            {
                "terms": encoding.terms,
                "has_intercept": encoding.has_intercept,
                "names": encoding.names,
                "levels": dict(encoding.levels),
                "states": {text: _freeze(state) for text, state in encoding.states.items()},
            }
        )
        return read

    def read(self) -> FormulaEncoding:
        """The encoding."""
        return FormulaEncoding(self.terms, self.has_intercept, self.names, self.levels, self.states)


def _freeze(value: object) -> object:
    """Lists as tuples."""
    if isinstance(value, dict):
        return {key: _freeze(entry) for key, entry in value.items()}
    return tuple(map(_freeze, value)) if isinstance(value, list) else value
