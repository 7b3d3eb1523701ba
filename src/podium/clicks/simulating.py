"""Click logs of simulated users in Metarank's format, for tutorials and tests."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from podium.core.files import write_text
from podium.core.validation import require_whole

FIRST = 1_700_000_000_000  # milliseconds since the epoch
SHOWN = 10  # documents per ranking


def simulate_events(n_rankings: int = 2000, *, n_documents: int = 200, seed: int = 0) -> list[dict[str, Any]]:
    """Return items, rankings and clicks in the order of time.

    Each document has a brand and an appeal. A user examines position r with probability 1/√r, and clicks an examined
    document with the probability of its appeal. The field `text_score` of each shown document is its appeal plus noise.
    """
    require_whole("n_rankings", n_rankings, 1)
    require_whole("n_documents", n_documents, 1)
    random = np.random.default_rng(seed)
    brand = random.integers(0, 10, n_documents)
    appeal = np.clip(random.beta(1.5, 4, n_documents) + random.normal(0, 0.1, 10)[brand], 0.01, 0.99)
    events: list[dict[str, Any]] = [
        {
            "event": "item", "id": f"i{document}", "item": f"d{document}", "timestamp": f"{FIRST}",
            "fields": [{"name": "brand", "value": f"brand {brand[document]}"}],
        }
        for document in range(n_documents)
    ]  # fmt: skip
    time = FIRST
    for number in range(n_rankings):
        time += int(random.exponential(60_000)) + 1
        candidates = random.permutation(n_documents)[: 3 * SHOWN]
        score = appeal[candidates] + random.normal(0, 0.2, len(candidates))
        order = np.argsort(-score)[:SHOWN]
        names = {"user": f"u{random.integers(0, 300)}", "session": f"s{number // 3}"}
        events.append({
            "event": "ranking", "id": f"r{number}", "timestamp": f"{time}", **names,
            "fields": [{"name": "query", "value": f"query {random.integers(0, 40)}"}],
            "items": [
                {"id": f"d{candidates[k]}", "fields": [{"name": "text_score", "value": round(float(score[k]), 4)}]}
                for k in order
            ],
        })  # fmt: skip
        click_time = time
        for position, document in enumerate(candidates[order].tolist(), 1):
            if random.random() < appeal[document] / np.sqrt(position):
                click_time += int(random.exponential(5000)) + 1
                dwell = round(float(random.exponential(60 * appeal[document])), 1)
                events.append({
                    "event": "interaction", "type": "click", "id": f"c{number}-{position}", "ranking": f"r{number}",
                    "item": f"d{document}", "timestamp": f"{click_time}", **names,
                    "fields": [{"name": "dwell", "value": dwell}],
                })  # fmt: skip
    return sorted(events, key=lambda event: int(event["timestamp"]))


def write_events(path: str | os.PathLike[str], n_rankings: int, seed: int = 0) -> None:
    """Write simulated events as lines of JSON."""
    write_text(path, "".join(f"{json.dumps(event)}\n" for event in simulate_events(n_rankings, seed=seed)))
