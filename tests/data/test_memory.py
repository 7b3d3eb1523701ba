"""Readers stop at a limit on the memory that they hold."""

import bz2
import gzip
import io
import lzma
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import podium
from podium import DataError, FileFormatError
from podium.data import memory
from podium.evaluation.trec import text_lines

LINE = b"1 qid:1 1:0.5\n"
LIMIT = 1 << 16


class Endless:
    """A stream that only reads, and never ends."""

    def __init__(self, piece):
        self.piece, self.n_read = piece, 0

    def read(self, size):
        self.n_read += size
        assert self.n_read < 1 << 23, "the reader does not stop"
        return (self.piece * (size // len(self.piece) + 1))[:size]


@pytest.mark.parametrize("kind", ["letor", "csv", "parquet"])
@pytest.mark.parametrize("piece", [b"1", b"x,", b"qid,f\n", LINE], ids=["digit", "field", "line", "document"])
def test_an_endless_stream_or_line_is_stopped(kind, piece):
    with pytest.raises(
        FileFormatError, match=r"<stream>.*more than 64\.0 KiB of memory for its text.*limit \(max_bytes\)"
    ):
        podium.read(Endless(piece), kind, max_bytes=LIMIT)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_small_file_that_unpacks_to_a_large_one_is_stopped(compress):
    bomb = compress(LINE * 100_000)
    with pytest.raises(FileFormatError, match=r"more than 64\.0 KiB of memory for its text"):
        podium.read(io.BytesIO(bomb), "letor", max_bytes=LIMIT)
    assert len(podium.read(io.BytesIO(bomb), "letor", max_bytes=1 << 25)) == 100_000


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (b"1 qid:1 900:1\n" * 100, {}),
        (b"1 qid:1\n" * 1000, {}),
        (b"1 qid:1 1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:8\n" * 1000, {"sparse": True}),
    ],
)
def test_the_limit_applies_to_parsed_data(text, options):
    with pytest.raises(FileFormatError, match=r"more than 64\.0 KiB of memory for its data"):
        podium.read(io.BytesIO(text), "letor", max_bytes=LIMIT, **options)


def test_parquet_that_claims_to_be_large_is_not_unpacked(tmp_path):
    table = pa.table({"qid": np.zeros(100_000, np.int64), "x": np.zeros(100_000)})
    pq.write_table(table, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 4000
    with pytest.raises(FileFormatError, match=r"more than 64\.0 KiB of memory for its data"):
        podium.read(tmp_path / "a.parquet", max_bytes=LIMIT)


BOMBS = """
import resource, sys
import pyarrow as pa, pyarrow.parquet as pq, numpy as np
import podium, podium.data.io.parquet
n = 400_000
text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), pa.array(["x" * 20_000]))
tables = {
    "ids": {"qid": np.zeros(n, np.int64), "document_id": text}, "queries": {"qid": text, "f": np.zeros(n)},
    "categories": {"qid": np.zeros(n, np.int64), "f": text},
}
for name, columns in tables.items():
    for stores in (True, False):
        pq.write_table(pa.table(columns), f"{name}{stores}.parquet", compression="zstd", store_schema=stores)
pq.write_table(pa.table({"qid": np.arange(4_000_000)}), "many.parquet", compression="zstd", use_dictionary=False,
               column_encoding={"qid": "DELTA_BINARY_PACKED"})
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + (1 << 29),) * 2)
categorical = {"categoriesTrue": ["f"], "categoriesFalse": ["f"]}
for name in [f"{name}{stores}" for name in tables for stores in (True, False)]:
    options = {"categorical": categorical.get(name, []), "max_bytes": 100 << 20}
    assert len(podium.read(f"{name}.parquet", **options)) == n
    assert sum(map(len, podium.read_blocks(f"{name}.parquet", **options))) == n
    assert sum(map(len, podium.read_blocks(f"{name}.parquet", whole_queries=True, **options))) == n
try:
    list(podium.read_blocks("many.parquet", whole_queries=True, max_bytes=100 << 20))
except podium.FileFormatError as error:
    print(error)
"""


def test_small_parquet_that_repeats_long_text_stays_small(tmp_path):
    done = subprocess.run([sys.executable, "-c", BOMBS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert "many.parquet: needs more than 100.0 MiB of memory for its query ids" in done.stdout


def test_text_in_parquet_is_a_feature_only_if_it_is_named_as_categorical(tmp_path):
    table = pa.table(
        {"qid": [1, 1], "brand": ["a", "b"], "empty": pa.array([None, None], pa.string()), "v": [[1], [2]]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    names = ["brand", "empty"]
    with pytest.raises(FileFormatError, match="column 'brand' must be numeric, but is string: name it in categorical"):
        podium.read(tmp_path / "a.parquet", feature_names=names)
    with pytest.raises(FileFormatError, match="column 'brand' must be numeric, but is string: name it in categorical"):
        list(podium.read_blocks(tmp_path / "a.parquet", feature_names=names))
    for data in (
        podium.read(tmp_path / "a.parquet", feature_names=names, categorical=["brand"]),
        *podium.read_blocks(tmp_path / "a.parquet", feature_names=names, categorical=["brand"]),
    ):
        assert np.array_equal(data.features, [[0, np.nan], [1, np.nan]], equal_nan=True)
    with pytest.raises(FileFormatError, match=r"column 'v' must be numeric, but is list<.*>"):
        podium.read(tmp_path / "a.parquet", feature_names=["v"])


@pytest.mark.parametrize("kind", ["letor", "csv"])
def test_binary_data_is_refused_early(kind):
    noise = np.random.default_rng(0).integers(0, 256, 1 << 16).astype(np.uint8).tobytes()
    stream = Endless(noise)
    with pytest.raises(FileFormatError, match=r"line \d+, column \d+: found a NUL byte"):
        podium.read(stream, kind)
    assert stream.n_read <= 1 << 23


def test_messages_stay_short(tmp_path):
    long = "x" * 262_144
    with pytest.raises(FileFormatError, match=r"must be distinct, but two columns are named 'xx.* … .*xx'") as caught:
        podium.read(io.BytesIO(f"qid,{long},{long}\n1,1,1\n".encode()), "csv")
    assert len(str(caught.value)) < 2000
    with pytest.warns(podium.PodiumWarning, match="x … x") as warned:
        podium.read(io.BytesIO(f"qid,f\n{long},1\n2,1\n{long},1\n".encode()), "csv")
    assert len(str(warned[0].message)) < 2000
    assert len(str(pickle.loads(pickle.dumps(caught.value)))) < 2000


def test_the_limit_comes_from_the_machine(monkeypatch, tmp_path):
    assert memory.Budget().limit > 1 << 20
    monkeypatch.setattr(memory, "free_bytes", lambda: LIMIT * 2)
    with pytest.raises(FileFormatError, match=r"50% of the free memory; pass max_bytes=… to change it"):
        podium.read(Endless(LINE), "letor")
    (tmp_path / "run.txt").write_bytes(b"1 Q0 d 1 0.5 x\n" * 10_000)
    with pytest.raises(FileFormatError, match=r"run\.txt.*more than 64\.0 KiB"):
        text_lines(tmp_path / "run.txt")
    for wrong in (0, -1, 1.5, "1G", True):
        with pytest.raises(DataError, match="max_bytes must be a whole number"):
            podium.read("none.txt", max_bytes=wrong)


def test_the_page_cache_of_control_groups_counts_as_free(monkeypatch, tmp_path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("4:memory:/inner\n0::/job/step\nodd\n")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 1000000 kB\n")
    job, inner = tmp_path / "job", tmp_path / "memory" / "inner"
    for folder in (job / "step", inner):
        folder.mkdir(parents=True)
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    assert memory.free_bytes() == 1_024_000_000
    for name, value in (("limit_in_bytes", "900"), ("usage_in_bytes", "500"), ("stat", "total_active_file 100\n")):
        (inner / f"memory.{name}").write_text(value)
    assert memory.free_bytes() == 500
    (job / "step" / "memory.max").write_text("max\n")
    for name, value in (("max", "300"), ("current", "200"), ("stat", "active_file 20\ninactive_file 30\n")):
        (job / f"memory.{name}").write_text(value)
    assert memory.free_bytes() == 150


def test_memory_errors_name_the_file(monkeypatch):
    def fail(*_args):
        raise MemoryError

    monkeypatch.setattr("podium.data.io.letor_reader.LetorReader", fail)
    with pytest.raises(FileFormatError, match="does not fit into the memory"):
        podium.read(io.BytesIO(LINE), "letor")


def test_the_limit_may_be_as_large_as_any_machine():
    for limit in (1 << 31, 64 << 30):
        assert len(podium.read(io.BytesIO(b"1 qid:1 1:0.5\n"), "letor", max_bytes=limit)) == 1
