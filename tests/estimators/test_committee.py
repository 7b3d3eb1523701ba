"""The committee: members, weights, one ensemble."""

import numpy as np
import pytest
from sklearn.base import clone

import podium
from podium import Committee, DataError, LambdaMART
from podium.combining import deviation
from podium.objectives import Lambda, ListNet, Local

SMALL = {"members": [("lambda(ndcg, normalize=true)", 2), (ListNet(), 1)], "n_trees": 8, "min_documents_in_leaf": 5}


@pytest.fixture(scope="module")
def parts():
    return [podium.artificial(60, documents=20, features=8, seed=3, part=part) for part in ("train", "valid", "test")]


def test_one_ensemble_of_weighted_members(parts, tmp_path):
    train, valid, test = parts
    model = Committee(**SMALL).fit(train, valid=valid)
    assert [name for name, _ in model.members_] == ['Lambda(measure="ndcg", normalize=true)', "ListNet()",
                                                     'Lambda(measure="ndcg", normalize=true)']  # fmt: skip
    assert model.n_trees_ == sum(trees for _, trees in model.members_)
    settings = {
        "document_fraction": 0.7,
        "feature_fraction": 0.5,
        "split_fraction": 1.0,
        "n_trees": 8,
        "learning_rate": 0.05,
        "min_documents_in_leaf": 5,
        "patience": 100,
    }
    expected = np.zeros(len(test))
    for (objective, seed), weight in zip(
        ((Lambda("ndcg", normalize=True), 0), (ListNet(), 1000), (Lambda("ndcg", normalize=True), 1)), model.weights_,
        strict=True,
    ):  # fmt: skip
        member = LambdaMART(objective=objective, random_state=seed, **settings).fit(train, valid=valid)
        expected += weight * member.predict(test) / deviation(train, member.predict(train)) / 3
    assert np.allclose(model.predict(test), expected)
    model.save(tmp_path / "m.podium")
    assert np.array_equal(podium.load(tmp_path / "m.podium").predict(test.features), model.predict(test))
    assert clone(model).get_params()["n_trees"] == 8
    assert model.values_["committee"] == pytest.approx(model.score(valid), abs=0.02)


def test_the_search_raises_the_measure_and_shrinkage_goes_back(parts):
    train, valid, _ = parts
    equal = Committee(**SMALL, cycles=0).fit(train, valid=valid)
    assert set(equal.weights_) == {1.0}
    best = Committee(**SMALL, shrinkage=1.0).fit(train, valid=valid)
    assert best.values_["committee"] >= equal.values_["committee"] == best.values_["equal weights"]
    half = Committee(**SMALL, shrinkage=0.5).fit(train, valid=valid)
    assert half.weights_ == pytest.approx([1 + 0.5 * (w - 1) for w in best.weights_])
    usual = Committee(**SMALL).fit(train, valid=valid)
    assert usual.weights_ == pytest.approx([1 + 60 / 1060 * (w - 1) for w in best.weights_])


def test_neither_threads_nor_row_order_change_a_bit(parts):
    train = parts[0]
    shuffle = np.random.default_rng(0).permutation(len(train))
    one = Committee(**SMALL, n_threads=1).fit(train)
    other = Committee(**SMALL, n_threads=2).fit(train.take(shuffle))
    assert one.digest() == other.digest()
    assert Committee(**SMALL, random_state=5).fit(train).digest() != one.digest()


def test_a_time_budget_keeps_one_member_of_each(parts):
    model = Committee(**SMALL, time_budget=1e-9).fit(parts[0])
    assert len(model.members_) == 2


def test_what_makes_no_sense(parts):
    train = parts[0]
    for wrong, words in (
        ({"members": []}, "needs members"), ({"members": 3}, "pairs of an objective"),
        ({"members": [("lambda", 0)]}, "whole number from 1"), ({"shrinkage": 2}, "at most 1"),
        ({"validation": 1.0}, "between 0 and 1"), ({"members": [(3, 1)]}, "an objective and a number"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words):
            Committee(**wrong).fit(train)
    assert Committee(members=[(Local(), 1)], n_trees=3).fit(train)
