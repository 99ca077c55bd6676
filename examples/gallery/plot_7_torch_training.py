"""
Start descent from the approximation algorithm
==============================================

How many steps gradient descent on one ReLU neuron takes, and where it ends, depends on its start. The
algorithms with a guarantee are good starts: :meth:`~rectifit.Solution.to_torch` gives their fit as
``torch.nn.Sequential(Linear, ReLU)``, which is trained further like any other module, here by Adam, and the
trained module goes back as ``start`` of :func:`~rectifit.solve`.
"""

import matplotlib.pyplot as plt
import torch

from rectifit import solve
from rectifit.datasets import make_relu

X, y, *_ = make_relu(300, 20, noise=0.5, random_state=3)
inputs, outcomes = torch.from_numpy(X), torch.from_numpy(y)


def train(module, n_steps=1500):
    """The sum of squares at every step of Adam."""
    optimiser = torch.optim.Adam(module.parameters(), lr=0.05)
    losses = []
    for _ in range(n_steps):
        optimiser.zero_grad()
        loss = torch.square(module(inputs)[:, 0] - outcomes).sum()
        losses.append(float(loss.detach()))
        loss.backward()
        optimiser.step()
    return losses


# %%
# The fit of the sorting algorithm, trained further.

fit = solve(X, y, "sorting")
neuron = fit.to_torch()
print(neuron)
from_sorting = train(neuron)
print(f"sorting {fit.objective:.0f}, after Adam {from_sorting[-1]:.0f}")

# %%
# The same neuron from four of PyTorch's own random starts.


def random_neuron(seed):
    """A neuron as PyTorch makes it."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(X.shape[1], 1, dtype=torch.float64), torch.nn.ReLU())


from_random = [train(random_neuron(seed)) for seed in range(4)]
print("from random starts:", *sorted(round(losses[-1]) for losses in from_random))

# %%
# And back: the iterative method goes on from the trained module, to a point that it cannot improve.

further = solve(X, y, "iterative", start=neuron)
print(f"after the iterative method {further.objective:.0f}: {further.stopped}")

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for losses in from_random:
    (line,) = ax.plot(range(1, len(losses) + 1), losses, color="0.7", linewidth=1)
line.set_label("from random starts")
ax.plot(
    range(1, len(from_sorting) + 1), from_sorting, color="C0", linewidth=2, label="from the sorting algorithm"
)
ax.axhline(further.objective, color="C3", linewidth=1, linestyle="--", label="back in rectifit, iterative")
ax.set(xlabel="step of Adam", ylabel="sum of squares", xscale="log", yscale="log")
ax.legend(frameon=False)
plt.show()
