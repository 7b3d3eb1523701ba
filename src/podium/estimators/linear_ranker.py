"""The linear ranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

from numpy.typing import ArrayLike

from podium.core.array_types import Floats
from podium.core.observing import Observer
from podium.core.parameters import check_parameters, from_parameters
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators.diagnosis import warn_if_constant, warn_if_unused
from podium.estimators.parameters import LinearRankerParameters
from podium.estimators.ranker import RankerMixin, lambda_objective, refuse_unknown_arguments
from podium.estimators.sklearn_bases import BaseEstimator, check_is_fitted
from podium.linear import Ascent, Descent, DescentResult
from podium.measures import as_selection, as_watched, selection_for
from podium.objectives import Lambda
from podium.objectives.pair_terms import measure_in_training


class LinearRanker(LinearRankerParameters, RankerMixin, BaseEstimator):
    """A weighted sum of features, trained on λ ([B] §4: LambdaRank with the simplest of nets).

    Attributes:
        model_: the `LinearModel`.
        coef_: the weight of each feature on its own scale.
        history_, best_iteration_: see `LambdaMART`.

    Example:
        >>> import podium
        >>> podium.LinearRanker(n_iterations=5).fit(podium.artificial(20, features=4)).coef_.shape
        (4,)

    """

    _takes_turns = True

    def fit(
        self,
        X: Any,
        y: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: Any = None,
        valid: RankingData | None = None,
        eval_set: Any = None,
        observers: Sequence[Observer] = (),
        **unknown: Never,
    ) -> LinearRanker:
        """Train, see `LambdaMART.fit`. Observers hear of each step (`podium.linear.LinearStep`)."""
        refuse_unknown_arguments(self, unknown)
        check_parameters(self)
        train = self._data(X, y, qid, sample_weight, query_weight)
        sets = self._validation(valid, eval_set)
        if self.method == "ascent":
            if self.objective is not None or sets:
                raise DataError("method='ascent' raises the measure on the training data: no objective, no validation")
            unused = ("learning_rate", "l2", "truncation", "sigma", "normalize", "patience")
            warn_if_unused(self, unused, "method='ascent' sets each weight by the exact sweep on the measure")
            ascent = from_parameters(Ascent, self, measure=as_selection(self.measure), watched=as_watched(self.metrics))
            result = ascent.fit(train, observers)
            warn_if_constant(train, Lambda(measure_in_training(as_selection(self.measure).measures[0], None)), None)
            return self._set_results(result, train)
        objective = lambda_objective(self)
        descent = from_parameters(
            Descent,
            self,
            objective=objective,
            selection=selection_for(self.measure, train),
            watched=as_watched(self.metrics),
        )
        result = descent.fit(train, sets, observers)
        warn_if_constant(train, objective, not result.model.weights.any())
        return self._set_results(result, train)

    def _set_results(self, result: DescentResult, train: RankingData) -> LinearRanker:
        self.model_ = result.model.with_info(**self._information(train))
        self.history_ = result.history
        self.best_iteration_ = result.best_iteration
        self._note_features(train)
        return self

    @property
    def measures_training_data(self) -> bool:  # type: ignore[override]
        """Whether there is a history without validation data."""
        return self.method == "ascent"

    @property
    def coef_(self) -> Floats:
        """The weight of each feature."""
        check_is_fitted(self)
        weights: Floats = self.model_.weights
        return weights

    def predict(self, X: Any, **options: Any) -> Floats:
        """Return the score of each row, higher is better; see `podium.Model.predict` for options."""
        return self._predict(X, **options)
