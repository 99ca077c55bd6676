"""One of many equal solutions: the shortest.

Where the samples that are switched on do not determine the coefficients (more columns than such samples, or
categories without any), a whole polyhedron of coefficients has the same objective. In standardised units

    minimise |gamma|   subject to   z_i'gamma = u_i where u_i > 0,   z_i'gamma <= 0 elsewhere

picks one of them, however the search arrived there: a least-distance problem (`rectifit.least_distance`).
Constraints of the coefficients are further rows of it.
"""

from __future__ import annotations

import numpy as np

from rectifit.data.problem import RowPoint
from rectifit.least_distance import least_distance
from rectifit.surrogate.records import TIE
from rectifit.surrogate.rows import WorkingRows
from rectifit.tolerances import SHORTEST_RANK_TOL, SHORTEST_ZERO_TOL, SUM_TOL, ZERO_OBJECTIVE_TOL

__all__ = ["shorten"]

# No attempt is made where it would take more multiplications than this.
MAX_MULTIPLICATIONS = 10_000_000


def shorten(rows: WorkingRows, point: RowPoint) -> RowPoint | None:
    """The shortest coefficients equivalent to a point; None if they are unique or it would take too long."""
    problem, q = rows.problem, rows.n_columns
    if problem.alpha > 0.0:
        return None
    if np.count_nonzero(point.u > 0.0) * q * q > MAX_MULTIPLICATIONS or rows.are_determined_by(point.u):
        return None
    on = point.u > SHORTEST_ZERO_TOL * np.abs(point.u).max(initial=0.0)
    weighted = problem.root_weight > 0.0
    largest = np.where(rows.largest > 0.0, rows.largest, 1.0)
    A = rows.weighted_columns(np.flatnonzero(weighted & on)) / largest
    rest = rows.weighted_columns(np.flatnonzero(weighted & ~on)) / largest
    if rest.size * q > MAX_MULTIPLICATIONS:
        return None
    lengths = np.sqrt(np.square(A).sum(axis=0) + np.square(rest).sum(axis=0))
    lengths[lengths == 0.0] = 1.0
    A, rest = A / lengths, rest / lengths
    u, limits = (problem.root_weight * point.u)[weighted & on] / rows.scale, np.zeros(len(rest))
    walls = rows.walls
    if walls is not None:
        C = walls.columns / (largest * lengths)
        sizes = np.linalg.norm(C, axis=1)
        sizes[sizes == 0.0] = 1.0
        C, d, is_tie = C / sizes[:, None], walls.kinks / sizes, walls.outcomes == TIE
        A, u = np.vstack([A, C[is_tie]]), np.append(u, d[is_tie])
        rest, limits = np.vstack([rest, C[~is_tie]]), np.append(limits, d[~is_tie])
    # All of V is needed, but of U only what belongs to it: in full it has a number per pair of rows.
    U, sizes, Vt = np.linalg.svd(A, full_matrices=len(A) < q)
    rank = int(np.count_nonzero(sizes > SHORTEST_RANK_TOL * sizes.max(initial=0.0)))
    if rank == q:
        return None
    gamma = Vt[:rank].T @ ((U[:, :rank].T @ u) / sizes[:rank])
    free = Vt[rank:].T
    shift = least_distance(-rest @ free, rest @ gamma - limits)
    gamma = gamma if shift is None else gamma + free @ shift
    columns, p = gamma / (largest * lengths), problem.n_features
    b = (columns if walls is None else walls.at_bounds(columns)) * rows.scale
    if problem.constraints is not None and not problem.constraints.allows(b[:p]):
        return None
    shorter = problem.evaluate(b[:p], float(b[p:].sum()))
    slack = SUM_TOL * point.objective + ZERO_OBJECTIVE_TOL * problem.null_objective
    return shorter if shorter.objective <= point.objective + slack else None
