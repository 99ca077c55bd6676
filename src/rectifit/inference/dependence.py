"""What replaces sum s s' in a sandwich where rows are not independent, s being their scores.

A score is the row times its weighted residual, in standard coordinates: s = z e. Rows above the floor have
scores for the coefficients. If the floor is estimated, rows at it have scores for the floor, and both are
summed together, because a group may have rows of either kind. All other rows have scores of 0.

Clusters, with the sums S_g of scores over groups, G groups, n rows and k estimates:

    c sum_g S_g S_g',      c = G / (G - 1) (n - 1) / (n - k).

Two ways (Cameron, Gelbach and Miller, Journal of Business and Economic Statistics 29, 2011): the matrices of
both ways minus that of the pairs of groups, each with its own c. Where this has negative eigenvalues they
become 0.

Serial correlation (Newey and West, Econometrica 55, 1987), the rows being in order of time, L lags:

    sum_t s_t s_t' + sum_(l=1..L) (1 - l / (L + 1)) sum_t (s_t s_(t-l)' + s_(t-l) s_t').

Rows with scores of 0 keep their place in time. For parts of the rows, the scores of the first and last L rows
are kept, from which products across the border follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from rectifit._typing import Integers, Mask, Matrix
from rectifit.data.blocks import Block
from rectifit.formatting import write_count
from rectifit.inference.groups import Groups
from rectifit.inference.sandwich import Bread, Standard, on_user_scale
from rectifit.inference.sums import FitMoments, RowTask

__all__ = ["Breads", "Cover", "GroupSums", "LagSums", "cover_clusters", "cover_lags", "default_lags"]

# With fewer groups, standard errors from sums over groups are visibly too small (Cameron and Miller, Journal
# of Human Resources 50, 2015: few are less than 20 to 50).
MIN_GROUPS = 40
ONE_GROUP = "all rows that count are in one group: no standard errors"
NEGATIVE = (
    "the two-way covariance had a negative eigenvalue, which was set to 0: there are too few groups, or rows "
    "are hardly correlated within them"
)
# Share of the largest eigenvalue. Rounding makes zeros as negative as a few hundred eps; more is none.
NEGATIVE_TOL = 1e-12


def default_lags(n_samples: int) -> int:
    """The lags taken where none are given: floor(4 (n / 100)^(2/9)), the rule of Newey and West.

    Examples
    --------
    >>> [default_lags(n) for n in (10, 100, 365, 10_000)]
    [2, 4, 5, 11]
    """
    return int(4.0 * (n_samples / 100.0) ** (2.0 / 9.0))


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums of scores over the rows of every group that has any rows with scores.

    Attributes
    ----------
    groups : numbers of the groups, in increasing order
    sums : one line per group
    """

    groups: Integers
    sums: Matrix

    @classmethod
    def of(cls, groups: Integers, scores: Matrix) -> GroupSums:
        """Sums over rows with these groups."""
        present, place = np.unique(groups, return_inverse=True)
        sums = [np.bincount(place, weights=column, minlength=present.size) for column in scores.T]
        return cls(present, np.array(sums, dtype=np.float64).reshape(scores.shape[1], present.size).T)

    def merge(self, other: GroupSums) -> GroupSums:
        """Both."""
        present = np.union1d(self.groups, other.groups)
        sums = np.zeros((present.size, self.sums.shape[1]))
        for part in (self, other):
            sums[np.searchsorted(present, part.groups)] += part.sums
        return GroupSums(present, sums)

    def regrouped(self, cells: Integers, groups: Integers) -> GroupSums:
        """The same for larger groups: `cells` and `groups` have the small and large group of every row."""
        larger = np.zeros(int(cells.max()) + 1, dtype=np.int64)
        larger[cells] = groups
        return GroupSums.of(larger[self.groups], self.sums)


@dataclass(frozen=True, eq=False)
class LagSums:
    """Products of the scores of consecutive rows that are at most `n_lags` apart, with Bartlett's weights.

    Attributes
    ----------
    matrix : sum_t s_t s_t' + sum_(l=1..n_lags) (1 - l / (n_lags + 1)) sum_t (s_t s_(t-l)' + s_(t-l) s_t')
    first, last : scores of the first and the last rows, of so many that later products may need them
    """

    n_lags: int
    matrix: Matrix
    first: Matrix
    last: Matrix

    @classmethod
    def of(cls, scores: Matrix, n_lags: int) -> LagSums:
        """Sums over rows in the order of time."""
        before = np.zeros_like(scores)
        for lag in range(1, min(n_lags, len(scores) - 1) + 1):
            before[lag:] += (1.0 - lag / (n_lags + 1.0)) * scores[:-lag]
        cross = scores.T @ before
        n = len(scores)
        return cls(n_lags, scores.T @ scores + cross + cross.T, scores[:n_lags], scores[max(n - n_lags, 0) :])

    def merge(self, other: LagSums) -> LagSums:
        """These rows followed by the others."""
        n, m, n_lags = len(self.last), len(other.first), self.n_lags
        apart = np.arange(n)[::-1, None] + np.arange(m) + 1.0
        cross = self.last.T @ np.maximum(1.0 - apart / (n_lags + 1.0), 0.0) @ other.first
        first, last = np.vstack([self.first, other.first]), np.vstack([self.last, other.last])
        return LagSums(
            n_lags,
            self.matrix + other.matrix + cross + cross.T,
            # Fewer rows than lags are all of the rows.
            first[:n_lags] if len(self.first) < n_lags else self.first,
            last[max(len(last) - n_lags, 0) :] if len(other.last) < n_lags else other.last,
        )


class Cover(NamedTuple):
    """A covariance, how it is called, and what a reader must know."""

    matrix: Matrix
    label: str
    notes: tuple[str, ...]


# Estimates that come from the rows above the floor (True), and from those at it (False) if it is estimated.
Breads = Mapping[bool, Bread]


def cover_clusters(sides: FitMoments, breads: Breads, groups: Groups) -> Cover:
    """The covariance of estimates where errors may be correlated within groups."""
    used = _used(breads)
    label, n_groups, notes = "cluster", (0,) * len(groups.ways), tuple[str, ...]()
    V = np.zeros((0, 0))
    if used:
        sums: GroupSums = sides.reduce(None, _GroupTask(sides.line, _standards(used), groups.cells))
        n_rows, df = sum(bread.n_rows for bread in used.values()), sum(bread.df for bread in used.values())
        meat, n_groups = _sum_clusters(sums, groups, n_rows, df)
        V, is_negative = _without_negative(_between(used, meat))
        notes = (*explain_groups(n_groups), *[NEGATIVE] * is_negative)
        label = f"cluster, {write_count(n_groups[0], 'group')}"
        label = label if len(n_groups) == 1 else f"cluster, {n_groups[0]:,} x {n_groups[1]:,} groups"
    return Cover(_on_user_scale(breads, V), label, notes)


def cover_lags(sides: FitMoments, breads: Breads, n_lags: int) -> Cover:
    """The covariance of estimates where errors may be correlated with those of so many rows before."""
    used = _used(breads)
    V = np.zeros((0, 0))
    if used:
        task = _LagTask(sides.line, _standards(used), n_lags)
        sums: LagSums = sides.reduce(None, task)
        V = _between(used, sums.matrix)
    return Cover(_on_user_scale(breads, V), f"HAC, {write_count(n_lags, 'lag')}", ())


def explain_groups(n_groups: tuple[int, ...]) -> tuple[str, ...]:
    """A note where there are few groups."""
    least = min(n_groups)
    if least < 2:
        return (ONE_GROUP,)
    few = f"only {least} groups: standard errors are mostly too small, and normal intervals too narrow"
    return (few,) * (least < MIN_GROUPS)


def _used(breads: Breads) -> Breads:
    """Those of which there are enough rows."""
    return {is_above: bread for is_above, bread in breads.items() if bread.standard is not None}


def _standards(used: Breads) -> tuple[tuple[bool, Standard], ...]:
    return tuple((is_above, bread.standard) for is_above, bread in used.items() if bread.standard is not None)


def _between(used: Breads, meat: Matrix) -> Matrix:
    """The covariance in standard coordinates."""
    inverse = block_diag(*(bread.inverse for bread in used.values()))
    return np.asarray(inverse @ meat @ inverse)


def _on_user_scale(breads: Breads, V: Matrix) -> Matrix:
    """A covariance in standard coordinates of the estimates that have any, as that of all estimates."""
    used = _standards(breads)
    T = block_diag(*(standard.coefficients() for _, standard in used)) if used else V
    unseen = np.concatenate([bread.unseen for bread in breads.values()])
    has_rows = np.repeat(
        [bread.standard is not None for bread in breads.values()],
        [bread.unseen.size for bread in breads.values()],
    )
    matrix = np.full((unseen.size, unseen.size), np.nan)
    matrix[np.ix_(has_rows, has_rows)] = on_user_scale(T, V)
    matrix[unseen], matrix[:, unseen] = np.nan, np.nan
    return matrix


def _sum_clusters(sums: GroupSums, groups: Groups, n_rows: int, df: float) -> tuple[Matrix, tuple[int, ...]]:
    """What takes the place of sum s s', NaN for one group; and the number of groups with scores, in each way.

    The rows that have scores minus the estimates are `df`.
    """

    def correct(way: GroupSums) -> Matrix:
        n = way.groups.size
        return n / (n - 1.0) * ((n_rows - 1.0) / df) * (way.sums.T @ way.sums)

    ways = [sums]
    if len(groups.ways) > 1:
        ways = [sums.regrouped(groups.cells, way) for way in groups.ways]
    n_groups = tuple(way.groups.size for way in ways)
    if min(n_groups) < 2:
        return np.full((sums.sums.shape[1],) * 2, np.nan), n_groups
    total = sum(map(correct, ways[1:]), correct(ways[0]))
    return (total if len(ways) == 1 else total - correct(sums)), n_groups


def _without_negative(V: Matrix) -> tuple[Matrix, bool]:
    """A symmetric matrix with 0 for its negative eigenvalues, and whether it had any beyond rounding."""
    if not np.isfinite(V).all():
        return V, False
    values, E = np.linalg.eigh(V)
    if values.min() >= -NEGATIVE_TOL * np.abs(values).max():
        return V, False
    return (E * np.maximum(values, 0.0)) @ E.T, True


@dataclass(frozen=True)
class _ScoreTask(RowTask):
    """Scores in standard coordinates, in which they come from one side of the floor or from both."""

    standards: tuple[tuple[bool, Standard], ...]

    def scores(self, piece: Block) -> tuple[Mask, Matrix]:
        """Which rows have scores, and one line for every row."""
        n_columns = sum(standard.n_columns for _, standard in self.standards)
        scores, found = np.zeros((piece.n_rows, n_columns)), np.zeros(piece.n_rows, dtype=np.bool_)
        begin = 0
        for is_above, standard in self.standards:
            chosen, Z, e = self.line.rows(piece, is_above, standard)
            mask, end = piece.to_numpy(chosen), begin + standard.n_columns
            scores[mask, begin:end] = piece.to_numpy(Z * e[:, None])
            found, begin = found | mask, end
        return found, scores


@dataclass(frozen=True)
class _GroupTask(_ScoreTask):
    cells: Integers

    def of_piece(self, piece: Block) -> Any:
        found, scores = self.scores(piece)
        return GroupSums.of(self.cells[piece.start : piece.start + piece.n_rows][found], scores[found])


@dataclass(frozen=True)
class _LagTask(_ScoreTask):
    n_lags: int

    def of_piece(self, piece: Block) -> Any:
        return LagSums.of(self.scores(piece)[1], self.n_lags)
