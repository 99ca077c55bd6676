"""The look of `rectifit.surrogate.look` on NumPy arrays, by code that is compiled for the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rectifit.data.blocks import Block
from rectifit.data.workspace import Workspace
from rectifit.preparing import prepare
from rectifit.surrogate.look import Limits, Look, Masks, Seen
from rectifit.surrogate.look_kernel import Answer, Asked, see_rows

__all__ = ["look"]


def look(
    piece: Block,
    v: Any,
    U: Any,
    given: Sequence[Any],
    bases: Sequence[Any],
    limits: Limits,
    masks: Masks,
    space: Workspace,
) -> Look:
    """The same as `rectifit.surrogate.look.look`."""
    prepare(see_rows)
    k, m = len(given), int(v.shape[0])
    active, right, base = (space(name, (k, m), "bool") for name in ("active", "right", "base"))
    for lines, known in ((active, given), (base, bases)):
        for line, mask in zip(lines, known, strict=True):
            if mask is not None:
                line[...] = mask
    is_decided = np.array([mask is None for mask in given])
    deciding = np.where(is_decided, k - 1 + np.cumsum(is_decided), -1)
    has_base = np.array([mask is not None for mask in bases], dtype=np.int64)
    asked = Asked(*limits, deciding, has_base)
    near, where, u = space("near", (m,), "bool"), space("where", (k * m,), "int64"), space("near u", (k * m,))
    answer = Answer(active, right, base, np.empty((2, k)), np.zeros((6, k), dtype=np.int64), near, where, u)
    names = space("names", (m if np.isfinite(limits.zero).any() else 0,), "int64")
    n_near = see_rows(U, v, names, piece.start, tuple(asked), tuple(answer))
    masks.active[...], masks.right[...] = active, right
    values, objectives = answer.sums
    seen = Seen(values, objectives, answer.counts[:2].T, *answer.counts[2:])
    return Look(seen, where[:n_near].copy(), u[:n_near].copy())
