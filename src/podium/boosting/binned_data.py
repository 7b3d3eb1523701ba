"""The validated and binned data of a run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.binned import BinnedFiles
from podium.core.array_types import Floats
from podium.core.threads import at_most_threads, thread_count
from podium.data import RankingData
from podium.data.features import Features
from podium.measures import as_selection, warn_of_powers
from podium.models import Ensemble
from podium.models.base import checked_sets
from podium.trees import bin_features, find_bins
from podium.trees.binning import BinnedFeatures, Bins
from podium.trees.compilation import begin_compilation

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting

log = logging.getLogger("podium")
ROWS_AT_ONCE = 1 << 14  # number of documents to score at a time


class SharedBins:
    """The bins of features that several runs share; the run that needs them first computes them.

    Features are recognized by their address in memory, so data with other labels shares their bins. Several threads
    may use the object at the same time: one computes, the others wait.

    Args:
        n_threads: the number of threads for the computation; by default that of the run that needs it.

    Example:
        >>> import podium
        >>> from podium.boosting import SharedBins
        >>> data, bins = podium.artificial(20, features=4), SharedBins()
        >>> [podium.LambdaMART(2, n_leaves=n).fit(data, bins=bins).n_trees_ for n in (4, 8)]
        [2, 2]

    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads
        self._lock = threading.Lock()
        self._cache: dict[tuple[Any, ...], tuple[Any, BinnedFeatures]] = {}

    def binned(
        self, features: Features, max_bins: int, categorical: tuple[int, ...], n_threads: int | None
    ) -> BinnedFeatures:
        """Return the bins of features, laid out for growth."""

        def compute() -> BinnedFeatures:
            with at_most_threads(thread_count(n_threads)):
                binned = bin_features(features, find_bins(features, max_bins, categorical))
                assert binned.matrix  # compute it now, before several runs need it at the same time
            return binned

        return self._cached((_address(features), max_bins, categorical), features, compute)

    def binned_by(self, data: RankingData, bins: Bins, n_threads: int | None) -> BinnedFeatures:
        """Return the bins of validation documents by the cuts of the training data; binned files may have them."""
        if isinstance(data, BinnedFiles) and data.binned.bins.equal(bins):
            return data.binned
        features = data.features
        return self._cached((_address(features), id(bins)), features, lambda: bin_features(features, bins, n_threads))

    def _cached(
        self, key: tuple[Any, ...], features: Features, compute: Callable[[], BinnedFeatures]
    ) -> BinnedFeatures:
        with self._lock:
            if key not in self._cache:
                with at_most_threads(self.n_threads) if self.n_threads else nullcontext():
                    self._cache[key] = features, compute()  # keep the features, so that their address is not reused
            return self._cache[key][1]


def add_by_bins(ensemble: Ensemble, binned: BinnedFeatures, scores: Floats, n_threads: int | None = None) -> None:
    """Add the scores of trees to those of documents whose features exist only as bins.

    The trees must have been grown on these bins, so that all values of a bin take the same path.
    """
    for first in range(0, binned.n_rows, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, binned.n_rows)
        rows = binned.representatives(first, last)
        ensemble.add_scores(rows, scores[first:last], 0, ensemble.n_trees, n_threads)


def _address(features: Features) -> tuple[Any, ...]:
    """Return the address of features in memory, which is equal for equal views of one array."""
    if isinstance(features, np.ndarray):
        return features.__array_interface__["data"][0], features.shape, features.strides
    return (id(features),)


@dataclass(frozen=True)
class BinnedData:
    """Data that is validated, matched by name and binned. Several runs may share it.

    Attributes:
        train, valid: the data.
        bins: the cuts and categories of the features.
        binned, binned_valid: the bins of the documents.

    Example:
        >>> import podium
        >>> from podium.boosting import BinnedData, Boosting
        >>> train, settings = podium.artificial(20, features=4), Boosting(n_trees=2)
        >>> data = BinnedData.of(train, {}, settings)
        >>> data.binned.n_rows, settings.fit(train, data=data).ensemble.n_trees
        (1000, 2)

    """

    train: RankingData
    valid: dict[str, RankingData]
    bins: Bins
    binned: BinnedFeatures
    binned_valid: dict[str, BinnedFeatures]

    @classmethod
    def of(
        cls, train: RankingData, valid: Mapping[str, RankingData], settings: Boosting, shared: SharedBins | None = None
    ) -> BinnedData:
        """Bin the data by the settings, unless `shared` has its bins already."""
        is_sampled = settings.sampling.split_fraction_of(len(train)) < 1
        if settings.growth.is_common:  # on a first run, another process compiles the kernels of a tree meanwhile
            begin_compilation(len(train), thread_count(settings.n_threads), is_sampled)
        matched = checked_sets(train, valid)
        measures = (*as_selection(settings.selection).measures, *settings.watched) if matched else ()
        warn_of_powers([*settings.objective.all_measures(), *measures], train, *matched.values())
        started, threads, shared = time.perf_counter(), settings.n_threads, shared or SharedBins()
        if isinstance(train, BinnedFiles):
            binned = train.bins_for(settings.max_bins, settings.categorical)
        else:
            binned = shared.binned(train.features, settings.max_bins, settings.categorical, threads)
        binned_valid = {name: shared.binned_by(data, binned.bins, threads) for name, data in matched.items()}
        seconds = time.perf_counter() - started
        log.info("binned %d × %d values: %.3f s", train.n_documents, train.n_features, seconds)
        return cls(train, matched, binned.bins, binned, binned_valid)

    def with_base_scores(self, submodel: Callable[[RankingData], Floats]) -> BinnedData:
        """Return the same data with the scores of a submodel as base scores."""
        train, *valid = (data.with_base_scores(submodel(data)) for data in (self.train, *self.valid.values()))
        return replace(self, train=train, valid=dict(zip(self.valid, valid, strict=True)))
