"""The tables of a run: the paper's 15 beside ours, the claims of the paper, optimality and running time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rectifit.display import Cell, Column, Table
from rectifit.experiments.grid import COMPARED_METHODS, LABELS
from rectifit.experiments.optimality import SOLVED_TOL, LevelStatistics
from rectifit.experiments.realizable import REPRODUCED_FACTOR, RealizableTable
from rectifit.experiments.statistics import Statistics

__all__ = [
    "claims_table",
    "excess_table",
    "make_tables",
    "medians_table",
    "optimality_table",
    "realizable_table",
    "tabulate",
    "time_table",
    "yes_no",
    "zeros_table",
]

Record = TypeVar("Record")
LevelReader = Callable[[LevelStatistics], Cell]


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
    return [
        optimality_table(statistics),
        excess_table(statistics),
        claims_table(statistics),
        zeros_table(statistics),
        medians_table(statistics),
        time_table(statistics),
        *(realizable_table(table) for table in statistics.realizable),
    ]


def realizable_table(table: RealizableTable) -> Table:
    """A table of the paper, with our medians and the paper's at the foot."""
    setting, columns = table.setting, table.columns
    body: list[tuple[Cell, ...]] = [
        (instance, *(column.errors[i] for column in columns)) for i, instance in enumerate(table.instances)
    ]
    return Table(
        f"realizable-p{setting.p}-sparsity{setting.sparsity:g}",
        f"Prediction and recovery error, realizable, {setting.size}, sparsity {setting.sparsity:g}",
        (
            Column("instance"),
            *(Column(f"{LABELS[column.method]}, {column.measure}", ".3f") for column in columns),
        ),
        (
            *body,
            ("median", *(column.median for column in columns)),
            ("median in the paper", *(column.printed_median for column in columns)),
        ),
        n_foot=2,
    )


def zeros_table(statistics: Statistics) -> Table:
    """How many errors of the sorting methods print as 0.0, as all of them do in the paper."""
    return tabulate(
        "sorting-zeros",
        "The sorting methods on realizable instances",
        statistics.zeros,
        [
            (Column("method"), lambda count: LABELS[count.method]),
            (Column("entries that print 0.0", ","), lambda count: count.n_zeros),
            (Column("entries", ","), lambda count: count.n_entries),
            (Column("largest prediction error", ".1e"), lambda count: count.largest_prediction_error),
            (Column("largest recovery error", ".1e"), lambda count: count.largest_recovery_error),
        ],
    )


def medians_table(statistics: Statistics) -> Table:
    """The medians of GD and SGD beside those of the paper."""
    columns, factor = statistics.gradient_columns, f"{REPRODUCED_FACTOR:g}"
    n_reproduced = sum(column.is_reproduced for column in columns)
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


def claims_table(statistics: Statistics) -> Table:
    """The claims of the paper, tested in the settings of its figures."""
    return tabulate(
        "claims",
        "The claims of the paper, tested",
        statistics.claims,
        [
            (Column("claim"), lambda claim: claim.text),
            (Column("holds in"), lambda claim: claim.n_true),
            (Column("settings"), lambda claim: len(claim.outcomes)),
            (Column("share", ".0%"), lambda claim: claim.share),
            (Column("verdict"), lambda claim: claim.verdict),
        ],
        "The paper contradicts itself on the prediction error; here the order of the objectives is tested.",
    )


def optimality_table(statistics: Statistics) -> Table:
    """How often each method finds a proved global optimum."""
    columns = [
        *_level_columns(),
        (Column("proved", ","), lambda level: level.n_proved),
        (Column("instances", ","), lambda level: level.n_instances),
    ]
    for method in COMPARED_METHODS:
        columns.append((Column(LABELS[method], ".0%"), _solved(method)))
    return tabulate(
        "optimality",
        "How often is the global optimum found?",
        statistics.levels,
        columns,
        f"Share of the proved instances that a method solves: objective within {SOLVED_TOL:g} of the bound. "
        "Proved: the certificate closes the gap to 1e-4 for all coefficients.",
    )


def excess_table(statistics: Statistics) -> Table:
    """The objective of each method relative to the proved optimum, with noise."""
    columns = _level_columns()
    for method in COMPARED_METHODS:
        label = LABELS[method]
        columns += [
            (Column(f"{label}, median", ".4f"), _median_excess(method)),
            (Column(f"{label}, worst", ".4f"), _largest_excess(method)),
        ]
    return tabulate(
        "excess",
        "Objective relative to the certified optimum",
        [level for level in statistics.levels if level.excess],
        columns,
        "1 is optimal. Without noise the optimum is 0 and the ratio is not defined.",
    )


def time_table(statistics: Statistics) -> Table:
    """The median running time of each method."""
    columns = _level_columns()
    for method, label in LABELS.items():
        columns.append((Column(label, ".4f"), _median_seconds(method)))
    return tabulate("seconds", "Running time in seconds, median", statistics.levels, columns)


def _level_columns() -> list[tuple[Column, LevelReader]]:
    return [
        (Column("size"), lambda level: str(level.size)),
        (Column("noise", "g"), lambda level: level.noise),
    ]


def _solved(method: str) -> LevelReader:
    return lambda level: level.solved.get(method)


def _median_excess(method: str) -> LevelReader:
    return lambda level: level.excess[method].median if method in level.excess else None


def _largest_excess(method: str) -> LevelReader:
    return lambda level: level.excess[method].largest if method in level.excess else None


def _median_seconds(method: str) -> LevelReader:
    return lambda level: level.seconds[method].median if method in level.seconds else None
