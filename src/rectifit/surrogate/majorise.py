"""The majorise-minimise steps: from a point to the minimiser of the surrogate of its own active set.

L(beta^{t+1}) <= F_{I^t}(beta^{t+1}) <= F_{I^t}(beta^t) = L(beta^t),      I^t the active set at beta^t.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field

from rectifit.active import ActiveSet
from rectifit.data.problem import Point
from rectifit.fit import Stop
from rectifit.surrogate.engine import Engine, Minimum
from rectifit.surrogate.results import SurrogateResults

__all__ = ["Paths", "follow_together", "majorise"]


def majorise(engine: Engine, start: Point, max_iter: int, tol: float) -> Generator[Minimum, None, Stop]:
    """The steps from a start; returns why they ended."""
    point, (active,) = start, engine.active_at([start])
    for _ in range(max_iter):
        (minimum,) = engine.minimise([active], [point], follow=True)
        yield minimum
        (following,) = engine.following([minimum])
        if following is None:
            return Stop.REPEATED
        if point.objective - minimum.point.objective <= tol * point.objective:
            return Stop.LITTLE
        point, active = minimum.point, following
    return Stop.MAX_ITER


@dataclass
class Paths:
    """What was found on the way from several starts, and where the paths ended."""

    results: SurrogateResults = field(default_factory=SurrogateResults)
    ends: list[Point] = field(default_factory=list)


def follow_together(
    engine: Engine,
    sets: Sequence[ActiveSet],
    starts: Sequence[Point] | None,
    *,
    max_iter: int,
    tol: float,
    visited: set[Hashable],
    is_over: Callable[[], bool],
) -> Paths:
    """Follow paths from several active sets, step by step together.

    A path ends where the objective falls by no more than the share `tol`, where its active set repeats, or at
    an active set that some path has visited: what follows is known.

    Parameters
    ----------
    engine : Engine
    sets : active sets to begin with
    starts : the points that they are the active sets of, optional
        Without them every path has one step, unless samples are exactly at 0.
    max_iter : int
    tol : float
    visited : keys of the active sets known so far; grows
    is_over : whether to end at once
    """
    result = Paths()
    points: list[Point | None] = [None] * len(sets) if starts is None else list(starts)
    for _ in range(max_iter):
        new = []
        for line, key in enumerate(active.key for active in sets):
            if key is None or key not in visited:
                visited.add(key)
                new.append(line)
        if not new or is_over():
            break
        sets, points = [sets[line] for line in new], [points[line] for line in new]
        known = [point for point in points if point is not None]
        minima = engine.minimise(sets, known if len(known) == len(sets) else None, follow=True)
        result.results.add(minima)
        onward: list[tuple[ActiveSet, Point]] = []
        for minimum, following, before in zip(minima, engine.following(minima), points, strict=True):
            point = minimum.point
            falls = before is not None and before.objective - point.objective > tol * before.objective
            if following is None or not falls:
                result.ends.append(point)
                # With samples exactly at 0 there is another active set to go on with.
                following = engine.wider_at(point)
            if following is not None:
                onward.append((following, point))
        sets, points = [active for active, _ in onward], [point for _, point in onward]
    return result
