"""Comparison of two models on one query: which documents moved, and which features moved them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.core.validation import require_whole
from podium.data.schema import as_data
from podium.data.subsets import number_of_query
from podium.errors import DataError
from podium.evaluation.tables import ShownAsTable, Table
from podium.explain.explanation import Explanation


@dataclass(frozen=True, eq=False)
class ExplanationComparison(ShownAsTable):
    """The result of `compare_explanations`: the documents of a query as ranked by the second model.

    Scores of two models have no common scale, and only differences within the query determine its order. So the scores
    and contributions of each model are standardized: the mean over the query's documents is subtracted, and they are
    divided by the standard deviation of the query's scores. The contributions of a document still add up to its score.

    Attributes:
        query: the id of the query.
        names: the names of the two models.
        documents: the names of the documents.
        ranks: the rank, from 1, of each document (row) by each model (column).
        scores: the standardized score of each document (row) by each model (column).
        features: the names of the features of both models.
        contributions: the standardized contributions by model, document and feature.

    Example:
        >>> import podium
        >>> data = podium.artificial(10, documents=5, features=3)
        >>> models = podium.LinearRanker().fit(data), podium.LambdaMART(n_trees=2).fit(data)
        >>> comparison = podium.explain.compare_explanations(*models, data, data.query_ids[0])
        >>> comparison.ranks.shape, comparison.differences.shape
        ((5, 2), (5, 3))

    """

    query: str
    names: tuple[str, str]
    documents: tuple[str, ...]
    ranks: Ints
    scores: Floats
    features: tuple[str, ...]
    contributions: Floats

    @property
    def differences(self) -> Floats:
        """The change by each feature (column) for each document (row), second model minus first."""
        first, second = self.contributions
        return np.asarray(second - first)

    def table(self, top: int = 3) -> Table:
        """Return a table of the documents: ranks, ranks moved up, change of the score, and its largest causes."""
        require_whole("top", top, 1)
        columns = ["document", *(f"rank by {name}" for name in self.names), "moved up", "change", "through"]
        rows: list[list[Any]] = []
        for k, changes in enumerate(self.differences):
            largest = np.argsort(-np.abs(changes), kind="stable")[:top]
            causes = ", ".join(f"{self.features[j]} {changes[j]:+.2f}" for j in largest if changes[j])
            before, after = self.ranks[k].tolist()
            change = float(self.scores[k, 1] - self.scores[k, 0])
            rows.append([self.documents[k], before, after, before - after, change, causes])
        return Table(columns, rows)

    def feature_table(self) -> Table:
        """Return a table of the features: how much they move documents in each model, and between the models."""
        sizes = np.abs(self.contributions).mean(axis=1), np.abs(self.differences).mean(axis=0)
        rows = [
            [self.features[j], float(sizes[0][0, j]), float(sizes[0][1, j]), float(sizes[1][j])]
            for j in np.argsort(-sizes[1], kind="stable")
        ]
        return Table(["feature", *(f"mean |share| in {name}" for name in self.names), "mean |change|"], rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison in JSON types."""
        documents = []
        for k, name in enumerate(self.documents):
            shares = {
                feature: {"first": first, "second": second}
                for feature, first, second in zip(self.features, *self.contributions[:, k].tolist(), strict=True)
            }
            ranks, scores = self.ranks[k].tolist(), self.scores[k].tolist()
            documents.append({"document": name, "ranks": ranks, "scores": scores, "contributions": shares})
        return {"query": self.query, "models": list(self.names), "documents": documents}

    def plot(self, top: int = 20) -> Any:
        """Return a chart of the changes by features for the documents that moved most (extra `report`)."""
        return draw("explanation_comparison", self, top)


def compare_explanations(
    first: Any, second: Any, data: Any, query: Any, *, background: Any = None, names: tuple[str, str] = ("A", "B")
) -> ExplanationComparison:
    """Compare two models on one query: which documents moved, and which features moved them.

    Args:
        first: a model or an estimator.
        second: another model or estimator.
        data: the documents with their queries.
        query: the id of a query.
        background: documents to compare with, for both models; see `podium.explain.explain`.
        names: the names of the models.

    Example:
        >>> import podium
        >>> from podium.explain import compare_explanations
        >>> data = podium.artificial(20, features=4)
        >>> few, many = (podium.LambdaMART(n_trees=n, n_leaves=4).fit(data) for n in (2, 9))
        >>> comparison = compare_explanations(few, many, data, data.query_ids[0])
        >>> comparison.ranks[:, 1].tolist()[:3], comparison.table().columns[-1]
        ([1, 2, 3], 'through')

    """
    data = as_data(data)
    number = number_of_query(data, query)
    if len(names) != 2 or names[0] == names[1]:
        raise DataError(f"names must be two different texts, but got {names!r}")
    documents = data.select([number])
    explanations = [model.explain(documents, background) for model in (first, second)]
    order = explanations[1].rows_of(query)
    ranks = np.empty((len(order), 2), np.int64)
    for column, explanation in enumerate(explanations):
        rank_of_row = np.empty(len(order), np.int64)
        rank_of_row[explanation.rows_of(query)] = np.arange(1, len(order) + 1)
        ranks[:, column] = rank_of_row[order]
    features = tuple(dict.fromkeys(name for explanation in explanations for name in explanation.names))
    shares = np.array([_standardized(explanation, order, features) for explanation in explanations])
    scores = np.column_stack([shares[k].sum(axis=1) for k in range(2)])
    document_names = tuple(
        explanations[1].name_of(row) if data.document_ids is not None else f"row {data.rows(number)[row]}"
        for row in order.tolist()
    )
    return ExplanationComparison(str(query), names, document_names, ranks, scores, features, shares)


def _standardized(explanation: Explanation, order: Ints, features: tuple[str, ...]) -> Floats:
    """Return standardized contributions, with a row for each document in order and a column for each feature."""
    values, spread = explanation.values[order], float(explanation.scores[order].std())
    centred = values - values.mean(axis=0)
    scaled = np.zeros((len(centred), len(features)))
    scaled[:, [features.index(name) for name in explanation.names]] = centred / spread if spread > 0 else 0.0
    return scaled
