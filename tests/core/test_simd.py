"""Each operation that is compiled from LLVM code, compared with the Python body that defines its result.

If a test fails after an upgrade of Numba or llvmlite, fix that operation in `podium.core.llvm_lanes`. Until then
PODIUM_PLAIN_KERNELS=1 gives the same models without it.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from podium.core import intrinsics, simd
from podium.core.compiling import start_numba
from podium.core.simd import LANES

A, B = (np.random.default_rng(k).normal(size=2 * LANES).astype(np.float32) for k in (1, 2))
A[3], B[5], A[7] = np.nan, np.inf, 0.0


def compiled(source):
    """Return a function made from source, compiled and not compiled. Numba looks up in globals what it calls."""
    names = {f.__name__: f for f in (*simd.OPERATIONS, *intrinsics.OPERATIONS)} | {"np": np}
    exec(source, names)
    start_numba()
    from numba import njit

    return njit(error_model="numpy")(names["work"]), names["work"]


OPERATIONS = {
    "all_lanes": "store_lanes(out, 0, all_lanes(a[3 + 1]))",
    "load_lanes": "store_lanes(out, 0, load_lanes(a, 5))",
    "choose_lanes": "store_lanes(out, 0, choose_lanes(load_lanes(a, 0) > load_lanes(b, 0), load_lanes(a, 0), "
    "load_lanes(b, 9)))",
    "square_roots": "store_lanes(out, 0, square_roots(absolute(load_lanes(a, 0))))",
    "upper_halves": "w = a.view(np.int64)\n    store_lanes(out, 0, upper_halves(load_words(w, 0), load_words(w, 8)))",
    "lower_halves": "w = a.view(np.int64)\n    store_lanes(out, 0, lower_halves(load_words(w, 0), load_words(w, 8)))",
    "highest_lane": "out[0] = highest_lane(load_lanes(a, 10))",
    "count_lanes": "out[0] = count_lanes(load_lanes(a, 10) < load_lanes(b, 3))",
    "sum_lanes": "out[0] = sum_lanes(load_lanes(a, 10))",
    "any_lanes": "out[0] = any_lanes(load_lanes(a, 0) == load_lanes(a, 0))\n    "
    "out[1] = any_lanes(load_lanes(a, 0) > load_lanes(a, 0))",
    "copy_16_bytes": "copy_16_bytes(out.view(np.uint8), 4, a.view(np.uint8), 8)",
    "borrowed": "c = borrowed(a)\n    out[:4] = c[4:8]",
    "prefetch": "prefetch(a, 3)\n    out[0] = a[3]",
    "not_inlined": "not_inlined()\n    out[0] = 1.0",
    "inlined": "inlined()\n    out[0] = 1.0",
    "add_atomically": "out.view(np.int64)[1] = add_atomically(out.view(np.int64), 0, 5)",
    "read_atomically": "out.view(np.int64)[1] = read_atomically(out.view(np.int64), 0)",
    "yield_thread": "yield_thread()\n    out[0] = 1.0",
    **{f"operator {sign}": f"store_lanes(out, 0, load_lanes(a, 0) {sign} load_lanes(b, 0))" for sign in "+-*/"},
    **{
        f"operator {sign}": f"store_lanes(out, 0, choose_lanes(load_lanes(a, 0) {sign} load_lanes(b, 0), "
        "load_lanes(a, 0), load_lanes(b, 0)))"
        for sign in ("<", ">", "==")
    },
    "operator -x": "store_lanes(out, 0, -load_lanes(a, 0))",
    "absolute": "store_lanes(out, 0, absolute(load_lanes(a, 0)))",
}
FIRST, SECOND = "load_words(w, 3)", "load_words(w, 5)"
WORD_OPERATIONS = {
    "all_words": "all_words(w[5])", "load_words": FIRST, "cumulative_sums": f"cumulative_sums({FIRST})",
    "last_word": f"last_word({FIRST})", "sum_words": f"all_words(sum_words({FIRST}))",
    "+": f"{FIRST} + {SECOND}", "-": f"{FIRST} - {SECOND}",
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.filterwarnings("ignore:.*encountered in")
def test_an_operation_equals_its_python_body(name):
    fast, slow = compiled(f"def work(a, b, out):\n    {OPERATIONS[name]}\n")
    outs = []
    for function in (fast, slow):
        outs.append(np.arange(4 * LANES, dtype=np.float32))
        function(A.copy(), B.copy(), outs[-1])
    assert np.array_equal(outs[0].view(np.uint32), outs[1].view(np.uint32))
    assert not np.array_equal(outs[0], np.arange(4 * LANES)) or name == "prefetch"


@pytest.mark.parametrize("name", WORD_OPERATIONS)
def test_an_operation_on_words_equals_its_python_body(name):
    words = np.random.default_rng(3).integers(-(2**62), 2**62, 16)
    outs = []
    for function in compiled(f"def work(w, out):\n    store_words(out, 0, {WORD_OPERATIONS[name]})\n"):
        outs.append(np.full(8, 77))
        function(words.copy(), outs[-1])
    assert np.array_equal(*outs)
    assert (outs[0] != 77).all()


def test_aligned_memory_begins_with_a_cache_line():
    for n, dtype in ((5, np.float32), (1000, np.int64)):
        memory = simd.aligned_zeros(n, dtype)
        assert memory.ctypes.data % 64 == 0
        assert (memory.shape, memory.dtype) == ((n,), dtype)
        assert not memory.any()


def test_every_operation_is_tested():
    tested = {*OPERATIONS, *WORD_OPERATIONS, "store_lanes", "store_words"}
    assert {f.__name__ for f in (*simd.OPERATIONS, *intrinsics.OPERATIONS)} <= tested


@pytest.mark.slow
@pytest.mark.thorough
def test_plain_kernels_give_the_same_models():
    """Without the LLVM code: the same bits, on one thread."""
    code = (
        "import podium; data = podium.artificial(8, documents=20, features=4); "
        "fit = lambda **s: podium.LambdaMART(4, 6, min_documents_in_leaf=2, **s).fit(data); "
        "print(fit().digest(), fit(objective='lambda(err)').digest(), "
        "fit().scorer()(data.features).tobytes().hex())"
    )
    printed = []
    for plain in ("0", "1"):
        environment = os.environ | {"PODIUM_PLAIN_KERNELS": plain}
        if plain == "1":
            environment |= {"NUMBA_OPT": "0"}  # compiles a third faster
        completed = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
        )
        assert completed.returncode == 0, completed.stderr
        printed.append(completed.stdout.split())
    assert printed[0] == printed[1]
    assert len(set(printed[0])) == 3


def test_operations_that_do_not_work_are_replaced_with_a_warning(tmp_path):
    """If llvmlite lacks something that the operations need, Podium compiles the Python bodies instead."""
    (tmp_path / "sitecustomize.py").write_text("from llvmlite import ir\ndel ir.IRBuilder.shuffle_vector\n")
    (tmp_path / "work.py").write_text(
        "import warnings\n"
        "import numpy as np\n"
        "from podium.core.compiling import kernel\n"
        "from podium.core.simd import load_lanes, sum_lanes\n"
        "from podium.core.team import Team\n"
        "@kernel\n"
        "def total(values):\n"
        "    return sum_lanes(load_lanes(values, 0))\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    assert total(np.ones(16, np.float32)) == 16\n"
        "    assert Team(4).n_threads == 1\n"
        "print(*(warning.message for warning in caught))\n"
    )
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("PODIUM_PLAIN_KERNELS", None)
    command = [sys.executable, str(tmp_path / "work.py")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith("Podium's vector operations do not work with the installed versions of Numba")
    assert completed.stdout.count("vector operations") == 1
    assert "shuffle_vector" in completed.stdout  # the reason
