"""ReLU regression: fit y ~ max(0, X beta + intercept) by least squares, with proof of quality."""

from rectifit.methods import solve
from rectifit.problem import Problem
from rectifit.solution import Certificate, Solution
from rectifit.surrogate import SurrogateSolution, SurrogateSolver, solve_surrogate

__version__ = "0.1.0"
__all__ = [
    "Certificate",
    "Problem",
    "Solution",
    "SurrogateSolution",
    "SurrogateSolver",
    "__version__",
    "solve",
    "solve_surrogate",
]
