import io
import math

import pytest
from rich.console import Console

from rectifit.display import Column, Table
from rectifit.formatting import NOTHING, write_duration, write_share


@pytest.fixture
def table():
    columns = (Column("name"), Column("gap", write_share, NOTHING), Column("z", ".1f"), Column("n", ","))
    rows = (("a[b]", 0.5, math.inf, 1000), ("c", None, math.nan, 7), ("all", 0.25, 1.0, 1007))
    return Table("key", "", columns, rows, n_foot=1)


def test_numbers_are_written_by_functions_or_specifications(table):
    assert table.texts() == [
        ["a[b]", "50 %", "inf", "1,000"],
        ["c", "-", "nan", "7"],
        ["all", "25 %", "1.0", "1,007"],
    ]
    assert table.widths() == [4, 4, 3, 5]


def test_pages_sort_by_finite_numbers_only(table):
    *body, foot = table.sortable_rows()
    assert body == [
        [("a[b]", "a[b]"), ("50 %", 0.5), ("inf", None), ("1,000", 1000)],
        [("c", "c"), ("-", None), ("nan", None), ("7", 7)],
    ]
    assert [text for text, _ in foot] == ["all", "25 %", "1.0", "1,007"]


def test_columns_can_be_left_out(table):
    rest = table.without(["z", "gap"])
    assert rest.headings == ["name", "n"]
    assert rest.rows == (("a[b]", 1000), ("c", 7), ("all", 1007))


def test_a_terminal_shows_names_as_they_are(table):
    out = io.StringIO()
    Console(file=out, width=60).print(table.to_grid(styles=["bold", "", ""]))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["a[b]", "50", "%", "inf", "1,000"] in lines
    assert ["c", "-", "nan", "7"] in lines


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 ms"), (0.00994, "9.9 ms"), (0.0106, "11 ms"), (59.94, "59.9 s")]
)
def test_durations(seconds, text):
    assert write_duration(seconds) == text
