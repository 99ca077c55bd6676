"""The look of `rectifit.surrogate.look` compiled for the host: every pre-activation is read once.

Lines are looked at one after the other. Their sums are added up in an order that depends on the number of
rows alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rectifit._typing import Counts, Integers, Mask, Masks, Matrix, Vector
from rectifit.compiling import compiled, inner

__all__ = ["Answer", "Asked", "see_rows"]

# Near rows are few: so many rows at a time are counted before they are looked at one by one.
STRIDE = 64


class Asked(NamedTuple):
    """What is asked of every line: numbers as in `Limits`, and lines of U at the points that decide, or -1.

    Where no point decides, active rows are marked beforehand. Where there is a base, its rows are in `base`.
    """

    width: Vector
    zero: Vector
    threshold: Vector
    deciding: Integers
    has_base: Integers


class Answer(NamedTuple):
    """What was seen.

    Attributes
    ----------
    active, right, base : masks, one line per surrogate
    sums : values and objectives
    counts : fingerprints of the active set and of that at the point, and n_near, n_right, n_next, n_base
    near : memory for a mask
    where, u : numbers of the near rows, line after line, and their pre-activations
    """

    active: Masks
    right: Masks
    base: Masks
    sums: Matrix
    counts: Counts
    near: Mask
    where: Integers
    u: Vector


@inner
def hash_row(index):
    """`rectifit.data.sampling.hash_rows`."""
    h = index * -0x61C8864680B583EB
    h = (h ^ ((h >> 30) & ((1 << 34) - 1))) * -0x40A7B892E31B1A47
    h = (h ^ ((h >> 27) & ((1 << 37) - 1))) * -0x6B2FB644ECCEEE15
    return h ^ ((h >> 31) & ((1 << 33) - 1))


@inner
def decide(u, v, threshold, active):
    """active <- the rows with positive outcomes that a point switches on."""
    for i in range(v.shape[0]):
        active[i] = (u[i] > threshold) & (v[i] > 0.0)


@inner
def sum_line(u, v, active, right):
    """right <- the rows on their quadratic. Returns how many these are, and the two sums of squares."""
    value, objective, n_right = 0.0, 0.0, 0
    for i in range(v.shape[0]):
        is_right = active[i] | (u[i] > v[i] + abs(v[i]))
        right[i] = is_right
        n_right += is_right
        r = (u[i] if is_right else 0.0) - v[i]
        s = (u[i] if u[i] > 0.0 else 0.0) - v[i]
        value += r * r
        objective += s * s
    return n_right, value, objective


@inner
def sum_names(names, u, v, zero, active):
    """The sums of the names of the active rows, and of those that the point switches on."""
    given, found = 0, 0
    for i in range(v.shape[0]):
        given += names[i] if active[i] else 0
        found += names[i] if (u[i] > zero) & (v[i] > 0.0) else 0
    return given, found


@inner
def count_changes(one, other):
    """How many rows are in one of two masks alone."""
    n_changed = 0
    for i in range(one.shape[0]):
        n_changed += one[i] != other[i]
    return n_changed


@inner
def find_near(u, v, active, near, width, first, n_found, where, near_u):
    """Enter the near rows of a line, marked in near on the way; returns how many have been entered."""
    n = v.shape[0]
    for i in range(n):
        near[i] = (abs(u[i] - (v[i] + abs(v[i]))) <= width) & (not active[i])
    for begin in range(0, n, STRIDE):
        end, n_here = min(begin + STRIDE, n), 0
        for i in range(begin, end):
            n_here += near[i]
        if n_here > 0:
            for i in range(begin, end):
                if near[i]:
                    where[n_found], near_u[n_found] = first + i, u[i]
                    n_found += 1
    return n_found


@compiled
def see_rows(U: Matrix, v: Vector, names: Integers, start: int, asked: Asked, answer: Answer) -> int:
    """Look at all lines; `names` is memory, empty where no fingerprints are asked for.

    Returns the number of near rows.
    """
    asked, answer = Asked(*asked), Answer(*answer)
    active, right, counts, n_near = answer.active, answer.right, answer.counts, 0
    for i in range(names.shape[0]):
        names[i] = hash_row(start + i)
    for line in range(active.shape[0]):
        u, before = U[line], n_near
        if asked.deciding[line] >= 0:
            decide(U[asked.deciding[line]], v, asked.threshold[line], active[line])
        n_right, value, objective = sum_line(u, v, active[line], right[line])
        answer.sums[0, line], answer.sums[1, line], counts[3, line] = value, objective, n_right
        if names.shape[0] > 0 and asked.zero[line] < np.inf:
            counts[0, line], counts[1, line] = sum_names(names, u, v, asked.zero[line], active[line])
        if asked.width[line] >= 0.0:
            n_near = find_near(
                u,
                v,
                active[line],
                answer.near,
                asked.width[line],
                line * v.shape[0],
                n_near,
                answer.where,
                answer.u,
            )
        counts[2, line] = n_near - before
        if line > 0:
            counts[4, line - 1] = count_changes(right[line - 1], right[line])
        if asked.has_base[line]:
            counts[5, line] = count_changes(right[line], answer.base[line])
    return n_near
