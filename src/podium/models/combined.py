"""Weighted sums of rankers, and the exact best weight of two ([B] 7.1, [W] §4)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.combining import Path, Sweep, ascend, best_mixture, deviation, weighted
from podium.core.validation import numbers_of, require_number
from podium.data import RankingData, frames
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.data.schema import Schema, as_data
from podium.data.sparse import is_sparse
from podium.errors import DataError
from podium.measures import Measure, as_measure, warn_of_powers
from podium.models.base import Model, model_of
from podium.models.linear import LinearModel
from podium.models.trees_on_base_scores import TreesOnBaseScores

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Combined(Model):
    """Σ_k weights_k · score_k of several scorers on the same features.

    Attributes:
        parts: the scorers.
        weights: of each.
        info: parameters and the like, as JSON has it.

    """

    parts: tuple[Model, ...]
    weights: tuple[float, ...]
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, Model) for part in self.parts):
            raise DataError("Combined takes one or more scorers, such as the models that podium.load gives")
        object.__setattr__(self, "weights", numbers_of("weights", self.weights))
        if len(self.weights) != len(self.parts) or not np.isfinite(self.weights).all():
            raise DataError(f"there must be a finite weight for each of the {len(self.parts)} scorers")
        if any(part.feature_names is None for part in self.parts):
            for part in self.parts[1:]:
                if part.n_features != self.parts[0].n_features:
                    raise DataError(f"the scorers have {self.parts[0].n_features} and {part.n_features} features")

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of features: of all the scorers together, where they name them."""
        return self.parts[0].n_features if self._unnamed else len(self._all_names)

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the features of all scorers, those of the first one first, or None."""
        if self._unnamed:
            return next((part.feature_names for part in self.parts if part.feature_names is not None), None)
        return self._all_names

    @property
    def encoding(self) -> Encoding:  # type: ignore[override]
        """How the first scorer's features are encoded; each has its own, and predicts by it."""
        return self.parts[0].encoding

    @property
    def _unnamed(self) -> bool:
        return any(part.feature_names is None for part in self.parts)

    @cached_property
    def _all_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.feature_names or ()))

    @cached_property
    def _alike(self) -> bool:
        """Whether all scorers expect the same of their input."""
        schemas = [part.schema for part in self.parts]
        return all(one.encoding == schemas[0].encoding for one in schemas) and (
            self._unnamed or all(one.names == schemas[0].names for one in schemas)
        )

    @property
    def reading(self) -> dict[str, Any]:
        """The options with which the training data of the scorers was read."""
        return super().reading or next((part.reading for part in self.parts if part.reading), {})

    @property
    def sees_lists(self) -> bool:  # type: ignore[override]
        """Whether one of the scorers does."""
        return any(part.sees_lists for part in self.parts)

    def predict(
        self, X: Any, *, extra: str = "ignore", n_threads: int | None = None, **options: Any
    ) -> NDArray[np.float64]:
        """The score of each row, see `Model.predict`; each scorer finds its own columns."""
        if self._alike:
            return super().predict(X, extra=extra, n_threads=n_threads, **options)
        if not isinstance(X, RankingData) and not frames.is_frame(X):
            raise DataError(
                "these scorers differ in their features, or in the order of them: give X with names, as a frame or "
                "RankingData"
            )
        if extra != "ignore":
            self.schema.rows(X, extra)
        predicted = (part.predict(X, n_threads=n_threads, **options) for part in self.parts)
        return self._summed(predicted)

    def _require_same_reading(self, data: RankingData) -> None:
        """Each scorer asks for data that was read as its own."""
        for part in self.parts:
            part._require_same_reading(data)

    def _predict_rows(
        self, features: Features, offsets: NDArray[np.int64] | None = None, *, n_threads: int | None = None
    ) -> Floats:
        """The score of each row, where all scorers expect the same features."""
        self._checked_rows(features)
        return self._summed(
            part._predict_rows(features, offsets if part.sees_lists else None, n_threads=n_threads)
            for part in self.parts
        )

    def _summed(self, predicted: Iterable[Floats]) -> Floats:
        """Σ_k weights_k · score_k, in this order."""
        scores: Any = 0.0
        for weight, part_scores in zip(self.weights, predicted, strict=True):
            scores = scores + weight * part_scores
        return np.asarray(scores, np.float64)

    def truncate(self, n_trees: int) -> Combined:
        """The last scorer's first trees on top of the others."""
        last = self.parts[-1]
        if not hasattr(last, "truncate"):
            raise DataError(f"{last!r} has no trees to be cut")
        return replace(self, parts=(*self.parts[:-1], last.truncate(n_trees)))

    def importance(self, kind: Any = "gain") -> Floats:
        """The parts' shares of each feature, by their weights."""
        total = np.zeros(self.n_features)
        for part, weight in zip(self.parts, self.weights, strict=True):
            shares = part.importance(kind)
            shares = abs(weight) * shares / (shares.sum() or 1.0)
            if self._unnamed:
                total += shares
            else:
                total[[self._all_names.index(name) for name in part.feature_names or ()]] += shares
        return total

    def digest(self) -> str:
        """A hash of all that decides scores."""
        parts = "".join(part.digest() for part in self.parts)
        return hashlib.sha256(parts.encode() + np.array(self.weights).tobytes()).hexdigest()

    def with_info(self, **info: Any) -> Combined:
        """The same scorers with other information."""
        return replace(self, info=self.info | info)


@dataclass(frozen=True)
class Combination:
    """The best combination of two rankers on some data: s = (1 − α) a + α b.

    Attributes:
        alpha: α, the nearest number there is.
        weights: of a and b: 1 − α and α where α can represent them. Beside scores that are larger by far no α may do,
            such as 1 − 1e-20; the weights then are (1e-20, 1). Only where that is out of range as well, their sum is
            a power of two instead of 1.
        value: the mean of the measure for weights[0] · a + weights[1] · b.
        values: of a alone and b alone.
        interval: the open interval of α on which the value holds.
        path: the measure along all α.
        measure: its name.
        scorer: the combined scorer, where a and b are models and not just scores.

    """

    alpha: float
    weights: tuple[float, float]
    value: float
    values: tuple[float, float]
    interval: tuple[float, float]
    path: Path
    measure: str
    scorer: Combined | None

    def __str__(self) -> str:
        first, second = self.values
        alpha = f"α = {self.alpha:.4g}"
        if self.weights != (1.0 - self.alpha, self.alpha):
            alpha += f" (weights {self.weights[0]:.4g} and {self.weights[1]:.4g})"
        return f"{alpha}: {self.measure} {self.value:.4f} (a {first:.4f}, b {second:.4f})"

    def plot(self, axes: Any = None) -> Any:
        """Draw the path with matplotlib; returns the axes."""
        if axes is None:
            try:
                plt = import_module("matplotlib.pyplot")  # not among the dependencies
            except ImportError:
                raise ImportError("a path is drawn with matplotlib: pip install matplotlib") from None
            axes = plt.subplots(figsize=(7, 3.5))[1]
        axes.stairs(self.path.values, self.path.alphas, baseline=None)
        axes.plot([self.alpha], [self.value], "o")
        axes.set_xlabel("α")
        axes.set_ylabel(self.measure)
        return axes


def combine(
    a: Any,
    b: Any,
    data: RankingData,
    measure: Measure | str = "ndcg@10",
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    ties: str | int = "expected",
    n_threads: int | None = None,
) -> Combination:
    """The α for which (1 − α) a + α b has the best mean of a measure, of all α between the bounds.

    Every α at which two documents of a query change places is visited: the optimum is exact, whatever the scales of the
    two rankers. On the data it is fitted to, it is never worse than either.

    Args:
        a, b: rankers: models, estimators, any object with `predict`, functions of the data; or their scores of its
            rows.
        data: the queries whose mean counts, as `RankingData` or as a frame.
        measure: any measure with swap deltas.
        bounds: α between these.
        ties: how documents stand that are tied for every α: `"expected"`, `"stable"`, `"jitter"`, or a feature by
            name or number.
        n_threads: all cores by default; the result is the same.

    """
    data = as_data(data)
    warn_of_powers([as_measure(measure)], data)
    first, second = (scores_of(ranker, data, n_threads) for ranker in (a, b))
    sweep = Sweep(data, measure, ties, n_threads)
    best = best_mixture(sweep, first, second, *bounds)
    parts = [model_of(ranker) for ranker in (a, b)]
    scorer = Combined(tuple(parts), best.weights) if all(isinstance(part, Model) for part in parts) else None
    values = sweep.value(first), sweep.value(second)
    return Combination(
        best.alpha, best.weights, best.value, values, best.interval, best.path, str(sweep.measure), scorer
    )


@dataclass(frozen=True)
class Blend:
    """The combination of several rankers that coordinate cycles found.

    Attributes:
        weights: of each ranker's scores as they come.
        value: the mean of the measure.
        values: of each ranker alone.
        scorer: the combined scorer, where all are models and not just scores.

    """

    weights: tuple[float, ...]
    value: float
    values: tuple[float, ...]
    scorer: Combined | None


def combine_all(
    rankers: Sequence[Any],
    data: RankingData,
    measure: Measure | str = "ndcg@10",
    *,
    bounds: tuple[float, float] = (0.0, 2.0),
    cycles: int = 5,
    method: str = "cycles",
    ties: str | int = "expected",
    n_threads: int | None = None,
) -> Blend:
    """Weights for several rankers: each in turn the exact best while the others stand, from several starts.

    Scores are standardised first, so that weights of 1 count alike. The starts are equal weights and each ranker alone;
    the best end is taken. On the data it is fitted to, it is never worse than any of them. Unlike `combine`, this is no
    global optimum: a coordinate at a time may stop short of it.

    Args:
        rankers: two or more, as `combine` takes them.
        data, measure, ties, n_threads: see `combine`.
        bounds: of each weight, in units of the standardised scores.
        cycles: from each start, at most.
        method: `"cycles"` over the weights, or `"powell"`, which also searches along the way that a cycle went.

    """
    if len(rankers) < 2:
        raise DataError("combine_all takes two or more rankers")
    if method not in ("cycles", "powell"):
        raise DataError(f"method must be 'cycles' or 'powell', not {method!r}")
    data = as_data(data)
    warn_of_powers([as_measure(measure)], data)
    scores = [scores_of(ranker, data, n_threads) for ranker in rankers]
    sizes = [deviation(data, mine) for mine in scores]
    columns = [mine / size for mine, size in zip(scores, sizes, strict=True)]
    sweep = Sweep(data, measure, ties, n_threads)
    starts = [[1.0] * len(rankers), *np.eye(len(rankers)).tolist()]
    ends = [ascend(sweep, columns, start, cycles, bounds, turning=method == "powell")[0] for start in starts]
    blends = [tuple(weight / size for weight, size in zip(end, sizes, strict=True)) for end in ends]
    reached = [sweep.value(weighted(scores, blend)) for blend in blends]
    value, raw = max(zip(reached, blends, strict=True), key=lambda end: end[0])
    parts = [model_of(ranker) for ranker in rankers]
    scorer = Combined(tuple(parts), raw) if all(isinstance(part, Model) for part in parts) else None
    return Blend(raw, value, tuple(map(sweep.value, scores)), scorer)


def scores_of(ranker: Any, data: RankingData, n_threads: int | None = None) -> Floats:
    """The scores of the data's rows: by a model, by any object with `predict`, by a function, or as they are given.

    Models of other libraries get the features: a matrix of numbers with NaN where a value is missing, or a pandas frame
    if they were fitted on one. Functions get the data.
    """
    model = model_of(ranker)
    if isinstance(model, Model) and (model is ranker or not isinstance(model, TreesOnBaseScores)):
        return model.predict(data, n_threads=n_threads)
    if hasattr(ranker, "predict"):
        scores = ranker.predict(data if isinstance(model, Model) else _foreign_features(ranker, data))
    else:
        scores = ranker(data) if callable(ranker) else ranker
    scores = np.asarray(scores, np.float64)
    if scores.shape == (len(data), 1):
        scores = scores[:, 0]
    if scores.shape != (len(data),) or not np.isfinite(scores).all():
        raise DataError(f"a ranker must give a finite number for each of the {len(data)} rows, not {scores.shape}")
    return scores


def _foreign_features(ranker: Any, data: RankingData) -> Any:
    """The features as a model of another library expects them: by name, if it was fitted with names."""
    if data.encoding:
        raise DataError("a model of another library cannot read categories that Podium encoded: give its scores")
    fitted_with = getattr(ranker, "feature_names_in_", None)
    if fitted_with is None or data.feature_names is None:
        return data.features
    names = tuple(str(name) for name in fitted_with)
    rows = Schema(len(names), names).rows(data)
    return rows if is_sparse(rows) else import_module("pandas").DataFrame(rows, columns=names)


def as_submodel(given: Any, like: Any) -> Any:
    """A submodel as a scorer where it is data: a model or its file, an estimator of Podium's, features with weights."""
    if isinstance(given, str | os.PathLike):
        from podium.models.file import load

        return load(given)
    given = model_of(given)
    if not isinstance(given, Mapping):
        return np.asarray(given, np.float64) if isinstance(given, Sequence) else given
    weights = np.zeros(like.n_features)
    for named, weight in given.items():
        feature = named
        if isinstance(named, str):
            if like.feature_names is None or named not in like.feature_names:
                raise DataError(f"submodel: there is no feature named {named!r}")
            feature = like.feature_names.index(named)
        if not 0 <= feature < like.n_features:
            raise DataError(f"submodel: there is no feature {feature}; they are numbered 0 to {like.n_features - 1}")
        require_number(f"the submodel's weight of feature {feature}", weight)
        weights[feature] = weight
    return LinearModel(weights, np.zeros(like.n_features), feature_names=like.feature_names)
