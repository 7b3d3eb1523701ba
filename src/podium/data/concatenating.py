"""Several data sets as one."""

from __future__ import annotations

import warnings
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.encoding import Encoding, FeatureBuilder, names_of_categories, recoded
from podium.data.ranking_data import RankingData
from podium.data.sparse import is_sparse
from podium.errors import DataError, PodiumWarning


def concatenate(parts: list[RankingData]) -> RankingData:
    """Row after row; the parts must agree in what they have, but for the names of documents."""
    if not parts:
        raise DataError("there is nothing to concatenate")
    _require_alike(parts)
    first = parts[0]
    arguments: dict[str, Any] = {"feature_names": first.feature_names}
    arguments["features"], arguments["encoding"], wide = _stacked(parts)
    arguments["labels"] = {source: np.concatenate([part.labels[source] for part in parts]) for source in first.labels}
    without = [number for number, part in enumerate(parts) if part.document_ids is None]
    if 0 < len(without) < len(parts):
        warnings.warn(
            f"part {without[0]} has no document ids, so the whole has none",
            PodiumWarning,
            stacklevel=4,
        )
    elif not without:
        arguments["document_ids"] = np.concatenate([part.document_ids for part in parts])
    for name in ("qid", "document_weights", "positions"):
        if getattr(first, name) is not None:
            arguments[name] = np.concatenate([getattr(part, name) for part in parts])
    if first.query_weights is not None:
        arguments["query_weights"] = np.concatenate([part.query_weight_of_row for part in parts])
    if first.preferences is not None:
        before = np.cumsum([0] + [part.n_documents for part in parts])
        pairs = [(part.preferences, start) for part, start in zip(parts, before, strict=False)]
        arguments["preferences"] = (
            np.concatenate([p.i + start for p, start in pairs if p is not None]),
            np.concatenate([p.j + start for p, start in pairs if p is not None]),
            np.concatenate([p.probability for p, _ in pairs if p is not None]),
        )
    result = RankingData(**arguments)
    absent_values = {str(part.absent_value): part.absent_value for part in parts}
    result._set(
        wide=MappingProxyType(wide), reading=first.reading,
        absent_value=first.absent_value if len(absent_values) == 1 else None,
    )  # fmt: skip
    return result


def _stacked(parts: list[RankingData]) -> tuple[Any, Encoding | None, dict[int, NDArray[Any]]]:
    """The features of all parts by one encoding, and the values as they came where float32 has few steps for them."""
    if any(is_sparse(part.features) for part in parts):
        from scipy.sparse import vstack

        if any(part.encoding.shifts for part in parts):
            raise DataError("parts with shifted features and sparse parts make no whole: give all of them dense")
        return vstack([part.features for part in parts], format="csr"), None, {}
    matrix = np.concatenate([part.features for part in parts])
    builder = FeatureBuilder(matrix)
    for feature in sorted({k for part in parts for k in (*part.wide, *part.encoding.shifts)}):
        builder.set_numbers(feature, feature, np.concatenate([part.original_column(feature) for part in parts]))
    categories = {}
    for feature in parts[0].encoding.categories:
        lists = [part.encoding.categories[feature] for part in parts]
        categories[feature] = names_of_categories(chain.from_iterable(lists))
        matrix[:, feature] = np.concatenate([
            recoded(part.features[:, feature], names, categories[feature])
            for part, names in zip(parts, lists, strict=True)
        ])  # fmt: skip
    encoding = Encoding(categories, builder.shifts)
    return matrix, encoding or None, builder.wide


def _require_alike(parts: list[RankingData]) -> None:
    first = parts[0]
    optional = ("document_weights", "query_weights", "positions", "preferences")
    for number, part in enumerate(parts[1:], 1):
        checks = {
            "number of features": (first.n_features, part.n_features),
            "feature names": (first.feature_names, part.feature_names),
            "categorical features": (sorted(first.encoding.categories), sorted(part.encoding.categories)),
            "normalization": (first.reading.get("normalize"), part.reading.get("normalize")),
            "label sources": (sorted(first.labels), sorted(part.labels)),
            "kind of query id": (first.qid.dtype, part.qid.dtype),
        }
        checks |= {name: (getattr(first, name) is not None, getattr(part, name) is not None) for name in optional}
        for what, (a, b) in checks.items():
            if a != b:
                raise DataError(f"parts 0 and {number} differ in their {what}: {a} and {b}")
