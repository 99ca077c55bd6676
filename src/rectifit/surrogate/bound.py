"""A lower bound of min F_I from slopes that need not be exact.

Let lambda_i be slopes in the domain of the conjugates, for the rows of a set Q subgradients of the pieces at
u_i = z_i'gamma, and rho = Z'lambda + 2 B gamma the residual of the optimality condition, B the ridge. For all
t and every delta_i with lambda_i + delta_i in the domain of the conjugate, and delta_i = 0 outside Q,
Fenchel's inequality and the fact that conjugates have curvature at most 1/2 give

    piece_i(u_i + z_i't) >= piece_i(u_i) + (lambda_i + delta_i) z_i't - delta_i^2 / 4 - fenchel_i,
    fenchel_i = piece_i(u_i) + conjugate_i(lambda_i) - lambda_i u_i,
    (gamma + t)'B(gamma + t) >= gamma'B gamma + 2 t'B gamma - t'B v - v'B v / 4     for every v.

Take G = B + sum over Q of z_i z_i', v = G^-1 rho and delta_i = -z_i'v on Q. All terms linear in t cancel, and
what remains holds for every t:

    min F_I >= F_I(gamma) - sum_i fenchel_i - rho'G^-1 rho / 4.

Rows with a kink have no negative slopes, so lambda_i >= z_i'v is required of those in Q, for which
lambda_i >= |z_i||v| is enough. A row that fails is weak: its slope is set to 0, which is always allowed, and
it leaves Q.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rectifit import pieces
from rectifit._typing import Mask, Matrix, Vector

__all__ = ["allowance", "fenchel_gap", "mend_slopes", "solve_gram"]

# Where no row determines a direction, the bound covers coordinates up to this many times those found.
REACH = 10.0
MAX_MENDS = 6
SINGULAR, REGULAR = 1e-12, 1e-7
EPS = float(np.finfo(np.float64).eps)


def allowance(
    n_rows: int,
    value: float,
    n_directions: int = 0,
    extent: float = 0.0,
    total_slope: float = 0.0,
    remainder: float = 0.0,
    size: float = 0.0,
) -> float:
    """What the bound gives away for rounding, and for directions that no row determines.

    Each u_i is a sum of products whose rounding error is at most (q + 4) eps sum_j |x_ij b_j|, of which
    `extent` is a bound over all rows; it enters the value times the slope. Adding up n squares costs about
    sqrt(n) eps of the value. `remainder` is the part of rho outside the range of G, zero but for rounding;
    `size` is |gamma|.
    """
    rounding = EPS * ((n_directions + 4) * extent * total_slope + (8.0 + math.sqrt(n_rows)) * value)
    return rounding + REACH * remainder * (1.0 + size)


def fenchel_gap(u: Vector, y: Vector, kink: Vector, slopes: Vector) -> float:
    """Sum of the fenchel_i: zero where the slopes are subgradients at u."""
    gaps = pieces.value(u, y, kink) + pieces.conjugate(slopes, y, kink) - slopes * u
    return float(gaps.sum())


def solve_gram(gram: Matrix, rhs: Vector) -> Vector:
    """gram^-1 rhs for a positive semidefinite matrix; of minimal length where it is singular."""
    try:
        # Without pivoting a singular matrix may show pivots well above rounding, so be generous.
        pivots = np.square(np.linalg.cholesky(gram).diagonal())
        regular = bool(pivots.min() > REGULAR * gram.diagonal().max())
    except np.linalg.LinAlgError:
        regular = False
    if regular:
        return np.asarray(np.linalg.solve(gram, rhs))
    return np.asarray(np.linalg.lstsq(gram, rhs, rcond=SINGULAR)[0])


class Mended(NamedTuple):
    """Slopes without weak rows, their residual, and what it costs the bound.

    decrement is rho'G^-1 rho / 4, infinite where mending did not come to an end; remainder the part of rho
    outside the range of G; reach is |v|, which the slopes of rows not looked at must exceed per length.
    """

    slopes: Vector
    rho: Vector
    decrement: float
    remainder: float
    reach: float


def mend_slopes(Z: Matrix, sloped: Mask, slopes: Vector, rho: Vector, gram: Matrix) -> Mended:
    """Put weak rows on their constant and weigh the residual that is left.

    Parameters
    ----------
    Z : the rows that may be weak
    sloped : those with a kink that are in Q
    slopes : lambda of these rows
    rho : residual of all slopes
    gram : G over all rows in Q, symmetric
    """
    slopes, rho, gram, sloped = slopes.copy(), rho.copy(), gram.copy(), sloped.copy()
    for _ in range(MAX_MENDS):
        v = solve_gram(gram, rho)
        reach = float(np.linalg.norm(v))
        weak = sloped & (slopes < Z @ v)
        if not weak.any():
            remainder = float(np.abs(rho - gram @ v).sum())
            return Mended(slopes, rho, max(0.25 * float(rho @ v), 0.0), remainder, reach)
        rows = Z[weak]
        gram -= rows.T @ rows
        rho -= slopes[weak] @ rows
        slopes[weak] = 0.0
        sloped &= ~weak
    return Mended(slopes, rho, np.inf, 0.0, 0.0)
