"""Compiled core: minimise a background quadratic plus a sum of pieces, exactly, by a finite method.

    minimise over delta   slope'delta + delta' B delta + sum_i piece_i(u0_i + z_i'delta)

Each row is on its quadratic, on its constant, or HELD at its kink (u_i = c_i). One step:

1. minimise the quadratic of the current states subject to the held rows. `G` is B plus the Gram matrix of
   all rows that are not on their constant. Held rows stay in G: on the subspace where their u is fixed
   this changes nothing, it keeps the system solvable, and holding a row of the quadratic costs no update.
2. follow that direction by an exact line search through all kinks on the way; where the slope changes sign
   inside a jump, that row becomes held;
3. when the whole step was free, look at the slopes that the held rows need: optimal when all lie in
   [0, jump], otherwise release.

A constraint is a row, too: a wall has no cost left of its kink and an infinite jump there, and a tie is held
at its kink for ever. Searches begin at points that satisfy all constraints, up to rounding.

Termination. Every step of positive length lowers the objective strictly, and the minimum over one
assignment of states is visited at most once while it falls, so there are finitely many such steps. Steps of
length zero, possible where more kinks meet in a point than the dimension allows, are counted, and too many in
a row end the search; descent.py moves the kinks apart then. A limit on steps bounds the work in every case.

Loops are written out, and no library routine is called, because compile time is part of the first fit.
Callers give the fields of records as plain tuples, whose types numba finds five times as fast.
"""

from __future__ import annotations

import math

import numpy as np

from rectifit import bounds, pieces
from rectifit._typing import Integers, Matrix, Vector
from rectifit.compiling import compiled, inner, shared
from rectifit.surrogate.records import (
    FLAT,
    HELD,
    QUADRATIC,
    TIE,
    WALL,
    Evaluated,
    Minima,
    PieceProblem,
    Source,
    States,
    WarmState,
)
from rectifit.tolerances import (
    CURVATURE_TOL,
    DESCENT_TOL,
    DIRECTION_TOL,
    DRIFT_TOL,
    FLAT_DESCENT_TOL,
    HOLD_TOL,
    JUMP_TOL,
    LEVEL_TOL,
    MIN_PIVOT,
    PIVOT_TOL,
    SLOPE_TOL,
    WHOLE_STEP_TOL,
    ZERO_STEP_TOL,
)

__all__ = [
    "MAX_STEPS",
    "MAX_STEPS_PER_COEFFICIENT",
    "add_to_gram",
    "add_weighted",
    "backward",
    "dot",
    "evaluate_with_bound",
    "factor",
    "find_minima",
    "forward",
    "gradient",
    "is_definite",
    "line_search",
    "minimise",
    "multiply",
    "weigh_residual",
]

# How often held rows are released, all at once, before the minimum over the states is reached. A little of
# that saves steps; without a limit it could go on for ever.
MAX_EAGER_RELEASES = 2
# The search stands still after more steps of length zero in a row than this.
MAX_ZERO_STEPS = 10
# For callers: limits on the steps per problem, constant and per coefficient. No search that makes progress
# comes near them.
MAX_STEPS = 1000
MAX_STEPS_PER_COEFFICIENT = 100

shared(pieces.value, pieces.conjugate, pieces.support, bounds.allowance, bounds.support_allowance)


@inner
def dot(a, b):
    """Scalar product."""
    s = 0.0
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


@inner
def factor(G, L, q):
    """Cholesky factor of the leading block of G (lower triangle) into L, INVERSE pivots on the diagonal.

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
        L[j, j] = 1.0 / math.sqrt(total) if total > max(PIVOT_TOL * G[j, j], MIN_PIVOT) else 0.0


@inner
def is_definite(L, least):
    """Whether a factor, which has inverse pivots, has no pivot up to this."""
    is_regular = True
    for j in range(L.shape[0]):
        is_regular = is_regular and L[j, j] > 0.0 and least * L[j, j] * L[j, j] < 1.0
    return is_regular


@inner
def forward(L, b, q):
    """b <- L^-1 b. Returns what is left of b on dependent columns, zero if it lies in the range of L."""
    left = 0.0
    for j in range(q):
        s = b[j]
        for m in range(j):
            s -= L[j, m] * b[m]
        b[j] = s * L[j, j]
        if L[j, j] == 0.0:
            left += abs(s)
    return left


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
    # Four columns at a time; the last group repeats a column with weight 0 where there are fewer.
    for j in range(0, q, 4):
        j1, j2, j3 = min(j + 1, q - 1), min(j + 2, q - 1), min(j + 3, q - 1)
        a = x[j]
        b = x[j1] if j1 == j + 1 else 0.0
        c = x[j2] if j2 == j + 2 else 0.0
        d = x[j3] if j3 == j + 3 else 0.0
        for i in range(n):
            out[i] += a * Zt[j, i] + b * Zt[j1, i] + c * Zt[j2, i] + d * Zt[j3, i]


@inner
def add_to_gram(G, Z, rows, signs):
    """Lower triangle of G <- G + sum of sign_e z_e z_e' over four rows; G is read and written once."""
    h, i, j, k = rows
    for r in range(Z.shape[1]):
        a, b = signs[0] * Z[h, r], signs[1] * Z[i, r]
        c, d = signs[2] * Z[j, r], signs[3] * Z[k, r]
        for m in range(r + 1):
            G[r, m] += a * Z[h, m] + b * Z[i, m] + c * Z[j, m] + d * Z[k, m]


@inner
def add_weighted(Zt, weights, G):
    """G <- G + sum of weights * z z', lower triangle and upper."""
    q, n = Zt.shape
    for j in range(q):
        for k in range(j + 1):
            s = 0.0
            for i in range(n):
                s += weights[i] * Zt[j, i] * Zt[k, i]
            G[j, k] += s
            G[k, j] = G[j, k]


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


def find_step(
    when: Vector, who: Integers, m: int, a: float, b: float, u: Vector, du: Vector, y: Vector, state: States
) -> tuple[float, int, int]:
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
        # Where all that falls has come to rest the slope is zero but for rounding: no reason to go further.
        level = a + b * reached >= -LEVEL_TOL * (steepest + abs(a))
        if m == 0 or level or a + b * when[0] >= 0.0:
            break
        t, i = when[0], who[0]
        sign = 2.0 if state[i] == FLAT else -2.0
        a_next = a + sign * (u[i] - y[i]) * du[i]
        b_next = b + sign * du[i] * du[i]
        # A jump at rounding level (y = 0) is no kink: pass it.
        if a_next + b_next * t >= 0.0 and (a_next - a) + (b_next - b) * t > JUMP_TOL * steepest:
            return t, passed, i
        a, b, reached = a_next, b_next, t
        curvature = max(curvature, b)
        passed += 1
        m -= 1
        when[0], when[m] = when[m], when[0]
        who[0], who[m] = who[m], who[0]
    if not level and b > CURVATURE_TOL * curvature:
        reached = -a / b
    return reached, passed, -1


exact_step = inner(find_step)
# The same for callers outside the kernel; compiled only if there are any.
line_search = compiled(find_step)


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
    the held rows stand in G. Returns the curvature 2 d'G d.
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
    curvature = 2.0 * dot(d, d)
    backward(L, d, q)
    return curvature


@inner
def look_ahead(du, noise, norms, c, u, state, reach, when, who):
    """Enter the kinks up to t = reach in when and who; returns how many there are."""
    m = 0
    for i in range(du.shape[0]):
        v = du[i]
        # No kink: c = -infinity is out of every reach but an infinite one.
        near = abs(c[i] - u[i]) <= reach * abs(v) and c[i] > -np.inf and abs(v) > noise * norms[i]
        if near and ((state[i] == QUADRATIC and v < 0.0) or (state[i] == FLAT and v > 0.0)):
            when[m] = max((c[i] - u[i]) / v, 0.0)
            who[m] = i
            m += 1
    return m


@inner
def excess_slope(y, c, i, slope):
    """How far a slope of a held row lies outside of [0, jump]; those of ties may have any size."""
    return -np.inf if y[i] == TIE else max(-slope, slope - 2.0 * (c[i] - y[i]))


@inner
def release(y, c, held, n_held, lam, V, every, moves, to):
    """Let go of held rows whose slope lies outside [0, jump]: every one of them, or only the worst.

    Where they go is entered in moves and to. Returns how many stay held.
    """
    worst, n_moves = SLOPE_TOL, 0
    for a in range(n_held):
        worst = max(worst, excess_slope(y, c, held[a], lam[a]))
    limit = SLOPE_TOL if every else worst
    for a in range(n_held - 1, -1, -1):
        out = excess_slope(y, c, held[a], lam[a])
        if out > SLOPE_TOL and out >= limit:
            moves[n_moves], to[n_moves] = held[a], QUADRATIC if lam[a] > 0.0 else FLAT
            n_moves += 1
            n_held -= 1
            held[a], lam[a] = held[n_held], lam[n_held]
            copy_row(V, n_held, V, a)
    return n_held


@inner
def classify(y, c, warm, trust, held, moves, to):
    """Find the rows that stay held, and those whose state does not agree with their side of the kink.

    The latter are entered in moves and to; with `trust` there are none. Walls that do not stand are held: the
    next step leads back to them. Returns both numbers.
    """
    u, state = warm.u, warm.state
    n_held, n_moves, n_rows = np.int64(0), np.int64(0), u.shape[0]
    # Ties first, which must not be crowded out.
    while n_rows > 0 and y[n_rows - 1] == TIE:
        n_rows -= 1
        held[n_held] = n_rows
        n_held += 1
    for i in range(n_rows):
        side = QUADRATIC if u[i] > c[i] else FLAT
        if y[i] == WALL:
            side = HELD if u[i] > c[i] + HOLD_TOL and n_held < held.shape[0] else FLAT
        keeps = side == HELD or abs(u[i] - c[i]) <= HOLD_TOL or trust
        if state[i] == HELD and keeps and n_held < held.shape[0]:
            held[n_held] = i
            n_held += 1
        elif state[i] != side and not trust:
            moves[n_moves], to[n_moves] = i, side
            n_moves += 1
            if side == HELD:
                held[n_held] = i
                n_held += 1
    return n_held, n_moves


@inner
def sign_of_move(moves, to, state, e, n_moves):
    """Row moves[e], and with which sign it enters the Gram matrix: 0 where it stays in or out.

    Beyond the end it is the last row, with sign 0.
    """
    i = moves[min(e, n_moves - 1)]
    sign = (1.0 if state[i] == FLAT else 0.0) - (1.0 if to[min(e, n_moves - 1)] == FLAT else 0.0)
    return i, sign if e < n_moves else 0.0


@inner
def move_rows(problem, warm, moves, to, n_moves, g, stale):
    """Give rows their new states; update Gram matrix and, unless it is stale, gradient.

    Returns whether the Gram matrix changed.
    """
    Z, y, u, state, changed = problem.Z, problem.y, warm.u, warm.state, False
    for e in range(n_moves):
        i = moves[e]
        if not stale and (to[e] == QUADRATIC or state[i] == QUADRATIC):
            add_row(g, Z, i, 2.0 * (u[i] - y[i]) if to[e] == QUADRATIC else 2.0 * (y[i] - u[i]))
        changed = changed or to[e] == FLAT or state[i] == FLAT
    for e in range(0, n_moves if changed else 0, 4):
        h, a = sign_of_move(moves, to, state, e, n_moves)
        i, b = sign_of_move(moves, to, state, e + 1, n_moves)
        j, c = sign_of_move(moves, to, state, e + 2, n_moves)
        k, d = sign_of_move(moves, to, state, e + 3, n_moves)
        add_to_gram(warm.gram, Z, (h, i, j, k), (a, b, c, d))
    for e in range(n_moves):
        state[moves[e]] = to[e]
    return changed


@inner
def factor_gram(problem, warm, L):
    """Factor the Gram matrix; where most of it was subtracted again and digits are lost, build it anew."""
    G, largest, state, q = warm.gram, warm.largest, warm.state, warm.delta.shape[0]
    drifted = False
    for j in range(q):
        largest[j] = max(largest[j], G[j, j])
        drifted = drifted or G[j, j] < DRIFT_TOL * largest[j]
    if drifted:
        for j in range(q):
            copy_row(problem.curvature, j, G, j)
        for i in range(state.shape[0]):
            if state[i] != FLAT:
                add_to_gram(G, problem.Z, (i, i, i, i), (1.0, 0.0, 0.0, 0.0))
        for j in range(q):
            largest[j] = G[j, j]
    factor(G, L, q)


@inner
def write_slopes(y, c, warm, held, n_held, lam, slopes):
    """slopes <- a subgradient of every piece, feasible whether or not the minimum was reached."""
    for i in range(slopes.shape[0]):
        slopes[i] = 2.0 * (warm.u[i] - y[i]) if warm.state[i] == QUADRATIC else 0.0
        if c[i] > -np.inf:
            slopes[i] = max(slopes[i], 0.0)
    for a in range(n_held):
        i = held[a]
        slopes[i] = lam[a] if y[i] == TIE else min(max(lam[a], 0.0), 2.0 * (c[i] - y[i]))


def find_minima(
    problem: PieceProblem,
    kinks: Matrix,
    max_steps: int,
    trust: bool,
    restart: bool,
    first: WarmState,
    warm: WarmState,
    minima: Minima,
) -> int:
    """Solve one problem per line of `kinks` and of the slopes of the background.

    Where one of the two has a single line, it is that of all problems. Each minimisation begins where the one
    before it ended, which is what `warm` holds, or with `restart` at `first`, which is not changed. With
    `trust` the given states are kept, and the first step goes to their minimum without regard to kinks.
    Returns how many lines converged.
    """
    problem, first = PieceProblem(*problem), WarmState(*first)
    warm, minima = WarmState(*warm), Minima(*minima)
    Z, Zt, y = problem.Z, problem.Zt, problem.y
    delta, u, state = warm.delta, warm.u, warm.state
    n, q = Z.shape
    du, when = np.empty(n), np.empty(n)
    moves, to = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    V, S = np.empty((q, q)), np.empty((q, q))
    g, d, lam, gap = np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    held, n_held = np.empty(q, np.int64), np.int64(0)
    total, max_zero_steps = 1e-300, MAX_ZERO_STEPS
    for i in range(n):
        total += y[i] * y[i] if abs(y[i]) < np.inf else 0.0
        # Every wall that meets the point may be come to by a step of length zero.
        max_zero_steps += 1 if y[i] == WALL and max_zero_steps < MAX_ZERO_STEPS + q else 0
    noticeable, negligible = DESCENT_TOL * total, FLAT_DESCENT_TOL * total
    n_converged = 0
    for line in range(minima.factors.shape[0]):
        c, L = kinks[min(line, kinks.shape[0] - 1)], minima.factors[line]
        slope = problem.slope[min(line, problem.slope.shape[0] - 1)]
        if restart:
            for i in range(n):
                u[i], state[i] = first.u[i], first.state[i]
            for j in range(q):
                delta[j] = first.delta[j]
                copy_row(first.gram, j, warm.gram, j)
        # stale: u and g must be computed from the data; fresh: nothing has moved since they were.
        stale, fresh, factored, at_minimum, done = True, True, False, False, False
        # eager: how often rows may still be released, all at once, before a minimum is reached.
        eager, zero_steps, count = MAX_EAGER_RELEASES, 0, 0
        n_held, n_moves = classify(y, c, warm, trust, held, moves, to)
        while count < max_steps and zero_steps <= max_zero_steps and not done:
            count += 1
            if stale and count > 1:
                multiply(Zt, delta, u)
                for i in range(n):
                    u[i] += problem.u0[i]
            factored = not move_rows(problem, warm, moves, to, n_moves, g, stale) and factored
            n_moves = np.int64(0)
            if stale:
                for i in range(n):
                    du[i] = 2.0 * (u[i] - y[i]) if state[i] == QUADRATIC else 0.0
                gradient(Zt, du, slope, problem.curvature, delta, g)
                stale, fresh = False, True
            if not factored:
                factor_gram(problem, warm, L)
                factored, n_solved = True, np.int64(0)
            for a in range(n_solved, n_held):
                copy_row(Z, held[a], V, a)
                forward(L, V[a], q)
            n_solved = n_held
            for a in range(n_held):
                gap[a] = c[held[a]] - u[held[a]]
            curvature = find_direction(L, V, S, n_held, gap, g, d, lam)
            blind = trust and count == 1
            if n_held > 0 and (at_minimum or eager > 0) and not blind:
                n_solved = release(y, c, held, n_held, lam, V, eager > 0, moves, to)
                if n_solved < n_held:
                    n_moves = n_held - n_solved
                    n_held, eager, fresh = n_solved, eager - 1, False
                    continue

            multiply(Zt, d, du)
            for a in range(n_held):
                du[held[a]] = gap[a]
            noise = DIRECTION_TOL * q * math.sqrt(dot(d, d))
            step, passed, hold, reach, m = 1.0 if blind else np.inf, 0, -1, 0.0, 0
            # Without a kink the step is 1, and few steps are longer: look further only for those.
            while step > reach and not blind:
                reach = 1.0 if reach == 0.0 else np.inf
                m = look_ahead(du, noise, problem.norms, c, u, state, reach, when, moves)
                if curvature <= negligible:
                    # The minimum; what d still moves is rounding, and must not carry a row past its kink.
                    step, m = 1.0 if m == 0 else 0.0, 0
                    break
                # d leads to the minimum of the current quadratic: the slope starts at minus the curvature.
                step, passed, hold = exact_step(when, moves, m, -curvature, curvature, u, du, y, state)
            if curvature * step > noticeable or step > ZERO_STEP_TOL:
                zero_steps = 0
            elif curvature > negligible:
                zero_steps, eager = zero_steps + 1, 0

            for j in range(q):
                delta[j] += step * d[j]
                g[j] *= 1.0 - step
            for i in range(n):
                u[i] += step * du[i]
            for a in range(n_held):
                add_row(g, Z, held[a], -step * lam[a])
            for e in range(passed):
                moves[e] = moves[m - passed + e]
                to[e] = QUADRATIC if state[moves[e]] == FLAT else FLAT
            n_moves = np.int64(passed)
            if hold >= 0:
                moves[n_moves], to[n_moves] = hold, QUADRATIC if state[hold] == FLAT else FLAT
                u[hold] = c[hold]
                if n_held < q:
                    to[n_moves] = HELD
                    held[n_held], lam[n_held] = hold, 0.0
                    n_held += 1
                elif y[hold] == WALL:
                    # Rows are held that depend on each other: the search stands still.
                    to[n_moves], zero_steps = FLAT, max_zero_steps + 1
                n_moves += 1
            at_minimum = n_moves == 0 and (abs(step - 1.0) <= WHOLE_STEP_TOL or curvature <= negligible)
            if at_minimum and zero_steps == 0:
                eager = MAX_EAGER_RELEASES
            done = at_minimum and fresh and not blind
            stale, fresh = at_minimum, False

        minima.steps[line], minima.converged[line] = count, done
        write_slopes(y, c, warm, held, n_held, lam, minima.slopes[line])
        for i in range(n):
            minima.states[line, i] = state[i]
        for j in range(q):
            minima.deltas[line, j] = delta[j]
        n_converged += done
    return n_converged


minimise = compiled(find_minima)


@inner
def weigh_residual(L, rho):
    """rho <- v = G^-1 rho from the factor of G. Returns the decrement rho'v / 4 and the remainder."""
    q = rho.shape[0]
    remainder = forward(L, rho, q)
    decrement = 0.25 * dot(rho, rho)
    backward(L, rho, q)
    return decrement, remainder


@compiled
def evaluate_with_bound(
    problem: PieceProblem, kinks: Matrix, source: Source, scale: float, minima: Minima, evaluated: Evaluated
) -> int:
    """Evaluate solutions of `minimise` (without a background slope) from the data, one line each.

    Coefficients are brought into their bounds, from which only rounding can part them. The slopes are checked
    by lambda_i >= |z_i||v| (see bounds.py). Returns how many lines are infeasible.
    """
    problem, source = PieceProblem(*problem), Source(*source)
    minima, evaluated = Minima(*minima), Evaluated(*evaluated)
    y, Zt, norms = problem.y, problem.Zt, problem.norms
    (q, n_rows), n = Zt.shape, source.At.shape[1]
    v, n_infeasible = np.empty(q), 0
    for line in range(minima.deltas.shape[0]):
        gamma, slopes, columns = minima.deltas[line], minima.slopes[line], evaluated.columns[line]
        u, extent, value = evaluated.u[line], 0.0, 0.0
        multiply(source.Tt, gamma, columns)
        for j in range(columns.shape[0]):
            columns[j] = source.high[j] if columns[j] >= source.high[j] - source.near[j] else columns[j]
            columns[j] = source.low[j] if columns[j] <= source.low[j] + source.near[j] else columns[j]
            extent += abs(columns[j]) * source.largest[j]
            value += source.penalty[j] * columns[j] * columns[j]
        gradient(Zt, slopes, problem.slope[0], problem.curvature, gamma, v)
        loss, remainder = weigh_residual(minima.factors[line], v)
        reach = math.sqrt(dot(v, v))
        multiply(source.At, columns, u)
        total, infeasible, objective = 0.0, False, value
        for i in range(n):
            at, c = u[i] * source.root_weight[i], kinks[line, i]
            piece = pieces.value(at, y[i], c)
            value += piece
            # The true loss of every sample has its kink at 0.
            objective += pieces.value(at, y[i], 0.0)
            loss += piece - pieces.support(at, y[i], c, slopes[i])
            total += abs(slopes[i])
            sloped = minima.states[line, i] != FLAT and c > -np.inf
            infeasible |= sloped and slopes[i] < reach * norms[i]
        size = math.sqrt(dot(gamma, gamma))
        slack = bounds.allowance(n, value, q, extent, total, remainder, size)
        for i in range(n, n_rows):
            at, c, length = 0.0, kinks[line, i], abs(kinks[line, i])
            for j in range(columns.shape[0]):
                at += source.walls[i - n, j] * columns[j]
                length += abs(source.walls[i - n, j] * columns[j])
            # What slopes that were changed to balance the residual would cost away from the wall.
            moved = reach * norms[i] * abs(c - at) if minima.states[line, i] != FLAT else 0.0
            loss += slopes[i] * (c - at) + moved
            slack += bounds.support_allowance(q, abs(slopes[i]) * length)
            held = minima.states[line, i] == HELD and y[i] == WALL
            infeasible |= held and slopes[i] < reach * norms[i]
        for j in range(columns.shape[0]):
            columns[j] *= scale
        for i in range(n):
            u[i] *= scale
        bound = value - max(loss, 0.0) - slack
        evaluated.values[line], evaluated.objectives[line] = value * scale * scale, objective * scale * scale
        # Where the search did not converge, the factors are not those of the states.
        evaluated.bounds[line] = bound * scale * scale if minima.converged[line] else -np.inf
        evaluated.infeasible[line] = infeasible
        n_infeasible += infeasible
    return n_infeasible
