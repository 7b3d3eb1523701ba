"""What `make demo` shows: artificial data, described, ranked by single features, and the rankings compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import podium

MEASURES = ["ndcg@10", "err@10", "ap"]


def main(folder: Path) -> None:
    """Make data, describe it, rank it by its best features, compare, and leave a report in the folder."""
    train = podium.artificial(2_000, seed=0)
    test = podium.artificial(2_000, seed=0, part="test")
    agreement = np.corrcoef(train.features.T, train.relevance)[-1, :-1]
    systems: dict[str, Any] = {"chance": np.random.default_rng(0).random(test.n_documents)}
    for k in np.argsort(-np.abs(agreement))[:2].tolist():
        sign, direction = (1, "") if agreement[k] > 0 else (-1, ", lowest first")
        systems[f"feature {k}{direction}"] = sign * test.feature(k)
    found = podium.compare(test, systems, MEASURES)
    lines = [
        "# Artificial ranking data",
        "",
        "```",
        str(train.summary()),
        "```",
        "",
        "Rankings of the test queries by the features that agree best with the training labels:",
        "",
        found.means_table().render("markdown"),
        "",
        "Are the differences real?",
        "",
        found.table().render("markdown"),
        "",
    ]
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.md"
    report.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))
    print(f"Written to {report}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
