"""Objectives of the benchmark of candidates (`bench/stochastic.py`)."""

import numpy as np
import pytest

import podium
from bench.stochastic import LambdaEx, Yeti
from podium.objectives import Lambda


@pytest.fixture(scope="module")
def data():
    return podium.artificial_web(5, seed=2)


def test_lambda_ex_on_all_pairs_is_lambda(data):
    scores = np.random.default_rng(0).normal(size=len(data))
    expected = Lambda("ndcg", normalize=True).bind(data).gradients(scores)
    for select in ("plain", "static", "random", "all"):
        found = LambdaEx(select=select, cutoff=10_000).bind(data).gradients(scores)
        assert np.allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_lambda_ex_selects_what_the_first_places_lack():
    """Labels 0 1 2 2 by score, two places: both 2s are missing there; static, random and all select the same."""
    data = podium.RankingData(np.arange(5.0)[:, None], [0, 1, 2, 2, 0], qid=np.zeros(5, int))
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    plain = LambdaEx(select="plain", cutoff=2).bind(data).gradients(scores)[0]
    others = [LambdaEx(select=one, cutoff=2).bind(data).gradients(scores)[0] for one in ("static", "random", "all")]
    assert np.array_equal(others[0], others[1])
    assert np.array_equal(others[0], others[2])
    assert others[0][4] < plain[4] <= 0  # the last document now has pairs with both


@pytest.mark.parametrize("by_ndcg", [False, True])
def test_yeti_is_a_pair_loss_that_follows_content(data, by_ndcg):
    scores = np.random.default_rng(1).normal(size=len(data))
    lambdas, hessians = Yeti(by_ndcg=by_ndcg).bind(data).gradients(scores, 3)
    assert np.allclose(np.bincount(data.query_of_row, lambdas), 0)
    assert (hessians >= 0).all()
    shuffle = np.random.default_rng(2).permutation(len(data))
    again = Yeti(by_ndcg=by_ndcg).bind(data.take(shuffle)).gradients(scores[shuffle], 3)
    assert np.array_equal(again[0], lambdas[shuffle])
    assert not np.array_equal(Yeti(by_ndcg=by_ndcg).bind(data).gradients(scores, 4)[0], lambdas)


def test_yeti_on_two_documents_is_one_pair():
    data = podium.RankingData([[0.0], [1.0]], [0, 2], qid=["a", "a"])
    wrong = 1 / (1 + np.exp(0.5))
    lambdas, hessians = Yeti().bind(data).gradients(np.array([0.0, 0.5]))
    assert lambdas == pytest.approx([-2 * wrong, 2 * wrong])
    assert hessians == pytest.approx([2 * wrong * (1 - wrong)] * 2)
    delta = 3 * (1 - 1 / np.log2(3)) / 3
    assert Yeti(by_ndcg=True).bind(data).gradients(np.array([0.0, 0.5]))[0] == pytest.approx(
        [-delta * wrong, delta * wrong]
    )
