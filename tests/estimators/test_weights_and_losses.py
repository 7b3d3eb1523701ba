"""Weighted documents count like repeated ones, and models of single documents stop by their loss."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

import podium
from podium import MART, DataError, LambdaMART, MARTClassifier, McRank, PodiumWarning, RankingData
from podium.measures.losses import RMSE, ErrorRate, LogLoss

ALL = {"n_trees": 5, "n_leaves": 5, "min_documents_in_leaf": 1, "split_fraction": 1.0}


def rows(seed: int, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of few values, labels 0 to 2, and whole weights from 0 to 3."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, (n, 3)).astype(np.float32)
    y = np.clip(X[:, 0] // 3 + rng.integers(-1, 2, n), 0, 2).astype(float)
    y[:3] = [0, 1, 2]
    weights = rng.integers(0, 4, n)
    weights[:3] = 1
    return X, y, weights


MODELS = {
    "MART": (lambda: MART(**ALL), lambda y: y + 0.125),
    "newton": (lambda: MART(**ALL, split="newton"), lambda y: y + 0.3 * np.sin(np.arange(len(y)))),
    "MARTClassifier": (lambda: MARTClassifier(**ALL), lambda y: y > 0),
    "balanced": (lambda: MARTClassifier(**ALL, balanced=True), lambda y: y > 0),
}


def assert_same_trees(model, other):
    assert model.n_trees == other.n_trees
    for a, b in ((model.tree(k), other.tree(k)) for k in range(model.n_trees)):
        assert np.array_equal(a.feature, b.feature)
        assert np.array_equal(a.threshold, b.threshold)
        assert np.allclose(a.leaf_value, b.leaf_value, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore::podium.PodiumWarning")
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=12)
@given(seed=st.integers(0, 1000))
def test_weights_are_repetitions(name, seed):
    X, y, weights = rows(seed)
    make, labels = MODELS[name]
    weighted = make().fit(X, labels(y), sample_weight=weights)
    repeated = make().fit(np.repeat(X, weights, axis=0), np.repeat(labels(y), weights))
    assert_same_trees(weighted.model_, repeated.model_)


@pytest.mark.filterwarnings("ignore::podium.PodiumWarning")
def test_weights_are_repetitions_in_classes_and_of_whole_queries():
    X, y, weights = rows(4)
    qid = np.arange(len(y)) // 8
    weighted = McRank(**ALL).fit(X, y, qid=qid, sample_weight=weights)
    rest = [np.repeat(part, weights, axis=0) for part in (X, y, qid)]
    assert_same_trees(weighted.trees_, McRank(**ALL).fit(rest[0], rest[1], qid=rest[2]).trees_)
    by_query = np.array([2.0, 1.0, 0.0, 3.0, 1.0])
    weighted = LambdaMART(**ALL, objective="regression", split="least-squares", l2=0.0).fit(
        X, y, qid=qid, query_weight=by_query
    )
    assert_same_trees(weighted.model_, MART(**ALL).fit(X, y, sample_weight=by_query[qid]).model_)


def test_equal_weights_change_nothing():
    X, y, _ = rows(1)
    assert MART(**ALL).fit(X, y).digest() == MART(**ALL).fit(X, y, sample_weight=np.ones(len(y))).digest()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda: MART(**ALL),
        pytest.param(
            lambda: MARTClassifier(**ALL),
            marks=pytest.mark.skipif(
                sklearn.__version__.startswith("1.6."),
                reason="it chooses the two classes by the first row, after it has shuffled the rows",
            ),
        ),
    ],
)
def test_scikit_learns_checks_of_weights(make):
    model = make()
    check_sample_weight_equivalence_on_dense_data(type(model).__name__, model)
    check_sample_weight_equivalence_on_sparse_data(type(model).__name__, model)


def test_thinned_splits_respect_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)).astype(np.float32)
    y = np.where(np.arange(3000) < 300, X[:, 0] > 0, X[:, 1] > 0).astype(float)
    weights = np.where(np.arange(3000) < 300, 1000.0, 0.001)
    model = MART(n_trees=1, n_leaves=2, split_fraction=0.5).fit(X, y, sample_weight=weights)
    assert model.model_.tree(0).feature[0] == 0


def noisy(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    return X, X[:, 0] + rng.normal(size=n)


def test_a_regressor_stops_by_its_error():
    X, y = noisy(0, 200)
    U, v = noisy(1, 100)
    weights = np.random.default_rng(2).integers(0, 3, 100)
    model = MART(200, 8, 0.3, patience=10).fit(X, y, eval_set=(U, v, None, weights))
    history = model.history_["eval/rmse"]
    assert list(model.history_) == ["eval/rmse"]
    assert model.best_iteration_ == int(np.argmin(history))
    assert len(history) == model.best_iteration_ + 11  # patience
    expected = np.sqrt(np.average((v - model.predict(U)) ** 2, weights=weights))
    assert min(history) == pytest.approx(expected, rel=1e-6)
    assert MART(5, 8).fit(X, y, eval_set=(U, v)).history_["eval/rmse"]
    assert (
        "eval/ndcg@10" in MART(2, 8).fit(X, y - y.min(), qid=np.zeros(200), eval_set=(U, v - v.min(), v * 0)).history_
    )


@pytest.mark.parametrize("balanced", [False, True])
def test_a_classifier_stops_by_its_loss(balanced):
    X, y = noisy(0, 300)
    U, v = noisy(1, 200)
    y, v = np.where(y > 0.7, "yes", "no"), np.where(v > 0.7, "yes", "no")
    model = MARTClassifier(150, 8, 0.3, patience=8, sigma=0.5, balanced=balanced).fit(X, y, eval_set=[(U, v, None)])
    history = model.history_["eval/log_loss"]
    assert model.best_iteration_ == int(np.argmin(history)) < len(history) - 1
    chance = model.predict_proba(U)[np.arange(200), (v == "yes").astype(int)]
    weights = np.where(v == "yes", 1 / (v == "yes").sum(), 1 / (v == "no").sum()) if balanced else None
    assert min(history) == pytest.approx(np.average(-np.log(chance), weights=weights), rel=1e-9)


def test_a_classifier_is_watched_by_its_error_rate():
    """[B] 6.1: FP/2n₋ + FN/2n₊, and the share of errors."""
    X, y = noisy(0, 300)
    U, v = noisy(1, 200)
    y, v = y > 1.2, v > 1.2  # unbalanced
    rates = [ErrorRate(), ErrorRate(balanced=True)]
    model = MARTClassifier(20, 8, 0.3, balanced=True, metrics=rates).fit(X, y, eval_set=(U, v))
    predicted = model.predict(U)
    false_positives, false_negatives = (predicted & ~v).sum(), (~predicted & v).sum()
    assert false_positives != false_negatives
    at = model.best_iteration_
    assert model.history_["eval/error_rate"][at] == pytest.approx((predicted != v).mean())
    balanced = false_positives / (2 * (~v).sum()) + false_negatives / (2 * v.sum())
    assert model.history_["eval/balanced_error_rate"][at] == pytest.approx(balanced)
    assert balanced == pytest.approx(1 - balanced_accuracy_score(v, predicted))
    weights = np.arange(200) % 3
    rows = np.repeat(np.arange(200), weights)
    scores, labels = model.decision_function(U), v.astype(np.float64)
    weighted = [rate.loss(labels[weights > 0], scores[weights > 0], weights[weights > 0]) for rate in rates]
    repeated = [rate.loss(labels[rows], scores[rows], np.ones(len(rows))) for rate in rates]
    assert weighted == pytest.approx(repeated)


def test_losses_are_not_ranking_measures():
    data = RankingData(np.ones((2, 1)), [0, 1], qid=[1, 1])
    assert str(LogLoss(sigma=2.0, balanced=True)) == "log_loss"
    with pytest.raises(Exception, match="cannot be computed from labels by rank"):
        RMSE().value(np.ones(2))
    from podium.measures import Ranking

    assert np.isnan(RMSE().mean(Ranking(data.replace(relevance=[np.nan, np.nan]), np.zeros(2))))
    assert issubclass(PodiumWarning, UserWarning)


@pytest.mark.parametrize(
    "fit",
    [
        lambda data: podium.Ranker(n_trees=5, patience=2, verbose=0).fit(data),
        lambda data: podium.Committee(n_trees=5, verbose=0).fit(data),
        lambda data: podium.cross_validate(LambdaMART(n_trees=2, verbose=0), data),
        lambda data: podium.tune(LambdaMART(n_trees=2, verbose=0), data, n_trials=1),
    ],
    ids=["Ranker", "Committee", "cross_validate", "tune"],
)
@pytest.mark.parametrize("weigh", ["queries", "documents"])
def test_folds_are_refused_if_one_has_all_the_weight(fit, weigh):
    data = podium.artificial(20, features=4)
    of_queries = (np.arange(20) == 3).astype(float)
    weights = {"query_weights": of_queries, "document_weights": of_queries[data.query_of_row]}
    name = "query_weights" if weigh == "queries" else "document_weights"
    with pytest.raises(DataError, match=r"the only query with a positive weight is in one of the 5 folds.* valid"):
        fit(data.replace(**{name: weights[name]}))
