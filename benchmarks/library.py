"""The library of instances: digests of new instances, and other solvers' rows for the profile.

    python benchmarks/library.py digests
    python benchmarks/library.py profile --out docs/instances

Solvers are those of peers.py and trainers.py, called as `rectifit.instances.run_instances` calls a solver.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import console
from peers import prove_by_scip
from trainers import N_STARTS, Trained, adam, in_standard_units, least_squares_from, random_start

from rectifit.instances import (
    Answer,
    library,
    list_instances,
    read_results,
    run_instances,
    tabulate_profile,
)
from rectifit.instances.catalogue import CATALOGUE
from rectifit.instances.results import shipped_results
from rectifit.row_file import RowFile

DATA = Path(library.__file__).parent / "data"
# The instances of the profile: those with an intercept and at most so many samples.
MAX_SAMPLES = 1000
TIME_LIMIT = 15.0


def in_user_units(X: np.ndarray, y: np.ndarray, trained: Trained) -> Answer:
    """Coefficients of standardised columns and outcomes of length 1 on the scale of the data."""
    spread = X.std(axis=0)
    beta = np.linalg.norm(y) * trained.coefficients[:-1] / np.where(spread > 0, spread, 1.0)
    intercept = float(np.linalg.norm(y) * trained.coefficients[-1] - X.mean(axis=0) @ beta)
    return Answer(beta, intercept)


def scip(X: np.ndarray, y: np.ndarray, *, fit_intercept: bool, time_limit: float) -> Answer:
    found = prove_by_scip(X, y, time_limit, fit_intercept=fit_intercept)
    if found.coefficients is None:
        return Answer(np.full(X.shape[1], np.nan), lower_bound=found.lower_bound, n_nodes=found.n_nodes)
    beta, intercept = np.split(found.coefficients, [X.shape[1]])
    return Answer(beta, float(intercept.sum()), found.lower_bound, n_nodes=found.n_nodes)


def least_squares(X: np.ndarray, y: np.ndarray, *, fit_intercept: bool, time_limit: float) -> Answer:
    """SciPy from random starts, as many as there is time for."""
    assert fit_intercept
    until, rng = time.perf_counter() + time_limit, np.random.default_rng(0)
    A, target = in_standard_units(X, y)
    found: list[Trained] = []
    while not found or (len(found) < N_STARTS and time.perf_counter() < until):
        found.append(least_squares_from(A, target, random_start(A, rng), "2-point"))
    return in_user_units(X, y, min(found, key=lambda trained: trained.objective))


def adam_steps(X: np.ndarray, y: np.ndarray, *, fit_intercept: bool, time_limit: float) -> Answer:  # noqa: ARG001
    """2000 steps; they take less than any limit here."""
    assert fit_intercept
    return in_user_units(X, y, adam(*in_standard_units(X, y)))


SOLVERS: dict[str, str | Callable[..., Answer]] = {
    "auto": "auto",
    f"least_squares, {N_STARTS} starts": least_squares,
    "Adam, 2000 steps": adam_steps,
    "SCIP": scip,
}


def write_digests() -> None:
    """Digests of all instances; those that are known must not change."""
    file = RowFile(DATA / library.DIGESTS, library.Facts)
    known = {facts.name: facts for facts in file.read()}
    rows = []
    for entry in CATALOGUE.values():
        X, y = entry.draw()
        share = round(float((y == 0.0).mean()), 4)
        facts = library.Facts(entry.name, library.digest_of(X, y), *X.shape, share)
        if known.get(entry.name, facts) != facts:
            raise SystemExit(f"the data of {entry.name} have changed; give them another name")
        rows.append(facts)
    file.path.unlink(missing_ok=True)
    file.repair()
    file.append(rows)


def profile(folder: Path, only: str) -> None:
    """Rows of all solvers; what the file has is not run again."""
    names = list_instances(fit_intercept=True, max_samples=MAX_SAMPLES)
    for label, solver in SOLVERS.items():
        if only not in label:
            continue
        rows = run_instances(solver, names, folder / "profile.csv", solver_name=label, time_limit=TIME_LIMIT)
        for row in rows:
            console.print(f"{label}, {row.instance}: gap {row.gap:.2%}, {row.cpu_seconds:.2f} s")
    shares = tabulate_profile([*shipped_results(), *read_results(folder / "profile.csv")])
    console.print(shares.to_grid(console.width))
    console.print(f"{shares.title}. {shares.note}", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("digests", "profile"))
    parser.add_argument("--out", type=Path, default=Path(), help="folder of profile.csv")
    parser.add_argument("--only", default="", help="only solvers with this text in their name")
    given = parser.parse_args()
    if given.task == "digests":
        write_digests()
    else:
        profile(given.out, given.only)


if __name__ == "__main__":
    main()
