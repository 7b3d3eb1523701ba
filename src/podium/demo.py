"""What `make demo` shows: LambdaMART on the papers' artificial data, against a single feature and plain regression."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import podium
from podium.data.datasets.artificial import PARTS

MEASURES = ["ndcg@10", "err@10", "ap"]


def main(folder: Path, queries: int = 2_000, trees: int = 200) -> None:
    """Make data, train, compare on test queries, and leave a report and the model in the folder."""
    train, valid, test = (podium.artificial(queries, seed=0, part=part) for part in PARTS)
    print(f"{train.summary()}\n")
    started = time.perf_counter()
    model = podium.LambdaMART(
        n_trees=trees, n_leaves=10, measure="ndcg@10", normalize=True, patience=20, metrics=["err@10", "ap"]
    ).fit(train, valid={"valid": valid, "train": train})
    print(f"LambdaMART: {model.n_trees_} trees in {time.perf_counter() - started:.1f} s (the first run compiles)\n")
    agreement = np.corrcoef(train.features.T, train.relevance)[-1, :-1]
    best = int(np.argmax(np.abs(agreement)))
    others: dict[str, Any] = {
        "MART": podium.MART(n_trees=model.n_trees_, n_leaves=10).fit(train),
        f"best feature ({best})": np.sign(agreement[best]) * test.feature(best),
    }
    comparison = podium.compare(test, {**others, "LambdaMART": model}, MEASURES)
    print(f"{comparison.means_table()}\n\n{comparison.table()}\n")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.podium")
    report = podium.report(
        model, test, folder / "report.html", train=train, valid=valid, others=others, measures=MEASURES,
        name="LambdaMART",
    )  # fmt: skip
    print(f"The report is {report}, for any browser; the model is {folder / 'model.podium'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
