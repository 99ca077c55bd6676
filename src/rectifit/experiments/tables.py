"""The tables of a run: the paper's 15 beside ours, the claims of the paper, optimality and running time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TypeVar

from rectifit.display import Cell, Column, Table
from rectifit.experiments.claims import Claim
from rectifit.experiments.grid import COMPARED_METHODS, LABELS
from rectifit.experiments.realizable import REPRODUCED_FACTOR, ErrorColumn, ZeroCount
from rectifit.experiments.statistics import Statistics
from rectifit.experiments.summaries import SOLVED_TOL, LevelStatistics

__all__ = ["Columns", "make_tables", "tabulate", "yes_no"]

Record = TypeVar("Record")
# Columns, each with the function that reads its cell from a record.
Columns = Sequence[tuple[Column, Callable[[Record], Cell]]]

LEVEL_COLUMNS: Columns[LevelStatistics] = (
    (Column("size"), lambda level: str(level.size)),
    (Column("noise", "g"), lambda level: level.noise),
)


def tabulate(
    key: str, title: str, records: Iterable[Record], columns: Columns[Record], note: str = ""
) -> Table:
    """A table with one row per record."""
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
    columns: Columns[LevelStatistics] = [
        *LEVEL_COLUMNS,
        (Column("proved", ","), lambda level: level.n_proved),
        (Column("instances", ","), lambda level: level.n_instances),
        *_method_columns(COMPARED_METHODS, ".0%", {"": lambda method, level: level.solved.get(method)}),
    ]
    note = (
        f"Share of the proved instances that a method solves: objective within {SOLVED_TOL:g} of the bound. "
        "Proved: the certificate closes the gap to 1e-4 for all coefficients."
    )
    return tabulate("optimality", "How often is the global optimum found?", levels, columns, note)


def _excess_table(levels: Sequence[LevelStatistics]) -> Table:
    """The objective of each method relative to the proved optimum, with noise."""
    cells: dict[str, Callable[[str, LevelStatistics], Cell]] = {
        ", median": lambda method, level: 1.0 + level.excess[method].median,
        ", worst": lambda method, level: 1.0 + level.excess[method].largest,
    }
    noisy = [level for level in levels if level.excess]
    columns = [*LEVEL_COLUMNS, *_method_columns(COMPARED_METHODS, ".4f", cells)]
    note = "1 is optimal. Without noise the optimum is 0 and the ratio is not defined."
    return tabulate("excess", "Objective relative to the certified optimum", noisy, columns, note)


def _time_table(levels: Sequence[LevelStatistics]) -> Table:
    """The median running time of each method."""

    def median(method: str, level: LevelStatistics) -> Cell:
        return level.seconds[method].median if method in level.seconds else None

    columns = [*LEVEL_COLUMNS, *_method_columns(LABELS, ".4f", {"": median})]
    note = "Processor time of one thread, without the time to compile or load code."
    return tabulate("seconds", "Running time in seconds, median", levels, columns, note)


def _method_columns(
    methods: Iterable[str], spec: str, cells: Mapping[str, Callable[[str, LevelStatistics], Cell]]
) -> Columns[LevelStatistics]:
    """For each method, one column for every function of method and level; keys follow the method's label."""
    return [
        (Column(LABELS[method] + suffix, spec), partial(read, method))
        for method in methods
        for suffix, read in cells.items()
    ]


def _claims_table(claims: Sequence[Claim]) -> Table:
    """The claims of the paper, tested in the settings of its figures."""
    columns: Columns[Claim] = [
        (Column("claim"), lambda claim: claim.text),
        (Column("holds in"), lambda claim: claim.n_true),
        (Column("settings"), lambda claim: claim.n_settings),
        (Column("share", ".0%"), lambda claim: claim.share),
        (Column("verdict"), lambda claim: claim.verdict),
    ]
    note = "The paper contradicts itself on the prediction error; here the order of the objectives is tested."
    return tabulate("claims", "The claims of the paper, tested", claims, columns, note)


def _zeros_table(zeros: Sequence[ZeroCount]) -> Table:
    """How many errors of the sorting methods print as 0.0, as all of them do in the paper."""
    columns: Columns[ZeroCount] = [
        (Column("method"), lambda count: LABELS[count.method]),
        (Column("entries that print 0.0", ","), lambda count: count.n_zeros),
        (Column("entries", ","), lambda count: count.n_entries),
        (Column("largest prediction error", ".1e"), lambda count: count.largest_prediction_error),
        (Column("largest recovery error", ".1e"), lambda count: count.largest_recovery_error),
    ]
    return tabulate("sorting-zeros", "The sorting methods on realizable instances", zeros, columns)


def _medians_table(errors: Sequence[ErrorColumn]) -> Table:
    """The medians of GD and SGD beside those of the paper."""
    n_reproduced, factor = sum(error.is_reproduced for error in errors), f"{REPRODUCED_FACTOR:g}"
    columns: Columns[ErrorColumn] = [
        (Column("p"), lambda error: error.setting.p),
        (Column("sparsity", "g"), lambda error: error.setting.sparsity),
        (Column("method"), lambda error: LABELS[error.method]),
        (Column("error"), lambda error: error.measure),
        (Column("our median", ".3f"), lambda error: error.median),
        (Column("paper's median", ".3f"), lambda error: error.printed_median),
        (Column("ratio", ".2f"), lambda error: error.ratio),
        (Column(f"within a factor of {factor}"), lambda error: yes_no(error.is_reproduced)),
    ]
    note = f"{n_reproduced} of {len(errors)} medians are within a factor of {factor} of the paper's."
    return tabulate("gradient-medians", "Gradient descent beside the paper", errors, columns, note)


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
