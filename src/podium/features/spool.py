"""Arrays that grow: in memory, or in `.npy` files if they may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from podium.core.mapping import map_array
from podium.errors import FileFormatError

SMALL = 1 << 16  # bytes of a file that is read instead of mapped


class Spool:
    """An array that is written piece by piece.

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
            while self._pieces:  # free each piece once it is copied, so that not all numbers are in memory twice
                piece = self._pieces.pop()
                self._array[end - len(piece) : end] = piece
                end -= len(piece)
        return self._array

    def _write_header(self) -> None:
        if self._file is not None:
            header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.size,)}
            np.lib.format.write_array_header_1_0(self._file, header)


@dataclass(frozen=True)
class StoredFile:
    """The file of an array.

    Attributes:
        path: an `.npy` file.
        is_temporary: whether it may be moved to where it is needed.
        array: its content.

    """

    path: Path
    is_temporary: bool
    array: NDArray[Any]


def stored_files(spools: Iterable[Spool]) -> dict[int, StoredFile]:
    """Return the files of finished arrays, by the identity of the array."""
    return {id(spool.finish()): StoredFile(spool.path, True, spool.finish()) for spool in spools if spool.path}


def load_array(path: Path) -> NDArray[Any]:
    """Return the array of an `.npy` file, memory-mapped unless it is small."""
    if path.stat().st_size > SMALL:
        return map_array(path)
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array
