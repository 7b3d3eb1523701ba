"""Folders of binned data, opened."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.binned import checking
from podium.binned.binned_files import BinnedFiles, Content
from podium.binned.checking import naming_damage
from podium.binned.folder import (
    BINS,
    COLUMNS,
    DOCUMENTS,
    HASHES,
    LAYOUT,
    MATRIX,
    QUERY_IDS,
    VALUES,
    check_files,
    read_manifest,
)  # fmt: skip
from podium.core.array_types import Ints
from podium.core.mapping import map_array, map_rows
from podium.core.validation import to_path
from podium.data.encoding import Encoding
from podium.data.summary import ValueCounts
from podium.trees import BinnedFeatures, Bins
from podium.trees.feature_layout import FeatureLayout
from podium.trees.layout import BinMatrix

LABEL = "label:"  # before the name of a source


def open_binned(folder: str | os.PathLike[str], *, verify: bool = True) -> BinnedFiles:
    """Open the folder of binned data that `bin_files` wrote.

    Args:
        folder: where it is.
        verify: compare the checksums of all files, and prove that no index in them leads out of an array; this reads
            them once. Without it only sizes are compared: leave it out for folders that you wrote yourself.

    Returns:
        The data. Its bins are mapped: they are read as training uses them.

    Raises:
        FileFormatError: with the file that is absent or damaged.

    Example:
        >>> import pathlib, podium, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> podium.artificial(20, features=4).write(folder / "train.txt")
        >>> _ = podium.bin_files(folder / "train.txt", folder / "train.bins")
        >>> podium.open_binned(folder / "train.bins")
        BinnedFiles(1000 documents in 20 queries, 4 features, labels: relevance)

    """
    folder = to_path(folder)
    manifest = read_manifest(folder)
    with naming_damage(folder):
        check_files(folder, manifest, verify)
        checking.check_manifest(manifest)
        data = _open(folder, manifest)
        if verify:
            checking.check_columns(data.binned)
            if _has_layout(folder):
                checking.check_matrix(data.binned)
    return data


def _open(folder: Path, manifest: Mapping[str, Any]) -> BinnedFiles:
    """The data that a manifest describes."""
    n, n_features = manifest["n_documents"], manifest["n_features"]
    documents = checking.load_arrays(folder / DOCUMENTS)
    names, counts = manifest["feature_names"], manifest["counts"]
    content = Content(
        folder=folder.resolve(),
        binned=_binned(folder, n, n_features, manifest["max_bins"]),
        hashes=_mapped(folder, HASHES, np.uint64, n),
        values=map_rows(folder / VALUES, n_features) if VALUES in manifest["files"] else None,
        max_bins=manifest["max_bins"],
        feature_names=None if names is None else tuple(names),
        encoding=Encoding.from_json(manifest["encoding"], n_features),
        origin={
            "reading": manifest["reading"], "losses": manifest["losses"],
            "absent_value": {None: None, "zero": 0.0, "missing": np.nan}[manifest["absent_value"]],
        },
        counts=ValueCounts(**counts),
    )  # fmt: skip
    columns: dict[str, Any] = {name: documents.get(name) for name in ("document_weights", "query_weights", "positions")}
    columns["labels"] = {name.removeprefix(LABEL): v for name, v in documents.items() if name.startswith(LABEL)}
    columns["qid"] = np.repeat(_query_ids(folder, documents["query_sizes"], n), documents["query_sizes"])
    return BinnedFiles(content, columns, documents.get("preferences"))


def reopen(folder: Path, rows: Ints | None, changes: dict[str, Any], reading: dict[str, Any]) -> BinnedFiles:
    """Data that was sent to another process: the folder, some of its rows, with labels and the like of their own."""
    data = open_binned(folder, verify=False)
    data = data if rows is None else data.take(rows)
    changed = data.replace(**changes)
    assert isinstance(changed, BinnedFiles)
    return changed.with_reading(**reading)


def save_bins(folder: Path, bins: Bins) -> None:
    """Write how features are cut."""
    tables = {"cuts": dict(enumerate(bins.cuts)), "categories": bins.categories, "rare": bins.rare}
    arrays: dict[str, Any] = {}
    for name, table in tables.items():
        arrays[f"{name}_of"] = np.array(list(table), np.int64)
        arrays[f"{name}_sizes"] = np.array([len(values) for values in table.values()], np.int64)
        arrays[name] = np.concatenate([np.empty(0, np.float32), *table.values()])
    np.savez(folder / BINS, **arrays)


def load_bins(folder: Path, n_features: int, max_bins: int) -> Bins:
    """How features are cut."""
    arrays, tables = checking.load_arrays(folder / BINS), []
    checking.check_tables(arrays, n_features)
    for name in ("cuts", "categories", "rare"):
        ends = np.cumsum(arrays[f"{name}_sizes"])
        parts = np.split(arrays[name], ends[:-1]) if len(ends) else []
        tables.append(dict(zip(arrays[f"{name}_of"].tolist(), parts, strict=True)))
    bins = Bins(tuple(tables[0].values()), *tables[1:])
    checking.check_bins(bins, max_bins)
    return bins


def _mapped(folder: Path, name: str, dtype: Any, size: int) -> NDArray[Any]:
    array = map_array(folder / name)
    checking.check_array(name, array, dtype, size)
    return array


def _has_layout(folder: Path) -> bool:
    """Whether bins are laid out for growth; not those of validation data."""
    return (folder / LAYOUT).exists()


def _binned(folder: Path, n: int, n_features: int, max_bins: int) -> BinnedFeatures:
    columns = _mapped(folder, COLUMNS, np.uint8, n * n_features)
    binned = BinnedFeatures(load_bins(folder, n_features, max_bins), n, columns)
    if not _has_layout(folder):
        return binned
    layout = FeatureLayout(**checking.load_arrays(folder / LAYOUT))
    checking.check_layout(layout, binned.bins, n)
    rows, entries, starts = (map_array(folder / f"{name}.npy") for name in MATRIX)
    matrix = BinMatrix(columns, n, rows, layout.width, entries, starts)
    checking.check_matrix_shape(matrix, layout, n)
    return binned.with_matrix(layout, matrix)


def _query_ids(folder: Path, sizes: NDArray[Any], n: int) -> NDArray[Any]:
    ids = json.loads((folder / QUERY_IDS).read_text(encoding="utf-8"))
    checking.check_queries(ids, sizes, n)
    if all(isinstance(one, int) for one in ids):
        return np.array(ids, np.int64)
    array = np.empty(len(ids), object)
    array[:] = ids
    return array
