"""Records that go into compiled code and come out of it."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Integers, Mask, Matrix, Stack, Vector

__all__ = [
    "FLAT",
    "HELD",
    "QUADRATIC",
    "TIE",
    "WALL",
    "Evaluated",
    "Minima",
    "PieceProblem",
    "PlacedRows",
    "Source",
    "States",
    "WarmState",
]

# A row is on its constant, on its quadratic, or held at its kink.
FLAT = 0
QUADRATIC = 1
HELD = 2

# Outcomes of rows that are constraints: u must not exceed its kink, or be equal to it.
WALL = -np.inf
TIE = np.inf

States = Annotated[npt.NDArray[np.int8], 1]


class PieceProblem(NamedTuple):
    """What is minimised, but for the kinks: a background quadratic and the pieces of rows.

        slope'delta + delta' curvature delta + sum_i piece_i(u0_i + z_i'delta)

    Zt is the transpose of Z, norms the lengths of its rows, y the outcomes of the pieces: WALL and TIE stand
    for constraints, of which ties come last and are always HELD. slope has one line, or one per problem.
    """

    Z: Matrix
    Zt: Matrix
    norms: Vector
    y: Vector
    u0: Vector
    slope: Matrix
    curvature: Matrix


class PlacedRows(NamedTuple):
    """Rows in working coordinates that only scale columns (see `rectifit.coordinates`).

    Attributes
    ----------
    Z, Zt, norms : the rows z_i, their columns, and their lengths
    T, diagonal, ridge : T, its diagonal, and T' diag(penalty) T
    gamma, u : the linear least-squares fit, ridge included, where the rows determine it, and Z gamma
    """

    Z: Matrix
    Zt: Matrix
    norms: Vector
    T: Matrix
    diagonal: Vector
    ridge: Matrix
    gamma: Vector
    u: Vector


class WarmState(NamedTuple):
    """Where a minimisation begins, changed to where it ends.

    Attributes
    ----------
    delta, u : the point, and u = u0 + Z delta
    state : FLAT, QUADRATIC or HELD, for every row
    gram : lower triangle of the curvature plus the Gram matrix of all rows that are not FLAT
    largest : the largest values of its diagonal since it was computed from the rows
    """

    delta: Vector
    u: Vector
    state: States
    gram: Matrix
    largest: Vector

    def copy(self) -> WarmState:
        """The same in arrays of its own."""
        return WarmState(
            self.delta.copy(), self.u.copy(), self.state.copy(), self.gram.copy(), self.largest.copy()
        )


class Minima(NamedTuple):
    """Where the kernel ended, one line per problem.

    Attributes
    ----------
    deltas, states : the point, and the state of every row
    slopes : a subgradient of every piece; with the slope of the background they add up to 0 at the minimum
    factors : Cholesky factors of the Gram matrices, as the kernel writes them
    steps : number of steps
    converged : whether the minimum was reached, or the search stood still or ran out of steps
    """

    deltas: Matrix
    states: Annotated[npt.NDArray[np.int8], 2]
    slopes: Matrix
    factors: Stack
    steps: Integers
    converged: Mask


class Source(NamedTuple):
    """The data behind the rows: z_i = root_weight_i a_i'T, all transposed.

    penalty is the weight of the squares of the coefficients, largest the largest |root_weight_i a_ij| per
    column. Coefficients lie between low and high, and those that are closer to one of them than near are
    there. walls has a line for every row that is a constraint: that row in terms of the coefficients.
    """

    At: Matrix
    root_weight: Vector
    Tt: Matrix
    penalty: Vector
    largest: Vector
    low: Vector
    high: Vector
    near: Vector
    walls: Matrix


class Evaluated(NamedTuple):
    """Minima evaluated from the data, on the user's scale, one line per problem.

    Attributes
    ----------
    columns : the coefficients
    u : X beta + intercept
    objectives : the true objective there, with the penalty
    values : that of the surrogate
    bounds : lower bounds of the minimum (see `rectifit.bounds`), -infinity where the search did not converge
    infeasible : where bounds do not hold until the slopes are repaired
    """

    columns: Matrix
    u: Matrix
    objectives: Vector
    values: Vector
    bounds: Vector
    infeasible: Mask
