"""Several data sets as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.data.columns import is_sparse
from podium.data.ranking_data import RankingData
from podium.errors import DataError


def concatenate(parts: list[RankingData]) -> RankingData:
    """Row after row; the parts must agree in what they have."""
    if not parts:
        raise DataError("there is nothing to concatenate")
    _require_alike(parts)
    first = parts[0]
    arguments: dict[str, Any] = {"feature_names": first.feature_names}
    arguments["features"] = _stacked(parts)
    arguments["labels"] = {source: np.concatenate([part.labels[source] for part in parts]) for source in first.labels}
    for name in ("qid", "document_weights", "positions", "document_ids"):
        if getattr(first, name) is not None:
            arguments[name] = np.concatenate([getattr(part, name) for part in parts])
    if first.query_weights is not None:
        arguments["query_weights"] = np.concatenate([part._query_weight_of_rows() for part in parts])
    if first.preferences is not None:
        before = np.cumsum([0] + [part.n_documents for part in parts])
        pairs = [(part.preferences, start) for part, start in zip(parts, before, strict=False)]
        arguments["preferences"] = (
            np.concatenate([p.i + start for p, start in pairs if p is not None]),
            np.concatenate([p.j + start for p, start in pairs if p is not None]),
            np.concatenate([p.probability for p, _ in pairs if p is not None]),
        )
    return RankingData(**arguments)


def _stacked(parts: list[RankingData]) -> Any:
    if any(is_sparse(part.features) for part in parts):
        from scipy.sparse import vstack

        return vstack([part.features for part in parts], format="csr")
    return np.concatenate([part.features for part in parts])


def _require_alike(parts: list[RankingData]) -> None:
    first = parts[0]
    optional = ("document_weights", "query_weights", "positions", "preferences", "document_ids")
    for number, part in enumerate(parts[1:], 1):
        checks = {
            "number of features": (first.n_features, part.n_features),
            "feature names": (first.feature_names, part.feature_names),
            "label sources": (sorted(first.labels), sorted(part.labels)),
            "kind of query id": (first.qid.dtype, part.qid.dtype),
        }
        checks |= {name: (getattr(first, name) is not None, getattr(part, name) is not None) for name in optional}
        for what, (a, b) in checks.items():
            if a != b:
                raise DataError(f"parts 0 and {number} differ in their {what}: {a} and {b}")
