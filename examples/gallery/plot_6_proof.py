"""
Watching a proof
================

A certificate records the history of its search: the objective of the best fit so far, and the bound below
which no fit can go. The data has more noise than signal, so that the bound rises slowly.
"""

import matplotlib.pyplot as plt
import numpy as np

from rectifit import certify

rng = np.random.default_rng(5)
X = rng.normal(size=(300, 6))
u = X @ rng.normal(size=6) + 0.5
y = np.maximum(u, 0.0) + 1.5 * u.std() * rng.standard_normal(300)

certificate = certify(X, y, target_gap=0.001, time_limit=60)
print(certificate)
print(f"{certificate.n_nodes:,} nodes")
print(f"{certificate.lower_bound:.2f} <= least sum of squares <= {certificate.objective:.2f}")

# %%
# The first fit was already the best one; nearly all of the time is spent on the proof. This is typical.

seconds, incumbents, bounds = np.array(certificate.history).T
seconds = seconds - seconds[0]
figure, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
axis.fill_between(seconds, bounds, incumbents, step="post", color="grey", alpha=0.2, label="still open")
axis.step(seconds, incumbents, where="post", color="C3", linewidth=2, label="best fit so far")
axis.step(seconds, bounds, where="post", color="C2", linewidth=2, label="no fit is below (proved)")
axis.set(
    xlabel="seconds of the search",
    ylabel="sum of squares",
    title="Objective and bound during the search",
    ylim=(0, None),
)
axis.legend(loc="lower right")
plt.show()
