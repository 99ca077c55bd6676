"""One row per fit."""

from __future__ import annotations

from dataclasses import dataclass

from rectifit.experiments.grid import Task

__all__ = ["FitRow"]


@dataclass(frozen=True)
class FitRow:
    """The result of one task: the measures of the paper, the lower bound, and the time.

    `seconds` is processor time of one thread. `machine` is the position of the machine in machine.json. The
    columns of the file are these fields, with those of the task and of its setting in place of `task`.
    """

    task: Task
    prediction_error: float
    objective: float
    recovery_error: float
    generalization_error: float
    lower_bound: float
    status: str
    seconds: float
    machine: int

    @property
    def is_proved(self) -> bool:
        """Whether the certificate proves that the fit is optimal."""
        return self.status == "optimal"
