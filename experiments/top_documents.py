"""Find the exact top k of each query without evaluating all trees for all documents.

Podium evaluates trees so fast that this takes five times as long as scoring all documents
(`bench/results/early_exit.md`), so it is not part of the package.

After some trees the rest of a document's score is between two bounds: the sums of the lowest and of the highest leaf of
each later tree. If the highest possible final score of a document is below the lowest possible ones of k others, it
cannot be among the top k and is dropped. The others continue. Their sums are in the order of the trees, so their scores
equal those of `predict`, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.validation import require_whole
from podium.data import RankingData, frames
from podium.data.columns import query_in_order
from podium.data.features import Features
from podium.measures.ranking import descending_order, in_descending_order
from podium.models import Ensemble

DOCUMENTS_AT_ONCE = 1 << 15  # approximate number of documents, in whole queries, to score at a time
NEXT_LOOK = 0.75  # check the bounds whenever what later trees can change has shrunk to this share …
SMALLEST_PIECE = 5  # … but at most once in this number of trees: a check takes as long as about two trees
GONE = 1 / 8  # drop documents when at least this share can be dropped, because dropping copies the others


@dataclass(frozen=True, eq=False)
class TopDocuments:
    """The top k documents of each query, the result of `top_documents`.

    Attributes:
        rows: rows of the data, query after query, each from the top.
        scores: their scores, with the same bits as those of `predict`.
        offsets: the rows of query q are `rows[offsets[q]:offsets[q + 1]]`; there are k, or all of a smaller query.
        n_evaluated: the number of evaluated trees, summed over all documents.
        n_all: documents × trees.

    Example:
        >>> import podium
        >>> data = podium.artificial(20, features=4)
        >>> model = podium.LambdaMART(n_trees=30, n_leaves=4).fit(data).model_
        >>> top = top_documents(model, data, 3)
        >>> top.rows.shape, top.of_query(0)[1].shape, top.n_evaluated <= top.n_all
        ((60,), (3,), True)

    """

    rows: Ints
    scores: Floats
    offsets: Ints
    n_evaluated: int
    n_all: int

    def __repr__(self) -> str:
        found = f"{len(self.rows)} documents of {len(self.offsets) - 1} queries"
        return f"TopDocuments({found}, {self.share_evaluated:.1%} of the trees evaluated)"

    def of_query(self, query: int) -> tuple[Ints, Floats]:
        """Return the rows of one query's top k, from the top, and their scores."""
        entries = slice(self.offsets[query], self.offsets[query + 1])
        return self.rows[entries], self.scores[entries]

    @property
    def share_evaluated(self) -> float:
        """The share of documents × trees that was evaluated; 1 if there is nothing to evaluate."""
        return self.n_evaluated / self.n_all if self.n_all else 1.0


@dataclass(frozen=True)
class Piece:
    """Consecutive trees of an ensemble, and what the trees after them can add to a score.

    Attributes:
        trees: these trees, as an ensemble.
        lowest, highest: the sums of the lowest and of the highest leaf of each later tree.
        largest: the sum of the largest |leaf| of each.
        slack: how far rounding may move a score beyond these bounds, as a share of |score| + `largest`.

    """

    trees: Ensemble
    lowest: float
    highest: float
    largest: float
    slack: float

    def bounds(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the lowest and the highest final score that documents with these scores so far can reach.

        Why they hold, with u = 2^-53 (a sum or product x is rounded by at most u |x|), m later trees of leaves v, and
        B = |score| + Σ max |v|. Adding the v one by one ends within m u B / (1 − m u) of score + Σ v (Higham, Accuracy
        and Stability, §4.2). `highest` and `largest` are sums rounded once: within u B of the true ones. score +
        highest is rounded by little more than u B at most, and so is adding the slack. So a slack of
        (m u / (1 − m u) + 3.01 u) B is enough. It is 2 (m + 4) u times |score| + `largest`, as rounded at least
        1.9 (m + 4) u B, and m u is tiny. If the product is so small that it is rounded by 2^-1075 instead, the factor
        of 2 is also sufficient: sums below 2^-1021 are exact, so a slack that is needed at all is above
        4 u 2^-1021 = 2^-1072. The lowest final score is the mirror image.
        """
        slack = (np.abs(scores) + self.largest) * self.slack
        return (scores + self.lowest) - slack, (scores + self.highest) + slack


def pieces_of(ensemble: Ensemble) -> tuple[Piece, ...]:
    """Split an ensemble into pieces after which it may pay to check the bounds.

    Documents can be dropped when the possible change by later trees is about as large as the differences between
    scores. Trees that change little may come early or late, so pieces depend on that change and not on the number of
    trees.
    """
    n_trees, first_leaves = ensemble.n_trees, ensemble.arrays["leaf_offsets"][:-1]
    if not n_trees:
        return ()
    values = ensemble.arrays["leaf_value"]
    lowest, highest = np.minimum.reduceat(values, first_leaves), np.maximum.reduceat(values, first_leaves)
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    ends = [*_ends(highest - lowest), n_trees]
    return tuple(
        Piece(
            trees,
            lowest=math.fsum(lowest[end:]),
            highest=math.fsum(highest[end:]),
            largest=math.fsum(largest[end:]),
            slack=2 * (n_trees - end + 4) * 2**-53,
        )
        for trees, end in zip(ensemble.cut(*ends[:-1]), ends, strict=True)
    )


def _ends(changes: Floats) -> Iterator[int]:
    """Yield after how many trees to check the bounds, from how much each tree can change a score; without the end."""
    rest = np.cumsum(changes[::-1])[::-1]  # by tree t and those after it
    last, limit = 0, NEXT_LOOK * rest[0]
    for end in range(SMALLEST_PIECE, len(rest)):
        if rest[end] <= limit and end - last >= SMALLEST_PIECE:
            yield end
            last, limit = end, NEXT_LOOK * rest[end]


def top_documents(
    ensemble: Ensemble, X: Any, k: int = 10, *, extra: str = "ignore", n_threads: int | None = None
) -> TopDocuments:
    """Return the k documents of each query with the highest scores, as `predict` and a sort would find them.

    Args:
        ensemble: the trees.
        X: `RankingData`, a frame with a column of queries, or the rows of one query in any form that `predict` takes.
        k: documents per query.
        extra, n_threads: as in `predict`.

    """
    require_whole("k", k, 1)
    if frames.is_frame(X) and frames.has_queries(X):
        X = RankingData(X)
    if isinstance(X, RankingData):
        ensemble._require_same_reading(X)
    features = ensemble.schema.rows(X, extra)
    n = int(features.shape[0])
    order, offsets = (X.order, X.offsets) if isinstance(X, RankingData) else (np.arange(n), np.array([0, n]))
    pieces = pieces_of(ensemble)
    is_grouped = np.array_equal(order, np.arange(n))
    rows, scores, n_evaluated = [np.empty(0, np.int64)], [np.empty(0)], 0
    for queries in _blocks(offsets):
        documents = slice(queries[0], queries[-1])
        block = features[documents] if is_grouped else features[order[documents]]
        places, ends, evaluated = _top_of_block(pieces, block, queries - queries[0], k, n_threads)
        rows.append(order[documents][places])
        scores.append(ends)
        n_evaluated += evaluated
    found = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.minimum(np.diff(offsets), k))])
    return TopDocuments(np.concatenate(rows), np.concatenate(scores), found, n_evaluated, n * ensemble.n_trees)


def _blocks(offsets: Ints) -> Iterator[Ints]:
    """Yield the offsets of consecutive queries, with about `DOCUMENTS_AT_ONCE` documents at a time."""
    first, n_queries = 0, len(offsets) - 1
    while first < n_queries:
        last = int(np.searchsorted(offsets, offsets[first] + DOCUMENTS_AT_ONCE, "right")) - 1
        last = min(max(last, first + 1), n_queries)
        yield offsets[first : last + 1]
        first = last


def _top_of_block(
    pieces: tuple[Piece, ...], features: Features, offsets: Ints, k: int, n_threads: int | None
) -> tuple[Ints, Floats, int]:
    """Return the top k of some queries: places among the block's documents, scores, and the trees evaluated."""
    places, scores = np.arange(features.shape[0]), np.zeros(features.shape[0])
    n_evaluated = 0
    for number, piece in enumerate(pieces, 1):
        piece.trees.add_scores(features, scores, 0, piece.trees.n_trees, n_threads)
        n_evaluated += len(scores) * piece.trees.n_trees
        if number == len(pieces):
            break
        lowest, highest = piece.bounds(scores)
        stays = highest >= _kth_best(lowest, offsets, k, n_threads)[query_in_order(offsets)]
        if np.count_nonzero(stays) <= (1 - GONE) * len(stays):
            features, places, scores = features[stays], places[stays], scores[stays]
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(stays)])[offsets]
    ranked = descending_order(scores, offsets, n_threads)
    rank = np.arange(len(ranked)) - offsets[:-1][query_in_order(offsets)]
    top = ranked[rank < k]
    return places[top], scores[top], n_evaluated


def _kth_best(values: Floats, offsets: Ints, k: int, n_threads: int | None) -> Floats:
    """Return the k-th highest value of each query; −inf if it has fewer."""
    ranked = in_descending_order(values, offsets, n_threads)
    has_k = np.diff(offsets) >= k
    best = np.full(len(has_k), -np.inf)
    best[has_k] = ranked[offsets[:-1][has_k] + k - 1]
    return best
