"""The contents of a summary."""

import json

import numpy as np
import pytest
from scipy import sparse

import podium
from podium import RankingData


def make(features, **options):
    return RankingData(features, [0, 1, 2, 0, 0], qid=[1, 1, 1, 2, 2], **options)


FEATURES = np.array([[1, 0, 7, 0], [2, 1, 7, 0], [3, 2, 7, np.nan], [4, 0, 7, 5], [4, 0, 7, 5]], np.float32)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_everything_is_counted(as_sparse):
    data = make(sparse.csr_matrix(FEATURES) if as_sparse else FEATURES)
    summary = data.summary()
    assert (summary.documents, summary.queries, summary.features) == (5, 2, 4)
    assert (summary.fewest_documents, summary.mean_documents, summary.most_documents) == (2, 2.5, 3)
    assert summary.density == pytest.approx(14 / 20)
    assert summary.missing == pytest.approx(1 / 20)
    assert summary.labels["relevance"].counts == {"0": 3, "1": 1, "2": 1}
    assert summary.warnings == [
        "feature 2 (counted from 0) has a single value",
        "feature 1 (counted from 0) equals the labels 'relevance': is it a leak?",
        "1 documents have the same features as another document of their query",
        "1 of 2 queries have no relevant document: choose how measures count them with empty=…",
        "1 of 2 queries have equal labels, so models learn nothing from them",
    ]


def test_summaries_print_and_convert_to_json():
    data = make(FEATURES, labels={"clicks": [0.5, np.nan, 0, 0, 0]}, feature_names=["a", "b", "c", "d"])
    text = str(data.summary())
    assert "documents  5" in text
    assert "queries    2, with 2 to 3 documents, 2.5 on average" in text
    assert "labels     relevance: 0: 60.0%, 1: 20.0%, 2: 20.0%" in text
    assert "labels     clicks (4 documents labelled): 0: 75.0%, 0.5: 25.0%" in text
    assert "warning    feature 'c' has a single value" in text
    assert json.loads(json.dumps(data.summary().to_dict()))["queries"] == 2


def test_many_label_values_are_given_as_a_range():
    data = RankingData(np.zeros((100, 1)), np.arange(100) / 10, qid=np.zeros(100, int))
    assert str(data.summary().labels["relevance"]) == "0 to 9.9, mean 4.95"
    assert sum(data.summary().labels["relevance"].counts.values()) == 100
    large = RankingData(np.zeros((3, 1)), [1234567, 1234568, 0.5], qid=[1, 1, 1]).summary().labels["relevance"]
    assert large.counts == {"0.5": 1, "1234567": 1, "1234568": 1}
    unlabelled = RankingData(np.zeros((2, 1)), [np.nan, np.nan], qid=[1, 1])
    assert unlabelled.summary().to_dict()["labels"]["relevance"]["mean"] is None
    assert str(unlabelled.summary().labels["relevance"]) == "none labelled"


def test_losses_are_warnings():
    with pytest.warns(podium.PodiumWarning, match="infinite"):
        data = RankingData(np.array([1.0, 2.0, 3.0, 1e300])[:, None], qid=[1, 1, 2, 2])
    assert data.summary().warnings[-1].startswith("values beyond float32's range became infinite")


def test_no_data_and_one_row():
    assert podium.artificial(3, documents=2, features=2).select([]).summary().documents == 0
    assert RankingData([[1.0]], [1], qid=[1]).summary().warnings == [
        "1 of 1 queries have equal labels, so models learn nothing from them"
    ]
    assert RankingData(sparse.csr_matrix((0, 3)), qid=[]).summary().queries == 0
