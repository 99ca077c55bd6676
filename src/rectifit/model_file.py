"""MODEL.json: a fit as plain data, versioned, and checked when it is read.

Numbers are written with all their digits, so that a model predicts exactly what the fit did.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from rectifit._typing import Vector
from rectifit.constraints import Constraints, read_constraints
from rectifit.inference import Summary
from rectifit.solution import Certificate, Solution
from rectifit.tables import DataTable, Encoding
from rectifit.writing import write_file

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SavedModel", "describe_certificate", "read_model", "write_model"]

VERSION = 1
# Characters of a wrong entry that an error shows.
MAX_SHOWN = 40


def _check_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("a list of names, each once")
    return names


def _check_some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("a list of at least one name")
    return names


Version = Annotated[int, Field(ge=VERSION, le=VERSION)]
Count = Annotated[int, Field(ge=0)]
Size = Annotated[float, Field(ge=0.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Names = Annotated[tuple[str, ...], AfterValidator(_check_once)]
Levels = Annotated[Names, AfterValidator(_check_some)]


class _Record(BaseModel):
    """Entries of exactly these types: no conversion, no others, no infinities, no NaN."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, from_attributes=True
    )


class CertificateRecord(_Record):
    """The numbers of a `Certificate`, without its history."""

    objective: Size
    lower_bound: Size
    gap: Share
    status: Literal["optimal", "time_limit", "interrupted", "bound_only"]
    box: Size | None
    n_nodes: Count
    seconds: Size
    target_gap: Size | None
    floor: float | None
    is_constrained: bool = False
    n_active: Count
    n_inactive: Count
    n_undecided: Count


class Goodness(_Record):
    """How well a model fits, as in `inference.Summary`; None where a number is not defined."""

    n_samples: Count
    n_positive: Count
    r_squared: float | None
    sigma: Size | None
    share_active: Share


class LinearConstraint(_Record):
    """low <= sum of coefficients times `factors` <= high; None where there is no such end."""

    factors: dict[str, float]
    low: float | None
    high: float | None


class Estimate(_Record):
    """Precision of a coefficient; None where the data do not determine it, or where constraints do."""

    name: str
    std_error: Size | None
    low: float | None
    high: float | None
    at_bound: bool = False


class SavedModel(_Record):
    """The content of MODEL.json.

    Attributes
    ----------
    rectifit_model : version of the format
    target, weights : columns that the model was fitted to; weights may be None
    columns, levels : columns of the features, and levels of the categories, as in `Encoding`
    coefficients : by the names of the encoding
    intercept, fit_intercept : the intercept is 0 where none was fitted
    floor : no prediction is below it
    bounds : lower and upper bounds of coefficients, by the same names; None where there is none
    linear_constraints : what else is known about the coefficients
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
    bounds: dict[str, tuple[float | None, float | None]] = {}
    linear_constraints: tuple[LinearConstraint, ...] = ()
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
            "'bounds' names a coefficient that is not in 'coefficients'": set(self.bounds) <= set(names),
            "'linear_constraints' names a coefficient that is not in 'coefficients'": (
                all(set(line.factors) <= set(names) for line in self.linear_constraints)
            ),
            "'certificate.is_constrained' must be true where there are constraints, and only there": (
                certificate.is_constrained == bool(self.bounds or self.linear_constraints)
            ),
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
        at_bound = np.zeros(len(names), dtype=np.bool_)
        known = read_constraints(len(names), names, **self.constraints)
        if known is not None:
            # Without the data no one knows what is rounding in linear constraints; certify checks those.
            if (known.clipped(self.beta) != self.beta).any():
                raise ValueError("'bounds' must hold for 'coefficients'")
            at_bound = known.at_bound(self.beta)
        if [row.at_bound for row in self.estimates[: len(names)]] != at_bound.tolist():
            raise ValueError("'estimates' must say which coefficients are at one of their 'bounds'")
        return self

    @classmethod
    def from_solution(
        cls, solution: Solution, summary: Summary, table: DataTable, weights: str | None = None
    ) -> SavedModel:
        """The model of a fit to a table, whose column of weights has that name."""
        problem, encoding = solution.problem, table.encoding
        assert problem is not None
        # Plain data has None where a number is not defined.
        plain = summary.to_dict()
        entries = ("names", "std_error", "low", "high", "at_bound")
        rows = zip(*(plain[name] for name in entries), strict=True)
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
            bounds=_bounds_of(solution.constraints, encoding.names),
            linear_constraints=_lines_of(solution.constraints, encoding.names),
            method=solution.method,
            stopped=str(solution.stopped),
            objective=solution.objective,
            seconds=solution.seconds,
            certificate=CertificateRecord.model_validate(solution.certificate),
            goodness=Goodness(**{name: plain[name] for name in Goodness.model_fields}),
            covariance=summary.covariance,
            level=summary.level,
            estimates=tuple(
                Estimate(name=name, std_error=error, low=low, high=high, at_bound=at_bound)
                for name, error, low, high, at_bound in rows
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
    def constraints(self) -> dict[str, Any]:
        """What is known about the coefficients, as arguments of `certify`."""
        bounds = [self.bounds.get(name, (None, None)) for name in self.coefficients]
        return {"bounds": bounds, "constraints": [self._row_of(line) for line in self.linear_constraints]}

    def _row_of(self, line: LinearConstraint) -> Any:
        # Imported here: most models have no linear constraints, and the import takes long.
        from scipy import optimize

        factors = [line.factors.get(name, 0.0) for name in self.coefficients]
        low, high = (-np.inf if line.low is None else line.low), (np.inf if line.high is None else line.high)
        return optimize.LinearConstraint(factors, low, high)

    @property
    def floor_is_estimated(self) -> bool:
        """Whether the floor was fitted to the data."""
        return self.certificate.floor is not None

    def predict(self, frame: pl.DataFrame) -> Vector:
        """max(floor, X beta + intercept) for the rows of a table that has the columns of the fit."""
        return np.asarray(np.maximum(self.encoding.encode(frame) @ self.beta + self.intercept, self.floor))


def _bounds_of(
    known: Constraints | None, names: tuple[str, ...]
) -> dict[str, tuple[float | None, float | None]]:
    """Bounds by name, without infinite ones."""
    if known is None:
        return {}
    pairs = zip(names, known.low.tolist(), known.high.tolist(), strict=True)
    return {
        name: (_finite(low), _finite(high)) for name, low, high in pairs if np.isfinite([low, high]).any()
    }


def _lines_of(known: Constraints | None, names: tuple[str, ...]) -> tuple[LinearConstraint, ...]:
    """Linear constraints by name, without factors that are 0."""
    if known is None:
        return ()
    rows = zip(known.A.tolist(), known.least.tolist(), known.most.tolist(), strict=True)
    return tuple(
        LinearConstraint(
            factors={name: factor for name, factor in zip(names, row, strict=True) if factor},
            low=_finite(low),
            high=_finite(high),
        )
        for row, low, high in rows
    )


def _finite(end: float) -> float | None:
    return end if np.isfinite(end) else None


def describe_certificate(certificate: Certificate) -> dict[str, Any]:
    """The numbers of a certificate as plain data, without its history."""
    return dict(CertificateRecord.model_validate(certificate).model_dump())


def write_model(model: SavedModel, path: str | Path) -> None:
    """Write MODEL.json."""
    write_file(path, model.model_dump_json(indent=2) + "\n")


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
        raise ValueError(f"{name} {_explain(error)}") from None
    return model


def _explain(error: ValidationError) -> str:
    """The first error of a model in a sentence: the entry, what was found, and what is allowed."""
    found = error.errors()
    first = next((entry for entry in found if entry["loc"] == ("rectifit_model",)), found[0])
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])[1:]
    kind, allowed = first["type"], first["msg"].removeprefix("Input should be ")
    if kind == "json_invalid":
        return f"is not JSON: {allowed.removeprefix('Invalid JSON: ')}"
    if (not path and kind == "model_type") or (path == "rectifit_model" and kind == "missing"):
        return "has no entry 'rectifit_model'; it must be a file saved by rectifit fit --save"
    if path == "rectifit_model":
        return f"is of version {_show(first['input'])}; this rectifit reads version {VERSION}"
    if kind == "missing":
        return f"is damaged: {path!r} is missing"
    if kind == "extra_forbidden":
        return f"is damaged: {path!r} is not known in version {VERSION}"
    if kind == "value_error":
        allowed = str(first["ctx"]["error"])
    # Without a path, the entries do not agree with each other, and the error is a sentence of its own.
    entry = f"{path!r} is {_show(first['input'])}; it must be " if path else ""
    return f"is damaged: {entry}{allowed}"


def _show(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
