"""What `make demo` shows: LambdaMART on the papers' artificial data, against single features and plain regression."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import podium
from podium.core.files import write_text
from podium.data.datasets.shape import PARTS

MEASURES = ["ndcg@10", "err@10", "ap"]


def main(folder: Path) -> None:
    """Make data, train, compare on test queries, and leave a report and the model in the folder."""
    train, valid, test = (podium.artificial(2_000, seed=0, part=part) for part in PARTS)
    started = time.perf_counter()
    model = podium.LambdaMART(n_trees=200, n_leaves=10, measure="ndcg@10", normalize=True, patience=20).fit(
        train, valid=valid
    )
    seconds = time.perf_counter() - started
    regression = podium.MART(n_trees=model.n_trees_, n_leaves=10).fit(train)
    agreement = np.corrcoef(train.features.T, train.relevance)[-1, :-1]
    best = int(np.argmax(np.abs(agreement)))
    systems: dict[str, Any] = {
        f"best feature ({best})": np.sign(agreement[best]) * test.feature(best),
        "MART": regression.predict(test),
        "LambdaMART": model.predict(test),
    }
    comparison = podium.compare(test, systems, MEASURES)
    lines = [
        "# LambdaMART on the papers' artificial data",
        "",
        "```",
        str(train.summary()),
        "```",
        "",
        f"LambdaMART: {model.n_trees_} trees of 10 leaves, chosen by NDCG@10 on validation queries, in {seconds:.1f} s "
        "(the first run compiles). MART has as many, fitted to the labels by regression. On the test queries:",
        "",
        comparison.means_table().render("markdown"),
        "",
        "Are the differences real?",
        "",
        comparison.table().render("markdown"),
        "",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.podium")
    report = folder / "report.md"
    write_text(report, "\n".join(lines))
    print("\n".join(lines))
    print(f"Written to {report}; the model to {folder / 'model.podium'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
