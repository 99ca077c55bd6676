"""What people's files look like: separators, decimal marks, encodings, gaps, mistakes, Excel."""

import csv
import io
import sys

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rectifit.cli.program import program
from rectifit.tables import TextFormat, make_table, read_frame, read_table
from rectifit.tables.source import compress

ROWS = pl.DataFrame(
    {"y": [0.0, 1.5, 2.25, 0.0, 3.0, 0.5], "café": [1, 2, 3, 4, 5, 6], "z": [0.5, -1.25, 7.0, 1e-3, 2.0, 1.0]}
)


def run(*arguments, **extra):
    return CliRunner().invoke(program, [str(argument) for argument in arguments], **extra)


def write_text(path, separator=",", decimal=".", encoding="utf-8", compression=""):
    text = ROWS.write_csv().replace(",", separator).replace(".", decimal)
    path.write_bytes(compress(text.encode(encoding), compression))
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["data.csv", "data.txt", "data.CSV"])
def test_separators_are_found(tmp_path, separator, name):
    assert read_frame(write_text(tmp_path / name, separator)).equals(ROWS)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas_are_found(tmp_path, separator):
    assert read_frame(write_text(tmp_path / "data.csv", separator, ",")).equals(ROWS)


def test_spaces_are_a_separator_on_request(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(' y    a  "b c"\n 1    2   "p  q"\n0   3  r\n 2.5   1   x  \n')
    refused = run("fit", path, "--target", "y")
    assert refused.exit_code == 2
    assert refused.stderr.endswith("seems to be separated by spaces; confirm with --separator space\n")
    frame = read_table(path, TextFormat(separator=" ")).frame
    assert frame.columns == ["y", "a", "b c"]
    assert frame.rows() == [(1.0, 2, "p  q"), (0.0, 3, "r"), (2.5, 1, "x")]
    assert run("fit", path, "--target", "y", "--separator", "space").exit_code == 0
    # One column whose name has several words.
    path.write_text("total sales\n1\n2\n")
    assert read_frame(path).columns == ["total sales"]


def test_options_say_what_a_file_does_not(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('y~a\n"1,500"~2\n0~3\n')
    frame = read_table(path, TextFormat(separator="~", decimal=",")).frame
    assert frame.rows() == [(1.5, 2), (0.0, 3)]
    # Between commas, decimal commas are quoted.
    path.write_text('y,a\n"1,5",2\n"0,25",3\n')
    assert read_table(path, TextFormat(decimal=",")).frame.rows() == [(1.5, 2), (0.25, 3)]
    for option in ("--separator", "--decimal"):
        refused = run("fit", write_text(path), "--target", "y", option, "ab")
        assert refused.exit_code == 2
        assert f"Invalid value for '{option}': 'ab' is not" in refused.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_that_are_certain_are_found(tmp_path, encoding):
    assert read_frame(write_text(tmp_path / "data.csv", encoding=encoding)).equals(ROWS)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-16-be"])
def test_other_encodings_are_named(tmp_path, encoding):
    path = write_text(tmp_path / "data.csv", encoding=encoding)
    with pytest.raises(ValueError, match=f"--encoding {'utf-16' if 'utf' in encoding else 'cp1252'}"):
        read_frame(path)
    assert read_table(path, TextFormat(encoding=encoding)).frame.equals(ROWS)
    with pytest.raises(ValueError, match=r"is not ASCII text .see line 1.; choose another --encoding"):
        read_table(write_text(path), TextFormat(encoding="ascii"))
    for unknown in ("klingon", "hex"):
        with pytest.raises(ValueError, match=f"--encoding is '{unknown}', which is not known"):
            read_table(path, TextFormat(encoding=unknown))


def test_options_for_text_are_refused_for_other_files(tmp_path):
    ROWS.write_parquet(tmp_path / "data.parquet")
    ROWS.write_ndjson(tmp_path / "data.ndjson")
    for name, form in [
        ("data.parquet", TextFormat(encoding="utf-8")),
        ("data.parquet", TextFormat(separator=";")),
        ("data.ndjson", TextFormat(decimal=",")),
    ]:
        with pytest.raises(
            ValueError, match=r"is for text files such as CSV; the file '.*' is (Parquet|NDJSON)"
        ):
            read_table(tmp_path / name, form)
    assert read_table(tmp_path / "data.ndjson", TextFormat(encoding="utf-8")).frame.equals(ROWS)
    two = run("fit", *[tmp_path / "data.parquet"] * 2, "--target", "y", "--separator", ";")
    assert two.exit_code == 2
    assert "--separator is for text files" in two.stderr


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_compressed_standard_input(monkeypatch, compression):
    data = compress(ROWS.write_csv(separator=";").encode(), compression)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read_frame("-").equals(ROWS)


def test_lines_may_end_in_any_way(tmp_path):
    path = tmp_path / "data.csv"
    for end in ("\r\n", "\r", "\n"):
        path.write_bytes(ROWS.write_csv().replace("\n", end).encode())
        assert read_frame(path).equals(ROWS)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "NA", "3"], [1, None, 3]),
        (["1.5", "n/a", "null"], [1.5, None, None]),
        (["1", ".", "-"], [1, None, None]),
        (["?", "missing", " 2 "], [None, None, 2]),
        (["#N/A", "None", "+3"], [None, None, 3]),
        (["NaN", "nan", "1e3"], [None, None, 1000.0]),
        (["TRUE", "NA", "False"], [True, None, False]),
        (["red", "NA", "-"], ["red", None, "-"]),
        (["red", "missing", ""], ["red", "missing", None]),
    ],
)
def test_what_counts_as_missing(tmp_path, cells, values):
    path = tmp_path / "data.csv"
    path.write_text("y,a\n" + "".join(f"1,{cell}\n" for cell in cells))
    assert read_frame(path)["a"].to_list() == values


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("oops", "correct it, or leave it empty if the value is missing;"),
        ("0.13%", "write percentages without the percent sign"),
        ('"1,304.00"', "remove the thousands separators;"),
        ('"1,304"', "remove the thousands separators, or read decimal commas with --decimal ','"),
        ('"1.304,00"', "remove the thousands separators, and read decimal commas with --decimal ','"),
        ('"1,5"', "read decimal commas with --decimal ','"),
        ("$12.50", "remove the currency signs"),
        ('"' + "x" * 99 + '"', f"'{'x' * 40}...' in line 5; correct it"),
    ],
)
def test_a_mistake_among_numbers_is_an_error_that_says_where(tmp_path, cell, advice):
    path = tmp_path / "data.csv"
    rows = ROWS.write_csv().splitlines()
    # A blank line and an entry of two lines come before it.
    text = "\n".join([rows[0] + ",sky", "", rows[1] + ',"light\nblue"', *(row + ",grey" for row in rows[2:])])
    path.write_text(text.replace("1.5,2,-1.25", f"1.5,2,{cell}"), encoding="utf-8")
    expected = cell.strip('"')[:40]
    for arguments in (["fit", path], ["certify", path], ["compare", path], ["fit", path, "--one-hot", "all"]):
        result = run(*arguments, "--target", "y")
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert f"column 'z' has an entry that is not a number, '{expected}" in result.stderr
        assert "in line 5; " in result.stderr
        assert advice in result.stderr
        assert "or leave the column out with --features, or encode it with --one-hot" in result.stderr
    assert run("fit", path, "--target", "y", "--features", "café").exit_code == 0
    assert run("fit", path, "--target", "y", "--one-hot", "z").exit_code == 0
    assert "'z' has an entry" in run("fit", path, "--target", "z").stderr
    assert "'z' has an entry" in run("fit", path, "--target", "y", "--weights", "z").stderr
    assert "'z' has an entry" in run("fit", path, "--target", "y", "--features", "z").stderr


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e400"])
def test_infinite_values_are_named_by_line(tmp_path, cell):
    path = tmp_path / "data.csv"
    path.write_text(f"y,a,b\n1,2,x\n0,3,x\n\n4,{cell},x\n2,{cell},x\n1,1,x\n")
    result = run("fit", path, "--target", "y")
    assert result.exit_code == 2
    assert "column 'a' has an infinite value in line 5; all of its entries must be finite" in result.stderr
    assert run("fit", path, "--target", "y", "--features", "b", "--one-hot", "b").exit_code == 2
    path.write_text("y,a\n1,2\n0,3\n4,5\n2,1e300\n")
    assert not read_table(path).faults


def test_mistakes_are_counted(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("y,a\n" + "1,2\n" * 8 + "1,unknown\n" * 3)
    with pytest.raises(ValueError, match="3 entries that are not numbers; the first is 'unknown' in line 10"):
        make_table(read_frame(path), "y", faults=read_table(path).faults)


def test_text_is_no_mistake(tmp_path):
    path = tmp_path / "data.csv"
    text = [
        "A/5 21171",
        "PC 17599",
        "113803",
        "373450",
        "330877",
        "17463",
        "349909",
        "STON/O2",
        "W./C. 6",
        "S 7",
    ]
    dates = [f"2024-01-{day:02}" for day in range(1, 11)]
    rows = zip(range(10), text, dates, ["north", "south"] * 5, strict=True)
    path.write_text("y,ticket,date,place\n" + "".join(f"{y},{a},{b},{c}\n" for y, a, b, c in rows))
    table = read_table(path)
    assert not table.faults
    result = run("fit", path, "--target", "y", "--one-hot", "place")
    assert result.exit_code == 0
    for name in ("ticket", "date"):
        assert f"column '{name}' is left out because of entries such as" in result.stderr


def test_mistakes_in_a_file_to_predict(tmp_path):
    model = tmp_path / "m.json"
    run("fit", write_text(tmp_path / "data.csv"), "--target", "y", "--save", model)
    path = tmp_path / "new.csv"
    path.write_text("café,z,note\n1,2,a\n3,4,b\n5,1.2.3,7\n", encoding="utf-8")
    result = run("predict", model, path)
    assert result.exit_code == 2
    assert "column 'z' has an entry that is not a number, '1.2.3' in line 4" in result.stderr
    assert "--one-hot" not in result.stderr
    path.write_text("café;z\n1;2,5\n3;4\n", encoding="utf-8")
    assert run("predict", model, path).exit_code == 0
    path.write_text("café;z\n1;2,500\n3;4\n", encoding="utf-8")
    assert run("predict", model, path, "--decimal", ",").exit_code == 0


def test_mistakes_in_ndjson(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"y": 1, "a": 2}\n\n{"y": 1, "a": 3}\n{"y": 0, "a": "0.1%"}\n')
    assert (
        read_table(path)
        .faults["a"]
        .startswith("column 'a' has an entry that is not a number, '0.1%' in line 4; c")
    )


@pytest.mark.parametrize("index", [range(6), range(1, 7), [5, 3, 8, 1, 0, 9]])
@pytest.mark.parametrize("name", ["", '""', "Unnamed: 0", " "])
def test_an_index_is_left_out(tmp_path, index, name):
    path = tmp_path / "data.csv"
    header, *rows = ROWS.write_csv().splitlines()
    lines = [f"{name},{header}", *(f"{i},{row}" for i, row in zip(index, rows, strict=True))]
    path.write_text("\n".join(lines), encoding="utf-8")
    table = make_table(read_frame(path), "y")
    assert table.names == ("café", "z")
    assert table.notes == ("column 'Unnamed: 0' has no name and numbers the rows; it is left out",)
    assert make_table(read_frame(path), "y", features=["Unnamed: 0"]).X[:, 0].tolist() == list(index)


def test_columns_without_a_name(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("y,,a,,\n1,2.5,3,,\n0,2.5,4,,\n,,,,\n")
    assert read_frame(path).columns == ["y", "Unnamed: 1", "a"]
    table = make_table(read_frame(path), "y")
    assert table.names == ("a",)
    assert table.notes == ("column 'Unnamed: 1' has no name and is left out; name it in the file to use it",)


def test_the_index_of_pandas_in_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"y": [0.0, 1.0, 2.0], "a": [1.0, 3.0, 2.0]}, index=[4, 7, 9])
    frame.to_parquet(tmp_path / "data.parquet")
    assert make_table(read_frame(tmp_path / "data.parquet"), "y").names == ("a",)


def test_names_with_commas_are_quoted_in_options(tmp_path):
    path = tmp_path / "data.csv"
    names = ["y", "a,b", 'say "x"', "c"]
    rng = np.random.default_rng(0)
    pl.DataFrame(rng.normal(size=(20, 4)), schema=names).write_csv(path)
    model = tmp_path / "m.json"
    options = ("--features", '"a,b", c,"say ""x"""', "--positive", '"a,b"', "--bounds", '"a,b"=:2,c=-1:1')
    result = run("fit", path, "--target", "y", *options, "--save", model)
    assert result.exit_code == 0, result.stderr
    record = run("fit", path, "--target", "y", *options, "--json").stdout
    assert '"a,b": [\n      0.0,\n      2.0\n    ]' in record
    assert run("predict", model, path).exit_code == 0
    assert (
        "a quotation mark is not closed in" in run("fit", path, "--target", "y", "--features", '"a,b').stderr
    )
    refused = run("fit", path, "--target", "y", "--features", "a,b,c").stderr
    assert (
        "there is no column 'a'; in a list, a name with a comma needs quotation marks: '\"a,b\"'" in refused
    )


def test_zeros_that_are_dropped_are_named(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(
        "hours,age,wage\n" + "".join(f"0,{age},\n" for age in range(20, 25)) + "5,30,2.5\n7,31,3\n9,28,1\n"
    )
    result = run("fit", path, "--target", "hours", "--missing", "drop")
    assert result.exit_code == 0, result.stderr
    assert "note: 5 of 8 rows are dropped, because values are missing in 'wage' (5)\n" in result.stderr
    warning = "warning: this drops all 5 rows in which 'hours' is 0, because 'wage' is missing there; other f"
    assert result.stderr.count(warning) == 1
    refused = run("fit", path, "--target", "hours")
    assert "--missing drop, which would drop all 5 rows in which 'hours' is 0" in refused.stderr
    assert run("fit", path, "--target", "hours", "--features", "age").exit_code == 0
    path.write_text("hours,age\n0,\n5,30\n7,31\n")
    assert (
        "drops the only row in which 'hours' is 0"
        in run("fit", path, "--target", "hours", "--missing", "drop").stderr
    )
    path.write_text("worked,age\nfalse,\ntrue,30\nfalse,31\n")
    found = run("fit", path, "--target", "worked", "--missing", "drop").stderr
    assert "1 of 3 rows is dropped" in found
    assert "this includes 1 of the 2 rows in which 'worked' is 0" in found


def write_workbook(path, rows):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("first")
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                sheet.write(i, j, cell)
        book.add_worksheet("second").write(0, 0, "other")


def test_excel(tmp_path):
    path = tmp_path / "data.xlsx"
    values = [1 / 3, 1e-20, 1.5e300, -0.1]
    rows = zip(values, range(4), [True, False, True, False], ["red", "", "blue", "NA"], strict=True)
    write_workbook(path, [[], ["y", "", "wet", "sky"], *rows, ["", "", "", ""], ["NA", 4, "", "red"]])
    frame = read_frame(path)
    assert frame["y"].to_list() == [*values, None]
    assert frame.rows()[1] == (1e-20, 1, False, None)
    assert frame.columns == ["y", "Unnamed: 1", "wet", "sky"]
    table = make_table(frame, "y", missing="drop")
    assert table.names == ("wet",)


def test_mistakes_in_excel(tmp_path):
    path = tmp_path / "data.xlsx"
    write_workbook(path, [[], ["y", "a"], [1, 2], [], [2, 3], [3, "1,5"]])
    (fault,) = read_table(path).faults.values()
    assert "'1,5' in row 6; correct it" in fault
    write_workbook(path, [["y", "y"], [1, 2]])
    with pytest.raises(ValueError, match="two columns called 'y'"):
        read_frame(path)
    write_workbook(path, [["y", "a"]])
    with pytest.raises(ValueError, match="has no rows"):
        read_frame(path)


def test_excel_without_its_library(tmp_path, monkeypatch):
    path = tmp_path / "data.xlsx"
    write_workbook(path, [["y"], [1]])
    monkeypatch.setattr("rectifit.tables.excel.find_spec", lambda _: None)
    result = run("fit", path, "--target", "y")
    assert result.exit_code == 2
    assert "Excel files need fastexcel; install it with: pip install 'rectifit[excel]'" in result.stderr


def test_zstd_without_its_library(tmp_path, monkeypatch):
    path = write_text(tmp_path / "data.csv.zst", compression=".zst")
    for module in ("backports.zstd", "compression.zstd", "backports", "compression"):
        monkeypatch.setitem(sys.modules, module, None)
    result = run("fit", path, "--target", "y")
    assert result.exit_code == 2
    assert "install it with: pip install 'rectifit[cli]'" in result.stderr


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = st.text(alphabet='ab1.5,;"\n\r\t |-éNA\ufeff\u2028\x0b', max_size=60)


def read_or_refuse(path, data, form):
    path.write_bytes(data)
    try:
        assert read_table(path, form).frame.height > 0
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017


@FUZZ
@given(st.binary(max_size=200), st.sampled_from(["csv", "tsv", "txt", "jsonl", "parquet", "xlsx", "csv.gz"]))
def test_any_bytes_are_a_table_or_one_sentence(tmp_path, data, extension):
    read_or_refuse(tmp_path / f"data.{extension}", data, TextFormat())


@FUZZ
@given(TEXT, st.sampled_from([None, ",", ";", " "]), st.sampled_from([None, ".", ","]))
def test_any_text_is_a_table_or_one_sentence(tmp_path, text, separator, decimal):
    read_or_refuse(tmp_path / "data.csv", text.encode(), TextFormat(separator, decimal))
    read_or_refuse(tmp_path / "data.ndjson", text.encode(), TextFormat())


@FUZZ
@given(st.data(), st.sampled_from(",;\t|"), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_entries_are_what_was_written(tmp_path, data, separator, quoting):
    cells = st.text(alphabet='ab1 ,;"\n|é', max_size=5)
    rows = data.draw(st.lists(st.tuples(cells, cells), min_size=1, max_size=5))
    path = tmp_path / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, quoting=quoting).writerows([["x", "x,y"], *rows, ["b", "b"]])
    read = read_table(path, TextFormat(separator, ".")).frame
    kept = [row for row in [*rows, ("b", "b")] if any(row)]
    assert read.columns == ["x", "x,y"]
    assert read.rows() == [tuple(cell if cell.strip() else None for cell in row) for row in kept]
