"""Sampling of documents, queries and features for each tree, by content, seed and round, never by position."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from podium.core import hyperparameters as h
from podium.core.array_types import Int32s, Ints
from podium.core.parameters import settings
from podium.core.random import seed_of, uniform
from podium.data import RankingData
from podium.data.canonical import ContentRandom

N_WITH_FULL_SHARE = 720_000  # number of documents above which splits are searched on a smaller share


@settings
class Sampling:
    """The shares of documents, of whole queries and of features that each tree sees.

    Gradients always come from all documents; the tree and its leaf values come from the sample. When [W] adapted models
    to a new domain, sampling 70% of the documents was crucial (5.5).

    Within the sample, Podium searches splits on a share of `split_fraction`: documents with large gradients or
    hessians, and some of the others (`podium.trees.gradient_sampling.GradientSampler`). By default that is 150,000
    documents, but at least 30% and at most 50% of them. Above 720,000 documents the lower limit falls, because the
    number of documents that a split needs grows more slowly than the data.

    Example:
        >>> import podium
        >>> from podium.boosting import Boosting, Sampling
        >>> sampling = Sampling(document_fraction=0.7, split_fraction=0.5)
        >>> Boosting(n_trees=2, sampling=sampling).fit(podium.artificial(20, features=4)).ensemble.n_trees
        2

    """

    document_fraction: float = h.DOCUMENT_FRACTION()
    query_fraction: float = h.QUERY_FRACTION()
    feature_fraction: float = h.FEATURE_FRACTION()
    seed: int = h.RANDOM_STATE()
    split_fraction: float | None = h.SPLIT_FRACTION()

    @property
    def takes_all_documents(self) -> bool:
        """Whether every tree sees every document."""
        return self.document_fraction == 1 and self.query_fraction == 1

    def split_fraction_of(self, n_documents: int) -> float:
        """Return the share on which to search splits; by default 150,000 documents, but between 30% and 50% of them.

        Above `N_WITH_FULL_SHARE` documents, the number to search grows with the square root of their number.
        """
        if self.split_fraction is not None:
            return self.split_fraction
        n = max(n_documents, 1)
        return min(max(150_000 / n, 0.3 * min(1.0, math.sqrt(N_WITH_FULL_SHARE / n))), 0.5)

    def split_seed(self, tree: int) -> np.uint64:
        """Return the seed of the gradient-based sampling of a tree."""
        return _seed_of_tree(self.seed, tree, "splits")

    def node_seed(self, tree: int) -> np.uint64:
        """Return the seed that selects the features for each node of a tree."""
        return _seed_of_tree(self.seed, tree, "nodes")

    def features(self, iteration: int, n_features: int) -> Ints | None:
        """Return the sampled features of a round, or None for all."""
        if self.feature_fraction == 1:
            return None
        numbers = np.arange(n_features, dtype=np.uint64)
        order = np.argsort(uniform(numbers, f"{self.seed}/{iteration}/features"), kind="stable")
        return np.sort(order[: max(1, math.ceil(self.feature_fraction * len(numbers)))])


@lru_cache(1 << 14)
def _seed_of_tree(seed: int, tree: int, purpose: str) -> np.uint64:
    """Return a seed from a cache, which concurrent fits with the same seed share."""
    return seed_of(f"{seed}/{tree}/{purpose}")


class BoundSampling:
    """Sampling bound to data."""

    def __init__(self, sampling: Sampling, data: RankingData) -> None:
        self.sampling, self.data, self.random = sampling, data, ContentRandom(data)

    @property
    def split_fraction(self) -> float:
        """The share on which splits are searched."""
        return self.sampling.split_fraction_of(len(self.data))

    def rows(self, iteration: int) -> Int32s | None:
        """Return the sampled rows of a round, or None for all."""
        s, random = self.sampling, self.random
        if s.takes_all_documents:
            return None
        has_document = random.of_documents(f"{s.seed}/{iteration}/documents") < s.document_fraction
        has_query = random.of_queries(f"{s.seed}/{iteration}/queries") < s.query_fraction
        return np.flatnonzero(has_document & has_query[random.data.query_of_row]).astype(np.int32)
