"""
Heating energy: base load and balance point
===========================================

The energy that a building uses per day is a base load, plus heating when the outdoor temperature is below the
*balance point*:

.. math::

   \\text{energy} = \\text{base}
   + \\max(0,\\; \\text{slope} \\cdot (\\text{balance point} - \\text{temperature})).

This is ReLU regression of energy on temperature with a floor, the base load. ``floor="estimate"`` fits the
floor together with the line. The data is simulated: a year of days in a cool climate.
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
# One call estimates all three numbers.

fit = solve(X, energy, floor="estimate")
turn = (fit.floor - fit.intercept) / fit.beta[0]
print(f"base load     {fit.floor:5.2f} kWh a day (truth {base})")
print(f"slope         {-fit.beta[0]:5.2f} kWh per degree (truth {slope})")
print(f"balance point {turn:5.2f} °C (truth {balance})")

# %%
# How well is the base load determined? To find out, fit with many known floors. With two coefficients, each
# of these fits is proved optimal in milliseconds. The base loads whose sum of squares is at most
# :math:`1 + F/(n-3)` times the least one, where *F* is the 95 % quantile (3.9), form an approximate
# confidence interval.

candidates = np.linspace(10.0, 26.0, 81)
fits = [solve(X, energy, floor=candidate) for candidate in candidates]
objectives = np.array([fit.objective for fit in fits])
print("every fit proved optimal:", all(fit.certificate.gap <= 1e-6 for fit in fits))
print(f"no known floor is better than the estimated one: {fit.objective <= objectives.min()}")
inside = candidates[objectives <= fit.objective * (1.0 + 3.87 / (365 - 3))]
print(f"base load between {inside.min():.2f} and {inside.max():.2f} kWh")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.scatter(temperature, energy, s=12, alpha=0.4, linewidths=0, label="days")
at = np.linspace(temperature.min(), temperature.max(), 300)
left.plot(at, fit.predict(at[:, None]), color="C3", linewidth=2.5, label="fit")
left.axvline(turn, color="grey", linestyle="--", linewidth=1)
left.annotate(
    f"balance point {turn:.1f} °C", (turn, 75.0), xytext=(-6, 0), textcoords="offset points", ha="right"
)
left.annotate(f"base load {fit.floor:.1f} kWh", (22.0, 32.0), ha="center")
left.set(xlabel="outdoor temperature (°C)", ylabel="energy (kWh a day)", title="A year of days")
left.legend(loc="lower left")

right.plot(candidates, objectives, color="C0")
right.axvspan(inside.min(), inside.max(), color="C3", alpha=0.2, label="approximate 95 % interval")
right.plot(fit.floor, fit.objective, "o", color="C3", label="estimated")
right.set(
    xlabel="base load (kWh a day)", ylabel="least sum of squares", title="How well is the base load known?"
)
right.legend(loc="upper center")
plt.show()
