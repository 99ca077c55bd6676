"""Proof files: a stated sample is written and checked, with the times of search and check side by side.

    python benchmarks/proof_files.py --csv proofs.csv > docs/benchmarks/proof_files.txt

One core, kernels warm; seconds are those of the processor. The sample: the first instances of the paper's
grid with noise, for some of its sparsities; real data with an intercept; and constructed ones. Rows are kept
in the file of --csv, and what is there is not measured again. `plain` is the
search without a file, `search` with one, without the check that every file goes through before it gets its
name; `check` is the independent checker, and `ratio` check over search.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import NamedTuple

from common import console, table_of
from threadpoolctl import threadpool_limits

from rectifit import __version__, check_proof, solve
from rectifit.experiments.grid import Task, paper_grid
from rectifit.instances.families import Samples, dummies, gaussian, low_signal, student
from rectifit.instances.real import MROZ, load

# A check may take so many times the search.
TARGET_RATIO = 20.0
# Of the grid: every noise, with these sparsities for each p.
SPARSITIES = {10: (0.1, 0.5, 0.9), 20: (0.5,), 50: (0.5,)}


class Case(NamedTuple):
    """Data, how they are drawn, whether there is an intercept, and the gap to be proved."""

    name: str
    draw: Callable[[], Samples]
    fit_intercept: bool
    gap: float


def of_grid(task: Task) -> Case:
    setting = task.setting
    name = f"p={setting.p}, noise {setting.noise:g}, sparsity {setting.sparsity:g}"

    def draw() -> Samples:
        found = task.draw()
        return found.X, found.y

    return Case(name, draw, False, 1e-4)


def cases(n_instances: int, is_quick: bool) -> Iterator[Case]:
    """The sample."""
    yield Case(MROZ.name, lambda: load(MROZ), True, 1e-3)
    seen = set()
    for task in paper_grid(n_instances, (10, 20) if is_quick else (10, 20, 50)):
        setting = task.setting
        if setting.noise == 0.0 or not setting.is_provable or setting.sparsity not in SPARSITIES[setting.p]:
            continue
        if task.instance_key not in seen:
            seen.add(task.instance_key)
            yield of_grid(task)
    yield Case("low signal, q=5", lambda: low_signal(5, 100), True, 1e-2)
    yield Case("low signal, q=7", lambda: low_signal(7, 100), True, 1e-2)
    yield Case("unclipped, p=7, sigma=0.5", lambda: gaussian(500, 7, 0.5, 100), True, 1e-2)
    yield Case("heavy tails, q=7", lambda: student(1000, 7, 2.0, 100), True, 1e-2)
    yield Case("dummies, q=8", lambda: dummies(1000, 8, 0.5, 100), True, 1e-2)


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
    fit = solve(X, y, fit_intercept=case.fit_intercept)
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
    show([row for row in read(file) if row.name in {case.name for case in chosen}])


def show(rows: list[Row]) -> None:
    console.print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    console.print(f"rectifit {__version__}, numpy {version('numpy')}\n")
    table = table_of(
        "Proof files, written and checked",
        *("data", "proved", "plain s", "search s", "check s", "ratio", "nodes", "KB", "checked gap"),
    )
    ratios = [row.check / max(row.search, 1e-3) for row in rows]
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
        "proved: to the target gap of 1e-4 (grid), 1e-3 "
        "(real data) or 1e-2; bound: the search was interrupted, and the file proves its bound."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=1, help="of each setting of the grid; default: 1")
    parser.add_argument("--quick", action="store_true", help="leave out what takes longest")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of one search; default: 300")
    parser.add_argument("--csv", type=Path, required=True, help="file for one row per proof")
    given = parser.parse_args()
    run(list(cases(given.instances, given.quick)), given.csv, given.limit)
