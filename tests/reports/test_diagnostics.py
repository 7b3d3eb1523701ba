"""The charts of diagnostics hold the numbers of their results, and can be drawn."""

import numpy as np
import pytest

import podium
from podium import DataError
from podium.diagnostics import (
    Agreement,
    Calibration,
    LambdaShares,
    LineSearchWeights,
    MeasureCurves,
    RankChanges,
    TopLabels,
    lambda_arrows,
)
from podium.reports import save_chart
from tests.reports.test_plots import table_with, tables

ROUNDS = np.array([0, 10, 20])


@pytest.fixture(scope="module")
def arrows():
    labels = [0, 1, np.nan, 2, 0, 1]
    data = podium.RankingData(np.arange(6.0)[:, None], labels, qid=["a"] * 6)
    return lambda_arrows(-0.1 * np.arange(6), data, "a", ["pairwise", "lambda(ndcg)"])


def results(arrows):
    shares = np.array([[0.5, 0.5], [0.4, 0.6], [0.1, 0.9]])
    labels = np.array([0.0, 2.0])
    yield TopLabels(ROUNDS, 3, labels, shares)
    yield RankChanges(ROUNDS, 3, np.array([np.nan, 0.5, 0.4]), np.array([np.nan, 0.2, 0.1]))
    yield LambdaShares(ROUNDS, (2.0,), labels, shares, shares)
    yield LambdaShares(ROUNDS[:1], (2.0,), labels, shares[:1], shares[:1])
    yield Agreement(ROUNDS, "lambda(cndcg)", shares[:, 0], shares[:, 1])
    yield LineSearchWeights(ROUNDS, np.array([1.0, 0.5, 2.0]))
    yield MeasureCurves(ROUNDS, {"train/ndcg": shares[:, 1], "valid/ndcg": shares[:, 0]})
    yield Calibration(
        1.0, np.array([0.5, 0.75, 1.0]), np.array([3, 0]), np.array([0.6, np.nan]), np.array([0.7, np.nan])
    )
    yield arrows


@pytest.mark.parametrize("which", range(9))
def test_every_result_is_drawn_light_and_dark(which, arrows, tmp_path):
    chart = list(results(arrows))[which].plot()
    contents = []
    for dark in (False, True):
        save_chart(chart, tmp_path / "chart.svg", dark=dark)
        contents.append((tmp_path / "chart.svg").read_text())
    assert contents[0] != contents[1]
    assert all("NaN" not in content for content in contents)


def test_rounds_are_counted_from_1_and_unknown_values_are_omitted(arrows):
    top, changes, shares, bars, agreement, weights, curves, calibration, _ = results(arrows)
    rows = table_with(top.plot(), "label", "share")
    assert {(row["round"], row["label"]): row["share"] for row in rows} == {
        (round_ + 1, label): top.shares[k, c] for k, round_ in enumerate(ROUNDS) for c, label in enumerate(top.labels)
    }
    drawn = [(row["iteration"], row["name"], row["value"]) for row in tables(changes.plot())[0]]
    assert drawn == [(11, "all ranks", 0.5), (21, "all ranks", 0.4), (11, "top 3", 0.2), (21, "top 3", 0.1)]
    assert [len(rows) for rows in tables(shares.plot())] == [6, 6]
    assert [row["share"] for row in tables(bars.plot())[0]] == [0.5, 0.5]
    assert len(tables(agreement.plot())[0]) == 6
    alone = Agreement(ROUNDS, "listnet", agreement.all_pairs, np.full(3, np.nan))
    assert {row["name"] for row in tables(alone.plot())[0]} == {"all pairs"}
    assert [row["value"] for row in table_with(weights.plot(), "iteration")] == [1.0, 0.5, 2.0]
    lines = table_with(curves.plot(), "round", "set", "value")
    assert [row["round"] for row in lines if row["set"] == "train"] == [1, 11, 21]
    assert [row["predicted"] for row in table_with(calibration.plot(), "from", "observed")] == [0.6]


def test_results_are_shown_as_their_tables(arrows):
    for result in (*results(arrows), arrows.pairs_behind(1)):
        table = result.table()
        assert str(table) in str(result)
        assert result._repr_html_() == table.render("html")
        assert [column.header for column in result.__rich__().columns] == table.columns


def test_long_results_are_shown_in_part():
    long = LineSearchWeights(np.arange(100), np.ones(100))
    assert len(str(long).splitlines()) == 21
    assert len(long.table().rows) == 100


def test_titles(arrows):
    charts = [result.plot().to_dict() for result in results(arrows)]
    assert [chart["title"] for chart in charts[:7] if "title" in chart] == [
        "Labels of the top 3 documents",
        "Ranks that changed: 40.0% of all and 10.0% of the top 3 in the last round",
        "Documents with label 2: where their λ come from",
        "Documents with label 2: where their λ come from",
        "Agreement with lambda(cndcg)",
        "Weights of 3 trees: median 1",
        "train/ndcg 0.9000 after 21 rounds",
    ]
    assert charts[0]["encoding"]["color"]["scale"] == {"domain": [0.0, 2.0]}
    assert len(charts[2]["hconcat"]) == len(charts[7]["vconcat"]) == 2


def test_arrows_point_where_lambda_does(arrows):
    chart = arrows.plot()
    panels = chart.to_dict()["hconcat"]
    assert [panel["title"]["text"] for panel in panels] == ["pairwise", "lambda(ndcg)"]
    for panel, lambdas in zip(panels, arrows.lambdas, strict=True):
        bars, stems, heads = (layer["data"]["values"] for layer in panel["layer"])
        assert [row["label"] for row in bars] == [0, 1, None, 2, 0, 1]
        assert stems == heads
        longest = max(abs(row["end"] - row["rank"]) for row in stems)
        assert longest == pytest.approx(4.0)
        for row in stems:
            assert row["λ"] == pytest.approx(lambdas[row["rank"] - 1])
            assert (row["end"] < row["rank"]) == (row["λ"] > 0)
            assert row["angle"] == (0 if row["λ"] > 0 else 180)
    assert "first 2 of 6 documents" in arrows.plot(most=2).to_dict()["title"]
    with pytest.raises(DataError, match="most must be"):
        arrows.plot(most=0)


def test_the_history_of_a_ranker_omits_what_observers_recorded():
    from podium.diagnostics import WatchMeasures, WatchTopLabels

    data = podium.artificial(10, features=3)
    seen = [WatchTopLabels(), WatchMeasures(every=2)]
    model = podium.LambdaMART(3, 4).fit(data, valid=data, observers=seen)
    rows = max(tables(model.plot_history()), key=len)
    assert {row["set"] for row in rows} == {"train", "valid"}
    assert [row["round"] for row in rows if row["set"] == "train"] == [1, 3]
