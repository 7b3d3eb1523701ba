"""Functions that several experiments share: tables, sentences, clicks, wrong labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from experiments.claims import Arm
from experiments.work import Triple
from podium.data import RankingData
from podium.data.datasets.clicks import simulate_clicks
from podium.evaluation.tables import Table

CLICKS = {"=": "clicks", "≈": "similar_clicks"}  # of the query, and of the query and similar ones


def means_table(arms: Mapping[str, Arm], measures: Sequence[str], first: str = "trained on") -> Table:
    """Return the mean of each measure for each arm."""
    return Table([first, *measures], [[name, *(arm.mean(m) for m in measures)] for name, arm in arms.items()])


def ranked(arms: Mapping[str, Arm], measure: str) -> str:
    """Return the means of some arms in one sentence, the highest first."""
    means = sorted(((arm.mean(measure), name) for name, arm in arms.items()), reverse=True)
    return f"Means of {measure}: {'; '.join(f'{name} {value:.4f}' for value, name in means)}."


def with_shuffled_labels(data: RankingData, share: float, rng: np.random.Generator) -> RankingData:
    """Return the data with a share of the labels shuffled."""
    labels = data.relevance.copy()
    rows = rng.random(len(labels)) < share
    labels[rows] = rng.permutation(labels[rows])
    return data.replace(labels={"relevance": labels})


def with_clicks(parts: Triple, shown: int = 30) -> Triple:
    """Add clicks that follow the label and, among equal labels, a taste that two features determine.

    The two are those with the most different values. Users of similar queries find other documents attractive too.
    Documents below the first that are shown are never clicked.
    """
    counts = [len(np.unique(parts[0].feature(k))) for k in range(parts[0].n_features)]
    first, second = np.argsort(-np.array(counts), kind="stable")[:2]
    train, valid, test = (_clicked(part, shown, part.feature(int(first)), part.feature(int(second))) for part in parts)
    return train, valid, test


def _clicked(data: RankingData, shown: int, *features: NDArray[np.float32]) -> RankingData:
    taste = np.zeros(data.n_documents)
    for values in features:
        share_below = rankdata(np.nan_to_num(values)) / len(values)
        taste += 1.25 * np.tanh(4 * share_below - 2)
    labels = np.nan_to_num(data.relevance)
    behaviour: dict[str, Any] = {
        "attraction": np.clip((2.0 ** (labels + taste) - 1) / 2.0**5 + 0.1, 0, 1),
        "users": 200, "depth": shown, "position_bias": 0.3, "noise": 0.05, "disorder": 0.2, "seed": 1,
    }  # fmt: skip
    data = simulate_clicks(data, label=CLICKS["="], **behaviour)
    return simulate_clicks(data, label=CLICKS["≈"], similar_queries=3, **behaviour)
