"""What was found, why the search stopped, and what is proved: Solution and Certificate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rectifit._typing import Mask, Vector
from rectifit.checks import check_design, is_tensor
from rectifit.problem import Problem

if TYPE_CHECKING:
    from rectifit.inference import Summary

__all__ = [
    "Certificate",
    "Solution",
    "Stop",
    "SurrogateMinimum",
    "TraceRow",
    "VerificationError",
    "relative_gap",
]

# An objective this close to its lower bound, as a share of sum w y^2 or of itself, is at it up to rounding.
ROUNDING, ROUNDING_OF_SUMS = 1e-20, 1e-12
# Recomputed numbers may differ from stated ones by this share: the order of a sum, no more.
AGREEMENT = 1e-9


class Stop(StrEnum):
    """Why a search stopped."""

    COMPLETED = "every surrogate was minimised"
    REPEATED = "the active set repeated"
    LITTLE = "the objective fell by no more than the tolerance"
    NO_DESCENT = "backtracking found no lower objective"
    MAX_ITER = "max_iter steps were made"
    STARTS = "every start was followed to its end"
    OPTIMAL = "the lower bound was reached"
    PATIENCE = "no better solution was found for a while"
    TARGET = "the target gap was reached"
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

    active: Mask
    beta: Vector
    intercept: float
    value: float
    dual_bound: float


class VerificationError(ValueError):
    """Something that a solution states is not so."""


def relative_gap(objective: float, lower_bound: float, rounding: float = 0.0) -> float:
    """(objective - lower_bound) / objective; 0 where the difference is at most `rounding`.

    Examples
    --------
    >>> relative_gap(4.0, 3.0), relative_gap(4.0, 4.0 - 1e-15, rounding=1e-12), relative_gap(0.0, 0.0)
    (0.25, 0.0, 0.0)
    """
    difference = objective - lower_bound
    return 0.0 if difference <= rounding else difference / objective


@dataclass(frozen=True, eq=False)
class Certificate:
    """How good a fit is, proved.

    Attributes
    ----------
    objective, lower_bound : no coefficients have an objective below lower_bound
    gap : (objective - lower_bound) / objective
    status : "optimal" (closed to the target gap, or to rounding), "time_limit", "interrupted", or
        "bound_only" (no search was made)
    box : None if the bound holds for all coefficients; otherwise their largest size on the standardised scale
    n_nodes : nodes of the search
    seconds : spent on the proof
    history : rows (seconds, incumbent, bound)
    n_active, n_inactive, n_undecided : samples whose state in every better solution is proved, and the rest
    target_gap : the gap at which the status becomes "optimal"; None: 0
    null_objective : sum w y^2, against which rounding is measured
    floor : None, unless the floor was estimated: the bound is then for this floor alone, not for others
    given_objective : of `certify`, that of the fit in question, where a better one was found
    solution : of `certify`, the best solution known at the end
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
    floor: float | None = None
    given_objective: float | None = None
    solution: Solution | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """(objective - lower_bound) / objective; 0 where the objective is at its bound up to rounding."""
        rounding = ROUNDING * self.null_objective + ROUNDING_OF_SUMS * self.objective
        return relative_gap(self.objective, self.lower_bound, rounding)

    def __str__(self) -> str:
        """One sentence for people."""
        where = "" if self.box is None else f", among coefficients of standardised size up to {self.box:g}"
        where += "" if self.floor is None else f", among fits with the floor {self.floor:.6g}"
        if self.given_objective is not None:
            # The sentence is about the best fit, which is not the one that was asked about.
            excess = 100.0 * (1.0 - self.objective / self.given_objective)
            where += (
                f"; this is about a fit found on the way, which is {excess:.3g} % better than the one given"
            )
        if self.gap == 0.0:
            return f"proved optimal{where}"
        limit = "bound only: " if self.status == "bound_only" else ""
        return f"{limit}no fit can be more than {100.0 * self.gap:.3g} % better{where}"

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
            **{"n_undecided": problem.n_samples} | fields,
        )
        return replace(certificate, status="optimal") if certificate.is_closed else certificate

    @property
    def is_closed(self) -> bool:
        """Whether the gap is at most the target gap, or zero up to rounding."""
        # A bound that was pushed just to the target may miss it by rounding.
        return self.gap <= (self.target_gap or 0.0) * (1.0 + 1e-6)


@dataclass(frozen=True, eq=False)
class Solution:
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

    @property
    def floor_is_estimated(self) -> bool:
        """Whether the floor was fitted to the data, so that what is proved holds for this floor alone."""
        return self.certificate.floor is not None

    def predict(self, X: Any) -> Any:
        """max(floor, X beta + intercept) for new rows.

        Of a tensor, a tensor where it lives; of a dask array or data frame, a dask array, computed chunk by
        chunk when it is asked for.
        """
        # Imported here: what reads data in blocks is about solutions too.
        from rectifit.scale.dask import check_dimensions, is_dask, predict_chunks

        if is_dask(X):
            check_dimensions(X, "X", 2)
        table = X if is_dask(X) or (is_tensor(X) and X.ndim == 2) else check_design(X)
        if table.shape[1] != self.beta.size:
            raise ValueError(
                f"X has {table.shape[1]} columns; the fit has {self.beta.size} and needs as many"
            )
        if is_dask(X):
            return predict_chunks(X, self.beta, self.intercept, self.floor)
        if is_tensor(X):
            from rectifit.interchange import like

            beta = like(self.beta, X)
            return (X.to(beta.dtype) @ beta + self.intercept).clamp(min=self.floor)
        return np.asarray(np.maximum(table @ self.beta + self.intercept, self.floor))

    def summary(self, **options: Any) -> Summary:
        """A table with standard errors and intervals; the options are those of `inference.summarise`."""
        # Imported here: inference is about solutions.
        from rectifit.inference import summarise

        return summarise(self, **options)

    def to_torch(self) -> Any:
        """The fit as `torch.nn.Sequential(Linear, ReLU)` in float64, to be trained further.

        With another floor than 0 the second layer is `Threshold(floor, floor)`, which is max(floor, .). A
        module is also a start of `solve`, on the way back.

        Examples
        --------
        >>> from rectifit import solve
        >>> solution = solve([[-1.0], [0.0], [1.0], [2.0]], [0.0, 0.0, 1.0, 2.0])
        >>> solution.to_torch()  # doctest: +SKIP
        Sequential(
          (0): Linear(in_features=1, out_features=1, bias=True)
          (1): ReLU()
        )
        """
        from rectifit.interchange import to_module

        return to_module(self)

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """The fit as an ONNX model that predicts in float64, written to a file if there is a path."""
        from rectifit.interchange import write_onnx

        return write_onnx(self, path)

    def without_data(self) -> Solution:
        """The same solution without the training data, as small as its coefficients."""
        return replace(self, problem=None, surrogate=None)

    def verify(self) -> None:
        """Recompute what is stated from the data; raise VerificationError if anything is not so."""
        if self.problem is None:
            raise ValueError(
                "problem is None: this solution was stored without its data and cannot be verified"
            )
        problem, certificate = self.problem.shifted(self.floor), self.certificate
        # Where the floor is far from the outcomes, subtracting it leaves its own rounding.
        scale = max(problem.null_objective, self.problem.null_objective)
        tolerance = AGREEMENT * self.objective + ROUNDING * scale
        finite = bool(np.isfinite(self.beta).all() and np.isfinite(self.intercept))
        _demand(
            self.beta.shape == (problem.n_features,) and finite, "beta is not a finite coefficient per column"
        )
        _demand(
            problem.fit_intercept or self.intercept == 0.0, "the intercept is not 0 in a model without one"
        )
        _demand(certificate.floor in (None, self.floor), "the certificate is about another floor")
        found = problem.objective(self.beta, self.intercept - self.floor)
        _demand(
            abs(found - self.objective) <= tolerance,
            f"the objective is {found!r}, not {self.objective!r}, unless the data were changed since the fit",
        )
        reached = min((row.objective for row in self.trace), default=found)
        _demand(self.objective <= reached + tolerance, f"the trace has met {reached!r}, below the objective")
        if self.surrogate is not None:
            self._verify_surrogate(problem, self.surrogate)
        _demand(certificate.objective == self.objective, "the certificate is about another objective")
        _demand(certificate.lower_bound <= self.objective, "the lower bound is above the objective")
        _demand(certificate.lower_bound <= found + tolerance, "the lower bound is above what was reached")
        optimal = certificate.status == "optimal"
        _demand(
            certificate.is_closed or not optimal, f"it is called optimal with a gap of {certificate.gap:g}"
        )

    def _verify_surrogate(self, problem: Problem, met: SurrogateMinimum) -> None:
        value = problem.surrogate_value(met.active, met.beta, met.intercept)
        _demand(
            self.surrogate_objective == met.value
            and abs(value - met.value) <= AGREEMENT * problem.null_objective,
            f"the surrogate's minimum is {value!r}, not {self.surrogate_objective!r}",
        )
        _demand(
            met.dual_bound <= value + AGREEMENT * problem.null_objective, "a dual bound is above its value"
        )
        slack = AGREEMENT * problem.null_objective
        _demand(self.objective <= met.value + slack, "the objective is above the surrogate's minimum")


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise VerificationError(otherwise)
