"""The committee: "just give me the best model"."""

from __future__ import annotations

from typing import Any, Never

from numpy.typing import ArrayLike

from podium.boosting import Boosting, CommitteeTraining, Sampling
from podium.boosting.committee import default_members
from podium.boosting.folds import SHARES
from podium.core.array_types import Floats
from podium.core.parameters import check_parameters, from_parameters
from podium.data import RankingData
from podium.errors import DataError
from podium.estimators.diagnosis import warn_if_constant, warn_if_not_stopped, warn_if_unused
from podium.estimators.parameters import CommitteeParameters
from podium.estimators.ranker import RankerMixin, refuse_unknown_arguments
from podium.estimators.sklearn_bases import BaseEstimator, check_is_fitted
from podium.evaluation.tables import Table
from podium.measures import as_selection
from podium.objectives import Objective, parse
from podium.trees import GrowthParameters


class Committee(CommitteeParameters, RankerMixin, BaseEstimator):
    """Several objectives, each bagged, weighed by the exact sweep on unseen queries, in one ensemble of trees.

    An ensemble of LambdaMART rankers won the Yahoo! challenge ([B] §1). Members see part of the documents and features
    for each tree; their scores are standardised, those of an objective weigh alike, and the objectives' weights are the
    exact best in turn, shrunk towards equal ones. The result is saved, scored and inspected like any other ensemble.
    The parameters of trees are those of each member.

    Without validation data no query is held back: each member trains on all folds but one, which stops it, and the
    members together on all. Give all labelled data there is.

    With a time budget the model depends on the speed of the machine: how far training comes. `settings_` says what was
    trained, and `Committee(**model.settings_)` trains the same model again, on any machine.

    Attributes:
        model_: the `Ensemble`.
        members_: objective and number of trees of each member.
        weights_: of each member.
        values_: the measure on queries that members have not seen: of the members of each objective, of equal weights,
            and of the committee.
        tried_: everything that was trained, with seconds, what it measures alone and together with all before, and
            whether it was kept; a `Tried` each. `tried_table()` shows it.
        feature_fraction_: the share of features that each tree was grown on.
        settings_: parameters that train the same model without a clock.
        history_, best_iteration_: the last two of `values_`, as other rankers have them.

    Example:
        >>> import podium
        >>> members = [("lambda(ndcg)", 1), ("xendcg", 1)]
        >>> model = podium.Committee(members=members, n_trees=3, n_leaves=4).fit(podium.artificial(20, features=4))
        >>> len(model.weights_)  # of two objectives and five folds
        10

    """

    _stops_without_validation = True

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
        **unknown: Never,
    ) -> Committee:
        """Train on `RankingData`, or on features, labels and the query of each row, see `LambdaMART.fit`."""
        refuse_unknown_arguments(self, unknown)
        check_parameters(self)
        train = self._data(X, y, qid, sample_weight, query_weight)
        sets = self._validation(valid, eval_set)
        if self.cycles == 0:
            warn_if_unused(self, ("shrinkage",), "with cycles=0 the weights stay equal")
        settings = from_parameters(
            CommitteeTraining,
            self,
            members=self._members(),
            boosting=from_parameters(
                Boosting,
                self,
                growth=from_parameters(GrowthParameters, self),
                sampling=from_parameters(Sampling, self, feature_fraction=self.feature_fraction or SHARES[0]),
            ),
            measure=as_selection(self.measure),
            tries_all_features=self.feature_fraction is None,
        )
        result = settings.fit(train, next(iter(sets.values()), None))
        warn_if_not_stopped(self.n_trees, self.patience, [n_trees for _, n_trees in result.members])
        self.model_ = result.ensemble.with_info(**self._information(train))
        self.members_ = result.members
        self.weights_ = result.weights
        self.values_ = result.values
        self.tried_ = result.tried
        self.feature_fraction_ = result.feature_fraction
        self.settings_ = self.get_params(deep=False) | {
            "members": list(result.counts), "time_budget": None, "feature_fraction": result.feature_fraction,
        }  # fmt: skip
        self.history_ = {f"valid/{name}": [result.values[name]] for name in ("equal weights", "committee")}
        self.best_iteration_ = 0
        self._note_features(train)
        warn_if_constant(train, self._members()[0][0], None, min_documents_in_leaf=self.min_documents_in_leaf)
        return self

    def _members(self) -> tuple[tuple[Objective, int], ...]:
        if self.members is None:
            return default_members(as_selection(self.measure).measures[0], self.learning_rate)
        try:
            pairs = [(objective, count) for objective, count in self.members]
        except (TypeError, ValueError):
            raise DataError("members are pairs of an objective and a number, such as [('lambda(ndcg)', 5)]") from None
        return tuple((parse(one) if isinstance(one, str) else one, count) for one, count in pairs)

    def tried_table(self) -> Table:
        """What was trained, in its order."""
        check_is_fitted(self)
        if not hasattr(self, "tried_"):
            raise DataError("a loaded Committee does not know what was tried: the file does not hold it")
        return Table(
            ["objective", "seconds", "alone", "with all before", "kept"],
            [[one.objective, one.seconds, one.alone, one.together, "yes" if one.kept else "no"] for one in self.tried_],
        )

    @property
    def n_trees_(self) -> int:
        """The trees of all members."""
        check_is_fitted(self)
        return int(self.model_.n_trees)

    def predict(self, X: Any, **options: Any) -> Floats:
        """Return the score of each row, higher is better; see `podium.Model.predict` for options."""
        return self._predict(X, **options)
