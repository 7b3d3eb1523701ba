"""Slow readers of LETOR, SVMlight and CSV lines, for tests to compare with."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

import numpy as np

from podium.core.array_types import Float32s

_NUMBER = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE)
_INDEX = re.compile(rb"(\d+):")
_BLANKS = re.compile(rb"[ \t]*")
_TOKEN = re.compile(rb"[^ \t\r\n#]*")


@dataclass(frozen=True)
class Rejected(Exception):  # noqa: N818
    """Where the text stops making sense: the line and the character, both from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Letor:
    """What LETOR text says."""

    labels: Float32s
    qid: list[str]
    features: Float32s
    comments: list[str]


def number(token: bytes) -> np.float32:
    """The float32 that Python's `float` leads to."""
    with np.errstate(over="ignore"):
        return np.float32(float(token))


def read_letor_slowly(text: bytes, *, first_index: int = 1, largest_index: int = 1_000_000) -> Letor:
    """Parse `label qid:ID index:value … # comment` lines with regular expressions and `float`.

    Raises:
        Rejected: at the first character that does not belong there.

    Example:
        >>> from tests.references.readers import read_letor_slowly
        >>> read_letor_slowly(b"2 qid:7 1:0.5 # a").features.tolist()
        [[0.5]]

    """
    labels, qids, rows, comments = [], [], [], []
    for k, line in enumerate(text.split(b"\n"), 1):
        content, _, comment = line.removesuffix(b"\r").partition(b"#")
        cursor = _Cursor(k, line, content)
        if not cursor.at_end():
            labels.append(_label(cursor))
            qids.append(_qid(cursor))
            rows.append(_features(cursor, first_index, largest_index))
            comments.append(cursor.decoded(comment, len(content) + 1).strip())
        if b"\0" in comment:
            raise cursor.rejected(len(content) + 1 + comment.index(b"\0"))
    width = max((index for row in rows for index in row), default=first_index - 1) + 1 - first_index
    features = np.zeros((len(rows), width), np.float32)
    for k, row in enumerate(rows):
        for index, value in row.items():
            features[k, index - first_index] = value
    return Letor(np.array(labels, np.float32), qids, features, comments)


class _Cursor:
    """A place in a line, behind blanks."""

    def __init__(self, number_of_line: int, line: bytes, content: bytes) -> None:
        self.number_of_line, self.line, self.content, self.at = number_of_line, line, content, 0
        self.move(0)

    def move(self, distance: int) -> None:
        self.at = _BLANKS.match(self.content, self.at + distance).end()  # type: ignore[union-attr]

    def at_end(self) -> bool:
        return self.at == len(self.content)

    def token(self) -> bytes:
        return _TOKEN.match(self.content, self.at).group()  # type: ignore[union-attr]

    def rejected(self, at: int, token: bytes = b"") -> Rejected:
        """An error that points to a byte, or to a NUL byte in the token there."""
        at += max(0, token[:40].find(b"\0"))
        return Rejected(self.number_of_line, len(self.line[:at].decode("utf-8", errors="replace")) + 1)

    def decoded(self, text: bytes, at: int) -> str:
        if b"\0" in text:
            raise self.rejected(at + text.index(b"\0"))
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.rejected(at + error.start) from None


def _label(cursor: _Cursor) -> np.float32:
    token = cursor.token()
    if not _NUMBER.fullmatch(token) or np.isinf(number(token)):
        raise cursor.rejected(cursor.at, token)
    cursor.move(len(token))
    return number(token)


def _qid(cursor: _Cursor) -> str:
    token = cursor.token()
    if not token.startswith(b"qid:"):
        raise cursor.rejected(cursor.at, token)
    if token == b"qid:":
        raise cursor.rejected(cursor.at + 4)
    qid = cursor.decoded(token[4:], cursor.at + 4)
    cursor.move(len(token))
    return qid


def _features(cursor: _Cursor, first_index: int, largest_index: int) -> dict[int, np.float32]:
    features: dict[int, np.float32] = {}
    while not cursor.at_end():
        token = cursor.token()
        match = _INDEX.match(token)
        if not match or not max(first_index - 1, *features, -1) < int(match[1]) <= largest_index:
            raise cursor.rejected(cursor.at, token)
        value = token[match.end() :]
        if not _NUMBER.fullmatch(value):
            raise cursor.rejected(cursor.at + match.end(), value)
        features[int(match[1])] = number(value)
        cursor.move(len(token))
    return features


_DELIMITED_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII)


def read_delimited_slowly(text: str, delimiter: str, texts: frozenset[str]) -> dict[str, list[object]]:
    """The columns by name: text for those named in `texts`, numbers as float32 (empty is NaN) else.

    Raises:
        ValueError: where a line has another number of fields than the header, or a number is none.

    """
    lines = list(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True))
    header = [name.strip() for name in lines[0]]
    columns: dict[str, list[object]] = {name: [] for name in header}
    for line in lines[1:]:
        if not "".join(line).strip(" ") and len(line) <= 1:
            continue
        if len(line) != len(header):
            raise ValueError(f"{len(line)} fields instead of {len(header)}")
        for name, field in zip(header, line, strict=True):
            content = field.strip(" ")
            if name in texts:
                columns[name].append(content)
            elif not content:
                columns[name].append(np.float32(np.nan))
            elif _DELIMITED_NUMBER.fullmatch(content):
                with np.errstate(over="ignore"):
                    columns[name].append(np.float32(float(content)))
            else:
                raise ValueError(f"{content!r} is not a number")
    return columns
