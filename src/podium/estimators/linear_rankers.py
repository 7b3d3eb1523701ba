"""Estimators of weighted sums of features: `LinearRanker` and `PRank`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.core.array_types import Floats
from podium.core.parameters import check_parameters, from_parameters
from podium.data import RankingData, frames
from podium.data.schema import Schema
from podium.errors import DataError
from podium.estimators.base_ranker import Published, WeightedFeatures, check_is_fitted, lambda_objective, n_rows
from podium.estimators.diagnosis import require_labels, warn_if_constant, warn_if_unused
from podium.estimators.parameters import LinearRankerParameters, PRankParameters
from podium.linear import Ascent, CuttingPlanes, Descent, PRankTraining
from podium.linear.design import DesignMatrix
from podium.linear.prank import Perceptron, ShownDocuments
from podium.measures import as_selection, as_watched
from podium.models.base import checked_sets
from podium.objectives import Lambda, Regression
from podium.objectives.hinges import is_hinge
from podium.objectives.pair_terms import measure_in_training


class LinearRanker(LinearRankerParameters, WeightedFeatures):
    """A weighted sum of features, trained on λ ([B] §4: LambdaRank with the simplest of nets).

    With `objective="pairwise(hinge)"` it is RankSVM, with `"svm_map"` SVM-MAP: hinge losses are trained by
    cutting planes, to the optimum (`podium.linear.CuttingPlanes`).

    Attributes:
        model_: the `LinearModel`.
        coef_: the weight of each feature on its own scale.
        history_, best_iteration_: see `LambdaMART`.

    Example:
        >>> import podium
        >>> podium.LinearRanker(n_iterations=5).fit(podium.artificial(20, features=4)).coef_.shape
        (4,)

    """

    _fit_options = ("observers",)
    _fits_alone = True

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        if self.method == "ascent":
            self._ascend(train, sets, **options)
            return
        objective = lambda_objective(self)
        if is_hinge(objective):
            warn_if_unused(self, ("learning_rate",), "a hinge loss is trained by cutting planes, not by Newton steps")
        method = CuttingPlanes if is_hinge(objective) else Descent
        training = from_parameters(method, self, objective=objective, **self._evaluation_settings(train))
        result = training.fit(train, sets, **options)
        warn_if_constant(train, objective, not result.model.weights.any())
        self._set_fitted(train, result.model, result.history, result.best_iteration)

    def _ascend(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        """Train by coordinate ascent on the measure."""
        if self.objective is not None or sets:
            raise DataError("method='ascent' maximizes the measure on the training data: omit objective and valid")
        unused = ("learning_rate", "l2", "truncation", "pair_truncation", "sigma", "normalize", "patience")
        warn_if_unused(self, unused, "method='ascent' sets each weight by the exact sweep on the measure")
        selection = as_selection(self.measure)
        require_labels(train, [selection.measures[0].labels], "method='ascent'")
        training = from_parameters(Ascent, self, measure=selection, watched=as_watched(self.metrics))
        result = training.fit(train, **options)
        warn_if_constant(train, Lambda(measure_in_training(selection.measures[0], None)), None)
        self._set_fitted(train, result.model, result.history, result.best_iteration)

    @property
    def measures_training_data(self) -> bool:  # type: ignore[override]
        """Whether there is a history without validation data."""
        return self.method == "ascent"


class PRank(Published, PRankParameters, WeightedFeatures):
    """A weighted sum of features and a threshold between each label and the next, learnt one document at a time.

    Crammer and Singer, "Pranking with Ranking", 2001; [Q]. A document gets the rank min {r : w·z < b_r}. If that is not
    the rank of its label, each threshold on the wrong side of w·z moves by 1, and w by z. `predict` gives w·z,
    `predict_label` the label. Only the order of labels counts. `fit` shows the documents in an order that depends on
    content and seed, not on the order of the rows. Features are standardized, as in `LinearRanker`, and weights and
    thresholds are means over all documents seen; the paper does neither, see `averaged`. Documents of weight d, a whole
    number, are shown d times in a row.

    Attributes:
        model_: the `OrdinalModel`.
        coef_: the weight of each feature on its own scale.
        thresholds_: the thresholds between the labels, ascending.
        classes_: the labels, ascending.
        history_: `train/rank_loss`, the mean distance of ranks in each pass, taken before learning from each document;
            and the measures on validation data.
        best_iteration_: see `LambdaMART`.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.PRank(epochs=5).fit(data)
        >>> model.thresholds_.shape, sorted(set(model.predict_label(data)) - {0.0, 1.0, 2.0, 3.0, 4.0})
        ((4,), [])

    """

    measures_training_data = True
    _fit_options = ("observers",)
    _published = {"averaged": False}  # noqa: RUF012

    def _train(self, train: RankingData, sets: dict[str, RankingData], **options: Any) -> None:
        training = from_parameters(
            PRankTraining, self, selection=self._selection(train), watched=as_watched(self.metrics)
        )
        result = training.fit(train, sets, **options)
        self._perceptron = result.perceptron
        self._set_fitted(train, result.model, result.history, result.best_iteration)
        warn_if_constant(train, Regression(), not result.model.weights.any())

    def partial_fit(
        self, X: Any, y: ArrayLike | str | None = None, *, classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> PRank:  # fmt: skip
        """Learn from more documents, in one pass in the order of the rows; the model depends on that order.

        Queries have no effect. The first call takes the means and scales of the features from its documents, so it
        should have more than a few.

        Args:
            X: features, or `RankingData`.
            y: labels, if X is not `RankingData`.
            classes: all labels that will occur; needed in the first call, unless `fit` was called before.
            sample_weight: how often to show each document.

        """
        check_parameters(self)
        data = self._documents(X, y, sample_weight)
        checked_sets(data, None)
        is_first = not hasattr(self, "_perceptron")
        if is_first and hasattr(self, "model_"):
            raise DataError("a loaded PRank cannot continue to learn, because its file only holds the model")
        if is_first and classes is None:
            raise DataError("the first call of partial_fit needs all labels that will occur: classes=[0, 1, 2, …]")
        if not is_first:
            self.model_._require_same_reading(data)
            data = self.model_.schema.matched(data)
            earlier = self._perceptron.classes
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes, np.float32)), earlier):
                raise DataError(f"classes differs from that of earlier calls, {earlier.tolist()}: omit it")
        documents = ShownDocuments(data, classes if is_first else self._perceptron.classes)
        if is_first:
            self._perceptron = Perceptron.before(documents.classes, DesignMatrix(data, self.n_threads))
        loss = self._perceptron.learn(documents, np.arange(len(data))) / int(documents.times.sum())
        if is_first:
            model = self._perceptron.model(Schema.of(data), self.averaged)
            self._set_fitted(data, model, {"train/rank_loss": [loss]}, None)
        else:
            model = self._perceptron.model(self.model_.schema, self.averaged)
            self.model_ = model.with_info(**self.model_.info)
            self.history_["train/rank_loss"].append(loss)
        return self

    def _documents(self, X: Any, y: Any, sample_weight: Any) -> RankingData:
        """Return the arguments of `partial_fit` as data; rows without queries become one query, which has no effect."""
        one_query = None
        if not isinstance(X, RankingData) and not (frames.is_frame(X) and frames.has_queries(X)):
            one_query = np.zeros(n_rows(X), np.int64)
        return self._data(X, y, one_query, sample_weight)

    @property
    def thresholds_(self) -> Floats:
        """The thresholds between the labels, ascending."""
        check_is_fitted(self)
        return np.asarray(self.model_.thresholds)

    @property
    def classes_(self) -> Floats:
        """The labels, ascending."""
        check_is_fitted(self)
        return np.asarray(self.model_.classes)

    def predict_label(self, X: Any) -> Floats:
        """Return the label of each row."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict_label(X, n_threads=self.n_threads))
