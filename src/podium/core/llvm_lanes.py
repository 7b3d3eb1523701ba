"""The LLVM code of the operations in `intrinsics` and `simd`.

    prefetch(array, i)         llvm.prefetch of &array[i]
    copy_16_bytes(t, i, s, j)  load <16 x i8> from &s[j], store to &t[i]
    borrowed(array)            the same array with owner = null; for a tuple, each of its arrays
    add_atomically(array, i)   atomicrmw add &array[i], seq_cst
    load_lanes(array, i)       load <16 x float> from &array[i]
    a + b, a < b               fadd, fcmp of two <16 x float>; add of two <8 x i64> for words
    choose_lanes(m, a, b)      select <16 x i1> m, a, b
    sum_lanes(a)               while more than one lane is left: lower half + upper half
    cumulative_sums(words)     for n in 1, 2, 4: add to each upper half of 2 n lanes the last lane of its lower half
    upper_halves(a, b)         bitcast to <16 x i32>, shuffle, sitofp
    inlined(), not_inlined()   no instruction: an attribute of the function that contains the call

`tests/core/test_simd.py` compares each operation with its Python body.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from podium.core import intrinsics, simd
from podium.core.numba_extension import (
    FLOAT,
    I1,
    I8,
    I32,
    I64,
    Call,
    VectorType,
    add_operator,
    call_on_vector,
    cgutils,
    compile_as,
    int64,
    load,
    prefetch_line,
    repeated,
    shuffled,
    store,
)  # fmt: skip
from podium.core.simd import LANES, WORDS

_tuples: Any = types.BaseTuple


# --- memory and threads


def _attribute(name: str) -> Callable[[], Any]:
    """Return the definition of an operation that only sets an attribute of the calling function."""

    def generate(call: Call) -> None:
        call.builder.function.attributes.add(name)

    return lambda: (types.void(), generate)


compile_as(intrinsics.not_inlined)(_attribute("noinline"))
compile_as(intrinsics.inlined)(_attribute("alwaysinline"))


@compile_as(intrinsics.borrowed)
def _borrowed(value: Any) -> Any:
    return value(value), lambda call: _without_owner(call.context, call.builder, value, call.arguments[0])


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Set the owner of an array, or of each array in a tuple, to null."""
    if isinstance(kind, _tuples):
        items = [
            _without_owner(context, builder, item, builder.extract_value(value, k)) for k, item in enumerate(kind.types)
        ]
        return context.make_tuple(builder, kind, items)
    if not isinstance(kind, types.Array):
        return value
    view = context.make_array(kind)(context, builder, value)
    view.meminfo = cgutils.get_null_value(view.meminfo.type)
    view.parent = cgutils.get_null_value(view.parent.type)
    return view._getvalue()


@compile_as(intrinsics.prefetch)
def _prefetch(array: Any, _index: Any) -> Any:
    return types.void(array, types.int64), lambda call: prefetch_line(call.builder, call.element(0), 3)


@compile_as(intrinsics.copy_16_bytes)
def _copy_16_bytes(target: Any, _place: Any, source: Any, _start: Any) -> Any:
    def generate(call: Call) -> None:
        to, values = call.element(0), load(call.builder, call.element(2), int64(0), ir.VectorType(I8, 16), 1)
        store(call.builder, values, to, int64(0), 1)

    return types.void(target, types.int64, source, types.int64), generate


@compile_as(intrinsics.add_atomically)
def _add_atomically(array: Any, _index: Any, _amount: Any) -> Any:
    def generate(call: Call) -> Any:
        return call.builder.atomic_rmw("add", call.element(0).pointer, call.arguments[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@compile_as(intrinsics.read_atomically)
def _read_atomically(array: Any, _index: Any) -> Any:
    def generate(call: Call) -> Any:
        return call.builder.load_atomic(call.element(0).pointer, "acquire", 8, typ=I64)

    return types.int64(array, types.int64), generate


@compile_as(intrinsics.yield_thread)
def _yield_thread() -> Any:
    def generate(call: Call) -> None:
        if os.name == "posix":
            result = ir.FunctionType(I32, [])
            call.builder.call(cgutils.get_or_insert_function(call.builder.module, result, "sched_yield"), [])

    return types.void(), generate


# --- lanes and words


_lanes, _mask = VectorType("lanes", FLOAT, LANES), VectorType("mask", I1, LANES)
_words = VectorType("words", I64, WORDS)

for _sign, _build in (
    (operator.add, ir.IRBuilder.fadd), (operator.sub, ir.IRBuilder.fsub), (operator.mul, ir.IRBuilder.fmul),
    (operator.truediv, ir.IRBuilder.fdiv),
):  # fmt: skip
    add_operator(_sign, (_lanes, _lanes), _lanes, _build)
add_operator(operator.neg, (_lanes,), _lanes, ir.IRBuilder.fneg)
for _sign, _name in ((operator.gt, ">"), (operator.lt, "<"), (operator.eq, "==")):  # false if one is NaN
    add_operator(_sign, (_lanes, _lanes), _mask, lambda builder, a, b, name=_name: builder.fcmp_ordered(name, a, b))
add_operator(operator.add, (_words, _words), _words, ir.IRBuilder.add)
add_operator(operator.sub, (_words, _words), _words, ir.IRBuilder.sub)


def _define_memory(kind: VectorType, element: Any, align: int, copies: Any, load_at: Any, store_at: Any) -> None:
    """Define the operations that fill, load and store vectors of one kind."""

    def generate_copies(call: Call) -> Any:
        return repeated(call.builder, call.arguments[0], kind.vector.count)

    def generate_load(call: Call) -> Any:
        return load(call.builder, call.element(0), int64(0), kind.vector, align)

    def generate_store(call: Call) -> None:
        store(call.builder, call.arguments[2], call.element(0), int64(0), align)

    compile_as(copies)(lambda _number: (kind(element), generate_copies))
    compile_as(load_at)(lambda array, _index: (kind(array, types.int64), generate_load))
    compile_as(store_at)(lambda array, _index, _values: (types.void(array, types.int64, kind), generate_store))


_define_memory(_lanes, types.float32, 4, simd.all_lanes, simd.load_lanes, simd.store_lanes)
_define_memory(_words, types.int64, 8, simd.all_words, simd.load_words, simd.store_words)


def _folded(builder: Any, vector: Any, join: Callable[[Any, Any], Any]) -> Any:
    """Join the lower half of a vector with the upper one until a single element is left."""
    n = vector.type.count
    while n > 1:
        n //= 2
        vector = join(*(shuffled(builder, vector, vector, half) for half in (range(n), range(n, 2 * n))))
    return builder.extract_element(vector, I32(0))


def _highest(builder: Any, lanes: Any) -> Any:
    def higher(low: Any, high: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", low, high), low, high)

    return _folded(builder, lanes, higher)


def _bits(builder: Any, mask: Any) -> Any:
    """Return a mask as an integer with a bit for each lane."""
    return builder.bitcast(mask, ir.IntType(LANES))


def _cumulated(builder: Any, sums: Any) -> Any:
    zeros = ir.Constant(_words.vector, [0] * WORDS)
    for n in (1, 2, 4):  # add the last lane of the lower half to each upper half of 2 n lanes
        lasts = [k // (2 * n) * 2 * n + n - 1 if k % (2 * n) >= n else WORDS for k in range(WORDS)]
        sums = builder.add(sums, shuffled(builder, sums, zeros, lasts))
    return sums


def _halves(builder: Any, first: Any, second: Any, place: int) -> Any:
    """Return the lower (0) or upper (1) 32 bits of two vectors' words; shuffles within 16 bytes are fastest."""
    kind, order = ir.VectorType(I32, 2 * WORDS), range(0, 2 * WORDS, 4)
    places = [k + place for start in order for k in (start, start + 2, start + 2 * WORDS, start + 2 * WORDS + 2)]
    both = shuffled(builder, builder.bitcast(first, kind), builder.bitcast(second, kind), places)
    return builder.sitofp(both, _lanes.vector)


def _define(declared: Callable[..., Any], signature: Any, emit: Callable[..., Any]) -> None:
    """Define an operation on values: `emit` takes the builder and the arguments."""
    compile_as(declared)(lambda *_: (signature, lambda call: emit(call.builder, *call.arguments)))


_F32S = f"v{LANES}f32"  # the type of lanes in names of LLVM intrinsics
_define(simd.absolute, _lanes(_lanes), lambda builder, lanes: call_on_vector(builder, "fabs", _F32S, lanes))
_define(simd.square_roots, _lanes(_lanes), lambda builder, lanes: call_on_vector(builder, "sqrt", _F32S, lanes))
_define(simd.choose_lanes, _lanes(_mask, _lanes, _lanes), ir.IRBuilder.select)
_define(simd.sum_lanes, types.float32(_lanes), lambda builder, lanes: _folded(builder, lanes, builder.fadd))
_define(simd.highest_lane, types.float32(_lanes), _highest)
_define(
    simd.count_lanes, types.int64(_mask), lambda builder, mask: builder.zext(builder.ctpop(_bits(builder, mask)), I64)
)
_define(
    simd.any_lanes, types.boolean(_mask),
    lambda builder, mask: builder.icmp_unsigned("!=", _bits(builder, mask), ir.Constant(ir.IntType(LANES), 0)),
)  # fmt: skip
_define(simd.cumulative_sums, _words(_words), _cumulated)
_define(
    simd.last_word, _words(_words), lambda builder, words: shuffled(builder, words, words, [WORDS - 1] * WORDS)
)  # fmt: skip
_define(simd.sum_words, types.int64(_words), lambda builder, words: _folded(builder, words, builder.add))
_define(simd.upper_halves, _lanes(_words, _words), lambda builder, a, b: _halves(builder, a, b, 1))
_define(simd.lower_halves, _lanes(_words, _words), lambda builder, a, b: _halves(builder, a, b, 0))
