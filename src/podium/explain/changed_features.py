"""Permutation importance and partial dependence, for any ranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.plotting import draw
from podium.core.progress import progress
from podium.core.random import seed_of
from podium.core.sums import mean
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.data.encoding import codes_of_categories
from podium.data.features import numbers_of_features
from podium.data.schema import as_data
from podium.data.sparse import dense_block, is_sparse
from podium.errors import DataError
from podium.evaluation.significance import t_interval
from podium.evaluation.tables import ShownAsTable, Table
from podium.measures import Measure, Ranking, as_measure
from podium.models.base import shown_name
from podium.models.rankers import scores_of


@dataclass(frozen=True)
class Importance(Table):
    """The result of `permutation_importance`: a table with a row for each feature, by decreasing loss.

    Example:
        >>> import podium
        >>> data = podium.artificial(10, features=3)
        >>> losses = podium.explain.permutation_importance(podium.LinearRanker().fit(data), data, repeats=1)
        >>> len(losses.rows), losses.columns[0]
        (3, 'feature')

    """

    def plot(self, top: int = 20) -> Any:
        """Return a bar chart of the first features with 95% intervals (extra `report`)."""
        features, losses, *ends = zip(*self.rows, strict=True)
        title = f"{self.columns[1]} when shuffled"
        names, intervals = [shown_name(feature) for feature in features], list(zip(*ends, strict=True))
        return draw("importance", names, losses, title, intervals=intervals, top=top)


def permutation_importance(
    model: Any, data: RankingData, measure: Measure | str = "ndcg@10", *, repeats: int = 5, seed: int = 0
) -> Importance:
    """Return the mean loss of a measure when the values of a feature are shuffled among all documents.

    Args:
        model: anything with `predict`, or a function from the data to scores.
        data: the documents, ideally not the training data.
        measure: the measure.
        repeats: the number of shuffles of each feature.
        seed: the seed of the shuffles.

    Returns:
        A table of features by decreasing mean loss, with its 95% interval (Student's t over the queries' mean losses of
        all shuffles). If the interval contains 0, these queries do not show whether the model needs the feature.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=3)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data)
        >>> podium.explain.permutation_importance(model, data, "ndcg@10", repeats=1).columns
        ['feature', 'loss of ndcg@10', '95% from', 'to']

    """
    data = as_data(data)
    if is_sparse(data.features):
        raise DataError("permutation importance requires dense features")
    require_whole("repeats", repeats, 1)
    fixed = as_measure(measure).fixed(data)

    def values(features: Any) -> Floats:
        shuffled = data._with_features(features, data.feature_names, data.encoding, data.reading)
        return fixed.values(Ranking(data, scores_of(model, shuffled)))

    unshuffled = values(data.features)
    order = np.argsort(ContentRandom(data).document_keys, kind="stable")  # so that row order does not matter
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
    return Importance(["feature", f"loss of {fixed}", "95% from", "to"], rows)


@dataclass(frozen=True, eq=False)
class PartialDependence(ShownAsTable):
    """The result of `partial_dependence`.

    Attributes:
        feature: the name of the feature.
        grid: the values of the feature: numbers, or names of categories.
        means: the mean score of all documents for each value.
        curves: the scores of some documents for each value (ICE), a row for each document.
        rows: the rows of these documents.

    Example:
        >>> import podium
        >>> data = podium.artificial(10, features=3)
        >>> curve = podium.explain.partial_dependence(podium.LinearRanker().fit(data), data, 0, grid=[-1.0, 0.0, 1.0])
        >>> curve.grid, len(curve.means)
        ((-1.0, 0.0, 1.0), 3)

    """

    feature: str
    grid: tuple[Any, ...]
    means: Floats
    curves: Floats
    rows: Ints

    def table(self) -> Table:
        """Return a table with a row for each value."""
        return Table([self.feature, "mean score"], [[v, float(m)] for v, m in zip(self.grid, self.means, strict=True)])

    def plot(self) -> Any:
        """Return a chart of the mean and the curves of single documents (extra `report`)."""
        return draw("partial_dependence", self)


def partial_dependence(
    model: Any,
    data: Any,
    feature: str | int,
    *,
    grid: int | ArrayLike | Sequence[str] = 20,
    ice: int = 0,
    seed: int = 0,
) -> PartialDependence:
    """Return the mean score if a feature had the same value in all documents, for several values.

    Args:
        model: anything with `predict`, or a function from the data to scores.
        data: the documents.
        feature: the name or number of the feature.
        grid: the number of quantiles of the feature's values (duplicates are dropped), or the values themselves. For
            categories, the names, or all by default.
        ice: the number of documents to keep curves of (individual conditional expectation).
        seed: the seed for choosing these documents.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data)
        >>> curve = podium.explain.partial_dependence(model, data, 0, grid=5, ice=3)
        >>> len(curve.grid), curve.means.shape, curve.curves.shape
        (5, (5,), (3, 5))

    """
    data = as_data(data)
    require_whole("ice", ice, 0)
    if not len(data):
        raise DataError("the data has no documents")
    (number,) = numbers_of_features([feature], data.feature_names, "feature")
    column = np.array(data.feature(number), np.float64)  # unshifted
    grid_values, codes = _grid(data, number, column, grid)
    # Draw documents by content, so that row order does not matter.
    rows = np.sort(np.argsort(ContentRandom(data).of_documents(f"ice/{seed}"), kind="stable")[:ice])
    means, curves = np.empty(len(codes)), np.empty((len(rows), len(codes)))
    features = dense_block(data.features).copy()
    for k, code in enumerate(codes):
        features[:, number] = code
        changed = data._with_features(features, data.feature_names, data.encoding, data.reading)
        scores = scores_of(model, changed)
        means[k], curves[:, k] = np.sort(scores).mean(), scores[rows]
    name = shown_name(number if data.feature_names is None else data.feature_names[number])
    return PartialDependence(name, tuple(grid_values), means, curves, rows)


def _grid(data: RankingData, feature: int, column: Floats, grid: Any) -> tuple[list[Any], Float32s]:
    """Return the values of a grid for display, and the features of documents with these values."""
    names, shift = data.encoding.categories.get(feature), float(data.encoding.shifts.get(feature, 0.0))
    if names is not None:
        if isinstance(grid, int):
            return list(names), np.arange(len(names), dtype=np.float32)
        codes = codes_of_categories(grid, names)
        if np.isnan(codes).any():
            unknown = list(grid)[int(np.flatnonzero(np.isnan(codes))[0])]
            raise DataError(f"grid: the data has no category {unknown!r}; it has {', '.join(names[:5])}, …")
        return list(grid), codes
    if isinstance(grid, int):
        require_whole("grid", grid, 1)
        present = column[np.isfinite(column)]
        if not len(present):
            raise DataError("the feature is missing in all documents: pass a grid of values")
        levels = np.linspace(0, 1, grid) if grid > 1 else np.array([0.5])
        quantiles = np.unique(np.quantile(present, levels, method="nearest"))
        return quantiles.tolist(), (quantiles - shift).astype(np.float32)
    values = np.asarray(grid, np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError("grid must be a number of quantiles, or a list of values")
    return values.tolist(), (values - shift).astype(np.float32)
