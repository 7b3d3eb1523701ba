"""Explanations of a document's score for a query by features and terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.evaluation.tables import Table
from podium.features.matches import PairBlock

if TYPE_CHECKING:
    from podium.features.index import Index

SHOWN = 12  # features in the text of an explanation


@dataclass(frozen=True)
class SearchExplanation:
    """The result of `SearchPipeline.explain`; `print` shows it.

    Attributes:
        query: the text of the query.
        document: the id of the document.
        base, score: the score is the base plus the sum of all contributions.
        method: how the contributions were computed.
        features: a row for each feature with its value and contribution, the largest contribution first.
        feature_terms: the contribution of each query term to the features that are sums over terms.
        terms: a row for each query term and each text field that contains it: how often it occurs in the document, and
            how many documents contain it in this field.

    Example:
        >>> import numpy as np, podium
        >>> from podium.features import Index, SearchPipeline
        >>> index = Index.build([{"id": "a", "title": "Red shoes"}], fields={"title": "english"})
        >>> model = podium.models.LinearModel(np.array([2.0]), np.zeros(1))
        >>> explanation = SearchPipeline(index, ["tf(title)"], model).explain("red hat", "a")
        >>> explanation.features.rows, explanation.terms.rows
        ([['tf(title)', 1.0, 2.0]], [['red', 'title', 1, 1]])

    """

    query: str
    document: str
    base: float
    score: float
    method: str
    features: Table
    feature_terms: dict[str, dict[str, float]]
    terms: Table

    def __str__(self) -> str:
        head = f"{self.document} for {self.query!r}: {self.score:.4f} = {self.base:.4f} + contributions ({self.method})"
        rows = [[*row, self._terms_of(row[0])] for row in self.features.rows[:SHOWN]]
        features = Table([*self.features.columns, "from terms"], rows).render()
        n_hidden = len(self.features.rows) - len(rows)
        more = f"\n… and {n_hidden} more features" if n_hidden else ""
        return f"{head}\n\n{features}{more}\n\n{self.terms.render()}"

    def _terms_of(self, feature: str) -> str:
        contributions = self.feature_terms.get(feature, {})
        return ", ".join(f"{term} {value:.4g}" for term, value in contributions.items() if value)

    def _plain_terms(self, feature: str) -> dict[str, float | None]:
        contributions = self.feature_terms.get(feature, {})
        return {term: None if math.isnan(value) else value for term, value in contributions.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in JSON types."""
        features = [record | {"terms": self._plain_terms(record["feature"])} for record in self.features.records()]
        return {
            "query": self.query, "document": self.document, "score": self.score, "base": self.base,
            "method": self.method, "features": features, "terms": self.terms.records(),
        }  # fmt: skip


def term_occurrences(index: Index, text: str, row: int) -> Table:
    """Return how often each term of a query occurs in each field of a document, and in how many documents."""
    block = PairBlock.of_query(index, text, np.array([row]))
    rows: list[list[Any]] = []
    for name in index.fields:
        matches = block.matches((name,))
        (terms,) = matches.layout.forms
        counts = zip(terms, matches.tf.tolist(), matches.document_frequency.tolist(), strict=True)
        rows += [[term, name, int(tf), int(n)] for term, tf, n in counts if n]
    return Table(["term", "field", "occurrences", "documents"], rows)
