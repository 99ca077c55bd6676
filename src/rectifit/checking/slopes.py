"""Slopes with which the search over signs supports losses: any slopes are sound, these are the best ones.

With f the loss of a row, lambda is the slope at u of the convex envelope of f - kappa u^2 from low to high.
It rises with u, on at most four pieces, along a line on each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rectifit._typing import Integers, Mask, Matrix, Vector

__all__ = ["Slopes"]


class Slopes(NamedTuple):
    """Slopes of each row: constant + bend u on four pieces, which three breaks separate, in lines."""

    breaks: Matrix
    constant: Matrix
    bend: Matrix
    low: Vector
    high: Vector

    @classmethod
    def empty(cls, low: Vector, high: Vector) -> Slopes:
        """Slopes 0."""
        n = low.size
        return cls(np.full((3, n), np.inf), np.zeros((4, n)), np.zeros((4, n)), low, high)

    @classmethod
    def of(
        cls, w: Vector, y: Vector, kappa: Vector, low: Vector, high: Vector, has_loss: Mask, is_far: bool
    ) -> Slopes:
        """Of losses w (max(0, u) - y)^2, or what they become over all larger scales, and of rows without."""
        with np.errstate(all="ignore"):
            found = near_slopes(w, y, kappa, low, high)
            if is_far:
                found = found.replaced(y > 0.0, far_slopes(w, y, kappa, low, high))
            found = found.replaced(~has_loss, plain_slopes(kappa, low, high))
            breaks = np.where(np.isnan(found.breaks), np.inf, found.breaks)
        constant, bend = (np.where(np.isfinite(part), part, 0.0) for part in found[1:3])
        return cls(breaks, constant, bend, low, high)

    def replaced(self, rows: Mask, other: Slopes) -> Slopes:
        """With some rows of another."""
        return Slopes(*(np.where(rows, *pair) for pair in zip(other, self, strict=True)))

    def piece(self, u: Vector) -> Integers:
        """On which piece each row is."""
        return np.asarray((self.breaks < u).sum(axis=0))

    def on(self, piece: Integers, u: Vector) -> Vector:
        """The slopes of pieces, at u within the ends."""
        rows = np.arange(u.size)
        return np.asarray(
            self.constant[piece, rows] + self.bend[piece, rows] * np.clip(u, self.low, self.high)
        )

    def at(self, u: Vector) -> Vector:
        """The slopes at u."""
        return self.on(self.piece(np.clip(u, self.low, self.high)), u)

    def bends(self, u: Vector) -> Vector:
        """How fast slopes rise at u."""
        return np.asarray(self.bend[self.piece(u), np.arange(u.size)])

    def put(self, rows: Mask, pieces: slice, constant: Vector | float, bend: Vector | float) -> None:
        """Give some rows a line on some pieces."""
        self.constant[pieces] = np.where(rows, constant, self.constant[pieces])
        self.bend[pieces] = np.where(rows, bend, self.bend[pieces])


def near_slopes(w: Vector, y: Vector, kappa: Vector, low: Vector, high: Vector) -> Slopes:
    """Of losses w (max(0, u) - y)^2."""
    found, curve, left = Slopes.empty(low, high), w - kappa, -2.0 * kappa
    right, every = (-2.0 * w * y, 2.0 * curve), slice(None)

    def h(x: Vector) -> Vector:
        return w * np.square(np.maximum(x, 0.0) - y) - kappa * x * x

    # A tangent from the low end to the right branch, which it touches at t, or a chord to the high end.
    t = low + np.sqrt(np.maximum(low * low - (2.0 * w * y * low - kappa * low * low) / curve, 0.0))
    # A line that touches both branches, where the left one is convex, at a and s.
    roots = np.sqrt(np.maximum(-kappa, 0.0)), np.sqrt(np.maximum(curve, 0.0))
    both = -2.0 * w * y * roots[0] / (roots[0] + roots[1])
    a, s = both / left, (both + 2.0 * w * y) / (2.0 * curve)
    touches = (kappa < 0.0) & (y > 0.0) & (a > low)
    start, end = np.where(touches, a, low), np.where(touches, s, t)
    chord = (h(high) - h(low)) / (high - low)
    line = np.where(touches, both, np.where(t > high, chord, right[1] * t + right[0]))
    found.breaks[0], found.breaks[1] = start, end
    mixed = np.ones(w.size, dtype=np.bool_)
    found.put(mixed, slice(0, 1), np.where(kappa < 0.0, 0.0, line), np.where(kappa < 0.0, left, 0.0))
    found.put(mixed, slice(1, 2), line, 0.0)
    found.put(mixed, slice(2, 4), *right)
    # With y <= 0 the left branch ends at 0, unless a line from its end touches the right one.
    short = (y <= 0.0) & ~((kappa > 0.0) & (-kappa * low > -2.0 * w * y))
    off = np.where(kappa > 0.0, -kappa * low, 0.0), np.where(kappa > 0.0, 0.0, left)
    found.breaks[1] = np.where(short, 0.0, found.breaks[1])
    found.put(short, slice(0, 2), *off)
    # Without a low end: the tangent that is level there.
    level = np.isinf(low) & (kappa >= 0.0)
    found.breaks[1] = np.where(level, np.maximum(w * y / curve, 0.0), found.breaks[1])
    found.put(level, slice(0, 2), 0.0, 0.0)
    found.put((high <= 0.0) & (kappa > 0.0), every, -kappa * (low + high), 0.0)
    found.put((high <= 0.0) & (kappa <= 0.0), every, 0.0, left)
    found.put(low >= 0.0, every, *right)
    return found


def far_slopes(w: Vector, y: Vector, kappa: Vector, low: Vector, high: Vector) -> Slopes:
    """Of losses with y > 0 over all larger scales: w y^2 up to 0, and w max(0, u - y)^2 from there on."""
    found, curve, left = Slopes.empty(low, high), w - kappa, -2.0 * kappa
    at, right, every = w * y * y - kappa * low * low, (-2.0 * w * y, 2.0 * curve), slice(None)
    # From the left branch, or from its end, to (0, 0).
    a = -y * np.sqrt(w / np.maximum(-kappa, 0.0))
    touches, is_on, lends = (kappa < 0.0) & (a > low), low >= 0.0, kappa > 0.0
    falls = np.where(touches, left * a, at / low)
    found.breaks[0] = np.where(is_on | ~touches, -np.inf, a)
    found.breaks[1] = np.where(is_on, -np.inf, 0.0)
    found.put(touches, slice(0, 1), 0.0, left)
    found.put(np.ones(w.size, dtype=np.bool_), slice(1, 2), falls, 0.0)
    # From (0, 0), or past it from the low end, to where the right branch is touched.
    t = y * np.sqrt(w / curve)
    onward = np.where(t > high, -kappa * high, right[1] * t + right[0])
    found.breaks[2] = np.where(lends, t, y)
    found.put(lends, slice(2, 3), onward, 0.0)
    found.put(~lends, slice(2, 3), 0.0, left)
    found.put(np.ones(w.size, dtype=np.bool_), slice(3, 4), *right)
    s = low + np.sqrt(np.maximum(low * low - (2.0 * w * y * low - kappa * low * low) / curve, 0.0))
    end_value = w * np.square(np.maximum(high - y, 0.0)) - kappa * high * high
    direct = np.where(s > high, (end_value - at) / (high - low), right[1] * s + right[0])
    passes = lends & (low < 0.0) & (falls > onward)
    found.breaks[2] = np.where(passes, s, found.breaks[2])
    found.put(passes, slice(0, 3), direct, 0.0)
    # Without a low end there is no line from it.
    level = np.isinf(low) & (kappa >= 0.0)
    found.breaks[2] = np.where(level, y, found.breaks[2])
    found.put(level, slice(0, 3), 0.0, 0.0)
    found.put((high <= 0.0) & lends, every, -kappa * (low + high), 0.0)
    found.put((high <= 0.0) & ~lends, every, 0.0, left)
    return found


def plain_slopes(kappa: Vector, low: Vector, high: Vector) -> Slopes:
    """Of no loss."""
    found = Slopes.empty(low, high)
    found.put(kappa > 0.0, slice(None), -kappa * (low + high), 0.0)
    found.put(kappa <= 0.0, slice(None), 0.0, -2.0 * kappa)
    return found
