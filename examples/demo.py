"""Fit a generated instance by the sorting idea of Dey, Wang and Xie: the best of eleven convex surrogates."""

import time

import numpy as np

from rectifit import Problem, SurrogateSolver
from rectifit.datasets import make_relu

X, y, beta, _, _ = make_relu(1000, 20, noise=0.1, random_state=0)
problem = Problem.from_data(X, y)
started = time.perf_counter()
solver = SurrogateSolver(problem)

rank = np.argsort(np.argsort(y, kind="stable"), kind="stable")
actives = np.array([rank >= split * len(y) // 10 for split in range(11)])
solutions = solver.solve_each(actives)
best = min(solutions, key=lambda s: problem.objective(s.beta, s.intercept))
seconds = time.perf_counter() - started

print(
    f"{problem.n_samples} samples, {problem.n_features} features, {problem.positive.sum()} positive outcomes"
)
print(
    f"{len(solutions)} convex surrogates minimised in {seconds:.2f} s, compiling included on the first run\n"
)
print("split  active     min F_I  true objective  relative gap")
for split, (active, solution) in enumerate(zip(actives, solutions, strict=True)):
    objective = problem.objective(solution.beta, solution.intercept)
    gap = (solution.value - solution.dual_bound) / solution.value
    mark = "  <- best" if solution is best else ""
    count = (active & problem.positive).sum()
    print(f"{split:5d}{count:8d}{solution.value:12.4f}{objective:16.4f}{gap:14.1e}{mark}")
print(f"\nobjective at the best {problem.objective(best.beta, best.intercept):.4f}")
print(f"objective at the true coefficients {problem.objective(beta):.4f}")
print(f"distance to the true coefficients {np.linalg.norm(best.beta - beta):.4f}")
