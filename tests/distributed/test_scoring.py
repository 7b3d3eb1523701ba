"""The checks of a folder of scores before `score_files` adds to it, which need no cluster."""

import json
from pathlib import Path

import pytest

import podium
from podium import DataError, FileFormatError

pytest.importorskip("distributed")

from podium.distributed.scoring import MANIFEST, _names_of_scores, _require_same_model


@pytest.fixture(scope="module")
def model():
    return podium.LinearRanker(n_iterations=1).fit(podium.artificial(5, features=3)).model_


def paths(tmp_path):
    """Return two files with the same name in different folders, and a folder for scores."""
    files = [tmp_path / name / "a.txt" for name in ("x", "y")]
    for file in files:
        file.parent.mkdir()
        file.write_text("1 qid:1 1:1\n")
    (tmp_path / "scores").mkdir()
    return *map(str, files), tmp_path / "scores"


def test_scores_of_another_file_with_the_same_name_are_not_reused(model, tmp_path):
    first, second, folder = paths(tmp_path)
    target = folder / "a.scores.txt"
    _require_same_model(folder, model, {first: target})
    target.write_text("1.0\n")
    _require_same_model(folder, model, {first: target})
    with pytest.raises(DataError, match=r"holds a file 'a\.scores\.txt' that does not come from .*y/a\.txt"):
        _require_same_model(folder, model, {second: target})
    assert list(json.loads((folder / MANIFEST).read_text())["files"]) == [first]


def test_scores_without_a_manifest_are_not_reused(model, tmp_path):
    first, _, folder = paths(tmp_path)
    (folder / "a.scores.txt").write_text("1.0\n")
    with pytest.raises(DataError, match="does not come from"):
        _require_same_model(folder, model, {first: folder / "a.scores.txt"})


def test_a_changed_file_is_refused(model, tmp_path):
    first, _, folder = paths(tmp_path)
    _require_same_model(folder, model, {first: folder / "a.scores.txt"})
    Path(first).write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    with pytest.raises(DataError, match=r"scores of an earlier version of .*a\.txt: delete it"):
        _require_same_model(folder, model, {first: folder / "a.scores.txt"})


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"model": "x"}', '{"files": {}}', '{"files": 1, "model": 2}']
)
def test_a_damaged_manifest_is_refused(content, model, tmp_path):
    first, _, folder = paths(tmp_path)
    (folder / MANIFEST).write_text(content)
    with pytest.raises(FileFormatError, match=r"scores\.json: .*delete its folder"):
        _require_same_model(folder, model, {first: folder / "a.scores.txt"})


def test_an_output_that_is_a_file_is_refused(model, tmp_path):
    first, _, _ = paths(tmp_path)
    with pytest.raises(DataError, match=r"output: cannot create the folder"):
        podium.distributed.score_files(model, first, first, client=object())
    with pytest.raises(DataError, match="expected a path"):
        podium.distributed.score_files(model, first, 5, client=object())


def test_two_files_with_the_same_name_are_refused():
    with pytest.raises(DataError, match=r"two files would write their scores to the same file 'a\.scores\.txt'"):
        _names_of_scores(["x/a.txt", "y/b.txt", "z/a.txt.gz"])
