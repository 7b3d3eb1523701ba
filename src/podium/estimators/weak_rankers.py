"""Sums of weak rankers: `AdaRank` and `RankBoost`."""

from __future__ import annotations

from typing import Any

from podium.boosting import Boosting, RankBoostStep, Sampling
from podium.boosting.rankboost import STUMPS
from podium.core.parameters import from_parameters
from podium.data import RankingData
from podium.estimators.base_ranker import Published, WeightedFeatures, WeightedTrees
from podium.estimators.diagnosis import require_labels, warn_if_constant
from podium.estimators.parameters import AdaRankParameters, RankBoostParameters
from podium.estimators.tree_ranker import categorical_features
from podium.linear import AdaRankTraining
from podium.measures import as_selection, as_watched
from podium.objectives import Exponential, Lambda, Pairwise
from podium.objectives.pair_terms import measure_in_training


class AdaRank(Published, AdaRankParameters, WeightedFeatures):
    """A weighted sum of features by boosting on a measure (Xu and Li 2007; [W] §2).

    Each round adds to the weight of the best single feature, on queries that count more if the sum so far ranks them
    badly. The paper uses raw features in ascending order only. Here they are standardized, as in `LinearRanker`, and
    may also rank in descending order. By default no feature is used twice in a row, see `repeats`.

    Attributes:
        model_: the `LinearModel`.
        coef_: the weight of each feature on its own scale.
        history_, best_iteration_: see `LambdaMART`.

    Example:
        >>> import podium
        >>> from podium.estimators import AdaRank
        >>> AdaRank("ndcg@5", n_iterations=5).fit(podium.artificial(20, features=4)).coef_.shape
        (4,)

    """

    _fit_options = ("observers",)
    _published = {"repeats": True}  # noqa: RUF012

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        selection = self._selection(train)
        require_labels(train, [selection.measures[0].labels], "AdaRank")
        training = from_parameters(AdaRankTraining, self, selection=selection, watched=as_watched(self.metrics))
        result = training.fit(train, sets, **options)
        self._set_fitted(train, result.model, result.history, result.best_iteration)
        warn_if_constant(train, Lambda(measure_in_training(as_selection(self.measure).measures[0], None)), None)


class RankBoost(Published, RankBoostParameters, WeightedTrees):
    """A weighted sum of thresholds on features by boosting on pairs (Freund, Iyer, Schapire and Singer 2003).

    A weak ranker h is 1 if a feature is above a threshold and 0 otherwise; missing values may be on either side. Each
    round picks the one with the largest |r|, r = Σ D(i, j) (h(i) − h(j)) over pairs with different labels, and gives it
    the weight ½ log((1 + r) / (1 − r)). D(i, j) ∝ e^{−(s_i − s_j)}, so pairs in the wrong order count more. With
    weights a pair counts u_q √(d_i d_j) times.

    Attributes:
        model_: the `Ensemble`, a tree of two leaves for each weak ranker.
        n_trees_: the number of weak rankers.
        history_, best_iteration_: see `LambdaMART`.

    Example:
        >>> import podium
        >>> from podium.estimators import RankBoost
        >>> RankBoost(n_trees=5).fit(podium.artificial(20, features=4)).model_
        Ensemble(5 trees with 10 leaves on 4 features)

    """

    _fit_options = ("observers", "checkpoint", "bins")

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        settings = from_parameters(
            Boosting,
            self,
            objective=Pairwise(Exponential()),
            step=RankBoostStep(),
            growth=STUMPS,
            sampling=Sampling(split_fraction=1.0),
            learning_rate=1.0,
            categorical=categorical_features(train, self.categorical),
            **self._evaluation_settings(train),
        )
        result = settings.fit(train, sets, **options)
        self._set_fitted(train, result.ensemble, result.history, result.best_iteration)
        warn_if_constant(train, settings.objective, result.n_splits == 0, min_documents_in_leaf=1)
