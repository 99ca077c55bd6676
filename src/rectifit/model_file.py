"""MODEL.json: a fit as plain data, versioned, and checked when it is read.

Numbers are written with all their digits, so that a model predicts exactly what the fit did.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError, model_validator

from rectifit._typing import Vector
from rectifit.inference import Summary
from rectifit.model_schema import (
    VERSION,
    CertificateRecord,
    Estimate,
    Goodness,
    Levels,
    Names,
    Record,
    Share,
    Size,
    Version,
    explain,
)
from rectifit.solution import Certificate, Solution
from rectifit.tables import DataTable, Encoding

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SavedModel", "describe_certificate", "read_model", "write_model"]


class SavedModel(Record):
    """The content of MODEL.json.

    Attributes
    ----------
    rectifit_model : version of the format
    target, weights : columns that the model was fitted to; weights may be None
    columns, levels : columns of the features, and levels of the categories, as in `Encoding`
    coefficients : by the names of the encoding
    intercept, fit_intercept : the intercept is 0 where none was fitted
    floor : no prediction is below it
    method, stopped, objective, seconds : as in `Solution`
    certificate : the numbers of `Certificate`
    goodness : as in `inference.Summary`; n_positive counts outcomes above the floor
    covariance, level : kind of the standard errors, and probability of the intervals
    estimates : of every coefficient, then of the intercept and of the floor where they were fitted
    """

    rectifit_model: Version
    target: str
    weights: str | None
    columns: Names
    levels: dict[str, Levels]
    coefficients: dict[str, float]
    intercept: float
    fit_intercept: bool
    floor: float
    method: str
    stopped: str
    objective: Size
    seconds: Size
    certificate: CertificateRecord
    goodness: Goodness
    covariance: str
    level: Share
    estimates: tuple[Estimate, ...]

    @model_validator(mode="after")
    def _check_agreement(self) -> SavedModel:
        names, certificate = self.encoding.names, self.certificate
        ends = ["intercept"] * self.fit_intercept + ["floor"] * self.floor_is_estimated
        demands = {
            "'levels' names a column that is not in 'columns'": set(self.levels) <= set(self.columns),
            "'coefficients' must have one entry per feature, in the order of 'columns'": (
                names != () and tuple(self.coefficients) == names
            ),
            "'intercept' must be 0 where 'fit_intercept' is false": self.fit_intercept or self.intercept == 0,
            "'floor' must be 0 where 'fit_intercept' is false": self.fit_intercept or self.floor == 0,
            "'certificate.floor' must be null or equal to 'floor'": certificate.floor in (None, self.floor),
            "'estimates' must have one entry per coefficient, in the order of 'coefficients'": (
                [row.name for row in self.estimates] == [*names, *ends]
            ),
            "'certificate.objective' must be equal to 'objective'": certificate.objective == self.objective,
            "'certificate.lower_bound' must not be above the objective": (
                certificate.lower_bound <= self.objective
            ),
        }
        for sentence, holds in demands.items():
            if not holds:
                raise ValueError(sentence)
        return self

    @classmethod
    def from_solution(
        cls, solution: Solution, summary: Summary, table: DataTable, weights: str | None = None
    ) -> SavedModel:
        """The model of a fit to a table, whose column of weights has that name."""
        problem, encoding = solution.problem, table.encoding
        assert problem is not None
        columns = zip(summary.names, summary.std_error, summary.low, summary.high, strict=True)
        return cls(
            rectifit_model=VERSION,
            target=table.target,
            weights=weights,
            columns=encoding.columns,
            levels=dict(encoding.levels),
            coefficients=dict(zip(encoding.names, solution.beta.tolist(), strict=True)),
            intercept=solution.intercept,
            fit_intercept=bool(problem.fit_intercept),
            floor=solution.floor,
            method=solution.method,
            stopped=str(solution.stopped),
            objective=solution.objective,
            seconds=solution.seconds,
            certificate=_record_certificate(solution.certificate),
            goodness=Goodness(
                n_samples=summary.n_samples,
                n_positive=summary.n_positive,
                r_squared=_finite(summary.r_squared),
                sigma=_finite(summary.sigma),
                share_active=summary.share_active,
            ),
            covariance=summary.covariance,
            level=summary.level,
            estimates=tuple(
                Estimate(name=name, std_error=_finite(error), low=_finite(low), high=_finite(high))
                for name, error, low, high in columns
            ),
        )

    @property
    def encoding(self) -> Encoding:
        """How rows of a table become numbers."""
        return Encoding(self.columns, self.levels)

    @property
    def beta(self) -> Vector:
        """The coefficients as an array."""
        return np.array(list(self.coefficients.values()))

    @property
    def floor_is_estimated(self) -> bool:
        """Whether the floor was fitted to the data."""
        return self.certificate.floor is not None

    def predict(self, frame: pl.DataFrame) -> Vector:
        """max(floor, X beta + intercept) for the rows of a table that has the columns of the fit."""
        return np.asarray(np.maximum(self.encoding.encode(frame) @ self.beta + self.intercept, self.floor))


def describe_certificate(certificate: Certificate) -> dict[str, Any]:
    """The numbers of a certificate as plain data, without its history."""
    return dict(_record_certificate(certificate).model_dump())


def write_model(model: SavedModel, path: str | Path) -> None:
    """Write MODEL.json."""
    Path(path).write_text(model.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_model(path: str | Path) -> SavedModel:
    """Read MODEL.json; ValueError, in one sentence, where an entry is not as it should be."""
    name = f"the model {str(path)!r}"
    try:
        model: SavedModel = SavedModel.model_validate_json(Path(path).read_bytes())
    except FileNotFoundError:
        raise ValueError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        raise ValueError(f"{name} {explain(error)}") from None
    return model


def _record_certificate(certificate: Certificate) -> CertificateRecord:
    record: CertificateRecord = CertificateRecord.model_validate(certificate, from_attributes=True)
    return record


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
