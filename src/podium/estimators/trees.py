"""What the estimators that boost trees have in common."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from podium.boosting import Boosting, Checkpoint, Newton, Round, Sampling, Step, TrainingResult
from podium.data import RankingData
from podium.data.columns import listed_features
from podium.errors import DataError
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.ranker import RankerMixin, spell_out_settings
from podium.measures import Graded, Measure, as_watched, selection_for
from podium.objectives import Objective
from podium.trees import GrowthParameters


class TreeSettings(TypedDict, total=False):
    """Settings of `TreeRanker`, by keyword."""

    min_documents_in_leaf: int
    max_depth: int | None
    l2: float
    max_delta_step: float | None
    split: str
    document_fraction: float
    query_fraction: float
    feature_fraction: float
    split_fraction: float | None
    max_bins: int
    categorical: Sequence[int | str]
    monotone: Mapping[int | str, int] | Sequence[int] | None
    patience: int | None
    random_state: int
    n_threads: int | None
    metrics: Sequence[Measure | str]
    verbose: int | None


class TreeRanker(RankerMixin, BaseEstimator):  # type: ignore[misc]
    """TrainingResult trees on an objective.

    Args:
        n_trees: at most so many.
        n_leaves: leaves of a tree, at most.
        learning_rate: the share of each step that is taken.
        measure: what picks the number of trees where there is validation data: a name such as `"ndcg@10"`, a value such
            as `NDCG(10)`, or `Graded([...])`.
        min_documents_in_leaf: exactly counted.
        max_depth: of a tree; None for no limit.
        l2: added to the curvature of a leaf.
        max_delta_step: the largest value of a leaf, before the learning rate, as in LightGBM and XGBoost; it matters
            where curvature vanishes. By default 1000/σ, and no limit for least squares.
        split: `"newton"` (as LightGBM and XGBoost) or `"least-squares"` (the papers').
        document_fraction, query_fraction, feature_fraction: what each tree sees; λ comes from all documents.
        split_fraction: the share of these documents on which splits are sought: those with large gradients, and some
            of the others in place of all. Leaf values come from all. None for half, and fewer of more than 300,000
            training documents, down to 30%.
        max_bins: of each feature, 2 to 255.
        categorical: categorical features, by number or name, beside those of the data: categorical columns of frames,
            and what `RankingData(categorical=…)` names. Text is numbered, and the model keeps the names.
        monotone: features that must not lower (+1) or raise (−1) the score as they rise: by name or number, or one
            entry for each feature.
        patience: stop after so many trees without a better one on the validation data.
        random_state: the seed of sampling.
        n_threads: all cores by default. The model is the same, to the bit, for any number.
        metrics: measures to watch beside `measure`: all of them stand in `history_`, for each validation set.
        verbose: None for a progress bar on terminals, 0 for silence, n for a line on standard error every n trees.

    """

    _usual: ClassVar[TreeSettings] = {}  # settings whose default differs from the ones below

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
        max_delta_step: float | None = None,
        split: str = "newton",
        document_fraction: float = 1.0,
        query_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        split_fraction: float | None = 1.0,
        max_bins: int = 255,
        categorical: Sequence[int | str] = (),
        monotone: Mapping[int | str, int] | Sequence[int] | None = None,
        patience: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
        metrics: Sequence[Measure | str] = (),
        verbose: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.measure = measure
        self.min_documents_in_leaf = min_documents_in_leaf
        self.max_depth = max_depth
        self.l2 = l2
        self.max_delta_step = max_delta_step
        self.split = split
        self.document_fraction = document_fraction
        self.query_fraction = query_fraction
        self.feature_fraction = feature_fraction
        self.split_fraction = split_fraction
        self.max_bins = max_bins
        self.categorical = categorical
        self.monotone = monotone
        self.patience = patience
        self.random_state = random_state
        self.n_threads = n_threads
        self.metrics = metrics
        self.verbose = verbose

    def __init_subclass__(cls, **options: Any) -> None:
        """The settings that a class takes by `**settings`, with its own defaults."""
        super().__init_subclass__(**options)
        shared = inspect.signature(TreeRanker.__init__).parameters
        usual = {name: cls._usual.get(name, shared[name].default) for name in TreeSettings.__annotations__}
        spell_out_settings(cls, [shared[name].replace(default=value) for name, value in usual.items()])

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
    ) -> Self:
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
        found = self._settings(train).fit(train, self._validation(valid, eval_set), observers, checkpoint)
        self.trees_ = found.ensemble
        self.model_ = self._model(found).with_info(**self._information(train), measures=found.ensemble.info["measures"])
        self.n_trees_ = self.trees_.n_trees // found.objective.n_outputs
        self.history_ = found.history
        self.best_iteration_ = found.best_iteration
        self._keep(found)
        self._note_features(train)
        warn_if_constant(
            train, self._objective_for(train), found.n_splits == 0, min_documents_in_leaf=self.min_documents_in_leaf,
            on_top=found.base_scores is not None,
        )  # fmt: skip
        return self

    @abstractmethod
    def _objective(self) -> Objective:
        """What is trained on."""

    def _objective_for(self, train: RankingData) -> Objective:
        """What is trained on these documents."""
        return self._objective()

    def _model(self, found: TrainingResult) -> Any:
        """The model from what training found."""
        return found.ensemble

    def _keep(self, found: TrainingResult) -> None:
        """Set attributes of the estimator's own after training."""

    def _step(self) -> Step:
        return Newton(self.l2, self.max_delta_step)

    def _settings(self, train: RankingData) -> Boosting:
        split: Any = self.split
        return Boosting(
            objective=self._objective_for(train),
            step=self._step(),
            growth=GrowthParameters(
                self.n_leaves, self.max_depth, self.min_documents_in_leaf, split, self.l2, self._monotone(train)
            ),
            sampling=Sampling(
                self.document_fraction,
                self.query_fraction,
                self.feature_fraction,
                self.random_state,
                self.split_fraction,
            ),
            n_trees=self.n_trees,
            learning_rate=self.learning_rate,
            max_bins=self.max_bins,
            categorical=self._categorical(train),
            selection=selection_for(self.measure, train),
            patience=self.patience,
            n_threads=self.n_threads,
            watched=as_watched(self.metrics),
            verbose=self.verbose,
        )

    def _categorical(self, train: RankingData) -> tuple[int, ...]:
        """The categorical features: those that the data says are such, and those that are named here."""
        named = {_number(train, feature, "categorical") for feature in listed_features(self.categorical)}
        return tuple(sorted(named | set(train.encoding.categories)))

    def _monotone(self, train: RankingData) -> tuple[int, ...] | None:
        if self.monotone is None or not isinstance(self.monotone, Mapping):
            return None if self.monotone is None else tuple(self.monotone)
        directions = [0] * train.n_features
        for feature, direction in self.monotone.items():
            directions[_number(train, feature, "monotone")] = direction
        return tuple(directions)

    def predict(self, X: Any, n_trees: int | None = None) -> NDArray[np.float64]:
        """The score of each row, higher is better; by the first trees only if `n_trees` is given."""
        return self._predict(X, n_trees=n_trees)


def _number(train: RankingData, feature: int | str, argument: str) -> int:
    if isinstance(feature, str):
        if train.feature_names is None or feature not in train.feature_names:
            raise DataError(f"{argument}: there is no feature named {feature!r}")
        return train.feature_names.index(feature)
    if not 0 <= feature < train.n_features:
        raise DataError(f"{argument}: there is no feature {feature}; they are numbered 0 to {train.n_features - 1}")
    return int(feature)
