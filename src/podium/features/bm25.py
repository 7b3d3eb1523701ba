"""The formula of BM25. Search and the feature `bm25` both call these functions, so that their scores are identical.

Σ over the distinct query terms, in the order of the query: idf · tf / (tf + k₁ (1 − b + b L / mean L)), with Lucene's
idf = ln(1 + (N − n + ½) / (n + ½)). Lucene 8 and later leave out the constant factor k₁ + 1 as well.
"""

from __future__ import annotations

import math

from podium.core.array_types import Int, Number
from podium.core.compiling import helper

K1, B = 1.2, 0.75


def bm25_idf(n_documents: int, document_frequency: int) -> float:
    """Return Lucene's idf of a term, which is always positive."""
    return math.log(1.0 + (n_documents - document_frequency + 0.5) / (document_frequency + 0.5))


@helper
def bm25_norm(length: Int, mean_length: Number, k1: Number, b: Number) -> Number:
    """Return the term of the denominator that depends on the document's length."""
    return k1 * (1.0 - b + b * length / mean_length)


@helper
def bm25_weight(idf: Number, frequency: Number, norm: Number) -> Number:
    """Return the contribution to the score of a term that occurs `frequency` times."""
    return idf * (frequency / (frequency + norm))
