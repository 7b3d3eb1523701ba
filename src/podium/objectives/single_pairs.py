"""λ of single pairs, for diagnostics; the pair kernel only computes their sums.

The formulas are those of `pair_rows`, computed pair by pair in double precision for some documents only.
`tests/references/objectives.py` has a slow reference of both.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Float32s, Floats, Int, Ints
from podium.core.compiling import helper, kernel
from podium.errors import DataError
from podium.measures import Ranking
from podium.measures.families import BY_SWAPS, LookupTables
from podium.measures.ranking import for_queries
from podium.objectives.base import BoundObjective, Objective
from podium.objectives.links import link_number
from podium.objectives.pair_costs import (
    NO_DELTAS,
    SCORE,
    PairDocument,
    document_at,
    fill_deltas,
    fill_ranks,
    pair_weight,
    rank_scratch,
    sort_query,
)
from podium.objectives.pair_layout import PairDocuments
from podium.objectives.pair_rows import GAP_OFFSET, PairSettings
from podium.objectives.pair_terms import BoundPairs
from podium.objectives.pairwise import BoundPreferences
from podium.objectives.sums import BoundSum


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
    rows = data.canonical_order[data.offsets[query] : data.offsets[query + 1]]
    place = int(np.flatnonzero(rows == row)[0])
    total = np.zeros(len(rows))
    for part in parts:
        if isinstance(part.bound, BoundPreferences):
            of_rows = np.zeros(len(data))
            i, j, lambdas = part.bound.pair_lambdas(scores)
            np.add.at(of_rows, j[i == row], lambdas[i == row])
            np.subtract.at(of_rows, i[j == row], lambdas[j == row])
            total += part.weight * of_rows[rows]
        else:
            total += part.weight * _pairs_of_place(part, scores, query, place)
    return total


def _pairs_of_place(part: WeightedPairs, scores: Floats, query: int, place: int) -> Floats:
    bound = part.bound
    assert isinstance(bound, BoundPairs)
    start, n = int(bound.data.offsets[query]), int(bound.data.query_sizes[query])
    slots, classes = np.full(len(bound.data), -1), np.full(len(bound.data), -1)
    slots[start + place], classes[start : start + n] = 0, np.arange(n)
    sums = np.zeros((1, n, 2))
    _sum_pairs(part, scores, query, query + 1, slots, classes, sums)
    lambdas: Floats = sums[0, :, 0]
    if not bound.term.normalize:
        return lambdas
    slots[start : start + n], classes[start : start + n] = 0, 0
    sums = np.zeros((1, 1, 2))  # Λ is a sum over both documents of all pairs, without the weight of the query
    _sum_pairs(part, scores, query, query + 1, slots, classes, sums)
    total = float(sums[0, 0, 1]) / max(float(bound.documents.query_weights[query]), 1e-300)
    return lambdas * (math.log2(1 + total) / total) if total > 0 else lambdas


def sums_by_class(parts: list[WeightedPairs], scores: Floats, slots: Ints, classes: Ints, n_classes: int) -> Floats:
    """Return Σ_k λ_jk and Σ_k |λ_jk| of some documents j, by the class of the other document k.

    Pairs of different parts count separately. The factor of `normalize` for all pairs of a query is omitted, because
    shares do not depend on it.

    The result has the shape (documents, classes, 2). For each document in the canonical order, `slots` holds its row of
    the result, −1 for documents to leave out, and `classes` its class, −1 for none.
    """
    total = np.zeros((int(slots.max(initial=-1)) + 1, n_classes, 2))
    for part in parts:
        sums = np.zeros_like(total)
        if isinstance(part.bound, BoundPreferences):
            _sum_preferences(part, scores, slots, classes, sums)
        elif part.bound.tables.family == BY_SWAPS:
            for q in range(part.bound.data.n_queries):
                _sum_pairs(part, scores, q, q + 1, slots, classes, sums)
        else:

            def work(_: Ints, queries: slice, part: WeightedPairs = part, sums: Floats = sums) -> None:
                _sum_pairs(part, scores, queries.start, queries.stop, slots, classes, sums)  # no thread shares a sum

            for_queries(part.bound.data.offsets, work, amount=float(part.bound.shares.work.sum()))
        total += part.weight * sums
    return total


def _sum_preferences(part: WeightedPairs, scores: Floats, slots: Ints, classes: Ints, sums: Floats) -> None:
    assert isinstance(part.bound, BoundPreferences)
    data = part.bound.data
    place = np.empty(len(data), np.int64)
    place[data.canonical_order] = np.arange(len(data))
    i, j, lambdas = part.bound.pair_lambdas(scores)
    for rows, others, pushes in ((i, j, lambdas), (j, i, -lambdas)):
        slot, kind = slots[place[rows]], classes[place[others]]
        counts = (slot >= 0) & (kind >= 0)
        cells = np.ravel_multi_index((slot[counts], kind[counts]), sums.shape[:2])
        for which, values in enumerate((pushes[counts], np.abs(pushes[counts]))):
            sums[:, :, which] += np.bincount(cells, values, sums[:, :, which].size).reshape(sums.shape[:2])


def _sum_pairs(
    part: WeightedPairs, scores: Floats, first: int, last: int, slots: Ints, classes: Ints, sums: Floats
) -> None:
    bound = part.bound
    assert isinstance(bound, BoundPairs)
    deltas = NO_DELTAS
    if bound.tables.family == BY_SWAPS:
        assert bound.measure is not None
        ranking = Ranking(bound.data, scores)
        start, end = bound.data.offsets[first], bound.data.offsets[first + 1]
        deltas = np.abs(bound.measure.swaps(ranking.labels(bound.measure.labels)[start:end].astype(np.float64)))
    add_pairs(
        bound.documents, bound.tables, bound.settings, bound.known_extras, first, last, bound.n_rows, scores, deltas,
        slots, classes, sums,
    )  # fmt: skip


# --- compiled


@helper
def _pair_lambda(
    upper: PairDocument, lower: PairDocument, delta: float, settings: PairSettings, normalize: bool
) -> Any:
    """Return λ of a pair, which moves the upper document up if positive; 0 if the two are not a pair."""
    weight = pair_weight(upper, lower, delta, settings)
    if weight == 0.0:
        return 0.0
    gap = upper.score - lower.score
    if normalize:
        weight /= GAP_OFFSET + abs(gap)
    sign = 1.0 if upper.label > lower.label else -1.0
    gradient, _ = link_number(settings.link, settings.parameter, sign * settings.sigma * gap)
    return sign * settings.sigma * weight * gradient


@helper
def _add(slot: Int, kind: Int, push: float, sums: Floats) -> None:
    if slot >= 0 and kind >= 0:
        sums[slot, kind, 0] += push
        sums[slot, kind, 1] += abs(push)


@kernel
def add_pairs(
    documents: PairDocuments, tables: LookupTables, settings: PairSettings, extras: Float32s, first: Int, last: Int,
    n_rows: Int, scores: Floats, deltas: Floats, slots: Ints, classes: Ints, sums: Floats,
) -> None:  # fmt: skip
    """Add λ_jk and |λ_jk| of the pairs of some documents j to sums[slot of j, class of k].

    Args:
        documents, tables, settings: as in the pair kernel; `documents.ranked` is updated.
        extras: groups and trusts; without documents if there are none.
        first, last: the range of queries.
        n_rows: the number of top ranks whose documents may be the upper document of a pair.
        scores: by row.
        deltas: for measures without a family, |ΔZ| of all pairs of ranks of the one query.
        slots: the index of each document's sums, in the canonical order, −1 for documents to leave out.
        classes: the class of each document in the canonical order, −1 for none.
        sums: the sums to add to.

    """
    scratch = rank_scratch(documents, first, last)
    chosen, ranks, row = np.empty(len(scratch.row), np.int64), scratch.ranks, scratch.row
    for q in range(first, last):
        start, n, norm = documents.offsets[q], documents.offsets[q + 1] - documents.offsets[q], tables.norms[q]
        ranked = documents.ranked[start : start + n]
        if not norm > 0.0 or n < 2:
            continue
        sort_query(start, n, ranked, documents, scores, scratch)
        n_chosen = 0
        for r in range(n):
            if slots[start + ranked[r]] >= 0:
                chosen[n_chosen] = r
                n_chosen += 1
        if n_chosen == 0:
            continue
        fill_ranks(start, ranked, documents, tables, extras, scratch)
        normalize = settings.normalize and ranks[SCORE, 0] > ranks[SCORE, n - 1]
        weight, at = documents.query_weights[q], 0
        for i in range(min(n, tables.depth, n_rows)):
            slot, kind = slots[start + ranked[i]], classes[start + ranked[i]]
            while at < n_chosen and chosen[at] <= i:
                at += 1
            if slot < 0 and at == n_chosen:
                break
            fill_deltas(i, n, 0, norm, tables, deltas, scratch)
            upper = document_at(ranks, i)
            for k in range(n - 1 - i if slot >= 0 else n_chosen - at):  # with all below, or with the chosen ones
                j = i + 1 + k if slot >= 0 else chosen[at + k]
                push = weight * _pair_lambda(upper, document_at(ranks, j), row[j], settings, normalize)
                if push != 0.0:
                    other = start + ranked[j]
                    _add(slot, classes[other], push, sums)
                    _add(slots[other], kind, -push, sums)
