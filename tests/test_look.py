"""The look as compiled code is the look that is written with array functions."""

import os
import subprocess
import sys

import numpy as np
import pytest

from rectifit.data.blocks import Block
from rectifit.data.tensors import TensorBlock
from rectifit.surrogate import look_compiled
from rectifit.surrogate.look import Limits, Masks, look


def looks_agree(seed, look_compiled, block_of, array):
    """Both looks at random rows; `array` makes an array of the library of the blocks."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 3000)), int(rng.integers(1, 6))
    n_deciding = int(rng.integers(0, k + 1))
    y, U = rng.standard_normal(n), rng.standard_normal((k + n_deciding, n))
    # Some rows exactly at 0 and at their kinks.
    U[:, : n // 3] = np.maximum(2.0 * y[: n // 3], 0.0)
    decided = set(rng.permutation(k)[:n_deciding].tolist())
    given = [None if e in decided else array((rng.random(n) < 0.5) & (y > 0.0)) for e in range(k)]
    bases = [array(rng.random(n) < 0.5) if rng.random() < 0.5 else None for _ in range(k)]
    zero = np.where(rng.random(k) < 0.5, np.inf, 0.1)
    limits = Limits(rng.choice([-1.0, 0.0, 0.3, np.inf], k), zero, rng.choice([0.0, 0.2], k))

    found = []
    for function in (look, look_compiled):
        # Lines of the masks are further apart than they are long, as pieces of a block are.
        masks = [array(np.ones((k, n + 7), dtype=np.bool_))[:, :n] for _ in range(2)]
        lines, outcomes = array(U.copy()), array(y.copy())
        block = block_of(None, outcomes, None, 123 * seed)
        seen = function(block, outcomes, lines, given, bases, limits, Masks(*masks), block.workspace())
        found.append((seen, masks))
    ((one, *near), masks), ((other, *others_near), others) = found
    for a, b in zip((*masks, *near), (*others, *others_near), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
    np.testing.assert_allclose(one.objectives, other.objectives, rtol=1e-12)
    asked = np.isfinite(zero)
    np.testing.assert_array_equal(one.fingerprints[asked], other.fingerprints[asked])
    for name in ("n_near", "n_right", "n_next", "n_base"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("seed", range(40))
def test_compiled_code_sees_what_array_functions_see(seed):
    looks_agree(seed, look_compiled.look, Block, np.asarray)


def looks_on_a_device_agree(seed):
    """With Triton's interpreter, on the CPU."""
    import torch

    from rectifit.surrogate import look_triton

    looks_agree(seed, look_triton.look, TensorBlock, torch.from_numpy)


def test_the_kernel_of_triton_sees_what_array_functions_see():
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    # Triton decides when it is imported whether it compiles or interprets.
    code = "import test_look\nfor seed in range(40): test_look.looks_on_a_device_agree(seed)\nprint('agreed')"
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(["tests", *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "agreed", done.stderr
