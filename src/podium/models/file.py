"""The model file: a zip of a JSON header, arrays and, for nets, weights as safetensors. It never contains code.

Each model class converts itself to parts and back (`to_parts`, `from_parts`), and the header names its kind. A file
that an estimator saved also has the estimator's class and parameters, which `podium.load` reads.

Compatibility: a file states its format version. Podium reads files of the current version and of all earlier ones, and
asks the user to upgrade if a file is newer. Raise the version if a reader of the current one would misunderstand a new
file. New header entries do not require that, because readers ignore unknown entries.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from typing import Any

from podium.core.validation import require_utf8
from podium.errors import DataError, FileFormatError, ParameterError
from podium.models.archive import MAX_FEATURES, Parts, StoredModel, open_archive, write_archive
from podium.models.base import Model, require_info
from podium.models.combined import Combined
from podium.models.ensemble import Ensemble
from podium.models.linear import LinearModel, OrdinalModel
from podium.models.transformed_ensembles import BoundaryEnsemble, ClassEnsemble, TreesOnBaseScores

VERSION = 1
NET = "podium net"
NETS = "podium.neural.model"  # defines nets; it is in a higher layer and needs torch, so it is imported on use
KINDS: dict[Any, type[Model]] = {
    kind.file_kind: kind
    for kind in (Ensemble, ClassEnsemble, BoundaryEnsemble, TreesOnBaseScores, Combined, LinearModel, OrdinalModel)
}
RETIRED = {
    "podium early exit": "an early-exit model, which Podium no longer supports: save its trees with an older version"
}
MAX_PARTS, MAX_DEPTH = 1024, 64  # of a combination: models, and levels of nesting


def save(model: Model, path: str | os.PathLike[str], estimator: dict[str, Any] | None = None) -> None:
    """Write a model; an existing file is replaced only once everything is written.

    Args:
        model: the model.
        path: the file.
        estimator: the estimator that trained the model, in JSON types, for `podium.load`.

    Example:
        >>> import pathlib, podium, tempfile
        >>> model = podium.LinearRanker().fit(podium.artificial(10, features=3)).model_
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.podium"
        >>> podium.models.save(model, path)
        >>> podium.load(path).digest() == model.digest()
        True

    """
    header, arrays = _header_and_arrays(model, 0)
    write_archive(path, header if estimator is None else header | {"estimator": estimator}, arrays)


def _header_and_arrays(model: Model, depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header of a model and its arrays; the names of a child's arrays begin with its number."""
    if model.file_kind is None:
        raise DataError(f"a {type(model).__name__} cannot be saved")
    parts: Parts = model.to_parts()
    require_info(model.info)
    header: dict[str, Any] = {"version": VERSION, "info": model.info}
    if not parts.children:
        return header | _schema_entries(model) | {"format": model.file_kind, **parts.entries}, parts.arrays
    if len(parts.children) > MAX_PARTS or depth > MAX_DEPTH:
        raise DataError(f"a model file has at most {MAX_PARTS} combined parts and {MAX_DEPTH} levels of nesting")
    children = [_header_and_arrays(child, depth + 1) for child in parts.children]
    arrays = {f"{k}/{name}": array for k, (_, child) in enumerate(children) for name, array in child.items()}
    header |= {"format": model.file_kind, "parts": [entries for entries, _ in children], **parts.entries}
    return header, parts.arrays | arrays


def _schema_entries(model: Model) -> dict[str, Any]:
    if model.n_features > MAX_FEATURES:
        raise DataError(f"a model file has at most {MAX_FEATURES} features, but the model has {model.n_features}")
    require_utf8("feature_names", model.feature_names or ())
    entries: dict[str, Any] = {"n_features": model.n_features, "feature_names": model.feature_names}
    return entries | ({"encoding": model.encoding.to_json()} if model.encoding else {})


def load_model(path: str | os.PathLike[str], *, module: Any = None) -> Model:
    """Read a model without the estimator that trained it, which `podium.load` returns.

    If the file is damaged, hostile or newer than this version, the error says so. This function imports neither
    scikit-learn nor the training engine.

    Args:
        path: the file.
        module: for a custom net, which is code: the module to load the weights into.

    Returns:
        The model, with exactly the same predictions as the one that was saved.

    Example:
        >>> import pathlib, podium, tempfile
        >>> data = podium.artificial(20, features=4)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.podium"
        >>> podium.LambdaMART(n_trees=2, n_leaves=3).fit(data).save(path)
        >>> podium.models.load_model(path)
        Ensemble(2 trees with 6 leaves on 4 features)

    """
    return read_file(path, module)[0]


def read_file(path: str | os.PathLike[str], module: Any = None) -> tuple[Model, dict[str, Any] | None]:
    """Return the model of a file, and the unchecked description of its estimator, or None if it has none."""
    name = os.fspath(path)
    with open_archive(name) as (header, array):
        _check_version(header, name)
        model = _read(StoredModel(name, header, array, module=module), 0)
    estimator = header.get("estimator")
    return model, estimator if isinstance(estimator, dict) else None


def _read(stored: StoredModel, depth: int) -> Model:
    kind = _kind(stored.header, stored.path)
    if kind is Combined:
        entries: Any = stored.header.get("parts")
        are_parts = isinstance(entries, list) and 1 <= len(entries) <= MAX_PARTS and depth <= MAX_DEPTH
        if not are_parts or not all(isinstance(entry, dict) for entry in entries):
            raise stored.error("its parts are invalid")
        children = tuple(_read(stored.part(k, entry), depth + 1) for k, entry in enumerate(entries))
        stored = replace(stored, children=children)
    try:
        return kind.from_parts(stored)
    except (FileFormatError, ParameterError):  # ParameterError: the module is missing
        raise
    except DataError as error:
        raise stored.error(f"its parts do not fit together: {error}" if stored.children else str(error)) from error


def _kind(header: dict[str, Any], path: str) -> type[Model]:
    kind = header.get("format")
    if kind == NET:
        nets: type[Model] = import_module(NETS).Net
        return nets
    if isinstance(kind, str) and kind in RETIRED:
        raise FileFormatError(path, f"contains {RETIRED[kind]}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise FileFormatError(path, "is not a Podium model, or it was written by a newer version of Podium")
    return KINDS[kind]


def _check_version(header: dict[str, Any], path: str) -> None:
    if header.get("format") != NET:  # check the version before importing torch
        _kind(header, path)
    version = header.get("version")
    if type(version) is not int or not 1 <= version < 1 << 16:
        raise FileFormatError(path, "its version is invalid")
    if version > VERSION:
        raise FileFormatError(
            path, f"has format version {version}, but this version of Podium reads up to {VERSION}: upgrade Podium"
        )
