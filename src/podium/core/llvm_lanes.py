"""The LLVM code of the operations in `intrinsics` and `simd`.

    prefetch(array, i)         llvm.prefetch of &array[i]
    copy_16_bytes(t, i, s, j)  load <16 x i8> from &s[j], store to &t[i]
    borrowed(array)            the same array with owner = null; for a tuple, each of its arrays
    add_atomically(array, i)   atomicrmw add &array[i], seq_cst
    load_lanes(array, i)       load <16 x float> from &array[i]
    a + b, a < b               fadd, fcmp of two <16 x float>; add of two <8 x i64> for words
    choose_lanes(m, a, b)      select <16 x i1> m, a, b
    sum_lanes(a)               while more than one lane is left: lower half + upper half
    cumulated(words)           for n in 1, 2, 4: each upper half of 2 n lanes += the last of its lower half
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
    VectorType,
    add_operator,
    call_on_vector,
    cgutils,
    compile_as,
    element_memory,
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
    """Return the definition of a call that emits no instruction, but sets an attribute of the calling function."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> None:
        builder.function.attributes.add(name)

    return lambda: (types.void(), generate)


compile_as(intrinsics.not_inlined)(_attribute("noinline"))
compile_as(intrinsics.inlined)(_attribute("alwaysinline"))


@compile_as(intrinsics.borrowed)
def _borrowed(value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.return_type, arguments[0])

    return value(value), generate


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
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        prefetch_line(builder, element_memory(context, builder, signature, arguments, 0), 3)

    return types.void(array, types.int64), generate


@compile_as(intrinsics.copy_16_bytes)
def _copy_16_bytes(target: Any, _place: Any, source: Any, _start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        to, of = (element_memory(context, builder, signature, arguments, k) for k in (0, 2))
        values = load(builder, of, int64(0), ir.VectorType(I8, 16), 1)
        store(builder, values, to, int64(0), 1)

    return types.void(target, types.int64, source, types.int64), generate


@compile_as(intrinsics.add_atomically)
def _add_atomically(array: Any, _index: Any, _amount: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = element_memory(context, builder, signature, arguments, 0)
        return builder.atomic_rmw("add", place.pointer, arguments[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@compile_as(intrinsics.read_atomically)
def _read_atomically(array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = element_memory(context, builder, signature, arguments, 0)
        return builder.load_atomic(place.pointer, "acquire", 8, typ=I64)

    return types.int64(array, types.int64), generate


@compile_as(intrinsics.yield_thread)
def _yield_thread() -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> None:
        if os.name == "posix":
            result = ir.FunctionType(I32, [])
            builder.call(cgutils.get_or_insert_function(builder.module, result, "sched_yield"), [])

    return types.void(), generate


# --- lanes


_lanes, _mask = VectorType("lanes", FLOAT, LANES), VectorType("mask", I1, LANES)
_words = VectorType("words", I64, WORDS)
_F32S = f"v{LANES}f32"  # the type of lanes in names of LLVM intrinsics

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
    """Define how to fill, load and store vectors of a kind."""

    def loaded(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = element_memory(context, builder, signature, arguments, 0)
        return load(builder, place, int64(0), kind.vector, align)

    def stored(context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        place = element_memory(context, builder, signature, arguments, 0)
        store(builder, arguments[2], place, int64(0), align)

    def repeat(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return repeated(builder, arguments[0], kind.vector.count)

    compile_as(copies)(lambda _number: (kind(element), repeat))
    compile_as(load_at)(lambda array, _index: (kind(array, types.int64), loaded))
    compile_as(store_at)(lambda array, _index, _values: (types.void(array, types.int64, kind), stored))


_define_memory(_lanes, types.float32, 4, simd.all_lanes, simd.load_lanes, simd.store_lanes)
_define_memory(_words, types.int64, 8, simd.all_words, simd.load_words, simd.store_words)


@compile_as(simd.absolute)
def _absolute(_values: Any) -> Any:
    return _lanes(_lanes), lambda _c, builder, _s, arguments: call_on_vector(builder, "fabs", _F32S, arguments[0])


@compile_as(simd.roots_of)
def _roots_of(_values: Any) -> Any:
    return _lanes(_lanes), lambda _c, builder, _s, arguments: call_on_vector(builder, "sqrt", _F32S, arguments[0])


@compile_as(simd.choose_lanes)
def _choose_lanes(_which: Any, _yes: Any, _no: Any) -> Any:
    return _lanes(_mask, _lanes, _lanes), lambda _c, builder, _s, arguments: builder.select(*arguments)


@compile_as(simd.sum_lanes)
def _sum_lanes(_values: Any) -> Any:
    return types.float32(_lanes), lambda _c, builder, _s, arguments: _folded(builder, arguments[0], builder.fadd)


def _folded(builder: Any, vector: Any, join: Callable[[Any, Any], Any]) -> Any:
    """Join the lower half of a vector with the upper one until a single element is left."""
    n = vector.type.count
    while n > 1:
        n //= 2
        vector = join(*(shuffled(builder, vector, vector, half) for half in (range(n), range(n, 2 * n))))
    return builder.extract_element(vector, I32(0))


# --- eight words


@compile_as(simd.cumulated)
def _cumulated(_of_words: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        sums, zeros = arguments[0], ir.Constant(_words.vector, [0] * WORDS)
        for n in (1, 2, 4):  # add the last lane of the lower half to each upper half of 2 n lanes
            lasts = [k // (2 * n) * 2 * n + n - 1 if k % (2 * n) >= n else WORDS for k in range(WORDS)]
            sums = builder.add(sums, shuffled(builder, sums, zeros, lasts))
        return sums

    return _words(_words), generate


@compile_as(simd.last_word)
def _last_word(_of_words: Any) -> Any:
    last = [WORDS - 1] * WORDS
    return _words(_words), lambda _c, builder, _s, words: shuffled(builder, words[0], words[0], last)


@compile_as(simd.sum_words_of)
def _sum_words_of(_of_words: Any) -> Any:
    return types.int64(_words), lambda _c, builder, _s, arguments: _folded(builder, arguments[0], builder.add)


def _halves(builder: Any, both: Any, place: int) -> Any:
    """Return the lower (0) or upper (1) 32 bits of two vectors' words, shuffled within 16 bytes, which is fastest."""
    kind, order = ir.VectorType(I32, 2 * WORDS), range(0, 2 * WORDS, 4)
    first, second = (builder.bitcast(words, kind) for words in both)
    places = [k + place for start in order for k in (start, start + 2, start + 2 * WORDS, start + 2 * WORDS + 2)]
    return builder.sitofp(shuffled(builder, first, second, places), _lanes.vector)


@compile_as(simd.upper_halves)
def _upper_halves(_first: Any, _second: Any) -> Any:
    return _lanes(_words, _words), lambda _c, builder, _s, both: _halves(builder, both, 1)


@compile_as(simd.lower_halves)
def _lower_halves(_first: Any, _second: Any) -> Any:
    return _lanes(_words, _words), lambda _c, builder, _s, both: _halves(builder, both, 0)


@compile_as(simd.highest_lane)
def _highest_lane(_values: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        def higher(low: Any, high: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", low, high), low, high)

        return _folded(builder, arguments[0], higher)

    return types.float32(_lanes), generate


@compile_as(simd.count_lanes)
def _count_lanes(_which: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], ir.IntType(LANES))
        return builder.zext(builder.ctpop(bits), I64)

    return types.int64(_mask), generate


@compile_as(simd.any_lanes)
def _any_lanes(_which: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = ir.IntType(LANES)
        return builder.icmp_unsigned("!=", builder.bitcast(arguments[0], bits), ir.Constant(bits, 0))

    return types.boolean(_mask), generate
