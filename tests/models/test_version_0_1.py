"""Files that version 0.1 wrote load, and score as they did then; see version_0_1/make.py."""

import json
from pathlib import Path

import numpy as np
import pytest

import podium

FOLDER = Path(__file__).parent / "version_0_1"
MODELS = sorted(path.stem for path in FOLDER.glob("*.podium"))
NETS = ("ranknet", "lambdarank", "lambdarank_without_names", "net_on_lists", "nested")


@pytest.fixture(scope="module")
def data():
    with np.load(FOLDER / "data.npz") as file:
        names = json.loads((FOLDER / "names.json").read_text("utf-8"))
        return podium.RankingData(file["features"], file["relevance"], qid=file["qid"], feature_names=names)


@pytest.fixture(scope="module")
def scores():
    with np.load(FOLDER / "scores.npz") as file:
        return dict(file)


def test_each_file_has_scores(scores):
    assert set(MODELS) == set(scores)
    assert len(MODELS) == 26


@pytest.mark.parametrize("name", MODELS)
def test_a_file_of_version_0_1_scores_as_it_did(name, data, scores, tmp_path):
    model = podium.load(FOLDER / f"{name}.podium")
    options = {"base_scores": data.features[:, 0].astype(np.float64)} if name == "started" else {}
    predicted = model.predict(data, n_threads=1, **options)
    if name in NETS:  # another version of torch, or another processor, may round differently
        assert np.allclose(predicted, scores[name], rtol=1e-6, atol=1e-6)
    else:
        assert np.array_equal(predicted, scores[name])
    podium.models.save(model, tmp_path / "again.podium")
    again = podium.load(tmp_path / "again.podium")
    assert again.digest() == model.digest()
    assert again.info == model.info


def test_the_files_cover_all_kinds():
    def loaded(name):
        return podium.load(FOLDER / f"{name}.podium")

    assert (loaded("stumps").arrays["node_offsets"] == 0).all()
    assert (loaded("categorical").arrays["category"] >= 0).any()
    assert loaded("categorical").arrays["missing_left"].any()
    assert isinstance(loaded("mcrank"), podium.models.ClassEnsemble)
    assert isinstance(loaded("started"), podium.models.TreesOnBaseScores)
    assert isinstance(loaded("nested").parts[0], podium.models.Combined)
    assert loaded("net_on_lists").sees_lists
    assert loaded("no_trees").n_trees == 0
    assert "fingerprint" in loaded("checkpoint").info
