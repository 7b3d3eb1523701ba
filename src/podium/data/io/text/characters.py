"""Bytes of text as kernels see them.

A block of text is a uint8 array that holds whole lines and ends with a line feed. The kernels rely on that last line
feed: every inner loop stops at it, so no loop needs to look for the end of the array.
"""

from __future__ import annotations

from typing import Any

from podium.core.array_types import Bytes, Int
from podium.core.compiling import helper

TAB, LINE_FEED, RETURN, SPACE, HASH = 9, 10, 13, 32, 35
PLUS, MINUS, DOT, ZERO, NINE, COLON, LETTER_E = 43, 45, 46, 48, 57, 58, 101


@helper
def skip_blanks(text: Bytes, at: Int) -> Int:
    """The next byte that is neither a space nor a tab."""
    while text[at] == SPACE or text[at] == TAB:
        at += 1
    return at


@helper
def ends_line(text: Bytes, at: Int) -> Any:
    """Whether a line feed stands here, or a carriage return before one."""
    return text[at] == LINE_FEED or (text[at] == RETURN and text[at + 1] == LINE_FEED)


@helper
def ends_token(text: Bytes, at: Int) -> Any:
    """Whether a blank, a comment or a line end stands here."""
    c = text[at]
    return c == SPACE or c == TAB or c == HASH or c == LINE_FEED or c == RETURN


@helper
def same_bytes(text: Bytes, a: Int, a_end: Int, b: Int, b_end: Int) -> Any:
    """Whether two pieces of the text are equal."""
    if a_end - a != b_end - b:
        return False
    for k in range(a_end - a):
        if text[a + k] != text[b + k]:
            return False
    return True
