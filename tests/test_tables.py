import gzip
import io
import sys

import numpy as np
import polars as pl
import pytest

from rectifit.tables import Encoding, make_table, read_frame, write_frame
from rectifit.tables.source import compress

FRAME = pl.DataFrame(
    {
        "rain": [0.0, 2.5, 1.0, 0.0],
        "wind": [3, 7, 5, 4],
        "wet": [False, True, True, False],
        "sky": ["blue", "grey", "grey", "white"],
        "zone": [10.0, 9.0, 10.0, 2.5],
        "share": [1.0, 0.0, 2.0, 1.0],
    }
)


@pytest.mark.parametrize(
    "extension",
    ["csv", "tsv", "txt", "parquet", "ndjson", "jsonl", "csv.gz", "tsv.zst", "ndjson.gz", "txt.zst"],
)
def test_what_is_written_is_read(tmp_path, extension):
    path = tmp_path / f"data [1].{extension}"
    write_frame(FRAME, path)
    assert read_frame(path).equals(FRAME)


def test_csv_on_standard_streams(monkeypatch, capsys):
    write_frame(FRAME, "-")
    text = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert read_frame("-").equals(FRAME)


def test_numbers_late_in_a_file_decide_its_type(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("y\n" + "1\n" * 5000 + "0.5\n")
    assert read_frame(path)["y"][-1] == 0.5


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.csv", None, "there is no file"),
        (
            "data.xls",
            b"",
            "extension '.xls'; allowed are .csv, .tsv, .txt, .ndjson, .jsonl, .parquet, .xlsx,",
        ),
        ("data", b"", "has no extension; allowed are .csv"),
        ("data.parquet.gz", b"", "extension '.parquet.gz'; allowed are .csv"),
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"a,b\n", "has no rows"),
        ("blank.csv", b"\n \n", "is empty"),
        ("empty.ndjson", b"\n", "is empty"),
        ("empty.xlsx", b"", "has no rows"),
        (
            "long.csv",
            b"a,b\n1,2\n\n1,2,3\n",
            "has 3 entries in line 4, but its header has 2 columns; an entry with",
        ),
        (
            "r.csv",
            b'"a","b"\n"1",1,2\n"2",3,4\n',
            "has 3 entries in line 2, .* needs quotation marks, or a name is missing in the header$",
        ),
        ("short.csv", b'a,b\n"1\n1",2\n7\n', "has 1 entry in line 4, but its header has 2 columns$"),
        ("quote.csv", b'a,b\n1,2\n"x,2\n1,2\n', "has an entry in line 3 whose quotation mark is not closed"),
        (
            "quotes.csv",
            b'a,b\n1,2\n"x,2\n1,"2"\n',
            "has an entry in line 3 whose quotation mark is not closed",
        ),
        ("endless.csv", b"a,b\n" + b"1" * 200_000 + b",1\n", "more than 131,072 characters in line 2"),
        ("twice.csv", b"a,b, a\n1,2,3\n", "has two columns called 'a'; rename one of them"),
        (
            "bars.csv",
            b"a|b,c\n1|2,3\n",
            "may be separated by commas or vertical bars; choose with --separator",
        ),
        (
            "latin.csv",
            "a\ncafé\n".encode("latin-1"),
            "is not UTF-8 text .see line 2.; name its encoding, such as",
        ),
        (
            "wide.csv",
            "a,b\n1,2\n".encode("utf-16-le"),
            "NUL characters; it is not text, or needs another encod",
        ),
        ("parquet.csv", b"PAR1\0\0", "is not text but a Parquet file"),
        ("excel.csv", b"PK\3\4\0", "is not text but an Excel file"),
        (
            "damaged.csv.gz",
            gzip.compress(b"a,b\n1,2\n")[:-9],
            "cannot be decompressed; it is damaged or incompl",
        ),
        ("damaged.csv.zst", compress(b"a,b\n1,2\n", ".zst")[:-3], "cannot be decompressed; it is damaged"),
        ("bad.parquet", b"not parquet at all", "not a valid Parquet table"),
        ("bad.xlsx", b"PK\3\4 not Excel at all", "not a valid Excel file"),
        ("bad.ndjson", b'{"a": 1}\n\n{', "not valid NDJSON: line 3 is not a JSON object"),
        ("number.ndjson", b'{"a": 1}\n3\n', "not valid NDJSON: line 2 is not a JSON object"),
        ("list.jsonl", b"[1, 2]\n", "not valid NDJSON: line 1 is not a JSON object"),
        ("deep.ndjson", b'{"a": ' * 100_000, "not valid NDJSON: line 1 is not a JSON object"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words) as raised:
        read_frame(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_a_folder_is_no_table(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="cannot be read"):
        read_frame(tmp_path / "folder.csv")


def test_default_features_are_all_other_numbers():
    table = make_table(FRAME, "rain", weights="share")
    assert table.names == ("wind", "wet", "zone")
    np.testing.assert_array_equal(table.X, np.column_stack([FRAME["wind"], FRAME["wet"], FRAME["zone"]]))
    np.testing.assert_array_equal(table.y, FRAME["rain"])
    np.testing.assert_array_equal(table.weights, FRAME["share"])
    (note,) = table.notes
    assert "'sky'" in note
    assert "'blue'" in note


def test_chosen_features_keep_their_order():
    table = make_table(FRAME, "rain", features=["zone", "wind"])
    assert table.names == ("zone", "wind")
    assert table.X[0].tolist() == [10.0, 3.0]


def test_one_indicator_per_level_but_the_first():
    table = make_table(FRAME, "rain", features=["wind"], one_hot=["sky", "zone", "wet"])
    assert table.names == ("wind", "sky=grey", "sky=white", "zone=9", "zone=10", "wet=true")
    assert table.X[:, 1:].tolist() == [
        [0.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 1.0, 0.0, 1.0],
        [1.0, 0.0, 0.0, 1.0, 1.0],
        [0.0, 1.0, 0.0, 0.0, 0.0],
    ]
    assert make_table(FRAME, "rain", one_hot=["all"]).names == (
        "wind",
        "wet",
        "sky=grey",
        "sky=white",
        "zone",
        "share",
    )


def test_an_encoding_means_the_same_in_other_files():
    encoding = make_table(FRAME, "rain", one_hot=["sky", "zone"]).encoding
    rows = FRAME.head(2).with_columns(pl.col("zone").cast(pl.Int64))
    np.testing.assert_array_equal(encoding.encode(rows), encoding.encode(FRAME)[:2])
    with pytest.raises(ValueError, match="level 'black'; known levels are 'blue', 'grey', 'white'"):
        encoding.encode(FRAME.with_columns(sky=pl.lit("black")))


def test_missing_values_are_refused_with_counts_or_dropped():
    gaps = FRAME.with_columns(
        wind=pl.Series([None, 7, None, 4]), zone=pl.Series([np.nan, 1.0, 2.0, 3.0]), sky=pl.lit(None)
    )
    with pytest.raises(ValueError, match=r"missing in 'wind' \(2\), 'zone' \(1\)"):
        make_table(gaps, "rain")
    table = make_table(gaps, "rain", missing="drop")
    assert table.X.shape == (2, 4)
    assert table.notes == (
        "column 'sky' is empty and left out",
        "2 of 4 rows are dropped, because values are missing in 'wind' (2), 'zone' (1); "
        "this includes 1 of the 2 rows in which 'rain' is 0",
    )
    with pytest.raises(ValueError, match="all 4 rows have missing values"):
        make_table(gaps, "rain", features=["sky"], missing="drop")


def test_text_that_means_missing(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("y,a\n1,NA\n2,\n0,3\n")
    assert make_table(read_frame(path), "y", missing="drop").X.tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"target": "rian"}, "no column 'rian'; did you mean 'rain'"),
        ({"target": "q"}, "no column 'q'; columns are 'rain', 'wind'"),
        ({"target": "sky"}, "column 'sky' has entries such as 'blue'; it must be numeric$"),
        ({"features": ["sky"]}, "'blue'; it must be numeric, or be encoded with --one-hot"),
        ({"features": ["rain"]}, "'rain' is the target"),
        ({"one_hot": ["rain"]}, "'rain' is the target"),
        ({"weights": "rain"}, "'rain' is both target and weights"),
        ({"weights": "w"}, "no column 'w'"),
        ({"weights": "minus"}, "column 'minus' has the negative number -1"),
        ({"weights": "zeros"}, "column 'zeros' has only zeros"),
        ({"features": ["endless"]}, "column 'endless' has an infinite value"),
        ({"features": [], "one_hot": ["zeros"]}, "no features are left"),
        ({"features": ["sky=grey"], "one_hot": ["sky"]}, "two features are called 'sky=grey'"),
    ],
)
def test_columns_that_cannot_be_used(arguments, words):
    frame = FRAME.with_columns(
        minus=-pl.lit(1.0), zeros=pl.lit(0), endless=pl.lit(np.inf), **{"sky=grey": pl.lit(1.0)}
    )
    with pytest.raises(ValueError, match=words):
        make_table(frame, **{"target": "rain"} | arguments)


def test_the_entry_that_is_no_number_is_named():
    frame = pl.DataFrame({"y": ["1.5", "2", "oops"], "a": [1, 2, 3]})
    with pytest.raises(ValueError, match="entries such as 'oops'"):
        make_table(frame, "y")


def test_identifiers_are_no_categories():
    frame = pl.DataFrame({"y": np.arange(1200.0), "id": [f"p{i}" for i in range(1200)]})
    with pytest.raises(ValueError, match="column 'id' has 1,200 levels"):
        make_table(frame, "y", one_hot=["id"])


def test_a_single_level_adds_nothing():
    frame = FRAME.with_columns(sky=pl.lit("blue"))
    table = make_table(frame, "rain", features=["wind"], one_hot=["sky"])
    assert table.names == ("wind",)
    assert "'blue'" in table.notes[0]
    assert Encoding(("sky",), {"sky": ("blue",)}).encode(frame).shape == (4, 0)
