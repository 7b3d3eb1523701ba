"""The compiled parser of delimited lines. An empty number is NaN, a missing value."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel
from podium.data.io.text.characters import (
    LINE_FEED,
    NINE,
    QUOTE,
    RETURN,
    SPACE,
    Bytes,
    Floats,
    Int,
    Ints,
    ends_line,
)
from podium.data.io.text.numbers import CERTAIN, NOT_A_NUMBER, UNCERTAIN, parse_number
from podium.data.io.text.outcome import (
    AFTER_QUOTE,
    EMPTY_QID,
    FIELDS,
    INFINITE,
    LONE_RETURN,
    NUL,
    OPEN_QUOTE,
    VALUE,
    Notes,
    fail,
    note_query,
    note_uncertain,
)

# Roles of the columns; 0 and above is a feature's column. Extras, and texts from FIRST_TEXT on, go down from their
# first.
SKIPPED, QID, FIRST_EXTRA, FIRST_TEXT = -1, -2, -3, -(2**31)


class Fields(NamedTuple):
    """Where the content of a block's rows goes.

    Attributes:
        roles: what each column of the file is.
        features: the values of feature columns.
        extras: the values of labels, weights and positions.
        texts: (start, end) of each field that stays text, the quotes of quoted ones included.

    """

    roles: Ints
    features: Floats
    extras: Floats
    texts: NDArray[np.int64]


@kernel
def scan_lines(text: Bytes, most: Int) -> tuple[Int, Int, Int, Int]:
    """The lines, those that are not blank, 0 (there are no indices), and the end: before row `most` + 1."""
    n, at, lines, rows = len(text), 0, 0, 0
    while at < n:
        start, blank = at, True
        while text[at] != LINE_FEED:
            blank = blank and (text[at] == SPACE or text[at] == RETURN)
            at += 1
        if not blank and rows == most:
            return lines, rows, 0, start
        rows += not blank
        lines += 1
        at += 1
    return lines, rows, 0, at


@kernel
def parse_delimited(text: Bytes, delimiter: Int, fields: Fields, notes: Notes, outcomes: NDArray[Any]) -> None:
    """Parse the lines of one block; the outcome is the one record of `outcomes`."""
    outcome = outcomes[0]
    at, row, line, last = 0, 0, -1, len(fields.roles) - 1
    while at < len(text):
        line += 1
        content = at
        while text[content] == SPACE:
            content += 1
        if ends_line(text, content):
            at = content + (2 if text[content] == RETURN else 1)
            continue
        for column in range(last + 1):
            if delimiter != SPACE:
                while text[at] == SPACE:
                    at += 1
            start, is_quoted = at, text[at] == QUOTE
            if is_quoted:
                at = _find_quoted_end(text, at, delimiter, outcome)
            else:
                at = _find_field_end(text, at, delimiter, outcome)
            if at < 0:
                return
            end = at
            while end > start and text[end - 1] == SPACE:
                end -= 1
            role = fields.roles[column]
            if role == QID or role <= FIRST_TEXT:
                if not _store_text(text, start, end, line, role, fields.texts, notes.runs, outcome):
                    return
            elif role != SKIPPED:
                start, end = start + is_quoted, end - is_quoted
                value, certainty, large = _parse_field(text, start, end)
                if certainty != CERTAIN or large != 0 or math.isinf(value):
                    if not _note_number(text, start, end, value, certainty, large, role, fields, notes, outcome):
                        return
                if role >= 0:
                    fields.features[row, role] = value
                else:
                    fields.extras[row, FIRST_EXTRA - role] = value
            if (text[at] == delimiter) == (column == last):
                fail(outcome, FIELDS, at)
                return
            at += column != last
        at += 2 if text[at] == RETURN else 1
        row += 1
        outcome.rows = row


@helper
def _find_field_end(text: Bytes, at: Int, delimiter: Int, outcome: Any) -> Int:
    """The delimiter or line end after a field; −1 where a problem is noted."""
    while True:
        while text[at] > RETURN and text[at] != delimiter:  # most bytes; the rest are control characters
            at += 1
        if text[at] == delimiter or ends_line(text, at):
            return at
        if text[at] == 0:
            return fail(outcome, NUL, at)
        if text[at] == RETURN:
            return fail(outcome, LONE_RETURN, at)
        at += 1


@helper
def _find_quoted_end(text: Bytes, start: Int, delimiter: Int, outcome: Any) -> Int:
    """The same for a field in quotes; a quote inside is doubled, and nothing but spaces may follow the last one."""
    at = start + 1
    while text[at] != QUOTE or text[at + 1] == QUOTE:
        if text[at] == LINE_FEED:
            return fail(outcome, OPEN_QUOTE, start)
        if text[at] == 0:
            return fail(outcome, NUL, at)
        if text[at] == RETURN:
            return fail(outcome, LONE_RETURN, at)
        at += 2 if text[at] == QUOTE else 1
    at += 1
    while text[at] == SPACE and delimiter != SPACE:
        at += 1
    if text[at] == delimiter or ends_line(text, at):
        return at
    return fail(outcome, NUL if text[at] == 0 else LONE_RETURN if text[at] == RETURN else AFTER_QUOTE, at)


@helper
def _store_text(
    text: Bytes, start: Int, end: Int, line: Int, role: Int, texts: NDArray[np.int64], runs: Ints, outcome: Any
) -> Any:
    """Store a query id, or a field that stays text; False where a problem is noted."""
    if role != QID:
        texts[outcome.rows, FIRST_TEXT - role, 0], texts[outcome.rows, FIRST_TEXT - role, 1] = start, end
    elif end == start or (text[start] == QUOTE and end - start <= 2):
        fail(outcome, EMPTY_QID, start)
        return False
    else:
        note_query(text, line, start, end, runs, outcome)
    return True


@helper
def _parse_field(text: Bytes, start: Int, end: Int) -> tuple[Any, Int, Int]:
    """The number that a field holds, how certain it is, and what `parse_number` says of large ones."""
    if start >= end:
        return np.float32(np.nan), CERTAIN, 0
    value, stop, certainty, large = parse_number(text, start)
    return value, certainty if stop == end else NOT_A_NUMBER, large


@helper
def _note_number(
    text: Bytes, start: Int, end: Int, value: Any, certainty: Int, large: Int, role: Int, fields: Fields, notes: Notes,
    outcome: Any,
) -> Any:  # fmt: skip
    """What is unusual about a number, for Python; False where it is a problem."""
    if certainty == NOT_A_NUMBER:
        fail(outcome, VALUE, start)
        return False
    if certainty == UNCERTAIN:
        slot = role if role >= 0 else fields.features.shape[1] + FIRST_EXTRA - role
        if not note_uncertain(slot, start, end, notes.uncertain, outcome):
            return False
    if math.isinf(value) and text[end - 1] <= NINE:  # written in digits, yet beyond float32
        outcome.overflows += 1
    if large != 0 and role >= 0:
        notes.large[outcome.large, 0], notes.large[outcome.large, 1] = role, large
        outcome.large += 1
    if role < 0 and math.isinf(value):  # no label, weight or position is
        fail(outcome, INFINITE, start)
        return False
    return True
