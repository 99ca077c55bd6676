"""A fit as a PyTorch module, a module as a start, a fit as an ONNX model, and arrays of other libraries.

A one-node network is the fit itself: to_torch gives it to be trained further, by descent from where the
approximation algorithms lead. Where scikit-learn dispatches to the library of X, everything follows X: the
fit is moved to its `Home`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.utils._array_api import (
    _convert_to_numpy,
    _max_precision_float_dtype,
    get_namespace,
    get_namespace_and_device,
)

from rectifit.checks import is_tensor, to_numpy

if TYPE_CHECKING:
    from rectifit.solution import Solution

__all__ = ["Home", "from_module", "home_of", "import_torch", "like", "to_host", "to_module", "write_onnx"]

# The operators used are in every version from this one on.
OPSET = 13
# Numbers of X in a piece that is copied to another precision.
PIECE = 1 << 26


def import_torch() -> Any:
    """The library, or a hint how to get it."""
    try:
        import torch
    except ImportError:
        raise ImportError("tensors and modules need PyTorch: pip install 'rectifit[torch]'") from None
    return torch


class Home(NamedTuple):
    """Where an array lives: the functions of its library, and its device there."""

    xp: Any
    device: Any

    def bring(self, values: Any) -> Any:
        """Values of any library as an array that lives here; numbers and None stay."""
        if np.ndim(values) == 0 and not isinstance(values, np.ndarray):
            return values
        if home_of(values) == self:
            return values
        host = np.array(to_host(values))
        dtype = _max_precision_float_dtype(self.xp, self.device) if host.dtype == np.float64 else None
        return self.xp.asarray(host, dtype=dtype, device=self.device)

    def product(self, X: Any, coef: Any) -> Any:
        """X coef in the precision of coef, some rows at a time: such a copy of all of X might not fit."""
        n, p = X.shape
        size = max(1, PIECE // p)
        parts = (X[first : min(first + size, n), :] for first in range(0, n, size))
        return self.xp.concat([self.xp.astype(part, coef.dtype, copy=False) @ coef for part in parts])

    def __str__(self) -> str:
        return f"{self.xp.__name__.rpartition('.')[2]} on {self.device}"


def home_of(values: Any) -> Home | None:
    """Where an array of another library than NumPy lives; None without scikit-learn's array API dispatch."""
    if not _is_foreign(values) or not get_config()["array_api_dispatch"]:
        return None
    xp, _, device = get_namespace_and_device(values)
    return Home(xp, device)


def to_host(values: Any) -> Any:
    """A tensor, or where scikit-learn dispatches any array, as a NumPy array; all else as it is."""
    if is_tensor(values) or not _is_foreign(values) or not get_config()["array_api_dispatch"]:
        return to_numpy(values)
    return _convert_to_numpy(values, get_namespace(values)[0])


def _is_foreign(values: Any) -> bool:
    return hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray | np.generic)


def like(values: Any, X: Any) -> Any:
    """Values as a tensor where the tensor X lives, with its precision."""
    torch = import_torch()
    dtype = X.dtype if X.is_floating_point() else torch.float64
    return torch.as_tensor(
        values if torch.is_tensor(values) else np.array(values), dtype=dtype, device=X.device
    )


def to_module(solution: Solution) -> Any:
    """Sequential(Linear, ReLU) in float64; with another floor than 0, Threshold instead of ReLU."""
    torch = import_torch()
    bias = solution.intercept != 0.0 or solution.problem is None or solution.problem.fit_intercept
    linear = torch.nn.Linear(solution.beta.size, 1, bias=bias, dtype=torch.float64)
    with torch.no_grad():
        linear.weight[0] = torch.from_numpy(np.array(solution.beta))
        if bias:
            linear.bias[0] = solution.intercept
    floor = solution.floor
    return torch.nn.Sequential(linear, torch.nn.ReLU() if floor == 0.0 else torch.nn.Threshold(floor, floor))


def from_module(module: Any) -> tuple[Any, float]:
    """Coefficients and intercept of a module with one linear layer that has one output."""
    layers = [layer for layer in module.modules() if hasattr(layer, "in_features")]
    if len(layers) != 1 or layers[0].out_features != 1:
        found = ", ".join(f"Linear({layer.in_features}, {layer.out_features})" for layer in layers) or "none"
        raise ValueError(f"start is a module with linear layers {found}; it must have one, with one output")
    bias = layers[0].bias
    return to_numpy(layers[0].weight)[0], 0.0 if bias is None else float(bias.detach()[0])


def write_onnx(solution: Solution, path: str | Path | None) -> Any:
    """The graph max(Gemm(X, beta, intercept), floor), written to a file if there is a path."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise ImportError("the export needs onnx: pip install 'rectifit[onnx]'") from None
    p = solution.beta.size
    constants = {"beta": solution.beta[:, None], "intercept": solution.intercept, "floor": solution.floor}
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["X", "beta", "intercept"], ["u"]),
            helper.make_node("Max", ["u", "floor"], ["prediction"]),
        ],
        "rectifit",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n_samples", p])],
        [helper.make_tensor_value_info("prediction", TensorProto.DOUBLE, ["n_samples", 1])],
        [
            numpy_helper.from_array(np.array(value, dtype=np.float64), name)
            for name, value in constants.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    if path is not None:
        onnx.save_model(model, str(path))
    return model
