"""λ as arrows on a ranked list ([B] fig. 1), and the pairs behind each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.plotting import draw
from podium.core.validation import require_whole
from podium.data import RankingData
from podium.data.schema import as_data
from podium.diagnostics.looking import as_objective, bind_to_look, scores_at
from podium.errors import DataError
from podium.evaluation.tables import Table
from podium.measures import Ranking
from podium.objectives import BoundObjective, Objective
from podium.objectives.single_pairs import pairs_of_document, parts_of


@dataclass(frozen=True, eq=False)
class PairsBehind:
    """The pairs whose λ_jk add up to the λ_j of one document.

    Attributes:
        objective: its name.
        rank: of the document j, from 1.
        label: of the document j.
        total: λ_j, the sum of all pairs.
        ranks, labels: of the other document k of each pair, from the top.
        score_differences: s_j − s_k.
        lambdas: λ_jk; above 0 it lifts j.

    Example:
        >>> import podium
        >>> from podium.diagnostics import lambda_arrows
        >>> data = podium.RankingData([[0.0], [1.0], [2.0]], [0, 1, 0], qid=["a", "a", "a"])
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
        """A row for each pair."""
        columns = (self.ranks, self.labels, self.score_differences, self.lambdas)
        rows = [[int(rank), *map(float, others)] for rank, *others in zip(*(c.tolist() for c in columns), strict=True)]
        return Table(["other's rank", "other's label", "score difference", "λ of the pair"], rows)

    def __str__(self) -> str:
        return str(self.table())

    def __rich__(self) -> Any:
        return self.table().__rich__()


@dataclass(frozen=True, eq=False)
class LambdaArrows:
    """The documents of one query by rank, and where each objective moves them.

    Attributes:
        query: its id.
        rows: of the documents in the data, from the top.
        labels: of the documents, NaN for none.
        scores: of the documents.
        objectives: names.
        lambdas: a row for each objective, a column for each rank; above 0 is up.

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
    _order: Ints = field(repr=False)  # the rows of the query's own data, from the top
    _iteration: int = field(repr=False)

    @property
    def ranks(self) -> Ints:
        """From 1."""
        return np.arange(1, len(self.rows) + 1)

    def pairs_behind(self, rank: int, objective: str | None = None) -> PairsBehind:
        """The pairs that make up the λ of one document.

        Args:
            rank: of the document, from 1.
            objective: one of `objectives`; the last by default.

        Returns:
            Pairs with λ_jk ≠ 0, from the top of the list.

        """
        require_whole("rank", rank, 1, most=len(self.rows))
        name = self.objectives[-1] if objective is None else objective
        if name not in self.objectives:
            raise DataError(f"objective must be one of {', '.join(map(repr, self.objectives))}, not {objective!r}")
        asked, bound = self._bound[self.objectives.index(name)]
        parts, by_row = parts_of(bound, self._iteration, asked), np.empty(len(self.rows))
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
        """A row for each document."""
        columns = [self.ranks.tolist(), self.labels.tolist(), self.scores.tolist(), *self.lambdas.tolist()]
        return Table(["rank", "label", "score", *self.objectives], [list(row) for row in zip(*columns, strict=True)])

    def __str__(self) -> str:
        return str(self.table())

    def __rich__(self) -> Any:
        return self.table().__rich__()

    def plot(self, most: int = 30) -> Any:
        """The first documents by rank, coloured by label, with an arrow for each λ and a panel for each objective."""
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
    """Where objectives move the documents of a query that a model has ranked ([B] fig. 1).

    RankNet's arrows grow with the number of wrong pairs, wherever they are; those of NDCG are at the top.

    Args:
        model: a model, an estimator, or scores of all rows.
        data: the documents.
        query: its id, one of `data.query_ids`.
        objectives: by value or text, a panel for each.
        labels: the label source that is shown.
        iteration: of boosted trees, as in `history_`: 0 is after the first tree, −1 before it. All trees by default.

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
    return arrows_of_scores(
        scores_at(model, data, iteration),
        data,
        query,
        objectives,
        labels,
        0 if iteration is None else max(iteration, 0),
    )


def arrows_of_scores(
    scores: Floats, data: RankingData, query: Any, objectives: Sequence[Objective | str], labels: str, iteration: int
) -> LambdaArrows:
    """See `lambda_arrows`: at scores of all rows, which training had after an iteration."""
    number = _query_number(data, query)
    if labels not in data.labels:
        raise DataError(f"labels: the data has no labels {labels!r}; it has {', '.join(map(repr, data.labels))}")
    if isinstance(objectives, str | Objective):
        objectives = (objectives,)
    if not objectives:
        raise DataError("objectives must name at least one, such as 'lambda(ndcg)'")
    named = [as_objective(objective, "objectives") for objective in objectives]
    of_query = data.rows(number)
    part, scores = data.take(of_query), scores[of_query]
    bound = tuple((objective, bind_to_look(objective, part, data)) for _, objective in named)
    order = Ranking(part, scores).order
    lambdas = np.array([one.gradients(scores, iteration)[0][order] for _, one in bound])
    return LambdaArrows(
        data.query_ids[number], of_query[order], part.labels[labels][order].astype(np.float64), scores[order],
        tuple(name for name, _ in named), lambdas, bound, order, iteration,
    )  # fmt: skip


def _query_number(data: RankingData, query: Any) -> int:
    for number, name in enumerate(data.query_ids.tolist()):
        if name == query:
            return number
    known = ", ".join(map(repr, data.query_ids[:3].tolist()))
    raise DataError(f"query: there is no query {query!r} in the data; its query ids are {known}, …")
