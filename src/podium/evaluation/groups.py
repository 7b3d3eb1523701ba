"""Groups of queries: by a column that is constant within each query."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data import RankingData
from podium.data.columns import by_query

MISSING = "missing"  # the group of queries without an entry: None or NaN


def groups_of(data: RankingData, by: Any) -> NDArray[np.object_]:
    """The group of each query, as text.

    Args:
        data: the queries.
        by: the name of a feature, or entries: a mapping from query id, an entry for each query in the order of
            `query_ids`, or one for each row that is constant within a query.

    """
    values: Any = by
    if isinstance(by, str):
        values = _names(data, by)
    return by_query(values, f"by={by!r}" if isinstance(by, str) else "by", data.query_ids, data.order, data.offsets,
                    lambda entries: np.array([_text(entry) for entry in entries], object))  # fmt: skip


def in_order(groups: NDArray[np.object_]) -> list[str]:
    """The distinct groups, numbers by value before texts by the alphabet."""
    return sorted(set(groups.tolist()), key=_place)


def _names(data: RankingData, feature: str) -> Any:
    """The values of a feature, with the names of categories."""
    values = data.feature(feature)
    number = data.feature_names.index(feature) if data.feature_names else -1
    categories = data.encoding.categories.get(number)
    if categories is None:
        return values
    return [MISSING if math.isnan(value) else categories[int(value)] for value in values.tolist()]


def _text(entry: Any) -> str:
    if entry is None or (isinstance(entry, numbers.Real) and math.isnan(entry)):
        return MISSING
    if isinstance(entry, numbers.Real) and not isinstance(entry, bool | np.bool_ | numbers.Integral):
        return str(entry).removesuffix(".0")
    return str(entry)


def _place(group: str) -> tuple[int, float, str]:
    try:
        value = float(group)
    except ValueError:
        return 1, 0.0, group
    return (0, value, group) if not math.isnan(value) else (1, 0.0, group)
