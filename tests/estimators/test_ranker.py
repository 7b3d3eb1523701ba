"""Ranker: its objective, and the number of trees by cross-validation."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import podium
from podium import DataError, LambdaMART, PodiumWarning, Ranker
from podium.boosting import Boosting, RoundsByFolds, Sampling, rounds_by_folds
from podium.boosting.folds import _is_clear
from podium.data.subsets import folds_by_content
from podium.measures import Ranking
from podium.objectives import Lambda

pytestmark = pytest.mark.filterwarnings("ignore:the run ended with n_trees")
SMALL = {"n_trees": 24, "n_leaves": 6, "min_documents_in_leaf": 5, "patience": 6, "n_folds": 3}


@pytest.fixture(scope="module")
def data():
    return podium.artificial(40, documents=12, features=6, seed=4)


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(30, documents=12, features=6, seed=4, part="valid")


def test_with_validation_data_it_is_lambdamart_on_its_objective(data, valid):
    model = Ranker(**SMALL).fit(data, valid=valid)
    same = LambdaMART(
        24, 6, 0.05, min_documents_in_leaf=5, patience=6, document_fraction=0.7, feature_fraction=0.5,
        split_fraction=1.0, objective=model._objective(data),
    ).fit(data, valid=valid)  # fmt: skip
    assert model.digest() == same.digest()
    assert model.history_ == same.history_
    assert list(model.history_) == ["valid/ndcg@10"]
    assert clone(model).get_params() == model.get_params()


def test_its_objective_follows_the_measure(data):
    regression, lambdas = Ranker(measure="err(labels=clicks)@5")._objective(data).parts
    assert lambdas.trained_measure() == podium.ERR(20, labels="clicks")
    assert regression.labels == "clicks"


def test_large_data_gets_larger_trees_and_steps(data, monkeypatch):
    def settings(**parameters):
        model = Ranker(**parameters, n_trees=1, patience=None).fit(data)
        assert model.get_params()["n_leaves"] == parameters.get("n_leaves")
        with_defaults = model._with_defaults(len(data))
        return with_defaults.n_leaves, with_defaults.learning_rate

    assert settings() == (15, 0.05)
    monkeypatch.setattr("podium.estimators.ranker.MANY_DOCUMENTS", len(data) - 1)
    assert settings() == (31, 0.1)
    assert settings(n_leaves=7, learning_rate=0.2) == (7, 0.2)


def test_folds_depend_on_content_alone(data):
    shuffle = np.random.default_rng(0).permutation(len(data))
    renamed = podium.RankingData(data.features[shuffle], data.relevance[shuffle], qid=data.qid[shuffle] + 1000)
    ours, theirs = folds_by_content(data, 4, 1), folds_by_content(renamed, 4, 1)
    assert dict(zip((data.query_ids + 1000).tolist(), ours.tolist(), strict=True)) == dict(
        zip(renamed.query_ids.tolist(), theirs.tolist(), strict=True)
    )
    assert sorted(np.bincount(ours)) == [10, 10, 10, 10]
    assert (ours != folds_by_content(data, 4, 2)).any()


def test_the_curve_is_the_mean_over_queries_that_trees_have_not_seen(data):
    settings = Boosting(
        objective=Lambda(normalize=True),
        sampling=Sampling(document_fraction=0.7, seed=3),
        n_trees=24,
        patience=6,
        verbose=0,
    )
    result = rounds_by_folds(settings, data, 3)
    fold = folds_by_content(data, 3, 3)
    curve = result.history["folds/ndcg@10"]
    expected = np.zeros(len(curve))
    for k in range(3):
        alone = Boosting(
            objective=Lambda(normalize=True),
            sampling=Sampling(document_fraction=0.7, seed=3),
            n_trees=len(curve),
            verbose=0,
        ).fit(data.select(fold != k), {"v": data.select(fold == k)})
        expected += np.array(alone.history["v/ndcg@10"]) * (fold == k).sum() / len(fold)
    assert curve == pytest.approx(expected.tolist(), abs=1e-12)
    assert result.best_iteration == int(np.argmax(curve))
    assert len(curve) in (20, 24)
    assert len(curve) == 24 or len(curve) - 1 - result.best_iteration >= 6


def test_without_validation_data_all_data_is_trained_on(data):
    model = Ranker(**SMALL).fit(data)
    assert model.n_trees_ == model.best_iteration_ + 1
    assert model.history_["folds/ndcg@10"][model.best_iteration_] == max(model.history_["folds/ndcg@10"])
    whole = Ranker(**SMALL | {"n_trees": model.n_trees_, "patience": None}).fit(data)
    assert model.digest() == whole.digest()
    shuffle = np.random.default_rng(1).permutation(len(data))
    again = Ranker(**SMALL, n_threads=2).fit(data.take(shuffle))
    assert again.digest() == model.digest()
    assert again.history_ == model.history_
    assert Ranker(**SMALL, random_state=1).fit(data).digest() != model.digest()
    (of_many,) = podium.fit_many([Ranker(**SMALL)], data)
    assert of_many.digest() == model.digest()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_much_data_is_stopped_by_one_fold(data, monkeypatch, n_threads):
    monkeypatch.setattr("podium.boosting.folds.JUDGING_QUERIES", 10)
    model = Ranker(**SMALL, n_threads=n_threads).fit(data)
    fold = folds_by_content(data, 3, 0)
    first = Ranker(**SMALL | {"patience": None}).fit(data.select(fold != 0), valid=data.select(fold == 0))
    n = len(model.history_["folds/ndcg@10"])
    assert model.history_["folds/ndcg@10"] == first.history_["valid/ndcg@10"][:n]


def test_large_data_holds_a_fold_out(data, monkeypatch):
    monkeypatch.setattr("podium.boosting.folds.JUDGING_QUERIES", 10)
    monkeypatch.setattr("podium.estimators.ranker.MANY_DOCUMENTS", len(data) - 1)
    settings = SMALL | {"n_leaves": 6, "learning_rate": 0.05}
    model = Ranker(**settings).fit(data)
    fold = folds_by_content(data, 3, 0)
    stopped = Ranker(**settings).fit(data.select(fold != 0), valid={"folds": data.select(fold == 0)})
    assert model.digest() == stopped.digest()
    assert model.history_ == stopped.history_
    assert list(model.history_) == ["folds/ndcg@10"]
    shuffled = data.take(np.random.default_rng(1).permutation(len(data)))
    assert Ranker(**settings).fit(shuffled).digest() == model.digest()


def test_graded_measures_and_few_queries(data):
    model = Ranker(**SMALL | {"n_folds": 2}, measure="ndcg@3>ap~0.01").fit(data)
    assert list(model.history_) == ["folds/ndcg@3", "folds/ap"]
    few = podium.artificial(3, documents=30, features=4)
    assert Ranker(**SMALL | {"n_folds": 5}).fit(few).n_trees_ >= 1
    with pytest.raises(DataError, match="cross-validation needs at least two queries"):
        Ranker(**SMALL).fit(few.select([0]))
    with pytest.raises(DataError, match="n_folds"):
        Ranker(n_folds=1).fit(data)


def test_progress_counts_no_more_trees_than_there_are(data, capsys):
    rounds_by_folds(Boosting(objective=Lambda(), n_trees=24, verbose=20), data, 2)
    assert "24 of 24 rounds, folds/ndcg@10" in capsys.readouterr().err


def test_trees_that_end_early_keep_their_value(data):
    """From equal labels nothing can be learnt; every run and cross-validation still end."""
    flat = data.replace(relevance=np.ones(len(data)))
    settings = Boosting(objective=Lambda(), n_trees=50, verbose=0)
    assert rounds_by_folds(settings, flat, 2) == RoundsByFolds(0, {"folds/ndcg@10": [1.0] * 20}, 1.0)
    with pytest.warns(podium.PodiumWarning, match="same score"):
        assert Ranker(**SMALL).fit(flat).n_trees_ == 1


@pytest.fixture(scope="module")
def products():
    """Labels that no tree can learn from one of the two features alone."""

    def data(seed):
        features = np.random.default_rng(seed).normal(size=(480, 2)).astype(np.float32)
        return podium.RankingData(features, features.prod(axis=1) > 0, qid=np.repeat(np.arange(40), 12))

    return data(0), data(1)


@pytest.mark.parametrize("kind", ["products", "data"])
def test_all_features_are_used_if_they_are_clearly_better_on_unseen_queries(kind, request, monkeypatch):
    monkeypatch.setattr("podium.boosting.folds.TRIED_ROUNDS", 10)
    fixture = request.getfixturevalue(kind)
    data = fixture[0] if kind == "products" else fixture
    fold, gains = folds_by_content(data, 3, 0), []
    for k in range(3):
        seen, unseen = data.select(fold != k), data.select(fold == k)
        settings = {"n_trees": 10, "n_leaves": 6, "learning_rate": 0.05, "min_documents_in_leaf": 5}
        half, whole = (
            LambdaMART(**settings, document_fraction=0.7, split_fraction=1.0, objective=Ranker()._objective(data),
                       feature_fraction=share).fit(seen).predict(unseen)
            for share in (0.5, 1.0)
        )  # fmt: skip
        values = [
            podium.NDCG(10).values(Ranking(unseen, scores, base=unseen.canonical_order)) for scores in (half, whole)
        ]
        gains += (values[1] - values[0]).tolist()
    is_clear = np.mean(gains) > 2.5 * np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert is_clear == (kind == "products")
    model = Ranker(**SMALL).fit(data)
    assert model.feature_fraction_ == (1.0 if is_clear else 0.5)
    assert model.feature_fraction is None
    same = Ranker(**SMALL, feature_fraction=model.feature_fraction_).fit(data)
    assert model.digest() == same.digest()
    assert model.history_ == same.history_


def test_validation_data_decides_the_share_of_features(products):
    train, valid = products
    model = Ranker(**SMALL).fit(train, valid=valid)
    assert model.feature_fraction_ == 1.0
    assert model.digest() == Ranker(**SMALL, feature_fraction=1.0).fit(train, valid=valid).digest()
    assert Ranker(**SMALL | {"patience": None, "n_trees": 2}).fit(train).feature_fraction_ == 0.5


def test_gains_are_clear_by_their_standard_error():
    assert _is_clear(np.array([1.0, 1.1, 0.9, np.nan]))
    gains = np.array([1.0, 1.1, 0.9, np.nan, -9.0])
    assert not _is_clear(gains)
    assert _is_clear(gains, np.array([1.0, 1.0, 1.0, 1.0, 0.001]))
    assert not _is_clear(np.array([1.0, -1.0, 0.5]))
    assert not _is_clear(np.array([0.0, 0.0]))
    assert not _is_clear(np.array([1.0]))
    assert not _is_clear(-np.ones(3))


def test_a_run_that_uses_all_trees_warns(data, valid):
    for sets in ({}, {"valid": valid}):
        with pytest.warns(PodiumWarning, match=r"the run ended with n_trees=8, and \d trees were best so far"):
            Ranker(**SMALL | {"n_trees": 8}).fit(data, **sets)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Ranker(**SMALL | {"n_trees": 6}).fit(data, **sets)  # patience could not have ended it
            Ranker(**SMALL | {"n_trees": 8, "patience": None}).fit(data, **sets)
            Ranker(**SMALL | {"n_trees": 400}).fit(data, **sets)


def test_few_trees_are_a_choice_and_the_best_of_them_is_kept(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Ranker(**{**SMALL, "n_trees": 6}).fit(data)  # as many as patience
    curve = model.history_["folds/ndcg@10"]
    assert len(curve) == 6
    assert model.n_trees_ == int(np.argmax(curve)) + 1
