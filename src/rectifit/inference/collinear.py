"""Columns that repeat what others say, by name: the reason why coefficients have no standard error.

Columns are taken in their order. One that is a combination of those before it, and of the constant if there
is an intercept,

    x_j = c_0 + sum_k c_k x_k     up to rounding, in the active rows,

is named with the columns k that are in it. A pass over the data then says which of these equations hold in
all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rectifit._typing import Mask, Matrix, Vector
from rectifit.data.blocks import Block
from rectifit.inference.sandwich import Moments
from rectifit.inference.sums import FitMoments, RowTask
from rectifit.tolerances import CONSTANT_COLUMN_TOL, DEPENDENT_TOL, RESIDUAL_VARIANCE_TOL

__all__ = ["Sizes", "explain_collinear"]

# Columns that are named, and columns that a combination names.
MAX_NAMED = 12
MAX_PARTS = 5


@dataclass(frozen=True, eq=False)
class Equation:
    """x_j = offset + sum of parts times x."""

    j: int
    parts: Vector
    offset: float
    has_offset: bool

    def describe(self, names: Sequence[str]) -> str:
        """The equation in words."""
        name, used = names[self.j], np.flatnonzero(self.parts).tolist()
        if not used:
            return f"{name} is constant"
        if len(used) > 1 or self.has_offset:
            others = [names[k] for k in used] + ["the constant"] * self.has_offset
            return f"{name} is a linear combination of {_list(others, MAX_PARTS)}"
        k, factor = used[0], self.parts[used[0]]
        if abs(factor - 1.0) <= DEPENDENT_TOL:
            return f"{name} repeats {names[k]}"
        return f"{name} is {factor:.6g} times {names[k]}"


def explain_collinear(moments: FitMoments, undetermined: Mask, names: Sequence[str]) -> tuple[str, ...]:
    """Which of the undetermined coefficients belong to columns that follow from others, in notes.

    Parameters
    ----------
    moments : of the fit
    undetermined : coefficients without a standard error
    names : of the columns
    """
    if not undetermined.any() or moments.above.n_rows == 0:
        return ()
    equations = find_equations(moments.above)
    words: dict[bool, list[str]] = {True: [], False: []}
    for equation, holds in zip(equations, _hold_everywhere(moments, equations), strict=True):
        if undetermined[equation.j]:
            words[holds].append(equation.describe(names))
    starts = {True: "", False: "in the rows predicted above the floor, "}
    return tuple(
        f"{starts[holds]}{'; '.join(_shorten(found, MAX_NAMED))}" for holds, found in words.items() if found
    )


def find_equations(rows: Moments) -> list[Equation]:
    """Columns that follow from those before them in these rows.

    Of fewer rows than columns every column is a combination of others, and none of them is to blame.
    """
    standard = rows.standard()
    p, unit = rows.mean.size, standard.size * rows.unit
    R = rows.gram / rows.weight / np.outer(standard.size, standard.size)
    spread, mean = np.sqrt(rows.gram.diagonal() / rows.weight), rows.mean * rows.unit
    constant = spread <= CONSTANT_COLUMN_TOL * rows.largest
    max_parts = p if rows.n_rows > p + rows.has_intercept else 1
    kept, found = list[int](), list[Equation]()
    for j in range(p):
        parts = np.zeros(p)
        if not constant[j]:
            weights = np.linalg.lstsq(R[np.ix_(kept, kept)], R[kept, j])[0] if kept else np.zeros(0)
            if R[j, j] - weights @ R[kept, j] > RESIDUAL_VARIANCE_TOL:
                kept.append(j)
                continue
            weights[np.abs(weights) <= DEPENDENT_TOL] = 0.0
            parts[kept] = weights * unit[j] / unit[kept]
        offset = float(mean[j] - parts @ mean) if rows.has_intercept else 0.0
        scale = abs(mean[j]) + np.abs(parts) @ np.abs(mean) + unit[j]
        has_offset = bool(abs(offset) > DEPENDENT_TOL * scale)
        if np.count_nonzero(parts) <= max_parts:
            found.append(Equation(j, parts, offset, has_offset))
    return found


def _hold_everywhere(moments: FitMoments, equations: Sequence[Equation]) -> list[bool]:
    """Whether equations hold in all rows; not known, and so not said, where the data are gone."""
    key = "collinear"
    if not equations or not moments.can_reduce(key):
        return [False] * len(equations)
    task = _EquationsTask(
        moments.line,
        tuple(found.j for found in equations),
        np.array([found.parts for found in equations]),
        np.array([found.offset for found in equations]),
    )
    sizes: Sizes = moments.reduce(key, task)
    return list((sizes.deviation <= DEPENDENT_TOL * sizes.largest).tolist())


@dataclass(frozen=True)
class Sizes:
    """Largest deviation from every equation, and largest |x| of its columns."""

    deviation: Vector
    largest: Vector

    def merge(self, other: Sizes) -> Sizes:
        """Of both parts of the data."""
        return Sizes(np.maximum(self.deviation, other.deviation), np.maximum(self.largest, other.largest))


@dataclass(frozen=True)
class _EquationsTask(RowTask):
    columns: tuple[int, ...]
    parts: Matrix
    offset: Vector

    def of_piece(self, piece: Block) -> Sizes:
        xp = piece.xp
        X, _, _, w = self.line.at(piece)
        weighted = (w > 0.0)[:, None]
        x = xp.stack([X[:, j] for j in self.columns], axis=1)
        deviation = xp.abs(x - X @ piece.to_float64(self.parts.T) - piece.to_float64(self.offset))
        return Sizes(
            piece.to_numpy(xp.max(xp.where(weighted, deviation, 0.0), axis=0)),
            piece.to_numpy(xp.max(xp.where(weighted, xp.abs(x), 0.0), axis=0)),
        )


def _list(words: Sequence[str], most: int) -> str:
    """Words in a sentence; of many, the first ones.

    Examples
    --------
    >>> _list(["a", "b", "the constant"], 5), _list(["a", "b", "c", "d"], 2)
    ('a, b and the constant', 'a, b and 2 more')
    """
    words = _shorten(words, most)
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _shorten(words: Sequence[str], most: int) -> list[str]:
    return list(words) if len(words) <= most + 1 else [*words[:most], f"{len(words) - most} more"]
