"""The data of a run as the trees need it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.core.compiling import compile_beside
from podium.data import RankingData
from podium.measures import as_selection, warn_of_powers
from podium.models.base import checked_sets
from podium.trees import bin_features, find_bins
from podium.trees.binning import BinnedFeatures, Bins
from podium.trees.growing import grow, grow_small_tree

if TYPE_CHECKING:
    from podium.boosting.settings import Boosting

log = logging.getLogger("podium")


@dataclass(frozen=True)
class BinnedData:
    """Data as the trees need it: checked, matched by name and binned. Several runs may share it.

    Attributes:
        train, valid: the data.
        bins: how features are cut.
        binned, binned_valid: the documents' bins.

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
    def of(cls, train: RankingData, valid: Mapping[str, RankingData], settings: Boosting) -> BinnedData:
        """Bin the data as the settings say.

        Growth, the largest kernel, is compiled in another process meanwhile where this is a first run.
        """
        compile_beside(grow, grow_small_tree.__module__, grow_small_tree.__name__)
        matched = checked_sets(train, valid)
        measures = (*as_selection(settings.selection).measures, *settings.watched) if matched else ()
        warn_of_powers([*settings.objective.all_measures(), *measures], train, *matched.values())
        started, threads = time.perf_counter(), settings.n_threads
        bins = find_bins(train.features, settings.max_bins, settings.categorical, threads)
        binned = bin_features(train.features, bins, threads)
        others = {name: bin_features(data.features, bins, threads) for name, data in matched.items()}
        log.info("binned %d × %d values: %.3f s", *train.features.shape, time.perf_counter() - started)
        return cls(train, matched, bins, binned, others)
