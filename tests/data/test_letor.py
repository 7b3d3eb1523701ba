"""LETOR text: what is read, what is rejected and where, what is written."""

import bz2
import gzip
import io
import lzma
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import podium
from podium import DataError, FileFormatError, PodiumWarning, RankingData
from podium.data.io import text_blocks

TEXT = b"2 qid:10 1:0.5 3:-1e2 # first doc\n0 qid:10 2:3\n\n# a comment line\n1 qid:11 1:nan 2:+.5\n"


def read(text, **options):
    return podium.read(io.BytesIO(text if isinstance(text, bytes) else text.encode()), "letor", **options)


def test_a_small_file_is_read():
    data = read(TEXT)
    assert np.array_equal(
        data.features, np.array([[0.5, 0, -100], [0, 3, 0], [np.nan, 0.5, 0]], np.float32), equal_nan=True
    )
    assert data.relevance.tolist() == [2, 0, 1]
    assert data.qid.tolist() == [10, 10, 11]
    assert data.document_ids.tolist() == ["first doc", "", ""]
    assert read(b"0 qid:1\n").n_features == 0


def test_absent_features_are_zero_or_missing_as_requested():
    assert np.isnan(read(TEXT, absent="missing").features[1]).tolist() == [True, False, True]
    assert read(TEXT, n_features=5).n_features == 5
    assert read(b"1 qid:1 0:3\n", first_index=0).features.tolist() == [[3]]


def test_sparse_features():
    data = read(TEXT, sparse=True)
    assert data.features.indptr.tolist() == [0, 2, 3, 5]
    assert data.features.indices.tolist() == [0, 2, 1, 0, 1]
    assert np.array_equal(data.features.toarray(), read(TEXT).features, equal_nan=True)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compression_is_detected_by_content(compress, tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(compress(TEXT))
    assert podium.read(path).relevance.tolist() == [2, 0, 1]
    assert podium.read(str(path)).n_queries == 2
    with path.open("rb") as stream:
        assert podium.read(stream, "letor").n_queries == 2


def test_several_files_are_read_as_one(tmp_path):
    (tmp_path / "a.txt").write_bytes(TEXT)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"3 qid:x-1 7:1\n"))
    data = podium.read([tmp_path / "a.txt", tmp_path / "b.txt.gz"])
    assert data.features.shape == (4, 7)
    assert data.qid.tolist() == ["10", "10", "11", "x-1"]


@pytest.mark.parametrize("ending", ["\r\n", " \r\n", "\t\n", "\n\n", "\n\r\n"])
def test_line_ends_and_trailing_blanks_are_ignored(ending):
    data = read(("\ufeff" + f"1\tqid:3  1:2{ending}0 qid:3 1:4{ending}").encode())
    assert data.features.tolist() == [[2], [4]]
    assert data.qid.tolist() == [3, 3]


def test_the_last_line_may_lack_its_end():
    assert read(b"1 qid:3 1:2").features.tolist() == [[2]]
    assert read(b"1 qid:3 1:2\r").features.tolist() == [[2]]
    assert read(b"1 qid:3 1:2 # x").document_ids.tolist() == ["x"]


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("abc qid:1 1:1", 1, 1, "expected a label, a number, but found 'abc'"),
        ("inf qid:1 1:1", 1, 1, "labels must be finite, .*but found 'inf'"),
        ("1e39 qid:1 1:1", 1, 1, "must be finite"),
        ("0 1:1", 1, 3, "expected qid:ID after the label, but found '1:1'"),
        ("0", 1, 2, "expected qid:ID"),
        ("0 qid: 1:1", 1, 7, "query id is empty"),
        ("0 qid:1 0:1", 1, 9, "'0:1' is smaller.*first_index=0"),
        ("0 qid:1 -2:1", 1, 9, "'-2:1' is negative"),
        ("0 qid:1 2:1 2:1", 1, 13, "is repeated on this line"),
        ("0 qid:1 3:1 2:1", 1, 13, "smaller than the one before"),
        ("0 qid:1 3:1 99999999999999999999:1", 1, 13, "larger than 1000000.*largest_index"),
        ("0 qid:1 1:x", 1, 11, "expected a number, but found 'x'"),
        ("0 qid:1 1:", 1, 11, "expected a number, but found ''"),
        ("0 qid:1 1:1e", 1, 11, "expected a number, but found '1e'"),
        ("0 qid:1 1:1_0", 1, 11, "expected a number"),
        ("0 qid:1 1:0x1", 1, 11, "expected a number"),
        ("0 qid:1 x", 1, 9, "expected index:value, but found 'x'"),
        ("0 qid:1 1", 1, 9, "expected index:value"),
        ("0 qid:1 1.5:2", 1, 9, "expected index:value"),
        ("0 qid:1 1:1\x00", 1, 12, "NUL byte"),
        ("0 qid:1\x00 1:1", 1, 8, "NUL byte"),
        ("0 qid:1 1:1 # a\x00", 1, 16, "NUL byte"),
        ("# a\x00\n0 qid:1 1:1", 1, 4, "NUL byte"),
        ("0 qid:1 1:1\r1 qid:1 1:1", 1, 12, "carriage return"),
        ("0 qid:é 1:x", 1, 11, "expected a number"),
        ("0 qid:1 1:1\n\n#\n0 qid:1 1:1\n0 qid:1 1:y", 5, 11, "expected a number"),
    ],
)
def test_invalid_text_is_refused_with_its_place(text, line, column, words):
    with pytest.raises(FileFormatError, match=words) as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"<stream>, line {line}, column {column}: ")


def test_text_that_is_not_utf8_is_refused_with_its_place():
    with pytest.raises(FileFormatError, match="line 2, column 7: the query id is not valid UTF-8"):
        read(b"0 qid:1\n0 qid:\xff\n")
    with pytest.raises(FileFormatError, match="line 1, column 11: the comment is not valid UTF-8"):
        read(b"0 qid:1 #a\xff\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no documents"),
        (b"\n# only a comment\n", "has no documents"),
        (gzip.compress(TEXT, mtime=0)[:-9], "truncated"),
        (gzip.compress(TEXT, mtime=0)[:15], "truncated"),
        (bytes([*gzip.compress(TEXT, mtime=0)[:20], 0, *gzip.compress(TEXT, mtime=0)[21:]]), "damaged|truncated"),
        (bz2.compress(TEXT)[:-9], "truncated"),
        (lzma.compress(TEXT)[:-9], "truncated"),
        (TEXT.decode().encode("utf-16"), "looks like UTF-16"),
        (b"PAR1....", "looks like Parquet"),
    ],
)
def test_files_that_cannot_be_read_are_named(content, words, tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=words) as caught:
        podium.read(path)
    assert caught.value.path == str(path)


def test_sources_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be opened: No such file"):
        podium.read(tmp_path / "none.txt")
    with pytest.raises(FileFormatError, match=r"is a folder.*podium\.data\.datasets\.folds"):
        podium.read(tmp_path, "letor")
    with pytest.raises(DataError, match="does not determine the format"):
        podium.read(tmp_path / "data.xyz")
    with pytest.raises(DataError, match="a stream has no suffix"):
        podium.read(io.BytesIO(TEXT))
    with pytest.raises(DataError, match="at least one file"):
        podium.read([])
    with pytest.raises(DataError, match="the same format"):
        podium.read(["a.txt", "a.csv"])
    with pytest.raises(FileFormatError, match="binary mode"):
        podium.read(io.StringIO("0 qid:1"), "letor")


def test_streams_of_all_kinds(tmp_path):
    class OnlyRead:
        def __init__(self):
            self.inner = io.BytesIO(TEXT)

        def read(self, size):
            return self.inner.read(size)

    assert podium.read(OnlyRead(), "letor").n_queries == 2
    closed = io.BytesIO(TEXT)
    closed.close()
    for kind in ("letor", "csv", "parquet"):
        with pytest.raises(FileFormatError, match="is closed"):
            podium.read(closed, kind)
    (tmp_path / "real.txt").write_bytes(b"")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    read(TEXT).write(tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink()
    assert podium.read(tmp_path / "real.txt").n_queries == 2


def test_invalid_options_are_refused():
    with pytest.raises(DataError, match="qid does not apply"):
        read(TEXT, qid="q")
    with pytest.raises(DataError, match=r"to name its features, read it and call data\.replace"):
        read(TEXT, feature_names=["a"])
    with pytest.raises(DataError, match="sparse does not apply"):
        podium.read(io.BytesIO(b"qid,f\n1,2\n"), "csv", sparse=True)
    for wrong in ({"absent": "no"}, {"first_index": 2}, {"n_features": -1}, {"returning_qid": "x"},
                  {"sparse": True, "absent": "missing"}, {"normalize": "no"}):  # fmt: skip
        with pytest.raises(DataError):
            read(TEXT, **wrong)
    with pytest.raises(DataError, match="format must be"):
        podium.read(io.BytesIO(TEXT), "xml")


def test_n_features_limits_the_indices():
    with pytest.raises(FileFormatError, match=r"line 1, column 16.*larger than 2, the limit set by n_features"):
        read(TEXT, n_features=2)


def test_an_index_that_is_far_too_large_does_not_take_all_memory():
    rows = b"".join(b"0 qid:%d 1:1\n" % k for k in range(3000))
    with pytest.raises(FileFormatError, match=r"GiB as a dense array.*sparse=True"):
        read(rows + b"0 qid:1 900000:1\n", returning_qid="merge")
    assert read(rows + b"0 qid:1 900000:1\n", sparse=True, returning_qid="merge").n_features == 900_000


def test_a_query_that_returns_is_one_query_and_is_reported():
    text = b"0 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3\n"
    with pytest.warns(PodiumWarning, match="line 3: query '1' returns"):
        data = read(text)
    assert data.rows(0).tolist() == [0, 2]
    assert read(text, returning_qid="merge").n_queries == 2
    with pytest.raises(FileFormatError, match="line 3: query '1' returns"):
        read(text, returning_qid="error")


def test_numbers_too_large_for_float32_are_reported():
    with pytest.warns(PodiumWarning, match="1 numbers are too large for float32"):
        assert read(b"0 qid:1 1:1e39 2:-inf\n").features.tolist() == [[np.inf, -np.inf]]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(["1", "-2", "0"], [1, -2, 0]), (["01", "2", "3"], ["01", "2", "3"]), (["a", "2", "3"], ["a", "2", "3"]),
     ([str(2**63), "1", "2"], [str(2**63), "1", "2"])],
)  # fmt: skip
def test_query_ids_are_integers_if_all_are_written_so(ids, expected):
    assert read("".join(f"0 qid:{i}\n" for i in ids)).qid.tolist() == expected


def test_labels_may_be_real_negative_or_absent():
    data = read(b"0.25 qid:1\n-3 qid:1\nnan qid:1\n")
    assert np.array_equal(data.relevance, np.array([0.25, -3, np.nan], np.float32), equal_nan=True)
    assert np.isnan(read(b"-1 qid:1\n", unlabelled=-1).relevance[0])


@pytest.mark.parametrize("size", [16, 40, 1 << 10])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_neither_blocks_nor_threads_change_what_is_read(size, n_threads, monkeypatch):
    lines = [f"{k % 5} qid:{k // 7} {k % 3 + 1}:{k / 8} 9:{-k}e-3 # d{k}" for k in range(200)]
    text = "\n".join(lines)
    whole = read(text)
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", size)
    pieces = read(text, n_threads=n_threads)
    assert np.array_equal(pieces.features, whole.features)
    assert np.array_equal(pieces.relevance, whole.relevance)
    assert pieces.qid.tolist() == whole.qid.tolist()
    assert pieces.document_ids.tolist() == whole.document_ids.tolist()
    assert np.array_equal(read(text, sparse=True).features.toarray(), whole.features)
    with pytest.raises(FileFormatError, match="line 151, column"):
        read("\n".join([*lines[:150], "x", *lines[150:]]), n_threads=n_threads)


def test_a_line_longer_than_a_block(monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 10)
    assert read("0 qid:1 " + " ".join(f"{k}:{k}" for k in range(1, 100))).features[0, -1] == 99


def test_numbers_near_the_middle_between_two_float32_are_exact(monkeypatch):
    # 17 digits and a power of ten that no double holds: near the middle between two float32.
    value = "1.00000005960464477539e0"
    text = "0 qid:1 " + " ".join(f"{k}:{value}" for k in range(1, 300)) + "\n"
    assert set(read(text).features[0].tolist()) == {float(np.float32(float(value)))}
    assert set(read(text, sparse=True).features.data.tolist()) == {float(np.float32(float(value)))}
    label = "340282356779733661637539395458142568448"  # exactly between the largest float32 and 2^128
    with pytest.raises(FileFormatError, match=r"line 1, column 1: .*too large for float32"):
        read(f"{label} qid:1\n")


finite_or_not = hnp.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.floats(width=32))


@pytest.mark.parametrize("absent", ["zero", "missing", "none"])
@given(features=finite_or_not, label=st.floats(-(2.0**100), 2.0**100, width=32))
def test_what_is_written_reads_back_to_the_bit(absent, features, label, tmp_path_factory):
    path = tmp_path_factory.mktemp("w") / "data.txt"
    ids = [f"doc {k}" for k in range(len(features))]
    data = RankingData(features, np.full(len(features), label), qid=["q-1"] * len(features),
                       document_ids=ids)  # fmt: skip
    data.write(path, absent=absent)
    back = podium.read(path, absent="missing" if absent == "missing" else "zero")
    nan = np.isnan(features)
    assert (np.isnan(back.features) == nan).all()
    assert (back.features.view(np.uint32) == features.view(np.uint32))[~nan].all()
    assert (back.relevance.view(np.uint32) == data.relevance.view(np.uint32)).all()
    assert back.document_ids.tolist() == ids
    for token in re.findall(r"\d+:(\S+)", path.read_text()):
        value = np.float32(float(token))
        if np.isfinite(value):  # never more digits than numpy's own shortest form
            assert len(token.lstrip("-").replace(".", "").strip("0").split("e")[0]) <= 9


def test_short_numbers_are_written_short(tmp_path):
    values = [0.1, 12.5, 0.003708, 1e-7, 3.4028235e38, 1e-45, 16777216, 123456792, -0.25, 100, 1e10]
    RankingData([values], [1.5], qid=[3]).write(tmp_path / "a.txt")
    expected = [
        "0.1",
        "12.5",
        "0.003708",
        "1e-7",
        "34028235e31",
        "1e-45",
        "16777216",
        "123456790",
        "-0.25",
        "100",
        "1e10",
    ]
    written = (tmp_path / "a.txt").read_text().split()[2:]
    assert [token.split(":")[1] for token in written] == expected
    assert [np.float32(float(e)) for e in expected] == [np.float32(v) for v in values]


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_writing_compressed_gives_the_same_bytes_each_time(suffix, tmp_path):
    data = read(TEXT)
    paths = [tmp_path / f"{name}.txt{suffix}" for name in "ab"]
    for path in paths:
        data.write(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert np.array_equal(podium.read(paths[0]).features, data.features, equal_nan=True)


def test_a_large_file_is_written_in_pieces(tmp_path, monkeypatch):
    from podium.data.io import writing

    monkeypatch.setattr(writing, "CHUNK_BYTES", 4000)
    data = podium.artificial(20, documents=20, features=5)
    data.write(tmp_path / "a.txt")
    assert np.array_equal(podium.read(tmp_path / "a.txt").features, data.features)


def test_sparse_features_are_written(tmp_path):
    data = read(TEXT, sparse=True)
    data.write(tmp_path / "a.txt")
    assert np.array_equal(podium.read(tmp_path / "a.txt").features, read(TEXT).features, equal_nan=True)
    with pytest.raises(DataError, match="absent='zero'"):
        data.write(tmp_path / "a.txt", absent="none")


def test_what_letor_text_cannot_store_is_refused_unless_lossy(tmp_path):
    path = tmp_path / "a.txt"
    data = RankingData([[1]], [1], qid=[1], labels={"clicks": [1]}, document_weights=[1])
    with pytest.raises(DataError, match="cannot store document_weights, the labels 'clicks'"):
        data.write(path)
    data.write(path, lossy=True)
    assert podium.read(path).relevance.tolist() == [1]
    for bad in ({"qid": ["a b"]}, {"qid": [""]}, {"qid": [1], "document_ids": ["a\nb"]},
                {"qid": [1], "document_ids": [" a"]}):  # fmt: skip
        with pytest.raises(DataError, match="LETOR text cannot store the"):
            RankingData([[1]], **bad).write(path)
    with pytest.raises(DataError, match="but got 'csv'"):
        data.write(tmp_path / "a.csv")
    with pytest.raises(DataError, match="absent must be"):
        data.write(path, absent="x")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    bad = RankingData([[1], [2]], qid=[1, 2], document_ids=["fine", "not\nfine"])
    with pytest.raises(DataError):
        bad.write(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    with pytest.raises(FileFormatError, match="cannot be written"):
        read(TEXT).write(tmp_path / "no" / "a.txt")


def test_agrees_with_scikit_learn(tmp_path):
    from sklearn.datasets import load_svmlight_file

    data = podium.artificial_web(5, features=20)
    data.write(tmp_path / "a.txt")
    X, y, qid = load_svmlight_file(str(tmp_path / "a.txt"), query_id=True, dtype=np.float32)
    ours = podium.read(tmp_path / "a.txt")
    assert np.array_equal(X.toarray(), ours.features)
    assert np.array_equal(y, ours.relevance)
    assert np.array_equal(qid, ours.qid)


def test_every_real_file_is_read(real_data):
    expected = {"mq2008": (15211, 784, 46), "ohsumed": (16140, 106, 25)}
    for folder, (rows, queries, features) in expected.items():
        data = podium.read(sorted((real_data / folder).glob("S*.txt.gz")))
        assert (data.n_documents, data.n_queries, data.n_features) == (rows, queries, features)
    train = podium.read(real_data / "lightgbm_example" / "train.txt.gz")
    assert (train.n_documents, train.n_queries, train.n_features) == (3005, 201, 300)
    assert podium.read(real_data / "lightgbm_example" / "test.txt.gz").n_queries == 50
