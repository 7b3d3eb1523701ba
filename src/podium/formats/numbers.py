"""Whole numbers and truth values in files of other tools: what is neither is refused instead of being cut."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from podium.errors import DataError

_WHOLE = re.compile(r"\s*[+-]?[0-9]+(\.0*)?\s*", re.ASCII)  # XML and XGBoost's JSON have numbers as text


def whole_number(value: Any, name: str) -> int:
    """Return a whole number, also one that is written as text or as 3.0; raise if it has a fraction or is none.

    Example:
        >>> whole_number("3", "split_feature"), whole_number(3.0, "split_feature")
        (3, 3)
        >>> whole_number(1.5, "split_feature")
        Traceback (most recent call last):
        ...
        podium.errors.DataError: split_feature must be a whole number, but is 1.5

    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float | np.floating) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < 40 and _WHOLE.fullmatch(value):
        return int(value.partition(".")[0])
    raise DataError(f"{name} must be a whole number, but is {value!r:.60}")


def whole_numbers(values: Iterable[Any], name: str) -> list[int]:
    """Return the same of a list."""
    return [whole_number(value, name) for value in values]


def truth_value(value: Any, name: str) -> bool:
    """Return a truth value: true and false, or 1 and 0."""
    if isinstance(value, bool | int | np.integer | np.bool_) and value in (0, 1):
        return bool(value)
    raise DataError(f"{name} must be true or false, but is {value!r:.60}")
