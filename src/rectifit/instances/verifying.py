"""Check results against the data: digests, objectives, and bounds that somebody's fit refutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rectifit.instances.library import Instance, load_instance
from rectifit.instances.results import Result, combine, shipped_results
from rectifit.tolerances import AGREEMENT_TOL

__all__ = ["Verdict", "verify_instances"]


class Verdict(NamedTuple):
    """What was checked about an instance, and the faults that were found, each in one sentence."""

    instance: str
    n_results: int
    faults: tuple[str, ...]


def verify_instances(names: Iterable[str], more: Sequence[Result] = ()) -> Iterator[Verdict]:
    """Make the data of instances again, compare digests, and compute all objectives from coefficients.

    A bound that is above the best objective of anybody is refuted.

    Parameters
    ----------
    names : names of instances
    more : results in addition to those that come with rectifit

    Yields
    ------
    Verdict
    """
    results = [*shipped_results(), *more]
    for name in names:
        own = [result for result in results if result.instance == name]
        try:
            instance = load_instance(name)
        except RuntimeError as error:
            yield Verdict(name, len(own), (str(error),))
            continue
        faults = [fault for result in own for fault in _faults_of(result, instance)]
        if own:
            best = combine(own)
            faults += [
                f"{result.solver} claims the bound {result.lower_bound!r}, but {best.found_by} reached "
                f"{best.objective!r}"
                for result in own
                if result.lower_bound > best.objective * (1.0 + AGREEMENT_TOL)
            ]
        yield Verdict(name, len(own), tuple(faults))


def _faults_of(result: Result, instance: Instance) -> Iterator[str]:
    if result.digest != instance.digest:
        yield f"the data of {result.solver} have the digest {result.digest[:12]}, not {instance.digest[:12]}"
        return
    if not result.coefficients:
        if result.objective < np.inf:
            yield f"{result.solver} states the objective {result.objective!r} without coefficients"
        return
    p = instance.X.shape[1]
    n_coefficients = p + instance.fit_intercept
    if len(result.coefficients) != n_coefficients:
        yield f"{result.solver} has {len(result.coefficients)} coefficients; it must be {n_coefficients}"
        return
    computed = instance.objective(result.coefficients[:p], sum(result.coefficients[p:]))
    if not np.isclose(computed, result.objective, rtol=AGREEMENT_TOL, atol=0.0):
        yield f"{result.solver} states the objective {result.objective!r}; its coefficients have {computed!r}"
