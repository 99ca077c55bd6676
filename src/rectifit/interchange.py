"""A fit as a PyTorch module, a module as a start, and a fit as an ONNX model.

A one-node network is the fit itself: to_torch gives it to be trained further, by descent from where the
approximation algorithms lead.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rectifit.checks import to_numpy

if TYPE_CHECKING:
    from rectifit.solution import Solution

__all__ = ["from_module", "import_torch", "like", "to_module", "write_onnx"]

# The operators used are in every version from this one on.
OPSET = 13


def import_torch() -> Any:
    """The library, or a hint how to get it."""
    try:
        import torch
    except ImportError:
        raise ImportError("tensors and modules need PyTorch: pip install 'rectifit[torch]'") from None
    return torch


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
