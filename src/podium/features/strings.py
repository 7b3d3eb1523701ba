"""A sequence of strings as two arrays, in memory or memory-mapped."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np

from podium.core.array_types import Bytes, Ints

LONGEST_SORTED = 64  # bytes; longer strings are sorted by Python


class Strings(Sequence[str]):
    """Strings as UTF-8 bytes and the position where each begins.

    Attributes:
        starts: where each string begins, and the end of the last.
        text: the bytes of all strings.

    """

    def __init__(self, starts: Ints, text: Bytes) -> None:
        self.starts, self.text = starts, text

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Return a sequence of these strings."""
        encoded = [string.encode() for string in strings]
        starts = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(string) for string in encoded], out=starts[1:])
        return cls(starts, np.frombuffer(b"".join(encoded), np.uint8))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        return bytes(self.text[self.starts[index] : self.starts[index + 1]]).decode()

    def __iter__(self) -> Iterator[str]:
        """Decode in blocks."""
        block = 1 << 14
        for first in range(0, len(self), block):
            starts = self.starts[first : first + block + 1]
            text = bytes(self.text[starts[0] : starts[-1]])
            places = (starts - starts[0]).tolist()
            yield from (text[start:end].decode() for start, end in pairwise(places))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} strings>"

    def order(self) -> Ints:
        """Return the indices of the strings in ascending order of code points, equal ones by index."""
        sizes = np.diff(self.starts)
        width = int(sizes.max()) if len(sizes) else 0
        if not 0 < width <= LONGEST_SORTED or not self.text.all():  # NumPy drops trailing NULs
            strings = list(self)
            return np.array(sorted(range(len(strings)), key=strings.__getitem__), np.int64)
        table = np.zeros((len(self), width), np.uint8)
        table[np.arange(width) < sizes[:, None]] = self.text  # UTF-8 sorts in the order of code points
        return np.argsort(table.view(f"S{width}").ravel(), kind="stable")

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The index of each string; the last one if it occurs twice."""
        return {string: k for k, string in enumerate(self)}
