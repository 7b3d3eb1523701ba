"""How kernels are compiled: lazily, without the interpreter lock, cached on disk.

A kernel is defined next to the code that calls it. Its decorator costs nothing until the kernel is first called: only
then is Numba imported. Importing Podium, and `podium --help`, stay light.

`podium.core.kernel_cache` chooses the folder that kernels are cached in.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar

from podium.core import kernel_cache
from podium.core.kernel_cache import numba_settings
from podium.core.threads import USES_LLVM, thread_count
from podium.errors import PodiumError

Function = TypeVar("Function", bound=Callable[..., Any])

_making_dispatchers = threading.RLock()  # Numba must not compile while another thread still registers helpers
_new_helpers: list[Callable[..., Any]] = []  # not yet registered with Numba


def kernel(function: Function) -> Function:
    """Compile on the first call, without the interpreter lock, cached on disk if any place is writable.

    `error_model="numpy"` makes x/0 an infinity instead of a branch that stops vectorisation. Neither fastmath nor
    contraction is allowed: the same bits everywhere.
    """
    compiled: Any = Kernel(function)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Compile as a part of the kernels that call it; called from Python it is a Python function."""
    _new_helpers.append(function)
    return function


class Kernel:
    """A function that is compiled when it is first called.

    Attributes:
        py_func: the function as written.

    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's function, with the helpers that it may call; made by the first thread that asks."""
        with _making_dispatchers:
            if "dispatcher" not in vars(self):
                start_numba()
                _register_helpers()
                vars(self)["dispatcher"] = _decorated(self.py_func)
            return vars(self)["dispatcher"]


def compile_for(kernel: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Compile a kernel for arguments of these types, and return a function that takes no others.

    It does not check its arguments: for kernels that are called again and again with many arrays. Looking at the types
    of 50 takes 10 µs.
    """
    assert isinstance(kernel, Kernel)
    from numba import typeof

    compiled: Callable[..., Any] = kernel.dispatcher.compile(tuple(map(typeof, arguments)))
    return compiled


def _decorated(function: Callable[..., Any]) -> Any:
    from numba import njit

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    folder = cache_folder()
    if folder is None:
        return njit(**options)(function)
    with _settings(CACHE_DIR=str(folder), CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator"):
        return njit(cache=True, **options)(function)


@contextmanager
def _settings(**values: str) -> Iterator[None]:
    """Change Numba's settings for a while: it reads these when a function is decorated."""
    config = numba_settings()
    before = {name: getattr(config, name, "") for name in values}
    vars(config).update(values)
    try:
        yield
    finally:
        vars(config).update(before)


def _register_helpers() -> None:
    """Register the helpers that were declared since the last time."""
    from numba.extending import register_jitable

    while _new_helpers:
        register_jitable(error_model="numpy")(_new_helpers.pop())


@cache
def start_numba() -> None:
    """Prepare Numba, once: the notice of a first run, and the operations that are written in LLVM's language."""
    from numba.core import event

    if numba_settings().DISABLE_JIT:
        raise PodiumError("Podium needs Numba's compiler, but NUMBA_DISABLE_JIT is set: unset it")

    class Notice(event.Listener):
        """Says once, also where output is piped, why the first run takes seconds longer than all others."""

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

    if USES_LLVM:
        import podium.core.llvm_bitwise  # noqa: F401  it and what it imports tell Numba of the operations
    else:
        _new_helpers.extend((*intrinsics.OPERATIONS, *simd.OPERATIONS, *bitwise.OPERATIONS))


def cache_folder() -> Path | None:
    """Return the folder where compiled kernels are kept, or None if no place is writable."""
    return kernel_cache.cache_folder(plain=not USES_LLVM)


_COMPILES = "PODIUM_COMPILES"  # set in a process that compiles for another, and starts no third
_begun: dict[Callable[..., Any], Callable[[], Any]] = {}  # kernels that another process compiles: how to wait for it


def compile_beside(kernel: Callable[..., Any], module: str, function: str) -> Callable[[], Any]:
    """Have another process compile a kernel into the cache, by calling a function; the result waits for it.

    Numba compiles one function at a time in a process, for seconds where they are large. Nothing is done where the
    kernel is in the cache, where there is no second core, or where no process can be started: whoever calls the
    kernel first then compiles it, as ever. Who asks a second time waits for the same process.
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
            command, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), _COMPILES: "1",
                                       "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ).wait  # fmt: skip
    except OSError:
        return lambda: None
    return _begun[kernel]
