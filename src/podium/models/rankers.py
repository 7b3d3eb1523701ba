"""The scores of any ranker: models, estimators, other libraries' models, functions, columns of scores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.core.parameters import Parameterized
from podium.core.validation import require_number
from podium.data import RankingData
from podium.data.columns import to_numbers
from podium.data.schema import Schema
from podium.data.sparse import is_sparse
from podium.errors import DataError
from podium.models.base import Model, model_of
from podium.models.linear import LinearModel
from podium.models.transformed_ensembles import TreesOnBaseScores


def scores_of(ranker: Any, data: RankingData, n_threads: int | None = None) -> Floats:
    """Return the scores of the data's rows by a model, any object with `predict`, a function, or given scores.

    Models of other libraries receive the features as a matrix with NaN for missing values, or as a pandas frame if they
    were fitted on one. Functions receive the data.
    """
    model = model_of(ranker)
    if isinstance(model, Model) and (model is ranker or not isinstance(model, TreesOnBaseScores)):
        return model.predict(data, n_threads=n_threads)
    if hasattr(ranker, "predict"):
        scores = ranker.predict(data if isinstance(model, Model) else _foreign_features(ranker, data))
    else:
        scores = ranker(data) if callable(ranker) else ranker
    scores = to_numbers(scores, "scores").astype(np.float64, copy=False)
    if scores.shape == (len(data), 1):
        scores = scores[:, 0]
    if scores.shape != (len(data),) or not np.isfinite(scores).all():
        raise DataError(f"a ranker must return a finite score for each of {len(data)} rows, but got {scores.shape}")
    return scores


def _foreign_features(ranker: Any, data: RankingData) -> Any:
    """Return the features for a model of another library: a frame if it was fitted with names, else a matrix."""
    if data.encoding:
        raise DataError("another library's model cannot use categories that Podium encoded: pass its scores instead")
    fitted_names = getattr(ranker, "feature_names_in_", None)
    if fitted_names is None or data.feature_names is None:
        return data.features
    names = tuple(str(name) for name in fitted_names)
    rows = Schema(len(names), names).rows(data)
    return rows if is_sparse(rows) else import_module("pandas").DataFrame(rows, columns=names)


def as_submodel(ranker: Any, like: Any) -> Any:
    """Return the model of a submodel that is a model, its file, a Podium estimator, or a mapping of feature weights.

    Sequences of scores become arrays; anything else, such as a function, is returned unchanged. `like` has the names
    and the number of the features.
    """
    if isinstance(ranker, str | os.PathLike):
        from podium.models.file import load_model

        return load_model(ranker)
    if isinstance(ranker, Parameterized) and not hasattr(ranker, "model_"):
        raise DataError(
            f"submodel: this {type(ranker).__name__} is not fitted. If you did fit it, scikit-learn's clone, which "
            "searches and pipelines call, removed the fit: pass its model, submodel=estimator.model_"
        )
    ranker = model_of(ranker)
    if not isinstance(ranker, Mapping):
        return np.asarray(ranker, np.float64) if isinstance(ranker, Sequence) else ranker
    weights = np.zeros(like.n_features)
    for key, weight in ranker.items():
        feature = key
        if isinstance(key, str):
            if like.feature_names is None or key not in like.feature_names:
                raise DataError(f"submodel: there is no feature named {key!r}")
            feature = like.feature_names.index(key)
        if not 0 <= feature < like.n_features:
            raise DataError(
                f"submodel: there is no feature {feature}; features are numbered 0 to {like.n_features - 1}"
            )
        require_number(f"the submodel's weight of feature {feature}", weight)
        weights[feature] = weight
    return LinearModel(weights, np.zeros(like.n_features), feature_names=like.feature_names)
