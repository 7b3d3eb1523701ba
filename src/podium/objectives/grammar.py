"""Objectives as text: `anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.01))`.

A value is a number, `true`, `false` or `none`, a list `[a, b]`, a word or quoted text such as a measure's name, or a
name with arguments in brackets, by place or by `key=value`. Names are those of the classes in `podium.objectives`,
whatever their case, with or without underscores.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from podium.errors import DataError
from podium.measures import Measure
from podium.objectives import links, lists, mixtures, pairs, points, positions, preferences, schedules
from podium.objectives.objective import Objective

_NAMED: dict[str, Callable[..., Any]] = {
    made.__name__.lower(): made
    for made in (
        pairs.Lambda, pairs.Local, pairs.Pairwise, pairs.LambdaLoss, mixtures.Tiers, mixtures.Anneal,
        preferences.Preferences, lists.ListNet, lists.ListMLE, lists.RankCosine, lists.XENDCG, lists.QueryRegression,
        points.Regression, points.Logistic, points.Multiclass, positions.Debiased,
        links.CrossEntropy, links.LocalSigmoid, links.Hinge, links.SquaredHinge, links.Fidelity,
        schedules.Constant, schedules.LinearGrowth, schedules.ExponentialGrowth, schedules.ExponentialShare,
    )
}  # fmt: skip
_WORDS = {"true": True, "false": False, "none": None}
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w@]))|(?P<text>"[^"]*"|'[^']*')"""
    r"""|(?P<word>[A-Za-z_][\w@.\-]*)|(?P<sign>[()\[\],=]))"""
)


def parse(text: str) -> Objective:
    """The objective that a text names."""
    reader = _Reader(text)
    try:
        found = reader.value()
    except RecursionError:
        raise DataError("this objective has too many brackets within brackets") from None
    reader.expect_end()
    if isinstance(found, type):
        found = reader.called(found, [], {}, 0)
    if not isinstance(found, Objective):
        raise DataError(f"{text!r} is no objective; there are {', '.join(_objectives())}")
    return found


def _objectives() -> list[str]:
    return sorted(name for name, made in _NAMED.items() if isinstance(made, type) and issubclass(made, Objective))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._tokens())
        self.place = 0

    def _tokens(self) -> Iterator[tuple[str, str, int]]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.error("cannot be read (names of measures with settings stand in quotes)", at)
            yield str(found.lastgroup), found.group().strip(), found.start(str(found.lastgroup))
            at = found.end()
        yield "end", "", end

    def error(self, message: str, at: int) -> DataError:
        return DataError(f"objective {self.text!r}, column {at + 1}: {message}")

    def take(self, wanted: str) -> bool:
        """Whether the next token is this sign; then it is used up."""
        kind, text, _ = self.tokens[self.place]
        if kind == "sign" and text == wanted:
            self.place += 1
            return True
        return False

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            raise self.error(f"{wanted!r} is expected here", self.tokens[self.place][2])

    def expect_end(self) -> None:
        kind, text, at = self.tokens[self.place]
        if kind != "end":
            raise self.error(f"{text!r} is not expected here", at)

    def value(self) -> Any:
        kind, text, at = self.tokens[self.place]
        if self.take("["):
            return self.several("]")[0]
        if kind in ("end", "sign"):
            raise self.error("a value is expected here", at)
        self.place += 1
        if kind == "number":
            return float(text) if any(c in text for c in ".eE") else int(text)
        if kind == "text":
            return text[1:-1]
        if self.take("("):
            return self.made(text, at)
        known = _NAMED.get(_plain(text))
        return known if known is not None else _WORDS.get(text.lower(), text)

    def made(self, name: str, at: int) -> Any:
        """What a name with arguments stands for."""
        if _plain(name) not in _NAMED:
            raise self.error(f"there is no {name!r}; objectives are {', '.join(_objectives())}", at)
        values, named = self.several(")")
        return self.called(_NAMED[_plain(name)], values, named, at)

    def called(self, made: Callable[..., Any], values: list[Any], named: dict[str, Any], at: int) -> Any:
        """Call a class; arguments that are names of classes are those with their usual settings."""
        values = [self.called(value, [], {}, at) if isinstance(value, type) else value for value in values]
        named = {k: self.called(value, [], {}, at) if isinstance(value, type) else value for k, value in named.items()}
        try:
            return made(*values, **named)
        except TypeError as error:
            raise self.error(f"{made.__name__} does not take these arguments ({error})", at) from None

    def several(self, closing: str) -> tuple[list[Any], dict[str, Any]]:
        """Values up to a closing bracket, those with a key apart."""
        values: list[Any] = []
        named: dict[str, Any] = {}
        while not self.take(closing):
            kind, text, at = self.tokens[self.place]
            following = self.tokens[min(self.place + 1, len(self.tokens) - 1)]
            if kind == "word" and following[:2] == ("sign", "="):
                if closing == "]" or text.lower() in named:
                    raise self.error(f"{text!r} is not expected here", at)
                self.place += 2
                named[text.lower()] = self.value()
            elif named:
                raise self.error("values without a key stand before those with one", at)
            else:
                values.append(self.value())
            if not self.take(","):
                self.expect(closing)
                break
        return values, named


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def describe(value: Any) -> str:
    """The text that `parse` reads back; an objective of one's own has none."""
    if isinstance(value, Measure | str):
        return f'"{value}"'
    if isinstance(value, bool | np.bool_) or value is None:
        return str(value).lower()
    if isinstance(value, numbers.Real):
        return repr(int(value) if isinstance(value, numbers.Integral) else float(value))
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(describe, value))}]"
    if type(value) not in _NAMED.values() or not is_dataclass(value):
        raise DataError(f"{value!r} cannot be written as text")
    parts = [describe(tier) for tier in value.tiers] if isinstance(value, mixtures.Tiers) else []
    for field in fields(value):
        own = getattr(value, field.name)
        usual = field.default if field.default_factory is MISSING else field.default_factory()
        if field.name != "tiers" and own != usual:
            parts.append(f"{field.name}={describe(own)}")
    return f"{type(value).__name__}({', '.join(parts)})"
