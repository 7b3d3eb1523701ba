"""Ensembles and their files: round trips, and refusals."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import podium
from podium import DataError, FileFormatError, LambdaMART
from podium.data.encoding import Encoding
from podium.models import Ensemble, load, save
from tests.models import hostile


@pytest.fixture(scope="module")
def data():
    generated = podium.artificial(40, documents=20, features=5)
    features = generated.features.copy()
    features[::7, 0] = np.nan
    features[:, 1] = np.round(features[:, 1] * 3)
    return generated.replace(features=features, feature_names=list("abcde"))


@pytest.fixture(scope="module")
def model(data):
    return LambdaMART(n_trees=6, n_leaves=5, categorical=["b"]).fit(data).model_


@pytest.fixture
def path(model, tmp_path):
    save(model, tmp_path / "m.podium")
    return tmp_path / "m.podium"


def test_a_file_keeps_everything(model, data, path, tmp_path):
    loaded = load(path)
    assert loaded.digest() == model.digest()
    assert np.array_equal(loaded.predict(data.features), model.predict(data.features))
    assert loaded.feature_names == tuple("abcde")
    assert loaded.info["parameters"]["n_leaves"] == 5
    save(loaded, tmp_path / "again.podium")
    assert (tmp_path / "again.podium").read_bytes() == path.read_bytes()


def test_an_ensemble_can_be_rebuilt_from_its_trees(model, data):
    again = Ensemble.of_trees([model.tree(k) for k in range(6)], 5, feature_names=model.feature_names)
    assert again.digest() == model.digest()
    assert np.array_equal(model.truncate(2).predict(data.features), model.predict(data.features, n_trees=2))
    assert model.truncate(0).predict(data.features).tolist() == [0.0] * len(data)
    assert model.leaves(data.features).shape == (len(data), 6)
    for wrong in (-1, 7):
        with pytest.raises(DataError, match="n_trees must be"):
            model.truncate(wrong)


def test_threads_do_not_change_scores(model, data):
    assert np.array_equal(model.predict(data.features, n_threads=1), model.predict(data.features, n_threads=3))


def test_dumps_as_text_and_json(model):
    text = model.dump()
    assert text.count("tree ") == 6
    assert " in [" in text
    trees = json.loads(model.dump("json"))["trees"]
    assert len(trees) == 6
    assert trees[0]["count"] == 800
    with pytest.raises(DataError, match="'text' or 'json'"):
        model.dump("xml")
    with pytest.raises(DataError, match="'gain' or 'count'"):
        model.importance("x")


def rewritten(path, change):
    """Change the header and the arrays of a file, and update the checksums."""
    header, arrays = hostile.unpacked(path)
    change(header, arrays)
    return hostile.write(path, header, arrays)


def set_entry(name, value, place=0):
    def change(header, arrays):
        arrays[name][place] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h, a: h.update(version=2), "version 2.*upgrade Podium"),
        (lambda h, a: h.update(version="x"), "version is invalid"),
        (lambda h, a: h.update(format="x"), "not a Podium model"),
        (lambda h, a: h.update(n_features=-1), "number of features"),
        (lambda h, a: h.update(feature_names=["a"]), "names of the features"),
        (lambda h, a: a.update({"left.npy": a["left.npy"].astype(np.float64)}), "must be a column of int32"),
        (lambda h, a: a.update({"left.npy": a["left.npy"][:-1]}), "must have the same length"),
        (lambda h, a: h.update(n_features=2**31 - 1, feature_names=None), "number of features"),
        (set_entry("leaf_value.npy", 1e308), "too large"),
        (lambda h, a: a["category.npy"].__setitem__(a["category.npy"] > 0, 0), "must belong to exactly one node"),
        (set_entry("feature.npy", 99), "feature is out of range"),
        (set_entry("left.npy", 99), "not its"),
        (set_entry("left.npy", 0), "comes before it"),
        (set_entry("right.npy", -99), "not its"),
        (set_entry("node_offsets.npy", 3), "node_offsets do not match"),
        (set_entry("category.npy", 99), "category is out of range"),
        (set_entry("leaf_value.npy", np.nan), "not finite"),
        (set_entry("threshold.npy", np.nan), "threshold is NaN"),
    ],
)
def test_hostile_files_are_refused(path, change, words):
    with pytest.raises(FileFormatError, match=words):
        load(rewritten(path, change))


def test_pickles_are_not_loaded(path):
    def change(header, arrays):
        arrays["left.npy"] = np.array([{"a": 1}], object)

    with pytest.raises(FileFormatError, match="must be a column of int32"):
        load(rewritten(path, change))


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(10000000000000000000000,)", "((("])
def test_arrays_that_claim_a_wrong_shape_are_refused(path, shape):
    text = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    column = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + b"\0" * 8
    rewritten(path, lambda header, arrays: arrays.update({"left.npy": column}))
    with pytest.raises(FileFormatError, match=r"is not an array|does not have the size that it claims"):
        load(path)


def test_damaged_files_are_refused(path, tmp_path):
    content = path.read_bytes()
    for damaged in (content[:-30], content[:100], b"", b"hello", content[:200] + b"\0" * 40 + content[240:]):
        (tmp_path / "b").write_bytes(damaged)
        with pytest.raises(FileFormatError):
            load(tmp_path / "b")
    with pytest.raises(FileFormatError, match="cannot be opened"):
        load(tmp_path / "none")
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr("x", "y")
    with pytest.raises(FileFormatError, match="no header"):
        load(tmp_path / "z")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(st.data())
def test_files_with_changed_bytes_are_refused_or_safe(path, data):
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = path.with_name("damaged")
    damaged.write_bytes(content)
    try:
        model = load(damaged)
    except FileFormatError:
        return
    assert np.isfinite(model.predict(np.zeros((3, model.n_features), np.float32))).all()


def test_categories_without_a_name_are_shown_by_their_numbers(model):
    nameless, half_named = (replace(model, encoding=Encoding({1: names})) for names in ((), ("zero", "one")))
    assert nameless.dump() == model.dump()
    assert "one" in half_named.dump()
