"""Compiled loops of the search over directions: one cone from its edges to its bound (see cones.py)."""

from __future__ import annotations

import math

import numpy as np

from rectifit import bounds
from rectifit._typing import Vector
from rectifit.certificate.kernel import support_line
from rectifit.certificate.records import (
    CONVEX,
    FREE,
    OFF,
    ON,
    ConeBounds,
    ConeHalves,
    ConeShape,
    KernelRows,
    Kinds,
    Samples,
)
from rectifit.compiling import compiled, inner, kernel_of, shared
from rectifit.surrogate.kernel import (
    MAX_STEPS,
    MAX_STEPS_PER_COEFFICIENT,
    add_to_gram,
    backward,
    dot,
    factor,
    forward,
    gradient,
    minimise,
    multiply,
    weigh_residual,
)
from rectifit.surrogate.records import FLAT, QUADRATIC
from rectifit.tolerances import (
    CONE_EDGE_TOL,
    ELLIPSOID_PIVOT_TOL,
    FACE_PENALTY,
    INTERVAL_ATOL,
    INTERVAL_RTOL,
    SPAN_PIVOT_TOL,
    SUM_TOL,
)

__all__ = ["EMPTY", "GOOD", "THIN", "UNSURE", "bound_parts", "build_cone", "is_compiled"]

# What became of a cone: it has a bound; it has one, but its samples may not span the space; it has none that
# is certain; it holds nothing below the cutoff.
GOOD = 0
THIN = 1
UNSURE = 2
EMPTY = 3

# Cones that are not wider are not split any more, in ratios of coordinates.
MIN_WIDTH = 1e-9
# Share of the Lovasz extension in the function above max(0, u), and the least s at which it is linearised.
LOVASZ_SHARE = 0.8
MIN_LOVASZ_SCALE = 1e-9
# Pieces beyond y are left out where u is not above this share of y.
LIKELY_SHARE = 0.5
# A cone is bounded once more if its edges were drawn in to less than this share of their length.
NARROWED_SHARE = 0.9
MAX_ROUNDS = 2
# Added to how much coordinates matter, so that the widest is split where none does.
LEAST_WEIGHT = 1e-12

shared(bounds.is_balanced)


@inner
def fill_cone(samples, shape, point, mix, likely, kind, piece_rows, weights):
    """Fill in the kernel's rows of a cone, and settle samples of one sign.

    point is where the Lovasz extension is linearised, mix its share. Of the pieces (u - y)_+^2 only those are
    used that have u > likely y there. weights <- how much each coordinate matters. Returns the number of rows
    and the constant.
    """
    Z, Zt, y = samples.Z, samples.Zt, samples.y
    axis, sign, low, high = shape
    rows, norms, kinks, outcomes = piece_rows
    n, q = Z.shape
    m, constant = 0, 0.0
    width, inverse, place = np.empty(q), np.empty(q), np.empty(q)
    up, at, reach = np.empty(q), np.empty(q), np.empty(q)
    scale = sign * point[axis]
    if scale <= MIN_LOVASZ_SCALE:
        mix = 0.0
    for k in range(q):
        weights[k] = 0.0
        width[k] = high[k] - low[k] if k != axis else 0.0
        inverse[k] = 1.0 / width[k] if width[k] > 0.0 else 0.0
        place[k] = (point[k] / scale - low[k]) * inverse[k] if mix > 0.0 else 0.0
    # Ratios of u to s in the cone lie around a centre, and u at the point.
    centre, radius, u = np.zeros(n), np.zeros(n), np.zeros(n)
    for k in range(q):
        middle, half, b = 0.5 * (low[k] + high[k]), 0.5 * width[k], point[k]
        for i in range(n):
            z = Zt[k, i]
            centre[i] += z * middle
            radius[i] += abs(z) * half
            u[i] += z * b
    for i in range(n):
        if kind[i] == OFF:
            constant += y[i] * y[i]
            continue
        least, most = centre[i] - radius[i], centre[i] + radius[i]
        if kind[i] != ON:
            if least >= 0.0:
                kind[i] = ON
            elif most <= 0.0:
                kind[i] = OFF
                constant += y[i] * y[i]
                continue
        if kind[i] != FREE or u[i] > likely * y[i]:
            length = 0.0
            for j in range(q):
                rows[m, j] = Z[i, j]
                length += Z[i, j] * Z[i, j]
            norms[m] = math.sqrt(length)
            outcomes[m] = y[i]
            if kind[i] == ON:
                kinks[m] = -np.inf
            elif kind[i] == CONVEX:
                kinks[m] = 0.0
                constant += y[i] * y[i]
            else:
                kinks[m] = y[i]
            m += 1
        if kind[i] != FREE:
            continue
        # max(0, u) <= s (the chord over the ratios), and <= s (the Lovasz extension): a mix of both is above.
        share = most / (most - least) * (1.0 - mix)
        for j in range(q):
            rows[m, j] = -share * Z[i, j]
            weights[j] += y[i] * abs(Z[i, j])
        raised = share * least
        if mix > 0.0:
            # One coordinate after the other goes from its end that lowers u to the one that raises it, those
            # first that are farthest on this way at the point.
            # Signs as numbers: branches would go either way.
            for k in range(q):
                z = Z[i, k]
                up[k] = 1.0 * (z >= 0.0)
                at[k] = up[k] * place[k] + (1.0 - up[k]) * (1.0 - place[k])
                reach[k] = abs(z) * width[k]
            for k in range(q):
                here, reached = at[k], least
                for e in range(k):
                    reached += reach[e] * (at[e] >= here)
                for e in range(k + 1, q):
                    reached += reach[e] * (at[e] > here)
                beyond = reached + reach[k]
                rise = mix * (beyond * (beyond > 0.0) - reached * (reached > 0.0)) * inverse[k]
                rows[m, k] -= (2.0 * up[k] - 1.0) * rise
                raised += rise * (up[k] * low[k] - (1.0 - up[k]) * high[k])
        rows[m, axis] += raised * sign
        length = 0.0
        for j in range(q):
            length += rows[m, j] * rows[m, j]
        norms[m] = math.sqrt(length)
        kinks[m] = outcomes[m] = -y[i]
        m += 1
    # Faces of the cone, as penalties.
    root = math.sqrt(FACE_PENALTY)
    for k in range(q):
        for side in range(1 if k == axis else 2):
            for j in range(q):
                rows[m, j] = 0.0
            if k == axis:
                rows[m, k] = -root * sign
                norms[m] = root
            else:
                edge = high[k] if side == 0 else low[k]
                rows[m, k] = root if side == 0 else -root
                rows[m, axis] = -rows[m, k] * edge * sign
                norms[m] = root * math.sqrt(1.0 + edge * edge)
            kinks[m] = outcomes[m] = 0.0
            m += 1
    return m, constant


@inner
def bound_pieces(piece_rows, constant, ridge, b, rho):
    """Minimise from b, which becomes the minimiser. Returns a support, a lower bound, and if that is certain.

    The first is the value S at b of supporting functions with slopes lambda; rho <- their residual there. The
    bound is that of bounds.py: with G the Gram matrix of all pieces with a slope and v = G^-1 rho it
    is S - rho'v / 4, and needs lambda_i >= z_i'v.
    """
    rows, norms, kinks, outcomes = piece_rows
    m, q = rows.shape
    columns, u, state = np.empty((q, m)), np.empty(m), np.empty(m, np.int8)
    G, none = np.empty((q, q)), np.zeros((1, q))
    for j in range(q):
        for k in range(q):
            G[j, k] = ridge[j, k]
        for i in range(m):
            columns[j, i] = rows[i, j]
    multiply(columns, b, u)
    for i in range(m):
        state[i] = QUADRATIC if u[i] > kinks[i] else FLAT
        if u[i] > kinks[i]:
            add_to_gram(G, rows, i, 1.0)
    problem = (rows, columns, norms, outcomes, np.zeros(m), none, ridge)
    warm = (b.copy(), u, state, G, np.zeros(q))
    end, slopes, L = np.empty((1, q)), np.empty((1, m)), np.empty((1, q, q))
    converged = np.empty(1, np.bool_)
    minima = (end, np.empty((1, m), np.int8), slopes, L, np.empty(1, np.int64), converged)
    max_steps = MAX_STEPS + MAX_STEPS_PER_COEFFICIENT * q
    # Not the literal False, for which the kernel would be compiled once more.
    no = m < 0
    minimise(problem, kinks.reshape((1, m)), max_steps, no, no, warm, warm, minima)
    for j in range(q):
        b[j] = end[0, j]
    multiply(columns, b, u)
    value = support_line(kinks, outcomes, u, slopes[0], constant, q)
    gradient(columns, slopes[0], none[0], ridge, b, rho)
    for j in range(q):
        for k in range(q):
            value += b[j] * ridge[j, k] * b[k]
    v = rho.copy()
    decrement, _ = weigh_residual(L[0], v)
    certain = converged[0] and is_feasible(piece_rows, ridge, slopes[0], rho, v)
    return value, value - decrement, certain


@inner
def is_feasible(piece_rows, ridge, slopes, rho, v):
    """Whether lambda_i >= z_i'v for all pieces with a kink, and rho - G v is rounding, G from the pieces."""
    rows, kinks = piece_rows.rows, piece_rows.kinks
    m, q = rows.shape
    rest, total, feasible = rho.copy(), 0.0, True
    for j in range(q):
        for k in range(q):
            rest[j] -= ridge[j, k] * v[k]
    for i in range(m):
        whole = kinks[i] == -np.inf
        total += abs(slopes[i])
        if whole or slopes[i] > 0.0:
            s = 0.0
            for j in range(q):
                s += rows[i, j] * v[j]
            for j in range(q):
                rest[j] -= s * rows[i, j]
            feasible = feasible and (slopes[i] >= s or whole)
    remainder = 0.0
    for j in range(q):
        remainder += abs(rest[j])
    return feasible and bounds.is_balanced(remainder, total)


@inner
def is_regular(K, L, share):
    """Factor K into L; whether no pivot is below this share of the trace."""
    q, trace, least = len(K), 0.0, np.inf
    factor(K, L, q)
    for j in range(q):
        trace += K[j, j]
        least = min(least, 1.0 / (L[j, j] * L[j, j]) if L[j, j] > 0.0 else 0.0)
    return least > share * trace


@inner
def draw_in(samples, shape, kind, at, rho, room):
    """Draw in edges and settle samples by the ellipsoid of a bound that is `room` below the cutoff.

    With K the Gram matrix of the samples that are ON, plus the ridge, every t has

        R(at + t) >= S + rho't + t'Kt,

    so solutions in the cone with a loss up to S + room lie in the ellipsoid around b = at - K^-1 rho / 2 with
    (b' - b)'K(b' - b) <= room + rho'K^-1 rho / 4. Returns how much of the widths is left, 2 if K is singular,
    or -1 if nothing is left.
    """
    Z, ridge = samples.Z, samples.ridge
    axis, sign, low, high = shape
    n, q = Z.shape
    K, L, M = np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
    b, w = at.copy(), rho.copy()
    for j in range(q):
        for k in range(q):
            K[j, k] = ridge[j, k]
    for i in range(n):
        if kind[i] == ON:
            add_to_gram(K, Z, i, 1.0)
    if not is_regular(K, L, ELLIPSOID_PIVOT_TOL):
        return 2.0
    forward(L, w, q)
    room = (room + 0.25 * dot(w, w)) * (1.0 + INTERVAL_RTOL)
    backward(L, w, q)
    for j in range(q):
        b[j] -= 0.5 * w[j]
    for i in range(n):
        if kind[i] != FREE and kind[i] != CONVEX:
            continue
        u = 0.0
        for j in range(q):
            w[j] = Z[i, j]
            u += w[j] * b[j]
        forward(L, w, q)
        radius = math.sqrt(room * dot(w, w)) + INTERVAL_ATOL
        if u - radius >= 0.0:
            kind[i] = ON
        elif u + radius <= 0.0:
            kind[i] = OFF
    # M = room K^-1, and the ratios b_k / s reached in the ellipsoid.
    for j in range(q):
        for k in range(q):
            w[k] = 0.0
        w[j] = 1.0
        forward(L, w, q)
        backward(L, w, q)
        for k in range(q):
            M[k, j] = w[k] * room
    s, radius = sign * b[axis], math.sqrt(max(M[axis, axis], 0.0)) + INTERVAL_ATOL
    if s + radius <= 0.0:
        return -1.0
    if s - radius <= 0.0:
        return 1.0
    before, after = 0.0, 0.0
    A = (s - INTERVAL_ATOL) * (s - INTERVAL_ATOL) - M[axis, axis]
    for k in range(q):
        if k == axis:
            continue
        before += high[k] - low[k]
        B, C = b[k] * s - sign * M[axis, k], b[k] * b[k] - M[k, k]
        root = math.sqrt(max(B * B - A * C, 0.0))
        low[k] = max(low[k], (B - root) / A - CONE_EDGE_TOL)
        high[k] = min(high[k], (B + root) / A + CONE_EDGE_TOL)
        if low[k] > high[k]:
            return -1.0
        after += high[k] - low[k]
    return after / before if before > 0.0 else 1.0


@inner
def spans_all(Z, kind):
    """Whether the samples that are not OFF span the whole space, by a wide margin; mostly a few do."""
    n, q = Z.shape
    K, L, count, enough = np.zeros((q, q)), np.empty((q, q)), 0, 4 * q
    for i in range(n):
        if kind[i] != OFF:
            add_to_gram(K, Z, i, 1.0)
            count += 1
            if count == enough:
                if is_regular(K, L, SPAN_PIVOT_TOL):
                    return True
                enough *= 4
    return is_regular(K, L, SPAN_PIVOT_TOL)


@inner
def bound_cone(samples, shape, kind, b, cutoff, weights):
    """Bound one cone. Returns what became of it, and the bound.

    The edges of the cone and kind are tightened; b, where the search begins, becomes the minimiser;
    weights <- how much each coordinate matters.
    """
    n, q = samples.Z.shape
    size = 2 * n + 2 * q
    rows, norms, kinks, outcomes = np.empty((size, q)), np.empty(size), np.empty(size), np.empty(size)
    room = KernelRows(rows, norms, kinks, outcomes)
    best, share, rho = -np.inf, 0.0, np.empty(q)
    for _ in range(MAX_ROUNDS):
        m, constant = fill_cone(samples, shape, b, LOVASZ_SHARE, LIKELY_SHARE, kind, room, weights)
        if constant * (1.0 - SUM_TOL) >= cutoff:
            return EMPTY, constant
        used = KernelRows(rows[:m], norms[:m], kinks[:m], outcomes[:m])
        supported, value, certain = bound_pieces(used, constant, samples.ridge, b, rho)
        if not certain:
            return UNSURE, best
        best = max(best, value)
        if best >= cutoff:
            return EMPTY, best
        share = draw_in(samples, shape, kind, b, rho, cutoff - supported)
        if share < 0.0:
            return EMPTY, cutoff
        if share > NARROWED_SHARE:
            break
    return GOOD if share < 2.0 or spans_all(samples.Z, kind) else THIN, best


@compiled
def build_cone(
    samples: Samples,
    shape: ConeShape,
    point: Vector,
    mix: float,
    likely: float,
    kind: Kinds,
    piece_rows: KernelRows,
    weights: Vector,
) -> tuple[int, float]:
    """`fill_cone` for callers outside of compiled code."""
    samples, shape, piece_rows = Samples(*samples), ConeShape(*shape), KernelRows(*piece_rows)
    return fill_cone(samples, shape, point, mix, likely, kind, piece_rows, weights)


@compiled
def bound_parts(samples: Samples, halves: ConeHalves, cutoff: float, found: ConeBounds) -> None:
    """Split a cone in the middle of a coordinate and bound both halves, which are given as copies of it."""
    samples, halves, found = Samples(*samples), ConeHalves(*halves), ConeBounds(*found)
    axis, q = halves.axis, samples.Z.shape[1]
    low, high, coordinate = halves.low, halves.high, halves.coordinate
    middle, weights = 0.5 * (low[0, coordinate] + high[0, coordinate]), np.empty(q)
    high[0, coordinate] = low[1, coordinate] = middle
    for e in range(2):
        shape = ConeShape(axis, halves.sign, low[e], high[e])
        state, bound = bound_cone(samples, shape, halves.kind[e], halves.b[e], cutoff, weights)
        found.states[e], found.bounds[e], found.splits[e] = state, bound, -1
        widest = 0.0
        for k in range(q):
            width = high[e, k] - low[e, k]
            importance = width * (weights[k] + LEAST_WEIGHT)
            if k != axis and width > MIN_WIDTH and importance > widest:
                widest = importance
                found.splits[e] = k


def is_compiled() -> bool:
    """Whether a search over directions can begin at once, without some seconds of compilation."""
    kernel = kernel_of(bound_parts)
    return kernel.is_loaded or kernel.is_cached
