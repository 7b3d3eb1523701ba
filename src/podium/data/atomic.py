"""Files that appear whole or not at all."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from podium.errors import FileFormatError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when all went well and vanishes otherwise."""
    path = path.resolve()  # a link keeps pointing to what is replaced
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise FileFormatError(path, f"cannot be written: {error.strerror}") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise FileFormatError(path, f"cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


_ONE_AT_A_TIME = threading.Lock()


def _umask() -> int:
    """The permissions that new files lack; it can only be read by setting it."""
    with _ONE_AT_A_TIME:  # two threads at once could leave the other's value behind
        current = os.umask(0o077)
        os.umask(current)
    return current


@contextmanager
def compressed(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """A stream into a file that compresses as the suffix says; the same bytes for the same content."""
    with path.open("wb") as raw:
        if suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) as stream:
                yield stream  # type: ignore[misc]
        elif suffix == ".bz2":
            with bz2.BZ2File(raw, "wb") as stream:
                yield stream
        elif suffix == ".xz":
            with lzma.LZMAFile(raw, "wb") as stream:
                yield stream
        else:
            yield raw
