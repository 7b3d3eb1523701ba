"""The class `Model`, the base of all models."""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.hashing import content_hash
from podium.core.pages import html_table
from podium.core.validation import did_you_mean
from podium.data import RankingData
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.data.schema import Schema
from podium.errors import DataError, ParameterError
from podium.models.archive import MAX_FEATURES, ROOM_FOR_NAMES, Parts, StoredModel, header_text

if TYPE_CHECKING:
    from podium.trees import BinnedFeatures, Bins

ROWS_OF_BINS = 1 << 14  # rows whose bins are converted to values at a time
INFERRED = "inferred_width"  # key of `info`: whether n_features is only the number that an imported model uses
# Arguments of `predict` in other tools, and what to use instead.
OPTIONS_OF_OTHERS = {
    **dict.fromkeys(
        ("num_iteration", "best_iteration", "iteration_range", "ntree_limit", "ntree_end", "end_iteration"),
        "use predict(X, n_trees=…) to score with the first trees",
    ),
    **dict.fromkeys(("start_iteration", "ntree_start"), "scoring always begins with the first tree"),
    **dict.fromkeys(("pred_contrib", "pred_contribs"), "use explain(X) for the contributions of features"),
    "pred_leaf": "use apply(X) of an estimator, or leaves(X) of a model",
    **dict.fromkeys(("raw_score", "output_margin", "prediction_type"), "omit it, because scores are always raw"),
}


class Model(ABC):
    """A model that scores documents. Models are data, never code.

    Attributes:
        n_features: the number of features.
        feature_names: names of the features, or None.
        encoding: how the features of the training data were encoded: names of categories, shifts.
        info: facts about training, such as parameters and history, in JSON types.
        sees_lists: whether a document's score depends on the other documents of its query.
        has_one_schema: whether `schema` describes all features; a combination of models may have several schemas.
        file_kind: the name of its kind in model files; None if it cannot be saved.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=2, n_leaves=3).fit(data).model_
        >>> isinstance(model, podium.models.Model), model.predict(data).shape, len(model.digest())
        (True, (1000,), 64)

    """

    n_features: int
    feature_names: tuple[str, ...] | None
    encoding: Encoding
    info: dict[str, Any]
    sees_lists: bool = False
    has_one_schema: bool = True
    file_kind: ClassVar[str | None] = None

    @property
    def schema(self) -> Schema:
        """The features that the model expects."""
        return Schema(self.n_features, self.feature_names, self.encoding, bool(self.info.get(INFERRED)))

    def label_of_feature(self, feature: int) -> str:
        """Return the name of a feature for display, such as `bm25`, or `column 7` if features have no names."""
        return shown_name(feature if self.feature_names is None else self.feature_names[feature])

    @property
    def reading(self) -> dict[str, Any]:
        """The known options that the training data was read with."""
        reading = self.info.get("reading")
        return reading if isinstance(reading, dict) else {}

    def predict(self, X: Any, *, extra: str = "ignore", n_threads: int | None = None, **options: Any) -> Floats:
        """Return the score of each row; higher is better.

        Args:
            X: an array, a sparse matrix, a frame (pandas, polars, pyarrow) or `RankingData`. Columns are matched by
                name if both the model and X have names.
            extra: `"ignore"` or `"refuse"` columns that the model does not have.
            n_threads: the number of threads; all cores by default. The scores are the same.
            **options: options of the kind of model, such as `n_trees` for models of trees.

        """
        if options:
            self._require_options(options)
        if isinstance(X, RankingData):
            self._require_same_reading(X)
            binned = None if getattr(X, "has_values", True) else X.binned  # type: ignore[attr-defined]  # BinnedFiles
            if binned is not None and not self.sees_lists and self.splits_at(binned.bins) and self.fits(X):
                return self._predict_bins(binned, n_threads=n_threads, **options)
        rows = self.schema.rows(X, extra)
        if not self.sees_lists:
            return self._predict_rows(rows, n_threads=n_threads, **options)
        if not isinstance(X, RankingData):
            return self._predict_rows(rows, None, n_threads=n_threads, **options)
        order, scores = X.canonical_order, np.empty(len(X))
        scores[order] = self._predict_rows(rows[order], X.offsets, n_threads=n_threads, **options)
        return scores

    def _require_options(self, options: Mapping[str, Any]) -> None:
        """Raise if `predict` has no such option, and say what to use instead."""
        parameters = inspect.signature(self._predict_rows).parameters.values()
        allowed = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
        for name in options:
            if name not in allowed:
                advice = OPTIONS_OF_OTHERS.get(name)
                hint = f": {advice}" if advice else did_you_mean(name, allowed)
                raise ParameterError(f"{type(self).__name__}.predict has no argument {name!r}{hint}")

    def splits_at(self, bins: Bins) -> bool:
        """Return whether documents with the same bins have the same score, because all trees split between bins."""
        return False

    def fits(self, data: RankingData) -> bool:
        """Return whether data has the features of the model, in the same order and encoding."""
        return self.schema == Schema.of(data)

    def _predict_bins(self, binned: BinnedFeatures, **options: Any) -> Floats:
        """Return the score of each row from its bins, representing each bin by one of its values."""
        scores = np.empty(binned.n_rows)
        for first in range(0, binned.n_rows, ROWS_OF_BINS):
            last = min(first + ROWS_OF_BINS, binned.n_rows)
            scores[first:last] = self._predict_rows(binned.representatives(first, last), **options)
        return scores

    def scorer(self, n_threads: int | None = None) -> Scorer:
        """Return a `Scorer`, the model prepared for fast scoring in services.

        Args:
            n_threads: the number of threads for each call; all cores by default, which suits batches. Use 1 if several
                queries are scored concurrently.

        """
        return Scorer(self, n_threads)

    def prepare(self) -> None:  # noqa: B027, most models have nothing to prepare
        """Prepare scoring now instead of after many documents; most models need no preparation."""

    def _require_same_reading(self, data: RankingData) -> None:
        """Raise if the data was normalized or read differently than the training data."""
        if "reading" in self.info:
            require_same_reading(self.reading, data)

    def to_parts(self) -> Parts:
        """Return the content of the model for a file, without its schema and `info`."""
        raise NotImplementedError

    @classmethod
    def from_parts(cls, stored: StoredModel) -> Model:
        """Return the model of a file; raise if its parts are invalid."""
        raise NotImplementedError

    @abstractmethod
    def _predict_rows(self, features: Features, offsets: Ints | None = None, *, n_threads: int | None = None) -> Floats:
        """Return the score of each row of float32 features in the model's order and encoding.

        `offsets` are for models that see whole lists: query q has the rows offsets[q] to offsets[q + 1].
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `podium.load`."""
        from podium.models.file import save

        save(self, path)

    def export(self, path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Any:  # noqa: A002
        """Export the model to another system, see `podium.formats.export_model`.

        Args:
            path: the file to write.
            format: a format that `podium formats` lists; by default determined by the suffix, if it is unique.
            **options: options of the format.

        Returns:
            A `podium.formats.Export`, which says how the other system treats missing values.

        """
        return import_module("podium.formats").export_model(self, path, format, **options)

    def explain(self, data: Any, background: Any = None, *, n_threads: int | None = None, **options: Any) -> Any:
        """Return the contribution of each feature to each score, see `podium.explain.explain`.

        Args:
            data: the documents, as for `predict`.
            background: documents to compare with; by default, what the model stores about the training documents.
            n_threads: the number of threads; all cores by default. The result is the same.
            **options: `base_scores`, if the model continues from other scores.

        Returns:
            A `podium.explain.Explanation`.

        """
        return import_module("podium.explain").explain(self, data, background, n_threads=n_threads, **options)

    def _repr_html_(self) -> str:
        """Return the parameters and the most important features as HTML, for notebooks."""
        parameters, weights = self.info.get("parameters"), self.importance()
        facts = [[name, str(value)] for name, value in parameters.items()] if isinstance(parameters, dict) else []
        facts = [*facts, ["digest", self.digest()]]
        order = [int(k) for k in np.argsort(-weights, kind="stable")[:10] if weights[k] > 0]
        shares = [[self.label_of_feature(k), f"{weights[k] / weights.sum():.1%}"] for k in order]
        return html_table(["parameter", "value"], facts, [False, False], repr(self)) + html_table(
            ["feature", "importance"], shares, [False, True], "most important features"
        )

    @abstractmethod
    def importance(self, kind: Any = "gain") -> Floats:
        """Return the importance of each feature."""

    def digest(self) -> str:
        """Return a hash of everything that determines scores: models with equal digests give the same scores."""
        options = {name: self.reading.get(name) for name in ("absent", "first_index", "normalize")}
        reading = {name: value for name, value in options.items() if isinstance(value, str | int)}
        return content_hash([type(self).__name__, self.schema, reading, self._parameters()])

    @abstractmethod
    def _parameters(self) -> Any:
        """Return everything that determines scores except the schema, for the digest."""

    def with_info(self, **info: Any) -> Self:
        """Return the same model with entries added to `info`; raise if a model file cannot store them."""
        require_info(info)
        return replace(self, info=self.info | info)  # type: ignore[type-var]

    def _checked_rows(self, features: Features) -> int:
        if features.ndim != 2 or features.shape[1] != self.n_features:
            raise DataError(f"the model has {self.n_features} features, but the data has shape {features.shape}")
        return int(features.shape[0])


class Scorer:
    """A model prepared for scoring: `scorer(X)` returns the same scores as `model.predict(X)`.

    Create it with `model.scorer()`. For trees, it makes the preparations that `predict` only makes after many
    documents, so the first query is as fast as all others. Threads may share a scorer.

    Attributes:
        model: the model.
        n_threads: the number of threads for each call.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=5, n_leaves=4).fit(data)
        >>> scorer = model.scorer(n_threads=1)
        >>> scorer(data.features[:50]).shape
        (50,)

    """

    def __init__(self, model: Model, n_threads: int | None = None) -> None:
        self.model = model
        self.n_threads = n_threads
        model.prepare()
        encoding = model.encoding
        self._accepts_arrays = model.has_one_schema and not encoding.shifts and not encoding.categories

    def __call__(self, X: Any) -> Floats:
        """Return the score of each row of an array, a sparse matrix, a frame or `RankingData`; see `Model.predict`."""
        if (
            type(X) is np.ndarray
            and X.dtype == np.float32
            and X.ndim == 2
            and X.shape[1] == self.model.n_features
            and self._accepts_arrays
        ):
            return self.model._predict_rows(X, n_threads=self.n_threads)  # nothing to convert or to match
        return self.model.predict(X, n_threads=self.n_threads)

    def __repr__(self) -> str:
        threads = "" if self.n_threads is None else f", n_threads={self.n_threads}"
        return f"Scorer({self.model!r}{threads})"


def shown_name(feature: str | int) -> str:
    """Return the name of a feature for display, given its name or number.

    >>> shown_name("bm25"), shown_name("7"), shown_name(7)
    ('bm25', 'feature 7', 'column 7')
    """
    if isinstance(feature, int):
        return f"column {feature}"
    return f"feature {feature}" if feature.isdecimal() else feature


def model_of(ranker: Any) -> Any:
    """Return the model of a fitted estimator; any other object is returned unchanged.

    >>> import podium
    >>> ranker = podium.LambdaMART(n_trees=2).fit(podium.artificial(20, features=4))
    >>> model_of(ranker) is ranker.model_, model_of(ranker.model_) is ranker.model_
    (True, True)
    """
    return getattr(ranker, "model_", ranker)


def require_numbers(train: RankingData, model: str) -> None:
    """Raise if the data has categorical features, for a model that multiplies features by weights."""
    if train.encoding.categories:
        feature = min(train.encoding.categories)
        shown = repr(train.feature_names[feature]) if train.feature_names is not None else str(feature)
        raise DataError(
            f"feature {shown} is categorical, but {model} needs numbers: omit it, or use a column of 0 and 1 for each "
            "category"
        )


def reading_of(train: RankingData) -> dict[str, Any]:
    """Return the options that training data was read with, for the model file, including whether it is sparse."""
    return dict(train.reading) | ({"sparse": True} if train.absent_value is not None else {})


def require_same_reading(trained: Mapping[str, Any], data: RankingData) -> None:
    """Raise if the data was normalized or read differently than the training data."""
    expected, method = trained.get("normalize"), data.reading.get("normalize")
    if method != expected:
        remedy = f"use data.normalized({expected!r})" if method is None else "pass features that are not normalized"
        raise DataError(
            f"the model was trained on features {_normalization(expected)}, but these are {_normalization(method)}: "
            f"{remedy}"
        )
    expected, absent = trained.get("absent"), data.reading.get("absent")
    if trained.get("sparse") and data.absent_value is not None and absent != expected:
        raise DataError(
            f"the model was trained on sparse text read with absent={expected!r}, but this data was read with "
            f"absent={absent!r}: use read(…, absent={expected!r})"
        )


def _normalization(method: str | None) -> str:
    return "not normalized" if method is None else f"normalized by {method!r} within queries"


def require_weight(n_documents: int) -> None:
    """Raise if the number of documents with a positive weight is 0."""
    if n_documents == 0:
        raise DataError("all weights are zero: some documents and their queries must have a positive weight")


def require_info(info: Mapping[str, Any]) -> None:
    """Raise if an entry of `info` is not a JSON value: text, numbers, true, false, null, lists, dictionaries."""
    for name, value in info.items():
        try:
            header_text({name: value})
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(
                f"a model file cannot store info {name!r} ({error}): use text, numbers, lists or dictionaries"
            ) from None


def require_room(schema: Schema) -> None:
    """Raise before training if the names of features and categories would not fit into a model file."""
    size = len(header_text({"names": schema.names, **schema.encoding.to_json()}))
    if schema.n_features <= MAX_FEATURES and size <= ROOM_FOR_NAMES:
        return
    advice, categories = "use fewer features", schema.encoding.categories
    if categories:
        widest = max(categories, key=lambda feature: len(categories[feature]))
        advice = (
            f"feature {schema.shown(widest)} has {len(categories[widest])} categories; drop it, merge rare categories, "
            "or use numbers"
        )
    raise DataError(
        f"a model file holds at most {MAX_FEATURES} features and {ROOM_FOR_NAMES >> 20} MB of feature and category "
        f"names, but this data has {schema.n_features} features and {size / (1 << 20):.1f} MB of names: {advice}"
    )


def checked_sets(train: RankingData, valid: Mapping[str, RankingData] | None) -> dict[str, RankingData]:
    """Return evaluation sets with features in the training data's order; raise if the data cannot be trained on."""
    if train.n_documents == 0:
        raise DataError("the training data has no documents")
    if train.n_features == 0:
        shape = train.features.shape
        raise DataError(f"there is nothing to train on: 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    require_weight(int(train.has_weight.sum()))
    schema, sets = Schema.of(train), {}
    require_room(schema)
    for name, data in (valid or {}).items():
        if data.n_documents == 0:
            raise DataError(f"the evaluation set {name!r} has no documents")
        try:
            require_same_reading(reading_of(train), data)
            sets[name] = schema.matched(data)
        except DataError as error:
            raise DataError(f"the evaluation set {name!r} does not fit the training data: {error}") from None
    return sets
