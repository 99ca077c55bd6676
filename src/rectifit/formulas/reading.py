"""A formula as text: its outcome and its terms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rectifit.formulas.encoding import HINT, FormulaEncoding
from rectifit.formulas.expressions import quote

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Formula", "read_formula"]

ALLOWED = 'it must be like "y ~ a + C(b) + a:c"'
# In the limits of what a fit can have; each term has a column at least.
MAX_TERMS = 5000


@dataclass(frozen=True)
class Formula:
    """A formula before it has seen data.

    Attributes
    ----------
    target : column of the outcome; None where there is no left side
    encoding : the right side, with nothing learned yet
    """

    target: str | None
    encoding: FormulaEncoding

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the right side."""
        return self.encoding.columns

    @property
    def numbers(self) -> tuple[str, ...]:
        """Those that are read as numbers."""
        return self.encoding.numbers

    def learn(self, frame: pl.DataFrame) -> FormulaEncoding:
        """The encoding that these rows define."""
        return self.encoding.learn(frame)


def read_formula(text: str, columns: Iterable[str] = ()) -> Formula:
    """Read a formula in the notation of R, patsy and formulaic.

    Parameters
    ----------
    text : such as "hours ~ educ + I(age**2) + C(region)"
    columns : of the table, for a dot, which stands for all columns but the outcome

    Examples
    --------
    >>> formula = read_formula("hours ~ educ + age*C(region) - 1")
    >>> formula.target, formula.encoding.terms, formula.encoding.has_intercept
    ('hours', (('educ',), ('age',), ('C(region)',), ('age', 'C(region)')), False)
    """
    try:
        from formulaic import Formula as Parsed
        from formulaic import SimpleFormula
        from formulaic.errors import FormulaicError
    except ImportError:
        raise ImportError(HINT) from None
    if not isinstance(text, str):
        raise TypeError(f"formula is of type {type(text).__name__}; it must be a text")
    try:
        parsed: Any = Parsed(text, _context={"__formulaic_variables_available__": list(columns)})
    except (FormulaicError, SyntaxError, ValueError, TypeError, NotImplementedError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"formula {text!r} cannot be read; {ALLOWED}: {reason}") from None
    left, right = None, parsed
    if not isinstance(parsed, SimpleFormula):
        if set(parsed._structure) - {"lhs", "rhs"} or not isinstance(parsed.rhs, SimpleFormula):
            raise ValueError(f"formula {text!r} has several parts; {ALLOWED}")
        left, right = parsed.lhs, parsed.rhs
    terms, has_intercept = list[tuple[str, ...]](), False
    for term in right:
        factors = [_write_factor(factor) for factor in term.factors]
        if factors == ["1"]:
            has_intercept = True
        elif any(factor.replace(".", "").isdigit() for factor in factors):
            raise ValueError(f"formula {text!r} has the term {str(term)!r}; write I(...) for arithmetic")
        else:
            terms.append(tuple(factors))
    if len(terms) > MAX_TERMS:
        raise ValueError(f"formula has {len(terms):,} terms; the limit is {MAX_TERMS:,}")
    encoding = FormulaEncoding(tuple(terms), has_intercept)
    # Reads and checks all of them.
    target = None if left is None else _read_target(left, text)
    if target in encoding.columns:
        raise ValueError(f"formula {text!r} has {target!r} on both sides")
    return Formula(target, encoding)


def _write_factor(factor: Any) -> str:
    """A factor as the encoding has it."""
    return quote(factor.expr) if factor.eval_method.value == "lookup" else str(factor.expr)


def _read_target(left: Any, text: str) -> str:
    factors = [factor for term in left for factor in term.factors]
    if len(factors) != 1 or factors[0].eval_method.value != "lookup":
        raise ValueError(
            f"the left side of formula {text!r} must be the name of one column; compute other outcomes before"
        )
    return str(factors[0].expr)
