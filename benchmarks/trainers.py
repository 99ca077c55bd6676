"""Other ways to train one ReLU node by least squares, from random starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Imported here, not where it is used: `threadpool_limits` limits the libraries that are loaded by then.
from scipy.optimize import least_squares

N_STARTS = 100


class Trained(NamedTuple):
    """Coefficients, the intercept last, and sum (max(0, A b) - y)^2."""

    coefficients: np.ndarray
    objective: float


def in_standard_units(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns and a column of ones; outcomes of length 1, so minima are over |y|^2."""
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([Z, np.ones(len(y))]), y / np.linalg.norm(y)


def objective(A: np.ndarray, y: np.ndarray, b: np.ndarray) -> float:
    r = np.maximum(A @ b, 0.0) - y
    return float(r @ r)


def random_start(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(A.shape[1]) / np.sqrt(len(A))


def least_squares_from(A: np.ndarray, y: np.ndarray, start: np.ndarray, jac: str | Callable) -> Trained:
    b = least_squares(lambda b: np.maximum(A @ b, 0.0) - y, start, jac=jac).x
    return Trained(b, objective(A, y, b))


def least_squares_starts(A: np.ndarray, y: np.ndarray) -> Trained:
    rng = np.random.default_rng(0)
    found = [least_squares_from(A, y, random_start(A, rng), "2-point") for _ in range(N_STARTS)]
    return min(found, key=lambda trained: trained.objective)


def torch_neuron(A: np.ndarray, y: np.ndarray, make_optimiser: Callable, steps: int) -> Trained:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    # Outcomes of mean square 1 suit the usual step sizes.
    size = np.sqrt(len(y))
    inputs, target = torch.tensor(A[:, :-1]), torch.tensor(y * size)
    node = torch.nn.Sequential(torch.nn.Linear(A.shape[1] - 1, 1, dtype=torch.float64), torch.nn.ReLU())
    optimiser = make_optimiser(node.parameters())

    def closure():
        optimiser.zero_grad()
        loss = torch.mean((node(inputs)[:, 0] - target) ** 2)
        loss.backward()
        return loss

    for _ in range(steps):
        optimiser.step(closure)
    linear = node[0]
    b = np.append(linear.weight.detach().numpy()[0], linear.bias.detach().numpy()) / size
    return Trained(b, objective(A, y, b))


def adam(A: np.ndarray, y: np.ndarray) -> Trained:
    import torch

    return torch_neuron(A, y, lambda p: torch.optim.Adam(p, lr=0.01), 2000)


def lbfgs(A: np.ndarray, y: np.ndarray) -> Trained:
    import torch

    def make(parameters):
        return torch.optim.LBFGS(
            parameters, max_iter=1000, line_search_fn="strong_wolfe", tolerance_grad=1e-10
        )

    return torch_neuron(A, y, make, 1)


def mlp(A: np.ndarray, y: np.ndarray) -> Trained:
    from sklearn.neural_network import MLPRegressor

    size = np.sqrt(len(y))
    model = MLPRegressor(hidden_layer_sizes=(1,), solver="lbfgs", alpha=0.0, max_iter=5000, random_state=0)
    model.fit(A[:, :-1], y * size)
    direction = np.append(model.coefs_[0][:, 0], model.intercepts_[0])
    fitted = np.maximum(A @ direction, 0.0)
    multiple = max(float(fitted @ y), 0.0) / max(float(fitted @ fitted), 1e-300)
    return Trained(multiple * direction, objective(A, y, multiple * direction))


TRAINERS: dict[str, Callable[[np.ndarray, np.ndarray], Trained]] = {
    "scipy least_squares, 100 starts": least_squares_starts,
    "torch Adam, 2000 steps": adam,
    "torch L-BFGS": lbfgs,
    "sklearn MLPRegressor": mlp,
}
