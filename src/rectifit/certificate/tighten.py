"""What a bound says about all better solutions: intervals of u, and so which samples are on or off.

Cost. All samples together cost at least a known amount. What one of them costs beyond its share of it cannot
exceed the room from that amount to the cutoff.

Ellipsoid. Coefficients with a loss of at most cutoff lie in (b - b_0)'K(b - b_0) <= cutoff - bound
(relaxation.py), so their u_i is within sqrt((cutoff - bound) z_i'K^-1 z_i) of z_i'b_0.

Tilting. For any direction v and tau > 0 they have v'b >= (min_b [R(b) + tau v'b] - cutoff) / tau.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rectifit._typing import Index, Mask, Matrix, Vector
from rectifit.certificate.ascent_kernel import decide, shrink
from rectifit.certificate.envelope import CONVEX, FAR_FREE, FREE, LIMIT, SLAB, Kinds
from rectifit.certificate.records import Samples
from rectifit.certificate.relaxation import Bound, Region, Relaxation
from rectifit.tolerances import INTERVAL_ATOL, INTERVAL_RTOL

__all__ = [
    "Note",
    "has_intervals",
    "heaviest",
    "is_open",
    "shrink_by_box",
    "shrink_by_cost",
    "shrink_by_ellipsoid",
    "shrink_by_tilts",
]

# Called with lines that were tilted, downwards (1.0) or upwards, and where the minima were. Coordinates are
# counted behind the rows.
Note = Callable[[Index, float, Matrix], None]
# Tilts that are minimised in one call.
TILT_BATCH = 32
# Lengths tau of each tilt that are tried, the range of factors between two, and the factor without a bound.
MAX_TRIES = 2
MIN_TAU_FACTOR = 0.05
MAX_TAU_FACTOR = 20.0
TAU_FACTOR_WITHOUT_BOUND = 0.2
# The same for coordinates, of which there are few, and their first spread: about a quarter of the rows is on
# the quadratic, of a Gram matrix 1 in all.
MAX_BOX_TRIES = 8
FIRST_SPREAD = 4.0
# Rows that are tilted at a time: the time that they take goes with the square of the samples.
MAX_TILTS = 500
# A tilt whose next factor lies between these has a length that is good enough.
MIN_GOOD_FACTOR = 0.7
MAX_GOOD_FACTOR = 1.4
# A tilt may settle the sign of a u that is farther from 0 than this share of what it is expected to reach.
SETTLED_SHARE = 0.5
# Lower limits that keep quotients finite: of the room below the cutoff, of its share, and of spreads.
MIN_ROOM = 1e-12
MIN_RISE_SHARE = 1e-12
MIN_SPREAD = 1e-300


def is_open(kind: Kinds) -> Mask:
    """Samples whose sign is not known."""
    return np.asarray((kind == FREE) | (kind == CONVEX) | (kind == FAR_FREE))


def has_intervals(region: Region) -> bool:
    """Whether every open sample has a lower end."""
    return bool((region.l[is_open(region.kind)] > -np.inf).all())


def shrink_by_cost(region: Region, y: Vector, cutoff: float) -> int:
    """Intervals of u from what single samples cost; as `decide`.

    With room = cutoff - sum over y <= 0 of y^2 a better solution has (max(0, u) - y)^2 <= room where y > 0,
    and u^2 - 2 u y <= room where y <= 0 and u > 0.
    """
    negative = np.minimum(y, 0.0)
    room = max(cutoff - float(negative @ negative), 0.0)
    radius = np.sqrt(room + np.square(negative)) * (1.0 + INTERVAL_RTOL) + INTERVAL_ATOL
    # A row without a loss costs nothing wherever its u is.
    np.minimum(region.U, y + radius, out=region.U, where=region.kind != LIMIT)
    on = y > radius
    region.l[on] = np.maximum(region.l[on], (y - radius)[on])
    return int(decide(tuple(region)))


def shrink_by_ellipsoid(region: Region, samples: Samples, bound: Bound, cutoff: float) -> int:
    """Intervals of u from the ellipsoid of a bound; as `decide`."""
    if bound.factor is None:
        return 0
    # The kernel's factors have inverse pivots.
    factor = bound.factor.copy()
    np.fill_diagonal(factor, 1.0 / factor.diagonal())
    room, W = max(cutoff - bound.value, 0.0), np.empty_like(samples.Zt)
    return int(shrink(tuple(samples), tuple(region), factor, bound.centre, room, W))


def tilted_bounds(
    relaxation: Relaxation,
    base: Bound,
    V: Matrix,
    cutoff: float,
    spread: Vector,
    is_over: Callable[[], bool],
    max_tries: int = MAX_TRIES,
    mapped: Callable[..., Iterator[Any]] = map,
    where: Matrix | None = None,
) -> Vector:
    """For every line v of V the best lower bound of v'b over better solutions; minus infinity if none.

    where <- the points at which they were found. The best tau lifts the minimum of R, without its tilt, to
    the cutoff, as it does for a quadratic with v'H^-1 v = spread; spread <- what it turned out to be.
    """
    best = np.full(len(V), -np.inf)
    if len(V) == 0:
        return best
    room = max(cutoff - base.value, MIN_ROOM)
    tau = 2.0 * np.sqrt(room / np.maximum(spread, MIN_SPREAD))
    todo = np.arange(len(V))

    def minimise(part: Index) -> tuple[Matrix, Vector, Matrix] | None:
        tilts = tau[part, None] * V[part]
        return None if is_over() else (tilts, *relaxation.minimise_tilted(base.start, tilts))

    for _ in range(max_tries):
        parts = np.array_split(todo, max(1, todo.size // TILT_BATCH))
        for part, found_there in zip(parts, mapped(minimise, parts), strict=True):
            if found_there is None:
                return best
            tilts, values, points = found_there
            ends = (values - cutoff) / tau[part]
            if where is not None:
                is_best = ends > best[part]
                where[part[is_best]] = points[is_best]
            best[part] = np.maximum(best[part], ends)
            risen = values - np.einsum("ij,ij->i", tilts, points) - base.value
            found = values > -np.inf
            factor = np.sqrt(room / np.maximum(np.where(found, risen, room), MIN_RISE_SHARE * room))
            tau[part] *= np.where(
                found, np.clip(factor, MIN_TAU_FACTOR, MAX_TAU_FACTOR), TAU_FACTOR_WITHOUT_BOUND
            )
            risen_enough = found & (factor > MIN_GOOD_FACTOR) & (factor < MAX_GOOD_FACTOR)
            todo = np.setdiff1d(todo, part[risen_enough], assume_unique=True)
        if todo.size == 0:
            break
    spread[:] = 4.0 * room / np.square(tau)
    return best


def shrink_by_tilts(
    region: Region,
    Z: Matrix,
    relaxation: Relaxation,
    base: Bound,
    cutoff: float,
    is_over: Callable[[], bool] = lambda: False,
    only: Index | None = None,
    spreads: Matrix | None = None,
    mapped: Callable[..., Iterator[Any]] = map,
    note: Note | None = None,
) -> int:
    """Intervals of u from tilts along rows, where they may pay, or only lower ends of some; as `decide`.

    Tilts that narrow an interval are noted. A lower end pays where there is none, where the line of an
    envelope begins at it, and where the sample may prove to be on; an upper end where it may prove to be off.
    spreads are those of the last time, downwards and upwards, NaN where there are none, and are changed.
    """
    H = np.eye(Z.shape[1]) / FIRST_SPREAD if base.factor is None else base.start.curvature()
    first = np.einsum("ij,ji->i", Z, np.linalg.solve(H, Z.T))
    spreads = np.full((2, len(Z)), np.nan) if spreads is None else spreads
    spreads[:] = np.where(np.isnan(spreads), first, spreads)
    index, upper = only, np.zeros(len(Z), dtype=np.bool_)
    if index is None:
        lower, upper = _worthwhile(region, relaxation, base, cutoff, spreads)
        index = np.flatnonzero(lower)
    spread, where = spreads[0, index], np.zeros((index.size, Z.shape[1]))
    low = tilted_bounds(relaxation, base, Z[index], cutoff, spread, is_over, mapped=mapped, where=where)
    if note is not None:
        pays = low > region.l[index]
        note(index[pays], 1.0, where[pays])
    np.maximum.at(region.l, index, low - INTERVAL_ATOL)
    spreads[0, index] = spread
    index = np.flatnonzero(upper & ((region.l < 0.0) | (region.kind == SLAB)))
    spread, where = spreads[1, index], np.zeros((index.size, Z.shape[1]))
    high = -tilted_bounds(relaxation, base, -Z[index], cutoff, spread, is_over, mapped=mapped, where=where)
    if note is not None:
        pays = high < region.U[index]
        note(index[pays], -1.0, where[pays])
    np.minimum.at(region.U, index, high + INTERVAL_ATOL)
    spreads[1, index] = spread
    return int(decide(tuple(region)))


def shrink_by_box(
    region: Region,
    Z: Matrix,
    relaxation: Relaxation,
    base: Bound,
    cutoff: float,
    is_over: Callable[[], bool] = lambda: False,
    note: Note | None = None,
) -> int:
    """Intervals of u from tilts along the coordinates: better solutions lie in a box; as `decide`."""
    q = Z.shape[1]
    V, where = np.vstack([np.eye(q), -np.eye(q)]), np.zeros((2 * q, q))
    spread = np.full(2 * q, FIRST_SPREAD)
    ends = tilted_bounds(relaxation, base, V, cutoff, spread, is_over, MAX_BOX_TRIES, where=where)
    if note is not None:
        note(np.arange(q) + len(Z), 1.0, where[:q])
        note(np.arange(q) + len(Z), -1.0, where[q:])
    low, high = ends[:q], -ends[q:]
    if not np.isfinite(ends).all():
        return 0
    if bool((low > high).any()):
        return -1
    centre, radius = 0.5 * Z @ (low + high), 0.5 * np.abs(Z) @ (high - low)
    radius = radius * (1.0 + INTERVAL_RTOL) + INTERVAL_ATOL
    samples = region.kind != LIMIT
    np.maximum(region.l, centre - radius, out=region.l, where=samples)
    np.minimum(region.U, centre + radius, out=region.U, where=samples)
    return int(decide(tuple(region)))


def heaviest(rows: Mask, y: Vector) -> Mask:
    """Of some rows at most MAX_TILTS, with the largest outcomes."""
    index = np.flatnonzero(rows)
    chosen = index[np.argsort(-y[index], kind="stable")[:MAX_TILTS]]
    return np.asarray(np.isin(np.arange(y.size), chosen))


def _worthwhile(
    region: Region, relaxation: Relaxation, base: Bound, cutoff: float, spreads: Matrix
) -> tuple[Mask, Mask]:
    """Rows whose lower ends are worth a tilt, and those whose upper ends are.

    For a quadratic, u reaches sqrt(room * spread) below and above the minimum: a sign whose distance from 0
    is a good share of that may be settled.
    """
    env, kind, u = relaxation.envelopes, region.kind, base.u
    slab = (kind == SLAB) & (region.l < region.U)
    reach = SETTLED_SHARE * np.sqrt(max(cutoff - base.value, 0.0) * spreads)
    has_line = (kind == FREE) | (kind == FAR_FREE) | (relaxation.c < 0.0)
    begins_at_end = has_line & (env.has_chord > 0.0) & (env.left == 0.0) & (u < env.t)
    lower = is_open(kind) & (begins_at_end | (region.l == -np.inf) | (u > reach[0]))
    # Far samples have few other ways to settle.
    far = kind == FAR_FREE
    upper = far | (is_open(kind) & (u < -reach[1]))
    y = relaxation.y
    return slab | heaviest(lower | far, y), slab | heaviest(upper, y)
