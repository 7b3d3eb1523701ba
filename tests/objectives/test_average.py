"""Average: a model for each objective, ranked by the mean of standardized scores."""

import numpy as np
import pytest

import podium
from podium import DataError, LambdaMART
from podium.boosting import Checkpoint
from podium.combining import deviation
from podium.measures import as_measure
from podium.objectives import Average, Lambda, Multiclass, QueryRegression, default_objective, describe, parse

PARTS = QueryRegression(), Lambda("ndcg")
SETTINGS = {
    "n_trees": 6, "n_leaves": 5, "min_documents_in_leaf": 5, "document_fraction": 0.7, "feature_fraction": 0.5,
    "split_fraction": 1.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    return podium.artificial(30, documents=12, features=6, seed=2)


@pytest.fixture(scope="module")
def valid():
    return podium.artificial(20, documents=12, features=6, seed=2, part="valid")


def fitted(*parts, **others):
    return LambdaMART(**SETTINGS | others, objective=Average(*parts))


@pytest.mark.parametrize(("n_trees", "n_measured"), [(6, 5), (11, 10), (15, 10)])
def test_it_is_the_mean_of_standardized_models(data, valid, n_trees, n_measured):
    expected = np.zeros(len(valid))
    for part in PARTS:
        model = LambdaMART(**SETTINGS | {"n_trees": n_trees}, objective=part).fit(data)
        spread = deviation(data, model.predict(data, n_trees=n_measured))
        expected += model.predict(valid) / (len(PARTS) * spread)
    average = fitted(*PARTS, n_trees=n_trees).fit(data)
    np.testing.assert_allclose(average.predict(valid), expected, rtol=1e-12, atol=1e-14)
    assert average.n_trees_ == n_trees
    assert average.model_.n_trees == len(PARTS) * n_trees
    assert average.feature_importances_.sum() > 0


def test_rounds_are_cut_and_watched_together(data, valid):
    model = fitted(*PARTS, n_trees=40, patience=5).fit(data, valid=valid)
    best = model.history_["valid/ndcg@10"][model.best_iteration_]
    assert best == podium.evaluate(valid, model, "ndcg@10").means["ndcg@10"]
    stages = list(model.staged_predict(valid))
    assert len(stages) == model.n_trees_
    for n_rounds in (1, model.n_trees_):
        np.testing.assert_array_equal(stages[n_rounds - 1], model.predict(valid, n_trees=n_rounds))


def test_no_model_depends_on_rows_threads_or_interruptions(data, valid, tmp_path):
    model = fitted(*PARTS).fit(data, valid=valid)
    shuffled = data.take(np.random.default_rng(0).permutation(len(data)))
    assert fitted(*PARTS, n_threads=2).fit(shuffled, valid=valid).digest() == model.digest()
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    fitted(*PARTS, n_trees=3).fit(data, valid=valid, checkpoint=checkpoint)
    assert fitted(*PARTS).fit(data, valid=valid, checkpoint=checkpoint).digest() == model.digest()
    model.save(tmp_path / "model.podium")
    loaded = podium.load(tmp_path / "model.podium")
    assert loaded.n_trees_ == model.n_trees_
    np.testing.assert_array_equal(loaded.predict(valid, n_trees=2), model.predict(valid, n_trees=2))


def test_scores_that_do_not_spread_are_not_divided():
    flat = podium.RankingData(np.zeros((4, 1)), [0, 1, 0, 1], qid=[0, 0, 1, 1])
    bound = Average(*PARTS).bind(flat)
    bound.gradients(np.zeros((2, 4)))
    assert bound.deviations.tolist() == [1.0, 1.0]
    bound.gradients(np.array([[0.0, 2.0, 5.0, 7.0], [0.0, 0.0, 0.0, 4.0]]))
    assert bound.deviations == pytest.approx([1.0, np.sqrt(2)])


def test_text_and_bad_arguments(data):
    average = Average(*PARTS)
    assert parse(describe(average)) == parse("average(query_regression, lambda(ndcg))") == average
    with pytest.raises(DataError, match="Average takes objectives"):
        Average()
    with pytest.raises(DataError, match="Average takes objectives"):
        Average("ndcg")
    with pytest.raises(DataError, match="Average takes objectives with one score"):
        Average(Multiclass()).bind(data)


@pytest.mark.parametrize(("measure", "trained"), [
    ("ndcg@10", "ndcg@20"), ("ndcg@50", "ndcg@50"), ("ndcg", "ndcg"), ("ap", "ap"), ("err@5", "err@20"),
    ("precision@5", "precision@5"), ("ndcg(labels=clicks)@3", "ndcg(labels=clicks)@20"),
])  # fmt: skip
def test_default_objective_trains_on_the_top_20_ranks_or_the_cutoff(measure, trained):
    regression, ranking = default_objective(as_measure(measure)).parts
    assert ranking == Lambda(trained)
    assert regression.labels == ranking.labels
