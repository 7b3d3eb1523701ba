"""Contributions of features to scores, by kind of model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Floats
from podium.data import RankingData, frames
from podium.data.encoding import Encoding
from podium.data.features import Features
from podium.data.sparse import dense_block, is_sparse
from podium.errors import DataError
from podium.explain.explanation import Explanation
from podium.explain.interventional import InterventionalShap
from podium.explain.path_dependent import PathDependentShap
from podium.models import ClassEnsemble, Combined, Ensemble, LinearModel, Model, TreesOnBaseScores
from podium.models.base import model_of, shown_name


class Contributions(NamedTuple):
    """The contributions of one model."""

    # values, base: as in `Explanation`
    values: Floats
    base: float
    keys: tuple[str | int, ...]  # to match features of several models: names, or column numbers
    # features, encoding: the model's features and their encoding
    features: Features
    encoding: Encoding
    method: str  # how they were computed


def explain(
    model: Any, data: Any, background: Any = None, *, base_scores: Any = None, n_threads: int | None = None
) -> Explanation:
    """Return the exact contribution of each feature to each score, such that base + Σ contributions = score.

    For trees, contributions are Shapley values. Features whose values are not yet known are averaged over the training
    documents of each node (path-dependent) or, with a background, over its documents (interventional). For a linear
    model, contributions are weight × (value − mean). For a sum of models they are the sum of the models' contributions.
    For a net they are integrated gradients from the mean input to the document, and `residual` says by how much their
    sum misses the score.

    Args:
        model: a model, or an estimator that has one.
        data: the documents, as for `predict`: `RankingData`, a frame, an array or a sparse matrix.
        background: documents to compare with, in the same forms; a few hundred are enough. Models of formats that do
            not store the number of documents at each node need a background.
        base_scores: the scores that the trees continue from, if the model needs them.
        n_threads: the number of threads; all cores by default. The result is the same.

    Returns:
        An `Explanation`, in the order of the rows.

    Example:
        >>> import podium
        >>> from podium.explain import explain
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=3, n_leaves=4).fit(data)
        >>> explain(model, data, background=data.features[:100]).method
        'interventional Shapley values'

    """
    model = model_of(model)
    if not isinstance(model, Model):
        raise DataError(
            f"explain supports Podium's models and estimators, but got a {type(model).__name__}: use "
            "permutation_importance or partial_dependence, which support any ranker"
        )
    if isinstance(data, RankingData):
        model._require_same_reading(data)
    elif frames.is_frame(data) and frames.has_queries(data):
        data = RankingData(data)
    if isinstance(background, RankingData):
        model._require_same_reading(background)
    parts = contributions(model, data, background, n_threads)
    if isinstance(model, TreesOnBaseScores):
        scores = model.predict(data, n_threads=n_threads, base_scores=base_scores)
        parts = _with_base_scores(parts, model, np.asarray(base_scores, np.float64))
    elif base_scores is None:
        scores = model.predict(data, n_threads=n_threads)
    else:
        raise DataError(f"{model!r} does not continue from other scores: omit base_scores")
    names = tuple(shown_name(key) for key in parts.keys)
    queries = data if isinstance(data, RankingData) else None
    return Explanation(parts.values, parts.base, scores, names, parts.method, parts.features, parts.encoding, queries)


@singledispatch
def contributions(model: Model, data: Any, background: Any, n_threads: int | None) -> Contributions:
    """Return the contributions of features to a model's scores; nets are recognized without importing torch.

    The arguments are those of `explain`; each part of a model takes its features from them.
    """
    integrated_gradients = getattr(model, "integrated_gradients", None)
    if integrated_gradients is None:
        raise DataError(
            f"{model!r} cannot be explained by contributions of features: use permutation_importance or "
            "partial_dependence, which support any model"
        )
    features = model.schema.rows(data)
    background = None if background is None else model.schema.rows(background)
    values, base = integrated_gradients(features, background, n_threads=n_threads)
    return Contributions(values, base, _keys(model), features, model.encoding, "integrated gradients")


@contributions.register
def _of_trees(model: Ensemble, data: Any, background: Any, n_threads: int | None) -> Contributions:
    features = model.schema.rows(data)
    shap: PathDependentShap | InterventionalShap
    if background is None:
        shap, method = PathDependentShap(model.arrays), "path-dependent Shapley values"
    else:
        shap = InterventionalShap(model.arrays, model.schema.rows(background))
        method = "interventional Shapley values"
    return Contributions(shap.values(features, n_threads), shap.base, _keys(model), features, model.encoding, method)


@contributions.register
def _of_weights(model: LinearModel, data: Any, background: Any, n_threads: int | None) -> Contributions:
    """Return w (x − mean), the Shapley values of a linear model, interventional or path-dependent."""
    features, means, base = model.schema.rows(data), model.means, model.intercept
    if background is not None:
        background = dense_block(model.schema.rows(background), dtype=np.float64)
        if not len(background):
            raise DataError("the background has no documents")
        means = np.sort(np.where(np.isfinite(background), background, model.means), axis=0).mean(axis=0)
        base += float(model.weights @ (means - model.means))
    block = dense_block(features, dtype=np.float64)
    values = model.weights * (np.where(np.isfinite(block), block, model.means) - means)
    return Contributions(values, base, _keys(model), features, model.encoding, "weight × (value − mean)")


@contributions.register
def _of_parts(model: Combined, data: Any, background: Any, n_threads: int | None) -> Contributions:
    """Return the weighted sum of the parts' contributions, feature by feature."""
    parts = [contributions(part, data, background, n_threads) for part in model.parts]
    names = model.feature_names if model._unnamed else None
    columns: dict[str | int, int] = {}
    places = []
    for part in parts:
        keys = [names[key] if names is not None and isinstance(key, int) else key for key in part.keys]
        places.append([columns.setdefault(key, len(columns)) for key in keys])
    values, base = np.zeros((parts[0].values.shape[0], len(columns))), 0.0
    for part, weight, place in zip(parts, model.weights, places, strict=True):
        values[:, place] += weight * part.values
        base += weight * part.base
    method = " + ".join(dict.fromkeys(part.method for part in parts))
    return Contributions(values, base, tuple(columns), *_gathered(parts, places), method)


@contributions.register
def _of_trees_on_scores(model: TreesOnBaseScores, *arguments: Any) -> Contributions:
    return contributions(model.trees, *arguments)


@contributions.register
def _of_classes(model: ClassEnsemble, *_: Any) -> Contributions:
    raise DataError(
        "this model has no exact contributions, because its score is an expected label, which is not a sum over its "
        "trees. Explain an output instead: model.trees.outputs(model.n_outputs)[k].explain(data)"
    )


def _with_base_scores(contributions: Contributions, model: TreesOnBaseScores, base_scores: Floats) -> Contributions:
    """Return contributions with one more column for the submodel's scores, relative to 0."""
    column = base_scores[:, np.newaxis]
    with np.errstate(over="ignore"):  # only for display
        shown = column.astype(np.float32)
    return contributions._replace(
        values=np.hstack([contributions.values, model.scale * column]),
        keys=(*contributions.keys, f"scores of {model.name}"),
        features=_side_by_side([contributions.features, shown]),
    )


def _gathered(parts: Sequence[Contributions], places: Sequence[Sequence[int]]) -> tuple[Features, Encoding]:
    """Return the features of several models, each from the first model that has it."""
    blocks: list[Features] = []
    categories: dict[int, tuple[str, ...]] = {}
    shifts: dict[int, float] = {}
    n_seen = 0
    for part, place in zip(parts, places, strict=True):
        new = [column for column, feature in enumerate(place) if feature >= n_seen]
        if new:
            blocks.append(part.features if len(new) == len(place) else part.features[:, new])
        encoding = part.encoding.of_columns(new)
        categories |= {n_seen + k: names for k, names in encoding.categories.items()}
        shifts |= {n_seen + k: shift for k, shift in encoding.shifts.items()}
        n_seen += len(new)
    return _side_by_side(blocks), Encoding(categories, shifts)


def _side_by_side(blocks: list[Features]) -> Features:
    if len(blocks) == 1:
        return blocks[0]
    if any(is_sparse(block) for block in blocks):
        from scipy.sparse import csr_array, hstack

        return csr_array(hstack([csr_array(block) for block in blocks], format="csr"))
    return np.hstack(blocks)


def _keys(model: Model) -> tuple[str | int, ...]:
    return model.feature_names if model.feature_names is not None else tuple(range(model.n_features))
