"""Data frames of any library, read through narwhals, and the roles that column names imply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s
from podium.data.columns import from_objects, warn_of_merged
from podium.data.encoding import CategoriesSeen, Converted, Encoding, FeatureBuilder
from podium.data.features import first_repeated
from podium.errors import DataError, warn

# The role that a column name implies if the caller passes nothing for that role.
ROLES = {
    "qid": ("qid",),
    "relevance": ("label", "relevance"),
    "document_weights": ("document_weight",),
    "query_weights": ("query_weight",),
    "positions": ("position",),
    "document_ids": ("document_id",),
}
LABEL_PREFIX = "label."


def is_frame(value: Any, in_memory: bool = False) -> bool:
    """Return whether narwhals accepts the value as a data frame; with `in_memory`, lazy frames do not count."""
    if isinstance(value, np.ndarray | list | tuple) or hasattr(value, "tocsr"):
        return False
    import narwhals.stable.v2 as nw

    try:
        kinds = nw.DataFrame if in_memory else nw.DataFrame | nw.LazyFrame
        return isinstance(nw.from_native(value, pass_through=True), kinds)
    except nw.exceptions.NarwhalsError as error:  # two columns of one name
        raise DataError(f"the frame cannot be read: {error}") from None


def assign_roles(
    names: Sequence[str], roles: dict[str, Any], feature_names: Sequence[str] | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the roles, with the default columns filled in, and the names of the features.

    `roles` maps each role to the name of a column, values or None, except `labels`, which it maps to a mapping from
    label source to a name or values.
    """
    if len(set(names)) < len(names):
        raise DataError(f"column names must be distinct, but two columns are named {first_repeated(names)!r}")
    if "" in names:
        raise DataError(
            f"column {list(names).index('') + 1} has no name: name it, or write the file with index=False if pandas "
            "wrote its index there"
        )
    named_features = set(feature_names or ())
    _require_columns(names, named_features, "feature_names")
    roles = dict(roles)
    for role, defaults in ROLES.items():
        if isinstance(roles.get(role), str):
            _require_columns(names, {roles[role]}, role)
        elif roles.get(role) is None:
            candidates = [name for name in defaults if name in names and name not in named_features]
            roles[role] = candidates[0] if candidates else None
            if len(candidates) > 1:
                warn(
                    f"the labels come from column {candidates[0]!r}, and column {candidates[1]!r} is ignored: name the "
                    f"column of labels ({role}=…, or --label), or list the features"
                )
    if roles["qid"] is None:
        raise DataError(f"there is no column 'qid': name the column of query ids with qid=…, one of {_shown(names)}")
    labels = dict(roles.get("labels") or {})
    for source, value in labels.items():
        if isinstance(value, str):
            _require_columns(names, {value}, f"labels[{source!r}]")
    for name in names:
        source = name.removeprefix(LABEL_PREFIX)
        if name.startswith(LABEL_PREFIX) and name not in named_features and source not in labels:
            labels[source] = name
    roles["labels"] = labels
    if feature_names is not None:
        return roles, list(feature_names)
    with_role = {value for value in (*roles.values(), *labels.values()) if isinstance(value, str)}
    return roles, [name for name in names if name not in with_role and not has_role(name)]


def _require_columns(names: Sequence[str], required: set[str], argument: str) -> None:
    absent = sorted(required - set(names))
    if absent:
        raise DataError(f"{argument}: there is no column {absent[0]!r}; the columns are {_shown(names)}")


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, list(names)[:12])) + (", …" if len(names) > 12 else "")


def convert_frame(
    native: Any,
    roles: dict[str, Any],
    feature_names: Sequence[str] | None,
    categorical: Sequence[Any] = (),
    encoding: Encoding | None = None,
    seen: CategoriesSeen | None = None,
) -> tuple[Converted, list[str], dict[str, Any]]:
    """Return a frame's features as an array, their names, and the other columns by role.

    `categorical` has features by name or number. If an encoding is passed, it determines the conversion, and the
    categories are added to `seen`.
    """
    refuse_other_rows(native, roles | roles["labels"])
    frame = narwhals_frame(native)
    roles, features = assign_roles(frame.columns, roles, feature_names)
    for role, value in roles.items():
        if isinstance(value, str):
            roles[role] = values_of(frame[value])
    roles["labels"] = {
        source: values_of(frame[value]) if isinstance(value, str) else value
        for source, value in roles["labels"].items()
    }
    with_categories = {features[k] if isinstance(k, int) and 0 <= k < len(features) else k for k in categorical}
    _require_columns(features, with_categories, "categorical")
    return _to_matrix(frame, features, with_categories, encoding, seen), features, roles


def _to_matrix(
    frame: Any,
    features: Sequence[str],
    categorical: set[str],
    encoding: Encoding | None,
    seen: CategoriesSeen | None,
) -> Converted:
    builder = FeatureBuilder(np.empty((len(frame), len(features)), np.float32), encoding, seen)
    for k, name in enumerate(features):
        series = frame[name]
        if encoding is None:
            holds_categories = name in categorical or is_categorical(series)
        else:
            holds_categories = k in encoding.categories
        if holds_categories:
            builder.set_categories(k, repr(name), objects_of(series))
        elif series.null_count() == len(series):  # some libraries give an empty column no numeric type
            builder.set_numbers(k, repr(name), np.full(len(series), np.nan, np.float32))
        elif holds_numbers(series):
            builder.set_numbers(k, repr(name), values_of(series))
        else:
            raise not_numbers(name, series.dtype, is_temporal=series.dtype.is_temporal())
    return builder.result()


def not_numbers(name: str, dtype: Any, *, is_temporal: bool = False) -> DataError:
    """Return the error for a column that cannot be a feature."""
    remedy = "name it in categorical=… if it is categorical; otherwise drop or encode it, or omit it from feature_names"
    if is_temporal:
        remedy = "convert it to a number, such as seconds (large ones are shifted to fit into float32), or drop it"
    return DataError(f"column {name!r} must be numeric, but is {dtype}: {remedy}")


def columns_of_text(native: Any, columns: Sequence[Any]) -> list[Any]:
    """Return the given columns, by name or index, that are not numeric."""
    frame = narwhals_frame(native)
    features = [name for name in frame.columns if not has_role(name)]
    named = [features[k] if isinstance(k, int) and 0 <= k < len(features) else k for k in columns]
    return [name for name in named if name in frame.columns and not holds_numbers(frame[name])]


def holds_numbers(series: Any) -> bool:
    """Return whether a column has a numeric type."""
    import narwhals.stable.v2 as nw

    return bool(series.dtype.is_numeric() or series.dtype == nw.Boolean)


def is_categorical(series: Any) -> bool:
    """Return whether a column has a categorical type."""
    import narwhals.stable.v2 as nw

    return series.dtype in (nw.Categorical, nw.Enum)


def has_role(name: str) -> bool:
    """Return whether a column's name implies a role, so that it is a feature only if `feature_names` says so."""
    reserved = any(name in defaults for defaults in ROLES.values())
    return reserved or name.startswith(LABEL_PREFIX) or re.fullmatch(r"__index_level_\d+__", name) is not None


def has_queries(native: Any) -> bool:
    """Return whether a frame has a column whose name implies query ids."""
    import narwhals.stable.v2 as nw

    return not set(ROLES["qid"]).isdisjoint(nw.from_native(native).lazy().collect_schema().names())


def shown_columns(native: Any) -> str:
    """Return the first column names of a frame, for a message."""
    import narwhals.stable.v2 as nw

    return _shown(nw.from_native(native).lazy().collect_schema().names())


def narwhals_frame(native: Any) -> Any:
    """Return a frame of any library as one of narwhals, in memory; names that are not text are converted to text."""
    import narwhals.stable.v2 as nw

    if hasattr(native, "set_axis"):  # pandas
        if not all(isinstance(name, str) for name in native.columns):
            native = native.set_axis([str(name) for name in native.columns], axis=1)
        is_sparse = [hasattr(dtype, "subtype") and hasattr(dtype, "fill_value") for dtype in native.dtypes]
        if any(is_sparse):  # narwhals does not support these types
            dense = {name: dtype.subtype for name, dtype in native.dtypes[is_sparse].items()}
            native = native.astype(dense)
    try:
        frame = nw.from_native(native)
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"the frame cannot be read: {error}") from None


def features_by_name(
    native: Any, names: Sequence[str] | None, encoding: Encoding, *, refuse_extra: bool = False
) -> Float32s:
    """Return the features of a frame in the order of `names`; without names, all columns without a role."""
    frame = narwhals_frame(native)
    columns = frame.columns
    if names is None:
        names = [name for name in columns if not has_role(name)]
    present = set(columns)
    absent = [name for name in names if name not in present]
    if absent:
        raise DataError(
            f"the data lacks the feature {absent[0]!r} of the model ({len(absent)} missing in all); its columns are "
            f"{_shown(columns)}"
        )
    if refuse_extra:
        expected = set(names)
        extra = [name for name in columns if name not in expected and not has_role(name)]
        if extra:
            raise DataError(f"the model has no feature for the column {extra[0]!r} ({len(extra)} such columns in all)")
    features: Float32s = _to_matrix(frame, names, set(), encoding, None).features
    return features


def values_of(series: Any) -> NDArray[Any]:
    """Return a column as an array, with NaN in place of nulls."""
    import narwhals.stable.v2 as nw

    is_wide = series.dtype in (nw.Decimal, nw.Int128, nw.UInt128)
    if is_wide and not series.null_count():
        return from_objects(np.array(series.to_list(), object), f"column {series.name!r}")
    if holds_numbers(series) and (series.null_count() or series.dtype == nw.Boolean):
        doubles = np.asarray(series.cast(nw.Float64).fill_null(float("nan")).to_numpy(), np.float64)
        if is_wide or series.dtype.is_integer():
            warn_of_merged(series.drop_nulls().to_list(), doubles, f"column {series.name!r}")
        return doubles
    return np.array(objects_of(series), object) if is_categorical(series) else np.asarray(series.to_numpy())


def objects_of(series: Any) -> list[Any]:
    """Return the values of a column as Python objects; equal values of a pyarrow dictionary share one object."""
    native = series.to_native()
    if not hasattr(getattr(native, "type", None), "value_type") or not hasattr(native, "chunks"):
        return list(series.to_list())
    values: list[Any] = []
    for chunk in native.chunks:
        is_null = chunk.is_null().to_numpy(zero_copy_only=False)
        used, places = np.unique(chunk.indices.fill_null(0).to_numpy(), return_inverse=True)
        names = [*chunk.dictionary.take(used).to_pylist(), None] if len(chunk.dictionary) else [None]
        values += [names[place] for place in np.where(is_null, -1, places).tolist()]
    return values


def row_index(frame: Any) -> NDArray[Any] | None:
    """Return the index of a pandas frame or Series, unless it is 0, 1, 2 …"""
    index = getattr(frame, "index", None)
    if index is None or not hasattr(index, "to_numpy"):
        return None
    values = np.asarray(index.to_numpy())
    return None if np.array_equal(values, np.arange(len(values))) else values


def refuse_other_rows(frame: Any, columns: dict[str, Any]) -> None:
    """Raise if a Series passed with a pandas frame has another index, because its values belong to other rows."""
    if not (hasattr(frame, "index") and hasattr(frame.index, "to_numpy")):
        return
    for name, value in columns.items():
        is_series = hasattr(value, "index") and hasattr(value.index, "equals") and len(value) == len(frame)
        if is_series and not value.index.equals(frame.index):
            raise DataError(
                f"{name} is a Series whose index differs from that of the features, so the rows do not match: align "
                "it, or pass an array"
            )
