"""Conversion of times to microseconds since the epoch, from numbers of any unit, ISO text and datetimes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Ints
from podium.errors import DataError
from podium.features.names import with_row

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PER_SECOND = 1_000_000
UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}  # in microseconds
WORDS = {"s": "epoch seconds", "ms": "epoch milliseconds", "us": "epoch microseconds", "ns": "epoch nanoseconds"}
LONGEST_VISIT = 86_400.0  # seconds; a longer dwell time means that the user left unnoticed
LARGEST = 2**61  # microseconds; the sum of two times fits into int64


def unit_of(value: float) -> str:
    """Return the unit of a numeric time since the epoch, determined by its size: 1e11 seconds are the year 5138.

    >>> unit_of(1_700_000_000), unit_of(1_700_000_000_000)
    ('s', 'ms')
    """
    size = abs(value)
    return "s" if size < 1e11 else "ms" if size < 1e14 else "us" if size < 1e17 else "ns"


def microseconds(value: Any, unit: str | None = None, units: Counter[str] | None = None) -> int:
    """Return a time as microseconds since the epoch; raise a `DataError` that says what was expected.

    Args:
        value: a number, text of a number or an ISO 8601 time, or a datetime. A time without a zone is UTC.
        unit: the unit of numbers: s, ms, us or ns. None to determine it by the size of each number.
        units: counts how often each unit occurs.

    Example:
        >>> microseconds("2024-12-10T00:01:29.378Z") == microseconds(1733788889378)
        True

    """
    if isinstance(value, str):
        text = value.strip()
        try:
            value = int(text) if text.lstrip("+-").isdigit() else float(text)
        except ValueError:
            try:
                value = datetime.fromisoformat(text)
            except ValueError:
                raise _not_a_time(value) from None
    if isinstance(value, datetime):
        if units is not None:
            units["ISO times"] += 1
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
        return int((value - EPOCH) // timedelta(microseconds=1))
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise _not_a_time(value)
    if not abs(float(value)) < 1e25:  # also refuses NaN
        raise _not_a_time(value)
    unit = unit or unit_of(float(value))
    if units is not None:
        units[WORDS[unit]] += 1
    if isinstance(value, int | np.integer):  # exact for any size
        result = int(value) // 1000 if unit == "ns" else int(value) * int(UNITS[unit])
    else:
        result = round(float(value) * UNITS[unit])
    if abs(result) > LARGEST:
        raise _not_a_time(value)
    return result


def require_dwell(value: Any) -> float:
    """Return a dwell time; raise if it is not a non-negative number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:  # also refuses NaN
        raise DataError(f"'dwell' must be a non-negative number of seconds, but got {value!r:.40}")
    return value


def _not_a_time(value: Any) -> DataError:
    return DataError(f"expected a time (a number since the epoch or an ISO 8601 text), but got {value!r:.60}")


def microseconds_of(values: Sequence[Any] | NDArray[Any], unit: str | None, units: Counter[str]) -> Ints:
    """Return a column of times as microseconds since the epoch; errors have the row as attribute `row`."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values, object)
    if array.dtype.kind == "M":
        missing = np.flatnonzero(np.isnat(array))
        if len(missing):
            raise with_row(_not_a_time(None), int(missing[0]))
        units["ISO times"] += len(array)
        return array.astype("datetime64[us]").astype(np.int64)
    if array.dtype.kind in "iu" and len(array):
        least, most = float(array.min()), float(array.max())
        shared_unit = unit or unit_of(least)
        is_shared = unit is not None or (shared_unit == unit_of(most) and not least < 0 < most)
        if is_shared and max(abs(least), abs(most)) <= LARGEST / UNITS[shared_unit]:
            units[WORDS[shared_unit]] += len(array)
            whole = array.astype(np.int64)
            return whole // 1000 if shared_unit == "ns" else whole * int(UNITS[shared_unit])
    result = np.empty(len(array), np.int64)
    for row, value in enumerate(array.tolist()):
        try:
            result[row] = microseconds(value, unit, units)
        except DataError as error:
            raise with_row(error, row) from None
    return result
