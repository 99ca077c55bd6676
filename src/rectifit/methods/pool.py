"""Solvers of one problem, lent to whoever works on it, on any thread or in any process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from rectifit.problem import Problem
from rectifit.surrogate import SurrogateSolver

__all__ = ["SolverPool"]


class SolverPool:
    """Makes a solver when none is free; only the data goes to other processes."""

    def __init__(self, problem: Problem, *solvers: SurrogateSolver) -> None:
        self.problem = problem
        self._free: SimpleQueue[SurrogateSolver] = SimpleQueue()
        for solver in solvers:
            self._free.put(solver)

    @contextmanager
    def lend(self) -> Iterator[SurrogateSolver]:
        """A solver that nobody else uses meanwhile."""
        try:
            solver = self._free.get_nowait()
        except Empty:
            solver = SurrogateSolver(self.problem)
        try:
            yield solver
        finally:
            self._free.put(solver)

    def __reduce__(self) -> tuple[type[SolverPool], tuple[Problem]]:
        return SolverPool, (self.problem,)
