"""Analyzers: the documented rules, texts that parse back, stems."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podium.errors import DataError
from podium.features import Analyzer, analyzer, register_analyzer

STANDARD = Analyzer("standard")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Red SHOES, red-hot!", "red shoes red hot"),
        ("don't rock'n'roll 'quoted' dogs'", "don't rock'n'roll quoted dogs"),
        ("it’s l’amour", "it's l'amour"),
        ("3.14 1,000 v1.2.3 10. .5 2'3", "3.14 1,000 v1.2.3 10 5 2 3"),
        ("json.loads read_csv U.S.A.", "json loads read csv u s a"),
        ("a\x00b\x01c\td\u2028e\u00a0f", "a b c d e f"),
        ("Straße STRASSE ﬁn ＦＵＬＬ ½", "strasse strasse fin full 1 2"),
        ("nai\u0308ve naïve", "naïve naïve"),
        ("co\u00adoperate می\u200cخواهم", "cooperate میخواهم"),
        ("हिन्दी में", "हिन्दी में"),
        ("東京都 a京b", "東京 京都 a 京 b"),
        ("한국어 ひ カタカナ", "한국 국어 ひ カタ タカ カナ"),
        ("ภาษา", "ภา าษ ษา"),
        ("ที่นี่", "ที่นี่"),
        ("x東京3.14", "x 東京 3.14"),
        ("", ""),
        ("… — ‘’ 😀", ""),
    ],
)
def test_words(text, terms):
    assert STANDARD.terms(text) == terms.split()


@given(st.text(st.one_of(st.characters(max_codepoint=127), st.sampled_from("’‘“”–—…•\xa0"))))
@example("don’t 1…2 a…b 1’2 a—b")
@example("a'b.c,d 1.2,3'4 a'1 1'a _a_ a'_b")
def test_the_fast_path_of_ascii_is_the_rule_of_unicode(text):
    """A letter of another script, set apart, sends the text down the other path."""
    assert STANDARD.terms(f"{text} é")[:-1] == STANDARD.terms(text)


@given(st.text())
@example("ŉ ǰ İ ß ﬀ 京ŉ")
@example("ͅΐ")
def test_terms_are_normal_and_do_not_change_again(text):
    for term in STANDARD.terms(text):
        assert term
        assert term == unicodedata.normalize("NFKC", term)
        assert STANDARD.terms(term) == [term]


@given(st.text(), st.text())
def test_a_separator_separates(one, other):
    assert STANDARD.terms(f"{one}\n{other}") == STANDARD.terms(one) + STANDARD.terms(other)


@given(
    st.sampled_from(["standard", "english", "german", "turkish"]),
    st.booleans(),
    st.frozensets(st.sampled_from(["der", "the", "и"])),
)
def test_texts_parse_back(name, stem, stopwords):
    expected = Analyzer(name, stem, stopwords)
    assert Analyzer.parse(str(expected)) == expected
    assert Analyzer.parse(expected) is expected


def test_texts():
    assert str(Analyzer.parse(" english( stopwords=true ,stem=false)")) == "english(stem=false, stopwords=true)"
    assert Analyzer.parse("cjk") == STANDARD
    assert Analyzer.parse("english()") == Analyzer("english")
    assert Analyzer.parse("english(stopwords=true)").terms("the cats and the hats") == ["cat", "hat"]
    assert Analyzer.parse("german(stopwords=der|die)").terms("Der Häuser") == ["haus"]
    assert Analyzer.parse("standard(stopwords=a)").terms("a b") == ["b"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("englisch", r"did you mean 'english'"),
        ("english(stem=maybe)", "but got 'stem=maybe'"),
        ("english(fold=true)", "but got 'fold=true'"),
        ("german(stopwords=true)", "no list of stop words for 'german'"),
        ("", "expected an analyzer"),
        (None, "expected an analyzer"),
        ("english(", "expected an analyzer"),
    ],
)
def test_mistakes(text, problem):
    with pytest.raises(DataError, match=problem):
        Analyzer.parse(text)


def test_own_functions(monkeypatch):
    monkeypatch.setattr(analyzer, "_functions", {})
    register_analyzer("letters", list)
    assert Analyzer.parse("letters").terms("ab") == ["a", "b"]
    assert str(Analyzer.parse("letters")) == "letters"
    with pytest.raises(DataError, match="does not accept options"):
        Analyzer.parse("letters(stem=false)")
    register_analyzer("wrong", lambda text: text)
    with pytest.raises(DataError, match="must return a list of terms"):
        Analyzer("wrong").terms("ab")
    for wrong in (1, "", "a\x1fb", "\ud800"):
        register_analyzer("words", lambda text, word=wrong: [word])
        with pytest.raises(DataError, match="must return words"):
            Analyzer("words").terms("ab")
    for name in ("english", "Has Blanks", "cjk"):
        with pytest.raises(DataError, match="must not be a built-in name"):
            register_analyzer(name, list)


def test_stemmers_agree():
    """Snowball in Python and in C: the same stems, so an index may move between machines."""
    snowball = pytest.importorskip("snowballstemmer")
    c_stemmer = pytest.importorskip("Stemmer")
    words = {
        "english": "running generously skies dying news flies happily don't dogs' connection relational",
        "german": "häuser aufeinander kategorischen größe straße mädchen",
        "russian": "красивыми бегущий столами важнейшие",
        "french": "continuellement majestueusement mangeaient",
        "turkish": "kitaplarımızdan evlerinde",
        "arabic": "والكتاب المدرسة يكتبون",
    }
    for language, text in words.items():
        name = f"{language}_stemmer"
        python = getattr(__import__(f"snowballstemmer.{name}", fromlist=["x"]), f"{language.title()}Stemmer")()
        assert [python.stemWord(word) for word in text.split()] == c_stemmer.Stemmer(language).stemWords(text.split())
        assert Analyzer(language).terms(text.split()[0]) == [python.stemWord(text.split()[0])]
    assert snowball.algorithms()


def test_turkish_has_a_dotless_i():
    assert Analyzer("turkish", stem=False).terms("IŞIK İSTANBUL ISPARTA") == ["ışık", "istanbul", "ısparta"]


def test_long_words_are_cut():
    assert STANDARD.terms("x" * 1000) == ["x" * 255]
    assert Analyzer("english").terms("y" * 300) == Analyzer("english").terms("y" * 255)
