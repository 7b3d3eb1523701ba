"""The folder of binned data: a manifest that names every file, its size and its checksum.

| file | content |
|---|---|
| `podium-bins.json` | the manifest: what the data is, all names, sizes and checksums, and a checksum of its own |
| `columns.npy` | bins, feature by feature: a byte for each document |
| `rows.npy`, `entries.npy`, `starts.npy`, `layout.npz` | the same bins as trees are grown from them |
| `bins.npz` | how features are cut |
| `documents.npz` | labels, weights, positions, preferences; sizes of queries |
| `hashes.npy` | a hash of the features of each document, for the canonical order and random numbers |
| `query_ids.json` | what queries are called |
| `values` | the features themselves as rows of float32, where they are kept |
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podium.core.files import UNFINISHED
from podium.core.progress import progress
from podium.core.threads import map_threads
from podium.core.validation import to_path
from podium.errors import FileFormatError

MANIFEST = "podium-bins.json"
FORMAT = 2  # of the folder; another number where its files, or what trees read of them, mean something else
COLUMNS, HASHES, BINS, LAYOUT = "columns.npy", "hashes.npy", "bins.npz", "layout.npz"
DOCUMENTS, QUERY_IDS, VALUES = "documents.npz", "query_ids.json", "values"
MATRIX = ("rows", "entries", "starts")  # .npy
BYTES_AT_ONCE = 1 << 22  # of a file


def is_binned(path: Any) -> bool:
    """Whether a path is a folder of binned data.

    >>> is_binned("no such folder")
    False
    """
    return isinstance(path, str | os.PathLike) and (Path(path) / MANIFEST).is_file()


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Describe a folder whose other files are whole."""
    paths = sorted(path for path in folder.iterdir() if path.name != UNFINISHED)
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": digest}
        for path, digest in zip(paths, _checksums(paths), strict=True)
    }
    manifest = {"format": FORMAT, **content, "files": files}
    text = json.dumps(manifest | {"sha256": _own_checksum(manifest)}, indent=1, allow_nan=False)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What a folder is said to hold; a manifest that is damaged or of another version is refused."""
    folder = to_path(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise FileFormatError(folder, f"is no folder of binned data, which would hold a file {MANIFEST}: see bin_files")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        expected = manifest.pop("sha256")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise _damage(path, f"it cannot be read ({error})") from None
    if _own_checksum(manifest) != expected:
        raise _damage(path, "its checksum is another")
    if manifest.get("format") != FORMAT:
        raise FileFormatError(
            path,
            f"has version {manifest.get('format')!r} of the format, and this Podium reads {FORMAT}: bin the files "
            "again, or use the Podium that wrote it",
        )
    return dict(manifest)


def check_files(folder: Path, manifest: Mapping[str, Any], reads_all: bool) -> None:
    """Refuse a folder whose files are absent, cut off or, where all are read, changed."""
    for name, described in manifest["files"].items():
        path = folder / name
        if name in ("", ".", "..") or Path(name).name != name:
            raise _damage(folder / MANIFEST, f"{name!r} is not the name of a file in it")
        if not path.is_file():
            raise _damage(path, "the file is not there")
        if path.stat().st_size != described["bytes"]:
            raise _damage(path, f"it has {path.stat().st_size} bytes in place of {described['bytes']}")
    paths = [folder / name for name in manifest["files"]] if reads_all else []
    for path, digest in zip(paths, _checksums(paths), strict=True):
        if digest != manifest["files"][path.name]["sha256"]:
            raise _damage(path, "its checksum is another")


def _damage(path: Path, problem: str) -> FileFormatError:
    return FileFormatError(path, f"is damaged: {problem}. Bin the files again")


def _checksums(paths: list[Path]) -> list[str]:
    """The SHA-256 of each file, files side by side on threads."""
    lock = threading.Lock()
    with progress("checksums", sum(path.stat().st_size for path in paths)) as advance:

        def checksum(path: Path) -> str:
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while block := file.read(BYTES_AT_ONCE):
                    digest.update(block)
                    with lock:
                        advance(len(block))
            return digest.hexdigest()

        return list(map_threads(checksum, paths))


def _own_checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
