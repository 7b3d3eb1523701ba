"""One ranking, measured: for all queries, or by groups of queries."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Floats
from podium.core.plotting import draw
from podium.core.sums import mean_of_known, with_weights
from podium.data import RankingData
from podium.data.columns import by_query
from podium.data.schema import as_data
from podium.errors import DataError, warn
from podium.evaluation.significance import bootstrap_interval, t_interval
from podium.evaluation.tables import ShownAsTable, Table
from podium.evaluation.trec import Qrels, Run, matched, pooled
from podium.measures import Graded, Measure, Ranking, as_measure, warn_of_powers
from podium.measures.base import weights_in_means
from podium.models.base import model_of
from podium.models.rankers import scores_of

MISSING = "missing"  # the group of queries without an entry: None or NaN


def groups_of(data: RankingData, by: Any) -> NDArray[np.object_]:
    """The group of each query, as text.

    Args:
        data: the queries.
        by: the name of a feature, or entries: a mapping from query id, an entry for each query in the order of
            `query_ids`, or one for each row that is constant within a query.

    """
    values: Any = by
    if isinstance(by, str):
        values = _names(data, by)
    return by_query(values, f"by={by!r}" if isinstance(by, str) else "by", data.query_ids, data.order, data.offsets,
                    lambda entries: np.array([_text(entry) for entry in entries], object))  # fmt: skip


def in_order(groups: NDArray[np.object_]) -> list[str]:
    """The distinct groups, numbers by value before texts by the alphabet."""
    return sorted(set(groups.tolist()), key=_place)


def _names(data: RankingData, feature: str) -> Any:
    """The values of a feature, with the names of categories."""
    values = data.feature(feature)
    number = data.feature_names.index(feature) if data.feature_names else -1
    categories = data.encoding.categories.get(number)
    if categories is None:
        return values
    return [MISSING if math.isnan(value) else categories[int(value)] for value in values.tolist()]


def _text(entry: Any) -> str:
    if entry is None or (isinstance(entry, numbers.Real) and math.isnan(entry)):
        return MISSING
    if isinstance(entry, numbers.Real) and not isinstance(entry, bool | np.bool_ | numbers.Integral):
        return str(entry).removesuffix(".0")
    return str(entry)


def _place(group: str) -> tuple[int, float, str]:
    try:
        value = float(group)
    except ValueError:
        return 1, 0.0, group
    return (0, value, group) if not math.isnan(value) else (1, 0.0, group)


TIE_WARNING = 0.001  # how much of a mean ties may decide before there is a warning: 0.1 points

Measures = Measure | Graded | str | Iterable[Measure | str]


class ByMeasure(dict[str, Any]):
    """Entries by a measure's name; any way to write the name, or the measure itself, finds them."""

    def __missing__(self, key: Any) -> Any:
        name = str(as_measure(key))
        if name == key or name not in self:
            raise KeyError(key)
        return self[name]


@dataclass(frozen=True, eq=False)
class Evaluation(ShownAsTable):
    """Values of measures for each query; NaN where a query is skipped.

    Attributes:
        query_ids: the queries.
        values: for each measure, by name, one value per query.
        means: their means over the queries that are not skipped.
        intervals: 95% intervals of the means by Student's t.
        groups: the group of each query, as text, where there are some (`evaluate(by=…)`); else None.
        weights: the weight of each query in means, intervals and tests (`query_weights` of the data); None if all count
            alike.

    Example:
        >>> import podium
        >>> data = podium.RankingData([[1.0], [2.0], [3.0]], [0, 1, 1], qid=[1, 1, 2])
        >>> evaluation = podium.evaluate(data, data.feature(0), ["ndcg@10", "precision@1"])
        >>> evaluation.values["ndcg@10"].tolist(), evaluation.means["precision@1"]
        ([1.0, 1.0], 1.0)

    """

    query_ids: NDArray[Any]
    values: dict[str, Floats]
    groups: NDArray[np.object_] | None = None
    weights: Floats | None = None
    means: dict[str, float] = field(init=False)
    intervals: dict[str, tuple[float, float]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", ByMeasure(self.values))
        means = {name: mean_of_known(values, self.weights) for name, values in self.values.items()}
        object.__setattr__(self, "means", ByMeasure(means))
        intervals = {name: t_interval(self._weighted(name)) for name in self.values}
        object.__setattr__(self, "intervals", ByMeasure(intervals))

    def _weighted(self, name: str) -> Floats:
        """The values of the queries that are not skipped, such that their plain mean is the weighted one."""
        known = ~np.isnan(self.values[name])
        return with_weights(self.values[name][known], None if self.weights is None else self.weights[known])

    def bootstrap(
        self, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
    ) -> dict[str, tuple[float, float]]:
        """Percentile intervals of the means from queries drawn with replacement."""
        return ByMeasure(
            {name: bootstrap_interval(self._weighted(name), confidence, resamples, seed) for name in self.values}
        )

    @property
    def by_group(self) -> dict[str, Evaluation]:
        """The evaluation of the queries of each group."""
        if self.groups is None:
            raise DataError("there are no groups: evaluate(…, by=…) says what queries are grouped by")
        members = {group: self.groups == group for group in in_order(self.groups)}
        return {
            group: Evaluation(
                self.query_ids[inside],
                {name: values[inside] for name, values in self.values.items()},
                weights=None if self.weights is None else self.weights[inside],
            )
            for group, inside in members.items()
        }

    @property
    def per_query(self) -> dict[str, NDArray[Any]]:
        """Columns for a data frame: `qid`, `group` where there are groups, then each measure."""
        groups = {} if self.groups is None else {"group": self.groups}
        return {"qid": self.query_ids, **groups, **self.values}

    def table(self) -> Table:
        """Means and intervals, a row for each measure; those of each group first, where there are groups."""
        columns = ["measure", "mean", "95% from", "to", "queries"]
        if self.groups is None:
            return Table(columns, self._rows())
        parts = [([group], part) for group, part in self.by_group.items()] + [(["all"], self)]
        return Table(["group", *columns], [group + row for group, part in parts for row in part._rows()])

    def _rows(self) -> list[list[Any]]:
        rows = []
        for name, value in self.means.items():
            low, high = self.intervals[name]
            rows.append([name, value, low, high, int((~np.isnan(self.values[name])).sum())])
        return rows

    def query_table(self) -> Table:
        """A row for each query."""
        columns = list(self.per_query.values())
        rows = [[c[k].item() if hasattr(c[k], "item") else c[k] for c in columns]
                for k in range(len(self.query_ids))]  # fmt: skip
        return Table(list(self.per_query), rows)

    def plot(self) -> Any:
        """How the values are spread over the queries, with means and 95% intervals, as a chart (extra `report`)."""
        return draw("queries", self)


def evaluate(
    data: Any, scores: Any, measures: Measures = "ndcg@10", *, drop_uniform: bool = False, judged_only: bool = False,
    by: Any = None,
) -> Evaluation:  # fmt: skip
    """Measure a ranking. If the data has `query_weights`, means and intervals are weighted by them.

    Args:
        data: documents with labels: `RankingData`, or a frame with columns `qid` and `label`; or TREC judgements
            (`read_qrels`).
        scores: one number for each row of the data, in its order, higher is better; a model, any object with
            `predict`, or a function of the data; or a TREC run (`read_run`), whose documents are found by query and
            document id.
        measures: names such as `"ndcg@10"` or values such as `NDCG(10)`.
        drop_uniform: leave out queries whose labels are all equal: every ranking is as good there. ([W] 5.3.)
        judged_only: take documents without a label, or with a negative one, out of the ranking before measuring it, as
            `trec_eval -J` does.
        by: groups of queries that are measured apart as well (`by_group`, `table()`): the name of a feature, a mapping
            from query id, or an entry for each query or row. It must be constant within a query.

    Warns:
        PodiumWarning: if a measure does not average over the orders of documents with equal scores, and that decides
            more than 0.1 points of its mean.

    Returns:
        The value of each measure for each query, with means and intervals.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.evaluate(data, data.relevance, "ndcg@10").means["ndcg@10"]
        1.0

    """
    chosen = as_measures(measures)
    data, (ranking,) = rankings_of(data, [scores])
    warn_of_powers(chosen, data)
    groups = None if by is None else groups_of(data, by)
    evaluation = evaluated(
        data, ranking, chosen, drop_uniform, trained_by=measures_of([scores]), judged_only=judged_only
    )
    return evaluation if groups is None else replace(evaluation, groups=groups)


def evaluated(
    data: RankingData, ranking: Ranking, measures: list[Measure], drop_uniform: bool, name: str = "",
    trained_by: Iterable[Iterable[str]] = (), judged_only: bool = False,
) -> Evaluation:  # fmt: skip
    """The values of measures, as fixed as those that models were trained by, with a warning where ties decide."""
    values = {}
    for measure in measures:
        measured = ranking.judged(measure.sources(data)) if judged_only else ranking
        of_queries = measure.fixed_like(*trained_by).values(measured)
        if drop_uniform:
            of_queries = np.where(is_uniform(data, measure.sources(data)), np.nan, of_queries)
        if len(of_queries) and np.isnan(of_queries).all():
            warn(f"{measure} skips every query: its mean is not defined", stacklevel=3)
        values[str(measure)] = of_queries
        _warn_of_ties(measured, measure, name)
    return Evaluation(data.query_ids, values, weights=weights_in_means(data))


def as_measures(measures: Measures) -> list[Measure]:
    """A list of measures without repetition."""
    if isinstance(measures, Graded):
        return list(measures.measures)
    names = [measures] if isinstance(measures, Measure | str) else list(measures)
    chosen = [as_measure(measure) for measure in names]
    if not chosen:
        raise DataError("pass at least one measure, for example 'ndcg@10'")
    return list(dict.fromkeys(chosen))


def rankings_of(data: Any, systems: list[Any]) -> tuple[RankingData, list[Ranking]]:
    """Each system's scores as a ranking of one and the same data."""
    if isinstance(data, Qrels):
        if not all(isinstance(scores, Run) for scores in systems):
            raise DataError("TREC judgements are matched with TREC runs (read_run), not with bare scores")
        return pooled(data, systems)
    data = as_data(data)
    return data, [_ranking(data, system) for system in systems]


def measures_of(systems: Iterable[Any]) -> list[list[str]]:
    """For each model among these, the measures it was trained by, with what they took from their data."""
    infos = [getattr(model_of(system), "info", None) for system in systems]
    lists = [info.get("measures") for info in infos if isinstance(info, dict)]
    return [[name for name in names if isinstance(name, str)] for names in lists if isinstance(names, list)]


def _ranking(data: RankingData, system: Any) -> Ranking:
    """The ranking by a TREC run, by a model or function, or by scores."""
    if isinstance(system, Run):
        return matched(data, system)
    if isinstance(system, str | os.PathLike):
        raise DataError(
            f"{system!r} is a name, not scores: podium.load(path) gives a model, data.feature(name) a column"
        )
    if callable(system) or hasattr(system, "predict"):
        system = scores_of(system, data)
    return Ranking(data, system)


def is_uniform(data: RankingData, sources: list[str]) -> Bools:
    """Return the queries whose labels are all equal (a document without a label is as one with 0)."""
    if not data.n_queries:
        return np.empty(0, bool)
    starts, is_uniform = data.offsets[:-1], np.ones(data.n_queries, bool)
    for source in sources:
        labels = np.nan_to_num(data.labels[source][data.order])
        is_uniform &= np.maximum.reduceat(labels, starts) == np.minimum.reduceat(labels, starts)
    return is_uniform


def _warn_of_ties(ranking: Ranking, measure: Measure, name: str) -> None:
    """Say how much the order among documents with equal scores can change a mean, if it matters."""
    data, scores = ranking.data, ranking.ranked_scores
    if measure.ties == "expected" or not measure.has_swaps or len(scores) < 2:
        return
    labels = np.nan_to_num(ranking.labels(measure.labels))
    tied = (scores[1:] == scores[:-1]) & (labels[1:] != labels[:-1])
    tied[data.offsets[1:-1] - 1] = False  # the last of a query and the first of the next
    if not tied.any():
        return
    if np.isnan(measure.values(ranking)).all():
        return
    relevance = np.nan_to_num(data.labels[measure.labels].astype(np.float64))
    best, worst = (
        np.nanmean(measure.values(Ranking(
            data, ranking.scores, base=Ranking(data, sign * relevance).order, retrieved=ranking.retrieved
        )))
        for sign in (1, -1)
    )  # fmt: skip
    if best - worst > TIE_WARNING and not math.isnan(best):
        order = "the order of the rows" if measure.ties == "stable" else "an order of their content"
        advice = "; ties=expected averages over their orders" if measure.knows_expected_ties else ""
        warn(
            f"{name}{': ' if name else ''}ties between documents with different labels decide up to "
            f"{best - worst:.4f} of {measure}, which takes them in {order}{advice}",
            stacklevel=4,
        )
