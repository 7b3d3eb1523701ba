"""λ on a ranked list: [B] fig. 1, the pairs behind each arrow, and invalid arguments."""

import numpy as np
import pytest

import podium
from podium import DataError
from podium.diagnostics import lambda_arrows
from podium.objectives import Debiased, Lambda, ListNet
from tests.references.objectives import slow_pairs


@pytest.fixture(scope="module")
def data():
    return podium.data.datasets.simulate_clicks(podium.artificial(12, documents=20, features=4))


@pytest.fixture(scope="module")
def model(data):
    return podium.LambdaMART(6, 4).fit(data)


def ranked(*relevant):
    """Return a list of 16 documents by rank, relevant at some ranks."""
    labels = np.isin(np.arange(1, 17), relevant).astype(float)
    return podium.RankingData(np.arange(16.0)[:, None], labels, qid=["q"] * 16)


def wrong_pairs(data):
    labels = data.relevance
    return sum(labels[i] < labels[j] for i in range(16) for j in range(i + 1, 16))


class TestBurgesFigure:
    """Relevant documents at ranks 1 and 15; then the first moves down three ranks, and the other up five."""

    def test_fewer_pairs_are_wrong_and_ndcg_falls(self):
        left, right = ranked(1, 15), ranked(4, 10)
        assert (wrong_pairs(left), wrong_pairs(right)) == (13, 11)
        values = [podium.evaluate(data, -np.arange(16.0), "ndcg").means["ndcg"] for data in (left, right)]
        assert values[0] > values[1] + 0.2

    def test_ranknet_pushes_where_pairs_are_wrong_and_ndcg_at_the_top(self):
        arrows = lambda_arrows(-0.02 * np.arange(16), ranked(4, 10), "q")
        ranknet, ndcg = arrows.lambdas
        assert ranknet[9] > ranknet[3] > 0  # eight wrong pairs against three
        assert ndcg[3] > ndcg[9] > 0
        assert (np.delete(arrows.lambdas, [3, 9], axis=1) < 0).all()
        top = [np.abs(row[:4]).sum() / np.abs(row).sum() for row in arrows.lambdas]
        assert top[1] > top[0] + 0.15

    @pytest.mark.parametrize("gap", [0.0, 0.1, 1.0])
    def test_at_any_scale_ndcg_is_nearer_the_top(self, gap):
        ranknet, ndcg = lambda_arrows(-gap * np.arange(16), ranked(4, 10), "q").lambdas
        assert ndcg[3] / ndcg[9] > ranknet[3] / ranknet[9]


def test_arrows_are_the_gradients_of_each_objective(data, model):
    query = data.query_ids[7]
    arrows = lambda_arrows(model, data, query, ["pairwise", Lambda("err"), ListNet()])
    scores = model.predict(data)
    assert sorted(arrows.rows.tolist()) == sorted(data.rows(7).tolist())
    assert (np.diff(arrows.scores) <= 0).all()
    assert arrows.scores.tolist() == scores[arrows.rows].tolist()
    assert arrows.labels.tolist() == data.relevance[arrows.rows].tolist()
    assert arrows.objectives == ("pairwise", 'Lambda(measure="err")', "ListNet()")
    expected = slow_pairs(data, scores, Lambda("err").measuring(data))[0]
    assert arrows.lambdas[1] == pytest.approx(expected[arrows.rows], abs=1e-6)
    assert arrows.ranks.tolist() == list(range(1, 21))
    clicks = lambda_arrows(scores, data, query, "lambda(cndcg)", labels="clicks")
    assert clicks.labels.tolist() == data.labels["clicks"][clicks.rows].astype(float).tolist()
    assert len(str(clicks).splitlines()) == 21


def test_trees_up_to_an_iteration(data, model):
    query = data.query_ids[2]
    for iteration, scores in enumerate(model.staged_predict(data)):
        assert lambda_arrows(model, data, query, iteration=iteration).scores == pytest.approx(
            lambda_arrows(scores, data, query).scores
        )
    before = lambda_arrows(model.model_, data, query, iteration=-1)
    assert (before.scores == 0).all()
    for ranker in (podium.LinearRanker(n_iterations=2).fit(data), np.zeros(len(data))):
        with pytest.raises(DataError, match="iteration only applies to boosted trees"):
            lambda_arrows(ranker, data, query, iteration=0)
    for wrong in (-2, 1.5, "last"):
        with pytest.raises(DataError, match="iteration"):
            lambda_arrows(model, data, query, iteration=wrong)


@pytest.mark.parametrize("objective", ["pairwise", "lambda(ndcg)", "lambda(err, normalize=true)"])
def test_pairs_behind_add_up(data, model, objective):
    arrows = lambda_arrows(model, data, data.query_ids[4], ["lambda(ap)", objective])
    for rank in (1, 5, 20):
        pairs = arrows.pairs_behind(rank, objective)
        assert pairs.total == pytest.approx(arrows.lambdas[1, rank - 1], abs=1e-6)
        assert pairs.lambdas.sum() == pytest.approx(pairs.total)
        assert (pairs.labels != pairs.label).all()
        lifts = pairs.labels < pairs.label
        assert ((pairs.lambdas > 0) == lifts).all()
        assert pairs.score_differences == pytest.approx(arrows.scores[rank - 1] - arrows.scores[pairs.ranks - 1])
        assert arrows.pairs_behind(rank).lambdas.tolist() == pairs.lambdas.tolist()  # the last by default
        assert len(str(pairs).splitlines()) == len(pairs.ranks) + 1


def test_invalid_arrows_are_refused(data, model):
    query = data.query_ids[0]
    with pytest.raises(DataError, match="query: there is no query 'nonsense'"):
        lambda_arrows(model, data, "nonsense")
    with pytest.raises(DataError, match="the data has no labels 'stars'; it has 'relevance'"):
        lambda_arrows(model, data, query, labels="stars")
    with pytest.raises(DataError, match="at least one objective"):
        lambda_arrows(model, data, query, ())
    with pytest.raises(DataError, match="objectives must be an objective or text"):
        lambda_arrows(model, data, query, (3,))
    with pytest.raises(DataError, match="learns during training"):
        lambda_arrows(model, data, query, (Debiased(Lambda("ndcg")),))
    arrows = lambda_arrows(model, data, query, ("listnet", "pairwise"))
    with pytest.raises(DataError, match="not a sum over pairs of documents"):
        arrows.pairs_behind(1, "listnet")
    with pytest.raises(DataError, match="objective must be one of 'listnet', 'pairwise'"):
        arrows.pairs_behind(1, "lambda(ndcg)")
    for wrong in (0, 21, "first"):
        with pytest.raises(DataError, match="rank must be"):
            arrows.pairs_behind(wrong)
