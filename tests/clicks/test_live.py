"""A log that is written while it is read: the same bits as the replay of its file, even after kills."""

import json
import random
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import podium
from podium.clicks import ClickLog, LiveLog, Replay
from podium.clicks.simulating import write_events
from podium.errors import DataError, FileFormatError

FEATURES = [
    "rate(click, by=document)", "count(impression, by=query+document, window=30d)", "recency(click, by=user)",
    "rate(click, by=brand, half_life=2d)", "dwell(by=document)", "count(buy, by=session)",
]  # fmt: skip


def serve(live, rng, n, first=0):
    """Rankings, clicks and other events from simulated clients; return the values that were read."""
    values = {}
    for k in range(first, first + n):
        names = {"query": rng.choice(["tea", "mug"]), "user": rng.choice(["u", "v", None]), "session": f"s{k // 3}"}
        shown = rng.sample("abcdef", 4)
        with live.moment() as now:
            values[f"r{k}"] = live.read(now, shown, **names)
            live.show(
                now, f"r{k}", [{"id": d, "fields": [{"name": "score", "value": rng.random()}]} for d in shown], **names
            )
        events = [
            {"event": "interaction", "type": rng.choice(["click", "buy"]), "ranking": f"r{k - rng.randrange(2)}",
             "item": rng.choice("abcdef"), "fields": [{"name": "dwell", "value": 0.001}] * rng.randrange(2)}
            for _ in range(rng.randrange(3))
        ]  # fmt: skip
        if rng.random() < 0.2:
            fields = [{"name": "brand", "value": rng.choice("xyz")}, {"name": "tags", "value": ["p"]}]
            events.append({"event": "item", "item": rng.choice("abcdef"), "fields": fields, "timestamp": "2024-01-01"})
        live.add(events)
    return values


@pytest.mark.parametrize("seed", range(4))
def test_values_equal_the_replay_of_the_file(seed, tmp_path, monkeypatch):
    monkeypatch.setattr("podium.clicks.live.SNAPSHOT_EVERY", 37)
    rng = random.Random(seed)
    values = {}
    for part in range(4):
        live = LiveLog(tmp_path, FEATURES)
        values |= serve(live, rng, 20, 20 * part)
        if part % 2:
            live.close()
        else:
            live._file.close()  # killed: what was accepted is in the file
            with (tmp_path / "events.jsonl").open("ab") as file:
                file.write(b'{"event": "interaction", "type": "cl')
    log = ClickLog.read(tmp_path / "events.jsonl", format="metarank")
    again = Replay(FEATURES).replay(log)
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    rankings = sorted((e for e in lines if e["event"] == "ranking"), key=lambda event: int(event["timestamp"]))
    assert len(rankings) == log.n_impressions == 80
    for k, event in enumerate(rankings):
        rows = slice(log.starts[k], log.starts[k + 1])
        assert [item["id"] for item in event["items"]] == [log.documents[d] for d in log.document[rows]]
        np.testing.assert_array_equal(again[rows], values[event["id"]])
    assert log.clicked.sum() > 10


def test_a_snapshot_of_other_features_is_not_used(tmp_path):
    live = LiveLog(tmp_path, ["count(impression, by=document)"])
    serve(live, random.Random(0), 5)
    live.close()
    again = LiveLog(tmp_path, ["count(impression, by=user)", "count(impression, by=document)"])
    with again.moment() as now:
        counts = again.read(now + 1, list("abcdef"), query=None, user=None, session=None)
    assert counts[:, 1].sum() == 20


def test_all_events_are_replayed_if_the_snapshot_is_damaged(tmp_path):
    live = LiveLog(tmp_path, ["count(impression, by=document)"])
    serve(live, random.Random(0), 5)
    live.close()
    (tmp_path / "state.npz").write_bytes(b"x")
    with pytest.warns(podium.PodiumWarning, match=r"state\.npz.*; all of events\.jsonl is replayed instead"):
        again = LiveLog(tmp_path, ["count(impression, by=document)"])
    with again.moment() as now:
        counts = again.read(now + 1, list("abcdef"), query=None, user=None, session=None)
    assert counts.sum() == 20


def test_a_snapshot_of_another_file_is_not_used(tmp_path):
    features = ["count(impression, by=document)"]
    for folder, documents in (("old", "a"), ("new", "bcd")):
        live = LiveLog(tmp_path / folder, features)
        with live.moment() as now:
            live.show(now, "r", [{"id": name} for name in documents], query=None, user=None, session=None)
        live.close()
    shutil.copy(tmp_path / "new" / "events.jsonl", tmp_path / "old" / "events.jsonl")
    live = LiveLog(tmp_path / "old", features)
    with live.moment() as now:
        counts = live.read(now + 1, list("abcd"), query=None, user=None, session=None)
    assert counts[:, 0].tolist() == [0, 1, 1, 1]


def test_one_process_at_a_time(tmp_path):
    live = LiveLog(tmp_path, FEATURES)
    with pytest.raises(DataError, match="in use by another process"):
        LiveLog(tmp_path, FEATURES)
    live.close()
    LiveLog(tmp_path, FEATURES).close()


def test_wrong_events_are_refused_and_nothing_is_written(tmp_path):
    live = LiveLog(tmp_path, FEATURES)
    ranking = {"event": "ranking", "id": "r", "items": [{"id": "a"}]}
    assert live.add([ranking]) == 0
    before = (tmp_path / "events.jsonl").read_bytes()
    for event, message in [
        (ranking, "event 1: the ranking 'r' already exists"),
        ({"event": "ranking", "id": "s", "items": [{"id": "a"}, {"id": "a"}]}, "must be distinct"),
        ({"event": "interaction", "type": "dwell", "item": "a"}, "the type 'dwell' is reserved"),
        (
            {"event": "interaction", "type": "click", "item": "a", "fields": [{"name": "dwell", "value": "x"}]},
            "seconds",
        ),
    ]:
        with pytest.raises(DataError, match=message):
            live.add([{"event": "item", "item": "a", "fields": []}, event])
    assert (tmp_path / "events.jsonl").read_bytes() == before
    click = {"event": "interaction", "type": "click", "item": "a", "ranking": "r"}
    assert live.add([click, click, click | {"item": "b"}, click | {"ranking": "q"}]) == 3


WRITER = """
import sys
from podium.clicks import LiveLog
live = LiveLog(sys.argv[1], ["count(impression, by=document)"])
number = 0
while True:
    live.add([{"event": "ranking", "id": f"r{number}", "items": [{"id": f"d{number}"}]}])
    print(number, flush=True)
    number += 1
"""


def test_no_acknowledged_event_is_lost_when_the_process_is_killed(tmp_path):
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    acknowledged = [writer.stdout.readline() for _ in range(50)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += writer.communicate()[0].splitlines()
    live = LiveLog(tmp_path, ["count(impression, by=document)"])
    with live.moment() as now:
        counts = live.read(now + 1, [f"d{k}" for k in range(len(acknowledged))], query=None, user=None, session=None)
    assert int(acknowledged[-1]) == len(acknowledged) - 1 >= 49
    assert (counts == 1).all()


def test_an_earlier_log_can_be_continued(tmp_path):
    """Features of the first request come from the clicks of the log that was copied, in milliseconds."""
    write_events(tmp_path / "events.jsonl", 80)
    features = ["rate(click, by=document)", "count(click, by=brand)", "recency(click, by=document)"]
    live = LiveLog(tmp_path, features)
    documents = [f"d{k}" for k in range(200)]
    with live.moment() as now:
        values = live.read(now, documents, query=None, user=None, session=None)
        live.show(now, "new", [{"id": name} for name in documents], query=None, user=None, session=None)
    live.close()
    log = ClickLog.read(tmp_path / "events.jsonl", format="metarank")
    np.testing.assert_array_equal(log.features(features).features[-200:], values.astype(np.float32))
    assert np.nanmax(values[:, 0]) > 0

    write_events(tmp_path / "unsorted.jsonl", 80)
    lines = (tmp_path / "unsorted.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "events.jsonl").write_text("".join(lines[::-1]))
    with pytest.raises(FileFormatError, match=r"byte \d+: event 0: events must come in the order of time"):
        LiveLog(tmp_path / "other", features)
