"""Compressed streams, every member of them: gzip, bzip2 and xz.

The readers of Python's library take what follows a whole member and does not look like another one for
padding and drop it: half of a file whose second member is damaged would be missing without a word.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PIECE_BYTES = 1 << 16


class DamagedError(Exception):
    """Compressed data that is not as its format wants it; the text says how."""


class _Inflater:
    """gzip's decompressor with the interface that those of bzip2 and xz have."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)  # with gzip's header, checksum and length
        self._rest = b""

    def decompress(self, piece: bytes, most: int) -> bytes:
        text = self._inner.decompress(self._rest + piece, most)
        self._rest = self._inner.unconsumed_tail
        return text

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._rest


@dataclass(frozen=True)
class _Format:
    name: str
    magic: bytes
    decompressor: Callable[[], Any]
    padding: int  # zeros may follow a member, in multiples of this; 0: none


_FORMATS = (
    _Format("gzip", b"\x1f\x8b", _Inflater, 1),
    _Format("bzip2", b"BZh", bz2.BZ2Decompressor, 0),
    _Format("xz", b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 4),
)
MAGIC_BYTES = max(len(format_.magic) for format_ in _FORMATS)


def decompressed(raw: Any, head: bytes) -> io.RawIOBase | None:
    """The text of a compressed stream whose first bytes, already read, are `head`; None if it is not compressed."""
    for format_ in _FORMATS:
        if head.startswith(format_.magic):
            return _Decompressed(raw, head, format_)
    return None


class _Decompressed(io.RawIOBase):
    def __init__(self, raw: Any, head: bytes, format_: _Format) -> None:
        self._raw, self._format = raw, format_
        self._decompressor = format_.decompressor()
        self._ahead = head  # compressed bytes that no decompressor has seen

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._decompressor.eof and not self._next_member():
                return 0
            piece = b""
            if self._decompressor.needs_input:
                piece = self._more()
                if not piece:
                    raise EOFError
            try:
                text = self._decompressor.decompress(piece, len(buffer))
            except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise DamagedError(str(error)) from error
            if text:
                buffer[: len(text)] = text
                return len(text)

    def _more(self) -> bytes:
        """Compressed bytes; none at the end of the stream."""
        if self._ahead:
            piece, self._ahead = self._ahead, b""
            return piece
        piece = self._raw.read(PIECE_BYTES)
        if piece is None:
            raise BlockingIOError("it has no data yet, and does not wait")
        return bytes(piece)

    def _next_member(self) -> bool:
        """Begin the member that follows; False at the end of the stream, an error where anything else follows."""
        self._ahead = self._decompressor.unused_data
        n_zeros = 0
        while piece := self._more():
            rest = piece.lstrip(b"\0") if self._format.padding else piece
            n_zeros += len(piece) - len(rest)
            if rest:
                self._ahead = rest
                break
        if n_zeros and n_zeros % self._format.padding:
            raise DamagedError(f"{n_zeros} zeros between members, but {self._format.name} pads by fours")
        while self._ahead and len(self._ahead) < len(self._format.magic):  # the magic bytes may come in two pieces
            self._ahead, before = b"", self._ahead
            piece = self._more()
            self._ahead = before + piece
            if not piece:
                break
        if not self._ahead:
            return False
        if not self._ahead.startswith(self._format.magic):
            raise DamagedError(f"what follows the first member is not {self._format.name}")
        self._decompressor = self._format.decompressor()
        return True
