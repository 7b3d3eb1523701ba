"""LambdaMART."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from podium.boosting import Boosting, Checkpoint, Newton, Round, Sampling
from podium.data import RankingData, frames
from podium.data.columns import Features, to_features
from podium.errors import DataError
from podium.measures import Graded, Measure, Ranking, as_selection
from podium.measures.means import mean
from podium.models import Ensemble, save
from podium.objectives import Lambda, Objective
from podium.trees import GrowthParameters


class LambdaMART(BaseEstimator):  # type: ignore[misc]
    """Boosted regression trees on LambdaRank's gradients, for any measure ([B] §7, [W] §3).

    Args:
        n_trees: at most so many.
        n_leaves: leaves of a tree, at most.
        learning_rate: the share of each Newton step that is taken.
        measure: what is trained on, and what picks the number of trees where there is validation data: a name such as
            `"ndcg@10"`, a value such as `NDCG(10)`, or `Graded([...])`, whose first measure is trained on.
        min_documents_in_leaf: exactly counted.
        max_depth: of a tree; None for no limit.
        l2: added to the curvature of a leaf.
        split: `"newton"` (as LightGBM and XGBoost) or `"least-squares"` (the papers').
        document_fraction, query_fraction, feature_fraction: what each tree sees; λ comes from all documents.
        truncation: pairs count for the measure cut at this rank; None, the whole list, whatever the measure's cutoff.
        sigma: the steepness of the pairs' sigmoid.
        normalize: scale λ within each query, as LightGBM does.
        objective: another objective than `Lambda(measure, …)`.
        max_bins: of each feature, 2 to 255.
        categorical: categorical features, by number or name.
        monotone: features that must not lower (+1) or raise (−1) the score as they rise: by name or number, or one
            entry for each feature.
        patience: stop after so many trees without a better one on the validation data.
        random_state: the seed of sampling.
        n_threads: all cores by default. The model is the same, to the bit, for any number.

    Attributes:
        model_: the `Ensemble`.
        n_trees_: its number of trees.
        best_iteration_: the last tree kept, from 0, or None without validation data.
        history_: means of the measure after each tree, by `set/measure`.
        n_features_in_, feature_names_in_: as scikit-learn has them.

    """

    # Query ids and weights reach fit and score by metadata routing without further ado.
    __metadata_request__fit = {"qid": True, "sample_weight": True, "query_weight": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "sample_weight": True}  # noqa: RUF012

    def __init__(
        self,
        n_trees: int = 500,
        n_leaves: int = 15,
        learning_rate: float = 0.1,
        measure: Measure | Graded | str = "ndcg@10",
        *,
        min_documents_in_leaf: int = 20,
        max_depth: int | None = None,
        l2: float = 1.0,
        split: str = "newton",
        document_fraction: float = 1.0,
        query_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        truncation: int | None = None,
        sigma: float = 1.0,
        normalize: bool = True,
        objective: Objective | None = None,
        max_bins: int = 255,
        categorical: Sequence[int | str] = (),
        monotone: Mapping[int | str, int] | Sequence[int] | None = None,
        patience: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.measure = measure
        self.min_documents_in_leaf = min_documents_in_leaf
        self.max_depth = max_depth
        self.l2 = l2
        self.split = split
        self.document_fraction = document_fraction
        self.query_fraction = query_fraction
        self.feature_fraction = feature_fraction
        self.truncation = truncation
        self.sigma = sigma
        self.normalize = normalize
        self.objective = objective
        self.max_bins = max_bins
        self.categorical = categorical
        self.monotone = monotone
        self.patience = patience
        self.random_state = random_state
        self.n_threads = n_threads

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
        observers: Sequence[Callable[[Round], None]] = (),
        checkpoint: Checkpoint | None = None,
    ) -> LambdaMART:
        """Train on `RankingData`, or on features, labels and the query of each row.

        Args:
            X: `RankingData`, or features as an array, sparse matrix or frame.
            y: labels, if X is not `RankingData`.
            qid: the query of each row, or the name of a column.
            sample_weight, query_weight: weights of documents and queries.
            valid: validation data, or several by name; the first decides when to stop and how many trees to keep.
            eval_set: the same as `(X, y, qid)`, or several of those.
            observers: called after each tree with a `podium.boosting.Round`.
            checkpoint: a `podium.boosting.Checkpoint` keeps the trees so far, and a run that was stopped goes on.

        """
        train = self._data(X, y, qid, sample_weight, query_weight)
        settings = self._settings(train)
        found = settings.fit(train, self._validation(valid, eval_set), observers, checkpoint)
        self.model_ = found.ensemble.with_info(parameters=self._described())
        self.n_trees_ = self.model_.n_trees
        self.history_ = found.history
        self.best_iteration_ = found.best_iteration
        self.n_features_in_ = train.n_features
        if train.feature_names is not None:
            self.feature_names_in_ = np.array(train.feature_names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _settings(self, train: RankingData) -> Boosting:
        selection = as_selection(self.measure)
        objective = self.objective or Lambda(selection.measures[0], self.truncation, self.sigma, self.normalize)
        split: Any = self.split
        return Boosting(
            objective=objective,
            step=Newton(self.l2),
            growth=GrowthParameters(
                self.n_leaves, self.max_depth, self.min_documents_in_leaf, split, self.l2, self._monotone(train)
            ),
            sampling=Sampling(self.document_fraction, self.query_fraction, self.feature_fraction, self.random_state),
            n_trees=self.n_trees,
            learning_rate=self.learning_rate,
            max_bins=self.max_bins,
            categorical=tuple(sorted(_number(train, feature, "categorical") for feature in self.categorical)),
            selection=selection,
            patience=self.patience,
            n_threads=self.n_threads,
        )

    def _monotone(self, train: RankingData) -> tuple[int, ...] | None:
        if self.monotone is None or not isinstance(self.monotone, Mapping):
            return None if self.monotone is None else tuple(self.monotone)
        directions = [0] * train.n_features
        for feature, direction in self.monotone.items():
            directions[_number(train, feature, "monotone")] = direction
        return tuple(directions)

    def _described(self) -> dict[str, Any]:
        """The parameters as JSON has them."""
        plain = (int, float, str, bool, type(None))
        return {name: v if isinstance(v, plain) else str(v) for name, v in self.get_params(deep=False).items()}

    @staticmethod
    def _data(X: Any, y: Any, qid: Any, sample_weight: Any = None, query_weight: Any = None) -> RankingData:
        if isinstance(X, RankingData):
            given = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
            extra = [name for name, value in given.items() if value is not None]
            if extra:
                raise DataError(f"RankingData brings its own labels and weights; {extra[0]} has no place beside it")
            return X
        if qid is None and not frames.is_frame(X):
            raise DataError(
                "LambdaMART needs the query of each row: fit(X, y, qid=qid), or fit(RankingData(X, y, qid=qid)); in "
                "scikit-learn's searches, enable metadata routing and give params={'qid': qid}"
            )
        if y is None and not frames.is_frame(X):
            raise DataError("LambdaMART requires y to be passed, but the target y is None: fit(X, y, qid=qid)")
        return RankingData(X, y, qid=qid, document_weights=sample_weight, query_weights=query_weight)

    def _validation(self, valid: Any, eval_set: Any) -> dict[str, RankingData]:
        found: dict[str, RankingData] = {}
        if isinstance(valid, RankingData):
            found["valid"] = valid
        elif valid is not None:
            found |= dict(valid)
        if eval_set is not None:
            several = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
            for k, entry in enumerate(several):
                if len(entry) != 3:
                    raise DataError("eval_set takes (X, y, qid), or a list of those")
                name = f"eval{k}" if len(several) > 1 else "eval"
                if name in found:
                    raise DataError(f"there are two evaluation sets named {name!r}")
                found[name] = self._data(entry[0], entry[1], entry[2])
        if self.patience is not None and not found:
            raise DataError("patience needs validation data: give valid=… or eval_set=…")
        return found

    def predict(self, X: Any, n_trees: int | None = None) -> NDArray[np.float64]:
        """The score of each row, higher is better; by the first trees only if `n_trees` is given."""
        check_is_fitted(self)
        return self.model_.score(self._features(X), n_trees=n_trees, n_threads=self.n_threads)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """The scores after the first tree, the second, …"""
        check_is_fitted(self)
        return self.model_.staged_scores(self._features(X), self.n_threads)

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The leaf of each tree (column) that each row falls into."""
        check_is_fitted(self)
        return self.model_.leaves(self._features(X), self.n_threads)

    def score(
        self,
        X: Any,
        y: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The mean of the measure over the queries, documents with equal scores in the canonical order.

        `sample_weight` is there for scikit-learn's pipelines; measures of rankings do not weight documents.
        """
        check_is_fitted(self)
        data = self._data(X, y, qid)
        data = data.replace(features=self._features(data), feature_names=self.model_.feature_names)
        ranking = Ranking(data, self.predict(data), base=data.canonical_order)
        values = as_selection(self.measure).measures[0].values(ranking)
        return mean(values[~np.isnan(values)])

    def _features(self, X: Any) -> Features:
        """The features in the model's order; columns of a frame are found by name."""
        if isinstance(X, RankingData):
            features = self.model_.matched(X)
        elif frames.is_frame(X):
            features = frames.features_by_name(X, self.model_.feature_names)
        else:
            features = to_features(X)[0]
        if features.shape[1] != self.n_features_in_:
            raise DataError(
                f"X has {features.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        return features

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each feature in the gains of all splits."""
        check_is_fitted(self)
        gains = self.model_.importance("gain")
        return gains / gains.sum() if gains.sum() > 0 else gains

    def digest(self) -> str:
        """A hash of the model: equal digests score alike, to the bit."""
        check_is_fitted(self)
        return self.model_.digest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; `podium.load` reads it."""
        check_is_fitted(self)
        save(self.model_, path)

    @property
    def ensemble(self) -> Ensemble:
        """The trees."""
        check_is_fitted(self)
        return self.model_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _number(train: RankingData, feature: int | str, argument: str) -> int:
    if isinstance(feature, str):
        if train.feature_names is None or feature not in train.feature_names:
            raise DataError(f"{argument}: there is no feature named {feature!r}")
        return train.feature_names.index(feature)
    if not 0 <= feature < train.n_features:
        raise DataError(f"{argument}: there is no feature {feature}; they are numbered 0 to {train.n_features - 1}")
    return int(feature)
