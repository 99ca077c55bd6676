"""From the name of a method to its stages."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from rectifit.methods.approximation import Approximation
from rectifit.methods.auto import Auto
from rectifit.methods.exact import Exact
from rectifit.methods.gd import GradientDescent
from rectifit.methods.iterative import Iterative
from rectifit.methods.multistart import Multistart
from rectifit.methods.search import Stage
from rectifit.methods.sgd import StochasticGradientDescent
from rectifit.methods.sorting import Sorting

__all__ = ["STAGES", "make_stages", "split_method"]

STAGES: dict[str, Any] = {
    "auto": Auto,
    "approximation": Approximation,
    "sorting": Sorting,
    "iterative": Iterative,
    "gd": GradientDescent,
    "sgd": StochasticGradientDescent,
    "multistart": Multistart,
    "exact": Exact,
}


def split_method(method: Any) -> list[str]:
    """The names of the stages of a method, which must be known."""
    if not isinstance(method, str):
        raise TypeError(f"method is {method!r}; it must be a string of stages joined by '+'")
    names = [part.strip() for part in method.split("+")]
    for name in names:
        if name not in STAGES:
            known = ", ".join(map(repr, STAGES))
            raise ValueError(
                f"method is {method!r} with unknown stage {name!r}; stages are {known}, joined by '+'"
            )
    return names


@cache
def _options_of(stage: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(stage))


def make_stages(names: list[str], options: dict[str, Any]) -> list[tuple[str, Stage]]:
    """The stages, each with those of the options that it has; None leaves its own default."""
    stages = []
    for name in names:
        own = _options_of(STAGES[name])
        chosen = {key: options[key] for key in own if options.get(key) is not None}
        stages.append((name, STAGES[name](**chosen)))
    return stages
