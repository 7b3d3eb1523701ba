"""The pictures of the documentation, drawn by Podium itself: `python -m bench.pictures`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import podium
from podium.objectives import Lambda, Pairwise

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def path() -> Any:
    """NDCG@10 along all combinations of two rankers."""
    import matplotlib.pyplot as plt

    train, valid = (podium.artificial(150, features=10, part=p) for p in ("train", "valid"))
    trees, linear = podium.LambdaMART(n_trees=6).fit(train), podium.LinearRanker().fit(train)
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    found = podium.combine(trees, linear, valid)
    found.plot(axes)
    axes.set_title(f"(1 − α) trees + α linear: {len(found.path.values):,} steps, the best at α = {found.alpha:.3f}")
    return figure


def forces() -> Any:
    """The λ of a query's documents as arrows, with RankNet's pairs and with NDCG's."""
    import matplotlib.pyplot as plt

    scores = np.array([2.0, 1.4, 1.1, 0.7, 0.2, -0.1, -0.6, -1.2])
    labels = np.array([0.0, 1, 0, 0, 3, 0, 0, 1])
    data = podium.RankingData(np.arange(8.0)[:, None], labels, qid=np.zeros(8))
    figure, both = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
    for axes, (name, objective) in zip(
        both, (("RankNet", Pairwise()), ("LambdaRank, NDCG", Lambda("ndcg"))), strict=True
    ):
        pushes = objective.bind(data).gradients(scores)[0]
        pushes = pushes / np.abs(pushes).max()
        axes.scatter(np.zeros(8), scores, s=60, c=labels, cmap="Blues", edgecolors="black", zorder=3)
        for k, (score, label, push) in enumerate(zip(scores, labels, pushes, strict=True)):
            axes.text(-0.06, score, f"{label:.0f}", ha="right", va="center")
            style = {"arrowstyle": "->", "color": "#1f7a3d" if push > 0 else "#a83232", "lw": 2}
            axes.annotate("", (0.1 + 0.08 * k, score + push), (0.1 + 0.08 * k, score), arrowprops=style)
        axes.set(xlim=(-0.2, 0.8), xticks=[], title=name)
    both[0].set_ylabel("score; label beside the document")
    return figure


def optimality() -> Any:
    """Random steps away from a LambdaRank net, and single weights moved."""
    import matplotlib.pyplot as plt

    train = podium.artificial(150, documents=15, features=6, seed=1)
    settings = {"hidden": 5, "epochs": 400, "batch_queries": None, "learning_rate": 0.03, "halve_after": 15}
    model = podium.LambdaRank("ndcg", n_threads=1, **settings).fit(train)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    podium.local_optimality(model, train, "ndcg", directions=120, steps=(0.01, 0.03, 0.1, 0.2, 0.4), curves=12).plot(
        axes
    )
    return figure


if __name__ == "__main__":
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "podium"
    FOLDER.mkdir(exist_ok=True)
    for draw in (path, forces, optimality):
        draw().savefig(FOLDER / f"{draw.__name__}.svg", metadata={"Date": None})
