"""The search for a proof: one tree, whose root is the whole space.

The root is tightened and bounded by curvature transfer. Where that gives every sample an interval, as it does
without an intercept and where the signal is high, the root is closed there or split by signs. Where it does
not, because there are directions in which all samples are off and nothing holds the coefficients, it is split
by directions, and cells are bounded by common corner weights within a proved scale.
"""

from __future__ import annotations

from rectifit._typing import Vector
from rectifit.certificate.best_first import Control
from rectifit.certificate.branching import SignSearch
from rectifit.certificate.cell_kernel import expand
from rectifit.certificate.cells import CellSearch
from rectifit.certificate.proof import MEMORY_LIMIT
from rectifit.certificate.records import Kinds, Samples
from rectifit.certificate.scale_kernel import is_empty, search_nodes
from rectifit.certificate.tighten import has_intervals
from rectifit.parallel import workers
from rectifit.preparing import prepare

__all__ = ["Search"]


class Search:
    """Search for losses below a cutoff; `along` are coefficients that are good already.

    Parameters
    ----------
    samples : Samples
    along : Vector
    control : Control
    reach : Vector, optional
        The largest |u| of every sample that is looked at. Coefficients are then not free to grow, so that
        arguments along rays do not hold, and the search goes by signs.
    memory_limit : int, optional
        Bytes that open nodes may take.
    """

    def __init__(
        self,
        samples: Samples,
        along: Vector,
        control: Control,
        reach: Vector | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self._samples, self._along, self._control, self._reach = samples, along, control, reach
        self._memory_limit = memory_limit
        self._part: SignSearch | CellSearch = SignSearch(samples, control, reach)

    @property
    def lower_bound(self) -> float:
        """What is proved so far."""
        return self._part.lower_bound

    @property
    def n_nodes(self) -> int:
        return self._part.n_nodes

    @property
    def n_open(self) -> int:
        return self._part.n_open

    @property
    def kind(self) -> Kinds:
        """What is settled for all better solutions."""
        return self._part.kind

    def run(self) -> bool:
        """Search until nothing below the cutoff is left (True) or the search must end."""
        root = self._part
        assert isinstance(root, SignSearch)
        if root.start():
            return True
        if self._control.is_over():
            return False
        if not self._goes_by_signs(root):
            prepare(expand, search_nodes, is_empty)
            self._part = CellSearch(
                self._samples,
                self._along,
                self._control,
                kind=root.kind,
                proved=root.lower_bound,
                memory_limit=self._memory_limit,
            )
        with workers(self._control.n_threads) as mapped:
            return self._part.run(mapped)

    def _goes_by_signs(self, root: SignSearch) -> bool:
        return self._reach is not None or has_intervals(root.region)
