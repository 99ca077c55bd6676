"""The numbers printed in the paper's tables."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from statistics import median

__all__ = ["MEASURES", "printed_median", "printed_values"]

MEASURES = ("prediction", "recovery")
# The columns of the file.
COLUMNS = {
    "sorting": "sorting",
    "sorting+iterative": "sorting_iter",
    "sorting+gd": "sorting_gd",
    "gd": "gd",
    "sgd": "sgd",
}


@cache
def _rows() -> list[dict[str, str]]:
    text = files("rectifit.datasets").joinpath("realizable.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def printed_values(p: int, sparsity: float, method: str, measure: str) -> list[float]:
    """The 20 entries in one column of one table; `measure` is "prediction" or "recovery"."""
    name = f"{COLUMNS[method]}_{measure}"
    return [float(row[name]) for row in _rows() if int(row["p"]) == p and float(row["sparsity"]) == sparsity]


def printed_median(p: int, sparsity: float, method: str, measure: str) -> float:
    """The median of `printed_values`."""
    return median(printed_values(p, sparsity, method, measure))
