"""The compiled parser of LETOR lines: `label qid:ID index:value … # comment`.

Each `_parse_…` reads one part of a line. It returns the place where the next part begins, or −1 where it has noted a
problem.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bytes, Float32s, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.data.io.text.characters import (
    COLON,
    HASH,
    LINE_FEED,
    MINUS,
    NINE,
    RETURN,
    SPACE,
    TAB,
    ZERO,
    ends_line,
    ends_token,
    skip_blanks,
)
from podium.data.io.text.numbers import CERTAIN, NOT_A_NUMBER, UNCERTAIN, parse_number
from podium.data.io.text.outcome import (
    DESCENDING_INDEX,
    EMPTY_QID,
    INFINITE_LABEL,
    LABEL,
    LARGE_INDEX,
    LOW_INDEX,
    NEGATIVE_INDEX,
    NO_QID,
    NUL,
    PAIR,
    REPEATED_INDEX,
    VALUE,
    Notes,
    fail,
    note_query,
    note_uncertain,
)

_HUGE_INDEX = 1_000_000_000_000  # larger than any feature index may be


class Indices(NamedTuple):
    """The feature indices that a file may use."""

    first: int
    last: int


class Rows(NamedTuple):
    """Where the content of a block's rows goes.

    Attributes:
        features: values go to `features[row, index − first]`; or, where `columns` is not empty, one after the other to
            `features[0, :]`: compressed sparse rows.
        columns: the column of each value of sparse rows.
        pairs_before: the number of such values in earlier rows.
        labels: one a row.
        comments: (start, end) of each row's comment.

    """

    features: Float32s
    columns: Int32s
    pairs_before: Ints
    labels: Float32s
    comments: Ints


@kernel
def scan_letor(text: Bytes, most: Int) -> tuple[Int, Int, Int, Int]:
    """The lines, those with a document, the largest last index of a line, and the end: before document `most` + 1."""
    n, at, lines, rows, largest = len(text), 0, 0, 0, 0
    while at < n:
        start = at
        while text[at] == SPACE or text[at] == TAB or text[at] == RETURN:
            at += 1
        is_document = text[at] != LINE_FEED and text[at] != HASH
        if is_document and rows == most:
            return lines, rows, largest, start
        rows += is_document
        colon = -1
        while text[at] != LINE_FEED and text[at] != HASH:
            if text[at] == COLON:
                colon = at
            at += 1
        while text[at] != LINE_FEED:
            at += 1
        index: Int = 0
        power, digit_at = 1, max(colon - 1, 0)
        while digit_at > 0 and ZERO <= text[digit_at] <= NINE:
            index = min(index + power * np.int64(text[digit_at] - ZERO), _HUGE_INDEX)
            power = min(power * 10, _HUGE_INDEX)  # there may be any number of leading zeros
            digit_at -= 1
        if text[digit_at] == SPACE or text[digit_at] == TAB:
            largest = max(largest, index)
        lines += 1
        at += 1
    return lines, rows, largest, at


@kernel
def parse_letor(text: Bytes, indices: Indices, rows: Rows, notes: Notes, outcomes: NDArray[Any]) -> None:
    """Parse the lines of one block; the outcome is the one record of `outcomes`."""
    outcome = outcomes[0]
    at, row, line = 0, 0, 0
    while at < len(text):
        at = skip_blanks(text, at)
        is_document = not ends_line(text, at) and text[at] != HASH
        if is_document:
            at = _parse_label_and_query(text, at, line, rows.labels, notes, outcome)
            if at >= 0:
                at = _parse_features(text, at, indices, rows, notes, outcome)
            if at < 0:
                return
        start, has_comment = at + 1, text[at] == HASH
        while text[at] != LINE_FEED:
            if text[at] == 0:
                fail(outcome, NUL, at)
                return
            at += 1
        if is_document:
            rows.comments[row, 0] = start if has_comment else 0
            rows.comments[row, 1] = at if has_comment else 0
            row += 1
            outcome.rows = row
            rows.pairs_before[row] = outcome.pairs
        at += 1
        line += 1


@helper
def _parse_label_and_query(text: Bytes, at: Int, line: Int, labels: Float32s, notes: Notes, outcome: Any) -> Int:
    label, end, certainty, _ = parse_number(text, at)
    if certainty == NOT_A_NUMBER or not ends_token(text, end):
        return fail(outcome, LABEL, at)
    if math.isinf(label) and certainty == CERTAIN:
        return fail(outcome, INFINITE_LABEL, at)
    if certainty == UNCERTAIN and not note_uncertain(-1, at, end, notes.uncertain, outcome):
        return -1
    labels[outcome.rows] = label

    at = skip_blanks(text, end)
    if not (text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == COLON):  # qid:
        return fail(outcome, NO_QID, at)
    at += 4
    start = at
    while not ends_token(text, at):
        if text[at] == 0:
            return fail(outcome, NUL, at)
        at += 1
    if at == start:
        return fail(outcome, EMPTY_QID, at)
    note_query(text, line, start, at, notes.runs, outcome)
    return skip_blanks(text, at)


@helper
def _parse_features(text: Bytes, at: Int, indices: Indices, rows: Rows, notes: Notes, outcome: Any) -> Int:
    row, pair, previous, n_named = outcome.rows, outcome.pairs, indices.first - 1, 0
    is_sparse = len(rows.columns) > 0
    while not ends_line(text, at) and text[at] != HASH:
        start = at
        index: Int = 0
        digit = text[at] - np.uint8(ZERO)  # wraps: one comparison tells a digit
        while digit < 10:
            if index < _HUGE_INDEX:
                index = index * 10 + np.int64(digit)
            at += 1
            digit = text[at] - np.uint8(ZERO)
        if at == start or text[at] != COLON or index <= previous or index > indices.last:
            return fail(outcome, _index_problem(text, start, at, index, previous, indices), start)
        previous = index
        n_named += 1
        at += 1
        value, end, certainty, large = parse_number(text, at)
        if certainty == NOT_A_NUMBER or not ends_token(text, end):
            return fail(outcome, VALUE, at)
        column = index - indices.first
        slot = pair if is_sparse else column
        if certainty == UNCERTAIN and not note_uncertain(slot, at, end, notes.uncertain, outcome):
            return -1
        if math.isinf(value) and text[end - 1] <= NINE:  # written in digits, yet beyond float32
            outcome.overflows += 1
        if large != 0:
            notes.large[outcome.large, 0], notes.large[outcome.large, 1] = column, large
            outcome.large += 1
        if is_sparse:
            rows.columns[pair] = column
            rows.features[0, pair] = value
            pair += 1
        elif column < rows.features.shape[1]:  # else indices descend, and that problem is about to be met
            rows.features[row, column] = value
        at = skip_blanks(text, end)
    outcome.pairs = pair
    outcome.fewest = min(outcome.fewest, n_named)
    return at


@helper
def _index_problem(text: Bytes, start: Int, end: Int, index: Int, previous: Int, indices: Indices) -> Int:
    """What is wrong with an index that is no number, out of range, or not above the one before."""
    if end == start or text[end] != COLON:
        is_negative = text[start] == MINUS and ZERO <= text[start + 1] <= NINE
        return NEGATIVE_INDEX if is_negative else PAIR
    if index < indices.first:
        return LOW_INDEX
    if index > indices.last:
        return LARGE_INDEX
    return REPEATED_INDEX if index == previous else DESCENDING_INDEX
