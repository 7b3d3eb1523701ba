"""The model file: a zip of a JSON header and plain arrays. Data, never code.

Compatibility: a file says its format version. Podium reads files of its own version and of all earlier ones; a
newer file is refused with the advice to upgrade. A new version is needed when a reader of the present one would
misunderstand a file; added header entries are not that, unknown ones are ignored.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.atomic import replacing
from podium.errors import FileFormatError
from podium.models.ensemble import ARRAYS, Ensemble

VERSION = 1
MOST_FEATURES = 1 << 24
LARGEST = 1 << 30  # bytes that an array may claim; more is no model of ours
_STAMP = (2000, 1, 1, 0, 0, 0)  # the same content gives the same bytes


def save(ensemble: Ensemble, path: str | os.PathLike[str]) -> None:
    """Write a model; what was there under that name is replaced only once all is written."""
    contents = {f"{name}.npy": _npy(array) for name, array in ensemble.arrays.items()}
    lengths = np.array([len(cuts) for cuts in ensemble.cuts], np.int64)
    contents["cut_counts.npy"] = _npy(lengths)
    contents["cuts.npy"] = _npy(np.concatenate([np.empty(0, np.float32), *ensemble.cuts]))
    header = {
        "format": "podium ensemble",
        "version": VERSION,
        "n_features": ensemble.n_features,
        "feature_names": ensemble.feature_names,
        "info": ensemble.info,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    with replacing(Path(path)) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"header.json": json.dumps(header, indent=1).encode(), **contents}.items():
            archive.writestr(zipfile.ZipInfo(name, _STAMP), content, zipfile.ZIP_DEFLATED)


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def load(path: str | os.PathLike[str]) -> Ensemble:
    """Read a model; a damaged, hostile or newer file is refused with the reason."""
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            header = _header(archive, name)
            arrays = {key: _array(archive, f"{key}.npy", dtype, header, name) for key, dtype in ARRAYS.items()}
            lengths = _array(archive, "cut_counts.npy", np.int64, header, name)
            cuts = _array(archive, "cuts.npy", np.float32, header, name)
    except OSError as error:
        raise FileFormatError(name, f"cannot be opened: {error.strerror or error}") from error
    except (zipfile.BadZipFile, EOFError, zipfile.zlib.error, NotImplementedError, RuntimeError) as error:  # type: ignore[attr-defined]
        raise FileFormatError(name, f"is no model file, or it is damaged ({error})") from error
    n_features, names = header.get("n_features"), header.get("feature_names")
    if not isinstance(n_features, int) or isinstance(n_features, bool) or not 0 <= n_features <= MOST_FEATURES:
        raise FileFormatError(name, "the number of features is not valid")
    if names is not None and (
        not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names)
    ):
        raise FileFormatError(name, "the names of the features are not valid")
    if (
        (lengths < 0).any()
        or (lengths > len(cuts)).any()
        or lengths.sum() != len(cuts)
        or len(lengths) not in (0, n_features)
    ):
        raise FileFormatError(name, "the cuts of the features are not valid")
    _check_structure(arrays, n_features, name)
    info = header.get("info")
    return Ensemble(
        n_features, arrays, tuple(names) if names is not None else None,
        tuple(np.split(cuts, np.cumsum(lengths)[:-1])) if len(lengths) else (), info if isinstance(info, dict) else {},
    )  # fmt: skip


def _header(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    if "header.json" not in archive.namelist() or archive.getinfo("header.json").file_size > 1 << 30:
        raise FileFormatError(name, "is no model file: it has no header")
    try:
        header = json.loads(archive.read("header.json"))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(name, "its header is damaged") from error
    if not isinstance(header, dict) or header.get("format") != "podium ensemble":
        raise FileFormatError(name, "is no tree ensemble of Podium's")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise FileFormatError(name, "its version is not valid")
    if version > VERSION:
        raise FileFormatError(
            name, f"has format version {version}, and this Podium reads up to {VERSION}: upgrade Podium"
        )
    return header


def _array(archive: zipfile.ZipFile, member: str, dtype: Any, header: dict[str, Any], name: str) -> NDArray[Any]:
    """One array, its checksum, type and shape checked before and after it is read."""
    if member not in archive.namelist():
        raise FileFormatError(name, f"{member} is missing")
    if archive.getinfo(member).file_size > LARGEST:
        raise FileFormatError(name, f"{member} claims to be larger than {LARGEST >> 30} GiB")
    content = archive.read(member)
    sums = header.get("sha256")
    if not isinstance(sums, dict) or sums.get(member) != hashlib.sha256(content).hexdigest():
        raise FileFormatError(name, f"{member} is damaged: its checksum differs")
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
