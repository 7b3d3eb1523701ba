"""The model file: a zip of a JSON header, plain arrays and, for nets, weights as safetensors. Data, never code.

Compatibility: a file says its format version. Podium reads files of its own version and of all earlier ones; a
newer file is refused with the advice to upgrade. A new version is needed when a reader of the present one would
misunderstand a file; added header entries are not that, unknown ones are ignored.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from podium.core.validation import require_utf8
from podium.data.encoding import Encoding
from podium.errors import DataError, FileFormatError
from podium.models.archive import MOST_FEATURES, Arrays, open_archive, write_archive
from podium.models.base import Model
from podium.models.class_ensemble import ClassEnsemble
from podium.models.combined import Combined
from podium.models.early_exit import N_ADDED, EarlyExit
from podium.models.ensemble import Ensemble
from podium.models.linear import LinearModel
from podium.models.ordinal import OrdinalModel
from podium.models.structure import ARRAYS
from podium.models.trees_on_base_scores import TreesOnBaseScores

VERSION = 1
ENSEMBLE, CLASSES, LINEAR = "podium ensemble", "podium classes", "podium linear"
COMBINED, ON_BASE_SCORES, NET = "podium combined", "podium started", "podium net"
EARLY_EXIT, ORDINAL = "podium early exit", "podium ordinal"
NETS = "podium.neural.file"  # reads and describes them; a layer above, loaded on use: it needs torch
MOST_PARTS, DEEPEST = 1024, 64  # of combined models, and of those within each other
# Version 0.1 kept the borders between bins, and its reader asks for them.
_UNUSED: dict[str, Any] = {"cut_counts": np.empty(0, np.int64), "cuts": np.empty(0, np.float32)}


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model; what was there under that name is replaced only once all is written.

    Example:
        >>> import pathlib, podium, tempfile
        >>> model = podium.LinearRanker().fit(podium.artificial(10, features=3)).model_
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.podium"
        >>> podium.models.save(model, path)
        >>> podium.load(path).digest() == model.digest()
        True

    """
    write_archive(path, *_described_parts(model, 0))


def _described_parts(model: Model, depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header of a model and its arrays; those of combined models stand under the number of the part."""
    header: dict[str, Any] = {"version": VERSION, "info": model.info}
    if isinstance(model, Combined):
        if len(model.parts) > MOST_PARTS or depth > DEEPEST:
            raise DataError(f"a model file takes {MOST_PARTS} combined parts, {DEEPEST} deep, at most")
        parts = [_described_parts(part, depth + 1) for part in model.parts]
        arrays = {f"{k}/{name}": array for k, (_, part) in enumerate(parts) for name, array in part.items()}
        header |= {"format": COMBINED, "parts": [one for one, _ in parts], "weights": list(model.weights)}
        return header, arrays
    if isinstance(model, TreesOnBaseScores):
        header, arrays = _described_parts(model.trees, depth)
        submodel = {"name": model.name, "checksum": model.checksum, "scale": model.scale}
        return header | {"format": ON_BASE_SCORES, "submodel": submodel}, arrays
    if isinstance(model, EarlyExit):
        header, arrays = _described_parts(model.trees, depth)
        arrays |= {f"classifier/{name}": model.classifier.arrays[name] for name in ARRAYS}
        decision = {"sentinel": int(model.sentinel), "threshold": float(model.threshold)}
        return header | {"format": EARLY_EXIT, "exit": decision}, arrays
    if model.n_features > MOST_FEATURES:
        raise DataError(f"a model file takes {MOST_FEATURES} features at most, not {model.n_features}")
    require_utf8("feature_names", model.feature_names or ())
    header |= {"n_features": model.n_features, "feature_names": model.feature_names}
    if model.encoding:
        header["encoding"] = model.encoding.to_json()
    if model.file_format == NET:
        description, arrays = import_module(NETS).described_parts(model)
        return header | {"format": NET, **description}, arrays
    kind, arrays = _parts(model)
    return header | {"format": kind}, arrays


def _parts(model: Model) -> tuple[str, dict[str, Any]]:
    """The name of the model's format, and its arrays."""
    if isinstance(model, Ensemble):
        return ENSEMBLE, model.arrays | _UNUSED
    if isinstance(model, ClassEnsemble):
        return CLASSES, _parts(model.trees)[1] | {"classes": model.classes, "worth": model.worth}
    if isinstance(model, LinearModel):
        arrays = {"weights": model.weights, "means": model.means, "intercept": np.array([model.intercept])}
        if isinstance(model, OrdinalModel):
            return ORDINAL, arrays | {"classes": model.classes, "thresholds": model.thresholds}
        return LINEAR, arrays
    raise DataError(f"a {type(model).__name__} cannot be kept in a model file")


def load(path: str | os.PathLike[str], *, module: Any = None) -> Model:
    """Read a model from its file; a damaged, hostile or newer file is refused with the reason.

    Args:
        path: the file.
        module: for a net of your own, which is code: the module to put the weights of the file in.

    Returns:
        The model; it predicts exactly as the one that was saved.

    Example:
        >>> import pathlib, podium, tempfile
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=2, n_leaves=3).fit(data)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.podium"
        >>> model.save(path)
        >>> podium.load(path)
        Ensemble(2 trees with 6 leaves on 4 features)

    """
    name = os.fspath(path)
    with open_archive(name) as (header, array):
        _check_version(header, name)
        return _model(array, header, name, "", 0, module)


def _model(array: Arrays, header: dict[str, Any], name: str, prefix: str, depth: int, module: Any) -> Model:
    """A model from its header and the arrays whose names begin with a prefix."""
    kind = header.get("format")
    if kind == COMBINED:
        parts: Any = header.get("parts")
        weights: Any = header.get("weights")
        fits = isinstance(parts, list) and isinstance(weights, list) and 1 <= len(parts) <= MOST_PARTS
        if not fits or len(parts) != len(weights) or depth > DEEPEST or not all(isinstance(p, dict) for p in parts):
            raise FileFormatError(name, "its parts are not valid")
        models = tuple(_model(array, part, name, f"{prefix}{k}/", depth + 1, module) for k, part in enumerate(parts))
        info = header.get("info")
        try:
            return Combined(models, tuple(weights), info if isinstance(info, dict) else {})
        except DataError as error:
            raise FileFormatError(name, f"its parts do not fit: {error}") from error

    def part_array(key: str, dtype: Any) -> Any:
        return array(prefix + key, dtype)

    if kind in (LINEAR, ORDINAL):
        linear = _linear(part_array, header, name)
        return linear if kind == LINEAR else _ordinal(part_array, linear, name)
    if kind == NET:
        net = import_module(NETS).read(part_array, header, *_described(header, name), name, module)
        encoded: Model = replace(net, encoding=_encoding(header, net.n_features, name))
        return encoded
    if kind not in (ENSEMBLE, CLASSES, ON_BASE_SCORES, EARLY_EXIT):
        raise FileFormatError(name, "is no model of Podium's, or of a newer Podium")
    ensemble = _ensemble(part_array, header, name)
    if kind == ON_BASE_SCORES:
        return _on_base_scores(ensemble, header, name)
    if kind == EARLY_EXIT:
        return _early_exit(part_array, ensemble, header, name)
    return ensemble if kind == ENSEMBLE else _classes(part_array, ensemble, name)


def _on_base_scores(ensemble: Ensemble, header: dict[str, Any], name: str) -> TreesOnBaseScores:
    """Trees on top of a submodel that is named in the header."""
    entries = header.get("submodel")
    entries = entries if isinstance(entries, dict) else {}
    words, scale = [entries.get(key) for key in ("name", "checksum")], entries.get("scale", 1.0)  # 0.1 had no scale
    if not all(isinstance(word, str) for word in words):
        raise FileFormatError(name, "its submodel is not named")
    if not isinstance(scale, float) or not 0 < scale < math.inf:
        raise FileFormatError(name, "the scale of its submodel is no number above 0")
    return TreesOnBaseScores(ensemble, str(words[0]), str(words[1]), scale)


def _early_exit(array: Arrays, ensemble: Ensemble, header: dict[str, Any], name: str) -> EarlyExit:
    """Trees that documents may leave, as a classifier decides."""
    entries = header.get("exit")
    entries = entries if isinstance(entries, dict) else {}
    sentinel, threshold = entries.get("sentinel"), entries.get("threshold")
    if type(sentinel) is not int or not isinstance(threshold, float):
        raise FileFormatError(name, "it does not say when documents exit")
    arrays = {key: array(f"classifier/{key}", dtype) for key, dtype in ARRAYS.items()}
    try:
        return EarlyExit(ensemble, Ensemble(ensemble.n_features + N_ADDED, arrays), sentinel, threshold)
    except DataError as error:
        raise FileFormatError(name, str(error)) from error


def _encoding(header: dict[str, Any], n_features: int, name: str) -> Encoding:
    """How the features are encoded."""
    try:
        return Encoding.from_json(header.get("encoding"), n_features)
    except DataError as error:
        raise FileFormatError(name, str(error)) from None


def _described(header: dict[str, Any], name: str) -> tuple[int, tuple[str, ...] | None, dict[str, Any]]:
    """The number of features, their names, and the information beside."""
    n_features, names, info = header.get("n_features"), header.get("feature_names"), header.get("info")
    if type(n_features) is not int or not 0 <= n_features <= MOST_FEATURES:
        raise FileFormatError(name, "the number of features is not valid")
    if names is not None and not _are_names(names, n_features):
        raise FileFormatError(name, "the names of the features are not valid")
    return n_features, tuple(names) if names is not None else None, info if isinstance(info, dict) else {}


def _are_names(names: Any, n_features: int) -> bool:
    """Whether there are so many names, all different, that can be written: halves of surrogate pairs cannot."""
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
        return False
    return len(set(names)) == len(names) and not any("\ud800" <= c <= "\udfff" for c in set("".join(names)))


def _ensemble(array: Arrays, header: dict[str, Any], name: str) -> Ensemble:
    arrays = {key: array(key, dtype) for key, dtype in ARRAYS.items()}
    n_features, names, info = _described(header, name)
    try:
        return Ensemble(n_features, arrays, names, info, _encoding(header, n_features, name))
    except DataError as error:
        raise FileFormatError(name, str(error)) from error


def _classes(array: Arrays, trees: Ensemble, name: str) -> ClassEnsemble:
    classes, worth = array("classes", np.float64), array("worth", np.float64)
    if not 2 <= len(classes) <= 256 or len(worth) != len(classes) or trees.n_trees % len(classes):
        raise FileFormatError(name, "its classes do not fit its trees")
    if not (np.isfinite(classes).all() and np.isfinite(worth).all()):
        raise FileFormatError(name, "a class is not finite")
    return ClassEnsemble(trees, classes, worth)


def _linear(array: Arrays, header: dict[str, Any], name: str) -> LinearModel:
    n_features, names, info = _described(header, name)
    weights, means, intercept = (array(key, np.float64) for key in ("weights", "means", "intercept"))
    fits = len(weights) == len(means) == n_features and len(intercept) == 1
    if not fits or not np.isfinite(np.concatenate([weights, means, intercept])).all():
        raise FileFormatError(name, "its weights are not valid")
    return LinearModel(weights, means, float(intercept[0]), names, info, _encoding(header, n_features, name))


def _ordinal(array: Arrays, linear: LinearModel, name: str) -> OrdinalModel:
    classes, thresholds = array("classes", np.float64), array("thresholds", np.float64)
    if len(classes) < 1 or len(thresholds) != len(classes) - 1:
        raise FileFormatError(name, "its thresholds do not fit its labels")
    if not np.isfinite(np.concatenate([classes, thresholds])).all():
        raise FileFormatError(name, "a label or a threshold is not finite")
    if (np.diff(classes) <= 0).any() or (np.diff(thresholds) < 0).any():
        raise FileFormatError(name, "its labels or thresholds are not in ascending order")
    return OrdinalModel(
        linear.weights, linear.means, linear.intercept, linear.feature_names, linear.info, linear.encoding, classes,
        thresholds,
    )  # fmt: skip


def _check_version(header: dict[str, Any], name: str) -> None:
    if header.get("format") not in (ENSEMBLE, CLASSES, LINEAR, COMBINED, ON_BASE_SCORES, NET, EARLY_EXIT, ORDINAL):
        raise FileFormatError(name, "is no model of Podium's, or of a newer Podium")
    version = header.get("version")
    if type(version) is not int or not 1 <= version < 1 << 16:
        raise FileFormatError(name, "its version is not valid")
    if version > VERSION:
        raise FileFormatError(
            name, f"has format version {version}, and this Podium reads up to {VERSION}: upgrade Podium"
        )
