"""Run tasks in parallel over instances, and store every finished row.

Finished tasks are not run again. Instances and methods depend on their own seeds only, so that the rows are
the same for any number of processes, except for the times.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

from joblib import Parallel, delayed

from rectifit.api import solve
from rectifit.datasets import make_relu
from rectifit.experiments.grid import LABELS, PROOF, Task
from rectifit.experiments.machine import register_machine
from rectifit.experiments.rows import FitRow
from rectifit.measures import generalization_error, objective_value, prediction_error, recovery_error
from rectifit.parallel import limit_threads
from rectifit.progress import Progress
from rectifit.row_file import RowFile
from rectifit.solution import Stop

__all__ = ["run_task", "run_tasks"]

# Seconds for the proof of one instance.
PROOF_TIME_LIMIT = 60.0


def run_tasks(tasks: Iterable[Task], folder: Path, n_jobs: int = 1, verbose: int = 1) -> list[FitRow]:
    """Run the tasks without a row in the folder, and return the rows of all tasks in their order."""
    tasks = list(tasks)
    file = RowFile(folder / "rows.csv", FitRow)
    file.repair()
    done = {row.task: row for row in file.read()}
    todo = [task for task in tasks if task not in done]
    if todo:
        machine = register_machine(folder / "machine.json")
        groups = [list(group) for _, group in groupby(todo, lambda task: task.instance_key)]
        # Long groups first, so that all processes finish at about the same time.
        groups.sort(key=lambda group: -group[0].setting.p * (1.0 + group[0].setting.noise))
        n_done = len(tasks) - len(todo)
        parallel = Parallel(n_jobs, return_as="generator_unordered")
        with Progress(verbose) as progress:
            for rows in parallel(delayed(_run_group)(group, machine) for group in groups):
                file.append(rows)
                done.update((row.task, row) for row in rows)
                n_done += len(rows)
                progress.update(str(rows[-1].task), n_done, len(tasks))
    return [done[task] for task in tasks]


def run_task(task: Task, machine: int = 0) -> FitRow:
    """Fit one method to one instance, and measure its processor time and its errors."""
    X, y, beta_true, X_test, y_test = task.draw()
    limit = PROOF_TIME_LIMIT if task.method == PROOF else None
    # Processor time: other work on the machine does not count.
    started = time.process_time()
    with warnings.catch_warnings():
        # A dead neuron is a result here.
        warnings.filterwarnings("ignore", "the fit is the zero function")
        solution = solve(X, y, task.method, fit_intercept=False, random_state=task.instance, time_limit=limit)
    seconds = time.process_time() - started
    if solution.stopped is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    return FitRow(
        task=task,
        prediction_error=prediction_error(X, solution.beta, beta_true),
        objective=objective_value(X, y, solution.beta),
        recovery_error=recovery_error(solution.beta, beta_true),
        generalization_error=generalization_error(X_test, y_test, solution.beta),
        lower_bound=solution.certificate.lower_bound,
        status=solution.certificate.status,
        seconds=seconds,
        machine=machine,
    )


def _run_group(group: list[Task], machine: int) -> list[FitRow]:
    with limit_threads():
        _warm_up()
        return [run_task(task, machine) for task in group]


@cache
def _warm_up() -> None:
    """Load the compiled code once per process, so that no measured time includes it."""
    X, y, *_ = make_relu(60, 3, noise=0.3, random_state=0)
    for method in LABELS:
        solve(X, y, method, fit_intercept=False)
