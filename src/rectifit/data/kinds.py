"""Rows of any kind: their columns, and predictions for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.checks import check_design, import_torch, is_tensor
from rectifit.data.base import Data
from rectifit.data.dask import check_dimensions, is_dask, predict_chunks
from rectifit.data.prediction import relu

__all__ = ["check_columns", "encoded", "header_of", "is_lazy", "like", "name_of", "names_of", "predict"]


def header_of(X: Any) -> Any:
    """What scikit-learn can read the columns from; None for `Data`, which describes its columns itself."""
    if isinstance(X, Data):
        return None
    if is_dask(X):
        check_dimensions(X, "X", 2)
    # The empty frame in _meta has the columns of the dask frame.
    return X._meta if is_dask(X) and hasattr(X, "columns") else X


def names_of(X: Any) -> list[str] | None:
    """Names of the columns, where they have any."""
    names = X.feature_names if isinstance(X, Data) else getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return list(names)


def encoded(model: Any, X: Any) -> Any:
    """Rows as the coefficients of a model need them: one that was fitted to a table knows how to encode."""
    return model.encode(X) if hasattr(model, "encode") else X


def check_columns(X: Any, known: Sequence[str] | None) -> None:
    """Refuse a table whose columns are not those of the fit, in their order; tables without names pass."""
    names = names_of(X)
    if names is not None and known is not None and names != list(known):
        raise ValueError(f"X has the columns {', '.join(names)}; the fit has {', '.join(known)}")


def name_of(y: Any) -> str | None:
    """The name of the outcome, where it has one."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def is_lazy(X: Any) -> bool:
    """Whether predictions for X are computed only when they are needed, chunk by chunk."""
    return is_dask(X)


def predict(X: Any, beta: Vector, intercept: float = 0.0, floor: float = 0.0) -> Any:
    """max(floor, X beta + intercept) for rows of any kind, which are checked.

    Parameters
    ----------
    X : array-like, SciPy sparse matrix, tensor, dask array or data frame
        The prediction for a tensor is a tensor on the same device; that for a dask collection is a dask
        array, computed chunk by chunk on demand.
    beta, intercept, floor : the fit
    """
    if is_dask(X):
        check_dimensions(X, "X", 2)
    table = X if is_dask(X) or (is_tensor(X) and X.ndim == 2) else check_design(X)
    if table.shape[1] != beta.size:
        raise ValueError(f"X has {table.shape[1]} columns; the fit has {beta.size} and needs as many")
    if is_dask(X):
        return predict_chunks(X, beta, intercept, floor)
    if is_tensor(X):
        b = like(beta, X)
        return relu(X.to(b.dtype), b, intercept, floor, import_torch())
    return np.asarray(relu(table, beta, intercept, floor))


def like(values: Any, X: Any) -> Any:
    """Values as a tensor on the device of the tensor X, with its precision."""
    torch = import_torch()
    dtype = X.dtype if X.is_floating_point() else torch.float64
    values = values if torch.is_tensor(values) else np.array(values)
    return torch.as_tensor(values, dtype=dtype, device=X.device)
