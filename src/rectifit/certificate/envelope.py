"""The convex envelope of one sample's loss with borrowed or lent curvature.

For a sample with loss f(u) = (max(0, u) - y)^2 and any c > -1 let h(u) = f(u) + c u^2, and let env be the
convex envelope of h on [l, U], extended convexly beyond. Then

    e(u) = env(u) - c u^2  <=  f(u)     for l <= u <= U,

and if ridge - sum_i c_i z_i z_i' is positive semidefinite, the sum of all e_i plus the ridge is convex in the
coefficients: samples with c < 0 lend curvature, those with c > 0 borrow it. All envelopes have the form

    env(u) = constant + slope u + right (u - t)_+^2 + jump (u - t)_+ + left (a - u)_+^2.

    kind     known     envelope
    ON       u >= 0    h itself, (1 + c) u^2 - 2 y u + y^2
    OFF      u <= 0    c = 0: y^2; c < 0: the chord of y^2 + c u^2 from l to 0; a penalty for u > 0
    CONVEX   y <= 0    c = 0: f itself; c < 0: the chord from l to 0 and then h, or, where the chord is
                       steeper than h at 0, the tangent from l to h
    FREE     y > 0     c > 0: the line that touches h left of 0 at a and right of 0 at t; otherwise, or if
                       a < l, the tangent from l to h at t; if t > U, a line that ends at (U, h(U))
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit.problem import Mask, Vector

__all__ = ["CONVEX", "FREE", "OFF", "ON", "Envelopes", "Kinds", "make_envelopes"]

Kinds = npt.NDArray[np.int8]
CONVEX, FREE, ON, OFF = 0, 1, 2, 3
# Weight of the penalty for u > 0 of a sample that is OFF.
PENALTY = 100.0


class Envelopes(NamedTuple):
    """One entry per sample; the chord is the segment [a, t] on which the envelope is a line below h.

    The line goes on to the left of a where `left` is 0. For ON samples only c matters.
    """

    constant: Vector
    slope: Vector
    right: Vector
    t: Vector
    jump: Vector
    left: Vector
    a: Vector
    has_chord: Mask


def make_envelopes(kind: Kinds, y: Vector, l: Vector, U: Vector, c: Vector) -> Envelopes:  # noqa: E741
    """Envelopes of all samples; l and U may be infinite, and c < 0 needs a finite l unless ON."""
    square = y * y
    one = 1.0 + c
    finite = l > -np.inf
    low = np.where(finite, np.minimum(l, 0.0), 0.0)
    # CONVEX and OFF: the chord of y^2 + c u^2 from l to 0.
    chord_slope = np.where(c < 0.0, c * low, 0.0)
    constant, slope, t = square.copy(), chord_slope, np.zeros_like(y)
    right = np.where(kind == OFF, PENALTY, one)
    jump = np.where(kind == CONVEX, -2.0 * y - chord_slope, 0.0)
    left, a = np.zeros_like(y), low.copy()
    has_chord = finite & (kind != ON)

    # The tangent from l to the right branch of h.
    steep = (kind == CONVEX) & (jump < 0.0)
    free = kind == FREE
    with np.errstate(invalid="ignore", divide="ignore"):
        touch = np.where(finite, low + np.sqrt((low * low - 2.0 * y * low) / one), y)
        root = np.sqrt(np.where(c > 0.0, c, 0.0) * one)
        bitangent = y / (one + root)
        reach = np.where(c > 0.0, -bitangent * np.sqrt(one / np.where(c > 0.0, c, 1.0)), -np.inf)
    both = free & (c > 0.0) & (reach >= l)
    tangent = steep | free
    t = np.where(both, bitangent, np.where(tangent, touch, t))
    a = np.where(both, reach, a)
    left = np.where(both, c, left)
    slope = np.where(tangent, 2.0 * one * t - 2.0 * y, slope)
    constant = np.where(tangent, square - one * t * t, constant)
    jump = np.where(tangent, 0.0, jump)
    has_chord = np.where(free, finite | both, has_chord)

    # Where h would be touched beyond U: a line that ends at (U, h(U)), and h from there on.
    beyond = tangent & (t > U)
    if beyond.any():
        upper = np.where(beyond, U, 0.0)
        at = one * upper * upper - 2.0 * y * upper + square
        with np.errstate(invalid="ignore", divide="ignore"):
            # From there to the left: the tangent to y^2 + c u^2, if it touches right of l; otherwise to l.
            start = upper - np.sqrt(
                np.maximum(upper * upper - (at - square) / np.where(c > 0.0, c, 1.0), 0.0)
            )
            touching = beyond & (c > 0.0) & (start >= l)
            to_low = (at - square - c * low * low) / (upper - low)
        ending = beyond & finite & ~touching
        # Without a lower end the best line is flat.
        line = np.where(touching, 2.0 * c * start, np.where(ending, to_low, 0.0))
        slope = np.where(beyond, line, slope)
        constant = np.where(beyond, at - line * upper, constant)
        a = np.where(touching, start, np.where(beyond, low, a))
        left = np.where(touching, c, np.where(beyond, 0.0, left))
        t = np.where(beyond, upper, t)
        jump = np.where(beyond, np.maximum(2.0 * one * upper - 2.0 * y - line, 0.0), jump)
        has_chord = has_chord & ~(beyond & ~touching & ~finite)
    return Envelopes(constant, slope, right, t, jump, left, a, has_chord)
