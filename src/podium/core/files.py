"""Atomic writes of files and folders."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from podium.core.validation import to_path
from podium.errors import DataError, FileFormatError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".unfinished"  # a file that marks a temporary folder
LOCK = ".lock"  # a file that stays locked while files of its folder are replaced


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to `path`; the file there replaces `path` on success, and is removed otherwise.

    The content reaches the disk before the name does, so a power failure leaves either the old file or the new one.
    """
    path = to_path(path)
    try:
        path = path.resolve()  # keep a link, and replace the file that it points to
        if path.exists() and not (path.is_file() or path.is_dir()):  # do not replace a device by a file
            raise FileFormatError(path, "cannot be written: it is not a regular file")
        locked, temporary = _temporary_next_to(path)
    except (OSError, RuntimeError) as error:  # RuntimeError: circular links
        raise FileFormatError(path, f"cannot be written: {getattr(error, 'strerror', None) or error}") from error
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        flush(temporary)
        temporary.replace(path)
        with suppress(OSError):  # some systems cannot open folders
            flush(path.parent)
    except OSError as error:
        raise FileFormatError(path, f"cannot be written: {error.strerror or error}") from error
    finally:
        locked.close()
        temporary.unlink(missing_ok=True)


def _temporary_next_to(path: Path) -> tuple[IO[bytes], Path]:
    """Create a temporary file, and lock it while it is open: a temporary file without a lock is a leftover."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        file = os.fdopen(handle, "wb")
        if fcntl is None:
            file.close()  # an open file cannot be renamed on Windows
        else:
            with suppress(OSError):  # on a file system without locks, leftovers stay
                fcntl.flock(file, fcntl.LOCK_EX)
        if Path(name).exists():
            return file, Path(name)
        file.close()  # another process mistook it for a leftover before it was locked


@contextmanager
def replacing_folder(path: str | os.PathLike[str], overwrite: bool) -> Iterator[Path]:
    """Yield a temporary folder next to `path`; it replaces `path` on success, and is removed otherwise.

    Raise if the folder exists, unless `overwrite` is set; the old folder is then removed once the new one is complete.
    Temporary folders that killed processes left are removed first.
    """
    path = to_path(path)
    if (path.exists() or path.is_symlink()) and not (overwrite and path.is_dir()):
        raise FileFormatError(path, "already exists: choose another folder, or replace it with overwrite")
    with _temporary_folder(path) as temporary:
        with _marked(temporary):
            yield temporary
        temporary.chmod(0o777 & ~_umask())
        for file in (*temporary.iterdir(), temporary):
            flush(file)
        _move_into_place(temporary, path.resolve())


@contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `path`, on the same disk, and remove it at the end.

    If this process is killed, the next call for the same path removes it.
    """
    with _temporary_folder(path) as temporary, _marked(temporary):
        yield temporary


@contextmanager
def _temporary_folder(path: Path) -> Iterator[Path]:
    try:
        path = path.resolve()
        _remove_abandoned(path)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise FileFormatError(path, f"cannot be written: {error.strerror or error}") from error
    try:
        yield temporary
    except OSError as error:
        raise FileFormatError(path, f"cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, if the system has locks; raise if another process is writing to it."""
    with (folder / LOCK).open("ab") as file:
        if fcntl is not None and not _lock(file.fileno()):
            raise FileFormatError(folder, "is being written by another process: try again later")
        yield


@contextmanager
def _marked(folder: Path) -> Iterator[None]:
    """Mark a folder as unfinished, with a file that stays locked until the block or this process ends."""
    handle, name = tempfile.mkstemp(dir=folder)
    try:
        _lock(handle)
        Path(name).rename(folder / UNFINISHED)  # locked before other processes can see it
        yield
    finally:
        os.close(handle)
        (folder / UNFINISHED).unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Remove unfinished folders for `path` whose process has ended."""
    for folder in path.parent.glob(f".{glob.escape(path.name)}.????????"):  # the names of `mkdtemp`
        with suppress(OSError), (folder / UNFINISHED).open("rb") as mark:
            if _lock(mark.fileno()):
                shutil.rmtree(folder, ignore_errors=True)


def _lock(handle: int) -> bool:
    """Lock an open file; return False if another process has locked it, or if there are no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _move_into_place(temporary: Path, path: Path) -> None:
    """Rename a folder to its final name; move an existing folder away first, and back if the renaming fails."""
    if not path.exists():
        temporary.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)) / path.name
    path.rename(old)
    try:
        temporary.rename(path)
    except OSError:
        old.rename(path)
        raise
    finally:
        shutil.rmtree(old.parent, ignore_errors=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a small UTF-8 text file atomically."""
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        characters = ascii(text[error.start : error.end])
        raise DataError(f"{os.fspath(path)}: {characters} cannot be encoded as UTF-8") from None
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files that killed processes left next to `path`; keep those that are being written."""
    path = path.resolve()
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.????????"):  # the names of `mkstemp`
        with suppress(OSError), leftover.open("rb") as file:
            if _lock(file.fileno()):
                leftover.unlink()


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_UMASK_LOCK = threading.Lock()


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    with _UMASK_LOCK:  # two threads at the same time could restore each other's value
        current = os.umask(0o077)
        os.umask(current)
    return current


@contextmanager
def compressed(path: Path, suffix: str) -> Iterator[IO[bytes]]:
    """Yield a stream that writes to a file, compressed as the suffix says; equal content gives equal bytes."""
    streams: dict[str, Callable[[IO[bytes]], Any]] = {
        ".gz": lambda raw: gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6),
        ".bz2": lambda raw: bz2.BZ2File(raw, "wb"),
        ".xz": lambda raw: lzma.LZMAFile(raw, "wb"),
    }
    with path.open("wb") as raw, streams.get(suffix, nullcontext)(raw) as stream:
        yield stream
