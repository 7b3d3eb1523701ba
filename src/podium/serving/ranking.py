"""From a query to its ranking."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from podium.serving.metrics import Metrics
from podium.serving.models.registry import Registry
from podium.serving.models.served import ServedModel
from podium.serving.refusing import Refused
from podium.serving.requests.bodies import Query, Ranked, Ranking, Rankings, decoded_queries
from podium.serving.requests.matching import Rows
from podium.serving.settings import Settings


@dataclass
class Scored:
    """A query with its scores.

    Attributes:
        query: as it came.
        model: that scored it.
        rows: its documents.
        scores: of the documents.
        order: their numbers, best first; of equal ones the first.

    """

    query: Query
    model: ServedModel
    rows: Rows
    scores: NDArray[np.float64]
    order: NDArray[np.int64]


class Ranker:
    """Ranks queries with the models of a registry."""

    def __init__(self, settings: Settings, registry: Registry, metrics: Metrics) -> None:
        self._settings, self._registry, self._metrics = settings, registry, metrics

    def ranked(self, body: bytes) -> tuple[Ranking | Rankings, list[Scored]]:
        """The answer to a request, and what it was made of."""
        has_text = self._registry.has_categories
        queries, several = decoded_queries(body, has_text)
        n_documents = sum(len(query.documents) for query in queries)
        if n_documents > (most := self._settings.limits.documents):
            raise Refused(413, f"the request has {n_documents} documents, and the limit is {most}")
        if not several:
            scored = [self.scored(queries[0], has_text)]
            return answer(scored[0]), scored
        scored = []
        for number, query in enumerate(queries):
            try:
                scored.append(self.scored(query, has_text))
            except Refused as refused:
                raise Refused(refused.status, f"query {number}: {refused.sentence}") from None
        return Rankings([answer(one) for one in scored]), scored

    def scored(self, query: Query, has_text: bool = True) -> Scored:
        """The scores of a query by the model that it names or gets."""
        model = self._registry.choose(query.model, query.query)
        n_documents = len(query.documents)
        if query.ids is not None and len(query.ids) != n_documents:
            raise Refused(422, f"there are {n_documents} documents and {len(query.ids)} ids: give an id for each")
        rows = model.matcher.rows(query.documents, has_text=has_text)
        started = time.perf_counter()
        scores = model.scores(rows)
        self._metrics.scoring_seconds.labels(model.name).observe(time.perf_counter() - started)
        self._metrics.documents.labels(model.name).inc(n_documents)
        if not np.isfinite(scores).all():
            document = int(np.argmin(np.isfinite(scores)))
            raise Refused(422, f"the model gives document {document} no finite score")
        return Scored(query, model, rows, scores, np.argsort(-scores, kind="stable"))

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
