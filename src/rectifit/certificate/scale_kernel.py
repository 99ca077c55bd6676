"""Compiled loops of the search for a bound of the scale (see scale.py).

Arguments are the records ScaleRows, ScaleNodes, ScalePoints and ScaleWork. Sets of samples with y > 0 are
bits.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from rectifit._typing import Integers, Mask, Vector
from rectifit.certificate.records import BitSets, ScaleNodes, ScalePoints, ScaleRows, ScaleWork
from rectifit.compiling import compiled, inner
from rectifit.tolerances import SUM_TOL

# These kernels allocate nothing.
without_arrays = partial(compiled, allocates=False)

__all__ = ["BITS", "DONE", "MAX_CUTS", "PAUSED", "STUCK", "find_cut", "is_empty", "search_nodes"]

# How a search ends: its work is used up; no node is left; a node cannot be closed; a point was met whose
# samples that are on weigh enough for a better solution.
PAUSED = 0
DONE = 1
STUCK = 2
MASSIVE = 3

# What is known of a set: nothing in it, a point of it, or neither.
EMPTY = 0
MET = 1
OPEN = 2

# In the place of a sample to be tested: the node as a whole, or none.
NODE = -2
NOTHING = -1

# Weight of the squared distance beyond a half-space. Any weight is sound; a point that is found violates it
# by about a share 1 / PENALTY of eps.
PENALTY = 1e4
# Share of eps by which a point may violate a half-space and still count as a point of it. Points save tests
# and prove nothing.
POINT_TOL = 1e-3
# Newton steps, and those of a line search, which stops at a small share of the curvature.
MAX_NEWTON = 30
MAX_LINE_STEPS = 6
LINE_TOL = 1e-3
MIN_STEP = 1e-3
MAX_STEP = 4.0
# Share of the trace, added to Newton's matrix, and the share of it at which a slope counts as 0.
REGULARISATION = 1e-10
MIN_REGULARISATION = 1e-12
FLAT_TOL = 1e-12
MIN_PIVOT = 1e-15
# Rows that had a weight in so many steps are kept when those used are sorted out.
RECENT_STEPS = 32
# A sample is chosen for its mass and for how rarely it is on at the points of a node, to the fourth power:
# the least share of points where it is not on, and the largest weight.
MIN_RARITY = 1e-3
MAX_RARITY_WEIGHT = (1.0 + MIN_RARITY) ** 4
# Points from which a test may begin, the last that were met.
MAX_RECENT = 64
# Share of the largest mass, per sample: more than the rounding of sums and differences of masses.
MASS_TOL = 1e-12
# Samples per word of bits.
BITS = 64
# Half-spaces that hold for all better solutions.
MAX_CUTS = 8


@inner
def has(bits, e):
    """Whether bit e is set."""
    return (bits[e // BITS] >> (e % BITS)) & 1 == 1


@inner
def put(bits, e):
    """Set bit e."""
    bits[e // BITS] |= np.int64(1) << (e % BITS)


@inner
def copy(source, target):
    """target <- source; assignments of slices take long to compile."""
    for e in range(len(source)):
        target[e] = source[e]


@inner
def clear(target):
    """target <- 0."""
    for e in range(len(target)):
        target[e] = 0


@inner
def gather(rows, i, e, work):
    """Let row i be the one at place e."""
    work.used[e] = i
    work.place[i] = e
    work.offset[e] = rows.offset[i]
    length = 0.0
    for k in range(rows.X.shape[1]):
        work.X[e, k] = rows.X[i, k]
        work.Xt[k, e] = rows.X[i, k]
        length += rows.X[i, k] * rows.X[i, k]
    work.extent[e] = abs(rows.offset[i]) + math.sqrt(length)


@inner
def use_row(rows, i, above, below, work):
    """Gather a row, if it was not before, and weigh it."""
    e = work.place[i]
    if e < 0:
        e = work.n_used[0]
        work.n_used[0] += 1
        work.last_step[e] = work.counts[1]
        gather(rows, i, e, work)
    work.above[e] = above
    work.below[e] = below


@inner
def use_none(work):
    """Forget all rows that are used."""
    for e in range(work.n_used[0]):
        work.place[work.used[e]] = -1
    work.n_used[0] = 0


@inner
def solve(H, g, size):
    """g <- H^-1 g by Cholesky, in place; pivots that rounding has eaten are raised."""
    for j in range(size):
        pivot = H[j, j]
        for k in range(j):
            pivot -= H[j, k] * H[j, k]
        pivot = math.sqrt(max(pivot, MIN_PIVOT))
        H[j, j] = pivot
        for i in range(j + 1, size):
            x = H[i, j]
            for k in range(j):
                x -= H[i, k] * H[j, k]
            H[i, j] = x / pivot
    for i in range(size):
        x = g[i]
        for k in range(i):
            x -= H[i, k] * g[k]
        g[i] = x / H[i, i]
    for i in range(size - 1, -1, -1):
        x = g[i]
        for k in range(i + 1, size):
            x -= H[k, i] * g[k]
        g[i] = x / H[i, i]


@inner
def examine(rows, eps, reach, work):
    """Whether { a : |a| <= reach, |u_+| <= eps, half-spaces } is empty, by Newton steps on a penalty.

    above and below weigh u^2 on either side of 0: 1 and 0 for a row of |u_+|, PENALTY on the wrong side of a
    half-space. With w = u_+ over the rows of weight 1 and multipliers PENALTY |u| of violated half-spaces at
    any point a, every point a* of the set has

        |w| eps >= w'u* - sum of multipliers * (u* on the right side >= 0) >= F(a) + g'(a* - a),

    where F is the sum of weight * u^2 at a and 2 g its slope. So the set is empty if F - |g| (|a| + reach) >
    |w| eps. Rows that are left out only make the set larger; those that are on at a point found are added.
    """
    width, n = rows.Xt.shape
    a, g, H, u, du, u_all = work.a, work.g, work.H, work.u, work.du, work.u_all
    X, Xt, above, below = work.X, work.Xt, work.above, work.below
    tol = POINT_TOL * eps
    m = 0
    for _ in range(MAX_NEWTON):
        if work.n_used[0] > m:
            m = work.n_used[0]
            for e in range(m):
                u[e] = work.offset[e]
            for k in range(width):
                for e in range(m):
                    u[e] += Xt[k, e] * a[k]
        work.counts[0] += m
        work.counts[1] += 1
        for k in range(width):
            g[k] = 0.0
            for j in range(k + 1):
                H[k, j] = 0.0
        total, squares, violation, size = 0.0, 0.0, 0.0, 0.0
        for e in range(m):
            x = u[e]
            weight = above[e] if x > 0.0 else below[e]
            if weight == 0.0:
                continue
            work.last_step[e] = work.counts[1]
            total += weight * x * x
            if weight == 1.0:
                squares += x * x
            else:
                violation = max(violation, abs(x))
            for k in range(width):
                z = weight * X[e, k]
                g[k] += z * x
                for j in range(k + 1):
                    H[k, j] += z * X[e, j]
            size += weight * abs(x) * work.extent[e]
        slope, far, trace = 0.0, 0.0, 0.0
        for k in range(width):
            slope += g[k] * g[k]
            far += a[k] * a[k]
            trace += H[k, k]
        slope, far, norm = math.sqrt(slope), math.sqrt(far) + reach, math.sqrt(squares)
        if total - slope * far - SUM_TOL * size * (1.0 + far) > norm * eps * (1.0 + SUM_TOL):
            return EMPTY
        if norm <= eps and violation <= tol:
            # Do the rows that are not used agree?
            work.counts[0] += n
            for i in range(n):
                u_all[i] = rows.offset[i]
            for k in range(width):
                for i in range(n):
                    u_all[i] += rows.Xt[k, i] * a[k]
            squares = 0.0
            for i in range(n):
                if u_all[i] > 0.0:
                    squares += u_all[i] * u_all[i]
            if squares <= eps * eps * (1.0 + POINT_TOL):
                return MET
            before = work.n_used[0]
            for i in range(n):
                if u_all[i] > 0.0 and work.place[i] < 0:
                    use_row(rows, i, 1.0, 0.0, work)
            if work.n_used[0] == before:
                return OPEN
            continue
        if slope <= FLAT_TOL * (1.0 + trace):
            return OPEN
        for k in range(width):
            H[k, k] += REGULARISATION * trace + MIN_REGULARISATION
        solve(H, g, width)
        for e in range(m):
            du[e] = 0.0
        for k in range(width):
            for e in range(m):
                du[e] -= Xt[k, e] * g[k]
        # A whole step unless it leads uphill; then the minimum along it.
        step, there = 1.0, 0.0
        for e in range(m):
            x = u[e] + du[e]
            there += (above[e] if x > 0.0 else below[e]) * x * x
        for _line in range(MAX_LINE_STEPS if there > total else 0):
            first, second = 0.0, 0.0
            for e in range(m):
                x = u[e] + step * du[e]
                weight = above[e] if x > 0.0 else below[e]
                first += weight * x * du[e]
                second += weight * du[e] * du[e]
            if abs(first) <= LINE_TOL * second * step:
                break
            step = min(max(step - first / second, MIN_STEP), MAX_STEP)
        for e in range(m):
            u[e] += step * du[e]
        for k in range(width):
            a[k] -= step * g[k]
    return OPEN


@without_arrays
def is_empty(rows: ScaleRows, is_side: Mask, eps: float, reach: float, work: ScaleWork) -> bool:
    """Whether no a with |a| <= reach has u <= 0 at the sides and |u_+| <= eps over all other rows."""
    rows, work = ScaleRows(*rows), ScaleWork(*work)
    use_none(work)
    for i in range(len(is_side)):
        use_row(rows, i, PENALTY if is_side[i] else 1.0, 0.0, work)
    clear(work.a)
    return examine(rows, eps, reach, work) == EMPTY


@inner
def turn_off(rows, top, j, sets, nodes):
    """Let a sample be off in a node."""
    put(nodes.off[top], j)
    for e in range(len(sets)):
        if has(sets[e], j):
            nodes.mass[top, e] -= rows.mass[j]


@inner
def is_subset(bits, others):
    """Whether all bits are among the others."""
    left = np.int64(0)
    for word in range(len(bits)):
        left |= bits[word] & ~others[word]
    return left == 0


@inner
def is_disjoint(bits, others):
    """Whether no bit is among the others."""
    common = np.int64(0)
    for word in range(len(bits)):
        common |= bits[word] & others[word]
    return common == 0


@inner
def common_mass(rows, bits, others):
    """Mass of the samples that both sets have."""
    total = 0.0
    for word in range(len(bits)):
        both = bits[word] & others[word]
        if both:
            for e in range(BITS * word, min(BITS * (word + 1), len(rows.mass))):
                if (both >> (e % BITS)) & 1:
                    total += rows.mass[e]
    return total


@inner
def keep_point(rows, eps, sets, needs, points, work):
    """Remember the point of the last problem. Returns its line if its samples on meet all demands, else -1.

    Samples that are nearly on count as on.
    """
    line = points.n_met[0] % len(points.points)
    points.n_met[0] += 1
    points.is_inside[line] = True
    clear(points.weakly_on[line])
    clear(points.on[line])
    copy(work.a, points.points[line])
    tol, total = POINT_TOL * eps, 0.0
    for e in range(len(rows.mass)):
        if work.u_all[e] >= -tol:
            put(points.weakly_on[line], e)
            total += rows.mass[e]
            if work.u_all[e] > tol:
                put(points.on[line], e)
    points.mass[line] = total
    is_missed = False
    for e in range(len(sets)):
        points.set_mass[line, e] = common_mass(rows, sets[e], points.on[line])
        is_missed = is_missed or common_mass(rows, sets[e], points.weakly_on[line]) < needs[e]
    return -1 if is_missed else line


@inner
def add_possible(rows, off, bits, sets, work):
    """Add samples to those that can be on, and their mass to what is possible in each set."""
    for word in range(len(off)):
        new = bits[word] & ~off[word] & ~work.can[word]
        if new:
            work.can[word] |= new
            for e in range(len(sets)):
                both = new & sets[e, word]
                if both:
                    for j in range(BITS * word, min(BITS * (word + 1), len(rows.mass))):
                        if (both >> (j % BITS)) & 1:
                            work.possible[e] += rows.mass[j]


@inner
def use_cuts(rows, work):
    """Set the half-spaces of all better solutions, the last rows."""
    n_samples = len(rows.offset) - MAX_CUTS
    for i in range(n_samples, n_samples + rows.n_cuts[0]):
        use_row(rows, i, PENALTY, 0.0, work)


@without_arrays
def find_cut(
    rows: ScaleRows,
    eps: float,
    reach: float,
    demanded: Integers,
    need: float,
    limits: tuple[float, float, float],
    work: ScaleWork,
) -> bool:
    """Add the half-space h >= beta with the largest beta that holds wherever a demand is met.

    Below beta nearly all of its samples are off, one by one, and the others weigh less than it needs. h is
    the row after the present cuts. limits: the first beta, the factor to the next, and the least. Returns
    whether there is one.
    """
    rows, work = ScaleRows(*rows), ScaleWork(*work)
    beta, factor, least = limits
    row, on = len(rows.offset) - MAX_CUTS + rows.n_cuts[0], 0.0
    offset = rows.offset[row]
    use_none(work)
    use_cuts(rows, work)
    clear(work.a)
    for j in range(len(rows.mass)):
        if not has(demanded, j):
            continue
        use_row(rows, j, 1.0, PENALTY, work)
        while beta > 0.0:
            use_row(rows, row, PENALTY, 0.0, work)
            work.offset[work.place[row]] = offset - beta
            if examine(rows, eps, reach, work) == EMPTY:
                break
            if on + rows.mass[j] < need:
                on += rows.mass[j]
                break
            beta = beta * factor if beta > least else 0.0
        use_row(rows, j, 1.0, 0.0, work)
    use_none(work)
    # u = beta - h, or a row of zeros that is never on.
    sign = 1.0 if beta > 0.0 else 0.0
    rows.offset[row] = beta - sign * offset
    for k in range(rows.X.shape[1]):
        rows.X[row, k] *= -sign
        rows.Xt[k, row] = rows.X[row, k]
    rows.n_cuts[0] += beta > 0.0
    return beta > 0.0


@inner
def drop_rows(rows, work):
    """Leave out rows that had no weight for a while, if they are the majority."""
    oldest, m = work.counts[1] - RECENT_STEPS, 0
    for e in range(work.n_used[0]):
        m += work.last_step[e] >= oldest
    if 2 * m >= work.n_used[0]:
        return
    m = 0
    for e in range(work.n_used[0]):
        i = work.used[e]
        work.place[i] = -1
        if work.last_step[e] >= oldest:
            gather(rows, i, m, work)
            work.last_step[m] = work.last_step[e]
            m += 1
    work.n_used[0] = m


@inner
def weigh_rows(rows, nodes, top, work):
    """Set the half-spaces of a node."""
    drop_rows(rows, work)
    for e in range(work.n_used[0]):
        work.above[e] = 1.0
        work.below[e] = 0.0
    for word in range(len(nodes.on[top])):
        if nodes.on[top, word] | nodes.chosen_off[top, word]:
            for e in range(BITS * word, min(BITS * (word + 1), len(rows.mass))):
                if has(nodes.on[top], e):
                    use_row(rows, e, 1.0, PENALTY, work)
                elif has(nodes.chosen_off[top], e):
                    use_row(rows, e, PENALTY, 0.0, work)
    use_cuts(rows, work)


@inner
def is_urgent(rows, e, sets, needs, top, nodes, points):
    """Whether demand e is not met by the samples on, and there are points that only fail to meet it clearly.

    The mass that all points on have to have is that of the first demand.
    """
    if common_mass(rows, sets[e], nodes.on[top]) >= needs[e]:
        return False
    for line in range(min(points.n_met[0], len(points.points))):
        is_massive = points.mass[line] >= needs[0]
        if points.is_inside[line] and is_massive and points.set_mass[line, e] < needs[e]:
            return True
    return False


@inner
def enter_node(rows, top, sets, nodes, points, work):
    """Find the points met before that lie in a node, and what can be on at them.

    Returns whether there is such a point.
    """
    clear(work.can)
    clear(work.possible)
    work.counts[0] += len(points.points)
    # None of these is off.
    add_possible(rows, nodes.off[top], nodes.on[top], sets, work)
    is_met = False
    for line in range(min(points.n_met[0], len(points.points))):
        points.is_inside[line] = is_subset(nodes.on[top], points.weakly_on[line]) and is_disjoint(
            nodes.chosen_off[top], points.on[line]
        )
        if points.is_inside[line]:
            add_possible(rows, nodes.off[top], points.weakly_on[line], sets, work)
            if not is_met:
                copy(points.points[line], nodes.points[top])
            is_met = True
    return is_met


@inner
def next_test(rows, top, sets, needs, nodes, points, work):
    """A sample that may turn out to be off, heavy ones first, or NOTHING.

    Tests end where those that can be on meet all demands that are urgent, and the first.
    """
    if nodes.mass[top, 0] < needs[0]:
        return NOTHING
    for e in range(len(sets)):
        if work.possible[e] >= needs[e] or (
            e > 0 and not is_urgent(rows, e, sets, needs, top, nodes, points)
        ):
            continue
        for word in range(len(work.can)):
            left = sets[e, word] & ~nodes.off[top, word] & ~work.can[word]
            if left:
                for j in range(BITS * word, min(BITS * (word + 1), len(rows.mass))):
                    if (left >> (j % BITS)) & 1:
                        return j
    return NOTHING


@inner
def run_test(rows, top, j, eps, reach, sets, needs, nodes, points, work):
    """Whether sample j can be on in a node; if not, it is off from now on. NODE: whether there is anything.

    Returns what is known, and the line of a point that weighs enough.
    """
    copy(nodes.points[top], work.a)
    if j != NODE:
        use_row(rows, j, 1.0, PENALTY, work)
        # From the point of the node where the sample is nearest to on.
        most = -np.inf
        for back in range(min(points.n_met[0], MAX_RECENT)):
            line = (points.n_met[0] - 1 - back) % len(points.points)
            if points.is_inside[line]:
                x = 0.0
                for k in range(len(work.a)):
                    x += rows.X[j, k] * points.points[line, k]
                if x > most:
                    most = x
                    copy(points.points[line], work.a)
    state = examine(rows, eps, reach, work)
    line = -1
    if state == MET:
        line = keep_point(rows, eps, sets, needs, points, work)
        last = (points.n_met[0] - 1) % len(points.points)
        add_possible(rows, nodes.off[top], points.weakly_on[last], sets, work)
    if j == NODE:
        copy(work.a, nodes.points[top])
        return state, line
    use_row(rows, j, 1.0, 0.0, work)
    if state == EMPTY:
        turn_off(rows, top, j, sets, nodes)
    else:
        clear(work.left)
        put(work.left, j)
        add_possible(rows, nodes.off[top], work.left, sets, work)
    return state, line


@inner
def is_closed(rows, top, sets, needs, nodes, work):
    """Whether the samples of a node that are not off cannot meet a demand."""
    for e in range(len(sets)):
        # The mass that is kept has rounding errors of its own; only where it is close it is added up again.
        if nodes.mass[top, e] < needs[e] + MASS_TOL * rows.mass[0] * len(rows.mass):
            for word in range(len(work.left)):
                work.left[word] = ~nodes.off[top][word]
            if common_mass(rows, sets[e], work.left) < needs[e]:
                return True
    return False


@inner
def choose(rows, top, sets, needs, nodes, points):
    """The sample to decide next: heavy, and rarely on at the points of the node; -1 if there is none.

    If a demand of a face is urgent, one of its samples is.
    """
    n_points, n_inside, demanded = min(points.n_met[0], len(points.points)), 0, 0
    for line in range(n_points):
        n_inside += points.is_inside[line]
    for e in range(1, len(sets)):
        if demanded == 0 and is_urgent(rows, e, sets, needs, top, nodes, points):
            demanded = e
    best, chosen = 0.0, -1
    for word in range(len(nodes.off[top])):
        left = sets[demanded, word] & ~nodes.off[top, word] & ~nodes.on[top, word]
        if not left:
            continue
        for j in range(BITS * word, min(BITS * (word + 1), len(rows.mass))):
            if not (left >> (j % BITS)) & 1:
                continue
            # Masses fall.
            if chosen >= 0 and rows.mass[j] * MAX_RARITY_WEIGHT <= best:
                return chosen
            count = 0
            for line in range(n_points):
                if points.is_inside[line] and has(points.weakly_on[line], j):
                    count += 1
            rarity = 1.0 + MIN_RARITY - count / max(n_inside, 1)
            score = rows.mass[j] * (rarity * rarity) ** 2
            if score > best or chosen < 0:
                best, chosen = score, j
    return chosen


@without_arrays
def search_nodes(
    rows: ScaleRows,
    eps: float,
    reach: float,
    sets: BitSets,
    needs: Vector,
    budget: int,
    nodes: ScaleNodes,
    points: ScalePoints,
    work: ScaleWork,
) -> tuple[int, int]:
    """Depth first over the signs of heavy samples. Returns how it ended, and the line of a point or -1.

    Demands: in each of the sets every better solution has samples on with a mass of at least `needs`. The
    first set has all samples.
    """
    rows, nodes = ScaleRows(*rows), ScaleNodes(*nodes)
    points, work = ScalePoints(*points), ScaleWork(*work)
    while nodes.height[0] > 0:
        if work.counts[0] >= budget:
            return PAUSED, -1
        top = nodes.height[0] - 1
        if is_closed(rows, top, sets, needs, nodes, work):
            nodes.height[0] -= 1
            continue
        weigh_rows(rows, nodes, top, work)
        is_met = enter_node(rows, top, sets, nodes, points, work)
        state, j = MET, NODE
        while True:
            if is_met:
                j = next_test(rows, top, sets, needs, nodes, points, work)
            if j == NOTHING:
                break
            state, line = run_test(rows, top, j, eps, reach, sets, needs, nodes, points, work)
            if line >= 0:
                return MASSIVE, line
            if j == NODE and state == EMPTY:
                break
            is_met = True
        if (j == NODE and state == EMPTY) or is_closed(rows, top, sets, needs, nodes, work):
            nodes.height[0] -= 1
            continue
        chosen = choose(rows, top, sets, needs, nodes, points)
        if chosen < 0 or top + 2 > len(nodes.on):
            return STUCK, -1
        copy(nodes.on[top], nodes.on[top + 1])
        copy(nodes.off[top], nodes.off[top + 1])
        copy(nodes.chosen_off[top], nodes.chosen_off[top + 1])
        copy(nodes.points[top], nodes.points[top + 1])
        copy(nodes.mass[top], nodes.mass[top + 1])
        put(nodes.on[top + 1], chosen)
        turn_off(rows, top, chosen, sets, nodes)
        put(nodes.chosen_off[top], chosen)
        nodes.height[0] += 1
    return DONE, -1
