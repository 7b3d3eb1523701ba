"""`read` and `read_blocks`: ranking data from files, all rows at once or in blocks for files larger than memory."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from podium.core.choices import Absent, DataFormat, Returning
from podium.core.progress import progress
from podium.core.validation import require_whole
from podium.data.io.queries import block_bounds
from podium.data.io.request import Request, request_of
from podium.data.io.text_blocks import Source
from podium.data.io.text_reader import TextReader
from podium.data.memory import Budget
from podium.data.ranking_data import RankingData
from podium.data.schema import Schema
from podium.errors import FileFormatError, warn

ROWS = 1 << 15


def read(
    source: Source | Sequence[Source],
    format: DataFormat | None = None,  # noqa: A002
    *,
    n_features: int | None = None,
    absent: Absent = "zero",
    first_index: int = 1,
    largest_index: int = 1_000_000,
    sparse: bool = False,
    returning_qid: Returning = "warn",
    relevance: str | None = None,
    qid: str | None = None,
    labels: Mapping[str, str] | None = None,
    document_weights: str | None = None,
    query_weights: str | None = None,
    positions: str | None = None,
    document_ids: str | None = None,
    feature_names: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    unlabelled: float | None = None,
    normalize: str | None = None,
    n_threads: int | None = None,
    max_bytes: int | None = None,
) -> RankingData:
    r"""Read ranking data from one or several files.

    Args:
        source: a path, an open binary file, or a sequence of these, which are read as one data set. Text may be
            compressed with gzip, bzip2 or xz, under any name. For LETOR text `FILE`, the side files of LightGBM and
            XGBoost are read as well: `FILE.query` or `FILE.group` (the number of documents of each query, if lines
            have no `qid:`), `FILE.weight` (a weight for each document or query) and `FILE.position`.
        format: `"letor"` (also SVMlight, LibSVM), `"csv"`, `"tsv"` or `"parquet"`; by default determined by the suffix.
        n_features: LETOR: the number of features; by default the largest index in the file.
        absent: LETOR: the value of features that a line omits, `"zero"` or `"missing"` (NaN).
        first_index: LETOR: the index of the first feature in the file, 1 or 0.
        largest_index: LETOR: the largest valid index; a larger one is an error.
        sparse: LETOR: whether to keep the features as a scipy csr_array.
        returning_qid: text: what to do if a query id returns after other queries. `"warn"` and `"merge"` treat all its
            rows as one query, with or without a warning; `"error"` raises an error.
        relevance, qid, labels, document_weights, query_weights, positions, document_ids, feature_names:
            CSV, TSV, Parquet: the names of the columns; the defaults are those of `RankingData`.
        categorical: CSV, TSV, Parquet: the names of categorical features, which may hold text. Categorical columns of
            Parquet files need not be named.
        unlabelled: the label value that means "not labelled".
        normalize: scale features within each query by `"sum"`, `"zscore"` or `"minmax"`.
        n_threads: the number of threads for parsing; all cores by default. The result is the same.
        max_bytes: the maximum memory for the text, and for its arrays, in bytes; by default half of the free memory.
            Reading more is an error, so that an endless stream is stopped.

    Returns:
        The data, with rows in the order of the file.

    Raises:
        FileFormatError: if a file is invalid, with the file, line and column of the problem.

    Example:
        >>> import io, podium
        >>> text = b"2 qid:7 1:0.5 2:1\n0 qid:7 1:0.25\n1 qid:8 2:3\n"
        >>> data = podium.read(io.BytesIO(text), format="letor")
        >>> data
        RankingData(3 documents in 2 queries, 2 features, labels: relevance)
        >>> data.features[1].tolist()
        [0.25, 0.0]

    """
    return request_of(locals()).read()


def read_blocks(
    source: Source | Sequence[Source],
    format: DataFormat | None = None,  # noqa: A002
    *,
    rows: int = ROWS,
    whole_queries: bool = False,
    like: Schema | None = None,
    **options: Any,
) -> Iterator[RankingData]:
    r"""Read ranking data of any size block by block, using the memory of one block.

    Each block is what `read` returns for its rows: the same features, categories and type of query ids. These depend
    on the whole file, which is therefore read twice unless `like` determines them. A stream cannot be read twice, so
    without `like` it is read into memory.

    Args:
        source: as for `read`.
        format: as for `read`.
        rows: the number of rows of a block; the last block may have fewer.
        whole_queries: whether to keep each query within one block, which then has at most `rows` rows, unless a single
            query has more. If the rows of a query are not adjacent, all rows are one block, with a warning.
            Preferences are only read for whole queries. `normalize` implies whole queries.
        like: `model.schema` of the model that will score the blocks. LETOR text then has as many features as the model,
            categories are numbered as in the model, and returning query ids are not checked. It has no effect with
            whole queries.
        **options: options of `read`. `max_bytes` limits a block; text is read about 4 MiB at a time.

    Returns:
        An iterator over the blocks, in the order of the file.

    Raises:
        FileFormatError: if a file is invalid, with the place of the problem. Unless the file is read twice, the blocks
            before that place have already been returned.

    Example:
        >>> import pathlib, podium, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.txt"
        >>> _ = path.write_text("2 qid:7 1:0.5\n0 qid:7 1:0.25\n1 qid:8 2:3\n")
        >>> [block.features.tolist() for block in podium.read_blocks(path, rows=2)]
        [[[0.5, 0.0], [0.25, 0.0]], [[0.0, 3.0]]]
        >>> [len(block) for block in podium.read_blocks(path, rows=1, whole_queries=True)]
        [2, 1]

    """
    require_whole("rows", rows, 1)
    request = request_for(source, format, options)
    return _Blocks(request, rows, whole_queries or request.normalize is not None, like).read()


def request_for(source: Source | Sequence[Source], format: DataFormat | None, options: dict[str, Any]) -> Request:  # noqa: A002
    """Return the arguments of `read` as a request."""
    given = inspect.signature(read).bind(source, format, **options)
    given.apply_defaults()
    return request_of(given.arguments)


class _Blocks:
    def __init__(self, request: Request, rows: int, whole_queries: bool, like: Schema | None) -> None:
        self.request, self.rows, self.whole_queries = request, rows, whole_queries
        self.like = None if whole_queries else like
        self.budget = Budget(request.max_bytes)

    def read(self) -> Iterator[RankingData]:
        """Yield the blocks."""
        with self.request.naming_memory_errors():
            if self.request.format == "parquet":
                yield from self._of_parquet()
            elif self.like is None and self.request.total_size is None:
                yield from self._cut(self.request.read())
            else:
                yield from self._of_text()

    def _of_text(self) -> Iterator[RankingData]:
        request, n_passes = self.request, 2 if self.like is None else 1
        if request.options.returning_qid == "warn" and (self.whole_queries or self.like is not None):
            # With whole queries another warning follows, and scores of a model that does not see lists cannot change.
            request = replace(request, options=replace(request.options, returning_qid="merge"))
        with progress(f"reading {request.name}", n_passes * (request.total_size or 0) or None) as advance:
            known, first, stamps = None, None, self._stamps()
            sizes: Iterable[int] | None = repeat(self.rows)
            if self.like is None:
                first = self._look(request, advance)
                known, sizes = first.facts(), self._sizes(first)
            if sizes is not None:
                reader = request.text_reader(self.budget, known=known, like=self.like)
                for items in reader.groups(advance, sizes):
                    rows_before = reader.n_rows
                    data = request.data_of_text(reader.arguments(items), rows_before)
                    yield request.finished(data, rows_before)
                    del data
                if first is not None:
                    self._require_unchanged(stamps, first.n_rows == reader.n_rows)
                if self.like is not None:
                    reader.finish()
                    if request.format == "letor":
                        _check_features(reader, self.like)
        if sizes is None:
            yield from self._all_at_once()

    def _stamps(self) -> dict[str, tuple[int, int] | None]:
        """Return the size and modification time of each file; None if it does not exist."""
        files = [Path(source) for source in self.request.sources if isinstance(source, str | os.PathLike)]
        return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) if file.exists() else None for file in files}

    def _require_unchanged(self, stamps: Mapping[str, tuple[int, int] | None], has_same_rows: bool) -> None:
        """Raise if a file has changed since the first pass."""
        now = self._stamps()
        changed = next((file for file, stamp in stamps.items() if stamp != now[file]), None)
        if changed is not None or not has_same_rows:
            raise FileFormatError(
                changed or self.request.name,
                "changed while it was read, so the blocks so far may be wrong: read the file again once it no longer "
                "changes",
            )

    def _look(self, request: Request, advance: Callable[[float], None]) -> TextReader:
        """Make a first pass over the text; return its reader, which has the facts that depend on all of it."""
        reader = request.text_reader(self.budget, most_rows=self.rows if self.whole_queries else None)
        for items in reader.groups(advance, repeat(self.rows)):
            reader.examine(items)
        reader.finish()
        return reader

    def _sizes(self, reader: TextReader) -> Iterable[int] | None:
        """Return the number of rows of each block; None if the rows of a query are not adjacent."""
        if not self.whole_queries:
            return repeat(self.rows)
        return None if reader.queries.returned is not None else reader.queries.blocks.sizes(reader.n_rows)

    def _of_parquet(self) -> Iterator[RankingData]:
        from podium.data.io.parquet import DAMAGED, import_pyarrow, opened_files

        request, errors = self.request, (*DAMAGED, import_pyarrow().ArrowException)
        with opened_files(request.sources, request.columns, self.budget) as files:
            with request.naming_rows(0, errors):
                sizes = files.sizes_of_blocks(self.rows) if self.whole_queries else repeat(self.rows)
                facts = files.facts(self.like) if sizes is not None else None
            if sizes is not None and facts is not None:
                with progress(f"reading {request.name}", files.n_rows) as advance:
                    rows_before = 0
                    for table in files.tables(sizes, advance):
                        with request.naming_rows(rows_before, errors):
                            data = files.data(table, facts, rows_before, self.whole_queries)
                        yield request.finished(data, rows_before)
                        rows_before += len(table)
                        del data, table
                files.seen.warn()
        if facts is None:
            yield from self._all_at_once()

    def _all_at_once(self) -> Iterator[RankingData]:
        warn(
            f"{self.request.name}: all rows are read into memory, because the rows of a query are not adjacent: sort "
            "the rows by query to read in blocks",
            stacklevel=3,
        )
        yield self.request.read()

    def _cut(self, data: RankingData) -> Iterator[RankingData]:
        if not self.whole_queries:
            data = data.replace(preferences=None)
            ends = [*range(0, len(data), self.rows), len(data)]
        else:
            if not np.array_equal(data.order, np.arange(len(data))):
                yield data
                return
            ends = block_bounds(data.offsets[:-1], len(data), self.rows)
        for first, last in pairwise(ends):
            yield data.take(np.arange(first, last))


def _check_features(reader: TextReader, like: Schema) -> None:
    """Raise or warn if text has too few features for a model, after all of it has been read."""
    names = reader.feature_names()
    absent_value = {"zero": 0.0, "missing": np.nan}[reader.options.absent] if reader.facts().is_sparse else None
    no_rows = {"features": np.empty((0, len(names)), np.float32), "qid": np.empty(0, np.int64), "feature_names": names}
    like.rows(RankingData._make(no_rows, {"absent_value": absent_value}))
