"""Search over HTTP: the search pipelines of a service, and the answers to searches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from podium.errors import DataError
from podium.features.pipeline import FOLDER, RankedHits, SearchPipeline
from podium.features.search_explanation import term_occurrences
from podium.features.snippets import snippet
from podium.serving.bodies import FeatureOfPair, Refused, decode
from podium.serving.models import reason_of, signature
from podium.serving.monitoring import Metrics
from podium.serving.settings import Settings

K = 10  # default number of documents to return
PARAMETERS = ("q", "k", "pipeline", "features", "compare")  # of GET /search

QueryText = Annotated[str, Meta(max_length=1000)]  # because each term takes time for each document
Count = Annotated[int, Meta(ge=1, le=1000)] | Annotated[float, Meta(ge=1, le=1000, multiple_of=1)]
DocumentId = Annotated[str, Meta(max_length=4096)]


class SearchBody(Struct, forbid_unknown_fields=True):
    """A search. `compare` also returns the ranking before the model; `pair` explains the order of two documents."""

    query: QueryText
    k: Count = K
    pipeline: str | None = None
    features: bool = False
    compare: bool = False
    pair: Annotated[list[DocumentId], Meta(min_length=2, max_length=2)] | None = None


class Hit(Struct, omit_defaults=True):
    """A document: its rank and score by the model and by retrieval, and parts of its text.

    A text is a list of pieces; every second piece matches the query.
    """

    id: str
    rank: int
    score: float
    retrieval_rank: int
    retrieval_score: float
    text: dict[str, list[str]]
    features: dict[str, float | None] | None = None


class SearchedFeature(FeatureOfPair):
    """A feature of two documents, and what each query term contributes to its values."""

    terms: dict[str, tuple[float | None, float | None]]


class SearchedTerm(Struct):
    """A query term in a field: how often it occurs in each of two documents, and how many documents contain it."""

    term: str
    field: str
    occurrences: tuple[int, int]
    documents: int


class SearchWhy(Struct):
    """Why one document ranks above another: differences, largest first, that sum to the difference of the scores."""

    above: str
    below: str
    scores: tuple[float, float]
    features: list[SearchedFeature]
    terms: list[SearchedTerm]


class SearchAnswer(Struct, omit_defaults=True):
    """The best documents of a query; `retrieved` is the ranking before the model, if the request asks for it."""

    pipeline: str
    retrieval: str
    hits: list[Hit]
    retrieved: list[Hit] | None = None
    why: SearchWhy | None = None


class PipelineDescription(Struct):
    """A search pipeline, without paths of the host."""

    name: str
    documents: int
    fields: dict[str, str]
    features: list[str]
    retrieval: str
    candidates: int
    loaded: str


class ServedPipeline:
    """A search pipeline that is ready to answer.

    Attributes:
        name: the name that clients use.
        pipeline: the pipeline.
        loaded: when the pipeline was loaded.

    """

    def __init__(self, name: str, pipeline: SearchPipeline) -> None:
        self.name, self.pipeline, self.loaded = name, pipeline, datetime.now(UTC)
        self._warm_up()

    def answer(self, request: SearchBody) -> SearchAnswer:
        """Return the answer to a search."""
        pipeline, k = self.pipeline, int(request.k)
        try:
            ranked = pipeline.search(request.query, pipeline.candidates, features=request.features)
            why = None if request.pair is None else self._why(request.query, *request.pair)
        except DataError as error:
            raise Refused(422, str(error)) from None
        order = sorted(range(len(ranked.ids)), key=lambda place: ranked.retrieval_ranks[place])[:k]
        return SearchAnswer(
            self.name, pipeline.by, [self._hit(request, ranked, place) for place in range(min(k, len(ranked.ids)))],
            [self._hit(request, ranked, place) for place in order] if request.compare else None, why,
        )  # fmt: skip

    def description(self) -> PipelineDescription:
        """Return the public description of the pipeline."""
        pipeline = self.pipeline
        fields = {name: str(field.analyzer) for name, field in pipeline.index.fields.items()}
        return PipelineDescription(
            self.name, len(pipeline.index), fields, list(pipeline.features.names), pipeline.by, pipeline.candidates,
            self.loaded.isoformat(timespec="seconds"),
        )  # fmt: skip

    def _hit(self, request: SearchBody, ranked: RankedHits, place: int) -> Hit:
        features = None
        if ranked.features is not None:
            features = dict(zip(self.pipeline.features.names, ranked.features[place].tolist(), strict=True))
        return Hit(
            ranked.ids[place], place + 1, float(ranked.scores[place]), int(ranked.retrieval_ranks[place]),
            float(ranked.retrieval_scores[place]), self._text(request.query, int(ranked.rows[place])), features,
        )  # fmt: skip

    def _text(self, query: str, row: int) -> dict[str, list[str]]:
        index = self.pipeline.index
        if not index.has_texts:
            return {}
        analyzers = {name: field.analyzer for name, field in index.fields.items()}
        return {
            name: snippet(text, analyzers[name], analyzers[name].terms(query))
            for name, text in index.text(row).items()
            if text
        }

    def _why(self, query: str, above: str, below: str) -> SearchWhy:
        pipeline = self.pipeline
        comparison = pipeline.why(query, above, below)
        terms_above, terms_below = (
            {entry.feature: entry.terms for entry in pipeline.features.explain(pipeline.index, query, document)}
            for document in (above, below)
        )
        features = [
            SearchedFeature(
                name, (value, other_value), (adds, other_adds), difference,
                {term: (amount, terms_below[name][term]) for term, amount in terms_above[name].items()},
            )
            for name, value, other_value, adds, other_adds, difference in comparison.rows
        ]  # fmt: skip
        rows = pipeline.index.rows([above, below]).tolist()
        tables = [term_occurrences(pipeline.index, query, row).rows for row in rows]
        terms = [
            SearchedTerm(term, field, (count, other[2]), n)
            for (term, field, count, n), other in zip(*tables, strict=True)
        ]
        return SearchWhy(comparison.a, comparison.b, (comparison.score_a, comparison.score_b), features, terms)

    def _warm_up(self) -> None:
        """Answer a query of two frequent terms, so that no request compiles anything."""
        index = self.pipeline.index
        field = max(index.fields.values(), key=lambda field: field.n_words)
        query = " ".join(field.vocabulary[int(k)] for k in field.document_frequency.argsort()[-2:])
        hits = self.answer(SearchBody(query, compare=True)).hits
        if len(hits) > 1:
            with suppress(Refused):  # a model that cannot be explained can still rank
                self.answer(SearchBody(query, pair=[hits[0].id, hits[1].id]))


class PipelineRegistry:
    """The search pipelines by name. A pipeline whose folder changes is replaced once the new one is warm.

    Args:
        settings: the settings of the service.
        on_event: a function called with the name of an event and facts about it.
        metrics: counts the searches.

    Attributes:
        pipelines: the pipelines by name. Requests read it without a lock, so it is replaced, never changed in place.

    """

    def __init__(self, settings: Settings, on_event: Callable[..., None], metrics: Metrics) -> None:
        self._folders, self._on_event, self._metrics = settings.pipelines, on_event, metrics
        self._seen = {folder: signature(folder / FOLDER.manifest) for folder in self._folders.values()}
        self.pipelines: Mapping[str, ServedPipeline] = {
            name: ServedPipeline(name, SearchPipeline.load(folder)) for name, folder in self._folders.items()
        }

    def reload(self, everything: bool = False) -> None:
        """Load the folders that have changed since the last check, or all; keep the old pipeline if that fails."""
        for name, folder in self._folders.items():
            current = signature(folder / FOLDER.manifest)
            if current is None or (current == self._seen[folder] and not everything):
                continue
            self._seen[folder] = current
            try:
                pipeline = ServedPipeline(name, SearchPipeline.load(folder))
            except Exception as error:  # one bad folder must not stop the other pipelines
                self._on_event("pipeline refused", level="error", pipeline=name, reason=reason_of(error))
            else:
                self.pipelines = {**self.pipelines, name: pipeline}
                self._on_event("pipeline loaded", pipeline=name)

    def search_body(self, body: bytes) -> SearchAnswer:
        """Answer POST /search."""
        return self._answered(decode(_DECODER, body))

    def search_parameters(self, parameters: list[tuple[str, str]]) -> SearchAnswer:
        """Answer GET /search."""
        names = [name for name, _ in parameters]
        for name in names:
            if name not in PARAMETERS or names.count(name) > 1:
                problem = "occurs twice" if name in PARAMETERS else f"is not one of {', '.join(PARAMETERS)}"
                raise Refused(400, f"the parameter {name[:80]!r} {problem}")
        if "q" not in names:
            raise Refused(400, "the parameter 'q', the query, is missing")
        try:
            values = {"query" if name == "q" else name: value for name, value in parameters}
            return self._answered(msgspec.convert(values, SearchBody, strict=False))
        except msgspec.ValidationError as error:
            raise Refused(400, f"the parameters are invalid: {str(error).replace('`', '')[:300]}") from None

    def _answered(self, request: SearchBody) -> SearchAnswer:
        """Answer with the pipeline that the request names, else with the first one."""
        name = request.pipeline
        served = next(iter(self.pipelines.values())) if name is None else self.pipelines.get(name)
        if served is None:
            raise Refused(404, f"there is no pipeline {str(name)[:80]!r}; GET /models lists the pipelines")
        started = time.perf_counter()
        answer = served.answer(request)
        self._metrics.scoring_seconds.labels(served.name).observe(time.perf_counter() - started)
        self._metrics.documents.labels(served.name).inc(len(answer.hits))
        return answer


_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(SearchBody)
