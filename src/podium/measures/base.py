"""The classes `Measure` and `ListMeasure`, the base of all measures."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Floats, Ints
from podium.core.merging import Total
from podium.core.sums import ExactSum, mean_of_known
from podium.core.validation import require_whole
from podium.errors import DataError
from podium.measures.families import LookupTables
from podium.measures.gains import shown
from podium.measures.ranking import Ranking, for_queries, labels_in_order

if TYPE_CHECKING:
    from podium.data import RankingData


Ties = Literal["expected", "canonical", "stable"]
Empty = Literal["zero", "one", "skip"]

VALUE_OF_EMPTY = {"zero": 0.0, "one": 1.0, "skip": np.nan}


class Example(NamedTuple):
    """A reference value: the value of a measure for one list, computed by hand or printed in a paper.

    Attributes:
        measure: the measure as text, for example `ndcg@3`.
        labels: the labels of the documents by rank; NaN for unlabelled ones.
        value: the exact value.
        scores: the scores of the documents, if ties matter; by default they are distinct.

    Example:
        >>> from podium.measures import NDCG, parse
        >>> example = NDCG.examples[2]
        >>> example.measure, example.labels, parse(example.measure).value(example.labels) == example.value
        ('ndcg@1', (1, 2), True)

    """

    measure: str
    labels: tuple[float, ...]
    value: float
    scores: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Measure(ABC):
    """A measure of rankings, where higher is better.

    Measures are immutable, and `parse(str(measure))` is the same measure. To add a measure, write a subclass with a
    `value` method. Models can be trained on it, with swap deltas by brute force. The decorator `register` makes its
    name known to `parse`.

    Args:
        cutoff: the number of top ranks that count; None for all ranks.
        labels: the label source.
        ties: how to rank documents with equal scores: `"expected"` takes the mean over all their orders (the default
            of measures that have a formula for it), `"canonical"` an order that only depends on their content, and
            `"stable"` the order of the rows.
        empty: the value of a query without relevant documents: `"zero"`, `"one"`, or `"skip"` for NaN, which means
            ignore.

    Example:
        >>> from podium.measures import Measure
        >>> class First(Measure):
        ...     def value(self, labels):
        ...         return float(labels[0])
        >>> First().swaps([3, 1, 4])[0].tolist()
        [0.0, -2.0, 1.0]

    """

    cutoff: int | None = None
    _: KW_ONLY
    labels: str = "relevance"
    ties: Ties | None = None
    empty: Empty = "zero"

    name: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()  # other names for `parse`
    at: ClassVar[str] = "cutoff"  # the parameter after @ in a name
    examples: ClassVar[tuple[Example, ...]] = ()  # reference values, which the tests check
    knows_expected_ties: ClassVar[bool] = False
    has_swaps: ClassVar[bool] = True
    has_cutoff: ClassVar[bool] = True
    needs_cutoff: ClassVar[bool] = False  # whether all orders have the same value without a cutoff
    knows_retrieved: ClassVar[bool] = False  # whether it is defined for relevant documents that a run did not return

    def __post_init__(self) -> None:
        if self.cutoff is not None:
            if not self.has_cutoff:
                raise DataError(f"{self._word()} measures the whole list: it does not support a cutoff")
            require_whole(f"the cutoff of {self._word()}", self.cutoff, 1)
            object.__setattr__(self, "cutoff", operator.index(self.cutoff))
        if not isinstance(self.labels, str):
            raise DataError(f"labels must be the name of a label source, but got {self.labels!r}")
        if self.ties is None:
            object.__setattr__(self, "ties", self._usual_ties())
        if self.ties not in ("expected", "canonical", "stable"):
            raise DataError(f"ties must be 'expected', 'canonical' or 'stable', but got {self.ties!r}")
        if self.ties == "expected" and not self.knows_expected_ties:
            raise DataError(f"{self._word()} does not support ties='expected': use ties='canonical'")
        if self.empty not in VALUE_OF_EMPTY:
            raise DataError(f"empty must be 'zero', 'one' or 'skip', but got {self.empty!r}")

    @classmethod
    def _word(cls) -> str:
        return cls.name or cls.__name__.lower()

    @classmethod
    def _usual_ties(cls) -> Ties:
        return "expected" if cls.knows_expected_ties else "canonical"

    def __str__(self) -> str:
        entries = []
        for field in fields(self):
            value = getattr(self, field.name)
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            if field.name == "ties":
                default = self._usual_ties()
            if field.name != "cutoff" and value != default:
                entries.append(f"{field.name}={shown(value) if isinstance(value, float) else value}")
        parameters = f"({','.join(entries)})" if entries else ""
        return self._word() + parameters + (f"@{self.cutoff}" if self.cutoff is not None else "")

    def replace(self, **changes: Any) -> Self:
        """Return the measure with some parameters changed."""
        return replace(self, **changes)

    def fixed(self, *data: RankingData) -> Self:
        """Return the measure with parameters that depend on data, such as the highest label, fixed to these data."""
        return self

    def is_defined_on(self, data: RankingData) -> bool:
        """Return whether the data has what the measure needs, a positive label."""
        return self.labels in data.labels and bool((data.labels[self.labels] > 0).any())

    def fixed_like(self, *models: Iterable[Measure | str]) -> Self:
        """Return the measure with data-dependent parameters fixed as in the measures that models were trained by."""
        return self

    def power(self, *data: RankingData) -> float:
        """Return the largest exponent x of a gain 2^x, 0 for measures without such gains."""
        return 0.0

    @abstractmethod
    def value(self, labels: Floats) -> float:
        """Return the value of one query that is not empty, from its labels by rank, as `prepared` returns them."""

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Return labels for `value`, with 0 for unlabelled documents."""
        return np.nan_to_num(np.asarray(labels, np.float64))

    def is_empty(self, labels: Floats) -> bool:
        """Return whether a query has no relevant document."""
        return not (labels > 0).any()

    def sources(self, data: RankingData) -> list[str]:
        """Return the label sources of the data that the measure uses."""
        return [self.labels]

    def labels_in(self, data: RankingData, order: Ints) -> NDArray[Any]:
        """Return the labels in an order of the rows; NaN for unlabelled documents."""
        return labels_in_order(data, self.labels, order)

    def values(self, ranking: Ranking) -> Floats:
        """Return a value for each query in the order of `data.query_ids`; NaN for skipped queries."""
        self.refuse_unretrieved(ranking, self.sources(ranking.data))
        ranking = ranking.for_ties(self.ties)
        labels = self.prepared(self.labels_in(ranking.data, ranking.order))
        offsets = ranking.data.offsets
        result = np.full(ranking.data.n_queries, VALUE_OF_EMPTY[self.empty])
        for query in range(ranking.data.n_queries):
            ranked = labels[offsets[query] : offsets[query + 1]]
            if not self.is_empty(ranked):
                result[query] = self._value_of_run(ranked, int(ranking.ranked_sizes[query]))
        return result

    def _value_of_run(self, labels: Floats, n_ranked: int) -> float:
        """Return the value of one query, of which only the first `n_ranked` documents have a rank.

        For measures without `knows_retrieved`, the others have no label (`refuse_unretrieved`) and are dropped.
        """
        return self.value(labels if self.knows_retrieved else labels[:n_ranked])

    def mean(self, ranking: Ranking) -> float:
        """Return the mean over the queries that have a value, weighted by `query_weights`, in any order."""
        return mean_of_known(self.values(ranking), weights_in_means(ranking.data))

    def sums(self, ranking: Ranking) -> Any:
        """Return the sums over the queries of a part of the data (`podium.core.merging`) for `mean_of_sums`."""
        return sums_of_known(self.values(ranking), weights_in_means(ranking.data))

    def mean_of_sums(self, sums: Any) -> float:
        """Return the mean from the merged `sums` of all parts, with the same bits as `mean`."""
        total, count = map(float, sums)
        return total / count if count else math.nan

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """Return how the value of one query changes when two documents swap ranks.

        Args:
            labels: the query's labels by rank.
            first, last: the range of rows to compute, to save memory for long queries.

        Returns:
            An array whose row i − first has Z(after) − Z(before) for ranks i < j in column j, and 0 for j ≤ i. (The
            change for (j, i) is the same.) It is 0 for a query without relevant documents.

        """
        self.refuse_without_swaps()
        labels = self.prepared(labels)
        n, rows = len(labels), zero_swaps(len(labels), first, last)
        if self.is_empty(labels):
            return rows
        before = self.value(labels)
        swapped = labels.copy()
        for i in range(first, first + len(rows)):
            for j in range(i + 1, n):
                swapped[i], swapped[j] = labels[j], labels[i]
                rows[i - first, j] = self.value(swapped) - before
                swapped[i], swapped[j] = labels[i], labels[j]
        return rows

    def lookup_tables(self, labels: NDArray[Any], offsets: Ints) -> LookupTables | None:
        """Return the lookup tables for fast computation of changes of this measure by gradients and the sweep over α.

        Args:
            labels: the labels of all documents by query, in any order within a query.
            offsets: where each query begins.

        Returns:
            The tables, or None if the measure does not belong to a family. Then `swaps` and `values` are used, which
            is slow.

        """
        return None

    def refuse_unretrieved(self, ranking: Ranking, sources: Iterable[str]) -> None:
        """Raise if a labelled document has no rank, unless the measure is defined for that."""
        if ranking.retrieved is None or ranking.retrieved.all() or self.knows_retrieved:
            return
        labels = [
            ranking.data.labels[source][~ranking.retrieved] for source in sources if source in ranking.data.labels
        ]
        if not labels or not np.isnan(labels).all():
            raise DataError(f"{self._word()} is undefined for runs that do not return all judged documents")

    def refuse_without_swaps(self) -> None:
        """Raise if the measure cannot be trained on because it is not a function of ranks."""
        if not self.has_swaps:
            raise DataError(f"{self._word()} cannot be trained on, only evaluated, because it has no swap deltas")

    def _with_empties(self, values: Floats, is_empty: Bools) -> Floats:
        return np.where(is_empty, VALUE_OF_EMPTY[self.empty], values)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures to choose candidates by: this one."""
        return (self,)

    def pick(self, means: Floats) -> int:
        """Return the index of the candidate with the best mean, the first of ties; NaN is never best."""
        return best_of(np.asarray(means, np.float64).reshape(len(means), -1)[:, 0])

    def pick_and_keep(self, means: Floats) -> tuple[int, list[int]]:
        """Return the result of `pick`, and the candidates that it may return when more are added: only the best."""
        best = self.pick(means)
        return best, [best]


def zero_swaps(n: int, first: int, last: int | None) -> Floats:
    """Return zeros for the swap deltas of the ranks from `first` to `last` (by default n) with all n ranks."""
    return np.zeros(((n if last is None else last) - first, n))


def weights_in_means(data: RankingData) -> Floats | None:
    """Return the weights of queries in means of measures; None if all are equal."""
    return None if data.query_weights is None else data.query_weights.astype(np.float64)


def sums_of_known(values: Floats, weights: Floats | None = None) -> Total:
    """Return the sum and the number of the values that are not NaN; with weights, Σ w v and Σ w."""
    has_value = ~np.isnan(values)
    if weights is not None:
        return Total((ExactSum.of((weights * values)[has_value]), ExactSum.of(weights[has_value])))
    return Total((ExactSum.of(values[has_value]), int(has_value.sum())))


def best_of(means: Floats) -> int:
    """Return the index of the highest mean, the first of ties; NaN counts as lowest."""
    best = int(means.argmax()) if len(means) else 0  # the first NaN, if there is one
    if len(means) and not math.isnan(means[best]):
        return best
    if np.isnan(means).all():
        raise DataError("cannot choose the best candidate: none has a mean")
    return int(np.nanargmax(means))


class ListSums(NamedTuple):
    """What a measure computes from data before it has scores."""

    # the value of each document by query: its gain, its bonus, or the probability that it stops the user
    values: Floats
    depth: int  # the number of ranks that count
    # `fill(values, scores, offsets, sums)` writes the sum of each query, with values and scores by rank. Beyond the
    # depth, it only reads documents that are tied with the last one above it, with expected ties
    fill: Callable[[Floats, Floats, Ints, Floats], None]
    norms: Floats  # the divisor of each query's sum
    is_empty: Bools  # whether each query has no relevant document


@dataclass(frozen=True)
class ListMeasure(Measure):
    """A measure that is a sum over the ranks of each query, computed by a kernel, divided by a norm."""

    knows_expected_ties: ClassVar[bool] = True
    knows_retrieved: ClassVar[bool] = True

    @abstractmethod
    def list_sums(self, labels: NDArray[Any], data: RankingData, sizes: Ints) -> ListSums:
        """Return what the measure computes before the documents are ranked.

        Args:
            labels: the labels of all documents by query, in any order within a query.
            data: the documents.
            sizes: the number of documents of each query that have a rank.

        """

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Return labels unchanged: the gain of a missing label is 0, but the gain of a label 0 need not be."""
        return np.asarray(labels, np.float64)

    def values(self, ranking: Ranking) -> Floats:
        ranking = ranking.for_ties(self.ties)
        data = ranking.data
        list_sums = self.list_sums(self.labels_in(data, ranking.order), data, ranking.ranked_sizes)
        values = list_sums.values if ranking.retrieved is None else list_sums.values * ranking.ranked_retrieved
        scores, sums = ranking.ranked_scores, np.empty(data.n_queries)
        for_queries(data.offsets, lambda offsets, q: list_sums.fill(values, scores, offsets, sums[q]))
        return self.values_of_sums(list_sums, sums)

    def values_of_sums(self, list_sums: ListSums, sums: Floats) -> Floats:
        """Divide the sums by the norms, and give empty queries the value of `empty`."""
        return self._with_empties(sums / list_sums.norms, list_sums.is_empty)


def without_values(values: Floats, offsets: Ints) -> Bools:
    """Return whether each query has no document with a positive value."""
    return np.asarray(np.maximum.reduceat(values, offsets[:-1]) <= 0)
