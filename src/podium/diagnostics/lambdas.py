"""λ of a model: as arrows on the documents of a query, and their shares by label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.core.sums import mean
from podium.core.validation import numbers_of, require_whole
from podium.data import RankingData
from podium.data.schema import as_data
from podium.data.subsets import number_of_query
from podium.diagnostics.watching import ByIteration, TrainingObserver, TrainingRound, by_label, classes_of_labels
from podium.errors import DataError
from podium.evaluation.tables import ShownAsTable, Table
from podium.measures import Ranking
from podium.models.base import model_of
from podium.models.rankers import scores_of
from podium.objectives import BoundObjective, Objective, describe, parse
from podium.objectives.base import require_one_output
from podium.objectives.pair_terms import BoundPairs
from podium.objectives.pairwise import BoundPreferences
from podium.objectives.sums import BoundSum


def scores_at(model: Any, data: RankingData, iteration: int | None) -> Floats:
    """Return the scores by a model, or by its trees up to an iteration (from 0, as in `history_`)."""
    if iteration is None:
        return scores_of(model, data)
    ranker = model_of(model)
    if not hasattr(ranker, "truncate"):
        raise DataError(f"iteration only applies to boosted trees, but got {ranker!r:.60}")
    require_whole("iteration", iteration, -1)
    if ranker is model:
        return scores_of(ranker.truncate((iteration + 1) * trees_per_round(ranker)), data)
    return scores_of(model.predict(data, n_trees=iteration + 1), data)


def trees_per_round(model: Any) -> int:
    """Return the number of trees per round of a model's training."""
    parts = getattr(model, "parts", None)
    return int(getattr(parts[-1] if parts else model, "trees_per_round", 1))


def as_objective(objective: Objective | str, name: str = "objective") -> tuple[str, Objective]:
    """Return an objective, given as a value or text, and its name for display."""
    if isinstance(objective, str):
        return objective, parse(objective)
    if not isinstance(objective, Objective):
        raise DataError(f"{name} must be an objective or text such as 'lambda(ndcg)', but got {objective!r}")
    try:
        return describe(objective), objective
    except DataError:  # a class that is not registered has no text
        return str(objective), objective


def bind_for_diagnosis(objective: Objective, data: RankingData, all_data: RankingData | None = None) -> BoundObjective:
    """Return an objective bound to data, to compute λ without affecting training.

    Args:
        objective: the objective.
        data: the documents.
        all_data: the data that its measures are fixed on, if `data` is a part of it.

    """
    bound = (objective.measuring(data) if all_data is None else objective.fixed(all_data)).bind(data)
    require_one_output(bound, "this diagnostic")
    if bound.state():
        raise DataError(
            f"the λ of {type(objective).__name__} at these scores are unknown, because it learns during training: pass "
            "the objective inside it"
        )
    return bound


class WeightedPairs(NamedTuple):
    """A sum over pairs that is part of an objective, and its weight."""

    weight: float
    bound: BoundPairs | BoundPreferences


def parts_of(bound: BoundObjective, iteration: int, objective: Objective) -> list[WeightedPairs]:
    """Return the sums over pairs that add up to λ; raise if the objective does not consist of such sums."""
    if isinstance(bound, BoundPairs | BoundPreferences):
        return [WeightedPairs(1.0, bound)]
    if isinstance(bound, BoundSum):
        weighted = zip(bound.weights(iteration), bound.parts, strict=True)
        inner = [(weight, parts_of(part, iteration, objective)) for weight, part in weighted if weight > 0]
        return [part._replace(weight=weight * part.weight) for weight, parts in inner for part in parts]
    raise DataError(
        f"{objective} is not a sum over pairs of documents, so its λ have no pairs: pass a pair term such as "
        "Lambda, Local, LambdaLoss or Pairwise, or tiers of them"
    )


def pairs_of_document(parts: list[WeightedPairs], scores: Floats, query: int, row: int) -> Floats:
    """Return λ_jk of a document j with every document k of its query, in the canonical order; their sum is λ_j."""
    data = parts[0].bound.data
    start, n = int(data.offsets[query]), int(data.query_sizes[query])
    slots, classes = np.where(data.canonical_order == row, 0, -1), np.full(len(data), -1)
    classes[start : start + n] = np.arange(n)
    total = np.zeros(n)
    for weight, bound in parts:
        sums = np.zeros((1, n, 2))
        bound.add_pairs(scores, slots, classes, sums)
        total += weight * bound.query_factor(scores, query) * sums[0, :, 0]
    return total


def sums_by_class(parts: list[WeightedPairs], scores: Floats, slots: Ints, classes: Ints, n_classes: int) -> Floats:
    """Return Σ_k λ_jk and Σ_k |λ_jk| of some documents j, by the class of the other document k.

    Pairs of different parts count separately. The factor of `normalize` for all pairs of a query is omitted, because
    shares do not depend on it.

    The result has the shape (documents, classes, 2). For each document in the canonical order, `slots` holds its row of
    the result, −1 for documents to leave out, and `classes` its class, −1 for none.
    """
    total = np.zeros((int(slots.max(initial=-1)) + 1, n_classes, 2))
    for weight, bound in parts:
        sums = np.zeros_like(total)
        bound.add_pairs(scores, slots, classes, sums)
        total += weight * sums
    return total


@dataclass(frozen=True, eq=False)
class PairsBehind(ShownAsTable):
    """The pairs whose λ_jk add up to the λ_j of one document.

    Attributes:
        objective: the name of the objective.
        rank: the rank of document j, from 1.
        label: the label of document j.
        total: λ_j, the sum over all pairs.
        ranks, labels: the rank and label of the other document k of each pair, by rank.
        score_differences: s_j − s_k.
        lambdas: λ_jk; positive values move j up.

    Example:
        >>> import podium
        >>> from podium.diagnostics import lambda_arrows
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], [0, 1, 0], qid=["a"] * 3)
        >>> pairs = lambda_arrows([3.0, 2.0, 1.0], data, "a").pairs_behind(2, "pairwise")
        >>> pairs.ranks.tolist(), pairs.lambdas.round(3).tolist(), round(pairs.total, 3)
        ([1, 3], [0.731, 0.269], 1.0)

    """

    objective: str
    rank: int
    label: float
    total: float
    ranks: Ints
    labels: Floats
    score_differences: Floats
    lambdas: Floats

    def table(self) -> Table:
        """Return a row for each pair."""
        columns = (self.ranks, self.labels, self.score_differences, self.lambdas)
        rows = [[int(rank), *map(float, others)] for rank, *others in zip(*(c.tolist() for c in columns), strict=True)]
        return Table(["other's rank", "other's label", "score difference", "λ of the pair"], rows)


@dataclass(frozen=True, eq=False)
class LambdaArrows(ShownAsTable):
    """The documents of one query by rank, and the directions in which objectives move them.

    Attributes:
        query: the id of the query.
        rows: the rows of the documents in the data, by rank.
        labels: the labels of the documents, NaN for unlabelled ones.
        scores: the scores of the documents.
        objectives: the names of the objectives.
        lambdas: λ, with a row for each objective and a column for each rank; positive values move a document up.

    Example:
        >>> import podium
        >>> from podium.diagnostics import lambda_arrows
        >>> data = podium.artificial(20, features=4)
        >>> arrows = lambda_arrows(podium.LambdaMART(3, 4).fit(data), data, data.query_ids[0])
        >>> arrows.objectives, arrows.lambdas.shape
        (('pairwise', 'lambda(ndcg)'), (2, 50))

    """

    query: Any
    rows: Ints
    labels: Floats
    scores: Floats
    objectives: tuple[str, ...]
    lambdas: Floats
    _bound: tuple[tuple[Objective, BoundObjective], ...] = field(repr=False)
    _order: Ints = field(repr=False)  # the rows of the query by rank
    _iteration: int = field(repr=False)

    @property
    def ranks(self) -> Ints:
        """The ranks of the documents, from 1."""
        return np.arange(1, len(self.rows) + 1)

    def pairs_behind(self, rank: int, objective: str | None = None) -> PairsBehind:
        """Return the pairs that make up the λ of one document.

        Args:
            rank: the rank of the document, from 1.
            objective: one of `objectives`; the last by default.

        Returns:
            The pairs with λ_jk ≠ 0, by rank.

        """
        require_whole("rank", rank, 1, most=len(self.rows))
        name = self.objectives[-1] if objective is None else objective
        if name not in self.objectives:
            raise DataError(f"objective must be one of {', '.join(map(repr, self.objectives))}, but got {objective!r}")
        value, bound = self._bound[self.objectives.index(name)]
        parts, by_row = parts_of(bound, self._iteration, value), np.empty(len(self.rows))
        by_row[self._order] = self.scores
        pairs = pairs_of_document(parts, by_row, 0, int(self._order[rank - 1]))
        by_row[parts[0].bound.data.canonical_order] = pairs
        lambdas = by_row[self._order]
        others = np.flatnonzero(lambdas)
        return PairsBehind(
            name, int(rank), float(self.labels[rank - 1]), float(lambdas.sum()), self.ranks[others],
            self.labels[others], self.scores[rank - 1] - self.scores[others], lambdas[others],
        )  # fmt: skip

    def table(self) -> Table:
        """Return a row for each document."""
        columns = [self.ranks.tolist(), self.labels.tolist(), self.scores.tolist(), *self.lambdas.tolist()]
        return Table(["rank", "label", "score", *self.objectives], [list(row) for row in zip(*columns, strict=True)])

    def plot(self, most: int = 30) -> Any:
        """Return a chart of the first documents by rank, with an arrow for each λ and a panel for each objective."""
        return draw("lambda_arrows", self, most)


def lambda_arrows(
    model: Any,
    data: RankingData,
    query: Any,
    objectives: Sequence[Objective | str] = ("pairwise", "lambda(ndcg)"),
    *,
    labels: str = "relevance",
    iteration: int | None = None,
) -> LambdaArrows:
    """Return the directions in which objectives move the documents of a ranked query ([B] fig. 1).

    RankNet's arrows grow with the number of misordered pairs at any rank; those of NDCG are largest at the top.

    Args:
        model: a model, an estimator, or scores of all rows.
        data: the documents.
        query: the id of a query, one of `data.query_ids`.
        objectives: the objectives, as values or text.
        labels: the label source to show.
        iteration: the iteration of boosted trees, as in `history_`: 0 is after the first tree, −1 before it. By
            default, all trees.

    Example:
        >>> import podium
        >>> from podium.diagnostics import lambda_arrows
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], [0, 1, 0], qid=["a", "a", "a"])
        >>> print(lambda_arrows([3.0, 2.0, 1.0], data, "a"))
        rank   label   score  pairwise  lambda(ndcg)
           1  0.0000  3.0000   -0.7311       -0.3015
           2  1.0000  2.0000    1.0000        0.3408
           3  0.0000  1.0000   -0.2689       -0.0393

    """
    data = as_data(data)
    scores = scores_at(model, data, iteration)
    return arrows_of_scores(scores, data, query, objectives, labels, max(iteration or 0, 0))


def arrows_of_scores(
    scores: Floats, data: RankingData, query: Any, objectives: Sequence[Objective | str], labels: str, iteration: int
) -> LambdaArrows:
    """Return the arrows for the scores of all rows; see `lambda_arrows`."""
    number = number_of_query(data, query)
    if isinstance(objectives, str | Objective):
        objectives = (objectives,)
    if not objectives:
        raise DataError("pass at least one objective, for example 'lambda(ndcg)'")
    named = [as_objective(objective, "objectives") for objective in objectives]
    of_query = data.rows(number)
    part, scores = data.take(of_query), scores[of_query]
    bound = tuple((objective, bind_for_diagnosis(objective, part, data)) for _, objective in named)
    ranking = Ranking(part, scores)
    order, ranked_labels = ranking.order, ranking.labels(labels).astype(np.float64)
    lambdas = np.array([term.gradients(scores, iteration)[0][order] for _, term in bound])
    return LambdaArrows(
        data.query_ids[number], of_query[order], ranked_labels, scores[order],
        tuple(name for name, _ in named), lambdas, bound, order, iteration,
    )  # fmt: skip


VANISHED = 1e-9  # a net λ_j below this share of Σ |λ_jk| is a rounding error of 0


@dataclass(frozen=True, eq=False)
class LambdaShares(ByIteration):
    """The shares of λ of some documents that come from documents of each label, by iteration.

    Attributes:
        iterations: the observed iterations.
        of_labels: the labels of the documents j whose λ are examined.
        labels: the distinct labels of the other documents k, ascending.
        net: Σ_k λ_jk / λ_j over the k of a label, the mean over documents j, a row for each iteration and a column for
            each label ([S] eq. 11). Documents whose λ_j vanishes are ignored; if it nearly does, shares are far below 0
            or above 1.
        absolute: Σ_k |λ_jk| over the k of a label / Σ_k |λ_jk| over all, averaged in the same way; from 0 to 1.

    Example:
        >>> import podium
        >>> from podium.diagnostics import lambda_shares
        >>> data = podium.artificial(40, features=5)
        >>> round(float(lambda_shares(data.feature(0), data, "lambda(ndcg)").absolute.sum()), 6)
        1.0

    """

    of_labels: tuple[float, ...]
    labels: Floats
    net: Floats
    absolute: Floats

    chart = "lambda_shares"

    def columns(self) -> dict[str, Floats]:
        names = [f"{label:g}" for label in self.labels]
        return {f"Σλ from {name}": self.net[:, c] for c, name in enumerate(names)} | {
            f"Σ|λ| from {name}": self.absolute[:, c] for c, name in enumerate(names)
        }


class _Shares:
    """An objective bound to data, to compute the shares of λ of documents with some labels."""

    def __init__(self, objective: Objective, data: RankingData, of_labels: tuple[float, ...], labels: str) -> None:
        self.objective, self.bound = objective, bind_for_diagnosis(objective, data)
        parts_of(self.bound, 0, objective)  # raises if the objective is not a sum over pairs
        self.labels, classes = classes_of_labels(data, labels)
        is_examined = np.isin(self.labels, of_labels)[classes] & (classes >= 0)
        if not is_examined.any():
            choices = ", ".join(f"{label:g}" for label in self.labels)
            raise DataError(
                f"of_labels: no document has a label {' or '.join(map(repr, of_labels))}; the labels are {choices}"
            )
        self.slots = np.where(is_examined, np.cumsum(is_examined) - 1, -1)
        self.classes = np.where(classes >= 0, classes, len(self.labels))  # unlabelled documents are the last class

    def of(self, scores: Floats, iteration: int) -> tuple[list[float], list[float]]:
        """Return the net and the absolute share of each label."""
        parts = parts_of(self.bound, iteration, self.objective)
        sums = sums_by_class(parts, scores, self.slots, self.classes, len(self.labels) + 1)
        net, absolute = sums[:, :, 0], sums[:, :, 1]
        all_net, all_absolute = net.sum(axis=1), absolute.sum(axis=1)
        is_nonzero = np.abs(all_net) > VANISHED * all_absolute
        shares = net[is_nonzero] / all_net[is_nonzero, None]  # [S] eq. 11
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
    """Return the shares of good documents' λ by the label of each pair's other document ([S] fig. 3(a), eq. 11).

    Args:
        model: a model, an estimator, or scores.
        data: the documents, usually the training data.
        objective: any sum over pairs, as a value or text.
        of_labels: the labels of the documents whose λ are examined.
        labels: the label source that groups both documents of a pair.
        iterations: the iterations of boosted trees, as in `history_`: 0 is after the first tree, −1 before it. By
            default, the final model.

    Returns:
        The shares, with a row for each iteration.

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
        iterations, rows = [last], [shares.of(scores_at(model, data, None), last)]
    else:
        rows = [shares.of(scores_at(model, data, k), k) for k in iterations]
    net, absolute = (np.array([row[part] for row in rows]) for part in (0, 1))
    return LambdaShares(np.array(iterations), tuple(of_labels), shares.labels, net, absolute)


class WatchLambdaShares(TrainingObserver):
    """An observer that records the shares of good training documents' λ by label ([S] fig. 3(a)).

    Its records in `history_` are `lambda_shares: net LABEL` and `lambda_shares: absolute LABEL`.

    Args:
        objective: any sum over pairs; by default the objective of training. λ are those at the scores after the round.
        of_labels: the labels of the documents whose λ are examined.
        labels: the label source that groups both documents of a pair.
        every: the number of rounds between records; see `TrainingObserver`.

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

    def _observe(self, round_: TrainingRound) -> dict[str, float]:
        shares_by_kind = self._shares.of(round_.document_scores, round_.iteration)
        return {
            f"lambda_shares: {kind} {label:g}": share
            for kind, shares in zip(("net", "absolute"), shares_by_kind, strict=True)
            for label, share in zip(self._shares.labels, shares, strict=True)
        }

    def _records(self, name: str) -> bool:
        return name.startswith("lambda_shares: ")

    def _of_columns(self, iterations: Ints, columns: dict[str, Floats]) -> LambdaShares:
        (labels, net), (_, absolute) = (by_label(columns, f"lambda_shares: {kind} ") for kind in ("net", "absolute"))
        return LambdaShares(iterations, self.of_labels, labels, net, absolute)


def objective_of(watch: Any, round_: TrainingRound) -> Objective:
    """Return the objective of an observer, else the objective of training."""
    objective: Objective | None = watch.objective or round_.objective
    if objective is None:
        raise DataError(f"this training has no objective: pass one, {type(watch).__name__}('lambda(ndcg)')")
    return objective
