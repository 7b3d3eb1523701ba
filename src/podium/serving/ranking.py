"""Ranks queries and explains the rankings."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import starmap
from typing import Any

import msgspec
import numpy as np

from podium.core.array_types import Float32s, Floats, Ints
from podium.explain import Explanation
from podium.serving.bodies import (
    ExplainBody,
    Explained,
    ExplainedDocument,
    FeatureOfPair,
    Query,
    RankAnswer,
    RankAnswers,
    RankedDocument,
    Refused,
    Why,
    decode,
    decode_queries,
)
from podium.serving.clicking import Clicks
from podium.serving.models import Registry, ServedModel
from podium.serving.monitoring import Metrics
from podium.serving.settings import Settings

_EXPLAINED = msgspec.json.Decoder(ExplainBody)


@dataclass
class ScoredQuery:
    """A query with its scores."""

    query: Query[Any]
    model: ServedModel
    rows: Float32s  # the documents in the model's encoding
    scores: Floats
    order: Ints  # indices of the documents, best first; ties keep the order of the request
    ranking_id: str | None = None  # for events to refer to; None without a click log


class QueryRanker:
    """Ranks queries with the models of a registry, and explains the rankings."""

    def __init__(self, settings: Settings, registry: Registry, metrics: Metrics, clicks: Clicks | None = None) -> None:
        self._settings, self._registry, self._metrics, self._clicks = settings, registry, metrics, clicks

    def rank(self, body: bytes) -> tuple[RankAnswer | RankAnswers, list[ScoredQuery]]:
        """Return the response to a request, and the scored queries in it."""
        has_text = self._registry.has_categories
        queries, is_list = decode_queries(body, has_text)
        n_documents, limit = sum(len(query.documents) for query in queries), self._settings.limits.documents
        if n_documents > limit:
            raise Refused(413, f"the request has {n_documents} documents, but the limit is {limit}")
        if not is_list:
            scored = [self._score_and_log(queries[0], has_text)]
            return _answer(scored[0]), scored
        scored = []
        for number, query in enumerate(queries):
            try:
                scored.append(self._score_and_log(query, has_text))
            except Refused as refused:
                raise Refused(refused.status, f"query {number}: {refused.sentence}") from None
        return RankAnswers([_answer(query) for query in scored]), scored

    def explain(self, body: bytes) -> Explained:
        """Return the response to a request to explain."""
        query: ExplainBody = decode(_EXPLAINED, body)
        n_documents, limits = len(query.documents), self._settings.limits
        if n_documents > (limit := min(limits.explained, limits.documents)):
            raise Refused(413, f"the request has {n_documents} documents to explain, but the limit is {limit}")
        scored = self._score_and_log(query, True, is_logged=False)
        model = scored.model
        if model.why_not_explained is not None:
            raise Refused(422, f"the model {model.name!r} cannot be explained: {model.why_not_explained}")
        pair = [int(document) for document in query.pair or ()]
        if pair and max(pair) >= n_documents:
            raise Refused(422, f"the pair has index {max(pair)}, but there are {n_documents} documents")
        explanation = model.explanation(scored.rows)
        if not np.isfinite(explanation.values).all():
            raise Refused(422, "the contributions of the features are not finite")
        documents = [
            ExplainedDocument(ranked.index, ranked.score, explanation.values[ranked.index].tolist(), ranked.id)
            for ranked in _answer(scored).ranking
        ]
        why = _why(explanation, *pair) if pair else None
        return Explained(model.name, explanation.method, explanation.base, list(explanation.names), documents, why)

    def compare_with_shadow(self, queries: list[ScoredQuery]) -> None:
        """Score the same documents with the shadow model, and count how often the top documents differ."""
        shadow = self._settings.shadow
        for scored in queries:
            if shadow is None or scored.query.model is not None or scored.model.name == shadow:
                continue
            k = int(scored.query.k or self._settings.shadow_k)
            order = np.argsort(-self._registry.models[shadow].scores(scored.rows), kind="stable")
            differs = not np.array_equal(order[:k], scored.order[:k])
            self._metrics.shadow.labels(scored.model.name, "yes" if differs else "no").inc()

    def _score_and_log(self, query: Query[Any], has_text: bool, *, is_logged: bool = True) -> ScoredQuery:
        """Score a query; with a click log, compute click features and log the ranking in one step, without a race."""
        model, n_documents = self._registry.choose(query.model, query.query), len(query.documents)
        if query.ids is not None and len(query.ids) != n_documents:
            raise Refused(
                422, f"there are {n_documents} documents but {len(query.ids)} ids: send one for each document"
            )
        if self._clicks is None:
            return self._scored(query, model, query.documents, has_text)
        with self._clicks.live.moment() as now:
            documents = self._clicks.add_features(now, query, model)
            scored = self._scored(query, model, documents, has_text)
            if is_logged:
                scored.ranking_id = self._clicks.show(now, query, model, documents, scored.scores, scored.order)
        return scored

    def _scored(self, query: Query[Any], model: ServedModel, documents: list[Any], has_text: bool) -> ScoredQuery:
        n_documents = len(documents)
        rows = model.matcher.rows(documents, has_text=has_text)
        started = time.perf_counter()
        scores = model.scores(rows)
        self._metrics.scoring_seconds.labels(model.name).observe(time.perf_counter() - started)
        self._metrics.documents.labels(model.name).inc(n_documents)
        if not np.isfinite(scores).all():
            document = int(np.argmin(np.isfinite(scores)))
            raise Refused(422, f"the score of document {document} is not finite")
        return ScoredQuery(query, model, rows, scores, np.argsort(-scores, kind="stable"))


def _answer(scored: ScoredQuery) -> RankAnswer:
    k = len(scored.order) if scored.query.k is None else int(scored.query.k)
    order = scored.order[:k].tolist()
    scores = scored.scores[order].tolist() if order else []
    ids = scored.query.ids
    if ids is None:
        return RankAnswer(scored.model.name, list(starmap(RankedDocument, zip(order, scores, strict=True))))
    ranked = [RankedDocument(index, score, ids[index]) for index, score in zip(order, scores, strict=True)]
    return RankAnswer(scored.model.name, ranked, scored.ranking_id)


def _why(explanation: Explanation, above: int, below: int) -> Why:
    features = [
        FeatureOfPair(name, (value, other_value), (adds, other_adds), difference)
        for name, value, other_value, adds, other_adds, difference in explanation.why(above, below).rows
    ]
    return Why(above, below, (float(explanation.scores[above]), float(explanation.scores[below])), features)
