"""The operations of `intrinsics`, `simd` and `bitwise` as LLVM instructions.

Each operation is declared in one of those modules, with a Python body that says what it does. Here it is an intrinsic
of Numba that builds instructions; `means` makes calls of the declared function calls of the intrinsic. What is emitted:

    load_lanes(array, i)       load <16 x float> from &array[i]
    a + b, a < b               fadd, fcmp of two <16 x float>; the same with <8 x i64> for words
    choose_lanes(m, a, b)      select <16 x i1> m, a, b
    sum_lanes(a)               while more than one lane is left: upper half + lower half
    cumulated(words)           for n in 1, 2, 4: each upper half of 2 n lanes += the last of its lower half
    borrowed(array)            the same array, owner = null
    add_atomically(array, i)   atomicrmw add &array[i], seq_cst
    transpose_tile(…)          load rows; log2 n times: interleave the first half of the rows with the second; store
    find_ranks(…)              switch on the number of levels; for 16 values at once: for each level
                                   pivot = pivots of the level[answers so far]; answers |= (x > pivot) << level
                               then reverse the bits of each byte of answers
    compare_ranks(…)           icmp <64 x i8> with the bound; its 64 bits are a word
    choose_words(…)            (condition & yes) | (~condition & no) of <n x i64>
    gather_codes(…)            for each of 8 codes: byte of each document = Σ bit of plane j << j;
                               then interleave the 8 vectors of 64 bytes, bytes, pairs, fours

LLVM turns vectors into AVX-512, AVX2 or whatever the machine has. One pattern matters for speed: elements of a vector
taken in the order of another (`_picked`) become one instruction if the vectors are as long as the machine's.

`docs/architecture.md` lists what this uses of Numba beyond `numba.extending`. If it cannot be imported, or if
`is_right` finds a wrong result, Podium compiles the Python bodies instead.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import extending as _extending
from numba import njit, types
from numba.core import cgutils as _cgutils

from podium.core import bitwise, intrinsics, simd
from podium.core.bitwise import CODES, MAX_LEVELS, TILE, WORD, pivot_offset
from podium.core.simd import LANES, WORDS

cgutils: Any = _cgutils
extending: Any = _extending

FORCE_INLINE = {"strict": False, "jit_options": {"forceinline": True}}  # names of parameters differ
I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
FLOAT = ir.FloatType()
BYTES = ir.VectorType(I8, WORD)
ROWS_AHEAD = 128  # their values are prefetched


def means(declared: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile calls of the declared function to the decorated intrinsic.

    The declared function must be known without Numba, so it cannot be the intrinsic itself. `overload` makes it a
    function that calls the intrinsic, which LLVM then inlines.
    """

    def register(definition: Callable[..., Any]) -> Callable[..., Any]:
        names = ", ".join(inspect.signature(declared).parameters)
        call = eval(f"lambda {names}: operation({names})", {"operation": extending.intrinsic(definition)})
        extending.overload(declared, **FORCE_INLINE | options)(lambda *_types: call)
        return definition

    return register


class _Memory(NamedTuple):
    """A pointer, and the type of the elements there."""

    pointer: Any
    element: Any


def _memory(context: Any, builder: Any, signature: Any, arguments: Any, which: int) -> _Memory:
    """The elements of the array `arguments[which]`."""
    array = context.make_array(signature.args[which])(context, builder, arguments[which])
    return _Memory(array.data, context.get_data_type(signature.args[which].dtype))


def _element(context: Any, builder: Any, signature: Any, arguments: Any, which: int) -> _Memory:
    """The memory from element `arguments[which + 1]` of the array `arguments[which]`."""
    return _at(builder, _memory(context, builder, signature, arguments, which), arguments[which + 1])


def _at(builder: Any, memory: _Memory, index: Any) -> _Memory:
    return memory._replace(pointer=builder.gep(memory.pointer, [index], source_etype=memory.element))


def _load(builder: Any, memory: _Memory, index: Any, kind: Any = None, align: int | None = None) -> Any:
    """A value at an index, of the elements' type unless another is given."""
    return builder.load(_at(builder, memory, index).pointer, align=align, typ=kind or memory.element)


def _store(builder: Any, value: Any, memory: _Memory, index: Any, align: int | None = None) -> None:
    pointer = builder.bitcast(_at(builder, memory, index).pointer, value.type.as_pointer())  # llvmlite compares types
    builder.store(value, pointer, align=align)


def _prefetch_line(builder: Any, memory: _Memory, locality: int) -> None:
    kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [memory.pointer, I32(0), I32(locality), I32(1)])  # to read, how long to keep, data


def _number(value: int) -> Any:
    return ir.Constant(I64, value)


def _filled(kind: Any, n: int, value: int) -> Any:
    """A constant vector of n equal elements."""
    return ir.Constant(ir.VectorType(kind, n), [value] * n)


def _repeated(builder: Any, value: Any, n: int) -> Any:
    """A vector of n copies of a value."""
    nothing = ir.Constant(ir.VectorType(value.type, n), ir.Undefined)
    first = builder.insert_element(nothing, value, I32(0))
    return builder.shuffle_vector(first, nothing, _filled(I32, n, 0))


def _shuffled(builder: Any, one: Any, two: Any, order: Iterable[int]) -> Any:
    """The lanes of two vectors, one after the other, by number."""
    places = list(order)
    return builder.shuffle_vector(one, two, ir.Constant(ir.VectorType(I32, len(places)), places))


# --- memory and threads


@means(intrinsics.not_inlined, inline="always", jit_options={})
def _not_inlined(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


@means(intrinsics.inlined, inline="always", jit_options={})
def _inlined(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), generate


@means(intrinsics.borrowed)
def _borrowed(_typing: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.return_type)(context, builder, arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate


@means(intrinsics.prefetch)
def _prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _prefetch_line(builder, _element(context, builder, signature, arguments, 0), 3)
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@means(intrinsics.copy_16_bytes)
def _copy_16_bytes(_typing: Any, target: Any, _place: Any, source: Any, _start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, of = (_element(context, builder, signature, arguments, k) for k in (0, 2))
        values = _load(builder, of, _number(0), ir.VectorType(I8, 16), 1)
        _store(builder, values, to, _number(0), 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), generate


@means(intrinsics.add_atomically)
def _add_atomically(_typing: Any, array: Any, _index: Any, _amount: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments, 0)
        return builder.atomic_rmw("add", place.pointer, arguments[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@means(intrinsics.read_atomically)
def _read_atomically(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments, 0)
        return builder.load_atomic(place.pointer, "acquire", 8, typ=I64)

    return types.int64(array, types.int64), generate


@means(intrinsics.yield_thread)
def _yield_thread(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if os.name == "posix":
            result = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, result, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


# --- lanes


class _LanesType(types.Type):
    """A vector of numbers; or a mask, what a comparison of two of them gives: as many truths."""

    def __init__(self, name: str, element: Any, n: int) -> None:
        super().__init__(name)
        self.vector = ir.VectorType(element, n)


@extending.register_model(_LanesType)
class _LanesModel(extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: _LanesType) -> None:
        super().__init__(manager, kind, kind.vector)


_truth = ir.IntType(1)
_lanes, _mask = _LanesType("lanes", ir.FloatType(), LANES), _LanesType("mask", _truth, LANES)
_words = _LanesType("words", ir.IntType(64), WORDS)


def _add_operator(sign: Any, kind: _LanesType, result: _LanesType, build: Callable[..., Any]) -> None:
    """Define an operator of one vector, or of two of a kind, by the instruction that it is built of."""

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def one(_typing: Any, _value: Any) -> Any:
        return result(kind), lambda _c, builder, _s, arguments: build(builder, *arguments)

    @extending.intrinsic  # type: ignore[untyped-decorator]
    def two(_typing: Any, _first: Any, _second: Any) -> Any:
        return result(kind, kind), lambda _c, builder, _s, arguments: build(builder, *arguments)

    def call_one(a: Any) -> Any:
        return one(a)

    def call_two(a: Any, b: Any) -> Any:
        return two(a, b)

    if sign is operator.neg:
        extending.overload(sign, **FORCE_INLINE)(lambda a: call_one if a == kind else None)
    else:
        extending.overload(sign, **FORCE_INLINE)(lambda a, b: call_two if (a, b) == (kind, kind) else None)


_add_operator(operator.add, _lanes, _lanes, ir.IRBuilder.fadd)
_add_operator(operator.sub, _lanes, _lanes, ir.IRBuilder.fsub)
_add_operator(operator.mul, _lanes, _lanes, ir.IRBuilder.fmul)
_add_operator(operator.truediv, _lanes, _lanes, ir.IRBuilder.fdiv)
_add_operator(operator.neg, _lanes, _lanes, ir.IRBuilder.fneg)
for _sign, _name in ((operator.gt, ">"), (operator.lt, "<"), (operator.eq, "==")):  # false if one is NaN
    _add_operator(_sign, _lanes, _mask, lambda builder, a, b, name=_name: builder.fcmp_ordered(name, a, b))
_add_operator(operator.add, _words, _words, ir.IRBuilder.add)
_add_operator(operator.sub, _words, _words, ir.IRBuilder.sub)


def _of_each_lane(builder: Any, name: str, value: Any) -> Any:
    """An LLVM function of one number, such as `fabs`, of each lane."""
    kind = ir.FunctionType(_lanes.vector, [_lanes.vector])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32"), [value])


@means(simd.absolute)
def _absolute(_typing: Any, _values: Any) -> Any:
    return _lanes(_lanes), lambda _c, builder, _s, arguments: _of_each_lane(builder, "fabs", arguments[0])


@means(simd.roots_of)
def _roots_of(_typing: Any, _values: Any) -> Any:
    return _lanes(_lanes), lambda _c, builder, _s, arguments: _of_each_lane(builder, "sqrt", arguments[0])


@means(simd.all_lanes)
def _all_lanes(_typing: Any, _number: Any) -> Any:
    return _lanes(types.float32), lambda _c, builder, _s, arguments: _repeated(builder, arguments[0], LANES)


@means(simd.load_lanes)
def _load_lanes(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments, 0)
        return _load(builder, place, _number(0), _lanes.vector, 4)

    return _lanes(array, types.int64), generate


@means(simd.store_lanes)
def _store_lanes(_typing: Any, array: Any, _index: Any, _values: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments, 0)
        _store(builder, arguments[2], place, _number(0), 4)
        return context.get_dummy_value()

    return types.void(array, types.int64, _lanes), generate


@means(simd.choose_lanes)
def _choose_lanes(_typing: Any, _which: Any, _yes: Any, _no: Any) -> Any:
    return _lanes(_mask, _lanes, _lanes), lambda _c, builder, _s, arguments: builder.select(*arguments)


@means(simd.sum_lanes)
def _sum_lanes(_typing: Any, _values: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        vector, n = arguments[0], LANES
        while n > 1:
            n //= 2
            nothing = ir.Constant(vector.type, ir.Undefined)
            halves = (
                builder.shuffle_vector(vector, nothing, ir.Constant(ir.VectorType(ir.IntType(32), n), list(places)))
                for places in (range(n), range(n, 2 * n))
            )
            vector = builder.fadd(*halves)
        return builder.extract_element(vector, ir.IntType(32)(0))

    return types.float32(_lanes), generate


# --- eight words


@means(simd.all_words)
def _all_words(_typing: Any, _number: Any) -> Any:
    return _words(types.int64), lambda _c, builder, _s, arguments: _repeated(builder, arguments[0], WORDS)


@means(simd.load_words)
def _load_words(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments, 0)
        return _load(builder, place, _number(0), _words.vector, 8)

    return _words(array, types.int64), generate


@means(simd.store_words)
def _store_words(_typing: Any, array: Any, _index: Any, _of_words: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _element(context, builder, signature, arguments, 0)
        _store(builder, arguments[2], place, _number(0), 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, _words), generate


@means(simd.cumulated)
def _cumulated(_typing: Any, _of_words: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        sums, zeros = arguments[0], ir.Constant(_words.vector, [0] * WORDS)
        for n in (1, 2, 4):  # to each upper half of 2 n lanes the last of the lower half is added
            lasts = [k // (2 * n) * 2 * n + n - 1 if k % (2 * n) >= n else WORDS for k in range(WORDS)]
            sums = builder.add(sums, _shuffled(builder, sums, zeros, lasts))
        return sums

    return _words(_words), generate


@means(simd.last_word)
def _last_word(_typing: Any, _of_words: Any) -> Any:
    last = [WORDS - 1] * WORDS
    return _words(_words), lambda _c, builder, _s, words: _shuffled(builder, words[0], words[0], last)


@means(simd.sum_words_of)
def _sum_words_of(_typing: Any, _of_words: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        sums, n = arguments[0], WORDS
        while n > 1:
            n //= 2
            sums = builder.add(*(_shuffled(builder, sums, sums, list(k)) for k in (range(n), range(n, 2 * n))))
        return builder.extract_element(sums, ir.IntType(32)(0))

    return types.int64(_words), generate


def _halves(builder: Any, both: Any, place: int) -> Any:
    """The lower (0) or upper (1) 32 bits of the words of two vectors: within 16 bytes, as machines do it best."""
    kind, order = ir.VectorType(ir.IntType(32), 2 * WORDS), range(0, 2 * WORDS, 4)
    first, second = (builder.bitcast(words, kind) for words in both)
    places = [k + place for start in order for k in (start, start + 2, start + 2 * WORDS, start + 2 * WORDS + 2)]
    return builder.sitofp(_shuffled(builder, first, second, places), _lanes.vector)


@means(simd.upper_halves)
def _upper_halves(_typing: Any, _first: Any, _second: Any) -> Any:
    return _lanes(_words, _words), lambda _c, builder, _s, both: _halves(builder, both, 1)


@means(simd.lower_halves)
def _lower_halves(_typing: Any, _first: Any, _second: Any) -> Any:
    return _lanes(_words, _words), lambda _c, builder, _s, both: _halves(builder, both, 0)


@means(simd.highest_lane)
def _highest_lane(_typing: Any, _values: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values, n = arguments[0], LANES
        while n > 1:
            n //= 2
            low, high = (_shuffled(builder, values, values, list(places)) for places in (range(n), range(n, 2 * n)))
            values = builder.select(builder.fcmp_ordered(">", low, high), low, high)
        return builder.extract_element(values, ir.IntType(32)(0))

    return types.float32(_lanes), generate


@means(simd.count_lanes)
def _count_lanes(_typing: Any, _which: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], ir.IntType(LANES))
        return builder.zext(builder.ctpop(bits), ir.IntType(64))

    return types.int64(_mask), generate


@means(simd.any_lanes)
def _any_lanes(_typing: Any, _which: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = ir.IntType(LANES)
        return builder.icmp_unsigned("!=", builder.bitcast(arguments[0], bits), ir.Constant(bits, 0))

    return types.boolean(_mask), generate


# --- 64 documents at once


def _machine_lanes(context: Any) -> int:
    """Numbers in a vector of the machine that the code is for: 16 where it has AVX-512, else 8."""
    _, _, features = context.codegen().magic_tuple()
    return 16 if "+avx512f" in features else 8


# --- from rows to columns


@means(bitwise.transpose_tile)
def _transpose_tile(
    _typing: Any,
    flat: Any,
    _row_stride: Any,
    _row: Any,
    _last: Any,
    _column: Any,
    columns: Any,
    _place: Any,
    _stride: Any,
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target = (_memory(context, builder, signature, arguments, k) for k in (0, 5))
        _, row_stride, row, last_row, column, _, place, column_stride = arguments
        n = _machine_lanes(context)
        for down in range(0, TILE, n):
            starts = [_row_start(builder, row, down + k, last_row, row_stride, column) for k in range(n)]
            ahead = [_row_start(builder, row, down + k + ROWS_AHEAD, last_row, row_stride, column) for k in range(n)]
            for start in ahead:
                _prefetch_line(builder, _at(builder, source, start), 2)
                _prefetch_line(builder, _at(builder, source, builder.add(start, _number(TILE - 1))), 2)
            for across in range(0, TILE, n):
                vector = ir.VectorType(FLOAT, n)
                rows = [_load(builder, source, builder.add(s, _number(across)), vector, 4) for s in starts]
                for k, values in enumerate(_transposed(builder, rows)):
                    offset = builder.mul(column_stride, _number(across + k))
                    at = builder.add(builder.add(place, _number(down)), offset)
                    _store(builder, values, target, at, 4)
        return context.get_dummy_value()

    return types.void(flat, *[types.int64] * 4, columns, *[types.int64] * 2), generate


@means(bitwise.transpose_bytes)
def _transpose_bytes(
    _typing: Any, source: Any, _start: Any, _stride: Any, target: Any, _place: Any, _target_stride: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, to = (_memory(context, builder, signature, arguments, k) for k in (0, 3))
        _, start, stride, _, place, target_stride = arguments
        vector = ir.VectorType(I8, TILE)
        starts = [builder.add(start, builder.mul(stride, _number(k))) for k in range(TILE)]
        rows = [_load(builder, pointer, at, vector, 1) for at in starts]
        for k, column in enumerate(_transposed(builder, rows)):
            _store(builder, column, to, builder.add(place, builder.mul(target_stride, _number(k))), 1)
        return context.get_dummy_value()

    return types.void(source, types.int64, types.int64, target, types.int64, types.int64), generate


def _row_start(builder: Any, row: Any, k: int, last_row: Any, row_stride: Any, column: Any) -> Any:
    """Where column `column` of row `row + k` stands, or of the last row."""
    number = builder.add(row, _number(k))
    number = builder.select(builder.icmp_signed("<", number, last_row), number, last_row)
    return builder.add(builder.mul(number, row_stride), column)


def _transposed(builder: Any, rows: Sequence[Any]) -> Sequence[Any]:
    """Transpose n vectors of n elements: the first half is interleaved with the second, log2 n times."""
    n = len(rows)
    low = [k for pair in zip(range(n // 2), range(n, n + n // 2), strict=True) for k in pair]
    high = [k + n // 2 for k in low]
    for _ in range(n.bit_length() - 1):
        pairs = zip(rows[: n // 2], rows[n // 2 :], strict=True)
        rows = [_shuffled(builder, one, two, order) for one, two in pairs for order in (low, high)]
    return rows


# --- from values to ranks


@means(bitwise.find_ranks)
def _find_ranks(
    _typing: Any, values: Any, _start: Any, pivots: Any, _table: Any, _n_levels: Any, ranks: Any, _place: Any,
    _missing: Any,
) -> Any:  # fmt: skip
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, tables, target = (_memory(context, builder, signature, arguments, k) for k in (0, 2, 5))
        _, start, _, table, n_levels, _, place, missing = arguments
        source, tables = _at(builder, source, start), _at(builder, tables, table)
        target = _at(builder, target, place)
        lanes = _machine_lanes(context)
        number_of_missing = _repeated(builder, _reversed(builder, builder.trunc(missing, I8)), lanes)
        number_of_missing = builder.zext(number_of_missing, ir.VectorType(I32, lanes))
        end = builder.append_basic_block("ranks_done")
        cases = {k: builder.append_basic_block(f"levels_{k}") for k in range(4, MAX_LEVELS + 1)}
        switch = builder.switch(n_levels, end)
        for k, case in cases.items():
            switch.add_case(_number(k), case)
        for k, case in cases.items():
            builder.position_at_end(case)
            pivots_of_levels = _load_pivots(builder, tables, k, lanes)
            loop = builder.append_basic_block(f"search_{k}")
            builder.branch(loop)
            builder.position_at_end(loop)
            first = builder.phi(I64)
            first.add_incoming(_number(0), case)
            x = _load(builder, source, first, ir.VectorType(FLOAT, lanes), 4)
            number = _search(builder, x, pivots_of_levels)
            number = builder.select(builder.fcmp_unordered("uno", x, x), number_of_missing, number)
            answers = builder.trunc(number, ir.VectorType(I8, lanes))
            _store(builder, _reversed(builder, answers), target, first, 1)
            following = builder.add(first, _number(lanes))
            first.add_incoming(following, loop)
            builder.cbranch(builder.icmp_signed("<", following, _number(WORD)), loop, end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    kinds = (types.int64, pivots, types.int64, types.int64, ranks, types.int64, types.int64)
    return types.void(values, *kinds), generate


def _load_pivots(builder: Any, tables: Any, n_levels: int, lanes: int) -> list[list[Any]]:
    """The pivots of each level, in vectors."""
    vector = ir.VectorType(FLOAT, lanes)
    return [
        [
            _load(builder, tables, _number(pivot_offset(level) + first), vector, 4)
            for first in range(0, max(1 << level, lanes), lanes)
        ]
        for level in range(n_levels)
    ]


def _search(builder: Any, x: Any, pivots_of_levels: list[list[Any]]) -> Any:
    """The answers of a search: bit l of a lane is the answer at level l, but bit 0 the contrary."""
    lanes = x.type.count
    bits_of_lanes = lanes.bit_length() - 1
    answers: list[Any] = []
    number: Any = None
    for level, vectors in enumerate(pivots_of_levels):
        if level == 0:
            pivot = _shuffled(builder, vectors[0], vectors[0], [0] * lanes)
        else:
            picked = [_picked(builder, vector, number) for vector in vectors]
            for answer in answers[bits_of_lanes:level]:  # the upper bits of the number choose among the vectors
                pairs = zip(picked[::2], picked[1::2], strict=True)
                picked = [builder.select(answer, two, one) for one, two in pairs]
            (pivot,) = picked
        answer = builder.fcmp_ordered(">", x, pivot)  # not so for NaN
        answers.append(answer)
        if level == 0:
            number = builder.select(answer, _filled(I32, lanes, 0), _filled(I32, lanes, 1))
        else:
            with_answer = builder.or_(number, _filled(I32, lanes, 1 << level))
            number = builder.select(answer, with_answer, number)
    return number


def _picked(builder: Any, vector: Any, numbers: Any) -> Any:
    """Elements of a vector by the lower bits of numbers."""
    n = vector.type.count
    numbers = builder.and_(numbers, _filled(I32, n, n - 1))
    picked = ir.Constant(vector.type, ir.Undefined)
    for k in range(n):
        number = builder.extract_element(numbers, I32(k))
        picked = builder.insert_element(picked, builder.extract_element(vector, number), I32(k))
    return picked


def _reversed(builder: Any, value: Any) -> Any:
    """The bits of a byte, or of each byte of a vector, in reversed order."""
    name = "i8" if value.type == I8 else f"v{value.type.count}i8"
    kind = ir.FunctionType(value.type, [value.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.bitreverse.{name}"), [value])


# --- from ranks to words, and words to codes


@means(bitwise.compare_ranks)
def _compare_ranks(_typing: Any, ranks: Any, _start: Any, _bound: Any, words: Any, _place: Any, block: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, target = (_element(context, builder, signature, arguments, k) for k in (0, 3))
        bound = _repeated(builder, arguments[2], WORD)
        for k in range(block.count):
            are_below = builder.icmp_signed(">", bound, _load(builder, source, _number(WORD * k), BYTES, 1))
            _store(builder, builder.bitcast(are_below, I64), target, _number(k))
        return context.get_dummy_value()

    return types.void(ranks, types.int64, types.int8, words, types.int64, block), generate


@means(bitwise.choose_words)
def _choose_words(_typing: Any, choices: Any, _number_of_choice: Any, words: Any, block: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = builder.mul(arguments[1], _number(4))
        entries = _at(builder, _memory(context, builder, signature, arguments, 0), first)
        rows = _memory(context, builder, signature, arguments, 2)
        vector = ir.VectorType(I64, block.count)

        def row(which: int) -> Any:
            return builder.zext(_load(builder, entries, _number(which)), I64)

        target = row(0)
        condition, yes, no = (_load(builder, rows, row(k), vector, 8) for k in (1, 2, 3))
        chosen = builder.or_(builder.and_(condition, yes), builder.and_(builder.not_(condition), no))
        _store(builder, chosen, rows, target, 8)
        return context.get_dummy_value()

    return types.void(choices, types.int64, words, block), generate


@means(bitwise.gather_codes)
def _gather_codes(
    _typing: Any, words: Any, planes: Any, plane_offsets: Any, _first: Any, _word: Any, codes: Any, _place: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, planes_of_codes, offsets, target = (
            _memory(context, builder, signature, arguments, k) for k in (0, 1, 2, 5)
        )
        _, _, _, first, word, _, place = arguments
        bytes_of_codes = []
        for c in range(CODES):
            code = builder.add(first, _number(c))
            start, stop = (_load(builder, offsets, at) for at in (code, builder.add(code, _number(1))))
            bytes_of_codes.append(_bytes_of_planes(builder, rows, planes_of_codes, start, stop, word))
        for documents, pair in _interleaved(builder, bytes_of_codes):
            _store(builder, pair, target, builder.add(place, _number(documents)), 8)
        return context.get_dummy_value()

    kinds = (types.int64, types.int64, codes, types.int64)
    return types.void(words, planes, plane_offsets, *kinds), generate


def _bytes_of_planes(builder: Any, rows: Any, planes: Any, first: Any, last: Any, word: Any) -> Any:
    """A byte for each document, whose bit j is the document's bit of the j-th plane."""
    before = builder.block
    loop, done = builder.append_basic_block("planes"), builder.append_basic_block("planes_done")
    builder.cbranch(builder.icmp_signed("<", first, last), loop, done)
    builder.position_at_end(loop)
    k, total, weight = builder.phi(I64), builder.phi(BYTES), builder.phi(BYTES)
    for value, at_first in ((k, first), (total, _filled(I8, WORD, 0)), (weight, _filled(I8, WORD, 1))):
        value.add_incoming(at_first, before)
    row = builder.zext(_load(builder, planes, k), I64)
    bits = builder.bitcast(_load(builder, rows, builder.add(row, word)), ir.VectorType(I1, WORD))
    sum_with = builder.select(bits, builder.add(total, weight), total)
    following = builder.add(k, _number(1))
    for value, then in ((k, following), (total, sum_with), (weight, builder.add(weight, weight))):
        value.add_incoming(then, loop)
    builder.cbranch(builder.icmp_signed("<", following, last), loop, done)
    builder.position_at_end(done)
    result = builder.phi(BYTES)
    result.add_incoming(_filled(I8, WORD, 0), before)
    result.add_incoming(sum_with, loop)
    return result


def _interleaved(builder: Any, vectors: list[Any]) -> Iterable[tuple[int, Any]]:
    """Eight vectors of 64 bytes as 64 groups of eight bytes, two groups at a time with the number of the first.

    Neighbours are interleaved three times, bytes, pairs and fours, each within 16 bytes, as machines do it best.
    """
    columns = [[vector] for vector in vectors]
    for width in (1, 2, 4):
        n = WORD // width
        kind = ir.VectorType(ir.IntType(8 * width), n)
        starts = range(0, n, 16 // width)
        low = [place for first in starts for k in range(8 // width) for place in (first + k, n + first + k)]
        high = [place + 8 // width for place in low]
        columns = [
            [
                _shuffled(builder, builder.bitcast(x, kind), builder.bitcast(y, kind), order)
                for x, y in zip(one, two, strict=True)
                for order in (low, high)
            ]
            for one, two in zip(columns[::2], columns[1::2], strict=True)
        ]
    for k, vector in enumerate(columns[0]):
        groups = builder.bitcast(vector, ir.VectorType(I64, CODES))
        for lane in range(WORD // 16):
            yield 16 * lane + 2 * k, _shuffled(builder, groups, groups, (2 * lane, 2 * lane + 1))


# --- a test of it all


@njit(error_model="numpy")
def _try(numbers: Any, words: Any, ranks: Any, barrier: Any) -> Any:
    intrinsics.inlined()
    lanes = simd.load_lanes(numbers, 1)
    lanes = simd.choose_lanes(lanes > simd.all_lanes(np.float32(3.0)), lanes * lanes, lanes - lanes)
    simd.store_lanes(numbers, 0, lanes)
    simd.store_words(words, 0, simd.cumulated(simd.load_words(words, 0)))
    intrinsics.borrowed(words)[8] += 1
    bitwise.compare_ranks(ranks, 0, np.int8(5), words, 9, (0,))
    before = intrinsics.add_atomically(barrier, 0, 2)
    return simd.sum_lanes(lanes), before + 10 * intrinsics.read_atomically(barrier, 0)


def is_right() -> bool:
    """Whether a few operations of each kind, on numbers that are exact, give what they should."""
    numbers, words = np.arange(LANES + 1, dtype=np.float32), np.arange(10)
    ranks, barrier = np.arange(WORD, dtype=np.int8), np.ones(1, np.int64)
    total, counted = _try(numbers, words, ranks, barrier)
    sums = np.cumsum(np.arange(WORDS)).tolist()
    squares = [float(k * k) if k > 3 else 0.0 for k in range(1, LANES + 1)]
    return bool(
        total == sum(squares) and counted == 31 and numbers[:LANES].tolist() == squares
        and words.tolist() == [*sums, 9, 31]
    )  # fmt: skip
