"""What a measure is: a value that can be computed, differenced and named."""

from __future__ import annotations

import operator
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.core.sums import mean
from podium.core.validation import did_you_mean
from podium.errors import DataError, PodiumWarning
from podium.measures.gains import LARGEST_USUAL_POWER, Gain, shown

if TYPE_CHECKING:
    from podium.data import RankingData
    from podium.measures.ranking import Ranking

Ties = Literal["stable", "expected"]
Empty = Literal["zero", "one", "skip"]

_OF_EMPTY = {"zero": 0.0, "one": 1.0, "skip": np.nan}


@dataclass(frozen=True)
class Measure(ABC):
    """A measure of rankings, higher is better. Immutable; `str(m)` is a name that parses back.

    A measure of one's own is a subclass with a `value`; it then has a name, trains (its swap deltas
    come by brute force) and, decorated with `register`, parses.

    Args:
        cutoff: ranks below it do not count; None for the whole list.
        labels: the label source.
        ties: how documents with equal scores stand: `"stable"`, in the order of the data's rows, or
            `"expected"`, the mean over all orders of them.
        empty: what a query without relevant documents gets: `"zero"`, `"one"`, or `"skip"`, that is NaN, left
            out of means.

    """

    cutoff: int | None = None
    _: KW_ONLY
    labels: str = "relevance"
    ties: Ties = "stable"
    empty: Empty = "zero"

    name: ClassVar[str] = ""
    knows_expected_ties: ClassVar[bool] = False
    has_swaps: ClassVar[bool] = True
    lives_by_cutoff: ClassVar[bool] = False  # whether without a cutoff every order is as good
    knows_retrieved: ClassVar[bool] = False  # whether relevant documents that a run did not return make sense to it

    def __post_init__(self) -> None:
        if self.cutoff is not None and not isinstance(self.cutoff, bool):
            with suppress(TypeError):
                object.__setattr__(self, "cutoff", operator.index(self.cutoff))
        if self.cutoff is not None and (
            isinstance(self.cutoff, bool) or not isinstance(self.cutoff, int) or not 1 <= self.cutoff < 2**31
        ):
            raise DataError(f"the cutoff of {self._word()} must be a whole number from 1 on, not {self.cutoff!r}")
        if not isinstance(self.labels, str):
            raise DataError(f"labels names a label source, not {self.labels!r}")
        if self.ties not in ("stable", "expected"):
            raise DataError(f"ties must be 'stable' or 'expected', not {self.ties!r}")
        if self.ties == "expected" and not self.knows_expected_ties:
            raise DataError(f"{self._word()} has no expectation over ties; use ties='stable'")
        if self.empty not in _OF_EMPTY:
            raise DataError(f"empty must be 'zero', 'one' or 'skip', not {self.empty!r}")

    @classmethod
    def _word(cls) -> str:
        return cls.name or cls.__name__.lower()

    def __str__(self) -> str:
        entries = []
        for field in fields(self):
            value = getattr(self, field.name)
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            if field.name != "cutoff" and value != default:
                entries.append(f"{field.name}={shown(value) if isinstance(value, float) else value}")
        parameters = f"({','.join(entries)})" if entries else ""
        return self._word() + parameters + (f"@{self.cutoff}" if self.cutoff is not None else "")

    def replace(self, **changes: Any) -> Self:
        """The measure with some parameters changed."""
        return replace(self, **changes)

    def fixed(self, *data: RankingData) -> Self:
        """The measure with whatever it takes from the data fixed, so that other data is measured alike."""
        return self

    def is_defined_on(self, data: RankingData) -> bool:
        """Whether the data has what is measured: a label above 0."""
        return self.labels in data.labels and bool((data.labels[self.labels] > 0).any())

    def fixed_like(self, *models: Iterable[Measure | str]) -> Self:
        """The measure with whatever it takes from data as in the measures that models were trained by."""
        return self

    def power(self, *data: RankingData) -> float:
        """The largest x of all gains 2^x, 0 for measures without such."""
        return 0.0

    @abstractmethod
    def value(self, labels: NDArray[np.float64]) -> float:
        """The value of one query that is not empty, from its labels in rank order (0 for no label)."""

    def prepared(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Labels as `value` takes them: a document without one counts as 0."""
        return np.nan_to_num(np.asarray(labels, np.float64))

    def is_empty(self, labels: NDArray[np.float64]) -> bool:
        """Whether a query has no relevant document."""
        return not (labels > 0).any()

    def values(self, ranking: Ranking) -> NDArray[np.float64]:
        """One value for each query, in the order of `data.query_ids`; NaN where a query is skipped."""
        self.refuse_unretrieved(ranking)
        labels = self.prepared(ranking.labels(self.labels))
        offsets = ranking.data.offsets
        result = np.full(ranking.data.n_queries, _OF_EMPTY[self.empty])
        for query in range(ranking.data.n_queries):
            mine = labels[offsets[query] : offsets[query + 1]]
            if not self.is_empty(mine):
                result[query] = self.value(mine)
        return result

    def mean(self, ranking: Ranking) -> float:
        """The mean over the queries that have a value, the same in any order of them."""
        values = self.values(ranking)
        return mean(values[~np.isnan(values)])

    def swaps(self, labels: NDArray[Any], first: int = 0, last: int | None = None) -> NDArray[np.float64]:
        """How the value of one query changes when two documents swap ranks, all others staying.

        Args:
            labels: the query's labels in rank order.
            first, last: the rows wanted, so that a long query need not be held at once.

        Returns:
            Row i − first holds Z(after) − Z(before) for ranks i < j in column j, and 0 for j ≤ i. (It is
            the same for (j, i).) A query without relevant documents has zeros.

        """
        self._refuse_without_swaps()
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

    def refuse_unretrieved(self, ranking: Ranking) -> None:
        """A measure of ranked lists alone cannot say what a document is worth that has no rank."""
        if ranking.retrieved is not None and not ranking.retrieved.all() and not self.knows_retrieved:
            raise DataError(f"{self._word()} is not defined for runs that did not return all judged documents")

    def _refuse_without_swaps(self) -> None:
        if not self.has_swaps:
            raise DataError(f"{self._word()} has no swap deltas: it cannot be trained on, only evaluated")

    def _with_empties(self, values: NDArray[np.float64], is_empty: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.where(is_empty, _OF_EMPTY[self.empty], values)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that take part in a choice: this one."""
        return (self,)

    def pick(self, means: NDArray[np.float64]) -> int:
        """The candidate (row) with the best mean; of equal ones the first. NaN is never best."""
        return best_of(np.asarray(means, np.float64).reshape(len(means), -1)[:, 0])


def best_of(means: NDArray[np.float64]) -> int:
    """The place of the highest mean, the first of equal ones; NaN counts as lowest."""
    if len(means) == 0 or np.isnan(means).all():
        raise DataError("there is no candidate with a mean to choose")
    return int(np.nanargmax(means))


POWER_WARNING = "the highest label has the gain 2^"  # what a warning begins with
_REGISTRY: dict[str, type[Measure]] = {}
_ALIASES = {"map": "ap", "mrr": "rr", "p": "precision"}
_NAME = re.compile(r"(?P<name>[a-z_][\w]*)(\((?P<parameters>[^()]*)\))?(@(?P<cutoff>\d+))?", re.IGNORECASE)
MeasureType = TypeVar("MeasureType", bound=type[Measure])


def register(cls: MeasureType) -> MeasureType:
    """Make a measure known by its name."""
    _REGISTRY[cls._word()] = cls
    return cls


def registered() -> dict[str, type[Measure]]:
    """All measures that are known by name."""
    import podium.measures  # noqa: F401  the built-in ones register when they are imported

    return dict(_REGISTRY)


def parse(text: str) -> Measure:
    """A measure from its name, such as `ndcg@10` or `ndcg(gain=linear,empty=skip)@10`."""
    match = _NAME.fullmatch(text.strip())
    known = registered()
    if match is None:
        raise DataError(f"{text!r} is no measure; expected a name such as ndcg@10 or ap(labels=clicks)")
    word = match["name"].lower()
    cls = known.get(_ALIASES.get(word, word))
    if cls is None:
        near = did_you_mean(word, [*known, *_ALIASES])
        raise DataError(f"there is no measure {match['name']!r}{near}; there are {', '.join(sorted(known))}")
    names = {field.name for field in fields(cls)} - {"cutoff"}
    parameters: dict[str, Any] = {}
    for entry in filter(None, (match["parameters"] or "").split(",")):
        key, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or key not in names:
            near = did_you_mean(key, names)
            raise DataError(f"{text!r}: {cls._word()} takes {', '.join(sorted(names))}, not {entry.strip()!r}{near}")
        parameters[key] = _value(value)
    if match["cutoff"] is not None:
        parameters["cutoff"] = _value(match["cutoff"])
    return cls(**parameters)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def as_measure(value: Measure | str) -> Measure:
    """A measure, given as such or by name."""
    if isinstance(value, Measure):
        return value
    if isinstance(value, str):
        return parse(value)
    raise DataError(f"a measure is given by name or as an object such as NDCG(10), not {value!r}")


def highest_label(source: str, *data: RankingData) -> float:
    """The highest label of a source in some data; 0 where there is none."""
    return max((float(np.fmax.reduce(d.labels[source], initial=0.0)) for d in data if source in d.labels), default=0.0)


def warn_of_powers(measures: Iterable[Measure], *data: RankingData, stacklevel: int = 3) -> bool:
    """Say once where the gain 2^label of a label leaves nothing of the others; returns whether it does."""
    for measure in measures:
        if LARGEST_USUAL_POWER < (power := measure.power(*data)) < 1024:  # from there on 2^label is an error
            warnings.warn(
                f"{POWER_WARNING}{power:g} in {measure}, beside which all others vanish: "
                "use gain=linear, as in ndcg(gain=linear)@10, or gain=table:G0/G1/… with a gain for each label",
                PodiumWarning, stacklevel=stacklevel,
            )  # fmt: skip
            return True
    return False


def to_gain(measure: Measure, gain: Gain | str) -> None:
    """Let a frozen measure's gain be given as text."""
    object.__setattr__(measure, "gain", Gain.of(gain))
