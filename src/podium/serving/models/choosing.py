"""Which model answers a query, where the request does not say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import accumulate


class Split:
    """Shares of queries by model: the same query always gets the same model, in every worker.

    Args:
        shares: of each model, above 0 in sum.

    >>> split = Split({"old": 0.9, "new": 0.1})
    >>> names = [split.model_of(query) for query in range(1000)]
    >>> names.count("old"), split.model_of("shoes") == split.model_of("shoes")
    (901, True)

    """

    def __init__(self, shares: Mapping[str, float]) -> None:
        total = sum(shares.values())
        self._borders = [
            (name, border / total) for name, border in zip(shares, accumulate(shares.values()), strict=True)
        ]

    def model_of(self, query: str | float) -> str:
        """The model of a query, by a hash of its id as text."""
        text = str(int(query)) if isinstance(query, float) else str(query)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        point = int.from_bytes(digest, "big") / 2**64
        return next((name for name, border in self._borders if point < border), self._borders[-1][0])
