"""Five models on data from five worlds: how far each is from the true mean. Prints the tables of models.md.

python docs/guide/simulate_models.py > docs/guide/simulated.txt
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, ndtr
from sklearn.linear_model import GammaRegressor, LinearRegression, LogisticRegression, PoissonRegressor

from rectifit import ReLURegressor
from rectifit.tobit import fit_tobit

N_SAMPLES, N_REPEATS, NOISE = 500, 40, 1.0
# Coefficients of the index u = x'SLOPES + LEVEL, x standard normal.
SLOPES, LEVEL = np.array([1.0, -0.5, 0.5]), 0.3

Array = np.ndarray
Mean = Callable[[Array], Array]


def normal_hinge(u: Array) -> Array:
    """E max(0, u + e), e normal with standard deviation NOISE."""
    z = u / NOISE
    return ndtr(z) * u + NOISE * np.exp(-z * z / 2.0) / np.sqrt(2.0 * np.pi)


def draw(world: str, u: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Outcomes, and their true mean, for an index u."""
    noise = NOISE * rng.standard_normal(u.size)
    mean = np.maximum(u, 0.0)
    if world == "hinge, then noise":
        return mean + noise, mean
    if world == "hinge, gamma amounts":
        return mean * rng.gamma(2.0, 0.5, u.size), mean
    if world == "noise, then censored":
        return np.maximum(u + noise, 0.0), normal_hinge(u)
    amounts = np.exp(0.5 * u) * rng.gamma(2.0, 0.5, u.size)
    if world == "hurdle":
        return amounts * (rng.random(u.size) < expit(u)), np.exp(0.5 * u) * expit(u)
    # Exponential mean: a Poisson number of exponential amounts, the Tweedie distribution.
    counts = rng.poisson(np.exp(0.5 * u))
    return np.where(counts > 0, rng.gamma(np.maximum(counts, 1), 1.0), 0.0), np.exp(0.5 * u)


def fit_means(X: Array, y: Array) -> tuple[dict[str, Mean], dict[str, float]]:
    """The mean of y as each model has it, and the first slope of the two with a hinge."""
    line = LinearRegression().fit(X, y)
    relu = ReLURegressor().fit(X, y)
    # All but the first two models need outcomes of at least 0.
    clipped = np.maximum(y, 0.0)
    tobit = fit_tobit(X, clipped)
    on = clipped > 0.0
    occurs = LogisticRegression(C=np.inf).fit(X, on)
    amount = GammaRegressor(alpha=0.0, max_iter=1000).fit(X[on], clipped[on])
    rate = PoissonRegressor(alpha=0.0, max_iter=1000).fit(X, clipped)
    means: dict[str, Mean] = {
        "least squares": line.predict,
        "ReLU": relu.predict,
        "Tobit": tobit.predict,
        "hurdle": lambda X: occurs.predict_proba(X)[:, 1] * amount.predict(X),
        "Poisson GLM": rate.predict,
    }
    return means, {"ReLU": float(relu.coef_[0]), "Tobit": float(tobit.beta[0])}


def main() -> None:
    """Draw, fit, and print two tables."""
    worlds = [
        "hinge, then noise",
        "hinge, gamma amounts",
        "noise, then censored",
        "hurdle",
        "exponential mean",
    ]
    errors: dict[tuple[str, str], list[float]] = {}
    slopes: dict[tuple[str, str], list[float]] = {}
    for world in worlds:
        for repeat in range(N_REPEATS):
            rng = np.random.default_rng(repeat)
            X, X_new = rng.standard_normal((2, N_SAMPLES, SLOPES.size))
            y, _ = draw(world, X @ SLOPES + LEVEL, rng)
            _, mean = draw(world, X_new @ SLOPES + LEVEL, rng)
            found, first = fit_means(X, y)
            for model, predict in found.items():
                error = np.sqrt(np.mean(np.square(predict(X_new) - mean))) / mean.std()
                errors.setdefault((world, model), []).append(float(error))
            for model, slope in first.items():
                slopes.setdefault((world, model), []).append(slope)
    models = list(found)
    print("Distance from the true mean, % of its standard deviation")
    print(f"{'data':22}" + "".join(f"{model:>15}" for model in models))
    for world in worlds:
        print(f"{world:22}" + "".join(f"{100 * np.mean(errors[world, m]):15.0f}" for m in models))
    print("\nThe first slope, 1 in truth: mean (standard deviation)")
    print(f"{'data':22}" + "".join(f"{model:>15}" for model in first))
    for world in worlds[:3]:
        cells = [f"{np.mean(slopes[world, m]):.2f} ({np.std(slopes[world, m]):.2f})" for m in first]
        print(f"{world:22}" + "".join(f"{cell:>15}" for cell in cells))


if __name__ == "__main__":
    main()
