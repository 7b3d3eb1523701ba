"""The class `Feature`, an immutable value that can be written as text and parsed, and the registry of features."""

from __future__ import annotations

import inspect
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, Field, dataclass, make_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

import numpy as np

from podium.core.array_types import Floats
from podium.core.parameters import Parameter, anything, check_parameters, parameters
from podium.core.validation import did_you_mean
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.features.index import Index
    from podium.features.matches import PairBlock

MISSING = anything(
    "missing", math.nan,
    help="the value of pairs for which the feature is undefined: `nan`, a number, or `minimum`, the smallest value "
    "among the query's other candidates (so it depends on the candidates)",
)  # fmt: skip
Definition = TypeVar("Definition", bound=Callable[..., Any])


@dataclass(frozen=True)
class Feature(ABC):
    """A number for each pair of a query and a document.

    Features are immutable, and `parse(str(feature))` is the same feature. To add a feature, write a subclass with a
    `values` method, or a function (see `register`).

    Args:
        fields: the text fields of the feature, by default all fields of the index. They are combined into one stream
            of words, whose lengths and term frequencies are sums.
        missing: the value of pairs for which the feature is undefined: NaN, a number, or `"minimum"`, the smallest
            value among the query's other candidates.

    Attributes:
        name: the name of the feature in texts.
        formula, source: its definition, and the publication or system that it comes from.
        undefined: when it is undefined.

    Example:
        >>> from podium.features import parse
        >>> feature = parse("bm25(title, k1=0.9)")
        >>> feature
        BM25(fields=('title',), missing=nan, k1=0.9, b=0.75, idf='lucene', scaled=False)
        >>> str(feature), feature.undefined
        ('bm25(title, k1=0.9)', 'never')

    """

    fields: tuple[str, ...] = ()
    _: KW_ONLY
    missing: float | str = MISSING()

    name: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    source: ClassVar[str] = ""
    undefined: ClassVar[str] = "never"
    takes: ClassVar[str] = "stream"  # what `fields` are: a stream, one field, one attribute, or fields with weights
    defined_by: ClassVar[str] = "values"  # the method that a registered function becomes

    def __post_init__(self) -> None:
        names = (self.fields,) if isinstance(self.fields, str) else tuple(self.fields)
        if not all(isinstance(name, str) and name for name in names):
            raise DataError(f"fields of {self.word()} must be names, but got {self.fields!r}")
        if len(set(names)) < len(names):
            raise DataError(f"fields of {self.word()} must be distinct, but got {', '.join(names)}")
        if self.takes in ("field", "attribute") and len(names) != 1:
            raise DataError(f"{self.word()} requires exactly one {self.takes}, but got {', '.join(names) or 'none'}")
        object.__setattr__(self, "fields", names)
        object.__setattr__(self, "missing", _missing_value(self.missing))
        check_parameters(self)

    @classmethod
    def word(cls) -> str:
        """Return the name that texts use."""
        return cls.name or cls.__name__.lower()

    def __str__(self) -> str:
        entries = [self._shown_field(k) for k in range(len(self.fields))]
        for name, parameter in parameters(self).items():
            value = getattr(self, name)
            if shown_value(value) != shown_value(parameter.default):
                entries.append(f"{name}={shown_value(value)}")
        return self.word() + (f"({', '.join(entries)})" if entries else "")

    def _shown_field(self, k: int) -> str:
        return quoted(self.fields[k])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)  # NaN equals NaN here

    def __hash__(self) -> int:
        return hash((type(self), str(self)))

    def replace(self, **changes: Any) -> Self:
        """Return the feature with some parameters changed."""
        return replace(self, **changes)

    def check(self, index: Index) -> None:
        """Raise a `DataError` if the index lacks something that the feature requires."""
        is_attribute = self.takes == "attribute"
        names: Mapping[str, Any] = index.attributes if is_attribute else index.fields
        for name in self.fields:
            if name not in names:
                kind, near = "numeric attribute" if is_attribute else "text field", did_you_mean(name, names)
                raise DataError(f"{self}: the index has no {kind} {name!r}{near}; it has {', '.join(names) or 'none'}")

    @abstractmethod
    def values(self, pairs: PairBlock) -> Floats:
        """Return the value of each pair of a block, NaN if the feature is undefined."""

    def column(self, pairs: PairBlock) -> Floats:
        """Return the values of a block of pairs, with `missing` in place of undefined ones."""
        column = np.asarray(self.values(pairs), np.float64)
        if column.shape != (len(pairs),):
            raise DataError(
                f"{self} must return one value for each of {len(pairs)} pairs, but got shape {column.shape}"
            )
        if self.missing == "minimum":
            return pairs.filled_with_minimum(column)
        return column if math.isnan(self.missing) else np.where(np.isnan(column), self.missing, column)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class TermSum(Feature):
    """A feature that is a sum over the query's terms, in their order."""

    defined_by: ClassVar[str] = "term_values"

    @abstractmethod
    def term_values(self, pairs: PairBlock) -> Floats:
        """Return the contribution of each term of each pair, in the layout of `pairs.matches(self.fields)`."""

    def values(self, pairs: PairBlock) -> Floats:
        """Return the sums; a subclass may multiply them by a factor of the whole pair."""
        return pairs.matches(self.fields).sum(self.term_values(pairs))


def _missing_value(value: Any) -> float | str:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and value in ("minimum", "nan")):
        raise DataError(f"missing must be nan, minimum or a number, but got {value!r}")
    return "minimum" if value == "minimum" else float(value)


_PLAIN = re.compile(r"[\w./-]+")


def quoted(text: str) -> str:
    """Return a name as in the text of a feature, in quotation marks if necessary."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def shown_value(value: Any) -> str:
    """Return the value of a parameter as in the text of a feature."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(float(value)).removesuffix(".0")
    return quoted(value) if isinstance(value, str) else str(value)


_FEATURES: dict[str, type[Feature]] = {}


@overload
def register(definition: Definition) -> Definition: ...
@overload
def register(
    *, formula: str, source: str = "", undefined: str = "never", base: Any = Feature
) -> Callable[[Callable[..., Any]], Any]: ...
def register(definition: Any = None, **facts: Any) -> Any:
    """Register a feature by its name; use it to decorate a subclass of `Feature` or a function.

    A function receives the `Matches` of the feature's fields and returns one value per pair. The feature has its name
    and its keyword arguments. The decorator returns a `Feature` class.

    Args:
        definition: a subclass of `Feature` or a function.
        facts: for a function, its `formula`, `source` and `undefined` as in `Feature`, and `base`, the class whose
            abstract method it becomes.

    Example:
        >>> import numpy as np
        >>> from podium.features import parse, register
        >>> @register
        ... def rare_words(matches, least=2.0):
        ...     is_rare = (matches.idf() >= least)[matches.term] & (matches.tf > 0)
        ...     return matches.sum(is_rare.astype(float))
        >>> str(parse("rare_words(title, least=3)"))
        'rare_words(title, least=3)'
        >>> unregister("rare_words")

    """
    if definition is None:
        return lambda function: register(_class_of(function, **{"undefined": "never", **facts}))
    cls: Any = definition if isinstance(definition, type) else _class_of(definition)
    if not issubclass(cls, Feature):
        raise DataError(f"{cls.__name__} is not a subclass of podium.features.Feature")
    other = _FEATURES.get(cls.word())
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise DataError(f"the feature {cls.word()!r} already exists: {other.__module__}.{other.__qualname__}")
    _FEATURES[cls.word()] = cls
    return cls


def _class_of(
    function: Callable[..., Any], base: type[Feature] = Feature, undefined: str = "if it returns NaN", **facts: str
) -> type[Feature]:
    """Return a feature class whose values a function computes."""
    _, *options = inspect.signature(function).parameters.values()
    declared: list[tuple[str, type, Any]] = []
    for option in options:
        if isinstance(option.default, Field):  # of a `Parameter`
            parameter = option.default.metadata["parameter"]
            declared.append((option.name, parameter.kind, parameter()))
            continue
        kind = type(option.default)
        if kind not in (bool, int, float):
            raise DataError(
                f"{function.__name__}: the default of the parameter {option.name!r} must be a number or a boolean"
            )
        new: Any = Parameter(option.name, kind, option.default, help=option.name)()
        new.kw_only = True
        declared.append((option.name, kind, new))

    def compute(self: Any, pairs: PairBlock) -> Any:
        return function(pairs.matches(self.fields), **{name: getattr(self, name) for name, *_ in declared})

    summary = inspect.getdoc(function) or ""
    content = {
        base.defined_by: compute, "name": function.__name__, "formula": summary.partition("\n")[0], "__doc__": summary,
        "undefined": undefined, "__module__": function.__module__, "__qualname__": function.__qualname__,
    } | facts  # fmt: skip
    return make_dataclass(function.__name__, declared, bases=(base,), namespace=content, frozen=True, eq=False)


def unregister(name: str) -> None:
    """Remove a feature from the registry."""
    del _FEATURES[name]


def registered() -> dict[str, type[Feature]]:
    """Return all registered features by name, Podium's own first.

    Example:
        >>> from podium.features import registered
        >>> registered()["bm25"].__name__
        'BM25'

    """
    from podium.features import attributes, proximity, ranking_functions, term_features

    modules = [module.__name__ for module in (term_features, ranking_functions, proximity, attributes)]
    place = {name: k for k, name in enumerate(modules)}
    return dict(sorted(_FEATURES.items(), key=lambda item: place.get(item[1].__module__, len(place))))


_CALL = re.compile(r"\s*(?P<name>[a-z_]\w*)\s*(?:\((?P<entries>.*)\))?\s*", re.IGNORECASE | re.DOTALL)
_ENTRY = re.compile(
    r"""\s*(?:(?P<key>[a-z_]\w*)\s*=\s*)?(?P<value>"(?:[^"\\]|\\.)*"|[^\s",:=()]+)"""
    r"""(?:\s*:\s*(?P<weight>[^\s",:=()]+))?\s*(?P<end>,|\Z)""",
    re.IGNORECASE,
)


def parse(text: str) -> Feature:
    """Parse a feature from text: `name(field, …, parameter=value, …)`.

    Example:
        >>> from podium.features import parse
        >>> str(parse("BM25F( title:3,overview , k1=1.2)"))
        'bm25f(title:3, overview)'

    """
    example = "a name with fields, for example bm25(title, k1=1.2)"
    cls, names, weights, settings = parse_call(text, registered(), "feature", example)
    if cls.takes == "weights":
        settings["weights"] = tuple(weights)
    elif any(weight != 1.0 for weight in weights):
        raise DataError(f"{text!r}: {cls.word()} does not support weights; use bm25f")
    try:
        return cls(tuple(names), **settings)  # type: ignore[no-any-return]
    except DataError as error:
        raise DataError(f"{text!r}: {error}") from None


def parse_call(
    text: Any, classes: Mapping[str, Any], kind: str, example: str
) -> tuple[Any, list[str], list[float], dict[str, Any]]:
    """Return the class that a text names, and the fields, weights and parameters in its parentheses.

    Args:
        text: the text.
        classes: classes with declared parameters by name.
        kind, example: what the text should be, for messages.

    """
    match = _CALL.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise DataError(f"{text!r} is not a {kind}; expected {example}")
    cls = classes.get(match["name"].lower())
    if cls is None:
        near = did_you_mean(match["name"], classes)
        raise DataError(f"there is no {kind} {match['name']!r}{near}; choose from {', '.join(sorted(classes))}")
    names: list[str] = []
    weights: list[float] = []
    settings: dict[str, Any] = {}
    declared = parameters(cls)
    inside = match["entries"] or ""
    at = 0
    while inside[at:].strip():
        entry = _ENTRY.match(inside, at)
        if entry is None or (entry["end"] == "," and not inside[entry.end() :].strip()):
            column = match.start("entries") + at + 1
            raise DataError(f"{text!r}, column {column}: expected a field, field:weight or parameter=value")
        at = entry.end()
        key, value = entry["key"], entry["value"]
        if key is None:
            if settings:
                raise DataError(f"{text!r}: fields must come before parameters, but {value!r} comes after one")
            names.append(json.loads(value) if value.startswith('"') else value)
            weights.append(_number(text, "weight", entry["weight"] or "1"))
        elif key.lower() not in declared or entry["weight"]:
            near = did_you_mean(key, declared)
            name = match["name"].lower()
            raise DataError(f"{text!r}: {name} has no parameter {key!r}{near}; it has {', '.join(declared)}")
        elif key.lower() in settings:
            raise DataError(f"{text!r}: {key} occurs twice")
        else:
            settings[key.lower()] = _value(text, declared[key.lower()], value)
    return cls, names, weights, settings


def _value(text: str, parameter: Parameter[Any], value: str) -> Any:
    """Return the value of a parameter from its text."""
    if parameter.name == "missing":
        return value if value == "minimum" else _number(text, "missing", value)
    if parameter.kind is bool:
        if value.lower() not in ("true", "false"):
            raise DataError(f"{text!r}: {parameter.name} must be true or false, but got {value!r}")
        return value.lower() == "true"
    if parameter.kind is int:
        number = _number(text, parameter.name, value)
        return int(number) if number.is_integer() else number
    return _number(text, parameter.name, value) if parameter.kind is float else value


def _number(text: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise DataError(f"{text!r}: {name} must be a number, but got {value!r}") from None


def as_feature(value: Feature | str) -> Feature:
    """Return a feature; parse it if it is text."""
    if isinstance(value, Feature):
        return value
    if isinstance(value, str):
        return parse(value)
    raise DataError(f"a feature must be a Feature or text such as 'bm25(title)', but got {value!r}")


def definitions() -> list[tuple[str, str, str, str, str]]:
    """Return the call, meaning, formula, source and undefined cases of every registered feature, for tables."""
    rows = []
    for name, cls in registered().items():
        options = [f"{key}={shown_value(p.default)}" for key, p in parameters(cls).items() if key != "missing"]
        takes = {"stream": "field, …", "weights": "field:weight, …"}.get(cls.takes, cls.takes)
        call = f"{name}({', '.join([takes, *options])})"
        meaning = (cls.__doc__ or "").partition("\n")[0].rstrip(".")
        rows.append((call, meaning, cls.formula, cls.source, cls.undefined))
    return rows


def table() -> str:
    """Return all registered features as a Markdown table, for the docs; a test compares the page with it."""
    from podium.evaluation.tables import Table

    rows: list[list[Any]] = [
        [f"`{call}`", meaning, f"`{formula}`", source, undefined]
        for call, meaning, formula, source, undefined in definitions()
    ]
    return Table(["feature", "what it is", "formula", "source", "NaN where"], rows).render("markdown")
