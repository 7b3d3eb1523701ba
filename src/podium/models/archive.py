"""The zip of a model file, read with limits: the sizes that a file claims are checked before memory is allocated.

A model writes `Parts` and is read from a `StoredModel`: entries of the header, arrays, and further models.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Bytes
from podium.core.files import replacing
from podium.data.encoding import Encoding
from podium.errors import DataError, FileFormatError, PodiumError

HEADER = "header.json"
MAX_HEADER = 16 << 20  # bytes; as Python objects they may take 25 times as much
ROOM_FOR_NAMES = MAX_HEADER // 2  # bytes: a model on top of another stores its names twice
MAX_FEATURES = 1 << 24
# A small file may be compressed at any ratio, because zeros are. Above these sizes, each byte of the file may unpack to
# at most MAX_RATIO bytes; models reach 2 to 10.
SMALL_HEADER, SMALL_TOTAL = 1 << 20, 64 << 20  # bytes of the header, and of all members
MAX_RATIO = 100
MAX_MEMBERS = 1 << 16
PIECE = 1 << 20  # bytes to read at a time
MAX_ARRAY_HEADER = 10 + (1 << 16)  # bytes before the values of an array
_STAMP = (2000, 1, 1, 0, 0, 0)  # a fixed time, so that the same content gives the same bytes

Arrays = Callable[[str, Any], Any]  # returns an array, or bytes, by name and type


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins like a zip file."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except (OSError, ValueError):
        return False


def write_archive(path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header, arrays and bytes; an existing file is replaced only once everything is written."""
    contents = {_member_of(name, type(array)): _packed(array) for name, array in arrays.items()}
    header = header | {"sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}}
    text = header_text(header)
    if len(text) > MAX_HEADER or len(contents) >= MAX_MEMBERS:
        raise DataError(
            f"a model file has at most a header of {MAX_HEADER >> 20} MB and {MAX_MEMBERS} arrays, but this model "
            f"has {len(text) / (1 << 20):.1f} MB and {len(contents)}: use fewer parts, shorter names or less in `info`"
        )
    members = {HEADER: text, **contents}
    total = sum(map(len, members.values()))
    with replacing(Path(path)) as temporary:
        for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            with zipfile.ZipFile(temporary, "w", compression) as archive:
                for name, content in members.items():
                    archive.writestr(zipfile.ZipInfo(name, _STAMP), content, compression)
            if _is_bounded(len(text), total, temporary.stat().st_size):  # otherwise it could not be read again
                break


def header_text(content: dict[str, Any]) -> bytes:
    """Return content as the text of a file's header."""
    return json.dumps(content, indent=1).encode()


def _is_bounded(header: int, total: int, size: int) -> bool:
    """Return whether a file of this size may have a header and members of these sizes, all in bytes."""
    allowed = MAX_RATIO * size
    return header <= min(MAX_HEADER, max(SMALL_HEADER, allowed)) and total <= max(SMALL_TOTAL, allowed)


def _member_of(name: str, kind: Any) -> str:
    return f"{name}.safetensors" if kind is bytes else f"{name}.npy"


def _packed(array: Any) -> bytes:
    if isinstance(array, bytes):
        return array
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


@contextmanager
def open_archive(path: str) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Yield the header of a file and its arrays by name; raise a FileFormatError if anything is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            reader = _ArchiveReader(archive, path)
            yield reader.header, reader.array
    except (PodiumError, ImportError):  # ImportError: a net needs torch
        raise
    except OSError as error:
        raise FileFormatError(path, f"cannot be opened: {error.strerror or error}") from error
    except MemoryError as error:
        raise FileFormatError(path, "does not fit into memory") from error
    except Exception as error:  # zipfile, zlib, struct and json raise many kinds of errors for damaged bytes
        raise FileFormatError(
            path,
            f"is not a Podium model, or it is damaged ({error}); to read another tool's model, use "
            "podium.import_model or podium import",
        ) from error


class _ArchiveReader:
    """The members of a zip.

    The sizes in its directory limit what is read: reading a member stops at the size in the directory, and a shorter
    member is refused. So a limit on the sum of these sizes limits the memory.
    """

    def __init__(self, archive: zipfile.ZipFile, path: str) -> None:
        self.archive, self.path = archive, path
        members = archive.infolist()
        self.members = {member.filename: member for member in members}
        if HEADER not in self.members:
            raise self.error("is not a model file: it has no header")
        if len(self.members) != len(members) or len(members) > MAX_MEMBERS:
            raise self.error(f"has duplicate members, or more than {MAX_MEMBERS}")
        if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in members):
            raise self.error("uses a compression that Podium does not write")
        header, total = self.members[HEADER].file_size, sum(member.file_size for member in members)
        if not _is_bounded(header, total, Path(path).stat().st_size):
            raise self.error(
                f"claims a header of {header} bytes and {total} bytes in all, which is too much for a file of its size"
            )
        self.header = self._header()

    def error(self, problem: str) -> FileFormatError:
        return FileFormatError(self.path, problem)

    def _header(self) -> dict[str, Any]:
        try:
            header = json.loads(self._bytes(HEADER).tobytes())
        except (ValueError, RecursionError) as error:
            raise self.error("its header is damaged") from error
        if not isinstance(header, dict):
            raise self.error("is not a Podium model, or it was written by a newer version of Podium")
        return header

    def array(self, name: str, dtype: Any) -> Any:
        """Return an array or bytes; raise if the checksum is wrong."""
        member = _member_of(name, dtype)
        content = self._bytes(member)
        array = content.tobytes() if dtype is bytes else self._column(member, content, np.dtype(dtype))
        sums = self.header.get("sha256")
        if not isinstance(sums, dict) or sums.get(member) != hashlib.sha256(content.data).hexdigest():
            raise self.error(f"{member} is damaged: its checksum differs")
        return array

    def _bytes(self, member: str) -> Bytes:
        """Return the content of a member, read in pieces into memory of the size in the directory."""
        if member not in self.members:
            raise self.error(f"{member} is missing")
        content = np.empty(self.members[member].file_size, np.uint8)
        with self.archive.open(member) as stream:
            for first in range(0, len(content), PIECE):
                part = content[first : first + PIECE]
                if stream.readinto(part.data) != len(part):  # type: ignore[attr-defined]
                    raise self.error(f"{member} is shorter than it claims")
        return content

    def _column(self, member: str, content: Bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a one-dimensional array in NumPy's format, on the same memory if it is aligned."""
        start = io.BytesIO(content[:MAX_ARRAY_HEADER].tobytes())
        try:
            if np.lib.format.read_magic(start) != (1, 0):
                raise ValueError("it is not in version 1.0 of NumPy's format")
            shape, _, claimed = np.lib.format.read_array_header_1_0(start)
        except Exception as error:  # NumPy raises many kinds of errors for a crafted header
            raise self.error(f"{member} is not an array: {type(error).__name__} {error}") from error
        values = content[start.tell() :]
        if claimed != dtype or len(shape) != 1:
            raise self.error(f"{member} must be a column of {dtype}")
        if shape[0] * dtype.itemsize != len(values):
            raise self.error(f"{member} does not have the size that it claims, {shape[0]}")
        return np.require(values.view(dtype), requirements="A")


# --- a model in its file


class Parts(NamedTuple):
    """The content of a model for a file, as `Model.to_parts` returns it."""

    entries: dict[str, Any]  # entries of the header, in JSON types
    arrays: dict[str, Any]  # one-dimensional arrays, or bytes, by name
    children: tuple[Any, ...] = ()  # the models that this one consists of; the file describes each in the same way


@dataclass(frozen=True)
class StoredModel:
    """The input of `Model.from_parts`: an unchecked header, and arrays with valid checksums."""

    path: str  # the file, for errors
    header: dict[str, Any]  # the entries
    array: Arrays  # returns an array, or bytes, by name and type
    children: tuple[Any, ...] = ()  # the models that this one consists of
    module: Any = None  # the torch module to load weights into, if the file has a custom net

    def error(self, problem: str) -> FileFormatError:
        """Return an error that names the file."""
        return FileFormatError(self.path, problem)

    def part(self, number: int, header: dict[str, Any]) -> StoredModel:
        """Return one of the models that this one consists of; the names of its arrays begin with its number."""
        return replace(self, header=header, array=lambda name, dtype: self.array(f"{number}/{name}", dtype))

    def mapping(self, key: str) -> dict[str, Any]:
        """Return an entry that is a mapping, or an empty mapping if it is missing or invalid."""
        entry = self.header.get(key)
        return entry if isinstance(entry, dict) else {}

    @property
    def info(self) -> dict[str, Any]:
        """Facts about training, such as parameters and history."""
        return self.mapping("info")

    @property
    def n_features(self) -> int:
        """The number of features."""
        n_features = self.header.get("n_features")
        if type(n_features) is not int or not 0 <= n_features <= MAX_FEATURES:
            raise self.error("the number of features is invalid")
        return n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, or None."""
        names = self.header.get("feature_names")
        if names is not None and not _are_names(names, self.n_features):
            raise self.error("the names of the features are invalid")
        return None if names is None else tuple(names)

    @property
    def encoding(self) -> Encoding:
        """How the features are encoded."""
        try:
            return Encoding.from_json(self.header.get("encoding"), self.n_features)
        except DataError as error:
            raise self.error(str(error)) from None


def _are_names(names: Any, n_features: int) -> bool:
    """Return whether there is a distinct name for each feature, without lone surrogates."""
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
        return False
    return len(set(names)) == len(names) and not any("\ud800" <= c <= "\udfff" for c in set("".join(names)))
