"""MODEL.json: a fit as plain data, versioned, and checked when it is read.

Numbers are written with all their digits, so that a model that was read predicts what the fit did.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rectifit.goodness import Goodness
from rectifit.problem import Vector
from rectifit.solution import Certificate, Solution
from rectifit.tables import Encoding, Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["VERSION", "Model", "describe_certificate", "describe_model", "read_model", "write_model"]

VERSION = 1
STATUSES = ("optimal", "time_limit", "interrupted", "bound_only")


@dataclass(frozen=True)
class Model:
    """What MODEL.json holds.

    Attributes
    ----------
    target, weights : names of the columns that it was fitted to; weights may be None
    encoding : columns of the features, and levels of the categories
    coefficients : one per name of the encoding
    intercept, fit_intercept : the intercept is 0 where none was fitted
    method, stopped, objective, seconds : as in `Solution`
    certificate : fields of `Certificate`, gap included
    goodness : Goodness
    """

    target: str
    weights: str | None
    encoding: Encoding
    coefficients: tuple[float, ...]
    intercept: float
    fit_intercept: bool
    method: str
    stopped: str
    objective: float
    seconds: float
    certificate: Mapping[str, Any]
    goodness: Goodness

    @classmethod
    def from_solution(cls, solution: Solution, table: Table, weights: str | None = None) -> Model:
        """The model of a fit to a table, whose column of weights has that name."""
        assert solution.problem is not None
        return cls(
            target=table.target,
            weights=weights,
            encoding=table.encoding,
            coefficients=tuple(solution.beta.tolist()),
            intercept=solution.intercept,
            fit_intercept=bool(solution.problem.fit_intercept),
            method=solution.method,
            stopped=str(solution.stopped),
            objective=solution.objective,
            seconds=solution.seconds,
            certificate=describe_certificate(solution.certificate),
            goodness=Goodness.from_solution(solution),
        )

    def predict(self, frame: pl.DataFrame) -> Vector:
        """max(0, X beta + intercept) for the rows of a table that has the columns of the fit."""
        X = self.encoding.encode(frame)
        return np.asarray(np.maximum(X @ np.array(self.coefficients) + self.intercept, 0.0))


def describe_certificate(certificate: Certificate) -> dict[str, Any]:
    """The numbers of a certificate as plain data, without its history."""
    return {name: getattr(certificate, name) for name in CERTIFICATE}


def write_model(model: Model, path: str | Path) -> None:
    """Write MODEL.json."""
    text = json.dumps(describe_model(model), indent=2, allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


def describe_model(model: Model) -> dict[str, Any]:
    """The model as plain data: the content of MODEL.json."""
    encoding = model.encoding
    return {
        "rectifit_model": VERSION,
        "target": model.target,
        "weights": model.weights,
        "columns": encoding.columns,
        "levels": encoding.levels,
        "coefficients": dict(zip(encoding.names, model.coefficients, strict=True)),
        "intercept": model.intercept,
        "fit_intercept": model.fit_intercept,
        "method": model.method,
        "stopped": model.stopped,
        "objective": model.objective,
        "seconds": model.seconds,
        "certificate": dict(model.certificate),
        "goodness": asdict(model.goodness),
    }


def read_model(path: str | Path) -> Model:
    """Read MODEL.json; ValueError, in one sentence, if anything in it is not as it should be."""
    name = f"the model {str(path)!r}"
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise ValueError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
    if not isinstance(record, dict) or "rectifit_model" not in record:
        raise ValueError(
            f"{name} has no entry 'rectifit_model'; it must be a file saved by rectifit fit --save"
        )
    if record["rectifit_model"] != VERSION:
        found = record["rectifit_model"]
        raise ValueError(f"{name} is of version {found!r}; this rectifit reads version {VERSION}")
    try:
        return _parse(record)
    except ValueError as error:
        raise ValueError(f"{name} is damaged: {error}") from None


def _parse(record: dict[str, Any]) -> Model:
    _check(record, MODEL, "")
    _check(record["certificate"], CERTIFICATE, "certificate.")
    _check(record["goodness"], GOODNESS, "goodness.")
    levels = {column: tuple(names) for column, names in record["levels"].items()}
    encoding = Encoding(tuple(record["columns"]), levels)
    if not set(levels) <= set(encoding.columns):
        raise ValueError("'levels' names a column that is not in 'columns'")
    if tuple(record["coefficients"]) != encoding.names or not encoding.names:
        raise ValueError("'coefficients' must have one entry per feature, in the order of 'columns'")
    if record["intercept"] != 0.0 and not record["fit_intercept"]:
        raise ValueError("'intercept' must be 0 where 'fit_intercept' is false")
    certificate = record["certificate"]
    if certificate["objective"] != record["objective"]:
        raise ValueError("'certificate.objective' must be equal to 'objective'")
    if certificate["lower_bound"] > certificate["objective"]:
        raise ValueError("'certificate.lower_bound' must not be above the objective")
    return Model(
        target=record["target"],
        weights=record["weights"],
        encoding=encoding,
        coefficients=tuple(float(value) for value in record["coefficients"].values()),
        intercept=float(record["intercept"]),
        fit_intercept=record["fit_intercept"],
        method=record["method"],
        stopped=record["stopped"],
        objective=float(record["objective"]),
        seconds=float(record["seconds"]),
        certificate=certificate,
        goodness=Goodness(**record["goodness"]),
    )


def _check(record: dict[str, Any], kinds: Kinds, path: str) -> None:
    for name, (is_right, allowed) in kinds.items():
        if name not in record:
            raise ValueError(f"{path + name!r} is missing; it must be {allowed}")
        if not is_right(record[name]):
            found = json.dumps(record[name])
            shown = found if len(found) <= 40 else f"{found[:40]}..."
            raise ValueError(f"{path + name!r} is {shown}; it must be {allowed}")
    unknown = sorted(set(record) - set(kinds))
    if unknown:
        raise ValueError(f"{path + unknown[0]!r} is not known in version {VERSION}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_size(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_levels(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_names(names) and names for names in value.values())


def _is_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _or_null(is_right: Callable[[Any], bool], allowed: str) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value is None or is_right(value)), f"{allowed}, or null"


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a finite number")


# What is allowed in every entry.
Kinds = dict[str, tuple[Callable[[Any], bool], str]]
TEXT = (_is_text, "text")
NUMBER = (_is_number, "a finite number")
SIZE = (_is_size, "a finite number, at least 0")
COUNT = (_is_count, "a whole number, at least 0")
SHARE = (_is_share, "a number from 0 to 1")
OBJECT = (lambda value: isinstance(value, dict), "an object")
MODEL: Kinds = {
    "rectifit_model": COUNT,
    "target": TEXT,
    "weights": _or_null(*TEXT),
    "columns": (_is_names, "a list of names, each once"),
    "levels": (_is_levels, "lists of names under the names of columns"),
    "coefficients": (_is_numbers, "finite numbers under the names of features"),
    "intercept": NUMBER,
    "fit_intercept": (lambda value: isinstance(value, bool), "true or false"),
    "method": TEXT,
    "stopped": TEXT,
    "objective": SIZE,
    "seconds": SIZE,
    "certificate": OBJECT,
    "goodness": OBJECT,
}
CERTIFICATE: Kinds = {
    "objective": SIZE,
    "lower_bound": SIZE,
    "gap": SHARE,
    "status": (lambda value: value in STATUSES, f"one of {', '.join(STATUSES)}"),
    "box": _or_null(*SIZE),
    "n_nodes": COUNT,
    "seconds": SIZE,
    "target_gap": _or_null(*SIZE),
    "n_active": COUNT,
    "n_inactive": COUNT,
    "n_undecided": COUNT,
}
GOODNESS: Kinds = {
    "n_samples": COUNT,
    "n_positive": COUNT,
    "r_squared": _or_null(*NUMBER),
    "sigma": _or_null(*SIZE),
    "share_active": SHARE,
}
