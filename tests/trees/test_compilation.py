"""The kernels that another process compiles before a first tree are those that training calls."""

import subprocess
import sys

import pytest

from podium.core.threads import MIN_PARALLEL_WORK
from podium.trees import compilation

CODE = """
import podium
from podium.trees import compilation, gradient_sampling, grower, quantization
compilation.{function}()
kernels = [value for module in (gradient_sampling, grower, quantization)
           for value in vars(module).values() if hasattr(value, "py_func") and "dispatcher" in vars(value)]
before = {{kernel: list(kernel.dispatcher.signatures) for kernel in kernels}}
assert {expected!r} <= {{kernel.__name__ for kernel in kernels if before[kernel]}}, before
podium.LambdaMART(1, split_fraction={fraction}, n_threads=2).fit(podium.artificial({n_queries}, features=4))
for kernel, signatures in before.items():
    assert kernel.dispatcher.signatures == signatures, (kernel.__name__, kernel.dispatcher.signatures, signatures)
"""
GROWTH = {"grow"}
SHARES = {"compute_importances", "sampling_threshold", "draw_sample", "scatter", "pack_sample"}


@pytest.mark.parametrize(
    ("function", "n_queries", "fraction", "expected"),
    [
        ("sample_small_tree", 10, None, GROWTH | {"sample_alone"}),
        ("sample_small_tree_in_shares", MIN_PARALLEL_WORK // 50 + 1, None, GROWTH | SHARES),
        ("grow_small_tree", 10, 1.0, GROWTH | {"pack"}),
    ],
)
def test_a_small_tree_compiles_what_training_calls(function, n_queries, fraction, expected):
    code = CODE.format(function=function, n_queries=n_queries, fraction=fraction, expected=expected)
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr


def test_the_function_follows_from_the_data_and_the_settings(monkeypatch):
    calls = []
    monkeypatch.setattr(compilation, "compile_in_background", lambda *names: calls.append(names[1:]))
    for n_documents, is_sampled in ((10, False), (10, True), (MIN_PARALLEL_WORK, True)):
        compilation.begin_compilation(n_documents, 2, is_sampled)
    names = ("grow_small_tree", "sample_small_tree", "sample_small_tree_in_shares")
    assert calls == [(compilation.__name__, name) for name in names]
    assert all(callable(getattr(compilation, name)) for name in names)
