"""What the experiments are made of: data, choices, what they count, and the slow forms that they compare with."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import podium
from experiments.papers import (
    accuracy,
    agreement,
    annealing,
    arrows,
    balanced,
    combination,
    common,
    graded,
    optimality,
    real_data,
    sigma,
    unlabelled,
)
from experiments.work import artificial_source, best_of_each
from podium.diagnostics import WatchAgreement, directions_needed
from podium.estimators import LambdaMART
from podium.measures import Ranking
from podium.measures.losses import ErrorRate
from podium.objectives import Anneal, Lambda, Local
from tests.references.objectives import slow_pairs

SIZES = (20, 10, 10)


@pytest.fixture(scope="module")
def parts():
    return artificial_source(documents=30, features=6).parts(0, SIZES)[0]


def test_of_each_group_the_best_on_validation_data_is_taken(parts):
    train, valid, _ = parts
    groups = {
        "few": [LambdaMART(1, 2, verbose=0), LambdaMART(30, 8, verbose=0)],
        "more": [LambdaMART(5, 4, verbose=0)],
    }
    best = best_of_each(groups, train, valid)
    fitted = [LambdaMART(1, 2, verbose=0).fit(train, valid=valid), LambdaMART(30, 8, verbose=0).fit(train, valid=valid)]
    expected = max(fitted, key=lambda model: max(model.history_["valid/ndcg@10"]))
    assert best["few"].n_trees == expected.n_trees
    assert best["more"].n_trees == 5


def test_the_single_feature_is_the_one_that_ranks_best_whatever_its_sign():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, 300)
    noise, constant = rng.normal(size=300), np.ones(300)
    features = np.column_stack([noise, -labels + 0.1 * noise, labels + 5 * noise, constant])
    data = podium.RankingData(features, labels, qid=np.arange(300) // 10)
    assert np.array_equal(accuracy.best_feature(data, data), -data.feature(1))


def test_shuffled_labels_keep_their_counts():
    data = podium.artificial(60, documents=20, features=5)
    shuffle = common.with_shuffled_labels
    noisy = shuffle(data, 0.5, np.random.default_rng(1))
    assert np.array_equal(np.sort(noisy.relevance), np.sort(data.relevance))
    same = (noisy.relevance == data.relevance).mean()
    by_chance = sum((data.relevance == label).mean() ** 2 for label in range(5))
    assert abs(same - (0.5 + 0.5 * by_chance)) < 0.03
    assert np.array_equal(shuffle(data, 0.0, np.random.default_rng(1)).relevance, data.relevance)
    assert not np.array_equal(shuffle(data, 0.5, np.random.default_rng(2)).relevance, noisy.relevance)


def test_wrong_labels_leave_the_test_part_alone(parts):
    source = artificial_source(documents=30, features=6)
    train, valid, test = annealing.wrong_labels(source).parts(0, SIZES)[0]
    for struck, plain in ((train, parts[0]), (valid, parts[1])):
        assert 0.1 < (struck.relevance != plain.relevance).mean() < annealing.WRONG
    assert np.array_equal(test.relevance, parts[2].relevance)
    other = annealing.wrong_labels(source).parts(1, SIZES)[0][0]
    assert not np.array_equal(other.relevance, train.relevance)


def test_hidden_labels_leave_clicks():
    data = unlabelled.clicked("train", 30, 10, seed=0)
    some = unlabelled.hide_labels(data, 0.8, seed=0)
    hidden = np.isnan(some.relevance)
    assert abs(hidden.mean() - 0.8) < 0.08
    assert np.array_equal(some.labels["clicks"], data.labels["clicks"])
    assert np.array_equal(some.relevance[~hidden], data.relevance[~hidden])
    few = unlabelled.labelled_only(some)
    assert len(few) == (~hidden).sum()
    assert not np.isnan(few.relevance).any()
    assert np.array_equal(few.features, data.features[~hidden])
    # clicks follow the labels, and a taste among equal ones
    clicks, label = data.labels["clicks"], data.relevance
    assert clicks[label >= 3].mean() > clicks[label == 0].mean()


def test_simulated_users_of_an_engine_that_ranks_by_a_feature():
    data = podium.artificial(40, documents=20, features=5)
    data = data.replace(features=np.column_stack([data.features, data.relevance + data.features[:, 0]]))
    assert real_data.best_feature(data) == 5
    shown = real_data.with_clicks(data, 5)
    first = shown.positions == 1
    assert first.sum() == 40
    assert data.features[first, 5].mean() > np.quantile(data.features[:, 5], 0.9)


def test_clicks_follow_labels_and_among_equal_labels_a_taste(parts):
    train = common.with_clicks(parts)[0]
    assert {"relevance", "clicks", "similar_clicks"} <= set(train.labels)
    clicks, labels = train.labels["clicks"], train.relevance
    assert stats.spearmanr(clicks, labels).statistic > 0.2
    taste = train.feature(0) + train.feature(1)  # all features have as many values: the first two tell
    equal = labels == 1
    assert stats.spearmanr(clicks[equal], taste[equal]).statistic > 0.2
    few = common.with_clicks(parts, shown=5)[0]
    assert (few.positions <= 5).all()
    assert (few.labels["clicks"][few.positions < 0] == 0).all()


@pytest.mark.filterwarnings("ignore::podium.errors.PodiumWarning")
def test_only_weights_of_the_paper_are_chosen(parts):
    """The baseline, a weight of 0, is compared with and never chosen, even where clicks harm."""
    work = SimpleNamespace(values=lambda scores, test, measures, prefix: {"scores": scores})
    source = SimpleNamespace(parts=lambda seed, sizes: [parts], prefix=str)
    found = graded._swept(work, source, SIZES, 5, (0.3, 0.9), 0)
    for name in common.CLICKS.values():
        assert found[name]["weight"] in (0.3, 0.9)
        assert len(found[name]["means"]) == 3  # with the baseline


def test_agreement_of_queries_is_what_the_observer_sees(parts):
    train = common.with_clicks(parts, shown=10)[0]
    watch = WatchAgreement(Lambda("cndcg", normalize=False), every=1)
    model = LambdaMART(3, 4, objective=Lambda("ndcg", normalize=False)).fit(train, observers=[watch])
    shares = agreement.agreement_of_queries(train, model.predict(train))
    seen = watch.result()
    assert np.mean(shares["all pairs"]) == pytest.approx(seen.all_pairs[-1], abs=0.005)  # queries of equal size
    assert np.mean(shares["restricted pairs"]) == pytest.approx(seen.restricted[-1], abs=0.005)


def test_methods_scale_the_papers_schedules_to_the_number_of_trees():
    found = annealing.methods(100)
    assert [step for step, _ in found.values()] == ["newton", *["gradient"] * 7]
    objective = found["λ(L) + λ(S@3), linear"][1][0]
    assert isinstance(objective, Anneal)
    assert objective.after == Local("ndcg@3", normalize=False)
    assert objective.schedule(100) == pytest.approx(0.1 + 1.0)  # as .1 + .001 · 1000
    shares = found["λ(L) + λ(S), exponential (fig. 6)"][1]
    assert shares[0].schedule(100) == pytest.approx(np.exp(-100 / 1000))
    assert list(annealing.methods(100, ("linear",)))[2:] == ["λ(L) + λ(S), linear"]


def test_the_step_of_optimality_is_fixed_and_its_controls_are_moved_too():
    pytest.importorskip("torch")
    found = optimality._measured("ndcg", 30, 5, directions_needed(), 3, seed=0)
    assert list(found["nets"]) == [optimality.TRAINED, *optimality.CONTROLS]
    for net in found["nets"].values():
        assert net["rising"] + net["unchanged"] + net["falling"] == 459
        assert net["passes"] == (net["falling"] == 459)
    assert not found["nets"]["untrained net"]["passes"]
    claims = optimality._claims("NDCG", [found])
    assert claims[0].exceptions == (not found["nets"]["LambdaRank"]["passes"])


def test_the_lists_of_the_figure():
    left, right = (arrows.of_list(ranks, arrows.DOCUMENTS) for ranks in (arrows.LEFT, arrows.RIGHT))
    assert (left["pairwise errors"], right["pairwise errors"]) == (13, 11)  # [B] fig. 1
    labels = np.isin(np.arange(1, 17), arrows.RIGHT)
    assert right["pairwise errors"] == sum(not labels[a] and labels[b] for b in range(16) for a in range(b))
    assert left["NDCG"] > right["NDCG"]
    assert left["ERR"] > right["ERR"]


def test_pushes_are_the_lambdas_of_the_two_relevant_documents():
    rng = np.random.default_rng(3)
    found = arrows._pushes(np.random.default_rng(3), 1, 1.0)
    size = int(rng.integers(arrows.SHORT, arrows.LONG + 1, 1)[0])
    scores = -np.sort(-rng.normal(size=size))
    places = np.sort(rng.choice(size, 2, replace=False))
    data = podium.RankingData(np.arange(size)[:, None], np.isin(np.arange(size), places), qid=np.zeros(size))
    for name, objective in arrows.OBJECTIVES.items():
        assert found[name][0] == pytest.approx(slow_pairs(data, scores, objective)[0][places], rel=1e-4), name


def test_accuracies_of_queries_have_the_means_of_all_documents():
    data = podium.artificial(30, documents=(3, 9), features=3)
    is_positive = data.relevance > 1
    scores = np.random.default_rng(0).normal(size=len(data))
    found = balanced.accuracies(data, is_positive, scores, "")
    binary = data.replace(labels={"relevance": is_positive.astype(np.float32)})
    for name, rate in ((balanced.BALANCED, ErrorRate(balanced=True)), (balanced.PLAIN, ErrorRate())):
        assert 1 - np.mean(found[name]) == pytest.approx(rate.mean(Ranking(binary, scores)))


def test_orders_are_the_same_with_their_ties():
    data = podium.RankingData(np.zeros((5, 1)), [0, 1, 0, 1, 0], qid=[1, 1, 1, 2, 2])
    scores = np.array([1.0, 2.0, 2.0, 3.0, 1.0])
    assert sigma.same_order(data, scores, 2 * scores) == [True, True]
    assert sigma.same_order(data, scores, np.array([1.0, 2.0, 2.5, 3.0, 1.0])) == [False, True]
    assert sigma.same_order(data, scores, np.array([1.0, 2.0, 2.0, 3.0, 6.0])) == [True, False]


def test_no_other_combination_is_better_than_the_exact_one():
    valid = podium.artificial(30, documents=10, features=2)
    assert combination.checked_optima(valid, np.array([1.0, 0.5]), 5, 0) == [True] * 5


def test_factored_ranknet_has_the_gradients_of_all_pairs():
    torch = pytest.importorskip("torch")
    from experiments.papers import factored_ranknet

    assert factored_ranknet._gradients_agree(4, 0) == [True] * 4
    sizes = (10, 20, 40)
    seconds = np.array([[3.0 * n**2 for n in sizes], [5.0 * n for n in sizes]])
    assert factored_ranknet.exponents(seconds, sizes) == pytest.approx([2.0, 1.0])
    net = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Flatten(0)).double()
    weights = next(net.parameters())
    documents, labels = torch.tensor([[0.0], [2.0]]).double(), np.array([0.0, 1.0])
    factored_ranknet.pair_by_pair(net, documents, labels)
    slope = -2 / (1 + np.exp(2 * weights.item()))  # of log(1 + e^{−2w})
    assert weights.grad.item() == pytest.approx(slope)
