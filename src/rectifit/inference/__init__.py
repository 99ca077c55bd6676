"""Standard errors, intervals and marginal effects of a fit.

The model is the paper's, y = max(f, x'beta + b) + noise, with noise of mean zero added after the rectifier:
y may lie below the floor f, which is 0 by default. It is NOT a Tobit model, in which noise is added
before the rectifier; there least squares itself is biased, and so are these intervals.

What they rest on. Where u = x'beta + b is not exactly at the floor, the fitted value has the derivative (x,
1) in (beta, b) for active rows, u > f, and none for the others. The expected loss is smooth at the true
coefficients, although the loss of one sample has a kink: rows pass the kink with a residual whose mean is 0
there. So for many rows the coefficients are normal about the true ones, with the covariance of least
squares on the active rows A,

    (X_A' W X_A)^-1  [ sigma^2 X_A' W X_A   or   X_A' W diag(e^2) W X_A ]  (X_A' W X_A)^-1.

This needs

* the right model, E[y | x] = max(f, x'beta + b): otherwise the density of u at the floor enters as well,
  and only the bootstrap has that in it;
* the global minimum, or the right local one: see the certificate;
* few rows near the kink, against the precision of u there; the fit may lie exactly on the kink of at most
  as many rows as it has coefficients, which does not matter when there are many rows;
* independent rows. "nonrobust" also needs noise of equal variance on the ACTIVE rows; HC0 to HC3 do not.
  With "cluster" only groups of rows need be independent, and with "HAC" rows that are far apart in time.

The noise. sigma^2 = sum of w e^2 over the active rows / (their number - coefficients), although in the
paper's model the other rows have the same noise, y - f. Only the noise of the active rows moves the
coefficients. Rows at the floor are often quieter, exactly at it in the extreme (hours worked, rainfall): to
count them would make the intervals too narrow, and where the noise is the same on both sides little is
lost, as 1 / sqrt(2 df) is the relative error of sigma. Their own sigma is stated beside it: in the paper's
model both agree.

Weights are inverse variances up to a factor, as in weighted least squares; for standard errors, a row of
weight 2 is one observation and not two. With a ridge the bread is (X_A' W X_A + alpha D)^-1, the degrees of
freedom are the rows minus the trace of the hat matrix, and the intervals are about the mean of the penalised
estimate: its bias is not in them. An estimated floor is the mean of the rows at it and independent of the
coefficients, with their variance over their number. Intervals are normal ones, for many rows.

Constraints. A coefficient at a bound has no standard error of its own: its distribution is not normal, and
part of it may be the bound itself. The others have those of the fit in which it is fixed there; linear
constraints that hold with equality are equations. All of this takes what binds as known to bind. The
bootstrap does not, but it is not consistent either where a true coefficient is at its bound (Andrews,
Econometrica 68, 2000).
"""

from rectifit.inference.balance import BalancePoint
from rectifit.inference.covariance import Covariance, estimate_covariance
from rectifit.inference.effects import marginal_effects
from rectifit.inference.intervals import PredictionInterval, prediction_interval
from rectifit.inference.margins import PredictedMargins, predicted_margins
from rectifit.inference.named_matrix import NamedMatrix
from rectifit.inference.side_by_side import ComparedSummaries, compare_summaries
from rectifit.inference.summary import summarise
from rectifit.inference.tables import Estimates, MarginalEffects, Summary
from rectifit.inference.wald import WaldTest

__all__ = [
    "BalancePoint",
    "ComparedSummaries",
    "Covariance",
    "Estimates",
    "MarginalEffects",
    "NamedMatrix",
    "PredictedMargins",
    "PredictionInterval",
    "Summary",
    "WaldTest",
    "compare_summaries",
    "estimate_covariance",
    "marginal_effects",
    "predicted_margins",
    "prediction_interval",
    "summarise",
]
