"""The documents of a query by rank, brought up to date from round to round."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.array_types import Floats, Int32s
from podium.core.compiling import helper
from podium.core.intrinsics import not_inlined
from podium.core.sorting import sort_with_items

U: Any = np.uintp  # an index that cannot be negative needs no check for it


@helper
def sort_ranked(scores: Floats, places: Int32s, spare_scores: Floats, spare_places: Int32s) -> None:
    """Sort by descending score, equal scores by ascending place.

    From one round to the next few documents change ranks, and inserting those costs little. Where it would cost more
    than sorting, they are put back in the order of places and sorted.
    """
    n = len(scores)
    moves, most = 0, 6 * n
    for r in range(1, n):
        if scores[U(r - 1)] > scores[U(r)]:
            continue
        score, place = scores[U(r)], places[U(r)]
        k = r
        while k > 0 and (scores[U(k - 1)] < score or (scores[U(k - 1)] == score and places[U(k - 1)] > place)):
            scores[U(k)], places[U(k)] = scores[U(k - 1)], places[U(k - 1)]
            k -= 1
        scores[U(k)], places[U(k)] = score, place
        moves += r - k
        if moves > most:
            _sort_all(scores, places, spare_scores, spare_places)
            return


@helper
def sort_top(scores: Floats, places: Int32s, depth: Any, spare_scores: Floats, spare_places: Int32s) -> None:
    """The same down to a depth: below it documents stand in any order.

    Most documents below the top stay there, for one comparison each.
    """
    n = len(scores)
    moves, most = 0, 6 * n
    for r in range(1, n):
        k = min(r, depth)
        score, lowest = scores[U(r)], scores[U(k - 1)]
        if lowest > score:
            continue
        place = places[U(r)]
        if lowest == score and places[U(k - 1)] < place:
            continue
        if r >= depth:  # the lowest of the top changes places with it
            k = depth - 1
            scores[U(r)], places[U(r)] = scores[U(k)], places[U(k)]
        moves += k
        while k > 0 and (scores[U(k - 1)] < score or (scores[U(k - 1)] == score and places[U(k - 1)] > place)):
            scores[U(k)], places[U(k)] = scores[U(k - 1)], places[U(k - 1)]
            k -= 1
        scores[U(k)], places[U(k)] = score, place
        moves -= k
        if moves > most:
            _sort_all(scores, places, spare_scores, spare_places)
            return


@helper
def collect_tied(scores: Floats, places: Int32s, depth: Any, spare_scores: Floats, spare_places: Int32s) -> None:
    """Put the documents below a depth that are tied with the last one above it first, by ascending place."""
    lowest, end = scores[U(depth - 1)], depth
    for r in range(depth, len(scores)):
        if scores[U(r)] == lowest:
            scores[U(r)], scores[U(end)] = scores[U(end)], lowest
            places[U(r)], places[U(end)] = places[U(end)], places[U(r)]
            end += 1
    if end > depth + 1:
        sort_with_items(places[depth:end], scores[depth:end], spare_places, spare_scores, end - depth)


@helper
def _sort_all(scores: Floats, places: Int32s, spare_scores: Floats, spare_places: Int32s) -> None:
    """Sort from the order of places."""
    not_inlined()
    n = len(scores)
    for m in range(n):
        spare_scores[U(places[U(m)])] = -scores[U(m)]
    for m in range(n):
        scores[U(m)], places[U(m)] = spare_scores[U(m)], np.int32(m)
    sort_with_items(scores, places, spare_scores, spare_places, n)
    for m in range(n):
        scores[U(m)] = -scores[U(m)]
