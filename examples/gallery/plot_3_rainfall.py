"""
Rainfall: which model for a mean with zeros?
============================================

Daily rain is zero on most days, and skewed on the others. This example compares four models of its mean out
of sample. The true mean is known because the days are simulated: rain falls where moisture and low pressure
together pass a threshold, and the standard deviation of its amount is proportional to the mean.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rectifit import ReLURegressor

rng = np.random.default_rng(3)
n = 1500
humidity = rng.normal(70.0, 12.0, n)
pressure = rng.normal(1013.0, 9.0, n) - 0.15 * (humidity - 70.0)
wind = rng.gamma(3.0, 4.0, n)
X = np.column_stack([humidity, pressure, wind])
mean = np.maximum(0.0, 0.22 * (humidity - 75.0) - 0.28 * (pressure - 1012.0) + 0.08 * (wind - 12.0))
rain = mean * rng.gamma(1.2, 1.0 / 1.2, n)
wet = rain[rain > 0]
print(f"rain on {wet.size / n:.0%} of days, {wet.mean():.1f} mm on those, at most {wet.max():.0f} mm")

# %%
# All predictions are cross-validated. A pipeline standardises the columns for the solver of the Poisson
# model; ReLU regression does not need standardised columns, but they do no harm.

models = {
    "line": LinearRegression(),
    "line, clipped at 0": LinearRegression(),
    "Poisson GLM": PoissonRegressor(alpha=0.0, max_iter=1000),
    "ReLU": ReLURegressor(),
}
predictions = {
    name: cross_val_predict(make_pipeline(StandardScaler(), model), X, rain, cv=10)
    for name, model in models.items()
}
predictions["line, clipped at 0"] = np.maximum(predictions["line, clipped at 0"], 0.0)
for name, predicted in predictions.items():
    error = np.sqrt(np.mean(np.square(predicted - mean)))
    negative = np.mean(predicted < 0)
    print(f"{name:20} distance from the true mean {error:5.2f} mm, {negative:4.0%} of predictions below 0")

# %%
# The figure shows the predicted against the true mean, day by day. The line, even when clipped, predicts rain
# on dry days, and its slope is too small on wet days. The Poisson model bends smoothly where the truth has a
# corner, and its predictions are far too large on the wettest days. All models are fitted to the same noisy
# amounts.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained", sharex=True, sharey=True)
for axis, name in zip(axes, ["line, clipped at 0", "Poisson GLM", "ReLU"], strict=True):
    axis.plot([0, 13], [0, 13], color="grey", linewidth=1, label="predicted = true")
    axis.scatter(mean, predictions[name], s=10, alpha=0.3, linewidths=0, color="C3", label="days")
    axis.set(title=name, xlabel="true mean of rain (mm)", xlim=(-0.5, 13), ylim=(-0.5, 20))
axes[0].set_ylabel("predicted rain (mm)")
axes[0].legend(loc="upper left")
plt.show()
