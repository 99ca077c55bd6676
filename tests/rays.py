"""Minima of the loss along rays, met on random walks."""

from __future__ import annotations

import numpy as np

from rectifit.certificate.records import Samples


def least_mean_met(
    samples: Samples, mean: np.ndarray, cutoff: float, rng: np.random.Generator, n_steps: int = 150
) -> tuple[float, float]:
    """The least mean'b met at ray minima with a loss below the cutoff, and the largest |u_+| of these."""
    Z, y = samples.Z, samples.y

    def measure(directions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        on = np.maximum(directions @ Z.T, 0.0)
        squares = np.square(on).sum(axis=1)
        curvature = squares + np.einsum("ij,jk,ik->i", directions, samples.ridge, directions)
        slopes = np.maximum(on @ y, 0.0)
        scales = np.divide(slopes, curvature, out=np.zeros_like(slopes), where=curvature > 1e-14)
        return y @ y - scales * slopes, scales * (directions @ mean), scales * np.sqrt(squares)

    walkers = rng.normal(size=(200, Z.shape[1]))
    (losses, means, lengths), steps = measure(walkers), np.ones(len(walkers))
    for _ in range(n_steps):
        ahead = walkers / np.linalg.norm(walkers, axis=1, keepdims=True)
        new = ahead + steps[:, None] * rng.normal(size=walkers.shape)
        there = measure(new)
        better = np.where(losses < cutoff, (there[0] < cutoff) & (there[1] < means), there[0] < losses)
        walkers[better], losses[better] = new[better], there[0][better]
        means[better], lengths[better] = there[1][better], there[2][better]
        steps = np.where(better, np.minimum(1.5 * steps, 1.0), np.maximum(0.9 * steps, 1e-5))
    inside = losses < cutoff
    assert inside.any(), "no walk ends below the cutoff"
    return float(means[inside].min()), float(lengths[inside].max())
