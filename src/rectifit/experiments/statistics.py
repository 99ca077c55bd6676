"""All numbers that the tables, the figures and the page of a run show, computed once from its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rectifit.experiments.claims import Claim, check_claims
from rectifit.experiments.grid import GRADIENT_METHODS, PROOF, Setting, Size
from rectifit.experiments.realizable import ErrorColumn, ZeroCount, compare_with_paper, count_zeros
from rectifit.experiments.rows import FitRow
from rectifit.experiments.summaries import (
    LevelStatistics,
    SettingSpreads,
    Spread,
    group_rows,
    solved_shares,
    summarise_excess,
    summarise_level,
    summarise_setting,
)

__all__ = ["Statistics", "summarise"]


@dataclass(frozen=True)
class Statistics:
    """What the rows of a run show.

    Attributes
    ----------
    n_fits, n_instances : rows, and different instances
    n_proofs, n_proved : attempted proofs, and proved optima
    spreads : every measure of every method in each setting of the figures
    excesses : for each setting of the figures and each method, the relative excess over the proved optimum;
        without the settings that have no proved optimum above 0
    levels : optimality and running time at each size and noise level of the figures
    solved_with_noise, solved_without_noise : for each method, the share of the proved instances that it
        solves
    claims : the paper's claims, tested
    errors : the columns of the paper's tables
    zeros : the zeros in the columns of the sorting methods
    """

    n_fits: int
    n_instances: int
    n_proofs: int
    n_proved: int
    spreads: dict[Setting, SettingSpreads]
    excesses: dict[Setting, dict[str, Spread]]
    levels: list[LevelStatistics]
    solved_with_noise: dict[str, float]
    solved_without_noise: dict[str, float]
    claims: list[Claim]
    errors: list[ErrorColumn]
    zeros: list[ZeroCount]

    @property
    def sizes(self) -> list[Size]:
        """The sizes of the figures."""
        return sorted({level.size for level in self.levels})

    @property
    def gradient_errors(self) -> list[ErrorColumn]:
        """The columns of GD and SGD."""
        return [column for column in self.errors if column.method in GRADIENT_METHODS]


def summarise(rows: Iterable[FitRow]) -> Statistics:
    """Compute all statistics of a run."""
    rows = sorted(rows, key=lambda row: row.task)
    proofs = [row for row in rows if row.task.method == PROOF]
    drawn = [row for row in rows if row.task.setting.is_drawn]
    tabled = [row for row in rows if row.task.setting.is_tabled]
    by_setting = group_rows(drawn, lambda row: row.task.setting)
    by_level = group_rows(drawn, lambda row: (row.task.setting.size, row.task.setting.noise))
    excesses = {setting: summarise_excess(group) for setting, group in by_setting.items()}
    spreads = {setting: summarise_setting(group) for setting, group in by_setting.items()}
    return Statistics(
        n_fits=len(rows),
        n_instances=len({row.task.instance_key for row in rows}),
        n_proofs=len(proofs),
        n_proved=sum(row.is_proved for row in proofs),
        spreads=spreads,
        excesses={setting: excess for setting, excess in excesses.items() if excess},
        levels=[summarise_level(group) for group in by_level.values()],
        solved_with_noise=solved_shares(row for row in drawn if row.task.setting.noise > 0.0),
        solved_without_noise=solved_shares(row for row in drawn if row.task.setting.noise == 0.0),
        claims=check_claims(spreads),
        errors=compare_with_paper(tabled),
        zeros=count_zeros(tabled),
    )
