"""Files of every format, with the rows of each query adjacent or in any order."""

import gzip

import numpy as np
import pandas as pd
import pytest

N_QUERIES = 40
SMALL = {"n_trees": 4, "n_leaves": 6, "min_documents_in_leaf": 3, "learning_rate": 0.3}


def letor_lines(seed):
    """20 features, more than one file has; some with two values, some mostly 0."""
    rng = np.random.default_rng(seed)
    lines = []
    for query in range(N_QUERIES):
        for _ in range(rng.integers(1, 12)):
            x = rng.normal(size=20).round(2)
            x[3], x[4] = x[3] > 0, x[4] if rng.random() < 0.1 else 0
            pairs = " ".join(f"{k}:{value:g}" for k, value in enumerate(x, 1) if value)
            lines.append(f"{int(x[0] + x[1] > 0) + int(x[1] > 0.5)} qid:{query} {pairs}\n")
    return lines


def frame(seed):
    """Categories, missing values, time stamps that are shifted, several label sources, weights, positions."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(N_QUERIES), rng.integers(1, 12, N_QUERIES))
    n = len(qid)
    table = pd.DataFrame({"qid": [f"q{k}" for k in qid], "x": rng.normal(size=n), "y": rng.integers(0, 4, n)})
    table["brand"] = rng.choice(["b", "c", "d", "7"], n)
    table["seconds"] = 1.7e9 + rng.random(n) * 1e3
    table["count"] = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n))
    table["label"] = (table["x"] > 0).astype(int) + (table["brand"] == "b")
    table["label.clicks"] = np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 2, n))
    table["document_weight"] = rng.integers(1, 4, n) / 2
    table["query_weight"] = 1 + qid % 3
    table["position"] = rng.integers(-1, 5, n)
    table.loc[table["position"] == 0, "position"] = 1
    return table


def shuffled(items, seed=5):
    order = np.random.default_rng(seed).permutation(len(items))
    return items.iloc[order] if isinstance(items, pd.DataFrame) else [items[k] for k in order]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The folder of files: train.txt, mixed.csv, valid.parquet, …"""
    folder = tmp_path_factory.mktemp("files")
    for name, seed in (("train", 0), ("valid", 1)):
        lines, table = letor_lines(seed), frame(seed)
        for kind, text, rows in ((name, lines, table), (f"mixed-{name}", shuffled(lines), shuffled(table))):
            (folder / f"{kind}.txt").write_text("".join(text))
            (folder / f"{kind}.txt.gz").write_bytes(gzip.compress("".join(text).encode()))
            rows.drop(columns="seconds").to_csv(folder / f"{kind}.csv", index=False)
            rows.to_parquet(folder / f"{kind}.parquet", index=False)
    return folder
