"""The model file: a zip of a JSON header, plain arrays and, for nets, weights as safetensors. Data, never code.

Compatibility: a file says its format version. Podium reads files of its own version and of all earlier ones; a
newer file is refused with the advice to upgrade. A new version is needed when a reader of the present one would
misunderstand a file; added header entries are not that, unknown ones are ignored.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.atomic import replacing
from podium.errors import DataError, FileFormatError, PodiumError
from podium.models.classes import ClassEnsemble
from podium.models.combined import Combined
from podium.models.ensemble import ARRAYS, Ensemble
from podium.models.linear import LinearScorer
from podium.models.scorer import Scorer
from podium.models.started import Started

VERSION = 1
ENSEMBLE, CLASSES, LINEAR = "podium ensemble", "podium classes", "podium linear"
COMBINED, STARTED, NET = "podium combined", "podium started", "podium net"
NETS = "podium.neural.file"  # reads and describes them; a layer above, loaded on use: it needs torch
MOST_PARTS, DEEPEST = 1024, 8  # of combined models, and of those within each other
MOST_FEATURES = 1 << 24
LARGEST = 1 << 30  # bytes that an array may claim; more is no model of ours
_DAMAGED = (
    zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, ValueError,
)  # fmt: skip
_STAMP = (2000, 1, 1, 0, 0, 0)  # the same content gives the same bytes


def save(model: Scorer, path: str | os.PathLike[str]) -> None:
    """Write a model; what was there under that name is replaced only once all is written."""
    header, arrays = _described_parts(model)
    contents = {
        f"{name}.safetensors" if isinstance(array, bytes) else f"{name}.npy":
        array if isinstance(array, bytes) else _npy(array)
        for name, array in arrays.items()
    }  # fmt: skip
    header |= {"sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}}
    with replacing(Path(path)) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"header.json": json.dumps(header, indent=1).encode(), **contents}.items():
            archive.writestr(zipfile.ZipInfo(name, _STAMP), content, zipfile.ZIP_DEFLATED)


def _described_parts(model: Scorer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header of a model and its arrays; those of combined models stand under the number of the part."""
    header: dict[str, Any] = {"version": VERSION, "info": model.info}
    if isinstance(model, Combined):
        parts = [_described_parts(part) for part in model.parts]
        arrays = {f"{k}/{name}": array for k, (_, mine) in enumerate(parts) for name, array in mine.items()}
        header |= {"format": COMBINED, "parts": [one for one, _ in parts], "weights": list(model.weights)}
        return header, arrays
    if isinstance(model, Started):
        header, arrays = _described_parts(model.trees)
        return header | {"format": STARTED, "submodel": {"name": model.name, "checksum": model.checksum}}, arrays
    header |= {"n_features": model.n_features, "feature_names": model.feature_names}
    if model.file_format == NET:
        description, arrays = import_module(NETS).described_parts(model)
        return header | {"format": NET, **description}, arrays
    kind, arrays = _parts(model)
    return header | {"format": kind}, arrays


def _parts(model: Scorer) -> tuple[str, dict[str, Any]]:
    """The name of the model's format, and its arrays."""
    if isinstance(model, Ensemble):
        lengths = np.array([len(cuts) for cuts in model.cuts], np.int64)
        cuts = np.concatenate([np.empty(0, np.float32), *model.cuts])
        return ENSEMBLE, model.arrays | {"cut_counts": lengths, "cuts": cuts}
    if isinstance(model, ClassEnsemble):
        return CLASSES, _parts(model.trees)[1] | {"classes": model.classes, "worth": model.worth}
    if isinstance(model, LinearScorer):
        return LINEAR, {"weights": model.weights, "means": model.means, "intercept": np.array([model.intercept])}
    raise DataError(f"a {type(model).__name__} cannot be kept in a model file")


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def load(path: str | os.PathLike[str], *, module: Any = None) -> Scorer:
    """Read a model; a damaged, hostile or newer file is refused with the reason.

    A net of your own is code, of which the file has the weights alone: give it a `module` to put them in.
    """
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            header = _header(archive, name)

            def array(key: str, dtype: Any) -> Any:
                if dtype is bytes:
                    return _member(archive, f"{key}.safetensors", header, name)
                return _array(archive, f"{key}.npy", dtype, header, name)

            return _model(array, header, name, "", 0, module)
    except OSError as error:
        raise FileFormatError(name, f"cannot be opened: {error.strerror or error}") from error
    except PodiumError:
        raise
    except _DAMAGED as error:
        raise FileFormatError(name, f"is no model file, or it is damaged ({error})") from error


Arrays = Callable[[str, Any], Any]


def _model(array: Arrays, header: dict[str, Any], name: str, prefix: str, depth: int, module: Any) -> Scorer:
    """A model from its header and the arrays whose names begin with a prefix."""
    kind = header.get("format")
    if kind == COMBINED:
        parts: Any = header.get("parts")
        weights: Any = header.get("weights")
        fits = isinstance(parts, list) and isinstance(weights, list) and 1 <= len(parts) <= MOST_PARTS
        if not fits or len(parts) != len(weights) or depth > DEEPEST or not all(isinstance(p, dict) for p in parts):
            raise FileFormatError(name, "its parts are not valid")
        made = tuple(_model(array, part, name, f"{prefix}{k}/", depth + 1, module) for k, part in enumerate(parts))
        info = header.get("info")
        try:
            return Combined(made, tuple(weights), info if isinstance(info, dict) else {})
        except DataError as error:
            raise FileFormatError(name, f"its parts do not fit: {error}") from error

    def own(key: str, dtype: Any) -> Any:
        return array(prefix + key, dtype)

    if kind == LINEAR:
        return _linear(own, header, name)
    if kind == NET:
        net: Scorer = import_module(NETS).read(own, header, *_described(header, name), name, module)
        return net
    if kind not in (ENSEMBLE, CLASSES, STARTED):
        raise FileFormatError(name, "is no model of Podium's, or of a newer Podium")
    ensemble = _ensemble(own, header, name)
    if kind == STARTED:
        found = header.get("submodel")
        known = [found.get(key) if isinstance(found, dict) else None for key in ("name", "checksum")]
        if not all(isinstance(entry, str) for entry in known):
            raise FileFormatError(name, "its submodel is not named")
        return Started(ensemble, str(known[0]), str(known[1]))
    return ensemble if kind == ENSEMBLE else _classes(own, ensemble, name)


def _described(header: dict[str, Any], name: str) -> tuple[int, tuple[str, ...] | None, dict[str, Any]]:
    """The number of features, their names, and the information beside."""
    n_features, names, info = header.get("n_features"), header.get("feature_names"), header.get("info")
    if not isinstance(n_features, int) or isinstance(n_features, bool) or not 0 <= n_features <= MOST_FEATURES:
        raise FileFormatError(name, "the number of features is not valid")
    if names is not None and (
        not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names)
    ):
        raise FileFormatError(name, "the names of the features are not valid")
    return n_features, tuple(names) if names is not None else None, info if isinstance(info, dict) else {}


def _ensemble(array: Arrays, header: dict[str, Any], name: str) -> Ensemble:
    arrays = {key: array(key, dtype) for key, dtype in ARRAYS.items()}
    lengths, cuts = array("cut_counts", np.int64), array("cuts", np.float32)
    n_features, names, info = _described(header, name)
    if (
        (lengths < 0).any()
        or (lengths > len(cuts)).any()
        or lengths.sum() != len(cuts)
        or len(lengths) not in (0, n_features)
    ):
        raise FileFormatError(name, "the cuts of the features are not valid")
    _check_structure(arrays, n_features, name)
    parts = tuple(np.split(cuts, np.cumsum(lengths)[:-1])) if len(lengths) else ()
    return Ensemble(n_features, arrays, names, parts, info)


def _classes(array: Arrays, trees: Ensemble, name: str) -> ClassEnsemble:
    classes, worth = array("classes", np.float64), array("worth", np.float64)
    if not 2 <= len(classes) <= 256 or len(worth) != len(classes) or trees.n_trees % len(classes):
        raise FileFormatError(name, "its classes do not fit its trees")
    if not (np.isfinite(classes).all() and np.isfinite(worth).all()):
        raise FileFormatError(name, "a class is not finite")
    return ClassEnsemble(trees, classes, worth)


def _linear(array: Arrays, header: dict[str, Any], name: str) -> LinearScorer:
    n_features, names, info = _described(header, name)
    weights, means, intercept = (array(key, np.float64) for key in ("weights", "means", "intercept"))
    fits = len(weights) == len(means) == n_features and len(intercept) == 1
    if not fits or not np.isfinite(np.concatenate([weights, means, intercept])).all():
        raise FileFormatError(name, "its weights are not valid")
    return LinearScorer(weights, means, float(intercept[0]), names, info)


def _header(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    if "header.json" not in archive.namelist() or archive.getinfo("header.json").file_size > 1 << 30:
        raise FileFormatError(name, "is no model file: it has no header")
    try:
        header = json.loads(archive.read("header.json"))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(name, "its header is damaged") from error
    if not isinstance(header, dict) or header.get("format") not in (ENSEMBLE, CLASSES, LINEAR, COMBINED, STARTED, NET):
        raise FileFormatError(name, "is no model of Podium's, or of a newer Podium")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise FileFormatError(name, "its version is not valid")
    if version > VERSION:
        raise FileFormatError(
            name, f"has format version {version}, and this Podium reads up to {VERSION}: upgrade Podium"
        )
    return header


def _member(archive: zipfile.ZipFile, member: str, header: dict[str, Any], name: str) -> bytes:
    """The bytes of one member, its size and checksum checked."""
    if member not in archive.namelist():
        raise FileFormatError(name, f"{member} is missing")
    if archive.getinfo(member).file_size > LARGEST:
        raise FileFormatError(name, f"{member} claims to be larger than {LARGEST >> 30} GiB")
    content = archive.read(member)
    sums = header.get("sha256")
    if not isinstance(sums, dict) or sums.get(member) != hashlib.sha256(content).hexdigest():
        raise FileFormatError(name, f"{member} is damaged: its checksum differs")
    return content


def _array(archive: zipfile.ZipFile, member: str, dtype: Any, header: dict[str, Any], name: str) -> NDArray[Any]:
    """One array, its type and shape checked."""
    content = _member(archive, member, header, name)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # whatever a made-up header leads numpy to
        raise FileFormatError(name, f"{member} is no array: {type(error).__name__} {error}") from error
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype) or array.ndim != 1:
        raise FileFormatError(name, f"{member} must be a column of {np.dtype(dtype)}")
    return np.ascontiguousarray(array)


def _check_structure(a: dict[str, NDArray[Any]], n_features: int, name: str) -> None:
    """Every index in range, every node with one parent above it: no walk can leave the arrays or go round."""

    def require(condition: Any, what: str) -> None:
        if not condition:
            raise FileFormatError(name, f"the trees are not valid: {what}")

    nodes, leaves = a["node_offsets"], a["leaf_offsets"]
    for key, offsets, total in (
        ("node_offsets", nodes, len(a["feature"])),
        ("leaf_offsets", leaves, len(a["leaf_value"])),
        ("category_offsets", a["category_offsets"], len(a["category_values"])),
    ):
        rising = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == total and (np.diff(offsets) >= 0).all()
        require(rising, f"{key} do not match the arrays")
    require(len(nodes) == len(leaves), "nodes and leaves are of different numbers of trees")
    for key in ("threshold", "missing_left", "category", "left", "right", "gain", "count"):
        require(len(a[key]) == len(a["feature"]), f"{key} has another length than feature")
    require(len(a["leaf_count"]) == len(a["leaf_value"]), "leaf_count has another length than leaf_value")
    require((np.diff(leaves) == np.diff(nodes) + 1).all(), "a tree has not one leaf more than nodes")
    require(((a["feature"] >= 0) & (a["feature"] < n_features)).all(), "a feature is out of range")
    require(
        ((a["category"] >= -1) & (a["category"] < len(a["category_offsets"]) - 1)).all(), "a category is out of range"
    )
    used = a["category"][a["category"] >= 0]
    require(np.array_equal(used, np.arange(len(a["category_offsets"]) - 1)), "categories are not one for each node")
    require(not np.isnan(a["threshold"]).any(), "a threshold is NaN")
    bounded = np.isfinite(a["leaf_value"]).all() and (np.abs(a["leaf_value"]) < 1e290).all()
    require(bounded, "a leaf's value is not finite, or absurd")
    # A child has a higher number than its parent, and every node and leaf but the root is a child once.
    place = np.arange(len(a["feature"])) - np.repeat(nodes[:-1], np.diff(nodes))
    for tree in range(len(nodes) - 1):
        mine = slice(nodes[tree], nodes[tree + 1])
        children = np.concatenate([a["left"][mine], a["right"][mine]])
        above = np.concatenate([place[mine], place[mine]])
        require(((children < 0) | (children > above)).all(), "a node leads back to a node before it")
        size = nodes[tree + 1] - nodes[tree]
        inner, outer = np.sort(children[children >= 0]), np.sort(~children[children < 0])
        expected_leaves = np.arange(size + 1) if size else np.empty(0, np.int64)
        require(np.array_equal(inner, np.arange(1, size)), "the children of a tree are not its nodes")
        require(np.array_equal(outer, expected_leaves), "the children of a tree are not its leaves")
