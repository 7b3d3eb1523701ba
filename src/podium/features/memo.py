"""`Memo`, the base class of objects that compute values on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Memo:
    """An object that keeps values that it has computed; `vars(self).clear()` drops them."""

    def once(self, key: Any, compute: Callable[[], Value]) -> Value:
        """Return the result of a function, computed once for each key."""
        values: dict[Any, Value] = vars(self).setdefault("_values_by_key", {})
        if key not in values:
            values[key] = compute()
        return values[key]
