"""What observers of a training run say, beside what the run measures itself."""

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
        raise DataError(f"observers must be a list of functions, but is {observers!r:.60}: pass observers=[…]")
    for observer in observers:
        if not callable(observer):
            raise DataError(f"observers must be functions that take a round, but one is {observer!r:.60}")


class Observations:
    """Numbers that observers return after each round, by name; NaN for rounds in which they said nothing.

    Args:
        values: of an earlier run that goes on.

    Attributes:
        values: a list for each name, an entry for each round so far.

    Example:
        >>> from types import SimpleNamespace
        >>> observations = Observations()
        >>> for iteration in range(2):
        ...     round_ = SimpleNamespace(iteration=iteration, means={})
        ...     observations.tell([lambda r: {"even": 1.0} if r.iteration % 2 == 0 else None], round_)
        >>> observations.columns(2)
        {'even': [1.0, nan]}

    """

    def __init__(self, values: Mapping[str, Sequence[float]] | None = None) -> None:
        self.values = {name: list(column) for name, column in (values or {}).items()}

    def tell(self, observers: Iterable[Observer], round_: Any) -> None:
        """Call every observer with a round; a mapping from names to numbers that it returns is kept."""
        said: dict[str, float] = {}
        for observer in observers:
            answer = observer(round_)
            if isinstance(answer, Mapping):
                said |= _checked(answer, {*said, *round_.means})
        for name in dict.fromkeys((*self.values, *said)):
            column = self.values.setdefault(name, [])
            column[:] = _of_length(column, round_.iteration) if len(column) != round_.iteration else column
            column.append(said.get(name, math.nan))

    def columns(self, n_rounds: int) -> dict[str, list[float]]:
        """A list for each name, as long as there were rounds."""
        return {name: _of_length(column, n_rounds) for name, column in self.values.items()}


def _of_length(column: list[float], n: int) -> list[float]:
    """A column cut, or filled with NaN, to a length."""
    return [*column[:n], *[math.nan] * (n - len(column))]


def _checked(answer: Mapping[Any, Any], taken: set[str]) -> dict[str, float]:
    """What an observer returned, as floats."""
    for name, value in answer.items():
        if not isinstance(name, str) or isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise DataError(f"an observer returns nothing, or numbers by name, not {name!r}: {value!r}")
        if name in taken:
            raise DataError(f"an observer returned {name!r}, which the history has from elsewhere: choose another name")
    return {name: float(value) for name, value in answer.items()}
