"""Conventions of other evaluation scripts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from podium.errors import DataError
from podium.measures.base import Measure
from podium.measures.discounted import DCG, NDCG
from podium.measures.registry import as_measure

DEFAULT = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "precision@1", "precision@5", "precision@10", "ap")


def letor(measures: Iterable[Measure | str] = DEFAULT, version: Literal[3, 4] = 4) -> list[Measure]:
    """Return measures with the conventions of LETOR's evaluation scripts.

    NDCG discounts the first two ranks equally (1, 1, 1/log2 3, 1/log2 4, …). Queries without a relevant document count
    as 0. Documents with equal scores are in the order of the rows. The script of version 4 (MQ2007, MQ2008) gives
    NDCG@k = 0 for a query with fewer than k documents. A document is relevant if its label is at least 1.

    Example:
        >>> from podium.measures import letor
        >>> [str(measure) for measure in letor(["ndcg@5", "ap"])]
        ['ndcg(ties=stable,discount=letor,short=zero)@5', 'ap(ties=stable)']

    """
    if version not in (3, 4):
        raise DataError(f"version must be 3 or 4, the versions of LETOR's scripts, but got {version!r}")
    result = []
    for original in measures:
        measure = as_measure(original).replace(empty="zero", ties="stable")
        if isinstance(measure, DCG):
            measure = measure.replace(discount="letor")
        if isinstance(measure, NDCG):
            measure = measure.replace(short="zero" if version == 4 else "count")
        result.append(measure)
    return result
