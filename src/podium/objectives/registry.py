"""Names of objectives, links and schedules, for objectives as text (`podium.objectives.parsing`)."""

from __future__ import annotations

from typing import Any, TypeVar

Class = TypeVar("Class", bound=type[Any])
_CLASSES: dict[str, type[Any]] = {}


def register(cls: Class) -> Class:
    """Make an objective, link or schedule known by the name of its class, in lower case: a decorator.

    Its text is the name with the arguments, as in `pairwise(hinge(margin=0.5))`. The class must be a dataclass to be
    written as text.

    Example:
        >>> from dataclasses import dataclass
        >>> from podium.objectives import Constant, describe, parse, register
        >>> @register
        ... @dataclass(frozen=True)
        ... class Halfway(Constant):
        ...     weight: float = 0.5
        >>> describe(parse("anneal(pairwise, listnet, halfway(0.4))"))
        'Anneal(before=Pairwise(), after=ListNet(), schedule=Halfway(weight=0.4))'

    """
    _CLASSES[cls.__name__.lower()] = cls
    return cls


def registered_classes() -> dict[str, type[Any]]:
    """All of them by name; the built-in ones register when they are imported."""
    import podium.objectives  # noqa: F401

    return _CLASSES
