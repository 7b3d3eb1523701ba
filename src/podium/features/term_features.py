"""Features of the query's terms in a stream: covered terms, length, idf, tf and tf·idf with their statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from podium.core.array_types import Floats
from podium.core.parameters import choice
from podium.features.feature import Feature, TermSum, register
from podium.features.matches import STATISTICS, PairBlock

MSLR = "Qin and Liu 2013 (LETOR 4.0); MSLR-WEB"
IDF = choice(
    "idf", "lucene", ("lucene", "robertson", "plain", "classic"),
    help="`lucene`: ln(1 + (N − n + ½)/(n + ½)), never negative; `robertson`: ln((N − n + ½)/(n + ½)), as in MSLR-WEB; "
    "`plain`: ln(N/(n + 1)); `classic`: 1 + ln(N/(n + 1))",
)  # fmt: skip
STATISTIC = choice(
    "statistic", "sum", STATISTICS, help="the statistic over the query's distinct terms; the variance divides by T"
)


@register
@dataclass(frozen=True, eq=False)
class Covered(Feature):
    """Number of the query's distinct terms that occur.

    Example:
        >>> from podium.features import parse
        >>> str(parse("covered(title)"))
        'covered(title)'

    """

    name: ClassVar[str] = "covered"
    formula: ClassVar[str] = "|{t : tf > 0}|"
    source: ClassVar[str] = MSLR

    def values(self, pairs: PairBlock) -> Floats:
        return pairs.matches(self.fields).covered


@register
@dataclass(frozen=True, eq=False)
class CoveredRatio(Feature):
    """Share of the query's distinct terms that occur."""

    name: ClassVar[str] = "covered_ratio"
    formula: ClassVar[str] = "|{t : tf > 0}| / T"
    source: ClassVar[str] = MSLR
    undefined: ClassVar[str] = "T = 0"

    def values(self, pairs: PairBlock) -> Floats:
        matches = pairs.matches(self.fields)
        return divided(matches.covered, matches.layout.n_terms)


@register
@dataclass(frozen=True, eq=False)
class Boolean(Feature):
    """Whether all terms of the query occur."""

    name: ClassVar[str] = "boolean"
    formula: ClassVar[str] = "1 if tf > 0 for every t, else 0"
    source: ClassVar[str] = MSLR
    undefined: ClassVar[str] = "T = 0"

    def values(self, pairs: PairBlock) -> Floats:
        matches = pairs.matches(self.fields)
        n_terms = matches.layout.n_terms
        return np.where(n_terms > 0, (matches.covered == n_terms).astype(np.float64), np.nan)


@register
@dataclass(frozen=True, eq=False)
class StreamLength(Feature):
    """Length of the stream in words."""

    name: ClassVar[str] = "stream_length"
    formula: ClassVar[str] = "L"
    source: ClassVar[str] = MSLR

    def values(self, pairs: PairBlock) -> Floats:
        return pairs.matches(self.fields).lengths


@register
@dataclass(frozen=True, eq=False)
class QueryLength(Feature):
    """Number of words in the query, including repetitions."""

    name: ClassVar[str] = "query_length"
    formula: ClassVar[str] = "words of the query, as the fields' analyzers split it"

    def values(self, pairs: PairBlock) -> Floats:
        words = pairs.matches(self.fields).layout.words
        return np.array([len(one) for one in words], np.float64)[pairs.query]


@register
@dataclass(frozen=True, eq=False)
class IDF_(TermSum):  # noqa: N801  `IDF` is the parameter
    """Inverse document frequency of the query's terms; the same for all documents of a query."""

    idf: str = IDF("robertson")

    name: ClassVar[str] = "idf"
    formula: ClassVar[str] = "Σ_t idf(t)"
    source: ClassVar[str] = MSLR

    def term_values(self, pairs: PairBlock) -> Floats:
        matches = pairs.matches(self.fields)
        return matches.idf(self.idf)[matches.term]


@dataclass(frozen=True, eq=False)
class TermStatistic(Feature):
    """A statistic of a value per term, over all distinct terms of the query; terms that do not occur count as 0.

    Args:
        statistic: sum, min, max, mean or variance.

    """

    statistic: str = STATISTIC()

    def values(self, pairs: PairBlock) -> Floats:
        """Return one of the five statistics, which are computed together."""
        matches = pairs.matches(self.fields)
        rows = matches.statistics((self.name, getattr(self, "idf", "")), lambda: self.term_values(pairs))
        return np.asarray(rows[STATISTICS.index(self.statistic)])

    def term_values(self, pairs: PairBlock) -> Floats:
        """Return the value of each entry."""
        raise NotImplementedError


@register
@dataclass(frozen=True, eq=False)
class TF(TermStatistic):
    """Term frequency."""

    name: ClassVar[str] = "tf"
    formula: ClassVar[str] = "statistic over t of tf"
    source: ClassVar[str] = MSLR
    undefined: ClassVar[str] = "T = 0, but for the sum"

    def term_values(self, pairs: PairBlock) -> Floats:
        return pairs.matches(self.fields).tf


@register
@dataclass(frozen=True, eq=False)
class NormalizedTF(TermStatistic):
    """Term frequency divided by the length of the stream."""

    name: ClassVar[str] = "normalized_tf"
    formula: ClassVar[str] = "statistic over t of tf / L"
    source: ClassVar[str] = MSLR
    undefined: ClassVar[str] = "L = 0; T = 0, but for the sum"

    def term_values(self, pairs: PairBlock) -> Floats:
        matches = pairs.matches(self.fields)
        return divided(matches.tf, matches.lengths[matches.pair])


@register
@dataclass(frozen=True, eq=False)
class TFIDF(TermStatistic):
    """Term frequency times inverse document frequency."""

    idf: str = IDF("robertson")

    name: ClassVar[str] = "tfidf"
    formula: ClassVar[str] = "statistic over t of tf · idf(t)"
    source: ClassVar[str] = MSLR
    undefined: ClassVar[str] = "T = 0, but for the sum"

    def term_values(self, pairs: PairBlock) -> Floats:
        matches = pairs.matches(self.fields)
        return matches.tf * matches.idf(self.idf)[matches.term]


def divided(values: Floats, by: Floats, otherwise: float = np.nan) -> Floats:
    """Return quotients, or another value if the divisor is 0."""
    quotients: Floats = np.divide(values, by, out=np.full(len(values), otherwise), where=by != 0)
    return quotients
