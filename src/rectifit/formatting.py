"""How numbers are written for people: the same in the terminal, on pages and in messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rectifit._typing import Vector

__all__ = [
    "NOTHING",
    "align",
    "write_amount",
    "write_count",
    "write_duration",
    "write_estimate",
    "write_level",
    "write_number",
    "write_objective",
    "write_p",
    "write_share",
    "write_z",
]

# Stands where there is no number.
NOTHING = "-"
# Significant digits of the smallest number of an aligned table.
MIN_DIGITS = 3
# With more decimals, or more digits before the point, aligned numbers are harder to read than powers of ten.
MAX_DECIMALS = 6
# Numbers below this share of the largest one do not affect the number of decimals.
NEGLIGIBLE_SHARE = 1e-6


def align(values: Sequence[float] | Vector) -> Callable[[float], str]:
    """A writer for these numbers: as many decimals as the smallest of them needs, so that points align.

    Where the numbers differ too much in size, each number is rounded separately.

    Examples
    --------
    >>> list(map(align([0.0123456, -12.3, 0.0]), [0.0123456, -12.3, 0.0]))
    ['0.0123', '-12.3000', '0.0000']
    >>> list(map(align([1e-9, 2.34567e-5]), [1e-9, 2.34567e-5]))
    ['1e-09', '2.346e-05']
    >>> list(map(align([1e-12, 1.0]), [1e-12, 1.0, float("nan")]))
    ['0.00', '1.00', '-']
    """
    sizes = np.abs([value for value in values if np.isfinite(value) and value != 0.0])
    if sizes.size == 0:
        return lambda value: _write(value, f".{MIN_DIGITS}f")
    least = sizes[sizes >= NEGLIGIBLE_SHARE * sizes.max()].min()
    decimals = MIN_DIGITS - 1 - int(np.floor(np.log10(least)))
    if decimals > MAX_DECIMALS or sizes.max() >= 10.0**MAX_DECIMALS:
        return lambda value: _write(value, f".{MIN_DIGITS + 1}g")
    return lambda value: _write(value, f".{max(decimals, 1)}f")


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


def write_estimate(value: float) -> str:
    """A number in a table of fixed width: four decimals, or four digits where it is large or small.

    Examples
    --------
    >>> write_estimate(1.30588), write_estimate(0.0012345), write_estimate(1.5e7)
    ('1.3059', '0.001234', '1.5e+07')
    """
    return f"{value:.4f}" if 0.01 <= abs(value) < 1e6 or value == 0.0 else f"{value:.4g}"


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
