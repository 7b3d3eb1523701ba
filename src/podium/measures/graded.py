"""Selection by several measures in order of priority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from podium.core.array_types import Bools, Floats
from podium.errors import DataError
from podium.measures.base import Measure, best_of
from podium.measures.gains import shown
from podium.measures.pairs import PreferenceAccuracy
from podium.measures.registry import as_measure, parse

if TYPE_CHECKING:
    from podium.data import RankingData


@dataclass(frozen=True, init=False)
class Graded:
    """Selection by several measures: among candidates within a tolerance of the best by one, the best by the next.

    ([S] §3. Pairwise comparison with tolerances would not be transitive.) It can be used wherever a measure selects a
    model or an iteration. As text: `ndcg@3>cndcg@3~0.002`.

    Args:
        measures: the measures in order of priority, as values or names.
        tolerance: how far below the best a candidate may be, by every measure but the last: one number, or one for
            each of them.

    Example:
        >>> from podium import Graded
        >>> choice = Graded(["ndcg@3", "cndcg@3"], tolerance=0.002)
        >>> choice.pick([[0.500, 0.30], [0.501, 0.20], [0.4995, 0.40]])
        2
        >>> str(choice)
        'ndcg@3>cndcg@3~0.002'

    """

    measures: tuple[Measure, ...]
    tolerance: tuple[float, ...]

    def __init__(self, measures: Sequence[Measure | str], tolerance: float | Sequence[float] = 0.0) -> None:
        in_order = tuple(as_measure(measure) for measure in measures)
        if len(in_order) < 2:
            raise DataError("pass at least two measures to Graded")
        n = len(in_order) - 1
        tolerances = (tolerance,) * n if isinstance(tolerance, int | float) else tuple(tolerance)
        if len(tolerances) != n or any(not t >= 0 for t in tolerances):
            raise DataError(f"tolerance must be a non-negative number for each of the first {n} measures")
        object.__setattr__(self, "measures", in_order)
        object.__setattr__(self, "tolerance", tuple(float(t) for t in tolerances))

    def __str__(self) -> str:
        return ">".join(map(str, self.measures)) + "~" + "/".join(map(shown, self.tolerance))

    @classmethod
    def of(cls, text: str) -> Graded:
        """Parse a graded measure from text."""
        names, _, tolerances = text.partition("~")
        try:
            tolerance = [float(t) for t in tolerances.split("/")] if tolerances else [0.0]
        except ValueError:
            raise DataError(f"{text!r}: expected numbers after ~, the tolerances") from None
        measures = [parse(name) for name in names.split(">")]
        return cls(measures, tolerance[0] if len(tolerance) == 1 else tolerance)

    def pick(self, means: Floats) -> int:
        """Return the index of the selected candidate, the first of ties, from a row of means for each."""
        means = self._checked(means)
        candidates = np.arange(len(means))
        for k, tolerance in enumerate(self.tolerance):
            candidates = candidates[_within(tolerance, means[candidates, k])]
        return int(candidates[best_of(means[candidates, -1])])

    def pick_and_keep(self, means: Floats) -> tuple[int, list[int]]:
        """Return the result of `pick`, and the candidates, ascending, that it may return later when more are added.

        By the first measure, the best never becomes worse, so a candidate too far below it is out for good. By the
        other measures it may return.
        """
        near = _within(self.tolerance[0], self._checked(means)[:, 0])
        return self.pick(means), np.flatnonzero(near).tolist()

    def _checked(self, means: Floats) -> Floats:
        """Return the means as an array with a row for each candidate."""
        means = np.asarray(means, np.float64)
        if means.ndim != 2 or means.shape[1] != len(self.measures) or len(means) == 0:
            raise DataError(f"means must have a row of {len(self.measures)} for each candidate, but got {means.shape}")
        return means


def _within(tolerance: float, means: Floats) -> Bools:
    """Return whether each mean is within a tolerance of the best."""
    return np.asarray(means >= means[best_of(means)] - tolerance)


def as_watched(metrics: Sequence[Measure | str] | Measure | str) -> tuple[Measure, ...]:
    """Return distinct measures to watch in addition to the selecting one, given as values or names.

    Example:
        >>> from podium.measures import as_watched
        >>> [str(measure) for measure in as_watched(["ap", "ndcg@5", "map"])]
        ['ap', 'ndcg@5']

    """
    if isinstance(metrics, Graded) or not isinstance(metrics, Measure | str | Sequence):
        raise DataError(f"metrics must be a list of measures such as ['ndcg@5', 'ap'], but got {metrics!r}")
    entries = [metrics] if isinstance(metrics, Measure | str) else metrics
    if any(isinstance(entry, str) and entry == "loss" for entry in entries):
        raise DataError(
            "metrics: 'loss' needs an objective, which this method does not have; pass measures such as 'ap'"
        )
    return tuple(dict.fromkeys(map(as_measure, entries)))


def selection_for(value: Measure | Graded | str, data: RankingData) -> Measure | Graded:
    """Return the measure that selects the best candidate, or that of preferences if the data has no labels.

    Example:
        >>> import podium
        >>> from podium.measures import selection_for
        >>> data = podium.RankingData([[0.0], [1.0]], qid=["a", "a"], preferences=([0], [1], [1.0]))
        >>> str(selection_for("ndcg@10", data))
        'preferences'

    """
    selection = as_selection(value)
    if has_preferences_alone(data) and not any(m.is_defined_on(data) for m in selection.measures):
        return PreferenceAccuracy()
    return selection


def has_preferences_alone(data: RankingData) -> bool:
    """Return whether the data has preferences and no labels.

    Example:
        >>> import podium
        >>> from podium.measures import has_preferences_alone
        >>> has_preferences_alone(podium.artificial(2, features=2))
        False

    """
    return data.preferences is not None and not data.labels


def as_selection(value: Measure | Graded | str) -> Measure | Graded:
    """Return the measure that selects the best candidate, given as a value or by name.

    Example:
        >>> from podium.measures import as_selection
        >>> type(as_selection("ndcg@3>ap~0.01")).__name__
        'Graded'

    """
    if isinstance(value, Graded):
        return value
    if isinstance(value, str) and ">" in value:
        return Graded.of(value)
    return as_measure(value)
