"""Text files, plain or compressed with gzip, bzip2 or xz, as blocks of whole lines."""

from __future__ import annotations

import bz2
import io
import lzma
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from podium.core.array_types import Bytes
from podium.core.validation import to_path
from podium.data.memory import Budget
from podium.errors import DataError, FileFormatError

PIECE_BYTES = 1 << 16
COMPRESSED = (".gz", ".bz2", ".xz")  # suffixes


class DamagedError(Exception):
    """Invalid compressed data."""


class _Inflater:
    """A decompressor for gzip with the interface of those for bzip2 and xz."""

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
    padding: int  # zeros may follow a member in multiples of this; 0 if none may


_FORMATS = (
    _Format("gzip", b"\x1f\x8b", _Inflater, 1),
    _Format("bzip2", b"BZh", bz2.BZ2Decompressor, 0),
    _Format("xz", b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 4),
)
_MAGIC_BYTES = max(len(format_.magic) for format_ in _FORMATS)


class _Decompressed(io.RawIOBase):
    """A stream of the decompressed text; `head` was already read from `raw`."""

    def __init__(self, raw: Any, head: bytes, format_: _Format) -> None:
        self._raw, self._format = raw, format_
        self._decompressor = format_.decompressor()
        self._ahead = head  # compressed bytes that have not been passed to a decompressor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._decompressor.eof and not self._next_member():
                return 0
            piece = b""
            if self._decompressor.needs_input:
                piece = self._next_piece()
                if not piece:
                    raise EOFError
            try:
                text = self._decompressor.decompress(piece, len(buffer))
            except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise DamagedError(str(error)) from error
            if text:
                buffer[: len(text)] = text
                return len(text)

    def _next_piece(self) -> bytes:
        if self._ahead:
            piece, self._ahead = self._ahead, b""
            return piece
        piece = self._raw.read(PIECE_BYTES)
        if piece is None:
            raise BlockingIOError("a non-blocking stream has no data yet")
        return bytes(piece)

    def _next_member(self) -> bool:
        """Begin the next member; return False at the end of the stream; raise if anything else follows."""
        self._ahead = self._decompressor.unused_data
        n_zeros = 0
        while piece := self._next_piece():
            rest = piece.lstrip(b"\0") if self._format.padding else piece
            n_zeros += len(piece) - len(rest)
            if rest:
                self._ahead = rest
                break
        if n_zeros and n_zeros % self._format.padding:
            raise DamagedError(f"{n_zeros} zeros between members, but {self._format.name} pads to multiples of four")
        while self._ahead and len(self._ahead) < len(self._format.magic):  # the magic bytes may arrive in pieces
            self._ahead, before = b"", self._ahead
            piece = self._next_piece()
            self._ahead = before + piece
            if not piece:
                break
        if not self._ahead:
            return False
        if not self._ahead.startswith(self._format.magic):
            raise DamagedError(f"the data after the first member is not {self._format.name}")
        self._decompressor = self._format.decompressor()
        return True


BLOCK_BYTES = 1 << 22
Source = str | os.PathLike[str] | IO[bytes]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PAR1": "Parquet", b"PK\x03\x04": "zip"}


@dataclass
class Block:
    """Whole lines of one file, as bytes that end with a line feed."""

    file: str
    text: Bytes
    first_line: int = 1  # in the file; set once the lines of earlier blocks are counted
    # set by a reader's scan
    rows: int = 0
    largest_index: int = 0
    first_row: int = 0  # in the group of rows that is parsed together

    def place(self, at: int) -> tuple[int, int]:
        """Return the line and the column, both from 1, of a byte of this block."""
        before = self.text[:at].tobytes()
        line_start = before.rfind(b"\n") + 1
        column = len(before[line_start:].decode("utf-8", errors="replace")) + 1
        return self.first_line + before.count(b"\n"), column

    def error(self, at: int, problem: str) -> FileFormatError:
        """Return an error that points to a byte of this block."""
        line, column = self.place(at)
        return FileFormatError(self.file, problem, line=line, column=column)

    def decoded(self, start: int, end: int, what: str) -> str:
        """Decode bytes; raise an error with the place if they are not UTF-8."""
        try:
            return self.text[start:end].tobytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error(start + error.start, f"the {what} is not valid UTF-8") from error

    def token(self, at: int) -> str:
        """Return the text from a byte up to a separator, for an error message."""
        end = at
        while self.text[end] not in b" \t\r\n#" and end - at < 40:
            end += 1
        return self.text[at:end].tobytes().decode("utf-8", errors="replace")


def source_name(source: Source) -> str:
    """Return the name of a source, for messages."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def text_blocks(
    source: Source, advance: Callable[[float], None] = lambda amount: None, budget: Budget | None = None
) -> Iterator[Block]:
    """Yield the blocks of a file or binary stream, decompressed according to its content, not its name.

    `advance` is called with the size of each block on disk. All blocks together, and each single line, must stay within
    the budget.
    """
    name = source_name(source)
    budget = budget or Budget()
    with opened(source) as raw, _locating_errors(name):
        n_read = 0.0
        head = raw.read(_MAGIC_BYTES) or b""
        format_ = next((kind for kind in _FORMATS if head.startswith(kind.magic)), None)
        stream = raw if format_ is None else _Decompressed(raw, head, format_)
        # The start of a line whose end has not been read yet; initially, what was read to detect the format.
        rest, is_first = np.frombuffer(head if format_ is None else b"", np.uint8), True
        while True:
            # If a line is longer than a block, the next block is twice as large, so that no line is copied many times.
            n_more = min(max(BLOCK_BYTES, len(rest)), budget.remaining("text") + 1)
            pages = mmap.mmap(-1, len(rest) + n_more + 1)  # unmapped with its last view; `malloc` might keep memory
            text = np.frombuffer(pages, np.uint8)
            text[: len(rest)] = rest
            filled = _fill(stream, text.data[len(rest) : -1])
            budget.hold("text", filled, name)
            end = len(rest) + filled
            if not filled and not is_first:
                break
            start = _length_of_mark(name, text[:end]) if is_first else 0
            cut = max(start, pages.rfind(b"\n", 0, end) + 1)
            rest = text[cut:end]
            # Look for NUL before reading more; parsers check the rest.
            if end >= BLOCK_BYTES and (is_first or cut == start) and not text[start:end].all():
                problem = "found a NUL byte: this is not a text file, or it is damaged"
                block = Block(name, text[start:end])
                raise block.error(int(block.text.argmin()), problem) if is_first else FileFormatError(name, problem)
            if cut > start:
                yield Block(name, text[start:cut])
            is_first = False
            if raw.seekable():
                n_read, before = float(raw.tell()), n_read
                advance(n_read - before)
        if len(rest) > 0:
            text[end] = ord("\n")
            yield Block(name, text[: end + 1])


def _fill(stream: Any, buffer: memoryview) -> int:
    """Read until the buffer is full or the stream ends, and return the number of bytes read."""
    filled = 0
    while filled < len(buffer):
        n_read = stream.readinto(buffer[filled:])
        if n_read is None:
            raise BlockingIOError("a non-blocking stream has no data yet")
        if n_read == 0:
            break
        filled += n_read
    return filled


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """Yield the source as a stream with `peek`; a stream that the caller passed stays open."""
    if isinstance(source, str | os.PathLike):
        path = to_path(source)
        if path.is_dir():
            raise FileFormatError(path, "is a folder, not a file; podium.data.datasets.folds reads a folder of folds")
        try:
            stream = path.open("rb")
        except OSError as error:
            raise FileFormatError(path, f"cannot be opened: {error.strerror}") from error
        with stream:
            yield stream
        return
    if isinstance(source, io.TextIOBase):
        raise FileFormatError(source_name(source), "is open in text mode: open it in binary mode with open(path, 'rb')")
    raw: Any = source
    if not (hasattr(raw, "read") or hasattr(raw, "readinto")):
        raise DataError(f"source must be a path or a binary stream, but got {type(raw).__name__} {raw!r:.40}")
    if getattr(raw, "closed", False):
        raise FileFormatError(source_name(source), "is closed")
    if isinstance(source, io.BufferedReader):
        yield source
        return
    reader = io.BufferedReader(raw if hasattr(raw, "readinto") else _Readable(raw))
    try:
        yield reader
    finally:
        with suppress(ValueError):  # the caller has closed it
            reader.detach()


class _Readable(io.RawIOBase):
    """Adapts an object that only has `read` to a stream with `readinto`."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.source.read(len(buffer))
        if not isinstance(piece, bytes | bytearray | memoryview) or len(piece) > len(buffer):
            raise FileFormatError(
                source_name(self.source),
                "is not a binary stream: read(n) must return at most n bytes; open files with mode 'rb'",
            )
        buffer[: len(piece)] = piece
        return len(piece)


def _length_of_mark(name: str, text: Bytes) -> int:
    """Return the length of the byte order mark of UTF-8, if there is one; raise for marks of other formats."""
    head = text[:8].tobytes()
    for mark, what in _OTHER_MARKS.items():
        if head.startswith(mark):
            raise FileFormatError(name, f"looks like {what}, but expected plain text in UTF-8", line=1)
    return len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0


@contextmanager
def _locating_errors(name: str) -> Iterator[None]:
    """Turn errors of decompressors into errors that name the file."""
    try:
        yield
    except EOFError as error:
        raise FileFormatError(name, "the compressed data ends too early; the file seems to be truncated") from error
    except DamagedError as error:
        raise FileFormatError(name, f"the compressed data is damaged ({error})") from error
    except OSError as error:
        raise FileFormatError(name, f"cannot be read: {error.strerror or error}") from error
