"""Evaluation of a ranking, for all queries or by groups of queries."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Mapping
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

MISSING = "missing"  # the group of queries whose entry is None or NaN


def groups_of(data: RankingData, by: Any) -> NDArray[np.object_]:
    """Return the group of each query, as text.

    Args:
        data: the queries.
        by: the name of a feature, or entries: a mapping from query id, an entry for each query in the order of
            `query_ids`, or one for each row that is constant within a query.

    """
    name, values = (f"by={by!r}", _values_of_feature(data, by)) if isinstance(by, str) else ("by", by)

    def names_of_groups(entries: Any) -> NDArray[np.object_]:
        return np.array([_name_of_group(entry) for entry in entries], object)

    return by_query(values, name, data.query_ids, data.order, data.offsets, names_of_groups)


def in_order(groups: NDArray[np.object_]) -> list[str]:
    """Return the distinct groups in order: numbers by value, then text alphabetically."""
    return sorted(set(groups.tolist()), key=_sort_key)


def _values_of_feature(data: RankingData, feature: str) -> Any:
    """Return the values of a feature, with the names of categories."""
    values = data.feature(feature)
    number = data.feature_names.index(feature) if data.feature_names else -1
    categories = data.encoding.categories.get(number)
    if categories is None:
        return values
    return [MISSING if math.isnan(value) else categories[int(value)] for value in values.tolist()]


def _name_of_group(entry: Any) -> str:
    if entry is None or (isinstance(entry, numbers.Real) and math.isnan(entry)):
        return MISSING
    if isinstance(entry, numbers.Real) and not isinstance(entry, bool | np.bool_ | numbers.Integral):
        return str(entry).removesuffix(".0")
    return str(entry)


def _sort_key(group: str) -> tuple[int, float, str]:
    try:
        value = float(group)
    except ValueError:
        return 1, 0.0, group
    return (0, value, group) if not math.isnan(value) else (1, 0.0, group)


TIE_WARNING = 0.001  # warn if ties can change a mean by more than this: 0.1 points

Measures = Measure | Graded | str | Iterable[Measure | str]


class ByMeasure(dict[str, Any]):
    """A dictionary by measure, whose keys may be any spelling of the measure's name or the measure itself."""

    def __missing__(self, key: Any) -> Any:
        name = str(as_measure(key))
        if name == key or name not in self:
            raise KeyError(key)
        return self[name]


@dataclass(frozen=True, eq=False)
class Evaluation(ShownAsTable):
    """The values of measures for each query, NaN for skipped queries.

    Attributes:
        query_ids: the ids of the queries.
        values: the value for each query by measure.
        means: the means over the queries that are not skipped.
        intervals: 95% intervals of the means (Student's t).
        groups: the group of each query as text, with `evaluate(by=…)`; else None.
        weights: the weight of each query in means, intervals and tests (`query_weights` of the data); None if all are
            equal.

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
        """Return the values of queries that are not skipped, scaled so that their plain mean is the weighted mean."""
        has_value = ~np.isnan(self.values[name])
        return with_weights(self.values[name][has_value], None if self.weights is None else self.weights[has_value])

    def bootstrap(
        self, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
    ) -> dict[str, tuple[float, float]]:
        """Return percentile intervals of the means, from queries drawn with replacement."""
        return ByMeasure(
            {name: bootstrap_interval(self._weighted(name), confidence, resamples, seed) for name in self.values}
        )

    @property
    def by_group(self) -> dict[str, Evaluation]:
        """The evaluation of the queries of each group."""
        if self.groups is None:
            raise DataError("the evaluation has no groups: pass by=… to evaluate")
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
        """The columns of a data frame: `qid`, `group` if there are groups, then each measure."""
        groups = {} if self.groups is None else {"group": self.groups}
        return {"qid": self.query_ids, **groups, **self.values}

    def table(self) -> Table:
        """Return a table of means and intervals with a row for each measure, preceded by those of each group."""
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
        """Return a table with a row for each query."""
        columns = list(self.per_query.values())
        rows = [[c[k].item() if hasattr(c[k], "item") else c[k] for c in columns]
                for k in range(len(self.query_ids))]  # fmt: skip
        return Table(list(self.per_query), rows)

    def plot(self) -> Any:
        """Return a chart of the distribution over queries, with means and 95% intervals (extra `report`)."""
        return draw("queries", self)


def evaluate(
    data: Any, scores: Any, measures: Measures = "ndcg@10", *, drop_uniform: bool = False, judged_only: bool = False,
    by: Any = None,
) -> Evaluation:  # fmt: skip
    """Evaluate a ranking. If the data has `query_weights`, they weight means and intervals.

    Args:
        data: documents with labels: `RankingData`, or a frame with columns `qid` and `label`; or TREC judgements
            (`read_qrels`).
        scores: one number for each row of the data, higher is better; a model, any object with `predict`, or a function
            of the data; or a TREC run (`read_run`), which is matched by query and document id.
        measures: names such as `"ndcg@10"` or values such as `NDCG(10)`.
        drop_uniform: skip queries whose labels are all equal, because every ranking of them is equally good ([W] 5.3).
        judged_only: remove documents without a label, or with a negative one, from the ranking first, as `trec_eval -J`
            does.
        by: how to group queries, to evaluate each group as well (`by_group`, `table()`): the name of a feature, a
            mapping from query id, or an entry for each query or row, constant within a query.

    Warns:
        PodiumWarning: if the order of documents with equal scores changes the mean of a measure that does not average
            over these orders by more than 0.1 points.

    Returns:
        The value of each measure for each query, with means and intervals.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> podium.evaluate(data, data.relevance, "ndcg@10").means["ndcg@10"]
        1.0

    """
    distinct = as_measures(measures)
    data, (ranking,) = rankings_of(data, [scores])
    warn_of_powers(distinct, data)
    groups = None if by is None else groups_of(data, by)
    evaluation = evaluated(
        data, ranking, distinct, drop_uniform, trained_by=measures_of([scores]), judged_only=judged_only
    )
    return evaluation if groups is None else replace(evaluation, groups=groups)


def evaluated(
    data: RankingData, ranking: Ranking, measures: list[Measure], drop_uniform: bool, name: str = "",
    trained_by: Iterable[Iterable[str]] = (), judged_only: bool = False,
) -> Evaluation:  # fmt: skip
    """Return the values of measures, fixed like those that models were trained by; warn if ties matter."""
    values: dict[str, Floats] = {}
    spreads: dict[Measure, float] = {}
    for measure in measures:
        measured = ranking.judged(measure.sources(data)) if judged_only else ranking
        of_queries = measure.fixed_like(*trained_by).values(measured)
        if drop_uniform:
            of_queries = np.where(is_uniform(data, measure.sources(data)), np.nan, of_queries)
        if len(of_queries) and np.isnan(of_queries).all():
            warn(f"{measure} skips every query, so its mean is undefined", stacklevel=3)
        values[str(measure)] = of_queries
        spreads[measure] = _tie_spread(measured, measure)
    _warn_of_ties(spreads, name)
    return Evaluation(data.query_ids, values, weights=weights_in_means(data))


def as_measures(measures: Measures) -> list[Measure]:
    """Return a list of distinct measures."""
    if isinstance(measures, Graded):
        return list(measures.measures)
    entries = [measures] if isinstance(measures, Measure | str) else measures
    distinct = list(dict.fromkeys(map(as_measure, entries)))
    if not distinct:
        raise DataError("pass at least one measure, for example 'ndcg@10'")
    return distinct


def rankings_of(data: Any, systems: list[Any]) -> tuple[RankingData, list[Ranking]]:
    """Return the data, and the ranking of it by each system."""
    if isinstance(data, Qrels):
        if not all(isinstance(scores, Run) for scores in systems):
            raise DataError("TREC judgements require TREC runs (read_run), not plain scores")
        return pooled(data, systems)
    data = as_data(data)
    return data, [_ranking(data, system) for system in systems]


def measures_of(systems: Iterable[Any]) -> list[list[str]]:
    """Return the measures that each model among the systems was trained by, as text with its data's parameters."""
    infos = [getattr(model_of(system), "info", None) for system in systems]
    lists = [info.get("measures") for info in infos if isinstance(info, dict)]
    return [[name for name in names if isinstance(name, str)] for names in lists if isinstance(names, list)]


def _ranking(data: RankingData, system: Any) -> Ranking:
    """Return the ranking by a TREC run, by a model or function, or by scores."""
    if isinstance(system, Run):
        return matched(data, system)
    if isinstance(system, str | os.PathLike):
        raise DataError(
            f"{system!r} is a name, not scores: pass podium.load(path) for a model, data.feature(name) for a feature"
        )
    if callable(system) or hasattr(system, "predict"):
        system = scores_of(system, data)
    return Ranking(data, system)


def is_uniform(data: RankingData, sources: list[str]) -> Bools:
    """Return whether all labels of each query are equal, counting unlabelled documents as 0."""
    starts, is_uniform = data.offsets[:-1], np.ones(data.n_queries, bool)
    for source in sources:
        labels = np.nan_to_num(data.labels[source][data.order])
        is_uniform &= np.maximum.reduceat(labels, starts) == np.minimum.reduceat(labels, starts)
    return is_uniform


def _tie_spread(ranking: Ranking, measure: Measure) -> float:
    """Return by how much the order of documents with equal scores can change the mean of a measure."""
    data, scores = ranking.data, ranking.ranked_scores
    if measure.ties == "expected" or not measure.has_swaps or len(scores) < 2:
        return 0.0
    labels = np.nan_to_num(ranking.labels(measure.labels))
    tied = (scores[1:] == scores[:-1]) & (labels[1:] != labels[:-1])
    tied[data.offsets[1:-1] - 1] = False  # the last document of a query and the first of the next
    if not tied.any() or np.isnan(measure.values(ranking)).all():
        return 0.0
    relevance = np.nan_to_num(data.labels[measure.labels].astype(np.float64))
    best, worst = (
        np.nanmean(measure.values(Ranking(
            data, ranking.scores, base=Ranking(data, sign * relevance).order, retrieved=ranking.retrieved
        )))
        for sign in (1, -1)
    )  # fmt: skip
    return 0.0 if math.isnan(best) else float(best - worst)


def _warn_of_ties(spreads: Mapping[Measure, float], name: str) -> None:
    """Warn about all measures of a system whose means depend on the order of documents with equal scores."""
    large = {measure: spread for measure, spread in spreads.items() if spread > TIE_WARNING}
    if not large:
        return
    listed = ", ".join(f"{spread:.4f} of {measure}" for measure, spread in large.items())
    orders = {"the order of the rows" if measure.ties == "stable" else "an order by content" for measure in large}
    advice = (
        "; ties=expected averages over their orders" if any(measure.knows_expected_ties for measure in large) else ""
    )
    warn(
        f"{name}{': ' if name else ''}ties between documents with different labels, ranked in "
        f"{' or '.join(sorted(orders))}, decide up to {listed}{advice}",
        stacklevel=4,
    )
