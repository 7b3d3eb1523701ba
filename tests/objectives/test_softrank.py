"""SoftRank against all outcomes of all comparisons, its slopes, its limits, and its samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium import DataError, LambdaMART, LinearRanker, RankingData
from podium.core.team import Team
from podium.measures import as_measure
from podium.objectives import Anneal, Debiased, Lambda, SoftRank
from tests.references.objectives import slow_soft_values

MEASURES = ["ndcg", "ndcg@2", "dcg(gain=linear)@3", "rbp", "precision@2", "ndcg(short=zero)@4"]


def documents(seed, longest=6, n_queries=4):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, n_queries)
    n = int(sizes.sum())
    labels = rng.integers(0, 4, n).astype(np.float32)
    labels[rng.random(n) < 0.1] = np.nan
    labels[0] = 1
    data = RankingData(
        rng.normal(size=(n, 2)), labels, qid=np.repeat(np.arange(n_queries), sizes),
        document_weights=rng.random(n) + 0.5, query_weights=rng.random(n_queries) + 0.5,
    )  # fmt: skip
    return data, rng.normal(size=n)


def unweighted(data):
    return data.replace(document_weights=None, query_weights=None)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(MEASURES), st.floats(0.05, 5), st.integers(0, 1000), st.sampled_from([0.0, 1.0, 8.0]))
def test_values_and_slopes_are_those_of_all_outcomes(measure, sigma, seed, spread):
    data, scores = documents(seed)
    scores, measure = scores * spread, as_measure(measure)
    soft = SoftRank(measure, sigma)
    plain = unweighted(data)
    assert np.allclose(soft.values(plain, scores), slow_soft_values(plain, scores, measure, sigma), atol=1e-12)
    lambdas, hessians = soft.bind(data).gradients(scores)
    step = 1e-4 * sigma
    for row in range(len(data)):
        moved = np.zeros(len(data))
        moved[row] = step
        up, down = (slow_soft_values(data, scores + sign * moved, measure, sigma) for sign in (1, -1))
        assert lambdas[row] * sigma == pytest.approx(data.query_weights @ (up - down) / 2e-4, abs=1e-6)
    for q in range(data.n_queries):
        assert abs(lambdas[data.rows(q)].sum()) < 1e-12 * max(1.0, np.abs(lambdas).max())  # only differences count
    assert (lambdas[np.isnan(data.relevance)] == 0).all()
    assert not hessians.any()


def test_long_lists_with_and_without_cutoff():
    data, scores = documents(1, longest=60, n_queries=3)
    for measure in ("ndcg", "ndcg@5", "ndcg@30"):
        soft = SoftRank(measure, 0.3)
        lambdas = soft.bind(unweighted(data)).gradients(scores)[0]
        rng = np.random.default_rng(0)
        for _ in range(3):
            along = rng.normal(size=len(data))
            up, down = (soft.values(unweighted(data), scores + sign * 1e-5 * along).sum() for sign in (1, -1))
            assert lambdas @ along == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-8)


def test_without_noise_it_is_the_measure():
    data, scores = documents(3, longest=12, n_queries=10)
    labelled = unweighted(data).take(np.flatnonzero(~np.isnan(data.relevance)))
    scores = scores[~np.isnan(data.relevance)]
    for measure in ("ndcg", "ndcg@3", "precision@2"):
        expected = podium.evaluate(labelled, scores, measure).values[measure]
        assert np.allclose(SoftRank(measure, 1e-9).values(labelled, scores), expected, atol=1e-12)
        assert (SoftRank(measure, 1e-9).bind(labelled).gradients(scores)[0] == 0).all()  # no slope is left


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@2"])
def test_samples_have_the_exact_gradient_as_their_mean(measure):
    data, scores = documents(2, longest=7, n_queries=3)
    exact = SoftRank(measure, 0.7).bind(data).gradients(scores)[0]
    assert np.abs(exact).max() > 0.05
    rounds = [SoftRank(measure, 0.7, 0, 200).bind(data).gradients(scores, m)[0] for m in range(200)]
    error = np.std(rounds, axis=0) / np.sqrt(len(rounds))
    assert (np.abs(np.mean(rounds, axis=0) - exact) <= 4.5 * error + 1e-12).all()
    assert error.max() < 2e-3
    few = SoftRank(measure, 0.7, 0, 2).bind(data)
    assert not np.array_equal(few.gradients(scores, 0)[0], few.gradients(scores, 1)[0])  # drawn anew
    assert few.changes
    estimated = SoftRank(measure, 0.7, 0, 20_000).values(unweighted(data), scores)
    assert np.allclose(estimated, SoftRank(measure, 0.7).values(unweighted(data), scores), atol=0.01)


def test_samples_depend_on_content_and_seed_alone():
    data, scores = documents(7, longest=40, n_queries=5)
    shuffle = np.random.default_rng(0).permutation(len(data))
    results = []
    for rows, s, n_threads in ((data, scores, 1), (data.take(shuffle), scores[shuffle], 2), (data, scores, 3)):
        bound = SoftRank(exact_limit=27, samples=6).bind(rows)  # longer lists are sampled, others exact
        with Team(n_threads) as bound.team:
            results.append(bound.gradients(s, 5)[0])
    assert np.array_equal(results[0][shuffle], results[1])
    assert np.array_equal(results[0], results[2])
    other = SoftRank(exact_limit=27, samples=6, seed=1).bind(data).gradients(scores, 5)[0]
    sizes = []
    exact = SoftRank().bind(data).gradients(scores)[0]
    for q in range(5):
        rows = data.rows(q)
        sizes.append((~np.isnan(data.relevance[rows])).sum())
        assert np.array_equal(results[0][rows], other[rows]) == (sizes[-1] <= 27)
        assert np.array_equal(results[0][rows], exact[rows]) == (sizes[-1] <= 27)
    assert min(sizes) <= 27 < max(sizes)


def test_a_cutoff_makes_longer_lists_exact():
    data, _ = documents(5, longest=40, n_queries=2)
    n = int(data.query_sizes.max())
    assert n > 20
    assert not SoftRank("ndcg@5", exact_limit=int(np.ceil(np.sqrt(5 * n)))).bind(data).changes
    assert SoftRank("ndcg@5", exact_limit=10).bind(data).changes
    assert SoftRank("ndcg", exact_limit=20).bind(data).changes


def test_scores_far_apart_and_equal_scores():
    data, scores = documents(6, longest=30)
    for factor in (0.0, 1e4, 1e300):
        for soft in (SoftRank(), SoftRank(sigma=1e-200), SoftRank(exact_limit=0)):
            assert np.isfinite(soft.values(data, factor * scores)).all()
            assert np.isfinite(SoftRank().bind(data).gradients(factor * scores)[0]).all()


class TestTraining:
    def test_trees_learn(self):
        train, test = podium.artificial(100, documents=20, features=6).split(0.5, 0.5)
        before = podium.evaluate(test, np.zeros(len(test)), "ndcg@10").means.popitem()[1]
        for objective in ("softrank(ndcg)", "softrank(ndcg@10, sigma=0.5)", "softrank(exact_limit=5)"):
            model = LambdaMART(40, 8, objective=objective, step="gradient").fit(train)
            assert model.score(test) > before + 0.15

    def test_only_the_gradient_step_is_allowed(self):
        data = podium.artificial(20, features=4)
        with pytest.raises(DataError, match="the hessian of SoftRank changes its sign: use the step 'gradient'"):
            LambdaMART(2, objective="softrank").fit(data)
        with pytest.raises(DataError, match="takes Newton steps, but the hessian of SoftRank"):
            LinearRanker(objective="softrank").fit(data)
        with pytest.raises(DataError, match="estimated by Newton steps, but the hessian of SoftRank"):
            Debiased(SoftRank())
        assert not Anneal(Lambda(), SoftRank()).has_hessian

    def test_labels_without_a_gain_are_refused(self):
        data = RankingData(np.eye(2), [0, -1], qid=[1, 1])
        with pytest.raises(DataError, match="labels must be non-negative"):
            SoftRank().bind(data)
        with pytest.raises(DataError, match="SoftRank needs the labels 'clicks'"):
            SoftRank("cndcg").bind(data)
