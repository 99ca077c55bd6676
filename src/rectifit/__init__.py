"""ReLU regression: fit y ~ max(0, X beta + intercept) by least squares, with proof of quality."""

from typing import TYPE_CHECKING, Any

from rectifit.api import certify, solve
from rectifit.data.problem import Problem
from rectifit.solution import Certificate, Solution
from rectifit.surrogate import SurrogateSolution, SurrogateSolver, solve_surrogate

if TYPE_CHECKING:
    from rectifit.estimator import ReLURegressor

__version__ = "0.1.0"
__all__ = [
    "Certificate",
    "Problem",
    "ReLURegressor",
    "Solution",
    "SurrogateSolution",
    "SurrogateSolver",
    "__version__",
    "certify",
    "solve",
    "solve_surrogate",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is loaded for those who ask for the estimator.
    if name == "ReLURegressor":
        from rectifit.estimator import ReLURegressor

        return ReLURegressor
    raise AttributeError(f"module 'rectifit' has no attribute {name!r}")
