from importlib.resources import files

import numpy as np
import pytest

from rectifit import certify, solve
from rectifit.datasets import load_drug_spending
from rectifit.tables import make_table, read_frame


def test_the_columns_are_what_their_description_says():
    X, y, names, target, description = load_drug_spending()
    columns = dict(zip(names, X.T, strict=True))
    assert target == "drug_spending"
    assert X.shape == (3307, 5)
    assert np.isfinite(X).all()
    assert y.min() == 0.0
    assert 0.39 < (y == 0.0).mean() < 0.41
    assert set(columns["female"]) == {0.0, 1.0}
    assert set(columns["coinsurance"]) == {0.0, 25.0, 50.0, 95.0, 100.0}
    assert columns["age"].min() >= 18.0
    assert 0.0 <= columns["health"].min() < columns["health"].max() <= 100.0
    assert "3,307" in description
    assert "40 %" in description


def test_the_file_reads_as_a_table_too():
    data = load_drug_spending()
    path = files("rectifit.datasets") / "data" / "drug_spending.csv"
    table = make_table(read_frame(str(path)), data.target)
    assert table.names == data.names
    np.testing.assert_array_equal(table.X, data.X)
    np.testing.assert_array_equal(table.y, data.y)


def test_a_node_fits_better_than_a_line_clipped_at_zero():
    X, y, *_ = load_drug_spending()
    A = np.column_stack([X, np.ones(len(y))])
    clipped = np.maximum(A @ np.linalg.lstsq(A, y)[0], 0.0)
    solution = solve(X, y)
    assert solution.objective < np.sum((y - clipped) ** 2)
    solution.verify()
    # Who pays more of the bill buys less.
    assert solution.beta[4] < 0.0


@pytest.mark.slow
def test_the_fit_can_be_proved():
    X, y, *_ = load_drug_spending()
    certificate = certify(X, y, time_limit=120)
    assert certificate.status == "optimal"
    assert certificate.box is None
