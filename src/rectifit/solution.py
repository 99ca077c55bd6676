"""What a user holds after a fit: the fit itself, and all that can be asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rectifit.certificate.proof import MEMORY_LIMIT, TARGET_GAP
from rectifit.certifying import prove
from rectifit.data.kinds import check_columns, predict
from rectifit.fit import Certificate, Fit, Stop, SurrogateMinimum, TraceRow, relative_gap
from rectifit.interchange import to_module, write_onnx
from rectifit.verifying import Verification, VerificationError, verify

if TYPE_CHECKING:
    from rectifit.inference import Summary

__all__ = [
    "Certificate",
    "Solution",
    "Stop",
    "SurrogateMinimum",
    "TraceRow",
    "Verification",
    "VerificationError",
    "relative_gap",
]


class Solution(Fit):  # noqa: D101 - what a fit is, is said once
    __doc__ = Fit.__doc__

    @classmethod
    def of(cls, fit: Fit, columns: Sequence[str] | None = None, target: str | None = None) -> Solution:
        """A fit as a solution, with the names of its data, where there are any."""
        # The same fields: no need to set them one by one.
        solution = cls.__new__(cls)
        vars(solution).update(vars(fit))
        if columns is not None:
            vars(solution)["feature_names"] = names = tuple(map(str, columns))
            if fit.constraints is not None and fit.constraints.names != names:
                vars(solution)["constraints"] = replace(fit.constraints, names=names)
        if target is not None:
            vars(solution)["target"] = target
        return solution

    def predict(self, X: Any) -> Any:
        """max(floor, X beta + intercept) for new rows.

        Of a tensor, a tensor on its device; of a dask array or data frame, a dask array, computed chunk by
        chunk when it is asked for.
        """
        check_columns(X, self.feature_names)
        return predict(X, self.beta, self.intercept, self.floor)

    def verify(self) -> Verification:
        """Recompute what is stated from the data; raise VerificationError if anything is not so.

        Returns
        -------
        Verification
            Every number that was found again, with its residual and what the rounding of these data allows:
            the objective, the surrogate's minimum and its dual bound, and the bounds that need no search.
            What rests on a search that is not repeated is named in `open`.

        Examples
        --------
        >>> from rectifit import solve
        >>> solution = solve([[-1.0], [0.0], [1.0], [2.0]], [0.5, 0.0, 1.0, 2.5], "sorting")
        >>> solution.verify()["objective"].holds
        True
        """
        return verify(self)

    def summary(self, **options: Any) -> Summary:
        """A table with standard errors and intervals; the options are those of `inference.summarise`."""
        # Imported here: SciPy's distributions take longer to load than all the rest.
        from rectifit.inference import summarise

        return summarise(self, **options)

    def without_data(self) -> Solution:
        """The same fit without the training data: coefficients, and the small sums that inference needs.

        Of data that is read in passes, these are kept only if they were asked for before.
        """
        # Imported here: SciPy's distributions take longer to load than all the rest.
        from rectifit.inference.storing import keep_sums

        return replace(self, problem=None, surrogate=None, kept=keep_sums(self))

    def certify(
        self,
        *,
        time_limit: float | None = 10.0,
        target_gap: float = TARGET_GAP,
        box: float | None = None,
        memory_limit: float = MEMORY_LIMIT,
        n_jobs: int | None = None,
        verbose: int = 0,
        proof: str | Path | None = None,
    ) -> Certificate:
        """Prove how good this fit is, with its data, weights, ridge, floor and constraints.

        Parameters
        ----------
        time_limit, target_gap, box, memory_limit, n_jobs, verbose, proof : as for `rectifit.certify`

        Examples
        --------
        >>> from rectifit import solve
        >>> from rectifit.datasets import make_relu
        >>> X, y, *_ = make_relu(100, 5, noise=0.3, random_state=0)
        >>> print(solve(X, y, alpha=1.0, fit_intercept=False).certify())
        no fit can be more than 0.01 % better
        """
        if self.problem is None:
            raise ValueError(
                "problem is None: this solution was stored without its data; use certify(X, y, solution)"
            )
        found = prove(
            self.problem,
            self,
            (self.beta, self.intercept),
            time_limit=time_limit,
            target_gap=target_gap,
            box=box,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            verbose=verbose,
            proof=proof,
        )
        solution = Solution.of(found.fit, self.feature_names, self.target)
        return replace(found.certificate, solution=solution)

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
