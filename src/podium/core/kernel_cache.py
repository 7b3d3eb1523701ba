"""Choose the folder of compiled kernels.

Numba checks a cached kernel only against the file that defines it. But machine code also depends on helpers in other
files, on constants, on Numba and on the processor. So Podium names the folder after a digest of all of them. If one of
them changes, the folder is new and empty, and old machine code never runs.

The folder is below `NUMBA_CACHE_DIR` if that is set, else in the user's cache directory. If it exists but is not
writable, as in a container image whose kernels `podium warmup` compiled, its files are linked into a private temporary
folder, and new kernels are added there. If it does not exist and cannot be created, only the temporary folder is used.

Numba unpickles the files in its cache, so a folder that other users can write to is refused.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any

from podium import __version__
from podium.errors import PodiumWarning

PACKAGE = Path(__file__).parents[1]
# Packages in layers above all kernels. Lower layers never import them, so they cannot change machine code.
WITHOUT_KERNELS = frozenset(
    ("estimators", "distributed", "tuning", "reports", "serving", "integrations", "cli", "demo", "testing")
)
DAY = 24 * 3600.0
KEPT_FOLDERS, KEPT_DAYS = 4, 30  # folders that were used within a day are always kept

# Settings of Numba that change machine code.
_CODE_SETTINGS = (
    "CPU_NAME", "CPU_FEATURES", "ENABLE_AVX", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML",
)  # fmt: skip
CHECKED = "operations-checked"  # a file that records that the LLVM operations passed their check


def numba_settings() -> Any:
    """Return Numba's settings; untyped, because Numba creates the attributes from the environment."""
    from numba.core import config

    return config


@cache
def cache_folder(plain: bool) -> Path | None:
    """Return the folder to cache kernels in, or None if no place is writable.

    Args:
        plain: whether kernels are compiled from Python bodies only (`podium.core.compiling.uses_llvm`).

    """
    name = f"kernels-{_digest(plain)}"
    if parent := numba_settings().CACHE_DIR:
        folder = Path(parent) / f"podium-{name}"
    else:
        from platformdirs import user_cache_path

        folder = user_cache_path("podium", appauthor=False) / name
    is_safe = _exists(folder) and _is_safe(folder)
    if is_safe and _is_writable(folder):
        return folder
    temporary = _temporary_folder()
    if temporary is None or not _exists(temporary / name):
        warnings.warn(
            f"Podium has to compile its kernels in every process, because neither {folder.parent} nor the temporary "
            "folder is writable: set NUMBA_CACHE_DIR to a writable folder", PodiumWarning, stacklevel=2,
        )  # fmt: skip
        return None
    if is_safe:
        _link(folder, temporary / name)
    return temporary / name


def _digest(plain: bool) -> str:
    """Return a digest of everything that machine code depends on."""
    import llvmlite
    import llvmlite.binding as llvm
    import numba
    import numpy as np

    settings = [str(getattr(numba_settings(), name, None)) for name in _CODE_SETTINGS]
    versions = [__version__, numba.__version__, llvmlite.__version__, np.__version__, sys.version]
    machine = [platform.machine(), llvm.get_process_triple(), *([] if numba_settings().CPU_NAME else _host())]
    digest = hashlib.sha256("\n".join([*versions, *machine, *settings, str(plain)]).encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] in WITHOUT_KERNELS:
            continue
        digest.update(str(name).encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:20]


def _host() -> list[str]:
    """Return the name and features of the processor that Numba compiles for by default."""
    import llvmlite.binding as llvm

    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # unknown on this system
        features = ""
    return [llvm.get_host_cpu_name(), features]


def repair(error: Exception, folder: Path | None) -> bool:
    """Remove cached kernels that cannot be read; return whether the error came from Numba's cache.

    Neither files that a crash left empty nor a full disk may stop a run, because kernels can be compiled again.
    """
    calls = [frame.f_code for frame, _ in walk_tb(error.__traceback__)
             if frame.f_globals.get("__name__") == "numba.core.caching"]  # fmt: skip
    if folder is None or not calls:
        return False
    reason = f"{type(error).__name__}: {error}"
    if calls[0].co_name == "load_overload":
        for path in folder.glob("*/*.nb?"):
            path.unlink(missing_ok=True)
        message = f"the compiled kernels in {folder} are damaged ({reason:.200}): Podium removes and recompiles them"
    else:
        message = f"compiled kernels cannot be stored in {folder} ({reason:.200}): the next process recompiles them"
    warnings.warn(message, PodiumWarning, stacklevel=4)
    return True


def _exists(folder: Path) -> bool:
    """Create a folder that only this user can read, unless it exists; return whether it exists now."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except OSError:  # it exists, or cannot be created
        return folder.is_dir()
    _remove_old(folder)
    return True


def _is_writable(folder: Path) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)  # mark it as in use
    except OSError:
        return False
    return True


def _is_safe(folder: Path) -> bool:
    """Return whether only this user, root and the owner of Podium's code can write to a folder; warn if not."""
    if not hasattr(os, "getuid"):
        return True
    trusted = {0, os.getuid(), PACKAGE.stat().st_uid}
    status = folder.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid in trusted:
        entries = [path.lstat().st_mode for path in (folder, *folder.rglob("*"))] if status.st_mode & 0o077 else []
        if not any(mode & 0o022 and not stat.S_ISLNK(mode) for mode in entries):
            return True
    warnings.warn(
        f"Podium ignores the compiled kernels in {folder}, because other users can write to them: "
        f"remove the folder, or change its owner and run chmod -R go-w {folder}", PodiumWarning, stacklevel=2,
    )  # fmt: skip
    return False


def _remove_old(new: Path) -> None:
    """Remove old folders of other versions, but none used within a day, because a process may still write to it."""
    prefix, last_uses = new.name.partition("kernels-")[0] + "kernels-", []
    for folder in new.parent.glob(prefix + "*"):
        with suppress(FileNotFoundError):  # another process may have removed it
            status = folder.lstat()
            if folder != new and stat.S_ISDIR(status.st_mode):
                last_uses.append((status.st_mtime, folder))
    for k, (last_use, folder) in enumerate(sorted(last_uses, reverse=True)):
        age = (time.time() - last_use) / DAY
        if age > KEPT_DAYS or (k >= KEPT_FOLDERS and age > 1):
            shutil.rmtree(folder, ignore_errors=True)


def _temporary_folder() -> Path | None:
    """Return a folder in the temporary directory that only this user can read and write, or None."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    try:
        folder = Path(tempfile.gettempdir()) / f"podium-kernels-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if hasattr(os, "getuid") and (status.st_uid != user or status.st_mode & 0o077):
        return None
    return folder


def _link(source: Path, target: Path) -> None:
    """Link the files of a folder into another; Numba replaces a link by a file when it writes to it."""
    for path in (*source.glob("*/*.nb?"), *source.glob(CHECKED)):
        link = target / path.relative_to(source)
        link.parent.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            link.symlink_to(path)
