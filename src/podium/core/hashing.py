"""Hash the complete content of values; a repr would abbreviate long arrays and round their numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np


def content_hash(value: Any) -> str:
    """Return a hash that is equal for equal content, in every process.

    It covers all elements of arrays, all entries of containers, and the class, attributes and custom repr of objects.
    A function has a different hash in every process, because its code may have changed.

    >>> content_hash([1, {"a": np.zeros(2)}]) == content_hash((1, {"a": np.zeros(2)}))
    True
    >>> content_hash(np.zeros(2000)) == content_hash(np.append(np.zeros(1999), 1e-300))
    False
    """
    return _hashed(value).hex()


def _hashed(value: Any) -> bytes:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | type):
        return _digest(type(value).__name__, [repr(value).encode()])
    if isinstance(value, np.ndarray):
        content = _hashed(value.tolist()) if value.dtype.hasobject else value.tobytes()
        return _digest(f"array {value.dtype.str} {value.shape}", [content])
    if isinstance(value, Mapping):
        return _digest("mapping", sorted(_hashed(key) + _hashed(entry) for key, entry in value.items()))
    if isinstance(value, Set):
        return _digest("set", sorted(map(_hashed, value)))
    if isinstance(value, list | tuple):
        return _digest("sequence", map(_hashed, value))
    cls = type(value)
    if hasattr(cls, "__array__"):
        return _hashed(np.asarray(value))
    caches = {name for name in dir(cls) if isinstance(getattr(cls, name, None), cached_property)}
    state = {name: entry for name, entry in getattr(value, "__dict__", {}).items() if name not in caches}
    if is_dataclass(value):
        state |= {field.name: getattr(value, field.name) for field in fields(value)}
    is_complete = is_dataclass(value) or (state and cls.__repr__ is object.__repr__)  # type: ignore[comparison-overlap]
    return _digest("object", map(_hashed, (cls, state, None if is_complete else repr(value))))


def _digest(kind: str, parts: Iterable[Any]) -> bytes:
    digest = hashlib.sha256(f"{kind}\n".encode())
    for part in parts:
        digest.update(part)
    return digest.digest()
