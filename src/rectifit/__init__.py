"""ReLU regression: fit y ~ max(0, X beta + intercept) by least squares, with proof of quality."""

from __future__ import annotations

from importlib import import_module

# Type checkers take it as true; to import it would take longer than the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rectifit.api import certify, solve
    from rectifit.checking import CheckedProof, ProofError, check_proof
    from rectifit.data.problem import Problem
    from rectifit.estimator import ReLURegressor
    from rectifit.estimator_cv import ReLURegressorCV
    from rectifit.estimator_tobit import TobitRegressor
    from rectifit.fitted_model import FittedModel
    from rectifit.formula import relu
    from rectifit.inference import compare_summaries
    from rectifit.model_file import load_model, save_model
    from rectifit.solution import Certificate, Solution
    from rectifit.surrogate import SurrogateSolution, SurrogateSolver, solve_surrogate

__version__ = "0.2.0"
__all__ = [
    "Certificate",
    "CheckedProof",
    "FittedModel",
    "Problem",
    "ProofError",
    "ReLURegressor",
    "ReLURegressorCV",
    "Solution",
    "SurrogateSolution",
    "SurrogateSolver",
    "TobitRegressor",
    "__version__",
    "certify",
    "check_proof",
    "compare_summaries",
    "load_model",
    "relu",
    "save_model",
    "solve",
    "solve_surrogate",
]


# Loaded when they are asked for: what is not used takes no time, and the command line can be interrupted
# while it loads the rest.
LATER = {
    "Certificate": "rectifit.solution",
    "CheckedProof": "rectifit.checking",
    "FittedModel": "rectifit.fitted_model",
    "Problem": "rectifit.data.problem",
    "ProofError": "rectifit.checking",
    "ReLURegressor": "rectifit.estimator",
    "ReLURegressorCV": "rectifit.estimator_cv",
    "Solution": "rectifit.solution",
    "SurrogateSolution": "rectifit.surrogate",
    "SurrogateSolver": "rectifit.surrogate",
    "TobitRegressor": "rectifit.estimator_tobit",
    "certify": "rectifit.api",
    "check_proof": "rectifit.checking",
    "compare_summaries": "rectifit.inference",
    "load_model": "rectifit.model_file",
    "relu": "rectifit.formula",
    "save_model": "rectifit.model_file",
    "solve": "rectifit.api",
    "solve_surrogate": "rectifit.surrogate",
}

# Packages that need no import of their own: `import rectifit` is enough for rectifit.plot.fit.
PACKAGES = ("datasets", "inference", "instances", "measures", "plot", "theory")


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(import_module(LATER[name]), name)
    if name in PACKAGES:
        return import_module(f"rectifit.{name}")
    raise AttributeError(f"module 'rectifit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *LATER, *PACKAGES]
