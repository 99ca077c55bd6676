"""Every constant on which a bound, a proof or a decision about rank rests, and why it is enough.

Two units recur. In working units (`surrogate/rows.py`) the largest |y| lies between 1/2 and 1 and all columns
have length 1. In whitened units (`certificate/presolve.py`) all rows and the ridge together have the Gram
matrix 1 as well. A share is a pure number. Constants that only cost time are defined where they are used.
"""

from __future__ import annotations

# ---- Rounding of sums and products ----

# Share. One operation on float64 numbers errs by at most half of this.
FLOAT64_EPS = 2.0**-52
# Share of the largest |u|. A u that is 0 in exact arithmetic is a sum with some hundred rounding errors at
# most; this is 450 of them.
ZERO_U_TOL = 1e-13
# Share of a sum of squares. It is added pairwise or in blocks, with an error of some dozen eps; this is
# 4500.
SUM_TOL = 1e-12
# Share of sum w y^2. The residuals of a perfect fit are rounding errors, at most 1e-11 of y, and their
# squares are below this.
ZERO_OBJECTIVE_TOL = 1e-20
# Share. A recomputed number differs from a stated one by the order of its sums, a thousandth of this.
AGREEMENT_TOL = 1e-9

# Share of the objective of the zero function. A point that is better by less is the zero function.
DEAD_TOL = 1e-12
# Share of the sum of the absolute values of the terms. A linear constraint that is missed by less holds: a
# vertex of many constraints is found by solves that keep at least nine digits. Bounds hold exactly.
CONSTRAINT_TOL = 1e-9

# ---- Rank of matrices ----

# Share of the largest eigenvalue of a Gram matrix of columns with length 1. Rounding moves eigenvalues by a
# few hundred eps of the largest: a smaller eigenvalue may be 0.
GRAM_RANK_TOL = 1e-12
# Share of the largest eigenvalue. What lies below is lost in the rounding of the Gram matrix, and shows
# only after the columns have been magnified in its direction.
GRAM_RESOLUTION = 1e-14
# Pivot of a correlation matrix. With larger pivots a solve keeps ten digits without any whitening.
WHITENING_PIVOT = 1e-6
# Share of the largest diagonal entry. Cholesky without pivoting may leave pivots well above eps for a
# singular matrix; above this, many orders of magnitude higher, the matrix is regular.
REGULAR_PIVOT_TOL = 1e-7
# Share of its diagonal entry. A smaller pivot of the kernel's factorisation may be rounding: the column is
# taken as dependent, and the bound pays for what it leaves through the remainder.
PIVOT_TOL = 1e-12
# Working units, where all rows together give columns length 1: a pivot this small is rounding.
MIN_PIVOT = 1e-26
# Share of the largest value that an entry of the diagonal has had. Below it, updates of a Gram matrix have
# cancelled six of its sixteen digits, and it is computed from the rows again.
DRIFT_TOL = 1e-6
# Share of the largest singular value. A smaller one amplifies the rounding of u beyond four digits: the
# rows that are on do not determine its direction.
SHORTEST_RANK_TOL = 1e-9
# Share of the length of a row. What is left of it beside other rows is rounding if it is shorter: then the
# constraint follows from the others, or there are no coefficients that satisfy all.
INDEPENDENT_TOL = 1e-9
# Units where rows and outcomes have size 1. Smaller entries are rounding and must not be magnified.
SHORTEST_ZERO_TOL = 1e-11
# Share of the largest |x|. A column with a smaller standard deviation is constant up to rounding.
CONSTANT_COLUMN_TOL = 1e-9
# Share of a coefficient in directions that the rows do not determine, above which it has no standard error.
# Eigenvectors of eigenvalues below GRAM_RANK_TOL are known to about its root, 1e-6.
UNSEEN_TOL = 1e-5
# Share of its sum of squares. What is left of one column beside another, of rows of which each entry has all
# its digits, is rounding if it is less: a thousand entries that err by two eps each. The rows are parallel.
PARALLEL_TOL = 1e-28
# Share of its variance. What is left of a column beside others is rounding if it is less: the column follows
# from them. A combination leaves out columns that contribute less than DEPENDENT_TOL of its size.
RESIDUAL_VARIANCE_TOL = 1e-10
DEPENDENT_TOL = 1e-6
# Degrees of freedom. With less than this left, by a row or by all, nothing but rounding is left.
FREEDOM_TOL = 1e-10
# Share of the largest diagonal entry, added to Gram matrices that are factorised in batches, so that
# matrices that are singular up to rounding pass. The bound pays for the difference through the remainder.
BATCH_DIAGONAL = 1e-14

# ---- The kernel that minimises pieces, in working units ----
# These decide when the kernel takes a point as the minimum. The bound holds at whatever point it stops.

# Slope. Held rows may leave [0, jump] by this much; their slopes are clipped, and the bound pays for it.
SLOPE_TOL = 1e-11
# Distance. A row held in the solution before stays held if it is this close to its kink.
HOLD_TOL = 1e-9
# Distance. A coefficient so close to its bound was held there, and is put there exactly: solves that hold a
# row leave some hundred eps.
AT_BOUND_TOL = 1e-12
# Share of the steepest slope on a ray. Below it, the slope is what rounding has left of the sum of all
# slopes.
LEVEL_TOL = 1e-13
# Share of the steepest slope on a ray. A smaller jump is rounding (y = 0) and no kink.
JUMP_TOL = 1e-14
# Share of the largest curvature on a ray. Below it, the curvature is what rounding has left of it.
CURVATURE_TOL = 1e-13
# Share, per coefficient, of |z||d|. A smaller change of u is rounding, and leads to no kink.
DIRECTION_TOL = 1e-15
# Share of the way. A shorter step that lowers the objective by less than DESCENT_TOL counts as zero.
ZERO_STEP_TOL = 1e-10
# Distance of the step from 1 up to which it led to the minimum over the current states.
WHOLE_STEP_TOL = 1e-8
# Share of sum y^2. A smaller descent does not show in the objective, a sum of squares.
DESCENT_TOL = 1e-14
# Share of sum y^2. A direction that promises less is rounding: the point is the minimum.
FLAT_DESCENT_TOL = 1e-20

# ---- The dual bound ----

# Multiple of 1 + |gamma|. Where rounding leaves a remainder in a direction that no row determines, the
# bound covers coordinates up to this size; larger ones give the same values, as no u changes in that
# direction.
MAX_REACH = 10.0
# Share of 1 + sum |lambda|. A smaller remainder is the rounding of Z'lambda. With a larger one, a
# relaxation may have no minimum, and has no bound.
REMAINDER_TOL = 1e-12
# Whitened units. Smaller pivots of the definite part K of a relaxation may be rounding.
DEFINITE_PIVOT = 1e-11
# Whitened units. A larger decrement may come from a Gram matrix that is singular up to rounding: the bound
# is computed again with `solve_gram`, which detects that.
MAX_PLAIN_DECREMENT = 1e-3
# Whitened units. So may a longer v = G^-1 rho: where it is shorter, what is no rounding in rho belongs
# to what is none in G.
MAX_PLAIN_REACH = 1e3
# Share of the trace. With larger pivots an inverse is accurate to 1e-9, and an ellipsoid that is widened by
# INTERVAL_RTOL contains the exact one.
ELLIPSOID_PIVOT_TOL = 1e-7
# Share of the trace. With larger pivots than this, samples span the whole space whatever the rounding.
SPAN_PIVOT_TOL = 1e-9

# ---- Searches ----

# Multiple of the rounding of sum w y^2. Bounds of nodes are sums whose terms are larger than their sum, and
# come no nearer to the least loss than this; a search for more splits nodes that no split can close.
LEAST_ROOM = 4.0

# ---- Regions that contain every better solution ----

# Share of a radius. Radii come from solves that keep nine digits.
INTERVAL_RTOL = 1e-7
# Whitened units. For ends of intervals near 0: u has an error of some hundred eps.
INTERVAL_ATOL = 1e-9
# Ratio of coordinates, in [-1, 1]. The edges of a cell are roots of a quadratic, which keep half of the
# digits.
CELL_EDGE_TOL = 1e-7
# Share of the reach of a row within a box, a sum of products that errs by some eps per coefficient.
BOX_RTOL = 1e-9
# Length, for rows of length up to 1 and weights of sum 1. A shorter combination of rows counts as 0. This
# only chooses the search: intervals that do not exist are not found either way.
COVER_TOL = 1e-9
# Share of the length of a row. A sample nearer to a subspace lies in it up to rounding.
FACE_DISTANCE_TOL = 1e-9
# Whitened units: the length of a row that stands for a constraint. Any length is sound; a constraint that
# holds back a slope of mu costs a bound mu^2 / (4 length^2), and mu^2 is at most four times the loss.
CONSTRAINT_LENGTH = 1e3
# Whitened units. The line of an envelope begins at the lower end of an interval, and its rounding grows with
# that distance; an end that is farther away says nothing.
MAX_END = 1e6
# Weight of u^2 where a sample that is off has u > 0. Any weight is sound, because no better solution lies
# there.
OFF_PENALTY = 100.0

# ---- Neighbours of a solved surrogate ----

# Share of the largest eigenvalue. With smaller ones an inverse keeps too few digits to dismiss a neighbour.
NEIGHBOUR_RANK_TOL = 1e-8
# Share of sum y^2. A neighbour is dismissed only if its bound is worse by more: rounding is far below this.
NEIGHBOUR_TOL = 1e-9
