"""Why documents stand where they do."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from podium.explain import Explanation
from podium.serving.ranking import Ranker, answer
from podium.serving.refusing import Refused
from podium.serving.requests.bodies import ExplainBody, decoded_explain
from podium.serving.settings import Settings


class ExplainedDocument(Struct, omit_defaults=True):
    """A document in its place, with what each feature adds to its score, in the order of `features`."""

    index: int
    score: float
    contributions: list[float]
    id: str | int | float | None = None


class FeatureOfPair(Struct):
    """What a feature is in two documents, what it adds to each, and the difference."""

    feature: str
    values: tuple[float | str | None, float | str | None]
    contributions: tuple[float, float]
    difference: float


class Why(Struct):
    """Why one document stands above another: the differences, largest first, add up to that of the scores."""

    above: int
    below: int
    scores: tuple[float, float]
    features: list[FeatureOfPair]


class Explained(Struct, omit_defaults=True):
    """The answer: the base and the contributions of a document add up to its score."""

    model: str
    method: str
    base: float
    features: list[str]
    documents: list[ExplainedDocument]
    why: Why | None = None


class Explainer:
    """Explains rankings of the models of a service."""

    def __init__(self, settings: Settings, ranker: Ranker) -> None:
        self._settings, self._ranker = settings, ranker

    def explained(self, body: bytes) -> Explained:
        """The answer to a request."""
        query = decoded_explain(body)
        n_documents, limits = len(query.documents), self._settings.limits
        if n_documents > (most := min(limits.explained, limits.documents)):
            raise Refused(413, f"the request has {n_documents} documents to explain, and the limit is {most}")
        scored = self._ranker.scored(self._ranker.matched(query))
        model = scored.model
        if model.why_not_explained is not None:
            raise Refused(422, f"the model {model.name!r} cannot be explained: {model.why_not_explained}")
        pair = _pair(query)
        found = model.explanation(scored.rows)
        if not np.isfinite(found.values).all():
            raise Refused(422, "the contributions of the features are not finite")
        documents = [
            ExplainedDocument(one.index, one.score, found.values[one.index].tolist(), one.id)
            for one in answer(scored).ranking
        ]
        why = None if pair is None else _why(found, *pair)
        return Explained(model.name, found.method, found.base, list(found.names), documents, why)


def _pair(query: ExplainBody) -> tuple[int, int] | None:
    """The two documents to compare; they must be there."""
    if query.pair is None:
        return None
    first, second = map(int, query.pair)
    if max(first, second) >= len(query.documents):
        raise Refused(422, f"the pair names document {max(first, second)}, and there are {len(query.documents)}")
    return first, second


def _why(found: Explanation, above: int, below: int) -> Why:
    pair = found.why(above, below)
    features = [
        FeatureOfPair(name, (one, other), (adds, adds_other), difference)
        for name, one, other, adds, adds_other, difference in pair.rows
    ]
    return Why(above, below, (float(found.scores[above]), float(found.scores[below])), features)
