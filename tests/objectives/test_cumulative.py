"""McRank's ordinal form: λ as slopes, scores and probabilities by definition."""

import numpy as np
import pytest

import podium
from podium import McRank, RankingData
from podium.models import BoundaryEnsemble
from podium.objectives import Cumulative
from tests.objectives.test_lists_and_points import documents


def test_lambdas_are_slopes():
    data, _ = documents(1)
    labelled = ~np.isnan(data.relevance)
    bound = Cumulative().bind(data)
    scores = np.random.default_rng(0).normal(size=(bound.n_outputs, len(data)))

    def cost(scores):
        total = 0.0
        for k, label in enumerate(bound.classes[:-1]):
            side = np.where(data.relevance > label, 1, -1)
            costs = np.log1p(np.exp(-side * scores[k])) * data.document_weights * data.query_weight_of_row
            total += costs[labelled].sum()
        return total

    lambdas, hessians = bound.gradients(scores)
    for k in range(bound.n_outputs):
        for row in range(len(data)):
            moved = np.zeros_like(scores)
            moved[k, row] = 1e-5
            assert lambdas[k, row] == pytest.approx((cost(scores - moved) - cost(scores + moved)) / 2e-5, abs=1e-6)
            slope = (bound.gradients(scores - moved)[0] - bound.gradients(scores + moved)[0])[k, row] / 2e-5
            assert hessians[k, row] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("expects", ["relevance", "gain"])
def test_scores_and_probabilities(expects, tmp_path):
    data, valid = (podium.artificial(40, documents=15, features=5, part=part) for part in ("train", "valid"))
    model = McRank(8, 4, form="ordinal", expects=expects, min_documents_in_leaf=5).fit(data, valid=valid)
    assert isinstance(model.model_, BoundaryEnsemble)
    above = [1 / (1 + np.exp(-part.predict(valid))) for part in model.model_.trees.outputs(4)]
    worth = model.classes_ if expects == "relevance" else 2**model.classes_ - 1
    # Σ_k P(k) worth_k with P(k) = P(l > k − 1) − P(l > k)
    chances = np.array([1 - above[0], *(above[k] - above[k + 1] for k in range(3)), above[3]])
    assert model.predict(valid) == pytest.approx(worth @ chances)
    assert model.score(valid) == pytest.approx(max(model.history_["valid/ndcg@10"]))
    probabilities = model.predict_proba(valid)
    assert (probabilities >= 0).all()
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(valid)))
    model.save(tmp_path / "m.podium")
    loaded = podium.load(tmp_path / "m.podium")
    assert np.array_equal(loaded.predict(valid), model.predict(valid))
    assert loaded.digest() == model.digest()
    assert loaded.predict(valid, n_trees=1) == pytest.approx(next(model.staged_predict(valid)))


def test_two_labels_have_one_boundary():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    data = RankingData(X, X[:, 0] > 0, qid=np.arange(200) // 10)
    model = McRank(5, 4, form="ordinal", min_documents_in_leaf=5).fit(data)
    assert model.predict_proba(data).shape == (200, 2)
    assert model.predict(data) == pytest.approx(model.predict_proba(data)[:, 1])
