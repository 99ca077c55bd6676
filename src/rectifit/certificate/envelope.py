"""The convex envelope of one sample's loss with borrowed or lent curvature.

For a sample with loss f(u) = (max(0, u) - y)^2 and any c > -1 let h(u) = f(u) + c u^2, and let env be the
convex envelope of h on [l, U], extended convexly beyond. Then

    e(u) = env(u) - c u^2  <=  f(u)     for l <= u <= U,

and if ridge - sum_i c_i z_i z_i' is positive semidefinite, the sum of all e_i plus the ridge is convex in the
coefficients: samples with c < 0 lend curvature, those with c > 0 borrow it. All envelopes have the form

    env(u) = constant + slope u + right (u - t)_+^2 + jump (u - t)_+ + left (a - u)_+^2.

    kind     known     envelope
    ON       u >= 0    h itself, (1 + c) u^2 - 2 y u + y^2
    OFF      u <= 0    c = 0: y^2; c < 0: the chord of y^2 + c u^2 from l to 0; a penalty for u > 0
    CONVEX   y <= 0    c = 0: f itself; c < 0: the chord from l to 0 and then h, or, where the chord is
                       steeper than h at 0, the tangent from l to h
    FREE     y > 0     c > 0: the line that touches h left of 0 at a and right of 0 at t; otherwise, or if
                       a < l, the tangent from l to h at t; if t > U, a line that ends at (U, h(U))
    LIMIT    f = 0     none: l <= u <= U are constraints of the relaxation
    SLAB     f = 0     c <= 0: the chord of c u^2 from l to U; penalties beyond both

Far kinds stand for the least loss over all larger scales, t >= 1, of a sample with y > 0,

    min_t (max(0, t u) - y)^2 = y^2 for u <= 0,   max(0, u - y)^2 for u > 0,

which is 0 for 0 < u <= y (of y <= 0 and of OFF, t = 1 is the least already). With c right of 0 it is at least
c t^2 + (1 + c)(u - t)_+^2 for u >= t = y / (1 + c).

    FAR_ON     u >= 0  c <= 0: the chord of c u^2 from l to t, then the above; a penalty for u < l
    FAR_FREE           the line through (0, 0) that touches y^2 + c u^2 at a < 0; otherwise, or if a < l, the
                       line from l that is highest below h at 0 and at t, and from t on the above, but lower;
                       where y^2 + c l^2 is so low that it rises, the tangent from l, or a line to (U, c U^2)
"""

from __future__ import annotations

from typing import NamedTuple

from rectifit._typing import Matrix, Vector
from rectifit.certificate.records import CONVEX, FAR_FREE, FAR_ON, FREE, LIMIT, OFF, ON, SLAB, Kinds

__all__ = ["CONVEX", "FAR_FREE", "FAR_ON", "FREE", "LIMIT", "OFF", "ON", "SLAB", "Envelopes", "Kinds"]


class Envelopes(NamedTuple):
    """One entry per sample; the chord is the segment [a, t] on which the envelope is a line below h.

    The line goes on to the left of a where `left` is 0. For ON samples only c matters.
    """

    constant: Vector
    slope: Vector
    right: Vector
    t: Vector
    jump: Vector
    left: Vector
    a: Vector
    has_chord: Vector

    @classmethod
    def from_columns(cls, table: Matrix) -> Envelopes:
        """From the table of certificate/kernel.py, one line per sample."""
        return cls(*table.T)
