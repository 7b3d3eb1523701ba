"""Folders of benchmark data."""

import gzip

import numpy as np
import pytest

import podium
from podium import DataError, FileFormatError


def put(path, qid, features=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"1 qid:{qid} 1:1 {features}:2\n".encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def ids(fold):
    return [sorted(part.query_ids.tolist()) if part is not None else None for part in fold]


@pytest.mark.parametrize(
    "names",
    [("train.txt", "vali.txt", "test.txt"), ("trainingset.txt", "validationset.txt", "testset.txt"),
     ("train.txt.gz", "vali.txt.gz", "test.txt.gz")],
)  # fmt: skip
def test_fold_folders_of_letor_and_mslr(tmp_path, names):
    for k in (1, 2, 10):
        for role, name in enumerate(names):
            put(tmp_path / f"Fold{k}" / name, 10 * k + role)
    folds = podium.data.datasets.folds(tmp_path)
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold10"]
    assert ids(folds[2]) == [[100], [101], [102]]


def test_parts_become_folds_as_in_letor(tmp_path):
    for k in range(1, 6):
        put(tmp_path / f"S{k}.txt.gz", k)
    expected = [([1, 2, 3], 4, 5), ([2, 3, 4], 5, 1), ([3, 4, 5], 1, 2), ([1, 4, 5], 2, 3), ([1, 2, 5], 3, 4)]
    for fold, (train, valid, test) in zip(podium.data.datasets.folds(tmp_path), expected, strict=True):
        assert ids(fold) == [train, [valid], [test]]
    expected = [([2, 3, 4], 5, 1), ([3, 4, 5], 1, 2), ([1, 4, 5], 2, 3), ([1, 2, 5], 3, 4), ([1, 2, 3], 4, 5)]
    for fold, (train, valid, test) in zip(podium.data.datasets.folds(tmp_path, parts="ohsumed"), expected, strict=True):
        assert ids(fold) == [train, [valid], [test]]


def test_folders_of_istella_and_yahoo(tmp_path):
    put(tmp_path / "istella" / "train.txt", 1)
    put(tmp_path / "istella" / "test.txt", 2)
    (fold,) = podium.data.datasets.folds(tmp_path / "istella")
    assert fold.name == "istella"
    assert ids(fold) == [[1], None, [2]]
    for k in (1, 2):
        for role, word in enumerate(("train", "valid", "test")):
            put(tmp_path / "yahoo" / f"set{k}.{word}.txt", 10 * k + role)
    folds = podium.data.datasets.folds(tmp_path / "yahoo")
    assert [(fold.name, ids(fold)) for fold in folds] == [
        ("set1", [[10], [11], [12]]),
        ("set2", [[20], [21], [22]]),
    ]


@pytest.mark.parametrize(("options", "filler"), [({}, 0), ({"absent": "missing"}, np.nan), ({"sparse": True}, 0)])
def test_all_parts_of_a_fold_have_the_same_features(tmp_path, options, filler):
    put(tmp_path / "train.txt", 1, features=5)
    put(tmp_path / "test.txt", 2, features=3)
    (fold,) = podium.data.datasets.folds(tmp_path, **options)
    assert fold.train.n_features == fold.test.n_features == 5
    assert np.array_equal(fold.test.feature(4), [filler], equal_nan=True)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="is not a folder"):
        podium.data.datasets.folds(tmp_path / "none")
    with pytest.raises(FileFormatError, match="has no folds"):
        podium.data.datasets.folds(tmp_path)
    with pytest.raises(DataError, match="parts must be"):
        podium.data.datasets.folds(tmp_path, parts="x")
    (tmp_path / "Fold1").mkdir()
    with pytest.raises(FileFormatError, match="Fold1: has no training data"):
        podium.data.datasets.folds(tmp_path)
    put(tmp_path / "Fold1" / "train.txt", 1)
    put(tmp_path / "Fold1" / "train.txt.gz", 1)
    with pytest.raises(FileFormatError, match="keep one of them"):
        podium.data.datasets.folds(tmp_path)


def test_other_files_are_ignored_but_two_for_one_role_are_refused(tmp_path):
    put(tmp_path / "train.txt", 1)
    (tmp_path / "README.txt").write_text("hello")
    (tmp_path / "README.dat").write_text("hello")
    assert len(podium.data.datasets.folds(tmp_path)) == 1
    put(tmp_path / "vali.txt", 2)
    put(tmp_path / "valid.txt", 3)
    with pytest.raises(FileFormatError, match="keep one of them"):
        podium.data.datasets.folds(tmp_path)


def test_real_folds(real_data):
    sizes = {
        "mq2008": [fold.test.n_queries for fold in podium.data.datasets.folds(real_data / "mq2008")],
        "ohsumed": [fold.test.n_queries for fold in podium.data.datasets.folds(real_data / "ohsumed", parts="ohsumed")],
    }
    assert sizes == {"mq2008": [156, 157, 157, 157, 157], "ohsumed": [22, 21, 21, 21, 21]}
