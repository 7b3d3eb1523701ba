"""The committee: "just give me the best model"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from podium.boosting import Boosting, CommitteeTraining, Sampling
from podium.boosting.committee import MEMBERS
from podium.data import RankingData
from podium.data.splitting import split_by_content
from podium.errors import DataError
from podium.estimators.diagnosis import warn_if_constant
from podium.estimators.ranker import RankerMixin
from podium.measures import Graded, Measure, as_selection
from podium.models import Ensemble
from podium.objectives import Objective, parse
from podium.trees import GrowthParameters


class Committee(RankerMixin, BaseEstimator):  # type: ignore[misc]
    """Several objectives, each bagged, weighed by the exact sweep on validation queries, in one ensemble of trees.

    An ensemble of LambdaMART rankers won the Yahoo! challenge ([B] §1). Members see part of the documents and features
    for each tree; their scores are standardised, those of an objective weigh alike, and the objectives' weights are the
    exact best in turn, shrunk towards equal ones. The result is saved, scored and inspected like any other ensemble.

    Args:
        measure: what stops the members, and what the weights are found by.
        members: objectives, by value or text, and how many members each has. By default two of each of these: NDCG's
            λ, NDCG's λ truncated at 10, AP's λ, RankNet's pairs, query regression, XE-NDCG.
        n_trees, n_leaves, learning_rate, min_documents_in_leaf, l2, document_fraction, feature_fraction, patience: of
            each member, see `LambdaMART`.
        cycles: how often the weights are searched; 0 leaves them equal.
        shrinkage: how far the weights go from equal ones to the best ones, 0 to 1; by default n / (n + 1000) for n
            validation queries, since few say little about weights.
        validation: the share of queries that stops and weighs the members where no validation data is given.
        time_budget: seconds after which no member is begun, but for the first of each objective.
        random_state: the seed of sampling.
        n_threads: all cores by default. Without a time budget the model is the same, to the bit, for any number.
        verbose: None for a progress bar on terminals, 0 for silence, n for a line on standard error every n members.

    Attributes:
        model_: the `Ensemble`.
        members_: objective and number of trees of each member.
        weights_: of each member.
        values_: the measure on the validation queries of each member, of equal weights, and of the committee.
        history_, best_iteration_: the last two of them, as other rankers have them.

    """

    def __init__(
        self,
        measure: Measure | Graded | str = "ndcg@10",
        *,
        members: Sequence[tuple[Objective | str, int]] | None = None,
        n_trees: int = 1000,
        n_leaves: int = 15,
        learning_rate: float = 0.05,
        min_documents_in_leaf: int = 20,
        l2: float = 1.0,
        document_fraction: float = 0.7,
        feature_fraction: float = 0.5,
        patience: int | None = 100,
        cycles: int = 2,
        shrinkage: float | None = None,
        validation: float = 0.2,
        time_budget: float | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
        verbose: int | None = None,
    ) -> None:
        self.measure = measure
        self.members = members
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.min_documents_in_leaf = min_documents_in_leaf
        self.l2 = l2
        self.document_fraction = document_fraction
        self.feature_fraction = feature_fraction
        self.patience = patience
        self.cycles = cycles
        self.shrinkage = shrinkage
        self.validation = validation
        self.time_budget = time_budget
        self.random_state = random_state
        self.n_threads = n_threads
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
        eval_set: tuple[Any, ...] | None = None,
    ) -> Committee:
        """Train on `RankingData`, or on features, labels and the query of each row, see `LambdaMART.fit`."""
        train = self._data(X, y, qid, sample_weight, query_weight)
        sets = self._validation(valid, eval_set) if valid is not None or eval_set is not None else {}
        judges = next(iter(sets.values()), None)
        if judges is None:
            if not 0 < self.validation < 1:
                raise DataError(f"validation must be a share between 0 and 1, but is {self.validation}")
            train, judges = split_by_content(train, 1 - self.validation, self.validation, seed=self.random_state)
        found = CommitteeTraining(
            members=self._members(),
            boosting=Boosting(
                growth=GrowthParameters(
                    self.n_leaves, min_documents_in_leaf=self.min_documents_in_leaf, l2=self.l2,
                ),
                sampling=Sampling(self.document_fraction, 1.0, self.feature_fraction, self.random_state),
                n_trees=self.n_trees, learning_rate=self.learning_rate, patience=self.patience,
                n_threads=self.n_threads, verbose=self.verbose,
            ),
            measure=as_selection(self.measure), cycles=self.cycles, shrinkage=self.shrinkage,
            time_budget=self.time_budget,
        ).fit(train, judges)  # fmt: skip
        self.model_: Ensemble = found.ensemble.with_info(**self._information(train))
        self.n_trees_ = self.model_.n_trees
        self.members_ = found.members
        self.weights_ = found.weights
        self.values_ = found.values
        self.history_ = {f"valid/{name}": [found.values[name]] for name in ("equal weights", "committee")}
        self.best_iteration_ = 0
        self._note_features(train)
        warn_if_constant(train, self._members()[0][0], None, min_documents_in_leaf=self.min_documents_in_leaf)
        return self

    def _members(self) -> tuple[tuple[Objective, int], ...]:
        if self.members is None:
            return MEMBERS
        try:
            pairs = [(objective, count) for objective, count in self.members]
        except (TypeError, ValueError):
            raise DataError("members are pairs of an objective and a number, such as [('lambda(ndcg)', 5)]") from None
        return tuple((parse(one) if isinstance(one, str) else one, count) for one, count in pairs)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The score of each row, higher is better."""
        return self._predict(X)
