"""Compiled core: minimise a background quadratic plus a sum of pieces, exactly, by a finite method.

    minimise over delta   slope0'delta + delta' B delta + sum_i piece_i(u0_i + z_i'delta)

Each row is on its quadratic, on its constant, or HELD at its kink (u_i = c_i). One step:

1. minimise the quadratic of the current states subject to the held rows. `G` is B plus the Gram matrix of
   all rows that are not on their constant. Held rows stay in G: on the subspace where their u is fixed
   this changes nothing, it keeps the system solvable, and holding a row of the quadratic costs no update.
2. follow that direction by an exact line search through all kinks on the way; where the slope changes sign
   inside a jump, that row becomes held;
3. when the whole step was free, look at the slopes that the held rows need: optimal when all lie in
   [0, jump], otherwise release.

Termination. Every step of positive length lowers the objective strictly, and the minimum over one
assignment of states is visited at most once while it falls, so there are finitely many such steps. Steps of
length zero, possible where more kinks meet in a point than the dimension allows, are counted; after too
many in a row the kinks are moved apart by tiny amounts until progress is made, and put back afterwards.
A hard limit on steps bounds the work in every case, and the dual bound tells what was reached.

Loops are written out, and no library routine is called, because compile time is part of the first fit.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from rectifit import pieces
from rectifit.surrogate import bound

__all__ = ["FLAT", "HELD", "QUADRATIC", "exact_step", "judge", "max_steps", "minimise"]

FLAT, QUADRATIC, HELD = 0, 1, 2

# A pivot of the factorisation below this share of its diagonal entry marks a dependent column.
PIVOT_TOL = 1e-12
# Slopes of held rows may leave [0, jump] by this much, in units where max |y| = 1.
SLOPE_TOL = 1e-11

# A row held in the solution before stays held if it is this close to its kink.
HOLD_TOL = 1e-9
# After so many steps of length zero in a row kinks are moved apart.
MAX_STANDSTILL = 10
# How often kinks are moved apart before a search that stands still is given up.
MAX_SPREADS = 8

# Reassociation lets sums use vector instructions; infinities and NaN keep their meaning.
compiled = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}, no_cfunc_wrapper=True
)
# Helpers are called from compiled code only and need no wrappers, which halves their compile time.
inner = numba.njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz"},
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)


def max_steps(q):
    """A limit that no search with progress comes near."""
    return 1000 + 100 * q


allow = inner(bound.allowance)
piece_value = inner(pieces.value)
piece_conjugate = inner(pieces.conjugate)


@inner
def dot(a, b):
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


@inner
def quadratic_form(B, x):
    """x'B x."""
    s = 0.0
    for j in range(x.shape[0]):
        for k in range(x.shape[0]):
            s += x[j] * B[j, k] * x[k]
    return s


@inner
def factor(G, L, q):
    """Cholesky factor of the lower triangle of the leading q x q block of G into L, with INVERSE pivots on the diagonal.

    A column that depends on the ones before it gets inverse pivot 0, and its unknown stays 0 in solves.
    """
    for j in range(q):
        total = G[j, j]
        for k in range(j):
            s = G[j, k]
            for m in range(k):
                s -= L[j, m] * L[k, m]
            s *= L[k, k]
            L[j, k] = s
            total -= s * s
        L[j, j] = 1.0 / math.sqrt(total) if total > PIVOT_TOL * G[j, j] else 0.0


@inner
def forward(L, b, q):
    """b <- L^-1 b."""
    for j in range(q):
        s = b[j]
        for m in range(j):
            s -= L[j, m] * b[m]
        b[j] = s * L[j, j]


@inner
def backward(L, b, q):
    """b <- L^-T b."""
    for j in range(q - 1, -1, -1):
        b[j] *= L[j, j]
        for m in range(j):
            b[m] -= L[j, m] * b[j]


@inner
def multiply(Zt, x, out):
    """out <- Z x, from the transpose of Z."""
    q, n = Zt.shape
    for i in range(n):
        out[i] = 0.0
    j = 0
    while j + 4 <= q:
        a, b, c, d = x[j], x[j + 1], x[j + 2], x[j + 3]
        for i in range(n):
            out[i] += a * Zt[j, i] + b * Zt[j + 1, i] + c * Zt[j + 2, i] + d * Zt[j + 3, i]
        j += 4
    while j < q:
        for i in range(n):
            out[i] += x[j] * Zt[j, i]
        j += 1


@inner
def add_to_gram(G, Z, i, sign):
    """Lower triangle of G <- G + sign z_i z_i'."""
    for j in range(Z.shape[1]):
        a = sign * Z[i, j]
        if a != 0.0:
            for k in range(j + 1):
                G[j, k] += a * Z[i, k]


@inner
def add_row(out, Z, i, scale):
    """out <- out + scale z_i."""
    for j in range(Z.shape[1]):
        out[j] += scale * Z[i, j]


@inner
def copy_row(Z, i, out, a):
    """Row a of out <- row i of Z."""
    for j in range(Z.shape[1]):
        out[a, j] = Z[i, j]


@compiled
def exact_step(when, who, m, a, b, u, du, y, state):
    """Minimise along a ray. Returns (step, number of kinks passed, row to hold or -1).

    The slope starts as a + b t. Row who[e] meets its kink at t = when[e], for e < m, and leaves its
    constant or its quadratic there. The rows passed are left in the last places of who[:m].
    """
    steepest, curvature = abs(a), b
    passed, reached = 0, 0.0
    # A heap, because few of the kinks are passed: order is restored downwards from `top`, from the
    # middle to the root while the heap is built, and at the root after each removal.
    top = m // 2 - 1
    while True:
        parent = max(top, 0)
        child = 2 * parent + 1
        while child < m:
            if child + 1 < m and when[child + 1] < when[child]:
                child += 1
            if when[parent] <= when[child]:
                break
            when[parent], when[child] = when[child], when[parent]
            who[parent], who[child] = who[child], who[parent]
            parent = child
            child = 2 * parent + 1
        if top > 0:
            top -= 1
            continue
        if m == 0 or a + b * when[0] >= 0.0:
            break
        t, i = when[0], who[0]
        sign = 2.0 if state[i] == FLAT else -2.0
        a_next = a + sign * (u[i] - y[i]) * du[i]
        b_next = b + sign * du[i] * du[i]
        # A jump at rounding level (y = 0) is no kink: pass it.
        if a_next + b_next * t >= 0.0 and (a_next - a) + (b_next - b) * t > 1e-14 * steepest:
            return t, passed, i
        a, b, reached = a_next, b_next, t
        curvature = max(curvature, b)
        passed += 1
        m -= 1
        when[0], when[m] = when[m], when[0]
        who[0], who[m] = who[m], who[0]
    if a < 0.0 and b > 1e-14 * curvature:
        reached = max(reached, -a / b)
    return reached, passed, -1


@inner
def gradient(Zt, slopes, slope0, B, delta, g):
    """g <- gradient of the background, plus Z' slopes."""
    q, n = Zt.shape
    for j in range(q):
        s, b = 0.0, 0.0
        for i in range(n):
            s += Zt[j, i] * slopes[i]
        for k in range(q):
            b += B[j, k] * delta[k]
        g[j] = slope0[j] + s + 2.0 * b


@inner
def find_direction(L, V, S, n_held, gap, g, d, lam):
    """d <- the way to the minimum over the current states; lam <- the slopes of the held rows there.

    G d = -g/2 - C'mu and C d = gap, where C are the held rows, V = C L^-T, and lam = 2 (mu + gap) because
    the held rows stand in G.
    """
    q = g.shape[0]
    for j in range(q):
        d[j] = -0.5 * g[j]
    forward(L, d, q)
    for a in range(n_held):
        for b in range(a + 1):
            s = 0.0
            for j in range(q):
                s += V[a, j] * V[b, j]
            S[a, b] = s
        s = -gap[a]
        for j in range(q):
            s += V[a, j] * d[j]
        lam[a] = s
    if n_held > 0:
        factor(S, S, n_held)
        forward(S, lam, n_held)
        backward(S, lam, n_held)
        for a in range(n_held):
            add_row(d, V, a, -lam[a])
            lam[a] = 2.0 * (lam[a] + gap[a])
    backward(L, d, q)


@inner
def look_ahead(du, noise, norms, c, u, state, reach, when, who):
    """Curvature of the rows on their quadratic along du, and the kinks up to t = reach: (curvature, how many)."""
    m, curvature = 0, 0.0
    for i in range(du.shape[0]):
        v = du[i]
        if state[i] == QUADRATIC:
            curvature += 2.0 * v * v
            meets = v < -noise * norms[i] and c[i] > -np.inf
        else:
            meets = state[i] == FLAT and v > noise * norms[i]
        if meets and abs(c[i] - u[i]) <= reach * abs(v):
            when[m] = max((c[i] - u[i]) / v, 0.0)
            who[m] = i
            m += 1
    return curvature, m


@inner
def spread(kink, norms, seed, c):
    """c <- kinks; with a seed, moved apart by tiny pseudo-random amounts, upwards so that jumps stay positive."""
    draw, amount = seed, 1e-7 if seed > 0 else 0.0
    for i in range(c.shape[0]):
        draw = (1103515245 * draw + 12345) % 2147483648
        c[i] = kink[i]
        if c[i] > -np.inf:
            c[i] += amount * (0.5 + draw / 2147483648.0) * max(c[i], norms[i], 1e-3)


@inner
def move_row(Z, y, u, i, to, state, G, g):
    """Change the state of row i, with G and g. Returns whether G changed."""
    if (state[i] == QUADRATIC) != (to == QUADRATIC):
        add_row(g, Z, i, 2.0 * (u[i] - y[i]) if to == QUADRATIC else 2.0 * (y[i] - u[i]))
    changes = (state[i] == FLAT) != (to == FLAT)
    if changes:
        add_to_gram(G, Z, i, -1.0 if to == FLAT else 1.0)
    state[i] = to
    return changes


@inner
def release(Z, y, u, c, held, n_held, lam, V, every, state, G, g):
    """Let go of held rows whose slope lies outside [0, jump]: every one of them, or only the worst.

    Returns (how many stay held, whether G changed).
    """
    worst = SLOPE_TOL
    for a in range(n_held):
        worst = max(worst, -lam[a], lam[a] - 2.0 * (c[held[a]] - y[held[a]]))
    limit = SLOPE_TOL if every else worst
    changed = False
    for a in range(n_held - 1, -1, -1):
        i = held[a]
        out = max(-lam[a], lam[a] - 2.0 * (c[i] - y[i]))
        if out > SLOPE_TOL and out >= limit:
            if move_row(Z, y, u, i, QUADRATIC if lam[a] > 0.0 else FLAT, state, G, g):
                changed = True
            n_held -= 1
            held[a], lam[a] = held[n_held], lam[n_held]
            copy_row(V, n_held, V, a)
    return n_held, changed


@compiled
def minimise(
    Z, Zt, norms, y, kinks, u0, slope0, B, max_steps,
    delta, u, state, G, largest,
    deltas, states, slopes, factors, steps, converged,
):
    """Solve one problem per line of `kinks`, each from the states and the solution of the one before it.

    Carried from line to line, and changed: delta, u = u0 + Z delta, state, G (lower triangle of B plus the Gram
    matrix of the rows that are not FLAT) and largest (its diagonal's largest values since it was built).
    Written, per line: deltas, states, slopes (a subgradient of every piece; with the slope of the background they add
    up to 0 at the minimum), factors (of G), steps, converged.
    """
    n, q = Z.shape
    c = np.empty(n)
    du, when, who = np.empty(n), np.empty(n + 1), np.empty(n + 1, np.int64)
    L, V, S = np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
    g, d, lam, gap = np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    held, n_held = np.empty(q, np.int64), np.int64(0)
    noticeable = 1e-14 * max(dot(y, y), 1e-300)
    negligible = 1e-6 * noticeable
    for line in range(kinks.shape[0]):
        kink = kinks[line]
        # stale: u and g are to be computed from the data; fresh: nothing has moved since they were.
        # misplaced: states are to be set from u; spread_out: kinks are moved apart.
        stale, fresh, misplaced, spread_out, restoring, seed, standstill = True, True, True, False, False, 0, 0
        # eager: how often rows may still be released, all at once, before a minimum is reached.
        at_minimum, done, eager, count = False, False, q, 0
        while count < max_steps and not done:
            count += 1
            if stale:
                multiply(Zt, delta, u)
                for i in range(n):
                    u[i] += u0[i]
            if misplaced:
                spread(kink, norms, seed if spread_out else 0, c)
                n_held, eager = np.int64(0), q
                for i in range(n):
                    side = QUADRATIC if u[i] > c[i] else FLAT
                    # A kink that has not moved away still holds its row.
                    if state[i] == HELD and count == 1 and abs(u[i] - c[i]) <= HOLD_TOL and n_held < q:
                        held[n_held] = i
                        n_held += 1
                    elif side != state[i]:
                        move_row(Z, y, u, i, side, state, G, g)
                misplaced, factored, standstill = False, False, 0
            if stale:
                for i in range(n):
                    du[i] = 2.0 * (u[i] - y[i]) if state[i] == QUADRATIC else 0.0
                gradient(Zt, du, slope0, B, delta, g)
                stale, fresh = False, True
            if not factored:
                drifted = False
                for j in range(q):
                    largest[j] = max(largest[j], G[j, j])
                    drifted = drifted or G[j, j] < 1e-6 * largest[j]
                if drifted:
                    # Most of G was subtracted again: what is left has lost too many digits.
                    for j in range(q):
                        copy_row(B, j, G, j)
                    for i in range(n):
                        if state[i] != FLAT:
                            add_to_gram(G, Z, i, 1.0)
                    for j in range(q):
                        largest[j] = G[j, j]
                factor(G, L, q)
                factored, n_solved = True, np.int64(0)
            for a in range(n_solved, n_held):
                copy_row(Z, held[a], V, a)
                forward(L, V[a], q)
            for a in range(n_held):
                gap[a] = c[held[a]] - u[held[a]]
            find_direction(L, V, S, n_held, gap, g, d, lam)
            n_solved = n_held
            if n_held > 0 and (at_minimum or eager > 0) and not restoring:
                n_solved, changed = release(
                    Z, y, u, c, held, n_held, lam, V, eager > 0, state, G, g
                )
                if n_solved < n_held:
                    n_held, factored, fresh = n_solved, not changed, False
                    eager -= 1
                    continue

            multiply(Zt, d, du)
            for a in range(n_held):
                du[held[a]] = gap[a]
            noise = 1e-15 * q * math.sqrt(dot(d, d))
            step, passed, hold, reach, m = np.inf, 0, -1, 0.0, 0
            if restoring:
                step, curvature = 1.0, 0.0
            # Without a kink the step is 1, and few steps are longer: look further only for those.
            while step > reach and not restoring:
                reach = 1.0 if reach == 0.0 else np.inf
                curvature, m = look_ahead(du, noise, norms, c, u, state, reach, when, who)
                curvature += 2.0 * quadratic_form(B, d)
                if curvature <= negligible:
                    # The minimum; what d still moves is rounding, and must not carry a row past its kink.
                    step, m = 1.0 if m == 0 else 0.0, 0
                    break
                # d leads to the minimum of the current quadratic: the slope starts at minus the curvature.
                step, passed, hold = exact_step(when, who, m, -curvature, curvature, u, du, y, state)
            if curvature > negligible:
                if curvature * step > noticeable:
                    standstill = 0
                else:
                    standstill, eager = standstill + 1, 0

            for j in range(q):
                delta[j] += step * d[j]
                g[j] *= 1.0 - step
            for i in range(n):
                u[i] += step * du[i]
            for a in range(n_held):
                add_row(g, Z, held[a], -step * lam[a])
            first = m - passed
            if hold >= 0:
                who[m] = hold
                m += 1
                u[hold] = c[hold]
                if n_held < q:
                    held[n_held], lam[n_held] = hold, 0.0
                    n_held += 1
                else:
                    hold = -1
            for e in range(first, m):
                i = who[e]
                to = HELD if i == hold else (QUADRATIC if state[i] == FLAT else FLAT)
                if move_row(Z, y, u, i, to, state, G, g):
                    factored = False
            at_minimum = m == first and (abs(step - 1.0) <= 1e-8 or curvature <= negligible)
            if at_minimum and standstill == 0:
                eager = q
            if restoring:
                # Kinks are back in place. States found with them apart stay valid if every row is where it says.
                restoring, at_minimum = False, False
                for i in range(n):
                    excess = u[i] - c[i] if state[i] == FLAT else c[i] - u[i]
                    misplaced = misplaced or (excess > HOLD_TOL and state[i] != HELD)
            elif spread_out:
                if at_minimum and fresh:
                    spread_out, restoring = False, True
                    spread(kink, norms, 0, c)
            elif standstill > MAX_STANDSTILL:
                seed += 1
                if seed > MAX_SPREADS:
                    break
                misplaced, spread_out = True, True
            else:
                done = at_minimum and fresh
            stale = at_minimum or misplaced
            fresh = False

        steps[line], converged[line] = count, done
        for i in range(n):
            states[line, i] = state[i]
            slopes[line, i] = 2.0 * (u[i] - y[i]) if state[i] == QUADRATIC else 0.0
        for a in range(n_held):
            slopes[line, held[a]] = min(max(lam[a], 0.0), 2.0 * (kink[held[a]] - y[held[a]]))
        for j in range(q):
            deltas[line, j] = delta[j]
            for k in range(q):
                factors[line, j, k] = L[j, k]


@compiled
def judge(
    Zt, norms, y, kinks, B, At, root_weight, T, penalty, largest_entries, gammas, states, slopes, factors,
    columns, values, losses, weak,
):
    """Evaluate solutions of `minimise` (without a background slope) from the data, one line each.

    columns <- the coefficients T gamma; values <- the objective there (penalty times squares included); losses <- how far the minimum can lie
    below (see bound.py), unless weak <- True, when slopes must be mended first.
    """
    q, n = Zt.shape
    u, v, zero = np.empty(n), np.empty(q), np.zeros(q)
    for line in range(gammas.shape[0]):
        gamma, slope, L = gammas[line], slopes[line], factors[line]
        extent, value = 0.0, 0.0
        for j in range(T.shape[0]):
            b = dot(T[j], gamma)
            columns[line, j] = b
            extent += abs(b) * largest_entries[j]
            value += penalty[j] * b * b
        gradient(Zt, slope, zero, B, gamma, v)
        remainder, loss = 0.0, 0.0
        for j in range(q):
            s = v[j]
            for k in range(j):
                s -= L[j, k] * v[k]
            v[j] = s * L[j, j]
            loss += 0.25 * v[j] * v[j]
            if L[j, j] == 0.0:
                remainder += abs(s)
        backward(L, v, q)
        reach = math.sqrt(dot(v, v))
        multiply(At, columns[line], u)
        total, n_weak = 0.0, 0
        for i in range(n):
            at, c = u[i] * root_weight[i], kinks[line, i]
            piece = piece_value(at, y[i], c)
            value += piece
            loss += piece + piece_conjugate(slope[i], y[i], c) - slope[i] * at
            total += abs(slope[i])
            n_weak += states[line, i] != FLAT and c > -np.inf and slope[i] < reach * norms[i]
        values[line], weak[line] = value, n_weak > 0
        losses[line] = max(loss, 0.0) + allow(q, remainder, math.sqrt(dot(gamma, gamma)), extent, total, value)
