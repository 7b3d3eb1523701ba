"""What each feature adds to each score, and views of it: a document, a query, a pair of documents."""

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
        values: the contribution of each feature (column) to the score of each document (row, in the caller's order).
        base: what a score is before any feature counts; base + the sum of a row is its score.
        scores: as `predict` gives them.
        names: of the features.
        method: how the contributions were found.
        features: as the model sees them.
        encoding: how they are encoded.
        data: what was explained, where it has queries.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> found = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data).explain(data)
        >>> found
        Explanation(1000 documents, 4 features, path-dependent Shapley values)
        >>> bool(abs(found.base + found.values.sum(axis=1) - found.scores).max() < 1e-9)
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
        """The largest |base + Σ contributions − score|: rounding, or what integrated gradients leave."""
        return float(np.abs(self.base + self.values.sum(axis=1) - self.scores).max(initial=0.0))

    def row_of(self, document: Any, query: Any = None) -> int:
        """The row of a document, by its number or by its id; the query is asked for where several have such a one."""
        row = self._find(document, query)
        if not 0 <= row < len(self.scores):
            raise DataError(f"there is no row {row}; they are numbered 0 to {len(self.scores) - 1}")
        if query is not None and row not in self.rows_of(query):
            raise DataError(f"document {document!r} is not in the query {query!r}")
        return row

    def _find(self, document: Any, query: Any) -> int:
        if isinstance(document, int | np.integer):
            return int(document)
        ids = None if self.data is None else self.data.document_ids
        found = np.empty(0, np.int64) if ids is None else np.flatnonzero(ids == str(document))
        if query is not None and len(found) > 1:
            found = found[np.isin(found, self.rows_of(query))]
        if len(found) > 1:
            raise DataError(f"{len(found)} rows have the document id {document!r}: name its query, or the row's number")
        if len(found) == 1:
            return int(found[0])
        if str(document).isdecimal():
            return int(document)
        what = "the data has no document ids" if ids is None else "no row has it as its id"
        raise DataError(f"there is no document {document!r}: {what}; name it by the number of its row, from 0")

    def rows_of(self, query: Any) -> Ints:
        """The rows of a query, by its id, the highest score first; equal scores are in the canonical order."""
        if self.data is None:
            raise DataError("features alone have no queries: explain RankingData, or a frame with a column 'qid'")
        number, offsets = number_of_query(self.data, query), self.data.offsets
        rows = self.data.canonical_order[offsets[number] : offsets[number + 1]]
        return rows[np.argsort(-self.scores[rows], kind="stable")]

    def name_of(self, row: int) -> str:
        """What to call a document: its id, or the number of its row."""
        ids = None if self.data is None else self.data.document_ids
        return f"row {row}" if ids is None else str(ids[row])

    def shown_values(self, row: int) -> list[Any]:
        """The features of a document as people know them: names of categories, numbers without shifts, None."""
        numbers = dense_block(self.features, slice(row, row + 1), np.float64)[0]
        return [_shown_value(number, k, self.encoding) for k, number in enumerate(numbers.tolist())]

    def of_document(self, document: Any, query: Any = None) -> DocumentExplanation:
        """What each feature adds to the score of a document, the largest first.

        Args:
            document: the number of its row, or its id.
            query: its query, where several have a document of this id.

        """
        row = self.row_of(document, query)
        values, found = self.shown_values(row), self.values[row]
        rows = [[self.names[k], values[k], float(found[k])] for k in _largest_first(found)]
        columns = ["feature", "value", "contribution"]
        return DocumentExplanation(columns, rows, self.name_of(row), self.base, float(self.scores[row]))

    def query(self, query: Any, top: int = 5) -> QueryExplanation:
        """The documents of a query in their order, with the features whose contributions differ most among them.

        Args:
            query: its id.
            top: how many features have a column.

        """
        require_whole("top", top, 1)
        rows = self.rows_of(query)
        found = self.values[rows]
        chosen = np.argsort(-found.std(axis=0), kind="stable")[:top]
        others = self.scores[rows] - self.base - found[:, chosen].sum(axis=1)
        labels = self.data.labels.get("relevance") if self.data is not None else None
        columns = ["rank", "document", *(["label"] if labels is not None else []), "score"]
        columns += [*(self.names[k] for k in chosen), "others"]
        table: list[list[Any]] = []
        for rank, row in enumerate(rows.tolist()):
            label = [float(labels[row])] if labels is not None else []
            start = [rank + 1, self.name_of(row), *label, float(self.scores[row])]
            table.append([*start, *found[rank, chosen].tolist(), float(others[rank])])
        return QueryExplanation(columns, table, str(query), self.base)

    def why(self, a: Any, b: Any, query: Any = None) -> PairExplanation:
        """Why document `a` ranks above `b`: differences of contributions, which add up to the gap of the scores.

        Args:
            a: the number of its row, or its id.
            b: likewise.
            query: theirs, where several queries have documents of these ids.

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
        """The mean |contribution| of each feature over all documents, the largest first."""
        means = np.array([total(np.abs(column)) for column in self.values.T]) / max(1, len(self.values))
        rows = [[self.names[k], float(means[k])] for k in _largest_first(means)]
        return MeanContributions(["feature", "mean |contribution|"], rows)

    def table(self) -> Table:
        """A row for each document: its name, its query, its score, and the contribution of each feature."""
        start = ["document", *(["query"] if self.data is not None else []), "score"]
        rows: list[list[Any]] = []
        for row, found in enumerate(self.values.tolist()):
            query = [str(self.data.qid[row])] if self.data is not None else []
            rows.append([self.name_of(row), *query, float(self.scores[row]), *found])
        return Table([*start, *self.names], rows)

    def plot(self, top: int = 20) -> Any:
        """The features with the largest mean |contribution| as bars, as a chart (extra `report`)."""
        return self.importance().plot(top)


@dataclass(frozen=True)
class MeanContributions(Table):
    """The mean |contribution| of features, a row for each."""

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON types."""
        return {"features": self.records()}

    def plot(self, top: int = 20) -> Any:
        """The first features as bars, as a chart (extra `report`)."""
        names, values = zip(*self.rows, strict=True) if self.rows else ((), ())
        return draw("importance", names, values, self.columns[1], top=top)


@dataclass(frozen=True)
class DocumentExplanation(Table):
    """What each feature adds to the score of one document, a row for each.

    Attributes:
        document: its name.
        base, score: base + the sum of the contributions is the score.

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
        """Return all of it as JSON types."""
        return {"document": self.document, "base": self.base, "score": self.score, "features": self.records()}

    def plot(self, top: int = 12) -> Any:
        """The largest contributions as bars from the base to the score, as a chart (extra `report`)."""
        return draw("document", self, top)


@dataclass(frozen=True)
class QueryExplanation(Table):
    """The documents of a query, a row for each, with the contributions of some features and of all others together.

    Attributes:
        query: its id.
        base: base + the contributions of a row are its score.

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
        """Return all of it as JSON types."""
        return {"query": self.query, "base": self.base, "documents": self.records()}

    def plot(self, top: int = 20) -> Any:
        """What the features add to the first documents, against the mean of the query (extra `report`)."""
        return draw("query", self, top)


@dataclass(frozen=True)
class PairExplanation(Table):
    """Why one document ranks above another, a row for each feature.

    Attributes:
        a, b: their names.
        score_a, score_b: the differences add up to score_a − score_b.

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
        """By how much `a` is above `b`; negative where it is below."""
        return self.score_a - self.score_b

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON types."""
        scores = {"score_a": self.score_a, "score_b": self.score_b, "gap": self.gap}
        names = ["feature", "value_a", "value_b", "adds_to_a", "adds_to_b", "difference"]
        # Columns are not named after the documents, since two may be called the same.
        return {"a": self.a, "b": self.b, **scores, "features": Table(names, self.rows).records()}

    def plot(self, top: int = 12) -> Any:
        """The largest differences as bars, for and against, as a chart (extra `report`)."""
        return draw("pair", self, top)


def _largest_first(found: Floats) -> Ints:
    return np.argsort(-np.abs(found), kind="stable")


def _shown_value(number: float, feature: int, encoding: Encoding) -> Any:
    if np.isnan(number):
        return None
    names = encoding.categories.get(feature)
    if names is not None:
        return names[int(number)] if 0 <= number < len(names) else str(number)
    return float(np.float32(number)) + float(encoding.shifts.get(feature, 0.0))
