"""ApproxNDCG, ListNet of the first k, QuerySoftMax and GBRank: against slow references and CatBoost."""

import math
from itertools import permutations

import numpy as np
import pytest

import podium
from podium import DataError, LambdaMART, LinearRanker, RankingData
from podium.objectives import ApproxNDCG, GBRank, ListNet, Pairwise, QuerySoftMax, SquaredHinge, TopListNet
from podium.objectives.listwise import Lists, softmax_cross_entropy
from podium.objectives.softmax import _of_remaining
from tests.objectives.test_lists_and_points import documents, softmax


def slopes_of(cost, scores, step=1e-5):
    """−∂cost/∂s by central differences."""
    moves = step * np.eye(len(scores))
    return np.array([(cost(scores - move) - cost(scores + move)) / (2 * step) for move in moves])


def by_query(data):
    """The labelled rows of each query, their labels and weights d, and u_q."""
    for q in range(data.n_queries):
        rows = data.rows(q)
        rows = rows[~np.isnan(data.relevance[rows])]
        if len(rows):
            d = data.document_weights[rows].astype(float)
            yield rows, data.relevance[rows].astype(float), d, float(data.query_weights[q])


class TestApproxNDCG:
    @pytest.mark.parametrize("objective", [ApproxNDCG(), ApproxNDCG("ndcg(gain=linear)", 3.0)], ids=str)
    def test_lambdas_are_slopes(self, objective):
        def cost(data, scores):
            total = 0.0
            for rows, labels, d, u in by_query(data):
                gains, s = objective.measure.gains(labels), scores[rows]
                ideal = sum(g / math.log2(2 + k) for k, g in enumerate(sorted(gains, reverse=True)))
                for i, g in enumerate(gains):
                    rank = 1 + sum(1 / (1 + math.exp(objective.sigma * (s[i] - t))) for j, t in enumerate(s) if j != i)
                    total -= u * d[i] * g / math.log2(1 + rank) / (ideal or 1.0)
            return total

        for seed in range(3):
            data, scores = documents(seed)
            lambdas, _ = objective.bind(data).gradients(scores)
            slow = slopes_of(lambda s, data=data: cost(data, s), scores)
            assert lambdas == pytest.approx(slow, abs=1e-7)

    def test_a_steep_sigmoid_gives_ndcg(self):
        data = podium.artificial(20, documents=10, features=3)
        scores = data.feature(0).astype(float)
        exact = podium.evaluate(data, scores, "ndcg").means["ndcg"]
        assert ApproxNDCG(sigma=1e5).values(data, scores).mean() == pytest.approx(exact, abs=1e-4)
        far, _ = ApproxNDCG().bind(data).gradients(scores * 1e6)
        assert np.isfinite(far).all()

    def test_threads_share_lists(self):
        data = podium.artificial(60, documents=40, features=3)
        scores = data.feature(0).astype(float)
        bound = ApproxNDCG().bind(data)
        with podium.core.team.Team(1) as bound.team:
            serial = bound.gradients(scores)[0]
        with podium.core.team.Team(3) as bound.team:
            assert np.array_equal(bound.gradients(scores)[0], serial)

    def test_learns(self):
        data = podium.artificial(40, documents=10, features=4)
        few = {"n_leaves": 4, "min_documents_in_leaf": 5, "objective": "approx_ndcg(sigma=2)", "step": "gradient"}
        models = [LambdaMART(n, **few).fit(data) for n in (1, 20)]
        assert models[1].score(data) > models[0].score(data)
        pytest.importorskip("torch")
        podium.LambdaRank(objective="approx_ndcg", epochs=1, n_threads=1).fit(data)

    def test_invalid_arguments(self):
        for measure in ("ndcg@5", "ap", "ndcg(discount=letor)", "dcg"):
            with pytest.raises(DataError, match="ApproxNDCG takes ndcg of the whole list with the discount log2"):
                ApproxNDCG(measure)
        with pytest.raises(DataError, match="changes its sign"):
            LambdaMART(objective="approx_ndcg").fit(podium.artificial(5, features=2))


def top_k_cost(labels, s, k):
    """−Σ P_l(g) log P_s(g) over all ordered choices g of k documents."""
    total = 0.0
    for choice in permutations(range(len(labels)), min(k, len(labels))):
        remaining, chance, log = list(range(len(labels))), 1.0, 0.0
        for i in choice:
            chance *= softmax(labels[remaining])[remaining.index(i)]
            log += math.log(softmax(s[remaining])[remaining.index(i)])
            remaining.remove(i)
        total -= chance * log
    return total


class TestTopListNet:
    @pytest.mark.parametrize("k", [1, 2, 3, 5])
    def test_the_mean_over_all_draws_is_the_cross_entropy(self, k):
        rng = np.random.default_rng(k)
        labels, scores = rng.integers(0, 3, 5).astype(float), rng.normal(size=5)
        data = RankingData(rng.normal(size=(5, 2)), labels, qid=np.zeros(5))
        objective = TopListNet(k)
        lists = Lists(data, "relevance", objective)
        mean = np.zeros(5)
        for order in permutations(range(5)):  # of the labels in lists
            remaining, chance, lambdas = np.ones(5, bool), 1.0, np.zeros(5)
            for drawn, i in enumerate(order):
                if drawn < k:
                    lambdas += softmax_cross_entropy(lists, *_of_remaining(remaining, lists, scores[lists.rows]))[0]
                chance *= math.exp(lists.labels[i]) / np.exp(lists.labels[remaining]).sum()
                remaining[i] = False
            mean[lists.rows] += chance * lambdas
        assert mean == pytest.approx(slopes_of(lambda s: top_k_cost(labels, s, k), scores), abs=1e-7)

    def test_draws_have_the_probabilities_of_the_labels(self):
        labels = np.array([0.0, 1.0, 2.0])
        data = RankingData(np.random.default_rng(0).normal(size=(3, 2)), labels, qid=np.zeros(3))
        objective, scores = TopListNet(2, samples=4000), np.array([0.3, -0.2, 0.5])
        lists = Lists(data, "relevance", objective)
        first = [objective._drawn_places(lists, f"{k}").argmin() for k in range(4000)]
        assert np.bincount(first, minlength=3) / 4000 == pytest.approx(softmax(lists.labels), abs=0.03)
        exact = slopes_of(lambda s: top_k_cost(labels, s, 2), scores)
        assert objective.bind(data).gradients(scores)[0] == pytest.approx(exact, abs=0.02)

    def test_weights_and_the_first_alone(self):
        data, scores = documents(3)
        list_net, top_1 = ListNet().bind(data).gradients(scores), TopListNet(1).bind(data).gradients(scores)
        assert np.array_equal(list_net, top_1)
        lambdas, hessians = TopListNet(3).bind(data).gradients(scores, 4)
        assert abs(lambdas.sum()) < 1e-9
        assert (hessians >= 0).all()
        assert not np.array_equal(lambdas, TopListNet(3).bind(data).gradients(scores, 5)[0])
        assert not TopListNet(1).bind(data).changes
        assert TopListNet(2).bind(data).changes

    def test_learns(self):
        data = podium.artificial(20, documents=10, features=4)
        LambdaMART(3, 4, objective="top_listnet(3)").fit(data)
        LinearRanker(objective="top_listnet(3)", n_iterations=3).fit(data)
        with pytest.raises(DataError, match="k must be a whole number from 1"):
            TopListNet(0)


class TestQuerySoftMax:
    def test_lambdas_are_slopes(self):
        objective = QuerySoftMax(beta=0.7, l2=0.3)

        def cost(data, scores):
            total = 0.0
            for rows, labels, d, u in by_query(data):
                powers = d * np.exp(0.7 * scores[rows])
                total -= u * (d * labels * np.log(powers / powers.sum())).sum()
            return total

        for seed in range(3):
            data, scores = documents(seed)
            bound = objective.bind(data)
            lambdas, hessians = bound.gradients(scores)
            assert lambdas == pytest.approx(slopes_of(lambda s, data=data: cost(data, s), scores), abs=1e-6)
            for row in range(len(data)):
                move = 1e-5 * (np.arange(len(data)) == row)
                slope = (bound.gradients(scores - move)[0] - bound.gradients(scores + move)[0])[row] / 2e-5
                sums = [u * (d * labels).sum() for rows, labels, d, u in by_query(data) if row in rows]
                assert hessians[row] == pytest.approx(slope + 0.7 * 0.3 * sum(sums), abs=1e-5)

    def test_has_the_value_and_the_trees_of_catboost(self):
        catboost = pytest.importorskip("catboost")
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 3, (60, 1)).astype(np.float32), rng.integers(0, 4, 60).astype(float)
        qid, scores = np.arange(60) // 6, rng.normal(size=60)
        data = RankingData(X, y, qid=qid)
        from catboost.utils import eval_metric

        [value] = eval_metric(y, scores, "QuerySoftMax:beta=0.5", group_id=qid)
        cost = -sum((y[qid == q] * np.log(softmax(0.5 * scores[qid == q]))).sum() for q in range(10))
        assert abs(value) == pytest.approx(cost / y.sum(), rel=1e-6)
        # A stump of CatBoost has the Newton steps of Podium's λ and w, at scores of 0.
        settings = {
            "loss_function": "QuerySoftMax:beta=0.5;lambda=0.2",
            "iterations": 1,
            "depth": 1,
            "l2_leaf_reg": 1.5,
        }
        model = catboost.CatBoost(
            settings | {"learning_rate": 1.0, "leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1,
                        "leaf_estimation_backtracking": "No", "verbose": False, "allow_writing_files": False,
                        "boost_from_average": False, "random_strength": 0, "bootstrap_type": "No"}
        )  # fmt: skip
        predicted = model.fit(catboost.Pool(X, y, group_id=qid)).predict(X)
        lambdas, hessians = QuerySoftMax(beta=0.5, l2=0.2).bind(data).gradients(np.zeros(60))
        assert len(np.unique(predicted)) == 2
        for value in np.unique(predicted):
            leaf = predicted == value
            assert value == pytest.approx(lambdas[leaf].sum() / (hessians[leaf].sum() + 1.5), rel=1e-4), predicted

    def test_invalid_arguments(self):
        with pytest.raises(DataError, match="takes labels from 0"):
            QuerySoftMax().bind(RankingData([[1.0], [2.0]], [-1, 1], qid=[0, 0]))
        with pytest.raises(DataError, match="beta must be positive"):
            QuerySoftMax(beta=0)


class TestGBRank:
    def slow(self, data, values, margin, rate, rounds):
        """Regression stumps on copies of documents, one for each wrong pair, averaged as in algorithm 1."""
        x, h = data.feature(0).astype(float), np.zeros(len(data))
        for k in range(1, rounds + 1):
            targets = []
            for q in range(data.n_queries):
                for i in data.rows(q):
                    for j in data.rows(q):
                        if data.relevance[i] > data.relevance[j] and h[i] < h[j] + margin:
                            targets += [(x[i], h[j] + margin), (x[j], h[i] - margin)]
            at, y = np.array(targets).T
            best = (math.inf, None, 0, 0)
            for cut in values[:-1]:
                left, right = y[at <= cut], y[at > cut]
                if len(left) and len(right):
                    error = ((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum()
                    best = min(best, (error, cut, left.mean(), right.mean()))
            tree = np.where(x <= best[1], best[2], best[3])
            h = (k * h + rate * tree) / (k + 1)
        return h

    @pytest.mark.parametrize("margin", [1.0, 0.4])
    def test_equals_the_algorithm(self, margin):
        rng = np.random.default_rng(2)
        X = rng.integers(0, 5, (40, 1)).astype(np.float32)
        y = (X[:, 0] + rng.integers(-2, 3, 40) > 2).astype(int) + (X[:, 0] > 3)
        data = RankingData(X, y, qid=np.arange(40) // 8)
        settings = {"n_leaves": 2, "l2": 0.0, "min_documents_in_leaf": 1, "learning_rate": 0.8, "split_fraction": 1.0}
        for rounds in (1, 2, 5):
            model = LambdaMART(rounds, objective=GBRank(margin), **settings).fit(data)
            slow = self.slow(data, sorted(set(X[:, 0])), margin, 0.8, rounds)
            assert model.predict(data) / (rounds + 1) == pytest.approx(slow, abs=1e-5)

    def test_the_first_round_is_that_of_the_squared_hinge(self):
        data = podium.artificial(10, documents=10, features=3)
        scores = np.zeros(len(data))
        one, other = GBRank(0.5).bind(data), Pairwise(SquaredHinge(0.5)).bind(data)
        assert np.array_equal(one.gradients(scores), other.gradients(scores))

    def test_works_for_trees_only(self):
        data = podium.artificial(10, documents=10, features=3)
        for ranker in (LinearRanker, podium.LambdaRank):
            with pytest.raises(DataError, match=r"GBRank adds up regression trees; for .*pairwise\(squared_hinge\)"):
                ranker(objective="gbrank").fit(data)
        with pytest.raises(DataError, match="margin must be positive"):
            GBRank(-1)
