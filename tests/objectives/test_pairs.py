"""Pair terms: every link, which pairs count, tiers and trusts, against the slow reference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import DataError, RankingData
from podium.boosting import Boosting
from podium.objectives import (
    XENDCG,
    Anneal,
    Constant,
    CrossEntropy,
    Debiased,
    Exponential,
    ExponentialGrowth,
    ExponentialShare,
    Fidelity,
    Hinge,
    Lambda,
    LambdaLoss,
    LinearGrowth,
    ListNet,
    Local,
    LocalSigmoid,
    Multiclass,
    Pairwise,
    Preferences,
    QueryRegression,
    Regression,
    SquaredHinge,
    Sum,
    Tiers,
    describe,
)  # fmt: skip
from podium.objectives.pair_terms import PairFilter
from tests.references.objectives import slow_pairs

SINGLE = {"rtol": 3e-6, "atol": 2e-6}
LINKS = [
    CrossEntropy(), CrossEntropy(2.0), LocalSigmoid(), LocalSigmoid(0.7), Hinge(), Hinge(0.3), SquaredHinge(),
    SquaredHinge(0.4), Fidelity(), Fidelity(1.7), Exponential(), Exponential(0.6),
]  # fmt: skip
TERMS = [
    Lambda("ndcg", normalize=False), Lambda("err", sigma=1.5, normalize=False), Lambda("ap", normalize=True),
    Local("ndcg@3", normalize=False), Local("err", 0.5, normalize=False),
    Local("ndcg", -1.0, normalize=True), Local("rr", normalize=False), LambdaLoss(normalize=False),
    Lambda("success@2", normalize=False), Lambda("pfound", normalize=False),
    Lambda("pfound(gain=table:0/0/1/1,p_break=0.5)", normalize=False), Lambda("bpref", normalize=False),
    LambdaLoss(mu=0.0, normalize=False), LambdaLoss(mu=3.0, sigma=2.0, normalize=False),
    *(Pairwise(link) for link in LINKS), Pairwise(Hinge(), normalize=True), Pairwise(normalize=True),
]  # fmt: skip


def clicked(seed, n_queries=6, weights=False, missing=0.1):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_queries)
    n = int(sizes.sum())
    labels = rng.integers(0, 4, n).astype(np.float32)
    clicks = (rng.integers(0, 4, n) / 4).astype(np.float32)
    dwell = rng.integers(0, 3, n).astype(np.float32)
    for source in (labels, clicks):
        source[rng.random(n) < missing] = np.nan
    extras = {"document_weights": rng.random(n) + 0.5, "query_weights": rng.random(n_queries) + 0.5} if weights else {}
    data = RankingData(
        rng.normal(size=(n, 3)), qid=np.repeat(np.arange(n_queries), sizes),
        labels={"relevance": labels, "clicks": clicks, "dwell": dwell}, positions=rng.integers(1, 6, n), **extras,
    )  # fmt: skip
    return data, np.round(rng.normal(size=n) * 2) / 2


@pytest.mark.parametrize("link", LINKS, ids=str)
def test_links_are_derivatives_of_their_cost(link):
    o = np.linspace(-4.03, 4.01, 60)
    step = 1e-5
    assert np.allclose(link.gradient(o), -(link.cost(o + step) - link.cost(o - step)) / (2 * step), atol=1e-6)
    assert np.allclose(link.hessian(o), -(link.gradient(o + step) - link.gradient(o - step)) / (2 * step), atol=1e-5)
    assert not link.has_hessian or (link.hessian(o)[link.gradient(o) > 0] > 0).all()
    far = np.array([-2000.0, 2000.0])
    assert np.isfinite(link.gradient(far)).all()
    assert np.isfinite(link.hessian(far)).all()


@pytest.mark.parametrize("term", TERMS, ids=describe)
@pytest.mark.parametrize("stretch", [1.0, 200.0])
def test_terms_equal_the_slow_reference(term, stretch):
    for seed in range(4):
        data, scores = clicked(seed, weights=seed % 2 == 1 and not term.normalize)
        computed = term.bind(data).gradients(scores * stretch)
        expected = slow_pairs(data, scores * stretch, term)
        scale = max(1.0, np.abs(expected[0]).max())
        assert np.allclose(computed[0] / scale, expected[0] / scale, **SINGLE)
        assert np.allclose(computed[1], expected[1], **SINGLE)
        for q in range(data.n_queries):
            of_query = computed[0][data.rows(q)]
            assert abs(of_query.sum()) <= 2e-6 * np.abs(of_query).sum()


@pytest.mark.parametrize(
    "term",
    [
        Lambda("ndcg", normalize=False),
        Lambda("err", normalize=False),
        Local("ndcg", normalize=False),
        Pairwise(),
        Pairwise(Fidelity()),
    ],
    ids=str,
)
def test_groups_and_trusts(term):
    data, scores = clicked(3)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, len(data)).astype(np.float32)
    groups[::5] = np.nan
    among = PairFilter(groups, nonzero=True, trusts=(rng.random(len(data)) + 0.5).astype(np.float32))
    computed, expected = term.bind_among(data, among).gradients(scores), slow_pairs(data, scores, term, among)
    assert np.abs(expected[0]).sum() > 0
    assert np.allclose(computed[0], expected[0], **SINGLE)
    assert np.allclose(computed[1], expected[1], **SINGLE)


@pytest.mark.parametrize("n", [33, 1100])
@pytest.mark.parametrize(
    "term", [LambdaLoss(normalize=False), Pairwise(SquaredHinge()), Local("ndcg", normalize=False)], ids=describe
)
def test_long_lists(term, n):
    rng = np.random.default_rng(1)
    data = RankingData(rng.normal(size=(n, 1)), rng.integers(0, 3, n), qid=np.zeros(n, int))
    scores = rng.normal(size=n)
    computed = term.bind(data).gradients(scores)
    part = np.sort(rng.permutation(n)[:33])
    if n == 33:
        expected = slow_pairs(data, scores, term)
        assert np.allclose(computed[0], expected[0], rtol=1e-5, atol=1e-5)
        assert np.allclose(computed[1], expected[1], rtol=1e-5, atol=1e-5)
    assert abs(computed[0].sum()) <= 1e-5 * np.abs(computed[0]).sum()
    assert np.isfinite(computed[1][part]).all()


def slow_tiers(data, scores, tiers, nonzero, weights):
    """PairFilter by definition, tier after tier."""
    place = np.empty(len(data), np.int64)
    place[data.canonical_order] = np.arange(len(data))
    lambdas = np.zeros(len(data))
    for k, tier in enumerate(tiers):
        before = np.column_stack([np.zeros(len(data)), *(data.labels[other.labels] for other in tiers[:k])])
        for i in range(len(data)):  # pairs of a query that are equal before, found by giving each its own groups
            for j in range(i):
                same = data.qid[i] == data.qid[j] and np.array_equal(before[i], before[j], equal_nan=True)
                if not same:
                    continue
                groups = np.full(len(data), np.nan, np.float32)
                groups[place[[i, j]]] = 1
                lambdas += weights[k] * slow_pairs(data, scores, tier, PairFilter(groups, nonzero[k]))[0]
    return lambdas


@pytest.mark.parametrize("nonzero", [None, (False, False, False), (True, True, True)])
def test_tiers_follow_their_definition(nonzero):
    tiers = (Lambda("ndcg", normalize=False), Lambda("cndcg", normalize=False), Pairwise(labels="dwell"))
    weights = (0.5, 0.3, 0.2)
    objective = Tiers(*tiers, weights=weights, nonzero=nonzero)
    for seed in range(3):
        data, scores = clicked(seed, 3)
        computed = objective.bind(data).gradients(scores)[0]
        expected = slow_tiers(data, scores, tiers, nonzero or (False, True, True), weights)
        assert np.allclose(computed, expected, rtol=1e-5, atol=1e-5)


def test_clicked_documents_without_a_human_label_count_in_the_tier_of_clicks():
    clicks, relevance = [0.9, 0.4, 0.2, 0.6, np.nan], [np.nan, np.nan, 1, 1, np.nan]
    data = RankingData(np.eye(5), labels={"relevance": relevance, "clicks": clicks}, qid=[1] * 5)
    lambdas = (
        Tiers(Lambda("ndcg", normalize=False), Lambda("cndcg", normalize=False), weights=(0.5, 0.5))
        .bind(data)
        .gradients(np.zeros(5))[0]
    )
    assert lambdas[0] == pytest.approx(-lambdas[1])
    assert lambdas[3] == pytest.approx(-lambdas[2])
    assert lambdas[0] > 0 < lambdas[3]
    assert lambdas[4] == 0


def test_unlabelled_documents_keep_their_rank():
    data = RankingData(np.eye(4), labels={"relevance": [3, np.nan, 0, 1]}, qid=[1] * 4)
    scores = np.array([1.0, 4.0, 3.0, 2.0])
    lambdas, hessians = Lambda(normalize=False).bind(data).gradients(scores)
    assert lambdas[1] == hessians[1] == 0
    without = RankingData(np.eye(4)[[0, 2, 3]], [3, 0, 1], qid=[1] * 3)
    assert not np.allclose(lambdas[[0, 2, 3]], Lambda(normalize=False).bind(without).gradients(scores[[0, 2, 3]])[0])


def test_schedules():
    assert [LinearGrowth(0.1, 0.25)(m) for m in (0, 2, 9)] == pytest.approx([0.1, 0.6, 2.35])
    growing = ExponentialGrowth(0.1, 2.0)
    assert growing(0) == 0.1
    assert growing(2) == pytest.approx(growing(1) + np.exp(-1.0))
    assert ExponentialShare(3.0)(0) == 0
    assert ExponentialShare(3.0)(6) == pytest.approx(np.exp(-0.5))
    data, scores = clicked(0)
    before, after = Lambda("ndcg", normalize=False), Local("ndcg@3", normalize=False)
    a, b = (part.bind(data).gradients(scores) for part in (before, after))
    for schedule, weight in ((LinearGrowth(0.25, 0.5), 0.75), (LinearGrowth(0.9, 0.5), 1.0), (lambda m: -m, 0.0)):
        computed = Anneal(before, after, schedule).bind(data).gradients(scores, 1)
        assert np.allclose(computed[0], (1 - weight) * a[0] + weight * b[0])
        assert np.allclose(computed[1], (1 - weight) * a[1] + weight * b[1])
    with pytest.raises(DataError, match="not a number"):
        Anneal(before, after, lambda m: None)


def test_a_sum_is_the_weighted_sum_of_its_parts():
    data, scores = clicked(0, weights=True)
    parts = Lambda("ndcg", normalize=True), QueryRegression(), ListNet()
    of_parts = [part.bind(data).gradients(scores, 3) for part in parts]
    gradients, hessians = Sum(*parts, weights=(0.5, 0.2, 0.3)).bind(data).gradients(scores, 3)
    assert np.allclose(gradients, sum(w * g for w, (g, _) in zip((0.5, 0.2, 0.3), of_parts, strict=True)))
    assert np.allclose(hessians, sum(w * h for w, (_, h) in zip((0.5, 0.2, 0.3), of_parts, strict=True)))
    assert Sum(*parts).weights == pytest.approx((1 / 3,) * 3)
    for alone in (Sum(parts[0]), Sum(*parts, weights=(1, 0, 0))):
        assert np.array_equal(alone.bind(data).gradients(scores, 3)[0], of_parts[0][0])
    assert not Sum(Lambda(normalize=False), QueryRegression()).bind(data).changes
    assert Sum(Lambda(normalize=False), XENDCG()).bind(data).changes
    assert Sum(Lambda(sigma=2.0, normalize=False), QueryRegression()).score_unit == math.inf
    (measure,) = Sum(Lambda("err", normalize=False), QueryRegression()).measuring(data).all_measures()
    assert measure.max_label == np.nanmax(data.relevance)


class TestPreferences:
    def data(self, seed=0, weights=False):
        rng = np.random.default_rng(seed)
        qid = np.repeat(np.arange(4), 5)
        i, j = rng.integers(0, 5, 30), rng.integers(0, 5, 30)
        keep = i != j
        base = 5 * rng.integers(0, 4, 30)
        extras = {"document_weights": rng.random(20) + 0.5, "query_weights": rng.random(4) + 0.5} if weights else {}
        return RankingData(
            rng.normal(size=(20, 3)), qid=qid,
            preferences=((base + i)[keep], (base + j)[keep], np.round(rng.random(keep.sum()), 1)), **extras,
        )  # fmt: skip

    @pytest.mark.parametrize("link", LINKS, ids=str)
    def test_by_definition(self, link):
        data = self.data(weights=True)
        scores = np.random.default_rng(1).normal(size=20)
        computed = Preferences(link).bind(data).gradients(scores)
        lambdas = np.zeros(20)
        step = 1e-5

        def cost(s):
            total = 0.0
            for i, j, p in zip(data.preferences.i, data.preferences.j, data.preferences.probability, strict=True):
                weight = data.query_weights[int(data.qid[i])] * np.sqrt(
                    data.document_weights[i] * data.document_weights[j]
                )
                gap = np.array([s[i] - s[j]])
                total += weight * (p * link.cost(gap)[0] + (1 - p) * link.cost(-gap)[0])
            return total

        for row in range(20):
            moved = np.zeros(20)
            moved[row] = step
            lambdas[row] = -(cost(scores + moved) - cost(scores - moved)) / (2 * step)
        assert np.allclose(computed[0], lambdas, atol=1e-5)
        assert abs(computed[0].sum()) < 1e-9

    def test_cross_entropy_is_ranknets(self):
        data = self.data()
        scores = np.random.default_rng(2).normal(size=20)
        lambdas, hessians = Preferences(CrossEntropy(1.3)).bind(data).gradients(scores)
        expected, bends = np.zeros(20), np.zeros(20)
        for i, j, share in zip(data.preferences.i, data.preferences.j, data.preferences.probability, strict=True):
            p = 1 / (1 + np.exp(-1.3 * (scores[i] - scores[j])))
            expected[i] += 1.3 * (share - p)  # λ_ij = σ (P̄ − P)
            expected[j] -= 1.3 * (share - p)
            bends[i] += 1.69 * p * (1 - p)
            bends[j] += 1.69 * p * (1 - p)
        assert np.allclose(lambdas, expected)
        assert np.allclose(hessians, bends)

    def test_needs_pairs(self):
        with pytest.raises(DataError, match="Preferences needs pairs"):
            Preferences().bind(RankingData(np.eye(2), [0, 1], qid=[1, 1]))


class TestDebiased:
    def test_propensities_weight_pairs_by_the_better_document(self):
        data, scores = clicked(5)
        chances = (1.0, 0.5, 0.25)
        computed = Debiased(Lambda("ndcg", normalize=False), chances).bind(data).gradients(scores)
        trusts = 1 / np.array([1.0, 0.5, 0.25, 0.25, 0.25], np.float32)[data.positions[data.canonical_order] - 1]
        expected = slow_pairs(data, scores, Lambda("ndcg", normalize=False), PairFilter(trusts=trusts))
        assert np.allclose(computed[0], expected[0], **SINGLE)

    def test_biases_take_newton_steps(self):
        data, scores = clicked(6)
        objective = Debiased(Lambda("ndcg", normalize=False), rate=0.5, l2=0.1)
        bound = objective.bind(data)
        for _ in range(3):
            biases = bound.biases.copy()
            lambdas, hessians = bound.gradients(scores)
            expected = Lambda("ndcg", normalize=False).bind(data).gradients(scores + biases[data.positions])
            assert np.allclose(lambdas, expected[0])
            for p in range(1, 6):
                here = data.positions == p
                held = 0.1 * here.sum()
                step = 0.5 * (lambdas[here].sum() - held * biases[p]) / (hessians[here].sum() + held)
                assert bound.biases[p] == pytest.approx(biases[p] + step, abs=1e-9)
        other = objective.bind(data)
        other.restore(bound.state())
        assert np.array_equal(other.gradients(scores)[0], bound.gradients(scores)[0])

    def test_invalid_arguments(self):
        data, _ = clicked(0)
        with pytest.raises(DataError, match="Debiased needs the position"):
            Debiased(Lambda(normalize=False)).bind(RankingData(np.eye(2), [0, 1], qid=[1, 1]))
        with pytest.raises(DataError, match="above 0 and at most 1"):
            Debiased(Lambda(normalize=False), [1.0, 0.0])
        with pytest.raises(DataError, match="changes its sign"):
            Debiased(Local(normalize=False))
        assert Debiased(Local(normalize=False), [1.0]).bind(data)


def test_unsupported_steps_and_objectives():
    for objective in (Local(), Pairwise(Hinge()), Pairwise(Fidelity()), Tiers(Lambda(), Local("cndcg")),
                      Sum(Lambda(), Local()), Anneal(Lambda(), Local(), Constant(0.5)),
                      Preferences(Hinge())):  # fmt: skip
        with pytest.raises(DataError, match=r"Newton's step divides by the hessian, but .*: use the step 'gradient'"):
            Boosting(objective=objective)
    Boosting(objective=Pairwise(SquaredHinge()))
    with pytest.raises(DataError, match="sum to 1"):
        Tiers(Lambda(normalize=False), Lambda("cndcg", normalize=False), weights=(0.5, 0.6))
    with pytest.raises(DataError, match="weights of parts must be non-negative"):
        Sum(Lambda(normalize=False), QueryRegression(), weights=(1.5, -0.5))
    with pytest.raises(DataError, match="an entry for each of the 2 tiers"):
        Tiers(Lambda(normalize=False), Lambda("cndcg", normalize=False), weights=(1.0,))
    with pytest.raises(DataError, match="needs the labels 'clicks'"):
        Tiers(Lambda(normalize=False), Lambda("cndcg", normalize=False)).bind(
            RankingData(np.eye(2), [0, 1], qid=[1, 1])
        )
    with pytest.raises(DataError, match="bound on NDCG"):
        LambdaLoss("err", normalize=False)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(TERMS))
def test_row_order_changes_no_bit(seed, term):
    data, scores = clicked(seed % 40, weights=True)
    shuffle = np.random.default_rng(seed).permutation(len(data))
    other = data.take(shuffle)
    a, b = term.bind(data).gradients(scores), term.bind(other).gradients(scores[shuffle])
    assert np.array_equal(a[0][shuffle], b[0])
    assert np.array_equal(a[1][shuffle], b[1])


def test_gaps_equal_to_the_offset():
    """Scores far apart, and one exactly 0.01 above another: no division by zero."""
    data = RankingData(np.eye(4), [0, 1, 2, 0], qid=[1] * 4)
    scores = np.array([1000.0, float(np.float32(0.01)), 0.0, -1000.0])
    assert np.isfinite(Lambda(normalize=True).bind(data).gradients(scores)[0]).all()


def test_several_outputs_do_not_mix():
    data, _ = clicked(0)
    for objective in (
        Anneal(Lambda(normalize=False), Multiclass()),
        Debiased(Multiclass()),
        Sum(Lambda(normalize=False), Multiclass()),
    ):
        with pytest.raises(DataError, match="one score for each document"):
            objective.bind(data)


def test_no_labels_at_all():
    data = RankingData(np.eye(3), [np.nan] * 3, qid=[1] * 3)
    for objective in (Lambda(normalize=False), Pairwise(), ListNet(), Regression()):
        with pytest.raises(DataError, match="needs labels: the source 'relevance' has none"):
            objective.bind(data)
