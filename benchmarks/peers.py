"""Other solvers: the convex surrogate as a quadratic programme for general ones, and the whole for SCIP.

Each sample with a kink gets a variable s_i >= 0 with s_i >= u_i - c_i, and costs y_i^2 + 2 |y_i| s_i + s_i^2;
the active samples are one quadratic in the coefficients. Weights scale rows and outcomes by their square
roots.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rectifit.instances.exporting import make_programme


@dataclass(frozen=True)
class QuadraticProgramme:
    """minimise x'P x / 2 + q'x + constant over A x <= b, low <= x[:free] <= high, x[free:] >= 0."""

    P: Any
    q: np.ndarray
    A: Any
    b: np.ndarray
    free: int
    constant: float
    low: np.ndarray
    high: np.ndarray

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of all variables."""
        m = self.q.size - self.free
        return np.append(self.low, np.zeros(m)), np.append(self.high, np.full(m, np.inf))


@dataclass(frozen=True)
class PeerResult:
    """Coefficients (intercept last), the solver's objective, and seconds with and without its set-up."""

    coefficients: np.ndarray
    objective: float
    seconds: float
    solve_seconds: float


def sorting_sets(y: np.ndarray, n_splits: int = 10) -> np.ndarray:
    """The active sets of the sorting method, one per line, without the empty one."""
    rank = np.argsort(np.argsort(y, kind="stable"), kind="stable")
    return np.array([(rank >= t * len(y) // n_splits) & (y > 0) for t in range(n_splits)])


def as_programme(
    X, y, active, *, sample_weight=None, fit_intercept=True, alpha=0.0, constraints=None
) -> QuadraticProgramme:
    rows = np.column_stack([X, np.ones(len(y))]) if fit_intercept else np.asarray(X, dtype=float)
    if sample_weight is not None:
        rows = rows * np.sqrt(sample_weight)[:, None]
        y = y * np.sqrt(sample_weight)
    n_columns = rows.shape[1]
    active = active & (y > 0)
    kinked, on = rows[~active], rows[active]
    m = kinked.shape[0]
    penalty = np.full(n_columns, alpha)
    penalty[X.shape[1] :] = 0.0
    quadratic = 2.0 * (on.T @ on + np.diag(penalty))
    A, b = sp.hstack([sp.csc_matrix(kinked), -sp.eye(m)], format="csc"), 2.0 * np.maximum(y[~active], 0.0)
    low, high = (np.full(n_columns, end) for end in (-np.inf, np.inf))
    if constraints is not None:
        p = X.shape[1]
        low[:p], high[:p] = constraints.low, constraints.high
        more = np.vstack([constraints.A, -constraints.A])
        ends = np.append(constraints.most, -constraints.least)
        more, ends = more[np.isfinite(ends)], ends[np.isfinite(ends)]
        A = sp.vstack([A, sp.hstack([more, sp.csc_matrix((len(more), n_columns - p + m))])], format="csc")
        b = np.append(b, ends)
    return QuadraticProgramme(
        P=sp.block_diag([quadratic, 2.0 * sp.eye(m)], format="csc"),
        q=np.concatenate([-2.0 * on.T @ y[active], 2.0 * np.abs(y[~active])]),
        A=A,
        b=b,
        free=n_columns,
        constant=float(y @ y),
        low=low,
        high=high,
    )


def solve_piqp(programme: QuadraticProgramme, tolerance: float = 1e-9) -> PeerResult:
    import piqp

    started = time.perf_counter()
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = tolerance
    solver.setup(
        programme.P,
        programme.q,
        None,
        None,
        programme.A,
        np.full(programme.b.size, -np.inf),
        programme.b,
        *programme.ends,
    )
    ready = time.perf_counter()
    solver.solve()
    return _result(programme, np.array(solver.result.x), started, ready)


def solve_clarabel(programme: QuadraticProgramme, tolerance: float = 1e-9) -> PeerResult:
    import clarabel

    low, high = programme.ends
    identity = sp.eye(low.size, format="csc")
    above, below = np.isfinite(low), np.isfinite(high)
    A = sp.vstack([programme.A, -identity[above], identity[below]], format="csc")
    b = np.concatenate([programme.b, -low[above], high[below]])
    P = sp.triu(programme.P, format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    started = time.perf_counter()
    solver = clarabel.DefaultSolver(P, programme.q, A, b, [clarabel.NonnegativeConeT(b.size)], settings)
    ready = time.perf_counter()
    solution = solver.solve()
    return _result(programme, np.array(solution.x), started, ready)


def solve_osqp(programme: QuadraticProgramme, tolerance: float = 1e-6) -> PeerResult:
    import osqp

    low, high = programme.ends
    bounded = np.isfinite(low) | np.isfinite(high)
    A = sp.vstack([programme.A, sp.eye(low.size, format="csc")[bounded]], format="csc")
    lower = np.concatenate([np.full(programme.b.size, -np.inf), low[bounded]])
    upper = np.concatenate([programme.b, high[bounded]])
    P = sp.triu(programme.P, format="csc")
    started = time.perf_counter()
    solver = osqp.OSQP()
    # A first-order method: it is given a looser tolerance, and its polishing step.
    solver.setup(
        P,
        programme.q,
        A,
        lower,
        upper,
        verbose=False,
        eps_abs=tolerance,
        eps_rel=tolerance,
        polishing=True,
        max_iter=20_000,
    )
    ready = time.perf_counter()
    result = solver.solve()
    return _result(programme, np.array(result.x), started, ready)


PEERS = {"PIQP": solve_piqp, "OSQP": solve_osqp, "Clarabel": solve_clarabel}


def _result(programme: QuadraticProgramme, x: np.ndarray, started: float, ready: float) -> PeerResult:
    finished = time.perf_counter()
    objective = float(0.5 * x @ (programme.P @ x) + programme.q @ x + programme.constant)
    return PeerResult(x[: programme.free], objective, finished - started, finished - ready)


class Proved(NamedTuple):
    """What a general global solver found."""

    objective: float
    lower_bound: float
    seconds: float
    coefficients: np.ndarray | None = None
    n_nodes: int = 0

    @property
    def gap(self) -> float:
        return max(self.objective - self.lower_bound, 0.0) / self.objective


def prove_by_scip(
    X: np.ndarray,
    y: np.ndarray,
    limit: float,
    known: float | None = None,
    bounds: np.ndarray | None = None,
    fit_intercept: bool = False,
) -> Proved:
    """The whole problem by SCIP, up to a gap of 1e-4, with outcomes of size 1 inside.

    A known objective spares SCIP the search for a good solution. bounds has two columns.
    """
    scale = float(np.abs(y).max())
    model, variables = make_programme(
        X, y / scale, fit_intercept=fit_intercept, bounds=None if bounds is None else bounds / scale
    )
    model.setParam("limits/time", limit)
    model.setParam("limits/gap", 1e-4)
    if known is not None:
        model.setObjlimit(known / scale**2 * (1 + 1e-6))
    started = time.perf_counter()
    model.optimize()
    seconds = time.perf_counter() - started
    coefficients = None
    if known is None and model.getNSols() > 0:
        coefficients = np.array([model.getVal(one) for one in variables]) * scale
        u = X @ coefficients[: X.shape[1]] + (coefficients[-1] if fit_intercept else 0.0)
        known = float(np.square(np.maximum(u, 0.0) - y).sum())
    return Proved(
        np.inf if known is None else known,
        max(model.getDualbound(), 0.0) * scale**2,
        seconds,
        coefficients,
        model.getNTotalNodes(),
    )
