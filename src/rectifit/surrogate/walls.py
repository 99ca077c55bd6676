"""Constraints as rows of the kernel: walls, whose kinks have an infinite jump, and ties (see `records.py`).

A half-space c'beta <= d is the row z = T'[c, 0] with the kink d / s in working coordinates, both over the
length of z. In the inequality of `rectifit.bounds` it enters with a slope lambda >= 0 and the supporting line
lambda (u - kink), which is at most 0 wherever the constraint holds; for a tie lambda may have any sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.bounds import support_allowance
from rectifit.constraints import Constraints, independent_rows
from rectifit.coordinates import Coordinates
from rectifit.surrogate.records import FLAT, HELD, TIE, WALL, States
from rectifit.tolerances import AT_BOUND_TOL, HOLD_TOL

__all__ = ["Walls", "walls_of"]

# Working units. Kinks are no further away, so that they can be multiplied with slopes.
FAR_AWAY = 1e100


@dataclass(frozen=True, eq=False)
class Walls:
    """The constraints of a problem in working coordinates, ties last.

    Attributes
    ----------
    rows, kinks, outcomes : of length 1; outcomes are WALL or TIE
    columns : the rows in terms of the coefficients over the scale, the intercept last
    low, high : bounds of the coefficients over the scale
    near : so close to a bound a coefficient is at it but for rounding
    constraints, coordinates, per_unit : where they come from, and the slope there over that here
    """

    rows: Matrix
    kinks: Vector
    outcomes: Vector
    columns: Matrix
    low: Vector
    high: Vector
    near: Vector
    constraints: Constraints
    coordinates: Coordinates
    per_unit: Vector

    @property
    def size(self) -> int:
        return self.kinks.size

    def allowed(self, gamma: Vector) -> Vector:
        """A point that satisfies the constraints: the given one, or one near it."""
        beta, intercept = self.coordinates.coefficients(gamma)
        nearest = self.constraints.nearest(beta, self.coordinates.unit[: beta.size])
        # A point that is allowed keeps all of its digits.
        same = bool((nearest == beta).all())
        return gamma if same else self.coordinates.from_coefficients(nearest, intercept)

    def at_bounds(self, columns: Vector) -> Vector:
        """Coefficients over the scale, exactly at the bounds from which only rounding parts them."""
        columns = np.where(columns >= self.high - self.near, self.high, columns)
        return np.where(columns <= self.low + self.near, self.low, columns)

    def first_states(self, u: Vector) -> States:
        """States at a point: ties are held, and of the walls that it touches those that are independent."""
        held = (u >= self.kinks - HOLD_TOL) | (self.outcomes == TIE)
        if held.any() and self.constraints.is_linear:
            index = np.flatnonzero(held)[::-1]
            held[index] = independent_rows(self.rows[index])
        return np.where(held, HELD, FLAT).astype(np.int8)

    def gap(self, u: Vector, slopes: Vector) -> float:
        """How far the supporting lines with these slopes lie below 0."""
        return float(slopes @ (self.kinks - u))

    def loss(self, columns: Vector, slopes: Vector, reach: Vector) -> tuple[float, float]:
        """What the bound loses at these coefficients, and to rounding; slopes may change by `reach`."""
        gap = self.kinks - self.columns @ columns
        size = np.abs(self.columns) @ np.abs(columns) + np.abs(self.kinks)
        rounding = support_allowance(self.rows.shape[1], float(np.abs(slopes) @ size))
        return float(slopes @ gap + reach @ np.abs(gap)), float(rounding)

    def multipliers(self, slopes: Matrix) -> Matrix:
        """One multiplier per coefficient and per linear constraint: positive at upper ends, negative at lower
        ones. Lines are problems.
        """
        half = self.constraints.half_spaces
        n_places = self.constraints.low.size + len(self.constraints.A)
        found = np.zeros((len(slopes), n_places))
        for e, place in enumerate(half.place.tolist()):
            found[:, place] += slopes[:, e] * (half.sign[e] * self.per_unit[e])
        return found


def walls_of(constraints: Constraints | None, coordinates: Coordinates) -> Walls | None:
    """The constraints in working coordinates; None if there are none."""
    if constraints is None:
        return None
    half, scale = constraints.half_spaces, coordinates.scale
    C = np.column_stack([half.C, np.zeros((len(half.C), coordinates.n_columns - half.C.shape[1]))])
    rows = C @ coordinates.T
    # Entries may have squares that are not representable.
    largest = np.abs(rows).max(axis=1, initial=0.0)
    largest[largest == 0.0] = 1.0
    lengths = largest * np.linalg.norm(rows / largest[:, None], axis=1)
    outcomes = np.full(len(C), WALL)
    outcomes[len(C) - half.n_ties :] = TIE
    low, high, near = (np.full(coordinates.n_columns, end) for end in (-np.inf, np.inf, 0.0))
    p = constraints.low.size
    low[:p], high[:p] = constraints.low / scale, constraints.high / scale
    is_bound = half.place < p
    near[half.place[is_bound]] = AT_BOUND_TOL * lengths[is_bound]
    return Walls(
        np.ascontiguousarray(rows / lengths[:, None]),
        np.clip(half.d / scale / lengths, -FAR_AWAY, FAR_AWAY),
        outcomes,
        np.ascontiguousarray(C / lengths[:, None]),
        low,
        high,
        near,
        constraints,
        coordinates,
        scale / lengths,
    )
