"""Sparse features: conversion to dense blocks, and validation, because kernels do not check indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s
from podium.data.columns import frozen
from podium.errors import DataError

MOST_FEATURES = 2**31 - 2  # column numbers, and the one after the last, must fit into int32


def is_sparse(features: Any) -> bool:
    """Return whether features are a scipy sparse matrix or array."""
    return hasattr(features, "tocsr")


def dense_block(features: Any, rows: Any = slice(None), dtype: Any = np.float32) -> NDArray[Any]:
    """Return rows of dense or sparse features as a contiguous array, as a view if possible."""
    block = features[rows]
    return np.ascontiguousarray(block.toarray() if is_sparse(block) else block, dtype)


def frozen_block(features: Any, rows: Any) -> Float32s:
    """Return `dense_block` as a read-only view, so that kernels are compiled for one type of array only."""
    return frozen(dense_block(features, rows))


def checked_rows(X: Any) -> Any:
    """Return a scipy sparse matrix of any format as a valid csr_array; the values keep their type."""
    from scipy.sparse import csr_array, issparse

    if not issparse(X):
        raise DataError(f"sparse features must be a scipy sparse matrix or array, but got {type(X).__name__}")
    if X.ndim != 2:
        raise DataError(f"features must have two dimensions, documents × features, but got {X.ndim}")
    if X.dtype.kind not in "fiub":
        raise DataError(f"features must be numbers, but got {X.dtype}")
    if X.shape[1] > MOST_FEATURES:
        raise DataError(f"features must have at most {MOST_FEATURES:_} columns, but have {X.shape[1]:_}")
    if X.format != "csr":
        try:
            _check_before_conversion(X)
            X = X.tocsr()
        except DataError:
            raise
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
            raise DataError(f"the sparse matrix is invalid: {error}") from error
    _check_compressed(X, X.shape[0], X.shape[1])
    n_values = int(X.indptr[-1])
    return csr_array((X.data[:n_values], X.indices[:n_values], X.indptr), shape=X.shape, copy=False)


def float32_rows(X: Any) -> Any:
    """Return valid rows as float32, with the columns of each row sorted and distinct.

    The result shares the caller's arrays if they already are. Flags of the caller's matrix are not trusted.
    """
    from scipy.sparse import csr_array

    with np.errstate(over="ignore"):
        values = X.data.astype(np.float32, copy=False)
    if _ascends_in_rows(X.indices, X.indptr):
        return csr_array((values, X.indices, X.indptr), shape=X.shape, copy=False)
    rows = csr_array((values.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    rows.sum_duplicates()
    return rows


def _check_before_conversion(X: Any) -> None:
    """Raise if scipy's compiled conversions would read out of bounds; it converts other formats in Python."""
    if X.format == "csc":
        _check_compressed(X, X.shape[1], X.shape[0])
    elif X.format == "bsr":
        if X.data.ndim != 3 or 0 in X.data.shape[1:] or X.shape[0] % X.data.shape[1] or X.shape[1] % X.data.shape[2]:
            raise DataError("the sparse matrix is invalid: its blocks do not fit its shape")
        _check_compressed(X, X.shape[0] // X.data.shape[1], X.shape[1] // X.data.shape[2])
    elif X.format == "coo":
        for axis, coordinates in enumerate(X.coords):
            _check_whole(coordinates, "its coordinates")
            if len(coordinates) != len(X.data):
                raise DataError(f"the sparse matrix is invalid: {len(X.data)} values, {len(coordinates)} coordinates")
            _check_range(coordinates, X.shape[axis], ("row", "column")[axis])
    elif X.format == "dia" and (X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]):
        raise DataError("the sparse matrix is invalid: its diagonals and offsets do not agree")


def _check_compressed(X: Any, n_major: int, n_minor: int) -> None:
    """Raise unless row offsets ascend from 0 within the values, and columns are within the shape."""
    indptr, indices, data = X.indptr, X.indices, X.data
    _check_whole(indptr, "indptr")
    _check_whole(indices, "indices")
    if not isinstance(data, np.ndarray) or len(indices) != len(data):
        raise DataError(f"the sparse matrix is invalid: {len(data)} values, {len(indices)} indices")
    if len(indptr) != n_major + 1:
        raise DataError(f"the sparse matrix is invalid: indptr has {len(indptr)} entries, expected {n_major + 1}")
    # Compare instead of subtracting, because differences of int64 can overflow.
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] > len(indices):
        raise DataError(
            f"the sparse matrix is invalid: indptr must ascend from 0 to at most {len(indices)}, the number of values"
        )
    _check_range(indices[: int(indptr[-1])], n_minor, "index")


def _check_whole(array: Any, name: str) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"the sparse matrix is invalid: {name} must be a one-dimensional array of whole numbers")


def _check_range(indices: NDArray[Any], size: int, what: str) -> None:
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        wrong = indices[(indices < 0) | (indices >= size)][0]
        raise DataError(f"the sparse matrix is invalid: {what} {wrong} is not in 0 … {size - 1}")


def _ascends_in_rows(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    if len(indices) < 2:
        return True
    ascends = indices[1:] > indices[:-1]
    row_starts = indptr[(indptr > 0) & (indptr < len(indices))]
    ascends[row_starts.astype(np.int64) - 1] = True
    return bool(ascends.all())
