"""[B] §4.2: where LambdaRank ends, no direction leads up; where training has not ended, most do."""

import copy

import numpy as np
import pytest
import torch

import podium
from podium import DataError, LambdaMART, LambdaRank, LinearRanker, RankNet
from podium.diagnostics import Optimality, directions_needed, local_optimality

STEPS = (0.2, 0.4)


@pytest.fixture(scope="module")
def train():
    return podium.artificial(150, documents=15, features=6, seed=1)


@pytest.fixture(scope="module")
def trained(train):
    settings = {"hidden": 5, "epochs": 400, "batch_queries": None, "learning_rate": 0.03, "halve_after": 15}
    return LambdaRank("ndcg", n_threads=1, **settings).fit(train)


def test_459_directions_are_enough_for_99_percent():
    assert directions_needed() == 459  # [B]
    assert directions_needed(0.05, 0.01) == 90
    with pytest.raises(DataError, match="p0 must be between 0 and 1"):
        directions_needed(1.0)


def test_lambdarank_ends_at_an_optimum_of_ndcg_and_others_do_not(train, trained):
    result = local_optimality(trained, train, "ndcg", steps=STEPS, curves=4)
    assert result.passes().all(), result
    assert (result.falling_share == 1).all()
    early = RankNet("ndcg", hidden=5, epochs=3, batch_queries=None, n_threads=1).fit(train)
    stopped = local_optimality(early, train, "ndcg", steps=STEPS, curves=0)
    assert not stopped.passes().any(), stopped
    moved = copy.deepcopy(trained.model_)
    with torch.no_grad():
        weight = moved.module.layers[2].weight
        weight[0, weight.abs().argmax()] *= -1
    displaced = local_optimality(moved, train, "ndcg", steps=STEPS, curves=0)
    assert not displaced.passes().any(), displaced


def test_a_measure_that_does_not_change_shows_no_optimum():
    few = podium.artificial(3, documents=4, features=6, seed=1)
    untrained = LambdaRank("ndcg", hidden=5, epochs=1, learning_rate=1e-12, smallest_rate=1e-12, n_threads=1).fit(few)
    result = local_optimality(untrained, few, "ndcg", curves=0)  # the default steps
    assert result.unchanged_share[0] > 0.9
    assert not result.passes().any(), result
    still = Optimality("ndcg", 0.5, (0.1,), np.zeros((1, 459)), np.arange(0), np.zeros(3), np.zeros((0, 3)))
    assert (still.rising_share, still.unchanged_share, still.falling_share) == (0, 1, 0)
    assert not still.passes().any()
    assert Optimality(
        "ndcg", 0.5, (0.1,), np.full((1, 459), -0.1), np.arange(0), np.zeros(3), np.zeros((0, 3))
    ).passes()


def test_curves_of_single_weights_have_their_top_at_the_trained_value(train, trained):
    result = local_optimality(trained, train, "ndcg", directions=5, steps=(0.3,), curves=None, points=13)
    n = len(torch.nn.utils.parameters_to_vector(trained.model_.module.parameters()))
    assert result.curves.shape == (n, 13)
    assert np.allclose(result.curves[:, 6], result.value)
    top = result.curves[:-1].argmax(axis=1)
    assert (np.abs(top - 6) <= 1).all()  # within a twentieth of |w|, where the curves are little steps
    assert (result.curves[:-1].max(axis=1) - result.value < 0.005).all()
    assert np.allclose(result.curves[-1], result.value)  # the last bias moves all scores alike
    assert result.value == pytest.approx(podium.evaluate(train, trained.predict(train), "ndcg").means["ndcg"], abs=1e-6)


def test_changes_are_those_of_moved_weights(train, trained):
    result = local_optimality(trained, train, "ap", directions=3, steps=(0.1, 0.2), curves=0, random_state=7)
    weights, scores = trained.model_.as_function(train)
    assert np.allclose(scores(weights), trained.predict(train), atol=1e-6)
    way = np.random.default_rng([7, 2]).normal(size=len(weights))
    moved = weights + 0.2 * np.linalg.norm(weights) * way / np.linalg.norm(way)
    value = podium.evaluate(train, scores(moved), "ap").means["ap"]
    assert result.changes[1, 2] == pytest.approx(value - result.value, abs=1e-9)
    again = local_optimality(
        trained, train, "ap", directions=3, steps=(0.1, 0.2), curves=0, random_state=7, n_threads=1
    )
    assert np.array_equal(result.changes, again.changes)


def test_linear_models(train):
    model = LinearRanker("ndcg", n_iterations=300, learning_rate=0.3).fit(train)
    weights, scores = model.model_.as_function(train)
    assert np.allclose(scores(weights), model.predict(train))
    worse = copy.deepcopy(model.model_)
    worse.weights[np.abs(weights).argmax()] *= -1
    best, moved = (local_optimality(m, train, "ndcg", steps=(0.4,), directions=100, curves=0) for m in (model, worse))
    assert best.rising_share[0] < 0.1 < moved.rising_share[0]


def test_table_and_invalid_arguments(train, trained):
    result = local_optimality(trained, train, "ndcg", directions=20, steps=(0.1, 0.2), curves=2)
    assert "rising  unchanged  falling" in str(result)
    assert np.allclose(result.rising_share + result.unchanged_share + result.falling_share, 1)
    assert result.bound().shape == (2,)
    assert (result.bound() > result.rising_share + result.unchanged_share).all()
    with pytest.raises(DataError, match="no weights to move"):
        local_optimality(LambdaMART(2).fit(train), train)
    with pytest.raises(DataError, match="no relevant documents"):
        local_optimality(trained, train.replace(labels={"relevance": np.zeros(len(train))}), "ndcg")
    with pytest.raises(DataError, match="steps must be positive"):
        local_optimality(trained, train, steps=(0.0,))
    with pytest.raises(DataError, match="directions must be"):
        local_optimality(trained, train, directions=0)
