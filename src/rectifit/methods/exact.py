"""Prove how good the best solution is, and find better ones on the way: branch and bound.

Starts from the best solution so far, or from `auto`. Every point that the search meets is polished by the
iterative method. It ends when the gap is at most target_gap, or with the time limit; incumbent and bound are
valid at any moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rectifit.certificate.proof import MEMORY_LIMIT, TARGET_GAP
from rectifit.certificate.recording import ProofFile
from rectifit.clock import standing_still
from rectifit.fit import Stop
from rectifit.methods.auto import Auto
from rectifit.methods.search import Search

__all__ = ["Exact"]


@dataclass(frozen=True)
class Exact:
    """Branch and bound down to a gap of search.target_gap, 1e-4 if there is none.

    With a box, the bound is for coefficients up to this size on the standardised scale. Open nodes take no
    more memory than memory_limit, in bytes.
    """

    box: float | None = None
    memory_limit: int = MEMORY_LIMIT
    proof: ProofFile | None = None
    needs_rows: ClassVar[bool] = True

    def run(self, search: Search) -> Stop:
        """Search, and put incumbent, bound and proof into the search."""
        # Imported here: it loads the compiler, which is done once, as compiling is.
        with standing_still():
            from rectifit.methods.proving import prepare_proof, prove
        prepare_proof()
        if search.target_gap is None:
            search.target_gap = TARGET_GAP
        if search.best is None:
            Auto(with_bound=False).run(search)
        return prove(search, self.box, self.memory_limit, self.proof)
