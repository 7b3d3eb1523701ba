"""The weights of an ensemble's trees, found anew ([W] §4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from podium.combining import Sweep
from podium.combining.sweep import CLOSE
from podium.core.progress import progress
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError
from podium.measures import Measure, as_measure, warn_of_powers
from podium.models.base import model_of
from podium.models.ensemble import Ensemble
from podium.trees import Tree

CANCELLED = 2.0**-10  # where less than this is left of a difference, its rounding would count


def refit_weights(
    model: Ensemble,
    data: RankingData,
    measure: Measure | str = "ndcg@10",
    *,
    bounds: tuple[float, float] = (0.0, 2.0),
    cycles: int = 1,
    ties: str | int = "expected",
    n_threads: int | None = None,
) -> Ensemble:
    """Hold all other trees and give each in turn the exact best weight; the measure on the data never falls.

    Args:
        model: an ensemble, or an estimator that has one.
        data: the queries whose mean counts; validation queries guard against over-fitting.
        measure: any measure with swap deltas.
        bounds: the weight of a tree, in units of its present one, between these; 1 is kept unless another is better.
        cycles: how often to go through all trees, at most; it ends when no weight changes.
        ties: see `combine`.
        n_threads: all cores by default; the result is the same.

    """
    require_whole("cycles", cycles, 1)
    ensemble = model_of(model)
    if not isinstance(ensemble, Ensemble):
        raise DataError(f"refit_weights takes an ensemble of trees, not {type(ensemble).__name__}")
    data = as_data(data)
    warn_of_powers([as_measure(measure)], data)
    sweep = Sweep(data, measure, ties, n_threads)
    leaves = ensemble.leaves(data, n_threads)
    trees = [ensemble.tree(k) for k in range(ensemble.n_trees)]
    scores = ensemble.predict(data, n_threads=n_threads)
    value = sweep.value(scores)
    with progress("refitting weights", cycles * len(trees)) as advance:
        for _ in range(cycles):
            changed = False
            for k, tree in enumerate(trees):
                own = tree.leaf_value[leaves[:, k]]
                found = sweep.best(_without(k, trees, leaves, scores, own), own, *bounds, near=1.0)
                if found.value > value + CLOSE:
                    trees[k] = replace(tree, leaf_value=found.alpha * tree.leaf_value)
                    summed = _summed(trees, leaves)
                    if (reached := sweep.value(summed)) > value:
                        scores, value, changed = summed, reached, True
                    else:  # by rounding the sum of all trees is not quite what was swept
                        trees[k] = tree
                advance(1)
            if not changed:
                break
    return Ensemble.of_trees(
        trees, ensemble.n_features, feature_names=ensemble.feature_names, cuts=ensemble.cuts, info=ensemble.info,
        encoding=ensemble.encoding,
    )  # fmt: skip


def _summed(trees: list[Tree], leaves: NDArray[np.int32]) -> NDArray[np.float64]:
    """The scores as the ensemble has them: tree after tree."""
    scores = np.zeros(len(leaves))
    for k, tree in enumerate(trees):
        scores += tree.leaf_value[leaves[:, k]]
    return scores


def _without(
    k: int, trees: list[Tree], leaves: NDArray[np.int32], scores: NDArray[np.float64], own: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The scores of all trees but one: a difference, but for a tree so large that the others are lost in it."""
    rest = scores - own
    if np.abs(rest).max(initial=0.0) > CANCELLED * np.abs(own).max(initial=0.0):
        return rest
    return _summed(trees[:k] + trees[k + 1 :], np.delete(leaves, k, axis=1))
