"""Record the numbers that a caller's observers return during training, in addition to the measures."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from podium.errors import DataError

Observer = Callable[[Any], object]


def require_observers(observers: object) -> None:
    """Raise if `observers` is not a list or tuple of functions."""
    if not isinstance(observers, list | tuple):
        raise DataError(f"observers must be a list of functions, but got {observers!r:.60}: pass observers=[…]")
    for observer in observers:
        if not callable(observer):
            raise DataError(f"observers must be functions of a round, but one is {observer!r:.60}")


class Observations:
    """The numbers that observers return after each round, by name; NaN for rounds without a number.

    Args:
        values: the values of an earlier run that is being resumed.

    Attributes:
        values: for each name a list with an entry for each round so far.

    """

    def __init__(self, values: Mapping[str, Sequence[float]] | None = None) -> None:
        self.values = {name: list(column) for name, column in (values or {}).items()}

    def record(self, observers: Iterable[Observer], round_: Any) -> None:
        """Call every observer with a round, and record the mapping from names to numbers that it returns."""
        returned: dict[str, float] = {}
        for observer in observers:
            answer = observer(round_)
            if isinstance(answer, Mapping):
                returned |= _checked(answer, {*returned, *round_.means})
        for name in dict.fromkeys((*self.values, *returned)):
            column = self.values.setdefault(name, [])
            if len(column) != round_.iteration:
                column[:] = _resized(column, round_.iteration)
            column.append(returned.get(name, math.nan))

    def columns(self, n_rounds: int) -> dict[str, list[float]]:
        """Return a list for each name, with an entry for each round."""
        return {name: _resized(column, n_rounds) for name, column in self.values.items()}


def _resized(column: list[float], n: int) -> list[float]:
    """Return a column of n entries, truncated or padded with NaN."""
    return [*column[:n], *[math.nan] * (n - len(column))]


def _checked(answer: Mapping[Any, Any], used_names: set[str]) -> dict[str, float]:
    """Return the result of an observer as floats; raise if a value is not a number or a name is in use."""
    for name, value in answer.items():
        if not isinstance(name, str) or isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise DataError(f"an observer must return None or numbers by name, but returned {name!r}: {value!r}")
        if name in used_names:
            raise DataError(f"an observer returned {name!r}, which is already in the history: choose another name")
    return {name: float(value) for name, value in answer.items()}
