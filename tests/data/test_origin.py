"""What readers record: feature names, whether text is sparse, how it was read, categories, losses."""

import io
import math
import warnings

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import podium
from podium import DataError, FileFormatError, PodiumWarning, RankingData
from podium.data.io import text_blocks

from .same import assert_same


def letor(text, **options):
    return podium.read(io.BytesIO(text), "letor", **options)


def test_letor_text_names_its_features_by_its_numbers(tmp_path):
    assert letor(b"1 qid:1 1:5 3:7\n").feature_names == ("1", "2", "3")
    assert letor(b"1 qid:1 0:5 1:7\n", first_index=0).feature_names == ("0", "1")
    assert letor(b"1 qid:1 1:5\n", n_features=2).feature_names == ("1", "2")
    assert letor(b"1 qid:1 2:5\n", sparse=True).feature_names == ("1", "2")
    path = tmp_path / "a.txt"
    for first_index in (0, 1):
        data = letor(b"1 qid:1 %d:5 %d:7\n" % (first_index, first_index + 1), first_index=first_index)
        data.write(path)
        again = podium.read(path, first_index=first_index)
        assert again.feature_names == data.feature_names
        assert_same(again, data)
    RankingData([[1, 2]], [1], qid=[1], feature_names=["3", "7"]).write(path)
    assert path.read_text() == "1 qid:1 3:1 7:2\n"
    for names in (["7", "3"], ["a", "b"], ["1", "02"], ["1", "²"], ["1", "99999999999"]):
        data = RankingData([[1, 2]], [1], qid=[1], feature_names=names)
        with pytest.raises(DataError, match="feature_names"):
            data.write(path)
        data.write(path, lossy=True)
        assert path.read_text() == "1 qid:1 1:1 2:2\n"


@pytest.mark.parametrize(
    ("text", "sparse"),
    [
        (b"1 qid:1 1:5 2:7\n0 qid:1 1:0 2:0\n", False),
        (b"1 qid:1 1:5 2:7\n0 qid:1 1:1\n", True),
        (b"1 qid:1 1:5 2:7\n0 qid:1 2:1\n", True),
        (b"1 qid:1 1:5 2:7\n0 qid:1\n", True),
        (b"1 qid:1 2:7\n", True),
        (b"1 qid:1\n", False),
    ],
)
def test_text_is_sparse_if_a_line_omits_a_feature(text, sparse, monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 16)  # so that the lines are in different blocks
    assert letor(text).absent_value == (0.0 if sparse else None)
    assert letor(text, sparse=True).absent_value == (0.0 if sparse else None)
    assert letor(text, n_features=9).absent_value == (0.0 if sparse else None)
    missing = letor(text, absent="missing").absent_value
    assert math.isnan(missing) if sparse else missing is None


def test_sparse_text_that_ends_early_fits_a_wider_model():
    train = podium.artificial(20, features=6)
    model = podium.LambdaMART(n_trees=3).fit(train.replace(feature_names=[str(k) for k in range(1, 7)])).model_
    rows = train.features[:8].copy()
    rows[:, 4:] = 0
    full = "".join(f"0 qid:1 {' '.join(f'{k + 1}:{x!r}' for k, x in enumerate(row[:4].tolist()))}\n" for row in rows)
    with pytest.raises(DataError, match="the data lacks the feature '5'"):
        model.predict(letor(full.encode()))
    with pytest.warns(PodiumWarning, match="text is sparse"):
        scores = model.predict(letor(full.encode() + b"0 qid:1 1:0\n"))
    assert scores[:8].tolist() == model.predict(rows).tolist()


def test_data_records_how_it_was_read(tmp_path):
    text = b"1 qid:1 1:5 2:7\n0 qid:1 1:1 2:2\n"
    assert dict(letor(text).reading) == {"absent": "zero", "first_index": 1}
    scaled = letor(text, absent="missing", normalize="sum", first_index=0)
    assert dict(scaled.reading) == {"absent": "missing", "first_index": 0, "normalize": "sum"}
    assert math.isnan(scaled.absent_value)
    scaled.write(tmp_path / "a.parquet")
    again = podium.read(tmp_path / "a.parquet")
    assert dict(again.reading) == dict(scaled.reading)
    assert math.isnan(again.absent_value)
    table = podium.read(io.BytesIO(b"qid,a\n1,2\n1,3\n"), "csv", normalize="zscore")
    assert dict(table.reading) == {"normalize": "zscore"}
    assert table.absent_value is None


def test_parts_of_a_fold_keep_names_and_origin(tmp_path):
    (tmp_path / "train.txt").write_bytes(b"1 qid:1 1:5 3:7\n0 qid:1 1:5\n")
    (tmp_path / "test.txt").write_bytes(b"1 qid:1 1:5 2:7\n0 qid:1 1:5\n")
    (fold,) = podium.data.datasets.folds(tmp_path)
    assert fold.test.feature_names == fold.train.feature_names == ("1", "2", "3")
    assert fold.test.absent_value == 0.0
    assert fold.test.reading["absent"] == "zero"


MOMENTS = [1700000001, 1700000002, 1700000003, 1700000004]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("numbers", [MOMENTS, [2**24, 1, 2**24 + 1], [2**53 + 1, 2**53], ["1e17", 10**17 + 1]])
def test_large_numbers_that_float32_merges_are_reported(numbers, sparse, monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 16)
    text = "".join(f"{k} qid:1 1:{k} 2:{number}\n" for k, number in enumerate(numbers)).encode()
    with pytest.warns(
        PodiumWarning, match=r"<stream>: different numbers became equal.* feature '2'\. Subtract"
    ) as seen:
        letor(text, sparse=sparse)
    assert len(seen) == 1


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_warnings_name_the_columns(kind):
    lines = ["qid,a,when,b", *(f"1,{k},{moment},{-moment}.5" for k, moment in enumerate(MOMENTS))]
    text = "\n".join(lines).replace(",", "," if kind == "csv" else "\t").encode()
    with pytest.warns(PodiumWarning, match="features 'when', 'b'"):
        podium.read(io.BytesIO(text), kind)


@pytest.mark.parametrize(
    "numbers",
    [
        [16777216, 16777218, 2**30], [1e30, 2e30], [1700000001] * 3, ["1700000001", "1700000001.0", "1.700000001e9"],
        ["0.1234567891", "0.1234567892"], [123456789, 223456789], ["nan", "inf", "-inf", 10**17], [-16777217, 16777217],
    ],
)  # fmt: skip
def test_numbers_that_float32_keeps_apart_are_not_reported(numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        letor("".join(f"1 qid:1 1:{number}\n" for number in numbers).encode())


CATEGORIES = b'qid,label,kind,x\n1,1,web,1\n1,0,"a, b",2\n2,1,,3\n2,0,web,4\n'


def test_categories_of_delimited_text(monkeypatch):
    with pytest.raises(FileFormatError, match=r"line 2, column 5: expected a number, but found 'web'"):
        podium.read(io.BytesIO(CATEGORIES), "csv")
    for size in (16, 1 << 20):
        monkeypatch.setattr(text_blocks, "BLOCK_BYTES", size)
        data = podium.read(io.BytesIO(CATEGORIES), "csv", categorical=["kind"])
        assert dict(data.encoding.categories) == {0: ("a, b", "web")}
        assert np.array_equal(data.features[:, 0], [1, 0, np.nan, 1], equal_nan=True)
        assert dict(data.reading) == {"categorical": ["kind"]}
    frame = pd.DataFrame({"qid": [1, 1, 2, 2], "kind": ["web", "a, b", None, "web"], "x": [1, 2, 3, 4]})
    same = RankingData(frame, categorical=["kind"])
    assert same.encoding == data.encoding
    assert np.array_equal(same.features, data.features, equal_nan=True)
    tabs = podium.read(io.BytesIO(b"qid\tdocument_id\tk\n1\td\tb\n1\te\ta\n"), "tsv", categorical=["k"])
    assert tabs.document_ids.tolist() == ["d", "e"]
    assert tabs.features[:, 0].tolist() == [1, 0]
    for wrong in (["none"], ["qid"]):
        with pytest.raises(FileFormatError, match="categorical: there is no feature"):
            podium.read(io.BytesIO(CATEGORIES), "csv", categorical=wrong)
    with pytest.raises(DataError, match="categorical must be a list of column names"):
        podium.read(io.BytesIO(CATEGORIES), "csv", categorical="kind")
    with pytest.raises(DataError, match="does not apply"):
        letor(b"1 qid:1 1:1\n", categorical=["1"])


def test_parquet_keeps_categories_and_shifts(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"qid": [1, 1, 2, 2], "kind": ["web", "ad", None, "web"], "when": np.array(MOMENTS)})
    data = RankingData(frame, categorical=["kind"])
    assert data.encoding.shifts
    for part in (data, data.select([0]), data.replace(feature_names=None)):
        part.write(path)
        again = podium.read(path)
        assert again.encoding == part.encoding
        assert again.feature_names == part.feature_names
        assert np.array_equal(again.features, part.features, equal_nan=True)
        assert again.original_column(1).tolist() == MOMENTS[: len(part)]
    data.write(path)
    table = pq.read_table(path)
    assert table["kind"].to_pylist() == ["web", "ad", None, "web"]  # other tools see the names of categories
    assert table["when"].to_pylist() == MOMENTS
    assert podium.read(path, feature_names=["kind"]).encoding.categories == {0: ("ad", "web")}
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)  # as other tools write it
    assert podium.read(path, categorical=["kind"]).encoding.categories == {0: ("ad", "web")}
    with pytest.raises(DataError, match=r"cannot store.* categories, shifted features"):
        data.write(tmp_path / "a.txt")
