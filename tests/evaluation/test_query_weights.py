"""Query weights count in every mean of a measure."""

import lightgbm
import numpy as np
import pytest

import podium
from podium import NDCG, LambdaMART
from podium.core.sums import mean_of_known, with_weights
from podium.measures import BoundMeasures, Ranking


@pytest.fixture(scope="module")
def data():
    generated = podium.artificial(30, features=4, seed=2)
    return generated.replace(query_weights=np.random.default_rng(0).integers(0, 4, generated.n_queries).astype(float))


@pytest.fixture(scope="module")
def repeated(data):
    """Each query repeated as often as its weight."""
    parts = [(rows, q, copy) for q in range(data.n_queries) for copy in range(int(data.query_weights[q]))
             for rows in [data.rows(q)]]  # fmt: skip
    rows = np.concatenate([part[0] for part in parts])
    qid = np.concatenate([[f"{q}-{copy}"] * len(of_query) for of_query, q, copy in parts])
    return podium.RankingData(data.features[rows], data.relevance[rows], qid=qid)


def test_weights_count_like_repeated_queries(data, repeated):
    names = ["ndcg@5", "ap", "ndcg(empty=skip)@3", "bpref"]
    weighted = podium.evaluate(data, data.feature(0), names)
    repetitions = podium.evaluate(repeated, repeated.feature(0), names)
    plain = podium.evaluate(data.replace(query_weights=None), data.feature(0), names)
    for name in names:
        assert weighted.means[name] == pytest.approx(repetitions.means[name], abs=1e-12)
        assert weighted.means[name] != pytest.approx(plain.means[name], abs=1e-6)
        low, high = weighted.intervals[name]
        assert low < weighted.means[name] < high
    assert np.array_equal(weighted.values["ap"], plain.values["ap"])


def test_equal_weights_change_nothing(data):
    equal = data.replace(query_weights=np.full(data.n_queries, 2.5))
    weighted, plain = (podium.evaluate(d, d.feature(0), "ndcg@5") for d in (equal, data.replace(query_weights=None)))
    assert weighted.means["ndcg@5"] == pytest.approx(plain.means["ndcg@5"], abs=1e-14)
    assert weighted.intervals["ndcg@5"] == pytest.approx(plain.intervals["ndcg@5"], abs=1e-12)
    assert weighted.bootstrap()["ndcg@5"] == pytest.approx(plain.bootstrap()["ndcg@5"], abs=1e-9)


def test_standard_error_is_that_of_a_ratio():
    rng = np.random.default_rng(1)
    values, weights = rng.random(50), rng.random(50)
    middle = mean_of_known(values, weights)
    assert middle == pytest.approx(np.average(values, weights=weights))
    replaced = with_weights(values, weights)
    assert replaced.mean() == pytest.approx(middle)
    shares = weights / weights.sum()
    variance = 50 / 49 * np.sum((shares * (values - middle)) ** 2)
    assert replaced.var(ddof=1) / 50 == pytest.approx(variance)
    assert np.isnan(mean_of_known(values, np.zeros(50)))


@pytest.mark.filterwarnings("ignore:ties between documents")
def test_parts_have_the_same_mean(data):
    scores = np.random.default_rng(3).integers(0, 5, len(data)).astype(float)
    measures = {"ndcg": NDCG(5), "bpref": podium.measures.parse("bpref(empty=skip)")}
    whole = BoundMeasures(data, measures).means(scores)
    halves = [data.query_of_row < 15, data.query_of_row >= 15]
    first, second = (BoundMeasures(data.take(np.flatnonzero(h)), measures).part_sums(scores[h]) for h in halves)
    for name, measure in measures.items():
        assert measure.mean_of_sums(first[name].merged_with(second[name]).value) == whole[name]
        assert whole[name] == measure.mean(Ranking(data, scores))
        assert whole[name] == podium.evaluate(data, scores, measure).means[measure]


def test_differences_are_weighted(data):
    systems = {"a": data.feature(0), "b": data.feature(1)}
    comparison = podium.compare(data, systems, "ndcg@5")
    means = [comparison.evaluations[name].means["ndcg@5"] for name in "ab"]
    pair = comparison.pairs[0]
    assert pair.difference == pytest.approx(means[1] - means[0], abs=1e-12)
    assert pair.low < pair.difference < pair.high


def test_training_stops_by_and_scores_with_weights(data):
    train = podium.artificial(30, features=4, seed=5)
    model = LambdaMART(n_trees=6, n_leaves=4, measure="ndcg@5").fit(train, valid=data)
    curve = model.history_["valid/ndcg@5"]
    for k in (0, 5):
        scores = model.model_.truncate(min(k + 1, model.n_trees_)).predict(data)
        if k < model.n_trees_:
            assert curve[k] == pytest.approx(podium.evaluate(data, scores, "ndcg@5").means["ndcg@5"], abs=1e-12)
    assert model.best_iteration_ == int(np.argmax(curve))
    assert model.score(data) == podium.evaluate(data, model, "ndcg@5").means["ndcg@5"]
    assert model.score(data) != model.score(data.replace(query_weights=None))


def test_agrees_with_lightgbm(data):
    weights = data.query_weights.astype(float) + 1
    scores = np.random.default_rng(1).normal(size=len(data))
    order = data.order
    train = lightgbm.Dataset(
        data.features[order], data.relevance[order], group=data.query_sizes, init_score=scores[order],
        weight=np.repeat(weights, data.query_sizes), params={"verbose": -1},
    )  # fmt: skip
    recorded = {}
    lightgbm.train(
        {"objective": "lambdarank", "metric": "ndcg", "eval_at": [5], "learning_rate": 1e-12, "verbose": -1,
         "min_data_in_leaf": 1},
        train, 1, valid_sets=[train], callbacks=[lightgbm.record_evaluation(recorded)],
    )  # fmt: skip
    name = "ndcg(empty=one)@5"
    ours = podium.evaluate(data.replace(query_weights=weights), scores, name).means[name]
    assert recorded["training"]["ndcg@5"][0] == pytest.approx(ours, abs=1e-6)
