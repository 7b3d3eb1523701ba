"""Reading and writing Parquet files."""

import io
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import podium
from podium import DataError, FileFormatError, RankingData
from podium.errors import MissingExtraError

from .same import assert_same


def test_everything_reads_back_the_same(data, tmp_path):
    path = tmp_path / "data.parquet"
    data.write(path)
    assert_same(podium.read(path), data)
    with path.open("rb") as stream:
        assert_same(podium.read(stream, "parquet"), data)


def test_features_without_names_and_odd_values_read_back_the_same(tmp_path):
    features = np.array([[np.nan, -0.0, np.inf], [1e-45, 3.4e38, -1]], np.float32)
    data = RankingData(features, qid=["b", "a"])
    data.write(tmp_path / "data.pq")
    back = podium.read(tmp_path / "data.pq")
    assert (back.features.view(np.uint32) == features.view(np.uint32)).all()
    assert back.feature_names is None
    assert back.qid.tolist() == ["b", "a"]
    assert not back.labels


def test_several_files_are_read_as_one(data, tmp_path):
    a, b = data.select([0]), data.select([1, 2])
    a.write(tmp_path / "a.parquet")
    b.write(tmp_path / "b.parquet")
    joined = podium.read([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert_same(joined, RankingData.concatenate([a, b]))


def test_sparse_features_are_written(tmp_path):
    data = RankingData(sparse.csr_matrix([[0, 1], [2, 0]]), qid=[1, 1])
    data.write(tmp_path / "a.parquet")
    assert podium.read(tmp_path / "a.parquet").features.tolist() == [[0, 1], [2, 0]]


def test_files_of_other_tools_are_read(tmp_path):
    pq.write_table(pa.table({"query": ["a", "b"], "y": [1, 0], "x": [1.5, None]}), tmp_path / "a.parquet")
    data = podium.read(tmp_path / "a.parquet", qid="query", relevance="y")
    assert data.feature_names == ("x",)
    assert np.isnan(data.features[1, 0])
    with pytest.raises(FileFormatError, match=r"a\.parquet: there is no column 'qid'"):
        podium.read(tmp_path / "a.parquet")


def test_invalid_files_are_refused_by_name(tmp_path):
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 not really")
    with pytest.raises(FileFormatError, match=r"bad\.parquet: cannot be read as Parquet"):
        podium.read(bad)
    with pytest.raises(FileFormatError, match=r"none\.parquet: cannot be opened"):
        podium.read(tmp_path / "none.parquet")
    pq.write_table(pa.table({"qid": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    with pytest.raises(FileFormatError, match="has no documents"):
        podium.read(tmp_path / "empty.parquet")
    for name in ("qid", "label", "label.x", "position"):
        with pytest.raises(DataError, match="rename the feature"):
            RankingData([[1]], qid=[1], feature_names=[name]).write(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="does not apply"):
        podium.read(io.BytesIO(), "parquet", first_index=0)


def test_without_pyarrow_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[parquet\]'"):
        podium.read(tmp_path / "a.parquet")


def test_files_of_pandas_with_different_types_are_read(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"qid": [1, 1, 2], "label": [1, 0, 1], "p": [1.0, 2.0, 3.0]})
    frame[frame.p != 2].to_parquet(tmp_path / "i.parquet")
    assert podium.read(tmp_path / "i.parquet").feature_names == ("p",)
    frame.astype({"label": float}).to_parquet(tmp_path / "f.parquet", index=False)
    frame.to_parquet(tmp_path / "n.parquet", index=False)
    assert len(podium.read([tmp_path / "n.parquet", tmp_path / "f.parquet"])) == 6
    table = pa.table({"qid": [1], "f": [1.0]})
    for metadata in ({"podium": "{"}, {"podium.preferences": "junk"}):
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "junk.parquet")
        with pytest.raises(FileFormatError, match=r"junk\.parquet"):
            podium.read(tmp_path / "junk.parquet")
