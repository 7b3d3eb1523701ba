"""What observers of training have in common, and what they give: numbers by iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.errors import DataError
from podium.evaluation.tables import Table
from podium.objectives import Objective

SHOWN_ROWS = 20  # of a table in the terminal; `table()` has all
MOST_LABELS = 20  # distinct ones, by which shares are told


class TrainingRound(Protocol):
    """What every trainer tells its observers: `podium.boosting.Round`, `neural.Epoch` and `linear.LinearStep` do.

    Example:
        >>> import podium
        >>> def watch(round):
        ...     return {"highest score": float(round.document_scores.max())}
        >>> data = podium.artificial(10, features=3)
        >>> model = podium.LambdaMART(n_trees=2).fit(data, observers=[watch])
        >>> len(model.history_["highest score"])
        2

    """

    @property
    def iteration(self) -> int:
        """From 0."""

    @property
    def data(self) -> RankingData:
        """The training documents."""

    @property
    def objective(self) -> Objective | None:
        """What is trained on."""

    @property
    def document_scores(self) -> Floats:
        """The number that puts each training document in order, by row."""

    @property
    def means(self) -> dict[str, float]:
        """What was measured, by `set/measure`."""


@dataclass(frozen=True, eq=False)
class ByIteration(ABC):
    """Numbers by iteration.

    Attributes:
        iterations: that were looked at, from 0.

    """

    iterations: Ints

    @abstractmethod
    def columns(self) -> dict[str, Floats]:
        """The numbers by name, one for each of the iterations; NaN for none."""

    @abstractmethod
    def plot(self) -> Any:
        """A chart (Vega-Altair, the extra `report`)."""

    def table(self) -> Table:
        """A row for each iteration; `table().render("json")` for programs."""
        columns = self.columns()
        rows = [
            [int(iteration), *(float(column[k]) for column in columns.values())]
            for k, iteration in enumerate(self.iterations)
        ]
        return Table(["iteration", *columns], rows)

    def _short_table(self) -> Table:
        """The table with rows left out evenly where there are many."""
        table = self.table()
        if len(table.rows) <= SHOWN_ROWS:
            return table
        picked = np.linspace(0, len(table.rows) - 1, SHOWN_ROWS).round().astype(int)
        return Table(table.columns, [table.rows[k] for k in picked])

    def __str__(self) -> str:
        return str(self._short_table())

    def __rich__(self) -> Any:
        return self._short_table().__rich__()


class TrainingObserver(ABC):
    """An observer: `fit(…, observers=[watch])`, then `watch.result()`.

    It looks at every so-manieth round, keeps what it sees, and returns it, so that it stands in `history_`, too. It
    changes nothing in training. One watch serves one run at a time; with the next run it begins anew.

    Args:
        every: look at round 0, every, 2 · every, …; by default as often as costs little: trees have the scores of all
            training documents, nets and linear rankers compute them for observers.

    Attributes:
        usual: every how manieth round of boosted trees it looks at by default.
        usual_elsewhere: the same at nets and linear rankers.

    Example:
        >>> import podium
        >>> from podium.diagnostics import TrainingObserver, WatchRankChanges
        >>> watch = WatchRankChanges(every=1)
        >>> isinstance(watch, TrainingObserver)
        True
        >>> _ = podium.LambdaMART(n_trees=3).fit(podium.artificial(10, features=3), observers=[watch])
        >>> len(watch.result().iterations)
        3

    """

    needs_arrays = False  # what it looks at, it looks at once
    usual = 1
    usual_elsewhere = 10

    def __init__(self, every: int | None) -> None:
        require_whole("every", every, 1, optional=True)
        self.every = every
        self._data: RankingData | None = None
        self._last = -1
        self._history: dict[str, list[float]] = {}
        self._iterations: list[int] = []

    def __call__(self, round_: TrainingRound) -> dict[str, float] | None:
        """Look at a round, if it is one to look at."""
        if self._data is not round_.data or round_.iteration <= self._last:
            self._data, self._history, self._iterations = round_.data, {}, []
            self._begin(round_)
        self._last = round_.iteration
        usual = self.usual if hasattr(round_, "trees") else self.usual_elsewhere
        if round_.iteration % (usual if self.every is None else self.every):
            return None
        numbers = self._look(round_)
        self._iterations.append(round_.iteration)
        for name, value in numbers.items():
            self._history.setdefault(name, []).append(value)
        return {name: value for name, value in numbers.items() if name not in round_.means}

    def result(self, history: Mapping[str, Sequence[float]] | None = None) -> Any:
        """What was seen.

        Args:
            history: `model.history_`, where training was not watched by this very object, or went on from a
                checkpoint: it has what was seen before, too.

        """
        if history is None:
            if not self._iterations:
                raise DataError(f"{type(self).__name__} has seen no training: fit(…, observers=[watch])")
            columns = {name: np.array(values) for name, values in self._history.items()}
            return self._of_columns(np.array(self._iterations), columns)
        known = {name: np.array(values, np.float64) for name, values in history.items() if self._is_mine(name)}
        if not known:
            raise DataError(f"the history has nothing that {type(self).__name__} saw: fit(…, observers=[watch])")
        seen = ~np.isnan(np.column_stack(list(known.values()))).all(axis=1)
        return self._of_columns(np.flatnonzero(seen), {name: column[seen] for name, column in known.items()})

    @abstractmethod
    def _begin(self, round_: TrainingRound) -> None:
        """Prepare for a run, of which this is the first round to be seen."""

    @abstractmethod
    def _look(self, round_: TrainingRound) -> dict[str, float]:
        """The numbers of a round, by their names in the history."""

    @abstractmethod
    def _is_mine(self, name: str) -> bool:
        """Whether a name in a history is of this observer."""

    @abstractmethod
    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> Any:
        """The result, from the numbers of some iterations by their names in the history."""


def classes_of_labels(data: RankingData, source: str) -> tuple[Floats, Ints]:
    """The distinct labels of a source, ascending, and for each document in the canonical order its one; −1 for none."""
    if source not in data.labels:
        known = ", ".join(map(repr, data.labels)) or "none"
        raise DataError(f"labels: the data has no labels {source!r}; it has {known}")
    labels = data.labels[source][data.canonical_order].astype(np.float64)
    distinct = np.unique(labels[~np.isnan(labels)])
    if len(distinct) > MOST_LABELS:
        raise DataError(
            f"the labels {source!r} have {len(distinct)} distinct values, and shares are told for {MOST_LABELS} at "
            "most: give a source with fewer, such as rounded ones"
        )
    classes = np.searchsorted(distinct, labels).astype(np.int64)
    classes[np.isnan(labels)] = -1
    return distinct, classes


def labels_in(columns: Mapping[str, Any], prefix: str) -> Floats:
    """The labels that stand behind a prefix in names of a history, ascending."""
    return np.array(sorted(float(name.removeprefix(prefix)) for name in columns if name.startswith(prefix)))
