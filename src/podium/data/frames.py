"""Data frames of any kind (through narwhals), and the column names that carry a role by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.data.columns import Losses, fits_float32
from podium.errors import DataError

# The role that a column takes by its name, where the caller gives nothing for that role.
ROLES = {
    "qid": ("qid",),
    "relevance": ("label", "relevance"),
    "document_weights": ("document_weight",),
    "query_weights": ("query_weight",),
    "positions": ("position",),
    "document_ids": ("document_id",),
}
LABEL_PREFIX = "label."


def is_frame(value: Any) -> bool:
    """Whether narwhals knows this as a data frame; arrays and sparse matrices are not."""
    if isinstance(value, np.ndarray | list | tuple) or hasattr(value, "tocsr"):
        return False
    import narwhals.stable.v2 as nw

    return isinstance(nw.from_native(value, pass_through=True), nw.DataFrame | nw.LazyFrame)


def assign_roles(
    names: Sequence[str], given: dict[str, Any], feature_names: Sequence[str] | None
) -> tuple[dict[str, Any], list[str]]:
    """Which column serves for what.

    `given` maps each role to a column's name, to values, or to None; `labels` to a mapping of those. The
    result is the same with the names that roles take by default filled in, and the feature columns.
    """
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise DataError(f"two columns are named {twice!r}; names must differ")
    chosen = set(feature_names or ())
    _require(names, chosen, "feature_names")
    roles = dict(given)
    for role, defaults in ROLES.items():
        if isinstance(roles.get(role), str):
            _require(names, {roles[role]}, role)
        elif roles.get(role) is None:
            roles[role] = next((name for name in defaults if name in names and name not in chosen), None)
    if roles["qid"] is None:
        raise DataError(f"there is no column 'qid'; name it with qid=…, one of {_shown(names)}")
    labels = dict(roles.get("labels") or {})
    for source, value in labels.items():
        if isinstance(value, str):
            _require(names, {value}, f"labels[{source!r}]")
    for name in names:
        source = name.removeprefix(LABEL_PREFIX)
        if name.startswith(LABEL_PREFIX) and name not in chosen and source not in labels:
            labels[source] = name
    roles["labels"] = labels
    taken = {value for value in (*roles.values(), *labels.values()) if isinstance(value, str)}
    if feature_names is not None:
        return roles, list(feature_names)
    return roles, [name for name in names if name not in taken]


def _require(names: Sequence[str], wanted: set[str], argument: str) -> None:
    absent = sorted(wanted - set(names))
    if absent:
        raise DataError(f"{argument}: there is no column {absent[0]!r}; the columns are {_shown(names)}")


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, list(names)[:12])) + (", …" if len(names) > 12 else "")


class Parts(NamedTuple):
    """What a frame holds, as arrays."""

    features: NDArray[np.float32]
    feature_names: list[str]
    roles: dict[str, Any]
    losses: tuple[str, ...]


def take_apart(native: Any, given: dict[str, Any], feature_names: Sequence[str] | None) -> Parts:
    """A frame's features as an array, and the other columns by role."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(native)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    roles, features = assign_roles(frame.columns, given, feature_names)
    for role, value in roles.items():
        if isinstance(value, str):
            roles[role] = _column(frame[value])
    roles["labels"] = {
        source: _column(frame[value]) if isinstance(value, str) else value for source, value in roles["labels"].items()
    }
    matrix = np.empty((len(frame), len(features)), np.float32)
    losses = Losses()
    for k, name in enumerate(features):
        series = frame[name]
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            raise DataError(
                f"column {name!r} holds {series.dtype}, not numbers: drop it, encode it, or leave it out "
                "of feature_names"
            )
        column = _column(series)
        with np.errstate(over="ignore"):
            matrix[:, k] = column
        if not fits_float32(column.dtype):
            losses.look(repr(name), column, matrix[:, k])
    return Parts(matrix, features, roles, losses.words())


def features_by_name(native: Any, names: Sequence[str] | None) -> NDArray[np.float32]:
    """The features of a frame in the order of the names; other columns must have a role by their name."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(native)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if names is None:
        names = [name for name in frame.columns if not _has_role(name)]
    extra = [name for name in frame.columns if name not in names and not _has_role(name)]
    _require(frame.columns, set(names), "the model's features")
    if extra:
        raise DataError(f"the data has the column {extra[0]!r}, which the model does not know ({len(extra)} in all)")
    matrix = np.empty((len(frame), len(names)), np.float32)
    for k, name in enumerate(names):
        with np.errstate(over="ignore"):
            matrix[:, k] = _column(frame[name])
    return matrix


def _has_role(name: str) -> bool:
    return name.startswith(LABEL_PREFIX) or any(name in defaults for defaults in ROLES.values())


def _column(series: Any) -> NDArray[Any]:
    """A column as an array, with NaN where a number is null."""
    if series.dtype.is_numeric() and series.null_count():
        import narwhals.stable.v2 as nw

        return np.asarray(series.cast(nw.Float64).fill_null(float("nan")).to_numpy(), np.float64)
    return np.asarray(series.to_numpy())
