"""Term frequencies and statistics of a block of (query, document) pairs, and the formula of BM25.

One kernel finds each query term in each document's sorted list of terms. Every feature is a formula on these arrays.
Sums run in the order of the query's terms, and logarithms are computed one by one, so that threads, blocks and the
order of documents do not change a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core.array_types import Floats, Int, Int32s, Ints, Number
from podium.core.compiling import helper, kernel
from podium.features.field import Field, ragged
from podium.features.memo import Memo
from podium.features.stream_statistics import StreamStatistics, TermIds, statistics_of, values_at

if TYPE_CHECKING:
    from podium.features.analyzer import Analyzer
    from podium.features.index import Index

STATISTICS = ("sum", "min", "max", "mean", "variance")


class PairBlock(Memo):
    """A block of (query, document) pairs with all candidates of each of its queries.

    Values that features share (term frequencies, lengths, idf) are computed once, on first use.

    Args:
        index: the documents.
        texts: the queries.
        rows: the rows of the documents of all pairs, query by query.
        pair_starts: where the pairs of each query begin, and the end of the last.

    """

    def __init__(self, index: Index, texts: Sequence[str], rows: Ints, pair_starts: Ints) -> None:
        self.index, self.texts, self.rows, self.pair_starts = index, texts, rows, pair_starts

    @classmethod
    def of_query(cls, index: Index, text: str, rows: Ints) -> PairBlock:
        """Return the pairs of one query and some documents."""
        return cls(index, [text], rows, np.array([0, len(rows)]))

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def query(self) -> Ints:
        """The number of each pair's query within the block."""
        return np.repeat(np.arange(len(self.texts)), np.diff(self.pair_starts))

    def layout(self, fields: Sequence[Field]) -> Layout:
        """Return the terms of the queries according to the analyzers of these fields."""
        return self.once(("layout", distinct_analyzers(fields)), lambda: Layout(fields, self))

    def matches(self, fields: tuple[str, ...] = ()) -> Matches:
        """Return the matches in a stream: these fields combined, or all fields of the index."""

        def compute() -> Matches:
            stream = statistics_of(self.index, fields)
            return Matches(self, stream, self.layout(stream.fields))

        return self.once(("matches", fields), compute)

    def filled_with_minimum(self, column: Floats) -> Floats:
        """Return a column with NaN replaced by the smallest other value of the same query, if there is one."""
        smallest = np.full(len(self.texts), np.inf)
        np.fmin.at(smallest, self.query, column)
        return np.where(np.isnan(column) & np.isfinite(smallest)[self.query], smallest[self.query], column)


class QueryTerms(Memo):
    """The distinct terms of each query, in order of first occurrence.

    If fields have different analyzers, a term has one form for each of them: all forms of a word are the same term.

    Attributes:
        forms: for each analyzer, the forms of the terms of all queries, "" if it drops the word.
        words: for each query, the number in `forms` of each word's term, including repetitions.
        starts: where the terms of each query begin, and the end of the last.

    """

    def __init__(self, fields: Sequence[Field], texts: Sequence[str]) -> None:
        self._analyzers = analyzers = distinct_analyzers(fields)
        self.words: list[list[int]] = []
        terms: list[tuple[str, ...]] = []
        starts = [0]
        for text in texts:
            numbers: dict[tuple[str, ...], int] = {}
            words = query_words(analyzers, text)
            self.words.append([numbers.setdefault(word, len(terms) + len(numbers)) for word in words])
            terms.extend(numbers)
            starts.append(len(terms))
        self.forms = [[term[k] for term in terms] for k in range(len(analyzers))]
        self.starts = np.array(starts, np.int64)

    def ids(self, field: Field) -> Int32s:
        """Return the number of each term in a field, −1 if the field lacks it."""
        forms = self.forms[self._analyzers.index(field.analyzer)]
        return self.once(("ids", field.name), lambda: field.term_ids(forms))


class Layout(QueryTerms):
    """The terms of the queries of a block, and an entry for each pair and term.

    Attributes:
        entry_starts: where the entries of each pair begin, and the end of the last.

    """

    def __init__(self, fields: Sequence[Field], block: PairBlock) -> None:
        super().__init__(fields, block.texts)
        self.block = block
        self.entry_starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[block.query])])

    def slots(self, field: Field) -> Ints:
        """Return the index of each entry's term among the terms of a field, −1 if the document lacks it."""

        def compute() -> Ints:
            slots = np.empty(self.entry_starts[-1], np.int64)
            find_slots(
                field.starts, field.terms, self.block.rows, self.block.pair_starts, self.starts, self.ids(field),
                self.entry_starts, slots,
            )  # fmt: skip
            return slots

        return self.once(("slots", field.name), compute)

    def tf(self, field: Field) -> Floats:
        """Return how often each entry's term occurs in a field of its document; streams share the result."""
        return self.once(("tf", field.name), lambda: values_at(field.counts, self.slots(field)))

    @cached_property
    def n_terms(self) -> Floats:
        """T, the number of distinct terms of each pair's query."""
        return np.diff(self.entry_starts).astype(np.float64)

    @cached_property
    def pair(self) -> Ints:
        """The pair of each entry."""
        return np.repeat(np.arange(len(self.block)), np.diff(self.entry_starts))

    @cached_property
    def term(self) -> Ints:
        """The number of each entry's term."""
        return ragged(self.starts, self.block.query)


def distinct_analyzers(fields: Sequence[Field]) -> tuple[Analyzer, ...]:
    """Return the analyzers of fields, each once."""
    return tuple(dict.fromkeys(field.analyzer for field in fields))


def query_words(analyzers: tuple[Analyzer, ...], text: str) -> list[tuple[str, ...]]:
    """Return the words of a query, each in the forms of all analyzers."""
    if len(analyzers) == 1:
        return [(term,) for term in analyzers[0].terms(text)]
    words: list[tuple[str, ...]] = []
    for part in text.split():  # so that words stay aligned if one analyzer splits a part into more words than another
        forms = ([analyzer.term(word) for word in analyzer.words(part)] for analyzer in analyzers)
        words += filter(any, zip_longest(*forms, fillvalue=""))
    return words


class Matches(Memo):
    """The terms of queries in one stream of documents: an *entry* for each pair and each distinct term of its query.

    Attributes:
        block: the pairs.
        stream: the collection statistics of the stream.
        layout: the terms, and how entries are laid out.

    """

    def __init__(self, block: PairBlock, stream: StreamStatistics, layout: Layout) -> None:
        self.block, self.stream, self.layout = block, stream, layout

    def __len__(self) -> int:
        return len(self.block)

    @property
    def pair(self) -> Ints:
        """The pair of each entry."""
        return self.layout.pair

    @property
    def term(self) -> Ints:
        """The number of each entry's term, for arrays by term such as `idf()`."""
        return self.layout.term

    @cached_property
    def ids(self) -> TermIds:
        """The number of each term in each field of the stream."""
        return [self.layout.ids(field) for field in self.stream.fields]

    @cached_property
    def tf(self) -> Floats:
        """How often the term of each entry occurs in the stream of its document."""
        first, *others = map(self.layout.tf, self.stream.fields)
        return sum(others, first)

    @cached_property
    def lengths(self) -> Floats:
        """L, the number of words of the stream in each pair's document."""
        return self.stream.lengths(self.block.rows)

    @cached_property
    def distinct_words(self) -> Floats:
        """U, the number of distinct words of the stream in each pair's document."""
        return self.stream.distinct_words(self.block.rows)

    @cached_property
    def document_frequency(self) -> Floats:
        """n, the number of documents whose stream contains each term, by term."""
        return self.stream.document_frequency(self.ids)

    @cached_property
    def probabilities(self) -> Floats:
        """p, the share of each term in all words of the stream, by term."""
        return self.stream.occurrences(self.ids) / max(self.stream.n_words, 1)

    @cached_property
    def covered(self) -> Floats:
        """How many terms of its query each document contains."""
        return self.sum((self.tf > 0).astype(np.float64))

    def idf(self, kind: str = "lucene") -> Floats:
        """Return the inverse document frequency of each term, by term; `kind` is one of those of `bm25`."""

        def compute() -> Floats:
            n, N = self.document_frequency, self.stream.n_documents
            if kind == "lucene":
                return np.array([bm25_idf(N, frequency) for frequency in n.tolist()])
            if kind == "robertson":
                return logarithm((N - n + 0.5) / (n + 0.5))
            return logarithm(N / (n + 1.0)) + (kind == "classic")

        return self.once(("idf", kind), compute)

    def sum(self, values: Floats) -> Floats:
        """Return the sum of a value per entry for each pair, in the order of the query's terms."""
        sums = np.empty(len(self))
        sum_entries(values, self.layout.entry_starts, sums)
        return sums

    def statistics(self, key: Any, values: Callable[[], Floats]) -> Floats:
        """Return all `STATISTICS` of a value per entry, one row each; `key` identifies the values in the cache."""

        def compute() -> Floats:
            rows = np.empty((len(STATISTICS), len(self)))
            entry_statistics(values(), self.layout.entry_starts, rows)
            return rows

        return self.once(("statistics", key), compute)


def bm25_idf(n_documents: int, document_frequency: int) -> float:
    """Return Lucene's idf of a term, ln(1 + (N − n + ½) / (n + ½)), which is always positive."""
    return math.log(1.0 + (n_documents - document_frequency + 0.5) / (document_frequency + 0.5))


# Search and the feature `bm25` both call these two functions, so that their scores are identical. Like Lucene since
# version 8, they omit the constant factor k₁ + 1.
@helper
def bm25_norm(length: Int, mean_length: Number, k1: Number, b: Number) -> Number:
    """Return the term of the denominator that depends on the document's length."""
    return k1 * (1.0 - b + b * length / mean_length)


@helper
def bm25_weight(idf: Number, frequency: Number, norm: Number) -> Number:
    """Return the contribution to the score of a term that occurs `frequency` times."""
    return idf * (frequency / (frequency + norm))


def logarithm(values: Floats) -> Floats:
    """Return natural logarithms computed one by one: with SIMD, bits may depend on the position in the array."""
    result = np.empty(len(values))
    fill_logarithms(np.ascontiguousarray(values), result)
    return result


@kernel
def fill_logarithms(values: Floats, out: Floats) -> None:
    """Compute logarithms."""
    for k in range(len(values)):
        out[k] = np.log(values[k])


@helper
def find(ascending: Int32s, first: Int, last: Int, number: Int) -> Int:
    """Return the index of a number between two places of an ascending list, or −1; the loop has no branches."""
    if number < 0 or first == last:
        return -1
    low, size = first, last - first
    while size > 1:
        half = size >> 1
        low = low + half if ascending[low + half] <= number else low
        size -= half
    return low if ascending[low] == number else -1


@kernel
def find_slots(
    starts: Ints, terms: Int32s, rows: Ints, pair_starts: Ints, term_starts: Ints, ids: Int32s, entry_starts: Ints,
    slots: Ints,
) -> None:  # fmt: skip
    """Find the index of each entry's term among the terms of one field, −1 if the document lacks it."""
    for query in range(len(term_starts) - 1):
        first_term, n_terms = term_starts[query], term_starts[query + 1] - term_starts[query]
        for pair in range(pair_starts[query], pair_starts[query + 1]):
            first, last = starts[rows[pair]], starts[rows[pair] + 1]
            for k in range(n_terms):
                slots[entry_starts[pair] + k] = find(terms, first, last, ids[first_term + k])


@kernel
def sum_entries(values: Floats, starts: Ints, sums: Floats) -> None:
    """Add up the entries of each pair, in their order."""
    for pair in range(len(starts) - 1):
        total = 0.0
        for entry in range(starts[pair], starts[pair + 1]):
            total += values[entry]
        sums[pair] = total


@kernel
def entry_statistics(values: Floats, starts: Ints, out: Floats) -> None:
    """Write sum, minimum, maximum, mean and variance of each pair's entries; all but the sum are NaN without any."""
    for pair in range(len(starts) - 1):
        first, last = starts[pair], starts[pair + 1]
        if first == last:
            out[0, pair] = 0.0
            out[1:, pair] = np.nan
            continue
        total, least, most = 0.0, values[first], values[first]
        for entry in range(first, last):
            value = values[entry]
            total += value
            least = value if value < least else least
            most = value if value > most else most
        mean = total / (last - first)
        squares = 0.0
        for entry in range(first, last):
            squares += (values[entry] - mean) * (values[entry] - mean)
        out[0, pair], out[1, pair], out[2, pair], out[3, pair] = total, least, most, mean
        out[4, pair] = squares / (last - first)
