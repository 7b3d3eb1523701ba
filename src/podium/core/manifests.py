"""Write and validate folders of data files, whose manifest has the size and checksum of every file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from podium.core.progress import progress
from podium.core.threads import map_threads
from podium.core.validation import to_path
from podium.errors import DataError, FileFormatError


@dataclass(frozen=True)
class FolderFormat:
    """A kind of folder.

    Attributes:
        manifest: the name of the manifest file.
        version: the version of the format.
        kind: the kind of folder, for messages: "a folder of binned data".
        maker: the function that creates such a folder, for messages.
        advice: the remedy for a damaged folder.

    """

    manifest: str
    version: int
    kind: str
    maker: str
    advice: str

    def manifest_text(self, content: Mapping[str, Any], paths: Sequence[Path]) -> str:
        """Return the manifest of a folder with these complete files."""
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": digest}
            for path, digest in zip(paths, checksums(paths), strict=True)
        }
        return self.signed({**content, "files": files})

    def signed(self, content: Mapping[str, Any]) -> str:
        """Return the text of a manifest, with the version of the format and the checksum of the manifest itself."""
        manifest = {"format": self.version, **content}
        return json.dumps(manifest | {"sha256": _manifest_checksum(manifest)}, indent=1, allow_nan=False)

    def read(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the manifest of a folder; raise if it is damaged or has another version."""
        folder = to_path(folder)
        path = folder / self.manifest
        if not path.is_file():
            raise FileFormatError(
                folder, f"is not {self.kind}, because it has no file {self.manifest}: see {self.maker}"
            )
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            expected = manifest.pop("sha256")
        except (OSError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise self.damage(path, f"it cannot be read ({error})") from None
        if _manifest_checksum(manifest) != expected:
            raise self.damage(path, "its checksum differs")
        if manifest.get("format") != self.version:
            raise FileFormatError(
                path,
                f"has format version {manifest.get('format')!r}, but this version of Podium reads {self.version}: "
                f"{self.advice}, or use the version of Podium that wrote it",
            )
        return dict(manifest)

    def check_files(self, folder: Path, manifest: Mapping[str, Any], reads_all: bool) -> None:
        """Raise if files are missing or have the wrong size; with `reads_all`, also if a checksum differs."""
        for name, entry in manifest["files"].items():
            path = folder / name
            if name in ("", ".", "..") or Path(name).name != name:
                raise self.damage(folder / self.manifest, f"{name!r} is not the name of a file in the folder")
            if not path.is_file():
                raise self.damage(path, "the file does not exist")
            if path.stat().st_size != entry["bytes"]:
                raise self.damage(path, f"it has {path.stat().st_size} bytes instead of {entry['bytes']}")
        paths = [folder / name for name in manifest["files"]] if reads_all else []
        for path, digest in zip(paths, checksums(paths), strict=True):
            if digest != manifest["files"][path.name]["sha256"]:
                raise self.damage(path, "its checksum differs")

    def damage(self, path: Path, problem: str) -> FileFormatError:
        """Return the error to raise for a damaged file, with the remedy."""
        return FileFormatError(path, f"is damaged: {problem}. {self.advice[:1].upper() + self.advice[1:]}")

    @contextmanager
    def reporting_damage(self, folder: Path) -> Iterator[None]:
        """Turn any error into a FileFormatError that names the folder."""
        try:
            yield
        except FileFormatError:
            raise
        except Exception as error:  # json, zipfile and numpy raise many kinds of errors for crafted bytes
            reason = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
            raise self.damage(folder, reason) from error


def checksums(paths: Sequence[Path]) -> list[str]:
    """Return the SHA-256 of each file, computed on threads."""

    def checksum(path: Path) -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    digests = []
    with progress("checksums", sum(path.stat().st_size for path in paths)) as advance:
        for path, digest in zip(paths, map_threads(checksum, paths), strict=True):
            digests.append(digest)
            advance(path.stat().st_size)
    return digests


def _manifest_checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def require(condition: Any, problem: str) -> None:
    """Raise a DataError unless a condition holds."""
    if not condition:
        raise DataError(problem)


def check_array(name: str, array: NDArray[Any], dtype: Any, size: int | None = None) -> None:
    """Raise if an array has the wrong type or length."""
    require(array.ndim == 1 and array.dtype == dtype and array.dtype.isnative, f"{name} is not a list of {dtype}")
    require(size is None or len(array) == size, f"{name} has {len(array)} entries instead of {size}")
