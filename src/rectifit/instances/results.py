"""What solvers reached on instances: one row each, in CSV files, and the best of all rows.

A solver never reports its own score: the objective of a row is computed from its coefficients. A bound is
what its solver claims; a bound above an objective that anybody reached is refuted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf
from pathlib import Path

from rectifit.fit import relative_gap
from rectifit.row_file import RowFile, parse_rows
from rectifit.tolerances import SUM_TOL

__all__ = ["CLOSED_GAP", "BestKnown", "Result", "combine", "read_results", "shipped_results"]

# An instance is closed when no fit can be better than the best known one by more than this share.
CLOSED_GAP = 1e-4
# Share of that gap by which a bound that was pushed just to it may miss it through rounding.
CLOSED_SLACK = 1e-6


@dataclass(frozen=True)
class Result:
    """What one solver reached on one instance.

    Attributes
    ----------
    instance, digest : the name of the instance, and the digest of its data
    solver : as the run calls it
    objective : computed from the coefficients, and 0 where it is a rounding error; infinite if the solver
        returned no coefficients
    lower_bound : 0 if the solver claims none
    status : in the words of the solver
    cpu_seconds, seconds : processor time of the process, and time on the wall
    time_limit : seconds on the wall
    n_nodes : of its search; 0 if there was none
    version : of rectifit
    coefficients : beta, and then the intercept if there is one
    """

    instance: str
    digest: str
    solver: str
    objective: float
    lower_bound: float
    status: str
    cpu_seconds: float
    seconds: float
    time_limit: float
    n_nodes: int
    version: str
    coefficients: tuple[float, ...]

    @property
    def gap(self) -> float:
        """(objective - lower_bound) / objective; 0 where they differ by rounding only."""
        return _gap(self.objective, self.lower_bound)

    @property
    def is_closed(self) -> bool:
        """Whether the solver proved that its own fit is optimal, up to 1e-4."""
        return _closes(self.objective, self.lower_bound)

    def reaches(self, objective: float) -> bool:
        """Whether the fit is as good as this objective, up to 1e-4."""
        return _closes(self.objective, objective)


@dataclass(frozen=True)
class BestKnown:
    """The best of all results on one instance.

    Attributes
    ----------
    objective, found_by, coefficients : of the best fit, and the first solver that reached it
    lower_bound : the largest bound
    proved_by, cpu_seconds, n_nodes : of the solver that proved it, or came closest
    """

    objective: float
    found_by: str
    coefficients: tuple[float, ...]
    lower_bound: float
    proved_by: str
    cpu_seconds: float
    n_nodes: int

    @property
    def gap(self) -> float:
        """(objective - lower_bound) / objective; 0 where they differ by rounding only."""
        return _gap(self.objective, self.lower_bound)

    @property
    def is_closed(self) -> bool:
        """Whether the best known fit is proved optimal, up to 1e-4."""
        return _closes(self.objective, self.lower_bound)


def combine(results: Iterable[Result]) -> BestKnown:
    """The best of some results on one instance.

    Of several solvers that closed it, the one that took the least processor time has proved it.
    """
    results = list(results)
    best = min(results, key=lambda result: result.objective)
    lower_bound = max(result.lower_bound for result in results)
    closers = [result for result in results if _closes(best.objective, result.lower_bound)]
    if closers:
        proof = min(closers, key=lambda result: result.cpu_seconds)
    else:
        proof = max(results, key=lambda result: result.lower_bound)
    return BestKnown(
        objective=best.objective,
        found_by=best.solver,
        coefficients=best.coefficients,
        lower_bound=lower_bound,
        proved_by=proof.solver,
        cpu_seconds=proof.cpu_seconds,
        n_nodes=proof.n_nodes,
    )


def read_results(path: str | Path) -> list[Result]:
    """The rows of a file that `rectifit instances run` wrote, or that has the same columns."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {str(path)!r}")
    return RowFile(file, Result).read()


@cache
def shipped_results() -> tuple[Result, ...]:
    """The rows of all solvers whose results come with rectifit."""
    folder = files("rectifit.instances") / "data"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".results.csv"))
    return tuple(
        result
        for name in names
        for result in parse_rows((folder / name).read_text(encoding="utf-8"), Result, name)
    )


def _gap(objective: float, lower_bound: float) -> float:
    # Without a fit nothing is closed.
    return relative_gap(objective, lower_bound, SUM_TOL * objective) if objective < inf else 1.0


def _closes(objective: float, lower_bound: float) -> bool:
    return _gap(objective, lower_bound) <= CLOSED_GAP * (1.0 + CLOSED_SLACK)
