"""What a user holds after a fit: the fit itself, and all that can be asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rectifit.data.kinds import predict
from rectifit.fit import Certificate, Fit, Stop, SurrogateMinimum, TraceRow, VerificationError, relative_gap
from rectifit.interchange import to_module, write_onnx

if TYPE_CHECKING:
    from rectifit.inference import Summary

__all__ = [
    "Certificate",
    "Solution",
    "Stop",
    "SurrogateMinimum",
    "TraceRow",
    "VerificationError",
    "relative_gap",
]


class Solution(Fit):  # noqa: D101 - what a fit is, is said once
    __doc__ = Fit.__doc__

    @classmethod
    def of(cls, fit: Fit) -> Solution:
        """A fit as a solution."""
        # The same fields: no need to set them one by one.
        solution = cls.__new__(cls)
        vars(solution).update(vars(fit))
        return solution

    def predict(self, X: Any) -> Any:
        """max(floor, X beta + intercept) for new rows.

        Of a tensor, a tensor on its device; of a dask array or data frame, a dask array, computed chunk by
        chunk when it is asked for.
        """
        return predict(X, self.beta, self.intercept, self.floor)

    def summary(self, **options: Any) -> Summary:
        """A table with standard errors and intervals; the options are those of `inference.summarise`."""
        # Imported here: SciPy's distributions take longer to load than all the rest.
        from rectifit.inference import summarise

        return summarise(self, **options)

    def to_torch(self) -> Any:
        """The fit as `torch.nn.Sequential(Linear, ReLU)` in float64, to be trained further.

        With another floor than 0 the second layer is `Threshold(floor, floor)`, which is max(floor, .). A
        module is also a start of `solve`, on the way back.

        Examples
        --------
        >>> from rectifit import solve
        >>> solution = solve([[-1.0], [0.0], [1.0], [2.0]], [0.0, 0.0, 1.0, 2.0])
        >>> solution.to_torch()  # doctest: +SKIP
        Sequential(
          (0): Linear(in_features=1, out_features=1, bias=True)
          (1): ReLU()
        )
        """
        return to_module(self)

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """The fit as an ONNX model that predicts in float64, written to a file if there is a path."""
        return write_onnx(self, path)
