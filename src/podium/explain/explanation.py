"""Contributions of features to scores, and views of them: a document, a query, a pair of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.core.sums import total
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.data.sparse import dense_block
from podium.data.subsets import number_of_query
from podium.errors import DataError
from podium.evaluation.tables import Table


@dataclass(frozen=True, eq=False)
class Explanation:
    """The result of `podium.models.Model.explain`: contributions of features that add up to scores.

    Attributes:
        values: the contribution of each feature (column) to the score of each document (row).
        base: the score before any feature counts; the base plus the sum of a row is its score.
        scores: the scores, as `predict` returns them.
        names: the names of the features.
        method: how the contributions were computed.
        features: the features in the model's encoding.
        encoding: the encoding.
        data: the documents, if they have queries.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> explanation = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data).explain(data)
        >>> explanation
        Explanation(1000 documents, 4 features, path-dependent Shapley values)
        >>> bool(abs(explanation.base + explanation.values.sum(axis=1) - explanation.scores).max() < 1e-9)
        True

    """

    values: Floats
    base: float
    scores: Floats
    names: tuple[str, ...]
    method: str
    features: Features
    encoding: Encoding
    data: RankingData | None = None

    def __repr__(self) -> str:
        n_documents, n_features = self.values.shape
        return f"Explanation({n_documents} documents, {n_features} features, {self.method})"

    @property
    def residual(self) -> float:
        """The largest |base + Σ contributions − score|, due to rounding or the approximation of gradients."""
        return float(np.abs(self.base + self.values.sum(axis=1) - self.scores).max(initial=0.0))

    def row_of(self, document: Any, query: Any = None) -> int:
        """Return the row of a document, given by row number or id; pass its query if the id is not unique."""
        row = self._find(document, query)
        if not 0 <= row < len(self.scores):
            raise DataError(f"there is no row {row}; rows are numbered 0 to {len(self.scores) - 1}")
        if query is not None and row not in self.rows_of(query):
            raise DataError(f"document {document!r} is not in the query {query!r}")
        return row

    def _find(self, document: Any, query: Any) -> int:
        if isinstance(document, int | np.integer):
            return int(document)
        ids = None if self.data is None else self.data.document_ids
        rows = np.empty(0, np.int64) if ids is None else np.flatnonzero(ids == str(document))
        if query is not None and len(rows) > 1:
            rows = rows[np.isin(rows, self.rows_of(query))]
        if len(rows) > 1:
            raise DataError(f"{len(rows)} rows have the document id {document!r}: pass its query, or its row number")
        if len(rows) == 1:
            return int(rows[0])
        if str(document).isdecimal():
            return int(document)
        reason = "the data has no document ids" if ids is None else "no row has this id"
        raise DataError(f"there is no document {document!r}: {reason}; pass its row number, from 0")

    def rows_of(self, query: Any) -> Ints:
        """Return the rows of a query by descending score, with ties in the canonical order."""
        if self.data is None:
            raise DataError("the explained data has no queries: explain RankingData, or a frame with a column 'qid'")
        number, offsets = number_of_query(self.data, query), self.data.offsets
        rows = self.data.canonical_order[offsets[number] : offsets[number + 1]]
        return rows[np.argsort(-self.scores[rows], kind="stable")]

    def name_of(self, row: int) -> str:
        """Return the name of a document: its id, else its row number."""
        ids = None if self.data is None else self.data.document_ids
        return f"row {row}" if ids is None else str(ids[row])

    def shown_values(self, row: int) -> list[Any]:
        """Return the features of a document for display: names of categories, unshifted numbers, or None."""
        numbers = dense_block(self.features, slice(row, row + 1), np.float64)[0]
        return [_shown_value(number, k, self.encoding) for k, number in enumerate(numbers.tolist())]

    def of_document(self, document: Any, query: Any = None) -> DocumentExplanation:
        """Return the contribution of each feature to the score of a document, the largest first.

        Args:
            document: its row number or id.
            query: its query, if several queries have a document with this id.

        """
        row = self.row_of(document, query)
        values, contributions = self.shown_values(row), self.values[row]
        rows = [[self.names[k], values[k], float(contributions[k])] for k in _largest_first(contributions)]
        columns = ["feature", "value", "contribution"]
        return DocumentExplanation(columns, rows, self.name_of(row), self.base, float(self.scores[row]))

    def query(self, query: Any, top: int = 5) -> QueryExplanation:
        """Return the ranked documents of a query, with the features whose contributions differ most among them.

        Args:
            query: the id of the query.
            top: the number of features with a column.

        """
        require_whole("top", top, 1)
        rows = self.rows_of(query)
        contributions = self.values[rows]
        features = np.argsort(-contributions.std(axis=0), kind="stable")[:top]
        others = self.scores[rows] - self.base - contributions[:, features].sum(axis=1)
        labels = self.data.labels.get("relevance") if self.data is not None else None
        columns = ["rank", "document", *(["label"] if labels is not None else []), "score"]
        columns += [*(self.names[k] for k in features), "others"]
        table: list[list[Any]] = []
        for rank, row in enumerate(rows.tolist()):
            label = [float(labels[row])] if labels is not None else []
            start = [rank + 1, self.name_of(row), *label, float(self.scores[row])]
            table.append([*start, *contributions[rank, features].tolist(), float(others[rank])])
        return QueryExplanation(columns, table, str(query), self.base)

    def why(self, a: Any, b: Any, query: Any = None) -> PairExplanation:
        """Explain why document `a` ranks above `b` by differences of contributions, which add up to the gap.

        Args:
            a: the row number or id of a document.
            b: the row number or id of another document.
            query: their query, if several queries have documents with these ids.

        """
        first, second = self.row_of(a, query), self.row_of(b, query)
        values = self.shown_values(first), self.shown_values(second)
        differences = self.values[first] - self.values[second]
        names = self.name_of(first), self.name_of(second)
        rows = [
            [self.names[k], values[0][k], values[1][k], float(self.values[first, k]), float(self.values[second, k]),
             float(differences[k])]
            for k in _largest_first(differences)
        ]  # fmt: skip
        columns = ["feature", *(f"value of {name}" for name in names), *(f"adds to {name}" for name in names)]
        scores = float(self.scores[first]), float(self.scores[second])
        return PairExplanation([*columns, "difference"], rows, names[0], names[1], *scores)

    def importance(self) -> MeanContributions:
        """Return a table of the mean |contribution| of each feature over all documents, the largest first."""
        means = np.array([total(np.abs(column)) for column in self.values.T]) / max(1, len(self.values))
        rows = [[self.names[k], float(means[k])] for k in _largest_first(means)]
        return MeanContributions(["feature", "mean |contribution|"], rows)

    def table(self) -> Table:
        """Return a table with a row for each document: its name, query, score, and the contribution of each feature."""
        start = ["document", *(["query"] if self.data is not None else []), "score"]
        rows: list[list[Any]] = []
        for row, contributions in enumerate(self.values.tolist()):
            query = [str(self.data.qid[row])] if self.data is not None else []
            rows.append([self.name_of(row), *query, float(self.scores[row]), *contributions])
        return Table([*start, *self.names], rows)

    def plot(self, top: int = 20) -> Any:
        """Return a bar chart of the features with the largest mean |contribution| (extra `report`)."""
        return self.importance().plot(top)


@dataclass(frozen=True)
class MeanContributions(Table):
    """A table of the mean |contribution| of each feature."""

    def to_dict(self) -> dict[str, Any]:
        """Return the table in JSON types."""
        return {"features": self.records()}

    def plot(self, top: int = 20) -> Any:
        """Return a bar chart of the first features (extra `report`)."""
        names, values = zip(*self.rows, strict=True) if self.rows else ((), ())
        return draw("importance", names, values, self.columns[1], top=top)


@dataclass(frozen=True)
class DocumentExplanation(Table):
    """A table of the contribution of each feature to the score of one document.

    Attributes:
        document: the name of the document.
        base, score: the score is the base plus the sum of all contributions.

    Example:
        >>> import podium
        >>> data = podium.artificial(10, features=3)
        >>> document = podium.LinearRanker().fit(data).explain(data).of_document(0)
        >>> bool(abs(document.base + sum(row[2] for row in document.rows) - document.score) < 1e-9)
        True

    """

    document: str
    base: float
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Return the table in JSON types."""
        return {"document": self.document, "base": self.base, "score": self.score, "features": self.records()}

    def plot(self, top: int = 12) -> Any:
        """Return a chart of the largest contributions from the base to the score (extra `report`)."""
        return draw("document", self, top)


@dataclass(frozen=True)
class QueryExplanation(Table):
    """A table of the documents of a query, with the contributions of some features and the sum of all others.

    Attributes:
        query: the id of the query.
        base: the base plus the contributions of a row is its score.

    Example:
        >>> import podium
        >>> data = podium.artificial(10, documents=5, features=3)
        >>> query = podium.LinearRanker().fit(data).explain(data).query(data.query_ids[0])
        >>> len(query.rows)
        5

    """

    query: str
    base: float

    def to_dict(self) -> dict[str, Any]:
        """Return the table in JSON types."""
        return {"query": self.query, "base": self.base, "documents": self.records()}

    def plot(self, top: int = 20) -> Any:
        """Return a chart of the contributions to the first documents, minus the query's mean (extra `report`)."""
        return draw("query", self, top)


@dataclass(frozen=True)
class PairExplanation(Table):
    """A table that explains why one document ranks above another, with a row for each feature.

    Attributes:
        a, b: the names of the documents.
        score_a, score_b: their scores; the differences add up to score_a − score_b.

    Example:
        >>> import podium
        >>> data = podium.artificial(10, features=3)
        >>> pair = podium.LinearRanker().fit(data).explain(data).why(0, 1)
        >>> bool(abs(sum(row[-1] for row in pair.rows) - pair.gap) < 1e-9)
        True

    """

    a: str
    b: str
    score_a: float
    score_b: float

    @property
    def gap(self) -> float:
        """score_a − score_b, negative if `a` ranks below `b`."""
        return self.score_a - self.score_b

    def to_dict(self) -> dict[str, Any]:
        """Return the table in JSON types."""
        scores = {"score_a": self.score_a, "score_b": self.score_b, "gap": self.gap}
        names = ["feature", "value_a", "value_b", "adds_to_a", "adds_to_b", "difference"]
        # Columns are not named after the documents, because these may have the same name.
        return {"a": self.a, "b": self.b, **scores, "features": Table(names, self.rows).records()}

    def plot(self, top: int = 12) -> Any:
        """Return a chart of the largest differences in both directions (extra `report`)."""
        return draw("pair", self, top)


def _largest_first(contributions: Floats) -> Ints:
    return np.argsort(-np.abs(contributions), kind="stable")


def _shown_value(number: float, feature: int, encoding: Encoding) -> Any:
    if np.isnan(number):
        return None
    names = encoding.categories.get(feature)
    if names is not None:
        return names[int(number)] if 0 <= number < len(names) else str(number)
    return float(np.float32(number)) + float(encoding.shifts.get(feature, 0.0))
