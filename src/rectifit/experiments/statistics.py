"""All numbers that the tables, the figures and the page of a run show, computed once from its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rectifit.experiments.claims import Claim, check_claims
from rectifit.experiments.fits import Fits, SettingStatistics, summarise_setting
from rectifit.experiments.grid import GRADIENT_METHODS, PROOF, Size
from rectifit.experiments.optimality import LevelStatistics, solved_shares, summarise_levels
from rectifit.experiments.realizable import (
    ErrorColumn,
    RealizableTable,
    ZeroCount,
    compare_with_paper,
    count_zeros,
)
from rectifit.experiments.rows import FitRow

__all__ = ["Statistics", "summarise"]


@dataclass(frozen=True)
class Statistics:
    """What the rows of a run show.

    Attributes
    ----------
    n_fits, n_instances : rows, and different instances
    n_proofs, n_proved : attempted proofs, and proved optima
    settings : every measure in each setting of the figures
    levels : optimality and running time at each size and noise level of the figures
    solved_with_noise, solved_without_noise : for each method, the share of the proved instances that it
        solves
    claims : the paper's claims, tested
    realizable : the paper's tables
    zeros : the zeros in the columns of the sorting methods
    gradient_columns : the columns of GD and SGD
    """

    n_fits: int
    n_instances: int
    n_proofs: int
    n_proved: int
    settings: list[SettingStatistics]
    levels: list[LevelStatistics]
    solved_with_noise: dict[str, float]
    solved_without_noise: dict[str, float]
    claims: list[Claim]
    realizable: list[RealizableTable]
    zeros: list[ZeroCount]
    gradient_columns: list[ErrorColumn]

    @property
    def sizes(self) -> list[Size]:
        """The sizes of the figures."""
        return sorted({level.size for level in self.levels})


def summarise(rows: Iterable[FitRow]) -> Statistics:
    """Compute all statistics of a run."""
    fits = Fits(rows)
    proofs = [row for row in fits.rows if row.task.method == PROOF]
    settings = [summarise_setting(fits, setting) for setting in fits.drawn]
    realizable = compare_with_paper(fits)
    return Statistics(
        n_fits=len(fits.rows),
        n_instances=len({(row.task.setting, row.task.instance) for row in fits.rows}),
        n_proofs=len(proofs),
        n_proved=sum(row.is_proved for row in proofs),
        settings=settings,
        levels=summarise_levels(fits),
        solved_with_noise=solved_shares(fits, [s for s in fits.drawn if s.noise > 0.0]),
        solved_without_noise=solved_shares(fits, [s for s in fits.drawn if s.noise == 0.0]),
        claims=check_claims(settings),
        realizable=realizable,
        zeros=count_zeros(fits),
        gradient_columns=[
            column for table in realizable for column in table.columns if column.method in GRADIENT_METHODS
        ],
    )
