"""What is allowed in the entries of MODEL.json."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["CERTIFICATE", "ESTIMATE", "GOODNESS", "MODEL", "VERSION", "check_record"]

VERSION = 1
STATUSES = ("optimal", "time_limit", "interrupted", "bound_only")


def check_record(record: dict[str, Any], kinds: Kinds, path: str = "") -> None:
    """ValueError, in one sentence, unless the record has these entries, all right, and no others."""
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


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _or_null(is_right: Callable[[Any], bool], allowed: str) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value is None or is_right(value)), f"{allowed}, or null"


# What is allowed in every entry.
Kinds = dict[str, tuple[Callable[[Any], bool], str]]
TEXT = (_is_text, "text")
NUMBER = (_is_number, "a finite number")
SIZE = (_is_size, "a finite number, at least 0")
COUNT = (_is_count, "a whole number, at least 0")
SHARE = (_is_share, "a number from 0 to 1")
FLAG = (lambda value: isinstance(value, bool), "true or false")
OBJECT = (lambda value: isinstance(value, dict), "an object")
MODEL: Kinds = {
    "rectifit_model": COUNT,
    "target": TEXT,
    "weights": _or_null(*TEXT),
    "columns": (_is_names, "a list of names, each once"),
    "levels": (_is_levels, "lists of names under the names of columns"),
    "coefficients": (_is_numbers, "finite numbers under the names of features"),
    "intercept": NUMBER,
    "fit_intercept": FLAG,
    "floor": NUMBER,
    "method": TEXT,
    "stopped": TEXT,
    "objective": SIZE,
    "seconds": SIZE,
    "certificate": OBJECT,
    "goodness": OBJECT,
    "covariance": TEXT,
    "level": SHARE,
    "estimates": (_is_objects, "a list of objects"),
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
    "floor": _or_null(*NUMBER),
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
ESTIMATE: Kinds = {
    "name": TEXT,
    "std_error": _or_null(*SIZE),
    "low": _or_null(*NUMBER),
    "high": _or_null(*NUMBER),
}
