"""What more threads give a proof, and the memory that a long one takes."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection

from common import console, memory_of, table_of
from measure import warm_up
from threadpoolctl import threadpool_limits

from rectifit import certify, solve
from rectifit.instances.families import Samples, gaussian, low_signal
from rectifit.instances.real import MROZ, load

# Proofs with several threads are given up after so many seconds; results are then not compared.
LONGEST = 600.0
# Bytes at which a process is ended before the machine has no memory left, and the target of the table.
MOST_MEMORY = 8e9
MEMORY_TARGET = 1e9
# Seconds between two looks at the memory of a process.
LOOK_SECONDS = 0.2


def long_proofs(quick: bool, seed: int) -> list[tuple[str, Samples, float]]:
    """Name, data, gap."""
    if quick:
        return [("low signal, q=7", low_signal(7, seed), 1e-2)]
    return [
        ("low signal, q=10", low_signal(10, seed), 1e-2),
        ("unclipped, p=9, sigma=1", gaussian(500, 9, 1.0, seed), 1e-2),
        (MROZ.name, load(MROZ), 1e-3),
    ]


def threads(counts: Sequence[int], quick: bool, seed: int) -> None:
    """Seconds with several threads, and whether they change what is proved."""
    warm_up()
    table = table_of(
        "Threads of one proof, without a time limit",
        *("data", "threads", "seconds", "CPU s", "times faster", "nodes", "lower bound", "same result"),
    )
    for name, (X, y), gap in long_proofs(quick, seed):
        with threadpool_limits(1):
            fit = solve(X, y)
            first = None
            for count in counts:
                started, cpu = time.perf_counter(), time.process_time()
                certificate = certify(X, y, fit, target_gap=gap, time_limit=LONGEST, n_jobs=count)
                seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
                result = certificate.n_nodes, certificate.lower_bound
                first = first or (seconds, result)
                is_over = certificate.status == "time_limit"
                table.add_row(
                    name,
                    str(count),
                    f"{'> ' if is_over else ''}{seconds:.2f}",
                    f"{cpu:.2f}",
                    f"{first[0] / seconds:.2f}",
                    f"{certificate.n_nodes:,}",
                    f"{certificate.lower_bound:.10g}",
                    "not ended" if is_over else "yes" if result == first[1] else "NO",
                )
        table.add_section()
    console.print(table)
    console.print(f"times faster: than with {counts[0]} thread(s). Target with two: >= 1.8.\n")


def memory(seconds: float) -> None:
    """Memory after some time on data whose proof does not end: p=20, sigma 1, with intercept."""
    table = table_of(
        "Growth of resident memory during a proof that does not end",
        *("data", "seconds", "peak growth MB", "target MB", "nodes", "bytes per node", "gap left"),
    )
    if not memory_of() > 0.0:
        console.print("Memory is measured on Linux only.\n")
        return
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=prove_without_end, args=(seconds, there))
    child.start()
    # What is in use once everything is compiled and the fit is made.
    before = peak = here.recv()
    started, result = time.perf_counter(), ("ended", "-", "-")
    while not here.poll(LOOK_SECONDS) and peak < MOST_MEMORY:
        peak = max(peak, memory_of(child.pid))
    took = time.perf_counter() - started
    if peak < MOST_MEMORY:
        n_nodes, gap = here.recv()
        result = f"{n_nodes:,}", f"{(peak - before) / max(n_nodes, 1):,.0f}", f"{gap:.1%}"
    else:
        child.terminate()
    child.join()
    grown, target = f"{(peak - before) / 1e6:,.0f}", f"<= {MEMORY_TARGET / 1e6:,.0f}"
    table.add_row("unclipped, p=20, sigma=1", f"{took:.0f}", grown, target, *result)
    console.print(table)


def prove_without_end(seconds: float, results: Connection) -> None:
    """In a process of its own; sends the memory in use before the proof, then nodes and gap."""
    warm_up()
    X, y = gaussian(500, 20, 1.0, 0)
    with threadpool_limits(1):
        fit = solve(X, y)
        results.send(memory_of())
        certificate = certify(X, y, fit, target_gap=1e-2, time_limit=seconds, n_jobs=1)
    results.send((certificate.n_nodes, certificate.gap))
