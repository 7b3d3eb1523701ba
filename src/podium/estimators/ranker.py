"""What all rankers have in common as scikit-learn estimators."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.core.array_types import Floats
from podium.core.hyperparameters import NORMALIZE, SIGMA, TRUNCATION, advice
from podium.core.parameters import parameters
from podium.core.plotting import draw
from podium.data import RankingData, frames
from podium.data.features import as_list_of_features
from podium.data.schema import columns_of_text
from podium.errors import DataError, ParameterError
from podium.estimators.saving import to_entries
from podium.estimators.sklearn_bases import check_is_fitted
from podium.measures import Graded, Measure, Ranking, as_selection, selection_for
from podium.models import Scorer, save
from podium.models.base import reading_of
from podium.objectives import Lambda, Objective, describe, parse
from podium.objectives.pair_terms import measure_in_training


def lambda_objective(ranker: Any) -> Objective:
    """Return the `objective` of a ranker, by value or text; else `Lambda` of its measure on the whole list.

    Raise if a parameter of that `Lambda` is given beside an objective: it would have no effect.
    """
    objective = parse(ranker.objective) if isinstance(ranker.objective, str) else ranker.objective
    if objective is None:
        measure = measure_in_training(as_selection(ranker.measure).measures[0], ranker.truncation)
        return Lambda(measure, sigma=ranker.sigma, normalize=ranker.normalize)
    if not isinstance(objective, Objective):
        raise DataError(f"objective must be an Objective or its text, not {objective!r}")
    for name, declared in (("truncation", TRUNCATION), ("sigma", SIGMA), ("normalize", NORMALIZE)):
        if getattr(ranker, name) != declared.default:
            raise DataError(
                f"{name} is for the objective that follows from the measure; say it in the objective: "
                f"Lambda(…, {name}={getattr(ranker, name)!r})"
            )
    return objective


def _to_text(value: Any) -> str:
    """A parameter as text: objectives by their grammar where they have one."""
    try:
        return describe(value) if isinstance(value, Objective) else str(value)
    except DataError:
        return str(value)


# What `fit` of other tools takes, where no parameter of an estimator has its place.
ARGUMENTS_OF_OTHERS = {
    "group_sizes": "give them by fit(RankingData(X, y, group_sizes=…)), or the query of each row as qid",
    "group": "give the query of each row as qid, or sizes by fit(RankingData(X, y, group_sizes=…))",
    "group_id": "give the query of each row as qid",
    "eval_group": "eval_set takes (X, y, qid)",
    "eval_qid": "eval_set takes (X, y, qid)",
    "callbacks": "observers are called after each round, and patience, a parameter of the estimator, stops early",
}


def refuse_unknown_arguments(ranker: Any, names: Iterable[str]) -> None:
    """Refuse arguments that `fit` does not have, and say what has their place."""
    known = parameters(type(ranker))
    for name in names:
        hint = "" if name in known else advice(name, known)
        if name in ARGUMENTS_OF_OTHERS:
            hint = f": {ARGUMENTS_OF_OTHERS[name]}"
        elif name in known or hint:
            hint += f"; parameters are given before: {type(ranker).__name__}(…).fit(…)"
        raise ParameterError(f"{type(ranker).__name__}.fit has no argument {name!r}{hint}")


def to_rows(X: Any) -> Any:
    """Whatever has a length: arrays, what can be made into one, matrices, lists, frames."""
    if hasattr(X, "shape"):
        return range(X.shape[0])
    if hasattr(X, "__array__"):
        return np.asarray(X)
    if not hasattr(X, "__len__"):
        raise DataError(f"X must be features, a row for each document, not {type(X).__name__}")
    return X


def require_entry(entry: Any, needs_queries: bool) -> None:
    """Raise if an entry of `eval_set` is not (X, y, qid), or (X, y) where X has the queries or none are needed."""
    is_entry = isinstance(entry, tuple | list) and 2 <= len(entry) <= 4
    if is_entry and len(entry) == 2 and needs_queries:
        is_entry = frames.is_frame(entry[0]) and frames.has_queries(entry[0])
    if not is_entry:
        raise DataError(
            "eval_set takes (X, y, qid) or (X, y, qid, sample_weight), or a list of those; "
            "(X, y) if X is a frame with a column 'qid', or the estimator can do without queries"
        )


class RankerMixin:
    """Data in, scores out, and the model file.

    Attributes:
        model_: the fitted model, the one place that holds it.
        n_features_in_, feature_names_in_: as scikit-learn has them.

    """

    # Query ids and weights reach fit and score by metadata routing without requests by the user.
    __metadata_request__fit = {"qid": True, "sample_weight": True, "query_weight": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "sample_weight": True}  # noqa: RUF012

    measures_training_data = False  # whether there is a history without validation data
    _needs_queries = True
    _stops_without_validation = False  # whether patience has a meaning without validation data
    _takes_turns = False  # whether fits of several at a time would disturb each other (`fit_many`)

    model_: Any
    history_: dict[str, list[float]]
    best_iteration_: int | None
    measure: Measure | Graded | str
    n_threads: int | None
    patience: int | None = None

    def _note_features(self, train: RankingData) -> None:
        self.n_features_in_ = train.n_features
        if train.feature_names is not None:
            self.feature_names_in_ = np.array(train.feature_names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _information(self, train: RankingData) -> dict[str, Any]:
        """What the model file says beside the model: its parameters, and how the training data was read."""
        return {"parameters": self._described(), "reading": reading_of(train)}

    def _described(self) -> dict[str, Any]:
        """The parameters as JSON has them."""
        plain = (int, float, str, bool, type(None))
        values: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        values.pop("verbose", None)  # the file does not depend on what was shown
        return {name: v if isinstance(v, plain) else _to_text(v) for name, v in values.items()}

    def _data(self, X: Any, y: Any, qid: Any, sample_weight: Any = None, query_weight: Any = None) -> RankingData:
        """The arguments of `fit` as `RankingData`; text in columns named as categorical holds categories."""
        if isinstance(X, RankingData):
            others = {"y": y, "qid": qid, "sample_weight": sample_weight, "query_weight": query_weight}
            extra = [name for name, value in others.items() if value is not None]
            if extra:
                raise DataError(f"RankingData brings its own labels and weights; {extra[0]} has no place beside it")
            return X
        is_frame, name = frames.is_frame(X), type(self).__name__
        if y is None and not is_frame:
            raise DataError(f"{name} requires y to be passed, but the target y is None: fit(X, y, qid=qid)")
        if self._has_no_queries(X, qid):
            if query_weight is not None:
                raise DataError("query_weight has no meaning without queries: give qid as well")
            qid = np.zeros(len(to_rows(X)), np.int64)
        if qid is None and not (is_frame and frames.has_queries(X)):
            found = f", and there is no column 'qid' among {frames.shown_columns(X)}" if is_frame else ""
            raise DataError(
                f"{name} needs the query of each row{found}: fit(X, y, qid=qid), or fit(RankingData(X, y, qid=qid)). "
                "In scikit-learn's searches, first sklearn.set_config(enable_metadata_routing=True), then "
                "search.fit(X, y, qid=qid), or cross_validate(…, params={'qid': qid})"
            )
        categorical = columns_of_text(X, as_list_of_features(getattr(self, "categorical", ())))
        return RankingData(
            X, y, qid=qid, document_weights=sample_weight, query_weights=query_weight, categorical=categorical
        )

    @classmethod
    def _has_no_queries(cls, X: Any, qid: Any) -> bool:
        """Whether documents come without queries, to an estimator that can do without them."""
        knows_queries = isinstance(X, RankingData) or (frames.is_frame(X) and frames.has_queries(X))
        return qid is None and not cls._needs_queries and not knows_queries

    def _validation(self, valid: Any, eval_set: Any) -> dict[str, RankingData]:
        """The evaluation sets by name, the first of which stops training."""
        sets: dict[str, RankingData] = {}
        if valid is not None:
            named = valid if isinstance(valid, Mapping) else {"valid": valid}
            for name, data in named.items():
                if not isinstance(data, RankingData) and not frames.is_frame(data):
                    raise DataError(
                        "valid takes RankingData, a frame with columns for queries and labels, or several of those by "
                        "name; arrays go to eval_set=(X, y, qid)"
                    )
                sets[name] = self._data(data, None, None)
        if eval_set is not None:
            entries = [eval_set] if isinstance(eval_set, tuple) else eval_set
            if not isinstance(entries, list):
                raise DataError("eval_set takes (X, y, qid), or a list of those; RankingData goes to valid=…")
            for k, entry in enumerate(entries):
                require_entry(entry, self._needs_queries)
                name = f"eval{k}" if len(entries) > 1 else "eval"
                if name in sets:
                    raise DataError(f"there are two evaluation sets named {name!r}")
                sets[name] = self._data(*[*entry, None][: max(len(entry), 3)])
        if self.patience is not None and not sets and not self._stops_without_validation:
            raise DataError("patience needs validation data: give valid=… or eval_set=…")
        return sets

    def score(
        self,
        X: Any,
        y: ArrayLike | str | None = None,
        *,
        qid: ArrayLike | str | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean of the measure over the queries.

        `sample_weight` is there for scikit-learn's pipelines; measures of rankings do not weight documents.
        """
        check_is_fitted(self)
        data = self._data(X, y, qid)
        data = self.model_.schema.matched(data)
        ranking = Ranking(data, self._predict(data))
        measure = selection_for(self.measure, data).measures[0].fixed_like(self.model_.info.get("measures", ()))
        return measure.mean(ranking)

    def _predict(self, X: Any, **options: Any) -> Floats:
        """The scores of some rows, as the saved model would give them."""
        check_is_fitted(self)
        predicted: Floats = self.model_.predict(X, n_threads=self.n_threads, **options)
        return predicted

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the gains of all splits."""
        check_is_fitted(self)
        gains: Floats = self.model_.importance("gain")
        return gains / gains.sum() if gains.sum() > 0 else gains

    def plot_history(self) -> Any:
        """What was measured after each round, the best round marked, as a chart (extra `report`).

        Example:
            >>> import podium
            >>> train, valid = podium.artificial(20, features=4), podium.artificial(10, features=4, part="valid")
            >>> chart = podium.LambdaMART(n_trees=3).fit(train, valid=valid).plot_history()
            >>> len(chart.to_dict()["layer"])
            3

        """
        check_is_fitted(self)
        before = getattr(self, "submodel_means_", None)
        measured = {name: values for name, values in self.history_.items() if "/" in name}  # others are of observers
        return draw("history", measured, self.best_iteration_, before)

    def plot_importance(self, top: int = 20) -> Any:
        """The features with the largest `feature_importances_` as bars, as a chart (extra `report`)."""
        shares = self.feature_importances_
        names = [self.model_.label_of_feature(k) for k in range(len(shares))]
        return draw("importance", names, shares, "importance", top=top)

    def explain(self, data: Any, background: Any = None) -> Any:
        """What each feature adds to each score, see `podium.Model.explain`."""
        check_is_fitted(self)
        options = self._base_scores(data)
        return self.model_.explain(data, background, n_threads=self.n_threads, **options)

    def _base_scores(self, X: Any) -> dict[str, Any]:
        """The scores that the model goes on from, where it asks for them."""
        return {}

    def digest(self) -> str:
        """A hash of the model: equal digests score alike, to the bit."""
        check_is_fitted(self)
        return str(self.model_.digest())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model, parameters and fitted attributes to a file; `podium.load` gives the estimator back."""
        check_is_fitted(self)
        save(self.model_, path, to_entries(self))

    def export(self, path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Any:  # noqa: A002
        """Write the model for another system, see `podium.formats.export_model`."""
        check_is_fitted(self)
        return self.model_.export(path, format, **options)

    def scorer(self, n_threads: int | None = None) -> Scorer:
        """The model made ready to score, see `podium.Model.scorer`."""
        check_is_fitted(self)
        scorer: Scorer = self.model_.scorer(n_threads)
        return scorer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
