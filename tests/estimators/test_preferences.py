"""Training, stopping and evaluation on preferences, without labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError, LambdaMART, LinearRanker, RankingData, RankNet, RankNetTrees
from podium.measures import PreferenceAccuracy, parse
from podium.objectives import Preferences


def judged(seed: int, n_queries: int = 12) -> RankingData:
    """Return data with the pairs of noisy judges, who contradict each other, and without labels."""
    rng = np.random.default_rng(seed)
    n = 8 * n_queries
    X = rng.normal(size=(n, 3)).astype(np.float32)
    start = 8 * rng.integers(0, n_queries, 60 * n_queries)
    i, j = start + rng.integers(0, 8, len(start)), start + rng.integers(0, 8, len(start))
    i, j = i[i != j], j[i != j]
    said = (X[i, 0] - X[j, 0] + 0.5 * rng.normal(size=len(i)) > 0).astype(float)
    return RankingData(X, qid=np.repeat(np.arange(n_queries), 8), preferences=(i, j, said))


TRAIN, VALID = judged(0), judged(1)
TREES = {"n_trees": 30, "n_leaves": 4, "min_documents_in_leaf": 3, "patience": 5}
RANKERS = {
    "RankNetTrees": lambda: RankNetTrees(**TREES),
    "LambdaMART": lambda: LambdaMART(**TREES, objective=Preferences()),
    "RankNet": lambda: RankNet(hidden=4, epochs=15, batch_queries=4, patience=5),
    "LinearRanker": lambda: LinearRanker(n_iterations=10, objective=Preferences(), patience=3),
}


@pytest.mark.parametrize("name", RANKERS)
def test_rankers_train_stop_and_are_measured(name, tmp_path):
    model = RANKERS[name]().fit(TRAIN, valid=VALID)
    history = model.history_["valid/preferences"]
    assert list(model.history_) == ["valid/preferences"]
    assert model.best_iteration_ == int(np.argmax(history))
    assert history[model.best_iteration_] > 0.75
    assert model.score(VALID) == pytest.approx(history[model.best_iteration_], abs=1e-6)
    values = podium.evaluate(VALID, model.predict(VALID), "preferences").values["preferences"]
    assert values.mean() == pytest.approx(model.score(VALID), abs=1e-12)
    assert abs(np.corrcoef(model.predict(VALID), VALID.features[:, 0])[0, 1]) > 0.7


def test_a_net_without_validation_data_is_measured_on_its_own_pairs():
    model = RankNet(hidden=3, epochs=3).fit(TRAIN)
    assert list(model.history_) == ["train/preferences"]


@given(st.data())
def test_the_share_of_right_pairs_equals_a_slow_sum(draw):
    pairs = st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
    chosen = [p for p in draw.draw(st.lists(pairs, min_size=1, max_size=8)) if p[0] != p[1]] or [(0, 1, 1.0)]
    scores = np.array(draw.draw(st.lists(st.integers(0, 2), min_size=6, max_size=6)), float)
    i, j, share = map(list, zip(*chosen, strict=True))
    data = RankingData(np.arange(6.0)[:, None], qid=[7, 7, 7, 7, 8, 8], preferences=(i, j, share))
    right = whole = 0.0
    for a, b, p in zip(i, j, np.float32(share).astype(float), strict=True):
        better, worse = (a, b) if p > 0.5 else (b, a)
        right += abs(2 * p - 1) * (0.5 if scores[a] == scores[b] else float(scores[better] > scores[worse]))
        whole += abs(2 * p - 1)
    values = PreferenceAccuracy().values(podium.measures.Ranking(data, scores))
    assert np.isnan(values[1])  # no pairs: left out
    assert values[0] == pytest.approx(right / whole) if whole else np.isnan(values[0])
    assert PreferenceAccuracy(empty="zero").values(podium.measures.Ranking(data, scores))[1] == 0


def test_names_and_messages():
    assert parse("preferences") == PreferenceAccuracy()
    assert parse("preferences(empty=zero)") == PreferenceAccuracy(empty="zero")
    assert str(PreferenceAccuracy()) == "preferences"
    with pytest.raises(DataError, match="objective=Preferences"):
        LambdaMART(**TREES).fit(TRAIN, valid=VALID)
    with pytest.raises(DataError, match="use the measure 'preferences'"):
        podium.evaluate(TRAIN, TRAIN.feature(0), "ndcg@10")
    with pytest.raises(DataError, match="no preferences"):
        podium.evaluate(RankingData(np.ones((2, 1)), [0, 1], qid=[1, 1]), np.ones(2), "preferences")
    with pytest.raises(DataError, match="cannot be computed from labels"):
        PreferenceAccuracy().value(np.ones(2))
    with_labels = TRAIN.replace(relevance=(TRAIN.feature(0) > 0).astype(float))
    assert list(RankNetTrees(n_trees=2).fit(with_labels, valid=with_labels).history_) == ["valid/ndcg@10"]
