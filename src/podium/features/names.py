"""Columns of names as codes into sorted lists of names, so that the text of all rows need not be in memory at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Int32s
from podium.errors import DataError


class Coded(NamedTuple):
    """A column of names, as codes into the sorted distinct names; −1 for missing names."""

    codes: Int32s
    names: tuple[str, ...]

    @classmethod
    def unknown(cls, n: int) -> Coded:
        """Return a column without names."""
        return cls(np.full(n, -1, np.int32), ())


def code(values: Any) -> Coded:
    """Return a column of names or whole numbers as codes into the sorted names; missing values are −1."""
    if isinstance(values, Coded):
        return values
    array = values if isinstance(values, np.ndarray) else np.asarray(values, object)
    if array.ndim != 1:
        raise DataError(f"expected a column, but the array has {array.ndim} dimensions")
    coder = NameCoder()
    if array.dtype.kind in "iuU":
        distinct, places = np.unique(array, return_inverse=True)
        coder.add(distinct.tolist(), places)
        return coder.coded()
    numbers: dict[Any, int] = {}
    try:
        number_of_row = [numbers.setdefault(value, len(numbers)) for value in map(_nan_as_none, array.tolist())]
    except TypeError:
        raise DataError("expected names or whole numbers, but the column contains lists or dictionaries") from None
    coder.add(list(numbers), np.asarray(number_of_row, np.int64))
    return coder.coded()


class NameCoder:
    """Encodes a column of names part by part."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._parts: list[Int32s] = []

    def add(self, values: Sequence[Any], places: NDArray[np.integer]) -> None:
        """Add rows, given by their index in a list of distinct values, −1 for missing ones."""
        codes = np.full(len(values) + 1, -1, np.int32)
        for k, value in enumerate(values):
            try:
                text = _name(value)
            except DataError as error:
                row = sum(map(len, self._parts)) + int(np.argmax(places == k))
                raise with_row(error, row) from None
            if text is not None:  # 1 and "1" are the same name
                codes[k] = self._codes.setdefault(text, len(self._codes))
        self._parts.append(codes[places])

    def coded(self) -> Coded:
        """Return the whole column."""
        names = list(self._codes)
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names) + 1, np.int32)
        rank[order], rank[-1] = np.arange(len(names)), -1
        return Coded(rank[np.concatenate(self._parts)], tuple(names[k] for k in order))


def _nan_as_none(value: Any) -> Any:
    """Return None for NaN, because NaN does not equal itself and would get a number in every row."""
    return None if isinstance(value, float) and value != value else value


def _name(value: Any) -> str | None:
    """Return a value as a name, None if it is missing; raise if it is neither text nor a whole number."""
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise DataError(f"{value!a:.60} contains a lone surrogate, which UTF-8 cannot encode") from None
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise DataError(f"expected a name or a whole number, but got {value!r:.60}")


def with_row(error: DataError, row: int) -> DataError:
    """Return an error with the row, from 0, as an attribute, so that a reader can name the line."""
    error.row = row  # type: ignore[attr-defined]
    return error
