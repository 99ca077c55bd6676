"""What a fit states, computed again from its data.

Two evaluations of a sum over the data differ by rounding: by little, unless columns nearly cancel. How much
that may be follows from the sizes of the terms of every u (`Problem.rounding`), and is the allowance of each
check. Bounds that need no search are derived again: the minimum of the surrogate, from the stated point and
from a point of its own, the cost of non-positive outcomes, and the guarantee of the approximation algorithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rectifit.bounds import allowance
from rectifit.certificate.trivial_bound import floor_bound
from rectifit.data.problem import Problem
from rectifit.fit import Fit, SurrogateMinimum
from rectifit.formatting import write_count, write_number, write_objective
from rectifit.methods.approximation import Enumeration
from rectifit.methods.search import Search
from rectifit.surrogate.engine import Engine
from rectifit.surrogate.pass_engine import PassEngine
from rectifit.surrogate.rows_engine import RowsEngine
from rectifit.tolerances import AGREEMENT_TOL, ZERO_OBJECTIVE_TOL

__all__ = ["Check", "Verification", "VerificationError", "verify"]

# What a certificate may say of how it ended.
STATUSES = ("optimal", "time_limit", "interrupted", "bound_only")
# An enumeration of more active sets than this is not repeated.
MAX_REPEATED = 50_000


class VerificationError(ValueError):
    """Something that a solution states is not so."""


class Check(NamedTuple):
    """A number that a fit states, and the one that was found.

    Attributes
    ----------
    name : what it is
    stated, found : the two numbers
    allowance : by how much they may miss each other through the rounding of the data at hand
    is_limit : whether the stated number must be at most the one found, rather than equal to it
    """

    name: str
    stated: float
    found: float
    allowance: float
    is_limit: bool = False

    @property
    def residual(self) -> float:
        """Stated less found; of a limit, by how much it is exceeded."""
        return max(self.stated - self.found, 0.0) if self.is_limit else self.stated - self.found

    @property
    def holds(self) -> bool:
        """Whether the residual is within the allowance; equal numbers always agree."""
        return self.stated == self.found or abs(self.residual) <= self.allowance

    def __str__(self) -> str:
        """One line."""
        relation = "at most" if self.is_limit else "found"
        residual, allowance = write_number(self.residual, 2), write_number(self.allowance, 2)
        found = f"{self.name}: {write_objective(self.stated)}, {relation} {write_objective(self.found)}"
        return f"{found}; residual {residual}, allowance {allowance}"


@dataclass(frozen=True)
class Verification:
    """What was computed again, and what was not.

    Attributes
    ----------
    checks : every number, with its residual and what rounding allows
    open : sentences about what rests on a search that was not repeated
    """

    checks: tuple[Check, ...]
    open: tuple[str, ...]

    def __getitem__(self, name: str) -> Check:
        """The check with this name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"{name!r}; there are {', '.join(check.name for check in self.checks)}")

    def __str__(self) -> str:
        """One line for each check and each sentence."""
        return "\n".join([*map(str, self.checks), *self.open])


def verify(fit: Fit) -> Verification:
    """Recompute what a fit states; raise VerificationError if anything is not so."""
    if fit.problem is None:
        raise ValueError("problem is None: this solution was stored without its data and cannot be verified")
    problem, certificate = fit.problem.shifted(fit.floor), fit.certificate
    _check_model(fit, problem)
    _demand(certificate.floor in (None, fit.floor), "the certificate is about another floor")
    # Where the floor is far from the outcomes, subtracting it leaves its own rounding.
    scale = ZERO_OBJECTIVE_TOL * max(problem.null_objective, fit.problem.null_objective)
    beta, intercept = fit.beta, fit.intercept - fit.floor
    found = problem.objective(beta, intercept)
    rounding = problem.rounding_at(beta, intercept, found)
    objective = Check("objective", fit.objective, found, AGREEMENT_TOL * fit.objective + rounding + scale)
    _demand(
        objective.holds,
        f"the objective is {found!r}, not {fit.objective!r}, unless the data were changed since the fit",
    )
    _check_labels(fit, problem)
    checks, rests = [objective], list[str]()
    if fit.trace:
        reached = min(row.objective for row in fit.trace)
        # The points of the trace are not kept: their rounding is that of the certificate.
        slack = objective.allowance + certificate.rounding
        checks.append(Check("objective beside the trace", fit.objective, reached, slack, True))
        _demand(checks[-1].holds, f"the trace has met {reached!r}, below the objective")
    if fit.surrogate is not None:
        checks += _verify_surrogate(fit, problem, fit.surrogate, scale)
    _demand(certificate.objective == fit.objective, "the certificate is about another objective")
    _demand(certificate.lower_bound <= fit.objective, "the lower bound is above the objective")
    checks.append(Check("lower bound", certificate.lower_bound, found, objective.allowance, True))
    _demand(checks[-1].holds, "the lower bound is above what was reached")
    _demand(
        certificate.is_closed or certificate.status != "optimal",
        f"it is called optimal with a gap of {certificate.gap:g}",
    )
    derived = Check("cost of non-positive outcomes", floor_bound(problem), found, objective.allowance, True)
    checks.append(derived)
    bound = derived.stated
    if fit.guarantee is not None:
        bound = max(bound, _verify_guarantee(fit, problem, objective, checks, rests))
    if certificate.lower_bound > bound + objective.allowance:
        rests.append(
            f"The lower bound {write_objective(certificate.lower_bound)} comes from a search, which was not "
            "repeated: only a proof file can show it again."
        )
    return Verification(tuple(checks), tuple(rests))


def _check_model(fit: Fit, problem: Problem) -> None:
    """Whether the coefficients belong to the model."""
    finite = bool(np.isfinite(fit.beta).all() and np.isfinite(fit.intercept))
    _demand(fit.beta.shape == (problem.n_features,) and finite, "beta is not a finite coefficient per column")
    _demand(problem.fit_intercept or fit.intercept == 0.0, "the intercept is not 0 in a model without one")
    violation = problem.violation(fit.beta)
    _demand(violation is None, f"a constraint does not hold: {violation}")


def _check_labels(fit: Fit, problem: Problem) -> None:
    """Whether fit and certificate name the problem, and counts and times are such."""
    certificate = fit.certificate
    for name, stated, own in (
        ("fit_intercept", fit.fit_intercept, problem.fit_intercept),
        ("alpha", fit.alpha, problem.alpha),
        ("is_weighted", fit.is_weighted, problem.is_weighted),
        ("constraints", fit.constraints is not None, problem.constraints is not None),
        ("is_constrained of the certificate", certificate.is_constrained, problem.constraints is not None),
    ):
        _demand(stated == own, f"{name} is {stated!r}, but that of the problem is {own!r}")
    known = (certificate.n_active, certificate.n_inactive, certificate.n_undecided)
    n_states = fit.problem.n_samples if fit.problem is not None else 0
    _demand(sum(known) == n_states, f"the states of {n_states} samples are counted as {sum(known)}")
    counts = (*known, fit.n_iter, fit.n_surrogates, certificate.n_nodes)
    _demand(min(counts) >= 0, f"a count is {min(counts)}")
    times = (fit.seconds, certificate.seconds)
    _demand(all(0.0 <= seconds < math.inf for seconds in times), f"seconds are {times}")
    _demand(certificate.status in STATUSES, f"the status of the certificate is {certificate.status!r}")
    sizes = certificate.null_objective, problem.null_objective
    close = abs(sizes[0] - sizes[1]) <= AGREEMENT_TOL * sizes[1]
    _demand(close, f"sum w y^2 is {sizes[1]!r}, not {sizes[0]!r}")
    _demand(
        (fit.surrogate is None) == (fit.surrogate_objective is None),
        "the surrogate's minimum is stated without the point where it was met, or that without it",
    )


def _verify_surrogate(fit: Fit, problem: Problem, met: SurrogateMinimum, scale: float) -> list[Check]:
    """The value at the stated point, and the minimum, found again from there."""
    found = problem.surrogate_value(met.active, met.beta, met.intercept)
    rounding = problem.rounding_at(met.beta, met.intercept, found)
    slack = AGREEMENT_TOL * found + rounding + scale
    value = Check("surrogate's minimum", met.value, found, slack)
    _demand(
        fit.surrogate_objective == met.value and value.holds,
        f"the surrogate's minimum is {found!r}, not {fit.surrogate_objective!r}",
    )
    _demand(met.dual_bound <= found + slack, "a dual bound is above its value")
    _demand(fit.objective <= met.value + slack, "the objective is above the surrogate's minimum")
    # What a bound gives up for rounding depends on the engine, and on the point from which it begins.
    dual_slack = slack + float(allowance(problem.n_samples, problem.null_objective))
    engine = _engine_for(problem)
    point = engine.evaluate([(met.beta, met.intercept)])[0]
    (again,) = engine.minimise([met.active], [point])
    if not met.dual_bound <= again.dual_bound + dual_slack:
        # From that point the kernel may stand still: begin at least squares.
        engine.reset()
        (other,) = engine.minimise([met.active])
        again = max(again, other, key=lambda minimum: minimum.dual_bound)
    if not problem.data.in_memory:
        # Passes see columns that nearly cancel less sharply: the minimum is known between these two.
        dual_slack += max(again.value - again.dual_bound, 0.0)
    dual = Check("surrogate's dual bound", met.dual_bound, again.dual_bound, dual_slack, is_limit=True)
    _demand(dual.holds, f"the dual bound is {again.dual_bound!r}, not {met.dual_bound!r}")
    return [value, dual]


def _verify_guarantee(
    fit: Fit, problem: Problem, objective: Check, checks: list[Check], rests: list[str]
) -> float:
    """Enumerate again what the guarantee rests on; returns the bound that follows."""
    assert fit.guarantee is not None
    n, value = problem.data.outcomes.n_weighted, 0.0
    # It is n / k, or 1 where all subsets were enumerated; more where rounding has taken from bounds.
    first = min(max(math.ceil(n / fit.guarantee * (1.0 - AGREEMENT_TOL)), 1), n)
    for k in range(first, n + 1):
        search = Search(_engine_for(problem))
        enumeration = Enumeration(search, k, skip=True)
        if enumeration.total > MAX_REPEATED:
            many = write_count(enumeration.total, "active set")
            rests.append(f"The guarantee rests on an enumeration of {many}, which was not repeated.")
            return value
        enumeration.run()
        _demand(search.guarantee is not None, "the guarantee does not follow: a surrogate was not minimised")
        assert search.guarantee is not None
        ratio, least = search.guarantee
        value = max(value, search.lower_bound)
        slack = objective.allowance * (1.0 + ratio)
        limit = Check(
            "objective under the guarantee", fit.objective, fit.guarantee * least, slack, is_limit=True
        )
        if limit.holds or ratio == 1.0:
            break
    _demand(limit.holds, f"the guarantee {fit.guarantee:g} does not follow")
    checks.append(limit)
    return value


def _engine_for(problem: Problem) -> Engine:
    return RowsEngine(problem) if problem.data.in_memory else PassEngine(problem)


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise VerificationError(otherwise)
