"""What a surrogate solve returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Matrix, Vector

__all__ = ["Answers", "SurrogateSolution", "SurrogateSolutions"]


EMPTY = np.zeros(0)


class Answers(NamedTuple):
    """An engine's answers on the user's scale, one line per active set; but slopes are in working units.

    wall_slopes are those of the constraints. An engine that has looked at all rows also says the true
    objectives, and u.
    """

    columns: Matrix
    values: Vector
    bounds: Vector
    slopes: Matrix
    steps: npt.NDArray[np.int64]
    converged: Mask
    wall_slopes: Matrix
    objectives: Vector | None = None
    u: Matrix | None = None


class SurrogateSolution(NamedTuple):
    """A minimiser of the convex surrogate F_I, with proof.

    Attributes
    ----------
    beta : coefficients on the user's scale
    intercept : 0.0 without fit_intercept
    value : F_I at (beta, intercept), evaluated from the data, ridge included
    dual_bound : a lower bound of min F_I, valid whether or not the method converged
    dual : one slope per sample, lambda_i in the subdifferential of w_i piece_i at u_i, with
        sum_i lambda_i [x_i, 1] + [2 alpha beta + m, 0] = 0 up to rounding: the optimality condition, with
        m = multipliers[:p] + A'multipliers[p:], p = n_features, where there are constraints, and 0 otherwise
    n_iter : steps of the active-set method
    converged : whether the optimality conditions were reached
    multipliers : of the constraints, one for the bounds of each coefficient and then one for each row of the
        linear constraints: at least 0 at upper ends, at most 0 at lower ones
    """

    beta: Vector
    intercept: float
    value: float
    dual_bound: float
    dual: Vector
    n_iter: int
    converged: bool
    multipliers: Vector = EMPTY


class SurrogateSolutions(NamedTuple):
    """Solutions of several surrogates on the user's scale, one line for every different active set.

    Attributes
    ----------
    lines : for every active set that was asked about, its line
    betas, intercepts, values, bounds, converged : as in `SurrogateSolution`
    objectives, u : the true objectives there, and X beta + intercept; None where they are not known
    """

    lines: list[int]
    betas: list[Vector]
    intercepts: list[float]
    values: list[float]
    bounds: list[float]
    converged: list[bool]
    objectives: list[float] | None = None
    u: list[Vector] | None = None
