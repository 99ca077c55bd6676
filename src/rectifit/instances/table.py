"""What is known of instances, as a table: one row each, and more columns for more solvers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from rectifit.display import Cell, Column, Table
from rectifit.formatting import NOTHING, write_duration, write_objective, write_share
from rectifit.instances.library import best_known, describe_instance
from rectifit.instances.results import CLOSED_GAP, Result
from rectifit.tolerances import SUM_TOL

__all__ = ["best_rows", "tabulate_instances"]

COLUMNS = (
    Column("instance"),
    Column("family"),
    Column("n", ","),
    Column("p", ","),
    Column("intercept"),
    Column("zeros", write_share),
    Column("best objective", write_objective, NOTHING),
    Column("lower bound", write_objective, NOTHING),
    Column("gap", write_share, NOTHING),
    Column("proved by", missing=NOTHING),
    Column("CPU time", write_duration, NOTHING),
    Column("nodes", ",", NOTHING),
)
NOTE = (
    f"An instance is closed if the gap is at most {write_share(CLOSED_GAP)}: no fit is better by more than "
    "this share. Where it is open, CPU time and nodes are those of the largest bound."
)


def tabulate_instances(names: Iterable[str], more: Sequence[Result] = ()) -> Table:
    """The best known objective, the largest bound, and who proved it.

    Parameters
    ----------
    names : names of instances
    more : further results; each of their solvers gets columns of its own

    Returns
    -------
    Table
    """
    solvers = list(dict.fromkeys(result.solver for result in more))
    own = {(row.instance, row.solver): row for row in best_rows(more)}
    columns = [
        *COLUMNS,
        *(
            column
            for solver in solvers
            for column in (
                Column(f"{solver}: excess", write_share, NOTHING),
                Column(f"{solver}: gap", write_share, NOTHING),
                Column(f"{solver}: CPU time", write_duration, NOTHING),
            )
        ),
    ]
    rows = [
        (
            *_known_cells(name, more),
            *(cell for solver in solvers for cell in _own_cells(name, own, solver, more)),
        )
        for name in names
    ]
    title = f"{len(rows):,} instances"
    return Table("instances", title, tuple(columns), tuple(rows), NOTE)


def best_rows(results: Iterable[Result]) -> list[Result]:
    """Of every solver on every instance the best row: a run may have been repeated with more time."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.instance, result.solver), []).append(result)
    return [min(group, key=lambda row: (row.gap, row.objective)) for group in groups.values()]


def _known_cells(name: str, more: Sequence[Result]) -> tuple[Cell, ...]:
    facts, known = describe_instance(name), best_known(name, more)
    entry = facts.entry
    described = (
        name,
        entry.family,
        facts.n_samples,
        facts.n_features,
        "yes" if entry.fit_intercept else "no",
        facts.share_zeros,
    )
    if known is None:
        return (*described, None, None, None, None, None, None)
    return (
        *described,
        known.objective,
        known.lower_bound,
        known.gap,
        known.proved_by if known.is_closed else "open",
        known.cpu_seconds,
        known.n_nodes,
    )


def _own_cells(
    name: str, rows: Mapping[tuple[str, str], Result], solver: str, more: Sequence[Result]
) -> tuple[Cell, ...]:
    row = rows.get((name, solver))
    if row is None:
        return None, None, None
    known = best_known(name, more)
    assert known is not None
    excess = row.objective / known.objective - 1.0 if 0.0 < known.objective <= row.objective < inf else None
    if row.objective == known.objective or (excess is not None and excess <= SUM_TOL):
        # Nothing but rounding.
        excess = 0.0
    return excess, row.gap if row.lower_bound > 0.0 else None, row.cpu_seconds
