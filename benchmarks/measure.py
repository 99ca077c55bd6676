"""One proof of one instance, measured; many of them side by side; their rows in a file.

Only `solve`, `certify` and what a `Certificate` says are used, so that earlier builds can be measured too.
What a proof reached is worked out here, from its bound and the coefficients; its own status is not asked.
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
from common import REFERENCE
from instances import Instance
from threadpoolctl import threadpool_limits

from rectifit import Certificate, certify, solve
from rectifit.datasets import make_relu
from rectifit.experiments.machine import yardstick
from rectifit.instances.families import dummies, gaussian, low_signal

# Times at which the bound is recorded, in seconds of the reference core.
MOMENTS = (5.0, 20.0, 60.0)
# Relative rounding of a sum of squares, and of a bound that was pushed just to its target.
SUM_TOL = 1e-9
TARGET_SLACK = 1e-5


@dataclass(frozen=True)
class Record:
    """A proof of one instance. All seconds are as measured; `unit` is the yardstick beside them.

    Attributes
    ----------
    kind, number, group, gap, target, fit_intercept : those of the instance
    digest : of its data
    n, q, zeros : samples, coefficients, share of outcomes that are 0
    ten_largest, r2 : share of sum y^2 that ten outcomes have, R^2 of the fit
    unit : seconds of the yardstick in the same process
    limit : seconds after which the proof was given up
    fit_seconds, carried_gap : of the fit before, and of the bound that it carries
    seconds, cpu_seconds : of the proof
    n_nodes, objective, lower_bound : its result; the objective is recomputed from the coefficients
    bound_5, bound_20, bound_60 : proved after so many reference seconds; None where it was given up before
    """

    kind: str
    number: str
    group: str
    gap: float
    target: float
    fit_intercept: bool
    digest: str
    n: int
    q: int
    zeros: float
    ten_largest: float
    r2: float
    unit: float
    limit: float
    fit_seconds: float
    carried_gap: float
    seconds: float
    cpu_seconds: float
    n_nodes: int
    objective: float
    lower_bound: float
    bound_5: float | None
    bound_20: float | None
    bound_60: float | None

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.number

    @property
    def scale(self) -> float:
        """Seconds here per second of the reference core."""
        return self.unit / REFERENCE

    @property
    def gap_left(self) -> float:
        return gap_of(self.objective, self.lower_bound)

    @property
    def is_closed(self) -> bool:
        return self.meets(self.lower_bound)

    @property
    def is_in_time(self) -> bool:
        return self.is_closed and self.seconds <= self.target * self.scale

    def meets(self, bound: float) -> bool:
        """Whether a bound proves the gap."""
        return gap_of(self.objective, bound) <= self.gap * (1.0 + TARGET_SLACK)

    def bound_at(self, moment: float) -> float | None:
        return getattr(self, f"bound_{moment:g}")


def gap_of(objective: float, lower_bound: float) -> float:
    return max(objective - lower_bound, 0.0) / objective if objective > 0.0 else 0.0


def objective_of(instance: Instance, fit: Any) -> float:
    residual = np.maximum(instance.X @ fit.beta + fit.intercept, 0.0) - instance.y
    return float(residual @ residual)


def warm_up() -> None:
    """Compile, or load, all that proofs use: signs and directions, faces, many coefficients."""
    X, y, *_ = make_relu(60, 3, noise=0.5, random_state=0)
    certify(X, y, solve(X, y, fit_intercept=False), fit_intercept=False, time_limit=1.0)
    high_signal = (gaussian(200, p, 0.4, 0) for p in (7, 14))
    for X, y in (low_signal(5, 0), dummies(200, 7, 1.0, 0), *high_signal):
        certify(X, y, solve(X, y), time_limit=0.5, target_gap=1e-2, n_jobs=1)


def measure(instance: Instance, limit: float) -> Record:
    """Fit, which does not count, and prove; the limit is in seconds of the reference core."""
    X, y, with_intercept = instance.X, instance.y, {"fit_intercept": instance.fit_intercept}
    with threadpool_limits(1):
        unit = yardstick()
        fit = solve(X, y, "auto", **with_intercept)
        limit *= unit / REFERENCE
        started, cpu = time.perf_counter(), time.process_time()
        certificate = certify(
            X, y, fit, target_gap=instance.gap, time_limit=limit, n_jobs=1, **with_intercept
        )
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    objective = objective_of(instance, certificate.solution)
    if certificate.lower_bound > min(objective, objective_of(instance, fit)) * (1.0 + SUM_TOL):
        raise AssertionError(
            f"{instance.kind}, {instance.number}: a fit has the objective {objective!r}, below the bound "
            f"{certificate.lower_bound!r}"
        )
    is_closed = gap_of(objective, certificate.lower_bound) <= instance.gap * (1.0 + TARGET_SLACK)
    bounds = {
        f"bound_{moment:g}": bound_after(certificate, moment * unit / REFERENCE, seconds, is_closed)
        for moment in MOMENTS
    }
    total = float(np.square(y - y.mean()).sum()) if instance.fit_intercept else float(y @ y)
    return Record(
        kind=instance.kind,
        number=instance.number,
        group=instance.group,
        gap=instance.gap,
        target=instance.target,
        fit_intercept=instance.fit_intercept,
        digest=instance.digest,
        n=len(y),
        q=instance.n_coefficients,
        zeros=float((y == 0.0).mean()),
        ten_largest=float(np.sort(y * y)[-10:].sum() / (y @ y)),
        r2=1.0 - objective / total,
        unit=unit,
        limit=limit,
        fit_seconds=fit.seconds - fit.certificate.seconds,
        carried_gap=gap_of(fit.objective, fit.certificate.lower_bound),
        seconds=seconds,
        cpu_seconds=cpu,
        n_nodes=certificate.n_nodes,
        objective=objective,
        lower_bound=certificate.lower_bound,
        **bounds,
    )


def bound_after(certificate: Certificate, moment: float, seconds: float, is_closed: bool) -> float | None:
    """What was proved after so many seconds; None if the search was given up before."""
    if seconds <= moment:
        return certificate.lower_bound if is_closed else None
    return max((bound for when, _, bound in certificate.history if when <= moment), default=0.0)


def measure_all(work: Iterable[tuple[Instance, float]], jobs: int = 1) -> Iterator[Record]:
    """Instances with their limits, one after the other or in several processes; each proof has one thread."""
    work = list(work)
    warm_up()
    if jobs == 1:
        yield from _noted(starmap(measure, work), len(work))
        return
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=warm_up) as pool:
        # The longest first, so that no process is left alone with them at the end.
        work.sort(key=lambda pair: pair[1], reverse=True)
        pending = [pool.submit(measure, *pair) for pair in work]
        yield from _noted((future.result() for future in as_completed(pending)), len(pending))


def _noted(records: Iterable[Record], total: int) -> Iterator[Record]:
    """A line on stderr for each: the whole may take hours."""
    for count, record in enumerate(records, 1):
        state = f"{record.gap_left:.2%} left" if not record.is_closed else "closed"
        print(
            f"{count} of {total}: {record.kind}, {record.number}: {state} in {record.seconds:.2f} s, "
            f"{record.n_nodes:,} nodes",
            file=sys.stderr,
            flush=True,
        )
        yield record


def write(records: Iterable[Record], path: Path) -> Iterator[Record]:
    """Append each record as it comes, so that nothing is lost when a run is cut off."""
    names = [field.name for field in fields(Record)]
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, names)
        if is_new:
            writer.writeheader()
        for record in records:
            writer.writerow(asdict(record))
            file.flush()
            yield record


def read_records(path: Path) -> list[Record]:
    """What `write` wrote."""
    parse: dict[str, Callable[[str], Any]] = {
        "str": str,
        "int": int,
        "float": float,
        "bool": lambda text: text == "True",
        "float | None": lambda text: float(text) if text else None,
    }
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [Record(**{f.name: parse[str(f.type)](row[f.name]) for f in fields(Record)}) for row in rows]
