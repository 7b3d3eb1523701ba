"""Splits and folds by query."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import GridSearchCV, cross_validate

import podium
from podium import DataError, QueryKFold, RankingData


def data_of(qid):
    return RankingData(np.arange(len(qid))[:, None], qid=qid)


@given(st.lists(st.integers(0, 30), min_size=40, max_size=80), st.integers(0, 3))
def test_parts_cover_all_queries_once_and_ignore_row_order(qid, seed):
    qid = [*qid, 31, 32, 33, 34]  # enough queries that no part is empty
    parts = data_of(qid).split(0.5, 0.25, 0.25, seed=seed)
    queries = [set(part.qid.tolist()) for part in parts]
    assert set.union(*queries) == set(qid)
    assert sum(len(q) for q in queries) == len(set(qid))
    shuffled = np.random.default_rng(seed).permutation(qid)
    assert [set(part.qid.tolist()) for part in data_of(shuffled).split(0.5, 0.25, 0.25, seed=seed)] == queries
    text = [str(q) for q in qid]
    assert [{int(q) for q in p.qid} for p in data_of(text).split(0.5, 0.25, 0.25, seed=seed)] == queries


def test_another_seed_gives_another_split():
    data = podium.artificial(40, documents=2, features=2)
    assert set(data.split(0.5, 0.5)[0].qid) != set(data.split(0.5, 0.5, seed=1)[0].qid)


def test_folds_test_each_query_once():
    data = podium.artificial(23, documents=(1, 4), features=2)
    folds = data.k_fold(5)
    assert sorted(q for _, test in folds for q in test.query_ids) == sorted(data.query_ids)
    for train, test in folds:
        assert not set(train.qid) & set(test.qid)
        assert train.n_queries + test.n_queries == 23
        assert test.n_queries in (4, 5)


@pytest.mark.parametrize("fractions", [(), (1.0,), (0.5, 0.6), (1.2, -0.2), (0.999, 0.001)])
def test_invalid_fractions(fractions):
    with pytest.raises(DataError):
        podium.artificial(10, documents=2, features=2).split(*fractions)


def test_scikit_learn_uses_the_splitter():
    data = podium.artificial(30, documents=4, features=3)
    cv = QueryKFold(3)
    for train, test in cv.split(data.features, groups=data.qid):
        assert not set(data.qid[train]) & set(data.qid[test])
        assert len(train) + len(test) == data.n_documents
    scores = cross_validate(DummyRegressor(), data.features, data.relevance, groups=data.qid, cv=cv)
    assert len(scores["test_score"]) == cv.get_n_splits() == 3
    search = GridSearchCV(DummyRegressor(), {"strategy": ["mean", "median"]}, cv=cv)
    search.fit(data.features, data.relevance, groups=data.qid)
    with pytest.raises(DataError, match="groups=qid"):
        next(cv.split(data.features))
    with pytest.raises(DataError, match="n_splits must be between 2"):
        next(QueryKFold(31).split(data.features, groups=data.qid))


def test_metadata_routing_passes_the_groups():
    import sklearn

    data = podium.artificial(12, documents=3, features=2)
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            DummyRegressor(), data.features, data.relevance, cv=QueryKFold(3), params={"groups": data.qid}
        )
    assert len(result["test_score"]) == 3
