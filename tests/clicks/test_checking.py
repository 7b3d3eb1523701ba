"""Each planted fault is found, and a clean log has none."""

import numpy as np
import pytest

from podium.clicks import ClickLog
from podium.errors import DataError

START = 1_700_000_000


def columns(n=600, seed=0):
    rng = np.random.default_rng(seed)
    documents = np.array([rng.permutation(30)[:5] for _ in range(n)]).ravel()
    appeal = rng.random(30)
    return {
        "time": START + np.repeat(np.arange(n) * 60, 5), "query": np.repeat(rng.integers(0, 9, n), 5),
        "document": documents, "position": np.tile(np.arange(1, 6), n), "user": np.repeat(rng.integers(0, 50, n), 5),
        "clicked": rng.random(5 * n) < appeal[documents] * 0.6,
    }  # fmt: skip


def kinds(**change):
    return [finding.kind for finding in ClickLog.from_arrays(**columns() | change).check()]


def test_a_clean_log_has_no_findings():
    assert kinds() == []


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda c: {"time": c["time"].astype(object) * np.where(c["time"] > START + 9000, 1000, 1)}, "time units"),
        (lambda c: {"position": c["position"] - 1}, "positions"),
        (lambda c: {"position": c["position"] * 2}, "positions"),
        (lambda c: {"position": np.where(c["position"] == 3, 2, c["position"])}, "positions"),
        (lambda c: {"document": np.where(c["position"] == 3, np.roll(c["document"], 1), c["document"])}, "events"),
        (lambda c: {"time": c["time"] + np.where(c["time"] > START + 9000, 90_000, 0)}, "gaps"),
        (lambda c: {"time": c["time"] // 120 * 120, "impression": np.repeat(np.arange(600), 5)}, "ties"),
        (lambda c: {"click_time": c["time"] - 5}, "time"),
        (lambda c: {"click_time": c["time"] + 100_000}, "time"),
        (lambda c: {"time": None}, "time"),
    ],
)  # fmt: skip
def test_planted_faults_are_found(change, kind):
    assert kind in kinds(**change(columns()))


def test_repeated_impressions_are_found():
    once = columns()
    twice = {name: np.concatenate([column, column[:50]]) for name, column in once.items()}
    twice["impression"] = np.concatenate([np.repeat(np.arange(600), 5), np.repeat(np.arange(600, 610), 5)])
    (finding,) = (f for f in ClickLog.from_arrays(**twice).check() if f.kind == "repeats")
    assert finding.count == 10
    assert finding.message.startswith("10 impressions repeat another one exactly")


def test_dwell_times_longer_than_a_day_are_found():
    """Search engines write the largest number for users who never came back."""
    log = ClickLog.from_arrays(
        query=["q"] * 3, document=["a", "b", "c"], position=[1, 2, 3], clicked=[1, 1, 0], dwell=[30, 2**63 - 1, 2**40],
        impression=[1] * 3, time=[5] * 3,
    )  # fmt: skip
    (finding,) = log.check()
    assert (finding.kind, finding.count) == ("dwell", 1)
    assert "1 dwell times are longer than a day" in finding.message


def test_bots_are_found():
    n = 300
    bot = {
        "time": START + 999 + np.arange(n) // 20, "query": np.zeros(n, int), "document": np.arange(n) % 30,
        "position": np.ones(n, int), "user": np.full(n, 77), "clicked": np.ones(n, bool),
    }  # fmt: skip
    both = {name: np.concatenate([column, bot[name]]) for name, column in columns().items()}
    both["impression"] = np.concatenate([np.repeat(np.arange(600), 5), 600 + np.arange(n)])
    (finding,) = (f for f in ClickLog.from_arrays(**both).check() if f.kind == "bots")
    assert finding.count == 1
    assert "for example '77'" in finding.message


def test_leaks_are_found_and_features_of_the_past_are_not_blamed():
    log = ClickLog.from_arrays(**columns(2000))
    past = log.features(["rate(click, by=document)", "count(click, by=document)", "rate(click, by=user, half_life=1h)"])
    own_clicks = log.clicked + 0.0
    totals = np.bincount(log.document, log.clicked)
    inclusive = past.feature(1) + own_clicks  # the row's own click is in the count
    leaks = {
        f.message.split("'")[1]: f.message
        for f in log.check({
            "rate": log.labels("ctr", queries=lambda query: ()).of_rows, "log": np.log1p(totals[log.document]),
            "inclusive": inclusive, "past": past.feature(0), "count": past.feature(1), "user": past.feature(2),
            "noise": np.random.default_rng(1).random(len(log)), "constant": np.ones(len(log)),
            "position": log.position,
        }) if f.kind == "leak"
    }  # fmt: skip
    assert set(leaks) == {"rate", "log", "inclusive"}
    assert "click rate by document over the whole log" in leaks["rate"]
    assert "number of clicks by document over the whole log" in leaks["log"]
    assert "including clicks of the same moment" in leaks["inclusive"]
    assert [f.kind for f in log.check(past)] == []


def test_features_of_another_length_are_refused():
    log = ClickLog.from_arrays(**columns())
    with pytest.raises(DataError, match="x must have one value for each"):
        log.check({"x": [1.0, 2.0]})
