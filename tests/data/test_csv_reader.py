"""The reader of CSV and TSV."""

import gzip
import io
import sys
import time

import numpy as np
import pandas as pd
import pytest

import podium
from podium import DataError, FileFormatError, PodiumWarning
from podium.data.io import text_blocks

TEXT = 'qid,label,f1,document_id,f2\n1,2,0.5,a,\n1,0,-1e3,"b, ""c""",7\n\n2,1,nan,é, 8 \n'


def read(text, kind="csv", **options):
    return podium.read(io.BytesIO(text.encode()), kind, **options)


def test_a_small_file_is_read():
    data = read(TEXT)
    assert data.feature_names == ("f1", "f2")
    assert np.array_equal(data.features, np.array([[0.5, np.nan], [-1000, 7], [np.nan, 8]], np.float32), equal_nan=True)
    assert data.qid.tolist() == [1, 1, 2]
    assert data.relevance.tolist() == [2, 0, 1]
    assert data.document_ids.tolist() == ["a", 'b, "c"', "é"]


def test_columns_may_be_named(tmp_path):
    path = tmp_path / "data.tsv.gz"
    header = "session\tgrade\tclicked\tkind\tposition\tw\tx\r\n"
    path.write_bytes(gzip.compress((header + "s 1\t-1\t1\tWEB\t1\t2\t0.5\r\ns 1\t3\t0\tAD\t2\t1\t1.5\r\n").encode()))
    data = podium.read(
        path, qid="session", relevance="grade", labels={"clicks": "clicked"}, document_weights="w",
        feature_names=["x"], unlabelled=-1,
    )  # fmt: skip
    assert data.qid.tolist() == ["s 1", "s 1"]
    assert np.isnan(data.relevance[0])
    assert data.labels["clicks"].tolist() == [1, 0]
    assert data.document_weights.tolist() == [2, 1]
    assert data.positions.tolist() == [1, 2]
    assert data.features.tolist() == [[0.5], [1.5]]


def test_several_files_are_read_as_one_if_their_headers_agree(tmp_path):
    for name, header in {"a": "qid,f", "b": "qid,f", "c": "qid,g"}.items():
        (tmp_path / f"{name}.csv").write_text(f"{header}\n{ord(name)},1\n")
    assert podium.read([tmp_path / "a.csv", tmp_path / "b.csv"]).qid.tolist() == [97, 98]
    with pytest.raises(FileFormatError, match=r"c\.csv, line 1: must have the same header as .*a\.csv"):
        podium.read([tmp_path / "a.csv", tmp_path / "c.csv"])


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("qid,f\n1,2\n1,2,3\n", 3, 4, "expected 2 fields as in the header, but this line has 3"),
        ("qid,f\n1,2\n1\n", 3, 2, "expected 2 fields as in the header, but this line has 1"),
        ("qid,f\n1,abc\n", 2, 3, "found 'abc' in 'f'; name categorical columns in categorical"),
        ("qid,f\n1,1 2\n", 2, 3, "expected a number, but found '1 2'"),
        ("qid,f\n,1\n", 2, 1, "query id is empty"),
        ('qid,f\n1,"1\n2,1\n', 2, 3, "not closed on the same line"),
        ('qid,f\n1,"1"x\n', 2, 6, "after the closing quote"),
        ("qid,f\n1,1\x00\n", 2, 4, "NUL byte"),
        ("qid,f\n1,1\r2,1\n", 2, 4, "carriage return"),
        ("qid,f\x00\n1,1\n", 1, 6, "NUL byte"),
        ("qid,f\rg\n1,1\n", 1, 6, "carriage return"),
        ('qid,"f\n1,1\n', 1, 5, "not closed on the same line"),
        ('qid,"f"g\n1,1\n', 1, 8, "after the closing quote"),
        ('qid,document_id\n1,"a\n2,b"\n', 2, 3, "not closed on the same line"),
        ('qid,document_id\n1,"a"b\n', 2, 6, "after the closing quote, but found 'b'"),
        ("qid,f\n1,1_0\n", 2, 3, "expected a number, but found '1_0'"),
        ('qid,document_id\n1,"a\x00b"\n', 2, 5, "NUL byte"),
        ('qid,f\n"",1\n', 2, 1, "query id is empty"),
        (",qid,f\n0,1,1\n", 1, None, "column 1 has no name"),
        ("qid,label\n1,1\n1,inf\n", 3, 3, "must be finite, but found 'inf'"),
        ("qid,position\n1,-1e39\n", 2, 3, "must be finite, but found '-1e39'"),
        ("f,g\n1,1\n", 1, None, "there is no column 'qid': name the column of query ids with qid=…, one of 'f', 'g'"),
        ("qid,f,f\n1,1,2\n", 1, None, "two columns are named 'f'"),
        ("1,2\n1,2\n", 1, None, "expected a header line"),
        (",\n1,2\n", 1, None, "expected a header line"),
        ("qid,f\n", None, None, "has no documents"),
        ("", None, None, "is empty"),
    ],
)
def test_invalid_text_is_refused_with_its_place(text, line, column, words):
    with pytest.raises(FileFormatError, match=words) as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_named_columns_must_exist_and_have_one_role():
    with pytest.raises(FileFormatError, match="relevance: there is no column 'nope'"):
        read(TEXT, relevance="nope")
    with pytest.raises(FileFormatError, match="'f1' has two roles"):
        read(TEXT, relevance="f1", feature_names=["f1"])
    with pytest.raises(DataError, match="must be finite"):
        read("qid,label\n1,inf\n")


def test_a_query_that_returns_is_reported():
    with pytest.warns(PodiumWarning, match="line 4: query '1' returns"):
        read("qid,f\n1,1\n2,1\n1,1\n")


def test_columns_may_be_named_by_numbers_as_pandas_writes_them():
    assert read("qid,0,1\n1,2,3\n").feature_names == ("0", "1")


def test_neither_blocks_nor_threads_change_what_is_read(monkeypatch):
    text = "qid,document_id,label,f\n" + "".join(f"{k // 5},d{k},{k % 3},{k / 7!r}\n" for k in range(300))
    whole = read(text)
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 64)
    pieces = read(text, n_threads=3)
    assert np.array_equal(pieces.features, whole.features)
    assert np.array_equal(whole.features[:, 0], np.array([k / 7 for k in range(300)], np.float32))
    assert pieces.qid.tolist() == whole.qid.tolist()
    assert pieces.document_ids.tolist() == whole.document_ids.tolist()


def test_missing_numbers_may_be_written_in_several_ways():
    data = read("qid,f,g\n1,,NA\n1, ,null\n1,nan,2\n")
    assert np.isnan(data.feature("f")).all()
    assert np.array_equal(data.feature("g"), [np.nan, np.nan, 2], equal_nan=True)


def test_numbers_are_those_of_a_frame():
    numbers = np.random.default_rng(1).standard_normal((400, 3)) * 10.0 ** np.arange(-30, 31, 30)
    frame = pd.DataFrame(numbers, columns=["a", "b", "c"]).assign(qid=1)
    assert np.array_equal(read(frame.to_csv(index=False)).features, podium.RankingData(frame).features)


@pytest.mark.parametrize(
    "numbers",
    [
        (2**60 + 1, 2**60 + 3), (1700000001, 1700000002), ("1e300", "5"),
        (2**24, 2**24 + 1), (2**53, 2**53 + 1), (-(2**70), -(2**70) - 2**45), (2**24 + 1, 5, 2**24),
    ],
)  # fmt: skip
def test_numbers_that_float32_merges_or_overflows_are_reported(numbers):
    with pytest.warns(
        PodiumWarning, match="became equal in float32 in feature 'f'|1 numbers are too large for float32"
    ):
        read("qid,f\n" + "".join(f"1,{number}\n" for number in numbers))


def test_time_is_linear_in_the_columns():
    n = 40_000
    text = ",".join(["qid", *(f"f{k}" for k in range(n))]) + "\n" + ("1" + ",0.5" * n + "\n") * 5
    started = time.process_time()
    assert read(text).n_features == n
    assert time.process_time() - started < 5


def test_without_pyarrow_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(podium.errors.MissingExtraError, match=r"CSV needs pyarrow.*podium\[parquet\]"):
        read(TEXT)


def test_the_real_sessions_are_read(real_data):
    data = podium.read(
        real_data / "yandex_sessions" / "train.tsv.gz", qid="session", relevance="human_grade",
        labels={"clicks": "clicked"}, feature_names=["dwell_s"], unlabelled=-1,
    )  # fmt: skip
    assert data.n_queries == 10_000
    assert set(np.unique(data.labels["clicks"])) == {0, 1}
    assert np.isnan(data.relevance).any()
    assert np.nanmax(data.relevance) == 4
    assert podium.read(
        real_data / "yandex_sessions" / "test.tsv.gz", qid="session", feature_names=["query"]
    ).n_queries == 10_000  # fmt: skip


def test_truth_values_are_read_as_in_frames():
    frame = pd.DataFrame({"qid": [1, 1, 2], "label": [True, False, True], "new": [False, True, False], "x": [1, 2, 3]})
    for text in (frame.to_csv(index=False), frame.to_csv(index=False).replace("T", "t").replace("F", "f")):
        data = read(text)
        assert np.array_equal(data.features, podium.RankingData(frame).features)
        assert data.relevance.tolist() == [1, 0, 1]
    data = read("qid,label,new\n1,1,true\n1,0,\n2,1, FALSE \n")
    assert np.array_equal(data.features[:, 0], [1, np.nan, 0], equal_nan=True)
    with pytest.raises(FileFormatError, match=r"line 3, column 5: expected a number, but found 'yes' in 'new'"):
        read("qid,label,new\n1,1,True\n1,0,yes\n")


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_header_of_millions_of_columns_is_refused_before_it_is_split(suffix, tmp_path):
    path = tmp_path / f"wide.{suffix}"
    path.write_bytes((b"," if suffix == "csv" else b"\t") * 5_000_000)
    with pytest.raises(FileFormatError, match=r"line 1: the header has 5_000_001 columns, but the limit is 1_048_576"):
        podium.read(path)
