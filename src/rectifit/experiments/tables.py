"""The tables of a run: the paper's 15 beside ours, the claims of the paper, optimality and running time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

from rectifit.display import Cell, Column, Table
from rectifit.experiments.claims import Claim
from rectifit.experiments.grid import COMPARED_METHODS, LABELS
from rectifit.experiments.optimality import SOLVED_TOL, LevelStatistics
from rectifit.experiments.realizable import REPRODUCED_FACTOR, ErrorColumn, ZeroCount
from rectifit.experiments.statistics import Statistics

__all__ = ["make_tables", "tabulate", "yes_no"]

Record = TypeVar("Record")
LevelColumn = tuple[Column, Callable[[LevelStatistics], Cell]]

LEVEL_COLUMNS: tuple[LevelColumn, ...] = (
    (Column("size"), lambda level: str(level.size)),
    (Column("noise", "g"), lambda level: level.noise),
)


def tabulate(
    key: str,
    title: str,
    records: Iterable[Record],
    columns: Sequence[tuple[Column, Callable[[Record], Cell]]],
    note: str = "",
) -> Table:
    """A table with one row per record; each column comes with the function that reads its cell."""
    rows = tuple(tuple(read(record) for _, read in columns) for record in records)
    return Table(key, title, tuple(column for column, _ in columns), rows, note)


def yes_no(answer: bool) -> str:
    """A truth value as a cell."""
    return "yes" if answer else "no"


def make_tables(statistics: Statistics) -> list[Table]:
    """All tables, the most informative first."""
    by_setting = groupby(statistics.errors, lambda column: column.setting)
    return [
        _optimality_table(statistics.levels),
        _excess_table(statistics.levels),
        _claims_table(statistics.claims),
        _zeros_table(statistics.zeros),
        _medians_table(statistics.gradient_errors),
        _time_table(statistics.levels),
        *(_realizable_table(list(columns)) for _, columns in by_setting),
    ]


def _optimality_table(levels: Sequence[LevelStatistics]) -> Table:
    """How often each method finds a proved global optimum."""
    return tabulate(
        "optimality",
        "How often is the global optimum found?",
        levels,
        [
            *LEVEL_COLUMNS,
            (Column("proved", ","), lambda level: level.n_proved),
            (Column("instances", ","), lambda level: level.n_instances),
            *_method_columns(COMPARED_METHODS, ".0%", {"": lambda method, level: level.solved.get(method)}),
        ],
        f"Share of the proved instances that a method solves: objective within {SOLVED_TOL:g} of the bound. "
        "Proved: the certificate closes the gap to 1e-4 for all coefficients.",
    )


def _excess_table(levels: Sequence[LevelStatistics]) -> Table:
    """The objective of each method relative to the proved optimum, with noise."""
    cells: dict[str, Callable[[str, LevelStatistics], Cell]] = {
        ", median": lambda method, level: level.excess[method].median,
        ", worst": lambda method, level: level.excess[method].largest,
    }
    return tabulate(
        "excess",
        "Objective relative to the certified optimum",
        [level for level in levels if level.excess],
        [*LEVEL_COLUMNS, *_method_columns(COMPARED_METHODS, ".4f", cells)],
        "1 is optimal. Without noise the optimum is 0 and the ratio is not defined.",
    )


def _time_table(levels: Sequence[LevelStatistics]) -> Table:
    """The median running time of each method."""

    def median(method: str, level: LevelStatistics) -> Cell:
        return level.seconds[method].median if method in level.seconds else None

    columns = [*LEVEL_COLUMNS, *_method_columns(LABELS, ".4f", {"": median})]
    return tabulate("seconds", "Running time in seconds, median", levels, columns)


def _method_columns(
    methods: Iterable[str], spec: str, cells: Mapping[str, Callable[[str, LevelStatistics], Cell]]
) -> list[LevelColumn]:
    """For each method, one column for every function of method and level; keys follow the method's label."""
    return [
        (Column(LABELS[method] + suffix, spec), partial(read, method))
        for method in methods
        for suffix, read in cells.items()
    ]


def _claims_table(claims: Sequence[Claim]) -> Table:
    """The claims of the paper, tested in the settings of its figures."""
    return tabulate(
        "claims",
        "The claims of the paper, tested",
        claims,
        [
            (Column("claim"), lambda claim: claim.text),
            (Column("holds in"), lambda claim: claim.n_true),
            (Column("settings"), lambda claim: len(claim.outcomes)),
            (Column("share", ".0%"), lambda claim: claim.share),
            (Column("verdict"), lambda claim: claim.verdict),
        ],
        "The paper contradicts itself on the prediction error; here the order of the objectives is tested.",
    )


def _zeros_table(zeros: Sequence[ZeroCount]) -> Table:
    """How many errors of the sorting methods print as 0.0, as all of them do in the paper."""
    return tabulate(
        "sorting-zeros",
        "The sorting methods on realizable instances",
        zeros,
        [
            (Column("method"), lambda count: LABELS[count.method]),
            (Column("entries that print 0.0", ","), lambda count: count.n_zeros),
            (Column("entries", ","), lambda count: count.n_entries),
            (Column("largest prediction error", ".1e"), lambda count: count.largest_prediction_error),
            (Column("largest recovery error", ".1e"), lambda count: count.largest_recovery_error),
        ],
    )


def _medians_table(columns: Sequence[ErrorColumn]) -> Table:
    """The medians of GD and SGD beside those of the paper."""
    n_reproduced, factor = sum(column.is_reproduced for column in columns), f"{REPRODUCED_FACTOR:g}"
    return tabulate(
        "gradient-medians",
        "Gradient descent beside the paper",
        columns,
        [
            (Column("p"), lambda column: column.setting.p),
            (Column("sparsity", "g"), lambda column: column.setting.sparsity),
            (Column("method"), lambda column: LABELS[column.method]),
            (Column("error"), lambda column: column.measure),
            (Column("our median", ".3f"), lambda column: column.median),
            (Column("paper's median", ".3f"), lambda column: column.printed_median),
            (Column("ratio", ".2f"), lambda column: column.ratio),
            (Column(f"within a factor of {factor}"), lambda column: yes_no(column.is_reproduced)),
        ],
        f"{n_reproduced} of {len(columns)} medians are within a factor of {factor} of the paper's.",
    )


def _realizable_table(columns: Sequence[ErrorColumn]) -> Table:
    """A table of the paper, with our medians and the paper's at the foot."""
    setting = columns[0].setting
    instances = zip(*(column.errors for column in columns), strict=True)
    rows: list[tuple[Cell, ...]] = [
        *((number, *errors) for number, errors in enumerate(instances, start=1)),
        ("median", *(column.median for column in columns)),
        ("median in the paper", *(column.printed_median for column in columns)),
    ]
    return Table(
        f"realizable-p{setting.p}-sparsity{setting.sparsity:g}",
        f"Prediction and recovery error, realizable, {setting.size}, sparsity {setting.sparsity:g}",
        (Column("instance"), *(Column(f"{LABELS[c.method]}, {c.measure}", ".3f") for c in columns)),
        tuple(rows),
        n_foot=2,
    )
