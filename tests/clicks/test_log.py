"""`ClickLog` from arrays, frames and files: order, codes, times, positions, bad input."""

import random
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from podium.clicks import ClickLog
from podium.errors import DataError, FileFormatError

COLUMNS = {
    "time": [20, 10, 10, 20, 30], "query": ["b", "a", "a", "b", "a"], "document": ["x", "y", "x", "y", "y"],
    "position": [1, 2, 1, 2, 1], "clicked": [0, 1, 0, 1, 1], "session": ["s", "s", "s", "s", "t"],
}  # fmt: skip


def as_columns(log):
    return {
        "starts": log.starts.tolist(), "times": log.times.tolist(), "position": log.position.tolist(),
        "queries": [log.queries[q] for q in log.query], "documents": [log.documents[d] for d in log.document],
        "clicked": log.clicked.tolist(), "order": log.click_order.tolist(), "click_time": log.click_time.tolist(),
        "dwell": np.nan_to_num(log.dwell, nan=-1).tolist(), "pairs": log.pairs.tolist(),
        "users": [log.users[u] if u >= 0 else None for u in log.user],
        "sessions": [log.sessions[s] if s >= 0 else None for s in log.session],
    }  # fmt: skip


def test_rows_are_sorted_by_time_impression_and_position():
    log = ClickLog.from_arrays(**COLUMNS)
    assert repr(log) == "ClickLog(3 impressions of 2 queries, 5 shown documents, 3 clicks)"
    assert as_columns(log) == {
        "starts": [0, 2, 4, 5], "times": [10_000_000, 20_000_000, 30_000_000], "position": [1, 2, 1, 2, 1],
        "queries": ["a", "b", "a"], "documents": ["x", "y", "x", "y", "y"],
        "clicked": [False, True, False, True, True], "order": [0, 1, 0, 1, 1],
        "click_time": [0, 10_000_000, 0, 20_000_000, 30_000_000], "dwell": [-1.0] * 5, "pairs": [0, 1, 2, 3, 1],
        "users": [None] * 3, "sessions": ["s", "s", "t"],
    }  # fmt: skip
    assert [log.queries[q] for q in log.pair_queries] == ["a", "a", "b", "b"]
    assert [log.documents[d] for d in log.pair_documents] == ["x", "y", "x", "y"]
    with pytest.raises(ValueError, match="read-only"):
        log.times[0] = 1


def test_any_order_of_rows_gives_the_same_log():
    expected = as_columns(ClickLog.from_arrays(**COLUMNS))
    order = list(range(5))
    for seed in range(5):
        random.Random(seed).shuffle(order)
        shuffled = {name: [column[k] for k in order] for name, column in COLUMNS.items()}
        assert as_columns(ClickLog.from_arrays(**shuffled)) == expected


@pytest.mark.parametrize("kind", ["pandas", "polars", "csv", "tsv.gz", "jsonl", "parquet", "dictionaries", "duckdb"])
def test_frames_and_files_give_the_same_log(kind, tmp_path):
    frame = pd.DataFrame(COLUMNS).rename(columns={"query": "search"})
    frame["other"] = 1.5
    path = tmp_path / f"log.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "tsv.gz":
        frame.to_csv(path, index=False, sep="\t")
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "parquet":
        frame.to_parquet(path)
    source = {
        "pandas": frame, "polars": pl.from_pandas(frame), "dictionaries": frame.to_dict("records"),
        "duckdb": duckdb.from_df(frame),
    }.get(kind, path)  # fmt: skip
    log = ClickLog.read(source, query="search")
    assert as_columns(log) == as_columns(ClickLog.from_arrays(**COLUMNS))


def test_a_stream_is_read_part_by_part():
    """Names get the same codes, whatever part they come in; missing ones, numbers and texts of numbers included."""
    n = 1000
    columns = {
        "time": np.arange(n) // 10, "impression": np.arange(n) // 10, "query": np.arange(n) // 10 % 7,
        "document": [f"d{(k * 37) % 101}" for k in range(n)], "position": np.arange(n) % 10 + 1,
        "clicked": np.arange(n) % 3 == 0, "user": [None if k // 10 % 4 == 0 else str(k // 10 % 5) for k in range(n)],
    }  # fmt: skip
    table = pa.table(columns)
    expected = as_columns(ClickLog.from_arrays(**columns))
    for size in (1, 64, 5000):
        parts = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))
        assert as_columns(ClickLog.read(parts)) == expected
    parts = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert as_columns(ClickLog.from_frame(parts)) == expected


def test_a_stream_with_an_error_names_its_row():
    relation = duckdb.sql("SELECT 'tea' AS query, range AS document, 1 AS position, range = 5 AS clicked FROM range(9)")
    with pytest.raises(DataError, match="there is no column 'words'"):
        ClickLog.read(relation, query="words")
    table = pa.table(
        {"query": ["q"] * 4, "document": [1.0, 2.0, 2.5, 3.0], "position": [1, 2, 3, 4], "clicked": [0] * 4}
    )
    parts = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))
    with pytest.raises(DataError, match=r"row 2: document: expected a name or a whole number, but got 2\.5"):
        ClickLog.read(parts)
    with pytest.raises(DataError, match="the log is empty"):
        ClickLog.read(duckdb.sql("SELECT '' AS query, '' AS document, 1 AS position, true AS clicked WHERE false"))


@pytest.mark.parametrize(
    "times",
    [
        [1700000000, 1700000100], [1700000000000, 1700000100000], [1700000000000000, 1700000100000000],
        [1700000000000000000, 1700000100000000000], ["2023-11-14T22:13:20Z", "2023-11-14T22:15:00+00:00"],
        ["1700000000", "1700000100000"], [1.7e9, 1.7000001e9],
        np.array(["2023-11-14T22:13:20", "2023-11-14T22:15:00"], "datetime64[ms]"),
    ],
)  # fmt: skip
def test_times_of_any_unit(times):
    log = ClickLog.from_arrays(time=times, query=["q", "q"], document=["x", "x"], position=[1, 1], clicked=[0, 0])
    assert log.times.tolist() == [1_700_000_000_000_000, 1_700_000_100_000_000]


def test_positions_count_from_one():
    columns = COLUMNS | {"position": [0, 1, 0, 1, 0]}
    assert ClickLog.from_arrays(**columns).position.tolist() == [1, 2, 1, 2, 1]
    assert ClickLog.from_arrays(**COLUMNS, positions_from=0).position.tolist() == [2, 3, 2, 3, 2]
    with pytest.raises(DataError, match="row 0: positions must count from 1, but got 0"):
        ClickLog.from_arrays(**columns, positions_from=1)


def test_clicks_are_numbered_by_time_or_by_the_logged_order():
    columns = {
        "query": ["q"] * 3,
        "document": list("abc"),
        "position": [1, 2, 3],
        "clicked": [1, 0, 1],
        "time": [5] * 3,
    }
    log = ClickLog.from_arrays(**columns, click_time=[9, None, 7], dwell=[3, None, np.inf])
    assert log.click_order.tolist() == [2, 0, 1]
    assert log.click_time.tolist() == [9_000_000, 0, 7_000_000]
    assert log.dwell[[0, 2]].tolist() == [3, np.inf]
    assert ClickLog.from_arrays(**columns, click_order=[2, 0, 1]).click_order.tolist() == [2, 0, 1]
    assert ClickLog.from_arrays(**columns).click_order.tolist() == [1, 0, 2]


def test_parts_keep_their_codes():
    log = ClickLog.from_arrays(**COLUMNS)
    part = log.select(log.times > 10_000_000)
    assert part.pairs.tolist() == [2, 3, 1]
    assert part.documents == log.documents
    assert part.starts.tolist() == [0, 2, 3]
    assert as_columns(log.select([0, 1, 2])) == as_columns(log)
    for wrong in (3, -1):
        with pytest.raises(DataError, match=f"numbered 0 to 2, but got {wrong}"):
            log.select([0, wrong])
    with pytest.raises(DataError, match="the mask has 1 entries"):
        log.select([True])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clicked": [0, 1, 2, 0, 0]}, "row 2: clicked: expected true or false, 1 or 0, but got 2"),
        ({"clicked": [0, 1, None, 0, 0]}, "row 2: clicked: expected true or false"),
        ({"position": [1, 2, 1.5, 1, 1]}, "row 2: position: expected a whole number from 0, but got 1.5"),
        ({"position": [1, 2, -1, 1, 1]}, "row 2: position: expected a whole number from 0, but got -1"),
        ({"position": [1, 2, "x", 1, 1]}, "row 2: position: expected a number, but got 'x'"),
        ({"document": ["x", "y", None, "x", "y"]}, "row 2: document: the name is missing"),
        ({"document": ["x", "y", 2.5, "x", "y"]}, "row 2: document: expected a name or a whole number, but got 2.5"),
        ({"document": ["x", "y", "\ud800", "x", "y"]}, "row 2: document: .*lone surrogate"),
        ({"document": ["x"]}, "query has 5 entries, but document has 1|time has 5 entries"),
        ({"time": [1, 2, "noon", 3, 4]}, "row 2: time: expected a time .*'noon'"),
        ({"time": [1, 2, float("nan"), 3, 4]}, "row 2: time: expected a time"),
        ({"dwell": [0, 0, -3, 0, 0]}, "row 2: dwell: expected seconds from 0, but got -3"),
        ({"click_time": [0, 5, 0, "later", 0]}, "row 3: click_time: expected a time"),
        ({"impression": [1, 1, 2, 2, 3]}, "row 1: the query differs from that of row 0"),
    ],
)
def test_bad_columns_are_refused_with_their_row(change, message):
    with pytest.raises(DataError, match=message):
        ClickLog.from_arrays(**COLUMNS | change)


def test_empty_names_are_missing():
    columns = {"query": ["tea"], "document": ["a"], "position": [1], "clicked": [True]}
    for user in ([""], [None], [float("nan")], np.array([""])):
        log = ClickLog.from_arrays(**columns, user=user)
        assert (log.users, log.user.tolist()) == ((), [-1])


def test_empty_and_unknown():
    empty = {"query": [], "document": [], "position": [], "clicked": []}
    with pytest.raises(DataError, match="the log is empty"):
        ClickLog.from_arrays(**empty)
    with pytest.raises(DataError, match="there is no column 'query': name it with query="):
        ClickLog.from_frame(pd.DataFrame({"document": ["a"], "position": [1], "clicked": [1]}))
    with pytest.raises(DataError, match="there is no column 'q'"):
        ClickLog.from_frame(pd.DataFrame(COLUMNS), query="q")
    with pytest.raises(DataError, match="must be a data frame"):
        ClickLog.from_frame([1])
    with pytest.raises(DataError, match="did you mean 'metarank'"):
        ClickLog.read("log.jsonl", format="metarang")
    with pytest.raises(DataError, match="did you mean 'time_unit'"):
        ClickLog.read("log.jsonl", time_units="s")


def test_errors_of_files_name_the_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,query,document,position,clicked\n1,a,x,1,0\n2,a,y,1,perhaps\n")
    with pytest.raises(DataError, match=re.escape(f"{path}, line 3: clicked: expected a number, but got 'perhaps'")):
        ClickLog.read(path)
    path.write_text("time,query,document,place,clicked\n1,a,x,1,0\n")
    with pytest.raises(FileFormatError, match="line 2: there is no column 'position'"):
        ClickLog.read(path)


def test_yandex_sessions(real_data):
    frame = pd.read_csv(real_data / "yandex_sessions" / "train.tsv.gz", sep="\t").drop(columns="dwell_s")
    frame["document"] = frame["query"].astype(str) + "/" + frame["position"].astype(str)
    log = ClickLog.from_frame(frame, impression="session")
    assert (log.n_impressions, len(log), int(log.clicked.sum())) == (10_000, 106_359, int(frame["clicked"].sum()))
    clicked = frame[frame["clicked"] == 1]
    keys = {
        (str(s), p): o for s, p, o in zip(clicked["session"], clicked["position"], clicked["click_order"], strict=True)
    }
    rows = np.flatnonzero(log.clicked)
    sessions = [log.sessions[log.session[log.impression[row]]] for row in rows] if log.sessions else []
    logged_order = [
        keys[session, position] for session, position in zip(sessions, log.position[rows].tolist(), strict=False)
    ]
    order = np.lexsort((logged_order, log.impression[rows][: len(logged_order)]))
    assert (np.diff(log.click_order[rows][order])[np.diff(log.impression[rows][order]) == 0] == 1).all()
