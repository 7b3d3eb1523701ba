"""Explanations of every kind of model, and their views."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence as sklearn_partial_dependence

import podium
from podium.errors import DataError
from podium.explain import compare_explanations, explain


@pytest.fixture(scope="module")
def data():
    generated = podium.artificial(20, documents=12, features=5)
    names = [f"D{k}" for k in range(len(generated))]
    return generated.replace(document_ids=names, feature_names=["a", "b", "c", "d", "7"])


@pytest.fixture(scope="module")
def trees(data):
    return podium.LambdaMART(n_trees=8, n_leaves=6).fit(data)


@pytest.fixture(scope="module")
def linear(data):
    return podium.LinearRanker().fit(data)


@pytest.fixture(scope="module")
def explanation(data, trees):
    return trees.explain(data)


def adds_up(explanation, scores, within=1e-9):
    np.testing.assert_allclose(explanation.base + explanation.values.sum(axis=1), scores, atol=within)
    return explanation.residual <= within


def test_sums_of_models_are_matched_by_name(data, trees, linear):
    narrow = podium.LambdaMART(n_trees=4).fit(podium.RankingData(
        data.features[:, [3, 1]], data.relevance, qid=data.qid, feature_names=["d", "b"]))  # fmt: skip
    both = podium.models.Combined((narrow.model_, linear.model_), (0.5, 2.0))
    for background in (None, data.take(np.arange(40))):
        explained = both.explain(data, background)
        assert explained.names == ("d", "b", "a", "c", "feature 7")
        assert adds_up(explained, both.predict(data))
        first, second = narrow.explain(data, background), linear.explain(data, background)
        expected = 0.5 * first.values[:, 0] + 2 * second.values[:, 3]
        np.testing.assert_allclose(explained.values[:, 0], expected, atol=1e-12)
        shown = {row[0]: row[1] for row in explained.of_document(5).rows}
        assert shown == dict(zip(("a", "b", "c", "d", "feature 7"), data.features[5].tolist(), strict=True))


def test_submodels(data, trees):
    on_model = podium.LambdaMART(n_trees=3, submodel=trees.model_).fit(data)
    assert adds_up(on_model.explain(data), on_model.predict(data))

    def first(documents):
        return documents.feature(0).astype(float)

    on_scores = podium.LambdaMART(n_trees=3, submodel=first, submodel_scale=0.5).fit(data)
    explained = on_scores.explain(data)
    assert explained.names[-1] == "scores of first"
    assert adds_up(explained, on_scores.predict(data))
    np.testing.assert_array_equal(explained.values[:, -1], 0.5 * first(data))
    with pytest.raises(DataError, match=r"continues from the scores of first"):
        on_scores.model_.explain(data)
    with pytest.raises(DataError, match="omit base_scores"):
        explain(trees, data, base_scores=first(data))


def test_linear_models_count_missing_values_as_the_mean(data, linear):
    rows = data.features.copy()
    rows[0, :2] = np.nan, np.inf
    for background in (None, data.features[:30]):
        explained = linear.model_.explain(rows, background)
        assert adds_up(explained, linear.predict(rows))
    assert linear.model_.explain(rows).values[0, :2].tolist() == [0, 0]
    means = data.features[:30].astype(float).mean(axis=0)
    expected = linear.model_.weights * (rows[3].astype(float) - means)
    np.testing.assert_allclose(linear.model_.explain(rows, data.features[:30]).values[3], expected, atol=1e-12)


def test_categories_missing_values_and_shifts_are_shown_as_in_the_input():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({
        "qid": np.repeat(np.arange(20), 10), "label": random.integers(0, 3, 200),
        "shop": pd.Categorical(random.choice(["north", "south", "east"], 200)),
        "time": 1_700_000_000.0 + random.integers(0, 5000, 200), "price": random.random(200),
    })  # fmt: skip
    frame.loc[::7, "price"] = np.nan
    model = podium.LambdaMART(n_trees=6, n_leaves=5).fit(frame)
    explained = model.explain(frame)
    assert explained.data is not None
    assert adds_up(explained, model.predict(frame))
    shown = {row[0]: row[1] for row in explained.of_document(7).rows}
    assert shown == {"shop": frame["shop"][7], "time": frame["time"][7], "price": None}


def test_nets_have_integrated_gradients(data):
    torch = pytest.importorskip("torch")
    for background in (None, data.features[:30]):
        net = podium.RankNet(hidden=4, epochs=2, n_threads=1).fit(data)
        explained = net.explain(data, background)
        assert adds_up(explained, net.predict(data), within=1e-5)
    net = podium.RankNet(hidden=(), epochs=2, n_threads=1).fit(data).model_
    weights = net.module.layers[0].weight.detach().double().numpy()[0]  # without hidden units the net is linear
    np.testing.assert_allclose(net.explain(data).values, weights * net.inputs(data.features), atol=1e-6)
    lists = podium.LambdaRank(net=podium.neural.ListTransformer(5, width=4), epochs=1, n_threads=1).fit(data)
    with pytest.raises(DataError, match="scores whole lists"):
        lists.explain(data)
    assert net.explain(data.features[:0]).values.shape == (0, 5)
    assert torch.is_grad_enabled()


def test_models_without_exact_contributions_say_so(data, trees):
    with pytest.raises(DataError, match="is an expected label"):
        podium.McRank(n_trees=2).fit(data).explain(data)
    with pytest.raises(DataError, match="supports Podium's models and estimators, but got a function"):
        explain(lambda documents: documents.feature(0), data)


def test_a_pair_adds_up_to_the_gap(explanation, data):
    first, second = explanation.rows_of(data.query_ids[2])[[0, 4]].tolist()
    pair = explanation.why(first, second)
    assert sum(row[-1] for row in pair.rows) == pytest.approx(pair.gap, abs=1e-12)
    assert pair.gap == explanation.scores[first] - explanation.scores[second] > 0
    assert [abs(row[-1]) for row in pair.rows] == sorted((abs(row[-1]) for row in pair.rows), reverse=True)
    other = explanation.why(f"D{second}", f"D{first}")
    assert {row[0]: -row[-1] for row in other.rows} == {row[0]: row[-1] for row in pair.rows}
    content = pair.to_dict()
    assert content["features"][0]["value_b"] == pair.rows[0][2]
    assert content["gap"] == pair.gap


def test_a_document_is_identified_by_id_or_row(explanation, data):
    assert explanation.row_of("D17") == explanation.row_of(17) == explanation.row_of("17") == 17
    with pytest.raises(DataError, match="no row has this id; pass its row number"):
        explanation.row_of("nobody")
    with pytest.raises(DataError, match="there is no row 240; rows are numbered 0 to 239"):
        explanation.of_document(240)
    with pytest.raises(DataError, match="there is no query 'none'"):
        explanation.query("none")
    with pytest.raises(DataError, match="document 17 is not in the query"):
        explanation.why(17, 18, data.query_ids[0])


def test_ids_that_several_queries_have(trees, data):
    repeated = data.replace(document_ids=[f"D{k % 12}" for k in range(len(data))])
    explained = trees.explain(repeated)
    with pytest.raises(DataError, match="20 rows have the document id 'D3': pass its query"):
        explained.of_document("D3")
    query = data.query_ids[4]
    assert explained.row_of("D3", query) in explained.rows_of(query)


def test_tables_of_a_query_and_of_all(explanation, data):
    query = data.query_ids[1]
    table = explanation.query(query, top=2)
    rows = explanation.rows_of(query)
    assert [row[0] for row in table.rows] == list(range(1, 13))
    assert [row[3] for row in table.rows] == sorted(explanation.scores[rows], reverse=True)
    for row in table.rows:
        assert explanation.base + sum(row[4:]) == pytest.approx(row[3], abs=1e-12)
    means = dict(explanation.importance().rows)
    assert means["b"] == pytest.approx(np.abs(explanation.values[:, 1]).mean(), abs=1e-12)
    assert explanation.table().columns == ["document", "query", "score", *explanation.names]
    assert len(explanation.table().rows) == len(data)
    with pytest.raises(DataError, match="the explained data has no queries"):
        explain(podium.models.LinearModel(np.ones(2), np.zeros(2)), [[1.0, 2.0]]).query(1)


def test_two_models_on_one_query(data, trees, linear):
    query = data.query_ids[3]
    comparison = compare_explanations(trees, linear, data, query, names=("trees", "linear"))
    rows = [int(name[1:]) for name in comparison.documents]
    for k, model in enumerate((trees, linear)):
        scores = model.predict(data)[rows]
        np.testing.assert_allclose(comparison.scores[:, k], (scores - scores.mean()) / scores.std(), atol=1e-9)
        np.testing.assert_array_equal(scores[np.argsort(comparison.ranks[:, k])], np.sort(scores)[::-1])
    np.testing.assert_allclose(
        comparison.differences.sum(axis=1), comparison.scores[:, 1] - comparison.scores[:, 0], atol=1e-9
    )
    moved = [row[3] for row in comparison.table().rows]
    assert sum(moved) == 0
    assert any(moved)
    assert comparison.feature_table().rows[0][3] == max(np.abs(comparison.differences).mean(axis=0))
    assert [document["ranks"] for document in comparison.to_dict()["documents"]] == comparison.ranks.tolist()
    with pytest.raises(DataError, match="there is no query"):
        compare_explanations(trees, linear, data, "none")
    same = compare_explanations(trees, trees, data, query)
    assert not same.differences.any()


def test_partial_dependence_agrees_with_scikit_learn(data):
    model = podium.MART(n_trees=8, n_leaves=5).fit(data.features, data.relevance)
    expected = sklearn_partial_dependence(model, data.features, [2], kind="both", grid_resolution=7, method="brute")
    grid = expected["grid_values"][0].tolist()
    curve = podium.explain.partial_dependence(model, data.replace(feature_names=None), 2, grid=grid, ice=len(data))
    np.testing.assert_allclose(curve.means, expected["average"][0], atol=1e-9)
    np.testing.assert_allclose(curve.curves, expected["individual"][0], atol=1e-9)


def test_partial_dependence_of_categories_and_bad_grids(data, trees):
    curve = podium.explain.partial_dependence(trees, data, "b", grid=[-1.0, 0.5], ice=3)
    assert curve.grid == (-1.0, 0.5)
    shuffled = data.take(np.arange(len(data))[::-1])
    again = podium.explain.partial_dependence(trees, shuffled, "b", grid=[-1.0, 0.5], ice=3)
    assert sorted(len(data) - 1 - again.rows) == sorted(curve.rows)
    np.testing.assert_array_equal(again.means, curve.means)
    kinds = podium.RankingData(
        pd.DataFrame({"qid": [1] * 6, "label": [0, 1, 2] * 2, "kind": pd.Categorical(["x", "y", "z"] * 2)})
    )
    by_kind = podium.LambdaMART(n_trees=2, min_documents_in_leaf=1).fit(kinds)
    whole = podium.explain.partial_dependence(by_kind, kinds, "kind")
    assert whole.grid == ("x", "y", "z")
    np.testing.assert_allclose(whole.means, by_kind.predict(kinds)[:3], atol=1e-12)
    for model, documents, feature, grid, problem in (
        (trees, data, "a", [], "grid must be a number of quantiles"), (trees, data, "a", 0, "grid must be"),
        (by_kind, kinds, "kind", ["w"], "no category 'w'"), (trees, data, "none", 5, "no feature named 'none'"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=problem):
            podium.explain.partial_dependence(model, documents, feature, grid=grid)


def test_permutation_importance_has_an_interval_and_ignores_row_order(data, trees):
    table = podium.explain.permutation_importance(trees, data, "ndcg@5", repeats=3)
    for _, loss, low, high in table.rows:
        assert low <= loss <= high
    assert table.rows[0][2] > 0
    reversed_rows = data.take(np.arange(len(data))[::-1])
    assert podium.explain.permutation_importance(trees, reversed_rows, "ndcg@5", repeats=3).rows == table.rows
