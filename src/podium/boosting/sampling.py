"""Which documents, queries and features a tree sees: decided by content, seed and round, never by position."""

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

N_SHARED_FROM = 720_000  # documents from which the share of those on which splits are searched falls


@settings
class Sampling:
    """Shares of documents, of whole queries and of features that each tree is grown on.

    Gradients always come from all documents; the tree and its leaf values from the sample. Adaptation to a new domain
    found 70% of the documents crucial ([W] 5.5). Within the sample, splits are searched on the `split_fraction`:
    documents with large gradients or hessians, and some that stand for the others
    (`podium.trees.gradient_sampling.GradientSampler`); None stands for 150,000 documents, but for 30% to 50% of them,
    and for less where there are more than 720,000: how many a split needs grows more slowly than the data.

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
        """The share on which splits are searched; by default 150,000 documents, but between 30% and half of them.

        From `N_SHARED_FROM` documents on, the number that is searched grows with the root of their number.
        """
        if self.split_fraction is not None:
            return self.split_fraction
        n = max(n_documents, 1)
        return min(max(150_000 / n, 0.3 * min(1.0, math.sqrt(N_SHARED_FROM / n))), 0.5)

    def split_seed(self, tree: int) -> np.uint64:
        """The seed of the gradient-based sampling of a tree."""
        return _seed_of_tree(self.seed, tree, "splits")

    def node_seed(self, tree: int) -> np.uint64:
        """The seed of the features that each node of a tree may split on."""
        return _seed_of_tree(self.seed, tree, "nodes")

    def features(self, iteration: int, n_features: int) -> Ints | None:
        """The features of the sample of a round, or None for all."""
        if self.feature_fraction == 1:
            return None
        numbers = np.arange(n_features, dtype=np.uint64)
        order = np.argsort(uniform(numbers, f"{self.seed}/{iteration}/features"), kind="stable")
        return np.sort(order[: max(1, math.ceil(self.feature_fraction * len(numbers)))])


@lru_cache(1 << 14)
def _seed_of_tree(seed: int, tree: int, purpose: str) -> np.uint64:
    """Kept, for fits of one seed that run beside each other."""
    return seed_of(f"{seed}/{tree}/{purpose}")


class BoundSampling:
    """Sampling on some data."""

    def __init__(self, sampling: Sampling, data: RankingData) -> None:
        self.sampling, self.data, self.random = sampling, data, ContentRandom(data)

    @property
    def split_fraction(self) -> float:
        """The share on which splits are searched."""
        return self.sampling.split_fraction_of(len(self.data))

    def rows(self, iteration: int) -> Int32s | None:
        """The rows of the sample, or None for all."""
        s, random = self.sampling, self.random
        if s.takes_all_documents:
            return None
        has_document = random.of_documents(f"{s.seed}/{iteration}/documents") < s.document_fraction
        has_query = random.of_queries(f"{s.seed}/{iteration}/queries") < s.query_fraction
        return np.flatnonzero(has_document & has_query[random.data.query_of_row]).astype(np.int32)
