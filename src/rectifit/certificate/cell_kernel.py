"""Compiled loops of the search over cells: the bound by common corner weights (see cells.py)."""

from __future__ import annotations

import math

import numpy as np

from rectifit import bounds
from rectifit._typing import Integers
from rectifit.certificate.records import (
    BLOCK,
    CONVEX,
    FREE,
    HINGES_PER_UNIT,
    LOG_BOUND,
    LOG_DRAW,
    LOG_FAR,
    LOG_LENGTH,
    MAX_CORNERS,
    OFF,
    ON,
    Cell,
    CellLog,
    Cells,
    CellWork,
    CornerWork,
    FaceBounds,
    Found,
    FreeWork,
    Layout,
    Limits,
    PieceWork,
    Samples,
    SmallWork,
)
from rectifit.compiling import compiled, inner, shared
from rectifit.tolerances import (
    CELL_EDGE_TOL,
    ELLIPSOID_PIVOT_TOL,
    INTERVAL_ATOL,
    INTERVAL_RTOL,
    SPAN_PIVOT_TOL,
    SUM_TOL,
)

__all__ = ["CLOSED", "GOOD", "THIN", "expand"]

# What became of a cell: it has a bound; it has one, but its samples may not span the space; it holds nothing
# below the cutoff.
GOOD = 0
THIN = 1
CLOSED = 2

# Cells that are not wider are not split any more, in ratios of coordinates.
MIN_WIDTH = 1e-9
# Added to how much coordinates matter, so that the widest is split where none does.
LEAST_WEIGHT = 1e-12
# Corners that are added after one pricing, and pricings.
MAX_ADDED = 6
MAX_PRICINGS = 40
# A cell that stays open is priced once, and so many times more while its bound lies more than this share of
# the room below what the corners at work say.
MORE_PRICINGS = 2
POOR_SHARE = 1.0
# Newton steps, and tries to find the weights that are free in one.
MAX_NEWTON = 60
MAX_FREE_TRIES = 3
# The kink of a piece with y < 0 is rounded over this share of |y| for Newton steps. No bound rests on it.
ROUNDED = 1e-3
STEEP = 1.0 + 1.0 / ROUNDED
# Weight of the squared distance beyond the largest scale. Any weight is sound.
SCALE_PENALTY = 400.0
# Where no largest scale is known, steps are held back beyond this multiple of |y|.
GUIDING_SCALE = 1e4
# All scales from this multiple of the largest |u_+| on are closed at once where that succeeds. It is not
# tried where scales are known to end below another multiple.
FAR_BEGIN = 5.0
FAR_END = 7.0
# The spread of u over a cell, for hinges, as a share of that over its corners; and the share of the floor of
# a hinge over which its slope grows.
SPREAD_SHARE = 0.8
RAMP = 0.1
# Share of the cutoff to which weights are optimised, at best.
WEIGHT_TOL = 1e-5
# Weights are optimised to this share of the distance to the cutoff, but to no more than this share of it.
ROOM_TOL = 0.05
LOOSE_TOL = 1e-2
# How far prices are kept above zero, in units of that.
TILT = 3.0
# A cell is bounded once more if its edges were drawn in to less than this share of their length.
NARROWED_SHARE = 0.9
MAX_ROUNDS = 3
# Shares of the diagonal that are added to Newton's matrix, and the least of it.
REGULARISATION = 1e-10
MIN_REGULARISATION = 1e-9
# Pieces beyond y are used where u is above this share of y, and those beyond 0 where it is not below 0 by
# more than this share of half its range in the cell. Without them a bound is still valid.
LIKELY_SHARE = 0.5
LIKELY_REACH = 0.25
# Steps towards the least length of (Zd)_+ in a cell, and Newton steps of each line search.
LENGTH_STEPS = 20
# Of the squares of all outcomes the share, per sample, by which an ellipsoid is larger than its bound says.
DRAW_ATOL = 1e-14
# Share of the first slope that may be left beyond the minimum along a step, and tries to find it.
OVERSHOOT = 0.3
MAX_LINE_STEPS = 12
# Share of a bracket from its ends within which no point is tried.
MIN_SHARE = 0.02
LINE_STEPS = 4

shared(bounds.support_allowance)


@inner
def multiply(Zt, b, count, u):
    """u <- z'b of the first so many samples."""
    for i in range(count):
        u[i] = 0.0
    for k in range(Zt.shape[0]):
        x = b[k]
        for i in range(count):
            u[i] += x * Zt[k, i]


@inner
def settle(samples, cell, kind, free):
    """Settle open samples of one sign in the cell; centre and radius of u / s are left in `free`."""
    Zt, low, high = samples.Zt, cell.low, cell.high
    centre, radius = free.centre, free.radius
    q, n = Zt.shape
    for i in range(n):
        centre[i] = radius[i] = 0.0
    for k in range(q):
        middle, half = 0.5 * (low[k] + high[k]), 0.5 * (high[k] - low[k])
        for i in range(n):
            z = Zt[k, i]
            centre[i] += z * middle
            radius[i] += abs(z) * half
    for i in range(n):
        if kind[i] == FREE or kind[i] == CONVEX:
            if centre[i] - radius[i] >= 0.0:
                kind[i] = ON
            elif centre[i] + radius[i] <= 0.0:
                kind[i] = OFF


@inner
def add_on(samples, kind, seen, is_far, K, linear):
    """Add samples that are ON, and were not seen to be, to K = ridge + sum z z' and linear = sum y z.

    If all larger scales count as well, only those with y <= 0. Returns the sum of their y^2.
    """
    Z, y = samples.Z, samples.y
    n, q = Z.shape
    squares = 0.0
    for i in range(n):
        if kind[i] == ON and seen[i] != ON and not (is_far and y[i] > 0.0):
            squares += y[i] * y[i]
            for j in range(q):
                z = Z[i, j]
                linear[j] += y[i] * z
                for k in range(j + 1):
                    K[j, k] += z * Z[i, k]
    return squares


@inner
def gather_free(samples, kind, free, weights):
    """Columns of the FREE samples, and how much each coordinate matters: sum y |z|. Returns how many."""
    Zt, y = samples.Zt, samples.y
    ZF, yF, index = free.Z, free.y, free.chosen
    q, n = Zt.shape
    count = 0
    for i in range(n):
        if kind[i] == FREE:
            index[count] = i
            yF[count] = y[i]
            count += 1
    for k in range(q):
        total = 0.0
        for e in range(count):
            z = Zt[k, index[e]]
            ZF[k, e] = z
            total += yF[e] * abs(z)
        weights[k] = total
    return count


@inner
def gather_pieces(samples, limits, kind, b, least, most, is_far, all_pieces, axis, sign, free, pieces):
    """Rows of the pieces in u: (u - y)_+^2 of FREE samples, and of CONVEX ones, where it is likely to count.

    Their slope is 0 left of a kink and 2 (u - y) right of a ramp. Constraints u <= end are (u - end)_+^2,
    which is 0 where they hold; at a larger scale the end is nearer to 0. The last two rows are penalties
    beyond the least and the largest scale. Returns how many there are.
    """
    Zt, y = samples.Zt, samples.y
    index, centre, reach = free.chosen, free.centre, LIKELY_REACH * abs(b[axis])
    q, n = Zt.shape
    count = 0
    multiply(Zt, b, n, centre)
    for i in range(n):
        if kind[i] == FREE or (is_far and kind[i] == ON and y[i] > 0.0):
            if all_pieces or centre[i] > LIKELY_SHARE * y[i]:
                index[count] = i
                pieces.kinks[count] = pieces.outcomes[count] = y[i]
                count += 1
        elif kind[i] == CONVEX and (all_pieces or centre[i] > -reach * free.radius[i]):
            index[count] = i
            pieces.kinks[count], pieces.outcomes[count] = 0.0, y[i]
            count += 1
    for k in range(q):
        for e in range(count):
            pieces.Z[k, e] = Zt[k, index[e]]
        for e in range(limits.ends.shape[0]):
            pieces.Z[k, count + e] = limits.Zt[k, e]
    for e in range(limits.ends.shape[0]):
        end = max(limits.ends[e], 0.0) if is_far else limits.ends[e]
        pieces.kinks[count], pieces.outcomes[count] = end, end
        count += 1
    for k in range(q):
        pieces.Z[k, count] = pieces.Z[k, count + 1] = 0.0
    root = math.sqrt(SCALE_PENALTY)
    pieces.Z[axis, count], pieces.Z[axis, count + 1] = -root * sign, root * sign
    pieces.kinks[count] = pieces.outcomes[count] = -root * least
    pieces.kinks[count + 1] = pieces.outcomes[count + 1] = root * most
    return count + 2


@inner
def make_corner(n_free, e, bits, cell, layout, free, corners):
    """Corner e with these bits, and max(-floor, z'v) of all FREE samples there, or what stands for it.

    Coordinates that are not enumerated enter by (z'(v + t))_+ <= (z'v)_+ + (z't + r) / 2 with t the deviation
    from their centres and r = sum |z_k| h_k the most that |z't| can be.
    """
    axis, sign, low, high = cell
    V, H, ZF = corners.V, corners.H, free.Z
    q = V.shape[1]
    for k in range(q):
        if k == axis:
            V[e, k] = sign
        else:
            V[e, k] = high[k] if (bits >> k) & 1 else low[k]
    for i in range(n_free):
        H[e, i] = 0.0
    for k in range(q):
        x = V[e, k] if k == axis or layout.listed[k] else 0.5 * (low[k] + high[k])
        for i in range(n_free):
            H[e, i] += x * ZF[k, i]
    for i in range(n_free):
        H[e, i] = max(H[e, i], -free.floor[i])
    if layout.has_rest:
        for i in range(n_free):
            H[e, i] += 0.5 * free.rest[i]
        for k in range(q):
            if k != axis and not layout.listed[k]:
                half = 0.5 * (V[e, k] - 0.5 * (low[k] + high[k]))
                for i in range(n_free):
                    H[e, i] += half * ZF[k, i]


@inner
def add_products(n_corners, e, n_free, free, corners):
    """Row and column e of P = H'H over the FREE samples with m < y."""
    for i in range(n_free):
        free.step[i] = corners.H[e, i] if free.below[i] else 0.0
    for d in range(n_corners):
        s = 0.0
        for i in range(n_free):
            s += free.step[i] * corners.H[d, i]
        corners.P[e, d] = corners.P[d, e] = s


@inner
def place(n_corners, n_free, n_pieces, b, K, G, free, pieces, corners):
    """What depends on the weights beside b: m, u, the states of all pieces, P and G."""
    H, theta = corners.H, corners.theta
    q = b.shape[0]
    for i in range(n_free):
        free.m[i] = 0.0
    for e in range(n_corners):
        t = theta[e]
        for i in range(n_free):
            free.m[i] += t * H[e, i]
    for i in range(n_free):
        free.below[i] = 0.0 < 2.0 * (free.y[i] - free.m[i]) < free.cap[i]
    for e in range(n_corners):
        add_products(e + 1, e, n_free, free, corners)
    multiply(pieces.Z, b, n_pieces, pieces.u)
    for j in range(q):
        for k in range(j + 1):
            G[j, k] = G[k, j] = K[j, k]
    for i in range(n_pieces):
        pieces.state[i] = 0
    move_pieces(n_pieces, G, pieces)


@inner
def move_pieces(n_pieces, G, pieces):
    """States of the pieces at u, and G = K + sum of their curvatures."""
    ZU, u, kinks, outcomes, state = pieces.Z, pieces.u, pieces.kinks, pieces.outcomes, pieces.state
    q = G.shape[0]
    for i in range(n_pieces):
        steep = STEEP * (u[i] - kinks[i]) < u[i] - outcomes[i]
        new = 0 if u[i] <= kinks[i] else (1 if steep else 2)
        if new != state[i]:
            change = (0.0, STEEP, 1.0)[new] - (0.0, STEEP, 1.0)[state[i]]
            state[i] = new
            for j in range(q):
                x = change * ZU[j, i]
                for k in range(q):
                    G[j, k] += x * ZU[k, i]


@inner
def move_free(n_corners, n_free, free, corners):
    """States of FREE samples at m, and P."""
    for i in range(n_free):
        below = 0.0 < 2.0 * (free.y[i] - free.m[i]) < free.cap[i]
        if below != free.below[i]:
            free.below[i] = below
            for e in range(n_corners):
                x = corners.H[e, i] if below else -corners.H[e, i]
                if x != 0.0:
                    for d in range(n_corners):
                        corners.P[e, d] += x * corners.H[d, i]


@inner
def take_slopes(n_free, n_pieces, K, linear, b, slope, free, pieces):
    """Slopes mu and nu of all pieces, and the gradient 2 (K b - linear) + sum nu z in b."""
    ZU, u, kinks, outcomes, nu = pieces.Z, pieces.u, pieces.kinks, pieces.outcomes, pieces.nu
    q = b.shape[0]
    for i in range(n_free):
        free.mu[i] = min(2.0 * max(free.y[i] - free.m[i], 0.0), free.cap[i])
    for i in range(n_pieces):
        nu[i] = 2.0 * max(min(STEEP * (u[i] - kinks[i]), u[i] - outcomes[i]), 0.0)
    for j in range(q):
        s = 0.0
        for k in range(q):
            s += (K[j, k] if k <= j else K[k, j]) * b[k]
        s = 2.0 * (s - linear[j])
        for i in range(n_pieces):
            s += ZU[j, i] * nu[i]
        slope[j] = s


@inner
def slope_along(n_free, n_pieces, t, constant, quadratic, free, pieces):
    """Half the slope at t along the step."""
    yF, m, step, cap = free.y, free.m, free.step, free.cap
    u, du, kinks, outcomes = pieces.u, pieces.du, pieces.kinks, pieces.outcomes
    slope = constant + t * quadratic
    for i in range(n_free):
        slope -= min(max(yF[i] - m[i] - t * step[i], 0.0), 0.5 * cap[i]) * step[i]
    for i in range(n_pieces):
        x = u[i] + t * du[i]
        slope += max(min(STEEP * (x - kinks[i]), x - outcomes[i]), 0.0) * du[i]
    return slope


@inner
def factor_plus(M, size, extra):
    """Cholesky factor of M + extra in place, lower triangle."""
    for j in range(size):
        s = M[j, j] + extra
        for k in range(j):
            s -= M[j, k] * M[j, k]
        M[j, j] = math.sqrt(s) if s > 0.5 * extra else math.sqrt(extra)
        for i in range(j + 1, size):
            t = M[i, j]
            for k in range(j):
                t -= M[i, k] * M[j, k]
            M[i, j] = t / M[j, j]


@inner
def solve_plus(M, size, x):
    """x <- (M M')^-1 x for a factor M."""
    for j in range(size):
        s = x[j]
        for k in range(j):
            s -= M[j, k] * x[k]
        x[j] = s / M[j, j]
    for j in range(size - 1, -1, -1):
        s = x[j]
        for k in range(j + 1, size):
            s -= M[k, j] * x[k]
        x[j] = s / M[j, j]


@inner
def dual_value(n_free, n_pieces, constant, is_far, K, b, free, pieces):
    """S of cells.py, less what rounding may have added."""
    q = b.shape[0]
    total, size = constant, abs(constant)
    for j in range(q):
        for k in range(j + 1):
            t = b[j] * K[j, k] * b[k] * (1.0 if k == j else 2.0)
            total -= t
            size += abs(t)
    if not is_far:
        for i in range(n_free):
            t = free.mu[i] * (free.y[i] - 0.25 * free.mu[i])
            total += t
            size += abs(t)
    for i in range(n_pieces):
        # Below the jump at a kink at 0 the conjugate is -y^2; constant has the y^2 of CONVEX samples.
        y, v = pieces.outcomes[i], pieces.nu[i]
        jump = 2.0 * (pieces.kinks[i] - y)
        t = 0.0 if v <= jump else (y * y if jump > 0.0 else 0.0) + v * (y + 0.25 * v)
        total -= t
        size += abs(t)
    return total - bounds.support_allowance(2 * q, size)


@inner
def optimise(n_corners, n_free, n_pieces, constant, cutoff, tol, is_far, free, pieces, corners, small):
    """Minimise F - tilt sum(theta) over the weights of the corners at hand, by projected Newton steps.

    F is the relaxation (see cells.py). The tilt leaves the prices of corners in use about `tilt` above zero,
    so that small errors do no harm. b, m, u, states, P and G fit the weights before and after; slopes are
    those at the end. Returns the number of steps, the tilt and S there.
    """
    V, H, theta, P, M = corners.V, corners.H, corners.theta, corners.P, corners.M
    moving, change, prices = corners.moving, corners.change, corners.prices
    K, linear, G, b, slope, db = small.K, small.linear, small.G, small.b, small.slope, small.step
    q, VG = b.shape[0], corners.VG
    count = 0
    while True:
        take_slopes(n_free, n_pieces, K, linear, b, slope, free, pieces)
        S = dual_value(n_free, n_pieces, constant, is_far, K, b, free, pieces)
        value = S
        scale = worst = slack = 0.0
        for e in range(n_corners):
            s = 0.0
            for i in range(n_free):
                s -= free.mu[i] * H[e, i]
            for j in range(q):
                s += V[e, j] * slope[j]
            prices[e] = s
            scale += theta[e]
            value += theta[e] * s
        enough = max(tol, min(ROOM_TOL * abs(cutoff - value), LOOSE_TOL * abs(cutoff)))
        tilt = TILT * enough / max(scale, MIN_WIDTH)
        for e in range(n_corners):
            prices[e] -= tilt
            worst = min(worst, prices[e])
            slack += abs(theta[e] * prices[e])
        if count == MAX_NEWTON or (slack <= enough and -worst * scale <= enough):
            return count, tilt, S
        if is_far and value < cutoff:
            return count, tilt, value
        size = 0
        for e in range(n_corners):
            if theta[e] > 0.0 or prices[e] < 0.0:
                moving[size] = e
                size += 1
        for a in range(size):
            e = moving[a]
            for j in range(q):
                s = 0.0
                for k in range(q):
                    s += V[e, k] * G[k, j]
                VG[e, j] = s
        for _ in range(MAX_FREE_TRIES):
            trace = 0.0
            for a in range(size):
                e = moving[a]
                for c in range(a + 1):
                    s = P[e, moving[c]]
                    for j in range(q):
                        s += VG[e, j] * V[moving[c], j]
                    M[a, c] = s
                trace += M[a, a]
                change[a] = -0.5 * prices[e]
            factor_plus(M, size, REGULARISATION * trace / max(size, 1) + MIN_REGULARISATION)
            solve_plus(M, size, change)
            # Weights at zero that the step would push below are not free.
            kept = 0
            for a in range(size):
                if theta[moving[a]] > 0.0 or change[a] > 0.0:
                    moving[kept], change[kept] = moving[a], change[a]
                    kept += 1
            if kept == size or kept == 0:
                break
            size = kept
        if size == 0:
            return count, tilt, S
        # The way to max(0, theta + change) if that leads down enough, otherwise as far as the first zero.
        whole = down = 0.0
        for a in range(size):
            e = moving[a]
            whole += prices[e] * change[a]
            down += prices[e] * (max(theta[e] + change[a], 0.0) - theta[e])
        reach = 1.0
        bent = down < 0.1 * whole and down < 0.0
        for a in range(size):
            e = moving[a]
            if bent:
                change[a] = max(theta[e] + change[a], 0.0) - theta[e]
            elif change[a] < 0.0 and theta[e] + reach * change[a] < 0.0:
                reach = -theta[e] / change[a]
        for i in range(n_free):
            free.step[i] = 0.0
        for i in range(n_pieces):
            pieces.du[i] = 0.0
        level = 0.0
        for j in range(q):
            db[j] = 0.0
        for a in range(size):
            e, x = moving[a], change[a]
            level -= 0.5 * tilt * x
            for i in range(n_free):
                free.step[i] += x * H[e, i]
            for j in range(q):
                db[j] += x * V[e, j]
        quadratic = 0.0
        for j in range(q):
            x = db[j]
            for i in range(n_pieces):
                pieces.du[i] += x * pieces.Z[j, i]
            bending, pull = 0.0, -linear[j]
            for k in range(q):
                a = K[j, k] if k <= j else K[k, j]
                bending += a * db[k]
                pull += a * b[k]
            quadratic += x * bending
            level += x * pull
        # A step that overshoots by a little is taken; otherwise the zero of the slope is bracketed, by false
        # position that halves the weight of an end that stays.
        t, before = reach, 0.5 * (down if bent else whole)
        least, most, lower, upper = 0.0, reach, 2.0 * before, 0.0
        for line_step in range(MAX_LINE_STEPS + 1):
            if line_step > 0:
                t = least + (most - least) * min(max(lower / (lower - upper), MIN_SHARE), 1.0 - MIN_SHARE)
            rise = slope_along(n_free, n_pieces, t, level, quadratic, free, pieces)
            if rise <= -OVERSHOOT * before and (line_step == 0 or rise >= OVERSHOOT * before):
                break
            if rise > 0.0:
                most, upper, lower = t, rise, 0.5 * lower
            else:
                least, lower, upper = t, rise, 0.5 * upper
        if not t > 0.0:
            return count, tilt, S
        for a in range(size):
            e = moving[a]
            x = theta[e] + t * change[a]
            theta[e] = x if x > 1e-14 * theta[e] else 0.0
        for j in range(q):
            b[j] += t * db[j]
        for i in range(n_free):
            free.m[i] += t * free.step[i]
        for i in range(n_pieces):
            pieces.u[i] += t * pieces.du[i]
        move_free(n_corners, n_free, free, corners)
        move_pieces(n_pieces, G, pieces)
        count += 1


@inner
def price(n_free, cell, layout, slope, free):
    """layout.prices[c] <- D(v) = slope'v - sum mu_i max(-floor_i, z_i'v) at all corners; returns their error.

    Bit a of c says that coordinate layout.order[a] is high. Coordinates that are not listed are at their best
    ends, which layout.rest_bits has. Corners are sums of two tables, for the first and for the other half of
    the coordinates, over blocks of the samples with mu > 0.
    """
    axis, sign, low, high = cell
    ZF, mu, prices, first, second = free.Z, free.mu, layout.prices, layout.first, layout.second
    chosen, product, lowest = free.chosen, layout.product, layout.lowest
    q = ZF.shape[0]
    n_first, n_listed = layout.n_first[0], layout.n_listed[0]
    base = sign * slope[axis]
    size, bits = abs(base), 0
    for k in range(q):
        if k == axis:
            continue
        size += abs(slope[k]) * max(abs(low[k]), abs(high[k]))
        if layout.listed[k]:
            base += slope[k] * low[k]
        else:
            s = 0.0
            for i in range(n_free):
                s += mu[i] * ZF[k, i]
            s = slope[k] - 0.5 * s
            base += slope[k] * 0.5 * (low[k] + high[k]) - abs(s) * 0.5 * (high[k] - low[k])
            if s < 0.0:
                bits |= 1 << k
    if layout.has_rest:
        s = 0.0
        for i in range(n_free):
            s += mu[i] * free.rest[i]
        base -= 0.5 * s
        size += s
    layout.rest_bits[0] = bits
    prices[0] = base
    for a in range(n_listed):
        k = layout.order[a]
        x = slope[k] * (high[k] - low[k])
        for c in range(1 << a):
            prices[c + (1 << a)] = prices[c] + x
    i = 0
    while i < n_free:
        count = 0
        while i < n_free and count < BLOCK:
            if mu[i] > 0.0:
                chosen[count] = i
                count += 1
            i += 1
        for c in range(count):
            first[0, c] = second[0, c] = 0.0
            lowest[c] = -mu[chosen[c]] * free.floor[chosen[c]]
            size -= lowest[c]
        for k in range(q):
            if k == axis:
                x = sign
            elif layout.listed[k]:
                x = low[k]
            else:
                x = 0.5 * (low[k] + high[k])
            most = max(abs(low[k]), abs(high[k]))
            for c in range(count):
                z = mu[chosen[c]] * ZF[k, chosen[c]]
                first[0, c] += x * z
                size += most * abs(z)
        for a in range(n_listed):
            k = layout.order[a]
            width = high[k] - low[k]
            for c in range(count):
                product[c] = width * mu[chosen[c]] * ZF[k, chosen[c]]
            if a < n_first:
                for e in range(1 << a):
                    for c in range(count):
                        first[e + (1 << a), c] = first[e, c] + product[c]
            else:
                half = 1 << (a - n_first)
                for e in range(half):
                    for c in range(count):
                        second[e + half, c] = second[e, c] + product[c]
        for e in range(1 << (n_listed - n_first)):
            for d in range(1 << n_first):
                s = 0.0
                for c in range(count):
                    s += max(first[d, c] + second[e, c], lowest[c])
                prices[(e << n_first) + d] -= s
    # Each corner is a sum of q products, and so is each of its samples.
    return bounds.support_allowance(4 * q, size)


@inner
def factor_regular(K, L, share):
    """Cholesky factor of K, given by its lower triangle; whether all pivots exceed a share of its trace."""
    q = K.shape[0]
    trace = 0.0
    for j in range(q):
        trace += K[j, j]
    for j in range(q):
        for k in range(j + 1):
            s = K[j, k]
            for e in range(k):
                s -= L[j, e] * L[k, e]
            if k < j:
                L[j, k] = s / L[k, k]
            elif s > share * trace:
                L[j, j] = math.sqrt(s)
            else:
                return False
    return True


@inner
def draw_in(samples, cell, kind, room, small):
    """Draw in edges and settle samples by the ellipsoid of a bound that is `room` below the cutoff.

    With at and rho of `small` and with K = LL', the Gram matrix of the samples that are ON plus the ridge,
    every b in the cell has

        L(b) >= S + rho'(b - at) + (b - at)'K(b - at),

    so those with a loss up to S + room lie in the ellipsoid around c = at - K^-1 rho / 2 with
    (b - c)'K(b - c) <= room + rho'K^-1 rho / 4. Returns how much of the widths is left, -1 if nothing is.
    """
    Z = samples.Z
    axis, sign, low, high = cell
    n, q = Z.shape
    L, M, b, w, rho = small.L, small.M, small.step, small.direction, small.rho
    for j in range(q):
        w[j] = rho[j]
    solve_plus(L, q, w)
    gain = 0.0
    for j in range(q):
        b[j] = small.at[j] - 0.5 * w[j]
        gain += 0.25 * rho[j] * w[j]
    room = (room + gain) * (1.0 + INTERVAL_RTOL)
    if room < 0.0:
        return -1.0
    for i in range(n):
        if kind[i] != FREE and kind[i] != CONVEX:
            continue
        u = length = 0.0
        for j in range(q):
            s = Z[i, j]
            u += s * b[j]
            for k in range(j):
                s -= L[j, k] * w[k]
            w[j] = s / L[j, j]
            length += w[j] * w[j]
        radius = math.sqrt(room * length) + INTERVAL_ATOL
        if u - radius >= 0.0:
            kind[i] = ON
        elif u + radius <= 0.0:
            kind[i] = OFF
    # M = room K^-1, and the ratios b_k / s reached in the ellipsoid.
    for j in range(q):
        for k in range(q):
            w[k] = 0.0
        w[j] = 1.0
        solve_plus(L, q, w)
        for k in range(q):
            M[k, j] = w[k] * room
    s, radius = sign * b[axis], math.sqrt(max(M[axis, axis], 0.0)) + INTERVAL_ATOL
    if s + radius <= 0.0:
        return -1.0
    A = (s - INTERVAL_ATOL) * (s - INTERVAL_ATOL) - M[axis, axis]
    if s - radius <= 0.0 or A <= 0.0:
        return 1.0
    before = after = 0.0
    for k in range(q):
        if k == axis:
            continue
        before += high[k] - low[k]
        B, C = b[k] * s - sign * M[axis, k], b[k] * b[k] - M[k, k]
        root = math.sqrt(max(B * B - A * C, 0.0))
        low[k] = max(low[k], (B - root) / A - CELL_EDGE_TOL)
        high[k] = min(high[k], (B + root) / A + CELL_EDGE_TOL)
        if low[k] > high[k]:
            return -1.0
        after += high[k] - low[k]
    return after / before if before > 0.0 else 1.0


@inner
def least_length(samples, cell, free, small):
    """A lower bound of |(Zd)_+| over the directions d of a cell, at s = 1; 0 if none is found.

    |(Zd)_+| >= w'(Zd)_+ >= w'Zd for every w >= 0 of length 1, which is linear in d and least at a corner x. w
    is that of points to which Frank-Wolfe steps lead from the centre, towards the least |(Zd)_+|; the best of
    these is left in small.shortest.
    """
    Zt, x, at = samples.Zt, small.direction, small.step
    low, high = cell.low, cell.high
    q, n = Zt.shape
    u, du, best = free.m, free.step, 0.0
    for k in range(q):
        at[k] = 0.5 * (low[k] + high[k])
    multiply(Zt, at, n, u)
    for _ in range(LENGTH_STEPS):
        length = least = 0.0
        for i in range(n):
            length += max(u[i], 0.0) * u[i]
            du[i] = -u[i]
        if length <= 0.0:
            return 0.0
        for k in range(q):
            s = 0.0
            for i in range(n):
                s += max(u[i], 0.0) * Zt[k, i]
            x[k] = low[k] if s > 0.0 else high[k]
            least += s * x[k]
        if least / math.sqrt(length) > best:
            best = least / math.sqrt(length)
            for k in range(q):
                small.shortest[k] = at[k]
        if least > 0.9 * length:
            break
        for k in range(q):
            for i in range(n):
                du[i] += x[k] * Zt[k, i]
        a = 0.0
        for _ in range(LINE_STEPS):
            rise, curvature = 0.0, 1e-300
            for i in range(n):
                t = u[i] + a * du[i]
                if t > 0.0:
                    rise += t * du[i]
                    curvature += du[i] * du[i]
            a = min(max(a - rise / curvature, 0.0), 1.0)
        if a <= 0.0:
            break
        for i in range(n):
            u[i] += a * du[i]
        for k in range(q):
            at[k] += a * (x[k] - at[k])
    return best * (1.0 - SUM_TOL * n)


@inner
def spans_all(Z, kind, small):
    """Whether the samples that are not OFF span the whole space, by a wide margin; mostly a few do."""
    n, q = Z.shape
    K, L, count, enough = small.G, small.L, 0, 4 * q
    for j in range(q):
        for k in range(j + 1):
            K[j, k] = 0.0
    for i in range(n):
        if kind[i] != OFF:
            for j in range(q):
                for k in range(j + 1):
                    K[j, k] += Z[i, j] * Z[i, k]
            count += 1
            if count == enough:
                if factor_regular(K, L, SPAN_PIVOT_TOL):
                    return True
                enough *= 4
    return factor_regular(K, L, SPAN_PIVOT_TOL)


@inner
def bound_by_faces(faces, y, kind, mass):
    """The best bound of samples that are off, or nearly all of them: each that may be on costs its y^2."""
    n_faces, n = faces.outside.shape
    best = -np.inf
    if n_faces > 0:
        for i in range(n):
            mass[i] = y[i] * y[i] if kind[i] != OFF and y[i] > 0.0 else 0.0
    for e in range(n_faces):
        total = 0.0
        for i in range(n):
            total += mass[i] if faces.outside[e, i] else 0.0
        best = max(best, faces.bound[e] - total)
    return best


@inner
def list_coordinates(cell, weights, layout):
    """Choose the coordinates that are enumerated: all of them, or the widest."""
    axis, _, low, high = cell
    q = low.shape[0]
    for k in range(q):
        layout.listed[k] = False
    for a in range(layout.n_listed[0]):
        best, widest = -1, -1.0
        for k in range(q):
            width = (high[k] - low[k]) * (weights[k] + LEAST_WEIGHT)
            if k != axis and not layout.listed[k] and width > widest:
                best, widest = k, width
        layout.listed[best] = True
        layout.order[a] = best


@inner
def add_corners(n_corners, n_free, cell, layout, threshold, free, corners):
    """Add corners with the least prices below a threshold, no two of them neighbours; returns how many."""
    n_listed, prices = layout.n_listed[0], layout.prices
    for _ in range(MAX_ADDED):
        least, at = threshold, -1
        for c in range(1 << n_listed):
            if prices[c] < least:
                least, at = prices[c], c
        if at < 0 or n_corners >= MAX_CORNERS:
            break
        bits = layout.rest_bits[0]
        prices[at] = np.inf
        for a in range(n_listed):
            prices[at ^ (1 << a)] = np.inf
            if (at >> a) & 1:
                bits |= 1 << layout.order[a]
        known = False
        for e in range(n_corners):
            known = known or corners.bits[e] == bits
        if known:
            continue
        make_corner(n_free, n_corners, bits, cell, layout, free, corners)
        corners.bits[n_corners] = bits
        corners.theta[n_corners] = 0.0
        n_corners += 1
        add_products(n_corners, n_corners - 1, n_free, free, corners)
    return n_corners


@inner
def set_hinges(n_free, cell, s, is_far, layout, free):
    """Floors of the hinges of FREE samples, at scale 1, and the largest slopes that go with them.

    Hinges begin at 0, but for all scales from s on where they would for u with a normal distribution over the
    cell; any floor is sound. Rows are then in units in which slopes grow from 0 to the largest, y^2 / h, over
    a small share of the floor h.
    """
    ZF, yF, floor, cap, hinges = free.Z, free.y, free.floor, free.cap, layout.hinges
    for i in range(n_free):
        floor[i], cap[i] = 0.0, 2.0 * yF[i]
    if not is_far:
        return
    mean, spread = free.m, free.mu
    find_spreads(n_free, cell, free)
    for i in range(n_free):
        y, factor = yF[i], 1.0
        cap[i] = yF[i] = 0.0
        if mean[i] < 0.0 and spread[i] > 0.0:
            h = spread[i] * hinges[min(int(0.5 - HINGES_PER_UNIT * mean[i] / spread[i]), hinges.shape[0] - 1)]
            if h > 0.0:
                factor = y / (math.sqrt(2.0 * RAMP) * h * s)
                cap[i] = y * y / (h * s * factor)
                floor[i] = h * factor
        for k in range(ZF.shape[0]):
            ZF[k, i] *= factor


@inner
def find_spreads(n_free, cell, free):
    """Mean and spread of u of FREE samples over the corners of a cell, at s = 1, into free.m and free.mu."""
    ZF, mean, spread = free.Z, free.m, free.mu
    low, high = cell.low, cell.high
    for i in range(n_free):
        mean[i] = spread[i] = 0.0
    for k in range(low.shape[0]):
        middle, half = 0.5 * (low[k] + high[k]), 0.5 * SPREAD_SHARE * (high[k] - low[k])
        for i in range(n_free):
            z = ZF[k, i]
            mean[i] += middle * z
            spread[i] += (half * z) * (half * z)
    for i in range(n_free):
        spread[i] = math.sqrt(spread[i])


@inner
def set_up(samples, limits, cell, kind, before, off, scales, is_far, all_pieces, n_corners, work, small):
    """Everything that a relaxation of a cell for some scales needs, for the corners at hand.

    Returns the number of FREE samples and of pieces, a constant, and whether K is definite.
    """
    axis, sign, low, high = cell
    least, most, _ = scales
    layout, free, pieces, corners = work
    seen, K0, linear0, squares0 = before
    K, linear, b, rest, theta = small.K, small.linear, small.b, free.rest, corners.theta
    q = low.shape[0]
    for j in range(q):
        linear[j] = 0.0 if is_far else linear0[j]
        for k in range(j + 1):
            K[j, k] = samples.ridge[j, k] if is_far else K0[j, k]
    constant = off + (0.0 if is_far else squares0)
    constant += add_on(samples, kind, free.none if is_far else seen, is_far, K, linear)
    regular = factor_regular(K, small.L, ELLIPSOID_PIVOT_TOL)
    n_free = gather_free(samples, kind, free, small.weights)
    list_coordinates(cell, small.weights, layout)
    set_hinges(n_free, cell, least, is_far, layout, free)
    if layout.has_rest:
        for i in range(n_free):
            rest[i] = 0.0
        for k in range(q):
            if k != axis and not layout.listed[k]:
                for i in range(n_free):
                    rest[i] += 0.5 * (high[k] - low[k]) * abs(free.Z[k, i])
    s = 0.0
    for e in range(n_corners):
        s += theta[e]
    factor = min(max(s, least), most) / s
    for j in range(q):
        b[j] = 0.0
    for e in range(n_corners):
        theta[e] *= factor
        make_corner(n_free, e, corners.bits[e], cell, layout, free, corners)
        for j in range(q):
            b[j] += theta[e] * corners.V[e, j]
    n_pieces = gather_pieces(
        samples, limits, kind, b, least, most, is_far, all_pieces, axis, sign, free, pieces
    )
    place(n_corners, n_free, n_pieces, b, K, small.G, free, pieces, corners)
    return n_free, n_pieces, constant, regular


@inner
def take_note(n_corners, n_pieces, corners, pieces, note):
    """note <- what a bound follows from: number of corners, multiplier of the scale, corners and weights."""
    count, root = 0, math.sqrt(SCALE_PENALTY)
    for a in range(n_corners):
        if corners.theta[a] > 0.0:
            note[2 + 2 * count], note[3 + 2 * count] = corners.bits[a], corners.theta[a]
            count += 1
    note[0], note[1] = count, root * (pieces.nu[n_pieces - 1] - pieces.nu[n_pieces - 2])


@inner
def write_code(log, line, code):
    """Begin a step in the log of a part."""
    log.numbers[line, log.counts[line]] = code
    log.counts[line] += 1


@inner
def write_numbers(log, line, x, size):
    """Add numbers to the log of a part."""
    at = log.counts[line]
    for a in range(size):
        log.numbers[line, at + a] = x[a]
    log.counts[line] = at + size


@inner
def write_note(log, line, note):
    """Add what a bound follows from to the log of a part."""
    write_numbers(log, line, note, 2 + 2 * int(note[0]))


@inner
def write_settled(log, line, kind, before, cutoff):
    """Add the cutoff, how many samples were settled, and which, to the log of a part."""
    count, at = 0, log.counts[line]
    for i in range(kind.shape[0]):
        if kind[i] != before[i]:
            log.numbers[line, at + 2 + count] = i
            count += 1
    log.numbers[line, at], log.numbers[line, at + 1] = cutoff, count
    log.counts[line] = at + 2 + count


@inner
def is_any_nearly_on(kind, free):
    """Whether a sample that is OFF may be on by its rounding."""
    for i in range(kind.shape[0]):
        if kind[i] == OFF and free.centre[i] + free.radius[i] > -INTERVAL_ATOL:
            return True
    return False


@inner
def note_far(log, line, scale):
    """Add to the log of a part that what samples that are OFF cost closes all scales from one on."""
    write_code(log, line, LOG_FAR)
    at = log.counts[line]
    log.numbers[line, at], log.numbers[line, at + 1], log.numbers[line, at + 2] = scale, 0.0, 0.0
    log.counts[line] = at + 3


@inner
def bound_scales(
    samples,
    limits,
    cell,
    kind,
    before,
    off,
    scales,
    is_far,
    n_corners,
    cutoff,
    best,
    work,
    small,
    counts,
    log,
):
    """Bound a cell for some scales: improve weights and add corners until the bound reaches the cutoff.

    scales: the least, the largest, and whether that is known or only guides steps. is_far: for all larger
    scales as well, at the first; it is given up as soon as the corners at work do not reach the cutoff.
    small.at <- the point of the bound that is best for an ellipsoid. Returns the number of corners, the best
    bound, that of the ellipsoid, S + lowest s, with the lowest price in it, the last S, and whether K, whose
    factor is small.L, is definite.
    """
    axis, sign = cell.axis, cell.sign
    least, most, is_limit = scales
    layout, free, pieces, corners = work
    # From a log slopes are computed again for all samples.
    is_logged = log.counts.shape[0] > 0
    n_free, n_pieces, constant, regular = set_up(
        samples, limits, cell, kind, before, off, scales, is_far, is_logged, n_corners, work, small
    )
    b, at, rho, slope = small.b, small.at, small.rho, small.slope
    q = b.shape[0]
    tol = WEIGHT_TOL * abs(cutoff)
    found_S, found_price, S = -np.inf, 0.0, -np.inf
    for pricing in range(MAX_PRICINGS):
        steps, tilt, S = optimise(
            n_corners, n_free, n_pieces, constant, cutoff, tol, is_far, free, pieces, corners, small
        )
        counts[0] += steps
        s = sign * b[axis]
        if (is_far and cutoff > S) or (not is_limit and pieces.nu[n_pieces - 1] > 0.0):
            break
        error = price(n_free, cell, layout, slope, free)
        counts[1] += 1
        lowest = np.inf
        for c in range(1 << layout.n_listed[0]):
            lowest = min(lowest, layout.prices[c])
        lowest -= error
        if lowest >= 0.0:
            value = S + lowest * least
        else:
            value = S + lowest * most if is_limit else -np.inf
            if regular:
                for j in range(q):
                    rho[j] = 0.0
                rho[axis] = 1.0
                solve_plus(small.L, q, rho)
                inverse = rho[axis] * (1.0 + INTERVAL_RTOL)
                value = max(value, S + lowest * s - 0.25 * lowest * lowest * inverse)
        if value > best:
            best = value
            if is_logged:
                take_note(n_corners, n_pieces, corners, pieces, log.best)
        if S + lowest * s > found_S:
            found_S, found_price = S + lowest * s, lowest
            if is_logged and not is_far:
                take_note(n_corners, n_pieces, corners, pieces, log.drawn)
            for j in range(q):
                at[j] = b[j]
        if best >= cutoff:
            break
        is_poor = value < S - POOR_SHARE * (cutoff - S)
        if cutoff > S and pricing >= (MORE_PRICINGS if is_poor else 0):
            break
        if lowest >= 0.0 or n_corners >= MAX_CORNERS:
            break
        n_before = n_corners
        n_corners = add_corners(n_corners, n_free, cell, layout, 0.3 * tilt + 0.02 * lowest, free, corners)
        if n_corners == n_before:
            break
    return n_corners, best, found_S, found_price, S, regular


@inner
def is_far_closed(
    samples, limits, cell, kind, before, off, least, n_corners, cutoff, work, small, counts, log
):
    """Whether nothing in the cell with a scale from `least` on is below the cutoff.

    Corners stay as they are. `small` is not that of another relaxation that is still in use.
    """
    corners = work.corners
    for e in range(n_corners):
        corners.kept_theta[e], corners.kept_bits[e] = corners.theta[e], corners.bits[e]
    scales = (least, least, True)
    _, best, _, _, _, _ = bound_scales(
        samples,
        limits,
        cell,
        kind,
        before,
        off,
        scales,
        True,
        n_corners,
        cutoff,
        -np.inf,
        work,
        small,
        counts,
        log,
    )
    for e in range(n_corners):
        corners.theta[e], corners.bits[e] = corners.kept_theta[e], corners.kept_bits[e]
    return best >= cutoff


@inner
def scales_within(limits, cell, least, limit):
    """The least and the largest scale in a cell that constraints z'b <= end allow; least > limit if none."""
    for e in range(limits.ends.shape[0]):
        end, lowest, size = limits.ends[e], 0.0, 0.0
        for j in range(limits.Zt.shape[0]):
            z = limits.Zt[j, e]
            lowest += min(z * cell.low[j], z * cell.high[j])
            size += abs(z)
        lowest -= SUM_TOL * size
        if end >= 0.0:
            if lowest > 0.0:
                limit = min(limit, end / lowest * (1.0 + INTERVAL_RTOL))
        elif lowest >= 0.0:
            return np.inf, limit
        else:
            least = max(least, end / lowest * (1.0 - INTERVAL_RTOL))
    return least, limit


@inner
def bound_cell(
    samples, limits, cell, kind, before, n_corners, known, faces, work, small, far, found, log, line
):
    """Bound one cell.

    The edges and kinds are tightened; line of found <- where the relaxation has its minimum. `before`: the
    kinds that were seen, and what belongs to those ON; `far`: room for the bound of all larger scales.
    Returns what became of the cell, the bound, how many corners are left, where to split, and the largest
    scale.
    """
    axis, sign, low, high = cell
    cutoff, explained, needed, limit, best = known
    n, q = samples.Z.shape
    free, corners = work.free, work.corners
    y, centre, radius, theta, bits = samples.y, free.centre, free.radius, corners.theta, corners.bits
    weights, b, rho, counts = small.weights, small.b, small.rho, found.counts[line]
    for j in range(q):
        b[j] = 0.0
    left, regular, is_logged = 2.0, False, log.counts.shape[0] > 0
    for _ in range(MAX_ROUNDS):
        settle(samples, cell, kind, free)
        off = longest = middle = product = 0.0
        for i in range(n):
            if kind[i] == OFF or kind[i] == CONVEX:
                off += y[i] * y[i]
            longest += max(centre[i] + radius[i], 0.0) ** 2
            middle += max(centre[i], 0.0) ** 2
            product += max(centre[i], 0.0) * y[i]
        best = max(best, off * (1.0 - SUM_TOL), bound_by_faces(faces, y, kind, free.m))
        if best >= cutoff:
            if is_logged and limit == np.inf and is_any_nearly_on(kind, free):
                note_far(log, line, FAR_BEGIN * explained)
            return CLOSED, best, 0, -1, limit
        for j in range(q):
            for k in range(q):
                most = max(-low[j], high[j]) * max(-low[k], high[k])
                longest += abs(samples.ridge[j, k]) * most
        # What is sought has needed^2 <= |u_+|^2 + b'ridge b and |u_+| <= explained.
        least = needed / (math.sqrt(longest) * (1.0 + INTERVAL_RTOL)) if longest > 0.0 else 0.0
        least, limit = scales_within(limits, cell, least, limit)
        if least > limit:
            return CLOSED, cutoff, 0, -1, limit
        if n_corners == 0:
            # Both ends of a diagonal, as far out as the best multiple of the centre.
            scale = max(product / middle, MIN_WIDTH) if middle > 0.0 else MIN_WIDTH
            n_corners = 2
            bits[0] = bits[1] = 0
            for k in range(q):
                if k != axis:
                    bits[1] |= 1 << k
            theta[0] = theta[1] = 0.5 * scale
        for is_last in (False, True):
            is_limit = limit < np.inf
            guide = max(GUIDING_SCALE * explained, 2.0 * least)
            scales = (least, limit if is_limit else guide, is_limit)
            known_best = best
            n_corners, best, found_S, found_price, S, regular = bound_scales(
                samples,
                limits,
                cell,
                kind,
                before,
                off,
                scales,
                False,
                n_corners,
                cutoff,
                best,
                work,
                small,
                counts,
                log,
            )
            if is_logged and best > known_best:
                write_code(log, line, LOG_BOUND)
                write_note(log, line, log.best)
            if best >= cutoff:
                return CLOSED, best, 0, -1, limit
            kept = 0
            for e in range(n_corners):
                if theta[e] > 0.0:
                    bits[kept], theta[kept] = bits[e], theta[e]
                    kept += 1
            n_corners = kept
            if is_last or cutoff <= S or n_corners == 0:
                break
            # Once more for smaller scales, if the minimum is not among them.
            s, smaller = sign * b[axis], limit
            if s * math.sqrt(middle) > explained:
                length = least_length(samples, cell, free, small)
                if length * smaller > explained:
                    smaller = explained / length
                    if is_logged:
                        write_code(log, line, LOG_LENGTH)
                        write_numbers(log, line, small.shortest, q)
            begin = max(FAR_BEGIN * explained, least)
            if smaller > FAR_END * explained and is_far_closed(
                samples, limits, cell, kind, before, off, begin, n_corners, cutoff, work, far, counts, log
            ):
                smaller = begin
                if is_logged:
                    write_code(log, line, LOG_FAR)
                    small.shortest[0] = begin
                    write_numbers(log, line, small.shortest, 1)
                    write_note(log, line, log.best)
            if smaller <= least:
                return CLOSED, cutoff, 0, -1, limit
            if smaller >= limit:
                break
            limit = smaller
            if limit > s:
                break
        if found_S == -np.inf:
            n_corners = 0
            break
        left = 2.0
        if regular:
            for j in range(q):
                rho[j] = 0.0
            rho[axis] = found_price * sign
            if is_logged:
                for i in range(n):
                    free.chosen[i] = kind[i]
            # Room for all rounding that a checker allows for, too.
            room = cutoff - found_S + DRAW_ATOL * kind.shape[0] * explained * explained
            left = draw_in(samples, cell, kind, room, small)
            if is_logged:
                write_code(log, line, LOG_DRAW)
                write_note(log, line, log.drawn)
                write_numbers(log, line, low, q)
                write_numbers(log, line, high, q)
                write_settled(log, line, kind, free.chosen, cutoff)
            if left < 0.0:
                return CLOSED, cutoff, 0, -1, limit
        if left > NARROWED_SHARE:
            break
    state = GOOD if regular or spans_all(samples.Z, kind, small) else THIN
    split, widest = -1, 0.0
    for k in range(q):
        width = high[k] - low[k]
        if k != axis and width > MIN_WIDTH and width * (weights[k] + LEAST_WEIGHT) > widest:
            widest = width * (weights[k] + LEAST_WEIGHT)
            split = k
    loss, u = 0.0, free.m
    multiply(samples.Zt, b, n, u)
    for i in range(n):
        loss += (max(u[i], 0.0) - y[i]) ** 2
    found.losses[line] = loss
    for j in range(q):
        found.points[line, j] = b[j]
    return state, best, n_corners, split, limit


@inner
def unpack(packed, kind):
    """Kinds from two bits each."""
    for i in range(kind.shape[0]):
        kind[i] = (packed[i >> 2] >> (2 * (i & 3))) & 3


@inner
def pack(kind, packed):
    """Kinds into two bits each."""
    for i in range(packed.shape[0]):
        packed[i] = 0
    for i in range(kind.shape[0]):
        packed[i >> 2] |= np.uint8(kind[i] << (2 * (i & 3)))


@compiled
def expand(
    samples: Samples,
    limits: Limits,
    cells: Cells,
    nodes: Integers,
    others: Integers,
    known: tuple[float, float, float, float],
    faces: FaceBounds,
    layout: Layout,
    free: FreeWork,
    pieces: PieceWork,
    corners: CornerWork,
    small: SmallWork,
    far: SmallWork,
    found: Found,
    log: CellLog,
) -> None:
    """Split cells in two and bound both parts, which take the places `nodes` and `others`.

    cells.state and cells.bound of these places are set; found has where the relaxation of each is least. The
    log, if it has lines, has the steps by which each part was bounded.
    """
    samples, cells, faces, layout = Samples(*samples), Cells(*cells), FaceBounds(*faces), Layout(*layout)
    limits = Limits(*limits)
    free, pieces, corners = FreeWork(*free), PieceWork(*pieces), CornerWork(*corners)
    small, far, found, log = SmallWork(*small), SmallWork(*far), Found(*found), CellLog(*log)
    work = CellWork(layout, free, pieces, corners)
    n, q = samples.Z.shape
    kind, seen, K, linear = np.empty(n, np.int8), np.empty(n, np.int8), np.empty((q, q)), np.empty(q)
    n_kept = cells.corners.shape[1]
    bits, theta = np.empty(n_kept, np.int64), np.empty(n_kept)
    low, high = np.empty((2, q)), np.empty((2, q))
    cutoff, explained, needed, limit = known
    for e in range(nodes.shape[0]):
        node = nodes[e]
        axis, sign, parent = cells.axis[node], 1.0 * cells.sign[node], cells.bound[node]
        n_corners, at = cells.n_corners[node], cells.split[node]
        unpack(cells.kinds[node], seen)
        for j in range(q):
            linear[j] = 0.0
            low[0, j] = low[1, j] = cells.low[node, j]
            high[0, j] = high[1, j] = cells.high[node, j]
            for k in range(j + 1):
                K[j, k] = samples.ridge[j, k]
        high[0, at] = low[1, at] = 0.5 * (low[0, at] + high[0, at])
        squares = add_on(samples, seen, free.none, False, K, linear)
        largest = min(cells.limit[node], limit)
        for a in range(n_corners):
            bits[a], theta[a] = cells.corners[node, a], cells.weights[node, a]
        for part in range(2):
            place = node if part == 0 else others[e]
            for i in range(n):
                kind[i] = seen[i]
            for a in range(n_corners):
                corners.bits[a], corners.theta[a] = bits[a], theta[a]
            cell = Cell(axis, sign, low[part], high[part])
            state, bound, kept, split, reached = bound_cell(
                samples,
                limits,
                cell,
                kind,
                (seen, K, linear, squares),
                n_corners,
                (cutoff, explained, needed, largest, parent),
                faces,
                work,
                small,
                far,
                found,
                log,
                2 * e + part,
            )
            cells.state[place], cells.bound[place] = state, bound
            if state == CLOSED:
                continue
            for j in range(q):
                cells.low[place, j], cells.high[place, j] = low[part, j], high[part, j]
            cells.limit[place] = reached
            pack(kind, cells.kinds[place])
            while kept > n_kept:
                least = 0
                for a in range(kept):
                    if corners.theta[a] < corners.theta[least]:
                        least = a
                kept -= 1
                corners.theta[least], corners.bits[least] = corners.theta[kept], corners.bits[kept]
            for a in range(kept):
                cells.corners[place, a], cells.weights[place, a] = corners.bits[a], corners.theta[a]
            cells.n_corners[place], cells.axis[place], cells.sign[place] = kept, axis, cells.sign[node]
            cells.split[place] = split
