"""PRank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from podium.core.array_types import Floats
from podium.core.observing import Observer
from podium.core.parameters import check_parameters, from_parameters
from podium.data import RankingData, frames
from podium.data.schema import Schema
from podium.errors import DataError
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.parameters import PRankParameters
from podium.estimators.ranker import RankerMixin, refuse_unknown_arguments, to_rows
from podium.estimators.sklearn_bases import BaseEstimator, check_is_fitted
from podium.linear import PRankTraining
from podium.linear.design import DesignMatrix
from podium.linear.prank import Perceptron, ShownDocuments
from podium.measures import as_watched, selection_for
from podium.models.base import checked_sets
from podium.objectives import Regression


class PRank(PRankParameters, RankerMixin, BaseEstimator):
    """A weighted sum of features and a threshold between each label and the next, learnt one document at a time.

    Crammer and Singer, "Pranking with Ranking", 2001; [Q]. A document gets the rank min {r : w·z < b_r}. Where its
    label has another one, each threshold on the wrong side of w·z moves by 1, and w by z. `predict` gives w·z,
    `predict_label` the label. Labels count by their order alone. Features are standardised, as `LinearRanker`'s are,
    and weights and thresholds are means over all documents seen; the paper has neither, see `averaged`. Documents of
    weight d, a whole number, are shown d times in a row.

    Attributes:
        model_: the `OrdinalModel`.
        coef_: the weight of each feature on its own scale.
        thresholds_: between the labels, ascending.
        classes_: the labels, ascending.
        history_: `train/rank_loss`, the mean distance of ranks in each pass, each before it was learnt from; and the
            measures on validation data.
        best_iteration_: see `LambdaMART`.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.PRank(epochs=5).fit(data)
        >>> model.thresholds_.shape, sorted(set(model.predict_label(data)) - {0.0, 1.0, 2.0, 3.0, 4.0})
        ((4,), [])

    """

    measures_training_data = True

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
    ) -> PRank:
        """Train, see `LambdaMART.fit`: in an order that depends on content and seed, not on the order of the rows."""
        refuse_unknown_arguments(self, unknown)
        check_parameters(self)
        train = self._data(X, y, qid, sample_weight, query_weight)
        settings = from_parameters(
            PRankTraining, self, selection=selection_for(self.measure, train), watched=as_watched(self.metrics)
        )
        result = settings.fit(train, self._validation(valid, eval_set), observers)
        self.model_ = result.model.with_info(**self._information(train))
        self.history_ = result.history
        self.best_iteration_ = result.best_iteration
        self._perceptron = result.perceptron
        self._note_features(train)
        warn_if_constant(train, Regression(), not self.model_.weights.any())
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike | str | None = None, *, classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> PRank:  # fmt: skip
        """Learn from some more documents, one pass in the order of the rows: here the model depends on that order.

        Queries play no part. Where nothing was learnt before, the documents of this call decide the means and scales of
        the features, so it should have more than a few.

        Args:
            X: features, or `RankingData`.
            y: labels, if X is not `RankingData`.
            classes: all labels that there will be; needed in the first call, unless `fit` came before it.
            sample_weight: how often each document is shown.

        """
        check_parameters(self)
        data = self._documents(X, y, sample_weight)
        checked_sets(data, None)
        first = not hasattr(self, "_perceptron")
        if first and hasattr(self, "model_"):
            raise DataError("a loaded PRank cannot learn on: its file holds the model, not the state of learning")
        if first and classes is None:
            raise DataError("the first call of partial_fit needs all labels that there will be: classes=[0, 1, 2, …]")
        if not first:
            self.model_._require_same_reading(data)
            data = self.model_.schema.matched(data)
            known = self._perceptron.classes
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes, np.float32)), known):
                raise DataError(f"classes differs from what was known before, {known.tolist()}: leave it out")
        documents = ShownDocuments(data, classes if first else self._perceptron.classes)
        if first:
            self._perceptron = Perceptron.before(documents.classes, DesignMatrix(data, self.n_threads))
            self.history_, self.best_iteration_ = {"train/rank_loss": []}, None
            self._note_features(data)
        loss = self._perceptron.learn(documents, np.arange(len(data)))
        self.history_["train/rank_loss"].append(loss / int(documents.times.sum()))
        schema, info = Schema.of(data), self._information(data)
        if not first:
            schema, info = self.model_.schema, self.model_.info
        self.model_ = self._perceptron.model(schema, self.averaged).with_info(**info)
        return self

    def _documents(self, X: Any, y: Any, sample_weight: Any) -> RankingData:
        """The arguments of `partial_fit`; rows without queries are one query, which plays no part."""
        one_query = None
        if not isinstance(X, RankingData) and not (frames.is_frame(X) and frames.has_queries(X)):
            one_query = np.zeros(len(to_rows(X)), np.int64)
        return self._data(X, y, one_query, sample_weight)

    @property
    def coef_(self) -> Floats:
        """The weight of each feature."""
        check_is_fitted(self)
        weights: Floats = self.model_.weights
        return weights

    @property
    def thresholds_(self) -> Floats:
        """Between the labels, ascending."""
        check_is_fitted(self)
        thresholds: Floats = self.model_.thresholds
        return thresholds

    @property
    def classes_(self) -> Floats:
        """The labels, ascending."""
        check_is_fitted(self)
        classes: Floats = self.model_.classes
        return classes

    def predict(self, X: Any, **options: Any) -> Floats:
        """Return the score of each row, higher is better; see `podium.Model.predict` for options."""
        return self._predict(X, **options)

    def predict_label(self, X: Any) -> Floats:
        """The label of each row."""
        check_is_fitted(self)
        labels: Floats = self.model_.predict_label(X, n_threads=self.n_threads)
        return labels
