"""A proved bound of the scale: directions in which almost all samples are off hold nothing better.

Along the ray of a direction d the loss has its minimum where |u_+|^2 + b'ridge b = y'u_+, and there

    L = |y|^2 - |u_+|^2 - b'ridge b,     so for b = s d     s |(Zd)_+| <= (|y|^2 - bound)^(1/2)

with any lower bound of all losses. Let |d| be the largest coordinate, |d| = 1. The scale s = |b| is bounded
unless |(Zd)_+| is small. Here it is shown that no d with |(Zd)_+| <= eps has a minimum below the cutoff on
its ray, so that every better b has |b| <= (|y|^2 - bound)^(1/2) / eps. Two facts are used.

* A sample that is off, or has y <= 0, costs at least y^2. So a better solution has samples on with y > 0 and
  sum y^2 > |y|^2 - cutoff, their mass. If B is a lower bound of the loss where all samples of some set are
  off, it has samples of this set on whose mass exceeds B - cutoff. Each such set is a demand.
* The set { |(Zd)_+| <= eps } is convex: whether some samples can be on in it at the same time is a convex
  problem, and a linear combination of its inequalities proves that they cannot (`scale_kernel.examine`).

Directions are measured by t'd, with t in the middle of those that matter. First a number tau is found such
that t'd >= tau for all of them, by the same kind of proof, one for each face of the cube of directions;
divided by t'd they lie in the convex set { t'd = 1, |(Zd)_+| <= eps / tau }. In it the search decides the
signs of heavy samples: one that is off costs y^2, one that is on leaves a half-space of directions, in which
many others cannot be on.

Where the samples that are on lie in a flat, a subspace of less dimension, as with dummy variables, signs
alone do not decide: all samples outside of the flat may be off by any margin, and what is left is a problem
of less dimension, a face. If its least loss B reaches the cutoff, the samples outside are a demand. The sum
h of -u over the flat is 0 in the face, and at least some beta > 0 wherever enough of the samples outside are
on: h >= beta is a half-space of all better solutions that cuts the face off.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rectifit._typing import Mask, Vector
from rectifit.certificate.best_first import first_kinds
from rectifit.certificate.flats import lies_in, span_of
from rectifit.certificate.records import (
    OFF,
    FaceBounds,
    Kinds,
    Samples,
    ScaleNodes,
    ScalePoints,
    ScaleRows,
    ScaleWork,
)
from rectifit.certificate.scale_kernel import (
    BITS,
    DONE,
    MAX_CUTS,
    PAUSED,
    STUCK,
    find_cut,
    is_empty,
    search_nodes,
)
from rectifit.tolerances import COVER_TOL, GRAM_RANK_TOL, INTERVAL_RTOL, SUM_TOL

__all__ = ["ScaleSearch"]

# What is tried to prove for eps, one after the other.
LEVELS = (1 / 1000, 1 / 300, 1 / 100, 1 / 50, 1 / 30, 1 / 20, 1 / 15, 1 / 10, 1 / 7, 1 / 5, 1 / 3)
# The first tau to be tried, the factor from one to the next, and the least.
FIRST_TAU = 1.0
TAU_FACTOR = 0.97
MIN_TAU = 0.01
# A tau that is large enough.
GOOD_TAU = 0.8
# Turns of t towards directions with a small tau, and the eps for which that is done.
CHART_TURNS = 6
CHART_LEVEL = 1 / 100
# The first half-space to be tried to cut off a face, the factor from one to the next, and the least.
CUT_LIMITS = (0.5, 0.7, 1e-3)
# Growth of the work allowed for until faces that could not be closed are tried again.
RETRY_FACTOR = 2
# Samples that may be on by choice at the same time, and points that are remembered.
MAX_ON = 255
MAX_POINTS = 512
# Newton steps towards the weights of the samples that make up t, and the slope or step that ends them.
CENTRE_STEPS = 50
CENTRE_TOL = 1e-12


class ScaleSearch:
    """Proves in steps that no better solution has |(Zd)_+| <= eps |d|, with |d| the largest coordinate.

    bound_face is given kinds of samples, and returns a lower bound of the loss of all solutions that have all
    samples off that are OFF; known_faces returns all such bounds that are known. work counts samples that a
    step of a feasibility problem looks at.
    """

    def __init__(
        self,
        samples: Samples,
        cutoff: float,
        bound_face: Callable[[Kinds], float] | None = None,
        known_faces: Callable[[], FaceBounds] | None = None,
    ) -> None:
        self.samples = samples
        self.cutoff = cutoff
        self.proved = 0.0
        self._bound_face, self._known_faces = bound_face, known_faces
        self._refused: dict[bytes, Mask] = {}
        self._flats: list[Mask] = []
        self._cuts: set[int] = set()
        self._level = 0
        self._is_open = False
        self._is_over = False
        self._next_try = 0
        y = samples.y
        n, q = samples.Z.shape
        mass = np.square(np.maximum(y, 0.0))
        self._order = np.argsort(-mass, kind="stable")
        self._n_positive = int(np.count_nonzero(mass))
        n_words = -(-self._n_positive // BITS)
        # Demands: sets of samples, the first of which has all of them, and their bounds where these are off.
        self._sets = _pack(np.ones(self._n_positive, np.bool_))[None]
        self._bounds = np.array([float(y @ y)])
        self._nodes = ScaleNodes.empty(MAX_ON + 1, q - 1, n_words, 1)
        self._points = ScalePoints.empty(MAX_POINTS, q - 1, n_words, 1)
        self._work = ScaleWork.empty(n + MAX_CUTS, q - 1, n_words)
        self._mass = mass[self._order[: self._n_positive]]
        self._rows: ScaleRows | None = None
        self._t = np.zeros(q)
        # The largest proved |(Zd)_+| / t'd.
        self._ratio = 0.0
        self._tau = FIRST_TAU

    @property
    def work(self) -> int:
        """Samples looked at so far, once per step of a feasibility problem."""
        return int(self._work.counts[0])

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to try for now."""
        return self._is_over

    @property
    def _needs(self) -> Vector:
        """Mass of samples on that a better solution has in each set, at least."""
        return np.asarray(self._bounds - self.cutoff - SUM_TOL * self._bounds[0])

    def centre(self) -> Vector:
        """Weights v >= 0 of the samples with |v| = 1 such that t has the direction of -Z'v, if there are any.

        They are what makes t'd positive where all samples are off. Of those with Z'v = -t the shortest is
        v = (Za)_+ with the a that minimises |(Za)_+|^2 / 2 + t'a, by Newton steps. Without any, all are the
        same.
        """
        Z = self.samples.Z
        if self._rows is None:
            self._rows = self._choose_chart()
        a, ridge = -self._t, GRAM_RANK_TOL * np.eye(Z.shape[1])
        for _ in range(CENTRE_STEPS):
            u = Z @ a
            slope = Z.T @ np.maximum(u, 0.0) + self._t
            if np.linalg.norm(slope) <= CENTRE_TOL:
                break
            on = Z[u > 0.0]
            step, length = np.linalg.solve(on.T @ on + ridge, slope), 1.0
            loss = _half_square(u) + float(self._t @ a)
            while length > CENTRE_TOL:
                there = a - length * step
                if _half_square(Z @ there) + float(self._t @ there) <= loss:
                    break
                length *= 0.5
            a = a - length * step
        v = np.maximum(Z @ a, 0.0)
        if not np.linalg.norm(Z.T @ v + self._t) <= COVER_TOL:
            v = np.ones(len(Z))
        return np.asarray(v / np.linalg.norm(v))

    def least_mean(self, mean: Vector, explained: float) -> float:
        """A lower bound of mean'b over better ray minima, for a mean in the direction of -t.

        They have |u_+| <= explained, and |u_+| > ratio t'b if ratio is what is proved.
        """
        length = float(np.linalg.norm(mean))
        if self._ratio == 0.0 or float(np.linalg.norm(mean + length * self._t)) > COVER_TOL * length:
            return -np.inf
        return -length * explained / self._ratio * (1.0 + INTERVAL_RTOL)

    def lower_cutoff(self, cutoff: float) -> None:
        """Search for what is better than this from now on; what was proved holds all the more."""
        if cutoff < self.cutoff:
            self.cutoff, self._is_over = cutoff, False
            # Points of open faces are to be met again, for these may be closed now.
            self._refused.clear()
            self._points.n_met[0] = 0

    def advance(self, work: int) -> bool:
        """Do about so much work more. Returns whether nothing is left to try for now.

        Where faces are open that have to be closed first, they are tried again when the sum of work that was
        allowed for has doubled.
        """
        budget = self.work + work
        if self._known_faces is not None:
            known, is_new = self._known_faces(), False
            for outside, bound in zip(known.outside, known.bound, strict=True):
                is_new |= self._demand(~outside, float(bound))
            if is_new:
                self._is_over = False
                if self._is_open:
                    self._begin()
        if self._is_over and self._refused and budget >= self._next_try:
            self._is_over = not self._retry()
            self._next_try = RETRY_FACTOR * budget
        while not self._is_over and self.work < budget:
            if self._is_open:
                self._is_over = not self._search(budget)
            else:
                self._is_over = self._level == len(LEVELS) or not self._open_level(LEVELS[self._level])
            if self._is_over:
                self._next_try = RETRY_FACTOR * budget
        return self._is_over

    def _search(self, budget: int) -> bool:
        """Go on with the present level up to a total of work. Returns False if there is no hope for it."""
        assert self._rows is not None
        eps, reach = self._chart_sizes()
        status, line = search_nodes(
            tuple(self._rows),
            eps,
            reach,
            self._sets,
            self._needs,
            budget,
            tuple(self._nodes),
            tuple(self._points),
            tuple(self._work),
        )
        if status == DONE:
            self.proved, self._is_open = LEVELS[self._level], False
            self._ratio = max(self._ratio, self._chart_sizes()[0])
            self._level += 1
        return status in (PAUSED, DONE) or (status != STUCK and self._can_exclude(line))

    def _open_level(self, eps: float) -> bool:
        """Find tau for eps, and begin with the set of all directions. Returns False if there is none."""
        if self._needs[0] <= 0.0 or self.samples.Z.shape[1] < 2:
            return False
        if self._rows is None:
            self._rows = self._choose_chart()
        self._tau = self._find_tau(self._t, eps, self._tau)[0]
        if self._tau == 0.0:
            return False
        self._is_open = True
        self._rows.n_cuts[0] = 0
        self._cuts = set()
        self._begin()
        return True

    def _begin(self) -> None:
        """Cut off what can be, and begin with the set of all directions that are left.

        A face is a polytope, and larger flats belong to its own faces. There the half-space of the whole is
        not strict: it can be had only where those are cut off before.
        """
        for array in (self._nodes.on, self._nodes.off, self._nodes.chosen_off, self._nodes.points):
            array[0] = 0
        self._nodes.mass[0] = [self._mass[_unpack(line, self._n_positive)].sum() for line in self._sets]
        self._nodes.height[0] = 1
        self._points.n_met[0] = 0
        order = sorted(range(len(self._flats)), key=lambda e: -int(self._flats[e].sum()))
        is_new = True
        while is_new:
            new = {e for e in order if e not in self._cuts and self._cut_off(e)}
            self._cuts |= new
            is_new = bool(new)

    def _choose_chart(self) -> ScaleRows:
        """Find t with a large tau: from the mean of all rows it is turned towards the least t'd."""
        Z = self.samples.Z
        t, best = -Z.sum(axis=0), -1.0
        for turn in range(CHART_TURNS):
            length = float(np.linalg.norm(t))
            t = t / length if length > 0.0 else np.eye(Z.shape[1])[0]
            tau, worst = self._find_tau(t, CHART_LEVEL, FIRST_TAU)
            if tau > best:
                best, self._t = tau, t
            if worst is None or best >= GOOD_TAU:
                break
            t = t + (worst / np.linalg.norm(worst) - t) / (turn + 2.0)
        basis = np.linalg.qr(np.column_stack([self._t, np.eye(Z.shape[1])]))[0][:, 1:]
        Z = np.vstack([Z[self._order], np.zeros((MAX_CUTS, Z.shape[1]))])
        X = np.ascontiguousarray(Z @ basis)
        return ScaleRows(Z @ self._t, X, np.ascontiguousarray(X.T), self._mass, np.zeros(1, np.int64))

    def _find_tau(self, t: Vector, eps: float, tau: float) -> tuple[float, Vector | None]:
        """The first of smaller and smaller tau with t'd >= tau wherever |d| = 1 and |(Zd)_+| <= eps, or 0.

        Also returns where t'd was found to be smaller than the last tau that was given up.
        """
        Z, worst = self.samples.Z, None
        n, q = Z.shape
        sides = np.vstack([t, np.eye(q), -np.eye(q)])
        stacked, is_side = np.vstack([Z, sides]), np.arange(n + len(sides)) >= n
        limit = np.ones(len(sides))
        room = ScaleWork.empty(len(stacked), q - 1, 1)
        for axis in range(q):
            others = np.arange(q) != axis
            X = np.ascontiguousarray(stacked[:, others])
            Xt = np.ascontiguousarray(X.T)
            for sign in (1.0, -1.0):
                while tau > 0.0:
                    limit[0] = tau
                    offset = sign * stacked[:, axis]
                    offset[n:] -= limit
                    rows = ScaleRows(offset, X, Xt, self._mass, np.zeros(1, np.int64))
                    if is_empty(tuple(rows), is_side, eps, math.sqrt(q), tuple(room)):
                        break
                    worst = np.insert(room.a, axis, sign)
                    tau = tau * TAU_FACTOR if tau > MIN_TAU else 0.0
        self._work.counts[0] += room.counts[0]
        return tau, worst

    def _can_exclude(self, line: int) -> bool:
        """Whether the search may go on after a point whose samples, on or nearly so, weigh enough.

        If they span a face that is closed, there is a new demand. Otherwise the search is without hope if
        none is clearly on, for all of them may be on or off nearby, or if those that are meet all demands.
        """
        on, weakly_on = (
            _unpack(bits[line], self._n_positive) for bits in (self._points.on, self._points.weakly_on)
        )
        positive = self._order[: self._n_positive]
        Z = self.samples.Z
        basis = span_of(Z[positive[weakly_on]])
        if basis.shape[1] < Z.shape[1] and self._can_close(lies_in(Z, basis)):
            self._begin()
            return True
        if float(self._mass[on].sum()) < self._needs[0]:
            return bool(on.any())
        masses = [float(self._mass[on & _unpack(line, self._n_positive)].sum()) for line in self._sets]
        return bool((masses < self._needs).any())

    def _retry(self) -> bool:
        """Ask again for the faces that could not be closed. Returns whether one of them can be now."""
        is_any = False
        for inside in list(self._refused.values()):
            is_any |= self._can_close(inside, again=True)
        if is_any and self._is_open:
            self._begin()
        return is_any

    def _can_close(self, inside: Mask, *, again: bool = False) -> bool:
        """Whether the face of these samples holds nothing below the cutoff: then there is a new demand."""
        key = np.packbits(inside).tobytes()
        if self._bound_face is None or (key in self._refused and not again):
            return False
        if self._is_demanded(inside):
            return False
        kind = first_kinds(self.samples.y)
        kind[~inside] = OFF
        bound = self._bound_face(kind)
        if bound < self.cutoff:
            self._refused[key] = inside
            return False
        return self._demand(inside, bound)

    def _is_demanded(self, inside: Mask) -> bool:
        outside = _pack(~inside[self._order[: self._n_positive]])
        return bool((self._sets == outside).all(axis=1).any())

    def _demand(self, inside: Mask, bound: float) -> bool:
        """Note a face whose bound exceeds the cutoff. Returns whether it is new."""
        if bound < self.cutoff or self._is_demanded(inside):
            return False
        outside = _pack(~inside[self._order[: self._n_positive]])
        self._sets = np.vstack([self._sets, outside])
        self._bounds = np.append(self._bounds, bound)
        # Points met before know nothing of the new set; the search begins anew.
        n_sets = len(self._sets)
        self._points = self._points._replace(set_mass=np.zeros((MAX_POINTS, n_sets)))
        self._points.n_met[0] = 0
        self._nodes = self._nodes._replace(mass=np.zeros((MAX_ON + 1, n_sets)))
        self._work = self._work._replace(possible=np.zeros(n_sets))
        self._flats.append(inside[self._order])
        self._refused.pop(np.packbits(inside).tobytes(), None)
        return True

    def _cut_off(self, face: int) -> bool:
        """Cut a face off by a half-space in which all directions lie that meet its demand.

        In the face all samples of the flat have u = 0; elsewhere the sum of all -u is positive, mostly.
        """
        rows, inside = self._rows, self._flats[face]
        if rows is None or rows.n_cuts[0] == MAX_CUTS:
            return False
        cut = inside.size + int(rows.n_cuts[0])
        h = -np.append(rows.X[: inside.size][inside].sum(axis=0), rows.offset[: inside.size][inside].sum())
        h /= max(float(np.linalg.norm(h)), GRAM_RANK_TOL)
        rows.X[cut], rows.Xt[:, cut], rows.offset[cut] = h[:-1], h[:-1], h[-1]
        eps, reach = self._chart_sizes()
        # The first demand belongs to no face.
        demand = self._sets[face + 1], float(self._needs[face + 1])
        return bool(find_cut(tuple(rows), eps, reach, *demand, CUT_LIMITS, tuple(self._work)))

    def _chart_sizes(self) -> tuple[float, float]:
        """eps of the present level where t'd = 1, and a bound of the length of a there."""
        return LEVELS[self._level] / self._tau, math.sqrt(self.samples.Z.shape[1]) / self._tau


def _half_square(u: Vector) -> float:
    return 0.5 * float(np.square(np.maximum(u, 0.0)).sum())


def _pack(mask: Mask) -> npt.NDArray[np.int64]:
    padded = np.zeros(-(-mask.size // BITS) * BITS, np.uint8)
    padded[: mask.size] = mask
    return np.packbits(padded, bitorder="little").view("<i8").astype(np.int64)


def _unpack(bits: npt.NDArray[np.int64], size: int) -> Mask:
    return np.unpackbits(bits.astype("<i8").view(np.uint8), bitorder="little")[:size].astype(bool)
