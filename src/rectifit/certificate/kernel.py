"""Compiled loops of the relaxation: envelopes, rows for the surrogate's kernel, supporting functions.

Callers give the fields of records as plain tuples (see `rectifit.surrogate.kernel`).
"""

from __future__ import annotations

import math

import numpy as np

from rectifit import bounds, pieces
from rectifit._typing import Matrix, Vector
from rectifit.certificate.records import (
    CONVEX,
    FAR_FREE,
    FAR_ON,
    FREE,
    LIMIT,
    OFF,
    ON,
    SLAB,
    KernelRows,
    Region,
    Samples,
)
from rectifit.compiling import compiled, inner, shared
from rectifit.surrogate.records import WALL
from rectifit.tolerances import OFF_PENALTY

__all__ = ["build", "build_rows", "support", "support_line"]

shared(pieces.conjugate, bounds.support_allowance)

# The steepest line of a far sample, in whitened units. Next to 0 a steeper one would only cost digits.
MAX_FAR_SLOPE = 1e3
# Stands for an end that a slab or a constraint does not have, in whitened units: no minimum is there.
NO_END = 1e30


@inner
def tangent_from(low, y, c):
    """Where the tangent from (low, y^2 + c low^2), low <= 0, touches (u - y)^2 + c u^2 at the right.

    That is low + sqrt((low^2 - 2 y low) / (1 + c)), written so that a low far away costs no digits.
    """
    if low == 0.0:
        return 0.0
    one = 1.0 + c
    return -low * (2.0 * y + c * low) / one / (math.sqrt((low * low - 2.0 * y * low) / one) - low)


@inner
def far_envelope(kind, y, lower, U, c, out):
    """The same for slabs and for samples that stand for all larger scales."""
    square, one, finite = y * y, 1.0 + c, lower > -np.inf
    constant, slope, right, left, a = 0.0, 0.0, one, 0.0, lower
    if kind == SLAB:
        finite = finite and not math.isinf(U)
        a, t = max(lower, -NO_END), min(U, NO_END)
        # Without a lower end there is no penalty, and no row that is as far away.
        right, left = OFF_PENALTY, OFF_PENALTY if lower > -np.inf else 0.0
    else:
        t = min(y / one, U)
    if kind == FAR_ON:
        left, t = OFF_PENALTY, max(t, lower)
    if kind != FAR_FREE:
        slope, constant = c * (a + t), -c * a * t
    elif c > 0.0 and c * lower * lower >= square:
        a, left, finite = -y / math.sqrt(c), c, True
        slope = 2.0 * c * a
    elif finite:
        at, touch = square + c * lower * lower, tangent_from(lower, y, c)
        if touch * one >= y:
            # A line that rises: it touches h at the right, or ends at U, and is below 0 at 0.
            t = min(touch, U)
            slope = 2.0 * one * t - 2.0 * y if touch <= U else (c * t * t - at) / (t - lower)
            constant = at - slope * lower
        else:
            # A line that falls is below h if it is at l, at 0 and at t, from where it does not fall.
            slope = max(min(at / lower, (c * t * t - at) / (t - lower)), -MAX_FAR_SLOPE)
            constant = min(at - slope * lower, 0.0, c * t * t - slope * t)
    out[0], out[1], out[2], out[3] = constant, slope, right, t
    out[4] = 0.0 if kind == SLAB else max(-slope, 0.0)
    out[5], out[6], out[7] = left, 0.0 if a == -np.inf else a, 1.0 if finite else 0.0


@inner
def envelope(kind, y, lower, U, c, out):
    """One envelope (see envelope.py): out <- constant, slope, right, t, jump, left, a, has_chord."""
    square, one, finite = y * y, 1.0 + c, lower > -np.inf
    if kind == LIMIT:
        # No line, no penalty: its rows are constraints.
        for j in range(8):
            out[j] = 0.0
        return
    if kind >= SLAB:
        far_envelope(kind, y, lower, U, c, out)
        return
    low = min(lower, 0.0) if finite else 0.0
    constant, slope, right, t, jump, left, a = square, 0.0, one, 0.0, 0.0, 0.0, low
    has_chord = finite
    tangent = kind == FREE
    if kind != FREE:
        # The chord of y^2 + c u^2 from l to 0, or, where it is steeper than h at 0, the tangent from l.
        slope = c * low if c < 0.0 else 0.0
        jump = -2.0 * y - slope
        tangent = kind == CONVEX and jump < 0.0
    if kind == OFF:
        # No better solution lies beyond 0: any cost is allowed there that is not below the loss.
        right, jump = OFF_PENALTY, max(jump, 0.0)
    if tangent:
        t, jump = (tangent_from(low, y, c) if finite else y), 0.0
        if kind == FREE and c > 0.0:
            touch = y / (one + math.sqrt(c * one))
            reach = -touch * math.sqrt(one / c)
            if reach >= lower:
                t, a, left, has_chord = touch, reach, c, True
        slope, constant = 2.0 * one * t - 2.0 * y, square - one * t * t
        if t > U:
            # A line that ends at (U, h(U)): from the left branch of h, from l, or without a lower end flat.
            at = one * U * U - 2.0 * y * U + square
            slope, a, left, has_chord = 0.0, low, 0.0, finite
            start = U - math.sqrt(max(U * U - (at - square) / c, 0.0)) if c > 0.0 else -np.inf
            if c > 0.0 and start >= lower:
                slope, a, left, has_chord = 2.0 * c * start, start, c, True
            elif finite:
                slope = (at - square - c * low * low) / (U - low)
            t, constant = U, at - slope * U
            jump = max(2.0 * one * U - 2.0 * y - slope, 0.0)
    out[0], out[1], out[2], out[3] = constant, slope, right, t
    out[4], out[5], out[6], out[7] = jump, left, a, 1.0 if has_chord else 0.0


def build_rows(
    samples: Samples, region: Region, c: Vector, envelopes: Matrix, piece_rows: KernelRows, slope: Vector
) -> tuple[int, float]:
    """Fill in envelopes and the kernel's rows; returns how many rows there are, and the constant.

    A sample that is ON is a whole quadratic. Other samples have a row for their right branch; those with a
    left branch have another one behind, mirrored. Constraints have one for each end. slope <- the sum of all
    lines.
    """
    Z, _, y, _ = samples
    kind, lower, upper = region
    rows, norms, kinks, outcomes = piece_rows
    n, q = Z.shape
    m, constant = n, 0.0
    for j in range(q):
        slope[j] = 0.0
    for i in range(n):
        env = envelopes[i]
        envelope(kind[i], y[i], lower[i], upper[i], c[i], env)
        if kind[i] == ON:
            root = math.sqrt(1.0 + c[i])
            kinks[i], outcomes[i] = -np.inf, y[i] / root
            constant += y[i] * y[i] - outcomes[i] * outcomes[i]
        elif kind[i] == LIMIT:
            root, kinks[i], outcomes[i] = 1.0, min(upper[i], NO_END), WALL
        else:
            root = math.sqrt(env[2])
            kinks[i] = root * env[3]
            outcomes[i] = kinks[i] - env[4] / (2.0 * root)
            constant += env[0]
            for j in range(q):
                slope[j] += env[1] * Z[i, j]
        length = 0.0
        for j in range(q):
            rows[i, j] = root * Z[i, j]
            length += Z[i, j] * Z[i, j]
        norms[i] = root * math.sqrt(length)
        has_end = kind[i] == LIMIT and lower[i] > -np.inf
        if has_end or (kind[i] != ON and env[5] > 0.0):
            root = 1.0 if has_end else math.sqrt(env[5])
            for j in range(q):
                rows[m, j] = -root * Z[i, j]
            norms[m] = root * math.sqrt(length)
            kinks[m] = outcomes[m] = -root * env[6]
            if has_end:
                kinks[m], outcomes[m] = -lower[i], WALL
            m += 1
    return m, constant


build = compiled(build_rows)


@inner
def support_line(kinks, outcomes, u, slopes, constant, n_directions):
    """Sum of a constant and of supporting functions of all pieces at u, less what rounding may have added.

    slopes <- those that are used: of whole quadratics their own, of others not below 0.

    A piece whose kink c lies d >= 0 right of its outcome y is the piece of outcome d and kink 2 d of
    `rectifit.pieces`, moved by s = y - d, less its constant d^2.
    """
    total, size = constant, abs(constant)
    for i in range(u.shape[0]):
        y, c = outcomes[i], kinks[i]
        slopes[i] = 2.0 * (u[i] - y) if c == -np.inf else max(slopes[i], 0.0)
        if y == WALL:
            total += slopes[i] * (u[i] - c)
            size += slopes[i] * (abs(u[i]) + abs(c))
            continue
        d = max(c - y, 0.0)
        s = y - d
        product = slopes[i] * (u[i] - s)
        conjugate = pieces.conjugate(slopes[i], d, c - s)
        total += product - conjugate - d * d
        size += abs(slopes[i]) * (abs(u[i]) + abs(s)) + abs(conjugate) + d * d
    return total - bounds.support_allowance(n_directions, size)


@compiled
def support(piece_rows: KernelRows, u: Matrix, slopes: Matrix, constant: float, totals: Vector) -> None:
    """totals <- the sums of supporting functions, one per line of u and of slopes (see `support_line`)."""
    rows, _, kinks, outcomes = piece_rows
    for line in range(u.shape[0]):
        totals[line] = support_line(kinks, outcomes, u[line], slopes[line], constant, rows.shape[1])
