"""The side files of LightGBM and XGBoost next to a text file."""

import gzip

import lightgbm
import numpy as np
import pytest

import podium
from podium import FileFormatError, LambdaMART
from tests.commands import run

LINES = ["1 1:0.5", "0 2:1", "2 1:3 # kept", "0 1:1", "1 2:2"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rank.train").write_text("\n".join(LINES) + "\n")
    (tmp_path / "rank.train.query").write_text("3\n2\n")
    return tmp_path


def test_query_sizes_are_read(folder):
    data = podium.read(folder / "rank.train")
    assert data.qid.tolist() == [0, 0, 0, 1, 1]
    assert data.relevance.tolist() == [1, 0, 2, 0, 1]
    assert data.features.tolist() == [[0.5, 0], [0, 1], [3, 0], [1, 0], [0, 2]]
    assert data.document_weights is None
    (folder / "rank.train.query").rename(folder / "rank.train.group")
    assert podium.read(folder / "rank.train").qid.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("rows", [1, 2, 3, 10])
@pytest.mark.parametrize("whole_queries", [False, True])
def test_blocks_have_their_rows_of_side_files(folder, rows, whole_queries):
    (folder / "rank.train.weight").write_text("1\n2\n3\n4\n5\n")
    blocks = list(podium.read_blocks(folder / "rank.train", rows=rows, whole_queries=whole_queries))
    assert np.concatenate([block.qid for block in blocks]).tolist() == [0, 0, 0, 1, 1]
    assert np.concatenate([block.document_weights for block in blocks]).tolist() == [1, 2, 3, 4, 5]
    if whole_queries:
        assert [len(block) for block in blocks] == ([5] if rows == 10 else [3, 2])


def test_weights_and_positions_are_read(folder):
    (folder / "rank.train.weight").write_text("1\n2\n0.5\n1e0\n3")
    (folder / "rank.train.position").write_text("0\n1\n2\n0\n1\n")  # LightGBM's files count from 0
    data = podium.read(folder / "rank.train")
    assert data.document_weights.tolist() == [1, 2, 0.5, 1, 3]
    assert data.positions.tolist() == [1, 2, 3, 1, 2]
    (folder / "rank.train.position").write_text("3\n1\n2\n1\n2\n")
    (folder / "rank.train.weight").write_text("4\n2\n")  # XGBoost: of queries
    data = podium.read(folder / "rank.train")
    assert data.query_weights.tolist() == [4, 2]
    assert data.document_weights is None
    assert data.positions.tolist() == [3, 1, 2, 1, 2]


def test_query_ids_on_the_lines_come_first(tmp_path):
    (tmp_path / "a.txt").write_text("# head\n1 qid:7 1:1\n0 qid:8 1:1\n")
    (tmp_path / "a.txt.query").write_text("2\n")
    (tmp_path / "a.txt.weight").write_text("3\n4\n")
    data = podium.read(tmp_path / "a.txt")
    assert data.qid.tolist() == [7, 8]
    assert data.document_weights.tolist() == [3, 4]


def test_several_files_and_compressed_ones(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt.gz").write_bytes(gzip.compress(b"1 1:1\n0 1:2\n0 1:3\n"))
        (tmp_path / f"{name}.txt.query").write_text("1\n2\n")
    data = podium.read([tmp_path / "a.txt.gz", tmp_path / "b.txt.gz"])
    assert data.qid.tolist() == [0, 1, 1, 2, 3, 3]
    (tmp_path / "b.txt.query").unlink()
    with pytest.raises(
        FileFormatError, match=r"b\.txt\.gz: has no side file of sizes, but other files read with it do"
    ):
        podium.read([tmp_path / "a.txt.gz", tmp_path / "b.txt.gz"])


@pytest.mark.parametrize(
    ("suffix", "text", "words"),
    [
        ("query", "3\n1\n", r"rank\.train: has 5 documents, but the sizes in its query file add up to 4"),
        (
            "query",
            "3\ntwo\n",
            r"rank\.train\.query, line 2: expected the number of documents of a query, a whole number",
        ),
        ("query", "3\n1.5\n", "but found '1.5'"),
        ("query", "5\n0\n", "whole number of at least 1, but found '0'"),
        ("query", "", "but found ''"),
        ("weight", "1\n2\n3\n", "has 5 documents, but its weight file has 3 lines"),
        ("weight", "1\n2\nnan\n4\n5\n", "line 3: expected a weight, a number of at least 0, but found 'nan'"),
        ("weight", "1\n2\n-3\n4\n5\n", "found '-3'"),
        ("position", "1\n2\n", "its position file has 2 lines"),
        ("group", "5\n", r"rank\.train\.group: has the same role as rank\.train\.query: keep one"),
    ],
)
def test_side_files_that_do_not_match_are_refused(folder, suffix, text, words):
    (folder / f"rank.train.{suffix}").write_text(text)
    with pytest.raises(FileFormatError, match=words):
        podium.read(folder / "rank.train")
    with pytest.raises(FileFormatError, match=words):
        list(podium.read_blocks(folder / "rank.train", rows=2))


def test_a_query_id_on_a_later_line(folder):
    (folder / "rank.train").write_text("1 1:1\n0 1:2\n0 qid:3 1:1\n1 1:1\n0 1:1\n")
    with pytest.raises(FileFormatError, match="line 3: has a query id, but earlier lines have none"):
        podium.read(folder / "rank.train")


def test_without_queries_the_error_names_the_remedy(tmp_path):
    (tmp_path / "a.txt").write_text("1 1:1\n")
    with pytest.raises(FileFormatError, match=r"expected qid:ID after the label.*FILE\.query or FILE\.group"):
        podium.read(tmp_path / "a.txt")
    with pytest.raises(podium.DataError, match="does not determine the format"):
        podium.read(tmp_path / "a.train")


@pytest.mark.parametrize("suffix", ["init", "base_margin"])
def test_initial_scores_are_not_read(folder, suffix):
    (folder / f"rank.train.{suffix}").write_text("1\n")
    with pytest.warns(podium.errors.PodiumWarning, match="initial scores are ignored"):
        podium.read(folder / "rank.train")


@pytest.mark.slow  # kernels of training, which take minutes to compile with bounds checks
def test_lightgbms_folder_trains_with_one_command(tmp_path):
    for part in ("train", "test"):
        data = podium.artificial(30, features=4, part=part)
        sizes = "".join(f"{n}\n" for n in data.query_sizes)
        (tmp_path / f"rank.{part}.query").write_text(sizes)
        rows = zip(data.relevance.astype(int), data.features.tolist(), strict=True)
        text = "".join(f"{label} " + " ".join(f"{k}:{v!r}" for k, v in enumerate(x, 1)) + "\n" for label, x in rows)
        (tmp_path / f"rank.{part}").write_text(text)
    # LightGBM reads the same queries from these files.
    train = lightgbm.Dataset(str(tmp_path / "rank.train"), params={"verbose": -1}).construct()
    data = podium.read(tmp_path / "rank.train")
    assert train.get_group().tolist() == data.query_sizes.tolist()
    done = run("train", "lambdamart", "rank.train", "--valid", "rank.test", "--n-trees", "3", "-o", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = LambdaMART(n_trees=3).fit(data, valid=podium.read(tmp_path / "rank.test"))
    assert podium.load(tmp_path / "run" / "model.podium").digest() == model.digest()
