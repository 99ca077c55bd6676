"""Checks of what a user gives. Every error is one sentence: the argument, what was found, what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Vector

__all__ = [
    "check_active",
    "check_array",
    "check_count",
    "check_design",
    "check_floor",
    "check_length",
    "check_number",
    "check_outcome",
    "check_random_state",
    "check_sizes",
    "check_start",
    "check_tensor",
    "check_weight",
    "import_torch",
    "is_tensor",
    "refuse_text",
    "row_blocks",
    "to_numpy",
]

FloatArray = npt.NDArray[np.floating[Any]]

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# Types of numbers. The question about abstract ones is slow, and most need no answer to it.
WHOLE = (int, Integral)
NUMBER = (float, Real)
TRUTH = (bool, np.bool_)

# Columns below this size have coefficients that would overflow when they are squared.
MIN_COLUMN = 1e-153

# Numbers in a block of rows, which stays in the processor's cache.
BLOCK_NUMBERS = 1 << 17


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices over all rows, each of about BLOCK_NUMBERS numbers."""
    size = max(1, BLOCK_NUMBERS // max(1, n_columns))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def is_tensor(values: object) -> bool:
    """Whether it is a torch tensor; torch need not be there."""
    return type(values).__module__.partition(".")[0] == "torch" and hasattr(values, "detach")


def import_torch() -> Any:
    """PyTorch, or a hint how to install it."""
    try:
        import torch
    except ImportError:
        raise ImportError("tensors and modules need PyTorch: pip install 'rectifit[torch]'") from None
    return torch


def to_numpy(values: Any) -> Any:
    """A tensor as a NumPy array in host memory, without a copy where it is there; all else as it is."""
    if not is_tensor(values):
        return values
    host = values.detach().cpu()
    # NumPy has no such type.
    return (host.float() if str(host.dtype) == "torch.bfloat16" else host).numpy()


def check_tensor(values: Any, name: str) -> Any:
    """A real, dense tensor, cut off from its gradient; all else as it is."""
    if not is_tensor(values):
        return values
    if values.is_complex():
        raise TypeError(f"{name} has dtype {values.dtype}; it must be real numbers")
    if str(values.layout) != "torch.strided":
        raise TypeError(f"{name} is a sparse tensor ({values.layout}); a dense one is needed")
    return values.detach()


def check_design(X: Any) -> Any:
    """X as a finite dense table, float32 or float64 as given, or as a SciPy CSR array of float64."""
    if not (hasattr(X, "tocsr") and hasattr(X, "toarray")):
        return check_array(X, "X", dimensions=2)
    from scipy.sparse import csr_array

    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {X.dtype}; it must be real numbers")
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; it must be a table with at least one row and one column")
    table = csr_array(X, dtype=np.float64)
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    _check_finite(table.data, "X")
    return table


def check_array(values: object, name: str, dimensions: int) -> FloatArray:
    """A finite, non-empty, real array of the given dimension; float32 stays, all else becomes float64."""
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} is a sparse matrix ({type(values).__name__}); a dense array is needed")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked entries; all entries must be present")
    try:
        array = np.asarray(to_numpy(check_tensor(values, name)) if is_tensor(values) else values)
    except ValueError:
        raise ValueError(f"{name} is ragged; all of its rows must have the same length") from None
    if array.ndim != dimensions:
        wanted = "a table of shape (n_samples, n_features)" if dimensions == 2 else "one-dimensional"
        raise ValueError(f"{name} has shape {array.shape}; it must be {wanted}")
    if array.size == 0:
        raise ValueError(f"{name} has shape {array.shape} and is empty; at least one entry is needed")
    if array.dtype not in FLOATS:
        array = _to_float64(array, name)
    _check_finite(array, name)
    return array


def _to_float64(array: npt.NDArray[Any], name: str) -> FloatArray:
    refuse_text(array, name)
    if array.dtype.kind not in "fiubO":
        raise TypeError(f"{name} has dtype {array.dtype}; it must be real numbers")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} has entries that are missing or not numbers; it must be real numbers"
        ) from None


def refuse_text(array: npt.NDArray[Any], name: str) -> None:
    """Numbers written as text are text."""
    if array.dtype.kind in "USmM" or (
        array.dtype == object and any(isinstance(entry, str | bytes) for entry in array.flat)
    ):
        raise TypeError(f"{name} has entries that are not numbers but text or dates; it must be real numbers")


def check_outcome(y: object, n_samples: int) -> Vector:
    """y in float64, one entry per row of X."""
    return check_length(check_array(y, "y", dimensions=1).astype(np.float64, copy=False), "y", n_samples)


def check_weight(sample_weight: object, n_samples: int) -> Vector | None:
    """Non-negative weights, not all zero, one per row of X; or None."""
    if sample_weight is None:
        return None
    weight = check_array(sample_weight, "sample_weight", dimensions=1).astype(np.float64, copy=False)
    check_length(weight, "sample_weight", n_samples)
    if weight.min() < 0.0:
        raise ValueError(
            f"sample_weight has a negative entry ({weight.min():g}); weights must be non-negative"
        )
    if weight.max() == 0.0:
        raise ValueError("sample_weight is zero everywhere; at least one weight must be positive")
    return weight


def check_length(values: Vector, name: str, n_samples: int) -> Vector:
    """The values themselves, if there is one per row of X."""
    if values.shape[0] != n_samples:
        raise ValueError(
            f"{name} has {values.shape[0]} entries but X has {n_samples} rows; they must be equally many"
        )
    return values


def check_sizes(largest: Vector) -> None:
    """ValueError if a column is too small; `largest` are the largest |sqrt(w) x| of the columns."""
    for j in np.flatnonzero((largest > 0.0) & (largest < MIN_COLUMN)).tolist():
        raise ValueError(
            f"X and sample_weight are too small: the largest entry of column {j}, times the root of its "
            f"weight, is {largest[j]:.3g}; it must be 0 or at least {MIN_COLUMN:g}: multiply the column"
        )


def check_floor(floor: Any, fit_intercept: bool, y: Vector | None = None) -> float | None:
    """A finite number, or None for "estimate"; where y is at hand, y - floor must be finite, too."""
    is_number = isinstance(floor, NUMBER) and not isinstance(floor, TRUTH)
    if not is_number and not isinstance(floor, str):
        raise TypeError(f"floor is {floor!r}; it must be a number or 'estimate'")
    if isinstance(floor, str) and floor != "estimate":
        raise ValueError(f"floor is {floor!r}; it must be a number or 'estimate'")
    if floor != 0.0 and not fit_intercept:
        raise ValueError(f"floor is {floor!r}; with fit_intercept=False it must be 0")
    if isinstance(floor, str):
        return None
    if floor == 0.0:
        # Outcomes are finite as they are.
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        if not (np.isfinite(float(floor)) and (y is None or np.isfinite(y - float(floor)).all())):
            raise ValueError(f"floor is {floor!r}; it must be finite, and so must be y - floor")
    return float(floor)


def check_active(active: object, n_samples: int) -> Mask:
    """Active sets as boolean masks over samples, one per line."""
    masks = np.asarray(to_numpy(active))
    if masks.dtype != np.bool_:
        raise TypeError(f"active has dtype {masks.dtype}; it must be a boolean mask over samples")
    if masks.ndim not in (1, 2) or masks.shape[-1] != n_samples:
        raise ValueError(f"active has shape {masks.shape}; it must have one entry per sample, ({n_samples},)")
    return np.ascontiguousarray(np.atleast_2d(masks))


def check_start(start: Any, problem: Any, name: str = "start") -> tuple[Vector, float]:
    """A start as (beta, intercept): such a pair, a solution, model or module with both, or coefficients."""
    if hasattr(start, "beta") and hasattr(start, "intercept"):
        start = (start.beta, start.intercept)
    elif hasattr(start, "coef_") and hasattr(start, "intercept_"):
        start = (start.coef_, start.intercept_)
    elif hasattr(start, "modules") and hasattr(start, "state_dict"):
        start = _read_module(start, name)
    elif hasattr(start, "get_params"):
        raise TypeError(
            f"{name} is a {type(start).__name__} without coefficients; it must be a solution, a fitted "
            "estimator (of a pipeline the last step, of a search best_estimator_), or coefficients"
        )
    if not (isinstance(start, tuple | list) and len(start) == 2 and np.ndim(start[0]) == 1):
        start = (start, 0.0)
    beta = check_array(start[0], name, dimensions=1).astype(np.float64)
    if beta.shape != (problem.n_features,):
        raise ValueError(
            f"{name} has {beta.size} coefficients; X has {problem.n_features} columns and needs as many"
        )
    number = start[1].item() if is_tensor(start[1]) and start[1].ndim == 0 else start[1]
    if np.ndim(number) > 0 or not isinstance(number, Real | np.number):
        raise TypeError(f"{name} has intercept {start[1]!r}; it must be a number")
    intercept = float(number)
    if not np.isfinite(intercept):
        raise ValueError(f"{name} has intercept {intercept}; it must be finite")
    if intercept != 0.0 and not problem.fit_intercept:
        raise ValueError(f"{name} has intercept {intercept}; with fit_intercept=False it must be 0")
    return beta, intercept


def _read_module(module: Any, name: str) -> tuple[Any, float]:
    """Coefficients and intercept of a torch module with one linear layer that has one output."""
    layers = [layer for layer in module.modules() if hasattr(layer, "in_features")]
    if len(layers) != 1 or layers[0].out_features != 1:
        found = ", ".join(f"Linear({layer.in_features}, {layer.out_features})" for layer in layers) or "none"
        raise ValueError(f"{name} is a module with linear layers {found}; it must have one, with one output")
    bias = layers[0].bias
    return to_numpy(layers[0].weight)[0], 0.0 if bias is None else float(bias.detach()[0])


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number between the limits."""
    is_whole = isinstance(value, WHOLE) and not isinstance(value, TRUTH)
    if is_whole and value >= least and (most is None or value <= most):
        return int(value)
    allowed = f"a whole number of at least {least}" + ("" if most is None else f" and at most {most}")
    raise (ValueError if is_whole else TypeError)(
        f"{name} is {value if is_whole else repr(value)}; it must be {allowed}"
    )


def check_number(value: Any, name: str, *, above: float | None = None, below: float | None = None) -> float:
    """A finite number of at least 0, or strictly above `above`, and strictly below `below`.

    Above -inf it may be any finite number.
    """
    is_number = isinstance(value, NUMBER) and not isinstance(value, bool)
    if is_number:
        number = float(value)
        inside = number >= 0.0 if above is None else number > above
        if inside and (below is None or number < below) and math.isfinite(number):
            return number
    allowed = "a finite number"
    if above != -np.inf:
        allowed += ", at least 0" if above is None else f", above {above:g}"
    allowed += "" if below is None else f" and below {below:g}"
    raise (ValueError if is_number else TypeError)(f"{name} is {value!r}; it must be {allowed}")


def check_random_state(random_state: Any) -> np.random.Generator:
    """The source of all random numbers; without a seed always the same one."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        if isinstance(random_state, bool):
            raise TypeError
        return np.random.default_rng(0 if random_state is None else random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state is {random_state!r}; it must be None, a non-negative seed or a NumPy generator"
        ) from None


def _check_finite(array: FloatArray, name: str) -> None:
    n_rows = array.shape[0]
    is_small = array.size <= BLOCK_NUMBERS
    for block in (slice(None),) if is_small else row_blocks(n_rows, array.size // max(1, n_rows)):
        values = array[block]
        if np.count_nonzero(np.isfinite(values)) < values.size:
            found = "NaN" if np.isnan(values).any() else "an infinite value"
            raise ValueError(f"{name} contains {found}; all entries must be finite")
