"""What `make demo` shows: artificial data, described and ranked by single features."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import ndcg_score

import podium


def mean_ndcg(data: podium.RankingData, scores: NDArray[np.float32], cutoff: int = 10) -> float:
    """The mean NDCG with gains 2^l − 1 over the queries that have a relevant document."""
    values = []
    for query in range(data.n_queries):
        rows = data.rows(query)
        gains = 2.0 ** data.relevance[rows] - 1.0
        if gains.any():
            values.append(ndcg_score(gains[None], scores[rows][None], k=cutoff, ignore_ties=True))
    return float(np.mean(values))


def main(folder: Path) -> None:
    """Make data, describe it, rank it by each feature, and leave a report in the folder."""
    train = podium.artificial(500, seed=0)
    test = podium.artificial(500, seed=0, part="test")
    agreement = np.corrcoef(train.features.T, train.relevance)[-1, :-1]
    chance = np.random.default_rng(0).random(test.n_documents, np.float32)
    rows = [("in random order", mean_ndcg(test, chance))]
    for k in np.argsort(-np.abs(agreement))[:3].tolist():
        sign, direction = (1, "") if agreement[k] > 0 else (-1, ", lowest first")
        rows.append((f"by feature {k}{direction}", mean_ndcg(test, sign * test.feature(k))))
    width = max(len(name) for name, _ in rows)
    lines = [
        "# Artificial ranking data",
        "",
        "```",
        str(train.summary()),
        "```",
        "",
        "NDCG@10 on test queries, ranked by the features that agree best with the training labels:",
        "",
        f"| {'ranking':{width}} | NDCG@10 |",
        f"| {'-' * width} | ------- |",
        *(f"| {name:{width}} | {value:.4f}  |" for name, value in rows),
        "",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.md"
    report.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))
    print(f"Written to {report}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
