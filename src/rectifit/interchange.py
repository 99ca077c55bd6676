"""A fit as a PyTorch module or as an ONNX model.

A one-node network is the fit itself: to_torch gives it to be trained further, by descent from where the
approximation algorithms lead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rectifit.checks import import_torch
from rectifit.fit import Fit

__all__ = ["to_module", "write_onnx"]

# The operators used are in every version from this one on.
OPSET = 13


def to_module(solution: Fit) -> Any:
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


def write_onnx(solution: Fit, path: str | Path | None) -> Any:
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
