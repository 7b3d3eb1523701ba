"""UBJSON (draft 12), as XGBoost writes and reads it: big-endian numbers, typed arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from podium.errors import DataError

NUMBERS = {b"i": "b", b"U": "B", b"I": "h", b"l": "i", b"L": "q", b"d": "f", b"D": "d"}  # by marker, for `struct`
MARKERS = {np.dtype(form).str[1:]: marker for marker, form in NUMBERS.items()}
CONSTANTS = {b"Z": None, b"T": True, b"F": False}
MAX_DEPTH = 64  # of nested containers


def loads(content: bytes) -> Any:
    """Parse a document."""
    reader = _UBJSONReader(content)
    return reader.value(reader.marker(), 0)


class _UBJSONReader:
    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, n: int) -> bytes:
        if n < 0 or self.at + n > len(self.content):
            raise DataError("the UBJSON document ends too early")
        piece = self.content[self.at : self.at + n]
        self.at += n
        return piece

    def marker(self) -> bytes:
        piece = self.take(1)
        while piece == b"N":  # no operation
            piece = self.take(1)
        return piece

    def number(self, marker: bytes) -> Any:
        form = NUMBERS.get(marker)
        if form is None:
            raise DataError(f"the UBJSON document has {marker!r} where a number is expected")
        return struct.unpack(f">{form}", self.take(struct.calcsize(form)))[0]

    def length(self) -> int:
        n = self.number(self.marker())
        if not isinstance(n, int) or n < 0:
            raise DataError("the UBJSON document has an invalid length")
        return n

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8", "surrogateescape")

    def value(self, marker: bytes, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise DataError("the UBJSON document is nested too deep")
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if marker == b"S":
            return self.text()
        if marker == b"C":
            return self.take(1).decode("latin-1")
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.mapping(depth)
        return self.number(marker)

    def header(self) -> tuple[bytes | None, int | None]:
        """Return the type of all entries and their number, if a container states them."""
        kind = None
        if self.content[self.at : self.at + 1] == b"$":
            self.take(1)
            kind = self.take(1)
        if self.content[self.at : self.at + 1] == b"#":
            self.take(1)
            return kind, self.length()
        if kind is not None:
            raise DataError("the UBJSON document has a typed container without a length")
        return None, None

    def array(self, depth: int) -> list[Any]:
        kind, n = self.header()
        if kind in NUMBERS and n is not None:
            dtype = np.dtype(f">{NUMBERS[kind]}")
            return np.frombuffer(self.take(n * dtype.itemsize), dtype).tolist()  # type: ignore[no-any-return]
        if kind in CONSTANTS or kind == b"N":
            raise DataError("the UBJSON document has an array of a type without content, whose length is not limited")
        values: list[Any] = []
        while n is None or len(values) < n:
            marker = kind or self.marker()
            if n is None and marker == b"]":
                break
            values.append(self.value(marker, depth + 1))
        return values

    def mapping(self, depth: int) -> dict[str, Any]:
        kind, n = self.header()
        values: dict[str, Any] = {}
        n_read = 0
        while n is None or n_read < n:
            if n is None and self.content[self.at : self.at + 1] == b"}":
                self.take(1)
                break
            key = self.text()
            values[key] = self.value(kind or self.marker(), depth + 1)
            n_read += 1
        return values


def dumps(value: Any) -> bytes:
    """Return dictionaries, lists, text, numbers and NumPy arrays as a document; NumPy arrays become typed arrays."""
    pieces: list[bytes] = []
    _write(value, pieces)
    return b"".join(pieces)


def _whole(number: int) -> bytes:
    return b"L" + struct.pack(">q", number)


def _text(text: str) -> bytes:
    content = text.encode()
    return _whole(len(content)) + content


def _write(value: Any, pieces: list[bytes]) -> None:
    if isinstance(value, dict):
        pieces.append(b"{")
        for key, entry in value.items():
            pieces.append(_text(key))
            _write(entry, pieces)
        pieces.append(b"}")
    elif isinstance(value, str):
        pieces.append(b"S" + _text(value))
    elif isinstance(value, bool):
        pieces.append(b"T" if value else b"F")
    elif isinstance(value, int):
        pieces.append(_whole(value))
    elif isinstance(value, float):
        pieces.append(b"d" + struct.pack(">f", value))
    elif isinstance(value, np.ndarray):
        marker = MARKERS[value.dtype.str[1:]]
        pieces.append(b"[$" + marker + b"#" + _whole(len(value)) + value.astype(f">{NUMBERS[marker]}").tobytes())
    elif isinstance(value, list):
        pieces.append(b"[#" + _whole(len(value)))
        for entry in value:
            _write(entry, pieces)
    else:
        raise DataError(f"UBJSON cannot represent {type(value).__name__}")
