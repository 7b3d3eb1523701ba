"""The registry of measures, and the parser of names with parameters such as `ndcg(gain=linear)@10`."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, TypeVar

from podium.core.validation import did_you_mean
from podium.errors import DataError
from podium.measures.base import Measure

_MEASURES: dict[str, type[Measure]] = {}
_ALIASES: dict[str, str] = {}
_TEXT = re.compile(r"(?P<name>[a-z_]\w*)(\((?P<parameters>[^()]*)\))?(@(?P<at>\d+(\.\d+)?))?", re.IGNORECASE)
_TREC_TEXT = re.compile(r"(?P<name>[a-z_]\w*?)[_.](?P<at>\d+(\.\d+)?)", re.IGNORECASE)  # P_5, ndcg_cut.10
# What names of trec_eval and ir_measures imply but Podium's do not.
_IMPLIED = {"ndcg_cut": {"gain": "linear"}}
# The parameters of ir_measures, and their values, in Podium's words.
_PARAMETERS = {"rel": "threshold", "dcg": "gain"}
_VALUES = {"dcg": {"log2": "linear", "exp-log2": "exponential"}}
MeasureType = TypeVar("MeasureType", bound=type[Measure])


def register(cls: MeasureType) -> MeasureType:
    """Register a measure by its name and aliases; a decorator.

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
    other = _MEASURES.get(cls._word())
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise DataError(f"the measure {cls._word()!r} already exists: {other.__module__}.{other.__qualname__}")
    _MEASURES[cls._word()] = cls
    for alias in vars(cls).get("aliases", ()):
        _ALIASES[alias] = cls._word()
    return cls


def unregister(name: str) -> None:
    """Remove a measure from the registry."""
    for alias in vars(_MEASURES.pop(name)).get("aliases", ()):
        del _ALIASES[alias]


def registered() -> dict[str, type[Measure]]:
    """Return all registered measures by name.

    Example:
        >>> from podium.measures import registered
        >>> registered()["ndcg"].__name__
        'NDCG'

    """
    import podium.measures  # noqa: F401  importing the built-in measures registers them

    return dict(_MEASURES)


def parse(text: str) -> Measure:
    """Return a measure from text: `name(parameter=value,…)@cutoff`, or its name in trec_eval or ir_measures.

    Example:
        >>> from podium.measures import parse
        >>> str(parse("NDCG(gain=linear, empty=skip)@10"))
        'ndcg(empty=skip,gain=linear)@10'
        >>> [str(parse(name)) for name in ("P_5", "AP(rel=2)", "ndcg_cut_10", "nDCG(dcg='exp-log2')@10")]
        ['precision@5', 'ap(threshold=2)', 'ndcg(gain=linear)@10', 'ndcg@10']

    """
    match = _TEXT.fullmatch(text.strip())
    if (match is None or _class_of(match["name"]) is None) and (trec := _TREC_TEXT.fullmatch(text.strip())):
        match = _TEXT.fullmatch(f"{trec['name']}@{trec['at']}") if _class_of(trec["name"]) else match
    if match is None:
        raise DataError(f"{text!r} is not a measure; expected a name, for example ndcg@10 or ap(labels=clicks)")
    cls = _class_of(match["name"])
    if cls is None:
        names = sorted(registered())
        near = did_you_mean(match["name"].lower(), [*names, *_ALIASES])
        raise DataError(f"there is no measure {match['name']!r}{near}; choose from {', '.join(names)}")
    takes = {field.name for field in fields(cls)} - {"cutoff"}
    parameters: dict[str, Any] = dict(_IMPLIED.get(match["name"].lower(), {}))
    for entry in filter(None, (match["parameters"] or "").split(",")):
        word, equals, value = (part.strip().strip("'\"") for part in entry.partition("="))
        key = word if word in takes else _PARAMETERS.get(word, word)
        if not equals or key not in takes:
            near = did_you_mean(key, takes)
            raise DataError(
                f"{text!r}: {cls._word()} has parameters {', '.join(sorted(takes))}, but got {entry.strip()!r}{near}"
            )
        parameters[key] = _number_or_text(_VALUES.get(word, {}).get(value, value))
    if match["at"] is not None:
        parameters[cls.at] = _number_or_text(match["at"])
    return cls(**parameters)


def _class_of(name: str) -> type[Measure] | None:
    measures, word = registered(), name.lower()
    return measures.get(word) or measures.get(_ALIASES.get(word, ""))


def _number_or_text(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def as_measure(value: Measure | str) -> Measure:
    """Return a measure that is passed as a value or by name.

    Example:
        >>> from podium.measures import as_measure
        >>> as_measure("ap@5") == as_measure(as_measure("map@5"))
        True

    """
    if isinstance(value, Measure):
        return value
    if isinstance(value, str):
        return parse(value)
    advice = "; to add a measure, see podium.measures.register" if callable(value) else ""
    raise DataError(f"a measure must be a name or an object such as NDCG(10), but got {value!r}{advice}")
