"""Convert features of any kind to a float32 matrix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s
from podium.core.threads import map_threads
from podium.core.validation import require_utf8
from podium.data.columns import from_objects, frozen, unmasked
from podium.data.encoding import ColumnPrecision, Converted, Encoding, FeatureBuilder, precision, reported_losses
from podium.data.sparse import checked_rows, float32_rows, is_sparse
from podium.errors import DataError

Features: TypeAlias = Any  # an (n, f) float32 array, or a scipy csr_array of float32
Name = TypeVar("Name")
COLUMNS_AT_ONCE = 8  # columns to copy at a time to check their precision


def n_rows(features: Any) -> int:
    """Return the number of rows of an array, a sparse matrix or a frame."""
    return int(features.shape[0] if hasattr(features, "shape") else len(features))


def to_features(X: Any, categorical: Sequence[Any] = (), encoding: Encoding | None = None) -> Converted:
    """Convert features to float32, by the given encoding or one computed from the values.

    `categorical` has the numbers of the categorical columns, which may hold text.
    """
    if is_sparse(X):
        if categorical or (encoding is not None and encoding.categories):
            raise DataError("sparse matrices cannot hold categories: pass a frame or a dense array")
        return _to_compressed_rows(X, encoding or Encoding())
    try:
        array = unmasked(X)
    except ValueError as error:
        raise DataError(f"features must be a matrix of numbers ({error})") from None
    if array.ndim != 2:
        raise DataError(
            f"features must have two dimensions, documents × features, but got {array.ndim}. "
            "Reshape your data: pass a single feature as X[:, None], a single document as X[None, :]"
        )
    with_categories = _column_numbers(categorical, array.shape[1]) if encoding is None else set(encoding.categories)
    if with_categories or array.dtype.kind == "O":
        return _column_by_column(array, with_categories, encoding)
    if array.dtype.kind not in "fiub":
        reason = " (Complex data not supported)" if array.dtype.kind == "c" else ""  # scikit-learn expects these words
        raise DataError(f"features must be numbers, but got {array.dtype}{reason}")
    with np.errstate(over="ignore"):
        features = np.ascontiguousarray(array, dtype=np.float32)
    if encoding is not None and encoding.shifts and np.shares_memory(features, array):
        features = features.copy()
    builder = FeatureBuilder(features, encoding)
    if encoding is not None:
        for column in sorted(encoding.shifts.keys() & range(array.shape[1])):  # the caller refuses other widths
            builder.apply_shift(column, array[:, column])
    elif not np.can_cast(array.dtype, np.float32):
        for column, quality in enumerate(_precisions(array, features)):
            builder.shift_if_crowded(column, column, array[:, column], quality)
    return replace(builder.result(), features=frozen(features))


def _precisions(array: NDArray[Any], features: Float32s) -> list[ColumnPrecision]:
    """Return how well float32 represents each column. It copies a few at a time, because rows are contiguous."""

    def examine(first: int) -> list[ColumnPrecision]:
        block = slice(first, first + COLUMNS_AT_ONCE)
        columns, short = (np.ascontiguousarray(values[:, block].T) for values in (array, features))
        return [precision(*column) for column in zip(columns, short, strict=True)]

    firsts = range(0, array.shape[1], COLUMNS_AT_ONCE)
    return [quality for block in map_threads(examine, firsts) for quality in block]


def as_list_of_features(categorical: Any) -> list[Any]:
    """Return categorical features, given by name or number, as a list, which is empty for None."""
    if categorical is None:
        return []
    is_list = isinstance(categorical, Iterable) and not isinstance(categorical, str | bytes)
    features = list(categorical) if is_list else []
    if not is_list or not all(isinstance(feature, Hashable) for feature in features):
        raise DataError(f"categorical must be a list of features, by name or number, but got {categorical!r:.60}")
    return features


def numbers_of_features(features: Sequence[Any], names: Sequence[str] | None, argument: str) -> list[int]:
    """Return the numbers of features that are given by name or number."""
    numbers = []
    for feature in features:
        if isinstance(feature, str):
            if names is None or feature not in names:
                hint = f"; they are numbered {names[0]} to {names[-1]}" if names and are_numbers(names) else ""
                raise DataError(f"{argument}: there is no feature named {feature!r}{hint}")
            numbers.append(list(names).index(feature))
        else:
            numbers.append(feature)
    return numbers


def _column_numbers(columns: Sequence[Any], n_features: int) -> set[int]:
    for column in columns:
        if isinstance(column, bool) or not isinstance(column, int | np.integer) or not 0 <= column < n_features:
            raise DataError(f"categorical: there is no feature {column!r}; features are numbered 0 to {n_features - 1}")
    return {int(column) for column in columns}


def _column_by_column(array: NDArray[Any], categorical: set[int], encoding: Encoding | None) -> Converted:
    """Return the features of an array whose columns may have different types or hold categories."""
    if categorical and encoding is not None and array.dtype.kind in "fiub":
        raise DataError(
            f"feature {min(categorical)} is categorical, but an array of numbers has no names of categories: pass a "
            "frame, RankingData, or an array of objects"
        )
    if array.dtype.kind not in "OUfiub":
        raise DataError(f"features must be numbers or text, but got {array.dtype}")
    builder = FeatureBuilder(np.empty(array.shape, np.float32), encoding)
    for column in range(array.shape[1]):
        if column in categorical:
            builder.set_categories(column, column, array[:, column].tolist())
            continue
        values = array[:, column]
        is_object = array.dtype.kind in "OU"
        builder.set_numbers(column, column, _numbers_from_objects(values, column) if is_object else values)
    return replace(builder.result(), features=frozen(builder.matrix))


def _to_compressed_rows(X: Any, encoding: Encoding) -> Converted:
    from scipy.sparse import csr_array

    X = checked_rows(X)
    rows = float32_rows(X)
    rows = csr_array((frozen(rows.data), frozen(rows.indices), frozen(rows.indptr)), shape=rows.shape, copy=False)
    precisions = {}
    if not np.can_cast(X.dtype, np.float32):
        columns = X.tocsc()
        for k in range(X.shape[1]):
            values = columns.data[columns.indptr[k] : columns.indptr[k + 1]]
            with np.errstate(over="ignore"):
                precisions[k] = precision(values, values.astype(np.float32))
    if encoding.shifts:
        raise DataError("this model shifts features before the conversion to float32: pass dense features")
    return Converted(rows, losses=reported_losses(precisions))


def _numbers_from_objects(values: NDArray[Any], column: int) -> NDArray[Any]:
    with suppress(OverflowError, TypeError, ValueError):
        return from_objects(values, f"feature {column}")
    for row, value in enumerate(values):
        try:
            float(value)
        except (OverflowError, TypeError, ValueError):
            shown = "a number that is too large" if isinstance(value, int) else f"{value!r:.40}"
            raise DataError(
                f"features must be numbers, but row {row}, column {column} holds {shown}; "
                "name categorical columns in categorical=…"
            ) from None
    raise DataError("features must be numbers")


def already_encoded(features: Any, encoding: Encoding) -> Converted:
    """Return features that are already encoded as float32; raise if they do not fit the encoding."""
    converted = to_features(features, encoding=Encoding())
    n_features = converted.features.shape[1]
    beyond = [k for k in (*encoding.categories, *encoding.shifts) if k >= n_features]
    if beyond:
        raise DataError(f"the encoding has an entry for feature {beyond[0]}, but there are {n_features} features")
    for feature, names in encoding.categories.items():
        codes = np.asarray(converted.features[:, feature])
        present = codes[~np.isnan(codes)]
        if not np.isin(present, np.arange(len(names), dtype=np.float32)).all():
            raise DataError(f"feature {feature} must contain category numbers 0 to {len(names) - 1}, or NaN")
    return replace(converted, encoding=encoding)


def are_numbers(names: Iterable[str]) -> bool:
    """Return whether all names are whole numbers, as the names of LETOR's features are."""
    return all(name.isascii() and name.isdecimal() for name in names)


def checked_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Return the names of the features; raise unless there is a distinct one for each feature."""
    if names is None:
        return None
    names = tuple(str(name) for name in names)
    if len(names) != n_features:
        raise DataError(f"feature_names has {len(names)} names, but there are {n_features} features")
    if len(set(names)) < len(names):
        raise DataError(f"feature_names must be distinct, but {first_repeated(names)!r} occurs twice")
    require_utf8("feature_names", names)
    return names


def first_repeated(names: Iterable[Name]) -> Name:
    """Return the first name that occurred before; there must be one."""
    seen: set[Name] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
