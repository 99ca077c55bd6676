"""What was found, why the search stopped, and what is proved."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from rectifit._typing import Mask, Vector
from rectifit.active import ActiveSet
from rectifit.constraints import Constraints
from rectifit.data.problem import Problem
from rectifit.display import Cell, Column, Table
from rectifit.formatting import write_count, write_duration, write_number, write_objective, write_share
from rectifit.tolerances import SUM_TOL, ZERO_OBJECTIVE_TOL
from rectifit.writing import copy_file

__all__ = [
    "Certificate",
    "Fit",
    "Stop",
    "SurrogateMinimum",
    "TraceRow",
    "fit_of",
    "relative_gap",
]

# Share of the target gap by which a bound that was pushed just to it may miss it through rounding.
TARGET_SLACK = 1e-6
# Share of sum w y^2. Where rounding may move the objective by more, it closes no gap.
MAX_ROUNDING_SHARE = 1e-4
# A larger gap says nothing where no proof was searched for.
MAX_TELLING_GAP = 0.5
# Coefficients that a notebook shows.
MAX_SHOWN = 50


class Stop(StrEnum):
    """Why a search stopped."""

    COMPLETED = "every surrogate was minimised"
    REPEATED = "the active set repeated"
    LITTLE = "the objective fell by no more than the tolerance"
    NO_DESCENT = "backtracking found no lower objective"
    MAX_ITER = "max_iter steps were made"
    STARTS = "every start was followed to its end"
    OPTIMAL = "the lower bound was reached"
    SETTLED = "no better solution is expected from more starts"
    PATIENCE = "no better solution was found for a while"
    TARGET = "the target gap was reached"
    ROUNDING = "nothing was left to search, and rounding keeps the rest of the gap open"
    TIME_LIMIT = "the time limit was reached"
    INTERRUPTED = "it was interrupted"


class TraceRow(NamedTuple):
    """One step of a stage: the objective there, and the seconds since the beginning."""

    stage: str
    step: int
    objective: float
    seconds: float


class SurrogateMinimum(NamedTuple):
    """The least minimum of a surrogate that was met: where, of which active set, and its lower bound."""

    active: ActiveSet
    beta: Vector
    intercept: float
    value: float
    dual_bound: float


def relative_gap(objective: float, lower_bound: float, rounding: float = 0.0) -> float:
    """(objective - lower_bound) / objective; 0 where they differ by no more than rounding.

    Examples
    --------
    >>> relative_gap(2.0, 1.5), relative_gap(0.0, 0.0)
    (0.25, 0.0)
    """
    return 0.0 if objective - lower_bound <= rounding else (objective - lower_bound) / objective


@dataclass(frozen=True, eq=False)
class Certificate:
    """How good a fit is, proved.

    Attributes
    ----------
    objective, lower_bound : no coefficients have an objective below lower_bound
    gap : (objective - lower_bound) / objective
    status : "optimal" (closed to the target gap, or to rounding), "time_limit" (the search ended before
        that: because the time was up or, if ended_by_rounding, because nothing was left to search),
        "interrupted", or "bound_only" (no proof was asked for; the bound is that of the fit)
    box : None if the bound holds for all coefficients; otherwise their largest size on the standardised scale
    n_nodes : nodes of the search
    seconds : spent on the proof
    history : rows (seconds, incumbent, bound)
    n_active, n_inactive, n_undecided : samples whose state in every better solution is proved, and the rest
    target_gap : the gap at which the status becomes "optimal"; None: 0
    null_objective : sum w y^2, against which rounding is measured
    rounding : by how much the rounding of the data at hand may move objective and bound; large where columns
        nearly cancel
    ended_by_rounding : whether the search went to its end and left a gap that is due to rounding, so that
        more time would not close it
    floor : None, unless the floor was estimated: the bound is then for this floor alone, not for others
    is_constrained : whether it is about coefficients that satisfy constraints, and not about others
    given_objective : of `certify`, that of the fit in question, where a better one was found
    solution : of `certify`, the best solution known at the end
    proof_file : where the proof was written, if it was (see `certify`)
    """

    objective: float
    lower_bound: float
    status: str
    box: float | None = None
    n_nodes: int = 0
    seconds: float = 0.0
    history: tuple[tuple[float, float, float], ...] = field(default=(), repr=False)
    n_active: int = 0
    n_inactive: int = 0
    n_undecided: int = 0
    target_gap: float | None = None
    null_objective: float = field(default=0.0, repr=False)
    rounding: float = field(default=0.0, repr=False)
    ended_by_rounding: bool = False
    floor: float | None = None
    is_constrained: bool = False
    given_objective: float | None = None
    solution: Any = field(default=None, repr=False)
    proof_file: Path | None = field(default=None, repr=False)

    def save_proof(self, path: str | Path) -> None:
        """Copy the proof file, which the search has written, to another place.

        Parameters
        ----------
        path : of the copy, for `check_proof` or `rectifit check`

        Raises
        ------
        ValueError
            If the search has written none: a proof is too large to be kept in memory.
        """
        if self.proof_file is None:
            raise ValueError("proof_file is None: the search wrote no proof; pass proof= to certify")
        copy_file(self.proof_file, path)

    @property
    def gap(self) -> float:
        """(objective - lower_bound) / objective; 0 where the objective is at its bound up to rounding."""
        return relative_gap(self.objective, self.lower_bound, self._rounding_of_sums)

    @property
    def _rounding_of_sums(self) -> float:
        """By how much an objective may differ from its bound and be at it."""
        return ZERO_OBJECTIVE_TOL * self.null_objective + SUM_TOL * self.objective

    @property
    def says_anything(self) -> bool:
        """Whether a proof was searched for, or the bound that comes with the fit says something by itself."""
        return self.status != "bound_only" or self.gap <= MAX_TELLING_GAP

    def __str__(self) -> str:
        """One sentence for people."""
        is_open = self.ended_by_rounding and self.status != "optimal"
        return self._statement() + "; rounding keeps the rest open, and more time would not help" * is_open

    def _statement(self) -> str:
        """What is proved, about which fit."""
        where = "" if self.box is None else f", among coefficients of standardised size up to {self.box:g}"
        kinds = [] if self.floor is None else [f"with the floor {self.floor:.6g}"]
        kinds += ["that satisfy the constraints"] * self.is_constrained
        where += f", among fits {' '.join(kinds)}" if kinds else ""
        if not self.says_anything:
            return "no proof was searched for"
        if self.given_objective is not None:
            # The sentence is about the best fit, which is not the one that was asked about.
            excess = 100.0 * relative_gap(self.given_objective, self.objective)
            proved = (
                "it is proved optimal"
                if self.gap == 0.0
                else f"no fit can beat that one by more than {100.0 * self.gap:.3g} %"
            )
            return f"A fit {excess:.3g} % better than yours was found; {proved}{where}"
        if self.gap == 0.0:
            return f"proved optimal{where}"
        if self.status == "optimal" and self.objective - self.lower_bound <= self._small_rounding:
            return f"proved optimal up to the rounding of the data{where}"
        return f"no fit can be more than {100.0 * self.gap:.3g} % better{where}"

    def facts(self) -> dict[str, str]:
        """What is proved, and how, by name and for people."""
        decided = self.n_active + self.n_inactive
        return {
            "objective": write_objective(self.objective),
            "lower bound": write_objective(self.lower_bound),
            "gap": write_share(self.gap),
            "status": "ended by rounding" if self.ended_by_rounding else self.status.replace("_", " "),
            "samples": f"{decided:,} of {decided + self.n_undecided:,} are proved active "
            f"({self.n_active:,}) or inactive ({self.n_inactive:,}) in every better fit",
            "search": f"{write_count(self.n_nodes, 'node')}, {write_duration(self.seconds)}",
        }

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = tuple(self.facts().items())
        return Table("certificate", str(self), (Column(""), Column("")), rows).to_html()

    @classmethod
    def from_bound(
        cls,
        problem: Problem,
        objective: float,
        lower_bound: float,
        target_gap: float | None,
        status: str = "bound_only",
        **fields: Any,
    ) -> Certificate:
        """The certificate of a lower bound; the status is "optimal" where it is reached."""
        certificate = cls(
            objective,
            min(lower_bound, objective),
            status,
            target_gap=target_gap,
            null_objective=problem.null_objective,
            is_constrained=problem.constraints is not None,
            **{"n_undecided": problem.n_samples} | fields,
        )
        if not certificate.is_closed:
            return certificate
        return replace(certificate, status="optimal", ended_by_rounding=False)

    @property
    def is_closed(self) -> bool:
        """Whether the gap is at most the target gap, or zero up to the rounding of the data."""
        return self.is_within(self.target_gap or 0.0)

    def is_within(self, gap: float) -> bool:
        """Whether the gap is at most so large, up to rounding."""
        # A search that ends at its target has lost some rounding to the bound.
        room = gap * (1.0 + TARGET_SLACK) * self.objective + max(self._rounding_of_sums, self._small_rounding)
        return self.objective - self.lower_bound <= room

    @property
    def _small_rounding(self) -> float:
        """The rounding of the data, unless it is so large that nothing is known of the objective."""
        return self.rounding if self.rounding <= MAX_ROUNDING_SHARE * self.null_objective else 0.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit of y ~ max(floor, X beta + intercept), the same for every method; by default the floor is 0.

    Attributes
    ----------
    beta, intercept : coefficients on the user's scale
    objective : plain weighted sum of squares plus alpha |beta|^2, evaluated from the data
    surrogate_objective : least minimum of a convex surrogate F_I that was met, never below the objective;
        None where no surrogate was solved. The guarantee of the approximation algorithm is about this value.
    method : the stages, joined by +
    stopped : why the last stage stopped, a sentence
    certificate : Certificate
    n_iter : steps of all stages
    n_surrogates : surrogates minimised, not counting those by which a floor was estimated
    seconds : wall-clock time
    trace : one row per step (stage, step, objective, seconds); of the enumeration, rows that improved
    guarantee : the objective is at most this many times the least possible one; None where no such bound was
        reached. With an estimated floor, the least one that has this floor.
    problem : the data; None after `without_data`
    surrogate : where surrogate_objective was met, for outcomes from which the floor was subtracted
    floor : the fit is nowhere below it
    constraints : what was known about the coefficients; None if nothing was
    fit_intercept, alpha, is_weighted : whether there is an intercept, the ridge, whether samples had weights
    feature_names, target : names of the columns of X, and of y, where they had any
    kept : sums over the data that inference has asked for
    """

    beta: Vector
    intercept: float
    objective: float
    surrogate_objective: float | None
    method: str
    stopped: Stop
    certificate: Certificate
    n_iter: int
    n_surrogates: int
    seconds: float
    trace: tuple[TraceRow, ...] = field(repr=False)
    guarantee: float | None = None
    problem: Problem | None = field(default=None, repr=False)
    surrogate: SurrogateMinimum | None = field(default=None, repr=False)
    floor: float = 0.0
    constraints: Constraints | None = field(default=None, repr=False)
    fit_intercept: bool = field(default=True, repr=False)
    alpha: float = field(default=0.0, repr=False)
    is_weighted: bool = field(default=False, repr=False)
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    target: str | None = field(default=None, repr=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # A copy with other data must not replace the sums of its origin.
        object.__setattr__(self, "kept", dict(self.kept))

    @property
    def at_bound(self) -> Mask:
        """Coefficients that are at one of their bounds."""
        if self.constraints is None:
            return np.zeros(self.beta.size, dtype=np.bool_)
        return self.constraints.at_bound(self.beta)

    @property
    def floor_is_estimated(self) -> bool:
        """Whether the floor was fitted to the data, so that what is proved holds for this floor alone."""
        return self.certificate.floor is not None

    def describe_model(self, target: str | None = None) -> str:
        """The fitted equation in words."""
        name = target or self.target or "y"
        intercept = " + intercept" if self.fit_intercept else ""
        estimated = ", the floor estimated" if self.floor_is_estimated else ""
        return f"{name} ~ max({write_number(self.floor, 6)}, X beta{intercept}){estimated}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the coefficients, without standard errors, which need sums over the data."""
        names = self.feature_names or tuple(f"x{j}" for j in range(self.beta.size))
        rows = list[tuple[Cell, ...]](zip(names, self.beta.tolist(), strict=True))[:MAX_SHOWN]
        hidden = self.beta.size - len(rows)
        rows += [(f"and {hidden:,} more", None)] * (hidden > 0)
        rows += [("(intercept)", self.intercept)] * self.fit_intercept
        columns = (Column("variable"), Column("coefficient", write_number))
        note = (
            f"Objective {write_objective(self.objective)}; {self.certificate}. Method: {self.method}, "
            f"{write_duration(self.seconds)}; {self.stopped}."
        )
        return Table("fit", self.describe_model(), columns, tuple(rows), note).to_html()

    def without_data(self) -> Self:
        """The same fit without the training data: coefficients, and sums that were asked for."""
        return replace(self, problem=None, surrogate=None)

    def at_floor(self, problem: Problem, floor: float) -> Self:
        """A fit to outcomes from which a floor was subtracted, as a fit of the problem itself."""
        if floor == 0.0:
            return self if self.problem is problem else replace(self, problem=problem)
        return replace(self, intercept=self.intercept + floor, floor=floor, problem=problem)


def fit_of(model: Any) -> Fit:
    """A fit, or that of a fitted estimator."""
    fit = getattr(model, "solution_", model)
    if not isinstance(fit, Fit):
        raise TypeError(f"solution is {type(model).__name__}; it must be a Solution or a fitted estimator")
    return fit
