"""Dask frames and arrays: their partitions as sources, and lazy functions of their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from podium.data import RankingData
from podium.distributed.sources import Columns, DerivedSource, Source, empty_data, frame_to_data
from podium.errors import DataError


def is_dask_frame(value: Any) -> bool:
    """Return whether a value is a Dask DataFrame."""
    return hasattr(value, "to_delayed") and hasattr(value, "npartitions") and hasattr(value, "columns")


def is_dask_array(value: Any) -> bool:
    """Return whether a value is a Dask Array."""
    return hasattr(value, "to_delayed") and hasattr(value, "chunks")


def frame_sources(X: Any, columns: Columns, categorical: tuple[Any, ...]) -> list[Source]:
    """Return a source for each partition of a frame; columns are names, or Series with the same partitions."""
    given = {name: value for name, value in columns.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, str) and getattr(value, "npartitions", None) != X.npartitions:
            raise DataError(f"{name} must be the name of a column, or a Dask Series with the partitions of the frame")
    lists = {n: [v] * X.npartitions if isinstance(v, str) else v.to_delayed() for n, v in given.items()}
    parts = X.to_delayed()
    return [
        DerivedSource(frame_to_data, (part, list(given), [lists[name][k] for name in given], categorical))
        for k, part in enumerate(parts)
    ]


def array_sources(X: Any, columns: Columns) -> list[Source]:
    """Return a source for each block of rows, with the labels and query ids of the same rows."""
    for name in ("y", "qid"):
        if not is_dask_array(columns.get(name)):
            raise DataError(f"if X is a Dask Array, {name} must be one as well: fit(X, y, qid=qid)")
    X = X.rechunk({1: -1})
    given = {name: value for name, value in columns.items() if value is not None}
    for name, value in given.items():
        if not is_dask_array(value) or value.shape != X.shape[:1]:
            raise DataError(f"{name} must be a Dask Array with an entry for each of the {X.shape[0]} rows")
    blocks = {name: value.rechunk((X.chunks[0],)).to_delayed() for name, value in given.items()}
    return [
        DerivedSource(_block_to_data, (part, list(given), [blocks[name][k] for name in given]))
        for k, part in enumerate(X.to_delayed()[:, 0])
    ]


def _block_to_data(block: Any, names: list[str], values: list[Any]) -> RankingData:
    given = dict(zip(names, values, strict=True))
    if not len(block):
        return empty_data()
    return RankingData(
        block, given["y"], qid=given["qid"], document_weights=given.get("sample_weight"),
        query_weights=given.get("query_weight"),
    )  # fmt: skip


def lazy_scores(X: Any, predict: Callable[[Any], Any], dtype: Any) -> Any:
    """Return a function of the rows of a Dask collection, computed with it; None for anything else."""
    if is_dask_frame(X):
        import pandas as pd

        def of_partition(frame: Any) -> Any:
            scores = predict(frame) if len(frame) else np.empty(0, dtype)
            return pd.Series(scores, index=frame.index, name="score")

        return X.map_partitions(of_partition, meta=pd.Series(np.empty(0, dtype), name="score"))
    if is_dask_array(X):
        whole = X.rechunk({1: -1})
        return whole.map_blocks(
            lambda block: predict(block) if len(block) else np.empty(0, dtype), drop_axis=1, dtype=dtype,
            meta=np.empty(0, dtype),
        )  # fmt: skip
    return None
