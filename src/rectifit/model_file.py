"""MODEL.json: a fit as plain data, versioned, and checked when it is read.

Numbers are written with all their digits, so that a model that was read predicts what the fit did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rectifit._typing import Vector
from rectifit.inference import Summary
from rectifit.model_schema import CERTIFICATE, ESTIMATE, GOODNESS, MODEL, VERSION, check_record
from rectifit.solution import Certificate, Solution
from rectifit.tables import Encoding, Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Model", "describe_certificate", "describe_model", "read_model", "write_model"]


@dataclass(frozen=True)
class Model:
    """What MODEL.json holds.

    Attributes
    ----------
    target, weights : names of the columns that it was fitted to; weights may be None
    encoding : columns of the features, and levels of the categories
    coefficients : one per name of the encoding
    intercept, fit_intercept : the intercept is 0 where none was fitted
    floor : predictions are nowhere below it
    method, stopped, objective, seconds : as in `Solution`
    certificate : fields of `Certificate`, gap included
    goodness : n_samples, n_positive (outcomes above the floor), and r_squared, sigma, share_active as in
        `inference.Summary`; None where they are not defined
    covariance, level : kind of the standard errors, and probability of the intervals
    estimates : name, std_error, low and high of every coefficient, then of the intercept and of the floor
        where they were fitted; None where the data do not determine them
    """

    target: str
    weights: str | None
    encoding: Encoding
    coefficients: tuple[float, ...]
    intercept: float
    fit_intercept: bool
    floor: float
    method: str
    stopped: str
    objective: float
    seconds: float
    certificate: Mapping[str, Any]
    goodness: Mapping[str, Any]
    covariance: str
    level: float
    estimates: tuple[Mapping[str, Any], ...]

    @classmethod
    def from_solution(
        cls, solution: Solution, summary: Summary, table: Table, weights: str | None = None
    ) -> Model:
        """The model of a fit to a table, whose column of weights has that name."""
        problem = solution.problem
        assert problem is not None
        columns = zip(summary.names, summary.std_error, summary.low, summary.high, strict=True)
        return cls(
            target=table.target,
            weights=weights,
            encoding=table.encoding,
            coefficients=tuple(solution.beta.tolist()),
            intercept=solution.intercept,
            fit_intercept=bool(problem.fit_intercept),
            floor=solution.floor,
            method=solution.method,
            stopped=str(solution.stopped),
            objective=solution.objective,
            seconds=solution.seconds,
            certificate=describe_certificate(solution.certificate),
            goodness={
                "n_samples": summary.n_samples,
                "n_positive": summary.n_positive,
                "r_squared": _finite(summary.r_squared),
                "sigma": _finite(summary.sigma),
                "share_active": summary.share_active,
            },
            covariance=summary.covariance,
            level=summary.level,
            estimates=tuple(
                {"name": name, "std_error": _finite(error), "low": _finite(low), "high": _finite(high)}
                for name, error, low, high in columns
            ),
        )

    @property
    def floor_is_estimated(self) -> bool:
        """Whether the floor was fitted to the data."""
        return self.certificate["floor"] is not None

    def predict(self, frame: pl.DataFrame) -> Vector:
        """max(floor, X beta + intercept) for the rows of a table that has the columns of the fit."""
        X = self.encoding.encode(frame)
        return np.asarray(np.maximum(X @ np.array(self.coefficients) + self.intercept, self.floor))


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
        "floor": model.floor,
        "method": model.method,
        "stopped": model.stopped,
        "objective": model.objective,
        "seconds": model.seconds,
        "certificate": dict(model.certificate),
        "goodness": dict(model.goodness),
        "covariance": model.covariance,
        "level": model.level,
        "estimates": [dict(row) for row in model.estimates],
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
    check_record(record, MODEL)
    check_record(record["certificate"], CERTIFICATE, "certificate.")
    check_record(record["goodness"], GOODNESS, "goodness.")
    levels = {column: tuple(names) for column, names in record["levels"].items()}
    encoding = Encoding(tuple(record["columns"]), levels)
    if not set(levels) <= set(encoding.columns):
        raise ValueError("'levels' names a column that is not in 'columns'")
    if tuple(record["coefficients"]) != encoding.names or not encoding.names:
        raise ValueError("'coefficients' must have one entry per feature, in the order of 'columns'")
    if record["intercept"] != 0.0 and not record["fit_intercept"]:
        raise ValueError("'intercept' must be 0 where 'fit_intercept' is false")
    if record["floor"] != 0.0 and not record["fit_intercept"]:
        raise ValueError("'floor' must be 0 where 'fit_intercept' is false")
    certificate = record["certificate"]
    if certificate["floor"] not in (None, record["floor"]):
        raise ValueError("'certificate.floor' must be null or equal to 'floor'")
    ends = ["intercept"] * record["fit_intercept"] + ["floor"] * (certificate["floor"] is not None)
    for i, row in enumerate(record["estimates"]):
        check_record(row, ESTIMATE, f"estimates[{i}].")
    if [row["name"] for row in record["estimates"]] != [*encoding.names, *ends]:
        raise ValueError("'estimates' must have one entry per coefficient, in the order of 'coefficients'")
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
        floor=float(record["floor"]),
        method=record["method"],
        stopped=record["stopped"],
        objective=float(record["objective"]),
        seconds=float(record["seconds"]),
        certificate=certificate,
        goodness=record["goodness"],
        covariance=record["covariance"],
        level=float(record["level"]),
        estimates=tuple(record["estimates"]),
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a finite number")
