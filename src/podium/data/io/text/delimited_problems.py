"""What is wrong with delimited text, and where: pyarrow says that a block cannot be read, not in which place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from podium.data.io.text.blocks import Block
from podium.data.io.text.outcome import EMPTY_QID, LONE_RETURN, NUL, PROBLEMS, VALUE
from podium.data.io.text.parsing import decoded
from podium.errors import FileFormatError

_NOT_TEXT = re.compile(rb"\x00|\r(?!\n)")
_QUOTED = re.compile(rb'"[^"]*(?:""[^"]*)*("?)')
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII)
# What a missing number may be written as.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan")
_SHOWN = 40  # characters of a field


class _Field(NamedTuple):
    start: int
    end: int
    text: str


def check_bytes(block: Block) -> None:
    """Raise at a byte that no text has: NUL, or a carriage return inside a line."""
    match = _NOT_TEXT.search(block.text.data)
    if match is not None:
        raise block.error(match.start(), PROBLEMS[NUL if match[0] == b"\0" else LONE_RETURN])


def header_names(block: Block, delimiter: str) -> list[str]:
    """The names of the columns in a block that is the header line."""
    check_bytes(block)
    line = block.text.tobytes().rstrip(b"\r\n")
    names = [field.text for field in _fields(block, 0, line, delimiter)]
    if not any(names):
        raise FileFormatError(block.file, "expected a header line with column names", line=1)
    if all(_NUMBER.fullmatch(name) and math.isfinite(float(name)) for name in names):
        shown = line[:_SHOWN].decode(errors="replace")
        raise FileFormatError(block.file, f"expected a header line with column names, but found {shown!r}", line=1)
    return names


def check_quotes(block: Block, layout: Any) -> None:
    """Raise where anything follows a closing quote in its field; pyarrow would join the two."""
    text, delimiter = block.text.tobytes(), re.escape(layout.delimiter.encode())
    if b'"' not in text:
        return
    # Also finds some doubled quotes inside fields, so a match is only a reason to look at each line.
    if re.search(rb'(?:^|%b)"[^"\n]*(?:""[^"\n]*)*"(?!["\r\n]|%b)' % (delimiter, delimiter), text, re.MULTILINE):
        check_lines(block, layout)


def check_lines(block: Block, layout: Any) -> None:
    """Raise the first problem of a block, if there is one."""
    check_of = _checks(layout)
    start = 0
    for line in block.text.tobytes().split(b"\n"):
        content = line.rstrip(b"\r")
        if content:
            _check_line(block, start, content, layout, check_of)
        start += len(line) + 1


def _check_line(block: Block, start: int, line: bytes, layout: Any, check_of: list[Callable[..., None] | None]) -> None:
    n_fields, at = 0, start
    for n_fields, field in enumerate(_fields(block, start, line, layout.delimiter), 1):
        if n_fields <= len(check_of):
            check, at = check_of[n_fields - 1], field.end
            if check is not None:
                check(block, field)
    if n_fields != len(check_of):
        raise block.error(at, f"expected {len(check_of)} fields as in the header, but this line has {n_fields}")


def _fields(block: Block, start: int, line: bytes, delimiter: str) -> Iterator[_Field]:
    """The fields of a line that begins at a byte of the block; quotes must be closed, and end their field."""
    at = 0
    while True:
        begin, quoted = at, _QUOTED.match(line, at)
        if quoted is not None:
            if not quoted[1]:
                raise block.error(start + at, "this quote is not closed on the same line")
            at = quoted.end()
        stop = line.find(delimiter.encode(), at)
        end = len(line) if stop < 0 else stop
        text = decoded(block, start + begin, start + end, "text").strip(" ")
        if quoted is not None:
            rest = line[at:end].lstrip(b" ")
            if rest:
                shown = rest[:_SHOWN].decode(errors="replace")
                problem = f"expected the end of the field after the closing quote, but found {shown!r}"
                raise block.error(start + end - len(rest), problem)
            text = text[1:-1].replace('""', '"').strip(" ")
        while begin < end and line[begin] == ord(" "):
            begin += 1
        yield _Field(start + begin, start + end, text)
        if stop < 0:
            return
        at = stop + 1


def _checks(layout: Any) -> list[Callable[..., None] | None]:
    """What to check of each column: that a query id is there, that a number is one, and finite where it must be."""

    def check_query(block: Block, field: _Field) -> None:
        if not field.text:
            raise block.error(field.start, PROBLEMS[EMPTY_QID])

    def check_number(name: str, is_feature: bool) -> Callable[..., None]:
        def check(block: Block, field: _Field) -> None:
            if field.text in MISSING:
                return
            token = field.text[:_SHOWN]
            if not _NUMBER.fullmatch(field.text):
                hint = f" in {name!r}; a column of categories is named in categorical=…"
                raise block.error(field.start, PROBLEMS[VALUE].format(token=token) + hint)
            with np.errstate(over="ignore"):
                if not is_feature and np.isinf(np.float32(float(field.text))):
                    problem = f"the number {token!r} is infinite; labels, weights and positions are finite"
                    raise block.error(field.start, problem)

        return check

    checks: dict[str, Callable[..., None]] = {
        name: check_number(name, is_feature) for name, (_, is_feature) in layout.numbers.items()
    }
    checks[layout.qid] = check_query
    return [checks.get(name) for name in layout.names]
