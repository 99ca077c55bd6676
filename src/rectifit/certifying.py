"""Proofs about a fit: the model is the fit's own, and arguments must not contradict it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rectifit.certificate.proof import TARGET_GAP
from rectifit.certificate.recording import ProofFile
from rectifit.certificate.trivial_bound import floor_bound
from rectifit.checking import check_proof
from rectifit.checking.reading import Claim, data_digest
from rectifit.checking.rows import MAX_SAMPLES
from rectifit.checks import check_number
from rectifit.constraints import Constraints
from rectifit.data.base import Data
from rectifit.data.problem import Problem
from rectifit.fit import Certificate, Fit, Stop
from rectifit.methods.exact import Exact
from rectifit.running import RunOptions, checked_floor, run_stages, warn_if_dead
from rectifit.surrogate.engine import Coefficients
from rectifit.tolerances import AGREEMENT_TOL, FLOAT64_EPS, SUM_TOL

__all__ = ["Proved", "inherited_problem", "inherited_weights", "prove"]

# What to do about an argument that contradicts the fit in question.
ADVICE = "leave it out, or pass the coefficients instead of the fit"


# Share of the objective of the zero function by which a file states less: eight rounding errors per sample.
ROUNDING_PER_SAMPLE = 8.0 * FLOAT64_EPS


class Proved(NamedTuple):
    """The best fit known at the end of a search for a proof, and what is proved about it."""

    fit: Fit
    certificate: Certificate


def inherited_weights(fit: Fit | None, y: Any, sample_weight: Any) -> Any:
    """The weights given, or those of the fit in question, which must not contradict each other."""
    if fit is None or (y is None and sample_weight is None):
        return sample_weight
    if not fit.is_weighted:
        if sample_weight is not None:
            raise ValueError(f"sample_weight is given, but the fit in question has no weights; {ADVICE}")
        return None
    carried = None if fit.problem is None or not fit.problem.data.in_memory else fit.problem.sample_weight
    if carried is not None and np.shape(y)[:1] != carried.shape:
        carried = None
    if sample_weight is None:
        if carried is None:
            raise ValueError(
                "sample_weight is None, but the fit in question has weights, which it does not carry for "
                "these samples; pass them"
            )
        return carried
    if carried is not None and not np.array_equal(np.asarray(sample_weight, dtype=np.float64), carried):
        raise ValueError(f"sample_weight differs from the weights of the fit in question; {ADVICE}")
    return sample_weight


def inherited_problem(
    data: Data, fit: Fit | None, fit_intercept: bool | None, alpha: Any, known: Constraints | None
) -> Problem:
    """The problem of the fit in question on some data, or the one that is given."""
    if fit is None:
        return Problem(data, fit_intercept is not False, 0.0 if alpha is None else alpha, known)
    for name, given, own in (
        ("fit_intercept", fit_intercept, fit.fit_intercept),
        ("alpha", alpha, fit.alpha),
    ):
        if given is not None and given != own:
            raise ValueError(f"{name} is {given!r}, but the fit in question has {own!r}; {ADVICE}")
    if known is not None and not known.same_as(fit.constraints):
        raise ValueError(f"the constraints given differ from those of the fit in question; {ADVICE}")
    return Problem(data, fit.fit_intercept, fit.alpha, fit.constraints)


def prove(
    problem: Problem,
    fit: Fit | None,
    at: Coefficients | None,
    *,
    floor: float | None = None,
    time_limit: float | None,
    target_gap: float,
    box: float | None,
    memory_limit: float,
    n_jobs: int | None,
    verbose: int,
    proof: str | Path | None = None,
) -> Proved:
    """Search for a proof about a fit, or about coefficients, or about the best fit that is found.

    The proof is written to a file if `proof` is a path.
    """
    problem.loaded("a proof is asked for")
    file = None if proof is None else _proof_file(problem, proof)
    known_floor = _floor_of(problem, fit, floor)
    if at is not None:
        violation = problem.violation(at[0])
        if violation is not None:
            raise ValueError(f"solution_or_beta does not satisfy the constraints: {violation}")
    stage = Exact(
        None if box is None else check_number(box, "box", above=0.0),
        int(check_number(memory_limit, "memory_limit", above=0.0)),
        file,
    )
    options = RunOptions.checked(time_limit, target_gap, None, n_jobs, verbose)
    try:
        found = run_stages(problem, "exact", [("exact", stage)], at, known_floor, options)
        if file is not None:
            _finish(file, problem, found)
    finally:
        if file is not None:
            file.discard()
    if fit is not None and floor is None and fit.floor_is_estimated:
        found = replace(found, certificate=replace(found.certificate, floor=known_floor))
    warn_if_dead(found, n_calls=4)
    ended_by = {Stop.TIME_LIMIT: "time_limit", Stop.INTERRUPTED: "interrupted"}.get(found.stopped)
    if found.certificate.status == "bound_only" and ended_by is not None:
        # It ended before the search for a proof began.
        found = replace(found, certificate=replace(found.certificate, status=ended_by))
    asked_about = None
    if at is not None:
        asked_about = problem.shifted(known_floor).objective(at[0], at[1] - known_floor)
        # Better by no more than rounding is the same fit.
        rounding = found.certificate.rounding
        if not asked_about > found.objective * (1.0 + AGREEMENT_TOL) + rounding:
            asked_about = None
    proof_file = None if file is None else file.path
    return Proved(found, replace(found.certificate, given_objective=asked_about, proof_file=proof_file))


def _proof_file(problem: Problem, path: str | Path) -> ProofFile:
    """Where a proof is to be written, if proofs of this kind can be."""
    if problem.n_samples > MAX_SAMPLES:
        raise ValueError(
            f"proof is given, but there are {problem.n_samples:,} samples; proof files can be about up to "
            f"{MAX_SAMPLES:,}"
        )
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(
            f"proof is {str(path)!r}, which is a folder or a device; it must be the name of a file"
        )
    return ProofFile(path)


def _finish(file: ProofFile, problem: Problem, found: Fit) -> None:
    """Complete a proof file, and keep it if the checker accepts it."""
    data, bound = problem.loaded(), file.bound
    X, y = data.dense().astype(np.float64), data.y
    shifted = problem.shifted(found.floor)
    # The allowances for rounding of search and checker differ, by less than this.
    room = file.margin * min(found.objective - bound, TARGET_GAP * found.objective)
    room += (SUM_TOL + ROUNDING_PER_SAMPLE * problem.n_samples) * shifted.null_objective
    bound -= room
    bound = max(bound, floor_bound(shifted) - SUM_TOL * shifted.null_objective, 0.0)
    if not file.has_begun:
        # What samples with y <= 0 cost is all that is proved, and needs no tree.
        file.begin({}, problem.n_columns)
    claim = Claim(
        n_samples=problem.n_samples,
        n_features=problem.n_features,
        fit_intercept=problem.fit_intercept,
        weighted=problem.is_weighted,
        alpha=float(problem.alpha),
        floor=float(found.floor),
        digest=data_digest(X, y, data.sample_weight),
        beta=tuple(map(float, found.beta)),
        intercept=float(found.intercept),
        lower_bound=float(bound),
        reserve=0.5 * room,
        seconds=float(found.certificate.seconds),
        setting=file.setting,
        constraints=tuple(file.constraints),
    )
    check_proof(file.finish(claim), X, y, sample_weight=data.sample_weight)
    file.keep()


def _floor_of(problem: Problem, fit: Fit | None, floor: float | None) -> float:
    """The floor that a proof is about: the one given, or that of the fit."""
    own = 0.0 if fit is None else fit.floor
    if fit is not None and not fit.floor_is_estimated and floor not in (None, own):
        raise ValueError(f"floor is {floor!r}, but the fit in question has {own!r}; {ADVICE}")
    known = checked_floor(own if floor is None else floor, problem)
    if known is None:
        raise ValueError("floor is 'estimate'; a proof is about one floor and needs a number")
    return known
