"""Small random logs as Metarank's events, and the slow, obvious way to compute features of them."""

import math
import random

from podium.clicks.click_features import COUNT, LATEST, TOTAL

DAY = 86_400_000_000


def random_events(seed, n_rankings=25, n_documents=5, span=40 * DAY):
    """Rankings, clicks, purchases and item updates; many share their time with others."""
    rng = random.Random(seed)
    moments = sorted(rng.randrange(span) for _ in range(max(2, n_rankings // 2)))
    moment = lambda: rng.choice(moments)  # noqa: E731
    events = []
    for document in range(n_documents):
        for _ in range(rng.randrange(3)):
            fields = [{"name": "brand", "value": rng.choice(["x", "y", "z"])}]
            events.append({"event": "item", "item": f"d{document}", "timestamp": f"{moment()}", "fields": fields})
    for k in range(n_rankings):
        shown = rng.sample(range(n_documents), rng.randrange(1, n_documents + 1))
        time = moment()
        ranking = {
            "event": "ranking", "id": f"r{k}", "timestamp": f"{time}", "user": rng.choice(["u1", "u2", None]),
            "session": f"s{rng.randrange(4)}", "items": [{"id": f"d{d}"} for d in shown],
            "fields": [{"name": "query", "value": rng.choice(["tea", "red tea"])}],
        }  # fmt: skip
        events.append(ranking)
        for document in shown:
            if rng.random() < 0.4:
                later = rng.choice([0, 0, 1, rng.randrange(DAY), rng.randrange(10 * DAY)])
                fields = [{"name": "dwell", "value": rng.choice([0.5, 12, 40.25, 90000])}] * rng.randrange(2)
                kind = rng.choice(["click", "click", "click", "purchase"])
                events.append({
                    "event": "interaction", "type": kind, "id": f"i{k}", "ranking": f"r{k}", "item": f"d{document}",
                    "timestamp": f"{time + later}", "fields": fields, "user": ranking["user"],
                    "session": ranking["session"],
                })  # fmt: skip
    rng.shuffle(events)
    return events


def events_of(log):
    """All events of a log as (time, kind, amount, names), with document fields as known before the time."""
    events = []
    for row, k in enumerate(log.impression.tolist()):
        names = names_of(log, log.document[row], log.query[k], log.user[k], log.session[k])
        events.append((int(log.times[k]), "impression", 1, names))
        if log.clicked[row]:
            time, dwell = int(log.click_time[row]), log.dwell[row]
            events.append((time, "click", 1, names))
            if dwell <= 86400:
                events.append((time + round(dwell * 1e6), "dwell", round(dwell * 1000), names))
    table = log.events
    for k in range(len(table.times)):
        names = names_of(log, table.document[k], table.query[k], table.user[k], table.session[k])
        events.append((int(table.times[k]), table.kinds[table.kind[k]], 1, names))
    return [
        (time, kind, amount, names | fields_before(log, names["document"], time))
        for time, kind, amount, names in events
    ]


def names_of(log, document, query, user, session):
    def name(names, code):
        return None if code < 0 else names[code]

    return {
        "document": name(log.documents, document), "query": name(log.queries, query) or None,
        "user": name(log.users, user), "session": name(log.sessions, session),
    }  # fmt: skip


def fields_before(log, document, time):
    known = {}
    for field, table in log.fields.items():
        for k in range(len(table.times)):
            if log.documents[table.document[k]] == document and table.times[k] < time:
                known[field] = table.values[table.value[k]] if table.value[k] >= 0 else None
    return known


def slow_features(log, features):
    """Features of each row by looking at every event again."""
    events, rows = events_of(log), []
    for row, k in enumerate(log.impression.tolist()):
        time = int(log.times[k])
        names = names_of(log, log.document[row], log.query[k], log.user[k], log.session[k])
        names |= fields_before(log, names["document"], time)
        rows.append([slow_value(feature, events, time, names) for feature in features])
    return rows


def slow_value(feature, events, time, names):
    counts = [slow_counter(counter, events, time, names) for counter in feature.counters]
    if feature.name == "count":
        return counts[0]
    if feature.name == "recency":
        return counts[0] / 1e6
    if feature.name == "dwell":
        return counts[0] / counts[1] / 1000.0 if counts[1] > 0 else math.nan
    if not feature.smoothing:
        return counts[0] / counts[1] if counts[1] > 0 else math.nan
    overall = counts[2] / counts[3] if counts[3] > 0 else math.nan
    return (counts[0] + feature.smoothing * overall) / (counts[1] + feature.smoothing)


def slow_counter(counter, events, time, names):
    if any(names.get(name) is None for name in counter.by):
        return math.nan
    past = [
        (when, amount) for when, kind, amount, of in events
        if kind == counter.event and when < time and all(of.get(name) == names[name] for name in counter.by)
    ]  # fmt: skip
    if counter.keeps == LATEST:
        return float(time - max(when for when, _ in past)) if past else math.nan
    total = 0.0
    for age, weight in enumerate(counter.weights.tolist()):
        inside = [
            amount for when, amount in past if not counter.width or time // counter.width - when // counter.width == age
        ]
        total += weight * (len(inside) if counter.keeps == COUNT else sum(inside))
    assert counter.keeps in (COUNT, TOTAL)
    return total
