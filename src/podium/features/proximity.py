"""Features of the positions of the query's words in a field: the smallest span, bigrams, the phrase."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from podium.core.array_types import Floats, Int, Int32s, Ints
from podium.core.compiling import kernel
from podium.core.parameters import integer
from podium.errors import DataError
from podium.features.feature import Feature, register
from podium.features.matches import Matches, PairBlock, find

if TYPE_CHECKING:
    from podium.features.index import Index

WINDOW = integer("window", 8, least=2, help="words in the window that must contain both words")
NEXT, NEAR = WINDOW(2), WINDOW()


@dataclass(frozen=True, eq=False)
class Proximity(Feature):
    """A feature of positions in one field.

    Example:
        >>> from podium.features import FeatureSet, Index
        >>> index = Index.build([{"id": 1, "body": "red or blue shoes"}], fields={"body": "english"}, positions=True)
        >>> FeatureSet(["min_span(body)"]).rows(index, "red shoes", [0]).tolist()
        [[4.0]]

    """

    takes: ClassVar[str] = "field"
    defined_by: ClassVar[str] = "measured"

    def check(self, index: Index) -> None:
        super().check(index)
        if not index.fields[self.fields[0]].has_positions:
            raise DataError(
                f"{self} needs the positions of words, which the index does not store: build it with positions=True"
            )

    def values(self, pairs: PairBlock) -> Floats:
        self.check(pairs.index)
        return self.measured(pairs)

    @abstractmethod
    def measured(self, pairs: PairBlock) -> Floats:
        """Return the values for an index with positions."""


def _position_arrays(matches: Matches) -> tuple[Ints, Ints, Ints, Int32s]:
    """Return the arrays in which kernels find the positions of each pair's terms."""
    (field,) = matches.stream.fields
    assert field.position_starts is not None
    assert field.positions is not None
    return matches.layout.slots(field), matches.layout.entry_starts, field.position_starts, field.positions


@register(
    formula="min over parts that contain each t with tf > 0 of their number of words",
    source="Tao and Zhai 2007 (MinCover)", undefined="fewer than two terms occur", base=Proximity,
)  # fmt: skip
def min_span(matches: Matches) -> Floats:
    """Length in words of the smallest part of the field that contains all query terms in the field."""
    spans = np.empty(len(matches))
    smallest_spans(*_position_arrays(matches), spans)
    return spans


@register(
    formula="Σ over pairs (v, w) of neighbouring query words of |{(i, j) : 0 < j − i < window}|",
    source="Metzler and Croft 2005", undefined="the query has fewer than two words", base=Proximity,
)  # fmt: skip
def ordered_bigrams(matches: Matches, window: int = NEXT) -> Floats:
    """Occurrences of neighbouring query words in their order, next to each other by default."""
    return _bigrams(matches, window, is_ordered=True)


@register(
    formula="Σ over pairs (v, w) of neighbouring query words of |{(i, j) : 0 < |j − i| < window}|",
    source="Metzler and Croft 2005", undefined="the query has fewer than two words", base=Proximity,
)  # fmt: skip
def unordered_bigrams(matches: Matches, window: int = NEAR) -> Floats:
    """Occurrences of neighbouring query words near each other, in any order."""
    return _bigrams(matches, window, is_ordered=False)


def _bigrams(matches: Matches, window: int, is_ordered: bool) -> Floats:
    layout = matches.layout
    by_query = [list(dict.fromkeys(pairwise(words))) for words in layout.words]
    starts = np.cumsum([0, *map(len, by_query)])
    bigrams = np.array([bigram for query in by_query for bigram in query], np.int64).reshape(-1, 2)
    counts = np.empty(len(matches))
    count_bigrams(
        *_position_arrays(matches), matches.block.query, layout.starts, starts, bigrams, window, is_ordered, counts
    )
    return counts


@register(formula="|{i : the query's words are at i, i + 1, …}|", undefined="the query has no words", base=Proximity)
def phrase(matches: Matches) -> Floats:
    """Occurrences of the whole query as a phrase."""
    layout = matches.layout
    starts = np.cumsum([0, *map(len, layout.words)])
    words = np.array([word for query in layout.words for word in query], np.int64)
    counts = np.empty(len(matches))
    count_phrases(*_position_arrays(matches), matches.block.query, layout.starts, starts, words, counts)
    return counts


@kernel
def smallest_spans(slots: Ints, entry_starts: Ints, position_starts: Ints, positions: Int32s, out: Floats) -> None:
    """Find the smallest span by advancing the list with the smallest position until one list ends."""
    places = np.empty(len(slots), np.int64)
    for pair in range(len(out)):
        first, last = entry_starts[pair], entry_starts[pair + 1]
        n_lists = 0
        for entry in range(first, last):
            if slots[entry] >= 0:
                places[entry] = position_starts[slots[entry]]
                n_lists += 1
        out[pair] = np.nan
        while n_lists > 1:
            lowest, smallest, largest = -1, 0, 0
            for entry in range(first, last):
                if slots[entry] >= 0:
                    position = positions[places[entry]]
                    if lowest < 0 or position < smallest:
                        smallest, lowest = position, entry
                    largest = max(largest, position)
            span = largest - smallest + 1.0
            out[pair] = span if out[pair] != out[pair] else min(out[pair], span)
            places[lowest] += 1
            if places[lowest] == position_starts[slots[lowest] + 1]:
                break


@kernel
def count_bigrams(
    slots: Ints, entry_starts: Ints, position_starts: Ints, positions: Int32s, queries: Ints, term_starts: Ints,
    bigram_starts: Ints, bigrams: Ints, window: Int, is_ordered: Any, out: Floats,
) -> None:  # fmt: skip
    """Count the pairs of positions of two words that are less than `window` apart."""
    for pair in range(len(out)):
        query = queries[pair]
        entry = entry_starts[pair] - term_starts[query]
        count = 0
        for k in range(bigram_starts[query], bigram_starts[query + 1]):
            v, w = slots[entry + bigrams[k, 0]], slots[entry + bigrams[k, 1]]
            if v >= 0 and w >= 0:
                goes_back = not is_ordered and v != w  # for a repeated word, each pair counts once
                first, last = position_starts[w], position_starts[w + 1]
                for place in range(position_starts[v], position_starts[v + 1]):
                    position = positions[place]
                    while first < last and positions[first] <= position - window:
                        first += 1
                    for other in range(first, last):
                        distance = positions[other] - position
                        if distance >= window:
                            break
                        count += distance > 0 or (goes_back and distance < 0)
        out[pair] = count if bigram_starts[query + 1] > bigram_starts[query] else np.nan


@kernel
def count_phrases(
    slots: Ints, entry_starts: Ints, position_starts: Ints, positions: Int32s, queries: Ints, term_starts: Ints,
    word_starts: Ints, words: Ints, out: Floats,
) -> None:  # fmt: skip
    """Count the positions from which all words of the query follow each other."""
    for pair in range(len(out)):
        query = queries[pair]
        entry = entry_starts[pair] - term_starts[query]
        first, last = word_starts[query], word_starts[query + 1]
        if first == last:
            out[pair] = np.nan
            continue
        count = 0
        slot = slots[entry + words[first]]
        for place in range(position_starts[slot] if slot >= 0 else 0, position_starts[slot + 1] if slot >= 0 else 0):
            follows = True
            for k in range(first + 1, last):
                other = slots[entry + words[k]]
                next_position = positions[place] + k - first
                if other < 0 or find(positions, position_starts[other], position_starts[other + 1], next_position) < 0:
                    follows = False
                    break
            count += follows
        out[pair] = count
