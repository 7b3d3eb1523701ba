"""Objectives as text: `anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.01))`.

A value is a number, `true`, `false` or `none`, a list `[a, b]` or `(a, b)`, a word or quoted text such as a measure's
name, or a name with positional or `key=value` arguments in parentheses. Names are those of the classes in
`podium.objectives`, of measures and of gains, in upper or lower case, with or without underscores. The `repr` of an
objective can be parsed too.
"""

from __future__ import annotations

import ast
import inspect
import numbers
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from podium.core.validation import did_you_mean
from podium.errors import DataError
from podium.measures import Gain, Measure, as_measure, registered
from podium.objectives.base import Objective, registered_classes

_WORDS = {
    "true": True, "false": False, "none": None, "inf": np.inf, "nan": np.nan, "np.true_": True, "np.false_": False,
    "np.inf": np.inf, "np.nan": np.nan,
}  # fmt: skip
_NUMBERS = re.compile(r"np\.(u?int|float|bool)\d*_?")  # how NumPy 2 shows its numbers: np.float32(0.5)
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w@])|(?:inf|nan)(?![\w@.\-])))"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<word>[A-Za-z_][\w@.\-]*)|(?P<cutoff>@\d+)|(?P<sign>[()\[\],=]))"""
)
DEEPEST = 64  # maximum nesting of brackets
# Objectives of other tools by name, in lower case, and the most similar ones here.
OF_OTHER_TOOLS = {
    **dict.fromkeys(("lambdarank", "rank:ndcg", "yetirank", "lambdamart"), "lambda(ndcg)"),
    "rank:map": "lambda(ap)",
    **dict.fromkeys(("rank:pairwise", "pairlogit"), "pairwise"),
    **dict.fromkeys(("rank_xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart"), "xendcg"),
    "queryrmse": "queryregression",
    **dict.fromkeys(("rmse", "mse", "regression_l2", "reg:squarederror"), "regression"),
    **dict.fromkeys(("binary", "binary:logistic", "logloss"), "logistic"),
}


def parse(text: str) -> Objective:
    """Parse an objective.

    Example:
        >>> from podium.objectives import parse
        >>> parse("pairwise(hinge(margin=0.5))")
        Pairwise(link=Hinge(margin=0.5), labels='relevance', normalize=False)

    """
    meant = OF_OTHER_TOOLS.get(text.strip().lower())
    if meant is not None:
        raise DataError(f"{_short(text)} is an objective of another tool: use objective={meant!r}")
    reader = _ObjectiveReader(text)
    value = reader.value()
    kind, extra, at = reader.tokens[reader.index]
    if kind != "end":
        raise reader.error(f"unexpected {extra!r}", at)
    if isinstance(value, type):
        value = reader.called(value, [], {}, 0)
    if not isinstance(value, Objective):
        is_measure = isinstance(value, Measure) or str(value).partition("@")[0] in registered()
        hint = f" but a measure: use lambda({text})" if is_measure else did_you_mean(text, _objectives())
        raise DataError(f"{_short(text)} is not an objective{hint}; objectives are {', '.join(_objectives())}")
    return value


def _objectives() -> list[str]:
    return sorted(name for name, cls in registered_classes().items() if issubclass(cls, Objective))


def _measures() -> dict[str, Callable[..., Any]]:
    """Return measures by name and by the name of their class, and gains."""
    classes: dict[str, Callable[..., Any]] = {"gain": Gain}
    for name, cls in registered().items():
        classes |= {_plain(name): cls, _plain(cls.__name__): cls}
    return classes


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


class _ObjectiveReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._tokens())
        self.index = self.depth = 0

    def _tokens(self) -> Iterator[tuple[str, str, int]]:
        at, end = 0, len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self.error("cannot be read (put names of measures with settings in quotes)", at)
            yield str(match.lastgroup), match.group().strip(), match.start(str(match.lastgroup))
            at = match.end()
        yield "end", "", end

    def error(self, message: str, at: int) -> DataError:
        return DataError(f"objective {_short(self.text)}, column {at + 1}: {message}")

    def take(self, sign: str) -> bool:
        """Return whether the next token is this sign, and consume it if so."""
        kind, text, _ = self.tokens[self.index]
        if kind == "sign" and text == sign:
            self.index += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise self.error(f"expected {sign!r}", self.tokens[self.index][2])

    def value(self) -> Any:
        kind, text, at = self.tokens[self.index]
        if self.take("["):
            return self.several("]")[0]
        if self.take("("):
            values = self.several(")", keys=False)[0]
            is_grouped = len(values) == 1 and self.tokens[self.index - 2][1] != ","
            return values[0] if is_grouped else values
        if kind in ("end", "sign", "cutoff"):
            raise self.error("expected a value", at)
        self.index += 1
        if kind == "number":
            return self.number(text, at)
        if kind == "text":
            return self.quoted(text, at)
        if self.take("("):
            return self.built(text, at)
        cls = registered_classes().get(_plain(text))
        return cls if cls is not None else _WORDS.get(text.lower(), text)

    def number(self, text: str, at: int) -> int | float:
        try:
            return float(text) if any(c in text for c in ".eEn") else int(text)
        except ValueError:  # Python refuses to read thousands of digits
            raise self.error("this number has too many digits", at) from None

    def quoted(self, text: str, at: int) -> str:
        try:
            return str(ast.literal_eval(text))
        except (ValueError, SyntaxError):
            raise self.error("this text in quotes cannot be read", at) from None

    def built(self, name: str, at: int) -> Any:
        """Return the object that a name with arguments describes."""
        plain = _plain(name)
        values, named = self.several(")")
        classes = registered_classes()
        if plain in classes:
            return self.called(classes[plain], values, named, at)
        if plain in (others := _measures()):
            value = self.called(others[plain], values, named, at)
            kind, text, _ = self.tokens[self.index]
            if kind == "cutoff" and isinstance(value, Measure):
                self.index += 1
                return value.replace(cutoff=self.number(text[1:], at))
            return value
        if _NUMBERS.fullmatch(name.lower()) and len(values) == 1 and not named:
            return values[0]
        names = ", ".join(_objectives())
        raise self.error(f"there is no {name!r}{did_you_mean(plain, [*classes, *others])}; objectives are {names}", at)

    def called(self, cls: Callable[..., Any], values: list[Any], named: dict[str, Any], at: int) -> Any:
        """Call a class; arguments that are classes are called without arguments."""
        values = [self.called(value, [], {}, at) if isinstance(value, type) else value for value in values]
        named = {k: self.called(value, [], {}, at) if isinstance(value, type) else value for k, value in named.items()}
        if (several := _several(cls)) in named and not values:  # as Python prints it
            parts = named.pop(str(several))
            values = parts if isinstance(parts, list) else [parts]
        if cls is Gain and isinstance(named.get("table"), list):
            named["table"] = tuple(named["table"])
        parameters = inspect.signature(cls).parameters
        if unknown := [key for key in named if key not in parameters]:
            raise self.error(f"{cls.__name__} has no {unknown[0]!r}{did_you_mean(unknown[0], parameters)}: "
                             f"it takes {', '.join(parameters)}", at)  # fmt: skip
        try:
            return cls(*values, **named)
        except TypeError as error:
            raise self.error(f"{cls.__name__} does not take these arguments ({error})", at) from None

    def several(self, closing: str, keys: bool = True) -> tuple[list[Any], dict[str, Any]]:
        """Parse values up to a closing bracket; return positional values, and those of a call with keys."""
        values: list[Any] = []
        named: dict[str, Any] = {}
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"brackets are nested more than {DEEPEST} deep", self.tokens[self.index][2])
        while not self.take(closing):
            kind, text, at = self.tokens[self.index]
            following = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
            if kind == "word" and following[:2] == ("sign", "="):
                if closing == "]" or not keys or text.lower() in named:
                    raise self.error(f"unexpected {text!r}", at)
                self.index += 2
                named[text.lower()] = self.value()
            elif named:
                raise self.error("values without a key must come before those with one", at)
            else:
                values.append(self.value())
            if not self.take(","):
                self.expect(closing)
                break
        self.depth -= 1
        return values, named


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _several(cls: Callable[..., Any]) -> str | None:
    """Return the name of a class's `*args`, such as `tiers` of `Tiers`, or None."""
    parameters = inspect.signature(cls).parameters.values()
    return next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)


def describe(value: Any) -> str:
    """Return the text that `parse` reads back; raise for classes that are not registered.

    Example:
        >>> from podium.objectives import Hinge, Pairwise, describe
        >>> describe(Pairwise(Hinge(0.5)))
        'Pairwise(link=Hinge(margin=0.5))'

    """
    if isinstance(value, Measure):
        return _described_measure(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool | np.bool_) or value is None:
        return str(value).lower()
    if isinstance(value, numbers.Real):
        return repr(int(value) if isinstance(value, numbers.Integral) else float(value))
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(describe, value))}]"
    if type(value) not in registered_classes().values() or not is_dataclass(value):
        raise DataError(f"{value!r} cannot be written as text")
    several = _several(type(value))
    parts = [] if several is None else [describe(part) for part in getattr(value, several)]
    for field in fields(value):
        setting = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.name != several and setting != default:
            parts.append(f"{field.name}={describe(setting)}")
    return f"{type(value).__name__}({', '.join(parts)})"


def _described_measure(measure: Measure) -> str:
    """Return a measure's name, or its `repr` if the name cannot be parsed, for example if a label has a comma."""
    with suppress(DataError):
        if as_measure(str(measure)) == measure:
            return _quoted(str(measure))
    if type(measure) not in _measures().values():
        raise DataError(f"{measure!r} cannot be written as text")
    return repr(measure)


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and not set(text) & set('"\\') else repr(text)
