"""The loss of one sample as a convex piece of its pre-activation u.

Every sample of the surrogate F_I, and the plain quadratic, has the same shape: the quadratic (u - y)^2
to the right of a kink c, the constant y^2 to its left,

    piece(u) = (u - y)^2   if u > c,   else   y^2,

    kind           kink c        which samples
    active         -infinity     y > 0, in the active set I       (also the plain quadratic of any sample)
    inactive       2 y           y > 0, outside I: sigma(u, y)
    non-positive   0             y <= 0: (max(0, u) - y)^2

At c the value is continuous, because |c - y| = |y|, and the slope jumps from 0 to 2 |y|.

A smoothed piece has no jump: its slope rises linearly from 0 at c - h to 2 (c + h - y) at c + h. To the right
it is the quadratic again, h^2 higher.

The functions below take scalars, NumPy arrays or torch tensors and contain no branches, so that compiled code
uses this very source for single samples and the other engines for whole columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "conjugate",
    "inactive_kink",
    "kinks",
    "slope",
    "slope_jump",
    "smoothed_curvature",
    "smoothed_gap",
    "smoothed_slope",
    "smoothed_value",
    "support",
    "value",
]

# A scalar, an array or a tensor: the same expressions serve all of them.
Number = Any


def kinks(y: npt.NDArray[np.float64], active: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Kink c of every sample: -infinity where active and y > 0, otherwise 2 max(y, 0).

    Examples
    --------
    >>> import numpy as np
    >>> kinks(np.array([3.0, 3.0, -1.0]), np.array([True, False, True]))
    array([-inf,   6.,   0.])
    """
    return np.where(active & (y > 0), -np.inf, inactive_kink(y))


def inactive_kink(y: Number) -> Number:
    """Kink 2 max(y, 0) of a sample outside the active set."""
    return y + abs(y)


def value(u: Number, y: Number, c: Number) -> Number:
    """(u - y)^2 right of the kink, y^2 left of it."""
    r = u * (u > c) - y
    return r * r


def slope(u: Number, y: Number, c: Number) -> Number:
    """Derivative 2 (u - y) right of the kink, 0 left of it; at the kink, the left derivative."""
    return 2.0 * (u - y) * (u > c)


def slope_jump(y: Number, c: Number) -> Number:
    """Slope just right of the kink, 2 (c - y) = 2 |y|; -infinity where there is no kink.

    The subdifferential at a kink is the interval from 0 to this number.
    """
    return 2.0 * (c - y)


def conjugate(slope: Number, y: Number, c: Number) -> Number:
    """Fenchel conjugate sup_u (slope * u - piece(u)), for a slope the piece can have.

    Above the jump the supremum lies on the quadratic, at u = slope/2 + y; below it lies at the kink, which is
    then 2 max(y, 0) = y + |y|. A piece with a kink has no negative slopes: there its conjugate is +infinity,
    and the formula does not apply.
    """
    jump = 2.0 * (c - y)
    on_quadratic = (0.25 * slope + y) * slope
    at_kink = slope * (y + abs(y)) - y * y
    return (slope > jump) * on_quadratic + (slope <= jump) * at_kink


def support(u: Number, y: Number, c: Number, slope: Number) -> Number:
    """Value at u of the supporting line with this slope: slope * u - conjugate(slope) <= piece(u)."""
    return slope * u - conjugate(slope, y, c)


def smoothed_curvature(y: Number, h: Number) -> Number:
    """Second derivative of the smoothed piece within h of its kink."""
    return (abs(y) + h) / h


def smoothed_slope(u: Number, y: Number, c: Number, h: Number) -> Number:
    """Derivative of the smoothed piece within h of its kink: a slope of the piece itself at another point."""
    return smoothed_curvature(y, h) * (u - c + h)


def smoothed_value(u: Number, y: Number, c: Number, h: Number) -> Number:
    """The smoothed piece within h of its kink."""
    inside = u - c + h
    return y * y + 0.5 * smoothed_curvature(y, h) * inside * inside


def smoothed_gap(u: Number, y: Number, c: Number, h: Number) -> Number:
    """How far the supporting line with the smoothed slope lies below the piece, within h of the kink."""
    return value(u, y, c) - support(u, y, c, smoothed_slope(u, y, c, h))
