"""Numbers as people read them, alike in the terminal and on pages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rectifit._typing import Vector

__all__ = ["NOTHING", "round_together", "write_amount", "write_duration", "write_p", "write_share", "write_z"]

# Digits of the smallest number, and more decimals or digits before the point than people like to read.
DIGITS, MOST_DECIMALS = 3, 6
# Numbers this much smaller than the largest do not decide on the decimals.
NEGLIGIBLE = 1e-6
# What stands where there is no number.
NOTHING = "-"


def round_together(values: Sequence[float] | Vector) -> list[str]:
    """Numbers with as many decimals as the smallest of them needs, so that their points align.

    Where that would be too many, each has its own.

    Examples
    --------
    >>> round_together([0.0123456, -12.3, 0.0])
    ['0.0123', '-12.3000', '0.0000']
    >>> round_together([1e-9, 2.34567e-5])
    ['1e-09', '2.346e-05']
    >>> round_together([1e-12, 1.0, float("nan")])
    ['0.00', '1.00', '-']
    """
    sizes = np.abs([value for value in values if np.isfinite(value) and value != 0.0])
    if sizes.size == 0:
        return [_write(value, f".{DIGITS}f") for value in values]
    least = sizes[sizes >= NEGLIGIBLE * sizes.max()].min()
    decimals = DIGITS - 1 - int(np.floor(np.log10(least)))
    if decimals > MOST_DECIMALS or sizes.max() >= 10.0**MOST_DECIMALS:
        return [_write(value, f".{DIGITS + 1}g") for value in values]
    return [_write(value, f".{max(decimals, 1)}f") for value in values]


def write_z(value: float) -> str:
    """A ratio to its standard error.

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
    """A share in percent, never rounded to nothing or to all of it.

    Examples
    --------
    >>> [write_share(value) for value in (0.0, 0.0001234, 0.25, 0.9999, 1.0)]
    ['0 %', '0.0123 %', '25 %', '99.99 %', '100 %']
    """
    percent = 100.0 * value
    if 99.0 < percent < 100.0:
        return f"{min(percent, 99.99):.4g} %"
    return f"{percent:.3g} %"


def write_amount(value: float) -> str:
    """One number for itself, with separated thousands where it is large.

    Examples
    --------
    >>> write_amount(4655179.53), write_amount(0.0123456789), write_amount(1407.674)
    ('4,655,180', '0.0123457', '1,407.67')
    """
    if not 1e3 <= abs(value) < 1e12:
        return f"{value:.6g}"
    return f"{value:,.{max(5 - int(np.log10(abs(value))), 0)}f}"


def write_duration(seconds: float) -> str:
    """Seconds, or milliseconds where there are few.

    Examples
    --------
    >>> write_duration(0.0123), write_duration(12.34)
    ('12 ms', '12.3 s')
    """
    return f"{seconds:.1f} s" if seconds >= 1.0 else f"{1000.0 * seconds:.0f} ms"


def _write(value: float, form: str) -> str:
    if np.isnan(value):
        return NOTHING
    text = f"{value:{form}}"
    # No minus before nothing but zeros.
    return text[1:] if text.startswith("-") and float(text) == 0.0 else text
