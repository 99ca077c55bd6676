"""Proofs: seconds to prove a gap on many kinds of data, bounds on the way, threads, memory, and SCIP.

One core, kernels warm; the fit is made before and not counted. Targets in seconds are scaled by the
yardstick. For example

    python benchmarks/run.py proofs --tables proofs --seeds tune --only "low signal"
    python benchmarks/run.py proofs --tables proofs --jobs 8 --csv now.csv --baseline earlier.csv

The file for --baseline comes from the same command with PYTHONPATH pointing to the sources of an earlier
build.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

import numpy as np
from anytime import compare
from common import console, table_of
from instances import QUICK_TARGET, SEEDS, Instance, draw_all, export, kinds, read
from measure import MOMENTS, Record, measure_all, read_records, warm_up, write
from resources import memory, threads
from threadpoolctl import threadpool_limits

from rectifit import certify, solve
from rectifit.datasets import make_relu

# How long a proof may take, as a multiple of its target, before it is given up.
PATIENCE = 2.0
# A proof during which the processor did other work for more than this share is not a measurement.
BUSY_SHARE = 0.1
# Clocks of the system are no finer than this, in seconds.
BUSY_SECONDS = 0.01
TABLES = ("proofs", "carried", "scip", "threads", "memory")


@dataclass(frozen=True)
class Options:
    """What to measure, checked; `add_options` says what each is."""

    quick: bool
    tables: list[str]
    seeds: list[int]
    only: str
    limit: float
    jobs: int
    csv: Path | None
    resume: bool
    baseline: Path | None
    markdown: bool
    export: Path | None
    data: Path | None
    threads: list[int]
    memory_seconds: float

    @classmethod
    def of(cls, given: argparse.Namespace) -> Options:
        """Check what was given on the command line."""
        tables = given.tables.split(",")
        for name in tables:
            if name not in TABLES:
                raise ValueError(f"table is {name!r}; it must be one of {', '.join(TABLES)}")
        if given.csv is not None and given.csv.exists() and not given.resume:
            raise ValueError(f"{given.csv} exists; remove it, or go on with --resume")
        if given.baseline is not None and not given.baseline.exists():
            raise ValueError(f"{given.baseline}, the baseline, does not exist")
        if given.resume and given.csv is None:
            raise ValueError("--resume needs the file of --csv")
        values = {field.name: getattr(given, field.name) for field in fields(cls)}
        n_seeds = (1 if given.quick else 5) if given.n_seeds is None else given.n_seeds
        values["tables"], values["seeds"] = tables, list(SEEDS[given.seeds])[:n_seeds]
        values["threads"] = [int(count) for count in given.threads.split(",")]
        if given.memory_seconds is None:
            values["memory_seconds"] = 5.0 if given.quick else 60.0
        return cls(**values)

    def instances(self) -> list[Instance]:
        """The instances that were asked for."""
        if self.data is not None:
            drawn: Iterable[Instance] = read(self.data)
            seeds = {str(seed) for seed in self.seeds}
            found = [i for i in drawn if self._wants(i.kind, i.group, i.target) and i.seed in seeds]
        else:
            wanted = (kind for kind in kinds() if self._wants(kind.name, kind.group, kind.target))
            found = list(draw_all(wanted, self.seeds))
        if not found:
            raise SystemExit("no data set has these seeds and this name, and a target short enough")
        return found

    def _wants(self, kind: str, group: str, target: float) -> bool:
        return self.only in f"{group}: {kind}" and (target <= QUICK_TARGET or not self.quick)

    def limit_of(self, instance: Instance) -> float:
        """Reference seconds; bounds over time are compared up to the last moment, whatever the target."""
        until = 0.0 if self.csv is None and self.baseline is None else MOMENTS[-1]
        return min(max(PATIENCE * instance.target, until), self.limit)


def add_options(parser: argparse._ArgumentGroup) -> None:
    add = parser.add_argument
    add("--tables", default=",".join(TABLES), help="which of them, separated by commas; default: %(default)s")
    add("--seeds", choices=SEEDS, default="report", help="tune: 0 to 4; report: 100 to 104, the default")
    add("--n-seeds", type=int, help="how many of them; default: all, one with --quick")
    add("--only", default="", help="only data with this text in its group or name")
    add("--limit", type=float, default=math.inf, help="most reference seconds of one proof")
    add("--jobs", type=int, default=1, help="proofs at a time, each in a process of its own")
    add("--csv", type=Path, help="file for one row per proof, with the bounds after 5, 20 and 60 s")
    add("--resume", action="store_true", help="leave out what the file of --csv already has")
    add("--baseline", type=Path, help="such a file of an earlier build: print where bounds are worse")
    add("--markdown", action="store_true", help="print the rows for the documentation, too")
    add("--export", type=Path, help="write the data to this folder and end")
    add("--data", type=Path, help="read the data from a folder that --export wrote")
    add("--threads", default="1,2", help="numbers of threads to compare; default: %(default)s")
    add("--memory-seconds", type=float, help="how long memory is watched; default: 60, 5 with --quick")


def proofs(chosen: Options) -> None:
    instances = chosen.instances()
    if chosen.export is not None:
        console.print(f"{export(instances, chosen.export)} data sets are in {chosen.export}.")
        return
    order = {instance.key: position for position, instance in enumerate(instances)}
    earlier = read_records(chosen.csv) if chosen.csv is not None and chosen.csv.exists() else []
    done = [record for record in earlier if record.key in order]
    known = {record.key for record in done}
    work = [(instance, chosen.limit_of(instance)) for instance in instances if instance.key not in known]
    measured = measure_all(work, chosen.jobs)
    if chosen.csv is not None:
        measured = write(measured, chosen.csv)
    records = sorted([*done, *measured], key=lambda record: order[record.key])
    by_kind: dict[str, list[Record]] = {}
    for record in records:
        by_kind.setdefault(record.kind, []).append(record)
    for group in dict.fromkeys(record.group for record in records):
        print_group(group, {kind: rows for kind, rows in by_kind.items() if rows[0].group == group})
    print_data(by_kind)
    n_busy = sum(r.seconds - r.cpu_seconds > BUSY_SHARE * r.seconds + BUSY_SECONDS for r in records)
    console.print(
        f"closed: to the gap, within {PATIENCE:g} times the target or as long as the options say. on time: "
        "within the target, which\nis for the median. CPU s: median of what is closed. zeros: share of "
        "outcomes that are 0. ten largest: their share of sum y^2.\ncarried: gap of the bound that comes "
        f"with the fit. The processor was shared during {n_busy} of {len(records)} proofs.\n"
    )
    if chosen.markdown:
        console.print("\n".join(markdown_rows(by_kind)))
    if chosen.baseline is not None:
        compare(records, read_records(chosen.baseline))


def print_group(group: str, by_kind: dict[str, list[Record]]) -> None:
    table = table_of(
        f"Seconds to prove a gap, {group}",
        *("data", "sets", "gap", "closed", "on time", "median s", "worst s", "CPU s", "target", "nodes"),
        "worst gap left",
    )
    for kind, rows in by_kind.items():
        closed = [r for r in rows if r.is_closed]
        table.add_row(
            kind,
            str(len(rows)),
            f"{rows[0].gap:g}",
            str(len(closed)),
            str(sum(r.is_in_time for r in rows)),
            typical_seconds(rows),
            worst_seconds(rows),
            shown(median(r.cpu_seconds for r in closed)) if closed else "-",
            f"<= {median(r.target * r.scale for r in rows):.2f}",
            f"{max(r.n_nodes for r in rows):,}",
            f"{max(r.gap_left for r in rows):.2%}",
        )
    console.print(table)


def print_data(by_kind: dict[str, list[Record]]) -> None:
    table = table_of("The data: medians", "data", "n", "q", "zeros", "ten largest", "R^2", "fit s", "carried")
    for kind, rows in by_kind.items():
        table.add_row(
            kind,
            f"{rows[0].n:,}",
            str(rows[0].q),
            f"{median(r.zeros for r in rows):.0%}",
            f"{median(r.ten_largest for r in rows):.0%}",
            f"{median(r.r2 for r in rows):.2f}",
            f"{median(r.fit_seconds for r in rows):.3f}",
            f"{median(r.carried_gap for r in rows):.1%}",
        )
    console.print(table)


def typical_seconds(rows: list[Record]) -> str:
    """The median, in which what is still open counts as longer than anything."""
    middle = sorted(rows, key=lambda r: (not r.is_closed, r.seconds))[len(rows) // 2]
    return shown(middle.seconds) if middle.is_closed else "open"


def worst_seconds(rows: list[Record]) -> str:
    worst = max(rows, key=lambda r: (not r.is_closed, r.seconds))
    return shown(worst.seconds) if worst.is_closed else f"> {shown(worst.seconds)}"


def shown(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1.0 else f"{seconds:.1f}"


def markdown_rows(by_kind: dict[str, list[Record]]) -> list[str]:
    """A table for README and documentation, one row per kind."""
    lines = [
        "| data | samples | coefficients | zeros | R² | gap | proved | median s | worst s | worst gap left |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for kind, rows in by_kind.items():
        first, n_closed = rows[0], sum(r.is_closed for r in rows)
        cells = (
            kind,
            f"{first.n:,}",
            str(first.q),
            f"{median(r.zeros for r in rows):.0%}",
            f"{median(r.r2 for r in rows):.2f}",
            f"{first.gap:g}",
            f"{n_closed} of {len(rows)}",
            typical_seconds(rows),
            worst_seconds(rows),
            "" if n_closed == len(rows) else f"{max(r.gap_left for r in rows):.0%}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def carried(quick: bool) -> None:
    """The bound that comes with every fit of auto on the paper's instances."""
    table = table_of(
        "The bound that a fit by auto carries",
        *("data", "sets", "fit s", "bound s", "median gap", "worst gap", "gap <= 5 %"),
    )
    gaps = []
    for n, p in ((200, 10), (400, 20), (1000, 50)):
        for noise in (0.0, 0.032, 0.1):
            results = []
            for sparsity in (0.1, 0.25, 0.5, 0.75, 0.9):
                for seed in range(1 if quick else 4):
                    X, y, *_ = make_relu(n, p, noise=noise, sparsity=sparsity, random_state=seed)
                    solution = solve(X, y, fit_intercept=False)
                    bound = solution.certificate.seconds
                    results.append((solution.seconds - bound, bound, solution.certificate.gap))
            fit, bound, gap = np.median(results, axis=0)
            worst = max(gap for *_, gap in results)
            good = np.mean([gap <= 0.05 for *_, gap in results])
            gaps += [gap for *_, gap in results]
            table.add_row(
                f"p={p}, n={n}, rho={noise}",
                str(len(results)),
                f"{fit:.4f}",
                f"{bound:.4f}",
                f"{gap:.2%}",
                f"{worst:.2%}",
                f"{good:.0%}",
            )
    console.print(table)
    console.print(f"Median of all: {np.median(gaps):.2%} (target 5 %).\n")


def scip(quick: bool) -> None:
    """SCIP on the same problem, told our objective."""
    from peers import prove_by_scip

    limit = 20.0 if quick else 120.0
    table = table_of(
        f"Against SCIP, gap 1e-4, at most {limit:g} s", "data", "rectifit s", "SCIP s", "SCIP gap", "ratio"
    )
    warm_up()
    for p, n, noise in ((3, 60, 0.1), (5, 100, 0.1), (10, 200, 0.1)):
        X, y, *_ = make_relu(n, p, noise=noise, random_state=0)
        fit = solve(X, y, fit_intercept=False)
        started = time.perf_counter()
        certificate = certify(X, y, fit, fit_intercept=False, target_gap=1e-4, time_limit=60.0)
        ours = time.perf_counter() - started
        found = prove_by_scip(X, y, limit, certificate.objective)
        table.add_row(
            f"p={p}, n={n}, rho={noise}",
            f"{ours:.3f}",
            f"{found.seconds:.1f}",
            f"{found.gap:.2%}",
            f"{'> ' if found.gap > 1e-4 else ''}{found.seconds / ours:.0f}",
        )
    console.print(table)


def run(chosen: Options) -> None:
    with threadpool_limits(1):
        if "proofs" in chosen.tables or chosen.export is not None:
            proofs(chosen)
        if chosen.export is not None:
            return
        if "carried" in chosen.tables:
            carried(chosen.quick)
        if "scip" in chosen.tables:
            scip(chosen.quick)
    if "threads" in chosen.tables:
        threads(chosen.threads, chosen.quick, chosen.seeds[0])
    if "memory" in chosen.tables:
        memory(chosen.memory_seconds)
