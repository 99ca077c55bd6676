"""The dual bound: a lower bound of a convex quadratic plus pieces, from slopes that need not be exact.

    F(gamma) = gamma'B gamma + s'gamma + sum_i piece_i(z_i'gamma)

Let lambda_i be slopes in the domain of the conjugates, for the rows of a set Q subgradients of the pieces at
u_i = z_i'gamma, and rho = Z'lambda + 2 B gamma + s the residual of the optimality condition. For all t and
every delta_i with lambda_i + delta_i in the domain of the conjugate, and delta_i = 0 outside Q, Fenchel's
inequality and the fact that conjugates have curvature at most 1/2 give

    piece_i(u_i + z_i't) >= support_i + (lambda_i + delta_i) z_i't - delta_i^2 / 4,
    support_i = lambda_i u_i - conjugate_i(lambda_i) = piece_i(u_i) - fenchel_i,
    (gamma + t)'B(gamma + t) >= gamma'B gamma + 2 t'B gamma - t'B v - v'B v / 4     for every v.

Take G = B + sum over Q of z_i z_i', v = G^-1 rho and delta_i = -z_i'v on Q. All terms linear in t cancel, and
what remains holds for every t:

    min F >= gamma'B gamma + s'gamma + sum_i support_i - rho'G^-1 rho / 4
           = F(gamma) - sum_i fenchel_i - rho'G^-1 rho / 4.

The last term is the decrement. Rows with a kink have no negative slopes, so lambda_i >= z_i'v is required of
those in Q, for which lambda_i >= |z_i||v| is enough. A row that fails is infeasible: its slope is set to 0,
which is always allowed, and it leaves Q. Where G is singular, v leaves a remainder rho - G v.

Every bound of the package is this one. Functions that do not call NumPy also serve torch tensors and, where
they do not call methods either, compiled code.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rectifit import pieces
from rectifit._typing import Mask, Matrix, Vector
from rectifit.tolerances import FLOAT64_EPS, GRAM_RANK_TOL, MAX_REACH, REGULAR_PIVOT_TOL, REMAINDER_TOL

__all__ = [
    "RepairedDual",
    "allowance",
    "fenchel_gap",
    "is_balanced",
    "is_regular",
    "repair_dual",
    "residual_cost",
    "solve_gram",
    "support_allowance",
]

MAX_REPAIRS = 6

# A float, an array with one number per problem, or such a tensor.
Number = TypeVar("Number", bound=Any)


def allowance(
    n_rows: int,
    value: Number,
    n_directions: int = 0,
    extent: Number | float = 0.0,
    total_slope: Number | float = 0.0,
    remainder: Number | float = 0.0,
    size: Number | float = 0.0,
) -> Number:
    """How much of the bound must be given up for rounding, and for directions that no row determines.

    Each u_i is a sum of products whose rounding error is at most (q + 4) eps sum_j |x_ij b_j|, of which
    `extent` is a bound over all rows; it enters the value times the slope. Adding up n squares costs about
    sqrt(n) eps of the value. `remainder` is the length of the part of rho outside the range of G, zero but
    for rounding; `size` is |gamma|.
    """
    rounding: Any = FLOAT64_EPS * (
        (n_directions + 4) * extent * total_slope + (8.0 + math.sqrt(n_rows)) * value
    )
    total: Number = rounding + MAX_REACH * remainder * (1.0 + size)
    return total


def support_allowance(n_directions: int, size: Any) -> Any:
    """The same for sums of supporting functions, with `size` the sum of the absolute values of all terms."""
    return FLOAT64_EPS * (8.0 + n_directions) * size


def is_balanced(remainder: Any, total_slope: Any) -> Any:
    """Whether the remainder is rounding, so that no direction lowers the bound without limit."""
    return remainder <= REMAINDER_TOL * (1.0 + total_slope)


def fenchel_gap(u: Vector, y: Vector, kink: Vector, slopes: Vector) -> float:
    """Sum of the fenchel_i: zero where the slopes are subgradients at u."""
    return float((pieces.value(u, y, kink) - pieces.support(u, y, kink, slopes)).sum())


def residual_cost(gram: Any, rho: Any, v: Any) -> tuple[Any, Any]:
    """Decrement rho'v / 4 and length of the remainder rho - G v, for one problem or one per line."""
    product = (rho * v).sum(-1)
    remainder = abs(rho - (gram @ v[..., None])[..., 0]).sum(-1)
    return 0.25 * product * (product > 0.0), remainder


def is_regular(gram: Matrix) -> bool:
    """Whether a positive semidefinite matrix is far from singular."""
    return _factor(gram) is not None


def _factor(gram: Matrix, size: float = 0.0) -> Matrix | None:
    """The Cholesky factor of a positive semidefinite matrix that is far from singular."""
    try:
        factor: Matrix = np.asarray(np.linalg.cholesky(gram), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    pivots = np.square(factor.diagonal())
    return factor if pivots.min() > REGULAR_PIVOT_TOL * max(gram.diagonal().max(), size) else None


def solve_gram(gram: Matrix, rhs: Vector, size: float = 0.0) -> Vector:
    """gram^-1 rhs for a positive semidefinite matrix; of minimal length where it is singular.

    If rows were subtracted, `size` is the largest diagonal entry before: beside that, what is left may be
    rounding, of which the inverse would be anything.
    """
    # Imported here: most fits need no more of SciPy.
    from scipy.linalg.lapack import dpotrs

    factor = _factor(gram, size)
    if factor is not None:
        # The transpose is stored column by column, as LAPACK expects.
        solution: Vector = dpotrs(factor.T, rhs, lower=0)[0]
        return solution
    values, vectors = np.linalg.eigh(gram)
    kept = values > GRAM_RANK_TOL * max(values.max(initial=0.0), size)
    return np.asarray(vectors[:, kept] @ ((rhs @ vectors[:, kept]) / values[kept]))


class RepairedDual(NamedTuple):
    """Slopes without infeasible rows, their residual, and what it costs the bound.

    decrement is rho'G^-1 rho / 4, infinite where the repair did not come to an end; remainder the length of
    the part of rho outside the range of G; reach is |v|, which the slopes of rows that were not examined must
    exceed per length.
    """

    slopes: Vector
    rho: Vector
    decrement: float
    remainder: float
    reach: float


def repair_dual(Z: Matrix, sloped: Mask, slopes: Vector, rho: Vector, gram: Matrix) -> RepairedDual:
    """Put infeasible rows on their constant and weigh the residual that is left.

    Parameters
    ----------
    Z : the rows that may be infeasible
    sloped : those with a kink that are in Q
    slopes : lambda of these rows
    rho : residual of all slopes
    gram : G over all rows in Q, symmetric
    """
    slopes, rho, gram, sloped = slopes.copy(), rho.copy(), gram.copy(), sloped.copy()
    size = float(gram.diagonal().max(initial=0.0))
    for _ in range(MAX_REPAIRS):
        v = solve_gram(gram, rho, size)
        infeasible = sloped & (slopes < Z @ v)
        if not infeasible.any():
            decrement, remainder = residual_cost(gram, rho, v)
            # v may be so long that its square is no number, as rows may be very short.
            reach = math.hypot(*v.tolist())
            return RepairedDual(slopes, rho, float(decrement), float(remainder), reach)
        rows = Z[infeasible]
        gram -= rows.T @ rows
        rho -= slopes[infeasible] @ rows
        slopes[infeasible] = 0.0
        sloped &= ~infeasible
    return RepairedDual(slopes, rho, np.inf, 0.0, 0.0)
