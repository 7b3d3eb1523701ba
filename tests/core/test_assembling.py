"""No machine code of helpers: what stands on inner parts of Numba, tried alone."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from numba import njit
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

from podium.core.assembling import assemble_kernel_alone
from podium.core.compiling import _register_helpers, helper, start_numba
from podium.core.threads import USES_LLVM

pytestmark = pytest.mark.skipif(not USES_LLVM, reason="kernels are compiled as Numba has it")


KERNELS = ("kernel", "wrong")


def in_podium(source: str) -> dict:
    """Functions of a file of the package."""
    names = {"__name__": "podium.core.sorting", "np": np, "helper": helper}
    exec(source, names)
    return names


@pytest.fixture(scope="module")
def functions() -> dict:
    names = in_podium(
        "@helper\n"
        "def assembled_root(x):\n"
        "    if x < 0:\n"
        "        raise ValueError('no root', x)\n"
        "    return np.sqrt(x)\n"
        "@helper\n"
        "def assembled_sum(values):\n"
        "    total = 0.0\n"
        "    for value in values:\n"
        "        total += assembled_root(value)\n"
        "    return total\n"
        "def kernel(values):\n"
        "    return assembled_sum(values), np.zeros(2)\n"
        "def wrong(values):\n"
        "    return assembled_sum(values).nothing\n"
    )
    start_numba()
    _register_helpers()
    found = {name: njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(names[name]) for name in KERNELS}
    for dispatcher in found.values():
        assemble_kernel_alone(dispatcher)
    return found


def machine_code(library: object) -> set[str]:
    """The functions of a library that Numba's engine knows."""
    engine = cpu_target.target_context.codegen()._engine
    return {f.name for f in library.get_defined_functions() if engine.is_symbol_defined(f.name)}


def test_a_kernel_has_code_and_its_helpers_have_none(functions):
    values = np.array([4.0, 9.0])
    total, zeros = functions["kernel"](values)
    assert total == 5.0
    assert zeros.tolist() == [0.0, 0.0]
    (made,) = functions["kernel"].overloads.values()
    linked = made.library._linking_libraries
    parts = [library for library in linked if "assembled_sum" in library.name]
    assert parts
    assert not any(library.has_code for library in parts)
    assert made.library.has_code
    assert machine_code(made.library)
    with pytest.raises(ValueError, match="no root"):  # an error in a helper of a helper
        functions["kernel"](np.array([-1.0]))


def test_code_is_made_of_a_part_when_somebody_asks_for_it(functions):
    functions["kernel"](np.ones(1))
    (made,) = functions["kernel"].overloads.values()
    (part,) = [library for library in made.library._linking_libraries if "assembled_sum" in library.name]
    name = next(f.name for f in part.get_defined_functions() if "assembled_sum" in f.name)
    assert part.get_pointer_to_function(name) != 0
    assert part.has_code


def test_other_functions_are_compiled_as_ever(functions):
    functions["kernel"](np.ones(1))
    generator = cpu_target.target_context.codegen()
    assert "Part" not in generator._library_class.__name__
    assert CPUContext.get_executable.__module__ == "numba.core.cpu"
    other = njit(lambda n: np.zeros(n).sum())  # np.zeros was first compiled for the kernel
    assert other(3) == 0.0
    (made,) = other.overloads.values()
    assert "Part" not in type(made.library).__name__


def test_an_error_leaves_numba_and_the_collector_as_they_were(functions):
    assert gc.isenabled()
    before = cpu_target.target_context.codegen()._library_class, CPUContext.get_executable
    with pytest.raises(TypingError):
        functions["wrong"](np.ones(1))
    assert (cpu_target.target_context.codegen()._library_class, CPUContext.get_executable) == before
    assert gc.isenabled()
