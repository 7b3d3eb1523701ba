"""PRank: weights and ordered thresholds, learnt one document at a time (Crammer and Singer 2001)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from podium.core import hyperparameters as h
from podium.core.array_types import Float32s, Floats, Ints
from podium.core.compiling import kernel
from podium.core.interrupts import between_steps
from podium.core.observing import Observations, Observer
from podium.core.parameters import settings
from podium.core.progress import progress
from podium.data import RankingData
from podium.data.canonical import ContentRandom
from podium.data.schema import Schema
from podium.data.sparse import frozen_block
from podium.errors import DataError
from podium.linear.descent import History, LinearStep
from podium.linear.design import CHUNK, DesignMatrix
from podium.measures import Graded, Measure, as_selection, warn_of_powers
from podium.models import OrdinalModel
from podium.models.base import checked_sets, require_numbers

MAX_LABELS = 1000  # each document is compared with a threshold for each label
MAX_TIMES = 2**31  # a document is shown less often than this in a pass


class ShownDocuments:
    """Documents with labels, and how often to show each in a pass.

    Args:
        data: the documents.
        classes: all possible labels; by default those that occur.

    Attributes:
        classes: the labels, ascending.
        ranks: the index of each document's label in `classes`.
        times: how often to show each document; 0 for those without a label.

    """

    def __init__(self, data: RankingData, classes: ArrayLike | None = None) -> None:
        require_numbers(data, "PRank")
        self.data, labels = data, data.relevance.astype(np.float64)
        self.times = np.where(np.isnan(labels), 0, _whole_weights(data)).astype(np.int64)
        if not self.times.any():
            raise DataError("PRank needs labels: no document with a weight above 0 has one")
        self.classes = _as_classes(labels[self.times > 0] if classes is None else classes)
        self.ranks = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        unexpected = labels[(self.times > 0) & (self.classes[self.ranks] != labels)]
        if len(unexpected):
            classes_as_text = ", ".join(f"{label:g}" for label in self.classes[:20])
            raise DataError(
                f"the label {unexpected[0]:g} is not among the classes ({classes_as_text}): pass all of them in the "
                "first call, classes=[…]"
            )


class Perceptron:
    """The state of PRank.

    A document with the standardized features z gets the rank min {r : w·z < b_r}. If that is not the rank of its label,
    each threshold with w·z on its wrong side moves by 1, and w moves by z for each of them (Crammer and Singer 2001,
    fig. 2).

    Attributes:
        classes: the labels, ascending.
        means, scales: z = (x − means) · scales; a missing or infinite value counts as the mean.
        weights, thresholds: w and b after the last document; b holds ascending (their lemma 1) whole numbers.
        late_weights, late_thresholds: the sums of all changes, each times the number of documents before it; the mean
            of w over all documents is w − late_weights / n_seen.
        n_seen: the number of documents shown so far, counting repetitions.

    """

    def __init__(self, classes: Floats, means: Floats, scales: Floats) -> None:
        self.classes, self.means, self.scales = classes, means, scales
        self.weights, self.late_weights = np.zeros(len(means)), np.zeros(len(means))
        self.thresholds, self.late_thresholds = np.zeros(len(classes) - 1), np.zeros(len(classes) - 1)
        self.n_seen = 0

    @classmethod
    def before(cls, classes: Floats, design: DesignMatrix) -> Perceptron:
        """Return an untrained perceptron for features standardized as in the design; constant ones are not scaled."""
        return cls(classes, design.means, np.where(design.scales > 0, design.scales, 1.0))

    def learn(self, documents: ShownDocuments, order: Ints) -> int:
        """Learn from documents one by one; return Σ |rank − rank of the label|, with ranks from before the updates."""
        loss = 0
        for start in range(0, len(order), CHUNK):
            rows = order[start : start + CHUNK]
            chunk_loss, self.n_seen = learn_in_turn(
                frozen_block(documents.data.features, rows), documents.ranks[rows], documents.times[rows], self.means,
                self.scales, self.weights, self.thresholds, self.late_weights, self.late_thresholds, self.n_seen,
            )  # fmt: skip
            loss += chunk_loss
        return loss

    def solution(self, averaged: bool) -> tuple[Floats, Floats]:
        """Return weights and thresholds after the last document, or their means over all documents."""
        if not averaged or not self.n_seen:
            return self.weights.copy(), self.thresholds.copy()
        thresholds = self.thresholds - self.late_thresholds / self.n_seen
        return self.weights - self.late_weights / self.n_seen, np.maximum.accumulate(thresholds)  # undoes rounding

    def model(self, schema: Schema, averaged: bool) -> OrdinalModel:
        """Return the model for raw features."""
        weights, thresholds = self.solution(averaged)
        return OrdinalModel(
            weights * self.scales, self.means, 0.0, schema.names, encoding=schema.encoding, classes=self.classes,
            thresholds=thresholds,
        )  # fmt: skip


@dataclass(frozen=True)
class PRankResult:
    """The result of PRank's training.

    Attributes:
        model: the model after the best pass.
        history: the mean rank loss during each pass, and the means after it, keyed by `set/measure`.
        best_iteration: the best pass, if there was validation data.
        perceptron: the state, to continue training.

    Example:
        >>> import podium
        >>> from podium.linear import PRankTraining
        >>> result = PRankTraining(epochs=2).fit(podium.artificial(10, features=3))
        >>> result.model.weights.shape
        (3,)

    """

    model: OrdinalModel
    history: dict[str, list[float]]
    best_iteration: int | None
    perceptron: Perceptron


@settings
class PRankTraining:
    """The settings of PRank's training.

    Each pass shows the documents in a new random order, which depends on content and seed.

    Args:
        selection: the measure, or graded measures, that picks the pass if there is validation data.
        seed: the seed of the order of documents.
        watched: measures to record in the history in addition to those of the selection.

    Example:
        >>> import podium
        >>> from podium.linear import PRankTraining
        >>> result = PRankTraining(epochs=2).fit(podium.artificial(20, features=4))
        >>> len(result.model.thresholds), len(result.history["train/rank_loss"])
        (4, 2)

    """

    epochs: int = h.PASSES()
    averaged: bool = h.AVERAGED()
    selection: Measure | Graded | str = h.STOPPING_MEASURE.default
    patience: int | None = h.PATIENCE()
    seed: int = h.RANDOM_STATE()
    n_threads: int | None = h.N_THREADS()
    watched: tuple[Measure, ...] = ()
    verbose: int | None = h.VERBOSE()

    def fit(
        self, train: RankingData, valid: Mapping[str, RankingData] | None = None, observers: Sequence[Observer] = ()
    ) -> PRankResult:
        """Train; the first validation set decides when to stop, and which pass gives the model."""
        sets, schema = checked_sets(train, valid), Schema.of(train)
        warn_of_powers(as_selection(self.selection).measures if sets else (), train, *sets.values())
        documents, design = ShownDocuments(train), DesignMatrix(train, self.n_threads)
        random, perceptron = ContentRandom(train), Perceptron.before(documents.classes, design)
        history, losses, best = History(self.selection, self.watched, train, sets), list[float](), perceptron
        observations = Observations()
        with progress("ranking", self.epochs, verbose=self.verbose, unit="passes") as advance, between_steps() as check:
            for epoch in range(self.epochs):
                check()
                numbers = random.of_documents(f"{self.seed}/{epoch}/prank")[design.order]
                order = design.order[np.argsort(numbers, kind="stable")]
                losses.append(perceptron.learn(documents, order) / int(documents.times.sum()))
                model = perceptron.model(schema, self.averaged)
                means = {"train/rank_loss": losses[-1]} | history.add(model)
                if history.best in (None, epoch):
                    best = deepcopy(perceptron)
                if observers:
                    weights, scores = perceptron.solution(self.averaged)[0], model._predict_rows(train.features)
                    step = LinearStep(epoch, weights, means, history.best, train, None, scores)
                    observations.record(observers, step)
                advance(1, ", ".join(f"{key} {mean:.4f}" for key, mean in means.items()))
                if self.patience is not None and history.best is not None and epoch - history.best >= self.patience:
                    break
        model = best.model(schema, self.averaged).with_info(measures=[str(m) for m in history.measures.values()])
        whole_history = {"train/rank_loss": losses} | history.values | observations.columns(len(losses))
        return PRankResult(model, whole_history, history.best, best)


def _whole_weights(data: RankingData) -> Floats:
    """Return how often to show each document; raise for fractions, because thresholds must move by whole steps."""
    weights = np.ones(len(data)) if data.document_weights is None else data.document_weights.astype(np.float64)
    if data.query_weights is not None:
        weights = weights * data.query_weight_of_row
    invalid = weights[(weights != np.rint(weights)) | (weights >= MAX_TIMES)]
    if len(invalid):
        raise DataError(
            "PRank shows a document as often as its weight says, so weights must be whole numbers below 2^31, but one "
            f"is {invalid[0]:g}: multiply and round them, or omit them"
        )
    return weights


def _as_classes(labels: ArrayLike) -> Floats:
    """Return the distinct labels, ascending; raise for values that cannot be labels."""
    try:
        classes = np.unique(np.asarray(labels, np.float64).astype(np.float32)).astype(np.float64)  # like labels
    except (TypeError, ValueError):
        raise DataError(f"classes must be the possible labels, as numbers, not {labels!r}") from None
    if not 1 <= len(classes) <= MAX_LABELS or not np.isfinite(classes).all():
        raise DataError(
            f"PRank supports up to {MAX_LABELS} different labels, but got {len(classes)}: round them, or use MART for "
            "continuous labels"
        )
    return classes


# --- kernels


@kernel
def learn_in_turn(
    features: Float32s, ranks: Ints, times: Ints, means: Floats, scales: Floats, weights: Floats,
    thresholds: Floats, late_weights: Floats, late_thresholds: Floats, n_seen: int,
) -> tuple[int, int]:  # fmt: skip
    """Update PRank for documents in order (fig. 2); return the sum of rank losses, and the number shown so far."""
    loss, z = 0, np.empty(len(weights))
    for row in range(len(ranks)):
        label = ranks[row]
        for k in range(len(weights)):
            value = (np.float64(features[row, k]) - means[k]) * scales[k]
            z[k] = value if np.isfinite(value) else 0.0
        for _ in range(times[row]):
            score = 0.0
            for k in range(len(weights)):
                score += weights[k] * z[k]
            rank = 0
            while rank < len(thresholds) and score >= thresholds[rank]:
                rank += 1
            if rank != label:
                loss += abs(rank - label)
                steps = 0
                for r in range(len(thresholds)):
                    side = 1 if label > r else -1  # y_r
                    if (score - thresholds[r]) * side <= 0.0:  # then τ_r = y_r
                        steps += side
                        thresholds[r] -= side
                        late_thresholds[r] -= np.float64(side) * n_seen
                for k in range(len(weights)):
                    change = steps * z[k]
                    weights[k] += change
                    late_weights[k] += change * n_seen
            n_seen += 1
    return loss, n_seen
