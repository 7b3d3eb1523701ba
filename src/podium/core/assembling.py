"""Machine code of kernels alone: their helpers are linked into them, and need none of their own.

Numba optimises every function that it compiles, with all that it calls linked in, and makes machine code of it at once.
Of helpers nobody runs that, and a helper of helpers is optimised again in each function around it: together a quarter
of what a first run waits for. While a kernel is compiled, Podium's functions without an entry point for Python stay
what is linked into it, each simplified alone, and the whole is optimised once. Kernels are as fast and give the same
bits.

This file stands on parts of Numba that are not documented as stable, as `podium.core.llvm` does:

- `_compiler` of a dispatcher, whose `compile` runs under Numba's lock;
- `_library_class` of `codegen()`, its `_function_pass_manager` and `_data_layout`;
- `_optimize_functions`, `_optimize_final_module`, `_finalize_final_module`, `_finalize_dynamic_globals` of libraries;
- `get_executable` of `CPUContext`, `_dynfunc.make_function`, and environments by the names of global variables.

PODIUM_PLAIN_KERNELS=1 does without it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import codegen as _codegen
from numba.core import cpu as _cpu
from numba.core import environment as _environment

codegen: Any = _codegen
cpu: Any = _cpu
environments: Any = _environment

PACKAGE = __name__.partition(".")[0]


class _Part(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Compiled functions that others are linked with; machine code is made when somebody asks where it is."""

    has_code = False

    def _optimize_functions(self, module: Any) -> None:
        """As Numba does, but for what is defined elsewhere, and with one list of passes for all functions."""
        module.data_layout = self.codegen._data_layout
        passes, builder = self.codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        if self.has_code:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self.has_code:
            super()._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._finalized = True

    def get_pointer_to_function(self, name: str) -> Any:
        """The address of a function."""
        if not self.has_code:
            self.has_code = True
            if self._finalized:
                super()._optimize_final_module()
                super()._finalize_final_module()
        return super().get_pointer_to_function(name)


def assemble_kernel_alone(dispatcher: Any) -> None:
    """Have no machine code made of the helpers of a kernel when it is compiled."""
    compiler, generator = dispatcher._compiler, dispatcher.targetctx.codegen()
    compile_with_helpers = compiler.compile

    def compile_kernel(arguments: Any, return_type: Any) -> Any:
        with _helpers_as_parts(generator), _no_collections():
            return compile_with_helpers(arguments, return_type)

    compiler.compile = compile_kernel


@contextmanager
def _no_collections() -> Iterator[None]:
    """Numba keeps what it makes of a function until it is done: to look for garbage meanwhile took a tenth longer."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _helpers_as_parts(generator: Any) -> Iterator[None]:
    """Under Numba's lock, which whoever compiles or loads a function holds."""
    library_class, get_executable = generator._library_class, cpu.CPUContext.get_executable

    def executable(self: Any, library: Any, description: Any, environment: Any) -> Any:
        name = description.qualname
        if description.modname.partition(".")[0] == PACKAGE and not _has_entry(library, description):
            return _dynfunc.make_function(description.lookup_module(), name, name, 0, environment, (library,))
        made = get_executable(self, library, description, environment)
        _set_environments(library)
        return made

    generator._library_class, cpu.CPUContext.get_executable = _Part, executable
    try:
        yield
    finally:
        generator._library_class, cpu.CPUContext.get_executable = library_class, get_executable


def _has_entry(library: Any, description: Any) -> bool:
    """Whether Python can call a function: as it cannot a helper."""
    try:
        library.get_function(description.llvm_cpython_wrapper_name)
    except NameError:
        return False
    return True


def _set_environments(library: Any) -> None:
    """Tell the code of a kernel where the Python objects are that its parts use, as Numba does for a cached one."""
    for variable in library._final_module.global_variables:
        environment = environments.lookup_environment(variable.name)
        if environment is not None:
            library.codegen.set_env(variable.name, environment)
