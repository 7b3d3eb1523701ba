"""Compile kernels on their first call, run them without the interpreter lock, and cache them on disk.

A kernel is defined next to the code that calls it. Its decorator does nothing until the kernel is first called, and
only then imports Numba. This keeps `import podium` and `podium --help` fast.

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

_dispatcher_lock = threading.RLock()  # Numba must not compile while another thread is registering helpers
_new_helpers: list[Callable[..., Any]] = []  # not yet registered with Numba


def kernel(function: Function) -> Function:
    """Compile a function on its first call; it runs without the interpreter lock, and is cached on disk if possible.

    `error_model="numpy"` makes x/0 infinite. Otherwise each division would have a branch, which prevents vectorization.
    Neither fastmath nor contraction is enabled, because results must have the same bits on every machine.
    """
    compiled: Any = Kernel(function)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Compile a function as part of the kernels that call it; in Python code it remains a Python function."""
    _new_helpers.append(function)
    return function


class Kernel:
    """A function that is compiled on its first call.

    Attributes:
        py_func: the Python function.

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
        """Numba's dispatcher, created on first use, after the helpers that the kernel may call are registered."""
        from numba.extending import register_jitable

        with _dispatcher_lock:
            if "dispatcher" not in vars(self):
                start_numba()
                while _new_helpers:
                    register_jitable(error_model="numpy")(_new_helpers.pop())
                vars(self)["dispatcher"] = _decorated(self.py_func)
            return vars(self)["dispatcher"]


def compile_for(kernel: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Compile a kernel for the types of these arguments, and return a function that accepts only these types.

    The function does not check its arguments. Use it for kernels that are called many times with many arrays: Numba
    takes 10 µs per call to check the types of 50 arrays.
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
    """Raise the error again unless the kernel cache caused it; in that case the caller tries once more.

    A kernel is loaded, or compiled and stored, before it runs, so nothing is computed twice.
    """
    if not kernel_cache.repair(error, cache_folder()):
        raise error


def _decorated(function: Callable[..., Any]) -> Any:
    from numba import njit

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    folder = cache_folder()
    if folder is None:
        return njit(**options)(function)
    config = vars(numba_settings())  # Numba reads these settings in `njit`, so they are only changed during that call
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

        was_shown = False

        def on_start(self, event: Any) -> None:
            if not self.was_shown and str(event.data["dispatcher"].py_func.__module__).startswith("podium."):
                self.was_shown = True
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

    If not, their Python bodies are compiled. Results have the same bits, but take much longer, and teams have a single
    thread, because threads that wait for each other need atomic operations. PODIUM_PLAIN_KERNELS=1 selects the Python
    bodies. Podium also falls back to them, with a warning, if the LLVM operations fail their check. The check runs once
    for each cache folder, in a separate process, because a wrong instruction can kill a process.
    """
    if os.environ.get("PODIUM_PLAIN_KERNELS", "") not in ("", "0"):
        return False
    folder = kernel_cache.cache_folder(plain=False)
    if folder is None or (folder / CHECKED).exists() or not sys.executable or hasattr(sys, "frozen"):
        return True
    check = "from podium.core.llvm_check import operations_work as work; assert work(), 'a wrong result'"
    try:
        completed = subprocess.run(
            [sys.executable, "-c", check], env=_environment() | {"NUMBA_OPT": "0"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError:  # no process can be started
        return True
    if completed.returncode == 0:
        with suppress(OSError):  # the disk may be full: the next process checks again
            (folder / CHECKED).touch()
        return True
    reason = (completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"])[-1]
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
_waits: dict[Callable[..., Any], Callable[[], Any]] = {}  # by kernel: waits until another process has compiled it


def compile_in_background(kernel: Callable[..., Any], module: str, function: str) -> Callable[[], Any]:
    """Start a process that compiles a kernel by calling `function`; return a function that waits for it.

    Within a process, Numba compiles one function at a time, and a large one takes seconds. Nothing is started if the
    kernel is in the cache, if there is only one core, or if no process can be started: the kernel is then compiled on
    its first call as usual. A second call for the same kernel waits for the same process.
    """
    assert isinstance(kernel, Kernel)
    if kernel in _waits:
        return _waits[kernel]
    folder, name = cache_folder(), f"{kernel.__module__.rsplit('.', 1)[-1]}.{kernel.py_func.__name__}-*.nbi"
    if kernel.dispatcher.signatures or folder is None or any(folder.glob(f"*/{name}")):  # compiled, or no cache to use
        return lambda: None
    if _COMPILES in os.environ or thread_count() < 2 or not sys.executable or hasattr(sys, "frozen"):
        return lambda: None
    command = [sys.executable, "-c", f"from {module} import {function}; {function}()"]
    try:
        _waits[kernel] = subprocess.Popen(
            command, env=_environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ).wait  # fmt: skip
    except OSError:
        return lambda: None
    return _waits[kernel]
