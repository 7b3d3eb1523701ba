"""Two classes by boosted trees."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.core.array_types import Bools, Floats
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators.parameters import MARTClassifierParameters
from podium.estimators.ranker import require_entry
from podium.estimators.sklearn_bases import ClassifierMixin, check_is_fitted
from podium.estimators.tree_ranker import PointwiseRanker
from podium.measures.losses import LogLoss, Loss
from podium.objectives import Logistic, Objective


class MARTClassifier(MARTClassifierParameters, ClassifierMixin, PointwiseRanker):
    """Two classes by boosted trees ([B] §6): log loss with slope σ, balanced on request (eq. 15).

    Without queries the log loss picks the number of trees. A document of weight d counts as d equal ones.

    Attributes:
        classes_: the two labels, of any type, in their order; the second one is positive.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.MARTClassifier(n_trees=5, n_leaves=4).fit(data.features, data.relevance > 1)
        >>> model.predict_proba(data.features).shape
        (1000, 2)

    """

    def _objective(self) -> Objective:
        return Logistic(self.sigma, self.balanced, above=0.5)

    def _loss(self) -> Loss:
        return LogLoss(sigma=self.sigma, balanced=self.balanced)

    def fit(self, X: Any, y: ArrayLike | str | None = None, **others: Any) -> Self:
        """Train on two classes of labels, see `MART.fit`."""
        labels = self._labels(X, y)
        classes = np.unique(labels[~_is_missing(labels)])
        if len(classes) != 2:
            raise DataError(
                f"MARTClassifier tells two classes apart, but there are {len(classes)} different labels "
                "(only binary classification is supported)"
            )
        self.classes_ = classes
        self._is_plain = self._has_no_queries(X, others.get("qid"))
        columns = [others.pop(name, None) for name in ("qid", "sample_weight", "query_weight")]
        super().fit(self._binary(X, y, *columns), **others)
        self.model_ = self.model_.with_info(classes=classes.tolist(), sigma=float(self.sigma))
        return self

    def _labels(self, X: Any, y: Any) -> NDArray[Any]:
        """The labels of each row, of any type."""
        if isinstance(X, RankingData):
            return X.relevance
        if y is None or isinstance(y, str):
            return self._data(X, y, None).relevance
        from sklearn.utils.validation import column_or_1d

        labels: NDArray[Any] = column_or_1d(y, warn=True)
        return labels

    def _binary(self, X: Any, y: Any, *columns: Any) -> RankingData:
        """The data with 1 for the second class, 0 for the first, NaN for no label."""
        labels = self._labels(X, y)
        missing = _is_missing(labels)
        unknown = np.setdiff1d(labels[~missing], self.classes_)
        if len(unknown):
            raise DataError(f"there is a label {unknown[0]!r} that training has not seen")
        codes = np.where(missing, np.nan, labels == self.classes_[1]).astype(np.float32)
        if isinstance(X, RankingData) or y is None or isinstance(y, str):
            data = self._data(X, y, *(columns or (None,)))
            return data.replace(labels=dict(data.labels) | {"relevance": codes})
        return self._data(X, codes, *columns)

    def _validation(self, valid: Any, eval_set: Any) -> dict[str, RankingData]:
        sets = super()._validation(valid, None) if valid is not None else {}
        coded = {name: self._binary(data, None) for name, data in sets.items()}
        entries = [eval_set] if isinstance(eval_set, tuple) else eval_set
        if entries is not None:
            for entry in entries if isinstance(entries, list) else [None]:
                require_entry(entry, needs_queries=False)
            entries = [(entry[0], self._binary(entry[0], entry[1], None).relevance, *entry[2:]) for entry in entries]
        return coded | super()._validation(coded or None, entries)

    def decision_function(self, X: Any) -> Floats:
        """F(x): above 0 for the second class."""
        return self._predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class: 1 / (1 + e^{−2σF}) for the second one."""
        scores = self.decision_function(X)
        second = np.exp(-np.logaddexp(0.0, -2 * self.model_.info["sigma"] * scores))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any, n_trees: int | None = None, **options: Any) -> Any:
        """The class of each row."""
        check_is_fitted(self)
        return self.classes_[(self._predict(X, n_trees=n_trees, **options) > 0).astype(int)]

    def score(self, X: Any, y: Any = None, *, qid: Any = None, sample_weight: Any = None) -> float:
        """The share of labelled rows whose class is right."""
        labels = self._labels(X, y)
        labelled = ~_is_missing(labels)
        right = (self.predict(X) == labels).astype(np.float64)[labelled]
        weights = None if sample_weight is None else np.asarray(sample_weight)[labelled]
        return float(np.average(right, weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _is_missing(labels: NDArray[Any]) -> Bools:
    """Which labels are NaN."""
    return np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), bool)
