"""The majorise-minimise steps: from a point to the minimiser of the surrogate of its own active set.

L(beta^{t+1}) <= F_{I^t}(beta^{t+1}) <= F_{I^t}(beta^t) = L(beta^t),      I^t the active set at beta^t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, field

from rectifit.active import ActiveSet
from rectifit.data.problem import Point
from rectifit.fit import Stop
from rectifit.surrogate.engine import Engine, Minimum
from rectifit.surrogate.results import SurrogateResults

__all__ = ["Basins", "Paths", "follow_together", "majorise"]


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


class Basins:
    """Which path has visited an active set, and how low each has come.

    A path that comes to an active set which another one has visited goes on as that one does.
    """

    def __init__(self) -> None:
        self._path_at: dict[Hashable, int] = {}
        # By path: the one that it goes on with, itself if none, and its least objective.
        self._onward: list[int] = []
        self._lowest: list[float] = []

    def begin(self) -> int:
        """Begin a path; returns its number."""
        self._onward.append(len(self._onward))
        self._lowest.append(math.inf)
        return len(self._onward) - 1

    def enter(self, path: int, key: Hashable) -> bool:
        """Whether an active set is new; where it cannot be told, it counts as new."""
        if key is None:
            return True
        first = self._path_at.setdefault(key, -1)
        if first < 0:
            self._path_at[key] = path
            return True
        self._onward[path] = first
        return False

    def lower(self, path: int, objective: float) -> None:
        """A path has come to a point."""
        self._lowest[path] = min(self._lowest[path], objective)

    def end_of(self, path: int) -> float:
        """The objective where a path ends."""
        seen = {path}
        while (path := self._onward[path]) not in seen:
            seen.add(path)
        return min(self._lowest[e] for e in seen)


@dataclass
class Paths:
    """What was found on the way from several starts, where paths ended, and their numbers."""

    results: SurrogateResults = field(default_factory=SurrogateResults)
    ends: list[Point] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


def follow_together(
    engine: Engine,
    sets: Sequence[ActiveSet],
    starts: Sequence[Point] | None,
    *,
    max_iter: int,
    tol: float,
    basins: Basins,
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
    basins : active sets and paths known so far; grows
    is_over : whether to end at once
    """
    result = Paths(numbers=[basins.begin() for _ in sets])
    paths = result.numbers
    points: list[Point | None] = [None] * len(sets) if starts is None else list(starts)
    for _ in range(max_iter):
        new = [line for line, active in enumerate(sets) if basins.enter(paths[line], active.key)]
        if not new or is_over():
            break
        sets, points = [sets[line] for line in new], [points[line] for line in new]
        paths = [paths[line] for line in new]
        known = [point for point in points if point is not None]
        minima = engine.minimise(sets, known if len(known) == len(sets) else None, follow=True)
        result.results.add(minima)
        onward: list[tuple[ActiveSet, Point, int]] = []
        steps = zip(minima, engine.following(minima), points, paths, strict=True)
        for minimum, following, before, path in steps:
            point = minimum.point
            basins.lower(path, point.objective)
            falls = before is not None and before.objective - point.objective > tol * before.objective
            if following is None or not falls:
                result.ends.append(point)
                # With samples exactly at 0 there is another active set to go on with.
                following = engine.wider_at(point)
            if following is not None:
                onward.append((following, point, path))
        sets, points = [active for active, _, _ in onward], [point for _, point, _ in onward]
        paths = [path for _, _, path in onward]
    return result
