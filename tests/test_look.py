"""The look as a Triton kernel is the look that is written with array functions."""

import os
import subprocess
import sys

import numpy as np
import pytest

from rectifit.data.tensors import TensorBlock
from rectifit.surrogate.look import Limits, Masks, look


def looks_agree(seed):
    """Both looks at random rows, with Triton's interpreter on the CPU."""
    import torch

    from rectifit.surrogate import look_triton

    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 3000)), int(rng.integers(1, 6))
    n_deciding = int(rng.integers(0, k + 1))
    y, U = rng.standard_normal(n), rng.standard_normal((k + n_deciding, n))
    # Some rows exactly at 0 and at their kinks.
    U[:, : n // 3] = np.maximum(2.0 * y[: n // 3], 0.0)
    decided = set(rng.permutation(k)[:n_deciding].tolist())
    given = [None if e in decided else torch.from_numpy((rng.random(n) < 0.5) & (y > 0.0)) for e in range(k)]
    bases = [torch.from_numpy(rng.random(n) < 0.5) if rng.random() < 0.5 else None for _ in range(k)]
    zero = np.where(rng.random(k) < 0.5, np.inf, 0.1)
    limits = Limits(rng.choice([-1.0, 0.0, 0.3, np.inf], k), zero, rng.choice([0.0, 0.2], k))

    found = []
    for function in (look, look_triton.look):
        # Lines of the masks are further apart than they are long, as pieces of a block are.
        masks = [torch.ones((k, n + 7), dtype=torch.bool)[:, :n] for _ in range(2)]
        masks.append(torch.ones((k, n), dtype=torch.bool))
        lines, outcomes = torch.from_numpy(U.copy()), torch.from_numpy(y.copy())
        block = TensorBlock(None, outcomes, None, 123 * seed)
        seen = function(block, outcomes, lines, given, bases, limits, Masks(*masks), block.workspace())
        found.append((seen, masks))
    (one, masks), (other, others) = found
    for a, b in zip(masks, others, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
    np.testing.assert_allclose(one.objectives, other.objectives, rtol=1e-12)
    asked = np.isfinite(zero)
    np.testing.assert_array_equal(one.fingerprints[asked], other.fingerprints[asked])
    for name in ("n_near", "n_right", "n_next", "n_base"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_the_kernel_sees_what_array_functions_see():
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    # Triton decides when it is imported whether it compiles or interprets.
    code = "import test_look\nfor seed in range(40): test_look.looks_agree(seed)\nprint('agreed')"
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(["tests", *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "agreed", done.stderr
