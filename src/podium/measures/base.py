"""What a measure is: a value that can be computed, differenced and named; and sums over ranked lists."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bools, Floats, Ints
from podium.core.merging import Total
from podium.core.sums import ExactSum, mean_of_known
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
    """A reference value: what a measure gives for one list, worked by hand or printed in a paper.

    Attributes:
        measure: its text, such as `ndcg@3`.
        labels: of the documents from the top; NaN for no label.
        value: the exact value.
        scores: of the documents, where ties matter; by default they fall from rank to rank.

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
    """A measure of rankings, higher is better. Immutable; `str(m)` is a name that parses back.

    A measure of your own is a subclass with a `value`. It has a name, it can be trained on (its swap deltas come by
    brute force), and with the decorator `register` its name parses.

    Args:
        cutoff: ranks below it do not count; None for all ranks.
        labels: the label source.
        ties: how documents with equal scores count: `"expected"`, the mean over all their orders, the default of
            measures that have a formula for it; `"canonical"`, in an order that depends on their content alone; or
            `"stable"`, in the order of the data's rows.
        empty: what a query without relevant documents gets: `"zero"`, `"one"`, or `"skip"`, that is NaN, left
            out of means.

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
    aliases: ClassVar[tuple[str, ...]] = ()  # other names that parse
    at: ClassVar[str] = "cutoff"  # the parameter that a name gives after @
    examples: ClassVar[tuple[Example, ...]] = ()  # reference values, run by the tests
    knows_expected_ties: ClassVar[bool] = False
    has_swaps: ClassVar[bool] = True
    has_cutoff: ClassVar[bool] = True
    needs_cutoff: ClassVar[bool] = False  # whether without a cutoff every order has the same value
    knows_retrieved: ClassVar[bool] = False  # whether relevant documents that a run did not return make sense to it

    def __post_init__(self) -> None:
        if self.cutoff is not None and not self.has_cutoff:
            raise DataError(f"{self._word()} looks at the whole list; it has no cutoff")
        if self.cutoff is not None and not isinstance(self.cutoff, bool):
            with suppress(TypeError):
                object.__setattr__(self, "cutoff", operator.index(self.cutoff))
        if self.cutoff is not None and (
            isinstance(self.cutoff, bool) or not isinstance(self.cutoff, int) or not 1 <= self.cutoff < 2**31
        ):
            raise DataError(f"the cutoff of {self._word()} must be a whole number from 1 on, not {self.cutoff!r}")
        if not isinstance(self.labels, str):
            raise DataError(f"labels names a label source, not {self.labels!r}")
        if self.ties is None:
            object.__setattr__(self, "ties", self._usual_ties())
        if self.ties not in ("expected", "canonical", "stable"):
            raise DataError(f"ties must be 'expected', 'canonical' or 'stable', not {self.ties!r}")
        if self.ties == "expected" and not self.knows_expected_ties:
            raise DataError(f"{self._word()} has no expectation over ties; use ties='canonical'")
        if self.empty not in VALUE_OF_EMPTY:
            raise DataError(f"empty must be 'zero', 'one' or 'skip', not {self.empty!r}")

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
        """The measure with some parameters changed."""
        return replace(self, **changes)

    def fixed(self, *data: RankingData) -> Self:
        """The measure with what it takes from data fixed, so that other data is measured alike."""
        return self

    def is_defined_on(self, data: RankingData) -> bool:
        """Whether the data has what is measured: a label above 0."""
        return self.labels in data.labels and bool((data.labels[self.labels] > 0).any())

    def fixed_like(self, *models: Iterable[Measure | str]) -> Self:
        """The measure with what it takes from data as in the measures that models were trained by."""
        return self

    def power(self, *data: RankingData) -> float:
        """The largest x of all gains 2^x, 0 for measures without such."""
        return 0.0

    @abstractmethod
    def value(self, labels: Floats) -> float:
        """The value of one query that is not empty, from its labels in rank order, as `prepared` gives them."""

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Labels as `value` takes them: a document without one counts as 0."""
        return np.nan_to_num(np.asarray(labels, np.float64))

    def is_empty(self, labels: Floats) -> bool:
        """Whether a query has no relevant document."""
        return not (labels > 0).any()

    def sources(self, data: RankingData) -> list[str]:
        """The label sources of the data that the measure looks at."""
        return [self.labels]

    def labels_in(self, data: RankingData, order: Ints) -> NDArray[Any]:
        """The labels that are measured, in an order of the rows; NaN where there is none."""
        return labels_in_order(data, self.labels, order)

    def values(self, ranking: Ranking) -> Floats:
        """One value for each query, in the order of `data.query_ids`; NaN where a query is skipped."""
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
        """The value of one query. Measures that know them see which documents at the end have no rank.

        For others these have no label (`refuse_unretrieved`), and are left out.
        """
        return self.value(labels if self.knows_retrieved else labels[:n_ranked])

    def mean(self, ranking: Ranking) -> float:
        """The mean over the queries that have a value, weighted by `query_weights`; the same in any order of them."""
        return mean_of_known(self.values(ranking), weights_in_means(ranking.data))

    def sums(self, ranking: Ranking) -> Any:
        """Sums over the queries of a part of the data (`podium.core.merging`) from which the mean of all follows."""
        return sums_of_known(self.values(ranking), weights_in_means(ranking.data))

    def mean_of_sums(self, sums: Any) -> float:
        """The mean, from the `sums` of all parts together; the same bits as `mean`."""
        total, count = map(float, sums)
        return total / count if count else math.nan

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> Floats:
        """How the value of one query changes when two documents swap ranks, all others staying.

        Args:
            labels: the query's labels in rank order.
            first, last: the rows to compute, so that a long query need not be held at once.

        Returns:
            Row i − first holds Z(after) − Z(before) for ranks i < j in column j, and 0 for j ≤ i. (It is
            the same for (j, i).) A query without relevant documents has zeros.

        """
        self.refuse_without_swaps()
        labels = self.prepared(labels)
        n = len(labels)
        last = n if last is None else last
        rows = np.zeros((last - first, n))
        if self.is_empty(labels):
            return rows
        before = self.value(labels)
        swapped = labels.copy()
        for i in range(first, last):
            for j in range(i + 1, n):
                swapped[i], swapped[j] = labels[j], labels[i]
                rows[i - first, j] = self.value(swapped) - before
                swapped[i], swapped[j] = labels[i], labels[j]
        return rows

    def lookup_tables(self, labels: NDArray[Any], offsets: Ints) -> LookupTables | None:
        """The lookup tables by which gradients and the sweep over α compute changes of this measure fast.

        Args:
            labels: of all documents, query after query, in any order within a query.
            offsets: where each query begins.

        Returns:
            None where the measure belongs to no family: then `swaps` and `values` are called instead, which is slow.

        """
        return None

    def refuse_unretrieved(self, ranking: Ranking, sources: Iterable[str]) -> None:
        """Raise if a document with a label has no rank, unless the measure says what it is worth."""
        if ranking.retrieved is None or ranking.retrieved.all() or self.knows_retrieved:
            return
        labels = [
            ranking.data.labels[source][~ranking.retrieved] for source in sources if source in ranking.data.labels
        ]
        if not labels or not all(np.isnan(of_source).all() for of_source in labels):
            raise DataError(f"{self._word()} is not defined for runs that did not return all judged documents")

    def refuse_without_swaps(self) -> None:
        """Raise if the measure is not a function of ranks, and so cannot be trained on."""
        if not self.has_swaps:
            raise DataError(f"{self._word()} has no swap deltas: it cannot be trained on, only evaluated")

    def _with_empties(self, values: Floats, is_empty: Bools) -> Floats:
        return np.where(is_empty, VALUE_OF_EMPTY[self.empty], values)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that take part in a choice: this one."""
        return (self,)

    def pick(self, means: Floats) -> int:
        """The candidate (row) with the best mean; of equal ones the first. NaN is never best."""
        return best_of(np.asarray(means, np.float64).reshape(len(means), -1)[:, 0])

    def pick_and_keep(self, means: Floats) -> tuple[int, list[int]]:
        """What `pick` says, and the candidates, ascending, that it may still say when others come: that one alone."""
        best = self.pick(means)
        return best, [best]


def weights_in_means(data: RankingData) -> Floats | None:
    """The weights of queries in means of measures; None if all count alike."""
    return None if data.query_weights is None else data.query_weights.astype(np.float64)


def sums_of_known(values: Floats, weights: Floats | None = None) -> Total:
    """The sum and the number of the values that are not NaN; with weights Σ w v and Σ w."""
    known = ~np.isnan(values)
    if weights is not None:
        return Total((ExactSum.of((weights * values)[known]), ExactSum.of(weights[known])))
    return Total((ExactSum.of(values[known]), int(known.sum())))


def best_of(means: Floats) -> int:
    """The index of the highest mean, the first of equal ones; NaN counts as lowest."""
    best = int(means.argmax()) if len(means) else 0  # the first NaN, if there is one
    if len(means) and not math.isnan(means[best]):
        return best
    if np.isnan(means).all():
        raise DataError("there is no candidate with a mean to choose")
    return int(np.nanargmax(means))


class ListSums(NamedTuple):
    """What a measure knows of some data before it is ranked."""

    # for each document, query after query: its gain, its bonus, or the probability that it stops the user
    values: Floats
    depth: int  # the ranks that count
    # `fill(values, scores, offsets, sums)` writes the sum of each query, with values and scores by rank. Beyond the
    # depth it looks only at documents that are tied with the last one above it, if ties are expected
    fill: Callable[[Floats, Floats, Ints, Floats], None]
    norms: Floats  # what the sum of each query is divided by
    is_empty: Bools  # whether a query has no relevant document


@dataclass(frozen=True)
class ListMeasure(Measure):
    """A sum over the ranks of each query, in compiled code, divided by a norm."""

    knows_expected_ties: ClassVar[bool] = True
    knows_retrieved: ClassVar[bool] = True

    @abstractmethod
    def list_sums(self, labels: NDArray[Any], data: RankingData, sizes: Ints) -> ListSums:
        """What is known before the documents are ranked.

        Args:
            labels: of all documents, query after query, in any order within a query.
            data: the documents.
            sizes: how many documents of each query have a rank.

        """

    def prepared(self, labels: NDArray[Any]) -> Floats:
        """Return labels as they are: the gain of a missing label is 0, which that of a label 0 need not be."""
        return np.asarray(labels, np.float64)

    def values(self, ranking: Ranking) -> Floats:
        ranking = ranking.for_ties(self.ties)
        known = self.list_sums(self.labels_in(ranking.data, ranking.order), ranking.data, ranking.ranked_sizes)
        values = known.values if ranking.retrieved is None else known.values * ranking.ranked_retrieved
        scores, sums = ranking.ranked_scores, np.empty(ranking.data.n_queries)
        for_queries(ranking.data.offsets, lambda offsets, q: known.fill(values, scores, offsets, sums[q]))
        return self.values_of_sums(known, sums)

    def values_of_sums(self, known: ListSums, sums: Floats) -> Floats:
        """Divide by the norms; an empty query has the value that `empty` says."""
        return self._with_empties(sums / known.norms, known.is_empty)


def without_values(values: Floats, offsets: Ints) -> Bools:
    """Whether a query has no document with a value above 0."""
    if len(offsets) < 2:
        return np.empty(0, bool)
    is_empty: Bools = np.maximum.reduceat(values, offsets[:-1]) <= 0
    return is_empty
