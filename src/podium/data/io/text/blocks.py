"""Text files, plain or compressed, as blocks of whole lines."""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from podium.core.array_types import Bytes
from podium.core.validation import to_path
from podium.data.io.text.decompression import MAGIC_BYTES, DamagedError, decompressed
from podium.data.memory import Budget
from podium.errors import DataError, FileFormatError

BLOCK_BYTES = 1 << 22
Source = str | os.PathLike[str] | IO[bytes]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PAR1": "Parquet", b"PK\x03\x04": "zip"}


@dataclass
class Block:
    """Whole lines of one file, as bytes that end with a line feed.

    `first_line`, the number of its first line in the file, is known once the blocks before are counted.
    """

    file: str
    text: Bytes
    first_line: int = 1

    def place(self, at: int) -> tuple[int, int]:
        """The line in the file and the character in the line, from 1, of a byte of this block."""
        before = self.text[:at].tobytes()
        line_start = before.rfind(b"\n") + 1
        column = len(before[line_start:].decode("utf-8", errors="replace")) + 1
        return self.first_line + before.count(b"\n"), column

    def error(self, at: int, problem: str) -> FileFormatError:
        """An error that points to a byte of this block."""
        line, column = self.place(at)
        return FileFormatError(self.file, problem, line=line, column=column)

    def token(self, at: int) -> str:
        """What stands at a byte, up to a separator: the words an error message quotes."""
        end = at
        while self.text[end] not in b" \t\r\n#" and end - at < 40:
            end += 1
        return self.text[at:end].tobytes().decode("utf-8", errors="replace")


def source_name(source: Source) -> str:
    """What to call a source in messages."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def text_blocks(
    source: Source, advance: Callable[[float], None] = lambda amount: None, budget: Budget | None = None
) -> Iterator[Block]:
    """The blocks of a file or binary stream, decompressed by what it is, not by what it is called.

    `advance` hears how many bytes of the file, as it lies on disk, each block took. All blocks together, and any one
    line of them, stay within the budget.
    """
    name = source_name(source)
    budget = budget or Budget()
    with opened(source) as raw, _naming_file(name):
        n_read = 0.0
        head = raw.read(MAGIC_BYTES) or b""
        stream = decompressed(raw, head)
        # The beginning of a line whose end is not read yet; in the beginning, what was read to know the format.
        rest = np.frombuffer(head if stream is None else b"", np.uint8)
        stream, is_first = stream or raw, True
        while True:
            # A line longer than a block makes the next one twice as large: no line is copied often.
            n_more = min(max(BLOCK_BYTES, len(rest)), budget.left("text") + 1)
            text = _pages(len(rest) + n_more + 1)
            text[: len(rest)] = rest
            filled = _fill(stream, text.data[len(rest) : -1])
            budget.hold("text", filled, name)
            end = len(rest) + filled
            if is_first:
                text, end = _without_mark(name, text, end)
            elif not filled:
                break
            cut = _after_last_line_feed(text[:end])
            rest = text[cut:end]
            if end >= BLOCK_BYTES and (is_first or cut == 0):  # before more is read; parsers see to the rest
                _refuse_nul(Block(name, text[:end]), has_place=is_first)
            if cut > 0:
                yield Block(name, text[:cut])
            is_first = False
            if raw.seekable():
                n_read, before = float(raw.tell()), n_read
                advance(n_read - before)
        if len(rest) > 0:
            text[end] = ord("\n")
            yield Block(name, text[: end + 1])


def _refuse_nul(block: Block, *, has_place: bool) -> None:
    """Raise at a NUL byte; `has_place` says that the block begins with the first line."""
    if not block.text.all():
        problem = "a NUL byte: this is not a text file, or it is damaged"
        raise block.error(int(block.text.argmin()), problem) if has_place else FileFormatError(block.file, problem)


def _pages(size: int) -> Bytes:
    """Memory that goes back to the system when the last view of it goes; `malloc` might keep it."""
    return np.frombuffer(mmap.mmap(-1, size), np.uint8)


def _fill(stream: Any, buffer: memoryview) -> int:
    """Read until the buffer is full or the stream ends; the number of bytes read."""
    filled = 0
    while filled < len(buffer):
        n_read = stream.readinto(buffer[filled:])
        if n_read is None:
            raise BlockingIOError("it has no data yet, and does not wait")
        if n_read == 0:
            break
        filled += n_read
    return filled


def _after_last_line_feed(text: Bytes) -> int:
    """The place after the last line feed, 0 if there is none; most often found near the end."""
    for tail in (1 << 14, len(text)):
        position = text[-tail:].tobytes().rfind(b"\n")
        if position >= 0:
            return max(0, len(text) - tail) + position + 1
    return 0


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """The source as a stream that can be peeked into; a stream of the caller's stays open."""
    if isinstance(source, str | os.PathLike):
        path = to_path(source)
        if path.is_dir():
            raise FileFormatError(path, "is a folder, not a file; podium.folds reads a folder of folds")
        try:
            stream = path.open("rb")
        except OSError as error:
            raise FileFormatError(path, f"cannot be opened: {error.strerror}") from error
        with stream:
            yield stream
        return
    if isinstance(source, io.TextIOBase):
        raise FileFormatError(source_name(source), "is opened as text; open it in binary mode, as in open(path, 'rb')")
    raw: Any = source
    if not (hasattr(raw, "read") or hasattr(raw, "readinto")):
        raise DataError(f"expected a path or a binary stream to read from, not {type(raw).__name__} {raw!r:.40}")
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
    """An object that can only `read` as a stream that can be read into."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.source.read(len(buffer))
        if not isinstance(piece, bytes | bytearray | memoryview) or len(piece) > len(buffer):
            raise FileFormatError(
                source_name(self.source), "is no binary stream: read(n) must return up to n bytes; open files with 'rb'"
            )
        buffer[: len(piece)] = piece
        return len(piece)


def _without_mark(name: str, text: Bytes, end: int) -> tuple[Bytes, int]:
    head = text[: min(end, 8)].tobytes()
    for mark, what in _OTHER_MARKS.items():
        if head.startswith(mark):
            raise FileFormatError(name, f"looks like {what}, not like plain text in UTF-8", line=1)
    skipped = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    return text[skipped:], end - skipped


@contextmanager
def _naming_file(name: str) -> Iterator[None]:
    """Turn the errors of decompressors into ones that name the file."""
    try:
        yield
    except EOFError as error:
        raise FileFormatError(name, "the compressed data ends too early; the file seems truncated") from error
    except DamagedError as error:
        raise FileFormatError(name, f"the compressed data is damaged ({error})") from error
    except OSError as error:
        raise FileFormatError(name, f"cannot be read: {error.strerror or error}") from error
