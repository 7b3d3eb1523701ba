"""Rows of numbers straight from the bytes of a body: what nearly every request holds, without an object for each.

Whatever is anything else than `{"documents": [[…], …]`, with numbers and nulls in rows of one length, is left to the
general way, which also says what is wrong with it. Up to eight digits are read at once (Lemire 2021, section 4).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.data.io.text.characters import (
    DOT,
    LETTER_E,
    LINE_FEED,
    MINUS,
    NINE,
    RETURN,
    SPACE,
    TAB,
    ZERO,
    Bytes,
    Int,
)
from podium.data.io.text.numbers import CERTAIN, parse_number, to_float32

OPEN, CLOSE, COMMA = 91, 93, 44
NULL = np.uint64(int.from_bytes(b"null", "little"))
PADDING = bytes(8)  # behind the text: every loop stops at a 0, and eight bytes may be read at once
_BEGIN = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"documents"[ \t\r\n]*:[ \t\r\n]*(?=\[)')
_ZEROS, _SIX, _HIGH = np.uint64(0x3030303030303030), np.uint64(0x7676767676767676), np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_PAIRS, _FOURS, _EIGHT = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)
_TENS = 10 ** np.arange(9, dtype=np.int64)


class LeadingRows(NamedTuple):
    """The documents with which a body begins.

    Attributes:
        rows: of numbers.
        rest: the body with null in their place.

    """

    rows: NDArray[np.float32]
    rest: bytes


def leading_rows(body: bytes) -> LeadingRows | None:
    """The documents of a body that begins with rows of numbers, each the float32 of `float`; None for any other.

    The rest of the body is not looked at.

    >>> leading_rows(b'{"documents": [[1.5, null], [-2, 0.1]], "k": 1}')
    LeadingRows(rows=array([[ 1.5,  nan], [-2. ,  0.1]], dtype=float32), rest=b'{"documents":null, "k": 1}')
    >>> leading_rows(b'{"documents": [{"age": 1}]}') is None
    True
    """
    begin = _BEGIN.match(body)
    if begin is None:
        return None
    first = body.find(b"]", begin.end())
    rows = np.empty((body.count(b"[", begin.end()) - 1, body.count(b",", begin.end(), first) + 1), np.float32)
    padded = body + PADDING
    words: Any = np.ndarray((len(body) + 1,), np.uint64, padded, strides=(1,))  # the eight bytes from any place
    n_rows, end = _read_rows(np.frombuffer(padded, np.uint8), words, begin.end(), rows)
    return LeadingRows(rows[:n_rows], b'{"documents":null' + body[end:]) if end > 0 else None


@kernel
def _read_rows(text: Bytes, words: Any, at: Int, rows: Any) -> tuple[Int, Int]:
    """Fill the rows from `[[…], …]`, which begins at `at`: how many there are, and the place behind; −1 if not so."""
    for row in range(rows.shape[0]):
        at = _after_blanks(text, at + 1)  # behind the bracket, or behind a comma
        if text[at] != OPEN:
            return 0, -1
        for column in range(rows.shape[1]):
            value, at = _read_value(text, words, _after_blanks(text, at + 1))
            if at < 0:
                return 0, -1
            rows[row, column] = value
            at = _after_blanks(text, at)
            if text[at] != (COMMA if column + 1 < rows.shape[1] else CLOSE):
                return 0, -1
        at = _after_blanks(text, at + 1)
        if text[at] == CLOSE:
            return row + 1, at + 1
        if text[at] != COMMA:
            return 0, -1
    return 0, -1


@helper
def _after_blanks(text: Bytes, at: Int) -> Int:
    """The next place that holds no blank."""
    while text[at] == SPACE or text[at] == LINE_FEED or text[at] == TAB or text[at] == RETURN:
        at += 1
    return at


@helper
def _read_value(text: Bytes, words: Any, at: Int) -> tuple[Any, Int]:
    """A number or null, and the place behind it; −1 where there is neither, or where the number is not certain."""
    start = at
    negative = text[at] == MINUS
    if negative:
        at += 1
    n_whole, mantissa = _read_digits(words[at])
    if n_whole == 0:
        is_null = not negative and (words[at] & _EIGHT) == NULL
        return np.float32(np.nan), at + 4 if is_null else -1
    if n_whole > 1 and text[at] == ZERO:
        return np.float32(0.0), -1
    if n_whole == 8:
        return _read_long(text, start)
    at += n_whole
    n_digits: Int = 0
    if text[at] == DOT:
        n_digits, fraction = _read_digits(words[at + 1])
        if n_digits == 8:
            return _read_long(text, start)
        if n_digits == 0:
            return np.float32(0.0), -1
        at += 1 + n_digits
        mantissa = mantissa * _TENS[n_digits] + fraction
    if (text[at] | 32) == LETTER_E:
        return _read_long(text, start)
    value, _ = to_float32(mantissa, -n_digits, False)  # below 10^14, so always certain
    return (-value if negative else value), at


@helper
def _read_digits(word: Any) -> tuple[Int, Int]:
    """How many of eight bytes are digits before the first that is none, and the number that they write."""
    digits = word ^ _ZEROS
    others = ((digits + _SIX) | digits) & _HIGH  # bytes above 9; behind the first one they may be wrong
    if others == np.uint64(0):
        n: Int = 8
    else:
        below = (others & (~others + np.uint64(1))) - np.uint64(1)
        n = np.int64(((below & _ONES) * _ONES) >> np.uint64(56)) - 1
        if n == 0:
            return 0, 0
        digits <<= np.uint64(64 - 8 * n)  # zeros come in front
    digits = (digits * np.uint64(10) + (digits >> np.uint64(8))) & _PAIRS
    digits = (digits * np.uint64(100) + (digits >> np.uint64(16))) & _FOURS
    return n, np.int64((digits * np.uint64(10000) + (digits >> np.uint64(32))) & _EIGHT)


@helper
def _read_long(text: Bytes, at: Int) -> tuple[Any, Int]:
    """A number of many digits, or with an exponent."""
    value, end, sure, _ = parse_number(text, at)
    if sure != CERTAIN or not abs(value) < np.inf:
        return np.float32(0.0), -1
    for place in range(at, end):
        if text[place] == DOT and not ZERO <= text[place + 1] <= NINE:
            return np.float32(0.0), -1
    return value, end
