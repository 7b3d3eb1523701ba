"""Features of the query's terms in a stream: covered terms, length, idf, tf and tf·idf with their statistics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from podium.core.array_types import Floats
from podium.core.parameters import choice
from podium.features.feature import Feature, TermSum, register
from podium.features.matches import STATISTICS, Matches, PairBlock

MSLR = "Qin and Liu 2013 (LETOR 4.0); MSLR-WEB"
IDF = choice(
    "idf", "lucene", ("lucene", "robertson", "plain", "classic"),
    help="`lucene`: ln(1 + (N − n + ½)/(n + ½)), never negative; `robertson`: ln((N − n + ½)/(n + ½)), as in MSLR-WEB; "
    "`plain`: ln(N/(n + 1)); `classic`: 1 + ln(N/(n + 1))",
)  # fmt: skip
STATISTIC = choice(
    "statistic", "sum", STATISTICS, help="the statistic over the query's distinct terms; the variance divides by T"
)
ROBERTSON = IDF("robertson")


def divided(values: Floats, by: Floats, otherwise: float = np.nan) -> Floats:
    """Return quotients, or another value if the divisor is 0."""
    quotients: Floats = np.divide(values, by, out=np.full(len(values), otherwise), where=by != 0)
    return quotients


@register(formula="|{t : tf > 0}|", source=MSLR)
def covered(matches: Matches) -> Floats:
    """Number of the query's distinct terms that occur."""
    return matches.covered


@register(formula="|{t : tf > 0}| / T", source=MSLR, undefined="T = 0")
def covered_ratio(matches: Matches) -> Floats:
    """Share of the query's distinct terms that occur."""
    return divided(matches.covered, matches.layout.n_terms)


@register(formula="1 if tf > 0 for every t, else 0", source=MSLR, undefined="T = 0")
def boolean(matches: Matches) -> Floats:
    """Whether all terms of the query occur."""
    n_terms = matches.layout.n_terms
    return np.where(n_terms > 0, (matches.covered == n_terms).astype(np.float64), np.nan)


@register(formula="L", source=MSLR)
def stream_length(matches: Matches) -> Floats:
    """Length of the stream in words."""
    return matches.lengths


@register(formula="words of the query, as the fields' analyzers split it")
def query_length(matches: Matches) -> Floats:
    """Number of words in the query, including repetitions."""
    return np.array([len(words) for words in matches.layout.words], np.float64)[matches.block.query]


@register(formula="Σ_t idf(t)", source=MSLR, base=TermSum)
def idf(matches: Matches, idf: str = ROBERTSON) -> Floats:
    """Inverse document frequency of the query's terms; the same for all documents of a query."""
    return matches.idf(idf)[matches.term]


@dataclass(frozen=True, eq=False)
class TermStatistic(Feature):
    """A statistic of a value per term, over all distinct terms of the query; terms that do not occur count as 0."""

    statistic: str = STATISTIC()

    defined_by: ClassVar[str] = "term_values"

    def values(self, pairs: PairBlock) -> Floats:
        """Return one of the five statistics, which are computed together."""
        matches = pairs.matches(self.fields)
        rows = matches.statistics((self.name, getattr(self, "idf", "")), lambda: self.term_values(pairs))
        return np.asarray(rows[STATISTICS.index(self.statistic)])

    @abstractmethod
    def term_values(self, pairs: PairBlock) -> Floats:
        """Return the value of each entry."""


@register(formula="statistic over t of tf", source=MSLR, undefined="T = 0, but for the sum", base=TermStatistic)
def tf(matches: Matches) -> Floats:
    """Term frequency."""
    return matches.tf


@register(
    formula="statistic over t of tf / L", source=MSLR, undefined="L = 0; T = 0, but for the sum", base=TermStatistic
)
def normalized_tf(matches: Matches) -> Floats:
    """Term frequency divided by the length of the stream."""
    return divided(matches.tf, matches.lengths[matches.pair])


@register(
    formula="statistic over t of tf · idf(t)", source=MSLR, undefined="T = 0, but for the sum", base=TermStatistic
)
def tfidf(matches: Matches, idf: str = ROBERTSON) -> Floats:
    """Term frequency times inverse document frequency."""
    return matches.tf * matches.idf(idf)[matches.term]
