"""What `fit` takes on a cluster, as sources: Dask frames and arrays, lists of files, data that is here."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.binned import BinnedFiles
from podium.data import RankingData, frames, read
from podium.data.schema import columns_of_text
from podium.distributed.sources import Source, Step, pieces_of
from podium.errors import DataError

PIECES = 4  # for each worker, of data that is here: so they can be shared out again when a worker is lost
Columns = dict[str, Any]  # y, qid, sample_weight, query_weight: names of columns, collections, or None


def is_dask_frame(value: Any) -> bool:
    """Whether a value is a Dask DataFrame."""
    return hasattr(value, "to_delayed") and hasattr(value, "npartitions") and hasattr(value, "columns")


def is_dask_array(value: Any) -> bool:
    """Whether a value is a Dask Array."""
    return hasattr(value, "to_delayed") and hasattr(value, "chunks")


def sources_of(
    X: Any, columns: Columns, categorical: Sequence[Any], reader: Callable[[list[str]], RankingData] | None, n: int
) -> list[Source]:
    """The partitions of documents as sources.

    Args:
        X: a Dask DataFrame, a Dask Array, names of files, `RankingData`, or what makes one.
        columns: beside the features.
        categorical: features that hold categories.
        reader: reads files; `podium.read` by default.
        n: into how many pieces data is cut that is here.

    """
    if is_dask_frame(X):
        return _of_frame(X, columns, tuple(categorical))
    if is_dask_array(X):
        return _of_array(X, columns)
    if _are_files(X):
        extra = [name for name, value in columns.items() if value is not None and not isinstance(value, str)]
        if extra:
            raise DataError(f"files bring their own labels and weights; {extra[0]} has no place beside them")
        return [Step(_read, (path, reader)) for path in paths_of(X)]
    if isinstance(X, BinnedFiles):
        raise DataError("a folder of bins is for training on one machine: give the cluster the files themselves")
    if isinstance(X, RankingData):
        return pieces_of(X, n)
    raise DataError(
        "on a cluster, documents come as a Dask DataFrame, a Dask Array with y and qid, a list of files, or "
        f"RankingData; not {type(X).__name__}"
    )


def _are_files(X: Any) -> bool:
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(one, str | os.PathLike) for one in X)


def paths_of(X: Any) -> list[str]:
    """Names of files; patterns are looked up, and of a folder all files are taken."""
    paths: list[str] = []
    for one in [X] if isinstance(X, str | os.PathLike) else X:
        text = os.fspath(one)
        if Path(text).is_dir():
            found = sorted(str(path) for path in Path(text).iterdir() if path.is_file() and path.name[0] not in "._")
        else:
            found = sorted(glob.glob(text)) if glob.has_magic(text) else [text]  # noqa: PTH207
        if not found:
            raise DataError(f"there are no files {text!r}")
        paths += found
    return paths


def _read(path: str, reader: Callable[[list[str]], RankingData] | None) -> RankingData:
    return read(path) if reader is None else reader([path])


def _of_frame(X: Any, columns: Columns, categorical: tuple[Any, ...]) -> list[Source]:
    """Each partition of a frame; columns are named, or are Series with the same partitions."""
    given = {name: value for name, value in columns.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, str) and getattr(value, "npartitions", None) != X.npartitions:
            raise DataError(f"{name} must be the name of a column, or a Dask Series with the partitions of the frame")
    lists = {n: [v] * X.npartitions if isinstance(v, str) else v.to_delayed() for n, v in given.items()}
    parts = X.to_delayed()
    return [
        Step(_frame_to_data, (part, list(given), [lists[name][k] for name in given], categorical))
        for k, part in enumerate(parts)
    ]


def _frame_to_data(frame: Any, names: list[str], values: list[Any], categorical: tuple[Any, ...]) -> RankingData:
    given = dict(zip(names, values, strict=True))
    if not len(frame):
        return _nothing()
    if given.get("qid") is None and not frames.has_queries(frame):
        raise DataError("which rows belong to one query? give the frame a column 'qid', or name one: fit(X, qid=…)")
    text = columns_of_text(frame, list(categorical))
    return RankingData(
        frame.reset_index(drop=True), _plain(given.get("y")), qid=_plain(given.get("qid")), categorical=text,
        document_weights=_plain(given.get("sample_weight")), query_weights=_plain(given.get("query_weight")),
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """The name of a column, or an array."""
    return value if value is None or isinstance(value, str) else np.asarray(value)


def _of_array(X: Any, columns: Columns) -> list[Source]:
    """Each block of rows of an array, with the labels and queries of the same rows."""
    for name in ("y", "qid"):
        if not is_dask_array(columns.get(name)):
            raise DataError(f"beside a Dask Array, {name} must be one, too: fit(X, y, qid=qid)")
    X = X.rechunk({1: -1})
    given = {name: value for name, value in columns.items() if value is not None}
    for name, value in given.items():
        if not is_dask_array(value) or value.shape != X.shape[:1]:
            raise DataError(f"{name} must be a Dask Array with an entry for each of the {X.shape[0]} rows")
    blocks = {name: value.rechunk((X.chunks[0],)).to_delayed() for name, value in given.items()}
    return [
        Step(_block_to_data, (part, list(given), [blocks[name][k] for name in given]))
        for k, part in enumerate(X.to_delayed()[:, 0])
    ]


def _block_to_data(block: Any, names: list[str], values: list[Any]) -> RankingData:
    given = dict(zip(names, values, strict=True))
    if not len(block):
        return _nothing()
    return RankingData(
        block, given["y"], qid=given["qid"], document_weights=given.get("sample_weight"),
        query_weights=given.get("query_weight"),
    )  # fmt: skip


def _nothing() -> RankingData:
    """An empty partition."""
    return RankingData(np.empty((0, 1), np.float32), np.empty(0), qid=np.empty(0, np.int64))


def n_pieces(n_workers: int) -> int:
    """Into how many pieces data is cut that is here."""
    return PIECES * max(n_workers, 1)
