"""Bounds after 5, 20 and 60 seconds beside those of an earlier build."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from common import console, table_of
from measure import MOMENTS, SUM_TOL, Record, gap_of

# A bound is worse if it falls short of the earlier one by more than this share of the earlier gap.
WORSE_SHARE = 0.01


def compare(records: Iterable[Record], earlier: Iterable[Record]) -> int:
    """Print where bounds became worse, and seconds of what both builds closed; returns how many are worse."""
    known = {record.key: record for record in earlier}
    pairs = [(known[record.key], record) for record in records if record.key in known]
    if not pairs:
        raise ValueError("the baseline has none of these data sets")
    changed = [now.key for then, now in pairs if then.digest != now.digest]
    if changed:
        raise ValueError(f"the data of {changed[0]} and {len(changed) - 1} more differs from the baseline's")
    n_worse = bounds(pairs)
    seconds(pairs)
    return n_worse


def bounds(pairs: list[tuple[Record, Record]]) -> int:
    table = table_of(
        "Bounds that are worse than the earlier build's", "data", "seed", "after s", "gap then", "gap now"
    )
    worse, better, unknown = 0, 0, 0
    for then, now in pairs:
        check_against(then, now)
        for moment in MOMENTS:
            before, after = then.bound_at(moment), now.bound_at(moment)
            if before is None or after is None:
                unknown += 1
                continue
            slack = WORSE_SHARE * (then.objective - before)
            better += after > before + slack
            # Beyond the gap that was asked for, a bound says how the search ended, not how good it is.
            if after >= before - slack or now.meets(after):
                continue
            worse += 1
            table.add_row(
                now.kind,
                now.number,
                f"{moment:g}",
                f"{gap_of(then.objective, before):.2%}",
                f"{gap_of(now.objective, after):.2%}",
            )
    if worse:
        console.print(table)
    total = len(MOMENTS) * len(pairs) - unknown
    console.print(
        f"Of {total} bounds, after {', '.join(f'{moment:g}' for moment in MOMENTS)} reference seconds, "
        f"{worse} are worse by more than {WORSE_SHARE:.0%} of the gap,\n{better} are better; {unknown} are "
        "not known for both builds.\n"
    )
    return worse


def check_against(then: Record, now: Record) -> None:
    """No build may have a bound above the objective that the other one found."""
    for one, other in ((then, now), (now, then)):
        if one.lower_bound > other.objective * (1.0 + SUM_TOL):
            raise AssertionError(f"{one.key}: the bound {one.lower_bound} is above {other.objective}")


def seconds(pairs: list[tuple[Record, Record]]) -> None:
    """What both builds closed: times of reference seconds, per kind."""
    table = table_of("Closed by both builds: reference seconds", "data", "sets", "then", "now", "now / then")
    kinds = list(dict.fromkeys(now.kind for then, now in pairs if then.is_closed and now.is_closed))
    for kind in kinds:
        both = [(t, r) for t, r in pairs if r.kind == kind and t.is_closed and r.is_closed]
        before, after = (median(r.seconds / r.scale for r in side) for side in zip(*both, strict=True))
        table.add_row(kind, str(len(both)), f"{before:.3f}", f"{after:.3f}", f"{after / before:.2f}")
    if kinds:
        console.print(table)
