"""A constant model causes one warning, with the reason and the remedy."""

import warnings

import numpy as np
import pytest

from podium import MART, Committee, DataError, LambdaMART, LinearRanker, PodiumWarning, RankingData, RankNetTrees
from podium.objectives import ListNet, Preferences, QueryRegression

RNG = np.random.default_rng(3)
X = RNG.random((120, 3)).astype(np.float32)
Y = RNG.integers(0, 3, 120)
QID = np.repeat(np.arange(12), 10)
RANKERS = {
    "trees": lambda: LambdaMART(4, min_documents_in_leaf=5),
    "pairs": lambda: RankNetTrees(4, min_documents_in_leaf=5),
    "lists": lambda: LambdaMART(4, min_documents_in_leaf=5, objective=ListNet()),
    "regression": lambda: LambdaMART(4, min_documents_in_leaf=5, objective=QueryRegression()),
    "linear": lambda: LinearRanker(n_iterations=5),
    "ascent": lambda: LinearRanker(n_iterations=2, method="ascent"),
    "committee": lambda: Committee(n_trees=2, min_documents_in_leaf=5),
}


def fitted(ranker, *data, said, **options):
    """Return the model and the message, after exactly one warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker.fit(*data, **options)
    messages = [str(w.message) for w in caught if issubclass(w.category, PodiumWarning)]
    assert len(messages) == 1, messages
    assert said in messages[0]
    return ranker, messages[0]


@pytest.mark.parametrize("kind", RANKERS)
def test_labels_without_differences(kind):
    make = RANKERS[kind]
    fitted(make(), X, np.ones(120), qid=QID, said="all labels 'relevance' are equal (1)")
    by_query = QID % 3
    _, message = fitted(make(), X, by_query, qid=QID, said="only differ between queries")
    assert "train MART" in message
    if kind != "ascent":  # constant measures have no sweep
        fitted(make(), X, Y, qid=np.arange(120), said="only one document")


@pytest.mark.parametrize("kind", RANKERS)
def test_no_labels_at_all(kind):
    with pytest.raises(DataError, match=r"needs labelled documents|needs labels: the source 'relevance' has none"):
        RANKERS[kind]().fit(RankingData(X, np.full(120, np.nan), qid=QID))


def test_nets():
    pytest.importorskip("torch")
    from podium import RankNet

    fitted(RankNet(epochs=1), X, np.ones(120), qid=QID, said="all labels 'relevance' are equal")
    fitted(RankNet(epochs=1), np.ones((120, 2)), Y, qid=QID, said="every feature is constant")


def test_too_few_documents():
    _, message = fitted(LambdaMART(4), X[:30], Y[:30], qid=QID[:30], said="2 · min_documents_in_leaf = 40 documents")
    assert "there are only 30: lower min_documents_in_leaf" in message
    rare = (np.arange(120) < 10)[:, None].astype(float)
    fitted(LambdaMART(4), rare, Y, qid=QID, said="no split of any feature")


def test_constant_features():
    constant = np.ones((120, 2))
    fitted(LambdaMART(4), constant, Y, qid=QID, said="every feature is constant")
    fitted(LinearRanker(), constant, Y, qid=QID, said="every feature is constant")
    from scipy.sparse import csr_array

    fitted(LambdaMART(4), csr_array(constant), Y, qid=QID, said="every feature is constant")


def test_regression_without_queries():
    fitted(MART(4), X, np.full(120, 0.1), said="all labels 'relevance' are equal (0.1)")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PodiumWarning)
        MART(4).fit(X, Y)
        MART(4, min_documents_in_leaf=5).fit(X, Y, qid=np.arange(120))  # queries do not matter to it


def test_on_top_of_a_submodel():
    model, message = fitted(
        LambdaMART(4, submodel={0: 1.0}), X, np.ones(120), qid=QID, said="nothing was learnt on top of the submodel"
    )
    assert np.array_equal(np.argsort(model.predict(X)), np.argsort(X[:, 0]))
    assert "all labels" in message


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_of_a_submodel_that_leave_no_curvature(sign):
    """In the wrong order, λ remains but w vanishes: without l2, trees have splits, and every leaf is 0."""
    ranker = LambdaMART(3, min_documents_in_leaf=2, submodel=1e4 * sign * Y, submodel_scale=1.0, l2=0.0)
    _, message = fitted(ranker, X, Y, qid=QID, said="nothing was learnt on top of the submodel")
    assert "submodel_scale='fit'" in message


def test_preferences_are_not_checked_for_equal_labels():
    data = RankingData(X[:30], qid=QID[:30], preferences=([0, 1, 2], [3, 4, 5], [0.5] * 3))
    fitted(LambdaMART(2, objective=Preferences()), data, said="min_documents_in_leaf")


def test_models_that_learn_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PodiumWarning)
        for kind in ("trees", "linear", "ascent"):
            RANKERS[kind]().fit(X, Y, qid=QID)


@pytest.mark.parametrize("kind", RANKERS)
def test_weights_that_leave_nothing_to_learn(kind):
    for weights in ({"sample_weight": np.zeros(120)}, {"query_weight": np.zeros(12)}):
        with pytest.raises(DataError, match="all weights are zero"):
            RANKERS[kind]().fit(X, Y, qid=QID, **weights)
    if kind in ("lists", "ascent"):  # documents of weight 0 still compete with the others of their list
        return
    said = f"among the {(Y == 1).sum()} documents with a weight above 0, all labels 'relevance' are equal (1)"
    fitted(RANKERS[kind](), X, Y, qid=QID, sample_weight=(Y == 1).astype(float), said=said)


def test_more_names_of_categories_than_a_model_file_takes(monkeypatch):
    monkeypatch.setattr("podium.models.base.ROOM_FOR_NAMES", 2000)
    names = np.array([f"user-{k:06}" for k in range(120)], object)
    data = RankingData(np.column_stack([X.astype(object), names]), Y, qid=QID, categorical=[3])
    for ranker in (LambdaMART(2), MART(2), LinearRanker(n_iterations=2)):
        with pytest.raises(DataError, match="feature 3 has 120 categories; drop it, merge rare categories"):
            ranker.fit(data)
    names[:] = "one"
    LambdaMART(2).fit(RankingData(np.column_stack([X.astype(object), names]), Y, qid=QID, categorical=[3]))
