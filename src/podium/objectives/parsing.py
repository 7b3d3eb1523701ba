"""Objectives as text: `anneal(lambda(ndcg), local(ndcg@3), linear_growth(0.1, 0.01))`.

The text is a Python expression of calls, numbers, lists, quoted text and words. It is parsed but never executed. Names
are those of the classes in `podium.objectives`, of measures and of gains, in upper or lower case, with or without
underscores or hyphens. `true`, `false` and `none` are values; other words, such as the name of a measure, are text. The
`repr` of an objective can also be parsed.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import numbers
import re
from collections.abc import Callable
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
_QUOTED_OR_WORD = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?<![\w.])[A-Za-z_][\w@.\-]*""")
_WORD = re.compile(r"[^\W\d][\w@.\-]*")
# Objectives of other tools by name, in lower case, and the most similar ones of Podium.
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
    """Return the objective that a text describes; raise if it describes none, with a hint.

    Example:
        >>> from podium.objectives import parse
        >>> parse("pairwise(hinge(margin=0.5))")
        Pairwise(link=Hinge(margin=0.5), labels='relevance', normalize=False)

    """
    equivalent = OF_OTHER_TOOLS.get(text.strip().lower())
    if equivalent is not None:
        raise DataError(f"{_short(text)} is an objective of another tool: use objective={equivalent!r}")
    reader = _ObjectiveReader(text)
    tree = reader.tree()
    value = reader.value(tree)
    if isinstance(value, type):
        value = reader.call(value, [], {}, tree)
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


def _as_python(match: re.Match[str]) -> str:
    """Return quoted text unchanged, and a word as a Python name of the same length."""
    text = match[0]
    if text[0] in "\"'":
        return text
    return text.upper() if keyword.iskeyword(text) and text.islower() else text.replace("-", "_")


class _ObjectiveReader:
    def __init__(self, text: str) -> None:
        self.text = text.strip()

    def tree(self) -> ast.expr:
        if not self.text:
            raise DataError("objective '', column 1: expected a value")
        try:
            return ast.parse(_QUOTED_OR_WORD.sub(_as_python, self.text), mode="eval").body
        except (SyntaxError, ValueError) as error:  # ValueError: a NUL character
            reason, column = getattr(error, "msg", str(error)), getattr(error, "offset", None) or 1
            raise DataError(
                f"objective {_short(self.text)}, column {column}: cannot be read, {reason} (put names of measures with "
                "settings in quotes)"
            ) from None

    def error(self, message: str, at: ast.AST) -> DataError:
        column = len(self.text.encode()[: getattr(at, "col_offset", 0)].decode()) + 1
        return DataError(f"objective {_short(self.text)}, column {column}: {message}")

    def value(self, node: ast.AST) -> Any:
        """Return the value of an expression."""
        match node:
            case ast.Constant(value=str() | int() | float() | None as value):
                return value
            case ast.List() | ast.Tuple():
                return [self.value(entry) for entry in node.elts]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign):
                number = self.value(node.operand)
                if isinstance(number, int | float):
                    return -number if isinstance(sign, ast.USub) else number
            case ast.Call():
                return self.build(node)
            case ast.BinOp(left=ast.Call() as call, op=ast.MatMult(), right=ast.Constant(value=int() as cutoff)):
                measure = self.value(call)
                if isinstance(measure, Measure):
                    return measure.replace(cutoff=cutoff)
            case ast.Name() | ast.Attribute() | ast.BinOp():
                word = self.word(node)
                cls = registered_classes().get(_plain(word))
                return cls if cls is not None else _WORDS.get(word.lower(), word)
        raise self.error("cannot be read", node)

    def word(self, node: ast.expr) -> str:
        """Return a word as it is written."""
        word = ast.get_source_segment(self.text, node) or ""
        if not _WORD.fullmatch(word):
            raise self.error(f"{_short(word)} cannot be read", node)
        return word

    def build(self, call: ast.Call) -> Any:
        """Return the object that a name with arguments describes."""
        name = self.word(call.func)
        plain = _plain(name)
        values = [self.value(argument) for argument in call.args]
        named = {str(argument.arg).lower(): self.value(argument.value) for argument in call.keywords}
        if len(named) < len(call.keywords):  # Python itself only refuses repeated names in the same case
            raise self.error(f"{name} has the same argument twice", call)
        classes, others = registered_classes(), _measures()
        if plain in classes:
            return self.call(classes[plain], values, named, call)
        if plain in others:
            return self.call(others[plain], values, named, call)
        if _NUMBERS.fullmatch(name.lower()) and len(values) == 1 and not named:
            return values[0]
        names = ", ".join(_objectives())
        raise self.error(
            f"there is no {name!r}{did_you_mean(plain, [*classes, *others])}; objectives are {names}", call
        )

    def call(self, cls: Callable[..., Any], values: list[Any], named: dict[str, Any], at: ast.AST) -> Any:
        """Call a class; arguments that are classes are called without arguments."""
        values = [self.call(value, [], {}, at) if isinstance(value, type) else value for value in values]
        named = {k: self.call(value, [], {}, at) if isinstance(value, type) else value for k, value in named.items()}
        if (variadic := _variadic(cls)) in named and not values:  # as `repr` shows it, `Sum(parts=(…), …)`
            parts = named.pop(str(variadic))
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


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _variadic(cls: Callable[..., Any]) -> str | None:
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
    variadic = _variadic(type(value))
    parts = [] if variadic is None else [describe(part) for part in getattr(value, variadic)]
    for field in fields(value):
        setting = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.name != variadic and setting != default:
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
