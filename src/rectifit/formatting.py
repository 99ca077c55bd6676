"""How numbers are written for people: the same in the terminal, on pages and in messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = [
    "NOTHING",
    "match_error",
    "write_amount",
    "write_count",
    "write_duration",
    "write_level",
    "write_number",
    "write_objective",
    "write_p",
    "write_share",
    "write_z",
]

# Stands where there is no number.
NOTHING = "-"
# Significant digits of a standard error.
ERROR_DIGITS = 3
# Digits of an estimate, however small its standard error is; larger numbers are written with powers of ten.
MAX_DIGITS = 8
# Where more decimals than this are needed, numbers with a smaller exponent are written with powers of ten.
MAX_DECIMALS = 6
MIN_EXPONENT = -3


def match_error(std_error: float) -> Callable[[float], str]:
    """A writer for an estimate, its standard error and the ends of its interval.

    All of them end at the same decimal, the third significant digit of the standard error. Where that decimal
    is far from the point, numbers are written with powers of ten; none has more than eight digits. Without a
    standard error, numbers have four digits.

    Examples
    --------
    >>> list(map(match_error(0.1949), [1.30528, 0.1949, -0.000049]))
    ['1.305', '0.195', '0.000']
    >>> list(map(match_error(0.00014), [-0.00005, 0.00014]))
    ['-0.000050', '0.000140']
    >>> list(map(match_error(1.4e-10), [-5.1e-10, 1.4e-10, 2.0]))
    ['-5.10e-10', '1.40e-10', '2.0000000']
    >>> list(map(match_error(2345.6), [34567.8, 2345.6])), match_error(float("nan"))(1.0)
    (['34568', '2346'], '1')
    """
    if not (np.isfinite(std_error) and std_error > 0.0):
        return write_number
    decimals = ERROR_DIGITS - 1 - _exponent(std_error, ERROR_DIGITS)

    def write(value: float) -> str:
        if not np.isfinite(value):
            return write_number(value)
        exponent = _exponent(value, MAX_DIGITS)
        if exponent >= MAX_DIGITS - 1 or (decimals > MAX_DECIMALS and value and exponent < MIN_EXPONENT):
            return _write(value, f".{min(max(exponent + decimals, 0), MAX_DIGITS - 1)}e")
        return _write(value, f".{max(min(decimals, MAX_DIGITS - 1 - max(exponent, 0)), 0)}f")

    return write


def _exponent(value: float, digits: int) -> int:
    """The power of ten of a number that is rounded to so many digits."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def write_number(value: float, digits: int = 4, missing: str = NOTHING) -> str:
    """A number with this many significant digits, or the text for a missing one.

    Examples
    --------
    >>> write_number(42.91873), write_number(2424.0), write_number(float("nan"))
    ('42.92', '2424', '-')
    """
    return _write(value, f".{digits}g", missing)


def write_objective(value: float) -> str:
    """A sum of squares, with enough digits to tell similar fits apart.

    Examples
    --------
    >>> write_objective(4655179.5312)
    '4655179.5'
    """
    return write_number(value, 8)


def write_amount(value: float) -> str:
    """A number in running text, with separated thousands where it is large.

    Examples
    --------
    >>> write_amount(4655179.53), write_amount(0.0123456789), write_amount(1407.674)
    ('4,655,180', '0.0123457', '1,407.67')
    """
    if not 1e3 <= abs(value) < 1e12:
        return write_number(value, 6)
    return f"{value:,.{max(5 - int(np.log10(abs(value))), 0)}f}"


def write_count(n: int, noun: str) -> str:
    """A number of things, in the plural unless there is one.

    Examples
    --------
    >>> write_count(1, "node"), write_count(5133, "node")
    ('1 node', '5,133 nodes')
    """
    return f"{n:,} {noun}{'s' * (n != 1)}"


def write_z(value: float) -> str:
    """A ratio to a standard error.

    Examples
    --------
    >>> write_z(-12.345), write_z(1.5e13), write_z(float("nan"))
    ('-12.35', '1.5e+13', '-')
    """
    return _write(value, ".2f" if abs(value) < 1e4 else ".2g")


def write_p(value: float) -> str:
    """A p-value.

    Examples
    --------
    >>> write_p(0.04321), write_p(1e-9), write_p(float("nan"))
    ('0.043', '< 0.001', '-')
    """
    return "< 0.001" if value < 0.001 else _write(value, ".3f")


def write_share(value: float) -> str:
    """A share in percent; only nothing is written as 0 %, and only all as 100 %.

    Examples
    --------
    >>> [write_share(value) for value in (0.0, 0.0001234, 0.25, 0.9999, 1.0)]
    ['0 %', '0.0123 %', '25 %', '99.99 %', '100 %']
    """
    percent = 100.0 * value
    if 99.0 < percent < 100.0:
        return f"{min(percent, 99.99):.4g} %"
    return f"{percent:.3g} %"


def write_level(level: float) -> str:
    """The probability of an interval in percent, unrounded.

    Examples
    --------
    >>> write_level(0.95), write_level(0.99999)
    ('95 %', '99.999 %')
    """
    return f"{100.0 * level:g} %"


def write_duration(seconds: float) -> str:
    """Seconds, or milliseconds below one second.

    Examples
    --------
    >>> write_duration(12.34), write_duration(0.0123), write_duration(0.000123)
    ('12.3 s', '12 ms', '0.12 ms')
    """
    if seconds >= 1.0:
        return f"{seconds:.1f} s"
    milliseconds = 1000.0 * seconds
    return f"{milliseconds:.0f} ms" if milliseconds >= 10.0 else f"{milliseconds:.2g} ms"


def _write(value: float, spec: str, missing: str = NOTHING) -> str:
    if np.isnan(value):
        return missing
    text = f"{value:{spec}}"
    # No minus sign before a number that is rounded to 0.
    return text[1:] if text.startswith("-") and float(text) == 0.0 else text
