"""Parts of the experiments of [B]: what they count, and the slow forms that they compare with."""

import numpy as np
import pytest
from scipy import stats

import podium
from podium.diagnostics import directions_needed
from podium.measures import Ranking
from podium.measures.losses import ErrorRate
from podium.reproduce.claims import share_above, share_below
from podium.reproduce.experiments import arrows, balanced, combination, optimality, sigma
from podium.testing.lambdas import slow_pairs


@pytest.mark.parametrize(("hits", "cases", "bound"), [(0, 459, 0.01), (7, 10, 0.5), (10, 10, 0.9), (3, 200, 0.01)])
def test_shares_are_tested_as_scipy_does(hits, cases, bound):
    above = share_above("", "[B]", "", hits, cases, bound)
    below = share_below("", "[B]", "", hits, cases, bound)
    greater, less = (stats.binomtest(hits, cases, bound, alternative=way) for way in ("greater", "less"))
    assert above.p == below.p_against == pytest.approx(greater.pvalue)
    assert above.p_against == below.p == pytest.approx(less.pvalue)
    assert above.interval == pytest.approx(tuple(stats.binomtest(hits, cases).proportion_ci(method="exact")))
    assert above.estimate == hits / cases


def test_459_directions_without_a_rise_are_enough():
    n = directions_needed(optimality.P0, 0.01)
    assert share_below("", "[B]", "", 0, n, optimality.P0).p <= 0.01
    assert share_below("", "[B]", "", 0, n - 1, optimality.P0).p > 0.01


def test_the_step_is_the_smallest_from_which_on_nothing_rises():
    assert optimality.smooth_step([0.5, 0.0, 0.1, 0.0, 0.0, 0.0]) == optimality.STEPS[3]
    assert optimality.smooth_step([0.0] * 6) == optimality.STEPS[0]
    assert optimality.smooth_step([0.5] * 6) == optimality.STEPS[-1]


def test_the_lists_of_the_figure():
    left, right = (arrows.of_list(ranks, arrows.DOCUMENTS) for ranks in (arrows.LEFT, arrows.RIGHT))
    assert (left["pairwise errors"], right["pairwise errors"]) == (13, 11)  # [B] fig. 1
    labels = np.isin(np.arange(1, 17), arrows.RIGHT)
    assert right["pairwise errors"] == sum(not labels[a] and labels[b] for b in range(16) for a in range(b))
    assert left["NDCG"] > right["NDCG"]
    assert left["ERR"] > right["ERR"]


def test_pushes_are_the_lambdas_of_the_two_relevant_documents():
    rng = np.random.default_rng(3)
    found = arrows._pushes(np.random.default_rng(3), 1, 1.0)
    size = int(rng.integers(arrows.SHORT, arrows.LONG + 1, 1)[0])
    scores = -np.sort(-rng.normal(size=size))
    places = np.sort(rng.choice(size, 2, replace=False))
    data = podium.RankingData(np.arange(size)[:, None], np.isin(np.arange(size), places), qid=np.zeros(size))
    for name, objective in arrows.OBJECTIVES.items():
        assert found[name][0] == pytest.approx(slow_pairs(data, scores, objective)[0][places], rel=1e-4), name


def test_accuracies_of_queries_have_the_means_of_all_documents():
    data = podium.artificial(30, documents=(3, 9), features=3)
    is_positive = data.relevance > 1
    scores = np.random.default_rng(0).normal(size=len(data))
    found = balanced.accuracies(data, is_positive, scores, "")
    binary = data.replace(labels={"relevance": is_positive.astype(np.float32)})
    for name, rate in ((balanced.BALANCED, ErrorRate(balanced=True)), (balanced.PLAIN, ErrorRate())):
        assert 1 - np.mean(found[name]) == pytest.approx(rate.mean(Ranking(binary, scores)))


def test_orders_are_the_same_with_their_ties():
    data = podium.RankingData(np.zeros((5, 1)), [0, 1, 0, 1, 0], qid=[1, 1, 1, 2, 2])
    scores = np.array([1.0, 2.0, 2.0, 3.0, 1.0])
    assert sigma.same_order(data, scores, 2 * scores) == [True, True]
    assert sigma.same_order(data, scores, np.array([1.0, 2.0, 2.5, 3.0, 1.0])) == [False, True]
    assert sigma.same_order(data, scores, np.array([1.0, 2.0, 2.0, 3.0, 6.0])) == [True, False]


def test_no_other_combination_is_better_than_the_exact_one():
    valid = podium.artificial(30, documents=10, features=2)
    assert combination.checked_optima(valid, np.array([1.0, 0.5]), 5, 0) == [True] * 5


def test_factored_ranknet_has_the_gradients_of_all_pairs():
    torch = pytest.importorskip("torch")
    from podium.reproduce.experiments import factored_ranknet

    assert factored_ranknet._gradients_agree(0, 4) == [True] * 4
    sizes = (10, 20, 40)
    seconds = np.array([[3.0 * n**2 for n in sizes], [5.0 * n for n in sizes]])
    assert factored_ranknet.exponents(seconds, sizes) == pytest.approx([2.0, 1.0])
    net = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Flatten(0)).double()
    weights = next(net.parameters())
    documents, labels = torch.tensor([[0.0], [2.0]]).double(), np.array([0.0, 1.0])
    factored_ranknet.pair_by_pair(net, documents, labels)
    slope = -2 / (1 + np.exp(2 * weights.item()))  # of log(1 + e^{−2w})
    assert weights.grad.item() == pytest.approx(slope)
