"""Folders of binned data, opened."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.binned.binned_files import BinnedFiles, Content
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
        verify: compare the checksums of all files, which reads them once; else only their sizes.

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
    check_files(folder, manifest, verify)
    n, n_features = manifest["n_documents"], manifest["n_features"]
    documents = dict(np.load(folder / DOCUMENTS, allow_pickle=False))
    names, counts = manifest["feature_names"], manifest["counts"]
    content = Content(
        folder=folder.resolve(),
        binned=_binned(folder, n),
        hashes=map_array(folder / HASHES),
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
    columns["qid"] = np.repeat(_query_ids(folder), documents["query_sizes"])
    return BinnedFiles(content, columns, documents.get("preferences"))


def reopen(
    folder: Path, rows: NDArray[np.int64] | None, changes: dict[str, Any], reading: dict[str, Any]
) -> BinnedFiles:
    """Data that was sent to another process: the folder, some of its rows, with labels and the like of their own."""
    data = open_binned(folder, verify=False)
    data = data if rows is None else data.take(rows)
    changed = data.replace(**changes)
    assert isinstance(changed, BinnedFiles)
    return changed.with_reading(**reading)  # type: ignore[return-value]


def save_bins(folder: Path, bins: Bins) -> None:
    """Write how features are cut."""
    tables = {"cuts": dict(enumerate(bins.cuts)), "categories": bins.categories, "rare": bins.rare}
    arrays: dict[str, Any] = {}
    for name, table in tables.items():
        arrays[f"{name}_of"] = np.array(list(table), np.int64)
        arrays[f"{name}_sizes"] = np.array([len(values) for values in table.values()], np.int64)
        arrays[name] = np.concatenate([np.empty(0, np.float32), *table.values()])
    np.savez(folder / BINS, **arrays)


def load_bins(folder: Path) -> Bins:
    """How features are cut."""
    arrays, tables = np.load(folder / BINS, allow_pickle=False), []
    for name in ("cuts", "categories", "rare"):
        ends = np.cumsum(arrays[f"{name}_sizes"])
        parts = np.split(arrays[name], ends[:-1]) if len(ends) else []
        tables.append(dict(zip(arrays[f"{name}_of"].tolist(), parts, strict=True)))
    return Bins(tuple(tables[0].values()), *tables[1:])


def _binned(folder: Path, n: int) -> BinnedFeatures:
    columns = map_array(folder / COLUMNS)
    binned = BinnedFeatures(load_bins(folder), n, columns)
    if not (folder / LAYOUT).exists():  # of validation data, which no tree is grown from
        return binned
    layout = FeatureLayout(**np.load(folder / LAYOUT, allow_pickle=False))
    rows, entries, starts = (map_array(folder / f"{name}.npy") for name in MATRIX)
    return binned.with_matrix(layout, BinMatrix(columns, n, rows, layout.width, entries, starts))


def _query_ids(folder: Path) -> NDArray[Any]:
    ids = json.loads((folder / QUERY_IDS).read_text(encoding="utf-8"))
    if all(isinstance(one, int) for one in ids):
        return np.array(ids, np.int64)
    array = np.empty(len(ids), object)
    array[:] = ids
    return array
