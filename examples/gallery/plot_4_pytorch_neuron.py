"""
A neuron for PyTorch
====================

A ReLU neuron, ``relu(linear(x))``, is what rectifit fits. Training it by gradient descent depends on where it
starts: some starts end with a dead neuron, which is off for all samples and whose gradient is zero. Here the
weight and bias from rectifit go into ``torch.nn.Linear``, and are compared with Adam from random starts.

PyTorch is optional; without it the fit is made and the comparison is left out.
"""

import matplotlib.pyplot as plt
import numpy as np

from rectifit import certify, solve

try:
    import torch
except ImportError:
    torch = None

# %%
# Features that are not centred, and a mean that is positive for one sample in seven.

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8)) + 2.0 * rng.normal(size=8)
u = X @ rng.normal(0.0, 1.5, 8)
y = np.maximum(u - np.quantile(u, 0.85), 0.0) + 0.5 * rng.standard_normal(300)

fit = solve(X, y)
certificate = certify(X, y, fit, target_gap=0.01, time_limit=10)
print(f"rectifit: sum of squares {fit.objective:.2f}; {certificate}")

# %%
# The neuron with these weights gives the same predictions. From here it can be trained further as a part of a
# larger network.


def make_neuron(beta, intercept):
    """A ReLU neuron of PyTorch with given weights."""
    neuron = torch.nn.Sequential(torch.nn.Linear(len(beta), 1, dtype=torch.float64), torch.nn.ReLU())
    with torch.no_grad():
        neuron[0].weight.copy_(torch.as_tensor(np.array(beta))[None])
        neuron[0].bias.fill_(intercept)
    return neuron


def train(X, seed, n_steps=600):
    """The sum of squares along Adam's way from a random start of PyTorch's own."""
    torch.manual_seed(seed)
    neuron = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 1, dtype=torch.float64), torch.nn.ReLU())
    optimiser = torch.optim.Adam(neuron.parameters(), lr=0.05)
    inputs, outcomes = torch.as_tensor(X), torch.as_tensor(y)
    losses = []
    for _ in range(n_steps):
        optimiser.zero_grad()
        loss = torch.square(neuron(inputs)[:, 0] - outcomes).sum()
        losses.append(float(loss.detach()))
        loss.backward()
        optimiser.step()
    return losses


# %%
# Twenty starts with the features as they are, and twenty with standardised ones, which is a good habit and
# helps.

standardised = (X - X.mean(axis=0)) / X.std(axis=0)
runs = {"features as they are": (), "standardised features": ()}
if torch is None:
    print("PyTorch is not installed; install it with: pip install 'rectifit[torch]'")
else:
    torch.set_num_threads(1)
    neuron = make_neuron(fit.beta, fit.intercept)
    with torch.no_grad():
        difference = np.abs(neuron(torch.as_tensor(X))[:, 0].numpy() - fit.predict(X)).max()
    print(f"largest difference between the neuron's predictions and ours: {difference:.1e}")
    for name, features in zip(runs, (X, standardised), strict=True):
        runs[name] = [train(features, seed) for seed in range(20)]
        ends = np.array(runs[name])[:, -1]
        good = np.mean(ends <= 1.01 * fit.objective)
        print(f"{name}: best {ends.min():.2f}, worst {ends.max():.2f}, {good:.0%} within 1 % of the best fit")

# %%
# Each line is one training run. The dashed line is the fit by rectifit, below which no run can end by more
# than the gap. Runs that stay at the top are dead.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for axis, (name, lines) in zip(axes, runs.items(), strict=True):
    for losses in lines:
        axis.plot(losses, color="C0", alpha=0.4, linewidth=1)
    axis.axhline(fit.objective, color="C3", linestyle="--", linewidth=2, label="rectifit, proved")
    axis.plot([], color="C0", label="Adam, 20 random starts")
    axis.set(xlabel="step", yscale="log", title=name)
axes[0].set_ylabel("sum of squares")
axes[0].legend(loc="upper right")
plt.show()
