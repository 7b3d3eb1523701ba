"""Every feature against its definition, on random collections; formulas of MSLR-WEB by hand; other libraries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.features import FeatureSet, Index, parse, registered
from podium.features.matches import STATISTICS
from tests.features.collections_ import TEXTS, built, documents
from tests.features.references import Words, value

WHOLE = ["covered", "covered_ratio", "boolean", "stream_length", "query_length", "idf", "vsm", "lucene_classic",
         "bm25", "lm_jm", "lm_dirichlet", "lm_absolute"]  # fmt: skip
TEXTS_OF_FEATURES = [
    *(f"{name}{fields}" for name in WHOLE for fields in ("", "(title)", "(body, title)")),
    *(f"{name}({fields}statistic={s})" for name in ("tf", "normalized_tf", "tfidf") for s in STATISTICS
      for fields in ("", "body, ")),
    *(f"idf(title, idf={kind})" for kind in ("lucene", "plain", "classic")),
    "tfidf(idf=classic)",
    "bm25(body, k1=2.5, b=0.8, idf=robertson, scaled=true)",
    "bm25(k1=0)", "bm25(title, b=0)", "bm25(title, b=1)",
    "bm25f", "bm25f(title:3, body)", "bm25f(title:0, body:2.5, k1=2, b=0.3, scaled=true)", "bm25f(body)",
    "lm_jm(body, smoothing=0.5)", "lm_dirichlet(title, mu=10)", "lm_absolute(body, delta=0.2)",
    "min_span(body)", "phrase(body)", "ordered_bigrams(body)", "ordered_bigrams(title, window=4)",
    "unordered_bigrams(body)", "unordered_bigrams(body, window=2)",
    "attribute(votes)",
]  # fmt: skip
NOT_HERE = {"slashes", "character_length"}


def test_every_feature_is_tested():
    named = {parse(text).name for text in TEXTS_OF_FEATURES}
    ours = {name for name, cls in registered().items() if cls.__module__.startswith("podium.")}
    assert named | NOT_HERE == ours


@given(documents(min_size=1), st.lists(TEXTS, min_size=1, max_size=3))
def test_features_equal_their_definitions(rows, queries):
    index = built(rows, positions=True)
    collection = Words(rows, {name: field.analyzer for name, field in index.fields.items()})
    features = FeatureSet(TEXTS_OF_FEATURES)
    for query in queries:
        values = features.rows(index, query, index.rows([row["id"] for row in rows]))
        for row, computed in zip(rows, values, strict=True):
            for feature, number in zip(features, computed.tolist(), strict=True):
                expected = value(collection, query, row["id"], feature)
                assert number == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), (str(feature), query, row)


def test_a_field_without_any_word():
    index = Index.build([{"id": 1, "title": "", "body": "a b"}], fields={"title": "english", "body": "english"})
    texts = ["bm25(title)", "lm_jm(title)", "normalized_tf(title)", "covered(title)", "stream_length(title)"]
    assert np.array_equal(FeatureSet(texts).rows(index, "a", [0])[0], [0, math.nan, math.nan, 0, 0], equal_nan=True)


def test_a_query_without_any_term():
    index = Index.build([{"id": 1, "title": "a b"}], fields={"title": "english"}, positions=True)
    nan = ["covered_ratio", "boolean", "vsm", "lucene_classic", "lm_jm", "tf(statistic=min)", "phrase(title)",
           "min_span(title)", "ordered_bigrams(title)"]  # fmt: skip
    zero = ["covered", "idf", "bm25", "bm25f", "tf", "query_length"]
    assert np.isnan(FeatureSet(nan).rows(index, " ?! ", [0])).all()
    assert not FeatureSet(zero).rows(index, "", [0]).any()


def test_forms_of_urls():
    rows = [{"id": 1, "url": "https://a.org/b/c"}, {"id": 2, "url": ""}]
    index = Index.build(rows, fields={"url": "standard"})
    values = FeatureSet(["slashes(url)", "character_length(url)"]).rows(index, "x", [0, 1, 0])
    assert np.array_equal(values, [[4, 17], [math.nan, math.nan], [4, 17]], equal_nan=True)


# MSLR-WEB's formulas worked by hand: 4 documents, the query "red shoe"; in document 1 red occurs twice, shoe once.
SHOES = [
    {"id": 1, "body": "red red shoe box"},
    {"id": 2, "body": "red hat"},
    {"id": 3, "body": "blue hat and coat"},
    {"id": 4, "body": "green coat"},
]


def by_hand():
    """With N = 4, L = 4, mean L = 12/4 = 3; red: n = 2, 3 of 12 words; shoe: n = 1, 1 of 12 words; U = 3."""
    red, shoe = math.log(2.5 / 2.5), math.log(3.5 / 1.5)
    norm = 2.5 * (0.2 + 0.8 * 4 / 3)
    w_red, w_shoe = math.log(4 / 3), math.log(4 / 2)
    return {
        "idf(body)": red + shoe,
        "tf(body, statistic=variance)": 0.25,
        "normalized_tf(body, statistic=max)": 0.5,
        "tfidf(body)": 2 * red + shoe,
        "tfidf(body, statistic=mean)": (2 * red + shoe) / 2,
        "vsm(body)": (2 * w_red**2 + w_shoe**2)
        / (math.sqrt((2 * w_red) ** 2 + w_shoe**2) * math.sqrt(w_red**2 + w_shoe**2)),
        "bm25(body, k1=2.5, b=0.8, idf=robertson, scaled=true)": red * 3.5 * 2 / (2 + norm) + shoe * 3.5 / (1 + norm),
        "lm_absolute(body)": math.log(1.3 / 4 + 0.7 * 3 / 4 * 3 / 12) + math.log(0.3 / 4 + 0.7 * 3 / 4 / 12),
        "lm_dirichlet(body)": math.log((2 + 2000 * 3 / 12) / 2004) + math.log((1 + 2000 / 12) / 2004),
        "lm_jm(body)": math.log(0.9 * 2 / 4 + 0.1 * 3 / 12) + math.log(0.9 / 4 + 0.1 / 12),
    }


def test_mslr_by_hand():
    index = Index.build(SHOES, fields={"body": "standard"})
    expected = by_hand()
    assert FeatureSet(expected).rows(index, "red shoe", [0])[0] == pytest.approx(list(expected.values()), abs=1e-6)
    assert expected["lm_jm(body)"] == pytest.approx(-0.7444405 - 1.4552872, abs=1e-6)  # ln 0.475 + ln 7/30


@given(documents(min_size=2), TEXTS)
def test_bm25_equals_bm25s(rows, query):
    bm25s = pytest.importorskip("bm25s")
    index = built(rows)
    words = [index.fields["body"].analyzer.terms(row["body"]) for row in rows]
    terms = list(dict.fromkeys(index.fields["body"].analyzer.terms(query)))
    if not any(words) or not terms:
        return
    peer = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    peer.index([one or ["\0"] for one in words], show_progress=False)
    mean = np.mean([len(one) or 1 for one in words])  # bm25s cannot hold a document without words
    if mean != np.mean([len(one) for one in words]):
        return
    ours = FeatureSet(["bm25(body)"]).rows(index, query, index.rows([row["id"] for row in rows]))[:, 0]
    known = [term for term in terms if term in peer.vocab_dict]
    theirs = peer.get_scores(known) if known else np.zeros(len(rows))
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)  # bm25s keeps float32


@given(documents(min_size=2), TEXTS)
def test_bm25_equals_rank_bm25(rows, query):
    rank_bm25 = pytest.importorskip("rank_bm25")
    index = built(rows)
    analyzer = index.fields["body"].analyzer
    words = [analyzer.terms(row["body"]) for row in rows]
    if not any(words):
        return
    peer = rank_bm25.BM25Okapi(words, k1=1.2, b=0.75, epsilon=0)
    terms = [t for t in dict.fromkeys(analyzer.terms(query)) if peer.idf.get(t, 0) > 0]  # it changes negative idf
    ours = FeatureSet(["bm25(body, idf=robertson, scaled=true)"])
    values = ours.rows(index, " ".join(terms), index.rows([row["id"] for row in rows]))[:, 0]
    assert values == pytest.approx(peer.get_scores(terms), rel=1e-9, abs=1e-12)
