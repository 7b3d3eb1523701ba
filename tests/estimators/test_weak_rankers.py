"""AdaRank and RankBoost: comparison with slow versions of the papers' algorithms, and tests as estimators."""

import math

import numpy as np
import pytest

import podium
from podium import DataError, LambdaMART, PodiumWarning, RankingData
from podium.boosting import Boosting, Checkpoint, RankBoostStep
from podium.estimators import AdaRank, RankBoost
from podium.linear.design import DesignMatrix
from podium.measures import Ranking, as_measure
from podium.models import Ensemble, LinearModel


@pytest.fixture(scope="module")
def data():
    return podium.artificial(40, documents=12, features=5, seed=1)


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(30, documents=12, features=5, seed=1, part="valid")


def ada_rank_slowly(data, measure, rounds, repeats):
    """Return the weights of the standardized features after some rounds: fig. 1 of Xu and Li, also in falling order."""
    design = DesignMatrix(data, 1)
    z = (data.features.astype(float) - design.means) * design.scales

    def measured(scores):
        return as_measure(measure).values(Ranking(data, scores))

    weights, before = np.zeros(data.n_features), None
    u = np.ones(data.n_queries) if data.query_weights is None else data.query_weights.astype(float)
    p = u / u.sum()
    for _ in range(rounds):
        best, selected = -np.inf, None
        for k in range(data.n_features):
            for sign in (1, -1):
                value = sum(share * e for share, e in zip(p, measured(sign * z[:, k]), strict=True))
                if value > best + 1e-12 and (repeats or k != before):
                    best, selected = value, (k, sign)
        alpha = 0.5 * math.log(sum(p * (1 + best)) / sum(p * (1 - best)))
        weights[selected[0]] += alpha * selected[1]
        before, p = selected[0], u * np.exp(-measured(z @ weights))
        p = p / p.sum()
    return weights * design.scales


class TestAdaRank:
    @pytest.mark.parametrize("measure", ["ndcg@10", "ap"])
    def test_equals_the_algorithm(self, data, measure):
        weighted = data.replace(query_weights=np.random.default_rng(0).random(40) + 0.5)
        for documents in (data, weighted):
            for rounds in (1, 2, 6):
                model = AdaRank(measure, n_iterations=rounds).fit(documents)
                assert model.coef_ == pytest.approx(ada_rank_slowly(documents, measure, rounds, False), rel=1e-9)
        published = AdaRank.as_published(measure=measure, n_iterations=2).fit(data)
        assert published.coef_ == pytest.approx(ada_rank_slowly(data, measure, 2, True), rel=1e-9)
        assert isinstance(published.model_, LinearModel)

    def test_training_ends_when_one_feature_is_best_twice(self, data, valid):
        strong = data.relevance[:, None] + np.random.default_rng(0).normal(size=(len(data), 3)) * [0.1, 9, 9]
        alone = RankingData(strong, data.relevance, qid=data.qid)
        model = AdaRank.as_published().fit(alone, valid=alone)
        assert len(model.history_["valid/ndcg@10"]) == 2
        assert np.count_nonzero(model.coef_) == 1
        assert np.count_nonzero(AdaRank(n_iterations=5).fit(alone).coef_) > 1
        assert np.count_nonzero(AdaRank().fit(alone.features[:, :1], alone.relevance, qid=alone.qid).coef_) == 1

    def test_a_perfect_or_falling_feature(self, data):
        perfect = RankingData(-data.relevance[:, None], data.relevance, qid=data.qid)
        model = AdaRank().fit(perfect)
        assert -1e3 < model.coef_[0] < 0
        assert model.score(perfect) == pytest.approx(1)

    def test_validation_picks_the_round(self, data, valid):
        model = AdaRank(n_iterations=30, patience=5, metrics=["ap"]).fit(data, valid=valid)
        values = model.history_["valid/ndcg@10"]
        assert model.best_iteration_ == int(np.argmax(values))
        assert model.score(valid) == values[model.best_iteration_]
        assert len(model.history_["valid/ap"]) == len(values) < 31

    def test_measures(self, data):
        with pytest.raises(DataError, match="AdaRank needs a measure from −1 to 1, but dcg of a query is"):
            AdaRank("dcg").fit(data)
        skipped = data.replace(labels={"relevance": np.where(data.query_of_row < 5, 0, data.relevance)})
        assert np.isfinite(AdaRank("ndcg(empty=skip)@10").fit(skipped).coef_).all()
        with pytest.warns(PodiumWarning, match="all labels 'relevance' are equal"):
            AdaRank().fit(data.features, np.ones(len(data)), qid=data.qid)


def rank_boost_slowly(data, rounds):
    """Return the scores after some rounds: pairs with weights D, all thresholds of all features."""
    x = np.asarray(data.features, float)
    pairs = [(i, j) for q in range(data.n_queries) for i in data.rows(q) for j in data.rows(q)
             if data.relevance[i] > data.relevance[j]]  # fmt: skip
    better, worse = np.array(pairs).T
    weights = np.ones(len(pairs))
    if data.document_weights is not None:
        d = data.document_weights.astype(float)
        weights = np.sqrt(d[better] * d[worse])
    weights, scores = weights / weights.sum(), np.zeros(len(data))
    for _ in range(rounds):
        best, chosen = -1.0, None
        for k in range(data.n_features):
            for cut in np.unique(x[~np.isnan(x[:, k]), k]):
                for missing in (0.0, 1.0):
                    h = np.where(np.isnan(x[:, k]), missing, x[:, k] > cut)
                    r = float((weights * (h[better] - h[worse])).sum())
                    if abs(r) > best + 1e-9:
                        best, chosen = abs(r), (r, h)
        r, h = chosen
        alpha = 0.5 * math.log((1 + r) / (1 - r))
        scores = scores + alpha * h
        weights = weights * np.exp(-alpha * (h[better] - h[worse]))
        weights = weights / weights.sum()
    return scores


class TestRankBoost:
    @pytest.mark.parametrize("kind", ["plain", "weights", "missing"])
    def test_equals_the_algorithm(self, kind):
        rng = np.random.default_rng(3)
        X = np.round(rng.normal(size=(60, 3)), 1)
        y = np.digitize(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=60), [0, 1])
        if kind == "missing":
            X[rng.random(X.shape) < 0.2] = np.nan
        extras = {"document_weights": rng.random(60) + 0.5} if kind == "weights" else {}
        data = RankingData(X, y, qid=np.arange(60) // 12, **extras)
        for rounds in (1, 2, 8):
            scores, slow = RankBoost(rounds).fit(data).predict(data), rank_boost_slowly(data, rounds)
            differences = scores - slow  # a weak ranker that is 0 above the threshold has the same pairs
            for q in range(data.n_queries):
                rows = data.rows(q)
                assert differences[rows] == pytest.approx(differences[rows[0]], abs=1e-4)

    def test_the_cost_falls_by_the_bound_of_the_paper(self, data):
        """Z_t ≤ √(1 − r²) in each round, so the share of wrong pairs is at most the product of them."""
        model = RankBoost(30).fit(data)
        better, worse = np.array([(i, j) for q in range(data.n_queries) for i in data.rows(q) for j in data.rows(q)
                                  if data.relevance[i] > data.relevance[j]]).T  # fmt: skip
        costs = [1.0]
        for n in range(1, 31):
            scores = model.predict(data, n_trees=n)
            costs.append(float(np.exp(scores[worse] - scores[better]).mean()))
            alpha = float(np.diff(model.model_.tree(n - 1).leaf_value)[0])
            assert costs[-1] <= costs[-2] * math.sqrt(1 - math.tanh(alpha) ** 2) * (1 + 1e-5)
        assert (scores[worse] >= scores[better]).mean() <= costs[-1]

    def test_is_an_ordinary_ensemble(self, data, valid, tmp_path):
        model = RankBoost(60, patience=10).fit(data, valid=valid)
        assert isinstance(model.model_, Ensemble)
        assert model.n_trees_ == model.best_iteration_ + 1
        assert model.score(valid) > LambdaMART(1, 2).fit(data).score(valid)
        model.export(tmp_path / "m.txt", format="lightgbm")

    def test_checkpoints_and_a_perfect_feature(self, data, tmp_path):
        whole = RankBoost(6).fit(data)
        RankBoost(3).fit(data, checkpoint=Checkpoint(tmp_path / "c"))
        assert RankBoost(6).fit(data, checkpoint=Checkpoint(tmp_path / "c")).digest() == whole.digest()
        clean = RankingData((data.relevance > 1)[:, None], data.relevance > 1, qid=data.qid)
        assert np.isfinite(RankBoost(3).fit(clean).predict(clean)).all()

    def test_the_step_is_for_its_cost(self):
        with pytest.raises(DataError, match=r"RankBoost's step is for the objective pairwise\(exponential\)"):
            Boosting(step=RankBoostStep())
