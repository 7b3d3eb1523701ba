"""The subject of a report: a ranker, its test data, and related facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.diagnostics.lambdas import bind_for_diagnosis, scores_at, trees_per_round
from podium.errors import DataError, PodiumError
from podium.estimators.base_ranker import lambda_objective
from podium.evaluation import Comparison, Evaluation
from podium.measures import Measure, Ranking, as_measure
from podium.models import Model
from podium.models.base import model_of
from podium.objectives import Lambda, Objective, describe, parse
from podium.objectives.pair_terms import measure_in_training


@dataclass(frozen=True, eq=False)
class Subject:
    """The ranker of a report with its data, evaluations and history."""

    name: str  # the name of the ranker
    ranker: Any  # a model, an estimator, a function, any object with `predict`, or scores
    data: RankingData  # the test data
    data_name: str  # its key in `sets`: test, unless it is the validation or training data
    rankings: dict[str, Ranking]  # the rankings of the test data by system, the ranker first
    evaluations: dict[str, Evaluation]  # the evaluations of these rankings; empty without labels
    evaluation: Evaluation | None  # the evaluation of the ranker alone, as by `evaluate`; None without labels
    comparison: Comparison | None  # the comparison of the systems, if it was passed to the report
    systems: dict[str, Any]  # the ranker and the others by name, as the caller passed them
    measures: tuple[Measure, ...]
    sets: dict[str, RankingData]  # all data by name: test, training and validation data
    history: Mapping[str, Sequence[float]]  # means during training by `set/measure`, and the records of observers
    facts: Mapping[str, str]  # facts about the run by name
    n_listed: int  # number of queries to show of each kind
    timing: bool  # whether to measure the speed of scoring

    @cached_property
    def model(self) -> Model | None:
        """The Podium model of the ranker, or None if it has none."""
        model = model_of(self.ranker)
        return model if isinstance(model, Model) else None

    @property
    def info(self) -> dict[str, Any]:
        """The facts about training that the model stores."""
        return self.model.info if self.model is not None else {}

    @property
    def parameters(self) -> dict[str, Any]:
        """The training parameters that the model stores."""
        parameters = self.info.get("parameters")
        return parameters if isinstance(parameters, dict) else {}

    @property
    def can_score(self) -> bool:
        """Whether the ranker can score other data than the test data."""
        return can_score(self.ranker)

    @property
    def ranking(self) -> Ranking:
        """The ranking of the test data by the ranker."""
        return self.rankings[self.name]

    @property
    def other(self) -> str | None:
        """The name of the first other system, or None."""
        return next((name for name in self.rankings if name != self.name), None)

    @cached_property
    def n_rounds(self) -> int:
        """The number of rounds that the model can be truncated to; 0 if it is not a sum of trees."""
        model = self.model
        parts = getattr(model, "parts", None)
        n_trees = getattr(parts[-1] if parts else model, "n_trees", 0)
        return int(n_trees) // trees_per_round(model) if hasattr(model, "truncate") else 0

    def rounds(self, most: int, *, by_ratio: bool = False) -> list[int]:
        """Return at most `most` rounds from first to last, counted from 0, in equal steps or by a constant ratio."""
        ends = np.geomspace(1, self.n_rounds, most) if by_ratio else np.linspace(1, self.n_rounds, most)
        return [int(n) - 1 for n in np.unique(np.rint(ends))]

    def scores_at(self, data: RankingData, round_: int | None) -> Floats:
        """Return the scores of data after a round, or of the whole model for None."""
        return scores_at(self.ranker, data, round_)

    @cached_property
    def objective(self) -> tuple[str, Objective]:
        """The objective of training and its name, or λ of NDCG if it is unknown or needs several scores."""
        parameters = SimpleNamespace(**self.parameters)
        candidates: list[Callable[[], Objective]] = [
            lambda: lambda_objective(parameters) if parameters.objective is None else parse(parameters.objective),
            lambda: Lambda(measure_in_training(as_measure(parameters.measure), None)),
            lambda: parse("lambda(ndcg)"),
        ]
        for candidate in candidates:
            try:
                objective = candidate()
                bind_for_diagnosis(objective, self.data.select([0]), self.data)
                name = f"lambda({objective.measure})" if isinstance(objective, Lambda) else describe(objective)
                return name, objective.fixed(self.data)
            except (PodiumError, AttributeError):  # a parameter that this kind of model does not have
                continue
        raise DataError("λ require labels named 'relevance'")


def can_score(system: Any) -> bool:
    """Return whether a system can score documents; otherwise it is an array of scores."""
    return callable(system) or hasattr(system, "predict")


def has_labels(data: RankingData, source: str = "relevance") -> bool:
    """Return whether any document has a label of this source."""
    return source in data.labels and bool(np.isfinite(data.labels[source]).any())


def sample(data: RankingData, documents: int) -> RankingData:
    """Return a sample of whole queries, drawn by content, with about `documents` documents."""
    if data.n_documents <= documents:
        return data
    queries = np.argsort(ContentRandom(data).of_queries("report"), kind="stable")
    total = np.cumsum(data.query_sizes[queries])
    n = max(1, int(np.searchsorted(total, documents, side="right")))
    return data.select(np.sort(queries[:n]))


def sample_size_text(part: RankingData, whole: RankingData) -> str:
    """Return the size of a sample as text for a report; empty if the sample is the whole data."""
    if part.n_queries == whole.n_queries:
        return ""
    return f" ({part.n_queries:,} of {whole.n_queries:,} queries, drawn at random)"
