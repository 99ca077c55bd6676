"""Figures of a fit: each function draws into given axes, or into a new figure, and returns the axes.

All of them take a Solution or a fitted estimator. Where the numbers are known already, they may be given
instead: `coefficients` takes a Summary, `effects` takes marginal effects or predicted margins, and `proof`
takes a Certificate.
"""

from rectifit.plot.estimates import coefficients, effects
from rectifit.plot.rows import FittedRows, fit, residuals
from rectifit.plot.search import proof

__all__ = ["FittedRows", "coefficients", "effects", "fit", "proof", "residuals"]
