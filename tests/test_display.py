import io
import math

import numpy as np
import pytest
from rich.console import Console

from rectifit.display import Column, Rounded, Table
from rectifit.formatting import NOTHING, match_error, write_duration, write_p, write_share


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
    Console(file=out, width=60).print(table.to_grid(60, ["bold", "", ""]))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["a[b]", "50", "%", "inf", "1,000"] in lines
    assert ["c", "-", "nan", "7"] in lines


def show(grid, width):
    out = io.StringIO()
    Console(file=out, width=width).print(grid)
    return [line for line in out.getvalue().splitlines() if "─" not in line]


def test_tables_fit_narrow_terminals():
    columns = (Column("variable"), Column("error, unseen rows"), Column("z"), Column("p-value"))
    rows = (("height", "0.25", "1.5", "0.134"), ("region=north", "12.75", "-8.1", "< 0.001"))
    table = Table("key", "", columns, rows)
    optional = [["z"], ["p-value"]]
    for width in range(20, 70):
        lines = show(table.to_grid(width, optional=optional), width)
        assert all(len(line.rstrip()) <= width for line in lines)
        said = " ".join(" ".join(lines).split())
        # Names and numbers that are shown are whole, whatever is left out.
        assert "…" not in said
        for word in ("height", "0.25", "12.75", "unseen"):
            assert word in said
    shown = {
        width: " ".join(show(table.to_grid(width, optional=optional), width)) for width in (51, 39, 33, 24)
    }
    assert "error, unseen rows" in shown[51]
    assert "error, unseen rows" not in shown[39]
    assert ["z" in text.split() for text in shown.values()] == [True, True, False, False]
    assert ["p-value" in text for text in shown.values()] == [True, True, True, False]
    assert all("region=north" in text for text in shown.values())


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 ms"), (0.00994, "9.9 ms"), (0.0106, "11 ms"), (59.94, "59.9 s")]
)
def test_durations(seconds, text):
    assert write_duration(seconds) == text


@pytest.mark.parametrize(
    ("error", "values", "texts"),
    [
        # The row that a fixed number of decimals spoils.
        (0.00014, [-0.00005, 0.00014, -0.0003243], ["-0.000050", "0.000140", "-0.000324"]),
        (0.194937, [1.305283, 0.194937, 0.0], ["1.305", "0.195", "0.000"]),
        # Rounding up to the next power of ten leaves three digits, not four.
        (0.09996, [1.305283, 0.09996], ["1.305", "0.100"]),
        (23456.0, [1234567.8, 23456.0], ["1234568", "23456"]),
        (1.23e8, [-2.5e9, 1.23e8], ["-2.500e+09", "1.23e+08"]),
        (1.4e-5, [0.1234567, 1.4e-5, -3e-20], ["0.1234567", "1.40e-05", "-3e-20"]),
        (1e-16, [1.0, 123456.7891, 1e-16], ["1.0000000", "123456.79", "1.00e-16"]),
        # Nothing is written as minus zero.
        (1.0, [-0.0001], ["0.00"]),
        (math.nan, [1.0, 0.0, 0.00123456, math.nan, -math.inf], ["1", "0", "0.001235", NOTHING, "-inf"]),
        (0.0, [2.0], ["2"]),
    ],
)
def test_numbers_have_the_digits_that_their_standard_error_allows(error, values, texts):
    assert list(map(match_error(error), values)) == texts


@pytest.mark.parametrize("size", [1e-9, 1e-4, 1e-2, 1.0, 1e3, 1e6, 1e12])
def test_no_row_loses_digits_that_matter(size):
    """Whatever the unit, rounding moves an estimate by half a percent of its standard error at most."""
    for error in np.geomspace(0.001, 1.0, 13):
        write = match_error(size * error)
        for value in (size * error, size, -1.2345678 * size):
            assert abs(float(write(value)) - value) <= 0.00501 * size * error


def test_p_values():
    assert [write_p(p) for p in (0.0, 0.001, 1.0)] == ["< 0.001", "0.001", "1.000"]


def test_rounded_numbers_keep_their_value_for_programs():
    rows = (("x_1 <b>", Rounded(-1.23456e-5, "-1.23e-05")), ("a-1", Rounded(math.nan, "(-)")))
    table = Table("key", "A & B", (Column("name"), Column("1e5 $")), rows, "p < 5 %")
    assert table.texts() == [["x_1 <b>", "-1.23e-05"], ["a-1", "(-)"]]
    assert table.to_csv().splitlines()[1] == "x_1 <b>,-1.23456e-05"
    assert [key for _, key in (row[1] for row in table.sortable_rows())] == [-1.23456e-5, None]
    latex = table.to_latex()
    assert r"x\_1 \textless{}b\textgreater{} & $-$1.23$\times 10^{-5}$ \\" in latex
    assert r"name & 1e5 \$ \\" in latex
    assert r"p \textless{} 5 \%" in latex
    html = table.to_html()
    assert '<tr><th scope="row">x_1 &lt;b&gt;</th><td>-1.23e-05</td></tr>' in html
    assert "<caption>A &amp; B</caption>" in html
    assert "<p>p &lt; 5 %</p>" in html
