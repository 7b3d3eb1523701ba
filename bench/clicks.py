"""Click features by replay: what they are worth on RankLens, and how fast they are.

RankLens (Metarank's data) has rankings of 24 random films, of which people marked those that they like.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Report, in_child

FOLDER = Path(os.environ.get("PODIUM_DATA", "../shared/data"))
TEST = 0.2  # the last share of rankings
TEN_SCOPES = [
    "rate(click, by=document)", "rate(click, by=query)", "rate(click, by=user)", "rate(click, by=session)",
    "rate(click, by=query+document)", "rate(click, by=user+document, window=7d)", "recency(click, by=query+user)",
    "rate(click, by=brand, half_life=1d)", "count(impression, by=user+brand)", "rate(click, by=all, half_life=1h)",
]  # fmt: skip
RANKINGS, TIMED_IN_PYTHON = 50_000, 1_000


def ranklens() -> dict[str, dict[str, float]]:
    """NDCG of the last rankings, by a single rate and by rankers that learn from the rankings before them."""
    import podium
    from podium.clicks import ClickLog

    log = ClickLog.read(FOLDER / "text" / "ranklens" / "events.jsonl.xz", format="metarank")
    is_test = np.arange(log.n_impressions) >= (1 - TEST) * log.n_impressions
    rows = is_test[log.impression]
    texts = [
        "rate(click, by=document, smoothing=10)", "rate(click, by=document)", "count(impression, by=document)",
        "rate(click, by=director, smoothing=10)", "rate(click, by=writer, smoothing=10)", "rate(click, by=user)",
        "count(click, by=user+director)", "rate(click, by=document, half_life=7d)", "recency(click, by=document)",
    ]  # fmt: skip
    past = log.ranking_data(texts)
    whole = log.labels("ctr", min_impressions=1).of_rows
    leaking = log.ranking_data(np.column_stack([whole, past.features[:, 2:]]))

    def ndcg(data: Any, scores: Any) -> dict[str, float]:
        part = data.take(np.flatnonzero(rows))
        result = podium.evaluate(part, np.asarray(scores)[rows], ["ndcg", "ndcg@10"])
        return {"NDCG": float(result.means["ndcg"]), "NDCG@10": float(result.means["ndcg@10"])}

    def trained(data: Any) -> Any:
        model = podium.Ranker().fit(data.take(np.flatnonzero(~rows)))
        return model.predict(data)

    filled = np.nan_to_num(past.features, nan=float(log.clicked.mean()))
    return {
        "as shown (random)": ndcg(past, -log.position.astype(float)),
        "past click rate": ndcg(past, filled[:, 1]),
        "past click rate, smoothed": ndcg(past, filled[:, 0]),
        "click rate of the whole log (leaks)": ndcg(past, whole),
        "Ranker, features of the past": ndcg(past, trained(past)),
        "Ranker, a leaking rate among them": ndcg(leaking, trained(leaking)),
    }


def speed() -> dict[str, dict[str, float]]:
    """Events a minute, in features of ten scopes, on one core, and of a loop over a pandas frame."""
    from podium.clicks import ClickLog, Replay
    from podium.clicks.simulating import simulate_events
    from podium.core.threads import at_most_threads

    log = ClickLog.read(list(simulate_events(RANKINGS)), format="metarank")
    n_events = len(log) + int(log.clicked.sum())
    with at_most_threads(1):
        Replay(TEN_SCOPES).replay(log.select(np.arange(100)))  # compiles
        times = []
        for _ in range(3):
            started = time.perf_counter()
            Replay(TEN_SCOPES).replay(log)
            times.append(time.perf_counter() - started)
    part = log.select(np.arange(TIMED_IN_PYTHON))
    started = time.perf_counter()
    rates = pandas_loop(part)
    in_pandas = (time.perf_counter() - started) / (len(part) + int(part.clicked.sum()))
    np.testing.assert_array_equal(rates, Replay(TEN_SCOPES[:1]).replay(part)[:, 0])
    started = time.perf_counter()
    state = Replay(TEN_SCOPES)
    requests = 0
    for k in range(TIMED_IN_PYTHON):
        documents = [log.documents[d] for d in log.document[log.starts[k] : log.starts[k + 1]]]
        when = np.datetime_as_string(np.datetime64(int(log.times[k]), "us"))
        names = {"query": log.queries[log.query[k]], "user": log.users[log.user[k]]}
        state.read({"time": when, "documents": documents, **names})
        state.update([{"event": "impression", "time": when, "document": d, **names} for d in documents])
        requests += 1
    online = (time.perf_counter() - started) / requests
    return {
        "replay, ten scopes": {
            "million events a minute and core": 60e-6 * n_events / min(times), "events": n_events,
            "times a pandas loop of one scope": in_pandas * n_events / min(times),
        },
        "online, ten scopes, ten documents": {"ms a request": 1000 * online},
    }  # fmt: skip


def pandas_loop(log: Any) -> Any:
    """The past click rate of documents as notebooks compute it: a row at a time, counts in dictionaries."""
    import pandas as pd

    frame = pd.DataFrame({
        "time": log.times[log.impression], "document": log.document, "clicked": log.clicked, "at": log.click_time,
    })  # fmt: skip
    shown, clicks, updates = {}, {}, []
    rates = np.full(len(frame), np.nan)
    for _, one in frame.iterrows():
        updates.append((one["time"], one["document"], 0))
        if one["clicked"]:
            updates.append((one["at"], one["document"], 1))
    updates.sort()
    done = 0
    for row, (_, one) in enumerate(frame.iterrows()):
        while done < len(updates) and updates[done][0] < one["time"]:
            _, document, is_click = updates[done]
            counts = clicks if is_click else shown
            counts[document] = counts.get(document, 0) + 1
            done += 1
        if shown.get(one["document"]):
            rates[row] = clicks.get(one["document"], 0) / shown[one["document"]]
    return rates


PARTS = {"ranklens": ranklens, "speed": speed}


def run() -> Report:
    """Both parts, each in a process of its own."""
    results = [entry for part in PARTS for entry in in_child("bench.clicks", part).items()]
    rows = [{"what": name} | {key: round(value, 4) for key, value in row.items()} for name, row in results]
    return Report(
        "clicks", "Click features by replay", rows,
        [f"RankLens: 9,800 rankings of 24 random films. NDCG of the last {TEST:.0%} of them; rankers learn from those "
         "before. A rate of the past holds nothing that happened at the time of the ranking or after it; a rate of the "
         f"whole log leaks. Speed: {RANKINGS:,} simulated rankings of ten documents with clicks, one thread."],
    )  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(PARTS[sys.argv[1]]()))
