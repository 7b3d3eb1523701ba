"""NDCG of clicks weighted by inverse propensities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium import NDCG, DataError, RankingData
from podium.measures import BoundMeasures, PropensityNDCG, Ranking, parse

PROPENSITIES = (1.0, 0.5, 0.25)


def shown_data(clicks, positions, qid=None):
    qid = np.zeros(len(clicks), int) if qid is None else qid
    return RankingData(np.empty((len(clicks), 0)), qid=qid, labels={"clicks": clicks}, positions=positions)


def slowly(clicks, positions, scores, cutoff):
    """Σ c/p · 1/log2(1 + r), divided by that of the order by c/p."""
    gains = [c / PROPENSITIES[min(p, 3) - 1] if c else 0.0 for c, p in zip(clicks, positions, strict=True)]
    by_score = [gains[k] for k in sorted(range(len(gains)), key=lambda k: -scores[k])]
    dcg, ideal = (
        sum(g / np.log2(1 + r) for r, g in enumerate(order[:cutoff], 1)) for order in (by_score, sorted(gains)[::-1])
    )
    return dcg / ideal if ideal else 0.0


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 0.5, 1]), st.integers(1, 6)), min_size=1, max_size=8), st.integers(0, 99)
)
def test_equals_its_definition(documents, seed):
    clicks, positions = map(list, zip(*documents, strict=True))
    scores = np.random.default_rng(seed).permutation(len(clicks)).astype(float)
    data = shown_data(clicks, positions)
    for cutoff in (None, 2):
        measure = PropensityNDCG(cutoff, propensities=PROPENSITIES)
        expected = slowly(clicks, positions, scores, cutoff)
        assert measure.values(Ranking(data, scores))[0] == pytest.approx(expected, abs=1e-6)
        assert BoundMeasures(data, {"m": measure}).means(scores)["m"] == pytest.approx(expected, abs=1e-6)


def test_without_bias_it_is_ndcg_and_with_true_propensities_its_dcg_has_no_bias():
    rng = np.random.default_rng(3)
    data = shown_data(rng.integers(0, 2, 40), rng.integers(1, 9, 40), np.repeat(np.arange(4), 10))
    scores = rng.normal(size=40)
    plain = NDCG(5, labels="clicks", gain="linear").values(Ranking(data, scores))
    assert np.allclose(PropensityNDCG(5, propensities=[1.0]).values(Ranking(data, scores)), plain)
    relevant, positions = np.array([1.0, 0, 1, 0]), np.array([1, 2, 3, 4])
    propensity = np.array([1.0, 0.5, 0.25, 0.25])
    clicks = relevant * (rng.random((4000, 4)) < propensity)
    measure = PropensityNDCG(propensities=PROPENSITIES)
    repeated = shown_data(clicks.ravel(), np.tile(positions, 4000), np.repeat(np.arange(4000), 4))
    gains = measure.labels_in(repeated, repeated.order).reshape(4000, 4)
    assert np.allclose(gains.mean(axis=0), relevant, atol=0.1)


def test_names_parse_and_invalid_propensities_are_refused():
    measure = PropensityNDCG(10, propensities=PROPENSITIES)
    assert str(measure) == "propensity_ndcg(propensities=1/0.5/0.25)@10"
    assert parse(str(measure)) == measure
    assert parse("propensity_ndcg(propensities=1)").propensities == (1.0,)
    with pytest.raises(DataError, match="that users look at positions 1, 2, …"):
        PropensityNDCG(10)
    with pytest.raises(DataError, match="above 0 and at most 1"):
        PropensityNDCG(propensities=[1.0, 0.0])
    with pytest.raises(DataError, match="list of numbers"):
        parse("propensity_ndcg(propensities=a/b)")
    with pytest.raises(DataError, match="needs the position at which"):
        measure.values(Ranking(RankingData([[0.0]], qid=[1], labels={"clicks": [1]}), [1.0]))
    with pytest.raises(DataError, match="every clicked document must have a position, but row 1 has none"):
        podium.evaluate(shown_data([0, 1], [1, -1]), [2, 1], measure)
    with pytest.raises(DataError, match="no swap deltas"):
        podium.objectives.Lambda(measure).trained_measure().refuse_without_swaps()


def test_propensity_ndcg_selects_the_iteration():
    data = podium.artificial(20, documents=6, features=4)
    shown = data.replace(labels={"clicks": (data.relevance > 1).astype(float)}, positions=np.tile(np.arange(1, 7), 20))
    model = podium.LambdaMART(
        4, 4, measure="propensity_ndcg(propensities=1/0.5)@5", objective="lambda(ndcg)", patience=2
    ).fit(shown, valid=shown)
    assert 1 <= model.n_trees_ <= 4
