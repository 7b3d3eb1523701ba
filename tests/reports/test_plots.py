"""The numbers in each chart are those of the result."""

import json

import numpy as np
import pytest

import podium
from podium import DataError, LambdaMART, LinearRanker
from podium.reports import save_chart
from podium.reports.charts import points_to_draw
from podium.reports.feature_charts import summary_chart
from podium.reports.training_charts import history_chart, speed_chart

MEASURES = ["ndcg@10", "ap"]


def tables(chart):
    """Return all data of a chart, in its order."""
    data = []

    def walk(node):
        if isinstance(node, dict):
            if "values" in node.get("data", {}):
                data.append(node["data"]["values"])
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(json.loads(chart.to_json()))
    return data


def table_with(chart, *columns):
    """Return the data with these columns."""
    return next(rows for rows in tables(chart) if set(columns) <= set(rows[0]))


@pytest.fixture(scope="module")
def parts():
    return [podium.artificial(20, features=5, part=part) for part in ("train", "valid")]


@pytest.fixture(scope="module")
def fitted(parts):
    train, valid = parts
    return LambdaMART(6, n_leaves=4, metrics=["ap"]).fit(train, valid={"valid": valid, "train": train})


@pytest.fixture(scope="module")
def linear(parts):
    return LinearRanker(n_iterations=3).fit(parts[0])


class TestHistory:
    def test_every_value_is_there_and_the_best_round_is_marked(self, fitted):
        chart = fitted.plot_history()
        best = fitted.best_iteration_ + 1
        assert f"after round {best} of 6" in chart.to_dict()["title"]
        panels = chart.to_dict()["vconcat"]
        assert len(panels) == 2
        for panel, measure in zip(panels, ("ndcg@10", "ap"), strict=True):
            rule, line, points = (layer["data"]["values"] for layer in panel["layer"])
            for name in ("valid", "train"):
                values = [row["value"] for row in line if row["set"] == name]
                assert values == fitted.history_[f"{name}/{measure}"]
                assert [row["round"] for row in line if row["set"] == name] == list(range(1, 7))
            assert {row["round"] for row in (*rule, *points)} == {best}
            assert len(points) == 2

    def test_a_submodel_is_round_0(self):
        chart = history_chart({"valid/ap": [0.2, 0.1]}, -1, {"valid/ap": 0.4})
        assert chart.to_dict()["title"] == "valid/ap 0.4000 before the first round"
        assert [(row["round"], row["value"]) for row in tables(chart)[1]] == [(0, 0.4), (1, 0.2), (2, 0.1)]

    def test_long_histories_are_thinned_and_keep_the_best(self):
        values = np.random.default_rng(0).random(20_000).tolist()
        best = 777
        chart = history_chart({"valid/ap": values}, best)
        line = tables(chart)[1]
        assert len(line) <= 1001
        assert {"round": best + 1, "set": "valid", "value": values[best]} in line
        assert max(row["value"] for row in line) == max(values)

    def test_without_validation_data(self, parts):
        with pytest.raises(DataError, match=r"cannot plot the history.*valid=…"):
            LambdaMART(2).fit(parts[0]).plot_history()
        ascent = LinearRanker("ndcg@5", method="ascent", n_iterations=2).fit(parts[0])
        assert ascent.plot_history().to_dict()["title"].startswith("train/ndcg@5")


def test_thinned_lines_keep_their_extremes():
    values = np.sin(np.arange(9999.0)) * np.arange(9999)
    points = points_to_draw(values, 200)
    assert len(points) <= 200
    assert {0, 9998, int(values.argmin()), int(values.argmax())} <= set(points.tolist())
    assert points_to_draw(np.array([0.0, 3.0, 1.0, 2.0, 9.0, 5.0]), most=4).tolist() == [0, 4, 5]
    assert points_to_draw(values[:200], 200).tolist() == list(range(200))


def test_the_measure_by_number_of_trees():
    chart = speed_chart([(1, 0.5, 0.4, 0.6), (10, 0.7, 0.6, 0.8)], "ndcg@10")
    assert chart.to_dict()["title"] == "ndcg@10 by number of trees"
    assert [(row["trees"], row["mean"], row["low"], row["high"]) for row in tables(chart)[0]] == [
        (1, 0.5, 0.4, 0.6), (10, 0.7, 0.6, 0.8),
    ]  # fmt: skip


def test_queries(parts, fitted):
    evaluation = podium.evaluate(parts[1], fitted.predict(parts[1]), MEASURES)
    chart = evaluation.plot().to_dict()
    for panel, (name, values) in zip(chart["vconcat"], evaluation.values.items(), strict=True):
        bars, band, mean = (layer["data"]["values"] for layer in panel["layer"])
        for bar in bars:
            inside = (values >= bar["from"]) & ((values < bar["to"]) | (bar["to"] == 1.0))
            assert bar["queries"] == inside.sum(), (name, bar)
        assert band == mean
        assert (mean[0]["low"], mean[0]["high"]) == evaluation.intervals[name]
        assert mean[0]["mean"] == evaluation.means[name]
        low, high = evaluation.intervals[name]
        interval = f"(95% from {low:.4f} to {high:.4f})"
        assert panel["title"] == f"{name}: mean {evaluation.means[name]:.4f} {interval}, 20 queries"


def test_queries_without_a_value():
    data = podium.RankingData([[1.0], [2.0]], [0, 0], qid=[1, 1])
    with pytest.warns(podium.PodiumWarning):
        evaluation = podium.evaluate(data, data.feature(0), "ndcg(empty=skip)")
    with pytest.raises(DataError, match="every measure skipped every query"):
        evaluation.plot()
    one = podium.RankingData([[1.0], [2.0]], [0, 1], qid=[1, 1])
    assert podium.evaluate(one, one.feature(0)).plot().to_dict()["title"] == "ndcg@10: mean 1.0000, 1 query"


def test_comparison(parts, fitted, linear):
    result = podium.compare(parts[1], {"trees": fitted, "linear": linear, "one": parts[1].feature(0)}, MEASURES)
    chart = result.plot().to_dict()
    for row, measure in zip(chart["vconcat"], MEASURES, strict=True):
        means, differences = row["hconcat"]
        assert means["title"] == f"{measure}, mean"
        assert differences["title"] == "difference, query by query"
        shown = means["layer"][1]["data"]["values"]
        assert {row["system"]: row["mean"] for row in shown} == {
            name: evaluation.means[measure] for name, evaluation in result.evaluations.items()
        }
        pairs = [pair for pair in result.pairs if pair.measure == measure]
        shown = differences["layer"][1]["layer"][1]["data"]["values"]
        for values, pair in zip(shown, pairs, strict=True):
            assert values["pair"] == f"{pair.b} − {pair.a}"
            assert [values[key] for key in ("difference", "low", "high", "p")] == [
                pair.difference, pair.low, pair.high, pair.p_t_holm,
            ]  # fmt: skip


def test_importance(parts, fitted):
    rows = tables(fitted.plot_importance())[0]
    shares = fitted.feature_importances_
    assert {row["feature"]: row["value"] for row in rows} == {f"column {k}": shares[k] for k in range(5)}
    assert [row["value"] for row in rows] == sorted(shares, reverse=True)
    assert len(tables(fitted.plot_importance(top=2))[0]) == 2
    assert fitted.plot_importance(top=2).to_dict()["title"] == "the first 2 of 5 features"
    with pytest.raises(DataError, match="top must be a whole number from 1"):
        fitted.plot_importance(top=0)
    result = podium.explain.permutation_importance(fitted, parts[1], repeats=2)
    bars, rules = tables(result.plot(top=3))
    for row, bar, rule in zip(result.rows, bars, rules, strict=False):
        assert bar == {"feature": f"column {row[0]}", "value": row[1]}
        assert (rule["low"], rule["high"]) == (row[2], row[3])


def test_path(parts, fitted, linear):
    result = podium.combine(fitted, linear, parts[1])
    rows, best = table_with(result.plot(), "alpha"), table_with(result.plot(), "low")
    rows = tables(result.plot())[1]
    assert [row["alpha"] for row in rows] == result.path.alphas.tolist()
    assert [row["value"] for row in rows[:-1]] == result.path.values.tolist()
    title = result.plot().to_dict()["title"]
    assert title.startswith(f"ndcg@10 {result.value:.4f} at α = {result.alpha:.4g} (a {result.values[0]:.4f}, b ")
    assert best == [
        {"alpha": result.alpha, "value": result.value, "low": result.interval[0], "high": result.interval[1]}
    ]


def test_optimality(parts, linear):
    result = podium.diagnostics.local_optimality(linear, parts[0], directions=7, steps=(0.1, 0.3), curves=2, points=3)
    chart = result.plot()
    assert [row["change"] for row in table_with(chart, "step", "change")] == result.changes.ravel().tolist()
    assert [row["share"] for row in table_with(chart, "share")] == result.falling_share.tolist()
    curves = table_with(chart, "weight", "value")
    assert [row["value"] for row in curves] == result.curves.ravel().tolist()
    assert len(chart.to_dict()["hconcat"]) == 2
    alone = podium.diagnostics.local_optimality(linear, parts[0], directions=2, steps=(0.1,), curves=0).plot()
    assert "hconcat" not in alone.to_dict()


def test_folds(parts):
    models = {"few": LambdaMART(2), "more": LambdaMART(4)}
    result = podium.cross_validate(models, parts[0], folds=2, measures="ndcg")
    (measure,) = result.evaluations["few"].values
    assert result.plot().to_dict()["title"] == "20 queries, 2 folds"
    folds = table_with(result.plot(), "fold")
    for name in models:
        values = [row["value"] for row in folds if row["system"] == name]
        assert values == result.fold_means[name][measure].tolist()
    assert {row["system"]: row["value"] for row in table_with(result.plot(), "value", "low")} == {
        name: evaluation.means[measure] for name, evaluation in result.evaluations.items()
    }


def test_a_chart_is_drawn_and_can_be_changed(fitted, tmp_path):
    chart = fitted.plot_history().properties(title="mine")
    for name in ("a", "b"):
        save_chart(chart, tmp_path / f"{name}.png", dark=name == "b", scale=1)
    light, dark = ((tmp_path / f"{name}.png").read_bytes() for name in "ab")
    assert light[:8] == dark[:8] == b"\x89PNG\r\n\x1a\n"
    assert light != dark


def test_contributions(parts, fitted):
    data = parts[1]
    result = fitted.explain(data)
    query = data.query_ids[0]
    rows = result.rows_of(query)
    one, pair = result.of_document(int(rows[0])), result.why(int(rows[0]), int(rows[1]))
    bars = tables(one.plot(top=3))[0]
    assert bars[0]["from"] == result.base
    assert bars[-1]["to"] == pytest.approx(result.scores[rows[0]], abs=1e-12)
    assert bars[-1]["feature"] == "2 others"
    first, last = int(rows[0]), int(rows[-1])
    assert (
        result.why(first, last).plot().to_dict()["title"]["text"].startswith(f"Why row {first} is above row {last}: ")
    )
    bars = tables(pair.plot())[0]
    assert [bar["amount"] for bar in bars] == [row[-1] for row in pair.rows]
    assert bars[-1]["to"] == pytest.approx(pair.gap, abs=1e-12)
    assert [bar["value"] for bar in tables(result.plot(top=2))[0]] == [row[1] for row in result.importance().rows[:2]]
    title = f"What the first 2 of 5 features add to {len(data):,} scores"
    assert summary_chart(result, top=2).to_dict()["title"] == title
    table = result.query(query)
    stacked, _, sums = (tables(table.plot(top=4))[k] for k in range(3))
    assert len(stacked) == 4 * 6
    scores = result.scores[rows]
    assert [row["sum"] for row in sums] == pytest.approx(list(scores[:4] - scores.mean()), abs=1e-12)


def test_comparison_of_explanations(parts, fitted, linear):
    result = podium.explain.compare_explanations(fitted, linear, parts[1], parts[1].query_ids[0])
    _, _, sums = (tables(result.plot(top=5))[k] for k in range(3))
    change = {f"{name}: {a} → {b}": d for name, (a, b), d in
              zip(result.documents, result.ranks, result.scores[:, 1] - result.scores[:, 0], strict=True)}  # fmt: skip
    assert len(sums) == 5
    assert all(row["sum"] == pytest.approx(change[row["document"]], abs=1e-12) for row in sums)


def test_partial_dependence(parts, fitted):
    result = podium.explain.partial_dependence(fitted, parts[1], 1, grid=4, ice=2)
    curves, mean = tables(result.plot())
    assert [(row["value"], row["score"]) for row in mean] == list(zip(result.grid, result.means, strict=True))
    assert [row["score"] for row in curves] == result.curves.ravel().tolist()
    assert len(tables(podium.explain.partial_dependence(fitted, parts[1], 1, grid=4).plot())) == 1
