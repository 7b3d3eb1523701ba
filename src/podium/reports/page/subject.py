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
from podium.diagnostics.looking import bind_to_look, scores_at
from podium.errors import DataError, PodiumError
from podium.estimators.ranker import lambda_objective
from podium.evaluation import Comparison, Evaluation
from podium.measures import Measure, Ranking, as_measure
from podium.models import Model
from podium.models.base import model_of, shown_name
from podium.objectives import Lambda, Objective, describe, parse
from podium.objectives.pair_terms import measure_in_training


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about.

    Attributes:
        name: of the ranker.
        ranker: a model, an estimator, a function, any object with `predict`, or scores.
        data: what it is tested on.
        data_name: what that is called: test, or the name of one of the sets.
        rankings: of this data, by the ranker and by others, in this order, by name.
        evaluations: of these rankings, by name; none without labels.
        own_evaluation: of the ranker as `evaluate` gives it; None without labels.
        comparison: of the systems, where it has been made already.
        systems: the ranker and the others as they were given, by name.
        measures: what is measured.
        sets: all data by name: what the ranker is tested on, was trained on and chosen by.
        history: what was measured in training, by `set/measure`, and what observers saw.
        facts: about the run, by name.
        n_listed: queries that are shown of each kind.
        timing: whether to measure the time of scoring.

    """

    name: str
    ranker: Any
    data: RankingData
    data_name: str
    rankings: dict[str, Ranking]
    evaluations: dict[str, Evaluation]
    own_evaluation: Evaluation | None
    comparison: Comparison | None
    systems: dict[str, Any]
    measures: tuple[Measure, ...]
    sets: dict[str, RankingData]
    history: Mapping[str, Sequence[float]]
    facts: Mapping[str, str]
    n_listed: int
    timing: bool

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
        """The rounds of which the first can be taken alone; 0 where the model is no sum of trees."""
        model = self.model
        parts = getattr(model, "parts", None)
        n_trees = getattr(parts[-1] if parts else model, "n_trees", 0)
        return int(n_trees) if model is not None and hasattr(model, "truncate") and n_trees else 0

    def rounds(self, most: int, *, by_ratio: bool = False) -> list[int]:
        """Some rounds from the first to the last, counted from 0, evenly or by a ratio."""
        ends = np.geomspace(1, self.n_rounds, most) if by_ratio else np.linspace(1, self.n_rounds, most)
        return [int(n) - 1 for n in np.unique(np.rint(ends))]

    def scores_at(self, data: RankingData, round_: int | None) -> Floats:
        """The scores of some data after a round, or by the whole model."""
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
        """The features of some data, as they are called before people."""
        return [shown_name(name) for name in data.feature_names or range(data.n_features)]


def has_labels(data: RankingData, source: str = "relevance") -> bool:
    """Whether a document has a label of this source."""
    return source in data.labels and bool(np.isfinite(data.labels[source]).any())


def sample(data: RankingData, documents: int, queries: int | None = None) -> RankingData:
    """Whole queries, drawn by their content, with about so many documents; all of them where there are no more.

    Example:
        >>> import podium
        >>> from podium.reports.page.subject import sample
        >>> sample(podium.artificial(20, features=4), 100)
        RankingData(100 documents in 2 queries, 4 features, labels: relevance)

    """
    if data.n_documents <= documents and (queries is None or data.n_queries <= queries):
        return data
    drawn = np.argsort(ContentRandom(data).of_queries("report"), kind="stable")
    total = np.cumsum(data.query_sizes[drawn])
    n = max(1, int(np.searchsorted(total, documents, side="right")))
    return data.select(np.sort(drawn[: n if queries is None else min(n, queries)]))


def of_some(part: RankingData, whole: RankingData) -> str:
    """How much of the data something is about, as words; nothing where it is about all of it."""
    if part.n_queries == whole.n_queries:
        return ""
    return f" ({part.n_queries:,} of {whole.n_queries:,} queries, drawn at random)"
