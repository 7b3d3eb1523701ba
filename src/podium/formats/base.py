"""What all formats share: the registry, import and export, names of categories, and numbers in files."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from podium.core.files import replacing
from podium.core.validation import did_you_mean, require_whole, to_path
from podium.data.encoding import Encoding, category_name
from podium.errors import DataError, FileFormatError, ParameterError, warn
from podium.formats.trees import feature_labels, has_made_up_names, numbered_categories
from podium.models import Ensemble, LinearModel, Model
from podium.models.archive import MAX_FEATURES
from podium.models.base import INFERRED, model_of

MAX_BYTES = 1 << 30  # of a model file
MAX_SHOWN = 100  # categories of a feature, in a note
Carries = Literal["yes", "by other means", "no"]

# Every format and the module that defines it, in the order of lists and tables.
_HOMES = {
    "lightgbm": "lightgbm", "lightgbm-json": "lightgbm", "xgboost": "xgboost", "xgboost-dump": "xgboost",
    "catboost": "catboost", "ranklib": "ranklib", "solr": "solr", "onnx": "onnx",
    "elasticsearch": "elasticsearch", "elasticsearch-plugin": "elasticsearch", "opensearch": "elasticsearch",
    "vespa": "vespa", "sklearn": "sklearn",
}  # fmt: skip


@dataclass(frozen=True)
class Export:
    """The result of an export.

    Attributes:
        format: the name of the format.
        path: the file.
        missing: what the consumer does with missing values, and what that means for this model.
        notes: what else to know when serving the file.
        differences: the values that go elsewhere in the consumer than in Podium; the export has warned about them.
        categories: for each feature whose categories the consumer takes as numbers, their names: the k-th name is
            number k.

    Example:
        >>> import podium
        >>> model = podium.LambdaMART(n_trees=2).fit(podium.artificial(20, features=4))
        >>> written = model.export("model.lgb")
        >>> written.format, written.missing
        ('lightgbm', 'NaN goes to the side that was learnt for it, as in Podium')

    """

    format: str
    path: Path
    missing: str
    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([f"{self.path}: {self.format}", f"missing values: {self.missing}", *self.notes])


@dataclass(frozen=True)
class Written:
    """The content of an export before it is written to a file."""

    content: bytes  # of the file
    # missing, notes, differences: as in `Export`
    missing: str
    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    named: Collection[int] = frozenset()  # features whose categories the consumer knows by name
    by_number: bool = False  # whether this file knows features by number, in a format that finds them by name


LEARNT_SIDE = "NaN goes to the side that was learnt for it, as in Podium"  # a format's note on missing values
# What most formats carry; each format overrides the entries in which it differs.
CARRIES: dict[str, Carries] = {
    "missing directions": "yes", "categories": "by other means", "combined models": "by other means",
    "several outputs": "no", "linear models": "no", "nets": "no", "shifted features": "no",
}  # fmt: skip


class Format:
    """A file format of models.

    Attributes:
        name: the name of the format.
        title: a short description.
        suffixes: file suffixes that suggest this format.
        carries: whether a written file holds each kind of content; see `CARRIES`.
        finds_by_name: whether its consumer looks for features by their names.

    Example:
        >>> from podium.formats import get_format
        >>> ranklib = get_format("ranklib")
        >>> ranklib.title, ranklib.can_read(), ranklib.can_write(), ranklib.carries["nets"]
        ("RankLib's text", True, True, 'no')

    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    carries: ClassVar[dict[str, Carries]] = CARRIES
    finds_by_name: ClassVar[bool] = False
    read: Callable[[bytes], Model]  # from a file's content; defined if the format can be read
    write: Callable[..., Written]  # from a model, a suffix and keyword options; defined if the format can be written

    def recognizes(self, content: bytes, suffix: str) -> bool:
        """Return whether a file looks like this format."""
        return False

    def can_read(self) -> bool:
        """Return whether models can be imported from this format."""
        return hasattr(self, "read")

    def reads_objects(self) -> bool:
        """Return whether models can be imported from objects in memory."""
        return type(self).read_object is not Format.read_object

    def can_write(self) -> bool:
        """Return whether models can be exported to this format."""
        return hasattr(self, "write")

    def read_object(self, value: Any) -> Model | None:
        """Return the model of an object in memory, such as a booster, or None if this format does not know it."""
        return None


def formats() -> dict[str, Format]:
    """Return all formats by name, in the order of tables.

    Example:
        >>> from podium.formats import formats
        >>> list(formats())[:3]
        ['lightgbm', 'lightgbm-json', 'xgboost']

    """
    return {name: get_format(name) for name in _HOMES}


def get_format(name: str) -> Format:
    """Return the format with a name.

    Args:
        name: a name that `podium formats` lists.

    Returns:
        The object that reads and writes it.

    Example:
        >>> from podium.formats import get_format
        >>> get_format("onnx").suffixes
        ('.onnx',)

    """
    if name not in _HOMES:
        raise DataError(f"there is no format {name!r}{did_you_mean(name, _HOMES)}; choose from {', '.join(_HOMES)}")
    module = import_module(f"podium.formats.{_HOMES[name]}")
    classes = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Format))
    return next(cls for cls in classes if cls.__dict__.get("name") == name)()


def import_model(source: Any, format: str | None = None, *, n_features: int | None = None) -> Model:  # noqa: A002, what users call it
    """Import a model of another tool; it predicts, combines, truncates and exports like any Podium model.

    Args:
        source: the path of a file, or a booster, ranker or estimator in memory.
        format: one of `podium formats`; detected from the file or the object by default.
        n_features: the number of columns of the data, for files that do not state it (RankLib, XGBoost's dump, some
            ONNX graphs). By default the last feature that the model uses is the last column.

    Returns:
        An `Ensemble`, or a `LinearModel` if the file holds one.

    Example:
        >>> import podium
        >>> from sklearn.ensemble import GradientBoostingRegressor
        >>> data = podium.artificial(20, features=4)
        >>> trees = GradientBoostingRegressor(n_estimators=3, random_state=0).fit(data.features, data.relevance)
        >>> podium.import_model(trees).n_trees
        3

    """
    require_whole("n_features", n_features, 0, optional=True, most=MAX_FEATURES)
    if not isinstance(source, str | os.PathLike):
        for candidate in [get_format(format)] if format else formats().values():
            if (model := candidate.read_object(source)) is not None:
                return _with_width(model, n_features)
        raise DataError(f"cannot import {type(source).__name__}: expected a path, or a model of a known library")
    path = to_path(source)
    content = _content(path)
    if format is not None:
        return _read(get_format(format), content, path, n_features)
    readable = {name: candidate for name, candidate in formats().items() if candidate.can_read()}
    for candidate in readable.values():
        if candidate.recognizes(content, path.suffix.lower()):
            return _read(candidate, content, path, n_features)
    raise FileFormatError(path, f"has an unknown format; pass one of these: {', '.join(readable)}")


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise FileFormatError(path, f"is larger than {MAX_BYTES:,} bytes, the limit for models")
        return path.read_bytes()
    except OSError as error:
        raise FileFormatError(path, f"cannot be read: {error.strerror or error}") from error


def _read(format: Format, content: bytes, path: Path, n_features: int | None) -> Model:  # noqa: A002
    try:
        with np.errstate(over="ignore"):  # numbers beyond float32 become infinite; models refuse or compare them
            model = format.read(content)
        if model.n_features > MAX_FEATURES:
            raise DataError(f"it names {model.n_features} features, which is more than Podium accepts")
        if isinstance(model, LinearModel) and not np.isfinite([model.intercept, *model.weights, *model.means]).all():
            raise DataError("a weight is not a finite number")
        return _with_width(model, n_features)
    except FileFormatError:
        raise
    except DataError as error:
        raise FileFormatError(path, str(error)) from error
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise FileFormatError(path, f"is not a valid {format.name} model ({reason[:200]})") from error


def _with_width(model: Model, n_features: int | None) -> Model:
    """Return the model for data with `n_features` columns; raise if the file states another number."""
    if n_features is None:
        return model
    n_more = n_features - model.n_features
    if n_more < 0 or (n_more > 0 and not model.info.get(INFERRED)):
        raise DataError(f"it has {model.n_features} features, so n_features cannot be {n_features}")
    model = model.with_info(**{INFERRED: False})
    if isinstance(model, LinearModel):
        return replace(model, weights=np.pad(model.weights, (0, n_more)), means=np.pad(model.means, (0, n_more)))
    assert isinstance(model, Ensemble)
    return replace(model, n_features=n_features)


def export_model(model: Model, path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Export:  # noqa: A002
    """Write a model for another system; `model.export` of every model and estimator calls this function.

    Args:
        model: any model, or a fitted estimator.
        path: the file.
        format: one of `podium formats`; by default the only format with the suffix of the path.
        **options: options of the format, see docs/formats.md.

    Returns:
        A description of the file, including how its consumer treats missing values.

    Example:
        >>> import podium
        >>> from podium.formats import export_model
        >>> model = podium.LambdaMART(n_trees=2).fit(podium.artificial(20, features=4)).model_
        >>> print(export_model(model, "model.ubj"))
        model.ubj: xgboost
        missing values: NaN goes to the side that was learnt for it, as in Podium
        scores are sums of float32: they agree to about 1e-6 of their size

    """
    path, model = to_path(path), model_of(model)
    writer = get_format(format or _by_suffix(path))
    if not writer.can_write():
        raise DataError(f"{writer.name} is for import only: models cannot be exported to it")
    allowed = [p.name for p in inspect.signature(writer.write).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in allowed:
            choices = f"its options are {', '.join(allowed)}" if allowed else "it has no options"
            raise ParameterError(
                f"the format {writer.name} has no option {option!r}{did_you_mean(option, allowed)}; {choices}"
            )
    written = writer.write(model, path.suffix.lower(), **options)
    with replacing(path) as temporary:
        temporary.write_bytes(written.content)
    labels = feature_labels(model)
    known_by_name = {labels[k] for k in written.named}
    numbered = {label: names for label, names in numbered_categories(model).items() if label not in known_by_name}
    for difference in written.differences:
        warn(difference, stacklevel=3)
    notes = [*written.notes, *(_category_note(label, names) for label, names in numbered.items())]
    if writer.finds_by_name and not written.by_number and has_made_up_names(model):
        shown = ", ".join(labels[:3]) + (", …" if len(labels) > 3 else "")
        notes.append(f"features are called {shown}: use these names in the engine, or train with feature names")
    if method := model.reading.get("normalize"):
        notes.append(
            f"features were normalized within each query ({method}) in training: normalize them before scoring"
        )
    return Export(writer.name, path, written.missing, tuple(notes), written.differences, numbered)


def _category_note(label: str, names: Sequence[str]) -> str:
    shown = ", ".join(f"{name!r} is {k}" for k, name in enumerate(names[:MAX_SHOWN]))
    more = f", … ({len(names):,} in all: see Export.categories)" if len(names) > MAX_SHOWN else ""
    return f"categories of {label!r} are numbers: {shown}{more}; any other category is a missing value"


def _by_suffix(path: Path) -> str:
    writable = {name: candidate for name, candidate in formats().items() if candidate.can_write()}
    matching = [name for name, candidate in writable.items() if path.suffix.lower() in candidate.suffixes]
    if len(matching) != 1:
        choices = ", ".join(matching or writable)
        raise DataError(f"the suffix of {path.name} does not determine the format; pass one of these: {choices}")
    return matching[0]


def json_content(document: Any) -> bytes:
    """Return a document as the content of a JSON file, with names in UTF-8."""
    return json.dumps(document, ensure_ascii=False).encode()


def distinct_names(names: Sequence[str], n_features: int) -> tuple[str, ...] | None:
    """Return the names of features, or None if they are not one distinct name for each feature."""
    return tuple(names) if len(names) == len(set(names)) == n_features else None


def require_one_output(n_outputs: Any) -> None:
    """Raise if a model has several outputs for each document."""
    if whole_number(n_outputs, "the number of outputs") > 1:
        raise DataError(f"the model has {n_outputs} outputs for each document, but a ranker has one")


def encoding_of(values: Mapping[int, Sequence[Any]], n_features: int, tool: str) -> Encoding:
    """Return the encoding in which category k of a feature is the text of the k-th of its values."""
    categories: dict[int, tuple[str, ...]] = {}
    for feature, categories_of_feature in values.items():
        if feature >= n_features:
            raise DataError(f"feature {feature} has category names, but there are only {n_features} features")
        names = tuple(str(category_name(value)) for value in categories_of_feature)
        if len(set(names)) < len(names):
            return without_names(tool, f"two categories of feature {feature} have the same text")
        categories[feature] = names
    return Encoding(categories)


def without_names(tool: str, reason: str) -> Encoding:
    """Return an encoding without names, and warn that the model takes the tool's category numbers."""
    warn(f"category names were not imported, so pass {tool}'s category numbers to the model: {reason}")
    return Encoding()


# --- whole numbers and booleans in files of other tools: anything else raises, instead of being truncated

_WHOLE = re.compile(r"\s*[+-]?[0-9]+(\.0*)?\s*", re.ASCII)  # XML and XGBoost's JSON write numbers as text


def whole_number(value: Any, name: str) -> int:
    """Return a whole number, which may be written as text or as 3.0; raise if the value is anything else.

    Example:
        >>> whole_number("3", "split_feature"), whole_number(3.0, "split_feature")
        (3, 3)
        >>> whole_number(1.5, "split_feature")
        Traceback (most recent call last):
        ...
        podium.errors.DataError: split_feature must be a whole number, but is 1.5

    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float | np.floating) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < 40 and _WHOLE.fullmatch(value):
        return int(value.partition(".")[0])
    raise DataError(f"{name} must be a whole number, but is {value!r:.60}")


def whole_numbers(values: Iterable[Any], name: str) -> list[int]:
    """Return the whole numbers of a list."""
    return [whole_number(value, name) for value in values]


def truth_value(value: Any, name: str) -> bool:
    """Return a boolean, written as true or false or as 1 or 0; raise if the value is anything else."""
    if isinstance(value, bool | int | np.integer | np.bool_) and value in (0, 1):
        return bool(value)
    raise DataError(f"{name} must be true or false, but is {value!r:.60}")
