"""Snippets: parts of the text itself, with the right words marked."""

from hypothesis import given
from hypothesis import strategies as st

from podium.features import Analyzer
from podium.features.snippets import CHARACTERS, SEARCHED, snippet
from tests.features.collections_ import TEXTS, WORDS

ENGLISH = Analyzer.parse("english")


@given(st.lists(st.sampled_from([*WORDS, "<b>", '"', "\u202e", "&amp;", "."]), max_size=120).map(" ".join), TEXTS)
def test_pieces_are_the_text_and_every_second_one_matches(text, query):
    terms = ENGLISH.terms(query)
    pieces = snippet(text, ENGLISH, terms)
    whole = "".join(pieces)
    assert whole.removeprefix("… ").removesuffix(" …") in text
    assert len(whole) <= CHARACTERS + 4
    assert len(pieces) % 2 == 1
    for piece in pieces[1::2]:
        assert set(ENGLISH.terms(piece)) & set(terms)
    assert not any(set(ENGLISH.terms(piece)) & set(terms) for piece in pieces[::2])
    if set(ENGLISH.terms(text)) & set(terms):
        assert len(pieces) > 1


def test_the_part_with_most_distinct_terms_is_shown():
    text = "red " + "x " * 200 + "red shoes " + "y " * 200
    pieces = snippet(text, ENGLISH, ENGLISH.terms("red shoes"))
    assert pieces[1::2] == ["red", "shoes"]
    assert pieces[0].startswith("… x")
    assert pieces[-1].endswith("y …")


def test_words_are_marked_as_the_analyzer_finds_them():
    cases = {
        ("parse_json os.path 3.14", "path json 3.14"): ["json", "path", "3.14"],
        ("He doesn’t run", "doesn't running"): ["doesn’t", "run"],
        ("東京都は大きい。京都も", "京都"): ["京都", "京都"],
        ("हिन्दी भाषा", "भाषा"): ["भाषा"],
        ("nothing", "here"): [],
        ("", "here"): [],
    }
    for (text, query), marked in cases.items():
        assert snippet(text, ENGLISH, ENGLISH.terms(query))[1::2] == marked, text


def test_only_the_beginning_of_long_documents_is_searched():
    text = "x " * SEARCHED + "red"
    assert snippet(text, ENGLISH, ENGLISH.terms("red")) == ["x " * (CHARACTERS // 2 - 1) + "x …"]
