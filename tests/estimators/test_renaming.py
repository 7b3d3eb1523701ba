"""Models depend on the content of documents, not on names or the order of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import (
    MART,
    Committee,
    LambdaMART,
    LambdaRank,
    LinearRanker,
    MARTClassifier,
    McRank,
    OrdinalMART,
    RankingData,
    RankNet,
    RankNetTrees,
    adapt,
)
from podium.data.canonical import ContentRandom, queries_by_content, query_keys
from podium.data.subsets import split_by_content

SAMPLED = {"n_trees": 4, "n_leaves": 5, "document_fraction": 0.7, "query_fraction": 0.7, "feature_fraction": 0.6}
NET = {"hidden": (3,), "epochs": 2, "batch_queries": 4}


def random_documents(seed: int, n_queries: int = 24) -> RankingData:
    """Return documents with few different features, so that some rows and some whole queries are equal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    features = rng.integers(0, 6, (len(qid), 4)).astype(np.float32)
    relevance = np.clip(features[:, 0] - rng.integers(0, 4, len(qid)), 0, 3).astype(np.float32)
    features = np.concatenate([features, features[qid == 1]])  # query 1 occurs twice
    relevance = np.concatenate([relevance, relevance[qid == 1]])
    qid = np.concatenate([qid, np.full((qid == 1).sum(), n_queries)])
    return RankingData(features, relevance, qid=qid, document_ids=np.arange(len(qid)))


def renamed(data: RankingData, seed: int) -> RankingData:
    """Return the same documents in another order and with other names."""
    rng = np.random.default_rng(seed)
    new = rng.permutation(10 * data.n_queries)[: data.n_queries]
    names = dict(zip(data.query_ids.tolist(), [f"q{number}" for number in new], strict=True))
    rows = rng.permutation(len(data))
    return RankingData(
        data.features[rows], data.relevance[rows],
        qid=[names[query] for query in data.qid[rows].tolist()],
        document_ids=rng.permutation(len(data)),
    )  # fmt: skip


MODELS = {
    "LambdaMART": lambda data: LambdaMART(**SAMPLED).fit(data),
    "LambdaMART by default": lambda data: LambdaMART(n_trees=4, min_documents_in_leaf=2).fit(data),
    "LambdaMART with XENDCG": lambda data: LambdaMART(**SAMPLED, objective="xendcg").fit(data),
    "LambdaMART with SoftRank": lambda data: LambdaMART(
        **SAMPLED, objective="softrank(exact_limit=3)", step="gradient"
    ).fit(data),
    "OrdinalMART": lambda data: OrdinalMART(**SAMPLED).fit(data),
    "LambdaMART with line search": lambda data: LambdaMART(**SAMPLED, step="line-search").fit(data),
    "RankNetTrees": lambda data: RankNetTrees(**SAMPLED).fit(data),
    "MART": lambda data: MART(**SAMPLED).fit(data),
    "MARTClassifier": lambda data: MARTClassifier(**SAMPLED).fit(data.replace(relevance=data.relevance > 1)),
    "McRank": lambda data: McRank(**SAMPLED).fit(data),
    "LinearRanker": lambda data: LinearRanker(n_iterations=3).fit(data),
    "LinearRanker by ascent": lambda data: LinearRanker(method="ascent", n_iterations=1).fit(data),
    "LambdaRank": lambda data: LambdaRank(**NET).fit(data),
    "LambdaRank with XENDCG": lambda data: LambdaRank(**NET, objective="xendcg").fit(data),
    "RankNet": lambda data: RankNet(**NET).fit(data),
    "Committee": lambda data: Committee(members=[("xendcg", 1), ("lambda(ndcg)", 1)], n_trees=3, patience=3).fit(data),
    "adapt": lambda data: adapt({0: 1.0}, data, n_trees=3, n_leaves=4, measure="ndcg@10").adapted,
}


@pytest.mark.parametrize("name", MODELS)
def test_names_and_the_order_of_rows_do_not_matter(name):
    data = random_documents(3)
    assert MODELS[name](data).model_.digest() == MODELS[name](renamed(data, 5)).model_.digest()


@pytest.mark.parametrize("name", MODELS)
def test_names_of_features_do_not_matter_in_training(name):
    data = random_documents(3)
    named = data.replace(feature_names=["d", "a", "c", "b"])
    scores = [MODELS[name](part).model_.predict(data.features) for part in (data, named)]
    assert np.array_equal(*scores)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_random_numbers_depend_on_content_alone(first, second):
    data, other = random_documents(first), renamed(random_documents(first), second)
    for purpose in ("0/1/documents", "7/queries"):
        a, b = ContentRandom(data), ContentRandom(other)
        assert sorted(a.of_documents(purpose)) == sorted(b.of_documents(purpose))
        assert sorted(a.of_queries(purpose)) == sorted(b.of_queries(purpose))
    sums = [
        [np.sort(part.row_hashes[part.rows(q)]).tolist() for q in queries_by_content(part)] for part in (data, other)
    ]
    assert sums[0] == sums[1]
    for left, right in zip(split_by_content(data, 0.7, 0.3), split_by_content(other, 0.7, 0.3), strict=True):
        assert sorted(left.row_hashes) == sorted(right.row_hashes)


def test_equal_queries_and_documents_are_distinguished():
    features = np.tile(np.arange(6, dtype=np.float32).reshape(3, 2), (50, 1))
    data = RankingData(features, np.tile([0, 1, 2], 50), qid=np.repeat(np.arange(50), 3))
    assert len(set(query_keys(data).tolist())) == 50
    chances = ContentRandom(data)
    assert len(set(chances.of_documents("x").tolist())) == 150
    assert 0.3 < chances.of_queries("x").mean() < 0.7


def test_queries_of_equal_features_are_numbered_by_the_rest_of_their_content():
    features, labels = np.zeros((4, 1), np.float32), np.array([0, 1, 1, 1])
    data = RankingData(features, labels, qid=[0, 0, 1, 1])
    swapped = RankingData(features, labels[::-1], qid=[0, 0, 1, 1])
    assert query_keys(data).tolist() == query_keys(swapped).tolist()[::-1]


def test_a_checkpoint_does_not_depend_on_names(tmp_path):
    from podium.boosting import Checkpoint

    data, settings = random_documents(1), {"n_leaves": 4, "min_documents_in_leaf": 2, "document_fraction": 0.8}
    LambdaMART(n_trees=2, **settings).fit(data, checkpoint=Checkpoint(tmp_path / "c.podium", every=1))
    resumed = LambdaMART(n_trees=4, **settings)
    resumed.fit(renamed(data, 2), checkpoint=Checkpoint(tmp_path / "c.podium", every=1))
    assert resumed.digest() == LambdaMART(n_trees=4, **settings).fit(data).digest()


def test_weights_of_a_committee_do_not_depend_on_the_order_of_rows():
    """Few trees and few values leave many documents of the validation queries tied."""
    data = random_documents(8)
    settings = {"members": [("xendcg", 2), ("lambda(ndcg)", 2)], "n_trees": 2, "patience": None, "n_folds": 2}
    whole = Committee(**settings, min_documents_in_leaf=9).fit(data)
    for seed in range(4):
        other = Committee(**settings, min_documents_in_leaf=9).fit(renamed(data, seed))
        assert other.values_ == whole.values_
        assert other.digest() == whole.digest()
