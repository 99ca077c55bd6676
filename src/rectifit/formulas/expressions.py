"""Which expressions a formula may have.

A formula is written by a user, or read from a model file that somebody else has written, and formulaic hands
its expressions to Python. So each of them is parsed here first, and must consist of nothing but columns,
numbers, arithmetic, comparisons and calls of the functions below: no attributes, no subscripts, no other
names. Powers have small constant exponents and options small numbers, so that no expression can take for
ever. The same holds for formulas that are typed, so that every fit can be stored.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FUNCTIONS", "STATEFUL", "Expression", "quote", "read_expression", "read_factor"]

# Of one column or more, entry by entry.
FUNCTIONS: dict[str, Any] = {
    name: getattr(np, name)
    for name in (
        *("abs", "ceil", "cos", "exp", "expm1", "floor", "log", "log10", "log1p", "log2"),
        *("maximum", "minimum", "sign", "sin", "sqrt", "square"),
    )
}
# Of one column, with options; what they learn from the data of the fit is stored.
STATEFUL = ("bs", "cc", "center", "cr", "cs", "poly", "scale", "standardize")
# How levels of a category become columns.
CONTRASTS = ("SAS", "diff", "helmert", "poly", "sum", "treatment")
# The same in the manner of patsy.
PATSY_CONTRASTS = ("Diff", "Helmert", "Poly", "Sum", "Treatment")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
MAX_EXPONENT = 20
# Degrees, numbers of knots and of columns.
MAX_OPTION = 1000
# Levels that are whole numbers.
MAX_LEVEL = 2**53
MAX_LENGTH = 1000
# A name in backticks, or a text.
TOKEN = re.compile(r"`([^`'\"\\{}]+)`|'[^'\"`\\{}]*'|\"[^'\"`\\{}]*\"")
# Would end, or escape in, the texts into which formulaic puts names and entries.
FORBIDDEN = set("\\\"'`{}\n\r\t\0")


@dataclass(frozen=True)
class Expression:
    """A checked factor of a formula: a column, or an expression.

    Attributes
    ----------
    source : as formulaic knows it: the name of the column, or the expression
    columns : that it uses
    category : the column whose levels it encodes, of C(column)
    texts : columns that it compares with texts
    is_column : whether it is a column
    """

    source: str
    columns: tuple[str, ...]
    category: str | None = None
    texts: tuple[str, ...] = ()
    is_column: bool = False


def quote(column: str) -> str:
    """A column as it stands in a formula.

    Examples
    --------
    >>> quote("age"), quote("wind speed")
    ('age', '`wind speed`')
    """
    return column if column.isidentifier() else f"`{column}`"


def read_factor(text: str) -> Expression:
    """Check a factor of a formula: a column, in backticks unless it is a name of Python, or an expression.

    Examples
    --------
    >>> read_factor("`wind speed`").source, read_factor("log(age)").columns
    ('wind speed', ('age',))
    """
    is_quoted = len(text) > 2 and text[0] == text[-1] == "`" and text.count("`") == 2
    column = text[1:-1] if is_quoted else text
    return Expression(column, (column,), is_column=True) if quote(column) == text else read_expression(text)


def read_expression(text: str) -> Expression:
    """Check an expression of a formula; ValueError for anything that is not allowed.

    Examples
    --------
    >>> read_expression("np.log(`wind speed` + 1)").columns
    ('wind speed',)
    >>> read_expression("open('file')")
    Traceback (most recent call last):
        ...
    ValueError: the formula calls 'open'; it may call C, I, bs, cc, center, cr, cs, poly, scale, \
standardize, abs, ceil, cos, exp, expm1, floor, log, log10, log1p, log2, maximum, minimum, sign, sin, \
sqrt, square; compute other columns before the fit
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(
            f"the formula has an expression of {len(text):,} characters; the limit is {MAX_LENGTH:,}"
        )
    code, aliases = _replace_names(text)
    try:
        body = ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"the formula has {text!r}, which is not an expression") from None
    if not isinstance(body, ast.Call):
        raise ValueError(f"the formula has {text!r}; write I({text}) for arithmetic")
    reader = _Reader(text, aliases)
    name = reader.function(body)
    category = None
    if name == "C":
        category = reader.category(body)
    else:
        reader.call(body)
    columns = tuple(dict.fromkeys(reader.columns))
    if not columns:
        raise ValueError(f"the formula has {text!r}, which uses no column")
    return Expression(text, columns, category, tuple(dict.fromkeys(reader.texts)))


def _replace_names(text: str) -> tuple[str, dict[str, str]]:
    """The expression with a name of Python for every name in backticks, and what these names stand for.

    Names in backticks have no quotation marks, and texts no backticks or backslashes: then there is only one
    way to read them, which is formulaic's, too.
    """
    rest, prefix, aliases = TOKEN.sub("", text), "column", dict[str, str]()
    if set(rest) & FORBIDDEN:
        raise ValueError(f"the formula has {text!r}, which cannot be read")
    while prefix in text:
        prefix += "_"

    def replace(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        alias = next(
            (known for known, name in aliases.items() if name == found[1]), f"{prefix}{len(aliases)}"
        )
        aliases[alias] = found[1]
        return f" {alias} "

    return TOKEN.sub(replace, text).strip(), aliases


class _Reader:
    """Walks through an expression, and refuses what it does not know."""

    def __init__(self, text: str, aliases: dict[str, str]) -> None:
        self.text = text
        self.aliases = aliases
        self.columns: list[str] = []
        self.texts: list[str] = []

    def function(self, node: ast.Call) -> str:
        """The function that is called."""
        target = node.func
        if isinstance(target, ast.Name) and target.id in ("C", "I", *STATEFUL, *FUNCTIONS):
            return target.id
        is_numpy = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
        if is_numpy and target.value.id == "np" and target.attr in FUNCTIONS:  # type: ignore[attr-defined]
            return str(target.attr)  # type: ignore[attr-defined]
        raise ValueError(
            f"the formula calls {ast.unparse(target)!r}; it may call "
            f"{', '.join(('C', 'I', *STATEFUL, *FUNCTIONS))}; compute other columns before the fit"
        )

    def call(self, node: ast.Call) -> None:
        name = self.function(node)
        if name == "C":
            self.refuse("C(...) must not be part of another expression")
        if name in STATEFUL:
            if not node.args:
                self.refuse(f"{name} needs a column")
            self.numbers(node.args[0])
            for option in (*node.args[1:], *(keyword.value for keyword in node.keywords)):
                self.option(option)
        else:
            n = 2 if name in ("maximum", "minimum") else 1
            if node.keywords or len(node.args) != n:
                self.refuse(f"{name} takes {n} argument{'s' * (n > 1)}")
            for argument in node.args:
                self.numbers(argument)
        self.check_keywords(node)

    def category(self, node: ast.Call) -> str:
        """The column of C(column), C(column, contrasts) or C(column, levels=[...])."""
        if not node.args or not isinstance(node.args[0], ast.Name):
            self.refuse("C takes the name of a column, and optionally contrasts")
        for argument in node.args[1:]:
            self.contrasts(argument)
        for keyword in node.keywords:
            if keyword.arg == "contrasts":
                self.contrasts(keyword.value)
            elif keyword.arg == "levels":
                self.option(keyword.value, MAX_LEVEL)
            else:
                self.refuse(f"C does not take {keyword.arg!r} here")
        assert isinstance(node.args[0], ast.Name)
        return self.column(node.args[0])

    def contrasts(self, node: ast.expr) -> None:
        """contr.treatment, contr.treatment("north"), contr.sum and the like."""
        target = node.func if isinstance(node, ast.Call) else node
        is_patsy = isinstance(target, ast.Name) and target.id in PATSY_CONTRASTS
        is_known = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
        if not is_patsy and not (is_known and target.value.id == "contr" and target.attr in CONTRASTS):  # type: ignore[attr-defined]
            self.refuse(f"contrasts must be one of {', '.join(f'contr.{name}' for name in CONTRASTS)}")
        if isinstance(node, ast.Call):
            for option in (*node.args, *(keyword.value for keyword in node.keywords)):
                self.option(option, MAX_LEVEL)
            self.check_keywords(node)

    def numbers(self, node: ast.expr) -> None:
        """An expression of columns and numbers."""
        if isinstance(node, ast.Name):
            self.column(node)
        elif isinstance(node, ast.Constant):
            self.number(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
            self.numbers(node.operand)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, OPERATORS):
            self.numbers(node.left)
            self.numbers(node.right)
            if isinstance(node.op, ast.Pow):
                exponent = _literal(node.right)
                if exponent is None or abs(exponent) > MAX_EXPONENT:
                    self.refuse(f"exponents must be numbers up to {MAX_EXPONENT}")
                if not any(isinstance(part, ast.Name) for part in ast.walk(node.left)):
                    self.refuse("only expressions with columns have exponents")
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], COMPARISONS):
            for side, other in self.sides(node):
                if isinstance(side, ast.Constant) and isinstance(side.value, str):
                    self.option(side)
                    if not isinstance(other, ast.Name):
                        self.refuse("a text is compared with a column")
                    self.texts.append(self.name_of(other))  # type: ignore[arg-type]
                else:
                    self.numbers(side)
        elif isinstance(node, ast.Call):
            self.call(node)
        else:
            self.refuse(f"{ast.unparse(node)!r} is not allowed")

    def sides(self, node: ast.Compare) -> Iterator[tuple[ast.expr, ast.expr]]:
        left, right = node.left, node.comparators[0]
        yield left, right
        yield right, left

    def number(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.refuse(f"{ast.unparse(node)!r} is not a number")

    def option(self, node: ast.expr, limit: int = MAX_OPTION) -> None:
        """A number, a truth value, a text, or a list of these."""
        if isinstance(node, ast.List | ast.Tuple):
            for part in node.elts:
                self.option(part, limit)
            return
        value = node.value if isinstance(node, ast.Constant) else _literal(node)
        is_size = isinstance(value, int) and abs(value) <= limit
        is_number = isinstance(value, float) and math.isfinite(value)
        is_text = isinstance(value, str) and not FORBIDDEN & set(value)
        if not (is_size or is_number or is_text or (isinstance(node, ast.Constant) and value is None)):
            self.refuse(f"the option {ast.unparse(node)!r} is not allowed")

    def check_keywords(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg.startswith("_"):
                self.refuse(f"the option {keyword.arg!r} is not allowed")

    def column(self, node: ast.Name) -> str:
        name = self.name_of(node)
        self.columns.append(name)
        return name

    def name_of(self, node: ast.Name) -> str:
        return self.aliases.get(node.id, node.id)

    def refuse(self, reason: str) -> None:
        raise ValueError(f"the formula has {self.text!r}: {reason}")


def _literal(node: ast.expr) -> float | int | None:
    """The number that is written here, with its sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        value = _literal(node.operand)
        return value if value is None or isinstance(node.op, ast.UAdd) else -value
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value) if isinstance(node.value, float) else int(node.value)  # type: ignore[arg-type]
    return None
