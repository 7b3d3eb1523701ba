"""Refit the weights of an ensemble's trees, each in turn to its exact optimum ([W] §4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.combining import Sweep
from podium.combining.lines import CLOSE
from podium.core.array_types import Floats, Int32s
from podium.core.progress import progress
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.schema import as_data
from podium.errors import DataError
from podium.measures import Measure, as_measure, warn_of_powers
from podium.models.base import model_of
from podium.models.ensemble import Ensemble
from podium.trees import Tree

CANCELLED = 2.0**-10  # if a difference is smaller than this share, its rounding error matters


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
    """Set the weight of each tree in turn to its exact optimum while the others are fixed.

    The mean of the measure on the data never decreases.

    Args:
        model: an ensemble, or an estimator that has one.
        data: the queries to maximize the mean on; use validation queries to avoid overfitting.
        measure: any measure with swap deltas.
        bounds: the bounds of a tree's weight, relative to its current one, which changes only if that is better.
        cycles: the maximum number of cycles over all trees; the search ends when no weight changes.
        ties: how to order ties, see `combine`.
        n_threads: the number of threads; all cores by default. The result is the same.

    Returns:
        The same trees with their leaf values multiplied by the new weights.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data)
        >>> podium.models.refit_weights(model, data, "ndcg@5")
        Ensemble(3 trees with 12 leaves on 4 features)

    """
    require_whole("cycles", cycles, 1)
    ensemble = model_of(model)
    if not isinstance(ensemble, Ensemble):
        raise DataError(f"model must be an ensemble of trees, but got {type(ensemble).__name__}")
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
                tree_scores = tree.leaf_value[leaves[:, k]]
                best = sweep.best(_without(k, trees, leaves, scores, tree_scores), tree_scores, *bounds, near=1.0)
                if best.value > value + CLOSE:
                    trees[k] = replace(tree, leaf_value=best.alpha * tree.leaf_value)
                    summed = _summed(trees, leaves)
                    if (new_value := sweep.value(summed)) > value:
                        scores, value, changed = summed, new_value, True
                    else:  # the sum of all trees differs slightly from the swept scores, due to rounding
                        trees[k] = tree
                advance(1)
            if not changed:
                break
    return Ensemble.of_trees(
        trees, ensemble.n_features, feature_names=ensemble.feature_names, info=ensemble.info,
        encoding=ensemble.encoding,
    )  # fmt: skip


def _summed(trees: list[Tree], leaves: Int32s) -> Floats:
    """Return the scores, summed tree by tree as the ensemble does."""
    scores = np.zeros(len(leaves))
    for k, tree in enumerate(trees):
        scores += tree.leaf_value[leaves[:, k]]
    return scores


def _without(k: int, trees: list[Tree], leaves: Int32s, scores: Floats, tree_scores: Floats) -> Floats:
    """Return the scores of all trees but one: a difference, or a sum if the tree is so large that the others cancel."""
    rest = scores - tree_scores
    if np.abs(rest).max(initial=0.0) > CANCELLED * np.abs(tree_scores).max(initial=0.0):
        return rest
    return _summed(trees[:k] + trees[k + 1 :], np.delete(leaves, k, axis=1))
