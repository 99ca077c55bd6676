"""Checks a proof file against the data that it is about."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.checking.reading import Claim, ProofError, data_digest, open_proof
from rectifit.checking.rows import distinct_rows, objective_above
from rectifit.checking.trees import check_trees

__all__ = ["CheckedProof", "check_proof"]

# By what share of their terms coefficients may exceed constraints.
ALLOWED_TOL = 1e-8


@dataclass(frozen=True)
class CheckedProof:
    """What a proof file proves.

    Attributes
    ----------
    lower_bound : no coefficients have a smaller objective
    objective : of the coefficients in the file, rounded up
    n_nodes : nodes of the tree, all of which were checked
    seconds : that took
    search_seconds : that the search took, as the file says
    n_samples, n_features, fit_intercept, alpha, floor, is_weighted, digest : the problem that it is about
    constraints : what coefficients have to satisfy: of each, pairs of a coefficient and its factor, and two
        ends, None where there is none
    longest : None if the bound is proved for all coefficients, otherwise it is for those with a root of
        sum w u^2 + alpha |beta|^2 up to this, u = X beta + intercept; far beyond y, and needed only where
        samples are off by less than rounding in directions that go on without end
    """

    lower_bound: float
    objective: float
    n_nodes: int
    seconds: float
    search_seconds: float
    n_samples: int
    n_features: int
    fit_intercept: bool
    alpha: float
    floor: float
    is_weighted: bool
    digest: str
    constraints: tuple[Any, ...]
    longest: float | None

    @property
    def gap(self) -> float:
        """(objective - lower_bound) / objective; 0 when both are 0."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0.0 else 0.0

    def __str__(self) -> str:
        """One sentence: what is proved, for which data."""
        kind = f"{'an' if self.fit_intercept else 'no'} intercept"
        parts = [kind, "weights"] if self.is_weighted else [kind]
        parts += [f"the ridge {self.alpha:g}"] if self.alpha else []
        parts += [f"the floor {self.floor:g}"] if self.floor else []
        # Beside a bound of 0, a share of the objective says nothing.
        share, room = 100.0 * max(self.gap, 0.0), max(self.objective - self.lower_bound, 0.0)
        more = f"{share:.3g} %" if self.lower_bound > 0.0 else f"{room:.3g}"
        n, which = len(self.constraints), ""
        if n > 0:
            which = f" that satisfy the {f'{n} constraints' if n > 1 else 'constraint'} of the file"
        if self.longest is not None:
            which += f" with predictions before clipping of length up to {self.longest:.3g}"
        return (
            f"Proved: with {', '.join(parts)}, no coefficients{which} have an objective below "
            f"{self.lower_bound:.10g} on these {self.n_samples:,} samples of {self.n_features:,} features "
            f"(SHA-256 {self.digest[:12]}), and those in the file, with {self.objective:.10g}, are at most "
            f"{more} above the best."
        )


def check_proof(file: str | Path, X: Any, y: Any, *, sample_weight: Any = None) -> CheckedProof:
    """Derive a proof again, independently of the search that wrote it, and in rigorous arithmetic.

    Parameters
    ----------
    file : path of a proof file, as `certify(..., proof=file)` writes it
    X, y, sample_weight : the data that it is about

    Returns
    -------
    CheckedProof

    Raises
    ------
    ProofError
        In one sentence, for anything in the file that does not follow from the data.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rectifit import certify, check_proof
    >>> from rectifit.datasets import make_relu
    >>> X, y, *_ = make_relu(60, 2, noise=0.3, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     certificate = certify(X, y, proof=Path(folder) / "p.rproof")
    ...     checked = check_proof(Path(folder) / "p.rproof", X, y)
    >>> checked.gap <= 1.001e-4, checked.lower_bound <= certificate.lower_bound
    (True, True)
    """
    began = time.perf_counter()
    claim, reader = open_proof(file)
    X, y, weight = _arrays(X, y, sample_weight)
    _match(claim, X, y, weight)
    # What is not finite satisfies no comparison below, and so proves nothing.
    with np.errstate(all="ignore"):
        _check_allowed(claim, X, y)
        objective = objective_above(claim, X, y, weight)
        if not claim.lower_bound <= objective:
            raise ProofError("the file states a lower bound above the objective of its own coefficients")
        about = (claim.fit_intercept, claim.alpha, X, y, weight, claim.floor, claim.lower_bound)
        n_nodes, longest = check_trees(claim, distinct_rows(*about), reader)
    return CheckedProof(
        claim.lower_bound,
        objective,
        n_nodes,
        time.perf_counter() - began,
        claim.seconds,
        claim.n_samples,
        claim.n_features,
        claim.fit_intercept,
        claim.alpha,
        claim.floor,
        claim.weighted,
        claim.digest,
        claim.constraints,
        None if math.isinf(longest) else longest,
    )


def _check_allowed(claim: Claim, X: Matrix, y: Vector) -> None:
    """Whether the coefficients in the file satisfy its constraints, up to the rounding of their terms.

    Coefficients count as no smaller than those with which a column reaches the largest outcome.
    """
    rows, low, high = claim.allowed
    b = np.append(claim.beta, claim.intercept)[: claim.n_columns]
    reach = np.append(np.abs(X).max(axis=0, initial=0.0), 1.0)[: claim.n_columns]
    unit = np.abs(y - claim.floor).max(initial=0.0) / np.where(reach > 0.0, reach, 1.0)
    value, size = rows @ b, np.abs(rows) @ np.maximum(np.abs(b), unit)
    room = ALLOWED_TOL * (size + np.minimum(np.abs(low), np.abs(high)))
    if not ((value >= low - room) & (value <= high + room)).all():
        raise ProofError("the coefficients in the file do not satisfy its constraints")


def _arrays(X: Any, y: Any, weight: Any) -> tuple[Matrix, Vector, Vector | None]:
    """The data as float64, in memory."""
    try:
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProofError("the data are not numbers") from None
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if X.ndim != 2 or y.shape != X.shape[:1] or (weight is not None and weight.shape != y.shape):
        raise ProofError("the data are not a matrix X with one outcome, and one weight, for each of its rows")
    arrays = (X, y) if weight is None else (X, y, weight)
    if not all(np.isfinite(array).all() for array in arrays) or (weight is not None and (weight < 0.0).any()):
        raise ProofError("the data have missing, infinite or negative entries where these are not allowed")
    return X, y, weight


def _match(claim: Claim, X: Matrix, y: Vector, weight: Vector | None) -> None:
    if X.shape != (claim.n_samples, claim.n_features):
        raise ProofError(
            f"the file is about {claim.n_samples} samples of {claim.n_features} features, and the data have "
            f"{X.shape[0]} of {X.shape[1]}"
        )
    if claim.weighted != (weight is not None):
        raise ProofError(f"the file is about data {'with' if claim.weighted else 'without'} weights")
    if data_digest(X, y, weight) != claim.digest:
        raise ProofError("the data are not those that the file is about: their SHA-256 differs")
