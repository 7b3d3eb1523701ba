"""Parameters that are declared once: name, type, range, default, help, and their names in other tools.

A declaration (`core/hyperparameters.py` has all of them) is a value:

    N_LEAVES = integer("n_leaves", 15, least=2, help="leaves of a tree, at most", names=Names(lightgbm="num_leaves"))

A class says which parameters it has, and its own defaults. Calling a declaration makes the field of a dataclass, so
type checkers and editors know the constructor:

    class TreeParameters(Parameterized):         # estimators: checked in `fit`, as scikit-learn wants it
        n_leaves: int = N_LEAVES()               # McRank changes its default: N_LEAVES(10)

    @settings                                    # the engine's settings: frozen, checked when they are made
    class GrowthParameters:
        n_leaves: int = N_LEAVES()               # always the declared default

    from_parameters(GrowthParameters, estimator) # the values of the estimator, by the declared names

Signatures, checks, the `Args` of docstrings, command-line options (`cli/options.py`), tables in the docs (`table`) and
translations from LightGBM and XGBoost (`estimators/translating.py`) derive from these.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Generic, Self, TypeVar, cast, dataclass_transform

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
    """What other tools call a parameter: the name that the tool's documentation has, then aliases, in one string.

    Attributes:
        lightgbm, xgboost, catboost, ranklib: names, separated by spaces.
        defaults: of each tool, as its documentation has it.
        advice: what to write in Podium, where it is more than the other name.

    """

    lightgbm: str = ""
    xgboost: str = ""
    catboost: str = ""
    ranklib: str = ""
    defaults: tuple[str, str, str, str] = ("", "", "", "")
    advice: str = ""

    def of(self, tool: str) -> list[str]:
        """What a tool calls it."""
        return str(getattr(self, tool)).split()


@dataclasses.dataclass(frozen=True)
class Parameter(Generic[Value]):
    """One parameter.

    Attributes:
        name: Podium's name.
        kind: `int`, `float`, `bool`, `str`, `list` (of text), or `object` for whatever the engine checks itself.
        default: where a class names no other.
        help: what it does; the first sentence is shown on the command line.
        least, above, most, below: the range of numbers.
        choices: the words that are allowed.
        optional: whether None is allowed.
        option: the command-line option where it is not the name; None where there is none.
        read: makes the value from the text of a command-line option, where `kind` does not say how.
        names: in other tools.

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
    option: str | None = ""
    read: Callable[[str], Any] | None = None
    names: Names = Names()

    def __call__(self, default: Value = UNSET) -> Value:
        """The field of a dataclass that holds this parameter, with a default of the class's own."""
        declared = self if default is UNSET else dataclasses.replace(self, default=default)
        # A type checker sees the value that the attribute will have, as with `dataclasses.field`.
        return cast("Value", dataclasses.field(default=declared.default, metadata={"parameter": declared}))

    @property
    def summary(self) -> str:
        """The first sentence of the help, with a capital letter."""
        first = re.split(r"(?<=[^.])\. ", self.help, maxsplit=1)[0].rstrip(".")
        return first[:1].upper() + first[1:] + "."

    @property
    def flag(self) -> str | None:
        """The command-line option, such as `--n-leaves`; None where there is none."""
        return None if self.option is None else "--" + (self.option or self.name).replace("_", "-")

    def check(self, value: object, name: str = "") -> None:
        """Raise a `DataError` that says what was expected and what came; `name` is what the caller calls it.

        >>> integer("n_leaves", 15, least=2, help="leaves of a tree").check(1)
        Traceback (most recent call last):
        podium.errors.DataError: n_leaves must be a whole number from 2, but is 1
        """
        name = name or self.name
        if value is None and self.optional:
            return
        if self.kind is int:
            most = {} if self.most is None else {"most": int(self.most)}
            least = None if self.least is None else int(self.least)
            require_whole(name, value, least, optional=self.optional, **most)
        elif self.kind is float:
            limits = {"above": self.above, "least": self.least, "most": self.most, "below": self.below}
            require_number(name, value, **{key: limit for key, limit in limits.items() if limit is not None})
        elif self.kind is bool and not (isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")):
            raise DataError(f"{name} must be True or False, but is {value!r}")
        elif self.choices and value not in self.choices:
            near = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            few = " or ".join(map(repr, self.choices))
            listed = few if len(self.choices) < 3 else "one of " + ", ".join(map(repr, self.choices))
            raise DataError(f"{name} must be {listed}, not {value!r}{near}")


def integer(name: str, default: int = UNSET, **declared: Any) -> Parameter[int]:
    """A whole number."""
    return Parameter(name, int, default, **declared)


def number(name: str, default: float = UNSET, **declared: Any) -> Parameter[float]:
    """A finite number."""
    return Parameter(name, float, default, **declared)


def fraction(name: str, default: float = 1.0, **declared: Any) -> Parameter[float]:
    """A share: above 0, at most 1."""
    return Parameter(name, float, default, above=0, most=1, **declared)


def flag(name: str, default: bool = UNSET, **declared: Any) -> Parameter[bool]:
    """True or False."""
    return Parameter(name, bool, default, **declared)


def choice(name: str, default: Value, choices: tuple[str, ...], **declared: Any) -> Parameter[Value]:
    """One of some words."""
    return Parameter(name, str, default, choices=choices, **declared)


def anything(name: str, default: Any = None, **declared: Any) -> Parameter[Any]:
    """What only the engine can check: a measure, an objective, a net."""
    return Parameter(name, object, default, **declared)


def optional(declared: Parameter[Value]) -> Parameter[Value | None]:
    """The same, or None; None is the default where there is none."""
    default = None if declared.default is UNSET else declared.default
    return cast("Parameter[Value | None]", dataclasses.replace(declared, optional=True, default=default))


def parameters(cls: type | object) -> dict[str, Parameter[Any]]:
    """The declared parameters of a class by the names of its fields, in the order of its signature."""
    fields = [field for field in dataclasses.fields(cast("Any", cls)) if "parameter" in field.metadata]
    return {
        field.name: field.metadata["parameter"] for field in sorted(fields, key=lambda field: field.kw_only is True)
    }


def check_parameters(owner: object) -> None:
    """Raise a `DataError` for the first parameter of an object that is out of its range."""
    for name, parameter in parameters(owner).items():
        parameter.check(getattr(owner, name))


def unknown_parameter(owner: str, name: str, names: Iterable[str]) -> ParameterError:
    """The error for a parameter that `owner` does not have."""
    from podium.core.hyperparameters import advice

    names = sorted(names)
    hint = advice(name, names) or f"; it has {', '.join(names)}"
    return ParameterError(f"{owner} has no parameter {name!r}{hint}")


@dataclass_transform(eq_default=False)
class Parameterized:
    """A class whose fields are parameters: a dataclass that scikit-learn can clone and search.

    The constructor stores values as they are and checks names only; `check_parameters` belongs into `fit`. A subclass
    changes a default in one line. It may have a constructor of its own with `**settings` for all other parameters.

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
        """Look at the names before the constructor does: its own error does not say which one was meant."""
        names = set(inspect.signature(cls.__init__).parameters) - {"self"}
        for name in values:
            if name not in names:
                raise unknown_parameter(cls.__name__, name, names)
        return super().__new__(cls)

    def set_params(self, **values: Any) -> Self:
        """Set parameters, as scikit-learn has it."""
        names: dict[str, Any] = self.get_params()  # type: ignore[attr-defined]
        for name in values:
            if name.partition("__")[0] not in names:
                raise unknown_parameter(type(self).__name__, name, names)
        super().set_params(**values)  # type: ignore[misc]
        return self


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings(cls: Class) -> Class:
    """Make a frozen dataclass that takes keywords only and checks its declared parameters before `__post_init__`.

    A declared parameter has the declared default here: only an estimator may have another one.
    """
    further = vars(cls).get("__post_init__")

    def check(self: object) -> None:
        check_parameters(self)
        if further is not None:
            further(self)

    cls.__post_init__ = check  # type: ignore[attr-defined]
    dataclasses.dataclass(frozen=True, kw_only=True)(cls)  # which changes the class in place
    _document(cls)
    return cls


def from_parameters(cls: type[Settings], owner: object, **others: Any) -> Settings:
    """Make settings from the parameters of `owner`, by their declared names; `others` are all other fields.

    >>> from podium.core.hyperparameters import N_LEAVES, N_TREES
    >>> class Trees(Parameterized):
    ...     n_trees: int = N_TREES()
    ...     n_leaves: int = N_LEAVES()
    >>> @settings
    ... class Growth:
    ...     n_leaves: int = N_LEAVES()
    >>> from_parameters(Growth, Trees(n_leaves=7))
    Growth(n_leaves=7)
    """
    given = parameters(owner)
    shared = {name: parameter.name for name, parameter in parameters(cls).items() if parameter.name in given}
    return cls(**{name: getattr(owner, declared) for name, declared in shared.items()} | others)


def _spell_out_settings(cls: type) -> None:
    """Put all other fields in the place of a constructor's `**settings`: scikit-learn reads parameters from there."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    if "__signature__" in vars(cls.__init__) or len(named) == len(signature.parameters):  # type: ignore[misc]
        return
    taken = {p.name for p in named}
    named += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default)
        for name, parameter in parameters(cls).items()
        if name not in taken
    ]
    cls.__init__.__signature__ = signature.replace(parameters=named)  # type: ignore[misc]


@cache  # many classes have the same parameters
def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)


def _document(cls: type) -> None:
    """Put the declared parameters into the `Args` of a class's docstring; what it says of one itself stays."""
    if "__doc__" not in vars(cls) or not cls.__doc__ or cls.__doc__.startswith(f"{cls.__name__}("):
        return
    text = inspect.cleandoc(cls.__doc__)
    head, section, rest = text.partition("Args:\n")
    cut = re.search(r"\n\n(?=\S)|\Z", rest)
    end = cut.start() if cut else len(rest)
    told = re.findall(r"^ {4}(\w+):", rest[:end], re.MULTILINE)
    declared = {name: parameter for name, parameter in parameters(cls).items() if name not in told}
    args = "\n".join(_wrapped(f"{name}: {parameter.help}") for name, parameter in declared.items())
    if section:
        cls.__doc__ = f"{head}Args:\n{rest[:end].rstrip()}\n{args}{rest[end:]}"
        return
    cut = re.search(r"\n\n(?=Attributes:|Example|>>>)", text)
    end = cut.start() if cut else len(text)
    cls.__doc__ = f"{text[:end]}\n\nArgs:\n{args}{text[end:]}"


def table(cls: type) -> str:
    """The parameters of a class as a Markdown table, for the docs; a test holds the pages to it.

    >>> from podium.core.hyperparameters import N_LEAVES
    >>> class Trees(Parameterized):
    ...     n_leaves: int = N_LEAVES(15)
    >>> print(table(Trees))
    | parameter | default | what it is |
    |---|---|---|
    | `n_leaves` | `15` | leaves of a tree, at most |
    <BLANKLINE>
    """
    rows = [f"| `{name}` | `{one.default!r}` | {one.help.rstrip('.')} |" for name, one in parameters(cls).items()]
    return "\n".join(["| parameter | default | what it is |", "|---|---|---|", *rows]) + "\n"
