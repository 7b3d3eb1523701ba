"""What a parser reports of a block: counts, notes for Python, and the first problem."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from podium.core.array_types import Bytes, Int, Ints
from podium.core.compiling import helper
from podium.data.io.text.characters import same_bytes

# What can be wrong with text, and the words for it.
LABEL, INFINITE_LABEL, NO_QID, EMPTY_QID, PAIR, NEGATIVE_INDEX, LOW_INDEX = 1, 2, 3, 4, 5, 6, 7
REPEATED_INDEX, DESCENDING_INDEX, LARGE_INDEX, VALUE, NUL, LONE_RETURN = 8, 9, 10, 11, 12, 13
FULL_BUFFER = 14  # not the text's fault: the caller comes again with a larger buffer

PROBLEMS = {
    LABEL: "expected a label, a number, but found {token!r}",
    INFINITE_LABEL: "the label {token!r} is infinite; labels are finite numbers, or nan for none",
    NO_QID: "expected qid:ID after the label, but found {token!r}",
    EMPTY_QID: "the query id is empty",
    PAIR: "expected index:value, but found {token!r}",
    NEGATIVE_INDEX: "the feature index of {token!r} is negative; indices count from {first}",
    LOW_INDEX: (
        "the feature index of {token!r} is below {first}; indices count from {first} "
        "(pass first_index=0 for a file that counts from 0)"
    ),
    REPEATED_INDEX: "the feature index of {token!r} stands twice on this line",
    DESCENDING_INDEX: "the feature index of {token!r} is smaller than the one before it",
    LARGE_INDEX: "the feature index of {token!r} is larger than {last}{why_last}",
    VALUE: "expected a number, but found {token!r}",
    NUL: "a NUL byte: this is not a text file, or it is damaged",
    LONE_RETURN: "a carriage return inside a line: convert the file to Unix line ends",
}


class Outcome(NamedTuple):
    """What a parser counted, and the first problem.

    Kernels have it as a record of the type `OUTCOME`, and write its fields while they go.

    Attributes:
        rows: documents.
        runs, uncertain, large: entries of `Notes`.
        run_start, run_end: the query id of the last run.
        pairs: values of compressed sparse rows.
        overflows: numbers in digits that are beyond float32.
        fewest: the least number of features on a line.
        problem: its code, or 0.
        at: the byte where it is.

    """

    rows: int = 0
    runs: int = 0
    uncertain: int = 0
    large: int = 0
    run_start: int = 0
    run_end: int = -1
    pairs: int = 0
    overflows: int = 0
    fewest: int = 2**62
    problem: int = 0
    at: int = 0


OUTCOME = np.dtype([(name, np.int64) for name in Outcome._fields])


class Notes(NamedTuple):
    """What a parser leaves to Python, one row each.

    Attributes:
        runs: (row, line, start, end) of every query id that differs from the one before it.
        uncertain: (row, slot, start, end) of numbers whose float32 only Python tells; the slot −1 is the label.
        large: (column, digits) of whole numbers that float32 does not hold.

    """

    runs: Ints
    uncertain: Ints
    large: Ints


@helper
def fail(outcome: Any, problem: Int, at: Int) -> Int:
    """Note a problem; −1, which parsers return instead of the place where they go on."""
    outcome.problem = problem
    outcome.at = at
    return -1


@helper
def note_query(text: Bytes, line: Int, start: Int, end: Int, runs: Ints, outcome: Any) -> None:
    """Begin a run of rows if the query id differs from the one before."""
    if not same_bytes(text, outcome.run_start, outcome.run_end, start, end):
        _write_row(runs, outcome.runs, outcome.rows, line, start, end)
        outcome.runs += 1
        outcome.run_start = start
        outcome.run_end = end


@helper
def note_uncertain(slot: Int, start: Int, end: Int, uncertain: Ints, outcome: Any) -> Any:
    """Leave a number of the present row to Python; False where the buffer is full, which is noted as the problem."""
    if outcome.uncertain == len(uncertain):
        outcome.problem = FULL_BUFFER
        return False
    _write_row(uncertain, outcome.uncertain, outcome.rows, slot, start, end)
    outcome.uncertain += 1
    return True


@helper
def _write_row(table: Ints, entry: Int, row: Int, second: Int, start: Int, end: Int) -> None:
    """Four numbers, one by one: assigning a tuple to a row would compile for seconds."""
    table[entry, 0], table[entry, 1], table[entry, 2], table[entry, 3] = row, second, start, end
