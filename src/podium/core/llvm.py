"""What the compiler does for the operations of `intrinsics` and `simd`, in LLVM's language.

This file stands on parts of Numba that are not documented as stable, and pyproject.toml caps its version for that:

- `make_intrinsic_template`, `infer` and `infer_global` of `numba.core.typing.templates`, to say what a call means;
- `AbstractTemplate` and `signature` of the same module, for operators of the lanes' type;
- `models.PrimitiveModel`, `register_model` and `lower_builtin` of `numba.extending`;
- `context.make_array` with `data`, `meminfo` and `parent`, `context.get_dummy_value`, `cgutils.get_or_insert_function`;
- builders of llvmlite that load, store and call with typed pointers.

`tests/core/test_simd.py` tries each operation alone, so that a new version of Numba shows what it broke. Until that is
mended, PODIUM_PLAIN_KERNELS=1 does without this file.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending as _extending
from numba import types
from numba.core import cgutils as _cgutils
from numba.core.typing import templates as _templates

from podium.core import intrinsics, simd
from podium.core.simd import LANES

cgutils: Any = _cgutils
extending: Any = _extending
templates: Any = _templates


def means(declared: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function says what a call of the declared one is compiled to, as Numba's `intrinsic` has it."""

    def register(definition: Callable[..., Any]) -> Callable[..., Any]:
        template = templates.make_intrinsic_template(
            declared, definition, declared.__name__, prefer_literal=False, kwargs={}
        )
        templates.infer(template)
        templates.infer_global(declared, types.Function(template))
        return definition

    return register


def element(context: Any, builder: Any, signature: Any, arguments: Any, which: int) -> Any:
    """A pointer to element `arguments[which + 1]` of the array `arguments[which]`."""
    array = context.make_array(signature.args[which])(context, builder, arguments[which])
    return builder.gep(array.data, [arguments[which + 1]])


@means(intrinsics.not_inlined)
def _not_inlined(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


@means(intrinsics.inlined)
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
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, word, word, word]), "llvm.prefetch.p0"
        )
        place = builder.bitcast(element(context, builder, signature, arguments, 0), byte)
        builder.call(function, [place, *(ir.Constant(word, k) for k in (0, 3, 1))])  # to read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@means(intrinsics.copy_16_bytes)
def _copy_16_bytes(_typing: Any, target: Any, _place: Any, source: Any, _start: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), 16).as_pointer()
        to, of = (builder.bitcast(element(context, builder, signature, arguments, k), vector) for k in (0, 2))
        builder.store(builder.load(of, align=1), to, align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), generate


@means(intrinsics.add_atomically)
def _add_atomically(_typing: Any, array: Any, _index: Any, _amount: Any) -> Any:
    def generate(_context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = element(_context, builder, signature, arguments, 0)
        return builder.atomic_rmw("add", place, arguments[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), generate


@means(intrinsics.read_atomically)
def _read_atomically(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(element(context, builder, signature, arguments, 0), "acquire", 8)

    return types.int64(array, types.int64), generate


@means(intrinsics.yield_thread)
def _yield_thread(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if os.name == "posix":
            result = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, result, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


class _LanesType(types.Type):
    """`LANES` single-precision numbers; or a mask, what a comparison of two of them gives: as many truths."""

    def __init__(self, name: str, element: Any) -> None:
        super().__init__(name)
        self.vector = ir.VectorType(element, LANES)


@extending.register_model(_LanesType)
class _LanesModel(extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: _LanesType) -> None:
        super().__init__(manager, kind, kind.vector)


_lanes, _mask = _LanesType("lanes", ir.FloatType()), _LanesType("mask", ir.IntType(1))


class _Arithmetic(templates.AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, _names: Any) -> Any:
        return templates.signature(_lanes, _lanes, _lanes) if arguments == (_lanes, _lanes) else None


class _Comparison(templates.AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, _names: Any) -> Any:
        return templates.signature(_mask, _lanes, _lanes) if arguments == (_lanes, _lanes) else None


for _name, _sign in (
    ("fadd", operator.add),
    ("fsub", operator.sub),
    ("fmul", operator.mul),
    ("fdiv", operator.truediv),
):
    templates.infer_global(_sign)(_Arithmetic)
    extending.lower_builtin(_sign, _lanes, _lanes)(
        lambda _c, builder, _s, both, name=_name: getattr(builder, name)(*both)
    )
for _sign, _name in ((operator.gt, ">"), (operator.lt, "<"), (operator.eq, "==")):  # false where one is NaN
    templates.infer_global(_sign)(_Comparison)
    extending.lower_builtin(_sign, _lanes, _lanes)(
        lambda _c, builder, _s, both, name=_name: builder.fcmp_ordered(name, *both)
    )


@templates.infer_global(operator.neg)
class _Negation(templates.AbstractTemplate):  # type: ignore[misc]
    def generic(self, arguments: Any, _names: Any) -> Any:
        return templates.signature(_lanes, _lanes) if arguments == (_lanes,) else None


extending.lower_builtin(operator.neg, _lanes)(lambda _c, builder, _s, arguments: builder.fneg(*arguments))


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
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        nothing, zeros = ir.Constant(_lanes.vector, ir.Undefined), [0] * LANES
        first = builder.insert_element(nothing, arguments[0], ir.IntType(32)(0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), zeros))

    return _lanes(types.float32), generate


@means(simd.load_lanes)
def _load_lanes(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = element(context, builder, signature, arguments, 0)
        return builder.load(builder.bitcast(place, _lanes.vector.as_pointer()), align=4)

    return _lanes(array, types.int64), generate


@means(simd.store_lanes)
def _store_lanes(_typing: Any, array: Any, _index: Any, _values: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = element(context, builder, signature, arguments, 0)
        builder.store(arguments[2], builder.bitcast(place, _lanes.vector.as_pointer()), align=4)
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


@means(simd.any_lanes)
def _any_lanes(_typing: Any, _which: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = ir.IntType(LANES)
        return builder.icmp_unsigned("!=", builder.bitcast(arguments[0], bits), ir.Constant(bits, 0))

    return types.boolean(_mask), generate
