"""Feature sets: ranking data from queries and judgements; the same bits offline and online, in any blocks."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium.errors import DataError, FileFormatError, PodiumWarning
from podium.features import FeatureSet, Index, default, letor4, mslr
from podium.features import feature_set as module
from tests.features.collections_ import TEXTS, built, documents

ROWS = [
    {"id": "a", "title": "Red shoes", "body": "shoes for running", "votes": 3},
    {"id": "b", "title": "Blue hat", "body": "a hat, red as well", "votes": 5},
    {"id": "c", "title": "Green coat", "body": "", "votes": None},
]
QUERIES = {"1": "red shoes", "2": "hat", "3": "zebra"}
GRADES = {"1": {"a": 2, "b": 0}, "2": {"b": 1, "c": 0}, "3": {"c": 1}}


@pytest.fixture
def index():
    return built(ROWS, positions=True)


def same_bits(a, b):
    return np.array_equal(np.asarray(a, np.float64).view(np.int64), np.asarray(b, np.float64).view(np.int64))


def test_ranking_data(index):
    features = FeatureSet(["bm25", "attribute(votes)"])
    data = features.compute(index, QUERIES, GRADES)
    assert data.feature_names == ("bm25", "attribute(votes)")
    assert data.document_ids.tolist() == ["a", "b", "b", "c", "c"]
    assert data.qid.tolist() == ["1", "1", "2", "2", "3"]
    assert data.relevance.tolist() == [2, 0, 1, 0, 1]
    assert np.array_equal(data.feature("attribute(votes)"), [3, 5, 5, np.nan, np.nan], equal_nan=True)
    expected = [*features.rows(index, "red shoes", [0, 1])[:, 0], features.rows(index, "hat", [1])[0, 0], 0, 0]
    assert data.features[:, 0].tolist() == np.array(expected, np.float32).tolist()
    model = podium.LambdaMART(n_trees=2, n_leaves=2, min_documents_in_leaf=1).fit(data)
    assert model.predict(data).shape == (5,)


@given(documents(min_size=1), st.lists(TEXTS, min_size=1, max_size=4), st.integers(1, 7), st.sampled_from([1, 2, 3]))
def test_blocks_threads_and_order_do_not_matter(rows, texts, size, n_threads):
    index = built(rows, positions=True)
    features = FeatureSet([*default(index), *mslr(body="body", title="title")])
    ids = [row["id"] for row in rows]
    queries = {str(k): text for k, text in enumerate(texts)}
    candidates = dict.fromkeys(queries, ids)
    before = module.PAIRS_AT_ONCE
    try:
        module.PAIRS_AT_ONCE = size
        data = features.compute(index, queries, candidates=candidates, n_threads=n_threads)
    finally:
        module.PAIRS_AT_ONCE = before
    turned = features.compute(index, queries, candidates=dict.fromkeys(queries, ids[::-1]))
    for number, text in enumerate(texts):
        online = features.rows(index, text, index.rows(ids))
        assert same_bits(data.features[data.rows(number)], online.astype(np.float32))
        assert same_bits(turned.features[turned.rows(number)][::-1], online.astype(np.float32))


@given(documents(min_size=1), st.lists(TEXTS, min_size=1, max_size=3))
def test_row_numbers_and_term_numbers_do_not_matter(rows, texts):
    """The same documents in another order, some of them removed, give the same bits."""
    index, other = built(rows), built([{**row, "id": f"x{row['id']}"} for row in rows[:3]] + rows[::-1])
    other.remove([f"x{row['id']}" for row in rows[:3]])
    features = default(index)
    ids = [row["id"] for row in rows]
    for text in texts:
        a, b = (features.rows(one, text, one.rows(ids)) for one in (index, other))
        assert same_bits(a, b)


@given(documents(min_size=1), TEXTS)
def test_search_gives_the_scores_of_the_feature(rows, text):
    index = built(rows)
    for by in ("bm25", "bm25(title)", "bm25(body, k1=0.7, b=0.1)"):
        hits = index.search(text, k=5, by=by)
        assert same_bits(hits.scores, FeatureSet([by]).rows(index, text, hits.rows)[:, 0])


def test_top_candidates(index):
    data = FeatureSet(["bm25"]).compute(index, {"1": "red"}, {"1": {"b": 2, "c": 1}}, "bm25 top 2")
    assert dict(zip(data.document_ids, data.relevance, strict=True)) == {"b": 2, "a": 0}
    unlabelled = FeatureSet(["bm25"]).compute(
        index, {"1": "red"}, {"1": {"b": 2}}, "bm25(title) top 5", unjudged=float("nan")
    )
    assert np.isnan(unlabelled.relevance).tolist() == [True]
    assert not FeatureSet(["bm25"]).compute(index, {"1": "red"}, candidates="bm25 top 1").labels


def test_values_too_close_for_float32_survive():
    rows = [{"id": k, "title": "a", "time": 1.7e9 + k} for k in range(300)]
    index = Index.build(rows, fields={"title": "english"})
    features = FeatureSet(["bm25", "attribute(time)"])
    data = features.compute(index, {"1": "a"}, {"1": {str(k): k % 2 for k in range(300)}})
    assert data.feature("attribute(time)").tolist() == [1.7e9 + k for k in range(300)]
    assert len(np.unique(data.features[:, 1])) == 300


def test_large_values_that_come_late_survive():
    rows = [{"id": k, "title": "a", "time": 1.7e9 + k if k > 1100 else None} for k in range(1200)]
    index = Index.build(rows, fields={"title": "english"}, attributes=["time"])
    grades = {str(k): {str(k): 1} for k in range(1200)}
    data = FeatureSet(["attribute(time)"]).compute(index, dict.fromkeys(grades, "a"), grades)
    assert data.feature("attribute(time)")[1101:].tolist() == [1.7e9 + k for k in range(1101, 1200)]


def test_long_queries_make_small_blocks():
    pairs = module._Pairs(["1", "2", "3"], ["a", "a " * 40, "a"], np.array([0, 10, 20, 30]), None, None, None)
    assert list(pairs.blocks(30)) == [(0, 2), (2, 3)]
    assert list(pairs.blocks(1000)) == [(0, 3)]
    assert list(pairs.blocks(1)) == [(0, 1), (1, 2), (2, 3)]


def test_analyzers_that_differ_match_word_by_word():
    rows = [{"id": 1, "title": "running shoes", "body": "The runner runs"}, {"id": 2, "title": "run", "body": "shoe"}]
    index = Index.build(rows, fields={"title": "standard", "body": "english(stopwords=true)"})
    features = FeatureSet(["covered", "covered_ratio", "tf", "query_length", "stream_length"])
    values = features.rows(index, "the running shoes", [0, 1])
    assert values.tolist() == [[2, 2 / 3, 3, 3, 4], [1, 1 / 3, 1, 3, 2]]
    both = FeatureSet(["bm25", "bm25f(title, body)", "bm25f(body, title)"]).rows(index, "the running shoes", [0, 1])
    assert (both > 0).all()
    assert np.allclose(both[:, 1], both[:, 2])
    assert features.explain(index, "running", 1)[2].terms == {}
    assert FeatureSet(["bm25"]).explain(index, "running", "1")[0].terms.keys() == {"running/run"}


def test_explanations_add_up(index):
    for one in FeatureSet(["bm25", "bm25f(title:3, body)", "lm_jm(body)", "idf", "lucene_classic", "covered"]).explain(
        index, "red shoes", "a"
    ):
        if one.feature != "covered":
            assert one.terms.keys() == {"red", "shoe"}
            assert sum(one.terms.values()) == pytest.approx(one.value)


def test_saved_sets(tmp_path, index):
    features = mslr(body="body", title="title")
    features.save(tmp_path / "set.json")
    loaded = FeatureSet.load(tmp_path / "set.json")
    assert loaded == features
    assert loaded.left_out == features.left_out
    assert FeatureSet(features.names) == features
    for content, message in [
        ("[]", "is not a Podium feature set"),
        ("{", "not valid JSON"),
        (json.dumps({"format": "podium features", "version": 9}), "version 9"),
        (json.dumps({"format": "podium features", "version": 1, "features": [1]}), "list of texts"),
        (json.dumps({"format": "podium features", "version": 1, "features": ["bm26"]}), "no feature 'bm26'"),
    ]:
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(FileFormatError, match=f"bad.json.*{message}"):
            FeatureSet.load(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({}, GRADES), "at least one query"),
        ((QUERIES, None), "requires judgements"),
        (
            (QUERIES, {"9": {"a": 1}}),
            "no query has a judgement: the query ids are '1', '2', '3', …, but the judgements are for '9'",
        ),
        ((QUERIES, GRADES, "top"), "candidates must be"),
        ((QUERIES, GRADES, "bm25 top 0"), "candidates must be"),
        (({"1": "red"}, {"1": {"a": 1}}, {"1": ["a", "a"]}), "query '1' has the same candidate twice"),
        (({"1": "zebra"}, {"1": {"a": 1}}, "bm25 top 10"), "no query has a candidate"),
    ],
)
def test_errors(index, arguments, message):
    with pytest.raises(DataError, match=message):
        FeatureSet(["bm25"]).compute(index, *arguments)


def test_wrong_sets_and_rows_are_refused(index):
    with pytest.raises(DataError, match="at least one feature"):
        FeatureSet([])
    assert FeatureSet(["bm25(title)", "tf", "bm25( title )"]).names == ("bm25(title)", "tf")
    for rows in ([3], [-1], [[0]]):
        with pytest.raises(DataError, match="row numbers of the index"):
            FeatureSet(["bm25"]).rows(index, "red", rows)
    with pytest.raises(DataError, match="the query must be text"):
        FeatureSet(["bm25"]).rows(index, 7, [0])
    with pytest.raises(DataError, match="no document 'z'"):
        FeatureSet(["bm25"]).explain(index, "red", "z")
    assert FeatureSet(["bm25"]).rows(index, "red", []).shape == (0, 1)


def test_dropped_queries_and_documents_warn(index):
    features = FeatureSet(["bm25"])
    with pytest.warns(PodiumWarning, match="2 of 3 queries have no judgement"):
        features.compute(index, QUERIES, {"1": {"a": 1}})
    with pytest.warns(PodiumWarning, match="1 of 2 judged documents are not in the index.*'z'"):
        features.compute(index, {"1": "red"}, {"1": {"a": 1, "z": 0}})
    with pytest.warns(PodiumWarning, match="1 of 3 queries have no candidate"):
        features.compute(index, QUERIES, GRADES, "bm25 top 2")


def test_presets(index):
    streams = {"body": "b", "anchor": "a", "title": "t", "url": "u"}
    whole = mslr(**streams, inlinks="1", outlinks="2", pagerank="3", siterank="4", quality="5", quality2="6",
                 url_clicks="7", dwell="8")  # fmt: skip
    assert len(whole) == 135
    assert [note.partition(" ")[0] for note in whole.left_out] == ["134"]
    position = {
        0: "covered(b)", 9: "covered_ratio(b, a, t, u)", 12: "stream_length(t)", 18: "idf(u)", 20: "tf(b)",
        25: "tf(b, statistic=min)", 45: "normalized_tf(b, missing=0)", 94: "tfidf(b, a, t, u, statistic=variance)",
        95: "boolean(b)", 100: "vsm(b)", 105: "bm25(b, k1=2.5, b=0.8, idf=robertson, scaled=true)",
        110: "lm_absolute(b, missing=minimum)", 115: "lm_dirichlet(b, missing=minimum)",
        120: "lm_jm(b, missing=minimum)", 125: "slashes(u)", 126: "character_length(u)", 127: "attribute(1)",
    }  # fmt: skip
    assert {k: whole.names[k] for k in position} == position
    letor = letor4(**streams, pagerank="p", inlinks="i", outlinks="o", children="c")
    assert len(letor) == 46
    assert not letor.left_out
    assert letor.names[15] == "stream_length(b)"
    alone = mslr(body="body")
    assert len(alone) == 25
    assert "5 covered terms, whole: the same as the only stream" in alone.left_out
    assert len(alone) + len(alone.left_out) == 136
    for wrong in ({}, {"body": "x", "title": "x"}):
        with pytest.raises(DataError, match="stream"):
            mslr(**wrong)
    default_set = default(index)
    default_set.check(index)
    assert "attribute(votes)" in default_set.names
    assert "ordered_bigrams(title)" in default_set.names
    assert not any("bigrams" in name for name in default(built(ROWS)).names)


def test_minimum_of_the_candidates(index):
    values = FeatureSet(["lm_jm(title)", "lm_jm(title, missing=minimum)"]).rows(index, "red hat", [0, 1, 2])
    assert np.isnan(values[2, 0])
    assert values[2, 1] == values[:2, 0].min()
