"""Values as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from podium.errors import DataError


def plain(value: Any, where: str = "the result") -> Any:
    """Lists, dictionaries, texts and numbers; NaN is None, for JSON has no NaN. What JSON cannot hold is refused.

    Example:
        >>> import numpy as np
        >>> from podium.reproduce.plain import plain
        >>> plain({"a": np.array([1.0, np.nan]), "b": (np.int64(2), True)})
        {'a': [1.0, None], 'b': [2, True]}

    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isinf(value):
            raise DataError(f"{where} is {value}, which JSON cannot hold: use None or a text")
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {_key(key, where): plain(one, f"{where}[{key!r}]") for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, f"{where}[{k}]") for k, one in enumerate(value)]
    raise DataError(f"{where} is {type(value).__name__}, which JSON cannot hold: use lists, dictionaries and numbers")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise DataError(f"{where} has the key {key!r}: JSON has only texts as keys")
    return key
