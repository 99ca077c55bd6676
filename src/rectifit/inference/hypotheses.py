"""Linear hypotheses about estimates, R theta = r, as text or as matrices.

    hypotheses = side "=" side ... , ...     side = term +- term ...
    term = factor */ factor ...              factor = number, name, `name`, "(" side ")", with signs before it

An equation may stand in parentheses. A side that stands alone is equal to 0. Products of two names are not
linear and are refused. Names of any kind may stand as they are, such as C(region)[T.north] or a:b; where the
text goes on with several of them, the longest is meant, and `backticks` settle the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_array
from rectifit.formatting import write_number

__all__ = ["Hypotheses", "describe", "read_hypotheses"]

NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
TOKENS = rf"(?P<number>{NUMBER})(?![\w.])|`(?P<quoted>[^`]+)`|(?P<name>[^\W\d][\w.]*)|(?P<sign>[-+*/(),=])"
PLAIN_NAME = re.compile(r"[^\W\d][\w.]*")
ALLOWED = "equations such as '2*a - b = 3, c = 0'"
# The intercept as formulaic and patsy call it.
INTERCEPT = {"Intercept": "intercept"}
END = "the end"


class Hypotheses(NamedTuple):
    """R theta = r."""

    R: Matrix
    r: Vector


def read_hypotheses(hypotheses: Any, names: Sequence[str]) -> Hypotheses:
    """Hypotheses as a user gives them, checked.

    Parameters
    ----------
    hypotheses : str, sequence of str, matrix R, or pair (R, r)
        Equations that are separated by commas; or one row per hypothesis and one column per estimate. Without
        r, it is 0.
    names : of the estimates

    Examples
    --------
    >>> R, r = read_hypotheses("2*educ - exper = 3, `price of bread`", ["educ", "exper", "price of bread"])
    >>> R.tolist(), r.tolist()
    ([[2.0, -1.0, 0.0], [0.0, 0.0, 1.0]], [3.0, 0.0])
    """
    if isinstance(hypotheses, list | tuple) and all(isinstance(text, str) for text in hypotheses):
        hypotheses = ", ".join(hypotheses)
    found = _parse(hypotheses, names) if isinstance(hypotheses, str) else _read_matrices(hypotheses, names)
    if not found.R.any(axis=1).all():
        raise ValueError(
            "hypotheses has one that is about no estimate; each must have one with a factor not 0"
        )
    return found


def describe(hypotheses: Hypotheses, names: Sequence[str]) -> str:
    """Hypotheses as text that can be read again.

    Examples
    --------
    >>> describe(Hypotheses(np.array([[2.0, -1.0], [0.0, 1.0]]), np.array([3.0, 0.0])), ["educ", "x 1"])
    '2*educ - `x 1` = 3, `x 1` = 0'
    """
    words = [name if PLAIN_NAME.fullmatch(name) else f"`{name}`" for name in names]
    return ", ".join(
        f"{_write_sum(row.tolist(), words)} = {write_number(value, 6)}"
        for row, value in zip(hypotheses.R, hypotheses.r.tolist(), strict=True)
    )


def _write_sum(factors: Iterable[float], words: Sequence[str]) -> str:
    text = ""
    for factor, word in zip(factors, words, strict=True):
        if factor == 0.0:
            continue
        sign = ("-" if factor < 0.0 else "") if not text else (" - " if factor < 0.0 else " + ")
        size = "" if abs(factor) == 1.0 else f"{write_number(abs(factor), 6)}*"
        text += sign + size + word
    return text


def _read_matrices(hypotheses: Any, names: Sequence[str]) -> Hypotheses:
    R, r = hypotheses if isinstance(hypotheses, tuple) and len(hypotheses) == 2 else (hypotheses, 0.0)
    if not hasattr(R, "__len__"):
        raise TypeError(f"hypotheses is {hypotheses!r}; it must be {ALLOWED}, a matrix R or a pair (R, r)")
    R = check_array(np.atleast_2d(np.asarray(R)), "hypotheses", dimensions=2).astype(np.float64)
    r = check_array(np.atleast_1d(np.asarray(r)), "r of hypotheses", dimensions=1).astype(np.float64)
    if R.shape[1] != len(names):
        raise ValueError(
            f"hypotheses has {R.shape[1]} columns; it must have {len(names)}, one for each of "
            f"{', '.join(names)}"
        )
    if r.size not in (1, len(R)):
        raise ValueError(f"r of hypotheses has {r.size} entries; it must have {len(R)}, one per row of R")
    return Hypotheses(R, np.broadcast_to(r, len(R)).copy())


def _parse(text: str, names: Sequence[str]) -> Hypotheses:
    lines = np.array(_Parser(text, names).read())
    # No minus sign before a 0.
    return Hypotheses(lines[:, :-1], 0.0 - lines[:, -1])


class _Parser:
    """Reads sums as vectors: a factor for every name, and a constant."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.text, self.names = text, list(names)
        self.tokens = self._split()
        self.place = 0

    def _split(self) -> list[tuple[str, str]]:
        """Kinds and texts of the tokens; of all names that the text goes on with, the longest is meant."""
        # A name such as `2` is taken for the number unless it is quoted.
        names = [name for name in self.names if not re.fullmatch(NUMBER, name)]
        known = "|".join(
            # No beginning of a longer word.
            re.escape(name) + (r"(?![\w.])" if re.search(r"[\w.]$", name) else "")
            for name in sorted(names, key=len, reverse=True)
        )
        token = re.compile(rf"\s*(?:(?P<known>{known})|{TOKENS})" if known else rf"\s*(?:{TOKENS})")
        tokens, place, end = list[tuple[str, str]](), 0, len(self.text.rstrip())
        while place < end:
            match = token.match(self.text, place)
            if match is None:
                raise self._error(f"{self.text[place:].split()[0]!r} cannot be read")
            tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            place = match.end()
        return [*tokens, ("sign", END)]

    def _error(self, what: str) -> ValueError:
        return ValueError(f"hypotheses is {self.text!r}, where {what}; it must be {ALLOWED}")

    def _accept(self, signs: str) -> str:
        """The next token if it is one of these signs, else nothing."""
        kind, token = self.tokens[self.place]
        if kind != "sign" or token not in signs:
            return ""
        self.place += 1
        return token

    def read(self) -> list[Vector]:
        """left - right of all equations."""
        lines = list[Vector]()
        while True:
            n_enclosing = 0
            while self._encloses_equation():
                self.place, n_enclosing = self.place + 1, n_enclosing + 1
            sides = [self._sum()]
            while self._accept("="):
                sides.append(self._sum())
            lines += [left - right for left, right in pairwise(sides)] if len(sides) > 1 else sides
            if not all(self._accept(")") for _ in range(n_enclosing)):
                raise self._unexpected()
            if self.tokens[self.place][1] == END:
                return lines
            if not self._accept(","):
                raise self._unexpected()

    def _encloses_equation(self) -> bool:
        """Whether a parenthesis begins here that has an equals sign in it."""
        depth = 0
        for kind, token in self.tokens[self.place :]:
            depth += (kind == "sign") * ((token == "(") - (token == ")"))
            if depth == 0:
                return False
            if kind == "sign" and token == "=":
                return True
        return False

    def _unexpected(self) -> ValueError:
        before = f"after {self.tokens[self.place - 1][1]!r} " if self.place else ""
        token = self.tokens[self.place][1]
        return self._error(f"{token if token == END else repr(token)} is unexpected {before}".rstrip())

    def _sum(self) -> Vector:
        total = self._product()
        while sign := self._accept("+-"):
            total = total + (1.0 if sign == "+" else -1.0) * self._product()
        return total

    def _product(self) -> Vector:
        value = self._factor()
        while sign := self._accept("*/"):
            other = self._factor()
            if sign == "*" and not value[:-1].any():
                value, other = other, value
            if other[:-1].any():
                raise self._error("one estimate is multiplied or divided by another")
            if sign == "/" and other[-1] == 0.0:
                raise self._error("something is divided by 0")
            value = value * other[-1] if sign == "*" else value / other[-1]
        return value

    def _factor(self) -> Vector:
        if sign := self._accept("+-"):
            return (1.0 if sign == "+" else -1.0) * self._factor()
        if self._accept("("):
            inner = self._sum()
            if not self._accept(")"):
                raise self._unexpected()
            return inner
        kind, token = self.tokens[self.place]
        if kind == "sign":
            raise self._unexpected()
        self.place += 1
        value = np.zeros(len(self.names) + 1)
        if kind == "number":
            value[-1] = float(token)
        else:
            value[self._find(token)] = 1.0
        return value

    def _find(self, name: str) -> int:
        count = self.names.count(name)
        if count == 1:
            return self.names.index(name)
        if INTERCEPT.get(name) in self.names:
            return self.names.index(INTERCEPT[name])
        if count:
            raise ValueError(
                f"hypotheses has {name!r}, the name of {count} estimates; use a matrix R instead"
            )
        raise ValueError(f"hypotheses has {name!r}; the estimates are {', '.join(self.names)}")
