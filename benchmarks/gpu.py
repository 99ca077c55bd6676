"""Tensors on an accelerator: `python benchmarks/gpu.py [--quick]`, or the part `gpu` of `run.py`.

Needs torch with CUDA, numpy, scipy, scikit-learn, threadpoolctl and numba, and rectifit on the path
(`PYTHONPATH=src`); nothing else. Where numba is not installed, unpack the wheels of numba and llvmlite for
the machine's Python into a folder on the path. Without CUDA all runs on the CPU device, at small sizes.

Times are of warm runs, with the data where it is solved, and end when the device has finished. Every result
is compared with that of the same fit on the host, at a size that the host can solve soon.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from rectifit import solve
from rectifit.data import TensorData
from rectifit.datasets import make_relu
from rectifit.experiments.machine import yardstick

# Targets, in seconds on an H200 whose host has this yardstick.
UNIT = 0.9e-3
# samples, features, dtype, targets of sorting+iterative and auto in normal equations, or in seconds
LARGE = [
    (10_000_000, 100, "float64", 40, 80),
    (5_000_000, 300, "float32", 40, 80),
    (20_000_000, 100, "float32", 40, 80),
    (1_000_000, 50, "float64", 0.08, 0.2),
]
ADAM_STEPS = 300
ADAM_RATE = 0.05
# Not the seed that was used in development.
SEED = 12
# samples, features, k, target
ENUMERATION = (1000, 50, 2, 5.0)
COMPARED = 100_000
STARTS = 4096


def make_tensors(n: int, p: int, device: Any, seed: int = 0) -> tuple[Any, Any]:
    """Gaussian X and noisy outcomes, about half of them zero, made on the device."""
    import torch

    source = torch.Generator(device).manual_seed(seed)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=source, dtype=torch.float64, device=device)

    X = normal(n, p)
    y = X @ (0.5 + 3.0 * normal(p)) + 10.0 * normal(n)
    return X, torch.relu(y)


def seconds_of(work: Callable[[], Any], device: Any) -> tuple[float, Any]:
    """Seconds of a run, and what it returns."""
    import torch

    finish = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    finish()
    started = time.perf_counter()
    result = work()
    finish()
    return time.perf_counter() - started, result


class Ledger:
    """Seconds and number of the passes over the data, by task and number of points."""

    def __init__(self, device: Any) -> None:
        self.seconds: Counter[str] = Counter()
        self.passes: Counter[str] = Counter()
        self._device, self._reduce = device, TensorData.reduce

    def __enter__(self) -> Ledger:
        ledger = self

        def reduce(self: TensorData, task: Any, **options: Any) -> Any:
            name = f"{type(task).__name__.strip('_')} {len(getattr(task, 'probes', ())) or ''}".strip()
            seconds, summary = seconds_of(lambda: ledger._reduce(self, task, **options), ledger._device)
            ledger.seconds[name] += seconds
            ledger.passes[name] += 1
            return summary

        TensorData.reduce = reduce  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        TensorData.reduce = self._reduce  # type: ignore[method-assign]

    def show(self, total: float) -> None:
        for name, seconds in self.seconds.most_common():
            print(f"    {name:16s} {self.passes[name]:3d} passes {seconds:8.3f} s")
        print(f"    {'on the host':16s} {total - sum(self.seconds.values()):19.3f} s")


def excess(ours: float, theirs: float) -> str:
    return f"objective {ours:.10g}, the host's {theirs:.10g}, excess {(ours - theirs) / theirs:.1e}"


def normal_equations(X: Any, y: Any) -> Any:
    """The linear least-squares fit, the quickest way."""
    import torch

    return torch.linalg.solve(X.T @ X, X.T @ y.to(X.dtype))


def adam(X: Any, y: Any) -> float:
    """Full-batch steps from small coefficients, for outcomes of mean square 1; the objective at the end."""
    import torch

    target = y.to(X.dtype)
    size = torch.sqrt(torch.mean(target**2))
    b = torch.full((X.shape[1],), 1e-3, dtype=X.dtype, device=X.device, requires_grad=True)
    c = torch.zeros(1, dtype=X.dtype, device=X.device, requires_grad=True)
    optimiser = torch.optim.Adam([b, c], lr=ADAM_RATE)
    for _ in range(ADAM_STEPS):
        optimiser.zero_grad()
        loss = torch.mean((torch.relu(X @ b + c) - target / size) ** 2)
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return float(torch.sum((size * torch.relu(X @ b + c) - target).double() ** 2))


def fastest(work: Callable[[], Any], device: Any, n_runs: int = 5) -> tuple[float, Any]:
    """The fewest seconds of some runs after a first one, and what the last returns."""
    work()
    runs = [seconds_of(work, device) for _ in range(n_runs)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def large(device: Any, quick: bool) -> None:
    """Fits of large data in normal equations of the same data, and beside Adam."""
    import torch

    for n, p, dtype, *targets in LARGE:
        n = 100_000 if quick else n
        X, y = make_tensors(n, p, device, SEED)
        X = X.to(getattr(torch, dtype))
        unit, _ = fastest(lambda X=X, y=y: normal_equations(X, y), device)
        steps, descended = fastest(lambda X=X, y=y: adam(X, y), device, 1)
        print(f"{n:,} x {p}, {dtype}: normal equations {1e3 * unit:.2f} ms")
        print(f"    {ADAM_STEPS} steps of Adam  {steps:8.3f} s  {steps / unit:6.0f} normal equations")
        for method, target in zip(("sorting+iterative", "auto"), targets, strict=True):

            def fit(X: Any = X, y: Any = y, method: str = method) -> Any:
                return solve(TensorData(X, y), None, method)

            seconds, solution = fastest(fit, device)
            goal = f"{target:g} s" if isinstance(target, float) else f"{target}"
            print(
                f"    {method:18s} {seconds:8.3f} s  {seconds / unit:6.0f} normal equations, "
                f"target <= {goal}; {solution.n_surrogates} surrogates, objective {solution.objective:.10g}, "
                f"Adam's is {(descended - solution.objective) / solution.objective:.1e} above it"
            )
            with Ledger(device) as ledger:
                total, _ = seconds_of(fit, device)
            ledger.show(total)
        del X, y


def agreement(device: Any) -> None:
    """The same fit on the device and on the host."""
    X, y = make_tensors(COMPARED, 100, device)
    solution = solve(TensorData(X, y), None, "sorting+iterative")
    host = solve(X.cpu().numpy(), y.cpu().numpy(), "sorting+iterative")
    print(f"sorting+iterative, n={COMPARED:,}, p=100: {excess(solution.objective, host.objective)}")


def enumeration(device: Any, quick: bool, pace: float) -> None:
    import torch

    n, p, k, target = ENUMERATION
    n, p = (200, 10) if quick else (n, p)
    X, y, *_ = make_relu(n, p, noise=0.5, random_state=0)
    tensors = torch.from_numpy(X).to(device), torch.from_numpy(y).to(device)
    host_seconds, host = seconds_of(lambda: solve(X, y, "approximation", k=k, fit_intercept=False), device)
    for n_jobs in (1, -1):
        for _ in range(2):
            seconds, solution = seconds_of(
                lambda n_jobs=n_jobs: solve(
                    *tensors, "approximation", k=k, fit_intercept=False, n_jobs=n_jobs
                ),
                device,
            )
        print(
            f"A1, k={k}, n={n}, p={p}, n_jobs={n_jobs}: {seconds:.2f} s, target <= {target:g} s "
            f"[{pace * target:.1f} s], the host alone {host_seconds:.2f} s; "
            f"{solution.n_surrogates:,} surrogates"
        )
        print(f"    {excess(solution.objective, host.objective)}")
        print(f"    {excess(solution.surrogate_objective, host.surrogate_objective)} (least surrogate)")
    n_starts = STARTS // 16 if quick else STARTS
    options = {"n_starts": n_starts, "fit_intercept": False}
    host_seconds, host = seconds_of(lambda: solve(X, y, "multistart", **options), device)
    seconds, solution = seconds_of(lambda: solve(*tensors, "multistart", **options), device)
    print(
        f"multistart, n={n}, p={p}, {n_starts:,} starts: {seconds:.2f} s, the host alone {host_seconds:.2f} s"
    )
    print(f"    {excess(solution.objective, host.objective)}")


def run(quick: bool) -> None:
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "no accelerator: the CPU device"
    print(f"{name}, torch {torch.__version__}, numpy {np.__version__}, {torch.get_num_threads()} threads")
    with threadpool_limits(1):
        unit = yardstick()
    print(f"yardstick: lstsq on 1000 x 50 takes {1e3 * unit:.2f} ms on one thread of the host;", end=" ")
    print(f"targets for {1e3 * UNIT:g} ms, in brackets for this host")
    small = quick or device.type == "cpu"
    agreement(device)
    large(device, small)
    enumeration(device, small, unit / UNIT)


if __name__ == "__main__":
    run("--quick" in sys.argv[1:])
