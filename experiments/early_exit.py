"""Early exit (LEAR): after the first trees, a classifier decides which documents see the others.

Podium evaluates trees so fast that this does not save time (`bench/results/early_exit.md`), so it is not part of the
package. Models cannot be saved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bools, Floats, Ints
from podium.core.compiling import kernel
from podium.core.validation import require_number, require_whole
from podium.data import RankingData
from podium.data.columns import query_in_order
from podium.data.features import Features
from podium.data.schema import as_data
from podium.data.sparse import is_sparse
from podium.data.subsets import split_by_content
from podium.errors import DataError
from podium.estimators import MARTClassifier
from podium.explain.explaining import Contributions, contributions
from podium.measures import NDCG, Ranking, warn_of_powers
from podium.measures.ranking import descending_order
from podium.models import Ensemble
from podium.models.base import model_of
from podium.models.transformed_ensembles import TransformedEnsemble

DEFAULT_SENTINEL = 50  # trees, in ensembles of at least twice as many
# Few trees, because they score every document.
CLASSIFIER: dict[str, Any] = {"n_trees": 10, "n_leaves": 31, "learning_rate": 0.3, "balanced": True}
N_THRESHOLDS = 100  # number of thresholds to try, at equal shares of the validation documents
N_ADDED = 3  # inputs of a classifier in addition to the features: partial score, rank, normalized score


@dataclass(frozen=True)
class EarlyExit(TransformedEnsemble):
    """An ensemble with early exit: after its first trees, a classifier decides which documents see the others.

    This is LEAR of Busolin, Lucchese, Nardini, Orlando, Perego and Trani (SIGIR 2021). Documents that continue have the
    score of all trees, with the same bits as in the ensemble. Those that exit rank below all of their query that
    continue, in the order of their partial scores: they keep these scores, lowered by one number for the whole query if
    necessary. Scores of different queries cannot be compared. `learn_exit` trains the classifier.

    Attributes:
        trees: the whole ensemble.
        classifier: trees on the features, the partial score, its rank within the query (from 1; equal scores share the
            lowest) and the partial score as a share of the query's range. A score above 0 means to continue.
        sentinel: the number of trees after which documents may exit.
        threshold: the probability from which a document continues: 0 for all, 1 for none.

    Example:
        >>> import podium
        >>> data = podium.artificial(30, features=4)
        >>> ranker = podium.LambdaMART(n_trees=30, n_leaves=4).fit(data)
        >>> model = learn_exit(ranker, data, sentinel=10, threshold=0.5)
        >>> model
        EarlyExit(30 trees, exit after 10 below a probability of 0.5)
        >>> model.predict(data).shape, bool(model.continues(data).all())
        ((1500,), False)

    """

    trees: Ensemble
    classifier: Ensemble
    sentinel: int
    threshold: float
    sees_lists = True

    def __post_init__(self) -> None:
        require_whole("sentinel", self.sentinel, 0, most=self.trees.n_trees)
        require_number("threshold", self.threshold, least=0, most=1)
        if self.classifier.n_features != self.trees.n_features + N_ADDED:
            raise DataError(
                f"a classifier of early exits sees the {self.trees.n_features} features and {N_ADDED} more, but this "
                f"one has {self.classifier.n_features}"
            )

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return self.trees.n_trees

    def __repr__(self) -> str:
        where = f"exit after {self.sentinel} below a probability of {self.threshold:.4g}"
        return f"EarlyExit({self.n_trees} trees, {where})"

    @cached_property
    def _halves(self) -> tuple[Ensemble, ...]:
        return self.trees.cut(self.sentinel)

    def prepare(self) -> None:
        """Prepare the first trees, the others and the classifier for scoring."""
        for trees in (*self._halves, self.classifier):
            trees.prepare()

    def continues(self, data: Any, n_threads: int | None = None) -> Bools:
        """Return which rows see all trees."""
        data = as_data(data)
        self._require_same_reading(data)
        result = np.empty(len(data), bool)
        seen = self.at_sentinel(self.schema.rows(data)[data.order], data.offsets, n_threads)
        result[data.order] = self._is_likely(seen)
        return result

    def at_sentinel(self, features: Features, offsets: Ints, n_threads: int | None = None) -> AtSentinel:
        """Return what is known after the first trees; query q has the rows offsets[q] to offsets[q + 1]."""
        seen = partial_scores(self._halves[0], features, offsets, n_threads)
        rows = with_added(features, seen)
        return seen._replace(confidence=self.classifier._predict_rows(rows, n_threads=n_threads))

    def _is_likely(self, seen: AtSentinel) -> Bools:
        """Return which rows continue: those whose probability 1 / (1 + e^{−2F}) reaches the threshold."""
        if self.threshold in (0, 1):
            return np.full(len(seen.scores), self.threshold == 0)
        return seen.confidence >= (math.log(self.threshold) - math.log1p(-self.threshold)) / 2

    def _predict_rows(self, features: Features, offsets: Ints | None = None, *, n_threads: int | None = None) -> Floats:
        """Return the score of each row; `offsets` of the queries are required."""
        self._checked_rows(features)
        if offsets is None:
            raise DataError(
                "whether a document exits depends on the others of its query, which features alone do not tell: "
                "predict RankingData, such as RankingData(X, qid=np.zeros(len(X))) for one query"
            )
        seen = self.at_sentinel(features, offsets, n_threads)
        continues = self._is_likely(seen)
        ends, later = seen.scores[continues], self._halves[1]
        later.add_scores(features[continues], ends, 0, later.n_trees, n_threads)
        scores = seen.scores.copy()
        scores[continues] = ends
        put_behind(scores, continues, seen.ranked, offsets)
        return scores

    def ranked_with(self, seen: AtSentinel, ends: Floats, offsets: Ints) -> Floats:
        """Return the scores of `predict` from the scores of all trees, to try thresholds."""
        continues = self._is_likely(seen)
        scores = np.where(continues, ends, seen.scores)
        put_behind(scores, continues, seen.ranked, offsets)
        return scores

    def _parameters(self) -> list[Any]:
        return [self.trees.digest(), self.classifier.digest(), self.sentinel, float(self.threshold)]


@contributions.register
def _of_early_exit(model: EarlyExit, *_: Any) -> Contributions:
    raise DataError(
        "a document that exits has the score of its first trees, lowered by what the others of its query are: that is "
        "no sum over features. Explain all trees: model.trees.explain(data)"
    )


class AtSentinel(NamedTuple):
    """What is known of documents after the first trees, query by query.

    Attributes:
        scores: the partial scores.
        ranked: the places of each query's documents by descending partial score.
        rank: the rank of each document, from 1; documents of equal scores share the lowest.
        normalized: (score − lowest) / (highest − lowest) of the query; 0 if all are equal.
        confidence: the score of the classifier, above 0 to continue.

    """

    scores: Floats
    ranked: Ints
    rank: Floats
    normalized: Floats
    confidence: Floats


def partial_scores(head: Ensemble, features: Features, offsets: Ints, n_threads: int | None = None) -> AtSentinel:
    """Score the documents by the first trees; only `ranked` depends on the order of a query's rows."""
    scores = head._predict_rows(features, n_threads=n_threads)
    ranked, query = descending_order(scores, offsets, n_threads), query_in_order(offsets)
    descending, first = scores[ranked], offsets[:-1][query]
    place = np.arange(len(scores))
    is_next = place == first  # or lower than the document above
    is_next[1:] |= descending[1:] < descending[:-1]
    rank = np.empty(len(scores))
    rank[ranked] = np.maximum.accumulate(np.where(is_next, place, 0)) - first + 1
    highest, lowest = descending[first], descending[offsets[1:][query] - 1]
    spread = np.where(highest > lowest, highest - lowest, 1.0)
    return AtSentinel(scores, ranked, rank, (scores - lowest) / spread, np.zeros(len(scores)))


def with_added(features: Features, seen: AtSentinel) -> Features:
    """Return the input of the classifier: the features, and what the first trees found."""
    with np.errstate(over="ignore"):  # a score too large for float32 is infinite there
        added = np.column_stack([seen.scores, seen.rank, seen.normalized]).astype(np.float32)
    if is_sparse(features):
        from scipy.sparse import csr_array, hstack

        return csr_array(hstack([features, csr_array(added)], format="csr"))
    return np.hstack([features, added])


@kernel
def put_behind(scores: Floats, continues: Bools, ranked: Ints, offsets: Ints) -> None:
    """Lower the scores of documents that exit below those of their query that continue, in place.

    `ranked` lists them by descending partial score. All scores of a query are lowered by the same number, and by one
    more step of double precision if rounding would make unequal scores equal, so that their order stays.
    """
    for q in range(len(offsets) - 1):
        floor, highest = np.inf, -np.inf
        for k in range(offsets[q], offsets[q + 1]):
            if continues[k]:
                floor = min(floor, scores[k])
            else:
                highest = max(highest, scores[k])
        lowered = max(highest - floor, 0.0)
        partial, score = np.inf, floor
        for place in range(offsets[q], offsets[q + 1]):
            k = ranked[place]
            if not continues[k]:
                if scores[k] < partial:
                    partial = scores[k]
                    score = min(partial - lowered, np.nextafter(score, -np.inf))
                scores[k] = score


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
    """Train a classifier that lets documents exit early if they will not matter to the top k.

    After Busolin et al. (LEAR, SIGIR 2021). The classifier here sees the features, the partial score of the first
    trees, its rank within the query and the partial score as a share of the query's range. It learns which documents
    are relevant and end among the top k by all trees. The others exit: all of a query that exit rank below all that
    continue, in the order of their partial scores.

    Args:
        model: an `Ensemble`, or an estimator that has trained one, such as `LambdaMART`.
        train: queries with relevance labels, to train the classifier on. You may use the training data of the trees,
            though partial scores are better there than on other data.
        valid: queries on which the threshold is chosen; by default a fifth of `train`.
        sentinel: the number of trees after which documents may exit; by default 50, or half of the trees if that is
            fewer.
        k: the number of documents of each query that matter.
        threshold: the probability from which a document continues, with the same weight for both classes; 0 for all
            documents, 1 for none. By default the highest one for which the mean NDCG@k of `valid` stays within the
            tolerance.
        tolerance: how far NDCG@k may fall below that of all trees.
        **settings: parameters of `MARTClassifier`, with `n_trees=10`, `n_leaves=31`, `learning_rate=0.3` and
            `balanced=True` by default.

    Returns:
        The model. `info["early_exit"]` holds what was chosen: the threshold, the share of documents that continue, and
        NDCG@k with all trees and with exits, on the validation queries.

    Example:
        >>> import podium
        >>> train, valid = (podium.artificial(40, features=4, part=part) for part in ("train", "valid"))
        >>> ranker = podium.LambdaMART(n_trees=40, n_leaves=4).fit(train)
        >>> model = learn_exit(ranker, train, valid=valid, sentinel=10, tolerance=0.01)
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
    settings = CLASSIFIER | settings
    classifier = _trained_classifier(trees, train, sentinel, k, settings)
    learnt = EarlyExit(trees, classifier, sentinel, 0.0 if threshold is None else threshold)
    found = {"k": k, "sentinel": sentinel, "threshold": learnt.threshold}
    if threshold is None:
        valid = as_data(valid)
        learnt, chosen = _with_threshold(learnt, valid, NDCG(k), tolerance, settings.get("n_threads"))
        found |= {"tolerance": tolerance, **chosen}
    return learnt.with_info(early_exit=found)


def _checked(
    trees: Any, sentinel: int | None, k: int, threshold: float | None, tolerance: float, settings: dict[str, Any]
) -> int:
    """Return the number of trees after which documents exit; raise for invalid parameters."""
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
    """Train a classifier of the documents that matter, on what is known after the first trees."""
    trees._require_same_reading(train)
    order, offsets, n_threads = train.canonical_order, train.offsets, settings.get("n_threads")
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
    categorical = sorted({*trees.encoding.categories, *by_category, *settings.get("categorical", ())})
    classifier: Ensemble = MARTClassifier(**settings | {"categorical": categorical}).fit(documents).model_
    return replace(classifier, info={})


def _with_threshold(
    model: EarlyExit, valid: RankingData, measure: NDCG, tolerance: float, n_threads: int | None
) -> tuple[EarlyExit, dict[str, float]]:
    """Return the model with the highest threshold that keeps the measure within the tolerance, and its figures."""
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
        if reached >= of_all_trees - tolerance:  # true at the latest for 0, where all documents continue
            break
    found = {"threshold": threshold, "ndcg": reached, "ndcg_of_all_trees": of_all_trees}
    return tried, found | {"share_that_continues": float(tried.continues(valid, n_threads).mean())}
