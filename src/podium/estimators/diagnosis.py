"""Warnings about constant models, unused parameters, too few trees and split queries; a check of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from podium.binned import BinnedFiles
from podium.core.array_types import Ints
from podium.core.parameters import parameters
from podium.data import RankingData
from podium.data.sparse import dense_block
from podium.errors import DataError, warn
from podium.objectives import Objective
from podium.objectives.base import label_source

NO_GRADIENT = 1e-9  # relative to the largest label: a smaller λ is a rounding error
ROWS = 1 << 14  # number of rows to compare at a time


def require_labels(data: RankingData, sources: Iterable[str | None], method: str) -> None:
    """Raise if one of the label sources has no label at all; `method` is named in the message."""
    for source in sources:
        if source is not None and source in data.labels and len(data) and np.isnan(data.labels[source]).all():
            raise DataError(f"{method} needs labelled documents, but all labels {source!r} are NaN")


def warn_if_constant(
    data: RankingData, objective: Objective, constant: bool | None, *, min_documents_in_leaf: int | None = None,
    on_top: bool = False,
) -> None:  # fmt: skip
    """Warn with the reason and the remedy if training learnt nothing.

    Args:
        data: the training data.
        objective: the training objective.
        constant: whether the model is constant; None if the model cannot show it (the weights of a net are never all
            0, and an objective with random numbers grows trees even if there is nothing to learn).
        min_documents_in_leaf: the parameter of trees; None for other models.
        on_top: whether trees were trained on top of a submodel.

    """
    if constant is False:
        return
    weighted = data.with_weight() if data.preferences is None else data
    reason = _problem(weighted, objective, min_documents_in_leaf)
    if reason is not None and weighted is not data:
        reason = f"among the {len(weighted)} documents with a weight above 0, {reason}"
    if constant is None and reason is None:
        return
    if reason is None and min_documents_in_leaf is not None:
        reason = (
            "no split of any feature lowers the cost: lower min_documents_in_leaf, min_hessian_in_leaf, "
            "min_gain_to_split, l1 or l2, or check the features"
        )
        if on_top:
            reason += "; if the submodel's scores are far apart, gradients and hessians vanish: submodel_scale='fit'"
    result = "the model gives all documents the same score" if constant else "there is nothing to learn from this data"
    if on_top:
        result = "nothing was learnt on top of the submodel"
    losses = "".join(f"; {loss}" for loss in data.losses)
    warn(f"{result}: {reason or 'no feature predicts the labels'}{losses}", stacklevel=4)


def warn_if_unused(ranker: Any, names: Sequence[str], reason: str) -> None:
    """Warn if parameters that have no effect on this fit differ from their defaults."""
    defaults = {name: parameter.default for name, parameter in parameters(ranker).items()}
    changed = [f"{name}={getattr(ranker, name)!r}" for name in names if getattr(ranker, name) != defaults[name]]
    if changed:
        verb = "has" if len(changed) == 1 else "have"
        warn(f"{', '.join(changed)} {verb} no effect: {reason}", stacklevel=3)


def warn_if_not_stopped(n_trees: int, patience: int | None, n_best: Sequence[int]) -> None:
    """Warn if runs ended before patience could stop them; `n_best` is the best number of trees of each run.

    There is no warning if `n_trees` is at most `patience`: then the caller chose few trees, and no run can stop early.
    """
    unstopped = [best for best in n_best if patience is not None and patience < n_trees < best + patience]
    if unstopped:
        runs = "the run" if len(n_best) == 1 else f"{len(unstopped)} of {len(n_best)} runs"
        warn(
            f"{runs} ended with n_trees={n_trees}, and {max(unstopped)} trees were best so far: more trees may be "
            "better. Raise n_trees, or raise learning_rate to need fewer; patience=None trains exactly n_trees",
            stacklevel=4,
        )


def _problem(data: RankingData, objective: Objective, min_documents_in_leaf: int | None) -> str | None:
    """Return why nothing can be learnt from the data, and the remedy; None if there is no obvious reason."""
    source = label_source(objective) or "relevance"
    if source in data.labels:
        problem = _problem_of_labels(data, source)
        if problem is not None and _has_no_gradient(data, objective, source):
            return problem
    if min_documents_in_leaf is not None and data.n_documents < 2 * min_documents_in_leaf:
        return (
            f"a split needs at least 2 · min_documents_in_leaf = {2 * min_documents_in_leaf} documents, but there are "
            f"only {data.n_documents}: lower min_documents_in_leaf"
        )
    if _all_constant(data):
        return "every feature is constant: use features that differ between documents"
    return None


def _problem_of_labels(data: RankingData, source: str) -> str | None:
    """Return why no query has documents with different labels; None if a query has."""
    labels = data.labels[source][data.canonical_order]
    labelled = labels[~np.isnan(labels)]
    if len(labelled) == 0:
        return None
    if (labelled == labelled[0]).all():
        return f"all labels {source!r} are equal ({labelled[0]:g}): use labels that differ, or check the column"
    if data.query_sizes.max(initial=0) <= 1:
        return (
            "every query has only one document, but documents are compared within their query: "
            "give all documents of a query the same qid, or train MART on the labels"
        )
    starts = data.offsets[:-1][data.query_sizes > 0]
    lowest, highest = np.fmin.reduceat(labels, starts), np.fmax.reduceat(labels, starts)
    if not (highest > lowest).any():
        return (
            f"the labels {source!r} only differ between queries, but documents are compared within their query: "
            "check the query ids, or train MART on the labels"
        )
    return None


def _has_no_gradient(data: RankingData, objective: Objective, source: str) -> bool:
    """Return whether the objective has no λ when all scores are equal."""
    bound = objective.fixed(data).bind(data)
    shape: Any = len(data) if bound.n_outputs == 1 else (bound.n_outputs, len(data))
    lambdas = bound.gradients(np.full(shape, float(bound.base_score)))[0]
    return bool(np.abs(lambdas).max() <= NO_GRADIENT * max(1.0, float(np.nanmax(np.abs(data.labels[source])))))


def _all_constant(data: RankingData) -> bool:
    """Return whether every feature has a single value."""
    if isinstance(data, BinnedFiles):
        return data.are_all_constant
    X = data.features
    for start in range(0, X.shape[0], ROWS):
        rows, first = dense_block(X, slice(start, start + ROWS)), dense_block(X, slice(0, 1))[0]
        if not ((rows == first) | (np.isnan(rows) & np.isnan(first))).all():
            return False
    return True


# --- queries split between training and scoring

# For each estimator, the ids and sizes of its training queries. Copies, pickles and model files do not have them.
_trained: WeakKeyDictionary[Any, tuple[NDArray[Any], Ints]] = WeakKeyDictionary()


def remember_queries(ranker: Any, train: RankingData) -> None:
    """Remember the queries that an estimator was trained on."""
    _trained[ranker] = train.query_ids, np.diff(train.offsets)


def warn_if_split(ranker: Any, data: RankingData) -> None:
    """Warn if some queries of this data are in the training data with another number of documents.

    scikit-learn's `cv=3` cuts the rows into blocks, which splits the queries at the cuts. Such a query has the same id
    in training and test data. If most queries are in both, the two data sets probably just number their queries in the
    same way, so there is no warning.
    """
    ids, sizes = _trained.get(ranker, (None, None))
    if ids is None or sizes is None or ids.dtype.kind != data.query_ids.dtype.kind:
        return
    shared, in_train, in_data = np.intersect1d(ids, data.query_ids, assume_unique=True, return_indices=True)
    is_split = sizes[in_train] != np.diff(data.offsets)[in_data]
    if is_split.any() and 2 * len(shared) <= data.n_queries:
        warn(
            f"{is_split.sum()} of {data.n_queries} queries, such as {shared[is_split][0]}, were also in the training "
            "data, with other documents: the score is too high if the folds of a cross-validation split queries. "
            "Use cv=podium.QueryKFold(5), or GroupKFold with groups=qid",
            stacklevel=3,
        )
