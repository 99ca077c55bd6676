"""What a fit keeps for inference when it is stored without its data."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rectifit.fit import Fit
from rectifit.inference.covariance import estimate_covariance
from rectifit.inference.effects import marginal_effects
from rectifit.inference.sandwich import ScaleError
from rectifit.inference.summary import summarise
from rectifit.inference.sums import FitMoments

__all__ = ["keep_sums"]

# Kinds of standard errors that together need all sums.
KINDS = ("HC0", "HC2", "HC3")


def keep_sums(solution: Fit) -> dict[str, Any]:
    """The sums of a fit, without its data; all of them if it is in memory."""
    if solution.problem is not None and solution.problem.data.in_memory:
        # Where there are no standard errors, there is nothing to keep.
        with suppress(ScaleError):
            summarise(solution)
            marginal_effects(solution, discrete=True)
            for kind in KINDS:
                estimate_covariance(solution, kind)
    kept = dict(solution.kept)
    moments: FitMoments | None = kept.get("moments")
    return kept if moments is None else kept | {"moments": moments.without_data()}
