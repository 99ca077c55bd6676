"""The profile of several solvers: the share of instances that each has solved within some processor time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from rectifit.display import Cell, Column, Table
from rectifit.formatting import write_duration, write_share
from rectifit.instances.library import best_known
from rectifit.instances.results import CLOSED_GAP, Result
from rectifit.instances.table import best_rows

__all__ = ["SolverProfile", "common_instances", "compute_profile", "tabulate_profile"]

# Processor times at which the table states shares.
TIMES = (0.1, 1.0, 10.0, inf)


@dataclass(frozen=True)
class SolverProfile:
    """What one solver did on the instances on which all solvers were run.

    Attributes
    ----------
    solver : its name
    n_instances : how many there are
    found : sorted processor times, one for each instance on which its fit is within 1e-4 of the best known
    proved : the same, where it has proved such a gap itself
    longest : the longest processor time that it took, whether or not that led to anything
    """

    solver: str
    n_instances: int
    found: tuple[float, ...]
    proved: tuple[float, ...]
    longest: float

    def share(self, what: str, until: float) -> float:
        """The share of the instances that are "found" or "proved" within some processor time."""
        times = {"found": self.found, "proved": self.proved}[what]
        return sum(time <= until for time in times) / self.n_instances


def common_instances(results: Sequence[Result]) -> list[str]:
    """The instances on which every solver of these results was run."""
    solvers = {result.solver for result in results}
    done: dict[str, set[str]] = {}
    for result in results:
        done.setdefault(result.instance, set()).add(result.solver)
    return [name for name, by in done.items() if by == solvers]


def compute_profile(results: Sequence[Result]) -> list[SolverProfile]:
    """One profile per solver, on the instances on which all of them were run; none without such instances."""
    names = common_instances(results)
    if not names:
        return []
    rows = {(row.instance, row.solver): row for row in best_rows(results)}
    known = {name: best_known(name, results) for name in names}
    profiles = []
    for solver in dict.fromkeys(result.solver for result in results):
        own = [(rows[name, solver], known[name]) for name in names]
        found = [row for row, best in own if best is not None and row.reaches(best.objective)]
        profiles.append(
            SolverProfile(
                solver,
                len(names),
                tuple(sorted(row.cpu_seconds for row in found)),
                tuple(sorted(row.cpu_seconds for row, _ in own if row.is_closed)),
                max(row.cpu_seconds for row, _ in own),
            )
        )
    return profiles


def tabulate_profile(results: Sequence[Result]) -> Table:
    """The shares at a few times; no rows where no instance was run by all solvers."""
    profiles = compute_profile(results)
    kinds = [
        (f"{what} {f'within {time:g} s' if time < inf else 'in all'}", what, time)
        for what in ("found", "proved")
        for time in TIMES
    ]
    rows: list[tuple[Cell, ...]] = [
        (
            profile.solver,
            *(profile.share(what, time) for _, what, time in kinds),
            profile.longest,
        )
        for profile in profiles
    ]
    columns = [
        Column("solver"),
        *(Column(heading, write_share) for heading, *_ in kinds),
        Column("longest run", write_duration),
    ]
    n_instances = profiles[0].n_instances if profiles else 0
    note = (
        f"Found: the fit is within {write_share(CLOSED_GAP)} of the best known one, by the processor time "
        "that the solver took in all. Proved: it has proved that gap itself."
    )
    title = f"Share of {n_instances:,} instances, against processor time"
    return Table("profile", title, tuple(columns), tuple(rows), note)
