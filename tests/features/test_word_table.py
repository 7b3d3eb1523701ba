"""The compiled table of words against the analyzer's own rule."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podium.features import Analyzer
from podium.features.word_table import SEPARATOR, WordTable

STANDARD = Analyzer("standard")
TEXTS = st.one_of(st.text(st.sampled_from("ab1'.,_A \x1f")), st.text(st.characters(max_codepoint=127)), st.text())


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=5))
@example(["a'b.c,d 1.2,3'4 a'1 1'a _a_ a'_b", "", "x"], ["'", "1.", "a'"])
def test_words_are_those_of_the_analyzer(one, other):
    table = WordTable()
    for texts in (one, other, one):
        plain = [STANDARD.ascii_text(text) for text in texts]
        split = [SEPARATOR.join(STANDARD.words(text)) for text in texts]
        documents = [a if a is not None else b for a, b in zip(plain, split, strict=True)]
        numbers, ends = table.number([text.encode() for text in documents], [text is None for text in plain])
        words = [table.word(number) for number in numbers.tolist()]
        starts = [0, *ends.tolist()][:-1]
        table_words = [words[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]
        assert table_words == [[word[:255] for word in STANDARD.words(text)] for text in texts]
    distinct = [table.word(number) for number in range(table.size)]
    assert len(set(distinct)) == table.size


def test_the_table_grows():
    table = WordTable()
    words = [f"w{k}" for k in range(20_000)]
    text = " ".join(words * 2).encode()
    numbers, ends = table.number([text[: len(text) // 2], text[len(text) // 2 :]], [False, False])
    assert np.array_equal(numbers, [*range(20_000), *range(20_000)])
    assert ends.tolist() == [20_000, 40_000]
    assert [table.word(k) for k in range(table.size)] == words
    numbers, _ = table.number([b"x" * 1_000_000 + b" w7 W19999", SEPARATOR.join(words).encode()], [False, True])
    assert numbers.tolist() == [20_000, 7, 19_999, *range(20_000)]
    assert table.word(20_000) == "x" * 255
