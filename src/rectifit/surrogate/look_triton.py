"""The look of `rectifit.surrogate.look` as one Triton kernel: every pre-activation is read once.

A program has some rows, and goes through all lines. Its sums are added up by torch, in the same order each
time. Masks of other looks lie anywhere in the memory of the device and are passed as addresses, and lines by
where they begin: their numbers times their lengths may need 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl

from rectifit.data.blocks import Block
from rectifit.data.workspace import Workspace
from rectifit.surrogate.look import Limits, Look, Masks, Seen, near_rows

__all__ = ["look"]

# Rows of a program.
ROWS = 1024


@triton.jit
def _hash(index):
    """`rectifit.data.sampling.hash_rows`."""
    h = index * -0x61C8864680B583EB
    h = (h ^ ((h >> 30) & ((1 << 34) - 1))) * -0x40A7B892E31B1A47
    h = (h ^ ((h >> 27) & ((1 << 37) - 1))) * -0x6B2FB644ECCEEE15
    return h ^ ((h >> 31) & ((1 << 33) - 1))


@triton.jit
def _look(U, v, numbers, addresses, active, right, near, sums, counts, n, k, start, ROWS: tl.constexpr):
    program, n_programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    rows = program * ROWS + tl.arange(0, ROWS)
    here = rows < n
    y = tl.load(v + rows, mask=here, other=0.0)
    kink = y + tl.abs(y)
    positive = y > 0.0
    name = _hash(rows + start)
    before = positive
    for line in range(k):
        at = tl.load(addresses + 3 * k + line) + rows
        at_mask = tl.load(addresses + 4 * k + line) + rows
        u = tl.load(U + at, mask=here, other=0.0)
        width = tl.load(numbers + line)
        zero = tl.load(numbers + k + line)
        threshold = tl.load(numbers + 2 * k + line)
        given = tl.load(addresses + line)
        deciding = tl.load(addresses + k + line)
        base = tl.load(addresses + 2 * k + line)
        if deciding >= 0:
            at_point = tl.load(U + deciding + rows, mask=here, other=0.0)
            is_active = (at_point > threshold) & positive
        else:
            mask = given.to(tl.pointer_type(tl.int8))
            is_active = tl.load(mask + rows, mask=here, other=0) != 0
        is_right = here & (is_active | (u > kink))
        is_near = here & (tl.abs(u - kink) <= width) & (is_active == 0)
        tl.store(active + at_mask, is_active.to(tl.int8), mask=here)
        tl.store(right + at_mask, is_right.to(tl.int8), mask=here)
        tl.store(near + at, is_near.to(tl.int8), mask=here)
        r = tl.where(is_right, u, 0.0) - y
        s = tl.where(u > 0.0, u, 0.0) - y
        place = line * n_programs + program
        size = k * n_programs
        tl.store(sums + place, tl.sum(r * r))
        tl.store(sums + size + place, tl.sum(s * s))
        tl.store(counts + place, tl.sum(tl.where(is_active, name, 0)))
        tl.store(counts + size + place, tl.sum(tl.where((u > zero) & positive, name, 0)))
        tl.store(counts + 2 * size + place, tl.sum(is_near.to(tl.int64)))
        tl.store(counts + 3 * size + place, tl.sum(is_right.to(tl.int64)))
        if line > 0:
            n_next = tl.sum((is_right != before).to(tl.int64))
            tl.store(counts + 4 * size + place - n_programs, n_next)
        before = is_right
        if base != 0:
            mask = base.to(tl.pointer_type(tl.int8))
            was_right = tl.load(mask + rows, mask=here, other=0) != 0
            tl.store(counts + 5 * size + place, tl.sum((is_right != was_right).to(tl.int64)))


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
    import torch

    k, n = len(given), int(v.shape[0])
    deciding = np.full(k, -1)
    decided = [line for line, mask in enumerate(given) if mask is None]
    deciding[decided] = (k + np.arange(len(decided))) * n
    addresses = [[0 if mask is None else mask.data_ptr() for mask in lines] for lines in (given, bases)]
    begins = [np.arange(k) * stride for stride in (n, masks.active.stride(0))]
    asked = np.array([addresses[0], deciding, addresses[1], *begins])
    # One transfer to the device and one back: each takes longer than the kernel on a million rows.
    parameters = np.concatenate([np.stack(limits).view(np.int64), asked])
    on_device = torch.from_numpy(parameters).to(v.device)
    n_programs = triton.cdiv(n, ROWS)
    near = space("near", (k, n), "bool")
    sums = torch.empty((2, k, n_programs), dtype=torch.float64, device=v.device)
    counts = torch.zeros((6, k, n_programs), dtype=torch.int64, device=v.device)
    _look[(n_programs,)](
        U,
        v,
        on_device[:3].view(torch.float64),
        on_device[3:],
        *(mask.view(torch.int8) for mask in (*masks, near)),
        sums,
        counts,
        n,
        k,
        piece.start,
        ROWS=ROWS,
    )
    found = torch.cat([sums.sum(2).view(torch.int64), counts.sum(2)]).cpu().numpy()
    values, objectives = found[:2].view(np.float64)
    fingerprints = found[2:4].T * np.isfinite(limits.zero)[:, None]
    seen = Seen(values, objectives, fingerprints, *found[4:])
    return Look(seen, *near_rows(piece, near, U))
