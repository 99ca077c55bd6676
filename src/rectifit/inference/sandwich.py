"""Least squares on some rows, and the covariance of its coefficients.

With rows z_i, scaled by the roots of their weights, residuals e_i scaled alike, G = sum z z' and a penalty P,

    bread = (G + P)^-1,    h_i = z_i' bread z_i,    df = n - trace(bread G),    sigma^2 = sum e^2 / df,

    nonrobust   sigma^2 bread G bread
    HC0 - HC3   bread (sum omega_i e_i^2 z_i z_i') bread,   omega = 1, n / df, 1 / (1 - h_i), 1 / (1 - h_i)^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rectifit.checks import row_blocks
from rectifit.problem import Matrix, Problem, Rows, Vector

__all__ = ["KINDS", "Block", "coefficient_block", "mean_block"]

KINDS = ("nonrobust", "HC0", "HC1", "HC2", "HC3")
# In units where columns have length 1: smaller eigenvalues of the Gram matrix are 0, and columns that vary
# less than this relative to their size are constant.
RANK, CONSTANT = 1e-12, 1e-9
# A coefficient with a larger share in directions that the rows do not see is not determined.
SEEN = 1e-5
# A row with less freedom than this determines a coefficient alone.
FREE = 1e-10


class Block(NamedTuple):
    """Covariance of some coefficients, NaN where they are not determined; degrees of freedom and sigma."""

    matrix: Matrix
    df: float
    sigma: float
    notes: tuple[str, ...]


def coefficient_block(problem: Problem, rows: Rows, residual: Vector, kind: str) -> Block:
    """Of (beta, intercept), from the active rows."""
    p, q = problem.n_features, problem.n_features + problem.fit_intercept
    if rows.size == 0:
        return Block(np.full((q, q), np.nan), 0.0, np.nan, ("no row is active: no standard errors",))
    root = problem.root_weight[rows]
    center, size = _standardise(problem, rows, root)

    def scaled() -> Iterator[Matrix]:
        for block in row_blocks(rows.size, q):
            Z = np.ones((rows[block].size, q))
            Z[:, :p] = (_dense(problem, rows[block]) - center) / size
            yield Z * root[block, None]

    T = np.eye(q)
    T[:p, :p] = np.diag(1.0 / size)
    T[p:, :p] = -center / size
    penalty = np.append(problem.alpha / np.square(size), np.zeros(q - p))
    return _sandwich(scaled, T, root * residual[rows], penalty, kind, "active rows")


def mean_block(problem: Problem, rows: Rows, residual: Vector, kind: str) -> Block:
    """Of a weighted mean of outcomes: the floor, from the rows at it."""
    root = problem.root_weight[rows]
    if rows.size == 0:
        note = "no row is at the floor, which is not determined"
        return Block(np.full((1, 1), np.nan), 0.0, np.nan, (note,))
    return _sandwich(
        lambda: iter([root[:, None]]),
        np.eye(1),
        root * residual[rows],
        np.zeros(1),
        kind,
        "rows at the floor",
    )


def _sandwich(
    scaled: Callable[[], Iterator[Matrix]], T: Matrix, e: Vector, penalty: Vector, kind: str, what: str
) -> Block:
    """The covariance of T gamma, where gamma are the coefficients of the scaled rows."""
    G = sum((Z.T @ Z for Z in scaled()), np.zeros(T.shape))
    values, V = np.linalg.eigh(G + np.diag(penalty))
    kept = values > RANK * values.max() if values.max() > 0.0 else np.zeros(values.size, dtype=np.bool_)
    bread = (V[:, kept] / values[kept]) @ V[:, kept].T
    used = float(np.sum(bread * G)) if penalty.any() else float(np.count_nonzero(kept))
    df = e.size - used
    if df <= FREE:
        note = f"{e.size} {what} for {len(T)} coefficients: no standard errors"
        return Block(np.full(T.shape, np.nan), max(df, 0.0), np.nan, (note,))
    variance, notes = float(e @ e) / df, list[str]()
    if kind == "nonrobust":
        meat = variance * G
    else:
        meat, first, alone = np.zeros(T.shape), 0, 0
        for Z in scaled():
            part = e[first : first + len(Z)]
            first += len(Z)
            free = 1.0 - np.sum((Z @ bread) * Z, axis=1)
            if kind in ("HC2", "HC3"):
                alone += int(np.count_nonzero(free < FREE))
                part = part / np.where(free < FREE, np.nan, free) ** (0.5 if kind == "HC2" else 1.0)
            meat += (Z * np.square(part)[:, None]).T @ Z
        meat *= e.size / df if kind == "HC1" else 1.0
        if alone:
            notes.append(f"{alone} {what} determine a coefficient alone: {kind} does not exist, HC1 does")
    matrix = T @ (bread @ meat @ bread) @ T.T
    unseen = np.linalg.norm(T @ V[:, ~kept], axis=1) > SEEN * np.linalg.norm(T, axis=1)
    if unseen.any():
        matrix[unseen], matrix[:, unseen] = np.nan, np.nan
        notes.append(
            f"the {what} do not determine {int(unseen.sum())} coefficients: no standard errors there"
        )
    return Block(matrix, df, float(np.sqrt(variance)), tuple(notes))


def _standardise(problem: Problem, rows: Rows, root: Vector) -> tuple[Vector, Vector]:
    """Center and size of the columns; without an intercept the center is 0."""
    p = problem.n_features
    center, largest, square = np.zeros(p), np.zeros(p), np.zeros(p)
    weight = np.square(root) / np.square(root).sum()
    for block in row_blocks(rows.size, p):
        X = _dense(problem, rows[block])
        center += weight[block] @ X if problem.fit_intercept else 0.0
        largest = np.maximum(largest, np.abs(X).max(axis=0))
    largest[largest == 0.0] = 1.0
    for block in row_blocks(rows.size, p):
        square += weight[block] @ np.square((_dense(problem, rows[block]) - center) / largest)
    spread = np.sqrt(square)
    return center, largest * np.where(spread > CONSTANT, spread, 1.0)


def _dense(problem: Problem, rows: Rows) -> Matrix:
    X = problem.X[rows]
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
