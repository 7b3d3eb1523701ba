"""The ground under every compiled kernel: how it is compiled, and where the result is cached.

Only files named `kernels.py` import numba. A kernel's helpers stand in the same file as the kernel,
because numba's cache notices only edits of the file itself.
"""

from __future__ import annotations

import logging
import operator
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from llvmlite import ir
from numba import extending as _extending
from numba import njit, types
from numba.core import cgutils as _cgutils
from numba.core import config as _config
from numba.core import event
from numba.core.typing import templates as _templates
from numba.extending import register_jitable

from podium.threads import thread_count

cgutils: Any = _cgutils
extending: Any = _extending
intrinsic: Any = extending.intrinsic
templates: Any = _templates
config: Any = _config  # its attributes come from the environment, where no type checker sees them

Function = TypeVar("Function", bound=Callable[..., Any])


class _Notice(event.Listener):
    """Says once, on terminals, why the first run takes seconds longer than all others."""

    said = False

    def on_start(self, event: Any) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith("podium."):
            self.said = True
            logging.getLogger("podium").info("compiling, first run only")
            if sys.stderr.isatty():
                print("podium: compiling, first run only …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]


def cache_folder() -> str:
    """Where compiled kernels are kept."""
    return str(config.CACHE_DIR or Path(__file__).parent / "__pycache__")


def kernel(function: Function) -> Function:
    """Compile on first call, without the interpreter lock, cached on disk where any place is writable.

    `error_model="numpy"` makes x/0 an infinity instead of a branch that stops vectorisation. Neither
    fastmath nor contraction is allowed: the same bits everywhere.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        compiled: Any = njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no writable place: package folder, home and cache are read-only
        compiled = _cached_in_temporary_folder(function, options)
    return compiled  # type: ignore[no-any-return]


def helper(function: Function) -> Function:
    """Compile as a part of the kernels that call it; called from Python it is a Python function.

    It is compiled without entry points of its own, which would take as long again as the function.
    """
    registered: Any = register_jitable(error_model="numpy", no_cfunc_wrapper=True)(function)
    return registered  # type: ignore[no-any-return]


_COMPILES = "PODIUM_COMPILES"  # set in a process that compiles for another, and starts no third


def compile_beside(kernel: Any, module: str, function: str) -> Callable[[], Any]:
    """Have another process compile a kernel into the cache, by calling a function; the result waits for it.

    Numba compiles one function at a time in a process, for seconds where they are large. Nothing is done where the
    kernel is in the cache, where there is no second core, or where no process can be started: whoever calls the
    kernel first then compiles it, as ever.
    """
    folder = kernel.stats.cache_path
    name = f"{kernel.__module__.rsplit('.', 1)[-1]}.{kernel.__name__}-*.nbi"
    known = bool(kernel.signatures) or folder is None or any(Path(folder).glob(name))
    if known or _COMPILES in os.environ or thread_count() < 2 or not sys.executable or hasattr(sys, "frozen"):
        return lambda: None
    command = [sys.executable, "-c", f"from {module} import {function}; {function}()"]
    try:
        return subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), _COMPILES: "1",
                                       "PYTHONSAFEPATH": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ).wait  # fmt: skip
    except OSError:
        return lambda: None


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


def _element(context: Any, builder: Any, signature: Any, arguments: Any, which: int) -> Any:
    """A pointer to element `arguments[which + 1]` of the array `arguments[which]`."""
    array = context.make_array(signature.args[which])(context, builder, arguments[which])
    return builder.gep(array.data, [arguments[which + 1]])


@intrinsic  # type: ignore[untyped-decorator]
def not_inlined(_typing: Any) -> Any:
    """Said in a helper: keep it a function of its own. In a large caller its inner loop would lack registers."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(_typing: Any, array: Any) -> Any:
    """The same array, whose slices are not counted: counting the owners of a slice costs more than a short loop.

    Only for what the caller of a kernel holds on to until it returns.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mine = context.make_array(signature.return_type)(context, builder, arguments[0])
        mine.meminfo = cgutils.get_null_value(mine.meminfo.type)
        mine.parent = cgutils.get_null_value(mine.parent.type)
        return mine._getvalue()

    return array(array), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    """Ask for the cache line of array[index], without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), "llvm.prefetch.p0"
        )
        place = builder.bitcast(_element(context, builder, signature, arguments, 0), byte)
        builder.call(function, [place, *(ir.Constant(word, k) for k in (0, 3, 1))])  # to read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def copy_16_bytes(_typing: Any, target: Any, _place: Any, source: Any, _start: Any) -> Any:
    """target[place : place + 16] = source[start : start + 16], bytes, as one load and one store."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), 16).as_pointer()
        to, of = (builder.bitcast(_element(context, builder, signature, arguments, k), vector) for k in (0, 2))
        builder.store(builder.load(of, align=1), to, align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _add_atomically(_typing: Any, array: Any, _index: Any, _amount: Any) -> Any:
    """array[index] += amount, seen by all threads as one step; what was there before."""

    def generate(_context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(_context, builder, signature, arguments, 0)
        return builder.atomic_rmw("add", place, arguments[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _read_atomically(_typing: Any, array: Any, _index: Any) -> Any:
    """array[index] as it is now, and with it all that its writer wrote before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature, arguments, 0), "acquire", 8)

    return types.int64(array, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _pause(_typing: Any) -> Any:
    """Let other threads run, for a thread that waits for them."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if os.name == "posix":
            result = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, result, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


@helper
def meet(barrier: Any, n_threads: Any) -> None:
    """Wait until all threads of a team have come here; what each wrote before is then seen by all.

    `barrier` is 16 int64, zero at first: how many have come, and eight words on, so that the waiting threads do
    not read the cache line that the others write, how often all have met. A wait is short: threads look again a
    few thousand times before they let others run.
    """
    if n_threads == 1:
        return
    met = _read_atomically(barrier, 8)
    if _add_atomically(barrier, 0, 1) == n_threads - 1:
        _add_atomically(barrier, 0, -n_threads)
        _add_atomically(barrier, 8, 1)
        return
    looks = 0
    while _read_atomically(barrier, 8) == met:
        looks += 1
        if looks > 2000:
            _pause()


# --- lanes: vectors written down as such, where the compiler would not find them


LANES = 16  # single-precision numbers in a vector; where the machine's are shorter, it is cut into those


class _LanesType(types.Type):
    """`LANES` single-precision numbers, and what a comparison of two of them gives: as many truths.

    Sums of rows of a matrix need an accumulator for each lane, added up at the end. A compiler that may not reorder
    additions makes none. Written with lanes, the order of additions is the same on every machine.
    """

    def __init__(self, name: str, element: Any) -> None:
        super().__init__(name)
        self.vector = ir.VectorType(element, LANES)


@extending.register_model(_LanesType)
class _LanesModel(extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: _LanesType) -> None:
        super().__init__(manager, kind, kind.vector)


_lanes, _truths = _LanesType("lanes", ir.FloatType()), _LanesType("truths", ir.IntType(1))


class _Arithmetic(templates.AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, _names: Any) -> Any:
        return templates.signature(_lanes, _lanes, _lanes) if arguments == (_lanes, _lanes) else None


class _Comparison(templates.AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, _names: Any) -> Any:
        return templates.signature(_truths, _lanes, _lanes) if arguments == (_lanes, _lanes) else None


class _Size(templates.AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, _names: Any) -> Any:
        return templates.signature(_lanes, _lanes) if arguments == (_lanes,) else None


for _name, *_signs in (
    ("fadd", operator.add, operator.iadd),
    ("fsub", operator.sub, operator.isub),
    ("fmul", operator.mul, operator.imul),
    ("fdiv", operator.truediv, operator.itruediv),
):
    for _sign in _signs:
        templates.infer_global(_sign)(_Arithmetic)
        extending.lower_builtin(_sign, _lanes, _lanes)(
            lambda _c, builder, _s, both, name=_name: getattr(builder, name)(*both)
        )
for _sign, _name in ((operator.gt, ">"), (operator.lt, "<"), (operator.eq, "==")):  # false where one is NaN
    templates.infer_global(_sign)(_Comparison)
    extending.lower_builtin(_sign, _lanes, _lanes)(
        lambda _c, builder, _s, both, name=_name: builder.fcmp_ordered(name, *both)
    )
templates.infer_global(abs)(_Size)


def _of_each_lane(builder: Any, name: str, value: Any) -> Any:
    """An LLVM function of one number, such as `fabs`, of each lane."""
    kind = ir.FunctionType(_lanes.vector, [_lanes.vector])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32"), [value])


extending.lower_builtin(abs, _lanes)(lambda _c, builder, _s, value: _of_each_lane(builder, "fabs", value[0]))


@intrinsic  # type: ignore[untyped-decorator]
def roots_of(_typing: Any, _values: Any) -> Any:
    """The square root of each lane."""
    return _lanes(_lanes), lambda _c, builder, _s, arguments: _of_each_lane(builder, "sqrt", arguments[0])


@intrinsic  # type: ignore[untyped-decorator]
def all_lanes(_typing: Any, _number: Any) -> Any:
    """The same number in every lane."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        nothing, zeros = ir.Constant(_lanes.vector, ir.Undefined), [0] * LANES
        first = builder.insert_element(nothing, arguments[0], ir.IntType(32)(0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), zeros))

    return _lanes(types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def load_lanes(_typing: Any, array: Any, _index: Any) -> Any:
    """array[index : index + LANES]; nobody checks that it reaches so far."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments, 0)
        return builder.load(builder.bitcast(place, _lanes.vector.as_pointer()), align=4)

    return _lanes(array, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def store_lanes(_typing: Any, array: Any, _index: Any, _values: Any) -> Any:
    """array[index : index + LANES] = values."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments, 0)
        builder.store(arguments[2], builder.bitcast(place, _lanes.vector.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, _lanes), generate


@intrinsic  # type: ignore[untyped-decorator]
def choose_lanes(_typing: Any, _which: Any, _yes: Any, _no: Any) -> Any:
    """In each lane one of two numbers."""
    return _lanes(_truths, _lanes, _lanes), lambda _c, builder, _s, arguments: builder.select(*arguments)


@intrinsic  # type: ignore[untyped-decorator]
def sum_lanes(_typing: Any, _values: Any) -> Any:
    """The sum of all lanes: the upper half is added to the lower one until one number is left."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        found, n = arguments[0], LANES
        while n > 1:
            n //= 2
            nothing = ir.Constant(found.type, ir.Undefined)
            halves = (
                builder.shuffle_vector(found, nothing, ir.Constant(ir.VectorType(ir.IntType(32), n), list(places)))
                for places in (range(n), range(n, 2 * n))
            )
            found = builder.fadd(*halves)
        return builder.extract_element(found, ir.IntType(32)(0))

    return types.float32(_lanes), generate
