"""Search against a slow reference, bm25s and rank_bm25."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import DataError
from podium.features import Index, parse
from podium.features.matches import PairBlock
from tests.features.collections_ import TEXTS, bm25_scores, built, documents, some_ids

BY = {"bm25": ["title", "body"], "bm25(title)": ["title"], "bm25(body, k1=0.9, b=0.4)": ["body"]}


@settings(deadline=None)
@given(documents(), TEXTS, st.sampled_from(list(BY)), st.integers(1, 5), st.data())
def test_search_gives_the_bits_of_the_definition(rows, query, by, k, data):
    index = built(rows)
    removed = data.draw(some_ids(rows))
    index.remove(removed)
    options = {"k1": 0.9, "b": 0.4} if "k1" in by else {}
    texts = {row["id"]: row for row in rows if row["id"] not in removed}
    expected = bm25_scores(index, texts, query, BY[by], **options) if texts else {}
    best = sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:k]
    hits = index.search(query, k, by)
    assert list(zip(hits.ids, hits.scores.tolist(), strict=True)) == best
    assert hits.ids == [index.ids[row] for row in hits.rows]


def zipf_texts(n_documents, n_words, seed, vocabulary=5000):
    random = np.random.default_rng(seed)
    numbers = np.minimum(random.zipf(1.2, (n_documents, n_words)), vocabulary)
    return [" ".join(f"w{number}" for number in row[: random.integers(1, n_words + 1)]) for row in numbers]


@pytest.fixture(scope="module")
def collection():
    texts = zipf_texts(3000, 40, 7)
    return texts, Index.build([{"id": f"{k:05}", "t": text} for k, text in enumerate(texts)], fields={"t": "standard"})


def test_pruning_keeps_the_top_k(collection):
    """Long lists, many ties: the same as scoring full document."""
    texts, index = collection
    queries = zipf_texts(200, 6, 8)
    all_hits = index.search_many(queries, len(texts))
    for k in (1, 3, 10, 100):
        for hits, full in zip(index.search_many(queries, k), all_hits, strict=True):
            assert hits.ids == full.ids[:k]
            assert np.array_equal(hits.scores, full.scores[:k])
            order = sorted(zip(-full.scores, full.ids, strict=True))
            assert [key for _, key in order] == full.ids


def test_threads_and_batches_give_the_same_bits(collection):
    _, index = collection
    queries = zipf_texts(300, 5, 9)
    one = index.search_many(queries, 10, n_threads=1)
    for hits, other, single in zip(one, index.search_many(queries, 10, n_threads=3), queries, strict=True):
        assert hits.ids == other.ids
        assert np.array_equal(hits.scores, other.scores)
        assert index.search(single).ids == hits.ids


def test_scores_equal_those_of_bm25s(collection):
    bm25s = pytest.importorskip("bm25s")
    texts, index = collection
    model = bm25s.BM25(method="lucene", k1=1.2, b=0.75, dtype="float64")
    model.index([text.split() for text in texts], show_progress=False)
    for query in zipf_texts(50, 5, 10):
        terms = list(dict.fromkeys(word for word in query.split() if word in model.vocab_dict))
        scores = model.get_scores(terms)
        hits = index.search(query, len(texts))
        assert np.allclose(scores[hits.rows], hits.scores, rtol=1e-12)
        assert np.count_nonzero(scores) == len(hits.ids)


def test_scores_follow_those_of_rank_bm25(collection):
    """BM25Plus with δ = 0 has the factor k₁ + 1 and another idf, so the scores of one term differ by a factor."""
    rank_bm25 = pytest.importorskip("rank_bm25")
    texts, index = collection
    model = rank_bm25.BM25Plus([text.split() for text in texts], k1=1.2, b=0.75, delta=0)
    for word in ("w1", "w7", "w50"):
        hits = index.search(word, len(texts))
        ratio = model.get_scores([word])[hits.rows] / hits.scores
        assert np.allclose(ratio, ratio[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("w1", 0), "k must be a whole number from 1"),
        (("w1", 5, "nonsense"), "no feature 'nonsense'"),
        (("w1", 5, "bm25(title)"), "no text field 'title'"),
        (("w1", 5, "bm25(t, k3=1)"), "has no parameter 'k3'"),
        (("w1", 5, "bm25(t, b=2)"), "b must be"),
        (("w1", 5, "bm25(t"), "is not a feature"),
        ((None, 5), "the query must be text"),
    ],
)
def test_errors(collection, arguments, problem):
    with pytest.raises(DataError, match=problem):
        collection[1].search(*arguments)


BY_FEATURES = (
    "bm25", "bm25(title, scaled=true)", "bm25f(title:3, body)", "bm25(body, idf=robertson)", "lm_dirichlet(title)",
    "lucene_classic(body)", "attribute(votes)",
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(documents(min_size=1), TEXTS, st.sampled_from(BY_FEATURES), st.booleans(), st.data())
def test_search_gives_the_bits_of_the_feature(rows, query, by, is_mixed, data):
    """This includes fields with different analyzers."""
    index = Index.build(rows, {"title": "english", "body": "standard" if is_mixed else "english"}, attributes=["votes"])
    index.remove(data.draw(some_ids(rows)))
    hits = index.search(query, len(rows), by)
    live = np.flatnonzero(index.is_live)
    pairs = PairBlock(index, [query], live, np.array([0, len(live)]))
    value_of = dict(zip(live.tolist(), parse(by).column(pairs).tolist(), strict=True))
    assert [value_of[row] for row in hits.rows.tolist()] == hits.scores.tolist()
    assert hits.ids == [key for _, key in sorted(zip(-hits.scores, hits.ids, strict=True))]
    if by == "bm25":
        assert sorted(hits.rows.tolist()) == live[parse("covered").column(pairs) > 0].tolist()


def test_queries_without_known_terms_find_nothing(collection):
    for query in ("", "unknown", "…"):
        assert collection[1].search(query).ids == []
