"""Blocks of a file equal the rows of the whole file."""

import gzip
import io
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError, FileFormatError, PodiumWarning, RankingData
from podium.data.encoding import Encoding
from podium.data.io.queries import QueryBlocks
from podium.data.schema import Schema
from tests.data.same import assert_same

ROWS = (1, 7, 10**6)
rng = np.random.default_rng(0)


def letor_text():
    """Queries of 1 to 8 rows; later ones have more features, comments, and one an id that is not a number."""
    lines = []
    for query in range(30):
        for _ in range(rng.integers(1, 9)):
            features = [k for k in range(1, 7 if query < 15 else 10) if rng.random() < 0.6]
            pairs = " ".join(f"{k}:{rng.normal() * 10 ** (query % 4):.4g}" for k in features)
            comment = f" # doc {len(lines)}" if query > 20 else ""
            lines.append(f"{rng.integers(0, 3)} qid:{query if query != 25 else 'x'} {pairs}{comment}")
            if rng.random() < 0.2:
                lines.append(str(rng.choice(["", "# a comment alone", "   "])))
    return "\n".join(lines)


def frame():
    """Time stamps, a crowded column, categories that change in the last queries, and missing values."""
    qid = np.repeat(np.arange(30), rng.integers(1, 9, 30))
    n = len(qid)
    table = pd.DataFrame({"qid": qid, "label": rng.integers(0, 3, n), "x": rng.normal(size=n)})
    table["brand"] = np.where(qid < 20, rng.choice(["b", "c", "7"], n), rng.choice(["z", "a"], n))
    table["seconds"] = 1.7e9 + rng.random(n) * 1e3
    table["nanoseconds"] = np.arange(n) * 1000 + 10**15
    table["crowded"] = np.where(qid < 15, 0.0, 1000) + rng.normal(size=n) * 1e-5
    table["count"] = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n))
    table["short"] = table["x"].astype(np.float32)
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocks")
    (folder / "a.txt").write_text(letor_text())
    (folder / "a.txt.gz").write_bytes(gzip.compress((folder / "a.txt").read_bytes()))
    table = frame()
    table.to_csv(folder / "a.csv", index=False)
    table.to_csv(folder / "a.tsv", index=False, sep="\t")
    table.assign(x=1, brand=table["brand"].astype("category")).to_parquet(folder / "other.parquet", index=False)
    table["brand"] = table["brand"].astype("category")
    table.to_parquet(folder / "a.parquet", index=False, row_group_size=23)
    podium.read(folder / "a.parquet").write(folder / "podium.parquet")
    RankingData(
        rng.normal(size=(30, 2)).astype(np.float32), rng.integers(0, 3, 30), qid=np.arange(30) // 5,
        preferences=([0, 7, 29], [1, 8, 28], [0.5, 0.25, 1.0]), query_weights=np.arange(6.0),
    ).write(folder / "pairs.parquet")  # fmt: skip
    return folder


CASES = [
    ("a.txt", {}), ("a.txt.gz", {"absent": "missing"}), ("a.txt", {"normalize": "zscore", "absent": "missing"}),
    ("a.txt", {"sparse": True}), ("a.csv", {"categorical": ["brand"]}),
    ("a.tsv", {"categorical": ["brand"], "normalize": "minmax"}),
    ("a.parquet", {}), ("a.parquet", {"normalize": "zscore"}), ("a.parquet", {"categorical": ["count"]}),
    ("podium.parquet", {}), ("pairs.parquet", {"unlabelled": 2}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*became equal in float32")
@pytest.mark.parametrize("whole_queries", [False, True])
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda case: str(case)[:40])
def test_blocks_are_what_read_gives(name, options, whole_queries, folder, monkeypatch):
    monkeypatch.setattr("podium.data.io.parquet.ROWS_AT_ONCE", 10)
    monkeypatch.setattr("podium.data.io.parquet.BATCH_ROWS", 10)
    monkeypatch.setattr("podium.data.io.text_blocks.BLOCK_BYTES", 700)
    whole = podium.read(folder / name, **options)
    if not whole_queries and "normalize" not in options:
        whole = whole.replace(preferences=None)
    for rows in ROWS:
        at = 0
        for block in podium.read_blocks(folder / name, rows=rows, whole_queries=whole_queries, **options):
            expected = whole.take(np.arange(at, at + len(block)))
            at += len(block)
            if whole_queries or "normalize" in options:
                assert len(block) <= rows or block.n_queries == 1
                assert at == len(whole) or whole.qid[at - 1] != whole.qid[at]
            else:
                assert len(block) == min(rows, len(whole) - at + len(block))
            assert_equal_in_all(block, expected)
        assert at == len(whole)


def assert_equal_in_all(block, expected):
    if hasattr(block.features, "toarray"):
        assert (block.features != expected.features).nnz == 0
        block, expected = (data.replace(features=data.features.toarray()) for data in (block, expected))
    np.testing.assert_array_equal(block.features, expected.features)
    nothing = np.zeros((len(block), 0), np.float32)
    assert_same(*(data.replace(features=nothing, feature_names=None, encoding=None) for data in (block, expected)))
    assert block.feature_names == expected.feature_names
    assert block.qid.dtype == expected.qid.dtype
    assert block.encoding == expected.encoding
    assert block.wide.keys() == expected.wide.keys()
    for feature, values in block.wide.items():
        np.testing.assert_array_equal(values, expected.wide[feature])
    assert str(block.absent_value) == str(expected.absent_value)
    assert dict(block.reading) == dict(expected.reading)
    assert block.losses == expected.losses


@pytest.mark.filterwarnings("ignore:.*became equal in float32")
def test_several_files_are_read_as_one(folder):
    files = [folder / "a.parquet", folder / "other.parquet"]
    whole = podium.read(files)
    blocks = list(podium.read_blocks(files, rows=40))
    np.testing.assert_array_equal(np.concatenate([block.features for block in blocks]), whole.features)
    (folder / "b.txt").write_text("1 qid:77 12:1 # last\n")
    whole = podium.read([folder / "a.txt", folder / "b.txt"])
    blocks = list(podium.read_blocks([folder / "a.txt", folder / "b.txt"], rows=40, whole_queries=True))
    assert blocks[0].n_features == 12
    np.testing.assert_array_equal(np.concatenate([block.features for block in blocks]), whole.features)


def test_streams_are_read_whole_and_cut(folder):
    text = (folder / "a.txt").read_bytes()
    whole = podium.read(folder / "a.txt")
    for whole_queries in (False, True):
        blocks = list(podium.read_blocks(io.BytesIO(text), "letor", rows=7, whole_queries=whole_queries))
        from_file = list(podium.read_blocks(folder / "a.txt", rows=7, whole_queries=whole_queries))
        assert [len(block) for block in blocks] == [len(block) for block in from_file]
        np.testing.assert_array_equal(np.concatenate([block.features for block in blocks]), whole.features)


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet"])
def test_queries_whose_rows_are_apart_make_one_block_with_a_warning(suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    table = pd.DataFrame({"qid": [1, 1, 2, 2, 1, 3], "label": 0, "x": [1.0, 2, 3, 4, 5, 6]})
    if suffix == "txt":
        path.write_text("".join(f"0 qid:{row.qid} 1:{row.x}\n" for row in table.itertuples()))
    else:
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path, index=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (block,) = podium.read_blocks(path, rows=2, normalize="minmax")
    texts = [str(warning.message) for warning in caught]
    assert any("are not adjacent" in text and "sort the rows by query" in text for text in texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(block.features, podium.read(path, normalize="minmax").features)
    if suffix != "parquet":
        with pytest.raises(FileFormatError, match=r"line 5|line 6"):
            list(podium.read_blocks(path, rows=2, whole_queries=True, returning_qid="error"))


@pytest.mark.parametrize("like", [None, Schema(2, ("1", "2"))])
def test_errors_have_the_place_in_the_whole_file(like, tmp_path):
    (tmp_path / "a.txt").write_text("0 qid:1 1:1\n# between\n" * 9 + "0 qid:1 1:1 2:x\n")
    with pytest.raises(FileFormatError, match=r"a\.txt, line 19, column 15: expected a number, but found 'x'"):
        list(podium.read_blocks(tmp_path / "a.txt", rows=4, like=like))
    (tmp_path / "a.csv").write_text("qid,1,2\n" + "1,1,1\n\n" * 9 + "1,1,y\n")
    with pytest.raises(FileFormatError, match=r"a\.csv, line 20, column 5: expected a number, but found 'y' in '2'"):
        list(podium.read_blocks(tmp_path / "a.csv", rows=4, like=like))
    (tmp_path / "b.csv").write_text("qid,document_weight,1,2\n" + "1,1,1,1\n" * 9 + "1,-1,1,1\n")
    with pytest.raises(FileFormatError, match=r"b\.csv: .*entry 1 is -1.0 \(counted from row 8\)"):
        list(podium.read_blocks(tmp_path / "b.csv", rows=4, like=like))
    (tmp_path / "empty.txt").write_text("# nothing\n")
    with pytest.raises(FileFormatError, match=r"empty\.txt: has no documents"):
        list(podium.read_blocks([tmp_path / "a.csv", tmp_path / "empty.txt"], "letor", like=like, first_index=0))


def test_blocks_before_an_error_are_returned(tmp_path):
    (tmp_path / "a.txt").write_text("0 qid:1 1:1\n" * 9 + "0 qid:1 1:x\n")
    blocks = podium.read_blocks(tmp_path / "a.txt", rows=4, like=Schema(1, ("1",)))
    assert [len(next(blocks)), len(next(blocks))] == [4, 4]
    with pytest.raises(FileFormatError, match="line 10"):
        next(blocks)


def test_text_for_a_model_has_its_features(tmp_path):
    path, like = tmp_path / "a.txt", Schema(3, ("1", "2", "3"))
    path.write_text("0 qid:1 1:1 2:2\n0 qid:1 1:3 2:4\n0 qid:2 1:5 2:6\n")
    blocks = podium.read_blocks(path, rows=2, like=like)
    assert next(blocks).features.tolist() == [[1, 2, 0], [3, 4, 0]]
    next(blocks)
    with pytest.raises(DataError, match="the data lacks the feature '3' of the model"):
        next(blocks)  # now it is certain that the text is not sparse
    path.write_text("0 qid:1 1:1 2:2\n0 qid:1 1:3\n0 qid:2 1:5 2:6 900000:1.00000000000000000001\n")
    assert [block.n_features for block in podium.read_blocks(path, rows=1, like=like)] == [3, 3, 3]
    path.write_text("0 qid:1 1:1 2:2\n0 qid:1 1:3\n")
    with pytest.warns(PodiumWarning, match="the data has 2 of the model's 3 features: its text is sparse") as caught:
        list(podium.read_blocks(path, rows=1, like=like))
    assert len(caught) == 1
    path.write_text("0 qid:1 1:1 2:2\n0 qid:1 1:3 4:7\n")
    unnamed = podium.read_blocks(path, rows=1, like=Schema(3))
    assert [next(unnamed).n_features, next(unnamed).n_features] == [3, 4]  # so that a model refuses the second
    with pytest.raises(DataError, match="X has 4 features, but Podium is expecting 3"):
        next(unnamed)


def test_a_model_determines_the_categories(tmp_path):
    like = Schema(2, ("brand", "x"), Encoding({0: ("b", "a")}))
    table = pd.DataFrame({"qid": 1, "x": 1.0, "brand": ["c", "d", "e", "a", None, "b"]})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.assign(brand=table["brand"].astype("category")).to_parquet(tmp_path / "a.parquet", index=False)
    for name, options in (("a.csv", {"categorical": ["brand"]}), ("a.parquet", {})):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the first block has none of the model's categories, and a later one has
            blocks = list(podium.read_blocks(tmp_path / name, rows=3, like=like, **options))
        assert [block.encoding.categories[1] for block in blocks] == [("b", "a")] * 2
        np.testing.assert_array_equal(blocks[1].feature("brand"), [1, np.nan, 0])
        other = Schema(2, ("brand", "x"), Encoding({0: ("B", "A")}))
        with pytest.warns(
            PodiumWarning, match="all 5 categories of feature 'brand' count as missing.*'a', 'b', 'c', …"
        ) as caught:
            list(podium.read_blocks(tmp_path / name, rows=3, like=other, **options))
        assert len(caught) == 1


def test_values_before_a_models_shift_are_kept(tmp_path):
    """Whether a column is crowded depends on all of its values, not on those of a block."""
    like = Schema(2, ("time", "x"), Encoding({}, {0: 1.7e9, 1: 1000.0}))
    table = pd.DataFrame({"qid": 1, "time": 1.7e9 + np.arange(60) / 7, "x": np.arange(60) * 33.3})
    table.to_parquet(tmp_path / "a.parquet", index=False)
    whole = podium.read(tmp_path / "a.parquet")
    assert set(whole.wide) == {0}
    for rows in ROWS:
        blocks = list(podium.read_blocks(tmp_path / "a.parquet", rows=rows, like=like))
        np.testing.assert_array_equal(np.concatenate([like.rows(block) for block in blocks]), like.rows(whole))


def test_whole_file_warnings_come_once(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"0 qid:{k // 2} 1:{2**24 + k} 2:1e99\n" for k in range(9)))
    for options in ({}, {"like": Schema(2, ("1", "2"))}, {"whole_queries": True}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            list(podium.read_blocks(path, rows=2, **options))
        assert len(caught) == 2
        assert "9 numbers are too large for float32" in str(caught[0].message)
        assert "different numbers became equal in float32 in feature '1'" in str(caught[1].message)


def test_the_limit_on_memory_is_that_of_a_block(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("0 qid:1 1:1\n" * 600_000)
    with pytest.raises(FileFormatError, match=r"more than 6\.0 MiB of memory for its text"):
        podium.read(path, max_bytes=6 << 20)
    assert sum(map(len, podium.read_blocks(path, rows=9999, max_bytes=6 << 20))) == 600_000
    (tmp_path / "b.txt").write_text("0 qid:1 1:1\n" * 22_000)  # one block, in each of two passes
    assert sum(map(len, podium.read_blocks(tmp_path / "b.txt", max_bytes=5 << 20))) == 22_000
    with pytest.raises(FileFormatError, match=r"more than 6\.0 MiB of memory for its data"):
        next(podium.read_blocks(path, rows=100_000, max_bytes=6 << 20, like=Schema(1, ("1",))))


def test_invalid_arguments_are_refused_at_once(tmp_path):
    for wrong in (0, -1, 1.5, "7"):
        with pytest.raises(DataError, match="rows must be a whole number"):
            podium.read_blocks(tmp_path / "a.txt", rows=wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        podium.read_blocks(tmp_path / "a.txt", colour="red")
    with pytest.raises(DataError, match="n_features does not apply"):
        podium.read_blocks(tmp_path / "a.csv", n_features=3)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.integers(1, 9))
def test_blocks_of_queries_agree_with_a_slow_reference(lengths, most_rows):
    blocks, row = QueryBlocks(most_rows), 0
    for query, length in enumerate(lengths):
        assert not blocks.begin(query, row)
        row += length
    expected = [0]
    for length in lengths:
        if expected[-1] and expected[-1] + length > most_rows:
            expected.append(0)
        expected[-1] += length
    assert blocks.sizes(row) == expected


@pytest.mark.parametrize("change", ["cut", "longer", "other"])
@pytest.mark.parametrize("whole_queries", [False, True])
def test_a_file_that_changes_between_the_passes_is_refused(tmp_path, change, whole_queries):
    lines = [f"{k % 3} qid:{k // 10} 1:{k}\n" for k in range(400_000)]
    texts = {"cut": lines[:200_000], "longer": [*lines, *lines], "other": [f"1 qid:{k // 10} 1:3\n" for k in range(9)]}
    path = tmp_path / "a.txt"
    path.write_text("".join(lines))
    blocks = podium.read_blocks(path, rows=1000, whole_queries=whole_queries)
    next(blocks)
    path.write_text("".join(texts[change]))
    with pytest.raises(FileFormatError, match="changed while it was read"):
        for _ in blocks:
            pass


CHANGES = {
    "touched": lambda path: os.utime(path, ns=(0, 0)),
    "removed": lambda path: path.unlink(),
    "longer line": lambda path: path.write_text(path.read_text().replace(" 1:7\n", " 1:7.0\n")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_error_names_the_file_that_changes(tmp_path, change):
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    for number, file in enumerate((path, other)):
        file.write_text("".join(f"1 qid:{number}{k // 10} 1:{k}\n" for k in range(2000)))
    blocks = podium.read_blocks([path, other], rows=1000, whole_queries=True)
    next(blocks)
    change(other)
    with pytest.raises(FileFormatError, match=r"b\.txt.*(changed while it was read|cannot be)"):
        for _ in blocks:
            pass
