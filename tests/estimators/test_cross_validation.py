"""Cross-validation, compared with a loop written by hand."""

import numpy as np
import pytest
from scipy import stats

import podium
from podium import DataError, LambdaMART, LinearRanker, QueryKFold
from podium.data.subsets import split_by_content

FEW = {"n_trees": 6, "n_leaves": 5, "min_documents_in_leaf": 3}
MEASURES = ["ndcg@5", "ap"]
pytestmark = pytest.mark.filterwarnings("ignore:.*ties between documents")


@pytest.fixture(scope="module")
def data():
    return podium.artificial(40, documents=10, features=5)


@pytest.fixture
def folder(tmp_path):
    for k, part in enumerate(podium.artificial(40, documents=10, features=5).split(*[0.2] * 5)):
        part.write(tmp_path / f"S{k + 1}.txt")
    return tmp_path


def canonical(data):
    """Return the rows in the order that breaks ties between documents."""
    return data.take(data.canonical_order)


def by_hand(estimator, data, n_splits, valid=None):
    """Return the value of each query and its fold, by one fit after the other."""
    values, scores, fold = {}, np.full(len(data), np.nan), {}
    for k, (train, test) in enumerate(QueryKFold(n_splits).split(data.qid, groups=data.qid)):
        training, sets = data.take(train), {}
        if valid is not None:
            training, sets["valid"] = split_by_content(training, 1 - valid, valid)
        model = estimator.fit(training, **sets)
        scores[test] = model.predict(data.take(test))
        evaluation = podium.evaluate(canonical(data.take(test)), model, MEASURES)
        for q, query in enumerate(evaluation.query_ids.tolist()):
            values[query] = [evaluation.values[measure][q] for measure in MEASURES]
            fold[query] = k
    return values, scores, fold


@pytest.mark.parametrize(("estimator", "valid"), [(LambdaMART(**FEW), None), (LambdaMART(**FEW, patience=2), 0.25),
                                                  (LinearRanker(n_iterations=3), None)])  # fmt: skip
def test_against_a_loop_by_hand(data, estimator, valid):
    values, scores, fold = by_hand(estimator, data, 4, valid)
    result = podium.cross_validate(estimator, data, folds=4, measures=MEASURES, valid=valid)
    name = type(estimator).__name__
    evaluation = result.evaluations[name]
    assert np.array_equal(result.scores[name], scores)
    assert result.fold_of_query.tolist() == [fold[query] for query in evaluation.query_ids.tolist()]
    for m, measure in enumerate(MEASURES):
        expected = np.array([values[query][m] for query in evaluation.query_ids.tolist()])
        assert np.array_equal(evaluation.values[measure], expected)
        assert result.means[name][measure] == pytest.approx(expected.mean())
        assert result.standard_errors[name][measure] == pytest.approx(stats.sem(expected))
        of_folds = [expected[result.fold_of_query == k].mean() for k in range(4)]
        assert result.fold_means[name][measure] == pytest.approx(of_folds)
    assert result.estimators is None


def test_threads_and_row_order_do_not_matter(data):
    models = {"a": LambdaMART(**FEW), "b": LambdaMART(**FEW, document_fraction=0.5)}
    result = podium.cross_validate(models, data, folds=3, n_threads=1)
    shuffle = np.random.default_rng(0).permutation(len(data))
    other = podium.cross_validate(models, data.take(shuffle), folds=3, n_threads=3)
    for name in models:
        assert np.array_equal(result.scores[name][shuffle], other.scores[name])
        values_of = dict(
            zip(other.evaluations[name].query_ids.tolist(), other.evaluations[name].values["ndcg@10"], strict=True)
        )
        assert [values_of[q] for q in result.evaluations[name].query_ids.tolist()] == result.evaluations[name].values[
            "ndcg@10"
        ].tolist()


def test_equal_scores_are_in_the_canonical_order(data):
    constant = LambdaMART(n_trees=1, min_documents_in_leaf=len(data))
    with pytest.warns(podium.PodiumWarning):
        result = podium.cross_validate(constant, data, folds=2)
    with pytest.warns(podium.PodiumWarning):
        other = podium.cross_validate(constant, data.take(np.arange(len(data))[::-1]), folds=2)
    assert result.means == other.means


def test_folds_of_files(folder):
    folds = podium.data.datasets.folds(folder)
    models = {"lambdamart": LambdaMART(**FEW), "linear": LinearRanker(n_iterations=3)}
    result = podium.cross_validate(models, folds, measures="ndcg@5", return_estimator=True)
    assert result.fold_names == ("Fold1", "Fold2", "Fold3", "Fold4", "Fold5")
    for name, model in models.items():
        for k, (train, valid, test) in enumerate(folds):
            fitted = model.fit(train, valid=valid)
            assert result.estimators[name][k].digest() == fitted.digest()
            expected = podium.evaluate(canonical(test), fitted, "ndcg@5")
            is_here = result.fold_of_query == k
            assert np.array_equal(result.evaluations[name].values["ndcg@5"][is_here], expected.values["ndcg@5"])
            assert result.evaluations[name].query_ids[is_here].tolist() == test.query_ids.tolist()
    evaluation = result.evaluations["linear"]
    pair = result.compare(resamples=100).pairs[0]
    assert pair.difference == pytest.approx(evaluation.means["ndcg@5"] - result.means["lambdamart"]["ndcg@5"])
    with pytest.raises(DataError, match="baseline: there is no system 'x'"):
        result.compare(baseline="x")


def test_what_is_shown(data):
    result = podium.cross_validate({"a": LambdaMART(**FEW)}, data, folds=2, measures=MEASURES)
    table = result.table()
    assert table.columns == ["system", "measure", "mean", "standard error", "95% from", "to", "fold 1", "fold 2"]
    assert [row[:3] for row in table.rows] == [["a", m, result.means["a"][m]] for m in MEASURES]
    assert str(result).startswith("40 queries, 2 folds\n\nsystem  measure")
    with pytest.raises(DataError, match="at least two systems"):
        result.compare()


def test_invalid_arguments_are_refused(data, folder):
    relevant_in_one = data.replace(relevance=np.where(data.query_of_row == 0, 1, 0))
    folds, model = podium.data.datasets.folds(folder), LambdaMART(**FEW)
    for estimators, source, options, words in (
        (model, data.select([0, 1, 2]), {}, "3 queries are too few for 5 folds"),
        (model, data, {"folds": 1}, "folds must be a whole number from 2"),
        (model, relevant_in_one, {}, "has no relevant document"),
        (model, folds, {"folds": 5}, "omit folds=…"), (model, folds, {"valid": 0.2}, "omit valid=…"),
        (model, data, {"valid": 1.5}, "valid"), (model, [], {}, "a list of folds"),
        (model, [data], {}, "a list of folds"),
        (model, [folds[0], folds[0]], {}, "would count twice"), ({}, data, {}, "at least one estimator"),
        ({"a": 5}, data, {}, "takes Podium estimators"), (model, data, {"measures": "ndgc"}, "ndgc"),
        (LambdaMART(patience=3), data, {}, r"LambdaMART on fold 1, LambdaMART\(patience=3\): patience needs"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words):
            podium.cross_validate(estimators, source, **options)


def test_folds_need_test_data_that_is_not_trained_on(tmp_path, data):
    first, second = data.split(0.5, 0.5)
    for name, parts, words in (
        ("seen", {"train": data, "test": first}, "is in the training data and in the test data"),
        ("judged", {"train": first, "vali": second, "test": second}, "is in the validation data and in the test data"),
        ("none", {"train": data}, "has no test data"),
    ):
        (tmp_path / name).mkdir()
        for role, part in parts.items():
            part.write(tmp_path / name / f"{role}.txt")
        with pytest.raises(DataError, match=words):
            podium.cross_validate(LambdaMART(**FEW), podium.data.datasets.folds(tmp_path / name))
