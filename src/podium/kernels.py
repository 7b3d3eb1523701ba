"""The ground under every compiled kernel: how it is compiled, and where the result is cached.

Only files named `kernels.py` import numba. A kernel's helpers stand in the same file as the kernel,
because numba's cache notices only edits of the file itself.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core import config as _config

config: Any = _config  # its attributes come from the environment, where no type checker sees them

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile on first call, without the interpreter lock, cached on disk where any place is writable.

    `error_model="numpy"` makes x/0 an infinity instead of a branch that stops vectorisation. Neither
    fastmath nor contraction is allowed: the same bits everywhere.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        compiled: Any = njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no writable place: package folder, home and cache are read-only
        compiled = _cached_in_temporary_folder(function, options)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Compile as a part of the kernels that call it."""
    compiled: Any = njit(nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def _cached_in_temporary_folder(function: Function, options: dict[str, Any]) -> Any:
    folder = _private_temporary_folder()
    if folder is None:
        return njit(**options)(function)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)  # read while the function is decorated; other libraries keep theirs
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        return njit(**options)(function)
    finally:
        config.CACHE_DIR = before


def _private_temporary_folder() -> Path | None:
    """A cache folder that nobody else can write to: numba unpickles what it finds there."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    try:
        folder = Path(tempfile.gettempdir()) / f"podium-kernels-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    if hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o077):
        return None
    return folder
