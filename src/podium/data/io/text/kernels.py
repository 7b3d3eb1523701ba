"""Compiled parsers and formatters for ranking data as text.

A block of text is a uint8 array that holds whole lines and ends with a line feed. The kernels rely on
that last line feed: every inner loop stops at it, so no loop needs to look for the end of the array.

Numbers come out as the float32 that Python's `float` rounds to, digit for digit (`to_float32`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.compiling import helper, kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Int = Any  # an integer, compiled as int64

TAB, LINE_FEED, RETURN, SPACE, QUOTE, HASH = 9, 10, 13, 32, 34, 35
PLUS, MINUS, DOT, ZERO, NINE, COLON, LETTER_E = 43, 45, 46, 48, 57, 58, 101

# What a parser reports in `outcome`, one int64 each.
ROWS, RUNS, PAIRS, HARD, OVERFLOWS, ERROR, AT, LARGE, FEWEST, N_OUTCOMES = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9

# What can be wrong; the words for each stand beside the readers.
LABEL, INFINITE_LABEL, NO_QID, EMPTY_QID, PAIR, NEGATIVE_INDEX, LOW_INDEX = 1, 2, 3, 4, 5, 6, 7
REPEATED_INDEX, DESCENDING_INDEX, LARGE_INDEX, VALUE, NUL, LONE_RETURN = 8, 9, 10, 11, 12, 13
FIELDS, OPEN_QUOTE, AFTER_QUOTE = 14, 15, 16
INFINITE = 18
TOO_MANY_HARD = 17  # not the text's fault: the caller comes again with more room

# Roles of the columns of a delimited file; 0 and above is a feature's column. Extras, and texts from FIRST_TEXT on, go
# down from their first.
SKIPPED, QID, FIRST_EXTRA, FIRST_TEXT = -1, -2, -3, -(2**31)

_POWERS = np.array([float(f"1e{k}") for k in range(80)])  # each rounded to the nearest double
_HUGE_INDEX = 1_000_000_000_000  # larger than any feature index may be
_EXACT = 16777216  # float32 holds all whole numbers up to this
_LONGEST = 18  # decimal digits that always fit an int64
_NOT_A_NUMBER, _CERTAIN, _UNCERTAIN = 0, 1, 2


@helper
def to_float32(mantissa: Int, exponent: Int, truncated: bool) -> tuple[Any, Any]:
    """float32(float64(mantissa · 10^exponent)), and whether that is certain.

    Up to 2^53 and 10^22 both factors are doubles, so one multiplication or division rounds correctly
    (Clinger 1990). Beyond that the double may be off by a few units in its last place. Rounding is
    monotone, so where both ends of a generous interval round to the same float32 there is no doubt; for
    the rest, about one number in 2^26, the caller asks Python.
    """
    if mantissa == 0:
        return np.float32(0.0), True
    if exponent > 38:
        return np.float32(np.inf), True
    if exponent < -70:  # below 10^18 · 10^-71, less than half the smallest float32
        return np.float32(0.0), True
    value: Any = float(mantissa)
    if exponent < 0:
        value /= _POWERS[-exponent]
    else:
        value *= _POWERS[exponent]
    if mantissa <= 9007199254740992 and -22 <= exponent <= 22 and not truncated:
        return np.float32(value), True
    low = np.float32(value * (1.0 - 2.0**-50))
    high = np.float32(value * (1.0 + 2.0**-50))
    return low, low == high


@helper
def _is_word(text: Bytes, at: Int, first: Int, second: Int, third: Int) -> Any:
    """Whether three letters, in either case, stand at `at`; stops early at the end of a line."""
    return (text[at] | 32) == first and (text[at + 1] | 32) == second and (text[at + 2] | 32) == third


@helper
def _number_in_letters(text: Bytes, at: Int) -> tuple[float, Int]:
    """`nan`, `inf` and `infinity` in any case: the value, and the place after it (`at` if none)."""
    if _is_word(text, at, 110, 97, 110):
        return np.nan, at + 3
    if _is_word(text, at, 105, 110, 102):
        at += 3
        if _is_word(text, at, 105, 110, 105) and (text[at + 3] | 32) == 116 and (text[at + 4] | 32) == 121:
            at += 5
        return np.inf, at
    return 0.0, at


@helper
def _long_mantissa(text: Bytes, at: Int) -> tuple[Int, Int, Any]:
    """The first 18 significant digits from `at`, the power of ten they lack, and whether more followed."""
    mantissa: Int = 0
    exponent, kept = 0, 0
    truncated, fraction = False, False
    while True:
        c = text[at]
        if c == DOT and not fraction:
            fraction = True
        elif ZERO <= c <= NINE:
            if kept < _LONGEST:
                mantissa = mantissa * 10 + (c - ZERO)
                kept += mantissa > 0
                exponent -= fraction
            else:
                truncated = truncated or c != ZERO
                exponent += not fraction
        else:
            return mantissa, exponent, truncated
        at += 1


@helper
def _large_number(value: Any, mantissa: Int, exponent: Int) -> Int:
    """The whole part of mantissa · 10^exponent, or its first 18 digits, where float32 does not hold it; else 0."""
    if not _EXACT <= value < np.inf:
        return 0
    while exponent < 0:
        mantissa //= 10
        exponent += 1
    while exponent > 0 and mantissa < 100_000_000_000_000_000:
        mantissa *= 10
        exponent -= 1
    return 0 if exponent == 0 and value < 1e18 and np.int64(value) == mantissa else mantissa


@helper
def parse_number(text: Bytes, at: Int) -> tuple[Any, Int, Int, Int]:
    """The number that starts at `at`: its value, the place after it, how sure the value is, and `_large_number`."""
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    first = at
    mantissa: Int = 0
    digit = text[at] - np.uint8(ZERO)  # wraps: one comparison tells a digit
    while digit < 10:
        mantissa = mantissa * 10 + np.int64(digit)
        at += 1
        digit = text[at] - np.uint8(ZERO)
    digits = at - first
    exponent: Int = 0
    if text[at] == DOT:
        at += 1
        fraction = at
        digit = text[at] - np.uint8(ZERO)
        while digit < 10:
            mantissa = mantissa * 10 + np.int64(digit)
            at += 1
            digit = text[at] - np.uint8(ZERO)
        exponent = fraction - at
        digits += at - fraction
    if digits == 0:
        value, end = _number_in_letters(text, first)
        if end == first or at != first:
            return np.float32(0.0), at, _NOT_A_NUMBER, 0
        return np.float32(-value if negative else value), end, _CERTAIN, 0
    truncated = False
    if digits > _LONGEST:
        mantissa, exponent, truncated = _long_mantissa(text, first)
    if (text[at] | 32) == LETTER_E:
        at += 1
        shrinks = text[at] == MINUS
        if shrinks or text[at] == PLUS:
            at += 1
        first = at
        power: Int = 0
        digit = text[at] - np.uint8(ZERO)
        while digit < 10:
            if power < 1_000_000_000:  # more is beyond any text; the cap only keeps it an int64
                power = power * 10 + np.int64(digit)
            at += 1
            digit = text[at] - np.uint8(ZERO)
        if at == first:
            return np.float32(0.0), at, _NOT_A_NUMBER, 0
        exponent += -power if shrinks else power
    value32, certain = to_float32(mantissa, exponent, truncated)
    large = _large_number(value32, mantissa, exponent)
    sure = _CERTAIN if certain else _UNCERTAIN
    return (-value32, at, sure, -large) if negative else (value32, at, sure, large)


@helper
def _skip_blanks(text: Bytes, at: Int) -> Int:
    while text[at] == SPACE or text[at] == TAB:
        at += 1
    return at


@helper
def _ends_line(text: Bytes, at: Int) -> Any:
    return text[at] == LINE_FEED or (text[at] == RETURN and text[at + 1] == LINE_FEED)


@helper
def _ends_token(text: Bytes, at: Int) -> Any:
    c = text[at]
    return c == SPACE or c == TAB or c == HASH or c == LINE_FEED or c == RETURN


@helper
def _same_bytes(text: Bytes, a: Int, a_end: Int, b: Int, b_end: Int) -> Any:
    if a_end - a != b_end - b:
        return False
    for k in range(a_end - a):
        if text[a + k] != text[b + k]:
            return False
    return True


@helper
def _note(table: Ints, entry: Int, row: Int, second: Int, start: Int, end: Int) -> None:
    """Write a row of a table; assigning a tuple to it would compile for seconds."""
    table[entry, 0], table[entry, 1], table[entry, 2], table[entry, 3] = row, second, start, end


@kernel
def scan_letor(text: Bytes) -> tuple[Int, Int, Int]:
    """The lines, the lines that hold a document, and the largest last feature index of a line."""
    n, at, lines, rows, largest = len(text), 0, 0, 0, 0
    while at < n:
        while text[at] == SPACE or text[at] == TAB or text[at] == RETURN:
            at += 1
        rows += text[at] != LINE_FEED and text[at] != HASH
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
        if text[digit_at] == SPACE or text[digit_at] == TAB:  # else it is no feature index, as in qid:3
            largest = max(largest, index)
        lines += 1
        at += 1
    return lines, rows, largest


@kernel
def parse_letor(
    text: Bytes,
    first_index: Int,
    last_index: Int,
    features: Floats,
    columns: NDArray[np.int32],
    pairs_before: Ints,
    labels: Floats,
    runs: Ints,
    comments: Ints,
    hard: Ints,
    larges: Ints,
    outcome: Ints,
) -> None:
    """Parse the lines `label qid:ID index:value … # comment` of one block.

    Features go to `features[row, index − first_index]` or, where `columns` has room, one after the other
    to `features[0, :]` with their columns beside them, `pairs_before[row]` counting those of earlier
    rows: compressed sparse rows. `runs` takes (row, line, start, end) of every query id that differs
    from the one before it, `comments` the (start, end) of each row's comment, `hard` the (row, slot,
    start, end) of numbers left to Python, the slot −1 for the label, `larges` the (column, digits) of whole
    numbers that float32 does not hold. `outcome[FEWEST]` is the least number of features on a line.
    """
    n, at, row, line, n_runs, n_pairs, n_hard, n_large = len(text), 0, 0, 0, 0, 0, 0, 0
    fewest: Int = _HUGE_INDEX
    sparse = len(columns) > 0
    run_start, run_end = 0, -1
    while at < n:
        at = _skip_blanks(text, at)
        if not _ends_line(text, at) and text[at] != HASH:
            label, end, sure, _ = parse_number(text, at)
            if sure == _NOT_A_NUMBER or not _ends_token(text, end):
                outcome[ERROR], outcome[AT] = LABEL, at
                return
            if math.isinf(label) and sure == _CERTAIN:
                outcome[ERROR], outcome[AT] = INFINITE_LABEL, at
                return
            if sure == _UNCERTAIN:
                if n_hard == len(hard):
                    outcome[ERROR] = TOO_MANY_HARD
                    return
                _note(hard, n_hard, row, -1, at, end)
                n_hard += 1
            labels[row] = label

            at = _skip_blanks(text, end)
            if not (text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == COLON):
                outcome[ERROR], outcome[AT] = NO_QID, at
                return
            start = at + 4
            at = start
            while not _ends_token(text, at):
                if text[at] == 0:
                    outcome[ERROR], outcome[AT] = NUL, at
                    return
                at += 1
            if at == start:
                outcome[ERROR], outcome[AT] = EMPTY_QID, at
                return
            if not _same_bytes(text, run_start, run_end, start, at):
                _note(runs, n_runs, row, line, start, at)
                n_runs += 1
                run_start, run_end = start, at

            previous, n_named = first_index - 1, 0
            at = _skip_blanks(text, at)
            while not _ends_line(text, at) and text[at] != HASH:
                start = at
                index: Int = 0
                digit = text[at] - np.uint8(ZERO)
                while digit < 10:
                    if index < _HUGE_INDEX:
                        index = index * 10 + np.int64(digit)
                    at += 1
                    digit = text[at] - np.uint8(ZERO)
                if at == start or text[at] != COLON:
                    negative = text[start] == MINUS and ZERO <= text[start + 1] <= NINE
                    outcome[ERROR], outcome[AT] = NEGATIVE_INDEX if negative else PAIR, start
                    return
                if index <= previous or index > last_index:
                    if index < first_index:
                        outcome[ERROR] = LOW_INDEX
                    elif index > last_index:
                        outcome[ERROR] = LARGE_INDEX
                    else:
                        outcome[ERROR] = REPEATED_INDEX if index == previous else DESCENDING_INDEX
                    outcome[AT] = start
                    return
                previous = index
                n_named += 1
                at += 1
                value, end, sure, large = parse_number(text, at)
                if sure == _NOT_A_NUMBER or not _ends_token(text, end):
                    outcome[ERROR], outcome[AT] = VALUE, at
                    return
                slot = n_pairs if sparse else index - first_index
                if sure == _UNCERTAIN:
                    if n_hard == len(hard):
                        outcome[ERROR] = TOO_MANY_HARD
                        return
                    _note(hard, n_hard, row, slot, at, end)
                    n_hard += 1
                if math.isinf(value) and text[end - 1] <= NINE:  # written in digits, yet beyond float32
                    outcome[OVERFLOWS] += 1
                if large != 0:
                    larges[n_large, 0], larges[n_large, 1] = index - first_index, large
                    n_large += 1
                if sparse:
                    columns[n_pairs] = index - first_index
                    features[0, n_pairs] = value
                    n_pairs += 1
                elif slot < features.shape[1]:  # else indices descend, and that error is about to be met
                    features[row, slot] = value
                at = _skip_blanks(text, end)

            comments[row, 0], comments[row, 1] = 0, 0
            if text[at] == HASH:
                start = at + 1
                while text[at] != LINE_FEED:
                    if text[at] == 0:
                        outcome[ERROR], outcome[AT] = NUL, at
                        return
                    at += 1
                comments[row, 0], comments[row, 1] = start, at
            row += 1
            pairs_before[row] = n_pairs
            fewest = min(fewest, n_named)
        while text[at] != LINE_FEED:  # a comment line, or the carriage return before a line feed
            if text[at] == 0:
                outcome[ERROR], outcome[AT] = NUL, at
                return
            at += 1
        at += 1
        line += 1
    outcome[ROWS], outcome[RUNS], outcome[PAIRS], outcome[HARD] = row, n_runs, n_pairs, n_hard
    outcome[LARGE], outcome[FEWEST] = n_large, fewest


@kernel
def scan_lines(text: Bytes) -> tuple[Int, Int]:
    """The lines, and those that are not blank."""
    n, at, lines, rows = len(text), 0, 0, 0
    while at < n:
        blank = True
        while text[at] != LINE_FEED:
            blank = blank and (text[at] == SPACE or text[at] == RETURN)
            at += 1
        rows += not blank
        lines += 1
        at += 1
    return lines, rows


@kernel
def parse_delimited(
    text: Bytes,
    delimiter: Int,
    roles: Ints,
    features: Floats,
    extras: Floats,
    runs: Ints,
    texts: Ints,
    hard: Ints,
    larges: Ints,
    outcome: Ints,
) -> None:
    """Parse the lines of one block of a delimited file; an empty number is NaN, a missing value.

    `roles` says what each column is. `runs`, `hard` and `larges` are as in `parse_letor`, with the slot counted
    through the features and on through the extras; `texts` takes the (start, end) of each column that is kept as
    text, the quotes of quoted ones included.
    """
    n, at, row, line, n_runs, n_hard, n_large = len(text), 0, 0, -1, 0, 0, 0
    run_start, run_end = 0, -1
    while at < n:
        line += 1
        content = at
        while text[content] == SPACE:
            content += 1
        if _ends_line(text, content):
            at = content + (2 if text[content] == RETURN else 1)
            continue
        for column in range(len(roles)):
            if delimiter != SPACE:
                while text[at] == SPACE:
                    at += 1
            start = at
            quoted = text[at] == QUOTE
            if quoted:
                at += 1
                while text[at] != QUOTE or text[at + 1] == QUOTE:
                    if text[at] == LINE_FEED:
                        outcome[ERROR], outcome[AT] = OPEN_QUOTE, start
                        return
                    if text[at] == 0 or text[at] == RETURN:
                        outcome[ERROR], outcome[AT] = NUL if text[at] == 0 else LONE_RETURN, at
                        return
                    at += 2 if text[at] == QUOTE else 1
                at += 1
            while text[at] != delimiter and not _ends_line(text, at):
                if text[at] == 0:
                    outcome[ERROR], outcome[AT] = NUL, at
                    return
                if text[at] == RETURN:
                    outcome[ERROR], outcome[AT] = LONE_RETURN, at
                    return
                if quoted and text[at] != SPACE:
                    outcome[ERROR], outcome[AT] = AFTER_QUOTE, at
                    return
                at += 1
            end = at
            while end > start and text[end - 1] == SPACE:
                end -= 1
            role = roles[column]
            if role == QID:
                if end - start <= 2 * quoted:
                    outcome[ERROR], outcome[AT] = EMPTY_QID, start
                    return
                if not _same_bytes(text, run_start, run_end, start, end):
                    _note(runs, n_runs, row, line, start, end)
                    n_runs += 1
                    run_start, run_end = start, end
            elif role <= FIRST_TEXT:
                texts[row, FIRST_TEXT - role, 0], texts[row, FIRST_TEXT - role, 1] = start, end
            elif role != SKIPPED:
                if quoted:
                    start += 1
                    end -= 1
                value = np.float32(np.nan)
                if start < end:
                    value, stop, sure, large = parse_number(text, start)
                    if sure == _NOT_A_NUMBER or stop != end:
                        outcome[ERROR], outcome[AT] = VALUE, start
                        return
                    if sure == _UNCERTAIN:
                        if n_hard == len(hard):
                            outcome[ERROR] = TOO_MANY_HARD
                            return
                        slot = role if role >= 0 else features.shape[1] + FIRST_EXTRA - role
                        _note(hard, n_hard, row, slot, start, end)
                        n_hard += 1
                    if math.isinf(value) and text[end - 1] <= NINE:
                        outcome[OVERFLOWS] += 1
                    if large != 0 and role >= 0:
                        larges[n_large, 0], larges[n_large, 1] = role, large
                        n_large += 1
                if role < 0 and math.isinf(value):  # no label, weight or position is
                    outcome[ERROR], outcome[AT] = INFINITE, start
                    return
                if role >= 0:
                    features[row, role] = value
                else:
                    extras[row, FIRST_EXTRA - role] = value
            last = column == len(roles) - 1
            if (text[at] == delimiter) == last:
                outcome[ERROR], outcome[AT] = FIELDS, at
                return
            at += not last
        at += 2 if text[at] == RETURN else 1
        row += 1
    outcome[ROWS], outcome[RUNS], outcome[HARD], outcome[LARGE] = row, n_runs, n_hard, n_large


@helper
def _put_integer(out: Bytes, at: Int, value: Int) -> Int:
    """Write a non-negative integer in decimal; the place after it."""
    end = at + 1
    rest = value // 10
    while rest > 0:
        end += 1
        rest //= 10
    for k in range(end - 1, at - 1, -1):
        out[k] = ZERO + value % 10
        value //= 10
    return end


@helper
def _shortest(value: float) -> tuple[Int, Int]:
    """(mantissa, exponent) with the fewest digits that `to_float32` turns back into this float32.

    Nine digits always do: their rounding error, at most 5·10^-9 of the value, is below the 2^-25 that
    separates a float32 from the border to its neighbour.
    """
    exact = float(value)
    magnitude = int(math.floor(math.log10(exact)))
    for digits in range(1, 10):
        exponent = magnitude + 1 - digits
        scaled = exact / _POWERS[exponent] if exponent >= 0 else exact * _POWERS[-exponent]
        mantissa = np.int64(np.rint(scaled))
        back, certain = to_float32(mantissa, exponent, False)
        if certain and back == value:
            break
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    return mantissa, exponent


@helper
def _put_number(out: Bytes, at: Int, value: Any) -> Int:
    """Write a float32 in the fewest digits that read back as the same bits (NaN as `nan`)."""
    if math.isnan(value):
        out[at], out[at + 1], out[at + 2] = 110, 97, 110
        return at + 3
    if math.copysign(1.0, value) < 0:
        out[at] = MINUS
        at += 1
        value = -value
    if math.isinf(value):
        out[at], out[at + 1], out[at + 2] = 105, 110, 102
        return at + 3
    if value < 16777216 and value == np.floor(value):
        return _put_integer(out, at, np.int64(value))
    mantissa, exponent = _shortest(value)
    end = _put_integer(out, at, mantissa)
    digits = end - at
    if -digits < exponent < 0:  # 12.5: make room for the point
        point = end + exponent
        for k in range(end, point, -1):
            out[k] = out[k - 1]
        out[point] = DOT
        return end + 1
    if -digits - 4 <= exponent < 0:  # 0.0125: move the digits behind the zeros
        shift = 2 - exponent - digits
        for k in range(end - 1, at - 1, -1):
            out[k + shift] = out[k]
        for k in range(at, at + shift):
            out[k] = ZERO
        out[at + 1] = DOT
        return end + shift
    if 0 < exponent <= 10 - digits:  # 123456790
        for k in range(end, end + exponent):
            out[k] = ZERO
        return end + exponent
    if exponent != 0:
        out[end] = LETTER_E
        end += 1
        if exponent < 0:
            out[end] = MINUS
            end += 1
        end = _put_integer(out, end, abs(exponent))
    return end


@helper
def _put_bytes(out: Bytes, at: Int, source: Bytes, start: Int, end: Int) -> Int:
    for k in range(start, end):
        out[at] = source[k]
        at += 1
    return at


@kernel
def format_letor(
    out: Bytes,
    features: Floats,
    numbers: Ints,
    labels: Floats,
    query: Ints,
    query_text: Bytes,
    query_bounds: Ints,
    comment_text: Bytes,
    comment_bounds: Ints,
    skip_zeros: bool,
    skip_missing: bool,
    first_is_full: bool,
) -> Int:
    """Write rows as LETOR text, `numbers` before the features; the bytes. `out` must have room (`bytes_per_row`)."""
    at = 0
    for row in range(len(features)):
        at = _put_number(out, at, labels[row])
        out[at], out[at + 1], out[at + 2], out[at + 3], out[at + 4] = SPACE, 113, 105, 100, COLON
        q = query[row]
        at = _put_bytes(out, at + 5, query_text, query_bounds[q], query_bounds[q + 1])
        for column in range(features.shape[1]):
            value = features[row, column]
            plain_zero = value == 0 and math.copysign(1.0, value) > 0
            skipped = (skip_zeros and plain_zero) or (skip_missing and math.isnan(value))
            if skipped and not (first_is_full and row == 0):
                continue
            out[at] = SPACE
            at = _put_integer(out, at + 1, numbers[column])
            out[at] = COLON
            at = _put_number(out, at + 1, value)
        if comment_bounds[row] < comment_bounds[row + 1]:
            out[at], out[at + 1], out[at + 2] = SPACE, HASH, SPACE
            at = _put_bytes(out, at + 3, comment_text, comment_bounds[row], comment_bounds[row + 1])
        out[at] = LINE_FEED
        at += 1
    return at


def bytes_per_row(n_features: int) -> int:
    """Enough room for a row's numbers: 16 characters each, and an index of 10 with its separators."""
    return 32 + 28 * n_features
