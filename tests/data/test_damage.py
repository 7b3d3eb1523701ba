"""Damaged files are rejected: nothing that was written goes missing or changes silently."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import podium
from podium import FileFormatError
from podium.data.io import text_blocks

from .same import assert_same

TEXT = b"".join(b"%d qid:%d 1:%d 2:0.5 # d%d\n" % (k % 3, k // 10, k, k) for k in range(200))
COMPRESS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


def read(raw, **options):
    return podium.read(io.BytesIO(raw), "letor", **options)


@pytest.mark.parametrize("compress", COMPRESS.values(), ids=COMPRESS)
def test_members_are_read_as_one(compress, monkeypatch):
    parts = [TEXT[:100], TEXT[100:101], TEXT[101:]]
    raw = b"".join(map(compress, parts))
    assert_same(read(raw), read(TEXT))
    monkeypatch.setattr(text_blocks, "PIECE_BYTES", 1)  # the next member's first bytes come one by one
    assert_same(read(raw), read(TEXT))


@pytest.mark.parametrize("name", COMPRESS)
def test_only_members_and_padding_may_follow_a_member(name):
    member = COMPRESS[name](TEXT)
    for rest in (b"x", b"garbage", member[:5], member[:-3], b"\x00" * 3 + b"\x01", b"\x00" * 8 + b"x"):
        with pytest.raises(FileFormatError, match=r"compressed data (is damaged|ends too early)"):
            read(member + rest)
    for n_zeros in (1, 4, 512):
        padded = member + bytes(n_zeros)
        allowed = name == "gzip" or (name == "xz" and n_zeros % 4 == 0)
        if allowed:
            assert_same(read(padded), read(TEXT))
            assert len(read(padded + member, returning_qid="merge")) == 400
        else:
            with pytest.raises(FileFormatError, match="compressed data is damaged"):
                read(padded)


@pytest.mark.parametrize("name", COMPRESS)
def test_a_flipped_bit_in_any_member_is_refused_or_changes_nothing(name):
    first, second = COMPRESS[name](TEXT[: len(TEXT) // 2]), COMPRESS[name](TEXT[len(TEXT) // 2 :])
    whole, expected = first + second, read(TEXT)
    rng = np.random.default_rng(1)
    bits = np.concatenate([rng.choice(8 * len(whole), 300), 8 * len(first) + np.arange(80)])
    for bit in bits.tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            data = read(bytes(damaged))
        except FileFormatError as error:
            assert str(error).startswith("<stream>")  # noqa: PT017
        else:
            assert_same(data, expected)


@pytest.mark.parametrize("zeros", [1, 10, 13, 14, 20, 400])
def test_leading_zeros_of_a_feature_number_do_not_matter(zeros):
    for sparse in (False, True):
        data = read(b"1 qid:1 1:2 %s3:5\n0 qid:1 1:4\n" % (b"0" * zeros), sparse=sparse)
        features = data.features.toarray() if sparse else data.features
        assert features.tolist() == [[2, 0, 5], [4, 0, 0]]
    with pytest.raises(FileFormatError, match=r"line 1, column 9.*larger than 1000000"):
        read(b"1 qid:1 %s12345678901234567890:5\n" % (b"0" * zeros))


def test_any_flipped_bit_of_a_parquet_file_is_refused(data, tmp_path):
    path = tmp_path / "a.parquet"
    data.write(path)
    raw = path.read_bytes()
    assert_same(podium.read(path), data)
    for bit in range(0, 8 * len(raw), 5):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FileFormatError, match=r"damaged|cannot be read as Parquet"):
            podium.read(io.BytesIO(damaged), "parquet")
    for cut in range(0, len(raw), 37):
        with pytest.raises(FileFormatError, match=r"damaged|cannot be read as Parquet"):
            podium.read(io.BytesIO(raw[:cut]), "parquet")


def test_page_checksums_of_other_writers_are_verified(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"qid": np.repeat(np.arange(100), 10), "x": np.arange(1000) * 0.5})
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    raw = bytearray(path.read_bytes())
    raw[raw.index(np.float64(123.5).tobytes())] ^= 1
    with pytest.raises(FileFormatError, match=r"<stream>: cannot be read as Parquet.*CRC"):
        podium.read(io.BytesIO(raw), "parquet")


def test_parquet_files_without_a_digest_are_read(data, tmp_path):
    """Those of version 0.1 have a description, and no digest."""
    data.write(tmp_path / "new.parquet")
    table = pq.read_table(tmp_path / "new.parquet")
    metadata = {
        key: value.replace(b', "checked": true', b"")
        for key, value in table.schema.metadata.items()
        if key != b"podium.sha256"
    }
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "old.parquet")
    assert_same(podium.read(tmp_path / "old.parquet"), data)
