"""The operations on words of 64 documents, each compared with its Python body."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.core import bitwise
from podium.core.bitwise import CODES, TILE, WORD, pivot_offset
from podium.core.compiling import kernel, start_numba

BLOCKS = {2: (0,) * 2, 8: (0,) * 8}


@kernel
def transpose(flat, row_stride, row, last_row, column, columns, place, column_stride):
    bitwise.transpose_tile(flat, row_stride, row, last_row, column, columns, place, column_stride)


@kernel
def transpose_bytes(source, start, stride, target, place, target_stride):
    bitwise.transpose_bytes(source, start, stride, target, place, target_stride)


@kernel
def ranks_of(values, start, pivots, table, n_levels, ranks, place, missing):
    bitwise.find_ranks(values, start, pivots, table, n_levels, ranks, place, missing)


@kernel
def compare(ranks, start, bound, words, place, block):
    bitwise.compare_ranks(ranks, start, bound, words, place, block)


@kernel
def choose(choices, number, words, block):
    bitwise.choose_words(choices, number, words, block)


@kernel
def gather(words, planes, plane_offsets, first, word, codes, place):
    bitwise.gather_codes(words, planes, plane_offsets, first, word, codes, place)


KERNELS = {
    bitwise.transpose_tile: transpose, bitwise.transpose_bytes: transpose_bytes, bitwise.find_ranks: ranks_of,
    bitwise.compare_ranks: compare, bitwise.choose_words: choose, bitwise.gather_codes: gather,
}  # fmt: skip


def check(operation, target, *arguments):
    """Check that the compiled operation and its body change the target in the same way; return the target."""
    targets = []
    for function in (KERNELS[operation], operation):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        function(*copies)
        targets.append(copies[target])
    assert np.array_equal(*targets)
    assert not np.array_equal(targets[0], arguments[target])
    return targets[0]


def test_every_operation_is_tested():
    assert set(KERNELS) == set(bitwise.OPERATIONS)


@pytest.mark.parametrize("last_row", [2, 20, 70])
def test_tiles_are_transposed(last_row):
    flat = np.random.default_rng(1).normal(size=71 * 19).astype(np.float32)
    columns = check(bitwise.transpose_tile, 5, flat, 19, 2, last_row, 3, np.zeros(TILE * 40, np.float32), 5, 40)
    rows = flat.reshape(71, 19)[np.minimum(np.arange(2, 2 + TILE), last_row), 3 : 3 + TILE]
    assert np.array_equal(columns.reshape(TILE, 40)[:, 5 : 5 + TILE], rows.T)


def test_bytes_are_transposed():
    source = np.random.default_rng(1).integers(0, 256, 17 * 40).astype(np.uint8)
    target = check(bitwise.transpose_bytes, 3, source, 3, 40, np.zeros(TILE * 30, np.uint8), 5, 30)
    rows = source[3 : 3 + TILE * 40].reshape(TILE, 40)[:, :TILE]
    assert np.array_equal(target.reshape(TILE, 30)[:, 5 : 5 + TILE], rows.T)


@given(st.integers(0, 2**32), st.integers(4, 8))
def test_ranks_of_values_are_found(seed, n_levels):
    random = np.random.default_rng(seed)
    values = random.normal(size=2 * WORD).astype(np.float32)
    values[random.integers(0, len(values), 9)] = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.nan, 1e-45, 3e38, -3e38]
    pivots = np.zeros(7 + pivot_offset(8), np.float32)
    for level in range(n_levels):
        first = 7 + pivot_offset(level)
        pivots[first : first + 2**level] = random.choice(values[~np.isnan(values)], 2**level)
    ranks = np.zeros(80, np.int8)
    check(bitwise.find_ranks, 5, values, WORD, pivots, 7, n_levels, ranks, 5, random.choice([-128, 127]))


@pytest.mark.parametrize("n", BLOCKS)
@pytest.mark.parametrize("bound", [-127, 0, 127])
def test_ranks_are_compared(n, bound):
    ranks = np.random.default_rng(2).integers(-128, 128, 9 + WORD * n).astype(np.int8)
    words = check(bitwise.compare_ranks, 3, ranks, 9, np.int8(bound), np.ones(n + 3, np.int64), 1, BLOCKS[n])
    bits = np.unpackbits(words[1 : 1 + n].view(np.uint8), bitorder="little").astype(bool)
    assert np.array_equal(bits, ranks[9:] < bound)


@pytest.mark.parametrize("n", BLOCKS)
def test_words_are_chosen(n):
    words = np.random.default_rng(3).integers(-(2**63), 2**63, 6 * n)
    choices = n * np.array([0, 0, 0, 0, 5, 1, 2, 3], np.uint16)
    chosen = check(bitwise.choose_words, 2, choices, 1, words, BLOCKS[n]).reshape(6, n)
    condition, yes, no = words.reshape(6, n)[1:4]
    assert np.array_equal(chosen[5], (condition & yes) | (~condition & no))


@pytest.mark.parametrize("n", BLOCKS)
def test_codes_are_gathered(n):
    random = np.random.default_rng(4)
    words = random.integers(-(2**63), 2**63, 30 * n)
    sizes = np.array([3, 0, 8, 1, 6, 5, 7, 2, 4, 6])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    planes = n * random.integers(0, 30, offsets[-1]).astype(np.uint16)
    codes = check(bitwise.gather_codes, 5, words, planes, offsets, 2, n - 1, np.zeros(WORD + 4, np.int64), 3)
    bits = words.reshape(30, n)[:, n - 1]
    for c in range(CODES):
        rows = planes[offsets[2 + c] : offsets[3 + c]] // n
        for document in (0, 17, 63):
            code = sum(((int(bits[row]) >> document) & 1) << j for j, row in enumerate(rows))
            assert (int(codes[3 + document]) >> (8 * c)) & 255 == code


FLOATS, WORDS = np.zeros(2000, np.float32), np.zeros(200, np.int64)
CALLS = {
    transpose: (FLOATS, 20, 0, 40, 0, FLOATS, 0, 80),
    transpose_bytes: (np.zeros(999, np.uint8), 0, 20, np.zeros(999, np.uint8), 0, 20),
    ranks_of: (FLOATS, 0, FLOATS, 0, 5, np.zeros(WORD, np.int8), 0, 127),
    compare: (np.zeros(2 * WORD, np.int8), 0, np.int8(3), WORDS, 0, BLOCKS[2]),
    choose: (np.zeros(4, np.uint16), 0, WORDS, BLOCKS[2]),
    gather: (WORDS, np.zeros(8, np.uint16), np.zeros(9, np.int64), 0, 0, WORDS, 0),
}


@pytest.mark.parametrize("operation", CALLS, ids=lambda operation: operation.__name__)
def test_operations_compile_for_arm(operation):
    """LLVM generates machine code for aarch64 from the same operations."""
    import llvmlite.binding as llvm
    from numba import njit, typeof

    start_numba()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu="neoverse-n1", opt=1)
    compiled = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(operation.py_func)
    compiled.compile(tuple(map(typeof, CALLS[operation])))
    (text,) = compiled.inspect_llvm().values()
    of_this_machine = r'target (triple|datalayout) = .*\n|"target-(cpu|features)"="[^"]*"'
    module = llvm.parse_assembly(re.sub(of_this_machine, "", text))
    module.triple, module.data_layout = "aarch64-unknown-linux-gnu", str(machine.target_data)
    assert "ret" in machine.emit_assembly(module)
