"""The LLVM code of the operations in `bitwise`, on vectors that LLVM maps to AVX-512, AVX2 or other instructions.

    transpose_tile(…)   load rows; log2 n times: interleave the first half of the rows with the second; store
    find_ranks(…)       switch on the number of levels; for 16 values at once, or 8: for each level
                            pivot = pivots of the level[answers so far]; answers |= (x > pivot) << level
                        then reverse the bits of each byte of answers
    compare_ranks(…)    icmp <64 x i8> with the bound; its 64 bits are a word
    choose_words(…)     (condition & yes) | (~condition & no) of <n x i64>
    gather_codes(…)     for each of 8 codes: byte of each document = Σ bit of plane j << j;
                        then interleave the 8 vectors of 64 bytes: bytes, pairs, fours

One pattern determines the speed: selecting elements of a vector by the numbers in another (`_selected`) becomes a
single instruction if the vectors are as long as the machine's.

`tests/core/test_bitwise.py` compares each operation with its Python body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llvmlite import ir
from numba import types

from podium.core import bitwise
from podium.core.bitwise import CODES, MAX_LEVELS, TILE, WORD, pivot_offset
from podium.core.numba_extension import (
    FLOAT,
    I1,
    I8,
    I32,
    I64,
    Call,
    call_on_vector,
    compile_as,
    filled,
    int64,
    load,
    memory_at,
    prefetch_line,
    repeated,
    shuffled,
    store,
)  # fmt: skip

BYTES = ir.VectorType(I8, WORD)
ROWS_AHEAD = 128  # how many rows ahead `transpose_tile` prefetches, because otherwise scoring waits for memory


def _machine_lanes(context: Any) -> int:
    """Return the length of the target machine's vectors: 16 with AVX-512, else 8."""
    _, _, features = context.codegen().magic_tuple()
    return 16 if "+avx512f" in features else 8


# --- from rows to columns


@compile_as(bitwise.transpose_tile)
def _transpose_tile(
    flat: Any, _row_stride: Any, _row: Any, _last: Any, _column: Any, columns: Any, _place: Any, _stride: Any
) -> Any:
    def generate(call: Call) -> None:
        builder = call.builder
        source, target, n = call.array(0), call.array(5), _machine_lanes(call.context)
        _, row_stride, row, last_row, column, _, place, column_stride = call.arguments
        for down in range(0, TILE, n):
            starts = [_row_start(builder, row, down + k, last_row, row_stride, column) for k in range(n)]
            ahead = [_row_start(builder, row, down + k + ROWS_AHEAD, last_row, row_stride, column) for k in range(n)]
            for start in ahead:
                prefetch_line(builder, memory_at(builder, source, start), 2)
                prefetch_line(builder, memory_at(builder, source, builder.add(start, int64(TILE - 1))), 2)
            for across in range(0, TILE, n):
                vector = ir.VectorType(FLOAT, n)
                rows = [load(builder, source, builder.add(s, int64(across)), vector, 4) for s in starts]
                for k, values in enumerate(_transposed(builder, rows)):
                    offset = builder.mul(column_stride, int64(across + k))
                    at = builder.add(builder.add(place, int64(down)), offset)
                    store(builder, values, target, at, 4)

    return types.void(flat, *[types.int64] * 4, columns, *[types.int64] * 2), generate


@compile_as(bitwise.transpose_bytes)
def _transpose_bytes(rows: Any, _start: Any, _stride: Any, columns: Any, _place: Any, _target_stride: Any) -> Any:
    def generate(call: Call) -> None:
        builder = call.builder
        source, target = call.array(0), call.array(3)
        _, start, stride, _, place, target_stride = call.arguments
        vector = ir.VectorType(I8, TILE)
        starts = [builder.add(start, builder.mul(stride, int64(k))) for k in range(TILE)]
        loaded = [load(builder, source, at, vector, 1) for at in starts]
        for k, column in enumerate(_transposed(builder, loaded)):
            store(builder, column, target, builder.add(place, builder.mul(target_stride, int64(k))), 1)

    return types.void(rows, types.int64, types.int64, columns, types.int64, types.int64), generate


def _row_start(builder: Any, row: Any, k: int, last_row: Any, row_stride: Any, column: Any) -> Any:
    """Return the position of a column in row `row + k`, or in the last row if that is beyond the end."""
    number = builder.add(row, int64(k))
    number = builder.select(builder.icmp_signed("<", number, last_row), number, last_row)
    return builder.add(builder.mul(number, row_stride), column)


def _transposed(builder: Any, rows: Sequence[Any]) -> Sequence[Any]:
    """Transpose n vectors of n elements by interleaving the first half with the second log2 n times."""
    n = len(rows)
    low = [k for pair in zip(range(n // 2), range(n, n + n // 2), strict=True) for k in pair]
    high = [k + n // 2 for k in low]
    for _ in range(n.bit_length() - 1):
        pairs = zip(rows[: n // 2], rows[n // 2 :], strict=True)
        rows = [shuffled(builder, first, second, order) for first, second in pairs for order in (low, high)]
    return rows


# --- from values to ranks


@compile_as(bitwise.find_ranks)
def _find_ranks(
    values: Any, _start: Any, pivots: Any, _table: Any, _n_levels: Any, ranks: Any, _place: Any,
    _missing: Any,
) -> Any:  # fmt: skip
    def generate(call: Call) -> None:
        builder = call.builder
        source, tables, target = call.element(0), call.element(2), call.element(5)
        n_levels, missing = call.arguments[4], call.arguments[7]
        lanes = _machine_lanes(call.context)
        number_of_missing = repeated(builder, _reversed(builder, builder.trunc(missing, I8)), lanes)
        number_of_missing = builder.zext(number_of_missing, ir.VectorType(I32, lanes))
        end = builder.append_basic_block("ranks_done")
        cases = {k: builder.append_basic_block(f"levels_{k}") for k in range(4, MAX_LEVELS + 1)}
        switch = builder.switch(n_levels, end)
        for k, case in cases.items():
            switch.add_case(int64(k), case)
        for k, case in cases.items():
            builder.position_at_end(case)
            pivots_of_levels = _load_pivots(builder, tables, k, lanes)
            loop = builder.append_basic_block(f"search_{k}")
            builder.branch(loop)
            builder.position_at_end(loop)
            first = builder.phi(I64)
            first.add_incoming(int64(0), case)
            x = load(builder, source, first, ir.VectorType(FLOAT, lanes), 4)
            number = _search(builder, x, pivots_of_levels)
            number = builder.select(builder.fcmp_unordered("uno", x, x), number_of_missing, number)
            answers = builder.trunc(number, ir.VectorType(I8, lanes))
            store(builder, _reversed(builder, answers), target, first, 1)
            following = builder.add(first, int64(lanes))
            first.add_incoming(following, loop)
            builder.cbranch(builder.icmp_signed("<", following, int64(WORD)), loop, end)
        builder.position_at_end(end)

    kinds = (types.int64, pivots, types.int64, types.int64, ranks, types.int64, types.int64)
    return types.void(values, *kinds), generate


def _load_pivots(builder: Any, tables: Any, n_levels: int, lanes: int) -> list[list[Any]]:
    """Return the pivots of each level as vectors."""
    vector = ir.VectorType(FLOAT, lanes)
    return [
        [
            load(builder, tables, int64(pivot_offset(level) + first), vector, 4)
            for first in range(0, max(1 << level, lanes), lanes)
        ]
        for level in range(n_levels)
    ]


def _search(builder: Any, x: Any, pivots_of_levels: list[list[Any]]) -> Any:
    """Return the answers of a search: bit l of a lane is the answer at level l, with bit 0 inverted."""
    lanes = x.type.count
    bits_of_lanes = lanes.bit_length() - 1
    answers: list[Any] = []
    number: Any = None
    for level, vectors in enumerate(pivots_of_levels):
        if level == 0:
            pivot = shuffled(builder, vectors[0], vectors[0], [0] * lanes)
        else:
            selected = [_selected(builder, vector, number) for vector in vectors]
            for answer in answers[bits_of_lanes:level]:  # the upper bits of the number choose among the vectors
                pairs = zip(selected[::2], selected[1::2], strict=True)
                selected = [builder.select(answer, second, first) for first, second in pairs]
            (pivot,) = selected
        answer = builder.fcmp_ordered(">", x, pivot)  # false for NaN
        answers.append(answer)
        if level == 0:
            number = builder.select(answer, filled(I32, lanes, 0), filled(I32, lanes, 1))
        else:
            with_answer = builder.or_(number, filled(I32, lanes, 1 << level))
            number = builder.select(answer, with_answer, number)
    return number


def _selected(builder: Any, vector: Any, numbers: Any) -> Any:
    """Return the elements of a vector that the lower bits of the numbers select."""
    n = vector.type.count
    numbers = builder.and_(numbers, filled(I32, n, n - 1))
    selected = ir.Constant(vector.type, ir.Undefined)
    for k in range(n):
        number = builder.extract_element(numbers, I32(k))
        selected = builder.insert_element(selected, builder.extract_element(vector, number), I32(k))
    return selected


def _reversed(builder: Any, value: Any) -> Any:
    """Reverse the bits of a byte, or of each byte of a vector."""
    return call_on_vector(builder, "bitreverse", "i8" if value.type == I8 else f"v{value.type.count}i8", value)


# --- from ranks to words, and words to codes


@compile_as(bitwise.compare_ranks)
def _compare_ranks(ranks: Any, _start: Any, _bound: Any, words: Any, _place: Any, block: Any) -> Any:
    def generate(call: Call) -> None:
        builder = call.builder
        source, target = call.element(0), call.element(3)
        bound = repeated(builder, call.arguments[2], WORD)
        for k in range(block.count):
            are_below = builder.icmp_signed(">", bound, load(builder, source, int64(WORD * k), BYTES, 1))
            store(builder, builder.bitcast(are_below, I64), target, int64(k))

    return types.void(ranks, types.int64, types.int8, words, types.int64, block), generate


@compile_as(bitwise.choose_words)
def _choose_words(choices: Any, _number_of_choice: Any, words: Any, block: Any) -> Any:
    def generate(call: Call) -> None:
        builder = call.builder
        entries = memory_at(builder, call.array(0), builder.mul(call.arguments[1], int64(4)))
        rows = call.array(2)
        vector = ir.VectorType(I64, block.count)

        def row(which: int) -> Any:
            return builder.zext(load(builder, entries, int64(which)), I64)

        target = row(0)
        condition, yes, no = (load(builder, rows, row(k), vector, 8) for k in (1, 2, 3))
        chosen = builder.or_(builder.and_(condition, yes), builder.and_(builder.not_(condition), no))
        store(builder, chosen, rows, target, 8)

    return types.void(choices, types.int64, words, block), generate


@compile_as(bitwise.gather_codes)
def _gather_codes(words: Any, planes: Any, plane_offsets: Any, _first: Any, _word: Any, codes: Any, _place: Any) -> Any:
    def generate(call: Call) -> None:
        builder = call.builder
        rows, planes_of_codes, offsets, target = (call.array(k) for k in (0, 1, 2, 5))
        _, _, _, first, word, _, place = call.arguments
        bytes_of_codes = []
        for c in range(CODES):
            code = builder.add(first, int64(c))
            start, stop = (load(builder, offsets, at) for at in (code, builder.add(code, int64(1))))
            bytes_of_codes.append(_bytes_of_planes(builder, rows, planes_of_codes, start, stop, word))
        for documents, pair in _interleaved(builder, bytes_of_codes):
            store(builder, pair, target, builder.add(place, int64(documents)), 8)

    kinds = (types.int64, types.int64, codes, types.int64)
    return types.void(words, planes, plane_offsets, *kinds), generate


def _bytes_of_planes(builder: Any, rows: Any, planes: Any, first: Any, last: Any, word: Any) -> Any:
    """Return a byte for each document, whose bit j is the document's bit of the j-th plane."""
    before = builder.block
    loop, done = builder.append_basic_block("planes"), builder.append_basic_block("planes_done")
    builder.cbranch(builder.icmp_signed("<", first, last), loop, done)
    builder.position_at_end(loop)
    k, total, weight = builder.phi(I64), builder.phi(BYTES), builder.phi(BYTES)
    for value, at_first in ((k, first), (total, filled(I8, WORD, 0)), (weight, filled(I8, WORD, 1))):
        value.add_incoming(at_first, before)
    row = builder.zext(load(builder, planes, k), I64)
    bits = builder.bitcast(load(builder, rows, builder.add(row, word)), ir.VectorType(I1, WORD))
    sum_with = builder.select(bits, builder.add(total, weight), total)
    following = builder.add(k, int64(1))
    for value, then in ((k, following), (total, sum_with), (weight, builder.add(weight, weight))):
        value.add_incoming(then, loop)
    builder.cbranch(builder.icmp_signed("<", following, last), loop, done)
    builder.position_at_end(done)
    result = builder.phi(BYTES)
    result.add_incoming(filled(I8, WORD, 0), before)
    result.add_incoming(sum_with, loop)
    return result


def _interleaved(builder: Any, vectors: list[Any]) -> Iterable[tuple[int, Any]]:
    """Yield eight vectors of 64 bytes as 64 groups of eight bytes: the number of a group, and this group and the next.

    Neighbours are interleaved three times: bytes, pairs of bytes, fours. All shuffles stay within 16 bytes, which is
    fastest on all machines.
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
                shuffled(builder, builder.bitcast(x, kind), builder.bitcast(y, kind), order)
                for x, y in zip(even, odd, strict=True)
                for order in (low, high)
            ]
            for even, odd in zip(columns[::2], columns[1::2], strict=True)
        ]
    for k, vector in enumerate(columns[0]):
        groups = builder.bitcast(vector, ir.VectorType(I64, CODES))
        for lane in range(WORD // 16):
            yield 16 * lane + 2 * k, shuffled(builder, groups, groups, (2 * lane, 2 * lane + 1))
