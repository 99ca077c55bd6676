"""Long sequences of questions to one solver: nothing carried over may spoil a later answer."""

import numpy as np
import pytest
from optimality import assert_optimal

from rectifit import Problem, SurrogateSolver


def random_problem(seed):
    """Dummy variables, ternary, integer, positive or Gaussian rows; ties; sometimes weights or a ridge."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 150)), int(rng.integers(1, 9))
    kind = rng.choice(["dummies", "ternary", "integers", "positive", "gaussian"])
    X = {
        "dummies": np.eye(p)[rng.integers(0, p, n)],
        "ternary": rng.choice([-1.0, 0.0, 1.0], size=(n, p), p=[0.2, 0.6, 0.2]),
        "integers": rng.integers(-2, 3, size=(n, p)).astype(float),
        "positive": np.abs(rng.normal(size=(n, p))),
        "gaussian": rng.normal(size=(n, p)),
    }[kind]
    y = rng.normal(0.3, 1.0, size=n) if rng.random() < 0.5 else rng.integers(-2, 4, size=n).astype(float)
    weight = 10.0 ** rng.uniform(-2, 2, size=n) if rng.random() < 0.4 else None
    alpha = 10.0 ** rng.uniform(-2, 1) if rng.random() < 0.3 else 0.0
    return rng, Problem.from_data(
        X, y, sample_weight=weight, fit_intercept=bool(rng.random() < 0.5), alpha=alpha
    )


def random_masks(rng, n, count):
    """Mostly neighbours that differ in one sample, now and then something else altogether."""
    mask = rng.random(n) < 0.5
    masks = []
    for _ in range(count):
        mask = mask.copy() if rng.random() < 0.7 else rng.random(n) < rng.random()
        mask[rng.integers(0, n)] ^= True
        masks.append(mask)
    return np.array(masks)


@pytest.mark.parametrize("block", range(10))
def test_every_answer_of_a_long_sequence_is_optimal(engine, block):
    for seed in range(20 * block, 20 * block + 20):
        rng, problem = random_problem(seed)
        n, p = problem.X.shape
        masks = random_masks(rng, n, 20)
        solver = SurrogateSolver(problem, engine)
        solutions = solver.solve_each(masks[:12])
        for mask in masks[12:]:
            start = None if rng.random() < 0.7 else (rng.normal(size=p), 0.0)
            solutions.append(solver.solve(mask, start=start))
        for mask, solution in zip(masks, solutions, strict=True):
            assert_optimal(problem, mask, solution)


def test_coefficients_stay_small_where_nothing_determines_them():
    # A level all of whose samples are off may move freely; rounding must not send it to infinity.
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = np.eye(4)[rng.integers(0, 4, 40)]
        y = rng.integers(-2, 4, size=40).astype(float)
        solver = SurrogateSolver(Problem.from_data(X, y), "compiled")
        for solution in solver.solve_each(random_masks(rng, 40, 30)):
            assert np.abs(solution.beta).max() < 1e6
