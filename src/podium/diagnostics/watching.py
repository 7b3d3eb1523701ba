"""The base class of observers of training, and of their results: numbers by iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.errors import DataError
from podium.evaluation.tables import ShownAsTable, Table
from podium.measures.ranking import labels_in_order
from podium.objectives import Objective

SHOWN_ROWS = 20  # rows of a table in the terminal; `table()` has all
MAX_LABELS = 20  # distinct labels to compute shares for


class TrainingRound(Protocol):
    """The argument of observers: a `podium.boosting.Round`, `neural.Epoch` or `linear.LinearStep`.

    Example:
        >>> import podium
        >>> data, watch = podium.artificial(10, features=3), lambda round: {"highest": round.document_scores.max()}
        >>> len(podium.LambdaMART(n_trees=2).fit(data, observers=[watch]).history_["highest"])
        2

    """

    @property
    def iteration(self) -> int:
        """The number of the round, from 0."""

    @property
    def data(self) -> RankingData:
        """The training documents."""

    @property
    def objective(self) -> Objective | None:
        """The objective of training."""

    @property
    def document_scores(self) -> Floats:
        """The score that ranks each training document, by row."""

    @property
    def means(self) -> dict[str, float]:
        """The means of the measures by `set/measure`."""


@dataclass(frozen=True, eq=False)
class ByIteration(ShownAsTable, ABC):
    """Numbers by iteration.

    Attributes:
        iterations: the observed iterations, from 0.

    """

    iterations: Ints

    chart: ClassVar[str]  # the name of the chart in `podium.core.plotting`

    @abstractmethod
    def columns(self) -> dict[str, Floats]:
        """Return the numbers by name, one for each iteration; NaN if there is none."""

    def plot(self) -> Any:
        """Return a chart (extra `report`)."""
        return draw(self.chart, self)

    def table(self) -> Table:
        """Return a table with a row for each iteration."""
        columns = self.columns()
        rows = zip(self.iterations.tolist(), *(column.tolist() for column in columns.values()), strict=True)
        return Table(["iteration", *columns], [list(row) for row in rows])

    def _shown_table(self) -> Table:
        """Return the table, with evenly spaced rows if it is long."""
        table = self.table()
        if len(table.rows) <= SHOWN_ROWS:
            return table
        shown = np.linspace(0, len(table.rows) - 1, SHOWN_ROWS).round().astype(int)
        return Table(table.columns, [table.rows[k] for k in shown])


class TrainingObserver(ABC):
    """The base class of observers: pass one as `fit(…, observers=[watch])`, then call `watch.result()`.

    It observes every n-th round, and returns its records, which `fit` adds to `history_`. It does not change
    training. An observer serves one run at a time, and starts again with the next run.

    Args:
        every: observe rounds 0, every, 2 · every, … The default keeps the cost small: boosted trees have the scores of
            all training documents, but nets and linear rankers compute them for observers.

    Attributes:
        usual: the default of `every` for boosted trees.
        usual_elsewhere: the default of `every` for nets and linear rankers.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchRankChanges
        >>> watch = WatchRankChanges(every=2)
        >>> _ = podium.LambdaMART(n_trees=3).fit(podium.artificial(10, features=3), observers=[watch])
        >>> watch.result().iterations.tolist()
        [0, 2]

    """

    needs_arrays = False  # it does not keep arrays of a round
    usual = 1
    usual_elsewhere = 10

    def __init__(self, every: int | None = None) -> None:
        require_whole("every", every, 1, optional=True)
        self.every = every
        self._data: RankingData | None = None
        self._last = -1
        self._history: dict[str, list[float]] = {}
        self._iterations: list[int] = []

    def __call__(self, round_: TrainingRound) -> dict[str, float] | None:
        """Observe a round if it is a multiple of `every`."""
        if self._data is not round_.data or round_.iteration <= self._last:
            self._data, self._history, self._iterations = round_.data, {}, []
            self._begin(round_)
        self._last = round_.iteration
        usual = self.usual if hasattr(round_, "trees") else self.usual_elsewhere
        if round_.iteration % (usual if self.every is None else self.every):
            return None
        numbers = self._observe(round_)
        self._iterations.append(round_.iteration)
        for name, value in numbers.items():
            self._history.setdefault(name, []).append(value)
        return {name: value for name, value in numbers.items() if name not in round_.means}

    def result(self, history: Mapping[str, Sequence[float]] | None = None) -> Any:
        """Return the records.

        Args:
            history: `model.history_`, if another object observed training, or if a run was resumed from a checkpoint
                and this object has not observed earlier rounds.

        """
        if history is None:
            if not self._iterations:
                raise DataError(
                    f"{type(self).__name__} has not observed training: pass it as fit(…, observers=[watch])"
                )
            columns = {name: np.array(values) for name, values in self._history.items()}
            return self._of_columns(np.array(self._iterations), columns)
        columns = {name: np.array(values, np.float64) for name, values in history.items() if self._records(name)}
        if not columns:
            raise DataError(
                f"the history has no records of {type(self).__name__}: pass it as fit(…, observers=[watch])"
            )
        is_recorded = ~np.isnan(np.column_stack(list(columns.values()))).all(axis=1)
        recorded = {name: column[is_recorded] for name, column in columns.items()}
        return self._of_columns(np.flatnonzero(is_recorded), recorded)

    @abstractmethod
    def _begin(self, round_: TrainingRound) -> None:
        """Prepare for a run; `round_` is its first round."""

    @abstractmethod
    def _observe(self, round_: TrainingRound) -> dict[str, float]:
        """Return the numbers of a round by their names in the history."""

    @abstractmethod
    def _records(self, name: str) -> bool:
        """Return whether this observer records a name of a history."""

    @abstractmethod
    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> Any:
        """Return the result from the numbers of some iterations by their names in the history."""


def classes_of_labels(data: RankingData, source: str) -> tuple[Floats, Ints]:
    """Return the distinct labels, ascending, and each document's index among them in canonical order, or −1."""
    labels = labels_in_order(data, source, data.canonical_order).astype(np.float64)
    distinct = np.unique(labels[~np.isnan(labels)])
    if len(distinct) > MAX_LABELS:
        raise DataError(
            f"the labels {source!r} have {len(distinct)} distinct values, but shares need at most {MAX_LABELS}: "
            "use a source with fewer, for example rounded labels"
        )
    classes = np.searchsorted(distinct, labels).astype(np.int64)
    classes[np.isnan(labels)] = -1
    return distinct, classes


def by_label(columns: Mapping[str, Floats], prefix: str) -> tuple[Floats, Floats]:
    """Return the labels that follow a prefix in names of a history, ascending, and an array with a column for each."""
    labels = sorted(float(name.removeprefix(prefix)) for name in columns if name.startswith(prefix))
    return np.array(labels), np.column_stack([columns[f"{prefix}{label:g}"] for label in labels])
