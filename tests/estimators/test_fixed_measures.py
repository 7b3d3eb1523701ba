"""Measures take facts from training and validation data once, and models keep them."""

import warnings

import numpy as np
import pytest

import podium
from podium import (
    MART,
    Committee,
    LambdaMART,
    LambdaRank,
    LinearRanker,
    McRank,
    PodiumWarning,
    RankingData,
    RankNetTrees,
)
from podium.boosting import Checkpoint
from podium.measures import ERR, NDCG
from podium.objectives import Anneal, Lambda, LinearGrowth, Local


def graded(highest: int, seed: int, n_queries: int = 20) -> RankingData:
    """Return queries of eight documents, with labels up to a number."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_queries * 8, 4)).astype(np.float32)
    labels = np.clip(np.round(features[:, 0] + highest / 2), 0, highest)
    labels[0] = highest
    return RankingData(features, labels, qid=np.repeat(np.arange(n_queries), 8))


LOW, HIGH = graded(2, 0), graded(4, 1)
TREES = {"n_trees": 3, "n_leaves": 4, "min_documents_in_leaf": 2}
RANKERS = {
    "LambdaMART": lambda: LambdaMART(**TREES, measure="err@5"),
    "line search": lambda: LambdaMART(**TREES, measure="err", step="line-search"),
    "a submodel": lambda: LambdaMART(**TREES, measure="err@5", submodel={0: 1.0}),
    "RankNetTrees": lambda: RankNetTrees(**TREES, measure="err"),
    "McRank": lambda: McRank(**TREES, measure="err"),
    "Committee": lambda: Committee("err", members=[("lambda(err)", 1), ("xendcg", 1)], n_trees=2, patience=None),
    "LinearRanker": lambda: LinearRanker("err", n_iterations=2),
    "LambdaRank": lambda: LambdaRank("err@5", hidden=3, epochs=2, batch_queries=5),
}


@pytest.mark.parametrize("name", RANKERS)
def test_history_and_score_agree_whichever_data_has_the_highest_label(name):
    for train, valid in ((LOW, HIGH), (HIGH, LOW)):
        model = RANKERS[name]().fit(train, valid=valid)
        assert "max_label=4" in model.model_.info["measures"][0]
        key = f"valid/{model.measure}"
        if key in model.history_:
            assert model.history_[key][model.best_iteration_] == pytest.approx(model.score(valid), abs=1e-12)
        measure = ERR(5 if "@5" in model.measure else None, max_label=4)
        ranking = podium.measures.Ranking(LOW, model.predict(LOW), base=LOW.canonical_order)
        assert model.score(LOW) == measure.mean(ranking)


def test_the_objective_knows_the_highest_label_of_the_validation_data():
    both = [LambdaMART(**TREES, objective=objective).fit(LOW, valid=HIGH).digest()
            for objective in (Lambda("err"), Lambda(ERR(max_label=4)))]  # fmt: skip
    assert both[0] == both[1]
    objective = Anneal(Lambda("err"), Local("err@3"), LinearGrowth()).measuring(LOW, HIGH)
    assert [measure.max_label for measure in objective.all_measures()] == [4, 4]


def test_ascent_adapt_and_resumed_runs(tmp_path):
    model = LinearRanker("err", method="ascent", n_iterations=1).fit(HIGH)
    assert model.model_.info["measures"] == ["err(max_label=4)"]
    assert list(model.history_) == ["train/err"]
    adaptation = podium.adapt({0: 1.0}, LOW, valid=LOW, test=HIGH, measure="err", n_trees=2, n_leaves=3)
    assert "max_label=4" in adaptation.adapted.model_.info["measures"][0]
    settings = {"n_leaves": 4, "min_documents_in_leaf": 2, "measure": "err"}
    point = Checkpoint(tmp_path / "c.podium", every=1)
    LambdaMART(n_trees=1, **settings).fit(LOW, valid=HIGH, checkpoint=point)
    resumed = LambdaMART(n_trees=3, **settings).fit(LOW, valid=HIGH, checkpoint=point)
    whole = LambdaMART(n_trees=3, **settings).fit(LOW, valid=HIGH)
    assert resumed.digest() == whole.digest()
    assert resumed.history_ == whole.history_


def test_a_label_above_those_of_training():
    model = LambdaMART(**TREES, measure="err").fit(LOW)
    with pytest.raises(podium.DataError, match=r"as in err\(max_label=4\)"):
        model.score(HIGH)
    assert NDCG(5).fixed_like(["err(max_label=4)"]) == NDCG(5)
    assert ERR(5).fixed_like(["somebodys", "err(labels=clicks,max_label=3)", "err(max_label=4)"]) == ERR(5, max_label=4)
    assert ERR(max_label=2).fixed_like(["err(max_label=4)"]).max_label == 2
    assert ERR().fixed_like(["err(max_label=3)", "err(max_label=9)"], ["err(max_label=4)"]).max_label == 4


def test_another_highest_label_that_is_watched_does_not_change_the_score():
    model = LambdaMART(**TREES, measure="err", metrics=["err(max_label=9)"]).fit(LOW, valid=HIGH)
    assert model.score(HIGH) == pytest.approx(model.history_["valid/err"][model.best_iteration_], abs=1e-12)


def test_evaluate_and_compare_measure_as_models_were_trained():
    model = LambdaMART(**TREES, measure="err").fit(HIGH)
    expected = ERR(max_label=4, ties="expected").values(podium.measures.Ranking(LOW, model.predict(LOW)))
    for system in (model, model.model_):
        assert np.array_equal(podium.evaluate(LOW, system, "err").values["err"], expected)
    both = podium.compare(LOW, {"a": model, "b": LOW.feature(0)}, "err")
    assert np.array_equal(both.evaluations["a"].values["err"], expected)


STEEP = {
    "LambdaMART": lambda data: LambdaMART(**TREES).fit(data),
    "with validation": lambda data: LambdaMART(**TREES).fit(data, valid=data),
    "RankNetTrees": lambda data: RankNetTrees(**TREES).fit(data, valid=data),
    "ERR": lambda data: LambdaMART(**TREES, measure="err").fit(data),
    "LinearRanker": lambda data: LinearRanker(n_iterations=2).fit(data),
    "ascent": lambda data: LinearRanker(method="ascent", n_iterations=1).fit(data),
    "LambdaRank": lambda data: LambdaRank(hidden=3, epochs=1).fit(data),
    "Committee": lambda data: Committee(members=[("lambda(ndcg)", 2)], n_trees=2).fit(data, valid=data),
    "watched": lambda data: LambdaMART(**TREES, measure="ap", metrics=["dcg"]).fit(data, valid=data),
    "adapt": lambda data: podium.adapt({0: 1.0}, data, n_trees=2),
    "combine": lambda data: podium.combine(data.feature(0), data.feature(1), data),
    "combine several": lambda data: podium.combine(*(data.feature(k) for k in range(3)), data),
    "refit_weights": lambda data: podium.models.refit_weights(MART(**TREES).fit(data), data),
    "evaluate": lambda data: podium.evaluate(data, data.feature(0), "dcg"),
    "compare": lambda data: podium.compare(data, {"a": data.feature(0), "b": data.feature(1)}, "ndcg"),
}


@pytest.mark.parametrize("name", STEEP)
def test_gains_of_very_high_labels_are_warned_of_once(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        STEEP[name](graded(100, 2))
    steep = [str(w.message) for w in caught if issubclass(w.category, PodiumWarning) and "gain 2^" in str(w.message)]
    assert len(steep) == 1
    assert "gain=linear" in steep[0]
    assert "gain=table:" in steep[0]


def test_other_gains_and_labels_up_to_31_are_not_warned_of():
    LambdaMART(**TREES).fit(graded(31, 3))
    LambdaMART(**TREES, measure="ndcg(gain=linear)@10").fit(graded(100, 3), valid=graded(100, 4))
    podium.MART(**TREES).fit(graded(100, 3))
    podium.evaluate(graded(100, 3), graded(100, 3).feature(0), "ap")
