"""The committee: members, weights, one ensemble."""

import numpy as np
import pytest
from sklearn.base import clone

import podium
from podium import Committee, DataError, LambdaMART, Ranker
from podium.combining import deviation
from podium.core.random import seed_of
from podium.data.subsets import folds_by_content
from podium.measures import Ranking
from podium.objectives import Lambda, ListNet, Local

SMALL_TREES = {"n_trees": 8, "min_documents_in_leaf": 5}
SMALL = {"members": [("lambda(ndcg, normalize=true)", 2), (ListNet(), 1)], **SMALL_TREES}


@pytest.fixture(scope="module")
def parts():
    return [podium.artificial(60, documents=20, features=8, seed=3, part=part) for part in ("train", "valid", "test")]


def test_one_ensemble_of_weighted_members(parts, tmp_path):
    train, valid, test = parts
    model = Committee(**SMALL).fit(train, valid=valid)
    assert [name for name, _ in model.members_] == ['Lambda(measure="ndcg")', "ListNet()",
                                                     'Lambda(measure="ndcg")']  # fmt: skip
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
    other = int(seed_of("member", "ListNet()", 1) % np.uint64(1 << 30))
    for (objective, seed), weight in zip(
        ((Lambda("ndcg", normalize=True), 0), (ListNet(), other), (Lambda("ndcg", normalize=True), 1)), model.weights_,
        strict=True,
    ):  # fmt: skip
        member = LambdaMART(objective=objective, random_state=seed, **settings).fit(train, valid=valid)
        expected += weight * member.predict(test) / deviation(train, member.predict(train)) / 3
    assert np.allclose(model.predict(test), expected)
    model.save(tmp_path / "m.podium")
    assert np.array_equal(podium.load(tmp_path / "m.podium").predict(test.features), model.predict(test))
    assert clone(model).get_params()["n_trees"] == 8
    assert model.values_["committee"] == pytest.approx(model.score(valid), abs=0.02)


def test_the_search_raises_the_measure_and_shrinkage_goes_back(parts, monkeypatch):
    train, valid, _ = parts
    equal = Committee(**SMALL, cycles=0).fit(train, valid=valid)
    assert set(equal.weights_) == {1.0}
    best = Committee(**SMALL, shrinkage=1.0).fit(train, valid=valid)
    assert best.values_["committee"] >= equal.values_["committee"] == best.values_["equal weights"]
    monkeypatch.setattr(
        "podium.boosting.committee.CommitteeRun._value", lambda *_: 0.0
    )  # none are worse than equal ones
    half = Committee(**SMALL, shrinkage=0.5).fit(train, valid=valid)
    assert half.weights_ == pytest.approx([1 + 0.5 * (w - 1) for w in best.weights_])
    usual = Committee(**SMALL).fit(train, valid=valid)
    assert usual.weights_ == pytest.approx([1 + 60 / 1060 * (w - 1) for w in best.weights_])


def test_weights_are_equal_if_others_would_lower_the_measure(parts, monkeypatch):
    train, valid, _ = parts
    equal = Committee(**SMALL, cycles=0).fit(train, valid=valid)
    outcomes = set()
    for found in ([3.0, 0.0], [0.0, 3.0], [1.0, 0.9]):
        monkeypatch.setattr("podium.boosting.committee.ascend", lambda *_, found=found: (found, None))
        model = Committee(**SMALL, shrinkage=1.0).fit(train, valid=valid)
        assert model.values_["committee"] >= equal.values_["committee"]
        outcomes.add(set(model.weights_) == {1.0})
    assert True in outcomes


def test_all_features_if_the_first_objective_is_clearly_better_with_them(parts):
    features = np.random.default_rng(0).normal(size=(480, 2)).astype(np.float32)
    data = podium.RankingData(features, features.prod(axis=1) > 0, qid=np.repeat(np.arange(40), 12))
    model = Committee(**SMALL_TREES, members=[("lambda(ndcg)", 1)], n_folds=3).fit(data)
    assert model.feature_fraction_ == model.settings_["feature_fraction"] == 1.0
    assert Committee(**model.settings_).fit(data).digest() == model.digest()
    assert Committee(**SMALL).fit(parts[0], valid=parts[1]).feature_fraction_ == 0.5


def test_each_fold_validates_members_that_have_not_seen_it(parts):
    train, _, test = parts
    model = Committee(**SMALL | {"members": [(ListNet(), 1)]}, n_folds=3).fit(train)
    assert len(model.members_) == len(model.weights_) == 3
    fold = folds_by_content(train, 3, 0)
    expected, unseen = np.zeros(len(test)), np.zeros(len(train))
    settings = {"document_fraction": 0.7, "feature_fraction": 0.5, "split_fraction": 1.0, "n_trees": 8, "patience": 100}
    for k in range(3):
        seen, judging = train.select(fold != k), train.select(fold == k)
        member = LambdaMART(
            objective=ListNet(), learning_rate=0.05, min_documents_in_leaf=5, **settings
        ).fit(seen, valid=judging)  # fmt: skip
        size = deviation(seen, member.predict(seen))
        expected += member.predict(test) / size / 3
        unseen[fold[train.query_of_row] == k] = member.predict(judging) / size
    assert np.allclose(model.predict(test), expected)
    ranking = Ranking(train, unseen, base=train.canonical_order)
    assert model.values_["committee"] == pytest.approx(podium.NDCG(10).mean(ranking))
    assert model.model_.info["features_with_missing"] == []


def test_large_data_is_validated_on_one_fold(parts, monkeypatch):
    monkeypatch.setattr("podium.boosting.committee.MANY_QUERIES", 59)
    train = parts[0]
    fold = folds_by_content(train, 5, 0)
    model = Committee(**SMALL).fit(train)
    assert model.digest() == Committee(**SMALL).fit(train.select(fold != 0), valid=train.select(fold == 0)).digest()


def test_the_first_member_is_the_ranker(parts):
    train, valid, test = parts
    small = {"n_trees": 8, "min_documents_in_leaf": 5}
    model = Committee(**small, time_budget=1e-9).fit(train, valid=valid)
    ranker = Ranker(**small).fit(train, valid=valid)
    assert len(model.members_) == 1
    assert model.values_["committee"] == pytest.approx(ranker.score(valid))
    assert np.allclose(model.predict(test), ranker.predict(test) / deviation(train, ranker.predict(train)))


def test_neither_threads_nor_row_order_change_a_bit(parts):
    train = parts[0]
    shuffle = np.random.default_rng(0).permutation(len(train))
    first = Committee(**SMALL, n_threads=1).fit(train)
    other = Committee(**SMALL, n_threads=2).fit(train.take(shuffle))
    assert first.digest() == other.digest()
    assert Committee(**SMALL, random_state=5).fit(train).digest() != first.digest()


def test_a_time_budget_is_spent_where_it_pays(parts, monkeypatch):
    train, valid, _ = parts
    clock = iter(range(100_000))
    monkeypatch.setattr("podium.boosting.committee.time.perf_counter", lambda: float(next(clock)))
    members = [(objective, 1) for objective in ("lambda(ndcg, normalize=true)", "listnet", "xendcg", "pairwise")]
    model = Committee(members=members, **SMALL_TREES, feature_fraction=0.5, time_budget=75).fit(train, valid=valid)
    tried = model.tried_
    assert len({trial.objective for trial in tried[:4]}) == 4
    assert tried[0].kept
    best = tried[0].alone
    dropped = set()
    for trial in tried[1:]:
        assert trial.objective not in dropped
        assert trial.kept == (trial.together > best)
        best = max(best, trial.together)
        if not trial.kept:
            dropped.add(trial.objective)
    assert len(tried) > 4
    assert len(model.members_) == sum(trial.kept for trial in tried)
    assert model.values_["committee"] >= model.values_["equal weights"] == best >= tried[0].alone
    again = Committee(**model.settings_).fit(train, valid=valid)
    assert again.digest() == model.digest()
    assert [row[0] for row in model.tried_table().rows] == [trial.objective for trial in tried]


def test_a_small_budget_trains_the_first_objective_alone(parts):
    model = Committee(**SMALL, time_budget=1e-9, n_folds=2).fit(parts[0])
    assert [name for name, _ in model.members_] == ['Lambda(measure="ndcg")'] * 2
    assert Committee(**model.settings_).fit(parts[0]).digest() == model.digest()
    assert len(model.tried_) == 1


def test_equal_objectives_have_different_seeds(parts):
    members = [("listnet", 1), ("xendcg", 1), ("xendcg", 1)]
    model = Committee(**SMALL | {"members": members}).fit(parts[0], valid=parts[1])
    first, second = (model.values_[f"XENDCG() {k}"] for k in (1, 2))
    assert first != second


def test_invalid_arguments(parts):
    train = parts[0]
    for wrong, words in (
        ({"members": []}, "needs at least one member"), ({"members": 3}, "pairs of an objective"),
        ({"members": [("lambda", 0)]}, "whole number from 1"), ({"shrinkage": 2}, "at most 1"),
        ({"n_folds": 1}, "n_folds"), ({"members": [(3, 1)]}, "an objective and a number"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words):
            Committee(**wrong).fit(train)
    with pytest.raises(DataError, match="at least two queries"):
        Committee(**SMALL).fit(train.select([0]))
    assert Committee(members=[(Local(), 1)], n_trees=3, n_folds=2).fit(train)
