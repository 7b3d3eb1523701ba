"""Sparse features: rows as dense blocks, and the checks of a matrix whose indices kernels follow blindly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s
from podium.data.columns import frozen
from podium.errors import DataError

MOST_FEATURES = 2**31 - 2  # column numbers, and the number after the last, are int32


def is_sparse(features: Any) -> bool:
    """Whether features are a scipy sparse matrix or array."""
    return hasattr(features, "tocsr")


def dense_block(features: Any, rows: Any = slice(None), dtype: Any = np.float32) -> NDArray[Any]:
    """Some rows of dense or sparse features as a contiguous array; a view of them where that is possible."""
    block = features[rows]
    return np.ascontiguousarray(block.toarray() if is_sparse(block) else block, dtype)


def frozen_block(features: Any, rows: Any = slice(None)) -> Float32s:
    """The same for a kernel, which is compiled once: a view that cannot be written to."""
    return frozen(dense_block(features, rows))


def checked_rows(X: Any) -> Any:
    """A scipy sparse matrix of any format as a csr_array whose indices can be followed; the values keep their type."""
    from scipy.sparse import csr_array, issparse

    if not issparse(X):
        raise DataError(f"sparse features must be a scipy sparse matrix or array, not {type(X).__name__}")
    if X.ndim != 2:
        raise DataError(f"features must have two dimensions, documents × features, not {X.ndim}")
    if X.dtype.kind not in "fiub":
        raise DataError(f"features must be numbers, not {X.dtype}")
    if X.shape[1] > MOST_FEATURES:
        raise DataError(f"features must have {MOST_FEATURES:_} columns at most, but have {X.shape[1]:_}")
    if X.format != "csr":
        try:
            _check_before_conversion(X)
            X = X.tocsr()
        except DataError:
            raise
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
            raise DataError(f"the sparse matrix is broken: {error}") from error
    _check_compressed(X, X.shape[0], X.shape[1])
    n_values = int(X.indptr[-1])
    return csr_array((X.data[:n_values], X.indices[:n_values], X.indptr), shape=X.shape, copy=False)


def float32_rows(X: Any) -> Any:
    """Checked rows as float32, each sorted and without a column twice.

    The arrays are the caller's where they are already so. What the caller's matrix believes of itself does not count.
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
    """Refuse what scipy's compiled conversions would follow out of bounds; the other formats convert in Python."""
    if X.format == "csc":
        _check_compressed(X, X.shape[1], X.shape[0])
    elif X.format == "bsr":
        if X.data.ndim != 3 or 0 in X.data.shape[1:] or X.shape[0] % X.data.shape[1] or X.shape[1] % X.data.shape[2]:
            raise DataError("the sparse matrix is broken: its blocks do not fit its shape")
        _check_compressed(X, X.shape[0] // X.data.shape[1], X.shape[1] // X.data.shape[2])
    elif X.format == "coo":
        for axis, coordinates in enumerate(X.coords):
            _check_whole(coordinates, "its coordinates")
            if len(coordinates) != len(X.data):
                raise DataError(f"the sparse matrix is broken: {len(X.data)} values, {len(coordinates)} coordinates")
            _check_range(coordinates, X.shape[axis], ("row", "column")[axis])
    elif X.format == "dia" and (X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]):
        raise DataError("the sparse matrix is broken: its diagonals and offsets do not agree")


def _check_compressed(X: Any, n_major: int, n_minor: int) -> None:
    """Offsets of rows from 0, never descending, within the values; columns within the shape."""
    indptr, indices, data = X.indptr, X.indices, X.data
    _check_whole(indptr, "indptr")
    _check_whole(indices, "indices")
    if not isinstance(data, np.ndarray) or len(indices) != len(data):
        raise DataError(f"the sparse matrix is broken: {len(data)} values, {len(indices)} indices")
    if len(indptr) != n_major + 1:
        raise DataError(f"the sparse matrix is broken: indptr has {len(indptr)} entries, expected {n_major + 1}")
    # Compared, not subtracted: differences of int64 wrap.
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] > len(indices):
        raise DataError(
            f"the sparse matrix is broken: indptr must rise from 0 to {len(indices)} at most, the number of values"
        )
    _check_range(indices[: int(indptr[-1])], n_minor, "index")


def _check_whole(array: Any, name: str) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"the sparse matrix is broken: {name} must be a one-dimensional array of whole numbers")


def _check_range(indices: NDArray[Any], size: int, what: str) -> None:
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        wrong = indices[(indices < 0) | (indices >= size)][0]
        raise DataError(f"the sparse matrix is broken: {what} {wrong} is not in 0 … {size - 1}")


def _ascends_in_rows(indices: NDArray[Any], indptr: NDArray[Any]) -> bool:
    if len(indices) < 2:
        return True
    ascends = indices[1:] > indices[:-1]
    row_starts = indptr[(indptr > 0) & (indptr < len(indices))]
    ascends[row_starts.astype(np.int64) - 1] = True
    return bool(ascends.all())
