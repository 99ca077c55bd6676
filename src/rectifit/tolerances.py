"""Every constant on which a bound, a proof or a decision about rank rests, with the reason why it is enough.

Two units recur. In working units (`surrogate/rows.py`) the largest |y| lies between 1/2 and 1 and all columns
have length 1; in whitened units (`certificate/presolve.py`) all rows and the ridge together have the Gram
matrix 1 as well. A share is a pure number. Constants that only cost time are defined where they are used.
"""

from __future__ import annotations

# ---- Rounding of sums and products ----

# Share. One operation on float64 numbers errs by at most half of this.
FLOAT64_EPS = 2.0**-52
# Share of the largest |u|. A sum of products that is 0 in exact arithmetic comes out smaller than this: 1e-13
# is 450 roundings, more than pairwise sums over any number of columns make.
ZERO_U_TOL = 1e-13
# Share of the sum. Sums of squares are added pairwise or in blocks, so that even 1e8 of them err by less.
SUM_TOL = 1e-12
# Share of sum w y^2. Squares of residuals that are 0 in exact arithmetic are below eps^2 times their number.
ZERO_OBJECTIVE_TOL = 1e-20
# Share. A recomputed number may differ from a stated one by the order of its sum, which costs far less.
AGREEMENT_TOL = 1e-9

# ---- Rank of matrices ----

# Share of the largest eigenvalue of a Gram matrix of columns with length 1. Rounding moves eigenvalues by a few
# hundred eps of the largest, so a smaller one may be 0.
GRAM_RANK_TOL = 1e-12
# Share of the largest eigenvalue. Rounding hides all of a Gram matrix below this: magnify, and look again.
GRAM_RESOLUTION = 1e-14
# Pivot of a correlation matrix. Above this, columns are independent enough to work with as they are: a
# Cholesky solve then keeps ten digits.
WHITENING_PIVOT = 1e-6
# Share of the largest diagonal entry. Cholesky without pivoting may show pivots well above rounding for a
# singular matrix, but not above the root of eps.
REGULAR_PIVOT_TOL = 1e-7
# Share of its diagonal entry. A pivot of the kernel's factorisation below this marks a dependent column.
PIVOT_TOL = 1e-12
# Working units. A pivot this small comes from rounding alone, because all rows together give columns length 1.
MIN_PIVOT = 1e-26
# Share of the largest value an entry of the diagonal has had. Below it, updates of a Gram matrix have
# cancelled six of its sixteen digits, and it is computed anew.
DRIFT_TOL = 1e-6
# Share of the largest singular value. The rows that are on determine no direction with a smaller one: u is
# known to 1e-13 only.
SHORTEST_RANK_TOL = 1e-9
# Units where rows and outcomes have size 1. Smaller entries are rounding and must not be magnified.
SHORTEST_ZERO_TOL = 1e-11
# Share of the largest |x|. A column with a smaller standard deviation is constant: its variance is a difference
# of squares, which loses half of the digits.
CONSTANT_COLUMN_TOL = 1e-9
# Share of its length. A coefficient with more than this in directions that the rows do not determine has no
# standard error: eigenvectors belonging to GRAM_RANK_TOL are known to about its root.
UNSEEN_TOL = 1e-5
# Degrees of freedom. A row with a smaller 1 - h determines a coefficient alone: h errs by some hundred eps.
FREEDOM_TOL = 1e-10
# Share of the largest diagonal entry, added to Gram matrices that are factorised in batches, so that those
# which are singular up to rounding pass. The bound pays for the difference through its remainder.
BATCH_DIAGONAL = 1e-14

# ---- The kernel that minimises pieces, in working units ----

# Slope. Held rows may leave [0, jump] by this much; the bound clips their slopes and pays for it.
SLOPE_TOL = 1e-11
# Distance. A row held in the solution before stays held if it is this close to its kink.
HOLD_TOL = 1e-9
# Share of the steepest slope on a ray. Where all that falls has come to rest, the slope is 0 but for rounding.
LEVEL_TOL = 1e-13
# Share of the steepest slope on a ray. A jump at the level of rounding (y = 0) is no kink.
JUMP_TOL = 1e-14
# Share of the largest curvature on a ray. What is left after subtracting all the rest is rounding.
CURVATURE_TOL = 1e-13
# Share per coefficient of |z||d|. A change of u that is smaller is rounding, and meets no kink.
DIRECTION_TOL = 1e-15
# Share of the way. A shorter step that lowers the objective by less than DESCENT_TOL counts as zero.
ZERO_STEP_TOL = 1e-10
# Distance of a step from 1 at which it reached the minimum over the current states.
WHOLE_STEP_TOL = 1e-8
# Share of sum y^2. The objective, a sum of squares, does not show a smaller descent.
DESCENT_TOL = 1e-14
# Share of sum y^2. A direction that promises less leads nowhere: the point is the minimum.
FLAT_DESCENT_TOL = 1e-20

# ---- The dual bound ----

# Multiple of 1 + |gamma|. Where no row determines a direction, the bound covers coordinates up to this size;
# such a direction changes the value only through rounding.
MAX_REACH = 10.0
# Share of 1 + sum |lambda|. A larger residual outside the range of the curved pieces means that a relaxation
# has no minimum; a smaller one is the rounding of Z'lambda.
REMAINDER_TOL = 1e-12
# Whitened units. Above this the pivots of the definite part K of a relaxation are not made of rounding.
DEFINITE_PIVOT = 1e-11
# Whitened units. A residual that costs more comes from a Gram matrix that may be singular: the bound is then
# computed again by the careful solver.
MAX_PLAIN_DECREMENT = 1e-3
# Share of the trace. The inverse of a Gram matrix with larger pivots is accurate enough for an ellipsoid that
# is widened by INTERVAL_RTOL.
ELLIPSOID_PIVOT_TOL = 1e-7
# Share of the trace. Samples whose Gram matrix has larger pivots span the whole space.
SPAN_PIVOT_TOL = 1e-9

# ---- Regions that contain every better solution ----

# Share of a radius. Radii come from solves with condition 1e7 or less: they err by less.
INTERVAL_RTOL = 1e-7
# Whitened units. The same for ends of intervals near 0, where u has an error of some hundred eps.
INTERVAL_ATOL = 1e-9
# Ratio of coordinates, which lie in [-1, 1]. Edges of cones are roots of a quadratic, known to half the digits.
CONE_EDGE_TOL = 1e-7
# Distance from 0, for weights of sum 1. A combination of rows closer to 0 than this is 0.
COVER_TOL = 1e-9
# Share of a row's length. A sample closer to a subspace than this lies in it; GRAM_RANK_TOL is its square.
FACE_DISTANCE_TOL = 1e-9
# Weight of u^2 for u > 0 of a sample that is off. Any weight is sound, because u <= 0 there; this one is large
# beside the curvature 1 of a sample.
OFF_PENALTY = 100.0
# Weight of the squared distance beyond a face of a cone. Any weight is sound, because it is 0 in the cone.
FACE_PENALTY = 1e4

# ---- Neighbours of a solved surrogate ----

# Share of the largest eigenvalue. No neighbour is dismissed where the Gram matrix is nearer to singular.
NEIGHBOUR_RANK_TOL = 1e-8
# Share of sum y^2. Values this close may be equal: a neighbour is dismissed only if it is worse by more.
NEIGHBOUR_TOL = 1e-9
