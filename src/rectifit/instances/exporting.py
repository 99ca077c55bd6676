"""A regression as a programme for general solvers, and as a file.

With the fitted values f = max(0, u), the negative parts s = f - u and the losses l, the problem is

    minimise  sum l_i    over beta, the intercept, f >= 0, s >= 0
    subject to           l_i >= (f_i - y_i)^2
                         f_i - s_i = x_i'beta + intercept
                         at most one of f_i and s_i is not 0 (a special ordered set, SOS1)
                         f_i <= max(0, y_i) + |y|.

The last line holds at every fit that is no worse than the zero function. No bounds of coefficients and no
large constants are needed: every global solution is one of the regression.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.instances.library import Instance
from rectifit.writing import write_file

__all__ = ["FORMATS", "Programme", "export_instance", "make_programme"]

# Formats that SCIP writes, and those of the data alone.
PROGRAMMES = (".lp", ".mps")
FORMATS = (*PROGRAMMES, ".csv", ".npz")


class Programme(NamedTuple):
    """A model of pyscipopt, and its variables for beta and, at the end, for the intercept if there is one."""

    model: Any
    coefficients: list[Any]


def make_programme(
    X: Matrix, y: Vector, *, fit_intercept: bool = True, bounds: Matrix | None = None, name: str = "relu"
) -> Programme:
    """Model a regression for SCIP.

    Parameters
    ----------
    X, y : the data
    fit_intercept : bool, default=True
    bounds : array of shape (n_features, 2), optional
        Bounds of the coefficients; infinities stand for none.
    name : str
        Of the problem.

    Returns
    -------
    Programme
    """
    try:
        from pyscipopt import Model, quicksum
    except ImportError as error:
        raise ImportError("programmes need pyscipopt; install it with: pip install pyscipopt") from error
    model = Model(name)
    model.hideOutput()
    ends = np.full((X.shape[1], 2), [-np.inf, np.inf]) if bounds is None else np.asarray(bounds, dtype=float)
    beta = [
        model.addVar(
            f"beta_{j}",
            lb=float(low) if np.isfinite(low) else None,
            ub=float(high) if np.isfinite(high) else None,
        )
        for j, (low, high) in enumerate(ends, start=1)
    ]
    intercept = [model.addVar("intercept", lb=None)] if fit_intercept else []
    norm = float(np.linalg.norm(y))
    losses = []
    for i, (x, outcome) in enumerate(zip(X.tolist(), y.tolist(), strict=True), start=1):
        fitted = model.addVar(f"f_{i}", lb=0.0, ub=max(outcome, 0.0) + norm)
        negative = model.addVar(f"s_{i}", lb=0.0)
        loss = model.addVar(f"l_{i}", lb=0.0)
        terms = [entry * variable for entry, variable in zip(x, beta, strict=True) if entry != 0.0]
        model.addCons(quicksum([fitted, -negative, *(-one for one in (*terms, *intercept))]) == 0.0, f"u_{i}")
        model.addConsSOS1([fitted, negative], name=f"one_{i}")
        # Expanded: files have no squares of differences.
        square = fitted * fitted - 2.0 * outcome * fitted + outcome * outcome
        model.addCons(square - loss <= 0.0, f"loss_{i}")
        losses.append(loss)
    model.setObjective(quicksum(losses), "minimize")
    return Programme(model, [*beta, *intercept])


def export_instance(instance: Instance, path: str | Path) -> None:
    """Write an instance for other programs.

    Parameters
    ----------
    instance : from `load_instance`
    path : str or Path
        A name that ends in .lp or .mps (a programme with SOS1 and quadratic constraints, written by SCIP with
        15 digits), .csv (columns y, x1, x2, ..., numbers in full) or .npz (X, y and fit_intercept).
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{file.name!r} does not say what to write; it must end in {', '.join(FORMATS)}")
    if suffix in PROGRAMMES:
        made = make_programme(
            instance.X, instance.y, fit_intercept=instance.fit_intercept, name=instance.name
        )
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / f"programme{suffix}"
            made.model.writeProblem(str(written), verbose=False)
            write_file(file, written.read_bytes())
    elif suffix == ".npz":
        content = io.BytesIO()
        np.savez(content, X=instance.X, y=instance.y, fit_intercept=instance.fit_intercept)
        write_file(file, content.getvalue())
    else:
        names = ["y", *(f"x{j + 1}" for j in range(instance.X.shape[1]))]
        rows = np.column_stack([instance.y, instance.X]).tolist()
        write_file(file, "\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows), ""]))
