"""How much a measure loses when a feature is shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from podium.core.progress import progress
from podium.core.random import seed_of
from podium.data import RankingData
from podium.data.schema import as_data
from podium.data.sparse import is_sparse
from podium.errors import DataError
from podium.evaluation.tables import Table
from podium.measures import Measure, Ranking, as_measure
from podium.models.rankers import scores_of


@dataclass(frozen=True)
class Importance(Table):
    """The result of `permutation_importance`: a table with a row for each feature, the largest loss first."""

    def plot(self, top: int = 20) -> Any:
        """The first features as bars, with one deviation to both sides, as a chart (extra `report`)."""
        features, losses, deviations = zip(*self.rows, strict=True)
        names = [feature if isinstance(feature, str) else f"column {feature}" for feature in features]
        title = f"{self.columns[1]} when shuffled"
        chart = import_module("podium.reports.importance").importance_chart
        return chart(names, losses, title, deviations=deviations, top=top)


def permutation_importance(
    model: Any, data: RankingData, measure: Measure | str = "ndcg@10", *, repeats: int = 5, seed: int = 0
) -> Importance:
    """The mean loss of a measure when the values of one feature are shuffled among all documents.

    Args:
        model: anything with `predict`, or a function from the data to scores.
        data: better not the training data.
        measure: what is lost; ties stand in the canonical order.
        repeats: shuffles of each feature.
        seed: of the shuffles.

    Returns:
        A table of features, their mean loss and its standard deviation over the shuffles, the largest loss first; its
        `plot()` draws them.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=3)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data)
        >>> podium.permutation_importance(model, data, "ndcg@10", repeats=1).columns
        ['feature', 'loss of ndcg@10', 'deviation']

    """
    data = as_data(data)
    if is_sparse(data.features):
        raise DataError("permutation importance needs dense features")
    if repeats < 1:
        raise DataError(f"repeats must be at least 1, but is {repeats}")
    chosen = as_measure(measure).fixed(data)

    def value(features: Any) -> float:
        shuffled = data._with_features(features, data.feature_names, data.encoding, data.reading)
        return chosen.mean(Ranking(data, scores_of(model, shuffled), base=data.canonical_order))

    unshuffled = value(data.features)
    names: Sequence[Any] = data.feature_names or range(data.n_features)
    rows: list[list[Any]] = []
    with progress("shuffling features", data.n_features) as advance:
        for k, name in enumerate(names):
            losses = []
            for repeat in range(repeats):
                features = data.features.copy()
                np.random.default_rng(int(seed_of(seed, k, repeat))).shuffle(features[:, k])
                losses.append(unshuffled - value(features))
            rows.append([name, float(np.mean(losses)), float(np.std(losses))])
            advance(1)
    rows.sort(key=lambda row: -row[1])
    return Importance(["feature", f"loss of {chosen}", "deviation"], rows)
