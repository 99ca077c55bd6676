"""The convex surrogate F_I and its exact solver: one question, one answer, with a dual bound."""

from rectifit.surrogate.solution import SurrogateSolution
from rectifit.surrogate.solver import SurrogateSolver, solve_surrogate

__all__ = ["SurrogateSolution", "SurrogateSolver", "solve_surrogate"]
