"""What a search for a proof says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["MEMORY_LIMIT", "TARGET_GAP", "ProofResult"]

# The gap down to which a proof goes, unless another one is asked for.
TARGET_GAP = 1e-4
# Bytes that the open nodes of a search may take, unless another number is given.
MEMORY_LIMIT = 1_000_000_000


@dataclass(frozen=True)
class ProofResult:
    """The part of a certificate that a search adds.

    Attributes
    ----------
    status : "optimal", "time_limit", "interrupted" or "bound_only"
    box : the coefficients that the bound is for; None: all
    n_nodes : nodes of the search
    seconds : spent on it
    n_active, n_inactive, n_undecided : samples whose state in every better solution is proved, and the rest
    history : rows (seconds, incumbent, bound)
    ended_by_rounding : whether nothing was left to search although the gap is open
    """

    status: str
    box: float | None
    n_nodes: int
    seconds: float
    n_active: int
    n_inactive: int
    n_undecided: int
    history: tuple[tuple[float, float, float], ...]
    ended_by_rounding: bool = False

    def fields(self) -> dict[str, Any]:
        """The entries under the names that they have in a `Certificate`."""
        return dict(vars(self))
