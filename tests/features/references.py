"""Features by their definitions: slow, on lists of words."""

import math
import statistics
from collections import Counter
from itertools import pairwise

NAN = math.nan
IDF = {
    "lucene": lambda n, N: math.log(1 + (N - n + 0.5) / (n + 0.5)),
    "robertson": lambda n, N: math.log((N - n + 0.5) / (n + 0.5)),
    "plain": lambda n, N: math.log(N / (n + 1)),
    "classic": lambda n, N: 1 + math.log(N / (n + 1)),
}
STATISTICS = {"min": min, "max": max, "mean": statistics.fmean, "variance": statistics.pvariance}


class Words:
    """A collection as the words of each field of each document."""

    def __init__(self, rows, analyzers):
        self.analyzers = analyzers
        self.rows = {row["id"]: row for row in rows}
        self.words = {
            row["id"]: {name: analyzer.terms(row[name]) for name, analyzer in analyzers.items()} for row in rows
        }

    def stream(self, document, fields):
        return [word for name in fields for word in self.words[document][name]]

    def mean_length(self, fields):
        return statistics.fmean(len(self.stream(one, fields)) for one in self.words)


class Pair:
    """A query and the stream of a document, with one analyzer for all fields."""

    def __init__(self, collection, query, document, fields):
        self.collection, self.document = collection, document
        self.fields = list(fields) or list(collection.analyzers)
        self.words = collection.analyzers[self.fields[0]].terms(query)
        self.terms = list(dict.fromkeys(self.words))
        self.stream = collection.stream(document, self.fields)
        self.length = len(self.stream)
        streams = [collection.stream(one, self.fields) for one in collection.words]
        self.n_documents, n_words = len(streams), sum(map(len, streams))
        counts = Counter(self.stream)
        self.tf = [counts[t] for t in self.terms]
        self.n = [sum(t in one for one in streams) for t in self.terms]
        self.p = [sum(one.count(t) for one in streams) / max(n_words, 1) for t in self.terms]
        self.covered = sum(x > 0 for x in self.tf)

    def idf(self, kind):
        return [IDF[kind](n, self.n_documents) for n in self.n]


def statistic(values, kind):
    if kind == "sum":
        return math.fsum(values)
    return STATISTICS[kind](values) if values and not any(map(math.isnan, values)) else NAN


def products(*factors):
    return [math.prod(each) for each in zip(*factors, strict=True)]


def norm(values):
    return math.sqrt(math.fsum(x * x for x in values))


def bm25(pair, k1, b, idf, scaled):
    norm = k1 * (1 - b + b * pair.length / pair.collection.mean_length(pair.fields)) if pair.length else 0
    return (k1 + 1 if scaled else 1) * math.fsum(
        w * x / (x + norm) for x, w in zip(pair.tf, pair.idf(idf), strict=True) if x
    )


def bm25f(pair, weights, k1, b, idf, scaled):
    total = 0.0
    for term, w in zip(pair.terms, pair.idf(idf), strict=True):
        x = 0.0
        for name, weight in zip(pair.fields, weights or [1] * len(pair.fields), strict=True):
            field = pair.collection.stream(pair.document, [name])
            if term in field:
                mean = pair.collection.mean_length([name])
                x += weight * field.count(term) / (1 - b + b * len(field) / mean)
        total += w * (k1 + 1 if scaled else 1) * x / (x + k1) if x else 0.0
    return total


def vector_space(pair, idf):
    w = pair.idf(idf)
    if pair.terms and not pair.covered:
        return 0.0
    norms = norm(products(pair.tf, w)) * norm(w)
    return math.fsum(products(pair.tf, w, w)) / norms if norms else NAN


def lucene_classic(pair):
    w = pair.idf("classic")
    if not pair.terms or not pair.covered:
        return 0.0 if pair.terms else NAN
    total = math.fsum(math.sqrt(x) * y * y / math.sqrt(pair.length) for x, y in zip(pair.tf, w, strict=True))
    return pair.covered / len(pair.terms) / norm(w) * total


def language_model(pair, probability):
    if pair.covered == 0:
        return NAN
    return math.fsum(math.log(probability(x, p)) for x, p in zip(pair.tf, pair.p, strict=True) if p > 0)


def absolute(pair, delta):
    share = delta * len(set(pair.stream)) / pair.length if pair.length else NAN
    return language_model(pair, lambda x, p: max(x - delta, 0) / pair.length + share * p)


def min_span(pair):
    present, n = {word for word in pair.words if word in pair.stream}, pair.length
    if len(present) < 2:
        return NAN
    return min(j - i + 1 for i in range(n) for j in range(i, n) if present <= set(pair.stream[i : j + 1]))


def phrase(pair):
    size = len(pair.words)
    return sum(pair.stream[i : i + size] == pair.words for i in range(pair.length)) if size else NAN


def bigrams(pair, is_near):
    query_bigrams = set(pairwise(pair.words))
    spots = list(enumerate(pair.stream))
    if not query_bigrams:
        return NAN
    return sum(is_near(i, j, v == w) for i, v in spots for j, w in spots if (v, w) in query_bigrams)


FUNCTIONS = {
    "covered": lambda pair: pair.covered,
    "covered_ratio": lambda pair: pair.covered / len(pair.terms) if pair.terms else NAN,
    "boolean": lambda pair: float(pair.covered == len(pair.terms)) if pair.terms else NAN,
    "stream_length": lambda pair: pair.length,
    "query_length": lambda pair: len(pair.words),
    "idf": lambda pair, idf: math.fsum(pair.idf(idf)),
    "tf": lambda pair, statistic_: statistic(pair.tf, statistic_),
    "normalized_tf": lambda pair, statistic_: statistic(
        [x / pair.length if pair.length else NAN for x in pair.tf], statistic_
    ),
    "tfidf": lambda pair, statistic_, idf: statistic(products(pair.tf, pair.idf(idf)), statistic_),
    "bm25": bm25,
    "bm25f": bm25f,
    "vsm": vector_space,
    "lucene_classic": lucene_classic,
    "lm_jm": lambda pair, smoothing: language_model(
        pair, lambda x, p: (1 - smoothing) * x / pair.length + smoothing * p
    ),
    "lm_dirichlet": lambda pair, mu: language_model(pair, lambda x, p: (x + mu * p) / (pair.length + mu)),
    "lm_absolute": absolute,
    "min_span": min_span,
    "phrase": phrase,
    "ordered_bigrams": lambda pair, window: bigrams(pair, lambda i, j, _: 0 < j - i < window),
    "unordered_bigrams": lambda pair, window: bigrams(
        pair, lambda i, j, same: 0 < abs(j - i) < window and (not same or i < j)
    ),
}


def value(collection, query, document, feature):
    """The value of a feature, from its definition."""
    if feature.name == "attribute":
        votes = collection.rows[document]["votes"]
        return NAN if votes is None else votes
    options = {k: v for k, v in vars(feature).items() if k not in ("fields", "missing", "statistic")}
    if hasattr(feature, "statistic"):
        options["statistic_"] = feature.statistic
    return FUNCTIONS[feature.name](Pair(collection, query, document, feature.fields), **options)
