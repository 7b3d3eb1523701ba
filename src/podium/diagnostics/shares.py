"""Whose documents push the good ones: shares of λ by the label of the other document ([S] fig. 3(a), eq. 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.core.sums import mean
from podium.core.validation import numbers_of
from podium.data import RankingData
from podium.data.schema import as_data
from podium.diagnostics.looking import as_objective, bind_to_look, scores_at
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound, classes_of_labels, labels_in
from podium.errors import DataError
from podium.models.base import model_of
from podium.objectives import Objective
from podium.objectives.single_pairs import parts_of, sums_by_class

VANISHED = 1e-9  # of Σ |λ_jk|: a net λ_j below is the rounding of 0


@dataclass(frozen=True, eq=False)
class LambdaShares(ByIteration):
    """How much of the λ of some documents comes from documents of each label, by iteration.

    Attributes:
        iterations: that were looked at.
        of_labels: the labels of the documents j whose λ this is about.
        labels: the distinct labels of the other documents k, ascending.
        net: Σ_k λ_jk / λ_j over the k of a label, the mean over documents j, a row for each iteration and a column for
            each label ([S] eq. 11). Documents whose λ_j vanishes are left out; where it nearly does, shares are far
            below 0 or above 1.
        absolute: Σ_k |λ_jk| over the k of a label / Σ_k |λ_jk| over all, likewise: from 0 to 1.

    Example:
        >>> import podium
        >>> from podium.diagnostics import lambda_shares
        >>> data = podium.artificial(40, features=5)
        >>> shares = lambda_shares(podium.LambdaMART(5, 4).fit(data), data, "lambda(ndcg)")
        >>> shares.absolute.shape, round(float(shares.absolute.sum()), 6)
        ((1, 5), 1.0)

    """

    of_labels: tuple[float, ...]
    labels: Floats
    net: Floats
    absolute: Floats

    def columns(self) -> dict[str, Floats]:
        """Both shares of each label."""
        names = [f"{label:g}" for label in self.labels]
        return {f"Σλ from {name}": self.net[:, c] for c, name in enumerate(names)} | {
            f"Σ|λ| from {name}": self.absolute[:, c] for c, name in enumerate(names)
        }

    def plot(self) -> Any:
        """The shares by iteration, both ways side by side."""
        return draw("lambda_shares", self)


class _Shares:
    """An objective on some data, ready to take the λ of documents with some labels apart."""

    def __init__(self, objective: Objective, data: RankingData, of_labels: tuple[float, ...], labels: str) -> None:
        self.objective, self.bound = objective, bind_to_look(objective, data)
        parts_of(self.bound, 0, objective)  # refuses what is no sum over pairs
        self.labels, classes = classes_of_labels(data, labels)
        chosen = np.isin(self.labels, of_labels)[classes] & (classes >= 0)
        if not chosen.any():
            known = ", ".join(f"{label:g}" for label in self.labels)
            raise DataError(
                f"of_labels: no document has a label {' or '.join(map(repr, of_labels))}; there are {known}"
            )
        self.slots = np.where(chosen, np.cumsum(chosen) - 1, -1)
        self.classes = np.where(classes >= 0, classes, len(self.labels))  # the last class: without a label

    def of(self, scores: Floats, iteration: int) -> tuple[list[float], list[float]]:
        """The net and the absolute share of each label."""
        parts = parts_of(self.bound, iteration, self.objective)
        sums = sums_by_class(parts, scores, self.slots, self.classes, len(self.labels) + 1)
        net, absolute = sums[:, :, 0], sums[:, :, 1]
        all_net, all_absolute = net.sum(axis=1), absolute.sum(axis=1)
        is_known = np.abs(all_net) > VANISHED * all_absolute
        shares = net[is_known] / all_net[is_known, None]  # [S] eq. 11
        absolute_shares = absolute[all_absolute > 0] / all_absolute[all_absolute > 0, None]
        columns = range(len(self.labels))
        return [mean(shares[:, c]) for c in columns], [mean(absolute_shares[:, c]) for c in columns]


def lambda_shares(
    model: Any,
    data: RankingData,
    objective: Objective | str = "lambda(ndcg)",
    *,
    of_labels: Sequence[float] = (3, 4),
    labels: str = "relevance",
    iterations: Sequence[int] | None = None,
) -> LambdaShares:
    """Take the λ of good documents apart by the label of the other document of each pair ([S] fig. 3(a), eq. 11).

    Args:
        model: a model, an estimator, or scores.
        data: the documents, mostly the training data.
        objective: any sum over pairs, by value or text.
        of_labels: the labels of the documents whose λ is taken apart.
        labels: the label source by which both documents are told apart.
        iterations: of boosted trees, as in `history_`: 0 is after the first tree, −1 before it. By default the model
            as it is.

    Returns:
        The shares, a row for each iteration.

    Example:
        >>> import podium
        >>> from podium.diagnostics import lambda_shares
        >>> data = podium.artificial(40, features=5)
        >>> model = podium.LambdaMART(5, 4).fit(data)
        >>> lambda_shares(model, data, iterations=[0, 4]).iterations.tolist()
        [0, 4]

    """
    data = as_data(data)
    shares = _Shares(as_objective(objective)[1], data, numbers_of("of_labels", of_labels), labels)
    if iterations is None:
        last = int(getattr(model_of(model), "n_trees", 1)) - 1
        seen = [(last, shares.of(scores_at(model, data, None), last))]
    else:
        seen = [(k, shares.of(scores_at(model, data, k), k)) for k in iterations]
    net, absolute = (np.array([rows[part] for _, rows in seen]) for part in (0, 1))
    return LambdaShares(np.array([k for k, _ in seen]), tuple(of_labels), shares.labels, net, absolute)


class WatchLambdaShares(TrainingObserver):
    """Takes the λ of good training documents apart, round by round ([S] fig. 3(a)).

    In `history_`: `lambda_shares: net LABEL` and `lambda_shares: absolute LABEL`.

    Args:
        objective: any sum over pairs; what is trained on by default. λ are those at the scores after the round.
        of_labels: the labels of the documents whose λ is taken apart.
        labels: the label source by which both documents are told apart.
        every: look at every so-manieth round; see `TrainingObserver`.

    Example:
        >>> import podium
        >>> from podium.diagnostics import WatchLambdaShares
        >>> watch = WatchLambdaShares(every=2)
        >>> model = podium.LambdaMART(5, 4).fit(podium.artificial(40, features=5), observers=[watch])
        >>> watch.result().iterations.tolist()
        [0, 2, 4]

    """

    usual = 50
    usual_elsewhere = 20

    def __init__(
        self, objective: Objective | str | None = None, *, of_labels: Sequence[float] = (3, 4),
        labels: str = "relevance", every: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(every)
        self.objective = None if objective is None else as_objective(objective)[1]
        self.of_labels, self.labels = numbers_of("of_labels", of_labels), labels

    def _begin(self, round_: TrainingRound) -> None:
        self._shares = _Shares(objective_of(self, round_), round_.data, self.of_labels, self.labels)

    def _look(self, round_: TrainingRound) -> dict[str, float]:
        both = self._shares.of(round_.document_scores, round_.iteration)
        return {
            f"lambda_shares: {kind} {label:g}": share
            for kind, shares in zip(("net", "absolute"), both, strict=True)
            for label, share in zip(self._shares.labels, shares, strict=True)
        }

    def _is_mine(self, name: str) -> bool:
        return name.startswith("lambda_shares: ")

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> LambdaShares:
        labels = labels_in(columns, "lambda_shares: net ")
        net, absolute = (
            np.column_stack([columns[f"lambda_shares: {kind} {label:g}"] for label in labels])
            for kind in ("net", "absolute")
        )
        return LambdaShares(iterations, self.of_labels, labels, net, absolute)


def objective_of(watch: Any, round_: TrainingRound) -> Objective:
    """The objective that an observer looks at: its own, or what is trained on."""
    objective: Objective | None = watch.objective or round_.objective
    if objective is None:
        raise DataError(f"this training has no objective: give one, {type(watch).__name__}('lambda(ndcg)')")
    return objective
