"""
Heating with known signs
========================

A building needs more heating when it is colder, when the day before was cold, when there is more wind, and
when the sky is cloudy. None of these can lower it. But weather is correlated, and a fit to a few weeks may
well find that wind saves energy. ``positive=True`` keeps all slopes at 0 or above. The data is simulated, so
the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np

from rectifit import ReLURegressor, certify

names = ["cold (K)", "cold, day before (K)", "wind (m/s)", "cloud (tenths)"]
slopes, intercept = np.array([2.0, 0.8, 0.6, 0.4]), -14.0


def draw(n_days, rng):
    """Weather, the energy that was used, and its mean."""
    front = np.zeros(n_days + 1)
    for day in range(n_days):
        front[day + 1] = 0.8 * front[day] + 0.6 * rng.normal()
    cold = 5.0 + 4.0 * front + rng.normal(size=n_days + 1)
    wind = np.maximum(4.0 + 1.5 * front[1:] + rng.normal(size=n_days), 0.0)
    cloud = np.clip(5.0 + 1.5 * front[1:] + 1.5 * rng.normal(size=n_days), 0.0, 10.0)
    X = np.column_stack([cold[1:], cold[:-1], wind, cloud])
    mean = np.maximum(X @ slopes + intercept, 0.0)
    # Where there is no heating, nothing is used.
    return X, mean * np.maximum(1.0 + 0.5 * rng.normal(size=n_days), 0.0), mean


# %%
# Two fits to the same six weeks. The second one knows the signs, and the certificate compares it with all
# fits that have these signs.

X, energy, _ = draw(42, np.random.default_rng(3))
free = ReLURegressor().fit(X, energy)
signed = ReLURegressor(positive=True).fit(X, energy)
held = signed.solution_.at_bound
for j, name in enumerate(names):
    fits = f"free {free.coef_[j]:5.2f}   signs {signed.coef_[j]:4.2f}"
    print(f"{name:21} truth {slopes[j]:4.1f}   {fits}{'  at its bound' if held[j] else ''}")
print(certify(X, energy, signed, positive=True))

# %%
# Does it help to impose what is true? One hundred buildings are each fitted to six weeks in both ways, and
# the predictions are compared with the true mean over the following year.


def measure(seed):
    """Errors of both fits in a year that they have not seen, and whether a free slope is negative."""
    rng = np.random.default_rng(seed)
    X, energy, _ = draw(42, rng)
    X_new, _, mean = draw(365, rng)
    fits = ReLURegressor().fit(X, energy), ReLURegressor(positive=True).fit(X, energy)
    errors = [np.sqrt(np.mean((fit.predict(X_new) - mean) ** 2)) for fit in fits]
    return *errors, bool((fits[0].coef_ < 0.0).any())


error_free, error_signed, is_wrong = np.array([measure(seed) for seed in range(100)]).T
is_wrong = is_wrong == 1.0
is_better = error_signed[is_wrong] < error_free[is_wrong]
print(f"free fits with a wrong sign: {is_wrong.sum()} of 100")
print(f"the signs make {is_better.sum()} of these better")
print(f"median error: free {np.median(error_free):.2f}, with signs {np.median(error_signed):.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
place = np.arange(len(names))
left.bar(place - 0.25, slopes, width=0.24, color="lightgrey", label="truth")
left.bar(place, free.coef_, width=0.24, color="C0", label="free")
left.bar(place + 0.25, signed.coef_, width=0.24, color="C3", label="signs known")
left.axhline(0.0, color="black", linewidth=0.8)
left.set_xticks(place, [name.replace(" (", "\n(").replace(", day", ",\nday") for name in names])
left.set(ylabel="energy per unit", title="Slopes from six weeks")
left.legend()

right.scatter(
    error_free[is_wrong], error_signed[is_wrong], s=18, color="C3", label="a free slope is negative"
)
right.scatter(error_free[~is_wrong], error_signed[~is_wrong], s=18, color="C0", label="none is")
ends = 0.8 * error_signed.min(), 1.3 * error_free.max()
right.plot(ends, ends, color="grey", linewidth=1)
right.set(xscale="log", yscale="log", title="The following year, 100 buildings")
right.set(xlabel="error of the free fit", ylabel="error with known signs")
right.legend(loc="upper left")
plt.show()
