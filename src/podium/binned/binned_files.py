"""Ranking data whose features are stored as bins in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.binned.folder import (
    BINS,
    COLUMNS,
    DOCUMENTS,
    FOLDER,
    HASHES,
    LABEL,
    LAYOUT,
    MATRIX,
    QUERY_IDS,
    VALUES,
    check_bins,
    check_columns,
    check_manifest,
    check_matrix,
    check_matrix_shape,
    check_queries,
    check_tables,
    checked_layout,
    load_arrays,
)  # fmt: skip
from podium.core.array_types import Float32s, Ints, UInt64s
from podium.core.manifests import check_array
from podium.core.mapping import map_array, map_rows
from podium.core.validation import to_path
from podium.data import RankingData
from podium.data.columns import frozen
from podium.data.encoding import Encoding
from podium.data.subsets import columns_of_rows, row_numbers
from podium.data.summary import Summary, ValueCounts, summarize
from podium.errors import DataError
from podium.trees import BinnedFeatures, Bins
from podium.trees.bin_matrix import BinMatrix

CHANGEABLE = (
    "relevance", "labels", "document_weights", "query_weights", "positions", "preferences", "features", "feature_names",
    "encoding", "document_ids",
)  # fmt: skip


@dataclass(frozen=True)
class BinnedContent:
    """Everything about binned documents except their labels, weights and queries."""

    folder: Path
    binned: BinnedFeatures
    hashes: UInt64s  # a hash of each document's features
    values: Float32s | None  # the values of features, or None if they were not kept
    max_bins: int  # the maximum number of bins that the features were binned with
    feature_names: tuple[str, ...] | None
    encoding: Encoding
    origin: Mapping[str, Any]  # how the source was read, see `RankingData`
    counts: ValueCounts | None  # statistics of values, for the summary
    rows: Ints | None = None  # the rows of the folder that this data consists of; None for all


class BinnedFiles(RankingData):
    """Ranking data as a memory-mapped folder of bins: the result of `bin_files` and `open_binned`.

    Boosted trees train on it as on any `RankingData`, with identical results. Documents of a query are adjacent, and
    queries are in the order of their first appearance. Document ids are not kept. Trees that were trained on these bins
    predict from the bins alone. Models that need the values of features, such as nets and linear rankers, raise unless
    the values were kept (`keep_values`). `take`, `select`, `split` and `k_fold` copy the bins of a part into memory;
    the cuts are those of the whole folder.

    Attributes:
        folder: the folder of the files.
        binned: the bins, a `podium.trees.BinnedFeatures`.
        max_bins: the maximum number of bins that the features were binned with.
        has_values: whether the folder also contains the values of features.
        seconds: the duration of each step of `bin_files`; empty if `open_binned` opened the folder.

    Example:
        >>> import pathlib, podium, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> podium.artificial(20, features=4).write(folder / "train.txt")
        >>> data = podium.bin_files(folder / "train.txt", folder / "train.bins")
        >>> data.has_values, data.binned.bins.counts.tolist(), list(data.seconds)
        (False, [255, 255, 255, 255], ['reading', 'binning', 'laying out', 'checksums'])

    """

    content: BinnedContent
    folder: Path
    binned: BinnedFeatures
    max_bins: int
    seconds: Mapping[str, float]

    def __init__(self, content: BinnedContent, columns: dict[str, Any], preferences: Any = None) -> None:
        origin = dict(content.origin)
        self.__dict__.update(
            content=content, folder=content.folder, binned=content.binned, max_bins=content.max_bins,
            seconds=MappingProxyType({}), feature_names=content.feature_names, encoding=content.encoding,
            wide=MappingProxyType({}), row_index=None,
            absent_value=origin["absent_value"], reading=MappingProxyType(dict(origin["reading"])),
            losses=tuple(origin["losses"]), row_hashes=frozen(content.hashes),
        )  # fmt: skip
        self._init_rows({"relevance": None, "document_ids": None, **columns}, preferences)

    @property
    def has_values(self) -> bool:
        """Whether the folder also contains the values of features."""
        return self.content.values is not None

    @property
    def features(self) -> Any:
        """The values of features, memory-mapped; raise if they were not kept."""
        if self.content.values is None:
            raise DataError(
                f"{self.folder} contains only bins, but this needs the values of features: bin the files again with "
                "bin_files(…, keep_values=True). For validation data, use bin_files(…, like=…) to get the bins of the "
                "training data"
            )
        return self.content.values

    @property
    def n_documents(self) -> int:
        return self.binned.n_rows

    @property
    def n_features(self) -> int:
        return self.binned.bins.n_features

    @cached_property
    def are_all_constant(self) -> bool:
        """Whether every feature is constant; missing values count as a value."""
        columns = self.binned.columns.reshape(self.n_features, self.n_documents)
        return not any((column != column[0]).any() for column in columns)

    def __repr__(self) -> str:
        extras = ", with values" if self.has_values else ""
        return (
            f"BinnedFiles({self.n_documents} documents in {self.n_queries} queries, {self.n_features} features, "
            f"labels: {', '.join(self.labels) or 'none'}{extras})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = {name: value for name, value in self._arguments().items() if name in CHANGEABLE}
        labels = arguments["labels"]
        if "relevance" not in labels:  # otherwise the folder's labels would be restored
            arguments["relevance"] = None
        return reopen, (self.folder, self.content.rows, arguments, dict(self.reading))

    def bins_for(self, max_bins: int, categorical: Iterable[int]) -> BinnedFeatures:
        """Return the bins; raise if training needs different ones."""
        remedy = f"bin the files again, or train with max_bins={self.max_bins}"
        if max_bins != self.max_bins:
            raise DataError(f"{self.folder} was binned with max_bins={self.max_bins}, but got {max_bins}: {remedy}")
        numeric = set(categorical) - set(self.binned.bins.categories)
        if numeric:
            raise DataError(
                f"feature {min(numeric)} was binned as a number in {self.folder}, but is categorical in training: "
                "bin the files again with bin_files(…, categorical=…)"
            )
        return self.binned

    def take(self, rows: Ints) -> BinnedFiles:
        """Return some rows, by number or by a mask, in this order; their bins are copied into memory."""
        rows = row_numbers(self, rows)
        content, columns = self.content, columns_of_rows(self, rows)
        part = replace(
            content, binned=self.binned.take(rows), hashes=content.hashes[rows], counts=None,
            values=None if content.values is None else content.values[rows],
            rows=rows if content.rows is None else content.rows[rows],
        )  # fmt: skip
        return self._with(part, columns)

    def replace(self, **changes: Any) -> RankingData:
        """Return a copy with other labels, weights, positions or preferences; with other features, a `RankingData`."""
        for name in changes:
            if name not in CHANGEABLE:
                raise DataError(f"{name} of binned data cannot be changed: change the files, then bin them again")
        return super().replace(**changes)

    def summary(self) -> Summary:
        """Summarize the data and likely mistakes, using the statistics of values from binning."""
        return summarize(self, self.content.counts if not self.has_values else None)

    def _rebuilt(self, arguments: dict[str, Any]) -> RankingData:
        if arguments["feature_names"] != self.feature_names or arguments["encoding"] != self.encoding:
            raise DataError("feature_names and encoding of binned data can only be changed together with features")
        counts = self.content.counts
        if counts is not None:
            unchanged = {source for source, labels in self.labels.items() if arguments["labels"].get(source) is labels}
            counts = counts._replace(copies={k: v for k, v in counts.copies.items() if k in unchanged})
        return self._with(replace(self.content, counts=counts), arguments)

    def _with(self, content: BinnedContent, arguments: dict[str, Any]) -> BinnedFiles:
        names = ("qid", "labels", "document_weights", "query_weights", "positions")
        columns = {name: arguments[name] for name in names if name in arguments}
        columns = {"document_weights": None, "query_weights": None, "positions": None, **columns}
        return BinnedFiles(content, columns, arguments.get("preferences"))._changed(reading=self.reading)


def open_binned(folder: str | os.PathLike[str], *, verify: bool = True) -> BinnedFiles:
    """Open the folder of binned data that `bin_files` wrote.

    Args:
        folder: the folder to open.
        verify: whether to verify the checksums of all files, and that every index in them is within bounds. This reads
            the files once. If False, only sizes are checked: use it for folders that you wrote yourself.

    Returns:
        The data. Its bins are memory-mapped, so they are read only when training uses them.

    Raises:
        FileFormatError: if a file is missing or damaged; the message names it.

    Example:
        >>> import pathlib, podium, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> podium.artificial(20, features=4).write(folder / "train.txt")
        >>> _ = podium.bin_files(folder / "train.txt", folder / "train.bins")
        >>> podium.open_binned(folder / "train.bins")
        BinnedFiles(1000 documents in 20 queries, 4 features, labels: relevance)

    """
    folder = to_path(folder)
    manifest = FOLDER.read(folder)
    with FOLDER.reporting_damage(folder):
        FOLDER.check_files(folder, manifest, verify)
        check_manifest(manifest)
        data = _open(folder, manifest)
        if verify:
            check_columns(data.binned)
            if _has_layout(folder):
                check_matrix(data.binned)
    return data


def _open(folder: Path, manifest: Mapping[str, Any]) -> BinnedFiles:
    n, n_features = manifest["n_documents"], manifest["n_features"]
    documents = load_arrays(folder / DOCUMENTS)
    names, counts = manifest["feature_names"], manifest["counts"]
    content = BinnedContent(
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
    """Unpickle the data: open the folder, take the rows, and set the labels, weights and other columns."""
    data = open_binned(folder, verify=False)
    if rows is not None:
        data = data.take(rows)
    changed = data.replace(**changes)
    assert isinstance(changed, BinnedFiles)
    return changed.with_reading(**reading)


def save_bins(folder: Path, bins: Bins) -> None:
    """Write the cuts and categories of features."""
    tables = {"cuts": dict(enumerate(bins.cuts)), "categories": bins.categories, "rare": bins.rare}
    arrays: dict[str, Any] = {}
    for name, table in tables.items():
        arrays[f"{name}_of"] = np.array(list(table), np.int64)
        arrays[f"{name}_sizes"] = np.array([len(values) for values in table.values()], np.int64)
        arrays[name] = np.concatenate([np.empty(0, np.float32), *table.values()])
    np.savez(folder / BINS, **arrays)


def load_bins(folder: Path, n_features: int, max_bins: int) -> Bins:
    """Return the cuts and categories of features."""
    arrays, tables = load_arrays(folder / BINS), []
    check_tables(arrays, n_features)
    for name in ("cuts", "categories", "rare"):
        ends = np.cumsum(arrays[f"{name}_sizes"])
        parts = np.split(arrays[name], ends[:-1]) if len(ends) else []
        tables.append(dict(zip(arrays[f"{name}_of"].tolist(), parts, strict=True)))
    bins = Bins(tuple(tables[0].values()), *tables[1:])
    check_bins(bins, max_bins)
    return bins


def _mapped(folder: Path, name: str, dtype: Any, size: int) -> NDArray[Any]:
    array = map_array(folder / name)
    check_array(name, array, dtype, size)
    return array


def _has_layout(folder: Path) -> bool:
    """Return whether the folder contains the layout for growing trees, which validation data does not have."""
    return (folder / LAYOUT).exists()


def _binned(folder: Path, n: int, n_features: int, max_bins: int) -> BinnedFeatures:
    columns = _mapped(folder, COLUMNS, np.uint8, n * n_features)
    binned = BinnedFeatures(load_bins(folder, n_features, max_bins), n, columns)
    if not _has_layout(folder):
        return binned
    layout = checked_layout(load_arrays(folder / LAYOUT), binned.bins, n)
    rows, entries, starts = (map_array(folder / f"{name}.npy") for name in MATRIX)
    matrix = BinMatrix(columns, n, rows, layout.width, entries, starts)
    check_matrix_shape(matrix, layout, n)
    return binned.with_matrix(layout, matrix)


def _query_ids(folder: Path, sizes: NDArray[Any], n: int) -> NDArray[Any]:
    ids = json.loads((folder / QUERY_IDS).read_text(encoding="utf-8"))
    check_queries(ids, sizes, n)
    return np.array(ids, np.int64 if isinstance(ids[0], int) else object)  # `check_queries`: all are of one type
