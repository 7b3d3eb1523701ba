"""From a query to its ranking."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import starmap
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.serving.metrics import Metrics
from podium.serving.models.registry import Registry
from podium.serving.models.served import ServedModel
from podium.serving.refusing import Refused
from podium.serving.requests.bodies import (
    NumberQuery,
    Query,
    Ranked,
    Ranking,
    Rankings,
    ValueQuery,
    decoded_queries,
    decoded_rest,
)  # fmt: skip
from podium.serving.requests.matching import Rows
from podium.serving.requests.number_rows import leading_rows
from podium.serving.settings import Settings

Result = TypeVar("Result")


@dataclass
class Matched:
    """A query with its documents as a model takes them.

    Attributes:
        query: as it came.
        model: that is to score it.
        rows: its documents.

    """

    query: Query
    model: ServedModel
    rows: Rows


@dataclass
class Scored(Matched):
    """A query with its scores.

    Attributes:
        scores: of the documents.
        order: their numbers, best first; of equal ones the first.

    """

    scores: NDArray[np.float64]
    order: NDArray[np.int64]


class Ranker:
    """Ranks queries with the models of a registry."""

    def __init__(self, settings: Settings, registry: Registry, metrics: Metrics) -> None:
        self._settings, self._registry, self._metrics = settings, registry, metrics

    def ranked(self, body: bytes) -> tuple[Ranking | Rankings, list[Scored]]:
        """The answer to a request, and what it was made of."""
        found, several = self._matched_numbers(body) or self._matched(body)
        n_documents = sum(len(one.rows) for one in found)
        if n_documents > (most := self._settings.limits.documents):
            raise Refused(413, f"the request has {n_documents} documents, and the limit is {most}")
        if not several:
            scored = [self.scored(found[0])]
            return answer(scored[0]), scored
        scored = [_of_query(number, self.scored, one) for number, one in enumerate(found)]
        return Rankings([answer(one) for one in scored]), scored

    def _matched_numbers(self, body: bytes) -> tuple[list[Matched], bool] | None:
        """The query of a request whose documents are lists of numbers; None for any other, and for a bad one."""
        found = leading_rows(body)
        query = None if found is None else decoded_rest(found.rest)
        if found is None or query is None:
            return None
        try:
            model = self._registry.choose(query.model, query.query)
        except Refused:
            return None
        n_documents, n_features = found.rows.shape
        if not model.takes_plain_rows(n_features) or (query.ids is not None and len(query.ids) != n_documents):
            return None
        return [Matched(query, model, found.rows)], False

    def _matched(self, body: bytes) -> tuple[list[Matched], bool]:
        """The queries of any request, or the reason why it is a bad one."""
        has_text = self._registry.has_categories
        queries, several = decoded_queries(body, has_text)
        n_documents = sum(len(query.documents) for query in queries)
        if n_documents > (most := self._settings.limits.documents):
            raise Refused(413, f"the request has {n_documents} documents, and the limit is {most}")
        if not several:
            return [self.matched(queries[0], has_text)], False
        return [_of_query(number, self.matched, query, has_text) for number, query in enumerate(queries)], True

    def matched(self, query: NumberQuery | ValueQuery, has_text: bool = True) -> Matched:
        """A query with the model that it names or gets, and the rows of its documents."""
        model = self._registry.choose(query.model, query.query)
        n_documents = len(query.documents)
        if query.ids is not None and len(query.ids) != n_documents:
            raise Refused(422, f"there are {n_documents} documents and {len(query.ids)} ids: give an id for each")
        return Matched(query, model, model.matcher.rows(query.documents, has_text=has_text))

    def scored(self, matched: Matched) -> Scored:
        """The scores of a query."""
        model, rows = matched.model, matched.rows
        started = time.perf_counter()
        scores = model.scores(rows)
        self._metrics.scoring_seconds.labels(model.name).observe(time.perf_counter() - started)
        self._metrics.documents.labels(model.name).inc(len(rows))
        if not np.isfinite(scores).all():
            document = int(np.argmin(np.isfinite(scores)))
            raise Refused(422, f"the model gives document {document} no finite score")
        return Scored(matched.query, model, rows, scores, np.argsort(-scores, kind="stable"))

    def compare_with_shadow(self, scored: list[Scored]) -> None:
        """Score the same documents with the shadow model, and count whether the top documents differ."""
        name = self._settings.shadow
        for one in scored:
            if name is None or one.query.model is not None or one.model.name == name:
                continue
            k = int(one.query.k or self._settings.shadow_k)
            order = np.argsort(-self._registry.models[name].scores(one.rows), kind="stable")
            differs = not np.array_equal(order[:k], one.order[:k])
            self._metrics.shadow.labels(one.model.name, "yes" if differs else "no").inc()


def _of_query(number: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """What a function makes of one of several queries; if it is refused, its number is told."""
    try:
        return function(*arguments)
    except Refused as refused:
        raise Refused(refused.status, f"query {number}: {refused.sentence}") from None


def answer(scored: Scored) -> Ranking:
    """The top documents of a query."""
    k = len(scored.order) if scored.query.k is None else int(scored.query.k)
    order = scored.order[:k].tolist()
    scores = scored.scores[order].tolist() if order else []
    ids = scored.query.ids
    if ids is None:
        return Ranking(scored.model.name, list(starmap(Ranked, zip(order, scores, strict=True))))
    return Ranking(
        scored.model.name, [Ranked(index, score, ids[index]) for index, score in zip(order, scores, strict=True)]
    )
