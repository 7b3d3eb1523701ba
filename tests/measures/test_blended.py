"""Q-measure against a separate implementation, on lists, ties, gradients and the sweep."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import AP
from podium.combining import Sweep
from podium.measures import QMeasure, Ranking, parse
from podium.objectives import Lambda
from tests.references.objectives import slow_lambdas


def q_by_definition(gains, beta=1.0, cutoff=None):
    """Sakai 2007, equation by equation."""
    ideal = sorted(gains, reverse=True)
    relevant = [gain > 0 for gain in gains]
    total = 0.0
    for r in range(1, len(gains) + 1):
        if relevant[r - 1] and (cutoff is None or r <= cutoff):
            total += (sum(relevant[:r]) + beta * sum(gains[:r])) / (r + beta * sum(ideal[:r]))
    return total / sum(relevant)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=12).filter(any),
    st.sampled_from([0.0, 0.5, 1.0, 10.0]),
    st.sampled_from([None, 1, 3, 20]),
)
def test_equals_the_definition(labels, beta, cutoff):
    measure = QMeasure(cutoff, beta=beta)
    data = podium.RankingData(np.empty((len(labels), 0)), labels, qid=np.zeros(len(labels), int))
    expected = q_by_definition(labels, beta, cutoff)
    assert measure.value(np.array(labels, float)) == pytest.approx(expected, rel=1e-12)
    assert measure.values(Ranking(data, -np.arange(len(labels))))[0] == pytest.approx(expected, rel=1e-12)


def test_without_gains_it_is_average_precision():
    labels = np.random.default_rng(1).integers(0, 4, 50).astype(np.float64)
    assert QMeasure(beta=0).value(labels) == pytest.approx(AP().value(labels), rel=1e-14)
    assert np.allclose(QMeasure(beta=0).swaps(labels), AP().swaps(labels), atol=1e-14)


@pytest.mark.parametrize("name", ["q", "q(beta=3)", "q(gain=exponential)", "q@5"])
def test_gradients_equal_the_slow_reference(name):
    data = podium.artificial(6, documents=40, features=3)
    scores = np.random.default_rng(2).normal(size=len(data))
    measure = parse(name)
    gradients = Lambda(measure, normalize=False).bind(data).gradients(scores)
    expected = slow_lambdas(data, scores, measure)
    assert np.abs(expected[0]).max() > 0
    assert np.allclose(gradients[0], expected[0], rtol=3e-6, atol=2e-6)
    assert np.allclose(gradients[1], expected[1], rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("ties", ["expected", "stable"])
@pytest.mark.parametrize("name", ["q", "q(beta=3)@4", "ap"])
def test_the_sweep_equals_brute_force(name, ties):
    data = podium.artificial(5, documents=12, features=3)
    first, second = np.round(2 * data.feature(0)), np.round(2 * data.feature(1))  # with ties for every α
    fast = Sweep(data, name, ties)
    slow = Sweep(data, name, ties)
    assert fast.tables is not None
    slow.tables = None
    for sweep in (fast, slow):
        sweep.path = sweep.best(first, second, -2.0, 2.0).path
    middles = np.linspace(-1.993, 1.993, 300)
    assert np.allclose(fast.path.at(middles), slow.path.at(middles), atol=1e-9)


def test_q_measure_trains():
    data = podium.artificial(30, features=4)
    model = podium.LambdaMART(5, 6, measure="q", objective="lambda(q)").fit(data)
    trained, constant = (podium.evaluate(data, scores, ["q(ties=expected)"]) for scores in (model, np.zeros(len(data))))
    assert trained.means["q(ties=expected)"] > constant.means["q(ties=expected)"] + 0.05
