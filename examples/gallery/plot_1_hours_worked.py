"""
Hours worked
============

Many people in a sample of working age work no paid hours. The mean of hours is a line with a corner at zero:
below some wage offer, or with many small children, the next dollar changes nothing. The data here is
**simulated** to resemble a labour survey; it does not describe real people.

Hours are :math:`\\max(0, u)` times a factor of mean one that varies between people. The factor is zero for
one in four people, who are out of work by chance. So there are two kinds of zeros, and the noise grows with
the mean. ReLU regression only requires that the mean is :math:`\\max(0, u)`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from rectifit import ReLURegressor, certify

# %%
# The sample has 1,500 women. The features are the wage that they are offered (dollars an hour), the number of
# children under six, years of education, and other income of the household (thousand dollars a year).

rng = np.random.default_rng(1)
n = 1500
education = rng.integers(8, 18, n)
wage = np.exp(0.2 + 0.09 * education + 0.25 * rng.standard_normal(n))
children = rng.choice([0, 1, 2, 3], n, p=[0.55, 0.25, 0.15, 0.05])
income = rng.gamma(4.0, 6.0, n)
names = ["wage offer", "children under 6", "education", "other income"]
X = np.column_stack([wage, children, education, income])
truth = np.array([170.0, -620.0, 25.0, -22.0])
mean = np.maximum(X @ truth + 200.0, 0.0)
luck = rng.gamma(6.0, 1.0 / 6.0, n) * (rng.random(n) < 0.75) / 0.75
hours = mean * luck
print(f"{np.mean(hours == 0):.0%} work no hours, the others {hours[hours > 0].mean():.0f} a year")

# %%
# We compare three fits: the line with a corner, and two common substitutes, a line through everybody and a
# line through those who work.

relu = ReLURegressor().fit(X, hours)
everybody = LinearRegression().fit(X, hours)
workers = LinearRegression().fit(X[hours > 0], hours[hours > 0])

print(f"{'':18}{'truth':>8}{'ReLU':>8}{'all':>8}{'workers':>9}")
for j, name in enumerate(names):
    fits = f"{relu.coef_[j]:8.0f}{everybody.coef_[j]:8.0f}{workers.coef_[j]:9.0f}"
    print(f"{name:18}{truth[j]:8.0f}{fits}")

# %%
# The effects from the line through everybody are too small, because they average over people for whom nothing
# changes. The effects from the line through those who work are too large, because people who are out of work
# by chance are left out. ReLU regression is right up to noise.
#
# Is there a better fit? ``certify`` proves an answer, down to one per cent:

certificate = certify(X, hours, relu, target_gap=0.01, time_limit=15)
print(certificate)

# %%
# The left panel shows hours against the fitted index. The right panel shows the three predictions, as the
# wage rises, for a woman with 12 years of education, an average income and one small child.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
index = X @ relu.coef_ + relu.intercept_
left.scatter(index, hours, s=8, alpha=0.35, linewidths=0, label="women in the sample")
at = np.array([index.min(), 0.0, index.max()])
left.plot(at, np.maximum(at, 0.0), color="C3", linewidth=2.5, label="ReLU fit")
left.set(xlabel="fitted index (hours)", ylabel="hours a year", title="A line with a corner")
left.legend(loc="upper left")

wages = np.linspace(1.0, 15.0, 200)
people = np.column_stack([wages, np.ones(200), np.full(200, 12.0), np.full(200, income.mean())])
right.plot(
    wages, np.maximum(people @ truth + 200.0, 0.0), color="black", linewidth=4, alpha=0.3, label="truth"
)
right.plot(wages, relu.predict(people), color="C3", linewidth=2, label="ReLU")
right.plot(wages, everybody.predict(people), color="C0", linestyle="--", label="line, everybody")
right.plot(wages, workers.predict(people), color="C2", linestyle=":", linewidth=2, label="line, workers only")
right.set(
    xlabel="wage offer (dollars an hour)", ylabel="hours a year", title="One small child, average income"
)
right.legend(loc="upper left")
plt.show()
