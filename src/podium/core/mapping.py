"""Memory-mapped arrays: the operating system reads pages of a file when they are used, and may drop them again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.core.array_types import Float32s


def map_array(path: Path) -> NDArray[Any]:
    """Return the array of a `.npy` file, mapped read-only, in a form that kernels accept."""
    return as_kernel_array(np.load(path, mmap_mode="r", allow_pickle=False))


def map_rows(path: Path, n_columns: int) -> Float32s:
    """Return the array of a file of float32 rows without a header, mapped read-only."""
    values = np.memmap(path, np.float32, "r")
    return np.asarray(values).reshape(-1, n_columns)


def new_array(path: Path, size: int, dtype: Any) -> NDArray[Any]:
    """Create a `.npy` file and return its array for the caller to fill; raise an OSError if the disk is too full.

    The space is reserved now, because the system kills a process that writes to mapped pages on a full disk.
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
    """Exposes the memory of a read-only array to NumPy as writable."""

    def __init__(self, array: NDArray[Any]) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False), "shape": (array.size,)}
        self.array = array


def as_kernel_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same memory as a flat array marked as writable, so that kernels are compiled for only one type."""
    return array.reshape(-1) if array.flags.writeable else np.asarray(_Memory(array))
