"""`ClickLog`: the documents that were shown and clicked, as arrays in the order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from podium.core.array_types import Bools, Floats, Int32s, Ints
from podium.data.frames import is_frame
from podium.errors import DataError

if TYPE_CHECKING:
    import os

    from podium.clicks.checking import Finding
    from podium.clicks.labels import ClickLabels
    from podium.data.columns import PreferencePairs
    from podium.data.ranking_data import RankingData

MODEL_SCORE = "model_score"  # the score that the service logs with each document, which is not a feature


class Events(NamedTuple):
    """Events other than impressions and clicks, such as purchases, in the order of time.

    Attributes:
        times: microseconds since the epoch.
        kind: the codes of the events' types, into `kinds`.
        query, document, user, session: codes as in the log, −1 for unknown.
        kinds: the types of events.

    """

    times: Ints
    kind: Int32s
    query: Int32s
    document: Int32s
    user: Int32s
    session: Int32s
    kinds: tuple[str, ...]

    @classmethod
    def none(cls) -> Events:
        """Return an empty table."""
        empty = np.empty(0, np.int32)
        return cls(np.empty(0, np.int64), empty, empty, empty, empty, empty, ())


class FieldValues(NamedTuple):
    """The values of a field of documents, such as the brand; each is valid until the next one.

    Attributes:
        times: microseconds since the epoch, ascending.
        document: codes as in the log.
        value: codes into `values`; −1 if the value became unknown.
        values: the texts.

    """

    times: Ints
    document: Int32s
    value: Int32s
    values: tuple[str, ...]


@dataclass
class ReadingNotes:
    """Facts about the source of a log that its arrays no longer show, for the report of `ClickLog.check`.

    Attributes:
        time_units: how often times had each unit.
        first_positions: how often positions counted from 0 and from 1.
        problems: the count of each kind of problem, with the place of the first.

    """

    time_units: Counter[str] = field(default_factory=Counter)
    first_positions: Counter[int] = field(default_factory=Counter)
    problems: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, problem: str, place: str, count: int = 1) -> None:
        """Count a problem, keeping the place of the first."""
        before, first = self.problems.get(problem, (0, place))
        self.problems[problem] = (before + count, first)


@dataclass(frozen=True, eq=False, repr=False)
class ClickLog:
    """Rankings as they were shown, with clicks; immutable. Use `read`, `from_frame` or `from_arrays` to create one.

    A row is a document that was shown. An impression is a ranking that was shown once. Rows are sorted by the time of
    the impression, then by impression, then by position. A code is an index into a sorted list of names, so it does not
    depend on the order of the input.

    Attributes:
        starts: the rows of impression k are `starts[k]:starts[k + 1]`.
        times: the time of each impression in microseconds since the epoch; all 0 in a log without times.
        query, user, session: the codes of each impression; −1 for unknown users and sessions.
        document, position, clicked: the values of each row; positions count from 1.
        click_order: 1 for the first click of the impression, 2 for the next, 0 for rows without a click. Repeated
            clicks on a document count once.
        click_time: the time of the click in microseconds since the epoch, 0 without a click. An unknown time is that
            of the impression.
        dwell: the seconds that the user spent on the document, NaN if unknown.
        pairs: the code of each row's (query, document) pair.
        pair_queries, pair_documents: the query and the document of each pair.
        queries, documents, users, sessions: the names.
        events: other events, such as purchases.
        fields: fields of documents by name, as `FieldValues`.
        shown: numbers that were logged with each shown document, such as features and scores, by name.
        notes: facts about the source of the log.

    Example:
        >>> from podium.clicks import ClickLog
        >>> log = ClickLog.from_arrays(
        ...     time=[10, 10, 20, 20], query=["tea", "tea", "tea", "tea"], document=["a", "b", "a", "b"],
        ...     position=[1, 2, 2, 1], clicked=[True, False, False, True],
        ... )
        >>> log
        ClickLog(2 impressions of 1 query, 4 shown documents, 2 clicks)
        >>> [log.documents[d] for d in log.document]
        ['a', 'b', 'b', 'a']

    """

    starts: Ints
    times: Ints
    query: Int32s
    user: Int32s
    session: Int32s
    document: Int32s
    position: Int32s
    clicked: Bools
    click_order: Int32s
    click_time: Ints
    dwell: Floats
    pairs: Int32s
    pair_queries: Int32s
    pair_documents: Int32s
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    users: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    events: Events = field(default_factory=Events.none)
    fields: Mapping[str, FieldValues] = field(default_factory=dict)
    shown: Mapping[str, Floats] = field(default_factory=dict)
    notes: ReadingNotes = field(default_factory=ReadingNotes)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            elif isinstance(value, dict):
                object.__setattr__(self, name, MappingProxyType(value))

    def __len__(self) -> int:
        return len(self.document)

    def __repr__(self) -> str:
        n, m = self.n_impressions, len(np.unique(self.query))
        return (
            f"ClickLog({n:,} impression{'' if n == 1 else 's'} of {m:,} quer{'y' if m == 1 else 'ies'}, "
            f"{len(self):,} shown documents, {int(self.clicked.sum()):,} clicks)"
        )

    @property
    def n_impressions(self) -> int:
        """The number of rankings that were shown."""
        return len(self.times)

    @property
    def has_times(self) -> bool:
        """Whether impressions have times."""
        return bool(self.times.any())

    @cached_property
    def impression(self) -> Ints:
        """The impression of each row."""
        return np.repeat(np.arange(self.n_impressions), np.diff(self.starts))

    @classmethod
    def read(
        cls, path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Any, format: str = "flat",  # noqa: A002
        **options: Any,
    ) -> ClickLog:  # fmt: skip
        """Read a log from JSONL, CSV, TSV or Parquet files, compressed or not, or from a frame.

        Args:
            path: one or several files, a frame, an iterable of dictionaries, or a DuckDB relation, which is read part
                by part.
            format: `"metarank"` (its events), `"ubi"` (OpenSearch's User Behavior Insights) or `"flat"` (a table with
                a row for each shown document).
            options: `time_unit` (s, ms, us or ns; by default determined by the size of each number), `positions_from`
                (0 or 1; by default 0 if position 0 occurs), for `"flat"` the names of columns as in `from_frame`, for
                `"metarank"` `query_field` (by default `"query"`), and for `"ubi"` `clicks`, the names of events that
                are clicks.

        """
        from podium.clicks.log_formats import read_log

        return read_log(path, format, options)

    @classmethod
    def from_frame(
        cls, frame: Any, *, time_unit: str | None = None, positions_from: int | None = None, **columns: str
    ) -> ClickLog:
        """Return the log of a frame (pandas, polars, pyarrow) with a row for each shown document.

        A DuckDB relation, or another stream of Arrow data, is read part by part and may be larger than memory.

        Args:
            frame: columns named `query`, `document`, `position`, `clicked`, and optionally `time`, `impression`,
                `user`, `session`, `dwell` (seconds), `click_time`, `click_order`; other columns are ignored.
            columns: other names of these columns, for example `query="search_text"`.
            time_unit: the unit of numeric times: s, ms, us or ns.
            positions_from: whether positions count from 0 or 1.

        """
        from podium.clicks.log_formats import is_stream, read_log

        if not is_frame(frame) and not is_stream(frame):
            raise DataError(f"frame must be a data frame, but got {type(frame).__name__}; use from_arrays for columns")
        return read_log(frame, "flat", {**columns, "time_unit": time_unit, "positions_from": positions_from})

    @classmethod
    def from_arrays(
        cls, *, query: ArrayLike, document: ArrayLike, position: ArrayLike, clicked: ArrayLike,
        time: ArrayLike | None = None, impression: ArrayLike | None = None, user: ArrayLike | None = None,
        session: ArrayLike | None = None, dwell: ArrayLike | None = None, click_time: ArrayLike | None = None,
        click_order: ArrayLike | None = None, time_unit: str | None = None, positions_from: int | None = None,
        place: Callable[[int], str] = lambda row: f"row {row}",
    ) -> ClickLog:  # fmt: skip
        """Return the log of columns with an entry for each shown document, in any order.

        Args:
            query, document, position, clicked: the values of each row.
            time: the time of the impression: numbers since the epoch, ISO text or datetimes.
            impression: identifies the rows that were shown together; by default those with the same time, query, user
                and session.
            user, session: names or numbers.
            dwell: the seconds spent on a clicked document.
            click_time: when the document was clicked.
            click_order: 1 for the first click of the impression, 2 for the next, instead of `click_time`.
            time_unit: the unit of numeric times: s, ms, us or ns; by default determined by the size of each number.
            positions_from: whether positions count from 0 or 1; by default 0 if position 0 occurs.
            place: returns the name of a row for messages.

        """
        from podium.clicks.assembling import log_of_columns

        rows = {
            "query": query, "document": document, "position": position, "clicked": clicked, "time": time,
            "impression": impression, "user": user, "session": session, "dwell": dwell, "click_time": click_time,
            "click_order": click_order,
        }  # fmt: skip
        return log_of_columns(rows, time_unit, positions_from, place)

    def select(self, impressions: ArrayLike) -> ClickLog:
        """Return the log of some impressions, given by a mask or by numbers; codes and other events are unchanged.

        Example:
            `log.select(log.times < cut)` and `log.select(log.times >= cut)` split a log by time.

        """
        numbers = np.asarray(impressions)
        if numbers.dtype == np.bool_:
            if len(numbers) != self.n_impressions:
                raise DataError(f"the mask has {len(numbers)} entries, but there are {self.n_impressions} impressions")
            numbers = np.flatnonzero(numbers)
        numbers = np.unique(numbers.astype(np.int64))
        wrong = numbers[(numbers < 0) | (numbers >= self.n_impressions)]
        if len(wrong):
            raise DataError(f"impressions are numbered 0 to {self.n_impressions - 1}, but got {wrong[0]}")
        keep = np.zeros(self.n_impressions, np.bool_)
        keep[numbers] = True
        rows = keep[self.impression]
        by_row = ("document", "position", "clicked", "click_order", "click_time", "dwell", "pairs")
        by_impression = ("times", "query", "user", "session")
        return replace(
            self, starts=np.concatenate([[0], np.cumsum(np.diff(self.starts)[keep])]),
            **{name: getattr(self, name)[rows] for name in by_row},
            **{name: getattr(self, name)[keep] for name in by_impression},
            shown={name: values[rows] for name, values in self.shown.items()},
        )  # fmt: skip

    def check(
        self, features: RankingData | Mapping[str, ArrayLike] | None = None, *, clicks_per_minute: int = 100
    ) -> tuple[Finding, ...]:
        """Return likely mistakes in the log, which may be none.

        Mistakes are mixed time units, positions that count from 0, clicks on documents that were not shown, repeated
        impressions, gaps, bots, and features that use the future.

        Args:
            features: columns with a value for each row. A finding names those that contain clicks of the future.
            clicks_per_minute: users with more clicks within a minute count as bots.

        """
        from podium.clicks.checking import check
        from podium.data.ranking_data import RankingData

        if isinstance(features, RankingData):
            names = features.feature_names or [f"feature {k}" for k in range(features.n_features)]
            features = {name: features.feature(k) for k, name in enumerate(names)}
        return check(self, features, clicks_per_minute)

    def labels(
        self, kind: str = "ctr", *, min_impressions: int = 5, smoothing: float = 0.0, confidence: float = 0.95,
        queries: str | Callable[[str], Iterable[str]] = "equal", dwell_grades: Sequence[float] = (10.0, 30.0),
    ) -> ClickLabels:  # fmt: skip
        """Return a label for each (query, document) pair.

        Args:
            kind: `"ctr"` (clicks per impression), `"last_click"` (last clicks of an impression per impression),
                `"coec"` (clicks over the clicks expected at the positions where the document was shown), `"dwell"`
                (the mean grade of dwell times; a row without a click has grade 0), or `"skip_above"` (the share of its
                preferences that a document wins: a clicked document is preferred to unclicked documents above it).
            min_impressions: pairs with fewer impressions get the label NaN.
            smoothing: the number of impressions at the overall rate to add to each pair; for `"coec"`, the number of
                expected clicks.
            confidence: the confidence of the interval.
            queries: which queries to count together: `"equal"` ones; `"similar"` ones, which have the same lower-case
                words in any order; or those for which this function returns the same terms.
            dwell_grades: the seconds from which a click has grade 2, 3, …; shorter clicks have grade 1. A click of 30
                seconds usually counts as satisfied (Fox et al. 2005).

        """
        from podium.clicks.labels import labels

        return labels(
            self, kind, min_impressions=min_impressions, smoothing=smoothing, confidence=confidence, queries=queries,
            dwell_grades=dwell_grades,
        )  # fmt: skip

    def preferences(self) -> PreferencePairs:
        """Return the pairs of rows (i, j) where i was clicked, and j, above it in the same impression, was not.

        Pass them as `preferences` to `RankingData`.
        """
        from podium.clicks.labels import preferences

        return preferences(self)

    def features(self, features: Sequence[str], *, limit: int = 1_000_000) -> RankingData:
        """Return features of each row, computed from earlier events by replaying the log in the order of time.

        Args:
            features: texts such as `rate(click, by=document)`, see `podium.clicks.Replay`, or names of numbers that
                were logged with the documents (`shown`).
            limit: the maximum number of keys of each scope.

        Returns:
            Data without labels, with a row for each shown document and a query for each impression.

        """
        from podium.clicks.replay import Replay

        texts = features if isinstance(features, str) else [text for text in features if text not in self.shown]
        columns, names = dict(self.shown), list(features)
        if texts or not names:
            replay = Replay(texts, limit=limit)
            columns |= zip(replay.names, replay.replay(self).T, strict=True)
            spelt = dict(zip(texts, replay.names, strict=True))
            names = [spelt.get(name, name) for name in names]
        return self._data(np.stack([columns[name] for name in names], axis=1), tuple(names))

    def ranking_data(
        self, features: Any = None, labels: str | Sequence[str] = "clicked", *, relevance: ArrayLike | None = None,
        preferences: bool = False, **options: Any,
    ) -> RankingData:  # fmt: skip
        """Return training data with a row for each shown document and a query for each impression.

        Args:
            features: the result of `features`, texts for it, an array with a row for each row of the log, or None for
                the numbers that were logged with the documents (`shown`), except the score of the model that was
                served (`model_score`).
            labels: one or several of `"clicked"` and the kinds of `labels`. Each becomes a label source of that name.
            relevance: the main labels, such as human grades; by default the first of `labels`.
            preferences: whether to add the pairs of `preferences`.
            options: options of `labels`, such as `min_impressions`.

        """
        from podium.data.ranking_data import RankingData

        names = [labels] if isinstance(labels, str) else list(labels)
        sources = {name: self.clicked if name == "clicked" else self.labels(name, **options).of_rows for name in names}
        if features is None:
            columns = {name: values for name, values in self.shown.items() if name != MODEL_SCORE}
            if not columns:
                raise DataError(
                    "no numbers were logged with the documents: pass features, for example log.features([…])"
                )
            data = self._data(np.stack(list(columns.values()), axis=1), tuple(columns))
        elif isinstance(features, RankingData):
            data = features
        elif isinstance(features, list | tuple) and all(isinstance(text, str) for text in features):
            data = self.features(features)
        else:
            data = self._data(features, None)
        if len(data) != len(self):
            raise DataError(f"features must have a row for each of the log's {len(self)} rows, but have {len(data)}")
        main = next(iter(sources.values()), None) if relevance is None else relevance
        pairs = {"preferences": self.preferences()} if preferences else {}
        return data.replace(relevance=main, labels=sources, **pairs)

    def _data(self, values: Any, names: tuple[str, ...] | None) -> RankingData:
        from podium.data.ranking_data import RankingData

        return RankingData(
            values, qid=self.impression, positions=self.position, feature_names=names,
            document_ids=np.array(self.documents, object)[self.document],
        )  # fmt: skip
