"""What the parts of some data give, brought together: sums, largest values, and so on, the same in any order of parts.

A part wraps what it gives in one of these classes; `merge` brings two of them together, `merged` takes the result out.
Lists, tuples and dictionaries of them are merged entry by entry. None is what a part without documents gives.
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
    """Added: numbers, arrays of whole numbers, `ExactSum`, and tuples of those.

    To merge writes over the arrays of the first, so they must be nobody else's.
    """

    value: Any

    def with_other(self, other: Total) -> Total:
        """Both."""
        return Total(_added(self.value, other.value))


@dataclass(frozen=True)
class Max:
    """The largest: numbers, arrays, and tuples of those; NaN is larger than all."""

    value: Any

    def with_other(self, other: Max) -> Max:
        """The larger."""
        return Max(_largest(self.value, other.value))


@dataclass(frozen=True)
class Union:
    """The different values of arrays, ascending; of more than `most` the lowest, and the highest one."""

    value: Any
    most: int | None = None

    def with_other(self, other: Union) -> Union:
        """The values of both."""
        return Union(lowest(np.union1d(self.value, other.value), self.most), self.most)


@dataclass(frozen=True)
class Counts:
    """How often each value occurs: different values, ascending, and their numbers."""

    values: Any
    counts: Any

    def with_other(self, other: Counts) -> Counts:
        """The values of both."""
        both = np.concatenate([self.values, other.values])
        order = np.argsort(both, kind="stable")  # quick for two ascending runs
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
    """What all parts give alike: one of them is enough."""

    value: Any

    def with_other(self, other: Same) -> Same:
        """The first."""
        return self


@dataclass(frozen=True)
class Gathered:
    """What each part gives, in a list."""

    value: list[Any]

    def with_other(self, other: Gathered) -> Gathered:
        """One list after the other."""
        return Gathered(self.value + other.value)


def lowest(values: Any, most: int | None) -> Any:
    """So many of ascending values: the lowest, and the highest one."""
    return values if most is None or len(values) <= most else np.append(values[: most - 1], values[-1])


def merge(one: Any, other: Any) -> Any:
    """What two parts give, together.

    >>> merge({"n": Total(2), "highest": Max(0.5)}, {"n": Total(3), "highest": Max(0.25)})
    {'n': Total(value=5), 'highest': Max(value=0.5)}
    """
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict):
        return {key: merge(one.get(key), other.get(key)) for key in {**one, **other}}
    if isinstance(one, list | tuple):
        return type(one)(merge(a, b) for a, b in zip(one, other, strict=True))
    return one.with_other(other)


def merge_all(results: Any) -> Any:
    """What many parts give, together."""
    return reduce(merge, results, None)


def merged(result: Any) -> Any:
    """The values, out of the classes that say how to merge them.

    >>> merged((Total(5), {"highest": Max(0.5)}))
    (5, {'highest': 0.5})
    """
    if isinstance(result, dict):
        return {key: merged(value) for key, value in result.items()}
    if isinstance(result, list | tuple):
        return type(result)(merged(value) for value in result)
    return None if result is None else result.value


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_added(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray) and one.flags.writeable:
        return np.add(one, other, out=one)
    return one + other


def _largest(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_largest(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray):
        return np.maximum(one, other)
    return one if one >= other or one != one else other


def alone(steps: Generator[Any, Any, Result]) -> Result:
    """Run steps that ask for what all parts give, where there is one part: it gets what it gave."""
    answer = None
    try:
        while True:
            answer = merged(steps.send(answer))
    except StopIteration as end:
        result: Result = end.value
        return result
