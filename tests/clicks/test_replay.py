"""Features by replay against a slow reference and DuckDB; batches, restarts, order, threads, bounded state."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.clicks import ClickLog, Replay
from podium.clicks import replay as replay_module
from podium.clicks.click_features import ROOTS, parse
from podium.clicks.simulating import simulate_events
from podium.errors import DataError, FileFormatError
from tests.clicks.logs import DAY, events_of, fields_before, names_of, random_events, slow_features

FEATURES = [
    "rate(click, by=document)", "count(impression, by=query+document, window=30d)", "recency(click, by=user)",
    "rate(click, by=brand, half_life=2d)", "dwell(by=document)", "dwell(by=user+brand, window=3d)",
    "rate(click, by=session, smoothing=3)", "count(purchase, by=query)", "count(click, by=all, half_life=12h)",
    "rate(purchase, by=document, per=click, window=9d)", "recency(impression, by=document+session)",
]  # fmt: skip


def read(events):
    log = ClickLog.read(events, format="metarank", time_unit="us")
    return log if "purchase" in log.events.kinds and "brand" in log.fields else None


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_replay_equals_the_slow_reference(seed):
    log = read(random_events(seed))
    if log is not None:
        expected = np.array(slow_features(log, [parse(text) for text in FEATURES]))
        np.testing.assert_array_equal(Replay(FEATURES).replay(log), expected)
        np.testing.assert_array_equal(log.features(FEATURES).features, expected.astype(np.float32))


def steps_of(log):
    """Return the events and requests of a log in the order of time, as an online caller sends them."""
    steps = []
    for time, kind, _, names in events_of(log):
        if kind == "dwell":
            continue
        event = {"event": kind, "time": time} | {k: v for k, v in names.items() if k != "brand"}
        steps.append((time, event))
    for row in np.flatnonzero(log.clicked).tolist():  # the click again, with its dwell time
        event = next(
            event for time, event in steps
            if event["event"] == "click" and time == log.click_time[row] and "dwell" not in event
            and event["document"] == log.documents[log.document[row]]
            and event["session"] == log.sessions[log.session[log.impression[row]]]
        )  # fmt: skip
        event["dwell"] = None if np.isnan(log.dwell[row]) else float(log.dwell[row])
    table = log.fields["brand"]
    for k in range(len(table.times)):
        fields = {"brand": table.values[table.value[k]]}
        event = {"event": "item", "document": log.documents[table.document[k]], "fields": fields}
        steps.append((int(table.times[k]), event | {"time": int(table.times[k])}))
    for k, time in enumerate(log.times.tolist()):
        names = names_of(log, 0, log.query[k], log.user[k], log.session[k])
        documents = [log.documents[d] for d in log.document[log.starts[k] : log.starts[k + 1]]]
        steps.append(
            (time, {"time": time, "documents": documents} | {n: names[n] for n in ("query", "user", "session")})
        )
    return steps


@pytest.mark.parametrize("limit", [4, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_online_and_offline_give_the_same_bits(seed, limit, tmp_path):
    """In any order within a moment, with restarts, and with a state that is too small for all keys."""
    log = read(random_events(seed, n_rankings=60, n_documents=9))
    offline = Replay(FEATURES, limit=limit)
    expected = offline.replay(log)
    rng = random.Random(seed)
    steps = sorted(steps_of(log), key=lambda step: (step[0], rng.random()))
    online, values, batch = Replay(FEATURES, limit=limit), {}, []
    for time, step in steps:
        step["time"] = np.datetime64(time, "us").item().isoformat()  # small numbers would count as seconds
        if "event" in step:
            batch.append(step)
            continue
        online.update(batch)
        batch = []
        values.setdefault(time, []).append(online.read(step))
        if rng.random() < 0.1:
            online.save(tmp_path / "state.npz")
            online = Replay.load(tmp_path / "state.npz")
    rows = {time: np.concatenate(parts) for time, parts in values.items()}
    for time, read_values in rows.items():
        expected_values = expected[log.times[log.impression] == time]
        rows_read, expected_rows = (np.nan_to_num(values, nan=-1).tolist() for values in (read_values, expected_values))
        assert sorted(rows_read) == sorted(expected_rows)
    if limit == 4:
        whole = Replay(FEATURES).replay(log)
        assert not np.array_equal(whole, expected, equal_nan=True)  # keys were dropped
        assert all(len(table) <= 4 + 20 for table in offline._tables.values())


def test_the_order_of_events_and_threads_do_not_matter(monkeypatch, tmp_path):
    events = random_events(3, n_rankings=40)
    expected = None
    for k in range(4):
        random.Random(k).shuffle(events)
        monkeypatch.setattr(replay_module, "n_threads_for", lambda work, k=k: k + 1)
        log, state = read(events), Replay(FEATURES, limit=6)
        by_ranking = state.replay(log)
        order = np.lexsort((log.document, log.position, log.session[log.impression], log.times[log.impression]))
        state.save(tmp_path / "state.npz")
        values = by_ranking[order]
        content = {name: array.tobytes() for name, array in np.load(tmp_path / "state.npz").items()}
        expected = expected or (values, content)
        assert sorted(map(repr, values.tolist())) == sorted(map(repr, expected[0].tolist()))
        assert content == expected[1]


@pytest.mark.parametrize("seed", range(3))
def test_counts_equal_duckdb(seed):
    """DuckDB's ASOF join finds the last running count before each read; windows are counted by a plain join."""
    duckdb = pytest.importorskip("duckdb")
    log = read(random_events(seed, n_rankings=80, n_documents=8))
    features = ["count(click, by=document)", "recency(click, by=document)", "count(click, by=document, window=32d)",
                "rate(click, by=query+document)"]  # fmt: skip
    values = Replay(features).replay(log)
    db = duckdb.connect()
    db.execute("create table reads (row bigint, key varchar, pair varchar, t bigint)")
    db.execute("create table events (kind varchar, key varchar, pair varchar, t bigint)")
    document = [log.documents[d] for d in log.document]
    pair = [f"{log.queries[log.query[k]]}/{name}" for k, name in zip(log.impression, document, strict=True)]
    reads = list(zip(range(len(log)), document, pair, log.times[log.impression].tolist(), strict=True))
    db.executemany("insert into reads values (?, ?, ?, ?)", reads)
    events = [
        (kind, names["document"], f"{names['query']}/{names['document']}", time)
        for time, kind, _, names in events_of(log)
    ]
    db.executemany("insert into events values (?, ?, ?, ?)", events)

    def running(key, kind):
        return f"""(select {key} as key, t, max(n) as n from
            (select {key}, t, count(*) over (partition by {key} order by t) as n from events where kind = '{kind}')
            group by all)"""

    clicks = db.execute(f"""select coalesce(e.n, 0), (r.t - e.t) / 1e6 from reads r
        asof left join {running("key", "click")} e on r.key = e.key and r.t > e.t order by r.row""").fetchall()
    assert [float(n) for n, _ in clicks] == values[:, 0].tolist()
    np.testing.assert_array_equal([np.nan if s is None else s for _, s in clicks], values[:, 1])
    windows = db.execute(f"""select count(e.t) from reads r left join events e on e.kind = 'click' and e.key = r.key
        and e.t < r.t and e.t // {DAY} > r.t // {DAY} - 32 group by r.row order by r.row""").fetchall()
    assert [float(n) for (n,) in windows] == values[:, 2].tolist()
    rates = db.execute(f"""select coalesce(c.n, 0) / i.n from reads r
        asof left join {running("pair", "click")} c on r.pair = c.key and r.t > c.t
        asof left join {running("pair", "impression")} i on r.pair = i.key and r.t > i.t order by r.row""").fetchall()
    np.testing.assert_array_equal([np.nan if x is None else x for (x,) in rates], values[:, 3])


def test_reads_of_a_moment_come_before_its_updates():
    replay = Replay(["count(click, by=document)"])
    replay.update({"event": "click", "time": 5, "document": "a"})
    assert replay.read({"time": 5, "documents": ["a"]}) == 0
    replay.update({"event": "click", "time": 5, "document": "a"})
    assert replay.read({"time": 5, "documents": ["a"]}) == 0
    assert replay.read({"time": 6, "documents": ["a"]}) == 2


def test_a_dwell_time_is_known_when_the_user_has_left():
    replay = Replay(["dwell(by=document)"])
    replay.update({"event": "click", "time": 100, "document": "a", "dwell": 20})
    assert np.isnan(replay.read({"time": 120, "documents": ["a"]})).all()
    assert replay.read({"time": 121, "documents": ["a"]}) == 20


def test_a_late_or_invalid_event_refuses_the_whole_batch():
    replay = Replay(["count(click, by=document)"])
    replay.update({"event": "click", "time": 9, "document": "a"})
    good = {"event": "click", "time": 10, "document": "a"}
    for bad, message in [
        ({"event": "click", "time": 3, "document": "a"}, "event 1: events must come in the order of time"),
        ({"event": "click", "time": "soon"}, "event 1: expected a time"),
        ({"event": "click", "time": 11, "document": 7}, "event 1: 'document' must be text, but got 7"),
        ({"event": "click", "time": 11, "dwell": -1}, "event 1: 'dwell' must be a non-negative number of seconds"),
        (
            {"event": "click", "time": 11, "dwell": float("nan")},
            "event 1: 'dwell' must be a non-negative number of seconds",
        ),
        ({"event": "item", "time": 11, "document": "a"}, "event 1: an event 'item' needs"),
        ("click", "event 1: expected a dictionary"),
    ]:
        with pytest.raises(DataError, match=message):
            replay.update([good, bad])
    with pytest.raises(DataError, match="requests must come in the order of time"):
        replay.read({"time": 8, "documents": ["a"]})
    with pytest.raises(DataError, match="'documents' must be a list"):
        replay.read({"time": 20, "documents": "a"})
    assert replay.read({"time": 20, "documents": ["a"]}) == 1


def test_the_number_of_pending_events_is_bounded(monkeypatch):
    state, busy = Replay(["count(click)"]), Replay(["count(click)"])
    events = [{"event": "click", "time": k, "document": "ab"[k % 2]} for k in range(200)]
    for event in events:
        state.update(event)
    monkeypatch.setattr(replay_module, "MOST_PENDING", 10)
    for event in events:
        busy.update(event)
        assert len(busy._pending) <= 11
    request = {"time": 200, "documents": ["a", "b"]}
    assert busy.read(request).tolist() == state.read(request).tolist() == [[100.0], [100.0]]


def test_the_state_is_bounded_and_drops_the_oldest_keys():
    replay = Replay(["count(click, by=document)"], limit=100)
    for k in range(1000):
        replay.update({"event": "click", "time": k, "document": f"d{k}"})
        replay.read({"time": k + 1, "documents": []})
    (table,) = replay._tables.values()
    assert len(table) <= 101
    counts = replay.read({"time": 2000, "documents": [f"d{k}" for k in range(1000)]}).ravel()
    assert counts[-75:].all()
    assert not counts[:-101].any()


def test_logged_numbers_are_features():
    log = ClickLog.read(simulate_events(30), format="metarank")
    data = log.features(["rate(click,by=document)", "text_score", "count(click)"])
    assert data.feature_names == ("rate(click, by=document)", "text_score", "count(click, by=document)")
    np.testing.assert_array_equal(data.feature(1), log.shown["text_score"].astype(np.float32))
    alone = log.features(["count(click)", "rate(click, by=document)"])
    np.testing.assert_array_equal(data.features[:, [2, 0]], alone.features)
    assert log.features(["text_score"]).feature_names == ("text_score",)
    for wrong in ([], "text_score", ["text_scores"], ["text_score", "text_score"]):
        with pytest.raises(DataError):
            log.features(wrong)


def test_replay_needs_times_events_and_fields():
    log = ClickLog.from_arrays(query=["a"], document=["x"], position=[1], clicked=[1])
    with pytest.raises(DataError, match=r"the log has no times, .*pass time="):
        log.features(["rate(click)"])
    log = ClickLog.from_arrays(query=["a"], document=["x"], position=[1], clicked=[1], time=[3])
    with pytest.raises(DataError, match="no events 'purchase'; it has click, dwell, impression"):
        log.features(["count(purchase)"])
    with pytest.raises(DataError, match="no field 'brand'"):
        log.features(["rate(click, by=brand)"])
    replay = Replay(["rate(click)"])
    replay.replay(log)
    with pytest.raises(DataError, match="needs a new state"):
        replay.replay(log)


def test_a_field_is_unknown_before_its_first_value():
    log = read(random_events(1))
    table = log.fields["brand"]
    assert fields_before(log, log.documents[table.document[0]], int(table.times[0])) == {}


def test_damaged_states_are_refused(tmp_path):
    path = tmp_path / "state.npz"
    replay = Replay(["rate(click, by=document)"])
    replay.update({"event": "click", "time": 1, "document": "a"})
    replay.read({"time": 2, "documents": []})
    replay.save(path)
    content = path.read_bytes()
    for damaged in (b"", b"hello", content[: len(content) // 2], content.replace(b"keys0", b"keyz0")):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"state\.npz: is not a saved state"):
            Replay.load(path)


def test_weights_are_correctly_rounded():
    from decimal import Decimal, getcontext

    getcontext().prec = 50
    assert [float(Decimal(2) ** (Decimal(-k) / 4)) for k in range(4)] == list(ROOTS)
