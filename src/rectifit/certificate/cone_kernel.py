"""Compiled loops of the search over directions: one cone from its edges to its bound (see cones.py)."""

from __future__ import annotations

import math
from pathlib import Path

import numba
import numpy as np

from rectifit.certificate.kernel import CONVEX, FREE, OFF, ON, support
from rectifit.surrogate.kernel import (
    FLAT,
    HELPER_OPTIONS,
    OPTIONS,
    QUADRATIC,
    add_to_gram,
    backward,
    dot,
    factor,
    forward,
    minimise,
)

__all__ = ["EMPTY", "GOOD", "UNSURE", "bound_parts", "build_cone", "is_compiled"]

# What became of a cone: it has a bound, and so has one whose samples may not span the space; it has none that
# is sure; it holds nothing below the cutoff. Cones that are not wider than NARROW are not split any more.
GOOD, THIN, UNSURE, EMPTY = 0, 1, 2, 3
NARROW = 1e-9

# Root of the weight of the penalties.
PENALTY = 100.0
# Share of the Lovasz extension. Pieces beyond y are left out where u is not above this share of y.
MIX, LIKELY = 0.8, 0.5
# The edges are drawn in once more if that left less than this share of their length.
NARROWED, ROUNDS = 0.9, 2
# A residual outside the range of the curved pieces means that the bound is not sure; pivots below these
# shares of their matrix that it may be singular, and that its inverse has lost digits.
NO_REMAINDER, SINGULAR, INACCURATE = 1e-12, 1e-9, 1e-7
# Edges and intervals are widened by so much against rounding.
RELATIVE, ABSOLUTE = 1e-7, 1e-9
EPS = 2.3e-16

compiled = numba.njit(cache=True, **OPTIONS)
inner = numba.njit(**HELPER_OPTIONS)


@compiled
def build_cone(
    Z, Zt, y, axis, sign, low, high, point, mix, likely, kind, rows, norms, kinks, outcomes, weights
):
    """Fill in the kernel's rows of a cone, and settle samples of one sign.

    point is where the Lovasz extension is linearised. Of the pieces (u - y)_+^2 only those are used that have
    u > likely y there. weights <- how much each coordinate matters. Returns how many rows there are, and the
    constant.
    """
    n, q = Z.shape
    m, constant = 0, 0.0
    width, inverse, place = np.empty(q), np.empty(q), np.empty(q)
    up, at, reach = np.empty(q), np.empty(q), np.empty(q)
    scale = sign * point[axis]
    if scale <= 1e-9:
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
    for k in range(q):
        for side in range(1 if k == axis else 2):
            for j in range(q):
                rows[m, j] = 0.0
            if k == axis:
                rows[m, k] = -PENALTY * sign
                norms[m] = PENALTY
            else:
                edge = high[k] if side == 0 else low[k]
                rows[m, k] = PENALTY if side == 0 else -PENALTY
                rows[m, axis] = -rows[m, k] * edge * sign
                norms[m] = PENALTY * math.sqrt(1.0 + edge * edge)
            kinks[m] = outcomes[m] = 0.0
            m += 1
    return m, constant


@inner
def bound_pieces(rows, norms, kinks, outcomes, constant, ridge, b, rho):
    """Minimise from b, which becomes the minimiser. Returns a support, a lower bound, and if that is sure.

    The first is the value S at b of supporting functions with slopes lambda; rho <- their residual there. The
    bound is that of surrogate/bound.py: with G the Gram matrix of all pieces with a slope and v = G^-1 rho it
    is S - rho'v / 4, and needs lambda_i >= z_i'v.
    """
    m, q = rows.shape
    columns, u, state = np.empty((q, m)), np.empty(m), np.empty(m, np.int8)
    G, L, S = np.empty((q, q)), np.empty((1, q, q)), np.empty((1, m))
    start, largest, end, zeros = b.copy(), np.zeros(q), np.empty((1, q)), np.zeros((1, q))
    ends, steps, converged = np.empty((1, m), np.int8), np.empty(1, np.int64), np.empty(1, np.bool_)
    for j in range(q):
        for k in range(q):
            G[j, k] = ridge[j, k]
    for i in range(m):
        s = 0.0
        for j in range(q):
            columns[j, i] = rows[i, j]
            s += rows[i, j] * b[j]
        u[i] = s
        state[i] = QUADRATIC if s > kinks[i] else FLAT
        if s > kinks[i]:
            add_to_gram(G, rows, i, 1.0)
    # Not the word itself, for which the kernel would be compiled once more.
    no = m < 0
    minimise(
        rows,
        columns,
        norms,
        outcomes,
        np.zeros(m),
        zeros,
        ridge,
        kinks.reshape((1, m)),
        1000 + 100 * q,
        no,
        no,
        start,
        u,
        state,
        G,
        start,
        u,
        state,
        G,
        largest,
        end,
        ends,
        S,
        L,
        steps,
        converged,
    )
    v, slopes, value = np.empty(q), S[0], constant
    for j in range(q):
        b[j], rho[j] = end[0, j], 0.0
    for j in range(q):
        for k in range(q):
            rho[j] += 2.0 * ridge[j, k] * b[k]
            value += b[j] * ridge[j, k] * b[k]
    total, size = support(rows, kinks, outcomes, b, slopes, rho)
    value += total - EPS * (8.0 + q) * (size + abs(constant))
    for j in range(q):
        v[j] = rho[j]
    forward(L[0], v, q)
    backward(L[0], v, q)
    # What is left of the residual, evaluated from the pieces.
    rest, largest_slope, weak = rho.copy(), 0.0, not converged[0]
    for j in range(q):
        for k in range(q):
            rest[j] -= ridge[j, k] * v[k]
    for i in range(m):
        whole = kinks[i] == -np.inf
        largest_slope += abs(slopes[i])
        if whole or slopes[i] > 0.0:
            s = 0.0
            for j in range(q):
                s += rows[i, j] * v[j]
            for j in range(q):
                rest[j] -= s * rows[i, j]
            weak = weak or (slopes[i] < s and not whole)
    left = 0.0
    for j in range(q):
        left += abs(rest[j])
    sure = not weak and left <= NO_REMAINDER * (1.0 + largest_slope)
    return value, value - 0.25 * max(dot(rho, v), 0.0), sure


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
def draw_in(Z, ridge, axis, sign, low, high, kind, at, rho, room):
    """Draw in edges and settle samples by the ellipsoid of a bound that is `room` below the cutoff.

    With K the Gram matrix of the samples that are ON, plus the ridge, every t has

        R(at + t) >= S + rho't + t'Kt,

    so solutions in the cone with a loss up to S + room lie in the ellipsoid around b = at - K^-1 rho / 2 with
    (b' - b)'K(b' - b) <= room + rho'K^-1 rho / 4. Returns how much of the widths is left, 2 if K is singular,
    or -1 if nothing is left.
    """
    n, q = Z.shape
    K, L, M = np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
    b, w = at.copy(), rho.copy()
    for j in range(q):
        for k in range(q):
            K[j, k] = ridge[j, k]
    for i in range(n):
        if kind[i] == ON:
            add_to_gram(K, Z, i, 1.0)
    if not is_regular(K, L, INACCURATE):
        return 2.0
    forward(L, w, q)
    room = (room + 0.25 * dot(w, w)) * (1.0 + RELATIVE)
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
        radius = math.sqrt(room * dot(w, w)) + ABSOLUTE
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
    s, radius = sign * b[axis], math.sqrt(max(M[axis, axis], 0.0)) + ABSOLUTE
    if s + radius <= 0.0:
        return -1.0
    if s - radius <= 0.0:
        return 1.0
    before, after = 0.0, 0.0
    A = (s - ABSOLUTE) * (s - ABSOLUTE) - M[axis, axis]
    for k in range(q):
        if k == axis:
            continue
        before += high[k] - low[k]
        B, C = b[k] * s - sign * M[axis, k], b[k] * b[k] - M[k, k]
        root = math.sqrt(max(B * B - A * C, 0.0))
        low[k] = max(low[k], (B - root) / A - 1e-7)
        high[k] = min(high[k], (B + root) / A + 1e-7)
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
                if is_regular(K, L, SINGULAR):
                    return True
                enough *= 4
    return is_regular(K, L, SINGULAR)


@inner
def bound_cone(Z, Zt, y, ridge, axis, sign, low, high, kind, b, cutoff, weights):
    """Bound one cone. Returns what became of it, and the bound.

    low, high and kind are tightened; b, where the search begins, becomes the minimiser; weights <- how much
    each coordinate matters.
    """
    n, q = Z.shape
    size = 2 * n + 2 * q
    rows, norms, kinks, outcomes = np.empty((size, q)), np.empty(size), np.empty(size), np.empty(size)
    best, share, rho = -np.inf, 0.0, np.empty(q)
    for _ in range(ROUNDS):
        m, constant = build_cone(
            Z, Zt, y, axis, sign, low, high, b, MIX, LIKELY, kind, rows, norms, kinks, outcomes, weights
        )
        if constant * (1.0 - 1e-12) >= cutoff:
            return EMPTY, constant
        supported, value, sure = bound_pieces(
            rows[:m], norms[:m], kinks[:m], outcomes[:m], constant, ridge, b, rho
        )
        if not sure:
            return UNSURE, best
        best = max(best, value)
        if best >= cutoff:
            return EMPTY, best
        share = draw_in(Z, ridge, axis, sign, low, high, kind, b, rho, cutoff - supported)
        if share < 0.0:
            return EMPTY, cutoff
        if share > NARROWED:
            break
    return GOOD if share < 2.0 or spans_all(Z, kind) else THIN, best


@compiled
def bound_parts(Z, Zt, y, ridge, axis, sign, coordinate, cutoff, low, high, kind, b, bounds, states, splits):
    """Split a cone in the middle of a coordinate and bound both parts, which are given as copies of the cone.

    bounds, states, splits <- the bound of each part, what became of it, and where to split it next, -1 if it
    is too narrow.
    """
    q = Z.shape[1]
    middle, weights = 0.5 * (low[0, coordinate] + high[0, coordinate]), np.empty(q)
    high[0, coordinate] = low[1, coordinate] = middle
    for e in range(2):
        states[e], bounds[e] = bound_cone(
            Z, Zt, y, ridge, axis, sign, low[e], high[e], kind[e], b[e], cutoff, weights
        )
        widest = 0.0
        splits[e] = -1
        for k in range(q):
            width = high[e, k] - low[e, k]
            if k != axis and width > NARROW and width * (weights[k] + 1e-12) > widest:
                widest = width * (weights[k] + 1e-12)
                splits[e] = k


def is_compiled() -> bool:
    """Whether a search can begin at once, or must wait some seconds for the compiler."""
    cache = Path(bound_parts.stats.cache_path)
    return bool(bound_parts.signatures) or any(cache.glob("cone_kernel.bound_parts*.nbi"))
