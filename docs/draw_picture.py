"""The picture of the README and of the first page: python docs/draw_picture.py draws it again.

Adults in the RAND Health Insurance Experiment: spending on drugs against the fit, and how it depends on the
share of the bill that people pay themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rectifit import ReLURegressor, plot
from rectifit.datasets import load_drug_spending
from rectifit.plotting import make_figure, style

PICTURE = Path(__file__).parent / "_static" / "drug_spending.png"
# A few people spent up to ten times as much.
MAX_SPENDING = 160.0


def draw() -> Any:
    """A figure of two panels; call it in the style."""
    X, y, names, *_ = load_drug_spending()
    model = ReLURegressor().fit(X, y)
    figure, ((left, right),) = make_figure(1, 2, (9.0, 3.5))
    plot.fit(model, target="drug spending (dollars a year)", ax=left)
    left.set(
        ylim=(-3.0, MAX_SPENDING), title=f"3,307 adults; {100.0 * (y == 0.0).mean():.0f} % spent nothing"
    )
    left.legend(loc="upper left", frameon=True, framealpha=0.9, edgecolor="none")
    options = {"names": names, "target": "drug spending", "covariance": "HC1"}
    plot.effects(model, "coinsurance", ax=right, **options)
    right.set(
        xlabel="coinsurance: percent of the bill that people pay", title="What a higher coinsurance rate does"
    )
    return figure


if __name__ == "__main__":
    with style():
        draw().savefig(PICTURE, dpi=120)
