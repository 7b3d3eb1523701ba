"""Other people's conventions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from podium.errors import DataError
from podium.measures.base import Measure, as_measure
from podium.measures.discounted import DCG, NDCG

Preset = Literal["letor3", "letor4"]
DEFAULT = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "precision@1", "precision@5", "precision@10", "ap")


def letor(measures: Iterable[Measure | str] = DEFAULT, version: Literal[3, 4] = 4) -> list[Measure]:
    """Measures under the conventions of LETOR's evaluation scripts.

    NDCG discounts the first two ranks alike (1, 1, 1/log2 3, 1/log2 4, …); queries without a relevant
    document count as 0; and the script of version 4 (MQ2007, MQ2008) gives NDCG@k = 0 to a query with fewer
    than k documents. A document is relevant from label 1 on.
    """
    if version not in (3, 4):
        raise DataError(f"LETOR's scripts are those of version 3 and 4, not {version!r}")
    found = []
    for given in measures:
        measure = as_measure(given).replace(empty="zero")
        if isinstance(measure, DCG):
            measure = measure.replace(discount="letor")
        if isinstance(measure, NDCG):
            measure = measure.replace(short="zero" if version == 4 else "count")
        found.append(measure)
    return found
