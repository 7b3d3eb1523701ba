"""Labels and preferences against slow references."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import podium
from podium.clicks import ClickLog
from podium.clicks.labels import KINDS, wilson
from podium.errors import DataError


def random_log(seed, n=120):
    rng = np.random.default_rng(seed)
    columns = {name: [] for name in ("time", "query", "document", "position", "clicked", "dwell")}
    for k in range(n):
        shown = rng.permutation(4)[: rng.integers(1, 5)]
        query = rng.choice(["red tea", "Tea, red", "mug"])
        for position, document in enumerate(shown.tolist(), 1):
            columns["time"].append(k)
            columns["query"].append(str(query))
            columns["document"].append(f"d{document}")
            columns["position"].append(position)
            columns["clicked"].append(bool(rng.random() < 0.6 / position))
            columns["dwell"].append(float(rng.choice([2, 10, 29.5, 30, 500, np.nan])))
    return ClickLog.from_arrays(**columns)


def rows_of(log):
    """The rows of each impression as dictionaries."""
    for k in range(log.n_impressions):
        yield [
            {"query": log.queries[log.query[k]], "document": log.documents[log.document[row]], "row": row,
             "position": int(log.position[row]), "clicked": bool(log.clicked[row]), "order": int(log.click_order[row]),
             "dwell": float(log.dwell[row])}
            for row in range(log.starts[k], log.starts[k + 1])
        ]  # fmt: skip


def slow_label(log, kind, same, document, smoothing=0.0):
    """The label of a document for equal queries and its number of observations, from the definitions."""
    impressions = list(rows_of(log))
    all_rows = [row for rows in impressions for row in rows]
    rows_of_pair = [row for row in all_rows if same(row["query"]) and row["document"] == document]
    n = len(rows_of_pair)
    if kind == "ctr":
        overall = sum(row["clicked"] for row in all_rows) / len(all_rows)
        clicks = sum(row["clicked"] for row in rows_of_pair)
        return (clicks + smoothing * overall) / (n + smoothing), n
    if kind == "last_click":
        lasts = [
            max((row for row in rows if row["clicked"]), key=lambda r: r["order"], default=None) for rows in impressions
        ]
        lasts = [row["row"] for row in lasts if row]
        overall = len(lasts) / len(all_rows)
        clicks = sum(row["row"] in lasts for row in rows_of_pair)
        return (clicks + smoothing * overall) / (n + smoothing), n
    if kind == "coec":
        expected = 0.0
        for row in rows_of_pair:
            here = [other["clicked"] for other in all_rows if other["position"] == row["position"]]
            expected += sum(here) / len(here)
        return (sum(row["clicked"] for row in rows_of_pair) + smoothing) / (expected + smoothing), n
    if kind == "dwell":

        def grade(row):
            return 0 if not row["clicked"] else 1 + (row["dwell"] >= 10) + (row["dwell"] >= 30)

        known = [row for row in rows_of_pair if not row["clicked"] or not math.isnan(row["dwell"])]
        graded = [grade(row) for row in all_rows if not row["clicked"] or not math.isnan(row["dwell"])]
        overall = sum(graded) / len(graded)
        return (sum(map(grade, known)) + smoothing * overall) / (len(known) + smoothing), len(known)
    wins = losses = 0
    for rows in impressions:
        for below in rows:
            for above in rows:
                if below["clicked"] and not above["clicked"] and above["position"] < below["position"]:
                    wins += same(below["query"]) and below["document"] == document
                    losses += same(above["query"]) and above["document"] == document
    return (wins + smoothing * 0.5) / (wins + losses + smoothing), wins + losses


@pytest.mark.parametrize("smoothing", [0.0, 2.5])
@pytest.mark.parametrize("queries", ["equal", "similar"])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_follow_their_definitions(kind, queries, smoothing):
    log = random_log(7)
    table = log.labels(kind, min_impressions=1, smoothing=smoothing, queries=queries)
    assert len(table) == len(log.pair_queries) == 12
    for k in range(len(table)):
        query = table.query[k]
        alike = {query} if queries == "equal" or query == "mug" else {"red tea", "Tea, red"}
        value, n = slow_label(log, kind, alike.__contains__, table.document[k], smoothing)
        assert table.impressions[k] == n
        assert table.value[k] == pytest.approx(value, rel=1e-12)
    assert ((table.low >= 0) & (table.low <= table.high)).all()
    if not smoothing:
        assert ((table.low <= table.value) & (table.value <= table.high)).all()


def test_coec_of_an_average_document_is_one():
    """Clicks that depend on the position alone: COEC is near 1 everywhere, while the click rate is not."""
    rng = np.random.default_rng(0)
    n = 4000
    order = np.array([[0, 1], [1, 0]])[(rng.random(n) < 0.2).astype(int)]
    clicked = rng.random((n, 2)) < [0.5, 0.1]
    log = ClickLog.from_arrays(
        time=np.repeat(np.arange(n), 2), query=["q"] * 2 * n, document=order.ravel(), position=[1, 2] * n,
        clicked=clicked.ravel(),
    )  # fmt: skip
    assert log.labels("coec").value == pytest.approx(1.0, abs=0.06)
    rates = log.labels("ctr").value
    assert rates[0] > 2 * rates[1]


def test_few_impressions_have_no_label():
    log = random_log(1)
    table = log.labels("ctr", min_impressions=15)
    assert np.isnan(table.value[table.impressions < 15]).all()
    assert np.isfinite(table.value[table.impressions >= 15]).all()
    assert (table.impressions < 15).any()
    assert table.of_rows.shape == (len(log),)


@given(st.integers(1, 500), st.data())
def test_intervals_are_wilsons(n, data):
    clicks = data.draw(st.integers(0, n))
    low, high = wilson(np.array([clicks / n]), np.array([n]), 0.9)
    expected = binomtest(clicks, n).proportion_ci(0.9, "wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert NormalDist().inv_cdf(0.95) > 0


@pytest.mark.parametrize("seed", range(3))
def test_preferences_are_clicks_over_skips_above(seed):
    log = random_log(seed)
    expected = [
        (below["row"], above["row"]) for rows in rows_of(log) for below in rows for above in rows
        if below["clicked"] and not above["clicked"] and above["position"] < below["position"]
    ]  # fmt: skip
    pairs = log.preferences()
    assert sorted(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)) == sorted(expected)


def test_ranking_data_has_label_sources_and_trains():
    log = random_log(2)
    data = log.ranking_data(
        ["rate(click, by=document)", "rate(click, by=query+document)"], ["clicked", "ctr", "coec"], preferences=True,
        min_impressions=3,
    )  # fmt: skip
    assert set(data.labels) == {"relevance", "clicked", "ctr", "coec"}
    assert data.n_queries == log.n_impressions
    assert data.feature_names == ("rate(click, by=document)", "rate(click, by=query+document)")
    assert data.labels["ctr"].tolist() == log.labels("ctr", min_impressions=3).of_rows.astype(np.float32).tolist()
    np.testing.assert_array_equal(data.relevance, log.clicked)
    assert len(data.preferences) == len(log.preferences())
    grades = np.arange(len(log)) % 3
    both = log.ranking_data(data, "ctr", relevance=grades)
    np.testing.assert_array_equal(both.relevance, grades)
    podium.LambdaMART(n_trees=3, n_leaves=4).fit(both)
    with pytest.raises(DataError, match="no numbers were logged"):
        log.ranking_data()
    with pytest.raises(DataError, match="must have a row for each of the log"):
        log.select([0]).ranking_data(data)


def test_bad_parameters():
    log = random_log(2)
    for options, message in [
        ({"kind": "crt"}, "did you mean 'ctr'"), ({"min_impressions": 0}, "min_impressions must be"),
        ({"smoothing": -1}, "smoothing must be"), ({"confidence": 1}, "confidence must be"),
        ({"queries": "alike"}, "queries must be 'equal', 'similar' or a function"),
        ({"kind": "dwell", "dwell_grades": (30, 10)}, "dwell_grades must be ascending seconds"),
    ]:  # fmt: skip
        with pytest.raises(DataError, match=message):
            log.labels(**options)
    plain = ClickLog.from_arrays(query=["a"], document=["x"], position=[1], clicked=[1])
    with pytest.raises(DataError, match="no dwell times"):
        plain.labels("dwell")


def test_saved_as_csv(tmp_path):
    import pandas as pd

    table = random_log(1).labels("ctr", min_impressions=15)
    table.save(tmp_path / "labels.csv")
    frame = pd.read_csv(tmp_path / "labels.csv")
    np.testing.assert_array_equal(frame["value"], table.value)
    assert frame["query"].tolist() == table.query.tolist()
