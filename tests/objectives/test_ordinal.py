"""Ordinal regression: gradients by differences, thresholds and weights by scipy's general optimizers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

import podium
from podium import DataError, LambdaMART, LinearRanker, OrdinalMART, RankingData
from podium.boosting import Checkpoint
from podium.core.team import Team
from podium.objectives import Debiased, Lambda, Ordinal


def documents(seed, n=60, labels=(0.0, 1.0, 2.5, 7.0)):
    """Labels that go with the first feature; some are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.asarray(labels)[np.searchsorted([-1.0, 0.3, 1.5][: len(labels) - 1], X[:, 0] + rng.logistic(size=n))]
    y[: len(labels)] = labels
    y[len(labels) : len(labels) + 3] = np.nan
    qid = rng.integers(0, 6, n)
    return RankingData(
        X, y, qid=qid, document_weights=rng.random(n) + 0.5, query_weights=rng.random(len(np.unique(qid))) + 0.5
    )


def weights_of(data):
    weights = data.document_weights.astype(float)
    for q in range(data.n_queries):
        weights[data.rows(q)] *= data.query_weights[q]
    return weights


def cost(data, scores, thresholds):
    """−Σ d log(P(l ≤ k) − P(l ≤ k − 1)), as it is written in textbooks."""
    labelled = ~np.isnan(data.relevance)
    classes = np.unique(data.relevance[labelled])
    k = np.searchsorted(classes, data.relevance[labelled])
    ends = np.array([-np.inf, *thresholds, np.inf])
    high, low = ends[k + 1] - scores[labelled], ends[k] - scores[labelled]
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(low > 0, expit(-low) - expit(-high), expit(high) - expit(low)))  # of the smaller tails
    return -(weights_of(data)[labelled] * logs).sum()


def ascending(x):
    """Thresholds from a first one and the logarithms of their distances."""
    return np.cumsum([x[0], *np.exp(x[1:])])


@pytest.mark.parametrize("labels", [(0.0, 1.0, 2.5, 7.0), (0.0, 1.0)])
def test_thresholds_are_those_of_maximum_likelihood(labels):
    data = documents(0, labels=labels)
    bound = Ordinal().bind(data)
    for scores in (np.zeros(len(data)), 2.0 * data.features[:, 0].astype(float), -3.0 * data.features[:, 1] + 5.0):
        bound.set_thresholds(scores)
        start = np.zeros(len(labels) - 1)
        best = minimize(lambda x, s=scores: cost(data, s, ascending(x)), start, method="BFGS", options={"gtol": 1e-8})
        assert np.allclose(bound.thresholds, ascending(best.x), atol=1e-5)
        assert cost(data, scores, bound.thresholds) <= best.fun + 1e-9


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.1, 20))
def test_gradients_and_hessians_are_derivatives(seed, scale):
    data = documents(seed, 25)
    scores = scale * np.random.default_rng(seed).normal(size=len(data))
    bound = Ordinal().bind(data)
    lambdas, hessians = bound.gradients(scores)
    assert (np.diff(bound.thresholds) > 0).all()
    for row in range(len(data)):
        moved = np.zeros(len(data))
        moved[row] = 1e-5
        up, down = (cost(data, scores + sign * moved, bound.thresholds) for sign in (1, -1))
        assert lambdas[row] == pytest.approx(-(up - down) / 2e-5, abs=1e-5)
        fixed = bound.thresholds.copy()
        slopes = []
        for sign in (1, -1):
            bound.find_thresholds = lambda scores: iter(())  # the same thresholds at both points
            slopes.append(bound.gradients(scores + sign * moved)[0][row])
        del bound.find_thresholds
        bound.thresholds = fixed
        assert hessians[row] == pytest.approx((slopes[1] - slopes[0]) / 2e-5, abs=1e-5)
    assert abs(lambdas.sum()) < 1e-6  # at the best thresholds, to move all scores gains nothing
    assert (hessians >= 0).all()
    assert (lambdas[np.isnan(data.relevance)] == 0).all()


def test_two_labels_are_logistic_regression():
    data = documents(1, labels=(0.0, 1.0))
    scores = np.random.default_rng(0).normal(size=len(data))
    bound = Ordinal().bind(data)
    lambdas, _ = bound.gradients(scores)
    p = expit(scores - bound.thresholds[0])
    expected = np.where(np.isnan(data.relevance), 0.0, weights_of(data) * (data.relevance - p))
    assert np.allclose(lambdas, expected, atol=1e-12)


def test_a_linear_model_is_that_of_a_general_optimizer():
    data, l2 = documents(2, 150), 1e-3
    model = LinearRanker(objective="ordinal", n_iterations=200, l2=l2).fit(data)
    X = data.features.astype(float)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)

    def penalized(x):
        return cost(data, Z @ x[:3], ascending(x[3:])) + 0.5 * l2 * len(data) * (x[:3] ** 2).sum()

    best = minimize(penalized, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    scores = Z @ best.x[:3]
    predictions = model.predict(data)
    assert np.allclose(predictions - predictions.mean(), scores - scores.mean(), atol=1e-4)


def test_row_order_and_threads_do_not_matter():
    data = podium.artificial(1500, features=3)  # more than a thread takes alone
    scores = 2.0 * data.features[:, 0].astype(float)
    shuffle = np.random.default_rng(0).permutation(len(data))
    results = []
    for rows, s, n_threads in ((data, scores, 1), (data.take(shuffle), scores[shuffle], 3)):
        bound = Ordinal().bind(rows)
        with Team(n_threads) as bound.team:
            results.append((bound.gradients(s)[0], bound.thresholds))
    assert np.array_equal(results[0][0][shuffle], results[1][0])
    assert np.array_equal(results[0][1], results[1][1])


def test_the_distances_of_labels_do_not_count():
    data = documents(3)
    stretched = data.replace(relevance=np.where(data.relevance == 7.0, 100.0, data.relevance))
    scores = data.features[:, 0].astype(float)
    assert np.array_equal(Ordinal().bind(data).gradients(scores)[0], Ordinal().bind(stretched).gradients(scores)[0])


def test_documents_of_weight_0_do_not_count():
    data = documents(4)
    weights = data.document_weights.copy()
    weights[data.relevance == 2.5] = 0.0
    weights[10:20] = 0.0
    light = data.replace(document_weights=weights)
    selected = light.take(np.flatnonzero(weights > 0))
    scores = data.features[:, 0].astype(float)
    bounds = [Ordinal().bind(light), Ordinal().bind(selected)]
    a, b = (bound.gradients(s)[0] for bound, s in zip(bounds, (scores, scores[weights > 0]), strict=True))
    assert bounds[0].classes.tolist() == [0.0, 1.0, 7.0]
    assert np.allclose(a[weights > 0], b, atol=1e-12)
    assert (a[weights == 0] == 0).all()


@pytest.mark.parametrize("scale", [1e3, 1e8, 1e100])
def test_scores_far_apart(scale):
    data = documents(5)
    labels = np.nan_to_num(data.relevance).astype(float)
    noise = np.random.default_rng(0).normal(size=len(data))
    bound = Ordinal().bind(data)
    for scores in (scale * labels, -scale * labels, scale * noise, np.zeros(len(data))):
        lambdas, hessians = bound.gradients(scores)
        assert np.isfinite(lambdas).all()
        assert np.isfinite(hessians).all()
        assert (np.diff(bound.thresholds) > 0).all()
    assert abs(lambdas.sum()) < 1e-6  # back at 0 they are found again


def test_invalid_labels():
    with pytest.raises(DataError, match="between 2 and 256 different labels, but got 1"):
        Ordinal().bind(RankingData(np.eye(2), [1, 1], qid=[1, 1]))
    with pytest.raises(DataError, match="but got 300"):
        Ordinal().bind(RankingData(np.ones((300, 1)), np.arange(300) / 10, qid=[1] * 300))
    with pytest.raises(DataError, match="expected 3 thresholds, but got 1"):
        Ordinal().bind(documents(0)).restore({"thresholds": [0.0]})


@pytest.fixture(scope="module")
def parts():
    return podium.artificial(120, documents=20, features=6).split(0.5, 0.25, 0.25)


class TestOrdinalMART:
    def test_learns_ranks_and_probabilities(self, parts):
        train, valid, test = parts
        model = OrdinalMART(60, 8).fit(train, valid=valid)
        before = podium.evaluate(test, np.zeros(len(test)), "ndcg@10").means.popitem()[1]
        assert model.score(test) > before + 0.2
        shares = model.predict_proba(test)
        assert model.classes_.tolist() == np.unique(train.relevance).tolist()
        assert np.allclose(shares.sum(axis=1), 1.0)
        assert (shares >= 0).all()
        expected = shares @ model.classes_
        assert (np.diff(expected[np.argsort(model.predict(test), kind="stable")]) >= -1e-12).all()
        # at the thresholds of maximum likelihood the shares of labels are nearly those of the data
        average = model.predict_proba(train).mean(axis=0)
        assert average == pytest.approx([(train.relevance == k).mean() for k in model.classes_], abs=0.03)

    def test_thresholds_are_fitted_to_the_model(self, parts, tmp_path):
        train, valid, _ = parts
        model = OrdinalMART(30, 8, patience=5).fit(train, valid=valid)
        bound = Ordinal().bind(train)
        bound.set_thresholds(model.predict(train))
        assert np.allclose(model.thresholds_, bound.thresholds, atol=1e-6)
        model.save(tmp_path / "m.podium")
        assert podium.models.load_model(tmp_path / "m.podium").info["thresholds"] == model.thresholds_.tolist()

    def test_resumes_from_a_checkpoint(self, parts, tmp_path):
        train, valid, _ = parts
        whole = OrdinalMART(6).fit(train, valid=valid)
        OrdinalMART(4).fit(train, valid=valid, checkpoint=Checkpoint(tmp_path / "c", 2))
        resumed = OrdinalMART(6).fit(train, valid=valid, checkpoint=Checkpoint(tmp_path / "c", 2))
        assert resumed.digest() == whole.digest()
        assert np.array_equal(resumed.thresholds_, whole.thresholds_)

    def test_the_objective_of_lambdamart_is_the_same(self, parts):
        train = parts[0]
        a = OrdinalMART(5).fit(train, valid=parts[1])
        b = LambdaMART(5, objective="ordinal", split_fraction=1.0).fit(train, valid=parts[1])
        assert a.digest() == b.digest()

    def test_combines_with_other_objectives(self, parts):
        train = parts[0].replace(positions=np.tile(np.arange(1, 21), parts[0].n_queries))
        model = LambdaMART(3, objective=Debiased(Ordinal())).fit(train)
        assert len(model.position_bias_) == 20
        assert LambdaMART(3, objective="anneal(ordinal, lambda(ndcg))").fit(train).n_trees_ == 3
        assert Lambda().has_hessian == Ordinal().has_hessian
