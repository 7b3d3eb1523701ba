"""Arrays in files that are mapped into memory: the system reads pages when they are used, and may drop them again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s


def map_array(path: Path) -> NDArray[Any]:
    """The array of a `.npy` file, to be read; kernels take it as any other."""
    return as_kernels_take(np.load(path, mmap_mode="r", allow_pickle=False))


def map_rows(path: Path, n_columns: int) -> Float32s:
    """A file of float32 rows without any header, to be read."""
    values = np.memmap(path, np.float32, "r")
    return np.asarray(values).reshape(-1, n_columns)


def new_array(path: Path, size: int, dtype: Any) -> NDArray[Any]:
    """A `.npy` file of so many values, to be filled; an OSError where the disk has no room for them.

    A mapped file without that room would end the process when its pages are written.
    """
    if size == 0:  # nothing to map
        np.save(path, np.empty(0, dtype))
        return np.empty(0, dtype)
    array = np.asarray(np.lib.format.open_memmap(path, "w+", dtype, (size,)))
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


class _Memory:
    """What NumPy reads an array from."""

    def __init__(self, array: NDArray[Any]) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False), "shape": (array.size,)}
        self.array = array


def as_kernels_take(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as a flat array that may be written to: kernels do not, and are compiled for one kind only."""
    return array.reshape(-1) if array.flags.writeable else np.asarray(_Memory(array))
