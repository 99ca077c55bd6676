"""
Heating energy: base load and balance point
===========================================

The energy that a building uses a day is a base load, plus heating once the outdoor temperature falls below
the *balance point*:

.. math::

   \\text{energy} = \\text{base}
   + \\max(0,\\; \\text{slope} \\cdot (\\text{balance point} - \\text{temperature})).

For a known base load this is ReLU regression of energy minus base on temperature, with an intercept. An
unknown one is chosen by its sum of squares. With two coefficients the fit for every base load is proved to be
the best one in a few milliseconds. The data are simulated: a year of days in a cool climate.
"""

import matplotlib.pyplot as plt
import numpy as np

from rectifit import solve

rng = np.random.default_rng(0)
day = np.arange(365)
temperature = 10.0 - 9.0 * np.cos(2.0 * np.pi * (day - 15) / 365.0) + 3.0 * rng.standard_normal(365)
base, balance, slope = 18.0, 15.5, 3.2
energy = base + np.maximum(0.0, slope * (balance - temperature)) + 4.0 * rng.standard_normal(365)
X = temperature[:, None]

# %%
# One fit per base load, and the best of them.

candidates = np.linspace(10.0, 26.0, 81)
fits = [solve(X, energy - candidate) for candidate in candidates]
objectives = np.array([fit.objective for fit in fits])
best = int(objectives.argmin())
fit = fits[best]
print("every fit proved optimal:", all(fit.certificate.gap <= 1e-6 for fit in fits))
print(f"base load     {candidates[best]:5.2f} kWh a day (truth {base})")
print(f"slope         {-fit.beta[0]:5.2f} kWh per degree (truth {slope})")
print(f"balance point {-fit.intercept / fit.beta[0]:5.2f} °C (truth {balance})")

# %%
# The sum of squares as a function of the base load also says how well it is determined: base loads whose sum
# of squares is less than :math:`1 + F/(n-3)` times the least one, *F* the 95 % quantile (3.9), make an
# approximate confidence interval.

inside = candidates[objectives <= objectives[best] * (1.0 + 3.87 / (365 - 3))]
print(f"base load between {inside.min():.2f} and {inside.max():.2f} kWh")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.scatter(temperature, energy, s=12, alpha=0.4, linewidths=0, label="days")
at = np.linspace(temperature.min(), temperature.max(), 300)
left.plot(at, candidates[best] + fit.predict(at[:, None]), color="C3", linewidth=2.5, label="fit")
turn = -fit.intercept / fit.beta[0]
left.axvline(turn, color="grey", linestyle="--", linewidth=1)
left.annotate(
    f"balance point {turn:.1f} °C", (turn, 75.0), xytext=(-6, 0), textcoords="offset points", ha="right"
)
left.annotate(f"base load {candidates[best]:.1f} kWh", (22.0, 32.0), ha="center")
left.set(xlabel="outdoor temperature (°C)", ylabel="energy (kWh a day)", title="A year of days")
left.legend(loc="lower left")

right.plot(candidates, objectives, color="C0")
right.axvspan(inside.min(), inside.max(), color="C3", alpha=0.2, label="approximate 95 % interval")
right.plot(candidates[best], objectives[best], "o", color="C3", label="best")
right.set(
    xlabel="base load (kWh a day)", ylabel="least sum of squares", title="How well is the base load known?"
)
right.legend(loc="upper center")
plt.show()
