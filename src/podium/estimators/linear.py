"""The linear ranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from podium.data import RankingData
from podium.errors import DataError
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.ranker import RankerMixin, lambda_objective
from podium.linear import Ascent, Descent, DescentResult
from podium.measures import Graded, Measure, as_selection, as_watched, selection_for
from podium.models import LinearModel
from podium.objectives import Lambda, Objective


class LinearRanker(RankerMixin, BaseEstimator):  # type: ignore[misc]
    """A weighted sum of features, trained on λ ([B] §4: LambdaRank with the simplest of nets).

    Args:
        measure: what is trained on, and what picks the step where there is validation data.
        n_iterations: steps, at most.
        learning_rate: the share of each Newton-like step that is taken.
        l2: holds the weights of the standardised features back.
        truncation, sigma, normalize: see `LambdaMART`.
        method: `"descent"` on λ, or `"ascent"` on the measure itself, a weight at a time through the exact sweep; that
            takes no objective, and `n_iterations` are cycles over all features.
        objective: another objective than `Lambda(measure, …)`, as a value or as text.
        patience: stop after so many steps without a better one on the validation data.
        n_threads: all cores by default. The model is the same, to the bit, for any number.
        metrics: measures to watch beside `measure`: all of them stand in `history_`, for each validation set.
        verbose: None for a progress bar on terminals, 0 for silence, n for a line on standard error every n steps.

    Attributes:
        model_: the `LinearModel`.
        coef_: a weight for each feature as it comes.
        history_, best_iteration_: see `LambdaMART`.

    """

    def __init__(
        self,
        measure: Measure | Graded | str = "ndcg@10",
        *,
        n_iterations: int = 100,
        learning_rate: float = 1.0,
        l2: float = 1e-4,
        truncation: int | None = None,
        sigma: float = 1.0,
        normalize: bool = False,
        method: str = "descent",
        objective: Objective | str | None = None,
        patience: int | None = None,
        n_threads: int | None = None,
        metrics: Sequence[Measure | str] = (),
        verbose: int | None = None,
    ) -> None:
        self.measure = measure
        self.n_iterations = n_iterations
        self.learning_rate = learning_rate
        self.l2 = l2
        self.truncation = truncation
        self.sigma = sigma
        self.normalize = normalize
        self.method = method
        self.objective = objective
        self.patience = patience
        self.n_threads = n_threads
        self.metrics = metrics
        self.verbose = verbose

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
    ) -> LinearRanker:
        """Train, see `LambdaMART.fit`."""
        train = self._data(X, y, qid, sample_weight, query_weight)
        sets = self._validation(valid, eval_set)
        if self.method not in ("descent", "ascent"):
            raise DataError(f"method must be 'descent' or 'ascent', not {self.method!r}")
        if self.method == "ascent":
            if self.objective is not None or sets:
                raise DataError("method='ascent' raises the measure on the training data: no objective, no validation")
            found = Ascent(
                as_selection(self.measure), self.n_iterations, n_threads=self.n_threads,
                watched=as_watched(self.metrics), verbose=self.verbose,
            ).fit(train)  # fmt: skip
            warn_if_constant(train, Lambda(as_selection(self.measure).measures[0]), None)
            return self._fitted(found, train)
        objective = lambda_objective(self, normalize=False)
        found = Descent(
            objective, self.n_iterations, self.learning_rate, self.l2,
            selection_for(self.measure, train), self.patience, self.n_threads, as_watched(self.metrics), self.verbose,
        ).fit(train, sets)  # fmt: skip
        warn_if_constant(train, objective, not found.model.weights.any())
        return self._fitted(found, train)

    def _fitted(self, found: DescentResult, train: RankingData) -> LinearRanker:
        self.model_: LinearModel = found.model.with_info(**self._information(train))
        self.coef_ = self.model_.weights
        self.history_ = found.history
        self.best_iteration_ = found.best_iteration
        self._note_features(train)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The score of each row, higher is better."""
        return self._predict(X)
