"""The format of folders of binned data, and its validation.

Kernels do not check indices, so validation proves once, when a folder is opened, that it is safe to train on. The
manifest has the size and checksum of every other file.

| file | content |
|---|---|
| `podium-bins.json` | the manifest: a description of the data, all names, sizes and checksums, and its own checksum |
| `columns.npy` | the bins, feature by feature: one byte per document |
| `rows.npy`, `entries.npy`, `starts.npy`, `layout.npz` | the same bins in the layout for growing trees, for training |
| `bins.npz` | the cuts and categories of features |
| `documents.npz` | labels, weights, positions, preferences, and the sizes of queries |
| `hashes.npy` | a hash of the features of each document, for the canonical order and random numbers |
| `query_ids.json` | the query ids |
| `values` | the values of features as rows of float32, if they are kept |
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.files import UNFINISHED
from podium.core.manifests import FolderFormat, check_array, require
from podium.core.simd import WORDS
from podium.core.validation import require_whole
from podium.data.features import checked_names
from podium.trees import BinnedFeatures, Bins
from podium.trees.bin_matrix import MAX_GROUPS, BinMatrix, FeatureLayout, build_bin_matrix, place_features
from podium.trees.binning import require_bins
from podium.trees.growth_types import BLOCK

MANIFEST = "podium-bins.json"
FOLDER = FolderFormat(MANIFEST, 2, "a folder of binned data", "bin_files", "bin the files again")
COLUMNS, HASHES, BINS, LAYOUT = "columns.npy", "hashes.npy", "bins.npz", "layout.npz"
DOCUMENTS, QUERY_IDS, VALUES = "documents.npz", "query_ids.json", "values"
LABEL = "label:"  # prefix of the labels of a source, in DOCUMENTS
MATRIX = ("rows", "entries", "starts")  # the names of .npy files


def is_binned(path: Any) -> bool:
    """Return whether a path is a folder of binned data.

    >>> is_binned("no such folder")
    False
    """
    return isinstance(path, str | os.PathLike) and (Path(path) / MANIFEST).is_file()


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a folder whose other files are complete."""
    paths = sorted(path for path in folder.iterdir() if path.name != UNFINISHED)
    (folder / MANIFEST).write_text(FOLDER.manifest_text(content, paths), encoding="utf-8")


ROWS_AT_ONCE = 1 << 16  # how many rows `check_matrix` recomputes at a time


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an uncompressed `.npz` file; a compressed one could need far more memory than its size."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    is_plain = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    size = sum(member.file_size for member in members)
    require(is_plain and size <= path.stat().st_size, f"{path.name} is compressed, or its sizes are wrong")
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise if the description in a manifest is invalid."""
    require_whole("n_documents", manifest["n_documents"], 1, most=2**31 - 1)
    require_whole("n_features", manifest["n_features"], 1, most=2**31 - 1)
    n = manifest["n_features"]
    require_bins(manifest["max_bins"], (), n)
    names, counts = manifest["feature_names"], manifest["counts"]
    require(names is None or all(isinstance(name, str) for name in names), "feature_names is not a list of strings")
    checked_names(names, n)
    features = [*counts["constant"], *(k for copies in counts["copies"].values() for k in copies)]
    require(all(type(k) is int and 0 <= k < n for k in features), "counts refers to features that do not exist")
    require_whole("nonzero", counts["nonzero"], 0, most=2**62)
    require_whole("missing", counts["missing"], 0, most=2**62)
    require(all(isinstance(words, str) for words in manifest["losses"]), "losses is not a list of strings")
    require(isinstance(manifest["reading"], dict), "reading is not an object")
    if VALUES in manifest["files"]:
        n_bytes = 4 * n * manifest["n_documents"]
        require(manifest["files"][VALUES]["bytes"] == n_bytes, f"{VALUES} does not have {n_bytes} bytes")


def check_queries(ids: Any, sizes: NDArray[Any], n: int) -> None:
    """Raise if the queries do not partition the documents."""
    check_array("query_sizes", sizes, np.int64)
    require(isinstance(ids, list) and len(ids) == len(sizes), "the numbers of query ids and of queries differ")
    require(set(map(type, ids)) in ({int}, {str}), "query ids are neither all integers nor all strings")
    require(len(set(ids)) == len(ids), "a query id is repeated")
    require((sizes >= 1).all() and (sizes <= n).all() and sizes.sum() == n, f"sizes of queries do not add up to {n}")


def check_tables(arrays: Mapping[str, NDArray[Any]], n_features: int) -> None:
    """Raise if the tables of cuts and categories do not match the number of features."""
    for name in ("cuts", "categories", "rare"):
        values, sizes, of = arrays[name], arrays[f"{name}_sizes"], arrays[f"{name}_of"]
        check_array(name, values, np.float32)
        check_array(f"{name}_of", of, np.int64)
        check_array(f"{name}_sizes", sizes, np.int64, len(of))
        is_right_size = (sizes >= 0).all() and (sizes <= len(values)).all() and sizes.sum() == len(values)
        require(is_right_size, f"the sizes of {name} are invalid")
        is_right_feature = ((of >= 0) & (of < n_features)).all() and len(np.unique(of)) == len(of)
        require(is_right_feature, f"the features of {name} are invalid")
    require(np.array_equal(arrays["cuts_of"], np.arange(n_features)), "the features of cuts are invalid")
    require(np.isin(arrays["rare_of"], arrays["categories_of"]).all(), "a feature with rare values has no categories")


def check_bins(bins: Bins, max_bins: int) -> None:
    """Raise if a feature has too many bins, or bins that are not in order."""
    for values in (*bins.cuts, *bins.categories.values(), *bins.rare.values()):
        require((values[1:] > values[:-1]).all() and not np.isnan(values).any(), "cuts or categories do not ascend")
    is_right_count = (bins.counts <= max_bins).all() and all(map(len, bins.rare.values()))
    require(is_right_count, f"a feature does not have 1 to {max_bins} bins")


def checked_layout(arrays: Mapping[str, NDArray[Any]], bins: Bins, n: int) -> FeatureLayout:
    """Return the layout that follows from the common bins, groups and costs in a folder; raise if they are invalid."""
    n_bins, common, groups, costs = bins.counts, arrays["common"], arrays["groups"], arrays["costs"]
    check_array("common", common, np.int64, bins.n_features)
    check_array("groups", groups, np.int64)
    n_sparse = np.count_nonzero(common >= 0)
    require(((common >= -1) & (common <= n_bins)).all(), "common refers to a bin that does not exist")
    is_right_groups = 1 <= len(groups) <= MAX_GROUPS + 1 and groups[0] == 0 and groups[-1] == n_sparse
    require(is_right_groups, "the ends of groups are invalid")
    require((groups[1:] >= groups[:-1]).all(), "groups are not in order")
    layout = place_features(n_bins, common, groups, np.zeros(bins.n_features), n)
    check_array("costs", costs, np.float64, len(layout.ends))
    require(np.isfinite(costs).all() and costs[0] == 0 and (costs[1:] >= costs[:-1]).all(), "costs do not ascend")
    return replace(layout, costs=costs)


def check_matrix_shape(matrix: BinMatrix, layout: FeatureLayout, n: int) -> None:
    """Raise if an array of the matrix does not have the size that training expects."""
    check_array("rows", matrix.rows, np.uint8, n * layout.width + 2 * BLOCK)
    check_array("starts", matrix.starts, np.int64, (len(layout.groups) - 1) * (n + 1))
    check_array("entries", matrix.entries, np.uint32, (int(matrix.starts[-1]) if len(matrix.starts) else 0) + WORDS)


def check_columns(binned: BinnedFeatures) -> None:
    """Raise if a document has a bin that its feature does not have. This reads all bins."""
    for feature, count in enumerate(binned.bins.counts.tolist()):
        require(binned.column(feature).max() <= count, f"feature {feature} has a bin above {count}")


def check_matrix(binned: BinnedFeatures) -> None:
    """Raise if rows and entries do not match the columns. This recomputes them, a block of rows at a time."""
    layout, matrix, n = binned.layout, binned.matrix, binned.n_rows
    columns, width = binned.columns.reshape(binned.bins.n_features, n), layout.width
    starts = matrix.starts.reshape(len(layout.groups) - 1, n + 1)
    n_entries = 0
    for group_starts in starts:  # the entries of a group follow those of the previous group
        is_in_order = group_starts[0] == n_entries and (group_starts[1:] >= group_starts[:-1]).all()
        require(is_in_order, "starts are not in order")
        n_entries = int(group_starts[-1])
    for first in range(0, n, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, n)
        piece = build_bin_matrix(np.ascontiguousarray(columns[:, first:last]).ravel(), last - first, layout)
        same_rows = np.array_equal(piece.rows[: (last - first) * width], matrix.rows[first * width : last * width])
        require(same_rows, "rows do not match columns")
        expected_starts = piece.starts.reshape(len(starts), last - first + 1)
        for expected, group_starts in zip(expected_starts, starts, strict=True):
            begin, end = group_starts[first], group_starts[last]
            same_starts = np.array_equal(expected - expected[0], group_starts[first : last + 1] - begin)
            require(same_starts, "starts do not match columns")
            cells = piece.entries[expected[0] : expected[-1]]
            require(np.array_equal(cells, matrix.entries[begin:end]), "entries do not match columns")
