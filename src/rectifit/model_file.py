"""MODEL.json: a fit as plain data, versioned, and checked when it is read.

Numbers are written with all their digits, so that a model predicts exactly what the fit did.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import isclose, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, ValidationError, model_validator

from rectifit._typing import Vector
from rectifit.constraints import Constraints, read_constraints
from rectifit.fitted_model import FittedModel
from rectifit.formulas import FormulaEncoding
from rectifit.inference import Summary
from rectifit.inference.covariance import KeptCovariance
from rectifit.model_formula import FormulaRecord
from rectifit.model_sums import (
    MAX_COLUMNS,
    Count,
    Record,
    Size,
    Sums,
    Triangle,
    fill_triangle,
    lower_triangle,
)
from rectifit.solution import Certificate, Solution, Stop
from rectifit.tables import DataTable, Encoder, Encoding
from rectifit.writing import write_file

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SavedModel", "describe_certificate", "load_model", "read_model", "save_model", "write_model"]

VERSION = 1
# A list of numbers, which is written on one line. Texts have no line breaks.
LIST = re.compile(r"\[\n([^\[\]{}\"]*?)\]")
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
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Names = Annotated[tuple[str, ...], AfterValidator(_check_once)]
Levels = Annotated[Names, AfterValidator(_check_some)]


class CertificateRecord(Record):
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
    null_objective: Size = 0.0

    def read(self) -> Certificate:
        """The certificate; its gap follows from the other numbers."""
        return Certificate(**self.model_dump(exclude={"gap"}))


class Goodness(Record):
    """How well a model fits, as in `inference.Summary`; None where a number is not defined."""

    n_samples: Count
    n_positive: Count
    r_squared: float | None
    sigma: Size | None
    share_active: Share


class LinearConstraint(Record):
    """low <= sum of coefficients times `factors` <= high; None where there is no such end."""

    factors: dict[str, float]
    low: float | None
    high: float | None


class Estimate(Record):
    """Precision of a coefficient; None where the data do not determine it, or where constraints do."""

    name: str
    std_error: Size | None
    low: float | None
    high: float | None
    at_bound: bool = False


class SavedModel(Record):
    """The content of MODEL.json.

    Attributes
    ----------
    rectifit_model : version of the format
    target, weights : columns that the model was fitted to; weights may be None
    columns, levels : columns of the features, and levels of the categories, as in `Encoding`
    formula : of a fit by a formula, which then has the levels
    coefficients : by the names of the encoding
    intercept, fit_intercept : the intercept is 0 where none was fitted
    floor : no prediction is below it
    bounds : lower and upper bounds of coefficients, by the same names; None where there is none
    linear_constraints : what else is known about the coefficients
    alpha, method, stopped, objective, seconds, n_iter, n_surrogates, surrogate_objective, guarantee : as in
        `Solution`
    certificate : the numbers of `Certificate`
    goodness : as in `inference.Summary`; n_positive counts outcomes above the floor
    covariance, level : kind of the standard errors, and probability of the intervals
    estimates : of every coefficient, then of the intercept and of the floor where they were fitted
    notes : what a reader of the standard errors must know
    covariance_matrix : of the estimates, the lines of its lower triangle
    sums : what other kinds of standard errors, effects and prediction intervals need of the data

    Models with more than `MAX_COLUMNS` coefficients have neither a matrix nor sums.
    """

    rectifit_model: Version
    target: str
    weights: str | None
    columns: Names
    levels: dict[str, Levels]
    formula: FormulaRecord | None = None
    coefficients: dict[str, float]
    intercept: float
    fit_intercept: bool
    floor: float
    bounds: dict[str, tuple[float | None, float | None]] = Field(default_factory=dict)
    linear_constraints: tuple[LinearConstraint, ...] = ()
    alpha: Size = 0.0
    method: str
    stopped: Stop
    objective: Size
    seconds: Size
    n_iter: Count = 0
    n_surrogates: Count = 0
    surrogate_objective: Size | None = None
    guarantee: Size | None = None
    certificate: CertificateRecord
    goodness: Goodness
    covariance: str
    level: Share
    estimates: tuple[Estimate, ...]
    notes: tuple[str, ...] = ()
    covariance_matrix: Triangle | None = None
    sums: Sums | None = None

    @model_validator(mode="after")
    def _check_agreement(self) -> SavedModel:
        names, certificate = self.encoding.names, self.certificate
        ends = ["intercept"] * self.fit_intercept + ["floor"] * self.floor_is_estimated
        demands = {
            "'levels' names a column that is not in 'columns'": set(self.levels) <= set(self.columns),
            "'columns' must be those of 'formula', and 'levels' empty beside it": (
                self.formula is None or (self.columns == self.encoding.columns and not self.levels)
            ),
            "'fit_intercept' must be that of 'formula'": (
                self.formula is None or self.formula.has_intercept == self.fit_intercept
            ),
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
            "'covariance_matrix' must have one line per estimate": (
                self.covariance_matrix is None or len(self.covariance_matrix) == len(self.estimates)
            ),
            "'sums' must be of as many columns as there are coefficients": (
                self.sums is None or len(self.sums.means) == len(names)
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
        if not self._is_precision_that_of_the_matrix():
            raise ValueError("'covariance_matrix' must have the squares of the 'estimates.std_error'")
        return self

    def _is_precision_that_of_the_matrix(self) -> bool:
        if self.covariance_matrix is None:
            return True
        squares = [line[-1] for line in self.covariance_matrix]
        stated = [row.std_error for row in self.estimates]
        pairs = zip(squares, stated, strict=True)
        # A coefficient that constraints hold has no standard error and does not vary.
        return all(
            square in (None, 0.0) if error is None else square is not None and isclose(sqrt(square), error)
            for square, error in pairs
        )

    @classmethod
    def from_solution(
        cls,
        solution: Solution,
        summary: Summary,
        table: DataTable | FittedModel,
        weights: str | None = None,
        *,
        with_sums: bool = True,
    ) -> SavedModel:
        """The model of a fit to a table, or by a formula, whose column of weights has that name.

        Sums are kept unless there are too many columns.
        """
        encoding, is_small = table.encoding, len(table.encoding.names) <= MAX_COLUMNS
        moments = solution.without_data().kept.get("moments") if with_sums and is_small else None
        # Plain data has None where a number is not defined.
        plain = summary.to_dict()
        entries = ("names", "std_error", "low", "high", "at_bound")
        rows = zip(*(plain[name] for name in entries), strict=True)
        return cls(
            rectifit_model=VERSION,
            target=solution.target or "y" if isinstance(table, FittedModel) else table.target,
            weights=weights,
            columns=encoding.columns,
            levels=dict(encoding.levels) if isinstance(encoding, Encoding) else {},
            formula=FormulaRecord.of(encoding) if isinstance(encoding, FormulaEncoding) else None,
            coefficients=dict(zip(encoding.names, solution.beta.tolist(), strict=True)),
            intercept=solution.intercept,
            fit_intercept=solution.fit_intercept,
            floor=solution.floor,
            bounds=_bounds_of(solution.constraints, encoding.names),
            linear_constraints=_lines_of(solution.constraints, encoding.names),
            alpha=solution.alpha,
            method=solution.method,
            stopped=solution.stopped,
            objective=solution.objective,
            seconds=solution.seconds,
            n_iter=solution.n_iter,
            n_surrogates=solution.n_surrogates,
            surrogate_objective=solution.surrogate_objective,
            guarantee=solution.guarantee,
            certificate=CertificateRecord.model_validate(solution.certificate),
            goodness=Goodness(**{name: plain[name] for name in Goodness.model_fields}),
            covariance=summary.covariance,
            level=summary.level,
            estimates=tuple(
                Estimate(name=name, std_error=error, low=low, high=high, at_bound=at_bound)
                for name, error, low, high, at_bound in rows
            ),
            notes=summary.notes,
            covariance_matrix=lower_triangle(summary.cov.values) if is_small else None,
            sums=None if moments is None else Sums.of(moments),
        )

    def solution(self) -> Solution:
        """The fit without its data, with what inference needs."""
        names = self.encoding.names
        fit = Solution(
            self.beta,
            self.intercept,
            self.objective,
            self.surrogate_objective,
            self.method,
            self.stopped,
            self.certificate.read(),
            self.n_iter,
            self.n_surrogates,
            self.seconds,
            (),
            guarantee=self.guarantee,
            floor=self.floor,
            constraints=read_constraints(len(names), names, **self.constraints),
            fit_intercept=self.fit_intercept,
            alpha=self.alpha,
            is_weighted=self.weights is not None,
            feature_names=names,
            target=self.target,
        )
        if self.sums is None:
            return fit
        kept: dict[str, Any] = {"moments": self.sums.read(fit)}
        if self.covariance_matrix is not None:
            matrix = fill_triangle(self.covariance_matrix)
            kept["covariance"] = KeptCovariance(matrix, self.covariance, self.notes)
        return replace(fit, kept=kept)

    @property
    def encoding(self) -> Encoder:
        """How rows of a table become numbers."""
        return Encoding(self.columns, self.levels) if self.formula is None else self.formula.read()

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

    def fitted(self) -> FittedModel:
        """The fit as Python users hold it."""
        return FittedModel(self.solution(), self.encoding, self.weights)

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
    text = model.model_dump_json(indent=2)
    write_file(path, LIST.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n")


def save_model(model: FittedModel, path: str | Path, **options: Any) -> None:
    """Write a fit of `rectifit.relu` to a file of plain data, for `load_model` and `rectifit predict`.

    The file has the coefficients, the formula with all that it learned from the data, the summary with its
    covariance, and the sums that inference needs, but no rows.

    Parameters
    ----------
    model : FittedModel
    path : path of the file
    **options : of the summary, such as covariance

    Examples
    --------
    >>> save_model(relu("hours ~ educ + C(region)", wages), "hours.json")  # doctest: +SKIP
    """
    if not isinstance(model, FittedModel):
        raise TypeError(
            f"model is of type {type(model).__name__}; it must be a FittedModel, such as relu(...) returns"
        )
    write_model(
        SavedModel.from_solution(model.solution_, model.summary(**options), model, model.weights), path
    )


def load_model(path: str | Path) -> FittedModel:
    """Read a fit from a file that `save_model` or `rectifit fit --save` wrote.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    FittedModel
        Predictions for rows of a table, and the summary with its covariance. The data of the fit are not in
        the file: a bootstrap, clusters other than those of the fit and `verify` need a new fit.

    Examples
    --------
    >>> model = load_model("hours.json")  # doctest: +SKIP
    >>> print(model.summary())  # doctest: +SKIP
    """
    return read_model(path).fitted()


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
    if kind == "json_invalid" and "recursion" in allowed:
        return "is nested too deeply to be a model"
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
    # Without a path, the entries do not agree with each other, and the error is a sentence of its own, as
    # are those of formulas.
    is_sentence = not path or (path == "formula" and kind == "value_error")
    entry = "" if is_sentence else f"{path!r} is {_show(first['input'])}; it must be "
    return f"is damaged: {entry}{allowed}"


def _show(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
