"""What the experiments of [S] are made of: statistics of several tests and seeds, data, choices."""

import numpy as np
import pytest
from scipy import stats

from podium.diagnostics import WatchAgreement
from podium.estimators import LambdaMART
from podium.objectives import Anneal, Lambda, Local
from podium.reproduce.arms import Arm
from podium.reproduce.claims import all_of, better, over_seeds
from podium.reproduce.experiments import agreement, annealing, graded
from podium.reproduce.sources import artificial_source

SIZES = (20, 10, 10)


@pytest.fixture(scope="module")
def parts():
    return artificial_source(documents=30, features=6).parts(0, SIZES)[0]


def arms(lead: float, n: int = 200):
    rng = np.random.default_rng(1)
    base, noise = rng.random(n), 0.1 * rng.standard_normal(n)
    queries = list(map(str, range(n)))
    return (
        Arm("new", [{"query": queries, "a": base + lead + noise, "b": base - lead + noise}]),
        Arm("old", [{"query": queries, "a": base, "b": base}]),
    )


def test_all_of_takes_the_weakest_part_and_corrects_what_speaks_against_it():
    new, old = arms(0.05)
    good, bad = (better("", "[S] x", new, old, measure) for measure in ("a", "b"))
    both = all_of("both", "[S] x", [good, bad])
    assert both.p == bad.p == 1.0
    assert both.p_against == pytest.approx(2 * bad.p_against)
    assert both.estimate == bad.estimate
    alone = all_of("one", "[S] x", [good])
    assert (alone.p, alone.p_against, alone.test) == (good.p, good.p_against, good.test)


@pytest.mark.parametrize(("below", "side"), [(False, "greater"), (True, "less")])
def test_over_seeds_is_a_one_sided_t_test(below, side):
    values = [0.72, 0.75, 0.71]
    claim = over_seeds("", "[S] x", "the share", values, 0.73, below=below)
    assert claim.p == pytest.approx(stats.ttest_1samp(values, 0.73, alternative=side).pvalue)
    assert claim.p + claim.p_against == pytest.approx(1.0)
    assert claim.estimate == pytest.approx(np.mean(values))


def test_clicks_follow_labels_and_among_equal_labels_a_taste(parts):
    train = graded.with_clicks(parts)[0]
    assert {"relevance", "clicks", "similar_clicks"} <= set(train.labels)
    clicks, labels = train.labels["clicks"], train.relevance
    assert stats.spearmanr(clicks, labels).statistic > 0.2
    taste = train.feature(0) + train.feature(1)  # all features have as many values: the first two tell
    equal = labels == 1
    assert stats.spearmanr(clicks[equal], taste[equal]).statistic > 0.2
    few = graded.with_clicks(parts, shown=5)[0]
    assert (few.positions <= 5).all()
    assert (few.labels["clicks"][few.positions < 0] == 0).all()


def test_agreement_of_queries_is_what_the_observer_sees(parts):
    train = graded.with_clicks(parts, shown=10)[0]
    watch = WatchAgreement(Lambda("cndcg"), every=1)
    model = LambdaMART(3, 4, objective=Lambda("ndcg")).fit(train, observers=[watch])
    shares = agreement.agreement_of_queries(train, model.predict(train))
    seen = watch.result()
    assert np.mean(shares["all pairs"]) == pytest.approx(seen.all_pairs[-1], abs=0.005)  # queries of equal size
    assert np.mean(shares["restricted pairs"]) == pytest.approx(seen.restricted[-1], abs=0.005)


def test_wrong_labels_are_dealt_out_and_the_test_part_keeps_its_own(parts):
    source = artificial_source(documents=30, features=6)
    train, valid, test = annealing.wrong_labels(source).parts(0, SIZES)[0]
    for struck, plain in ((train, parts[0]), (valid, parts[1])):
        assert np.array_equal(np.sort(struck.relevance), np.sort(plain.relevance))
        assert 0.1 < (struck.relevance != plain.relevance).mean() < annealing.WRONG
    assert np.array_equal(test.relevance, parts[2].relevance)
    other = annealing.wrong_labels(source).parts(1, SIZES)[0][0]
    assert not np.array_equal(other.relevance, train.relevance)


def test_methods_scale_the_papers_schedules_to_the_number_of_trees():
    found = annealing.methods(100)
    assert [step for step, _ in found.values()] == ["newton", *["gradient"] * 7]
    objective = found["λ(L) + λ(S@3), linear"][1][0]
    assert isinstance(objective, Anneal)
    assert objective.after == Local("ndcg@3")
    assert objective.schedule(100) == pytest.approx(0.1 + 1.0)  # as .1 + .001 · 1000
    shares = found["λ(L) + λ(S), exponential (fig. 6)"][1]
    assert shares[0].schedule(100) == pytest.approx(np.exp(-100 / 1000))
    assert list(annealing.methods(100, ("linear",)))[2:] == ["λ(L) + λ(S), linear"]
