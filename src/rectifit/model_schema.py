"""The parts of MODEL.json as records that check themselves, and errors in one sentence."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

__all__ = [
    "VERSION",
    "CertificateRecord",
    "Estimate",
    "Goodness",
    "Levels",
    "Names",
    "Record",
    "Share",
    "Size",
    "Version",
    "explain",
]

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


class Record(BaseModel):
    """Entries of exactly these types: no conversion, no others, no infinities, no NaN."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


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
    n_active: Count
    n_inactive: Count
    n_undecided: Count


class Goodness(Record):
    """How well a model fits, as in `inference.Summary`; None where a number is not defined."""

    n_samples: Count
    n_positive: Count
    r_squared: float | None
    sigma: Size | None
    share_active: Share


class Estimate(Record):
    """Precision of a coefficient; None where the data do not determine it."""

    name: str
    std_error: Size | None
    low: float | None
    high: float | None


def explain(error: ValidationError) -> str:
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
