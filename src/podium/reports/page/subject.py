"""What a report is about: a ranker, the data it is tested on, and what else is known."""

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
from podium.diagnostics.lambdas import bind_to_look, scores_at, trees_per_round
from podium.errors import DataError, PodiumError
from podium.estimators.base_ranker import lambda_objective
from podium.evaluation import Comparison, Evaluation
from podium.measures import Measure, Ranking, as_measure
from podium.models import Model
from podium.models.base import model_of, shown_name
from podium.objectives import Lambda, Objective, describe, parse
from podium.objectives.pair_terms import measure_in_training


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about."""

    name: str  # of the ranker
    ranker: Any  # a model, an estimator, a function, any object with `predict`, or scores
    data: RankingData  # what it is tested on
    data_name: str  # what that is called: test, or the name of one of the sets
    rankings: dict[str, Ranking]  # of this data, by the ranker and by others, in this order, by name
    evaluations: dict[str, Evaluation]  # of these rankings, by name; none without labels
    own_evaluation: Evaluation | None  # of the ranker as `evaluate` gives it; None without labels
    comparison: Comparison | None  # the comparison of the systems, if it exists already
    systems: dict[str, Any]  # the ranker and the others as they were given, by name
    measures: tuple[Measure, ...]  # what is measured
    sets: dict[str, RankingData]  # all data by name: what the ranker is tested on, was trained on and chosen by
    history: Mapping[str, Sequence[float]]  # what was measured in training, by `set/measure`, and what observers saw
    facts: Mapping[str, str]  # about the run, by name
    n_listed: int  # queries that are shown of each kind
    timing: bool  # whether to measure the time of scoring

    @cached_property
    def model(self) -> Model | None:
        """The model of Podium's that ranks, if it is one."""
        model = model_of(self.ranker)
        return model if isinstance(model, Model) else None

    @property
    def info(self) -> dict[str, Any]:
        """What the model knows of its training."""
        return self.model.info if self.model is not None else {}

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of training, as far as the model knows them."""
        parameters = self.info.get("parameters")
        return parameters if isinstance(parameters, dict) else {}

    @property
    def can_score(self) -> bool:
        """Whether the ranker scores other data than this."""
        return callable(self.ranker) or hasattr(self.ranker, "predict")

    @property
    def ranking(self) -> Ranking:
        """By the ranker."""
        return self.rankings[self.name]

    @property
    def other(self) -> str | None:
        """The first of the other systems."""
        return next((name for name in self.rankings if name != self.name), None)

    @cached_property
    def n_rounds(self) -> int:
        """The rounds of a model that can be cut to the first ones; 0 if it is not a sum of trees."""
        model = self.model
        parts = getattr(model, "parts", None)
        n_trees = getattr(parts[-1] if parts else model, "n_trees", 0)
        can_be_cut = model is not None and hasattr(model, "truncate")
        return int(n_trees) // trees_per_round(model) if can_be_cut else 0

    def rounds(self, most: int, *, by_ratio: bool = False) -> list[int]:
        """Some rounds from the first to the last, counted from 0, evenly or by a ratio."""
        ends = np.geomspace(1, self.n_rounds, most) if by_ratio else np.linspace(1, self.n_rounds, most)
        return [int(n) - 1 for n in np.unique(np.rint(ends))]

    def scores_at(self, data: RankingData, round_: int | None) -> Floats:
        """Return the scores of some data after a round, or by the whole model."""
        return scores_at(self.ranker, data, round_)

    @cached_property
    def objective(self) -> tuple[str, Objective]:
        """What the model was trained on, as far as it is known and has one score, or else λ of NDCG; and its name."""
        parameters = SimpleNamespace(**self.parameters)
        ways: list[Callable[[], Objective]] = [
            lambda: lambda_objective(parameters) if parameters.objective is None else parse(parameters.objective),
            lambda: Lambda(measure_in_training(as_measure(parameters.measure), None)),
            lambda: parse("lambda(ndcg)"),
        ]
        for way in ways:
            try:
                objective = way()
                bind_to_look(objective, self.data.select([0]), self.data)
                name = f"lambda({objective.measure})" if isinstance(objective, Lambda) else describe(objective)
                return name, objective.fixed(self.data)
            except (PodiumError, AttributeError):  # a parameter that this kind of model does not have
                continue
        raise DataError("λ need labels 'relevance'")

    def names_of_features(self, data: RankingData) -> list[str]:
        """Return the features of some data, as they are called before people."""
        return [shown_name(name) for name in data.feature_names or range(data.n_features)]


def has_labels(data: RankingData, source: str = "relevance") -> bool:
    """Return whether a document has a label of this source."""
    return source in data.labels and bool(np.isfinite(data.labels[source]).any())


def sample(data: RankingData, documents: int) -> RankingData:
    """Return whole queries, drawn by their content, with about `documents` documents; all if there are fewer."""
    if data.n_documents <= documents:
        return data
    drawn = np.argsort(ContentRandom(data).of_queries("report"), kind="stable")
    total = np.cumsum(data.query_sizes[drawn])
    n = max(1, int(np.searchsorted(total, documents, side="right")))
    return data.select(np.sort(drawn[:n]))


def of_some(part: RankingData, whole: RankingData) -> str:
    """How much of the data something is about, as words; nothing where it is about all of it."""
    if part.n_queries == whole.n_queries:
        return ""
    return f" ({part.n_queries:,} of {whole.n_queries:,} queries, drawn at random)"
