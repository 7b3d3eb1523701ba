"""Kernels that parse and write the numbers of text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from podium.core.array_types import Bytes, Int
from podium.core.compiling import helper

TAB, LINE_FEED, RETURN, SPACE, HASH = 9, 10, 13, 32, 35
PLUS, MINUS, DOT, ZERO, NINE, COLON, LETTER_E = 43, 45, 46, 48, 57, 58, 101


@helper
def skip_blanks(text: Bytes, at: Int) -> Int:
    """Return the position of the next byte that is not a space or a tab."""
    while text[at] == SPACE or text[at] == TAB:
        at += 1
    return at


@helper
def ends_line(text: Bytes, at: Int) -> Any:
    """Return whether a line ends here, with a line feed or a carriage return before one."""
    return text[at] == LINE_FEED or (text[at] == RETURN and text[at + 1] == LINE_FEED)


@helper
def ends_token(text: Bytes, at: Int) -> Any:
    """Return whether a token ends here: at a blank, a comment or a line end."""
    c = text[at]
    return c == SPACE or c == TAB or c == HASH or c == LINE_FEED or c == RETURN


@helper
def same_bytes(text: Bytes, a: Int, a_end: Int, b: Int, b_end: Int) -> Any:
    """Return whether two pieces of the text are equal."""
    if a_end - a != b_end - b:
        return False
    for k in range(a_end - a):
        if text[a + k] != text[b + k]:
            return False
    return True


NOT_A_NUMBER, CERTAIN, UNCERTAIN = 0, 1, 2  # how certain `parse_number` is of a value

_POWERS = np.array([float(f"1e{k}") for k in range(80)])  # each rounded to the nearest double
EXACT_FLOAT32 = 16777216  # float32 represents all integers up to this one
_LONGEST = 18  # decimal digits that always fit an int64


@helper
def to_float32(mantissa: Int, exponent: Int, truncated: bool) -> tuple[Any, Any]:
    """Return float32(float64(mantissa · 10^exponent)), and whether that is certain.

    Up to 2^53 and 10^22 both factors are exact doubles, so one multiplication or division rounds correctly
    (Clinger 1990). Beyond that the double may be off by a few units in the last place. Rounding is monotone, so if both
    ends of a generous interval round to the same float32, the result is certain. For all others, about one number in
    2^26, the caller uses Python's `float`.
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
    """Return whether the text at `at` is these three letters in either case, without reading past the line."""
    # | 32 turns ASCII letters into lower case. A line feed never matches, so `and` stops there.
    return (text[at] | 32) == first and (text[at + 1] | 32) == second and (text[at + 2] | 32) == third


@helper
def _number_in_letters(text: Bytes, at: Int) -> tuple[float, Int]:
    """Parse `nan`, `inf` or `infinity` in any case; return the value and the position after it (`at` if none)."""
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
    """Return the first 18 significant digits from `at`, their power of ten, and whether more digits follow."""
    mantissa: Int = 0
    exponent, n_digits = 0, 0
    truncated, fraction = False, False
    while True:
        c = text[at]
        if c == DOT and not fraction:
            fraction = True
        elif ZERO <= c <= NINE:
            if n_digits < _LONGEST:
                mantissa = mantissa * 10 + (c - ZERO)
                n_digits += mantissa > 0
                exponent -= fraction
            else:
                truncated = truncated or c != ZERO
                exponent += not fraction
        else:
            return mantissa, exponent, truncated
        at += 1


@helper
def _large_number(value: Any, mantissa: Int, exponent: Int) -> Int:
    """Return the integer part (up to 18 digits) of mantissa · 10^exponent, or 0 below 2^24 and at infinity."""
    if not EXACT_FLOAT32 <= value < np.inf:
        return 0
    while exponent < 0:
        mantissa //= 10
        exponent += 1
    while exponent > 0 and mantissa < 100_000_000_000_000_000:
        mantissa *= 10
        exponent -= 1
    return mantissa


@helper
def parse_number(text: Bytes, at: Int) -> tuple[Any, Int, Int, Int]:
    """Parse the number at `at`; return its value, the position after it, its certainty, and its `_large_number`."""
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    first = at
    mantissa: Int = 0
    digit = text[at] - np.uint8(ZERO)  # wraps around, so that one comparison detects a digit
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
            return np.float32(0.0), at, NOT_A_NUMBER, 0
        return np.float32(-value if negative else value), end, CERTAIN, 0
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
            if power < 1_000_000_000:  # avoids an overflow of int64; no number of that size is finite
                power = power * 10 + np.int64(digit)
            at += 1
            digit = text[at] - np.uint8(ZERO)
        if at == first:
            return np.float32(0.0), at, NOT_A_NUMBER, 0
        exponent += -power if shrinks else power
    value32, certain = to_float32(mantissa, exponent, truncated)
    large = _large_number(value32, mantissa, exponent)
    sure = CERTAIN if certain else UNCERTAIN
    return (-value32, at, sure, -large) if negative else (value32, at, sure, large)


@helper
def write_integer(out: Bytes, at: Int, value: Int) -> Int:
    """Write a non-negative integer in decimal, and return the position after it."""
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
    """Return (mantissa, exponent) with the fewest digits that `to_float32` converts back to this float32.

    Nine digits always suffice: their rounding error, at most 5·10^-9 of the value, is smaller than 2^-25, the distance
    from a float32 to the border with its neighbour.
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
def write_number(out: Bytes, at: Int, value: Any) -> Int:
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
    if value < EXACT_FLOAT32 and value == np.floor(value):
        return write_integer(out, at, np.int64(value))
    mantissa, exponent = _shortest(value)
    end = write_integer(out, at, mantissa)
    digits = end - at
    if -digits < exponent < 0:  # 12.5: make room for the decimal point
        point = end + exponent
        for k in range(end, point, -1):
            out[k] = out[k - 1]
        out[point] = DOT
        return end + 1
    if -digits - 4 <= exponent < 0:  # 0.0125: move the digits after the zeros
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
        end = write_integer(out, end, abs(exponent))
    return end
