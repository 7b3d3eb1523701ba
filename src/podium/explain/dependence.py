"""How scores change with one feature, all others as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.core.array_types import Float32s, Floats, Ints
from podium.core.plotting import draw
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.data.encoding import codes_of_categories
from podium.data.features import numbers_of_features
from podium.data.schema import as_data
from podium.data.sparse import dense_block
from podium.errors import DataError
from podium.evaluation.tables import ShownAsTable, Table
from podium.models.base import shown_name
from podium.models.rankers import scores_of


@dataclass(frozen=True, eq=False)
class PartialDependence(ShownAsTable):
    """The result of `partial_dependence`.

    Attributes:
        feature: its name.
        grid: the values that it was given: numbers, or names of categories.
        means: the mean score of all documents at each of them.
        curves: the scores of some documents at each of them (ICE), a row for each.
        rows: which documents these are.

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
        """A row for each value."""
        return Table([self.feature, "mean score"], [[v, float(m)] for v, m in zip(self.grid, self.means, strict=True)])

    def plot(self) -> Any:
        """The mean, and the curves of single documents, as a chart (extra `report`)."""
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
    """The mean score when a feature has the same value in all documents, for several values.

    Args:
        model: anything with `predict`, or a function from the data to scores.
        data: the documents.
        feature: its name, or its number.
        grid: how many quantiles of the feature's values to take (equal ones count once), or the values themselves.
            Of categories all, or those named.
        ice: for how many documents to keep the curve of each (individual conditional expectation).
        seed: of the choice of these.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data)
        >>> found = podium.explain.partial_dependence(model, data, 0, grid=5, ice=3)
        >>> len(found.grid), found.means.shape, found.curves.shape
        (5, (5,), (3, 5))

    """
    data = as_data(data)
    require_whole("ice", ice, 0)
    if not len(data):
        raise DataError("there are no documents")
    (number,) = numbers_of_features([feature], data.feature_names, "feature")
    column = np.array(data.feature(number), np.float64)  # as it came, without a shift
    shown, codes = _grid(data, number, column, grid)
    # Drawn by content, so that the order of rows does not matter.
    rows = np.sort(np.argsort(ContentRandom(data).of_documents(f"ice/{seed}"), kind="stable")[:ice])
    means, curves = np.empty(len(codes)), np.empty((len(rows), len(codes)))
    features = dense_block(data.features).copy()
    for k, code in enumerate(codes):
        features[:, number] = code
        changed = data._with_features(features, data.feature_names, data.encoding, data.reading)
        scores = scores_of(model, changed)
        means[k], curves[:, k] = np.sort(scores).mean(), scores[rows]
    name = shown_name(number if data.feature_names is None else data.feature_names[number])
    return PartialDependence(name, tuple(shown), means, curves, rows)


def _grid(data: RankingData, feature: int, column: Floats, grid: Any) -> tuple[list[Any], Float32s]:
    names, shift = data.encoding.categories.get(feature), float(data.encoding.shifts.get(feature, 0.0))
    if names is not None:
        if isinstance(grid, int):
            return list(names), np.arange(len(names), dtype=np.float32)
        codes = codes_of_categories(grid, names)
        if np.isnan(codes).any():
            unknown = list(grid)[int(np.flatnonzero(np.isnan(codes))[0])]
            raise DataError(f"grid: the data has no category {unknown!r}; there are {', '.join(names[:5])}, …")
        return list(grid), codes
    if isinstance(grid, int):
        require_whole("grid", grid, 1)
        present = column[np.isfinite(column)]
        if not len(present):
            raise DataError("the feature is missing in all documents: give a grid of values")
        levels = np.linspace(0, 1, grid) if grid > 1 else np.array([0.5])
        shown = np.unique(np.quantile(present, levels, method="nearest"))
        return shown.tolist(), (shown - shift).astype(np.float32)
    values = np.asarray(grid, np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError("grid must be a number of quantiles, or a list of values")
    return values.tolist(), (values - shift).astype(np.float32)
