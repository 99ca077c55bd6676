"""Least squares on some rows, and the covariance of its coefficients, from sums over these rows.

With rows z_i and residuals e_i, both scaled by the roots of the weights, G = sum z z' and a penalty P,

    bread = (G + P)^-1,    h_i = z_i' bread z_i,    df = n - trace(bread G),    sigma^2 = sum e^2 / df,

    nonrobust   sigma^2 bread G bread
    HC0 - HC3   bread (sum omega_i e_i^2 z_i z_i') bread,   omega = 1, n / df, 1 / (1 - h_i), 1 / (1 - h_i)^2.

Where coefficients are held at constraints, A b = c, they move in the null space of A alone: with a basis N of
it, bread = N (N'(G + P) N)^-1 N'.

Columns are standardised, with a mean if there is an intercept. Means and sums of squares about them come from
those of parts of the rows (Chan, Golub and LeVeque), without the cancellation of sums of plain squares:

    m = m_1 + (w_2 / w) d,    G = G_1 + G_2 + (w_1 w_2 / w) d d',    d = m_2 - m_1,    w = w_1 + w_2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rectifit._typing import Mask, Matrix, Vector
from rectifit.formatting import write_count
from rectifit.tolerances import (
    CONSTANT_COLUMN_TOL,
    FREEDOM_TOL,
    GRAM_RANK_TOL,
    INDEPENDENT_TOL,
    UNSEEN_TOL,
)

__all__ = [
    "KINDS",
    "Bread",
    "Meat",
    "Moments",
    "ScaleError",
    "Standard",
    "make_bread",
    "null_space",
    "on_user_scale",
    "sandwich",
]

KINDS = ("nonrobust", "HC0", "HC1", "HC2", "HC3")
# Variances between powers of ten with these exponents are numbers with all digits.
MAX_EXPONENT = 306


class ScaleError(ValueError):
    """Data without standard errors, because variances are not representable as numbers."""


# omega = 1 / (1 - h)^(2 power).
POWERS = {"HC0": 0.0, "HC1": 0.0, "HC2": 0.5, "HC3": 1.0}


class Standard(NamedTuple):
    """Rows z = sqrt(w) [(x / unit - mean) / size, 1], the 1 only with an intercept."""

    unit: Vector
    mean: Vector
    size: Vector
    has_intercept: bool

    @property
    def n_columns(self) -> int:
        """Numbers in a row z."""
        return self.size.size + int(self.has_intercept)

    def coefficients(self) -> Matrix:
        """T, with T gamma the coefficients of x, and the intercept, if gamma are those of z."""
        p = self.size.size
        T = np.eye(self.n_columns)
        T[:p, :p] = np.diag(1.0 / (self.size * self.unit))
        T[p:, :p] = -self.mean / self.size
        return T


@dataclass(frozen=True)
class Moments:
    """Some rows with weights: columns x / unit, and residuals.

    Attributes
    ----------
    n_rows, weight : number, and sum of the weights
    mean, largest : of the columns; the mean is 0 without an intercept
    gram : sum of w (x - mean)(x - mean)'
    squares : sum of w e^2
    """

    n_rows: int
    weight: float
    mean: Vector
    largest: Vector
    gram: Matrix
    squares: float
    unit: Vector
    has_intercept: bool

    def merge(self, other: Moments) -> Moments:
        """Both."""
        weight, step = self.weight + other.weight, other.mean - self.mean
        share = other.weight / weight if weight > 0.0 else 0.0
        return Moments(
            self.n_rows + other.n_rows,
            weight,
            self.mean + share * step,
            np.maximum(self.largest, other.largest),
            self.gram + other.gram + (self.weight * share) * np.outer(step, step),
            self.squares + other.squares,
            self.unit,
            self.has_intercept,
        )

    def standard(self) -> Standard:
        """Coordinates in which the columns have mean 0 and variance 1."""
        spread = np.sqrt(self.gram.diagonal() / self.weight)
        varies = spread > CONSTANT_COLUMN_TOL * self.largest
        size = np.where(varies, spread, np.where(self.largest > 0.0, self.largest, 1.0))
        return Standard(self.unit, self.mean, size, self.has_intercept)


@dataclass(frozen=True)
class Meat:
    """A part of sum omega e^2 z z', and the rows in it that determine a coefficient alone."""

    matrix: Matrix
    n_alone: int

    def merge(self, other: Meat) -> Meat:
        """Both."""
        return Meat(self.matrix + other.matrix, self.n_alone + other.n_alone)


@dataclass(frozen=True)
class Bread:
    """Coefficients that come from some rows, without the noise of these.

    Attributes
    ----------
    standard : coordinates of the rows; None where there are too few rows for any standard error
    inverse : (G + P)^-1 in these coordinates, where constraints and the rank of the rows allow
    gram : G
    unseen : coefficients that the rows do not determine
    n_rows, df, sigma : the rows, their number minus coefficients, and the standard deviation of their noise
    what : what the rows are called in notes
    notes : what a reader must know, sentences
    """

    standard: Standard | None
    inverse: Matrix
    gram: Matrix
    unseen: Mask
    n_rows: int
    df: float
    sigma: float
    what: str
    notes: tuple[str, ...]

    def cover(self, meat: Matrix) -> Matrix:
        """The covariance of the coefficients, NaN where these are not determined."""
        assert self.standard is not None
        matrix = on_user_scale(self.standard.coefficients(), self.inverse @ meat @ self.inverse)
        matrix[self.unseen], matrix[:, self.unseen] = np.nan, np.nan
        return matrix


def make_bread(rows: Moments, alpha: float, what: str, none: str, held: Matrix | None = None) -> Bread:
    """The bread of coefficients that come from some rows; notes call the rows `what`.

    `none` is the note if there are no rows. The lines of `held` are constraints that hold coefficients.
    """
    p, n = rows.mean.size, rows.n_rows
    size = p + rows.has_intercept
    missing = Bread(
        None, np.full((size, size), np.nan), rows.gram, np.ones(size, np.bool_), n, 0.0, np.nan, what, (none,)
    )
    if n == 0:
        return missing
    standard = rows.standard()
    T = standard.coefficients()
    G = np.diag(np.full(len(T), rows.weight))
    G[:p, :p] = rows.gram / np.outer(standard.size, standard.size)
    penalty = np.append(np.square(np.sqrt(alpha) / standard.size / standard.unit), np.zeros(len(T) - p))
    N = np.eye(len(T)) if held is None else null_space(held @ T[:p])
    values, V = np.linalg.eigh(N.T @ (G + np.diag(penalty)) @ N)
    V = N @ V
    kept = values > GRAM_RANK_TOL * max(values.max(), 0.0)
    inverse = (V[:, kept] / values[kept]) @ V[:, kept].T
    used = float(np.sum(inverse * G)) if penalty.any() else float(np.count_nonzero(kept))
    df = n - used
    if df <= FREEDOM_TOL:
        note = f"{n} {what} for {N.shape[1]} coefficients: no standard errors"
        return replace(missing, df=max(df, 0.0), notes=(note,))
    unseen = np.linalg.norm(T @ V[:, ~kept], axis=1) > UNSEEN_TOL * np.linalg.norm(T, axis=1)
    n_unseen = write_count(int(unseen.sum()), "coefficient")
    note = f"the {what} do not determine {n_unseen}: no standard errors there"
    sigma = float(np.sqrt(rows.squares / df))
    return Bread(standard, inverse, G, unseen, n, df, sigma, what, (note,) * bool(unseen.any()))


def on_user_scale(T: Matrix, middle: Matrix) -> Matrix:
    """T middle T'; ScaleError if a variance is too large or too small to be a number."""
    sizes = np.abs(T).max(axis=1, initial=0.0)
    shrunk = T / np.where(sizes > 0.0, sizes, 1.0)[:, None]
    variances = np.einsum("ij,jk,ik->i", shrunk, middle, shrunk)
    known = (variances > 0.0) & (sizes > 0.0)
    exponents = np.log10(variances[known]) + 2.0 * np.log10(sizes[known])
    if (np.abs(exponents) > MAX_EXPONENT).any():
        worst = exponents[np.abs(exponents).argmax()]
        raise ScaleError(
            f"the scales of X and y make a variance of about 1e{worst:.0f}, which is no number; divide "
            "columns of X, or y, by constants"
        )
    return np.asarray(T @ middle @ T.T)


# The meat of rows in standard coordinates, for a bread and a power.
Weigh = Callable[[Standard, Matrix, float], Meat]


def sandwich(bread: Bread, kind: str, weigh: Weigh) -> tuple[Matrix, tuple[str, ...]]:
    """The covariance of coefficients where rows are independent, and notes."""
    if bread.standard is None:
        return bread.inverse.copy(), ()
    if kind == "nonrobust":
        return bread.cover(bread.sigma**2 * bread.gram), ()
    found = weigh(bread.standard, bread.inverse, POWERS[kind])
    note = f"{found.n_alone} {bread.what} determine a coefficient alone: {kind} does not exist, HC1 does"
    scale = bread.n_rows / bread.df if kind == "HC1" else 1.0
    return bread.cover(found.matrix * scale), (note,) * bool(found.n_alone)


def null_space(A: Matrix) -> Matrix:
    """An orthonormal basis of the vectors x with A x = 0, in columns."""
    if not len(A):
        return np.eye(A.shape[1])
    A = A / np.linalg.norm(A, axis=1, keepdims=True)
    _, sizes, Vt = np.linalg.svd(A)
    rank = int(np.count_nonzero(sizes > INDEPENDENT_TOL))
    return np.asarray(Vt[rank:].T)
