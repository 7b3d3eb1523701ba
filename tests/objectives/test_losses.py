"""Losses: λ is minus their slope, and values are those of references and of other tools, for parts of data, too."""

import catboost.utils
import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium import DataError, RankingData
from podium.core.merging import merge_all, merged
from podium.objectives import BoundObjective, Debiased, Lambda, Objective, PairFilter, Pairwise, describe, parse
from podium.objectives.base import loss_of_sums, registered_classes
from podium.objectives.links import CROSS_ENTROPY, EXPONENTIAL, link_cost
from podium.objectives.ordinal import class_probabilities
from tests.references.objectives import slow_pairs

# λ is the slope of these, for pair terms while no document changes its rank; with `normalize` it is scaled.
PAIRS = [
    "pairwise", "pairwise(cross_entropy(2))", "pairwise(hinge(0.7))", "pairwise(squared_hinge(1.3))",
    "pairwise(fidelity(1.5))", "pairwise(exponential(0.8))", "lambda(ndcg, normalize=false)",
    "lambda(ndcg, truncation=3, sigma=2, normalize=false)", "lambda(ndcg, normalize=false, pair_truncation=2)",
    "lambda(err, normalize=false)", "lambda(ap, normalize=false, pair_truncation=3)",
    "lambda(accuracy, normalize=false, pair_truncation=4)", "local(ndcg@3, 0.3, normalize=false)",
    "lambdaloss(ndcg, 5, normalize=false)",
]  # fmt: skip
OTHERS = [
    "listnet", "listmle", "xendcg(seed=4)", "rankcosine", "queryregression", "softrank(ndcg@3, 0.8)",
    "regression", "logistic(0.7, above=1)", "logistic(balanced=true, above=1)",
    "multiclass", "cumulative", "ordinal", "preferences", "preferences(hinge)",
    "sum(pairwise, regression, weights=(0.3, 0.7))",
    "tiers(pairwise, pairwise(labels=clicks), weights=(0.8, 0.2))", "average(queryregression, pairwise)",
    "anneal(pairwise, listnet, linear_growth(0.1, 0.1))", "debiased(pairwise, propensities=(1, 0.5, 0.2))",
    "debiased(listnet, rate=1e-300)", "toplistnet(3, samples=2)", "querysoftmax(beta=0.7)", "approxndcg(sigma=0.8)",
    "svmmap",
]  # fmt: skip
AVERAGED = ["gbrank(0.7)"]  # its λ is not the slope of its cost, see GBRank
ROUND = 3


def documents(seed: int) -> tuple[RankingData, np.ndarray]:
    """Documents with all that an objective may ask for, and scores without ties."""
    rng = np.random.default_rng(seed)
    sizes = [5, 1, 7, 3]
    n = sum(sizes)
    labels = rng.integers(0, 4, n).astype(float)
    labels[:4] = [0, 1, 2, 3]
    labels[rng.random(n) < 0.1] = np.nan
    qid = np.repeat(np.arange(4), sizes)
    i, j = rng.integers(0, 5, (2, 9))
    pairs = i[i != j], j[i != j], rng.random((i != j).sum())
    order = rng.permutation(n)
    place = np.argsort(order)
    data = RankingData(
        rng.normal(size=(n, 2)), labels[order], qid=qid[order], labels={"clicks": rng.integers(0, 2, n)},
        document_weights=rng.random(n) + 0.5, query_weights=rng.random(4) + 0.5,
        positions=rng.choice([-1, 1, 2, 3, 4], n),
        preferences=(place[pairs[0]], place[pairs[1]], pairs[2]),
    )  # fmt: skip
    return data, rng.permutation(n) * 0.37 + rng.random(n) * 0.1


def total(bound: BoundObjective, scores: np.ndarray) -> float:
    return sum(term.weight * term.costs.sum() for term in bound.loss_terms(scores, ROUND))


@pytest.mark.parametrize("text", [*PAIRS, *OTHERS])
@settings(max_examples=4)
@given(seed=st.integers(0, 1000))
def test_gradients_are_slopes_of_the_loss(text, seed):
    data, scores = documents(seed)
    bound = parse(text).bind(data)
    scores = np.array([np.roll(scores, k) for k in range(bound.n_outputs)]) if bound.n_outputs > 1 else scores
    lambdas, _ = bound.gradients(scores, ROUND)
    slopes, step = np.zeros_like(scores), 1e-5
    for place in np.ndindex(scores.shape):
        moved = np.zeros_like(scores)
        moved[place] = step
        slopes[place] = -(total(bound, scores + moved) - total(bound, scores - moved)) / (2 * step)
    slopes *= bound.n_outputs if text.startswith("average") else 1  # its loss is the mean of those of its outputs
    assert lambdas == pytest.approx(slopes, rel=2e-5, abs=2e-5)


def test_every_objective_has_a_loss():
    data, scores = documents(1)
    tested = " ".join([*PAIRS, *OTHERS, *AVERAGED])
    for name, kind in registered_classes().items():
        if issubclass(kind, Objective) and kind.__module__.startswith("podium."):
            assert f"{name}" in tested, f"{kind.__name__} has no example here"
    assert np.isfinite(parse("lambda(ndcg)").bind(data).loss(scores))


def test_gbrank_has_the_cost_of_its_pairs_at_average_scores():
    data, scores = documents(2)
    pairs = parse("pairwise(squared_hinge(0.7))").bind(data)
    assert parse("gbrank(0.7)").bind(data).loss(scores, ROUND) == pairs.loss(scores / (ROUND + 1))


@pytest.mark.parametrize("text", PAIRS)
@settings(max_examples=5)
@given(seed=st.integers(0, 1000), trusted=st.booleans(), grouped=st.booleans())
def test_costs_of_pairs_are_those_of_the_reference(text, seed, trusted, grouped):
    data, scores = documents(seed)
    rng, term = np.random.default_rng(seed), parse(text)
    scores = np.round(scores)  # some are tied
    among = PairFilter(
        groups=rng.choice([0, 1, np.nan], len(data)).astype(np.float32) if grouped else None,
        trusts=(rng.random(len(data)) + 0.5).astype(np.float32) if trusted else None,
    )
    (loss_term,) = term.bind_among(data, among).loss_terms(scores)
    assert loss_term.costs.sum() == pytest.approx(slow_pairs(data, scores, term, among)[2], rel=1e-6)
    assert np.array_equal(loss_term.counts, data.query_weights.astype(float))


def test_normalization_is_not_part_of_the_loss():
    data, scores = documents(2)
    plain, scaled = (Lambda("ndcg", normalize=normalize).bind(data) for normalize in (False, True))
    assert plain.loss(scores) == scaled.loss(scores)
    assert not np.allclose(plain.gradients(scores)[0], scaled.gradients(scores)[0])


def test_a_fresh_model_has_the_loss_of_equal_scores():
    data = podium.RankingData(np.zeros((3, 1)), [0, 1, 2], qid=["a"] * 3)
    assert Pairwise().bind(data).loss(np.zeros(3)) == pytest.approx(3 * np.log(2))
    assert parse("listnet").bind(data).loss(np.zeros(3)) == pytest.approx(np.log(3))
    assert parse("multiclass").bind(data).loss(np.zeros((3, 3))) == pytest.approx(np.log(3))


def test_the_loss_of_ordinal_regression_is_that_of_its_probabilities():
    data, scores = documents(4)
    bound = parse("ordinal").bind(data)
    bound.gradients(scores)
    labelled = ~np.isnan(data.relevance)
    weights = (data.document_weights * data.query_weight_of_row)[labelled].astype(float)
    chances = class_probabilities(scores[labelled], bound.thresholds)
    of_label = chances[np.arange(len(chances)), data.relevance[labelled].astype(int)]
    assert bound.loss(scores) == pytest.approx(np.average(-np.log(of_label), weights=weights), rel=1e-6)


@pytest.mark.parametrize("text", PAIRS[:6])
def test_compiled_costs_of_links_are_those_of_the_class(text):
    link = parse(text).link
    for lead in (-200.0, -40.0, -1.3, 0.0, 0.2, 5.0, 300.0):
        expected = float(link.cost(np.array([lead]))[0])
        assert link_cost(link.code, link.parameter, link.sigma * lead) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert (CROSS_ENTROPY, EXPONENTIAL) == (0, 5)


def test_losses_agree_with_other_tools():
    rng = np.random.default_rng(3)
    n = 60
    qid, labels, scores = np.repeat(np.arange(6), 10), rng.integers(0, 3, n), rng.normal(size=n)
    weights = rng.random(n) + 0.5
    data = RankingData(rng.normal(size=(n, 1)), labels, qid=qid, document_weights=weights)
    plain = data.replace(document_weights=None)

    def of_catboost(metric, **extra):
        return catboost.utils.eval_metric(labels.astype(float), scores, metric, group_id=qid, **extra)[0]

    pairs = np.argwhere((labels[:, None] > labels) & (qid[:, None] == qid))
    mean_of_pairs = parse("pairwise").bind(plain).loss(scores) * 6 / len(pairs)
    assert mean_of_pairs == pytest.approx(of_catboost("PairLogit", pairs=pairs))
    query_rmse = parse("queryregression").bind(plain).loss(scores)
    assert np.sqrt(2 * query_rmse * 6 / n) == pytest.approx(of_catboost("QueryRMSE"))
    squared = sklearn.metrics.mean_squared_error(labels, scores, sample_weight=weights)
    assert 2 * parse("regression").bind(data).loss(scores) == pytest.approx(squared, rel=1e-6)
    chances = 1 / (1 + np.exp(-2 * scores))
    expected = sklearn.metrics.log_loss(labels > 0, chances, sample_weight=weights)
    assert parse("logistic").bind(data).loss(scores) == pytest.approx(expected, rel=1e-6)
    outputs = rng.normal(size=(3, n))
    shares = np.exp(outputs) / np.exp(outputs).sum(axis=0)
    expected = sklearn.metrics.log_loss(labels, shares.T, sample_weight=weights)
    assert parse("multiclass").bind(data).loss(outputs) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("text", [*PAIRS[5:9], *OTHERS])
def test_parts_and_order_of_rows_do_not_change_a_bit(text):
    data, scores = documents(6)
    objective = parse(text).measuring(data)
    whole = objective.bind(data)
    scores = np.array([scores + k for k in range(whole.n_outputs)]) if whole.n_outputs > 1 else scores
    whole.gradients(scores, ROUND)
    expected = whole.loss(scores, ROUND)
    sums = []
    for some in (data.query_of_row < 2, data.query_of_row >= 2):
        rows = np.random.default_rng(0).permutation(np.flatnonzero(some))
        part = objective.bind_elsewhere(data.take(rows))
        part.set_facts(merged(whole.facts()))
        part.restore(whole.state()) if whole.state() else None
        sums.append([term.sums() for term in part.loss_terms(scores[..., rows], ROUND)])
    assert loss_of_sums(merged(merge_all(sums))) == expected


def test_validation_data_may_lack_what_training_data_has():
    data, scores = documents(8)
    bare = RankingData(data.features, np.nan_to_num(data.relevance), qid=data.qid)
    debiased = Debiased(Pairwise(), propensities=(1.0, 0.5))
    assert debiased.bind_elsewhere(bare).loss(scores) == Pairwise().bind(bare).loss(scores)
    trained, elsewhere = Debiased(Pairwise()).bind(data), Debiased(Pairwise()).bind_elsewhere(bare)
    trained.gradients(scores)
    assert trained.biases.any()
    elsewhere.set_facts(merged(trained.facts()))
    elsewhere.restore(trained.state())
    assert elsewhere.loss(scores) == Pairwise().bind(bare).loss(scores)
    for text in ("multiclass", "ordinal"):  # a label that training has not seen does not count
        objective, training_data = (
            parse(text),
            RankingData(data.features, np.minimum(data.relevance, 2.0), qid=data.qid),
        )
        bound, on_all = objective.bind(training_data), objective.bind_elsewhere(bare)
        on_all.set_facts(merged(bound.facts()))
        at = np.array([scores, -scores, scores / 2]) if bound.n_outputs > 1 else scores
        seen = np.flatnonzero(bare.relevance < 3)
        on_seen = objective.bind_elsewhere(bare.take(seen))
        on_seen.set_facts(merged(bound.facts()))
        assert on_all.loss(at) == on_seen.loss(at[..., seen])


def test_an_objective_without_a_loss_says_so():
    class Own(BoundObjective):
        def gradients(self, scores, iteration=0):
            return -scores, np.ones(len(scores))

    with pytest.raises(DataError, match="Own has no loss to watch: define loss_terms"):
        Own().loss(np.zeros(2))
    assert describe(parse("lambda(ndcg, pair_truncation=5)")) == 'Lambda(measure="ndcg", pair_truncation=5)'
