"""Measures by name: registration, and names with parameters such as `ndcg(gain=linear)@10`."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, TypeVar

from podium.core.validation import did_you_mean
from podium.errors import DataError
from podium.measures.base import Measure

_MEASURES: dict[str, type[Measure]] = {}
_ALIASES: dict[str, str] = {}
_TEXT = re.compile(r"(?P<name>[a-z_][\w]*)(\((?P<parameters>[^()]*)\))?(@(?P<cutoff>\d+))?", re.IGNORECASE)
MeasureType = TypeVar("MeasureType", bound=type[Measure])


def register(cls: MeasureType) -> MeasureType:
    """Make a measure known by its name and its aliases: a decorator.

    Example:
        >>> import podium
        >>> from podium.measures import parse, register
        >>> @register
        ... class Last(podium.Measure):
        ...     name = "last"
        ...     def value(self, labels):
        ...         return float(labels[-1])
        >>> parse("last(empty=skip)")
        Last(cutoff=None, labels='relevance', ties='canonical', empty='skip')
        >>> unregister("last")

    """
    known = _MEASURES.get(cls._word())
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise DataError(f"there is a measure {cls._word()!r} already: {known.__module__}.{known.__qualname__}")
    _MEASURES[cls._word()] = cls
    for alias in vars(cls).get("aliases", ()):
        _ALIASES[alias] = cls._word()
    return cls


def unregister(name: str) -> None:
    """Forget a measure."""
    for alias in vars(_MEASURES.pop(name)).get("aliases", ()):
        del _ALIASES[alias]


def registered() -> dict[str, type[Measure]]:
    """All measures that are known by name.

    Example:
        >>> from podium.measures import registered
        >>> registered()["ndcg"].__name__
        'NDCG'

    """
    import podium.measures  # noqa: F401  the built-in ones register when they are imported

    return dict(_MEASURES)


def parse(text: str) -> Measure:
    """A measure from its text: `name(parameter=value,…)@cutoff`.

    Example:
        >>> from podium.measures import parse
        >>> str(parse("NDCG(gain=linear, empty=skip)@10"))
        'ndcg(empty=skip,gain=linear)@10'

    """
    match = _TEXT.fullmatch(text.strip())
    measures = registered()
    if match is None:
        raise DataError(f"{text!r} is not a measure; expected a name such as ndcg@10 or ap(labels=clicks)")
    word = match["name"].lower()
    cls = measures.get(_ALIASES.get(word, word))
    if cls is None:
        near = did_you_mean(word, [*measures, *_ALIASES])
        raise DataError(f"there is no measure {match['name']!r}{near}; there are {', '.join(sorted(measures))}")
    names = {field.name for field in fields(cls)} - {"cutoff"}
    parameters: dict[str, Any] = {}
    for entry in filter(None, (match["parameters"] or "").split(",")):
        key, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or key not in names:
            near = did_you_mean(key, names)
            raise DataError(f"{text!r}: {cls._word()} takes {', '.join(sorted(names))}, not {entry.strip()!r}{near}")
        parameters[key] = _number_or_text(value)
    if match["cutoff"] is not None:
        parameters["cutoff"] = _number_or_text(match["cutoff"])
    return cls(**parameters)


def _number_or_text(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def as_measure(value: Measure | str) -> Measure:
    """A measure, given as such or by name.

    Example:
        >>> from podium.measures import as_measure
        >>> as_measure("ap@5") == as_measure(as_measure("map@5"))
        True

    """
    if isinstance(value, Measure):
        return value
    if isinstance(value, str):
        return parse(value)
    advice = "; a measure of your own is a class, see podium.measures.register" if callable(value) else ""
    raise DataError(f"a measure is given by name or as an object such as NDCG(10), not {value!r}{advice}")
