"""Compiled loops of curvature transfer: the ascent in c (see transfer.py).

An ascent is one call, or several for large data, between which its state is kept in the record Ascent.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.certificate.kernel import build_rows, support_line
from rectifit.certificate.records import (
    BARRIER,
    BEST,
    CONVEX,
    EVALUATIONS,
    FAR_FREE,
    FAR_ON,
    FREE,
    LIMIT,
    OBJECTIVE,
    OFF,
    ON,
    PAIRS,
    SEEN,
    SLAB,
    SMALL_GAINS,
    STEPS,
    VALUE,
    AscentState,
    AscentWork,
    KernelRows,
    Region,
    Samples,
)
from rectifit.compiling import compiled, inner
from rectifit.surrogate.kernel import (
    MAX_STEPS,
    MAX_STEPS_PER_COEFFICIENT,
    add_weighted,
    backward,
    factor,
    find_minima,
    forward,
    is_definite,
    multiply,
)
from rectifit.surrogate.records import FLAT, HELD, QUADRATIC, WALL, Minima, PieceProblem, WarmState
from rectifit.tolerances import DEFINITE_PIVOT, HOLD_TOL, INTERVAL_ATOL, INTERVAL_RTOL, MAX_END

__all__ = ["CLOSED", "ENDED", "PAUSED", "ascend", "decide", "shrink"]

# How a call ends: with evaluations still to be made, at the end of the ascent, or with nothing better left.
PAUSED = 0
ENDED = 1
CLOSED = 2

# The least and the largest c: no sample lends all of its curvature.
MIN_TRANSFER = -0.98
MAX_TRANSFER = 50.0
# A stage ends after so many steps in a row that each gain less than this share of the room that is left.
MIN_GAIN = 0.002
MAX_SMALL_GAINS = 2
# The room is taken to be no smaller than this share of the cutoff.
MIN_ROOM_SHARE = 1e-7
# Between the ends of stages the region shrinks after so many steps.
STEPS_PER_TIGHTENING = 5
# From one stage to the next the barrier shrinks by this factor.
BARRIER_FACTOR = 0.15
# Backtracking: tries, factor of the length, and share of the promised gain that a step must keep.
MAX_BACKTRACKS = 8
BACKTRACK_FACTOR = 0.3
ARMIJO_SHARE = 1e-4
# Distances from the limits of c within which it stays at the limit.
LOW_LIMIT_TOL = 1e-9
HIGH_LIMIT_TOL = 1e-12
# The largest change of c in a step along the gradient.
GRADIENT_STEP = 0.05
# Pairs of steps with less curvature are not remembered.
MIN_STEP_CURVATURE = 1e-14

allocating = partial(inner, allocates=True)
minimise_pieces = allocating(find_minima)
fill_rows = inner(build_rows)


def decide_signs(region: Region) -> int:
    """Turn samples whose interval has one sign ON or OFF. Returns how many; -1 if nothing can be better.

    Lower ends of samples that are far away are given up.
    """
    kind, low, high = region
    settled = 0
    for i in range(kind.shape[0]):
        if low[i] > high[i]:
            return -1
        if low[i] < -MAX_END and kind[i] != LIMIT and kind[i] != SLAB:
            low[i] = -np.inf
        if (kind[i] == FREE or kind[i] == CONVEX or kind[i] == FAR_FREE) and (
            low[i] >= 0.0 or high[i] <= 0.0
        ):
            if low[i] < 0.0:
                kind[i] = OFF
            else:
                kind[i] = FAR_ON if kind[i] == FAR_FREE else ON
            settled += 1
    return settled


decide = compiled(decide_signs)
decide_inside = inner(decide_signs)


@inner
def solve_rows(L, Zt, W):
    """W <- L^-1 Z' for a factor of the surrogate's kernel."""
    q, n = Zt.shape
    for j in range(q):
        for i in range(n):
            W[j, i] = Zt[j, i]
        for k in range(j):
            x = L[j, k]
            for i in range(n):
                W[j, i] -= x * W[k, i]
        x = L[j, j]
        for i in range(n):
            W[j, i] *= x


@inner
def shrink_by(samples, region, L, centre, room, W):
    """Intervals of u from an ellipsoid (b - centre)'LL'(b - centre) <= room; as `decide_signs`."""
    Zt, low, high = samples.Zt, region.l, region.U
    q, n = Zt.shape
    solve_rows(L, Zt, W)
    for i in range(n):
        u = length = 0.0
        for j in range(q):
            u += Zt[j, i] * centre[j]
            length += W[j, i] * W[j, i]
        radius = math.sqrt(max(room, 0.0) * length) * (1.0 + INTERVAL_RTOL) + INTERVAL_ATOL
        if region.kind[i] == LIMIT:
            # Constraints stay as they are: closer ends would be held for nothing.
            continue
        low[i] = max(low[i], u - radius)
        high[i] = min(high[i], u + radius)
    return decide_inside(region)


@compiled
def shrink(samples: Samples, region: Region, L: Matrix, centre: Vector, room: float, W: Matrix) -> int:
    """The same for Python."""
    return shrink_by(Samples(*samples), Region(*region), L, centre, room, W)


@inner
def limits_of(kind, low, high):
    """The least and the largest c of a row.

    A loss less some curvature has an envelope where there is a lower end, in slabs where there are both.
    """
    lends = kind == ON or (low > -np.inf and kind != LIMIT and (kind != SLAB or abs(high) < np.inf))
    least = (-MAX_TRANSFER if kind == SLAB else MIN_TRANSFER) if lends else 0.0
    return least, MAX_TRANSFER if kind in (FREE, FAR_FREE) else 0.0


@inner
def slope_of(kind, env, u):
    """d LB / d c of a sample: (u - a)(t - u) on the line of its envelope, 0 elsewhere."""
    _, slope, _, t, _, left, a, has_chord = env
    goes_on = left == 0.0 or kind in (SLAB, FAR_ON)
    if has_chord == 0.0 or not (u > a or goes_on) or not (u < t or kind > ON):
        return 0.0
    end = 0.0 if kind == FAR_FREE and slope < 0.0 else t
    return (u - a) * (end - u)


@allocating
def evaluate(samples, region, rows, state, work):
    """The bound for the c of `work`, its barrier function, and the gradient of that.

    Returns whether C is definite and there is a bound, the bound, and the barrier function.
    """
    Z, Zt, _, ridge = samples
    kind, (n, q) = region.kind, Z.shape
    c, C, K, L, b, g, weights = work.c, work.C, work.K, work.L, work.b, work.g, work.weights
    state.counts[EVALUATIONS] += 1
    for j in range(q):
        for k in range(q):
            C[j, k] = ridge[j, k]
    for i in range(n):
        weights[i] = -c[i]
    add_weighted(Zt, weights, C)
    factor(C, L, q)
    if not is_definite(L, 0.0):
        return False, 0.0, 0.0
    barrier = 0.0
    for j in range(q):
        barrier -= 2.0 * math.log(L[j, j])
    solve_rows(L, Zt, work.W)
    for i in range(n):
        length = 0.0
        for j in range(q):
            length += work.W[j, i] * work.W[j, i]
        work.gradient[i] = -state.numbers[BARRIER] * length
    m, constant = fill_rows(samples, region, c, work.envelopes, rows, work.slope)
    columns = work.columns[: m * q].reshape(q, m)
    for i in range(m):
        for j in range(q):
            columns[j, i] = rows.rows[i, j]
    # Where the last minimum was, with rows held that were held there.
    u, states = np.empty(m), np.empty(m, np.int8)
    multiply(columns, state.b, u)
    for i in range(m):
        held = i < n and state.state[i] == HELD and abs(u[i] - rows.kinks[i]) <= HOLD_TOL
        right = u[i] > rows.kinks[i] and rows.outcomes[i] > WALL
        states[i] = HELD if held else (QUADRATIC if right else FLAT)
        weights[i] = 0.0 if states[i] == FLAT else 1.0
    for j in range(q):
        b[j] = state.b[j]
        for k in range(q):
            K[j, k] = C[j, k]
    add_weighted(columns, weights, K)
    warm = WarmState(b, u, states, K, np.zeros(q))
    slope = work.slope.reshape(1, q)
    kinks, norms, outcomes = rows.kinks[:m], rows.norms[:m], rows.outcomes[:m]
    problem = PieceProblem(rows.rows[:m], columns, norms, outcomes, np.zeros(m), slope, C)
    minima = Minima(
        np.empty((1, q)),
        np.empty((1, m), np.int8),
        np.empty((1, m)),
        np.empty((1, q, q)),
        np.empty(1, np.int64),
        np.empty(1, np.bool_),
    )
    max_steps = MAX_STEPS + MAX_STEPS_PER_COEFFICIENT * q
    minimise_pieces(problem, kinks.reshape(1, m), max_steps, False, False, warm, warm, minima)
    lam = minima.slopes[0]
    multiply(columns, b, u)
    value = support_line(kinks, outcomes, u, lam, constant, q)
    for j in range(q):
        s, t = work.slope[j], 0.0
        for i in range(m):
            s += columns[j, i] * lam[i]
        for k in range(q):
            t += C[j, k] * b[k]
            K[j, k] = C[j, k]
        value += b[j] * (work.slope[j] + t)
        g[j] = s + 2.0 * t
    for i in range(n):
        weights[i] = 1.0 + c[i] if kind[i] == ON else 0.0
    add_weighted(Zt, weights, K)
    factor(K, L, q)
    if not is_definite(L, DEFINITE_PIVOT):
        return False, 0.0, 0.0
    forward(L, g, q)
    for j in range(q):
        value -= 0.25 * g[j] * g[j]
    backward(L, g, q)
    if not value > -np.inf:
        return False, 0.0, 0.0
    multiply(Zt, b, u)
    for i in range(n):
        work.gradient[i] += slope_of(kind[i], work.envelopes[i], u[i])
        state.state[i] = states[i]
    return True, value, value + state.numbers[BARRIER] * barrier


@inner
def accept(value, objective, state, work):
    """Let the c of `work` be the present one, and keep its bound if it is the best."""
    q, numbers, is_best = state.b.shape[0], state.numbers, value > state.numbers[BEST]
    numbers[VALUE], numbers[OBJECTIVE] = value, objective
    for i in range(state.c.shape[0]):
        state.c[i], state.gradient[i] = work.c[i], work.gradient[i]
    for j in range(q):
        state.b[j], state.centre[j] = work.b[j], work.b[j] - 0.5 * work.g[j]
        for k in range(q):
            state.factor[j, k] = work.L[j, k]
    if is_best:
        numbers[BEST] = value
        for i in range(state.c.shape[0]):
            state.best_c[i] = work.c[i]
        for j in range(q):
            state.best_b[j] = work.b[j]


@allocating
def evaluate_again(samples, region, rows, state, work):
    """Evaluate the present c within the limits of the region. Returns whether there is a bound."""
    for i in range(state.c.shape[0]):
        least, most = limits_of(region.kind[i], region.l[i], region.U[i])
        work.c[i] = min(max(state.c[i], least), most)
    is_good, value, objective = evaluate(samples, region, rows, state, work)
    if is_good:
        accept(value, objective, state, work)
    return is_good


@inner
def find_direction(region, state, work):
    """A direction of ascent: the two-loop recursion of L-BFGS, or the gradient at a cautious length."""
    c, g, direction, n = state.c, state.gradient, work.direction, state.c.shape[0]
    n_pairs, steps, changes, inverses = state.counts[PAIRS], state.steps, state.changes, state.inverses
    largest, shares, free = 0.0, work.shares, work.free
    for i in range(n):
        least, most = limits_of(region.kind[i], region.l[i], region.U[i])
        at_low, at_high = c[i] <= least + LOW_LIMIT_TOL, c[i] >= most - HIGH_LIMIT_TOL
        free[i] = 0.0 if (at_low and g[i] < 0.0) or (at_high and g[i] > 0.0) else 1.0
        direction[i] = free[i] * g[i]
        largest = max(largest, abs(direction[i]))
    rise = 0.0
    if n_pairs > 0:
        for e in range(n_pairs - 1, -1, -1):
            s = 0.0
            for i in range(n):
                s += steps[e, i] * direction[i]
            shares[e] = inverses[e] * s
            for i in range(n):
                direction[i] -= shares[e] * changes[e, i]
        s = 0.0
        for i in range(n):
            s += changes[n_pairs - 1, i] * changes[n_pairs - 1, i]
        scale = 1.0 / (inverses[n_pairs - 1] * s)
        for i in range(n):
            direction[i] *= scale
        for e in range(n_pairs):
            s = 0.0
            for i in range(n):
                s += changes[e, i] * direction[i]
            s = shares[e] - inverses[e] * s
            for i in range(n):
                direction[i] += s * steps[e, i]
        for i in range(n):
            direction[i] *= free[i]
            rise += direction[i] * g[i]
    if not rise > 0.0:
        scale = GRADIENT_STEP / largest if largest > 0.0 else 0.0
        for i in range(n):
            direction[i] = scale * free[i] * g[i]


@inner
def remember(state, work):
    """Add the way to the c of `work` to the pairs, the oldest of which is dropped if there are too many."""
    n, steps, changes, inverses = state.c.shape[0], state.steps, state.changes, state.inverses
    product = 0.0
    for i in range(n):
        product += (work.c[i] - state.c[i]) * (state.gradient[i] - work.gradient[i])
    if not product > MIN_STEP_CURVATURE:
        return
    if state.counts[PAIRS] == inverses.shape[0]:
        for e in range(inverses.shape[0] - 1):
            inverses[e] = inverses[e + 1]
            for i in range(n):
                steps[e, i], changes[e, i] = steps[e + 1, i], changes[e + 1, i]
        state.counts[PAIRS] -= 1
    e = state.counts[PAIRS]
    inverses[e] = 1.0 / product
    for i in range(n):
        steps[e, i] = work.c[i] - state.c[i]
        changes[e, i] = state.gradient[i] - work.gradient[i]
    state.counts[PAIRS] += 1


@allocating
def take_step(samples, region, rows, state, work):
    """One step of projected L-BFGS with backtracking. Returns whether something higher was found."""
    find_direction(region, state, work)
    length, n = 1.0, state.c.shape[0]
    for _ in range(MAX_BACKTRACKS):
        promised = 0.0
        for i in range(n):
            least, most = limits_of(region.kind[i], region.l[i], region.U[i])
            work.c[i] = min(max(state.c[i] + length * work.direction[i], least), most)
            promised += state.gradient[i] * (work.c[i] - state.c[i])
        is_good, value, objective = evaluate(samples, region, rows, state, work)
        if is_good and objective >= state.numbers[OBJECTIVE] + ARMIJO_SHARE * promised:
            remember(state, work)
            accept(value, objective, state, work)
            return True
        length *= BACKTRACK_FACTOR
    return False


@compiled
def ascend(
    samples: Samples,
    region: Region,
    cutoff: float,
    last_barrier: float,
    max_steps: int,
    max_evaluations: int,
    rows: KernelRows,
    state: AscentState,
    work: AscentWork,
) -> int:
    """Maximise the bound over c, and shrink the region on the way. Returns how the call ended.

    After PAUSED it is to be called again. max_evaluations may be exceeded by those of one step.
    """
    samples, region, rows = Samples(*samples), Region(*region), KernelRows(*rows)
    state, work = AscentState(*state), AscentWork(*work)
    numbers, counts = state.numbers, state.counts
    counts[EVALUATIONS] = 0
    if numbers[BEST] == -np.inf and not evaluate_again(samples, region, rows, state, work):
        return ENDED
    while counts[STEPS] < max_steps and numbers[BEST] < cutoff:
        if counts[EVALUATIONS] >= max_evaluations or counts[SEEN] == state.seen.shape[0]:
            return PAUSED
        counts[STEPS] += 1
        before = numbers[OBJECTIVE]
        room = max(cutoff - numbers[BEST], MIN_ROOM_SHARE * abs(cutoff))
        had_pairs = counts[PAIRS] > 0
        if take_step(samples, region, rows, state, work):
            small = numbers[OBJECTIVE] - before < MIN_GAIN * room
            counts[SMALL_GAINS] = counts[SMALL_GAINS] + 1 if small else 0
            stage_ends = counts[SMALL_GAINS] >= MAX_SMALL_GAINS
        else:
            # Try the gradient next; if this step was along the gradient already, the stage ends.
            stage_ends = not had_pairs
            counts[PAIRS] = 0
        stage_ends = stage_ends or counts[STEPS] == max_steps
        if not stage_ends and counts[STEPS] % STEPS_PER_TIGHTENING != 0:
            continue
        room = cutoff - numbers[VALUE]
        settled = shrink_by(samples, region, state.factor, state.centre, room, work.W)
        if settled < 0:
            return CLOSED
        if stage_ends:
            for j in range(state.b.shape[0]):
                state.seen[counts[SEEN], j] = state.b[j]
            counts[SEEN] += 1
            if numbers[BARRIER] <= last_barrier:
                break
            numbers[BARRIER] *= BARRIER_FACTOR
            counts[SMALL_GAINS] = 0
        if stage_ends or settled > 0:
            counts[PAIRS] = 0
        if not evaluate_again(samples, region, rows, state, work):
            break
    return CLOSED if numbers[BEST] >= cutoff else ENDED
