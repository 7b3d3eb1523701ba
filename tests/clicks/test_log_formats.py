"""Metarank's and OpenSearch's formats: small files, real files and hostile files."""

import json
import re

import numpy as np
import pytest

from podium.clicks import ClickLog
from podium.errors import DataError

METARANK = [
    {"event": "interaction", "type": "click", "id": "i1", "ranking": "r1", "item": "b", "timestamp": "1700000005000",
     "fields": [{"name": "dwell", "value": 12.5}]},
    {"event": "item", "item": "a", "timestamp": "1600000000000",
     "fields": [{"name": "brand", "value": "x"}, {"name": "tags", "value": ["p", "q"]}]},
    {"event": "ranking", "id": "r1", "timestamp": "1700000000000", "user": "u", "session": "s",
     "fields": [{"name": "query", "value": "tea"}],
     "items": [{"id": "a", "fields": [{"name": "bm25", "value": 2.5}]}, {"id": "b"}]},
    {"event": "interaction", "type": "purchase", "id": "i2", "ranking": "r1", "item": "b",
     "timestamp": "1700000009000"},
    {"event": "interaction", "type": "click", "id": "i3", "ranking": "r1", "item": "c", "timestamp": "1700000009000"},
    {"event": "interaction", "type": "click", "id": "i4", "ranking": "r9", "item": "a", "timestamp": "1700000009000"},
    {"event": "user", "user": "u", "timestamp": "1600000000000", "fields": []},
]  # fmt: skip
UBI = [
    {"index": {"_index": "ubi_queries"}},
    {"query_id": "q1", "user_query": "tea", "client_id": "c", "timestamp": "2024-12-10T00:00:00Z", "application": "A"},
    {"query_id": "q2", "user_query": "mug", "client_id": "c", "timestamp": 1733788860000,
     "query_response_hit_ids": ["m", "n"]},
    {"action_name": "impression", "query_id": "q1", "session_id": "s", "client_id": "c", "application": "A",
     "timestamp": "2024-12-10T00:00:01Z",
     "event_attributes": {"object": {"object_id": "x"}, "position": {"ordinal": 0}}},
    {"action_name": "impression", "query_id": "q1", "session_id": "s", "client_id": "c", "application": "A",
     "timestamp": "2024-12-10T00:00:01Z",
     "event_attributes": {"object": {"object_id": "y"}, "position": {"ordinal": 1}}},
    {"action_name": "item_click", "query_id": "q1", "client_id": "c", "timestamp": "2024-12-10T00:00:09Z",
     "event_attributes": {"object": {"object_id": "y"}, "dwell_time": 4.5, "session_id": "s"}},
    {"action_name": "click", "query_id": "q2", "client_id": "c", "timestamp": "2024-12-10T00:02:09Z",
     "event_attributes": {"object": {"object_id": "m"}, "position": {"ordinal": 1}}},
    {"action_name": "add_to_cart", "query_id": "q2", "client_id": "c", "timestamp": "2024-12-10T00:03:00Z",
     "event_attributes": {"object": {"object_id": "m"}}},
]  # fmt: skip


def test_metarank(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in METARANK))
    log = ClickLog.read(path, format="metarank")
    assert (log.queries, log.users, log.sessions) == (("tea",), ("u",), ("s",))
    assert [log.documents[d] for d in log.document] == ["a", "b"]
    assert (log.clicked.tolist(), log.click_time.tolist()) == ([False, True], [0, 1_700_000_005_000_000])
    assert log.dwell[1] == 12.5
    assert log.shown["bm25"][0] == 2.5
    assert np.isnan(log.shown["bm25"][1])
    assert log.events.kinds == ("purchase",)
    assert (log.events.query.tolist(), log.events.user.tolist()) == ([0], [0])
    assert list(log.fields) == ["brand"]
    problems = log.notes.problems
    assert problems["a click is on a document that its impression does not show"] == (1, f"{path}, line 5")
    assert problems["an event names a ranking that is not in the log"] == (1, f"{path}, line 6")


def test_ubi():
    log = ClickLog.read(UBI, format="ubi")
    assert [log.queries[q] for q in log.query] == ["tea", "mug"]
    assert [log.documents[d] for d in log.document] == ["x", "y", "m", "n"]
    assert log.position.tolist() == [1, 2, 1, 2]
    assert log.clicked.tolist() == [False, True, True, False]
    assert log.dwell[1] == 4.5
    assert log.events.kinds == ("add_to_cart",)
    assert log.times.tolist() == [1_733_788_800_000_000, 1_733_788_860_000_000]
    kinds = [finding.kind for finding in log.check()]
    assert kinds[:2] == ["time units", "positions"]
    for clicks in (["click"], "click"):
        only_clicks = ClickLog.read(UBI, format="ubi", clicks=clicks)
        assert only_clicks.clicked.sum() == 1
        assert "item_click" in only_clicks.events.kinds


RANKING = {"event": "ranking", "id": "r", "timestamp": 1}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({}, "'event' is missing"),
        ({"event": "rankings"}, "'event' must be ranking, interaction, item or user, but got 'rankings'"),
        ({"event": "ranking", "id": "r", "items": []}, "'timestamp' is missing"),
        ({"event": "ranking", "id": "r", "timestamp": "noon", "items": [{"id": "a"}]}, "expected a time"),
        ({**RANKING, "items": "a"}, "'items' must be a list of objects"),
        ({**RANKING, "items": [{"idd": "a"}]}, "'id' is missing .did you mean 'idd'"),
        ({**RANKING, "items": [{"id": "a"}], "fields": 7}, "'fields' must be a list"),
        ({**RANKING, "items": [{"id": "a"}], "user": ["u"]}, "'user' must be text"),
        ({"event": "interaction", "timestamp": 1, "item": "a"}, "'type' is missing"),
        ({"event": "ranking", "id": "r", "timestamp": 10**30, "items": [{"id": "a"}]}, "expected a time"),
    ],
)  # fmt: skip
def test_hostile_events_name_their_line(event, message, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(METARANK[2]) + "\n" + json.dumps(event) + "\n")
    with pytest.raises(DataError, match=re.escape(f"{path}, line 2: ") + message):
        ClickLog.read(path, format="metarank")


@pytest.mark.parametrize("text", ["{", "[1]", '{"event": "ranking"', "\xff", "{}" * 3, "[" * 100_000])
def test_damaged_files_are_refused(text, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(text.encode("latin-1"))
    for form in ("metarank", "ubi", "flat"):
        with pytest.raises(DataError, match=r"events\.jsonl"):
            ClickLog.read(path, format=form)


def test_a_log_that_shows_nothing_is_refused():
    with pytest.raises(DataError, match="the log is empty"):
        ClickLog.read(METARANK[:2], format="metarank")


def test_ranklens(real_data):
    log = ClickLog.read(real_data / "text" / "ranklens" / "events.jsonl.xz", format="metarank")
    assert (log.n_impressions, len(log), int(log.clicked.sum()), len(log.users)) == (9800, 235_200, 46_125, 2145)
    assert log.n_impressions - len(np.unique(log.times)) == 8736
    past = log.features(["rate(click, by=document)"])
    findings = log.check({"past": past.feature(0), "whole": log.labels("ctr").of_rows})
    leaks = [finding.message for finding in findings if finding.kind == "leak"]
    assert len(leaks) == 1
    assert leaks[0].startswith("'whole' is the click rate by document over the whole log (rank correlation 1.0000")


def test_ubi_sample(real_data):
    log = ClickLog.read(real_data / "text" / "ubi-sample" / "ubi_queries_events.ndjson.xz", format="ubi")
    text = "\n".join(map(str, log.check()))
    assert "ISO times, 429 epoch milliseconds" in text
    assert "the positions of 1,000 shown documents count from 0" in text
    assert "a click is on a document that its impression does not show: 41 in all" in text
