"""Saved estimators: a model file holds the class, parameters and fitted attributes of an estimator as data, never code.

Numbers, strings, lists, tuples, mappings and arrays are stored unchanged; objectives and measures as their text; steps
as their class and fields. A submodel that is a model is already part of the fitted model. The file cannot hold code:
with your own objective or measure, or a submodel that is a function or a column of scores, `podium.load` returns only
the model and warns. Pass your own net again: `load(path, module=…)`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from podium.core.parameters import Parameterized, check_parameters, parameters
from podium.errors import DataError, FileFormatError, warn
from podium.estimators.parameters import MODELS, MARTClassifierParameters
from podium.models import Combined, Model, TreesOnBaseScores
from podium.models.file import read_file

ESTIMATORS: dict[str, type[Parameterized]] = {model.estimator: model.parameters for model in MODELS.values()} | {
    "MARTClassifier": MARTClassifierParameters
}
STEPS = ("Newton", "Gradient", "LineSearch", "LeafLineSearch")  # of podium.boosting
# The file holds the model elsewhere, feature names follow from it, and timings would make files of equal fits differ.
NOT_STORED = ("model_", "feature_names_in_", "tried_")
ARRAY_KINDS = "biufU"
MISSING = "missing"  # the key of the reason why a file holds only the model


def to_entries(ranker: Any) -> dict[str, Any]:
    """Return the entries of a fitted estimator in a model file, as JSON values."""
    kind = type(ranker).__name__
    for base in type(ranker).__mro__:  # an estimator on a cluster is saved as its local counterpart
        if not base.__module__.startswith("podium."):
            return {"class": kind, MISSING: f"{kind} is not a Podium class"}
        if base.__name__ in ESTIMATORS:
            kind = base.__name__
            break
    if isinstance(ranker.model_, TreesOnBaseScores):
        return {"class": kind, MISSING: f"its submodel ({ranker.model_.name}) is not data"}
    values = {name: getattr(ranker, name) for name in parameters(ESTIMATORS[kind]) if name != "verbose"}
    submodel = values.get("submodel")
    if submodel is not None and isinstance(ranker.model_, Combined) and not isinstance(submodel, str | Mapping):
        values["submodel"] = ranker.model_.parts[0]
    fitted = {name: value for name, value in vars(ranker).items() if _is_stored(name)}
    try:
        return {
            "class": kind,
            "parameters": {name: encode(value, name) for name, value in values.items()},
            "fitted": {name: encode(value, name) for name, value in fitted.items()},
        }
    except DataError as error:
        return {"class": kind, MISSING: str(error)}


def _is_stored(name: str) -> bool:
    """Return whether an attribute of this name is a fitted attribute that files hold."""
    return re.fullmatch("[a-z]\\w*_", name) is not None and name not in NOT_STORED


def load(path: str | os.PathLike[str], *, module: Any = None) -> Any:
    """Load a saved estimator or model.

    An estimator has its parameters, `model_`, `history_` and other fitted attributes, but not `verbose`. If a parameter
    is code, which the file cannot hold, or the file comes from a newer Podium with other parameters, this function
    returns only the model, with a warning. `podium.models.load_model` reads the model of any file, without
    scikit-learn.

    Args:
        path: the file; damaged, hostile or newer files are refused with the reason.
        module: your own net, into which the weights of the file are loaded.

    Returns:
        An estimator, or a `podium.models.Model`, with exactly the predictions of the saved one.

    Example:
        >>> import pathlib, podium, tempfile
        >>> data = podium.artificial(20, features=4)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.podium"
        >>> ranker = podium.LambdaMART(n_trees=2, n_leaves=3).fit(data)
        >>> ranker.save(path)
        >>> podium.load(path)
        LambdaMART(n_leaves=3, n_trees=2)
        >>> ranker.model_.save(path)
        >>> podium.load(path)
        Ensemble(2 trees with 6 leaves on 4 features)

    """
    model, entries = read_file(path, module)
    if entries is None:
        return model
    name, values = entries.get("class"), entries.get("parameters")
    missing = entries.get(MISSING)
    if missing is None and isinstance(name, str) and name not in ESTIMATORS:
        missing = f"this Podium has no estimator {name!r}"
    if missing is None and isinstance(name, str) and isinstance(values, dict):
        unknown = sorted(set(values) - set(parameters(ESTIMATORS[name])))
        missing = f"{name} of this Podium has no parameter {unknown[0]!r}" if unknown else None
        if missing is None and isinstance(values.get("net"), dict) and module is None:
            missing = "its net is a module, which is code: load(path, module=…)"
    if isinstance(missing, str):
        warn(f"{os.fspath(path)}: loaded the model instead of its estimator: {missing}")
        return model
    try:
        return _restore(entries, model, module)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        raise FileFormatError(
            os.fspath(path), f"its estimator cannot be read ({error}); podium.models.load_model only reads the model"
        ) from error


def _restore(entries: dict[str, Any], model: Model, module: Any) -> Any:
    """Return the estimator; raise for entries that `to_entries` does not write."""
    values = {
        name: module if name == "net" and isinstance(value, dict) else decode(value, model)
        for name, value in entries["parameters"].items()
    }
    fitted = {name: decode(value, model) for name, value in entries["fitted"].items()}
    ranker = getattr(import_module("podium.estimators"), entries["class"])(**values)
    check_parameters(ranker)
    for name, value in fitted.items():
        if not _is_stored(name) or hasattr(type(ranker), name):
            raise DataError(f"{name!r} is not a fitted attribute")
        setattr(ranker, name, value)
    ranker.model_ = model
    names = (model.parts[-1] if isinstance(model, Combined) else model).feature_names
    if names is not None:
        ranker.feature_names_in_ = np.array(names, object)
    return ranker


def encode(value: Any, name: str) -> Any:
    """Return a value for JSON: plain values and lists unchanged, others as {kind: content}."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if type(value) is list:
        return [encode(entry, name) for entry in value]
    if type(value) is tuple:
        return {"tuple": [encode(entry, name) for entry in value]}
    if isinstance(value, Mapping):
        return {"mapping": [[encode(key, name), encode(entry, name)] for key, entry in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        return {"array": value.tolist(), "type": value.dtype.str}
    if isinstance(value, Model):
        return {"submodel": 0}
    if name == "net":
        return {"module": type(value).__name__}
    if type(value).__name__ in STEPS and is_dataclass(value):
        settings = {field.name: encode(getattr(value, field.name), name) for field in fields(value) if field.init}
        return {"step": type(value).__name__, "settings": settings}
    return _encode_text(value, name)


def _encode_text(value: Any, name: str) -> dict[str, str]:
    """Return an objective or a measure as its text, if that gives the same one back."""
    from podium.measures import Graded, Measure, as_selection
    from podium.objectives import Objective, describe, parse

    try:
        if isinstance(value, Objective) and parse(describe(value)) == value:
            return {"objective": describe(value)}
        if isinstance(value, Measure | Graded) and as_selection(str(value)) == value:
            return {"measure": str(value)}
    except DataError:
        pass
    raise DataError(f"its {name} ({type(value).__name__}) cannot be written as text")


def decode(value: Any, model: Model | None = None) -> Any:
    """Return the value that `encode` was given."""
    if isinstance(value, list):
        return [decode(entry, model) for entry in value]
    if not isinstance(value, dict):
        return value
    content: Any
    kind, content = next(iter(value.items()), ("nothing", None))
    if kind == "tuple":
        return tuple(decode(content, model))
    if kind == "mapping":
        return {decode(key, model): decode(entry, model) for key, entry in content}
    if kind == "array":
        dtype = np.dtype(value["type"])
        if dtype.kind not in ARRAY_KINDS:
            raise DataError(f"{dtype} is not a type of fitted attributes")
        return np.array(content, dtype)
    if kind == "submodel" and isinstance(model, Combined):
        return model.parts[0]
    if kind == "step" and content in STEPS:
        settings = {name: decode(setting, model) for name, setting in value["settings"].items()}
        return getattr(import_module("podium.boosting"), content)(**settings)
    if kind == "objective":
        return import_module("podium.objectives").parse(content)
    if kind == "measure":
        return import_module("podium.measures").as_selection(content)
    raise DataError(f"{kind!r} is not a kind of value")
