"""Snippets: the part of a text that best shows why it matches a query, with the matching words marked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection

from podium.features.analyzer import Analyzer, unicode_word

CHARACTERS = 240  # approximate length of a snippet
SEARCHED = 20_000  # characters to search, because documents may be long
SEPARATED = str.maketrans("_’ʼ", " ''")  # as in the analyzer, without changing positions
PAIR = 2  # characters of a word in scripts without spaces

Span = tuple[int, int, str]  # begin, end and term of a match


def snippet(text: str, analyzer: Analyzer, terms: Collection[str]) -> list[str]:
    """Return a part of a text as pieces, alternately outside and inside a match: every second piece is a match.

    The part has about 240 characters, and begins and ends between words.

    Args:
        text: the text.
        analyzer: the analyzer of the field.
        terms: the terms of the query according to this analyzer.

    Example:
        >>> english = Analyzer.parse("english")
        >>> snippet("Red and blue shoes", english, english.terms("a red shoe"))
        ['', 'Red', ' and blue ', 'shoes', '']

    """
    spans = matches_in(text[:SEARCHED], analyzer, frozenset(terms))
    begin, end = _window(text, spans)
    pieces, at = [], begin
    for first, last, _ in spans:
        if at <= first and last <= end:
            pieces += [text[at:first], text[first:last]]
            at = last
    pieces.append(text[at:end])
    pieces[0] = ("… " if begin > 0 else "") + pieces[0]
    pieces[-1] += " …" if end < len(text) else ""
    return pieces


def matches_in(text: str, analyzer: Analyzer, terms: frozenset[str]) -> list[Span]:
    """Return the matches in a text, in order and without overlaps."""
    spans: list[Span] = []
    if not terms:
        return spans
    matching_term: dict[str, str] = {}  # of each word; "" if it does not match
    for match in unicode_word().finditer(text.translate(SEPARATED)):
        word = match.group()
        if word not in matching_term:
            word_terms = analyzer.terms(word)
            term = next((term for term in word_terms if term in terms), "")
            if term and len(word_terms) > 1 and not word.isascii():  # pairs of an unspaced script
                spans += _pairs(word, match.start(), analyzer, terms)
                continue
            matching_term[word] = term
        if matching_term[word]:
            spans.append((match.start(), match.end(), matching_term[word]))
    return spans


def _pairs(word: str, start: int, analyzer: Analyzer, terms: frozenset[str]) -> list[Span]:
    """Return the matching pairs of characters of a word, joining adjacent ones."""
    spans: list[Span] = []
    for k in range(len(word) - PAIR + 1):
        term = next((term for term in analyzer.terms(word[k : k + PAIR]) if term in terms), None)
        if term is None:
            continue
        if spans and spans[-1][1] >= start + k:
            spans[-1] = (spans[-1][0], start + k + PAIR, spans[-1][2])
        else:
            spans.append((start + k, start + k + PAIR, term))
    return spans


def _window(text: str, spans: list[Span]) -> tuple[int, int]:
    """Return the start and end of the part with the most distinct terms, then the most matches, then the earliest."""
    if len(text) <= CHARACTERS:
        return 0, len(text)
    starts = [first for first, _, _ in spans]
    best, start = (-1, -1), 0
    for k, first in enumerate(starts):
        inside = spans[k : bisect_left(starts, first + CHARACTERS * 3 // 4)]
        value = len({term for _, _, term in inside}), len(inside)
        if value > best:
            best, start = value, first
    begin = max(0, min(start - CHARACTERS // 4, len(text) - CHARACTERS))
    end = min(len(text), begin + CHARACTERS)
    if begin > 0 and (gap := text.find(" ", begin, start)) >= 0:
        begin = gap + 1
    if end < len(text) and (gap := text.rfind(" ", start, end)) > begin:
        end = gap
    return begin, end
