"""The folder of an index: a manifest, and an `.npy` file for every array.

A file's name ends with its checksum, so a new state of the index never overwrites a file of the old one. The manifest
is replaced last, and then files that it does not name are removed. If the process is killed at any moment, the folder
contains either the old or the new index.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from podium.core.files import flush, locked_folder, write_text
from podium.core.manifests import FolderFormat, checksums
from podium.core.validation import to_path
from podium.errors import FileFormatError, PodiumWarning
from podium.features.spool import Spool, StoredFile, load_array

MANIFEST = "podium-index.json"
FOLDER = FolderFormat(MANIFEST, 1, "an index", "Index.save", "build the index again")
PIECE = 1 << 22  # numbers to write at a time
ATTEMPTS = 3  # to open an index that another process is replacing


def is_index(path: Any) -> bool:
    """Return whether a path is the folder of an index."""
    return isinstance(path, str | os.PathLike) and (Path(path) / MANIFEST).is_file()


def require_index_or_new(folder: str | os.PathLike[str]) -> Path:
    """Return the path of a folder; raise if an index must not be saved there."""
    path = to_path(folder)
    if path.exists() and not is_index(path) and not (path.is_dir() and not any(path.iterdir())):
        raise FileFormatError(path, "exists but is not an index: choose another folder")
    return path.resolve()


def write_folder(
    folder: Path, content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], files: Mapping[int, StoredFile]
) -> dict[int, StoredFile]:
    """Write arrays and the manifest; return the file of each array.

    Args:
        folder: a new folder, or that of an index, which is replaced.
        content: the rest of the manifest.
        arrays: the arrays by label.
        files: the files of arrays that are already in files, by the identity of the array.

    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked_folder(folder):
            known = FOLDER.read(folder)["files"] if is_index(folder) else {}
            named = {
                label: _write_array(folder, label, array, files.get(id(array)), known)
                for label, array in arrays.items()
            }
            described = dict(named.values())
            flush(folder)
            names = {label: name for label, (name, _) in named.items()}
            write_text(folder / MANIFEST, FOLDER.signed({**content, "arrays": names, "files": described}))
            _remove_others(folder, described)
    except OSError as error:
        raise FileFormatError(folder, f"cannot be written: {error.strerror or error}") from error
    return {id(array): StoredFile(folder / names[label], False, array) for label, array in arrays.items()}


def _write_array(
    folder: Path, label: str, array: NDArray[Any], stored: StoredFile | None, known: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Write an array unless it is already in the folder; return the name of its file, its size and checksum."""
    if stored is not None and stored.array is not array:  # another array at the address of one that was freed
        stored = None
    if stored is not None and stored.path.parent == folder and stored.path.name in known:
        return stored.path.name, known[stored.path.name]
    temporary = folder / f".{label}.unfinished"
    if stored is not None and stored.is_temporary and stored.path.exists():
        stored.path.replace(temporary)
    else:
        spool = Spool(array.dtype, temporary)
        for first in range(0, len(array), PIECE):
            spool.append(array[first : first + PIECE])
        spool.finish()
    flush(temporary)
    facts: dict[str, Any] = {"bytes": temporary.stat().st_size, "sha256": checksums([temporary])[0]}
    name = f"{label}-{facts['sha256'][:16]}.npy"
    temporary.replace(folder / name)
    return name, facts


def _remove_others(folder: Path, described: Mapping[str, Any]) -> None:
    """Remove the files of an earlier state, and leftovers of killed processes."""
    for path in folder.iterdir():
        if path.name not in described and (path.suffix == ".npy" or path.name.endswith(".unfinished")):
            with suppress(OSError):  # Windows cannot remove a file that is open elsewhere
                path.unlink()


def read_folder(
    folder: str | os.PathLike[str], verify: bool
) -> tuple[dict[str, Any], dict[str, NDArray[Any]], dict[int, StoredFile]]:
    """Return the manifest of an index, its memory-mapped arrays by label, and the file of each array."""
    path = to_path(folder).resolve()
    for attempt in range(ATTEMPTS):
        manifest = FOLDER.read(path)
        try:
            with FOLDER.naming_damage(path):
                FOLDER.check_files(path, manifest, verify)
                names = {str(label): str(name) for label, name in manifest["arrays"].items()}
                unknown = set(names.values()) - set(manifest["files"])
                if unknown:
                    raise FOLDER.damage(path / MANIFEST, f"it has no checksum of {unknown.pop()}")
                arrays = {label: load_array(path / name) for label, name in names.items()}
            return (
                manifest,
                arrays,
                {id(arrays[label]): StoredFile(path / name, False, arrays[label]) for label, name in names.items()},
            )
        except FileFormatError:
            if attempt == ATTEMPTS - 1 or FOLDER.read(path) == manifest:  # the error is not due to a replacement
                raise
    raise AssertionError


def stemmer_version() -> str:
    """Return the version of Snowball's stemmers."""
    return version("snowballstemmer")


def warn_of_stemmer(folder: Path, built_with: Any) -> None:
    """Warn if an index was built with another version of Snowball, whose stems may differ."""
    if str(built_with).split(".")[:2] != stemmer_version().split(".")[:2]:
        warnings.warn(
            f"{folder} was built with snowballstemmer {built_with}, but {stemmer_version()} is installed: searches "
            "miss words whose stems differ. Build the index again, or install the other version",
            PodiumWarning, stacklevel=4,
        )  # fmt: skip
