"""Parameters that do not exist are refused with the name that was meant."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Self

from podium.errors import ParameterError
from podium.estimators.foreign import advice


def unknown_parameter(owner: str, name: str, known: Iterable[str]) -> ParameterError:
    """The error for a parameter that `owner` does not have."""
    known = sorted(known)
    hint = advice(name, known) or f"; it has {', '.join(known)}"
    return ParameterError(f"{owner} has no parameter {name!r}{hint}")


class NamedParameters:
    """An estimator whose constructor and `set_params` say which parameter was meant."""

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Look at the names before the constructor does: its own error does not say what was meant."""
        classes = [c for c in cls.__mro__ if "__init__" in vars(c) and c is not object]
        known = {name for c in classes for name in inspect.signature(c).parameters}
        for name in given:
            if name not in known:
                raise unknown_parameter(cls.__name__, name, known)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn has it."""
        known: dict[str, Any] = self.get_params()  # type: ignore[attr-defined]
        for name in params:
            if name.partition("__")[0] not in known:
                raise unknown_parameter(type(self).__name__, name, known)
        found: Self = super().set_params(**params)  # type: ignore[misc]
        return found
