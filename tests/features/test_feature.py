"""Features as values: texts that parse back, errors, user-defined features."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import DataError
from podium.features import Feature, FeatureSet, Index, parse, register
from podium.features.feature import definitions, registered, table, unregister
from podium.features.ranking_functions import BM25, BM25F
from podium.features.term_features import tf


@pytest.fixture
def index():
    rows = [{"id": 1, "title": "red shoes", "votes": 3}, {"id": 2, "title": "blue hat"}]
    return Index.build(rows, fields={"title": "english"})


@pytest.mark.parametrize(
    "text",
    [
        "bm25", "bm25(title)", "bm25(title, overview, k1=0.9)", "bm25f(title:3, overview)", "bm25f(title:0.5)",
        "lm_dirichlet(title, mu=10, missing=minimum)", "tf(title, statistic=variance, missing=0)",
        "bm25(title, idf=robertson, scaled=true)", 'bm25("a field, with: signs")', 'bm25("quoted \\"name\\"")',
        "ordered_bigrams(body, window=3)", "attribute(votes, missing=-1)", "query_length", "bm25(überschrift)",
    ],
)  # fmt: skip
def test_texts_parse_back(text):
    feature = parse(text)
    assert str(feature) == text
    assert parse(str(feature)) == feature
    assert hash(parse(text)) == hash(feature)


names = st.text(min_size=1, max_size=8)
numbers = st.floats(0, 1e6)


@given(st.lists(names, max_size=3, unique=True), numbers, st.floats(0, 1), st.sampled_from([math.nan, 0.0, "minimum"]))
def test_any_fields_and_numbers_parse_back(fields, k1, b, missing):
    feature = BM25(tuple(fields), k1=k1, b=b, missing=missing)
    assert parse(str(feature)) == feature
    weighted = BM25F(tuple(fields), weights=tuple(k1 + k for k in range(len(fields))))
    assert parse(str(weighted)) == weighted


def test_defaults_are_left_out():
    assert str(parse(" BM25 ( title ,k1 = 1.20, b=.75, scaled=FALSE ) ")) == "bm25(title)"
    assert str(parse("bm25()")) == "bm25"
    assert parse("bm25(title)") == BM25("title") == BM25(("title",))
    assert parse("bm25(title)") != parse("bm25(body)")
    assert BM25("title").replace(k1=2.0) == parse("bm25(title, k1=2)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm26(title)", "no feature 'bm26' .did you mean 'bm25'"),
        ("bm25(title", "not a feature"),
        ("", "not a feature"),
        ("bm25(title,)", "column 6: expected a field"),
        ("bm25(ti(tle))", "column 6: expected a field"),
        ("bm25(title, k2=1)", "bm25 has no parameter 'k2'; it has k1, b, idf, scaled, missing"),
        ("lm_dirichlet(title, muu=1)", "no parameter 'muu' .did you mean 'mu'"),
        ("bm25(title, k1=x)", "k1 must be a number, but got 'x'"),
        ("bm25(title, k1=-1)", "k1 must be non-negative"),
        ("bm25(title, k1=nan)", "k1 must be"),
        ("bm25(title, b=2)", "b must be"),
        ("bm25(title, idf=luzene)", "idf must be one of .*did you mean 'lucene'"),
        ("bm25(title, scaled=1)", "scaled must be true or false"),
        ("bm25(k1=1, title)", "fields must come before parameters"),
        ("bm25(title, k1=1, k1=2)", "k1 occurs twice"),
        ("bm25(title, title)", "must be distinct"),
        ("bm25(title:3)", "does not support weights; use bm25f"),
        ("bm25f(title:-1)", "weights of bm25f must be"),
        ("bm25f(title:x)", "weight must be a number"),
        ("min_span(title, body)", "exactly one field"),
        ("attribute", "exactly one attribute, but got none"),
        ("ordered_bigrams(title, window=1)", "window must be a whole number from 2"),
        ("ordered_bigrams(title, window=2.5)", "window must be a whole number"),
        ("tf(title, missing=zero)", "missing must be a number"),
    ],
)
def test_errors_name_what_is_wrong(text, message):
    with pytest.raises(DataError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm25(titel)", "no text field 'titel' .did you mean 'title'"),
        ("attribute(vote)", "no numeric attribute 'vote' .did you mean 'votes'"),
        ("phrase(title)", "needs the positions of words.*positions=True"),
        ("slashes(url)", "no text field 'url'"),
    ],
)
def test_features_that_the_index_cannot_compute_are_refused(index, text, message):
    with pytest.raises(DataError, match=message):
        FeatureSet([text]).rows(index, "shoes", [0])


def test_missing_values(index):
    texts = ["attribute(votes)", "attribute(votes, missing=-1)", "attribute(votes, missing=minimum)"]
    values = FeatureSet(texts).rows(index, "red", [0, 1])
    assert np.array_equal(values, [[3, 3, 3], [math.nan, -1, 3]], equal_nan=True)
    alone = FeatureSet(texts[2:]).rows(index, "red", [1])
    assert np.isnan(alone).all()  # there is no other candidate


def test_a_function_is_a_feature(index):
    try:

        @register
        def share_of_title(matches, power=1.0, at_least: int = 1):
            """Share of the words that match."""
            return (matches.covered >= at_least) * (matches.covered / matches.lengths) ** power

        feature = parse("share_of_title(title, power=2)")
        assert str(feature) == "share_of_title(title, power=2)"
        assert feature == share_of_title("title", power=2.0)
        assert feature.formula == "Share of the words that match."
        assert FeatureSet([feature]).rows(index, "red", [0, 1]).tolist() == [[0.25], [0.0]]
        assert ("share_of_title(field, …, power=1, at_least=1)") in [row[0] for row in definitions()]
        with pytest.raises(DataError, match="at_least must be a whole number"):
            parse("share_of_title(title, at_least=1.5)")
    finally:
        unregister("share_of_title")
    with pytest.raises(DataError, match="no feature 'share_of_title'"):
        parse("share_of_title(title)")


def test_a_class_is_a_feature(index):
    try:

        @register
        @dataclass(frozen=True, eq=False)
        class Row(Feature):
            """The number of the row."""

            name = "row_number"

            def values(self, pairs):
                return pairs.rows

        assert FeatureSet(["row_number"]).rows(index, "red", [1, 0]).tolist() == [[1], [0]]
    finally:
        unregister("row_number")


def test_invalid_features_are_refused(index):
    with pytest.raises(DataError, match="not a subclass"):
        register(dict)
    with pytest.raises(DataError, match="the feature 'tf' already exists"):

        @register
        class Other(tf):
            pass

    with pytest.raises(DataError, match="must be a number or a boolean"):

        @register
        def worded(matches, kind="a"):
            return matches.covered

    with pytest.raises(DataError, match="a feature must be a Feature or text"):
        FeatureSet([BM25])
    try:

        @register
        def misshapen(matches):
            return np.zeros(7)

        with pytest.raises(DataError, match="misshapen must return one value for each of 2 pairs"):
            FeatureSet(["misshapen"]).rows(index, "red", [0, 1])
    finally:
        unregister("misshapen")


def test_every_feature_is_defined_in_words():
    for call, meaning, formula, _, undefined in definitions():
        assert all([call, meaning, formula, undefined]), call
    assert len(definitions()) == len(registered())


def test_the_page_has_the_table_of_features(monkeypatch):
    podiums = {name: kind for name, kind in registered().items() if str(kind.__module__).startswith("podium.")}
    monkeypatch.setattr("podium.features.feature._FEATURES", podiums)  # without those of examples in this process
    page = (Path(__file__).parents[2] / "docs" / "features.md").read_text()
    between = page.partition("<!-- features -->")[2].partition("<!-- end of features -->")[0]
    assert between.strip() == table(), "write podium.features.feature.table() between the markers of docs/features.md"
