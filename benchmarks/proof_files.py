"""Proof files: a stated sample is written and checked, with the times of search and check side by side.

    python benchmarks/proof_files.py --csv proofs.csv > docs/benchmarks/proof_files.txt

One core, kernels warm; seconds are those of the processor. The sample: the first instance of every setting of
the paper's grid with noise that is proved; all instances of the library (`rectifit.instances`) that are not
of this grid, real data among them; and some of both kinds under constraints. Rows are kept in the file of
--csv, and what is there is not measured again. `plain` is the search without a file, `search` with one,
without the check that every file goes through before it gets its name; `check` is the independent checker,
and `ratio` check over the longer of the two searches.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from common import console, table_of
from scipy.optimize import LinearConstraint
from threadpoolctl import threadpool_limits

from rectifit import __version__, check_proof, solve
from rectifit.datasets import make_relu
from rectifit.experiments.grid import Task, paper_grid
from rectifit.instances import list_instances, load_instance
from rectifit.instances.families import Samples
from rectifit.instances.real import MROZ, load

# A check may take so many times the search.
TARGET_RATIO = 20.0


class Case(NamedTuple):
    """Data, how they are drawn, whether there is an intercept, the gap to be proved, and constraints."""

    name: str
    draw: Callable[[], Samples]
    fit_intercept: bool
    gap: float
    given: Mapping[str, Any] = {}


def of_grid(task: Task) -> Case:
    setting = task.setting
    name = f"p={setting.p}, noise {setting.noise:g}, sparsity {setting.sparsity:g}"

    def draw() -> Samples:
        found = task.draw()
        return found.X, found.y

    return Case(name, draw, False, 1e-4)


def of_library(name: str) -> Case:
    def draw() -> Samples:
        found = load_instance(name)
        return found.X, found.y

    return Case(name, draw, load_instance(name).fit_intercept, 1e-2)


def constrained() -> Iterator[Case]:
    """Signs, bounds and an order, with an intercept and without."""
    names = MROZ.regressors
    signs = {"educ": (0.0, np.inf), "kidslt6": (-np.inf, 0.0), "nwifeinc": (-np.inf, 0.0)}
    bounds = {f"x{names.index(name)}": pair for name, pair in signs.items()}
    yield Case("mroz hours, three signs", lambda: load(MROZ), True, 1e-2, {"bounds": bounds})
    kinds: dict[str, Mapping[str, Any]] = {
        "all >= 0": {"positive": True},
        "in a box": {"bounds": (-1.0, 2.0)},
        "increasing": {"constraints": LinearConstraint(np.diff(np.eye(5), axis=0), 0.0, np.inf)},
    }
    for name, given in kinds.items():
        for fit_intercept in (False, True):
            kind = "an" if fit_intercept else "no"
            yield Case(f"p=5, {kind} intercept, {name}", small, fit_intercept, 1e-2, given)


def small() -> Samples:
    X, y, *_ = make_relu(200, 5, noise=0.32, random_state=100)
    return X, y


def cases(n_instances: int, is_quick: bool) -> Iterator[Case]:
    """The sample."""
    seen = set()
    for task in paper_grid(n_instances, (10, 20) if is_quick else (10, 20, 50)):
        setting = task.setting
        if setting.noise > 0.0 and setting.is_provable and task.instance_key not in seen:
            seen.add(task.instance_key)
            yield of_grid(task)
    for name in list_instances():
        if not is_quick and not name.startswith(("paper", "realizable")):
            yield of_library(name)
    yield from constrained()


class Row(NamedTuple):
    """What was measured of one case."""

    name: str
    status: str
    plain: float
    search: float
    check: float
    n_nodes: int
    size: int
    gap: float


def measure(case: Case, limit: float, folder: str) -> Row:
    (X, y), file = case.draw(), Path(folder) / "p.rproof"
    fit = solve(X, y, fit_intercept=case.fit_intercept, **case.given)
    started = time.process_time()
    fit.certify(target_gap=case.gap, time_limit=limit, n_jobs=1)
    plain, started = time.process_time() - started, time.process_time()
    certificate = fit.certify(target_gap=case.gap, time_limit=limit, n_jobs=1, proof=file)
    search, started = time.process_time() - started, time.process_time()
    checked = check_proof(file, X, y)
    check = time.process_time() - started
    return Row(
        case.name,
        certificate.status,
        plain,
        max(search - check, 0.0),
        check,
        checked.n_nodes,
        file.stat().st_size,
        checked.gap,
    )


def read(file: Path) -> list[Row]:
    """What was measured before."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        kinds = [str, str, float, float, float, int, int, float]
        return [Row(*(kind(x) for kind, x in zip(kinds, line, strict=True))) for line in csv.reader(lines)]


def run(chosen: list[Case], file: Path, limit: float) -> None:
    known = {row.name for row in read(file)}
    todo = [case for case in chosen if case.name not in known]
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        # Kernels of both searches are compiled before anything is measured.
        for case in (chosen[0], chosen[-1]) if todo else ():
            measure(case, 5.0, folder)
        for case in todo:
            with file.open("a", newline="") as lines:
                csv.writer(lines).writerow(measure(case, limit, folder))
    show([row for row in read(file) if row.name in {case.name for case in chosen}], limit)


def show(rows: list[Row], limit: float) -> None:
    console.print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    console.print(f"rectifit {__version__}, numpy {version('numpy')}\n")
    table = table_of(
        "Proof files, written and checked",
        *("data", "proved", "plain s", "search s", "check s", "ratio", "nodes", "KB", "checked gap"),
    )
    # What is left of a short search when the check is subtracted is not exact.
    ratios = [row.check / max(row.search, row.plain, 1e-3) for row in rows]
    for row, ratio in zip(rows, ratios, strict=True):
        table.add_row(
            row.name,
            "yes" if row.status == "optimal" else "bound",
            f"{row.plain:.3f}",
            f"{row.search:.3f}",
            f"{row.check:.3f}",
            f"{ratio:.2f}",
            f"{row.n_nodes:,}",
            f"{row.size / 1000:,.0f}",
            f"{row.gap:.2g}",
        )
    console.print(table)
    console.print(
        f"{len(rows)} proofs, all accepted. Check over search: median {median(ratios):.2f}, worst "
        f"{max(ratios):.2f} (target: at most {TARGET_RATIO:g}).\n"
        f"proved: to the target gap of 1e-4 (grid) or 1e-2; bound: the search of {limit:g} seconds was "
        "interrupted, and the file proves its bound."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=1, help="of each setting of the grid; default: 1")
    parser.add_argument("--quick", action="store_true", help="leave out what takes longest")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of one search; default: 30")
    parser.add_argument("--csv", type=Path, required=True, help="file for one row per proof")
    given = parser.parse_args()
    run(list(cases(given.instances, given.quick)), given.csv, given.limit)
