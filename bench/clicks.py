"""Click features by replay: their accuracy on RankLens and their speed. Features of links: their speed.

RankLens (Metarank's data) has rankings of 24 random films. Users clicked the films that they like.
"""

from __future__ import annotations

import json
import lzma
import sys
import time
import warnings
from collections import defaultdict
from typing import Any

import numpy as np

from bench.harness import DATA, Report, in_child

RANKLENS = DATA / "text" / "ranklens" / "events.jsonl.xz"
GENRES = (
    "drama", "comedy", "thriller", "action", "adventure", "romance", "crime", "science fiction", "fantasy", "family",
    "horror", "mystery", "animation", "history", "music",
)  # fmt: skip
TEST = 0.2  # the last share of rankings
PAST = [
    "rate(click, by=document, smoothing=10)", "rate(click, by=document)", "count(impression, by=document)",
    "rate(click, by=director, smoothing=10)", "rate(click, by=writer, smoothing=10)", "rate(click, by=user)",
    "count(click, by=user+director)", "rate(click, by=document, half_life=7d)", "recency(click, by=document)",
]  # fmt: skip
TEN_SCOPES = [
    "rate(click, by=document)", "rate(click, by=query)", "rate(click, by=user)", "rate(click, by=session)",
    "rate(click, by=query+document)", "rate(click, by=user+document, window=7d)", "recency(click, by=query+user)",
    "rate(click, by=brand, half_life=1d)", "count(impression, by=user+brand)", "rate(click, by=all, half_life=1h)",
]  # fmt: skip
RANKINGS, TIMED_IN_PYTHON = 50_000, 1_000
LINKS, FEW_LINKS = 10_000_000, 100_000


def ranklens() -> dict[str, dict[str, float]]:
    """Return NDCG of the last rankings, by a single rate and by rankers trained on the rankings before them."""
    import podium
    from podium.clicks import ClickLog

    log = ClickLog.read(RANKLENS, format="metarank")
    is_test = np.arange(log.n_impressions) >= (1 - TEST) * log.n_impressions
    rows = is_test[log.impression]
    past = log.ranking_data(PAST)
    published = log.ranking_data(metarank_features(log))
    both = log.ranking_data(np.column_stack([past.features, published.features]))
    whole = log.labels("ctr", min_impressions=1).of_rows
    leaking = log.ranking_data(np.column_stack([whole, past.features[:, 2:]]))

    def ndcg(data: Any, scores: Any) -> dict[str, float]:
        part = data.take(np.flatnonzero(rows))
        result = podium.evaluate(part, np.asarray(scores)[rows], ["ndcg", "ndcg@10"])
        return {"NDCG": float(result.means["ndcg"]), "NDCG@10": float(result.means["ndcg@10"])}

    def trained(data: Any) -> Any:
        model = podium.Ranker().fit(data.take(np.flatnonzero(~rows)))
        return model.predict(data)

    def lightgbm(data: Any) -> Any:
        from lightgbm import LGBMRanker

        train = data.take(np.flatnonzero(~rows))
        model = LGBMRanker(n_estimators=100, num_leaves=16, verbose=-1, n_jobs=2, random_state=0)
        sizes = np.unique(train.qid, return_counts=True)[1]  # rows are in the order of impressions
        return model.fit(train.features, train.relevance, group=sizes).predict(data.features)

    filled = np.nan_to_num(past.features, nan=float(log.clicked.mean()))
    return {
        "as shown (random)": ndcg(past, -log.position.astype(float)),
        "past click rate": ndcg(past, filled[:, 1]),
        "past click rate, smoothed": ndcg(past, filled[:, 0]),
        "click rate of the whole log (leaks)": ndcg(past, whole),
        "Ranker, features of the past": ndcg(past, trained(past)),
        "LightGBM, features of Metarank's configuration": ndcg(past, lightgbm(published)),
        "Ranker, features of Metarank's configuration": ndcg(past, trained(published)),
        "Ranker, both": ndcg(past, trained(both)),
        "Ranker, a leaking rate among them": ndcg(leaking, trained(leaking)),
    }


def metarank_features(log: Any) -> Any:
    """Return the features of Metarank's published configuration for RankLens, with reads before updates of a moment.

    These are numbers of films, 15 genres, the past click rate (the log's 20 minutes fit into its windows of 7 and 30
    days), and for genres, actors, tags and directors how much a film shares with the last ten films that
    the user clicked.
    """
    films = ranklens_films()
    numbers = ("popularity", "vote_avg", "vote_cnt", "budget", "release_date", "runtime")
    columns = [[films[name].get(number, np.nan) for number in numbers] for name in log.documents]
    title_words = [[len(films[name].get("title", "").split())] for name in log.documents]
    genres = [[genre in films[name].get("genres", ()) for genre in GENRES] for name in log.documents]
    of_films = np.column_stack([columns, title_words, genres]).astype(np.float64)
    liked = np.zeros((len(log), 4))
    history: dict[int, list[tuple[int, str]]] = {}
    fields = ("genres", "actors", "tags", "director")
    for k in range(log.n_impressions):
        rows = slice(log.starts[k], log.starts[k + 1])
        clicked = history.setdefault(int(log.user[k]), [])
        recent = [films[name] for at, name in sorted(clicked) if at < log.times[k]][-10:]
        for column, field in enumerate(fields):
            values = [value for film in recent for value in _values(film, field)]
            for row in range(rows.start, rows.stop) if values else ():
                shown = _values(films[log.documents[log.document[row]]], field)
                liked[row, column] = sum(value in shown for value in values) / len(values)
        for row in np.arange(rows.start, rows.stop)[log.clicked[rows]].tolist():
            clicked.append((int(log.click_time[row]), log.documents[log.document[row]]))
    rates = log.features(["rate(click, by=document)"]).features
    return np.column_stack([of_films[log.document], rates, liked])


def _values(film: dict[str, Any], field: str) -> list[str]:
    value = film.get(field) or []
    return [value] if isinstance(value, str) else value


def ranklens_films() -> dict[str, dict[str, Any]]:
    """Return the fields of films by id; no fields for the few films without an event."""
    films: dict[str, dict[str, Any]] = defaultdict(dict)
    with lzma.open(RANKLENS, "rt") as file:
        for event in map(json.loads, file):
            if event["event"] == "item":
                films[event["item"]] = {field["name"]: field["value"] for field in event["fields"]}
    return films


def speed() -> dict[str, dict[str, float]]:
    """Return events per minute and core, for features of ten scopes and for a loop over a pandas frame."""
    from podium.clicks import ClickLog, Replay
    from podium.clicks.simulating import simulate_events
    from podium.core.threads import at_most_threads

    log = ClickLog.read(simulate_events(RANKINGS), format="metarank")
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
    """Return the past click rate of documents, computed row by row with counts in dictionaries, as in a notebook."""
    import pandas as pd

    frame = pd.DataFrame({
        "time": log.times[log.impression], "document": log.document, "clicked": log.clicked, "at": log.click_time,
    })  # fmt: skip
    shown, clicks, updates = {}, {}, []
    rates = np.full(len(frame), np.nan)
    for _, shown_row in frame.iterrows():
        updates.append((shown_row["time"], shown_row["document"], 0))
        if shown_row["clicked"]:
            updates.append((shown_row["at"], shown_row["document"], 1))
    updates.sort()
    done = 0
    for row, (_, shown_row) in enumerate(frame.iterrows()):
        while done < len(updates) and updates[done][0] < shown_row["time"]:
            _, document, is_click = updates[done]
            counts = clicks if is_click else shown
            counts[document] = counts.get(document, 0) + 1
            done += 1
        if shown.get(shown_row["document"]):
            rates[row] = clicks.get(shown_row["document"], 0) / shown[shown_row["document"]]
    return rates


def links() -> dict[str, dict[str, float]]:
    """Return seconds of PageRank and HITS on random links, and how many times as long networkx takes on fewer links."""
    import networkx

    from podium.features.links import Links

    def timed(function: Any) -> tuple[float, Any]:
        started = time.perf_counter()
        result = function()
        return time.perf_counter() - started, result

    source, target = random_links(LINKS)
    building, graph = timed(lambda: Links(source, target))
    rank, hits = timed(graph.pagerank)[0], timed(graph.hits)[0]
    source, target = random_links(FEW_LINKS)
    theirs = networkx.DiGraph(zip(source.tolist(), target.tolist(), strict=True))
    few = Links(source, target)
    small = networkx.DiGraph([(0, 1), (1, 2), (2, 0)])
    networkx.pagerank(small), networkx.hits(small)  # imports
    few.pagerank()
    rank_of_few, ours = timed(few.pagerank)
    rank_of_theirs, expected = timed(lambda: networkx.pagerank(theirs, tol=1e-12))
    hits_of_few, (_, authorities) = timed(few.hits)
    hits_of_theirs, (_, expected_authorities) = timed(lambda: networkx.hits(theirs, max_iter=1000, tol=1e-12))
    assert np.allclose(ours, [expected[int(name)] for name in few.ids], atol=1e-9)
    assert np.allclose(authorities, [expected_authorities[int(name)] for name in few.ids], atol=1e-6)
    return {
        f"{LINKS:,} links: read": {"seconds": building},
        f"{LINKS:,} links: PageRank": {"seconds": rank, "times networkx": rank_of_theirs / rank_of_few},
        f"{LINKS:,} links: HITS": {"seconds": hits, "times networkx": hits_of_theirs / hits_of_few},
    }


def random_links(n: int) -> tuple[Any, Any]:
    """Return the ends of links between a tenth as many documents, some of which have many links."""
    rng = np.random.default_rng(0)
    return rng.integers(0, n // 10, n), (n // 10 * rng.random(n) ** 3).astype(np.int64)


PARTS = {"ranklens": ranklens, "speed": speed, "links": links}


def run() -> Report:
    """Run all parts, each in a separate process."""
    results = [entry for part in PARTS for entry in in_child("bench.clicks", part).items()]
    rows = [{"what": name} | {key: round(value, 4) for key, value in row.items()} for name, row in results]
    return Report(
        "clicks", "Click features by replay, and links", rows,
        [
            f"RankLens: 9,800 rankings of 24 random films. NDCG is that of the last {TEST:.0%}; rankers train on the "
            "rankings before them. Metarank's configuration has numbers and genres of films, the past click rate, and "
            "what a film shares with films that the user clicked before. Its models are LightGBM's or XGBoost's, here "
            "with 100 trees of 16 leaves. A past rate includes only events before the ranking; a rate over the whole "
            "log leaks.",
            f"Speed: {RANKINGS:,} simulated rankings of ten documents with clicks, one thread. Links are random; "
            f"networkx is timed on {FEW_LINKS:,} of them.",
        ],
    )  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(PARTS[sys.argv[1]]()))
