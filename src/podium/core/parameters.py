"""Declare each parameter once: name, type, range, default, help, and the names in other tools.

A declaration is a value (`core/hyperparameters.py` has all of them):

    N_LEAVES = integer("n_leaves", 15, least=2, help="maximum number of leaves", names=Names(lightgbm="num_leaves"))

A class lists its parameters, and may change their defaults. A call of a declaration creates the field of a dataclass,
so that type checkers and editors know the constructor:

    class TreeParameters(Parameterized):         # estimators: checked in `fit`, as scikit-learn requires
        n_leaves: int = N_LEAVES()               # McRank changes its default: N_LEAVES(10)

    @settings                                    # the engine's settings: frozen, checked on construction
    class GrowthParameters:
        n_leaves: int = N_LEAVES()               # always the declared default

    from_parameters(GrowthParameters, estimator) # takes the values of the estimator by the declared names

Signatures, checks, the `Args` of docstrings, command-line options (`cli/options.py`), tables in the docs
(`bench/tables.py`) and translations from LightGBM and XGBoost (`estimators/translating.py`) all derive from these
declarations.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Generic, Self, TypeGuard, TypeVar, cast, dataclass_transform

from podium.core.validation import did_you_mean, require_number, require_whole
from podium.errors import DataError, ParameterError

Value = TypeVar("Value")
Class = TypeVar("Class", bound=type)
Settings = TypeVar("Settings")
UNSET: Any = object()  # None is a value
WIDTH = 116  # of a line in the Args of a docstring, before help() indents it
TOOLS = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost", "ranklib": "RankLib"}


@dataclasses.dataclass(frozen=True)
class Names:
    """The names of a parameter in other tools: the documented name, then aliases, in one string.

    Attributes:
        lightgbm, xgboost, catboost, ranklib: names, separated by spaces.
        defaults: the documented default of each tool.
        advice: what to write in Podium if the name alone does not say it.

    """

    lightgbm: str = ""
    xgboost: str = ""
    catboost: str = ""
    ranklib: str = ""
    defaults: tuple[str, str, str, str] = ("", "", "", "")
    advice: str = ""

    def of(self, tool: str) -> list[str]:
        """Return the names in a tool."""
        return str(getattr(self, tool)).split()


@dataclasses.dataclass(frozen=True)
class Parameter(Generic[Value]):
    """The declaration of a parameter.

    Attributes:
        name: Podium's name.
        kind: `int`, `float`, `bool`, `str`, `list` (of text), or `object` for values that the engine checks itself.
        default: the default, unless a class has another one.
        help: the description; the command line shows its first sentence.
        least, above, most, below: the range of numbers.
        choices: the allowed words.
        optional: whether None is allowed.
        by_round: whether a list or a function of the round may replace the number (`in_round`).
        option: the command-line option, if it differs from the name; None if the command line has no such option.
        read: converts the text of a command-line option, if `kind` does not.
        names: the names in other tools.

    """

    name: str
    kind: type
    default: Any
    help: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False
    by_round: bool = False
    option: str | None = ""
    read: Callable[[str], Any] | None = None
    names: Names = Names()

    def __call__(self, default: Value = UNSET) -> Value:
        """Return the dataclass field of this parameter, with another default if one is passed."""
        declared = self if default is UNSET else dataclasses.replace(self, default=default)
        # As with `dataclasses.field`, type checkers see the type of the value.
        return cast("Value", dataclasses.field(default=declared.default, metadata={"parameter": declared}))

    @property
    def summary(self) -> str:
        """The first sentence of the help, with a capital letter."""
        first = re.split(r"(?<=[^.])\. ", self.help, maxsplit=1)[0].rstrip(".")
        return first[:1].upper() + first[1:] + "."

    @property
    def flag(self) -> str | None:
        """The command-line option, for example `--n-leaves`, or None."""
        return None if self.option is None else "--" + (self.option or self.name).replace("_", "-")

    def check(self, value: object, name: str = "") -> None:
        """Raise a `DataError` if a value is invalid; the message refers to it as `name`.

        >>> integer("n_leaves", 15, least=2, help="leaves of a tree").check(1)
        Traceback (most recent call last):
        podium.errors.DataError: n_leaves must be a whole number from 2, but is 1
        """
        name = name or self.name
        if (value is None and self.optional) or (self.by_round and callable(value)):  # `in_round` checks its results
            return
        if self.kind is int:
            most = {} if self.most is None else {"most": int(self.most)}
            least = None if self.least is None else int(self.least)
            require_whole(name, value, least, optional=self.optional, **most)
        elif self.by_round and _is_list(value):
            if not len(value):
                raise DataError(f"{name} must have at least a value for the first round, but is empty")
            for k, entry in enumerate(value):
                self._for_one_round().check(entry, f"{name}[{k}]")
        elif self.kind is float:
            limits = {"above": self.above, "least": self.least, "most": self.most, "below": self.below}
            require_number(name, value, **{key: limit for key, limit in limits.items() if limit is not None})
        elif self.kind is bool and not (isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")):
            raise DataError(f"{name} must be True or False, but is {value!r}")
        elif self.choices and value not in self.choices:
            hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            words = [repr(word) for word in self.choices]
            expected = " or ".join(words) if len(words) < 3 else "one of " + ", ".join(words)
            raise DataError(f"{name} must be {expected}, but is {value!r}{hint}")

    def in_round(self, value: Any, iteration: int) -> float:
        """Return the value in a round, counted from 0; the last entry of a list applies to all later rounds.

        >>> rate = number("learning_rate", 0.1, above=0, by_round=True, help="the share of each step that is taken")
        >>> rate.in_round(0.1, 7), rate.in_round([0.3, 0.2], 7), rate.in_round(lambda k: 0.5 / (1 + k), 4)
        (0.1, 0.2, 0.1)
        """
        if callable(value):
            value = value(iteration)
            self._for_one_round().check(value, f"{self.name} in round {iteration}")
        return float(value[min(iteration, len(value) - 1)] if _is_list(value) else value)

    def _for_one_round(self) -> Parameter[Value]:
        return dataclasses.replace(self, by_round=False, optional=False)


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple) or type(value).__name__ == "ndarray"  # this file does not import NumPy


def integer(name: str, default: int = UNSET, **declared: Any) -> Parameter[int]:
    """Return a parameter that is a whole number."""
    return Parameter(name, int, default, **declared)


def number(name: str, default: float = UNSET, **declared: Any) -> Parameter[float]:
    """Return a parameter that is a finite number."""
    return Parameter(name, float, default, **declared)


def fraction(name: str, **declared: Any) -> Parameter[float]:
    """Return a parameter that is a share, above 0 and at most 1; by default 1."""
    return Parameter(name, float, 1.0, above=0, most=1, **declared)


def flag(name: str, default: bool = UNSET, **declared: Any) -> Parameter[bool]:
    """Return a parameter that is True or False."""
    return Parameter(name, bool, default, **declared)


def choice(name: str, default: Value, choices: tuple[str, ...], **declared: Any) -> Parameter[Value]:
    """Return a parameter that is one of several words."""
    return Parameter(name, str, default, choices=choices, **declared)


def anything(name: str, default: Any = None, **declared: Any) -> Parameter[Any]:
    """Return a parameter that only the engine can check: a measure, an objective, a net."""
    return Parameter(name, object, default, **declared)


def optional(declared: Parameter[Value]) -> Parameter[Value | None]:
    """Return the same parameter, but allow None, which becomes the default unless another one is declared."""
    default = None if declared.default is UNSET else declared.default
    return cast("Parameter[Value | None]", dataclasses.replace(declared, optional=True, default=default))


def parameters(cls: type | object) -> dict[str, Parameter[Any]]:
    """Return the declared parameters of a class by the names of its fields, in the order of its signature."""
    fields = [field for field in dataclasses.fields(cast("Any", cls)) if "parameter" in field.metadata]
    return {
        field.name: field.metadata["parameter"] for field in sorted(fields, key=lambda field: field.kw_only is True)
    }


def check_parameters(owner: object) -> None:
    """Raise a `DataError` for the first invalid parameter of an object."""
    for name, parameter in parameters(owner).items():
        parameter.check(getattr(owner, name))


def unknown_parameter(owner: str, name: str, names: Iterable[str]) -> ParameterError:
    """Return the error for a parameter that `owner` does not have."""
    from podium.core.hyperparameters import advice

    names = sorted(names)
    hint = advice(name, names) or f"; it has {', '.join(names)}"
    return ParameterError(f"{owner} has no parameter {name!r}{hint}")


@dataclass_transform(eq_default=False)
class Parameterized:
    """The base of classes whose fields are parameters: dataclasses that scikit-learn can clone and search.

    The constructor stores values unchanged and only checks names; `fit` must call `check_parameters`. A subclass can
    change a default in one line, or define a constructor that takes all other parameters as `**settings`.

    >>> from podium.core.hyperparameters import N_LEAVES
    >>> class Trees(Parameterized):
    ...     n_leaves: int = N_LEAVES(15)
    >>> Trees(n_leaves=7).n_leaves
    7
    >>> Trees(num_leaves=7)
    Traceback (most recent call last):
    podium.errors.ParameterError: Trees has no parameter 'num_leaves': use n_leaves (LightGBM has num_leaves)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(repr=False, eq=False)(cls)
        if "__init__" in vars(cls):
            _spell_out_settings(cls)
        _document(cls)

    def __new__(cls, *_: Any, **values: Any) -> Self:
        """Check the names first, because the error of the constructor would not suggest the right name."""
        names = set(inspect.signature(cls.__init__).parameters) - {"self"}
        for name in values:
            if name not in names:
                raise unknown_parameter(cls.__name__, name, names)
        return super().__new__(cls)

    def set_params(self, **values: Any) -> Self:
        """Set parameters, as in scikit-learn."""
        names: dict[str, Any] = self.get_params()  # type: ignore[attr-defined]
        for name in values:
            if name.partition("__")[0] not in names:
                raise unknown_parameter(type(self).__name__, name, names)
        super().set_params(**values)  # type: ignore[misc]
        return self


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings(cls: Class) -> Class:
    """Make a frozen, keyword-only dataclass that checks its declared parameters before `__post_init__`.

    Parameters keep their declared defaults here; only estimators may change them.
    """
    post_init = vars(cls).get("__post_init__")

    def check(self: object) -> None:
        check_parameters(self)
        if post_init is not None:
            post_init(self)

    cls.__post_init__ = check  # type: ignore[attr-defined]
    dataclasses.dataclass(frozen=True, kw_only=True)(cls)  # changes the class in place
    _document(cls)
    return cls


def from_parameters(cls: type[Settings], owner: object, **others: Any) -> Settings:
    """Create settings from the parameters of `owner` with the same declared names; `others` are all other fields."""
    available = parameters(owner)
    shared = {name: parameter.name for name, parameter in parameters(cls).items() if parameter.name in available}
    return cls(**{name: getattr(owner, declared) for name, declared in shared.items()} | others)


def _spell_out_settings(cls: type) -> None:
    """Replace a constructor's `**settings` by all other fields in its signature, which scikit-learn reads."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    if "__signature__" in vars(cls.__init__) or len(named) == len(signature.parameters):  # type: ignore[misc]
        return
    named_already = {p.name for p in named}
    named += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default)
        for name, parameter in parameters(cls).items()
        if name not in named_already
    ]
    cls.__init__.__signature__ = signature.replace(parameters=named)  # type: ignore[misc]


@cache  # many classes have the same parameters
def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)


def _document(cls: type) -> None:
    """Add the declared parameters to the `Args` of a class's docstring, except those that it documents itself."""
    if "__doc__" not in vars(cls) or not cls.__doc__ or cls.__doc__.startswith(f"{cls.__name__}("):
        return
    text = inspect.cleandoc(cls.__doc__)
    head, section, rest = text.partition("Args:\n")
    section_end = re.search(r"\n\n(?=\S)", rest)
    end = section_end.start() if section_end else len(rest)
    documented = re.findall(r"^ {4}(\w+):", rest[:end], re.MULTILINE)
    declared = {name: parameter for name, parameter in parameters(cls).items() if name not in documented}
    args = "\n".join(_wrapped(f"{name}: {parameter.help}") for name, parameter in declared.items())
    if section:
        cls.__doc__ = f"{head}Args:\n{rest[:end].rstrip()}\n{args}{rest[end:]}"
        return
    next_section = re.search(r"\n\n(?=Attributes:|Example|>>>)", text)
    end = next_section.start() if next_section else len(text)
    cls.__doc__ = f"{text[:end]}\n\nArgs:\n{args}{text[end:]}"
