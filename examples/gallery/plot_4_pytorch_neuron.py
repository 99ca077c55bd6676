"""
To PyTorch and back
===================

The model that rectifit fits is a ReLU neuron, ``relu(linear(x))``. The result of training a neuron by
gradient descent depends on the start: some starts end with a dead neuron, which is zero for all samples and
has the gradient zero. Here Adam trains a neuron from random starts, and then from the fit of the
approximation algorithm. :meth:`~rectifit.Solution.to_torch` returns a fit as
``torch.nn.Sequential(Linear, ReLU)``, which can be trained further like any other module. A trained module
can be the ``start`` of :func:`~rectifit.solve`.

PyTorch is optional; without it, the example only makes the fit and draws it.
"""

import matplotlib.pyplot as plt
import numpy as np

from rectifit import certify, plot, solve

try:
    import torch
except ImportError:
    torch = None
    print("PyTorch is not installed; install it with: pip install 'rectifit[torch]'")

# %%
# The features are not centred, and the mean is positive for one sample in seven.

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8)) + 2.0 * rng.normal(size=8)
u = X @ rng.normal(0.0, 1.5, 8)
y = np.maximum(u - np.quantile(u, 0.85), 0.0) + 0.5 * rng.standard_normal(300)

fit = solve(X, y)
certificate = certify(X, y, fit, target_gap=0.01, time_limit=10)
print(f"rectifit: sum of squares {fit.objective:.2f}; {certificate}")

# %%
# The fit as a module gives the same predictions. The module can become a part of a larger network.

if torch is not None:
    torch.set_num_threads(1)
    neuron = fit.to_torch()
    print(neuron)
    with torch.no_grad():
        difference = np.abs(neuron(torch.from_numpy(X))[:, 0].numpy() - fit.predict(X)).max()
    print(f"largest difference between its predictions and ours: {difference:.1e}")

# %%
# Adam runs from twenty of PyTorch's own random starts with the features as they are, and from twenty with
# standardised features, which is good practice and helps.


def train(module, features, n_steps=600):
    """Train a module by Adam; return the sum of squares at every step."""
    optimiser = torch.optim.Adam(module.parameters(), lr=0.05)
    inputs, outcomes = torch.from_numpy(features), torch.from_numpy(y)
    losses = []
    for _ in range(n_steps):
        optimiser.zero_grad()
        loss = torch.square(module(inputs)[:, 0] - outcomes).sum()
        losses.append(float(loss.detach()))
        loss.backward()
        optimiser.step()
    return losses


def random_neuron(seed):
    """A neuron with the default initialisation of PyTorch."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(X.shape[1], 1, dtype=torch.float64), torch.nn.ReLU())


tables = {"features as they are": X, "standardised features": (X - X.mean(axis=0)) / X.std(axis=0)}
from_random, from_guarantee = {}, {}
if torch is not None:
    for name, features in tables.items():
        from_random[name] = [train(random_neuron(seed), features) for seed in range(20)]
        ends = np.array(from_random[name])[:, -1]
        good = np.mean(ends <= 1.01 * fit.objective)
        print(f"{name}: best {ends.min():.2f}, worst {ends.max():.2f}, {good:.0%} within 1 % of the best fit")

# %%
# Next, Adam starts from the fit of the approximation algorithm, which has a guarantee and takes milliseconds.
# The iterative method then continues from the trained module until it finds no further improvement.

if torch is not None:
    for name, features in tables.items():
        begin = solve(features, y, "approximation")
        neuron = begin.to_torch()
        from_guarantee[name] = train(neuron, features)
        back = solve(features, y, "iterative", start=neuron)
        print(
            f"{name}: approximation {begin.objective:.2f}, after Adam {from_guarantee[name][-1]:.2f}, "
            f"back in rectifit {back.objective:.2f} ({back.stopped})"
        )

# %%
# Each line is one training run. The dashed line is the fit by rectifit; no run can end below this line by
# more than the gap. Runs that stay at the top have ended with a dead neuron.

if torch is None:
    # There are no training runs to draw.
    plot.fit(fit)
else:
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    for axis, name in zip(axes, tables, strict=True):
        for losses in from_random[name]:
            axis.plot(losses, color="C0", alpha=0.4, linewidth=1)
        axis.plot([], color="C0", label="Adam, 20 random starts")
        axis.plot(
            from_guarantee[name], color="C2", linewidth=2, label="Adam from the approximation algorithm"
        )
        axis.axhline(fit.objective, color="C3", linestyle="--", linewidth=2, label="rectifit, proved")
        axis.set(xlabel="step", yscale="log", title=name)
    axes[0].set_ylabel("sum of squares")
    axes[0].legend(loc="upper right")
plt.show()
