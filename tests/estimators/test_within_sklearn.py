"""scikit-learn's inspection and scorers with rankers, and folds that split queries."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import is_regressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate

import podium
from podium import DataError, LambdaMART, PodiumWarning, QueryKFold, RankingData
from podium.estimators import query_score

SMALL = {"n_trees": 8, "n_leaves": 6}


@pytest.fixture(scope="module")
def data():
    return podium.artificial(30, documents=20, features=5)


@pytest.fixture(scope="module")
def model(data):
    return LambdaMART(**SMALL).fit(data)


def test_partial_dependence(data, model):
    assert is_regressor(model)
    theirs = partial_dependence(model, data.features, [0], grid_resolution=10)
    for value, mean in zip(theirs["grid_values"][0], theirs["average"][0], strict=True):
        rows = data.features.copy()
        rows[:, 0] = value
        assert mean == pytest.approx(model.predict(rows).mean(), rel=1e-12)


def test_permutation_importance(data, model):
    scorer = make_scorer(query_score, qid=data.qid)
    result = permutation_importance(model, data.features, data.relevance, scoring=scorer, n_repeats=2, random_state=0)
    unused = model.feature_importances_ == 0
    assert (result.importances_mean[unused] == 0).all()
    assert result.importances_mean.max() > 0.01
    base = model.score(data)
    rows = data.features.copy()
    rows[:, 1] = np.random.default_rng(0).permutation(rows[:, 1])
    assert scorer(model, rows, data.relevance) < base
    frame = pd.DataFrame(data.features).add_prefix("f").assign(qid=data.qid)  # no scorer: `score` finds the queries
    named = LambdaMART(**SMALL).fit(frame, data.relevance)
    result = permutation_importance(named, frame, data.relevance, n_repeats=1, random_state=0)
    assert result.importances_mean[:5].max() > 0.01
    with pytest.raises(DataError, match=r"there are 300 labels, but qid has 600 rows.*set_score_request\(qid=True\)"):
        permutation_importance(model, data.features, data.relevance, scoring=scorer, max_samples=0.5)


def test_query_score_is_the_mean_over_queries(data, model):
    scores = model.predict(data)
    assert query_score(data.relevance, scores, qid=data.qid) == pytest.approx(model.score(data), rel=1e-12)
    table = podium.evaluate(data, scores, "err@5").means["err@5"]
    assert query_score(data.relevance, scores, qid=data.qid, measure="err@5") == pytest.approx(table, rel=1e-12)
    lists = [(data.relevance[data.qid == q], scores[data.qid == q]) for q in np.unique(data.qid)]
    theirs = [ndcg_score([2**labels - 1], [some], k=10) for labels, some in lists if labels.any()]
    assert query_score(data.relevance, scores, qid=data.qid) == pytest.approx(np.sum(theirs) / len(lists), rel=1e-9)


def test_scorers_get_queries_by_routing(data):
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(query_score, measure="ndcg@10").set_score_request(qid=True)
        common = {"cv": QueryKFold(3), "params": {"qid": data.qid}}
        by_scorer = cross_validate(LambdaMART(**SMALL), data.features, data.relevance, scoring=scorer, **common)
        by_score = cross_validate(LambdaMART(**SMALL), data.features, data.relevance, **common)
        assert by_scorer["test_score"] == pytest.approx(by_score["test_score"], rel=1e-12)
        others = cross_validate(Ridge(), data.features, data.relevance, scoring=scorer, **common)  # any estimator
    assert (others["test_score"] > 0).all()


class TestSplitQueries:
    @pytest.mark.parametrize("search", ["cross_validate", "GridSearchCV"])
    def test_a_plain_number_of_folds_is_noticed(self, data, search):
        X, y, qid = data.features[5:], data.relevance[5:], data.qid[5:]
        run = {
            "cross_validate": lambda: cross_validate(LambdaMART(**SMALL), X, y, cv=3, params={"qid": qid}),
            "GridSearchCV": lambda: GridSearchCV(LambdaMART(**SMALL), {"n_leaves": [2]}, cv=3).fit(X, y, qid=qid),
        }[search]
        with sklearn.config_context(enable_metadata_routing=True), pytest.warns(PodiumWarning) as caught:
            run()
        messages = [str(warning.message) for warning in caught]
        assert [message.partition(",")[0] for message in messages[:3]] == [
            "1 of 11 queries", "2 of 11 queries", "1 of 10 queries",
        ]  # fmt: skip
        assert all("Use cv=podium.QueryKFold(5)" in message for message in messages)

    def test_frames_without_routing(self, data):
        frame = pd.DataFrame(data.features).add_prefix("f").assign(qid=data.qid)
        with pytest.warns(PodiumWarning, match="were also in the training data"):
            cross_validate(LambdaMART(**SMALL), frame[5:], data.relevance[5:], cv=3)

    @pytest.mark.parametrize("cv", [QueryKFold(3), GroupKFold(3)])
    def test_folds_of_queries_are_silent(self, data, cv):
        with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
            warnings.simplefilter("error")
            params = {"qid": data.qid, "groups": data.qid}
            cross_validate(
                LambdaMART(**SMALL), data.features, data.relevance, cv=cv, params=params, return_train_score=True
            )

    def test_two_sets_may_number_their_queries_alike(self, model):
        other = podium.artificial(12, documents=15, features=5, part="test")
        for renumbered in (
            other,
            other.replace(qid=other.qid * 0 + 1),
            RankingData(other.features, other.relevance, qid=other.qid.astype(str)),
        ):
            model.score(renumbered)

    def test_folds_that_cut_most_queries_are_not_noticed(self, data):
        """Shuffled rows split nearly every query, like two data sets that number their queries in the same way."""
        with sklearn.config_context(enable_metadata_routing=True):
            cv = KFold(3, shuffle=True, random_state=0)
            cross_validate(LambdaMART(**SMALL), data.features, data.relevance, cv=cv, params={"qid": data.qid})

    def test_copies_do_not_remember(self, data):
        parts = [
            RankingData(data.features[rows], data.relevance[rows], qid=data.qid[rows])
            for rows in (slice(0, 305), slice(305, None))  # the 16th query is cut
        ]
        model = LambdaMART(**SMALL).fit(parts[0])
        with pytest.warns(PodiumWarning, match="1 of 15 queries, such as 16"):
            expected = model.score(parts[1])
        assert pickle.loads(pickle.dumps(model)).score(parts[1]) == expected
