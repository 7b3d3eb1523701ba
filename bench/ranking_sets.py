"""The data sets on which accuracy is measured, each as folds of training, validation and test queries.

`podium.features` computes the features of text collections, `podium.clicks` those of RankLens. Both are computed once
and cached in `bench/.cache`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import podium
from bench.harness import CACHE, DATA

WEB = {"web-30": 30, "web-100": 100, "web-300": 300}  # training queries of samples of web-shaped data
TEXT = ("cystic-fibrosis", "cranfield", "cacm")  # five folds by query
SETS = {
    "mq2008": 5, "ohsumed": 5, "lightgbm_example": 1, "web-30": 4, "web-100": 2, "web-300": 1, "cystic-fibrosis": 5,
    "msrd": 1, "cranfield": 5, "cacm": 5, "ranklens": 1,
}  # fmt: skip  # folds or samples of each
HELD_OUT = ("cranfield", "cacm", "ranklens")  # on which no default was chosen

Data = podium.RankingData


@cache
def fold(name: str, number: int) -> tuple[Data, Data, Data]:
    """Return training, validation and test data of a fold, numbered from 1."""
    if name in WEB:
        queries, seed = WEB[name], 200 + number
        vali = podium.artificial_web(queries // 3, seed=seed, part="valid")
        return podium.artificial_web(queries, seed=seed), vali, podium.artificial_web(300, seed=seed, part="test")
    if name == "lightgbm_example":
        whole = podium.read(DATA / name / "train.txt.gz")
        train, vali = whole.split(0.8, 0.2, seed=0)
        return train, vali, podium.read(DATA / name / "test.txt.gz", n_features=whole.n_features)
    if name in TEXT:
        whole = computed(name)
        part = np.random.default_rng(0).permutation(whole.n_queries) % 5
        test, vali = part == number - 1, part == number % 5
        return whole.select(~(test | vali)), whole.select(vali), whole.select(test)
    if name in ("msrd", "ranklens"):
        whole = computed(name)
        order = np.arange(whole.n_queries)  # RankLens is in time order
        if name == "msrd":
            order = np.random.default_rng(0).permutation(whole.n_queries)
        parts = order[-4000:-2000], order[-2000:-1500], order[-1500:]
        assert len(parts[0]) == 2000
        return tuple(whole.select(np.sort(part)) for part in parts)  # type: ignore[return-value]
    chosen = podium.data.datasets.folds(DATA / name, parts="ohsumed" if name == "ohsumed" else "letor")[number - 1]
    return chosen.train, chosen.valid, chosen.test


@cache
def computed(name: str) -> Data:
    """Return the features of a text collection or of RankLens."""
    path = CACHE / "features" / f"{name}.npz"
    if not path.exists():
        data = ranklens() if name == "ranklens" else text_collection(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, features=data.features, labels=data.relevance, queries=data.query_of_row)
    arrays = np.load(path)
    return Data(arrays["features"], arrays["labels"], qid=arrays["queries"])


def text_collection(name: str) -> Data:
    """Return the default features of the candidates of all queries."""
    from bench.text_accuracy import read
    from podium.features import default

    collection = read(name)
    data: Data = collection.data(default(collection.index))
    return data


def ranklens() -> Data:
    """Return click features by replay, and the attributes of films."""
    from bench.clicks import PAST, RANKLENS, metarank_features
    from podium.clicks import ClickLog

    log = ClickLog.read(RANKLENS, format="metarank")
    past, films = log.ranking_data(PAST), metarank_features(log)
    data: Data = log.ranking_data(np.column_stack([past.features, films]))
    return data


def in_query_order(data: Data, seed: int) -> tuple[Any, Any, Any]:
    """Return features, labels and query sizes, with adjacent queries and shuffled rows within each."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(data.rows(q)) for q in range(data.n_queries)])
    return dense(data)[rows], data.relevance[rows], data.query_sizes


def dense(data: Data) -> Any:
    """Return the features as an array."""
    return data.features.toarray() if hasattr(data.features, "toarray") else data.features
