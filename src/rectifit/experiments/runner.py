"""Run tasks in parallel over instances, and keep every finished row.

What was finished before is not run again. Instances and methods depend on their own seeds only, so the rows
are the same whatever the number of processes, but for the times.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path

from rectifit import solve
from rectifit.datasets import make_relu
from rectifit.experiments.grid import LABELS, PROOF, Task
from rectifit.experiments.machine import register_machine
from rectifit.experiments.rows import Row, RowFile
from rectifit.measures import generalization_error, objective_value, prediction_error, recovery_error
from rectifit.progress import Progress
from rectifit.solution import Stop

__all__ = ["run_task", "run_tasks"]

# A proof that takes longer than this is given up.
PROOF_LIMIT = 60.0


def run_tasks(tasks: Iterable[Task], folder: Path, n_jobs: int = 1, verbose: int = 1) -> list[Row]:
    """Run what is not there yet, and return the rows of all tasks, in their order."""
    tasks = list(tasks)
    file = RowFile(folder / "rows.csv")
    file.repair()
    done = {row.task: row for row in file.read()}
    todo = [task for task in tasks if task not in done]
    if todo:
        machine = register_machine(folder / "machine.json")
        groups = [list(group) for _, group in groupby(todo, lambda task: (task.setting, task.instance))]
        # Long ones first, so that no process waits for another at the end.
        groups.sort(key=lambda group: -group[0].setting.p * (1.0 + group[0].setting.noise))
        n_done = len(tasks) - len(todo)
        with Progress(verbose) as progress:
            for rows in _run_groups(groups, machine, n_jobs):
                file.append(rows)
                done.update((row.task, row) for row in rows)
                n_done += len(rows)
                last = rows[-1]
                progress.update(
                    f"p={last.p}, sparsity {last.sparsity:g}, noise {last.noise:g}, instance {last.instance}",
                    n_done,
                    len(tasks),
                )
    return [done[task] for task in tasks]


def run_task(task: Task, machine: int = 0) -> Row:
    """One fit, timed and measured."""
    instance = task.draw()
    X, y, beta = instance.X, instance.y, instance.beta
    limit = PROOF_LIMIT if task.method == PROOF else None
    started = time.perf_counter()
    with warnings.catch_warnings():
        # A dead neuron is a result here.
        warnings.filterwarnings("ignore", "the fit is the zero function")
        solution = solve(X, y, task.method, fit_intercept=False, random_state=task.seed[-1], time_limit=limit)
    seconds = time.perf_counter() - started
    if solution.stopped is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    found, setting = solution.beta, task.setting
    return Row(
        setting.p,
        setting.n,
        setting.sparsity,
        setting.noise,
        setting.beta_variance,
        task.instance,
        task.method,
        prediction_error(X, found, beta),
        objective_value(X, y, found),
        recovery_error(found, beta),
        generalization_error(instance.X_test, instance.y_test, found),
        solution.certificate.lower_bound,
        solution.certificate.status,
        seconds,
        machine,
    )


def _run_groups(groups: list[list[Task]], machine: int, n_jobs: int) -> Iterable[list[Row]]:
    if n_jobs == 1:
        _warm_up()
        for group in groups:
            yield _run_group(group, machine)
        return
    # Started anew, not forked: compiled code and BLAS threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_warm_up) as pool:
        try:
            for future in as_completed([pool.submit(_run_group, group, machine) for group in groups]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run_group(group: list[Task], machine: int) -> list[Row]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return [run_task(task, machine) for task in group]


def _warm_up() -> None:
    """Load the compiled code, so that no fit is timed with it; stop being interrupted with the parent."""
    if multiprocessing.parent_process() is not None:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    X, y, *_ = make_relu(60, 3, noise=0.3, random_state=0)
    for method in LABELS:
        solve(X, y, method, fit_intercept=False)
