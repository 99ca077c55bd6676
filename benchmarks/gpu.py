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
# samples, features, target
LARGE = (10_000_000, 100, 2.0)
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


def large(device: Any, quick: bool, pace: float) -> None:
    n, p, target = LARGE
    n = 100_000 if quick else n
    X, y = make_tensors(min(n, COMPARED), p, device)
    # The first run also compiles what the host needs.
    solution = solve(TensorData(X, y), None, "sorting+iterative")
    host = solve(X.cpu().numpy(), y.cpu().numpy(), "sorting+iterative")
    print(f"sorting+iterative, n={len(y):,}, p={p}: {excess(solution.objective, host.objective)}")
    X, y = make_tensors(n, p, device)
    for dtype in ("float64", "float32"):
        import torch

        X = X.to(getattr(torch, dtype))
        for _ in range(3):
            seconds, solution = seconds_of(
                lambda X=X: solve(TensorData(X, y), None, "sorting+iterative"), device
            )
            goal = f"target <= {target:g} s [{pace * target:.1f} s]"
            print(f"sorting+iterative, n={n:,}, p={p}, {dtype}: {seconds:.2f} s, {goal}")
        with Ledger(device) as ledger:
            total, _ = seconds_of(lambda X=X: solve(TensorData(X, y), None, "sorting+iterative"), device)
        ledger.show(total)
        print(f"    {solution.n_surrogates} surrogates, objective {solution.objective:.10g}")


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
    large(device, small, unit / UNIT)
    enumeration(device, small, unit / UNIT)


if __name__ == "__main__":
    run("--quick" in sys.argv[1:])
