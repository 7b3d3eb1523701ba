"""Validate arguments. Every message states what was expected and what the value is."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from podium.errors import DataError

LARGEST_WHOLE = 2**31 - 1  # kernels count with int32


def require_whole(
    name: str, value: object, least: int | None, *, optional: bool = False, most: int = LARGEST_WHOLE
) -> None:
    """Raise if a parameter is not a whole number, too small or too large; with `least=None` there is no limit."""
    if value is None and optional:
        return
    try:
        number: int | None = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if isinstance(value, bool) or number is None or (least is not None and number < least):
        expected = "a whole number" if least is None else f"a whole number from {least}"
        raise DataError(f"{name} must be {expected}{' or None' if optional else ''}, but is {value!r}")
    if least is not None and number > most:
        raise DataError(f"{name} must be at most {most:_}, but is {value!r}")


def require_number(
    name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf, most: float | None = None,
    below: float | None = None,
) -> None:  # fmt: skip
    """Raise if a parameter is not a number or out of range; infinity is only valid if `most` is infinite."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise DataError(f"{name} must be a number, but is {value!r}")
    value = float(value)
    is_below = value <= most if most is not None else math.isfinite(value) and (below is None or value < below)
    if is_below and value > above and value >= least:
        return
    if most is not None and most < math.inf:
        expected = f"{f'above {above:g}' if above > -math.inf else f'from {least:g}'} and at most {most:g}"
    elif below is not None:
        expected = f"between {max(above, least):g} and {below:g}"
    else:
        expected = "positive" if above == 0 else "non-negative" if least == 0 else "finite"
    raise DataError(f"{name} must be {expected}, but is {value}")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return a suggestion of the most similar name, to append to an error message; "" if none is similar."""
    matches = difflib.get_close_matches(word[:100].lower(), list(names), 1, 0.6)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def numbers_of(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Return numbers as a tuple of floats; raise if one is not a number."""
    try:
        return tuple(float(value) for value in values)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} must be a list of numbers, but is {values!r}") from None


def require_utf8(argument: str, names: Iterable[str]) -> None:
    """Raise if a name contains a lone surrogate, which no file can store."""
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{argument}: {name!a} cannot be encoded as UTF-8: rename it") from None


def to_path(path: Any) -> Path:
    """Return a valid path; raise if it is not one."""
    try:
        text = os.fspath(path)
        os.fsencode(text)
    except TypeError:
        raise DataError(f"expected a path, but got {type(path).__name__} {path!r:.40}") from None
    except UnicodeEncodeError:
        raise DataError(f"the path {path!a} cannot be encoded in the file system's encoding") from None
    if isinstance(text, bytes):
        raise DataError(f"expected a path as text, but got {text!r:.40}: convert it with os.fsdecode")
    if "\0" in text:
        raise DataError(f"a path must not contain a NUL character, but got {text!r}")
    return Path(text)
