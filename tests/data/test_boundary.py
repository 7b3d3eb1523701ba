"""Whatever the input, all errors are Podium's."""

import io
import json
import os
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import podium
from podium import DataError, FileFormatError, RankingData
from podium.cli import reading
from podium.core import files
from podium.evaluation.trec import read_qrels, read_run, read_scores, write_qrels, write_run

LINE = b"1 qid:1 1:2\n"
CSV = b"qid,a\n1,2\n"


@pytest.fixture
def odd():
    return RankingData([[1.0]], [1], qid=["a\ud800"], document_ids=["b\udc80"])


def small():
    return RankingData([[1.0, 2], [3, 4]], [1, 0], qid=[1, 1])


@pytest.mark.parametrize("path", ["a\0.txt", "a\0.parquet", "a\ud800.txt", b"a.txt", None, 5])
def test_invalid_paths(path, tmp_path):
    calls = [
        lambda: podium.read(path, "letor"),
        lambda: podium.read(path, "parquet"),
        lambda: read_run(path),
        lambda: read_qrels(path),
        lambda: read_scores(path),
        lambda: podium.data.datasets.folds(path),
        lambda: small().write(path),
        lambda: write_run(small(), [1, 2], path),
        lambda: write_qrels(small(), path),
    ]
    for call in calls:
        with pytest.raises(DataError, match=r"path|NUL"):
            call()
    if isinstance(path, str):
        with pytest.raises(DataError):
            podium.load(path)


def test_text_that_utf8_cannot_encode_is_refused(odd, tmp_path):
    for name in ("a.txt", "a.parquet"):
        with pytest.raises(DataError, match="cannot be encoded as UTF-8"):
            odd.write(tmp_path / name)
    for call in (lambda path: write_run(odd, [1], path), lambda path: write_qrels(odd, path)):
        with pytest.raises(DataError, match="cannot be encoded as UTF-8"):
            call(tmp_path / "a.run")
    with pytest.raises(DataError, match="cannot be encoded as UTF-8"):
        RankingData([[1]], qid=[1], feature_names=["\ud800"]).write(tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


def test_frames_with_two_columns_of_one_name_are_refused():
    twice = pd.DataFrame([[1, 2, 3]], columns=["qid", "a", "a"])
    table = pa.Table.from_arrays([pa.array([1]), pa.array([1]), pa.array([2])], names=["qid", "a", "a"])
    for frame in (twice, table):
        with pytest.raises(DataError, match=r"'a'"):
            RankingData(frame)


@pytest.mark.parametrize("n_threads", [2.0, "2", 0, True, 10**30])
def test_invalid_numbers_of_threads_are_refused(n_threads, tmp_path):
    small().write(tmp_path / "a.parquet")
    sources = [(io.BytesIO(LINE), "letor"), (io.BytesIO(CSV), "csv"), (tmp_path / "a.parquet", "parquet")]
    for source, kind in sources:
        with pytest.raises(DataError, match="n_threads must be"):
            podium.read(source, kind, n_threads=n_threads)


@pytest.mark.parametrize(
    ("X", "arguments"),
    [
        ([[10**400]], {"qid": [1]}),
        ([[1]], {"qid": [1], "relevance": [10**400]}),
        ([[1]], {"qid": [10**5000]}),
        ([[1]], {"qid": [1], "document_weights": [10**400]}),
        ([[1]], {"qid": [1], "query_weights": {1: 10**400}}),
        ([[1]], {"qid": [1], "positions": [10**400]}),
        ([[1], [2]], {"qid": [1, 1], "preferences": [(10**400, 0)]}),
        ([[1], [2]], {"qid": [1, 1], "preferences": [("a", 0)]}),
        ([[1], [2]], {"qid": [1, 1], "preferences": [(1, 0), (1,)]}),
        ([[1], [2]], {"qid": [1, 1], "relevance": [[1], [2, 3]]}),
        ([[1], [2]], {"qid": [[1], [2, 3]]}),
        ([[1], [2]], {"group_sizes": np.array([2**63 - 1, 2**63 - 1, 4])}),
    ],
)
def test_invalid_values(X, arguments):
    with pytest.raises(DataError):
        RankingData(X, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"qid": 5}, {"labels": {"x": 5}}, {"labels": ["a"]}, {"feature_names": 5}, {"feature_names": [1]}],
)
def test_columns_have_names(arguments):
    with pytest.raises(DataError, match="name"):
        podium.read(io.BytesIO(CSV), "csv", **arguments)


def test_invalid_metadata_of_parquet(tmp_path):
    table = pa.table({"qid": [1], "f": [1.0]})
    array = io.BytesIO()
    np.save(array, np.array([1, 2, 3], "c16"))
    for metadata in (
        {"podium": "[" * 100_000}, {"podium": json.dumps([1])}, {"podium.preferences": ""},
        {"podium.preferences": array.getvalue()}, {"podium.preferences": array.getvalue()[:-9]},
    ):  # fmt: skip
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "junk.parquet")
        try:
            assert len(podium.read(tmp_path / "junk.parquet")) == 1
        except FileFormatError as error:
            assert "junk.parquet" in str(error)  # noqa: PT017


def test_closed_standard_input_is_refused(monkeypatch):
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr("sys.stdin", stream)
        with pytest.raises(DataError, match="standard input is closed"):
            reading._standard_input()


def test_files_are_on_the_disk_before_their_names_are(tmp_path, monkeypatch):
    flushed = []
    sync, replace = os.fsync, type(tmp_path).replace
    monkeypatch.setattr(
        files.os, "fsync", lambda handle: (flushed.append(stat.S_ISDIR(os.fstat(handle).st_mode)), sync(handle))
    )
    monkeypatch.setattr(type(tmp_path), "replace", lambda a, b: (flushed.append("named"), replace(a, b))[1])
    for write in (
        lambda: small().write(tmp_path / "a.txt.gz"),
        lambda: small().write(tmp_path / "a.parquet"),
        lambda: write_run(small(), [1, 2], tmp_path / "a.run"),
        lambda: write_qrels(small(), tmp_path / "a.qrels"),
        lambda: podium.LambdaMART(n_trees=1).fit(podium.artificial(5)).save(tmp_path / "a.podium"),
    ):
        flushed.clear()
        write()
        assert flushed == [False, "named", True]
    loop = tmp_path / "loop.txt"
    loop.symlink_to(loop)
    with pytest.raises(FileFormatError, match="cannot be written"):
        small().write(loop)
