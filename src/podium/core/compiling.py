"""Compilation of kernels: lazily, without the interpreter lock, and cached on disk.

A kernel is defined next to the code that calls it. Its decorator does nothing until the kernel is first called, and
only then imports Numba. So importing Podium, and `podium --help`, stay fast.

`podium.core.kernel_cache` chooses the folder that kernels are cached in.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar

from podium.core import kernel_cache
from podium.core.kernel_cache import CHECKED, numba_settings
from podium.core.threads import thread_count
from podium.errors import PodiumError, PodiumWarning

Function = TypeVar("Function", bound=Callable[..., Any])

_making_dispatchers = threading.RLock()  # Numba must not compile while another thread is registering helpers
_new_helpers: list[Callable[..., Any]] = []  # not yet registered with Numba


def kernel(function: Function) -> Function:
    """Compile a function on its first call; it runs without the interpreter lock, and is cached on disk if possible.

    `error_model="numpy"` makes x/0 infinite, instead of a branch that would prevent vectorization. Neither fastmath nor
    contraction is enabled, because results must have the same bits on every machine.
    """
    compiled: Any = Kernel(function)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Compile a function as a part of the kernels that call it; from Python, it stays a Python function."""
    _new_helpers.append(function)
    return function


class Kernel:
    """A function that is compiled on its first call.

    Attributes:
        py_func: the function as written.

    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        try:
            return self.dispatcher(*arguments)
        except Exception as error:
            _repair_cache(error)
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, created on first use after registering the helpers that it may call."""
        from numba.extending import register_jitable

        with _making_dispatchers:
            if "dispatcher" not in vars(self):
                start_numba()
                while _new_helpers:
                    register_jitable(error_model="numpy")(_new_helpers.pop())
                vars(self)["dispatcher"] = _decorated(self.py_func)
            return vars(self)["dispatcher"]


def compile_for(kernel: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Compile a kernel for arguments of these types, and return a function that only accepts these types.

    It does not check its arguments. Use it for kernels that are called many times with many arrays: Numba's check of
    the types of 50 arrays takes 10 µs per call.
    """
    assert isinstance(kernel, Kernel)
    from numba import typeof

    types = tuple(map(typeof, arguments))
    try:
        compiled: Callable[..., Any] = kernel.dispatcher.compile(types)
    except Exception as error:
        _repair_cache(error)
        compiled = kernel.dispatcher.compile(types)
    return compiled


def _repair_cache(error: Exception) -> None:
    """Raise the error again unless it is due to the kernel cache; in that case the caller tries once more.

    A kernel is read, or compiled and written, before it runs, so nothing is computed twice.
    """
    if not kernel_cache.repair(error, cache_folder()):
        raise error


def _decorated(function: Callable[..., Any]) -> Any:
    from numba import njit

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    folder = cache_folder()
    if folder is None:
        return njit(**options)(function)
    config = vars(numba_settings())  # read when a function is decorated, so it is only changed meanwhile
    changes = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    before = {name: config.get(name, "") for name in changes}
    config.update(changes)
    try:
        return njit(cache=True, **options)(function)
    finally:
        config.update(before)


@cache
def start_numba() -> None:
    """Prepare Numba once: install the notice of a first run, and register the operations written in LLVM."""
    from numba.core import event

    if numba_settings().DISABLE_JIT:
        raise PodiumError("Podium needs Numba's compiler, but NUMBA_DISABLE_JIT is set: unset it")

    class Notice(event.Listener):
        """Prints once why the first run takes seconds longer than later ones, even if output is piped."""

        said = False

        def on_start(self, event: Any) -> None:
            if not self.said and str(event.data["dispatcher"].py_func.__module__).startswith("podium."):
                self.said = True
                logging.getLogger("podium").info("compiling, first run only")
                print("podium: compiling, first run only …", file=sys.stderr, flush=True)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]
    from podium.core import bitwise, intrinsics, simd

    if uses_llvm():
        import podium.core.llvm_bitwise
        import podium.core.llvm_lanes  # noqa: F401  both register operations with Numba
    else:
        _new_helpers.extend((*intrinsics.OPERATIONS, *simd.OPERATIONS, *bitwise.OPERATIONS))


@cache
def uses_llvm() -> bool:
    """Return whether `intrinsics`, `simd` and `bitwise` compile to LLVM instructions (`llvm_lanes`, `llvm_bitwise`).

    If not, their Python bodies are compiled: the results have the same bits, but are slow to compute, with one thread
    per team, because threads that wait for each other need atomic operations. PODIUM_PLAIN_KERNELS=1 selects that. It
    also happens, with a warning, if the operations fail their check. The check runs once for each cache folder, in a
    separate process, because a wrong instruction can kill a process.
    """
    if os.environ.get("PODIUM_PLAIN_KERNELS", "") not in ("", "0"):
        return False
    folder = kernel_cache.cache_folder(plain=False)
    if folder is None or (folder / CHECKED).exists() or not sys.executable or hasattr(sys, "frozen"):
        return True
    check = "from podium.core.llvm_check import operations_work as work; assert work(), 'a wrong result'"
    try:
        done = subprocess.run(
            [sys.executable, "-c", check], env=_environment() | {"NUMBA_OPT": "0"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError:  # no process can be started
        return True
    if done.returncode == 0:
        with suppress(OSError):  # the disk may be full: the next process checks again
            (folder / CHECKED).touch()
        return True
    reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    warnings.warn(
        "Podium's vector operations do not work with the installed versions of Numba and llvmlite, so Podium runs "
        f"without them, many times slower: install versions that its requirements allow ({reason})",
        PodiumWarning, stacklevel=2,
    )  # fmt: skip
    return False


def _environment() -> dict[str, str]:
    """Return the environment for a process with the same imports as this one."""
    paths = os.pathsep.join(filter(None, sys.path))
    return os.environ | {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1", _COMPILES: "1"}


def cache_folder() -> Path | None:
    """Return the folder of compiled kernels, or None if no place is writable."""
    return kernel_cache.cache_folder(plain=not uses_llvm())


_COMPILES = "PODIUM_COMPILES"  # set in a process that compiles for another one, so that it does not start a third
_begun: dict[Callable[..., Any], Callable[[], Any]] = {}  # functions that wait for another process to compile a kernel


def compile_beside(kernel: Callable[..., Any], module: str, function: str) -> Callable[[], Any]:
    """Start to compile a kernel in another process that calls `function`; return a function that waits for it.

    Within a process, Numba compiles one function at a time, and a large one takes seconds. If the kernel is in the
    cache, if there is only one core, or if no process can be started, nothing happens here, and the kernel is compiled
    on its first call as usual. A second call for the same kernel waits for the same process.
    """
    assert isinstance(kernel, Kernel)
    if kernel in _begun:
        return _begun[kernel]
    folder, name = cache_folder(), f"{kernel.__module__.rsplit('.', 1)[-1]}.{kernel.py_func.__name__}-*.nbi"
    known = bool(kernel.dispatcher.signatures) or folder is None or any(folder.glob(f"*/{name}"))
    if known or _COMPILES in os.environ or thread_count() < 2 or not sys.executable or hasattr(sys, "frozen"):
        return lambda: None
    command = [sys.executable, "-c", f"from {module} import {function}; {function}()"]
    try:
        _begun[kernel] = subprocess.Popen(
            command, env=_environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ).wait  # fmt: skip
    except OSError:
        return lambda: None
    return _begun[kernel]
