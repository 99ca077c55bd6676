"""What is known about coefficients, on the user's scale:

    low <= beta <= high,      least <= A beta <= most.

Bounds, signs and linear constraints intersect. They hold for the coefficients of X; the intercept is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Index, Mask, Matrix, Vector
from rectifit.least_distance import least_distance
from rectifit.tolerances import CONSTRAINT_TOL, INDEPENDENT_TOL

__all__ = ["Constraints", "HalfSpaces", "independent_rows", "read_constraints", "without_names"]

SIGNS = (-1.0, 0.0, 1.0)
# Projections; each leaves a share of the way that the one before it has gone, which is rounding.
MAX_PROJECTIONS = 5
# Share of the largest coefficient. After all projections, smaller ones are as good as 0.
PROJECTED_ZERO = 1e-6
# Characters of a wrong argument that an error shows.
MAX_SHOWN = 60


class HalfSpaces(NamedTuple):
    """C beta <= d for the first lines, C beta = d for the last n_ties, which are independent.

    Line e comes from bound or linear constraint `place`, of which there are as many as coefficients and then
    as many as rows of A, times `sign`.
    """

    C: Matrix
    d: Vector
    n_ties: int
    place: Index
    sign: Vector


@dataclass(frozen=True, eq=False)
class Constraints:
    """Bounds and linear constraints of the coefficients, infinite where there are none."""

    low: Vector
    high: Vector
    A: Matrix
    least: Vector
    most: Vector
    names: tuple[str, ...]

    @property
    def is_linear(self) -> bool:
        """Whether there is more than bounds."""
        return len(self.A) > 0

    @cached_property
    def is_cone(self) -> bool:
        """Whether with coefficients all their multiples are allowed."""
        limits = np.concatenate([self.low, self.high, self.least, self.most])
        return bool(((limits == 0.0) | np.isinf(limits)).all())

    @cached_property
    def holds_zero(self) -> bool:
        """Whether all coefficients may be 0."""
        least, most = (self.low, self.least), (self.high, self.most)
        return all(bool((end <= 0.0).all()) for end in least) and all(
            bool((end >= 0.0).all()) for end in most
        )

    @cached_property
    def half_spaces(self) -> HalfSpaces:
        """The same as inequalities of one kind, and equations."""
        rows = np.vstack([np.eye(self.low.size), self.A])
        low, high = np.append(self.low, self.least), np.append(self.high, self.most)
        tied = np.flatnonzero(low == high)
        tied = tied[independent_rows(rows[tied])]
        above, below = (np.flatnonzero(np.isfinite(end) & (low < high)) for end in (low, high))
        place = np.concatenate([below, above, tied])
        sign = np.concatenate([np.ones(below.size), -np.ones(above.size), np.ones(tied.size)])
        d = np.concatenate([high[below], -low[above], high[tied]])
        return HalfSpaces(rows[place] * sign[:, None], d, tied.size, place, sign)

    def same_as(self, other: Constraints | None) -> bool:
        """Whether others are the same, whatever the columns are called."""
        if other is None:
            return False
        pairs = zip(self._limits, other._limits, strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    @property
    def _limits(self) -> tuple[Vector | Matrix, ...]:
        return self.low, self.high, self.A, self.least, self.most

    def clipped(self, beta: Vector) -> Vector:
        """Coefficients within their bounds."""
        return np.asarray(np.minimum(np.maximum(beta, self.low), self.high))

    def nearest(self, beta: Vector, unit: Vector | None = None) -> Vector:
        """Allowed coefficients near the given ones: the nearest, with every coefficient in its unit."""
        clipped = self.clipped(beta)
        if not self.is_linear or self.allows(clipped):
            return clipped
        inside = self._moved_inside(beta, np.ones(beta.size) if unit is None else unit)
        return self._anchor if inside is None else inside

    def _moved_inside(self, beta: Vector, unit: Vector) -> Vector | None:
        """Projections until everything holds; None if it does not after a few."""
        size = float(np.abs(beta).max())
        for _ in range(MAX_PROJECTIONS):
            step = self._step_inside(beta, unit)
            if step is None:
                break
            beta = self.clipped(beta + step)
            if self.allows(beta):
                return beta
            size = max(size, float(np.abs(beta).max()))
            # The first step goes to the nearest point; what rounding has left is moved where it counts least.
            unit = np.maximum(np.abs(beta), PROJECTED_ZERO * size)
        # What should be 0 is the rounding of larger coefficients, as small as it may get.
        return beta if self.violation(beta, PROJECTED_ZERO * size) is None else None

    def _step_inside(self, beta: Vector, unit: Vector) -> Vector | None:
        """The shortest step to where everything holds up to a share of the step, lengths in units."""
        C, d, n_ties, _, _ = self.half_spaces
        G, h = -C * unit, C @ beta - d
        G, h = np.vstack([G, -G[len(G) - n_ties :]]), np.append(h, -h[len(h) - n_ties :])
        length = np.linalg.norm(G, axis=1)
        length[length == 0.0] = 1.0
        h = h / length
        size = float(h.max())
        if not size > 0.0:
            return None
        step = least_distance(G / length[:, None], h / size)
        return None if step is None else step * size * unit

    def holds(self, betas: Matrix) -> bool:
        """Whether all lines satisfy everything exactly."""
        is_within = (betas >= self.low).all() and (betas <= self.high).all()
        if not is_within or not self.is_linear:
            return bool(is_within)
        values = betas @ self.A.T
        return bool((values >= self.least).all() and (values <= self.most).all())

    def allows(self, beta: Vector) -> bool:
        """Whether coefficients satisfy everything, linear constraints up to rounding."""
        return self.violation(beta) is None

    def violation(self, beta: Vector, unit: Vector | float = 0.0) -> str | None:
        """What coefficients violate, in words; None if nothing but rounding, relative to size or unit."""
        outside = np.flatnonzero((beta < self.low) | (beta > self.high))
        if outside.size:
            j = int(outside[0])
            word, end = ("below", self.low[j]) if beta[j] < self.low[j] else ("above", self.high[j])
            return f"the coefficient of {self.names[j]!r} is {beta[j]:g}, {word} its bound {end:g}"
        values, size = self.A @ beta, np.abs(self.A) @ np.maximum(np.abs(beta), unit)
        under = values < self.least - CONSTRAINT_TOL * (size + np.abs(self.least))
        over = values > self.most + CONSTRAINT_TOL * (size + np.abs(self.most))
        if (under | over).any():
            e = int(np.flatnonzero(under | over)[0])
            ends = f"between {self.least[e]:g} and {self.most[e]:g}"
            return f"row {e} of constraints gives {values[e]:g}, which is not {ends}"
        return None

    def at_bound(self, beta: Vector) -> Mask:
        """Coefficients at one of their bounds."""
        return np.asarray((beta == self.low) | (beta == self.high))

    def held(self, beta: Vector, unit: Vector | float = 0.0) -> Matrix:
        """The rows of the constraints that hold coefficients: those with an end that is reached."""
        values, size = self.A @ beta, np.abs(self.A) @ np.maximum(np.abs(beta), unit)
        near = CONSTRAINT_TOL * size
        reached = (values <= self.least + near) | (values >= self.most - near)
        return np.vstack([np.eye(beta.size)[self.at_bound(beta)], self.A[reached]])

    @cached_property
    def _anchor(self) -> Vector:
        """Some allowed coefficients; ValueError if there are none."""
        zero, unit = self.clipped(np.zeros(self.low.size)), np.ones(self.low.size)
        if self.allows(zero):
            return zero
        found = self._moved_inside(zero, unit)
        if found is None:
            found = _solve_feasibility(self)
        # A linear programme is solved to seven digits, which may be too few.
        if found is not None and not self.allows(found):
            found = self._moved_inside(found, unit)
        if found is None:
            has_bounds = bool((np.isfinite(self.low) | np.isfinite(self.high)).any())
            together = " together with bounds, positive and monotonic_cst" * has_bounds
            raise ValueError(
                f"constraints allow no coefficients{together}; "
                "at least one vector of coefficients must satisfy all of them"
            )
        return found

    def checked(self) -> Constraints:
        """The same, if any coefficients are allowed."""
        if self.is_linear:
            _ = self._anchor
        return self


def independent_rows(rows: Matrix) -> Mask:
    """Rows on which all others depend up to rounding, the first ones where there is a choice."""
    chosen, basis = np.zeros(len(rows), dtype=np.bool_), np.zeros((0, rows.shape[1]))
    for e, row in enumerate(rows):
        rest = row - (row @ basis.T) @ basis
        # Twice, because the first projection leaves its own rounding.
        rest -= (rest @ basis.T) @ basis
        length = float(np.linalg.norm(rest))
        if length > INDEPENDENT_TOL * float(np.linalg.norm(row)):
            chosen[e] = True
            basis = np.vstack([basis, rest / length])
    return chosen


def _solve_feasibility(constraints: Constraints) -> Vector | None:
    """Coefficients that are allowed up to seven digits, by a linear programme; None if there are none."""
    from scipy.optimize import linprog

    length = np.abs(constraints.A).max(axis=1)
    A, least, most = (
        constraints.A / length[:, None],
        constraints.least / length,
        constraints.most / length,
    )
    above, below = np.isfinite(most), np.isfinite(least)
    found = linprog(
        np.zeros(A.shape[1]),
        A_ub=np.vstack([A[above], -A[below]]),
        b_ub=np.append(most[above], -least[below]),
        bounds=np.column_stack([constraints.low, constraints.high]),
        method="highs",
    )
    return None if found.x is None else constraints.clipped(np.asarray(found.x, dtype=np.float64))


def read_constraints(
    n_features: int,
    names: Sequence[str] | None = None,
    *,
    bounds: Any = None,
    positive: Any = False,
    monotonic_cst: Any = None,
    constraints: Any = None,
) -> Constraints | None:
    """What a user gives, checked and intersected; None if nothing is restricted.

    Parameters
    ----------
    n_features : int
    names : names of the columns of X, where they have any
    bounds : a pair (low, high) for all coefficients, an array (n_features, 2) or a dict of pairs by name;
        None and infinities for no bound
    positive : whether all coefficients are at least 0
    monotonic_cst : array or dict by name of -1 (at most 0), 0 and 1 (at least 0)
    constraints : `scipy.optimize.LinearConstraint`, or a sequence of these
    """
    if bounds is None and positive is False and monotonic_cst is None and constraints is None:
        return None
    names = tuple(f"x{j}" for j in range(n_features)) if names is None else tuple(map(str, names))
    low, high = _read_bounds(bounds, names)
    if not isinstance(positive, bool | np.bool_):
        raise TypeError(f"positive is {positive!r}; it must be True or False")
    if positive or monotonic_cst is not None:
        signs = _read_signs(monotonic_cst, names)
        low = np.where((signs > 0) | bool(positive), np.maximum(low, 0.0), low)
        high = np.where(signs < 0, np.minimum(high, 0.0), high)
        crossed = np.flatnonzero(low > high)
        if crossed.size:
            j = int(crossed[0])
            raise ValueError(
                f"bounds, positive and monotonic_cst together leave nothing for {names[j]!r}: it would have "
                f"to be at least {low[j]:g} and at most {high[j]:g}"
            )
    A, least, most = _read_linear(constraints, n_features)
    # Adding 0 turns a bound of -0 into 0.
    found = Constraints(low + 0.0, high + 0.0, A, least, most, names)
    if not found.is_linear and not (np.isfinite(low) | np.isfinite(high)).any():
        return None
    return found.checked()


def without_names(names: Sequence[str], **given: Any) -> dict[str, Any]:
    """The same arguments without names of columns, checked: errors name the columns."""
    known = read_constraints(len(names), names, **given)
    bounds = None if known is None else np.column_stack([known.low, known.high])
    return given | {"bounds": bounds, "positive": False, "monotonic_cst": None}


def _read_bounds(bounds: Any, names: tuple[str, ...]) -> tuple[Vector, Vector]:
    p = len(names)
    low, high = np.full(p, -np.inf), np.full(p, np.inf)
    if bounds is None:
        return low, high
    allowed = f"a pair of numbers (low, high), an array of shape ({p}, 2) or a dict of pairs by column"
    if isinstance(bounds, Mapping):
        for name, pair in bounds.items():
            j = _place(name, names, "bounds")
            low[j], high[j] = _pair(pair, f"bounds[{name!r}]", "a pair of numbers (low, high)")
    else:
        found = _numbers(_with_infinities(bounds), "bounds", allowed)
        if found.shape not in ((2,), (p, 2)):
            raise ValueError(f"bounds {_shape_of(found, bounds)}; it must be {allowed}")
        low[:], high[:] = found.T
    # False for NaN, too.
    if not ((low <= high) & (low < np.inf) & (high > -np.inf)).all():
        _refuse_bounds(low, high, names)
    return low, high


def _refuse_bounds(low: Vector, high: Vector, names: tuple[str, ...]) -> None:
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError("bounds contains NaN; all entries must be numbers, infinite ones allowed")
    j = int(np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))[0])
    raise ValueError(
        f"bounds has low {low[j]:g} and high {high[j]:g} for {names[j]!r}; "
        "low must not exceed high, and at least one number must be allowed"
    )


def _pair(pair: Any, name: str, allowed: str) -> tuple[float, float]:
    found = _with_infinities(pair)
    if np.shape(found) != (2,):
        raise ValueError(f"{name} is {pair!r}; it must be {allowed}")
    low, high = _numbers(found, name, allowed).tolist()
    return low, high


def _with_infinities(bounds: Any) -> Any:
    """Bounds with infinities for None, be it one end or a pair."""
    if bounds is None:
        return [-np.inf, np.inf]
    if not isinstance(bounds, list | tuple):
        return bounds
    if len(bounds) == 2 and not any(isinstance(entry, list | tuple | np.ndarray) for entry in bounds):
        return [end if entry is None else entry for entry, end in zip(bounds, (-np.inf, np.inf), strict=True)]
    return [_with_infinities(pair) for pair in bounds]


def _numbers(values: Any, name: str, allowed: str) -> Vector:
    try:
        found = np.asarray(values)
        if found.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {_show(values)}; it must be {allowed}") from None
    return found.astype(np.float64)


def _show(values: Any) -> str:
    text = " ".join(repr(values).split())
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _shape_of(found: Vector, given: Any) -> str:
    return f"has shape {found.shape}" if found.ndim else f"is {given!r}"


def _read_signs(monotonic_cst: Any, names: tuple[str, ...]) -> Vector:
    signs = np.zeros(len(names))
    if monotonic_cst is None:
        return signs
    if isinstance(monotonic_cst, Mapping):
        for name, sign in monotonic_cst.items():
            place = _place(name, names, "monotonic_cst")
            signs[place] = _read_sign(sign, f"monotonic_cst[{name!r}]")
        return signs
    allowed = f"an array of {len(names)} numbers -1, 0 or 1, or a dict of these by column"
    signs = _numbers(monotonic_cst, "monotonic_cst", allowed)
    if signs.shape != (len(names),):
        raise ValueError(f"monotonic_cst {_shape_of(signs, monotonic_cst)}; it must be {allowed}")
    wrong = signs[~np.isin(signs, SIGNS)]
    if wrong.size:
        raise ValueError(f"monotonic_cst has the entry {wrong[0]:g}; it must be {allowed}")
    return signs


def _read_sign(sign: Any, name: str) -> float:
    if isinstance(sign, bool) or not isinstance(sign, Real):
        raise TypeError(f"{name} is {sign!r}; it must be -1, 0 or 1")
    if float(sign) not in SIGNS:
        raise ValueError(f"{name} is {sign!r}; it must be -1, 0 or 1")
    return float(sign)


def _place(name: Any, names: tuple[str, ...], argument: str) -> int:
    if name not in names:
        known = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
        raise ValueError(f"{argument} has the key {name!r}; X has the columns {known}")
    if names.count(name) > 1:
        raise ValueError(f"{argument} has the key {name!r}, the name of {names.count(name)} columns of X")
    return names.index(name)


def _read_linear(constraints: Any, n_features: int) -> tuple[Matrix, Vector, Vector]:
    A, least, most = np.zeros((0, n_features)), np.zeros(0), np.zeros(0)
    given = constraints if isinstance(constraints, list | tuple) else [constraints]
    for one in given if constraints is not None else ():
        rows, low, high = _read_rows(one, constraints, n_features)
        # A row that restricts nothing would only take time.
        says = rows.any(axis=1) & (np.isfinite(low) | np.isfinite(high))
        A = np.vstack([A, rows[says]])
        least, most = np.append(least, low[says]), np.append(most, high[says])
    return A, least, most


def _read_rows(one: Any, given: Any, n_features: int) -> tuple[Matrix, Vector, Vector]:
    """A, lb and ub of one LinearConstraint."""
    if not all(hasattr(one, name) for name in ("A", "lb", "ub")):
        raise TypeError(
            f"constraints is {_show(given)}; it must be a scipy.optimize.LinearConstraint or a list of these"
        )
    dense = one.A.toarray() if hasattr(one.A, "toarray") else one.A
    rows = np.atleast_2d(_numbers(dense, "constraints.A", "a table of numbers"))
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ValueError(
            f"constraints has A of shape {rows.shape}; it must have one column for each of the {n_features} "
            "columns of X"
        )
    if not np.isfinite(rows).all():
        raise ValueError("constraints has NaN or infinity in A; all entries must be finite")
    ends = [_numbers(end, "constraints", "numbers") for end in (one.lb, one.ub)]
    try:
        low, high = (np.broadcast_to(end, len(rows)) for end in ends)
    except ValueError:
        raise ValueError(
            f"constraints has lb and ub of shapes {ends[0].shape} and {ends[1].shape}; they must have "
            f"one entry for each of the {len(rows)} rows of A"
        ) from None
    # `not <=` is true for NaN, too.
    wrong = np.flatnonzero(~(low <= high) | (low == np.inf) | (high == -np.inf))
    if wrong.size:
        e = int(wrong[0])
        raise ValueError(
            f"constraints has lb {low[e]:g} and ub {high[e]:g} in row {e}; lb must not exceed ub, and at "
            "least one number must be allowed"
        )
    never = np.flatnonzero(~rows.any(axis=1) & ((low > 0.0) | (high < 0.0)))
    if never.size:
        e = int(never[0])
        raise ValueError(
            f"constraints has only zeros in row {e} of A, which can never be between {low[e]:g} and "
            f"{high[e]:g}"
        )
    return rows, low, high
