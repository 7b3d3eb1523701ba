"""Merge results of parts of the data, such as sums and maxima, in any order of the parts.

A part wraps its results in these classes. `merge` merges the results of two parts, and `merged` unwraps the outcome.
Lists, tuples and dictionaries are merged entry by entry. The result of a part without documents is None.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")


@dataclass(frozen=True)
class Total:
    """A result to sum: numbers, integer arrays, `ExactSum`, and tuples of them.

    Merging overwrites the arrays of the first operand, so nothing else may use them.
    """

    value: Any

    def merged_with(self, other: Total) -> Total:
        """Return the sum of both results."""
        return Total(_sum(self.value, other.value))


@dataclass(frozen=True)
class Max:
    """A result to take the maximum of: numbers, arrays, and tuples of them; NaN is larger than any number."""

    value: Any

    def merged_with(self, other: Max) -> Max:
        """Return the maximum of both."""
        return Max(_maximum(self.value, other.value))


@dataclass(frozen=True)
class Union:
    """The distinct values of arrays, ascending; at most `most` of them: the lowest ones and the highest."""

    value: Any
    most: int | None = None

    def merged_with(self, other: Union) -> Union:
        """Return the values of both."""
        return Union(lowest(np.union1d(self.value, other.value), self.most), self.most)


@dataclass(frozen=True)
class Counts:
    """The distinct values in ascending order, and how often each occurs."""

    values: Any
    counts: Any

    def merged_with(self, other: Counts) -> Counts:
        """Return the values of both."""
        both = np.concatenate([self.values, other.values])
        order = np.argsort(both, kind="stable")  # fast for two ascending runs
        values = both[order]
        starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else order
        counts = np.concatenate([self.counts, other.counts])[order]
        return Counts(values[starts], np.add.reduceat(counts, starts) if len(values) else counts)

    @property
    def value(self) -> Any:
        """Both arrays."""
        return self.values, self.counts


@dataclass(frozen=True)
class Same:
    """A result that is the same for all parts."""

    value: Any

    def merged_with(self, other: Same) -> Same:
        """Return the first."""
        return self


@dataclass(frozen=True)
class Gathered:
    """A list with the result of each part."""

    value: list[Any]

    def merged_with(self, other: Gathered) -> Gathered:
        """Return the concatenated lists."""
        return Gathered(self.value + other.value)


def lowest(values: Any, most: int | None) -> Any:
    """Return at most `most` of some ascending values: the lowest ones and the highest."""
    return values if most is None or len(values) <= most else np.append(values[: most - 1], values[-1])


def merge(one: Any, other: Any) -> Any:
    """Merge the results of two parts.

    >>> merge({"n": Total(2), "highest": Max(0.5)}, {"n": Total(3), "highest": Max(0.25)})
    {'n': Total(value=5), 'highest': Max(value=0.5)}
    """
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict):
        return {key: merge(one.get(key), other.get(key)) for key in {**one, **other}}
    if isinstance(one, list | tuple):
        return type(one)(merge(a, b) for a, b in zip(one, other, strict=True))
    return one.merged_with(other)


def merge_all(results: Any) -> Any:
    """Merge the results of many parts."""
    return reduce(merge, results, None)


def merged(result: Any) -> Any:
    """Return the unwrapped values.

    >>> merged((Total(5), {"highest": Max(0.5)}))
    (5, {'highest': 0.5})
    """
    if isinstance(result, dict):
        return {key: merged(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return type(result)(merged(value) for value in result)
    return None if result is None else result.value


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_sum(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray) and one.flags.writeable:
        return np.add(one, other, out=one)
    return one + other


def _maximum(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_maximum(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray):
        return np.maximum(one, other)
    return one if one >= other or one != one else other


def alone(steps: Generator[Any, Any, Result]) -> Result:
    """Run a generator that yields the results of a part and receives the merged results, on data with a single part."""
    answer = None
    try:
        while True:
            answer = merged(steps.send(answer))
    except StopIteration as end:
        result: Result = end.value
        return result
