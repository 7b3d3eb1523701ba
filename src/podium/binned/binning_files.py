"""Bin files of any size into a folder, with only a few rows or a few features in memory at a time.

The source is read twice: first for everything that needs a full pass (features, categories, the type of query ids),
then for its values, which go to temporary files of a few features each. If the documents of a query are scattered, they
are grouped in these files. Each feature is then cut at the quantiles of all its values, exactly as in memory, and
binned.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from podium import __version__
from podium.binned.binned_files import BinnedFiles, open_binned, save_bins
from podium.binned.collecting import DocumentColumns, RowFiles
from podium.binned.folder import COLUMNS, LAYOUT, VALUES, is_binned, write_manifest
from podium.core.array_types import Float32s, Floats, Int32s, Ints, UInt64s
from podium.core.choices import DataFormat
from podium.core.files import replacing_folder
from podium.core.mapping import new_array
from podium.core.progress import progress
from podium.core.threads import at_most_threads, thread_count
from podium.core.validation import require_whole, to_path
from podium.data import RankingData, read_blocks
from podium.data.canonical import hash_rows
from podium.data.features import as_list_of_features, numbers_of_features
from podium.data.io.reading import FORMATS, ROWS, Request, request_for
from podium.data.io.text_blocks import Source
from podium.data.memory import Budget
from podium.data.normalizing import require_scale
from podium.data.schema import Schema
from podium.data.sparse import dense_block
from podium.data.summary import ValueCounter
from podium.errors import DataError, FileFormatError
from podium.trees import BinnedFeatures, Bins, bin_features, find_bins
from podium.trees.bin_matrix import build_bin_matrix
from podium.trees.binning import MAX_BINS

log = logging.getLogger("podium")


def bin_files(
    source: Source | Sequence[Source],
    folder: str | os.PathLike[str],
    format: DataFormat | None = None,  # noqa: A002
    *,
    max_bins: int = MAX_BINS,
    categorical: Sequence[int | str] = (),
    like: BinnedFiles | str | os.PathLike[str] | None = None,
    keep_values: bool = False,
    overwrite: bool = False,
    columns: Mapping[str, Any] | None = None,
    n_threads: int | None = None,
    **options: Any,
) -> BinnedFiles:
    r"""Bin files of any size into a folder that every estimator of boosted trees can be fitted to.

    A model is identical, to the bit, to one trained on the same files in memory. Binning needs memory for about 50
    bytes per document and for a few features, and 4 bytes of disk per value. The folder has 2 bytes per value. The
    documents of a query may be scattered over the files: an extra pass groups them.

    Args:
        source: files, as for `read`; they are read twice, so they cannot be streams.
        folder: the folder to write. It appears only when it is complete.
        format: as for `read`.
        max_bins: as for `LambdaMART`; training must use the same value.
        categorical: the categorical features: text columns by name, as for `read`; other features by name or number, as
            for `LambdaMART`.
        like: binned training data, or its folder. The files are then binned with its features and bins, for validation.
        keep_values: whether to keep the values of features too, 4 bytes each, for predictions, nets and linear rankers.
        overwrite: whether to replace an existing folder of binned data.
        columns: the names of columns by command-line option; models store them for `podium score`.
        n_threads: the number of threads, all cores by default. The result does not depend on it.
        **options: the options of `read`, such as `qid`, `absent` or `normalize`.

    Returns:
        The data; `seconds` has the duration of each step.

    Raises:
        FileFormatError: if the source is invalid; the message names the file, line and column. No folder is left then.

    Example:
        >>> import pathlib, podium, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> train = podium.artificial(20, features=4)
        >>> train.write(folder / "train.txt")
        >>> binned = podium.bin_files(folder / "train.txt", folder / "train.bins")
        >>> model = podium.LambdaMART(n_trees=3).fit(binned)
        >>> model.digest() == podium.LambdaMART(n_trees=3).fit(podium.read(folder / "train.txt")).digest()
        True

    """
    require_whole("max_bins", max_bins, 2, most=MAX_BINS)
    folder = to_path(folder)
    if folder.exists() and overwrite and not is_binned(folder):
        raise FileFormatError(folder, "is not a folder of binned data, so it is not overwritten: pass another path")
    model = open_binned(like) if isinstance(like, str | os.PathLike) else like
    if model is not None and not isinstance(model, BinnedFiles):
        raise DataError(f"like must be binned training data or its folder, but got {type(model).__name__}")
    if model is not None and max_bins not in (MAX_BINS, model.max_bins):
        raise DataError(f"max_bins is {max_bins}, but the data passed as like has {model.max_bins}: omit max_bins")
    with replacing_folder(folder, overwrite) as temporary, at_most_threads(thread_count(n_threads)):
        reading = _Reading(source, format, options | {"n_threads": n_threads}, categorical, model)
        binning = _Binning(temporary, reading, max_bins if model is None else model.max_bins, keep_values)
        with reading.request.locating_errors(0):
            binning.run(columns)
    return open_binned(folder, verify=False)._changed(seconds=MappingProxyType(binning.seconds))


class _Reading:
    """The blocks of the source, with features matched to those of `like`."""

    def __init__(
        self, source: Any, format: Any, options: dict[str, Any], categorical: Any, like: BinnedFiles | None  # noqa: A002
    ) -> None:  # fmt: skip
        if options.get("sparse"):
            raise DataError("bins are always stored as one byte each: omit sparse")
        self.like, self.normalize = like, options.pop("normalize", None)
        features = as_list_of_features(categorical)
        self.request: Request = request_for(source, format, options)
        facts = FORMATS[self.request.format]
        text_columns = [feature for feature in features if isinstance(feature, str)] if facts.has_columns else []
        self.categorical = [feature for feature in features if feature not in text_columns]
        merging = {"returning_qid": "merge"} if "returning_qid" in facts.options else {}
        self.source, self.options = source, merging | options | ({"categorical": text_columns} if text_columns else {})
        if self.request.total_size is None:
            raise FileFormatError(self.request.name, "is not a file and cannot be read twice: write it to a file first")

    def blocks(self) -> Iterator[RankingData]:
        """Yield a few rows at a time, in the order of the source."""
        rows_before = 0
        for block in read_blocks(self.source, self.request.format, rows=ROWS, **self.options):
            with self.request.locating_errors(rows_before):
                if self.normalize is not None:  # features are matched after normalization
                    require_scale(block, self.normalize)
                matched = self.matched(block) if self.normalize is None else block
            yield matched
            rows_before += len(block)

    def matched(self, block: RankingData) -> RankingData:
        """Return a block with the features of the training data, if `like` is set."""
        return block if self.like is None else Schema.of(self.like).matched(block)

    def numbers_of_categorical(self, data: RankingData) -> list[int]:
        """Return the numbers of the categorical features of the data, and of those that the caller passed."""
        numbers = numbers_of_features(self.categorical, data.feature_names, "categorical")
        for k in numbers:
            if not isinstance(k, int | np.integer) or not 0 <= k < data.n_features:
                raise DataError(f"categorical: feature {k!r} does not exist; use 0 to {data.n_features - 1}")
        return sorted({*map(int, numbers), *data.encoding.categories})

    def preferences(self) -> Floats | None:
        """Return the preferences between rows, which only Parquet files written by Podium can contain."""
        if self.request.format != "parquet":
            return None
        from podium.data.io.parquet import opened_files

        with opened_files(self.request.sources, self.request.columns, Budget(self.request.max_bytes)) as files:
            return files.preferences


class _Binning:
    """One run of `bin_files`."""

    def __init__(self, folder: Path, reading: _Reading, max_bins: int, keep_values: bool) -> None:
        self.folder, self.reading, self.max_bins, self.keep_values = folder, reading, max_bins, keep_values
        self.seconds: dict[str, float] = {}  # of each step
        self.counter = ValueCounter()

    def run(self, columns: Mapping[str, Any] | None) -> None:
        """Write the folder; `columns` is the argument of `bin_files`."""
        with self._timed("reading"):
            spill, documents = self._read()
        if documents.order is not None:
            with self._timed("grouping"):
                spill.reorder(documents.places)
            log.info("grouped %d queries from %d runs of rows", len(documents.query_ids), documents.n_runs)
        if self.reading.normalize is not None:
            with self._timed("normalizing"):
                spill = self._normalize(spill, documents)
        documents.save(self.folder, self.reading.preferences())
        with self._timed("binning"):
            binned = self._bin(spill, len(documents.columns["query"]))
        with self._timed("laying out"):
            self._lay_out(binned)
        with self._timed("checksums"):
            write_manifest(self.folder, self._description(spill.like, documents, columns))

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - started
        log.info("%s: %.3f s", step, self.seconds[step])

    def _read(self) -> tuple[Spill, DocumentColumns]:
        """Read the source: values go to files, everything else stays in memory."""
        columns, is_raw = DocumentColumns(), self.reading.normalize is not None
        with ExitStack() as stack:
            spill: Spill | None = None
            for block in self.reading.blocks():
                if spill is None:
                    n = block.n_features  # one file has all features until they are normalized
                    groups = [RowFiles(self.folder, "raw", n, n)] if is_raw else self._files(block)
                    spill = Spill(block, [stack.enter_context(files) for files in groups])
                columns.append(block, self._write(spill, block, counts=not is_raw))
        if spill is None:
            raise FileFormatError(self.reading.request.name, "has no documents to bin")
        columns.group()
        return spill, columns

    def _files(self, block: RankingData) -> list[RowFiles]:
        """Return files of a few features each, and one of all features if values are kept."""
        n = block.n_features
        if n == 0:
            raise FileFormatError(self.reading.request.name, "has no features to bin")
        files = [RowFiles(self.folder, "features", n)]
        return files + ([RowFiles(self.folder, VALUES, n, n)] if self.keep_values else [])

    def _write(self, spill: Spill, block: RankingData, counts: bool) -> UInt64s:
        """Append the features of a block; return their hashes, and collect statistics if `counts` is set."""
        rows = dense_block(block.features)
        spill.append(rows)
        if counts:
            self.counter.add(rows, block.labels)
        return hash_rows(rows)

    def _normalize(self, raw: Spill, documents: DocumentColumns) -> Spill:
        """Normalize the values within queries, whose documents must be adjacent."""
        (_, rows), hashes = next(raw.files[0].read()), []
        labels = documents.labels()
        with ExitStack() as stack, progress("normalizing", len(rows)) as advance:
            spill: Spill | None = None
            for first, last in documents.blocks(ROWS):
                block_labels = {source: values[first:last] for source, values in labels.items()}
                block = raw.data(rows[first:last], documents.columns["query"][first:last], block_labels)
                block = self.reading.matched(block.normalized(str(self.reading.normalize)))
                if spill is None:
                    spill = Spill(block, [stack.enter_context(files) for files in self._files(block)])
                hashes.append(self._write(spill, block, counts=True))
                advance(last - first)
        raw.files[0].remove(0)
        assert spill is not None
        documents.columns["hashes"] = np.concatenate(hashes)
        return spill

    def _bin(self, spill: Spill, n: int) -> BinnedFeatures:
        """Bin each feature, with its own cuts or those of `like`."""
        files, n_features = spill.files[0], spill.like.n_features
        categorical = set(self.reading.numbers_of_categorical(spill.like))
        columns, parts = new_array(self.folder / COLUMNS, n * n_features, np.uint8), []
        with progress("binning features", n_features) as advance:
            for first, rows in files.read():
                width = rows.shape[1]
                if self.reading.like is None:
                    bins = find_bins(rows, self.max_bins, [k - first for k in categorical if 0 <= k - first < width])
                else:
                    bins = self.reading.like.binned.bins.of_features(first, first + width)
                bin_features(rows, bins, columns=columns[first * n : (first + width) * n])
                parts.append(bins)
                files.remove(first)
                advance(width)
        if self.keep_values:
            spill.files[1].paths[0].rename(self.folder / VALUES)
        bins = Bins.joined(parts)
        save_bins(self.folder, bins)
        return BinnedFeatures(bins, n, columns)

    def _lay_out(self, binned: BinnedFeatures) -> None:
        """Write the bins in the layout for growing trees, which validation data does not need."""
        if self.reading.like is not None:
            return
        layout = binned.layout
        np.savez(self.folder / LAYOUT, **{field.name: getattr(layout, field.name) for field in fields(layout)})
        with progress("laying out bins", 2) as advance:
            build_bin_matrix(
                binned.columns, binned.n_rows, layout, advance=advance,
                allocate=lambda name, size, dtype: new_array(self.folder / f"{name}.npy", size, dtype),
            )  # fmt: skip

    def _description(
        self, like: RankingData, documents: DocumentColumns, columns: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        absent = like.absent_value
        return {
            "podium": __version__, "n_documents": len(documents.columns["query"]), "n_features": like.n_features,
            "n_queries": len(documents.query_ids), "max_bins": self.max_bins,
            "feature_names": None if like.feature_names is None else list(like.feature_names),
            "encoding": like.encoding.to_json(), "losses": list(like.losses),
            "reading": dict(like.reading) | ({} if columns is None else {"columns": dict(columns)}),
            "absent_value": None if absent is None else "missing" if np.isnan(absent) else "zero",
            "counts": self.counter.counts(documents.labels())._asdict(),
        }  # fmt: skip


class Spill:
    """Temporary files with the features of all documents."""

    def __init__(self, block: RankingData, files: list[RowFiles]) -> None:
        self.like = block.take(np.arange(0))  # data with the same features and no documents
        self.files = files  # the files of a few features each; if values are kept, also a file with all features

    def append(self, rows: Float32s) -> None:
        """Append rows to all files."""
        for files in self.files:
            files.append(rows)

    def reorder(self, places: Ints) -> None:
        """Move each row to its place."""
        for files in self.files:
            files.reorder(places)

    def data(self, rows: Float32s, query: Int32s, labels: dict[str, Float32s]) -> RankingData:
        """Return rows of features as data."""
        arguments = {"features": rows, "qid": query, "labels": labels, "feature_names": self.like.feature_names}
        return RankingData._make(arguments | {"encoding": self.like.encoding}, self.like._origin())
