"""Exact reductions of the data: the same minima from fewer rows, in whitened coordinates.

Samples without weight, and zero rows of a model without intercept (u = 0 whatever the coefficients), are
constants. Samples with the same row share their u, and with W the sum of their weights and m the weighted
mean of their y

    sum_j w_j (max(0, u) - y_j)^2 = W (max(0, u) - m)^2 + sum_j w_j (y_j - m)^2

is one sample of weight W and outcome m, and a constant. Weights are then absorbed and columns scaled as
everywhere (surrogate/rows.py), and the coordinates turned so that all rows and the ridge together have the
Gram matrix 1.

A constraint c'beta <= d is one more row, of kind LIMIT, whose u is at most d in all solutions that matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from rectifit._typing import Matrix, Vector
from rectifit.certificate.best_first import first_kinds
from rectifit.certificate.records import LIMIT, Region, Samples
from rectifit.constraints import Constraints
from rectifit.data.problem import Problem
from rectifit.surrogate.rows import WorkingRows
from rectifit.tolerances import BATCH_DIAGONAL, INTERVAL_RTOL, MIN_PIVOT

__all__ = ["Reduced", "reduce_rows"]


@dataclass(frozen=True)
class Reduced:
    """Rows Z, outcomes y and ridge in whitened coordinates; L = unit * (their objective) + constant.

    rows are those of X that are left, and a u of theirs is `roots` times as large here; counts says how many
    samples each stands for, n_zero how many have u = 0 whatever the coefficients. Behind them, Z and y have
    rows for constraints. region is what is known of all rows. is_cone says whether all multiples of solutions
    are solutions.
    """

    problem: Problem
    Z: Matrix
    y: Vector
    ridge: Matrix
    to_coefficients: Matrix
    unit: float
    constant: float
    rows: Matrix
    roots: Vector
    counts: npt.NDArray[np.intp]
    n_zero: int
    region: Region
    is_cone: bool

    @cached_property
    def samples(self) -> Samples:
        """Rows, outcomes and ridge for compiled code."""
        return Samples.from_rows(self.Z, self.y, self.ridge)

    def objective(self, value: float) -> float:
        """From reduced units to the user's."""
        return self.unit * value + self.constant

    def value(self, objective: float) -> float:
        """From the user's units to reduced ones."""
        return (objective - self.constant) / self.unit

    def from_coefficients(self, beta: Vector, intercept: float) -> Vector:
        """The point nearest to these coefficients."""
        b = np.append(beta, intercept) if self.problem.fit_intercept else beta
        return np.asarray(np.linalg.lstsq(self.to_coefficients, b, rcond=None)[0])

    def coefficients(self, b: Vector) -> tuple[Vector, float]:
        """Coefficients and intercept of a point."""
        columns, p = self.to_coefficients @ b, self.problem.n_features
        return columns[:p], float(columns[p:].sum())


def _factor(gram: Matrix) -> Matrix:
    """The Cholesky factor, or that of nearly the same matrix where rounding has left none.

    Coordinates that are not white by so much are as good, for rows and ridge are computed in them.
    """
    try:
        factor = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        factor = np.linalg.cholesky(gram + BATCH_DIAGONAL * np.diag(gram.diagonal()))
    return np.asarray(factor, dtype=np.float64)


def reduce_rows(problem: Problem) -> Reduced:
    """Merge and drop rows, and whiten what is left."""
    X = problem.loaded().dense()
    w = np.square(problem.root_weight)
    keep = w > 0.0
    if not problem.fit_intercept:
        keep &= X.any(axis=1)
    constant = float(np.square(problem.loaded().weighted_y[~keep]).sum())
    n_zero = int(np.count_nonzero(~keep & (w > 0.0)))
    if not keep.any():
        q = problem.n_features + int(problem.fit_intercept)
        nothing = np.zeros((0, q)), np.zeros(0), np.zeros((q, q)), np.eye(q)
        empty = np.zeros((0, problem.n_features)), np.zeros(0), np.zeros(0, dtype=np.intp)
        region = Region(first_kinds(nothing[1]), np.zeros(0), np.zeros(0))
        return Reduced(problem, *nothing, 1.0, constant, *empty, n_zero, region, True)
    rows, group = np.unique(X[keep].astype(np.float64), axis=0, return_inverse=True)
    group = group.ravel()
    weight = np.bincount(group, w[keep], minlength=len(rows))
    mean = np.bincount(group, (w * problem.y)[keep], minlength=len(rows)) / weight
    constant += float(w[keep] @ np.square(problem.y[keep] - mean[group]))
    merged = Problem.from_data(
        rows,
        mean,
        sample_weight=weight,
        fit_intercept=problem.fit_intercept,
        alpha=problem.alpha,
        constraints=problem.constraints,
    )
    working = WorkingRows(merged)
    gram = working.gram + working.ridge
    # Directions that only constraints know.
    loose = gram.diagonal() <= MIN_PIVOT
    gram[loose], gram[:, loose] = 0.0, 0.0
    L = _factor(gram + np.diag(loose.astype(np.float64)))
    turn = solve_triangular(L, np.eye(len(L)), lower=True).T
    whitened = replace(working.coordinates, T=working.T @ turn, diagonal=None)
    Z = np.ascontiguousarray(working.rows(slice(None), whitened))
    Z[:, loose] = 0.0
    ridge = whitened.ridge(working.penalty)
    scale = working.scale
    back = whitened.T * scale
    counts = np.bincount(group, minlength=len(rows))
    roots = np.sqrt(weight) / scale
    y = working.y
    kind, none = first_kinds(y), np.full(y.size, np.inf)
    region, is_cone = Region(kind, -none, none), True
    if problem.constraints is not None:
        is_cone = problem.constraints.is_cone
        more, limits = _constraint_rows(problem.constraints, back)
        Z, y = np.vstack([Z, more]), np.append(y, np.zeros(len(more)))
        if np.isfinite([problem.constraints.low, problem.constraints.high]).all():
            low, high = (end * roots for end in _reach(problem, rows))
            # Ends that are farther away than better solutions can be say nothing, and take time.
            if -low.min() <= np.linalg.norm(y):
                region = Region(kind, low, high)
        region = region.followed_by(limits)
    return Reduced(
        problem, Z, y, ridge, back, scale**2, constant, rows, roots, counts, n_zero, region, is_cone
    )


def _reach(problem: Problem, rows: Matrix) -> tuple[Vector, Vector]:
    """Between which ends u lies where all coefficients have two bounds.

    An intercept that is so low that all samples are off for all coefficients does as well as a lower one.
    """
    assert problem.constraints is not None
    low, high = problem.constraints.low, problem.constraints.high
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    centre, radius = rows @ middle, np.abs(rows) @ half
    radius += INTERVAL_RTOL * (np.abs(rows) @ (np.abs(middle) + half))
    if problem.fit_intercept:
        return centre - radius - float((centre + radius).max()), np.full(len(rows), np.inf)
    return centre - radius, centre + radius


def _constraint_rows(constraints: Constraints, to_coefficients: Matrix) -> tuple[Matrix, Region]:
    """Rows of the constraints, of length 1, and between which ends their u lies."""
    C, d, n_ties, _, _ = constraints.half_spaces
    low = np.full(len(C), -np.inf)
    low[len(C) - n_ties :] = d[len(C) - n_ties :]
    rows = C @ to_coefficients[: C.shape[1]]
    lengths = np.linalg.norm(rows, axis=1)
    return rows / lengths[:, None], Region(np.full(len(C), LIMIT, dtype=np.int8), low / lengths, d / lengths)
