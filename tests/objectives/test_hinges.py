"""Hinge losses: against the maximum over all orders, and cutting planes against scikit-learn's SVM."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

import podium
from podium import DataError, LambdaMART, LinearRanker, PodiumWarning, RankingData
from podium.linear import CuttingPlanes
from podium.linear.cutting_planes import best_shares
from podium.linear.design import DesignMatrix
from podium.measures import AP
from podium.objectives import SVMMAP, Hinge, Pairwise, Preferences
from podium.objectives.hinges import bind_hinge


def lists(seed, longest=5, n_queries=4):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, n_queries)
    n, labels = int(sizes.sum()), rng.integers(0, 3, int(sizes.sum())).astype(np.float32)
    labels[rng.random(n) < 0.1] = np.nan
    data = RankingData(
        np.round(rng.normal(size=(n, 3)), 1), labels, qid=np.repeat(np.arange(n_queries), sizes),
        query_weights=rng.random(n_queries) + 0.5,
    )  # fmt: skip
    return data, np.round(rng.normal(size=n), 1)


def feature_of_ap(labels, s, order):
    """F = Σ ± (s_i − s_j) / (R N), + where the relevant document i comes first."""
    good, bad = [i for i in order if labels[i] >= 1], [i for i in order if labels[i] < 1]
    place = {i: k for k, i in enumerate(order)}
    signed = sum((1 if place[i] < place[j] else -1) * (s[i] - s[j]) for i in good for j in bad)
    return signed / max(len(good) * len(bad), 1)


def slow_cost(labels, s):
    """max_π (1 − AP(π) + F(s, π)) − F(s, π*); 0 if all or no documents are relevant."""
    if not 0 < (labels >= 1).sum() < len(labels):
        return 0.0
    ideal = feature_of_ap(labels, s, sorted(range(len(labels)), key=lambda i: -labels[i]))
    orders = permutations(range(len(labels)))
    return max(1 - AP().value(labels[list(order)]) + feature_of_ap(labels, s, order) for order in orders) - ideal


def cost_of(plane, scores):
    gradients, offset = plane
    return offset - float(gradients @ scores)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_svm_map_is_the_maximum_over_all_orders(seed):
    data, scores = lists(seed)
    slow = 0.0
    for q in range(data.n_queries):
        rows = data.rows(q)
        rows = rows[~np.isnan(data.relevance[rows])]
        if len(rows):
            slow += float(data.query_weights[q]) * slow_cost(data.relevance[rows], scores[rows])
    bound = SVMMAP().bind(data)
    plane = bound.plane(scores)
    assert cost_of(plane, scores) == pytest.approx(slow, abs=1e-9)
    assert np.array_equal(bound.gradients(scores)[0], plane[0])
    other = np.random.default_rng(seed + 1).normal(size=len(data))
    assert cost_of(bound.plane(other), other) >= cost_of(plane, other) - 1e-9  # the plane is nowhere above the cost


def test_svm_map_bounds_the_loss_of_average_precision():
    data = podium.artificial(10, documents=12, features=3)
    for threshold in (1, 2):
        scores, measure = data.feature(0).astype(float), f"ap(empty=one, threshold={threshold})"
        lost = data.n_queries * (1 - podium.evaluate(data, scores, measure).means[measure])
        assert cost_of(SVMMAP(threshold).bind(data).plane(scores), scores) >= lost


@pytest.mark.parametrize("objective", [Pairwise(Hinge()), Pairwise(Hinge(0.3)), Preferences(Hinge(0.5))], ids=str)
def test_planes_of_pairs(objective):
    rng = np.random.default_rng(0)
    i, j = np.array([0, 1, 2, 5, 4]), np.array([1, 2, 0, 4, 5])
    data = RankingData(
        rng.normal(size=(8, 2)), [0, 1, 2, 0, 1, 1, 0, 2], qid=[0, 0, 0, 0, 1, 1, 1, 1], query_weights=[1.0, 2.5],
        document_weights=rng.random(8) + 0.5, preferences=(i, j, rng.random(5)),
    )  # fmt: skip
    bound, scores = bind_hinge(objective, data), rng.normal(size=8)
    d, u, margin = data.document_weights.astype(float), data.query_weights.astype(float), objective.link.margin
    if isinstance(objective, Preferences):
        shares = data.preferences.probability.astype(float)
        pairs = [*zip(i, j, shares, strict=True), *zip(j, i, 1 - shares, strict=True)]
    else:
        pairs = [(a, b, 1.0) for a in range(8) for b in range(8)
                 if data.query_of_row[a] == data.query_of_row[b] and data.relevance[a] > data.relevance[b]]  # fmt: skip
    slow = sum(
        share * u[data.query_of_row[a]] * np.sqrt(d[a] * d[b]) * max(0, margin - (scores[a] - scores[b]))
        for a, b, share in pairs
    )
    assert cost_of(bound.plane(scores), scores) == pytest.approx(slow, rel=1e-5)


def test_best_shares_are_those_of_a_general_solver():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 12):
        vectors, offsets = rng.normal(size=(n, 4)), rng.normal(size=n)
        products = vectors @ vectors.T
        start = np.eye(n)[0]
        shares = best_shares(products, offsets, start)

        def value(x, products=products, offsets=offsets):
            return 0.5 * x @ products @ x - offsets @ x

        slow = minimize(
            value, np.full(n, 1 / n), method="SLSQP", bounds=[(0, 1)] * n,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1}, options={"ftol": 1e-14, "maxiter": 1000},
        )  # fmt: skip
        assert shares.sum() == pytest.approx(1)
        assert (shares >= 0).all()
        assert value(shares) <= slow.fun + 1e-9


def differences(data):
    """z_i − z_j of all pairs i ▷ j, z the standardized features."""
    design = DesignMatrix(data, 1)
    z = (data.features - design.means) * design.scales
    pairs = [(i, j) for q in range(data.n_queries) for i in data.rows(q) for j in data.rows(q)
             if data.relevance[i] > data.relevance[j]]  # fmt: skip
    i, j = np.array(pairs).T
    return z[i] - z[j], design.scales


class TestRankSVM:
    @pytest.mark.parametrize("l2", [1.0, 0.01, 1e-4])
    def test_is_the_svm_of_scikit_learn_on_differences(self, l2):
        data = podium.artificial(15, documents=12, features=5, seed=1)
        z, scales = differences(data)
        strength, side = l2 * len(data), np.where(np.arange(len(z)) % 2, 1, -1)
        svm = LinearSVC(loss="hinge", fit_intercept=False, C=1 / strength, tol=1e-9, max_iter=10**6)
        other = svm.fit(z * side[:, None], side).coef_[0]
        model = LinearRanker(objective="pairwise(hinge)", l2=l2, n_iterations=300).fit(data)
        weights = model.coef_ / scales

        def cost(w):
            return 0.5 * strength * w @ w + np.maximum(0, 1 - z @ w).sum()

        assert cost(weights) == pytest.approx(cost(other), rel=1e-7)
        assert weights == pytest.approx(other, abs=2e-3 * np.abs(other).max())

    def test_a_structured_svm_has_no_better_weights_nearby(self):
        data = podium.artificial(10, documents=10, features=3, seed=2)
        design, l2 = DesignMatrix(data, 1), 0.01
        bound = SVMMAP().bind(data)

        def cost(w):
            scores = design.scores(w)
            return 0.5 * l2 * len(data) * w @ w + cost_of(bound.plane(scores), scores)

        model = LinearRanker("ap", objective="svm_map", l2=l2, n_iterations=300).fit(data)
        weights = model.coef_ / design.scales
        best = minimize(cost, weights + 0.01, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11})
        assert cost(weights) <= best.fun + 1e-7
        assert model.predict(data) == pytest.approx(design.scores(weights))

    def test_conventions(self):
        data, valid = (podium.artificial(20, documents=10, features=4, part=p) for p in ("train", "valid"))
        shuffle = np.random.default_rng(0).permutation(len(data))
        for objective in ("pairwise(hinge)", "svm_map"):
            serial = LinearRanker(objective=objective, l2=0.01, n_threads=1).fit(data, valid=valid)
            two = LinearRanker(objective=objective, l2=0.01, n_threads=2).fit(data.take(shuffle), valid=valid)
            assert serial.digest() == two.digest()
            assert serial.best_iteration_ == int(np.argmax(serial.history_["valid/ndcg@10"]))
        by_patience = LinearRanker(objective="pairwise(hinge)", patience=1).fit(data, valid=valid)
        assert len(by_patience.history_["valid/ndcg@10"]) <= by_patience.best_iteration_ + 2

    def test_invalid_arguments(self):
        data = podium.artificial(10, documents=10, features=4)
        with pytest.raises(DataError, match="l2 must be above 0"):
            LinearRanker(objective="pairwise(hinge)", l2=0).fit(data)
        with pytest.raises(DataError, match="takes Newton steps, but the hessian of Hinge"):
            LinearRanker(objective="pairwise(hinge, normalize=true)").fit(data)
        with pytest.raises(DataError, match="cutting planes are for hinge losses"):
            CuttingPlanes(objective=Pairwise())
        with pytest.warns(PodiumWarning, match=r"after 1 steps the cost may still be .*%"):
            LinearRanker(objective="pairwise(hinge)", n_iterations=1).fit(data)
        with pytest.warns(PodiumWarning, match="learning_rate=0.5 has no effect: a hinge loss"):
            LinearRanker(objective="pairwise(hinge)", l2=0.1, learning_rate=0.5).fit(data)
        with pytest.raises(DataError, match="threshold must be a number"):
            SVMMAP("ap")


def test_trees_and_nets_train_on_svm_map():
    data = podium.artificial(20, documents=10, features=4)
    model = LambdaMART(10, 4, objective="svm_map", step="gradient", min_documents_in_leaf=5).fit(data)
    assert model.score(data) > LambdaMART(1, 2, min_documents_in_leaf=5).fit(data).score(data)
    with pytest.raises(DataError, match="the hessian of SVM-MAP is zero"):
        LambdaMART(objective="svm_map").fit(data)
    pytest.importorskip("torch")
    podium.LambdaRank(objective="svm_map", epochs=1, n_threads=1).fit(data)
