"""Measures bound to data, against a new ranking for every vector of scores."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import podium
from podium import DataError
from podium.core.team import Team
from podium.core.threads import for_ranges
from podium.measures import NDCG, BoundMeasures, Measure, Ranking, bound, parse, ranking, registered

SETTINGS = ("", "(empty=skip)", "(empty=one)", "(ties=canonical)", "(ties=canonical,empty=skip)", "(ties=stable)")


def all_measures():
    """Every registered measure with every setting that it has."""
    names = ["ndcg(short=zero)@3", "ndcg(gain=linear,discount=letor)@7", "ap(threshold=2)", "q(beta=0.5)@4",
             "ap(norm=reachable)@3", "ndcg(discount=reciprocal)@4"]  # fmt: skip
    for name, kind in registered().items():
        for setting in SETTINGS:
            if name == "propensity_ndcg":
                setting = f"({setting[1:-1]},propensities=1/0.5/0.2)"  # noqa: PLW2901
            names += [f"{name}{setting}{cutoff}" for cutoff in (("", "@1", "@5") if kind.has_cutoff else ("",))]
    return names


def lists(sizes, seed=0):
    """Queries of these sizes, rows in any order, some without relevant documents and some labels missing."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    labels = rng.integers(0, 4, n).astype(np.float64) * (qid % 4 != 1)
    labels[rng.random(n) < 0.1] = np.nan
    clicks = np.where(qid % 5 == 2, 0.0, rng.random(n).round(1))
    rows = np.arange(n)
    pairs = [(i, j) for i in rows for j in rows if i < j and qid[i] == qid[j]][: 3 * n]
    i, j = np.array(pairs).T
    return podium.RankingData(
        rng.normal(size=(n, 2)).round(1), labels, qid=qid, positions=1 + rows % 7,
        labels={"clicks": clicks, "subtopic_1": labels, "subtopic_2": np.roll(labels, 3)},
        preferences=(i, j, rng.random(len(i)).astype(np.float32)),
    )  # fmt: skip


def rounds(n, seed=0):
    """Scores of successive rounds: all equal, many ties, small steps, large steps."""
    rng = np.random.default_rng(seed)
    scores = np.zeros(n)
    yield scores.copy()
    for size in (0.5, 1.0, 0.1, 0.1, 0.0, 0.1, 30.0, 0.1):
        scores += size * rng.integers(-2, 3, n)
        yield scores.copy()
    yield rng.normal(size=n)
    yield -np.arange(n, dtype=np.float64)
    yield np.arange(n, dtype=np.float64)


def plain(data, measures, scores):
    """Means from a new ranking."""
    ranked = Ranking(data, scores)
    return {name: measure.mean(ranked) for name, measure in measures.items()}


def bits(means):
    return {name: float(value).hex() for name, value in means.items()}


@pytest.mark.parametrize("n_threads", [1, 3])
def test_means_are_those_of_a_new_ranking_to_the_bit(monkeypatch, n_threads):
    monkeypatch.setattr(bound, "n_threads_for", lambda work, n: n)
    data = lists([1, 2, 40, 7, 11, 1, 30, 5, 16, 3])
    measures = {name: parse(name) for name in all_measures()}
    with Team(n_threads) as team:
        bound_measures = BoundMeasures(data, measures, team)
        for scores in rounds(data.n_documents):
            assert bits(bound_measures.means(scores)) == bits(plain(data, measures, scores))


@pytest.mark.parametrize(
    "name", ["ndcg@2", "cndcg@2", "ap@3", "err@5", "rr@1", "ndcg(ties=canonical)@2", "err(ties=canonical)@5"]
)
def test_each_measure_alone_is_ranked_as_deep_as_it_needs(name):
    """Bound together, measures without a cutoff would sort everything."""
    data, measures = lists([30, 4, 100, 1, 12], seed=2), {name: parse(name)}
    alone = BoundMeasures(data, measures)
    infinite = np.where(np.arange(data.n_documents) % 3 == 0, np.inf, -np.inf)
    for scores in [*rounds(data.n_documents, seed=3), infinite, -infinite]:
        assert bits(alone.means(scores)) == bits(plain(data, measures, scores))


def test_without_counted_queries_there_is_no_mean():
    data = podium.RankingData([[0.0], [1.0]], [0, 0], qid=[1, 1])
    means = BoundMeasures(data, {"a": NDCG(empty="skip"), "b": NDCG()}).means(np.array([1.0, 0.0]))
    assert math.isnan(means["a"])
    assert means["b"] == 0.0
    nothing = podium.RankingData(np.empty((0, 1)), np.empty(0), qid=np.empty(0, int))
    assert math.isnan(BoundMeasures(nothing, {"a": NDCG()}).means(np.empty(0))["a"])


@dataclass(frozen=True)
class Twice(NDCG):
    """A measure that overrides `values`."""

    def values(self, ranking):
        return 2 * super().values(ranking)


@dataclass(frozen=True)
class Last(NDCG):
    """A measure that overrides `mean`."""

    def mean(self, ranking):
        return float(self.values(ranking)[-1])


@dataclass(frozen=True)
class Top(Measure):
    """A measure that belongs to no family."""

    def value(self, labels):
        return float(labels[0])


def test_custom_measures_keep_their_values_and_means():
    data = lists([4, 5, 6])
    measures = {"twice": Twice(3), "last": Last(), "top": Top(), "ndcg": NDCG()}
    for scores in rounds(data.n_documents):
        assert bits(BoundMeasures(data, measures).means(scores)) == bits(plain(data, measures, scores))


def test_scores_are_checked():
    data = lists([4, 5, 6])
    measures = BoundMeasures(data, {"ndcg": NDCG()})
    scores = np.zeros(15)
    for row in range(15):  # also of empty queries
        bad = scores.copy()
        bad[row] = np.nan
        with pytest.raises(DataError, match=rf"scores must not be NaN, but row {row} is \(1 in all\)"):
            measures.means(bad)
    with pytest.raises(DataError, match="one number for each of the 15 rows"):
        measures.means(np.zeros(14))
    expected = plain(data, {"ndcg": NDCG()}, np.arange(15))
    assert measures.means(list(range(15))) == expected
    assert measures.means(np.arange(15, dtype=np.float32)) == expected
    assert measures.means(np.arange(30, dtype=np.float64)[::2]) == expected


def test_missing_labels_raise_when_measures_are_bound():
    with pytest.raises(DataError, match="the data has no labels 'stars'"):
        BoundMeasures(lists([4, 5]), {"ndcg": NDCG(labels="stars")})


def test_few_documents_are_measured_without_a_pool_of_threads(monkeypatch):
    """On threads, the values are the same."""
    data = lists([9] * 200)
    scores = np.random.default_rng(0).normal(size=data.n_documents)
    values = {name: parse(name).values(Ranking(data, scores)) for name in all_measures()}
    used = []

    def on_ranges(n, work, n_threads, smallest):
        used.append(n_threads)
        for_ranges(n, work, n_threads, smallest)

    monkeypatch.setattr(ranking, "for_ranges", on_ranges)
    assert np.array_equal(parse("ndcg").values(Ranking(data, scores)), values["ndcg"])
    assert set(used) == {1}
    used.clear()
    monkeypatch.setattr(ranking, "n_threads_for", lambda work, n: 3)
    for name, expected in values.items():
        assert np.array_equal(parse(name).values(Ranking(data, scores)), expected, equal_nan=True)
    assert set(used) == {3}
