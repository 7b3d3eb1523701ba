"""The compiled parser of LETOR lines, `label qid:ID index:value … # comment`, and its records.

Each `_parse_…` parses one part of a line. It returns the position of the next part, or −1 if it recorded a problem.
Every block ends with a line feed, which stops all inner loops, so they need no check for the end of the block.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bytes, Float32s, Floats, Int, Int32s, Ints
from podium.core.compiling import helper, kernel
from podium.data.io.text_numbers import (
    CERTAIN,
    COLON,
    EXACT_FLOAT32,
    HASH,
    LINE_FEED,
    MINUS,
    NINE,
    NOT_A_NUMBER,
    RETURN,
    SPACE,
    TAB,
    UNCERTAIN,
    ZERO,
    ends_line,
    ends_token,
    parse_number,
    same_bytes,
    skip_blanks,
)

# The problems that text can have, and their messages.
LABEL, INFINITE_LABEL, NO_QID, EMPTY_QID, PAIR, NEGATIVE_INDEX, LOW_INDEX = 1, 2, 3, 4, 5, 6, 7
REPEATED_INDEX, DESCENDING_INDEX, LARGE_INDEX, VALUE, NUL, LONE_RETURN = 8, 9, 10, 11, 12, 13
FULL_BUFFER = 14  # not a problem of the text: the caller repeats the call with a larger buffer

PROBLEMS = {
    LABEL: "expected a label, a number, but found {token!r}",
    INFINITE_LABEL: "labels must be finite, or nan for unlabelled documents, but found {token!r}",
    NO_QID: (
        "expected qid:ID after the label, but found {token!r}; alternatively, provide a file FILE.query or FILE.group "
        "with the number of documents of each query"
    ),
    EMPTY_QID: "the query id is empty",
    PAIR: "expected index:value, but found {token!r}",
    NEGATIVE_INDEX: "feature indices must count from {first}, but the index of {token!r} is negative",
    LOW_INDEX: (
        "feature indices must count from {first}, but the index of {token!r} is smaller "
        "(pass first_index=0 if the file counts from 0)"
    ),
    REPEATED_INDEX: "feature indices must be distinct, but the index of {token!r} is repeated on this line",
    DESCENDING_INDEX: "feature indices must ascend, but the index of {token!r} is smaller than the one before it",
    LARGE_INDEX: "the feature index of {token!r} is larger than {last}{why_last}",
    VALUE: "expected a number, but found {token!r}",
    NUL: "found a NUL byte: this is not a text file, or it is damaged",
    LONE_RETURN: "found a carriage return inside a line: convert the file to Unix line endings",
}


class ParseOutcome(NamedTuple):
    """The counts of a parser, and the first problem.

    Kernels write it as a record of the type `OUTCOME`.
    """

    rows: int = 0  # documents
    # the number of entries in `Notes`
    runs: int = 0
    uncertain: int = 0
    large: int = 0
    # the query id of the last run
    run_start: int = 0
    run_end: int = -1
    pairs: int = 0  # values of compressed sparse rows
    overflows: int = 0  # numbers, other than inf, that overflow float32
    fewest: int = 2**62  # the smallest number of features on a line
    problem: int = 0  # the code of the problem, or 0
    at: int = 0  # the byte where the problem is


OUTCOME = np.dtype([(name, np.int64) for name in ParseOutcome._fields])


class Notes(NamedTuple):
    """Entries that a parser leaves to Python, one per row."""

    runs: Ints  # (row, line, start, end) of every query id that differs from the one before it
    uncertain: Ints  # (row, slot, start, end) of numbers that Python has to parse; the slot −1 is the label
    large: Ints  # (column, digits) of numbers from 2^24, which float32 may merge with others


@helper
def fail(outcome: Any, problem: Int, at: Int) -> Int:
    """Record a problem, and return −1, which parsers return instead of the next position."""
    outcome.problem = problem
    outcome.at = at
    return -1


@helper
def note_query(text: Bytes, line: Int, start: Int, end: Int, runs: Ints, outcome: Any) -> None:
    """Begin a run of rows if the query id differs from the previous one."""
    if not same_bytes(text, outcome.run_start, outcome.run_end, start, end):
        _write_row(runs, outcome.runs, outcome.rows, line, start, end)
        outcome.runs += 1
        outcome.run_start = start
        outcome.run_end = end


@helper
def note_uncertain(slot: Int, start: Int, end: Int, uncertain: Ints, outcome: Any) -> Any:
    """Leave a number of the current row to Python; record a problem and return False if the buffer is full."""
    if outcome.uncertain == len(uncertain):
        outcome.problem = FULL_BUFFER
        return False
    _write_row(uncertain, outcome.uncertain, outcome.rows, slot, start, end)
    outcome.uncertain += 1
    return True


@helper
def _write_row(table: Ints, entry: Int, row: Int, second: Int, start: Int, end: Int) -> None:
    """Write four numbers one by one; assigning a tuple to a row would take seconds to compile."""
    table[entry, 0], table[entry, 1], table[entry, 2], table[entry, 3] = row, second, start, end


_HUGE_INDEX = 1_000_000_000_000  # larger than any valid feature index


class Indices(NamedTuple):
    """The valid feature indices of a file, and whether its lines have query ids."""

    first: int
    last: int
    has_qid: bool


class ParsedRows(NamedTuple):
    """The arrays that receive the content of a block's rows."""

    # Values go to `features[row, index − first]`. For compressed sparse rows, where `columns` is not empty, they go to
    # `features[0, :]`, one after the other.
    features: Float32s
    columns: Int32s  # the column of each value of sparse rows
    pairs_before: Ints  # the number of such values in earlier rows
    labels: Floats  # one per row, as float64, so that a warning can say what float32 loses
    comments: Ints  # (start, end) of each row's comment


@kernel
def scan_letor(text: Bytes, most: Int) -> tuple[Int, Int, Int, Int]:
    """Return the numbers of lines and documents, the largest last index, and where `most` documents or the text end."""
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
        # Indices ascend, so the digits before the last colon, read backwards, are the largest index of the line.
        index: Int = 0
        power, digit_at = 1, max(colon - 1, 0)
        while digit_at > 0 and ZERO <= text[digit_at] <= NINE:
            index = min(index + power * np.int64(text[digit_at] - ZERO), _HUGE_INDEX)
            power = min(power * 10, _HUGE_INDEX)  # bounded, because there may be any number of leading zeros
            digit_at -= 1
        if text[digit_at] == SPACE or text[digit_at] == TAB:
            largest = max(largest, index)
        lines += 1
        at += 1
    return lines, rows, largest, at


@kernel
def parse_letor(text: Bytes, indices: Indices, rows: ParsedRows, notes: Notes, outcomes: NDArray[Any]) -> None:
    """Parse the lines of a block, and write the outcome to the single record of `outcomes`."""
    outcome = outcomes[0]
    at, row, line = 0, 0, 0
    while at < len(text):
        at = skip_blanks(text, at)
        is_document = not ends_line(text, at) and text[at] != HASH
        if is_document:
            at = _parse_label_and_query(text, at, line, indices, rows.labels, notes, outcome)
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
def _parse_label_and_query(
    text: Bytes, at: Int, line: Int, indices: Indices, labels: Floats, notes: Notes, outcome: Any
) -> Int:
    label, end, certainty, _ = parse_number(text, at)
    if certainty == NOT_A_NUMBER or not ends_token(text, end):
        return fail(outcome, LABEL, at)
    if math.isinf(label) and certainty == CERTAIN:
        return fail(outcome, INFINITE_LABEL, at)
    # Leave labels that float32 may round, fractions and large numbers, to Python.
    is_rounded = not math.isnan(label) and (label != np.floor(label) or abs(label) >= EXACT_FLOAT32)
    if (certainty == UNCERTAIN or is_rounded) and not note_uncertain(-1, at, end, notes.uncertain, outcome):
        return -1
    labels[outcome.rows] = label

    at = skip_blanks(text, end)
    if not (text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == COLON):  # qid:
        return fail(outcome, NO_QID, at) if indices.has_qid else at
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
def _parse_features(text: Bytes, at: Int, indices: Indices, rows: ParsedRows, notes: Notes, outcome: Any) -> Int:
    row, pair, previous, n_named = outcome.rows, outcome.pairs, indices.first - 1, 0
    is_sparse = len(rows.columns) > 0
    while not ends_line(text, at) and text[at] != HASH:
        start = at
        index: Int = 0
        digit = text[at] - np.uint8(ZERO)  # wraps around, so that one comparison detects a digit
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
        if math.isinf(value) and text[end - 1] <= NINE:  # written in digits, so it overflows float32
            outcome.overflows += 1
        if large != 0:
            notes.large[outcome.large, 0], notes.large[outcome.large, 1] = column, large
            outcome.large += 1
        if is_sparse:
            rows.columns[pair] = column
            rows.features[0, pair] = value
            pair += 1
        elif column < rows.features.shape[1]:  # otherwise indices descend, which is detected below
            rows.features[row, column] = value
        at = skip_blanks(text, end)
    outcome.pairs = pair
    outcome.fewest = min(outcome.fewest, n_named)
    return at


@helper
def _index_problem(text: Bytes, start: Int, end: Int, index: Int, previous: Int, indices: Indices) -> Int:
    """Return the code of the problem of an index that is invalid, out of range, or not above the previous one."""
    if end == start or text[end] != COLON:
        is_negative = text[start] == MINUS and ZERO <= text[start + 1] <= NINE
        return NEGATIVE_INDEX if is_negative else PAIR
    if index < indices.first:
        return LOW_INDEX
    if index > indices.last:
        return LARGE_INDEX
    return REPEATED_INDEX if index == previous else DESCENDING_INDEX
