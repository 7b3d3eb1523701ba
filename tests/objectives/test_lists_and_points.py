"""Losses of lists and of single documents: λ is minus the slope of the cost, written down once more here."""

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import DataError, RankingData
from podium.objectives import XENDCG, ListMLE, ListNet, Logistic, Multiclass, QueryRegression, RankCosine, Regression


def documents(seed=0, weights=True, highest=3):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 5)
    n = int(sizes.sum())
    labels = rng.integers(0, highest + 1, n).astype(np.float32)
    labels[rng.random(n) < 0.15] = np.nan
    extras = {"document_weights": rng.random(n) + 0.5, "query_weights": rng.random(5) + 0.5} if weights else {}
    data = RankingData(rng.normal(size=(n, 2)), labels, qid=np.repeat(np.arange(5), sizes), **extras)
    return data, rng.normal(size=n)


def softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def list_net(labels, s, d, _):
    return -(d * softmax(labels) * np.log(softmax(s))).sum()


def xe_ndcg(labels, s, d, gamma):
    target = 2**labels - gamma
    return -(d * target / target.sum() * np.log(softmax(s))).sum()


def list_mle(labels, s, d, _):
    above = labels > labels.min()
    return sum(d[i] * (np.log(np.exp(s[labels <= labels[i]]).sum()) - s[i]) for i in np.flatnonzero(above))


def rank_cosine(labels, s, d, _):
    gains = 2**labels - 1
    gains = gains - (d * gains).sum() / d.sum()
    if not gains.any():
        return 0.0
    return 0.5 * (1 - (d * gains * s).sum() / np.sqrt((d * gains**2).sum() * (d * s**2).sum()))


def query_regression(labels, s, d, _):
    rest = labels - s
    return 0.5 * (d * (rest - (d * rest).sum() / d.sum()) ** 2).sum()


COSTS = {
    ListNet(): list_net, XENDCG(seed=3): xe_ndcg, ListMLE(): list_mle, RankCosine(): rank_cosine,
    QueryRegression(): query_regression,
}  # fmt: skip


def cost_of(loss, data, scores):
    """Σ over queries of u_q times the cost of the labelled documents."""
    total = 0.0
    chances = None
    if isinstance(loss, XENDCG):
        from podium.data.canonical import ContentRandom

        chances = ContentRandom(data).of_documents("3/7/gamma")
    for q in range(data.n_queries):
        rows = data.rows(q)
        rows = rows[~np.isnan(data.relevance[rows])]
        if not len(rows):
            continue
        labels, d = data.relevance[rows].astype(float), data.document_weights[rows].astype(float)
        extra = None
        if chances is not None:
            extra = chances[rows]
        total += data.query_weights[q] * COSTS[loss](labels, scores[rows], d, extra)
    return total


@pytest.mark.parametrize("loss", COSTS, ids=str)
def test_lambdas_are_slopes(loss):
    for seed in range(4):
        data, scores = documents(seed)
        lambdas, hessians = loss.bind(data).gradients(scores, 7)
        (term,) = loss.bind(data).loss_terms(scores, 7)
        assert term.costs.sum() == pytest.approx(cost_of(loss, data, scores))
        assert loss.bind(data).loss(scores, 7) == pytest.approx(cost_of(loss, data, scores) / data.query_weights.sum())
        step = 1e-5
        for row in range(len(data)):
            moved = np.zeros(len(data))
            moved[row] = step
            up, down = (cost_of(loss, data, scores + s * moved) for s in (1, -1))
            assert lambdas[row] == pytest.approx(-(up - down) / (2 * step), abs=1e-7)
        assert (lambdas[np.isnan(data.relevance)] == 0).all()
        if not isinstance(loss, RankCosine):
            assert (hessians >= 0).all()
            assert abs(lambdas.sum()) < 1e-9  # what one document gains the others lose


@pytest.mark.parametrize("loss", [ListNet(), XENDCG(), ListMLE()], ids=str)
def test_curvature_is_the_diagonal_of_the_hessian(loss):
    data, scores = documents(2)
    bound = loss.bind(data)
    hessians = bound.gradients(scores)[1]
    for row in range(len(data)):
        moved = np.zeros(len(data))
        moved[row] = 1e-5
        slope = (bound.gradients(scores + moved)[0] - bound.gradients(scores - moved)[0])[row] / 2e-5
        assert hessians[row] == pytest.approx(-slope, abs=1e-6)


@pytest.mark.parametrize("loss", COSTS, ids=str)
def test_row_order_and_large_scores(loss):
    data, scores = documents(5)
    shuffle = np.random.default_rng(0).permutation(len(data))
    other = data.take(shuffle)
    for s in (scores, np.zeros(len(data)), scores * 1e4):
        a, b = loss.bind(data).gradients(s, 2), loss.bind(other).gradients(s[shuffle], 2)
        assert np.isfinite(a[0]).all()
        assert np.array_equal(a[0][shuffle], b[0])
        assert np.array_equal(a[1][shuffle], b[1])


def plackett_luce(s, order):
    return math.prod(math.exp(s[i]) / sum(math.exp(s[j]) for j in order[k:]) for k, i in enumerate(order))


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-3, 3)), min_size=1, max_size=6))
def test_list_mle_bounds_the_likelihood_of_all_orders_of_equal_labels(documents):
    labels, s = (np.array(column, float) for column in zip(*documents, strict=True))
    orders = [o for o in itertools.permutations(range(len(s))) if all(labels[i] >= labels[j] for i, j in pairwise(o))]
    exact = -math.log(sum(plackett_luce(s, order) for order in orders))
    ways = math.prod(math.factorial((labels == label).sum()) for label in set(labels[labels > labels.min()]))
    bound = list_mle(labels, s, np.ones(len(s)), None) - math.log(ways)
    assert bound >= exact - 1e-9
    if len(set(labels)) == len(labels):  # no ties: ListMLE as published
        assert bound == pytest.approx(exact, abs=1e-9)
    assert (len(orders) == math.factorial(len(s))) == (len(set(labels)) == 1)
    if len(set(labels)) == 1:
        assert exact == pytest.approx(0, abs=1e-9)
        assert bound == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2)), min_size=2, max_size=9))
def test_equal_labels_with_equal_scores_are_pushed_alike(documents):
    labels, scores = (np.array(column, float) for column in zip(*documents, strict=True))
    data = RankingData(np.arange(len(labels))[:, None], labels, qid=np.zeros(len(labels)))
    lambdas, hessians = ListMLE().bind(data).gradients(scores)
    for i, j in itertools.combinations(range(len(labels)), 2):
        if labels[i] == labels[j] and scores[i] == scores[j]:
            assert lambdas[i] == lambdas[j]
            assert hessians[i] == hessians[j]


def test_list_mle_learns_as_well_as_list_net():
    train, valid = podium.artificial(150, documents=20, features=8).split(0.6, 0.4)
    best = {
        loss: max(podium.LambdaMART(40, 8, objective=loss).fit(train, valid=valid).history_["valid/ndcg@10"])
        for loss in (ListNet(), ListMLE())
    }
    assert best[ListMLE()] > best[ListNet()] - 0.015


def test_scores_of_0_have_a_cosine_gradient_along_the_gains():
    data = RankingData(np.eye(3), [0, 1, 2], qid=[1] * 3)
    lambdas, _ = RankCosine().bind(data).gradients(np.zeros(3))
    gains = np.array([0, 1, 3]) - 4 / 3
    assert np.allclose(lambdas, 0.5 * gains / np.linalg.norm(gains))


def test_labels_out_of_range():
    data = RankingData(np.eye(2), [0, 40], qid=[1, 1])
    with pytest.raises(DataError, match="takes labels from 0 to 30; row 1 has 40"):
        XENDCG().bind(data)


class TestPoints:
    def test_regression(self):
        data, scores = documents(1)
        bound = Regression().bind(data)
        labelled = ~np.isnan(data.relevance)
        weights = data.document_weights * data.query_weights[data.qid.astype(int)]
        lambdas, hessians = bound.gradients(scores)
        assert np.allclose(lambdas[labelled], (weights * (data.relevance - scores))[labelled])
        assert np.allclose(hessians[labelled], weights[labelled])
        assert (lambdas[~labelled] == 0).all()
        assert bound.base_score == pytest.approx(np.average(data.relevance[labelled], weights=weights[labelled]))

    @pytest.mark.parametrize("balanced", [False, True])
    @pytest.mark.parametrize("sigma", [1.0, 0.3])
    def test_logistic_follows_the_paper(self, sigma, balanced):
        data, scores = documents(3, weights=False, highest=1)
        bound = Logistic(sigma, balanced).bind(data)
        labelled = ~np.isnan(data.relevance)
        t = np.where(data.relevance > 0, 1.0, -1.0)
        n = {side: (t[labelled] == side).sum() for side in (1.0, -1.0)}
        factor = np.array([1 / n[side] for side in t]) if balanced else np.ones(len(t))
        y = 2 * t * sigma / (1 + np.exp(2 * t * sigma * scores))  # [B] §6
        lambdas, hessians = bound.gradients(scores)
        assert np.allclose(lambdas[labelled], (factor * y)[labelled])
        assert np.allclose(hessians[labelled], (factor * np.abs(y) * (2 * sigma - np.abs(y)))[labelled])
        mean = 0.0 if balanced else t[labelled].mean()
        assert bound.base_score == pytest.approx(math.log((1 + mean) / (1 - mean)) / (2 * sigma))
        assert np.isfinite(bound.gradients(scores * 1e5)[0]).all()

    def test_classes(self):
        data, _ = documents(4, weights=False)
        bound = Multiclass("gain").bind(data)
        labelled = ~np.isnan(data.relevance)
        scores = np.random.default_rng(0).normal(size=(bound.n_outputs, len(data)))
        p = np.exp(scores) / np.exp(scores).sum(axis=0)
        y = (data.relevance == bound.classes[:, None]) - p
        lambdas, hessians = bound.gradients(scores)
        n_classes = bound.n_outputs
        assert np.allclose(lambdas[:, labelled], y[:, labelled])
        assert np.allclose(
            (n_classes - 1) / n_classes * hessians[:, labelled], (np.abs(y) * (1 - np.abs(y)))[:, labelled]
        )
        assert np.allclose(bound.ranked_by(scores), (p * (2**bound.classes - 1)[:, None]).sum(axis=0))

    def test_one_class_is_too_few(self):
        data = RankingData(np.eye(2), [1, 1], qid=[1, 1])
        with pytest.raises(DataError, match="both classes"):
            Logistic().bind(data)
        with pytest.raises(DataError, match="between 2 and 256"):
            Multiclass().bind(data)

    def test_data_without_weight_is_refused(self):
        data = RankingData(np.eye(2), [1, 0], qid=[1, 1], document_weights=[0, 0])
        with pytest.raises(DataError, match="all labelled documents have weight 0"):
            Regression().bind(data)
        light = RankingData(np.eye(4), [1, 0, 0, 0], qid=[1] * 4, document_weights=[1e-20, 1, 1, 1])
        assert Logistic().bind(light).base_score == pytest.approx(math.log(1e-20 / 3) / 2)


def test_lists_of_equal_labels_have_no_cosine_gradient():
    data = RankingData(np.eye(3), [0.8132702] * 3, qid=[1] * 3)
    assert (RankCosine().bind(data).gradients(np.zeros(3))[0] == 0).all()
