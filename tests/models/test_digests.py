"""Models with equal digests give the same scores for any input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import podium
from podium.data.encoding import Encoding

FEW = {"n_trees": 3, "n_leaves": 4}


@pytest.fixture(scope="module")
def train():
    return podium.artificial(30, documents=15, features=3, seed=1).replace(feature_names=("a", "b", "c"))


@pytest.fixture(scope="module")
def models(train):
    trees = podium.LambdaMART(**FEW).fit(train).model_
    linear = podium.LinearRanker(n_iterations=3).fit(train).model_
    return {
        "trees": trees,
        "linear": linear,
        "classes": podium.McRank(**FEW).fit(train).model_,
        "ordinal": podium.PRank().fit(train).model_,
        "on base scores": podium.LambdaMART(**FEW, submodel=train.feature("a").astype(float), submodel_scale=0.5)
        .fit(train)
        .model_,
        "net": podium.RankNet(hidden=2, epochs=1).fit(train).model_,
    }


def changed(model, **schema):
    return (
        replace(model, **schema)
        if hasattr(model, "weights") or not hasattr(model, "trees")
        else replace(model, trees=replace(model.trees, **schema))
    )


@pytest.mark.parametrize("kind", ["trees", "linear", "classes", "ordinal", "on base scores", "net"])
def test_names_shifts_and_categories_are_part_of_the_digest(models, kind):
    model = models[kind]
    schemas = [
        {"feature_names": ("b", "a", "c")}, {"feature_names": None}, {"encoding": Encoding(shifts={0: 2.0})},
        {"encoding": Encoding(shifts={1: 2.0})}, {"encoding": Encoding({0: ("x", "y")})},
        {"encoding": Encoding({0: ("y", "x")})},
    ]  # fmt: skip
    digests = [changed(model, **schema).digest() for schema in schemas]
    assert len({model.digest(), *digests}) == 7
    assert changed(model, feature_names=("a", "b", "c")).digest() == model.digest()
    combined = podium.models.Combined((model, models["trees"]), (1.0, 2.0))
    assert podium.models.Combined(
        (changed(model, feature_names=("b", "a", "c")), models["trees"]), (1.0, 2.0)
    ).digest() != (combined.digest())


def test_models_that_score_a_frame_differently_differ(train, models):
    frame = pd.DataFrame(train.features, columns=["a", "b", "c"])
    swapped = replace(models["trees"], feature_names=("b", "a", "c"))
    assert not np.array_equal(models["trees"].predict(frame), swapped.predict(frame))
    assert models["trees"].digest() != swapped.digest()


def test_reading_options_are_part_of_the_digest(train, models):
    normalized = models["trees"].with_info(reading={"normalize": "zscore"})
    assert normalized.digest() != models["trees"].digest() == models["trees"].with_info(history={}).digest()


def test_a_loaded_model_has_the_same_digest(models, tmp_path):
    for model in models.values():
        model.save(tmp_path / "m.podium")
        assert podium.load(tmp_path / "m.podium").digest() == model.digest()
