"""Formulas such as "hours ~ educ + C(region)": columns of a table as columns of a regression.

formulaic parses formulas and encodes rows. Only a safe subset of its expressions is allowed, the same for
formulas that are typed and for those of model files, which people exchange.
"""

from rectifit.formulas.encoding import FormulaEncoding, Level
from rectifit.formulas.reading import Formula, read_formula

__all__ = ["Formula", "FormulaEncoding", "Level", "read_formula"]
