"""How much a measure loses when a feature is shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.plotting import draw
from podium.core.progress import progress
from podium.core.random import seed_of
from podium.core.sums import mean
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.data.schema import as_data
from podium.data.sparse import is_sparse
from podium.errors import DataError
from podium.evaluation.significance import t_interval
from podium.evaluation.tables import Table
from podium.measures import Measure, Ranking, as_measure
from podium.models.base import shown_name
from podium.models.rankers import scores_of


@dataclass(frozen=True)
class Importance(Table):
    """The result of `permutation_importance`: a table with a row for each feature, the largest loss first.

    Example:
        >>> import podium
        >>> data = podium.artificial(10, features=3)
        >>> losses = podium.explain.permutation_importance(podium.LinearRanker().fit(data), data, repeats=1)
        >>> len(losses.rows), losses.columns[0]
        (3, 'feature')

    """

    def plot(self, top: int = 20) -> Any:
        """The first features as bars, with their 95% intervals, as a chart (extra `report`)."""
        features, losses, *ends = zip(*self.rows, strict=True)
        title = f"{self.columns[1]} when shuffled"
        names, intervals = [shown_name(feature) for feature in features], list(zip(*ends, strict=True))
        return draw("importance", names, losses, title, intervals=intervals, top=top)


def permutation_importance(
    model: Any, data: RankingData, measure: Measure | str = "ndcg@10", *, repeats: int = 5, seed: int = 0
) -> Importance:
    """The mean loss of a measure when the values of one feature are shuffled among all documents.

    Args:
        model: anything with `predict`, or a function from the data to scores.
        data: better not the training data.
        measure: what is lost.
        repeats: shuffles of each feature.
        seed: of the shuffles.

    Returns:
        A table of features, their mean loss and its 95% interval (Student's, over the queries' mean losses of all
        shuffles), the largest loss first; its `plot()` draws them. An interval that holds 0 says that these queries do
        not show whether the model needs the feature.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=3)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data)
        >>> podium.explain.permutation_importance(model, data, "ndcg@10", repeats=1).columns
        ['feature', 'loss of ndcg@10', '95% from', 'to']

    """
    data = as_data(data)
    if is_sparse(data.features):
        raise DataError("permutation importance needs dense features")
    if repeats < 1:
        raise DataError(f"repeats must be at least 1, but is {repeats}")
    chosen = as_measure(measure).fixed(data)

    def values(features: Any) -> Floats:
        shuffled = data._with_features(features, data.feature_names, data.encoding, data.reading)
        return chosen.values(Ranking(data, scores_of(model, shuffled)))

    unshuffled = values(data.features)
    order = np.argsort(ContentRandom(data).document_keys, kind="stable")  # the order of rows does not matter
    names: Sequence[Any] = data.feature_names or range(data.n_features)
    rows: list[list[Any]] = []
    with progress("shuffling features", data.n_features) as advance:
        for k, name in enumerate(names):
            losses = np.zeros(data.n_queries)
            for repeat in range(repeats):
                features = data.features.copy()
                draws = np.random.default_rng(int(seed_of(seed, k, repeat))).permutation(len(data))
                features[order, k] = data.features[order[draws], k]
                losses += (unshuffled - values(features)) / repeats
            defined = losses[~np.isnan(losses)]
            rows.append([name, mean(defined), *t_interval(defined)])
            advance(1)
    rows.sort(key=lambda row: -row[1])
    return Importance(["feature", f"loss of {chosen}", "95% from", "to"], rows)
