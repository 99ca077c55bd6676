"""Which neighbours of a solved surrogate can be dismissed without solving them: bounds from its dual.

Let I be an active set, beta the minimiser of F_I, lambda its dual solution, I' = I without some samples E.
In working units let r = u - y, G the Gram matrix of the rows in I plus the ridge, and h_i = z_i'G^-1 z_i.

Surrogate. Keep lambda outside E. A sample of E may keep its slope if that is not negative, which costs
2 r (y - r) for y <= u <= 2y and nothing for u > 2y; or it may lose its slope (u <= 2y), and then the residual
2 sum r_e z_e must be balanced by the rows in I without E, which have no kinks. By the inequality of bounds.py

    min F_I' >= F_I'(beta) - g,      g = sum of those costs + |sum r_e z_e|^2 in the norm of (G - Z_E'Z_E)^-1,

and (G - Z_E'Z_E)^-1 <= G^-1 / (1 - sum h_e).

True objective. F_I' is the quadratic of its active rows plus a convex function, so its minimiser beta + t has
t'(G - Z_E'Z_E)t <= F_I'(beta) - min F_I' <= g, hence t'Gt <= q = g / (1 - sum h_e), |z_i't| <= sqrt(q h_i).
With slopes s_i of the true losses at u_i,

    L(beta + t) >= L(beta) - sqrt(q) |sum_{y_i > 0} (s_i - lambda_i) z_i|_{G^-1} - sum_i crossing_i,

where crossing_i is how far the loss of a positive sample can fall below its tangent by crossing u = 0 within
sqrt(q h_i). (The losses of samples with y <= 0 are convex, and their slopes lambda_i cancel.) What is
subtracted on the right depends on q alone and is tabulated once.

A neighbour whose two bounds both exceed the best known values improves neither of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Matrix, Vector
from rectifit.surrogate.solution import SurrogateSolution
from rectifit.surrogate.solver import SurrogateSolver
from rectifit.tolerances import NEIGHBOUR_RANK_TOL, NEIGHBOUR_TOL

__all__ = ["Neighbours", "Removal"]

# Distances q for which the loss of the true objective is tabulated, as shares of sum y'^2.
REACH_SHARES = np.geomspace(1e-9, 1.0, 64)


@dataclass(frozen=True)
class Removal:
    """Samples E removed from the active set.

    Attributes
    ----------
    change : F_I'(beta) - F_I(beta)
    cost : sum of the costs of the slopes that are kept
    pull : sum of r_e z_e over the samples whose slope is lost, whitened by G
    h : sum of h_e over all of E
    """

    change: float
    cost: float
    pull: Vector
    h: float


class Neighbours:
    """The neighbours of one solved surrogate, for samples in the order of their removal.

    Parameters
    ----------
    solver : SurrogateSolver
    members : positive samples, in order
    Z : their rows in working coordinates
    first : the active set is members[first:]
    solution : its minimiser
    objective : the true objective there
    """

    def __init__(
        self,
        solver: SurrogateSolver,
        members: npt.NDArray[np.intp],
        Z: Matrix,
        first: int,
        solution: SurrogateSolution,
        objective: float,
    ) -> None:
        rows = solver.rows
        weight = rows.scale / solver.problem.root_weight[members]
        y = rows.y[members]
        self._unit = rows.scale**2
        self._slack = NEIGHBOUR_TOL * float(rows.y @ rows.y)
        self._value = solution.value / self._unit
        self._objective = objective / self._unit
        self._loss = (solution.value - solution.dual_bound) / self._unit
        self._reaches = REACH_SHARES * float(rows.y @ rows.y)
        values, vectors = np.linalg.eigh(Z[first:].T @ Z[first:] + rows.ridge)
        self.is_regular = bool(solution.converged and values[0] > NEIGHBOUR_RANK_TOL * values[-1])
        if not self.is_regular:
            return
        u = solver.problem.preactivation(solution.beta, solution.intercept)[members] / weight
        slopes = solution.dual[members] * weight / self._unit
        r = u - y
        W = Z @ (vectors / np.sqrt(values))
        h = np.einsum("ij,ij->i", W, W)
        on = u > 0.0
        pull = float(np.linalg.norm((np.where(on, 2.0 * r, 0.0) - slopes) @ W))
        self._losses = np.sqrt(self._reaches) * pull + _crossings(u, y, np.sqrt(np.outer(self._reaches, h)))

        keeps = np.where(u > 2.0 * y, 0.0, np.where(r >= 0.0, 2.0 * r * (y - r), np.inf))
        balanced = np.where(h < 1.0, r * r * h / np.where(h < 1.0, 1.0 - h, 1.0), np.inf)
        self._balances = (u <= 2.0 * y) & (balanced < keeps)
        self._cost = np.where(self._balances, 0.0, keeps)
        self._change = np.where(u <= 2.0 * y, y * y - r * r, 0.0)
        self._pull = np.where(self._balances, r, 0.0)[:, None] * W
        self._pull2 = np.einsum("ij,ij->i", self._pull, self._pull)
        self._h = h

    def nothing_removed(self) -> Removal:
        """E empty."""
        return Removal(0.0, 0.0, np.zeros(self._pull.shape[1]), 0.0)

    def without(self, removal: Removal, member: int) -> Removal:
        """One more sample removed."""
        return Removal(
            removal.change + float(self._change[member]),
            removal.cost + float(self._cost[member]),
            removal.pull + self._pull[member],
            removal.h + float(self._h[member]),
        )

    def matter(self, removal: Removal, after: int, least_value: float, least_objective: float) -> Mask:
        """For every member from `after` on, whether E with it may lower the least known values of F and L."""
        e = slice(after, None)
        pull2 = removal.pull @ removal.pull + 2.0 * (self._pull[e] @ removal.pull) + self._pull2[e]
        # Samples that keep their slope have a kink now: like the others of E they cannot balance anything.
        left = 1.0 - removal.h - self._h[e]
        balanced = np.where(left > 0.0, np.maximum(pull2, 0.0) / np.where(left > 0.0, left, 1.0), np.inf)
        # The solved surrogate has a residual of its own from rounding, which must be balanced, too.
        g = removal.cost + self._cost[e] + np.square(np.sqrt(balanced) + np.sqrt(self._loss))
        lowest = self._value + removal.change + self._change[e] - g
        q = np.where(left > 0.0, g / np.where(left > 0.0, left, 1.0), np.inf)
        safe = self._objective - self._losses > least_objective / self._unit + self._slack
        reach = self._reaches[np.flatnonzero(safe).max()] if safe.any() else -1.0
        matters: Mask = (lowest <= least_value / self._unit + self._slack) | (q > reach)
        return matters


def _crossings(u: Vector, y: Vector, distances: Matrix) -> Vector:
    """Sum over samples of how far the loss can fall below its tangent within the distances, one per line."""
    r = u - y
    # From the quadratic at 0 < u < y to the constant: y^2 against the tangent r^2 + 2 r t at t = -distance.
    leaving = np.maximum(r * r - y * y - 2.0 * r * distances, 0.0) * ((u > 0.0) & (r < 0.0) & (distances > u))
    # From the constant into the quadratic, at most to its minimum u = y.
    v = np.clip(u + distances, 0.0, y)
    entering = (2.0 * v * y - v * v) * (u <= 0.0)
    return np.asarray((leaving + entering).sum(axis=1))
