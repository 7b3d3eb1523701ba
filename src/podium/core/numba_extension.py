"""Register Podium's operations with Numba's compiler. No other module does this.

An operation is declared without Numba, as a function whose Python body defines the result (`intrinsics`, `simd`,
`bitwise`). `llvm_lanes` and `llvm_bitwise` define its LLVM code with the documented low-level API of
`numba.extending`: `type_callable` for the types of a call, `lower_builtin` for its instructions. The instructions are
emitted directly into the caller, so that `inlined` and `not_inlined` can mark the caller.

`docs/architecture.md` lists the private API that this module also uses.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import extending as _extending
from numba import types
from numba.core import cgutils as _cgutils

cgutils: Any = _cgutils
extending: Any = _extending

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
FLOAT = ir.FloatType()
ANY_ARGUMENTS: Any = types.VarArg(types.Any)  # type: ignore[no-untyped-call]


def compile_as(declared: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the definition of a declared operation.

    The definition takes the types of the arguments. It returns the signature, and a function that emits the
    instructions of a `Call` and returns their value, or None.
    """

    def register(definition: Callable[..., Any]) -> Callable[..., Any]:
        def signature_of(*kinds: Any) -> Any:
            return definition(*kinds)[0]

        signature_of.__signature__ = inspect.signature(declared)  # type: ignore[attr-defined]
        extending.type_callable(declared)(lambda _typing: signature_of)

        @extending.lower_builtin(declared, ANY_ARGUMENTS)  # type: ignore[untyped-decorator]
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = definition(*signature.args)[1](Call(context, builder, signature, arguments))
            return context.get_dummy_value() if value is None else value

        return definition

    return register


class VectorType(types.Type):
    """The type of a vector in a kernel."""

    def __init__(self, name: str, element: Any, n: int) -> None:
        super().__init__(name)
        self.vector = ir.VectorType(element, n)


@extending.register_model(VectorType)
class _VectorModel(extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: VectorType) -> None:
        super().__init__(manager, kind, kind.vector)


def add_operator(sign: Any, operands: tuple[VectorType, ...], result: VectorType, build: Callable[..., Any]) -> None:
    """Define an operator on one or two vectors by the function of llvmlite's builder that emits it."""

    def unary_type(a: Any) -> Any:
        return result if (a,) == operands else None

    def binary_type(a: Any, b: Any) -> Any:
        return result if (a, b) == operands else None

    extending.type_callable(sign)(lambda _typing: unary_type if len(operands) == 1 else binary_type)
    extending.lower_builtin(sign, *operands)(lambda _c, builder, _s, arguments: build(builder, *arguments))


class Memory(NamedTuple):
    """A pointer and the type of the elements that it points to."""

    pointer: Any
    element: Any


class Call(NamedTuple):
    """A call that is being compiled, as Numba passes it to the functions that emit instructions."""

    context: Any
    builder: Any
    signature: Any
    arguments: Any

    def array(self, which: int) -> Memory:
        """Return the memory of the array `arguments[which]`."""
        kind = self.signature.args[which]
        array = self.context.make_array(kind)(self.context, self.builder, self.arguments[which])
        return Memory(array.data, self.context.get_data_type(kind.dtype))

    def element(self, which: int) -> Memory:
        """Return the memory of the array `arguments[which]` from the element `arguments[which + 1]` on."""
        return memory_at(self.builder, self.array(which), self.arguments[which + 1])


def memory_at(builder: Any, memory: Memory, index: Any) -> Memory:
    """Return the memory from an element on."""
    return memory._replace(pointer=builder.gep(memory.pointer, [index], source_etype=memory.element))


def load(builder: Any, memory: Memory, index: Any, kind: Any = None, align: int | None = None) -> Any:
    """Load a value at an index; its type is that of the elements by default."""
    kind = kind or memory.element
    return builder.load(_pointer_to(builder, kind, memory_at(builder, memory, index)), align=align, typ=kind)


def store(builder: Any, value: Any, memory: Memory, index: Any, align: int | None = None) -> None:
    """Store a value at an index."""
    builder.store(value, _pointer_to(builder, value.type, memory_at(builder, memory, index)), align=align)


def _pointer_to(builder: Any, kind: Any, memory: Memory) -> Any:
    """Return the pointer cast to a type, because older versions of llvmlite only have typed pointers."""
    return builder.bitcast(memory.pointer, kind.as_pointer())


def prefetch_line(builder: Any, memory: Memory, locality: int) -> None:
    """Prefetch the cache line at the pointer for reading; `locality`, 0 to 3, says how long to keep it."""
    kind = ir.FunctionType(ir.VoidType(), [I8.as_pointer(), I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [_pointer_to(builder, I8, memory), I32(0), I32(locality), I32(1)])


def call_on_vector(builder: Any, name: str, suffix: str, value: Any) -> Any:
    """Call an LLVM intrinsic of one value, such as `fabs`, on each element of a vector."""
    kind = ir.FunctionType(value.type, [value.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.{suffix}"), [value])


def int64(value: int) -> Any:
    """Return an int64 constant."""
    return ir.Constant(I64, value)


def filled(kind: Any, n: int, value: int) -> Any:
    """Return a constant vector of n equal elements."""
    return ir.Constant(ir.VectorType(kind, n), [value] * n)


def repeated(builder: Any, value: Any, n: int) -> Any:
    """Return a vector of n copies of a value."""
    undefined = ir.Constant(ir.VectorType(value.type, n), ir.Undefined)
    first = builder.insert_element(undefined, value, I32(0))
    return builder.shuffle_vector(first, undefined, filled(I32, n, 0))


def shuffled(builder: Any, first: Any, second: Any, order: Iterable[int]) -> Any:
    """Return elements of two vectors by index; the indices of the second vector follow those of the first."""
    indices = list(order)
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(I32, len(indices)), indices))
