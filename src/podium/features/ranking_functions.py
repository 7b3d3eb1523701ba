"""Classical ranking functions as features: vector space, BM25, BM25F, Lucene's classic score, language models."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from podium.core.array_types import Floats, Ints, Number
from podium.core.compiling import kernel
from podium.core.parameters import flag, number
from podium.errors import DataError
from podium.features.feature import TermSum, quoted, register, shown_value
from podium.features.matches import Matches, PairBlock, bm25_norm, bm25_weight, logarithm
from podium.features.term_features import IDF, divided

K1 = number("k1", 1.2, least=0, help="the larger, the more further occurrences of a term add")
B = number("b", 0.75, least=0, most=1, help="the influence of the stream's length, 0 to 1")
SMOOTHING = number("smoothing", 0.1, above=0, below=1, help="λ, the weight of the collection")()
MU = number("mu", 2000.0, above=0, help="number of words of the collection to add to a document")()
DELTA = number("delta", 0.7, above=0, below=1, help="δ, the discount of each frequency")()
PLAIN = IDF("plain")
SCALED = flag("scaled", False, help="multiply by k1 + 1, as Lucene did before version 8, and as MSLR-WEB does")


@register
@dataclass(frozen=True, eq=False)
class BM25(TermSum):
    """BM25.

    The defaults are Lucene's since version 8. MSLR-WEB has `k1=2.5, b=0.8, idf=robertson, scaled=true`.
    """

    k1: float = K1()
    b: float = B()
    idf: str = IDF()
    scaled: bool = SCALED()

    name: ClassVar[str] = "bm25"
    formula: ClassVar[str] = "Σ_t idf(t) · tf / (tf + k1·(1 − b + b·L/mean L)), times k1 + 1 if scaled"
    source: ClassVar[str] = "Robertson and Zaragoza 2009; Lucene 8"

    def term_values(self, pairs: PairBlock) -> Floats:
        matches = pairs.matches(self.fields)
        weights = matches.idf(self.idf) * (self.k1 + 1.0 if self.scaled else 1.0)
        result = np.empty(len(matches.tf))
        bm25_entries(
            matches.tf, matches.pair, matches.term, matches.lengths, weights, matches.stream.mean_length, self.k1,
            self.b, result,
        )  # fmt: skip
        return result


@register
@dataclass(frozen=True, eq=False)
class BM25F(TermSum):
    """BM25 over several weighted fields: frequencies are weighted before they saturate.

    Example:
        >>> from podium.features import parse
        >>> parse("bm25f(title:3, overview)").weights
        (3.0, 1.0)

    """

    weights: tuple[float, ...] = ()
    k1: float = K1()
    b: float = B()
    idf: str = IDF()
    scaled: bool = SCALED()

    name: ClassVar[str] = "bm25f"
    formula: ClassVar[str] = (
        "Σ_t idf(t) · x / (x + k1), x = Σ_f weight_f · tf_f / (1 − b + b·L_f/mean L_f), times k1 + 1 if scaled; "
        "n counts documents that have t in any of the fields"
    )
    source: ClassVar[str] = "Robertson, Zaragoza and Taylor 2004; Zaragoza et al. 2004"
    takes: ClassVar[str] = "weights"

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = tuple(float(weight) for weight in self.weights) or (1.0,) * len(self.fields)
        if len(weights) != len(self.fields):
            raise DataError(f"bm25f has {len(self.fields)} fields, but {len(weights)} weights")
        if not all(0 <= weight < math.inf for weight in weights):
            raise DataError(f"weights of bm25f must be finite and non-negative, but are {weights}")
        object.__setattr__(self, "weights", weights)

    def _shown_field(self, k: int) -> str:
        weight = "" if self.weights[k] == 1 else f":{shown_value(self.weights[k])}"
        return quoted(self.fields[k]) + weight

    def term_values(self, pairs: PairBlock) -> Floats:
        matches = pairs.matches(self.fields)
        weighted = np.zeros(len(matches.term))
        weights = self.weights or (1.0,) * len(matches.stream.fields)
        for field, weight in zip(matches.stream.fields, weights, strict=True):
            lengths = field.lengths[pairs.rows].astype(np.float64)
            add_weighted(matches.layout.tf(field), matches.pair, lengths, field.mean_length, self.b, weight, weighted)
        factors = matches.idf(self.idf) * (self.k1 + 1.0 if self.scaled else 1.0)
        return factors[matches.term] * divided(weighted, weighted + self.k1, 0.0)


@kernel
def bm25_entries(
    tf: Floats, pairs: Ints, terms: Ints, lengths: Floats, weights: Floats, mean: Number, k1: Number, b: Number,
    out: Floats,
) -> None:  # fmt: skip
    """Compute the contribution of each entry to BM25, 0 for a term that does not occur."""
    for k in range(len(tf)):
        norm = bm25_norm(lengths[pairs[k]], mean, k1, b)
        out[k] = bm25_weight(weights[terms[k]], tf[k], norm) if tf[k] > 0 else 0.0


@kernel
def add_weighted(
    tf: Floats, pairs: Ints, lengths: Floats, mean: Number, b: Number, weight: Number, out: Floats
) -> None:
    """Add the weighted frequency of each entry in one field, divided by the norm of the field's length."""
    for k in range(len(tf)):
        if tf[k] > 0:
            out[k] += weight * tf[k] / bm25_norm(lengths[pairs[k]], mean, 1.0, b)


@register(
    formula="Σ_t tf·w² / (√Σ_t (tf·w)² · √Σ_t w²), w = idf(t); 0 if no term occurs",
    source="Salton, Wong and Yang 1975; MSLR-WEB",
    undefined="T = 0, or w = 0 for every term that the formula divides by",
)
def vsm(matches: Matches, idf: str = PLAIN) -> Floats:
    """Cosine of query and document over the query's terms, with weights tf·w in the document and w in the query."""
    weights = matches.idf(idf)[matches.term]
    in_document = matches.tf * weights
    norms = np.sqrt(matches.sum(in_document * in_document)) * np.sqrt(matches.sum(weights * weights))
    cosines = divided(matches.sum(in_document * weights), norms)
    return np.where((matches.covered == 0) & (matches.layout.n_terms > 0), 0.0, cosines)


@register
@dataclass(frozen=True, eq=False)
class LuceneClassic(TermSum):
    """Lucene's score before version 6, without boosts and with exact lengths (Lucene stored them in one byte)."""

    name: ClassVar[str] = "lucene_classic"
    formula: ClassVar[str] = "(matched terms / T) · (1 / √Σ_t idf²) · Σ_t √tf · idf² / √L, idf = 1 + ln(N/(n + 1))"
    source: ClassVar[str] = "Lucene 5, ClassicSimilarity"
    undefined: ClassVar[str] = "T = 0"

    def term_values(self, pairs: PairBlock) -> Floats:
        matches = pairs.matches(self.fields)
        idf = matches.idf("classic")
        squares = (idf * idf)[matches.term]
        factors = divided(matches.covered, matches.layout.n_terms) * divided(
            np.ones(len(matches)), np.sqrt(matches.sum(squares)) * np.sqrt(matches.lengths), 0.0
        )
        return np.sqrt(matches.tf) * squares * factors[matches.pair]

    def values(self, pairs: PairBlock) -> Floats:
        return np.where(pairs.matches(self.fields).layout.n_terms > 0, super().values(pairs), np.nan)


@dataclass(frozen=True, eq=False)
class LanguageModel(TermSum):
    """The logarithm of the probability of the query in a smoothed language model of the document.

    Terms that do not occur in the collection are ignored, because p = 0 would make every document −∞.
    """

    defined_by: ClassVar[str] = "mixture"

    @abstractmethod
    def mixture(self, pairs: PairBlock) -> tuple[float, Floats, Floats]:
        """Return the discount of tf, and the weights of tf and p by pair."""

    def term_values(self, pairs: PairBlock) -> Floats:
        """Return the logarithm of each term's probability, 0 for ignored terms."""
        matches = pairs.matches(self.fields)
        discount, by_tf, by_p = self.mixture(pairs)
        p = matches.probabilities[matches.term]
        probabilities = np.maximum(matches.tf - discount, 0.0) * by_tf[matches.pair] + by_p[matches.pair] * p
        return logarithm(np.where(p > 0, probabilities, 1.0))

    def values(self, pairs: PairBlock) -> Floats:
        return np.where(pairs.matches(self.fields).covered > 0, super().values(pairs), np.nan)


def _language_model(formula: str) -> Callable[[Callable[..., Any]], Any]:
    return register(
        formula=f"{formula}; terms with p = 0 are left out", source="Zhai and Lafferty 2001; MSLR-WEB",
        undefined="no term of the query occurs", base=LanguageModel,
    )  # fmt: skip


@_language_model("Σ_t ln((1 − λ)·tf/L + λ·p), λ = smoothing")
def lm_jm(matches: Matches, smoothing: float = SMOOTHING) -> tuple[float, Floats, Floats]:
    """Language model with Jelinek-Mercer smoothing."""
    by_tf = divided(np.full(len(matches), 1.0 - smoothing), matches.lengths)
    return 0.0, by_tf, np.full(len(matches), smoothing)


@_language_model("Σ_t ln((tf + μ·p)/(L + μ)), μ = mu")
def lm_dirichlet(matches: Matches, mu: float = MU) -> tuple[float, Floats, Floats]:
    """Language model with Dirichlet smoothing."""
    return 0.0, 1.0 / (matches.lengths + mu), mu / (matches.lengths + mu)


@_language_model("Σ_t ln(max(tf − δ, 0)/L + δ·(U/L)·p), δ = delta")
def lm_absolute(matches: Matches, delta: float = DELTA) -> tuple[float, Floats, Floats]:
    """Language model with absolute discounting; U is the number of distinct words of the stream."""
    by_tf = divided(np.ones(len(matches)), matches.lengths)
    return delta, by_tf, delta * divided(matches.distinct_words, matches.lengths)
