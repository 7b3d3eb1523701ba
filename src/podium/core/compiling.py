"""How kernels are compiled: lazily, without the interpreter lock, cached on disk.

A kernel stands beside what it serves. Its decorator costs nothing until the kernel is first called: only then is Numba
imported. Importing Podium, and `podium --help`, stay light.

Numba's cache notices an edit of the file of a kernel, but not of the files of its helpers: in development
`NUMBA_CACHE_DIR` is keyed by all sources (see the Makefile).
"""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any, TypeVar

from podium.core.threads import USES_LLVM, thread_count

Function = TypeVar("Function", bound=Callable[..., Any])

_making_dispatchers = threading.RLock()  # what one thread has half told Numba, another must not compile
_new_helpers: list[Callable[..., Any]] = []  # those that Numba has not been told of


def kernel(function: Function) -> Function:
    """Compile on the first call, without the interpreter lock, cached on disk where any place is writable.

    `error_model="numpy"` makes x/0 an infinity instead of a branch that stops vectorisation. Neither fastmath nor
    contraction is allowed: the same bits everywhere.
    """
    compiled: Any = Kernel(function)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Compile as a part of the kernels that call it; called from Python it is a Python function.

    It is compiled without entry points of its own, which would take as long again as the function.
    """
    _new_helpers.append(function)
    return function


class Kernel:
    """A function that is compiled when it is first called.

    Attributes:
        py_func: the function as it stands in the source.
        compiled: what it was compiled to, by the types of arguments (`compiled_for`).

    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.compiled: dict[bytes, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's function, with the helpers that it may call; made by the first thread that asks."""
        with _making_dispatchers:
            return vars(self)["dispatcher"] if "dispatcher" in vars(self) else self._new_dispatcher()

    def _new_dispatcher(self) -> Any:
        start_numba()
        _register_helpers()
        from numba import njit

        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        try:
            dispatcher = njit(cache=True, **options)(self.py_func)
        except RuntimeError:  # no writable place: package folder, home and cache are read-only
            dispatcher = _cached_in_temporary_folder(self.py_func, options)
        _load_code_alone(dispatcher)
        if USES_LLVM:
            from podium.core.assembling import assemble_kernel_alone

            assemble_kernel_alone(dispatcher)
        vars(self)["dispatcher"] = dispatcher  # before the lock is given back
        return dispatcher


def compiled_for(kernel: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """A kernel compiled for arguments of these types, and for no others: nothing looks at their types any more.

    For what is called again and again with many arrays: to look at the types of 50 takes 10 µs.
    """
    assert isinstance(kernel, Kernel)
    from numba._dispatcher import compute_fingerprint  # of types, an inner part of Numba, see `podium.core.llvm`

    dispatcher, types = kernel.dispatcher, compute_fingerprint(arguments)
    if types not in kernel.compiled:
        kernel.compiled[types] = dispatcher.compile(tuple(map(dispatcher.typeof_pyval, arguments)))
    return kernel.compiled[types]


def _load_code_alone(dispatcher: Any) -> None:
    """Have a kernel loaded from the cache without what only compiling needs.

    Numba declares its types and operations before it looks into the cache, and loads SciPy for that: longer than it
    takes to load all kernels of a first tree. It does so again before it compiles. Compiled code needs its memory
    management alone. `load_overload`, `_load_overload` and `rtsys` are inner parts of Numba, see `podium.core.llvm`.
    """
    from numba.core.runtime.nrt import rtsys

    cache = dispatcher._cache
    if not hasattr(cache, "_load_overload"):  # nothing is cached
        return

    def load_overload(signature: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, target_context)

    cache.load_overload = load_overload


def _register_helpers() -> None:
    """Tell Numba of the helpers that were declared since the last time."""
    from numba.extending import register_jitable

    while _new_helpers:
        register_jitable(error_model="numpy", no_cfunc_wrapper=True)(_new_helpers.pop())


@cache
def start_numba() -> None:
    """Prepare Numba, once: the notice of a first run, and the operations that are written in LLVM's language."""
    from numba.core import event

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


def _config() -> Any:
    """Numba's settings; its attributes come from the environment, where no type checker sees them."""
    from numba.core import config

    return config


def cache_folder() -> str:
    """Where compiled kernels are kept."""
    return str(_config().CACHE_DIR or Path(__file__).parent / "__pycache__")


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
    compiled = kernel.dispatcher
    folder = compiled.stats.cache_path
    name = f"{kernel.__module__.rsplit('.', 1)[-1]}.{kernel.py_func.__name__}-*.nbi"
    known = bool(compiled.signatures) or folder is None or any(Path(folder).glob(name))
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


def _cached_in_temporary_folder(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    from numba import njit

    folder = _private_temporary_folder()
    if folder is None:
        return njit(**options)(function)
    config = _config()
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
        status = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if hasattr(os, "getuid") and (status.st_uid != user or status.st_mode & 0o077):
        return None
    return folder
