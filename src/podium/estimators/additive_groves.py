"""Additive Groves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Never

from numpy.typing import ArrayLike

from podium.boosting import GrovesTraining
from podium.core.array_types import Floats
from podium.core.parameters import check_parameters, from_parameters
from podium.data import RankingData
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.parameters import AdditiveGrovesParameters
from podium.estimators.ranker import refuse_unknown_arguments
from podium.estimators.regressor_ranker import RegressorRanker
from podium.estimators.sklearn_bases import BaseEstimator, check_is_fitted
from podium.estimators.tree_ranker import categorical_features
from podium.measures import as_watched, selection_for
from podium.measures.losses import RMSE
from podium.objectives import Regression


class AdditiveGroves(AdditiveGrovesParameters, RegressorRanker, BaseEstimator):
    """Least-squares regression on the labels by averaged groves, sums of few large trees ([Q]).

    Sorokina, Caruana and Riedewald, "Additive Groves of Regression Trees", 2007. The trees of a grove are fitted in
    turn to what the others leave over, until that helps no more. So that large trees share the work, a grove grows from
    smaller ones: from one of fewer trees, or of trees with larger leaves. Each step has a bootstrap sample of its own,
    and many groves are averaged. All numbers of trees and all α on the way are tried. Validation data picks the best by
    the measure; without it, documents out of bag do by their root mean square error. Without queries it is a plain
    regressor, as `MART` is.

    As in the paper: backfitting (algorithm 1), the sequence of α, `"layered"` (algorithm 2), `"slow"` (algorithm 3 with
    a new sample in each step, "randomized dynamic programming"); nodes with less than α of the documents are leaves.

    As in the authors' program TreeExtra: `"fast"`, the numbers of trees that are tried, new samples in `"layered"`; a
    cycle over the trees begins with the newest, and is the last if it lowers the error by 0.2% or less.

    Other than there: trees are grown on bins, α counts the different documents of a sample, and a tree has at most 8/α
    leaves, and 4096. The paper always has validation data. A document out of bag was in samples of earlier steps, so
    the error out of bag is too low for large groves: validation data is the better judge.

    Attributes:
        model_: the `Ensemble` of all groves, their leaves divided by the number of groves.
        n_trees_: the trees of all groves.
        alpha_, n_trees_in_grove_: what was chosen.
        grid_: α and the number of trees of all that was tried.
        history_: what each of these measured: `oob/rmse`, or the measures on validation data.
        best_iteration_: the number of the chosen one in `grid_`.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.AdditiveGroves(n_groves=4, n_trees_in_grove=2, alpha=0.1).fit(data)
        >>> len(model.grid_), model.n_trees_ == 4 * model.n_trees_in_grove_
        (6, True)

    """

    def fit(
        self,
        X: Any,
        y: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: Any = None,
        valid: RankingData | Mapping[str, RankingData] | None = None,
        eval_set: tuple[Any, ...] | Sequence[tuple[Any, ...]] | None = None,
        **unknown: Never,
    ) -> AdditiveGroves:
        """Train, see `LambdaMART.fit`. Without queries, `eval_set` takes `(X, y)`, or `(X, y, None, sample_weight)`."""
        refuse_unknown_arguments(self, unknown)
        check_parameters(self)
        is_plain = self._has_no_queries(X, qid)
        train = self._data(X, y, qid, sample_weight, query_weight)
        settings = from_parameters(
            GrovesTraining,
            self,
            categorical=categorical_features(train, self.categorical),
            selection=RMSE() if is_plain else selection_for(self.measure, train),
            watched=as_watched(self.metrics),
        )
        result = settings.fit(train, self._validation(valid, eval_set))
        self.model_ = result.ensemble.with_info(**self._information(train))
        self.grid_ = result.grid
        self.history_ = result.history
        self.best_iteration_ = result.best_iteration
        self.alpha_, self.n_trees_in_grove_ = result.grid[result.best_iteration]
        self._note_features(train)
        constant = not len(self.model_.arrays["feature"])
        warn_if_constant(train, Regression(), constant, min_documents_in_leaf=self.min_documents_in_leaf)
        return self

    @property
    def n_trees_(self) -> int:
        """The trees of all groves."""
        check_is_fitted(self)
        return int(self.model_.n_trees)

    def predict(self, X: Any, **options: Any) -> Floats:
        """Return the score of each row, higher is better; see `podium.Model.predict` for options."""
        return self._predict(X, **options)
