"""ReLU regression: fit y ~ max(0, X beta + intercept) by least squares, with proof of quality."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rectifit.api import certify, solve
from rectifit.data.problem import Problem
from rectifit.solution import Certificate, Solution
from rectifit.surrogate import SurrogateSolution, SurrogateSolver, solve_surrogate

if TYPE_CHECKING:
    from rectifit.estimator import ReLURegressor
    from rectifit.estimator_tobit import TobitRegressor

__version__ = "0.1.0"
__all__ = [
    "Certificate",
    "Problem",
    "ReLURegressor",
    "Solution",
    "SurrogateSolution",
    "SurrogateSolver",
    "TobitRegressor",
    "__version__",
    "certify",
    "solve",
    "solve_surrogate",
]


# Loaded when they are asked for: scikit-learn takes longer than all the rest.
LATER = {"ReLURegressor": "rectifit.estimator", "TobitRegressor": "rectifit.estimator_tobit"}


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(import_module(LATER[name]), name)
    raise AttributeError(f"module 'rectifit' has no attribute {name!r}")
