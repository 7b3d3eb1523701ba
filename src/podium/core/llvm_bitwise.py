"""What the compiler does for the operations of `bitwise`, in LLVM's language: with vectors, of no certain machine.

LLVM turns them into AVX-512, AVX2 or what else the machine has. One pattern matters for speed: elements of a vector
taken in the order of another (`_picked`) become one instruction where the vectors are as long as the machine's.

Like `podium.core.llvm` this stands on inner parts of Numba; `tests/core/test_bitwise.py` tries each operation alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llvmlite import ir
from numba import types

from podium.core import bitwise
from podium.core.bitwise import CODES, MAX_LEVELS, TILE, WORD, pivot_offset
from podium.core.llvm import cgutils, element, means

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
FLOAT = ir.FloatType()
BYTES = ir.VectorType(I8, WORD)
ROWS_AHEAD = 128  # whose values are asked for before they are needed


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


def _load(builder: Any, pointer: Any, index: Any, vector: Any, align: int) -> Any:
    place = builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer())
    return builder.load(place, align=align)


def _store(builder: Any, value: Any, pointer: Any, index: Any, align: int) -> None:
    place = builder.bitcast(builder.gep(pointer, [index]), value.type.as_pointer())
    builder.store(value, place, align=align)


def _shuffled(builder: Any, one: Any, two: Any, order: Iterable[int]) -> Any:
    places = list(order)
    return builder.shuffle_vector(one, two, ir.Constant(ir.VectorType(I32, len(places)), places))


def _lanes(context: Any) -> int:
    """Numbers in a vector of the machine that the code is for: 16 where it has AVX-512, else 8."""
    _, _, features = context.codegen().magic_tuple()
    return 16 if "+avx512f" in features else 8


def _data(context: Any, builder: Any, signature: Any, arguments: Any, which: int) -> Any:
    """A pointer to the first element of an array."""
    return context.make_array(signature.args[which])(context, builder, arguments[which]).data


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
        source, target = (_data(context, builder, signature, arguments, k) for k in (0, 5))
        _, row_stride, row, last_row, column, _, place, column_stride = arguments
        n = _lanes(context)
        for down in range(0, TILE, n):
            starts = [_row_start(builder, row, down + k, last_row, row_stride, column) for k in range(n)]
            ahead = [_row_start(builder, row, down + k + ROWS_AHEAD, last_row, row_stride, column) for k in range(n)]
            for start in ahead:
                _prefetch(builder, builder.gep(source, [start]))
                _prefetch(builder, builder.gep(source, [builder.add(start, _number(TILE - 1))]))
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
        pointer, to = (_data(context, builder, signature, arguments, k) for k in (0, 3))
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


def _prefetch(builder: Any, pointer: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [I8.as_pointer(), I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [builder.bitcast(pointer, I8.as_pointer()), I32(0), I32(2), I32(1)])


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
        source, tables, target = (_data(context, builder, signature, arguments, k) for k in (0, 2, 5))
        _, start, _, table, n_levels, _, place, missing = arguments
        source, tables = builder.gep(source, [start]), builder.gep(tables, [table])
        target = builder.gep(target, [place])
        lanes = _lanes(context)
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
        source = element(context, builder, signature, arguments, 0)
        target = element(context, builder, signature, arguments, 3)
        bound = _repeated(builder, arguments[2], WORD)
        for k in range(block.count):
            are_below = builder.icmp_signed(">", bound, _load(builder, source, _number(WORD * k), BYTES, 1))
            builder.store(builder.bitcast(are_below, I64), builder.gep(target, [_number(k)]))
        return context.get_dummy_value()

    return types.void(ranks, types.int64, types.int8, words, types.int64, block), generate


@means(bitwise.choose_words)
def _choose_words(_typing: Any, choices: Any, _number_of_choice: Any, words: Any, block: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = builder.mul(arguments[1], _number(4))
        entries = builder.gep(_data(context, builder, signature, arguments, 0), [first])
        rows = _data(context, builder, signature, arguments, 2)
        vector = ir.VectorType(I64, block.count)

        def row(which: int) -> Any:
            return builder.zext(builder.load(builder.gep(entries, [_number(which)])), I64)

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
            _data(context, builder, signature, arguments, k) for k in (0, 1, 2, 5)
        )
        _, _, _, first, word, _, place = arguments
        bytes_of_codes = []
        for c in range(CODES):
            code = builder.add(first, _number(c))
            start, stop = (builder.load(builder.gep(offsets, [at])) for at in (code, builder.add(code, _number(1))))
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
    row = builder.zext(builder.load(builder.gep(planes, [k])), I64)
    bits = builder.bitcast(builder.load(builder.gep(rows, [builder.add(row, word)])), ir.VectorType(I1, WORD))
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
