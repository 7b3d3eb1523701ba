"""Early exit, learnt: a classifier that tells which documents need not see all trees (LEAR)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.parameters import parameters
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.data.columns import query_in_order
from podium.data.schema import as_data
from podium.data.subsets import split_by_content
from podium.errors import DataError
from podium.estimators.mart_classifier import MARTClassifier
from podium.estimators.parameters import LearnExitParameters
from podium.measures import NDCG, Ranking, warn_of_powers
from podium.measures.ranking import descending_order
from podium.models import EarlyExit, Ensemble
from podium.models.base import model_of
from podium.models.early_exit import partial_scores, with_added

DEFAULT_SENTINEL = 50  # trees, where there are twice as many
N_THRESHOLDS = 100  # that are tried, at equal shares of the validation documents


def learn_exit(
    model: Any,
    train: Any,
    *,
    valid: Any = None,
    sentinel: int | None = None,
    k: int = 10,
    threshold: float | None = None,
    tolerance: float = 0.001,
    **settings: Any,
) -> EarlyExit:
    """Train a classifier that lets documents leave an ensemble early which will not matter to the top k.

    After Busolin et al. (LEAR, SIGIR 2021). The classifier here sees the features, the partial score of the first
    trees, its rank within the query and the partial score as a share of the query's range. It learns which documents
    are relevant and end among the top k by all trees. The others exit: all of a query that exit rank below all that
    continue, in the order of their partial scores.

    Args:
        model: an `Ensemble`, or an estimator that has trained one, such as `LambdaMART`.
        train: queries with relevance labels, to train the classifier on. Those that the trees were trained on will do,
            though partial scores are better there than elsewhere.
        valid: queries on which the threshold is chosen; by default a fifth of `train`.
        sentinel: the number of trees after which documents may exit; by default 50, or half of the trees if that is
            fewer.
        k: how many of each query matter.
        threshold: the probability from which a document continues, both classes weighing the same; 0 for all documents,
            1 for none. By default the highest for which the mean NDCG@k of `valid` stays within the tolerance.
        tolerance: how far NDCG@k may fall below that of all trees.
        **settings: parameters of `MARTClassifier`, but with `n_trees=10`, `n_leaves=31`, `learning_rate=0.3` and
            `balanced=True` by default.

    Returns:
        The model. `info["early_exit"]` says what was chosen: the threshold, the share of documents that continue, and
        NDCG@k with all trees and with exits, on the validation queries.

    Example:
        >>> import podium
        >>> train, valid = (podium.artificial(40, features=4, part=part) for part in ("train", "valid"))
        >>> ranker = podium.LambdaMART(n_trees=40, n_leaves=4).fit(train)
        >>> model = podium.learn_exit(ranker, train, valid=valid, sentinel=10, tolerance=0.01)
        >>> seen = model.info["early_exit"]
        >>> seen["ndcg_of_all_trees"] - seen["ndcg"] <= 0.01
        True

    """
    trees = model_of(model)
    sentinel = _checked(trees, sentinel, k, threshold, tolerance, settings)
    train = as_data(train)
    if threshold is not None:
        if valid is not None:
            raise DataError("valid is what the threshold is chosen on: give a threshold, or valid, not both")
    elif valid is None:
        train, valid = split_by_content(train, 0.8, 0.2, seed=settings.get("random_state", 0))
    settings = {name: one.default for name, one in parameters(LearnExitParameters).items()} | settings
    classifier = _trained_classifier(trees, train, sentinel, k, settings)
    learnt = EarlyExit(trees, classifier, sentinel, 0.0 if threshold is None else threshold)
    found = {"k": k, "sentinel": sentinel, "threshold": learnt.threshold}
    if threshold is None:
        valid = as_data(valid)
        learnt, chosen = _with_threshold(learnt, valid, NDCG(k), tolerance, settings["n_threads"])
        found |= {"tolerance": tolerance, **chosen}
    return learnt.with_info(early_exit=found)


def _checked(
    trees: Any, sentinel: int | None, k: int, threshold: float | None, tolerance: float, settings: dict[str, Any]
) -> int:
    """The number of trees after which documents exit; parameters that make no sense are refused."""
    if not isinstance(trees, Ensemble):
        raise DataError(
            f"documents exit early from an Ensemble, or an estimator that holds one (LambdaMART without a submodel), "
            f"not from {type(trees).__name__}"
        )
    if trees.n_trees < 2:
        raise DataError(f"documents exit early from two trees or more, but there are {trees.n_trees}")
    require_whole("sentinel", sentinel, 1, most=trees.n_trees - 1, optional=True)
    require_whole("k", k, 1)
    require_number("tolerance", tolerance, least=0)
    if threshold is not None:
        require_number("threshold", threshold, least=0, most=1)
    if "sigma" in settings:
        raise DataError("learn_exit takes no sigma: it would change the scale of the classifier's scores, nothing else")
    return min(DEFAULT_SENTINEL, trees.n_trees // 2) if sentinel is None else sentinel


def _trained_classifier(
    trees: Ensemble, train: RankingData, sentinel: int, k: int, settings: dict[str, Any]
) -> Ensemble:
    """Trees that tell documents which matter from the others, by what is known of them at the sentinel."""
    trees._require_same_reading(train)
    order, offsets, n_threads = train.canonical_order, train.offsets, settings["n_threads"]
    features = trees.schema.rows(train)[order]
    ranked = descending_order(trees._predict_rows(features, n_threads=n_threads), offsets)
    is_top = np.empty(len(train), bool)
    is_top[ranked] = np.arange(len(train)) - offsets[:-1][query_in_order(offsets)] < k
    matters = is_top & (train.relevance[order] > 0)
    if matters.all() or not matters.any():
        raise DataError(
            f"there is nothing to learn: {'all' if matters.any() else 'none'} of the {len(train)} documents are "
            f"relevant and among the top {k} of their query by all trees"
        )
    seen = partial_scores(trees.truncate(sentinel), features, offsets, n_threads)
    weights = train.document_weights
    documents = RankingData(
        with_added(features, seen), matters, qid=query_in_order(offsets), query_weights=train.query_weights,
        document_weights=None if weights is None else weights[order],
    )  # fmt: skip
    by_category = trees.arrays["feature"][trees.arrays["category"] >= 0].tolist()
    categorical = sorted({*trees.encoding.categories, *by_category, *settings["categorical"]})
    classifier: Ensemble = MARTClassifier(**settings | {"categorical": categorical}).fit(documents).model_
    return replace(classifier, info={})


def _with_threshold(
    model: EarlyExit, valid: RankingData, measure: NDCG, tolerance: float, n_threads: int | None
) -> tuple[EarlyExit, dict[str, float]]:
    """The model with the highest threshold that keeps the measure within the tolerance, and what was found."""
    model._require_same_reading(valid)
    warn_of_powers([measure], valid)
    order, offsets = valid.canonical_order, valid.offsets
    features = model.schema.rows(valid)[order]
    seen = model.at_sentinel(features, offsets, n_threads)
    ends = model.trees._predict_rows(features, n_threads=n_threads)
    by_row = np.empty(len(valid))

    def value(scores: Floats) -> float:
        by_row[order] = scores
        return measure.mean(Ranking(valid, by_row))

    of_all_trees = value(ends)
    quantiles = np.quantile(seen.confidence, np.linspace(0, 1, N_THRESHOLDS + 1))
    for threshold in (1.0, *np.unique(1 / (1 + np.exp(-2 * quantiles)))[::-1].tolist(), 0.0):
        tried = replace(model, threshold=threshold)
        reached = value(tried.ranked_with(seen, ends, offsets))
        if reached >= of_all_trees - tolerance:  # at the latest with 0: all documents continue
            break
    found = {"threshold": threshold, "ndcg": reached, "ndcg_of_all_trees": of_all_trees}
    return tried, found | {"share_that_continues": float(tried.continues(valid, n_threads).mean())}
