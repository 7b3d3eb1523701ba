"""The folder of an index: a manifest, and an `.npy` file for every array; `Spool` writes an array piece by piece.

A file's name ends with its checksum, so a new state of the index never overwrites a file of the old one. The manifest
is replaced last, and then files that it does not name are removed. If the process is killed at any moment, the folder
contains either the old or the new index.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.core.files import UNFINISHED, flush, locked_folder, write_text
from podium.core.manifests import FolderFormat, checksums
from podium.core.mapping import map_array
from podium.core.validation import to_path
from podium.errors import FileFormatError, PodiumWarning

MANIFEST = "podium-index.json"
FOLDER = FolderFormat(MANIFEST, 1, "an index", "Index.save", "build the index again")
PIECE = 1 << 22  # numbers to write at a time
SMALL = 1 << 16  # bytes of a file that is read instead of mapped
ATTEMPTS = 3  # to read a folder that another process is replacing

Content = TypeVar("Content")


class Spool:
    """An array that is written piece by piece, in memory or in a file.

    Args:
        dtype: the type of its numbers.
        path: the `.npy` file to write; None to keep it in memory.

    """

    def __init__(self, dtype: Any, path: Path | None = None) -> None:
        self.dtype, self.path, self.size = np.dtype(dtype), path, 0
        self._pieces: list[NDArray[Any]] = []
        self._array: NDArray[Any] | None = None
        self._file: IO[bytes] | None = None if path is None else path.open("wb")
        self._write_header()

    def append(self, values: NDArray[Any]) -> None:
        """Append numbers."""
        values = np.ascontiguousarray(values, self.dtype)
        self.size += len(values)
        if self._file is None:
            self._pieces.append(values)
            return
        try:
            self._file.write(values.data)
        except OSError as error:
            raise FileFormatError(str(self.path), f"cannot be written: {error.strerror or error}") from error

    def finish(self) -> NDArray[Any]:
        """Return the array, memory-mapped if it is in a file; the same one each time."""
        if self._array is None and self._file is not None and self.path is not None:
            self._file.seek(0)
            self._write_header()  # NumPy's header has room for any length
            self._file.close()
            self._array = load_array(self.path)
        elif self._array is None:
            self._array = self._pieces.pop() if len(self._pieces) == 1 else np.empty(self.size, self.dtype)
            end = self.size
            while self._pieces:  # free each piece once it is copied, so that few numbers are in memory twice
                piece = self._pieces.pop()
                self._array[end - len(piece) : end] = piece
                end -= len(piece)
        return self._array

    def _write_header(self) -> None:
        if self._file is not None:
            header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.size,)}
            np.lib.format.write_array_header_1_0(self._file, header)


def load_array(path: Path) -> NDArray[Any]:
    """Return the array of an `.npy` file, memory-mapped unless it is small."""
    if path.stat().st_size > SMALL:
        return map_array(path)
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array


def file_of(array: NDArray[Any]) -> Path | None:
    """Return the file that a whole array is mapped from, or None."""
    mapped = getattr(array.base, "array", None)  # as `map_array` leaves it; the base of a slice is another array
    return Path(str(mapped.filename)) if isinstance(mapped, np.memmap) else None


def is_index(path: Any) -> bool:
    """Return whether a path is the folder of an index."""
    return isinstance(path, str | os.PathLike) and (Path(path) / MANIFEST).is_file()


def require_replaceable(folder_format: FolderFormat, folder: str | os.PathLike[str]) -> Path:
    """Return the path of a folder; raise if it contains anything but a folder of this format."""
    path = to_path(folder)
    is_empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not is_empty and not (path / folder_format.manifest).is_file():
        raise FileFormatError(path, f"exists but is not {folder_format.kind}: choose another folder")
    return path.resolve()


def read_with_retries(folder_format: FolderFormat, folder: Path, read: Callable[[dict[str, Any]], Content]) -> Content:
    """Call `read` with the manifest of a folder, and again if another process has replaced the folder meanwhile."""
    for _ in range(ATTEMPTS - 1):
        manifest = folder_format.read(folder)
        try:
            return read(manifest)
        except FileFormatError:
            if folder_format.read(folder) == manifest:
                raise
    return read(folder_format.read(folder))


def write_folder(
    folder: Path, content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Write arrays and the manifest; return the arrays as read from the folder.

    Args:
        folder: a new folder, or that of an index, which is replaced.
        content: the rest of the manifest.
        arrays: the arrays by label.

    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked_folder(folder):
            old_files = FOLDER.read(folder)["files"] if is_index(folder) else {}
            written = {label: _write_array(folder, label, array, old_files) for label, array in arrays.items()}
            names = {label: name for label, (name, _) in written.items()}
            files = dict(written.values())
            flush(folder)
            write_text(folder / MANIFEST, FOLDER.signed({**content, "arrays": names, "files": files}))
            _remove_others(folder, files)
            return {label: load_array(folder / name) for label, name in names.items()}
    except OSError as error:
        raise FileFormatError(folder, f"cannot be written: {error.strerror or error}") from error


def _write_array(
    folder: Path, label: str, array: NDArray[Any], old_files: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Write an array unless it is already in the folder; return the name of its file, its size and checksum."""
    file = file_of(array)
    if file is not None and file.parent == folder and file.name in old_files:
        return file.name, old_files[file.name]
    temporary = folder / f".{label}.unfinished"
    if file is not None and (file.parent / UNFINISHED).exists():  # a spool of this index
        file.replace(temporary)
    else:
        spool = Spool(array.dtype, temporary)
        for first in range(0, len(array), PIECE):
            spool.append(array[first : first + PIECE])
        spool.finish()
    flush(temporary)
    facts: dict[str, Any] = {"bytes": temporary.stat().st_size, "sha256": checksums([temporary])[0]}
    name = f"{label}-{facts['sha256'][:16]}.npy"
    target = folder / name
    if facts["bytes"] <= SMALL and target.is_file() and target.read_bytes() == temporary.read_bytes():
        temporary.unlink()
    else:
        temporary.replace(target)
    return name, facts


def _remove_others(folder: Path, files: Mapping[str, Any]) -> None:
    """Remove the files of an earlier state, and leftovers of killed processes."""
    for path in folder.iterdir():
        if path.name not in files and (path.suffix == ".npy" or path.name.endswith(".unfinished")):
            with suppress(OSError):  # Windows cannot remove a file that is open elsewhere
                path.unlink()


def read_folder(folder: Path, verify: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the manifest of an index, and its memory-mapped arrays by label."""
    path = folder.resolve()

    def read(manifest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        with FOLDER.reporting_damage(path):
            FOLDER.check_files(path, manifest, verify)
            names = {str(label): str(name) for label, name in manifest["arrays"].items()}
            unknown = set(names.values()) - set(manifest["files"])
            if unknown:
                raise FOLDER.damage(path / MANIFEST, f"it has no checksum of {min(unknown)}")
            return manifest, {label: load_array(path / name) for label, name in names.items()}

    return read_with_retries(FOLDER, path, read)


def stemmer_version() -> str:
    """Return the version of the Snowball stemmers."""
    return version("snowballstemmer")


def warn_of_stemmer(folder: Path, built_with: Any) -> None:
    """Warn if an index was built with another version of Snowball, whose stems may differ."""
    if str(built_with).split(".")[:2] != stemmer_version().split(".")[:2]:
        warnings.warn(
            f"{folder} was built with snowballstemmer {built_with}, but {stemmer_version()} is installed: searches "
            "miss words whose stems differ. Build the index again, or install the other version",
            PodiumWarning, stacklevel=4,
        )  # fmt: skip
