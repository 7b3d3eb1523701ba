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
from podium.core.simd import LANES, WORDS

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


@means(intrinsics.write_atomically)
def _write_atomically(_typing: Any, array: Any, _index: Any, _value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], element(context, builder, signature, arguments, 0), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@means(intrinsics.yield_thread)
def _yield_thread(_typing: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if os.name == "posix":
            result = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, result, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


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


def _add_operators(signs: dict[Any, str], kinds: dict[_LanesType, _LanesType], call: Callable[..., Any]) -> None:
    """Tell Numba of operators of two vectors of a kind, by the kind that each gives."""

    class Operator(templates.AbstractTemplate):  # type: ignore[misc]
        def generic(self, arguments: Any, _names: Any) -> Any:
            kind = arguments[0]
            return templates.signature(kinds[kind], kind, kind) if arguments == (kind, kind) and kind in kinds else None

    for sign, name in signs.items():
        templates.infer_global(sign)(Operator)
        for kind in kinds:
            extending.lower_builtin(sign, kind, kind)(
                lambda _c, builder, _s, both, name=name: call(builder, name, both)
            )


_add_operators(
    {operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul", operator.truediv: "fdiv"},
    {_lanes: _lanes},
    lambda builder, name, both: getattr(builder, name)(*both),
)
_add_operators(
    {operator.gt: ">", operator.lt: "<", operator.eq: "=="},  # false where one is NaN
    {_lanes: _mask},
    lambda builder, name, both: builder.fcmp_ordered(name, *both),
)
_add_operators(
    {operator.add: "add", operator.sub: "sub"},
    {_words: _words},
    lambda builder, name, both: getattr(builder, name)(*both),
)


def _repeated(builder: Any, kind: _LanesType, value: Any) -> Any:
    """A vector with the same value in every lane."""
    nothing, zeros = ir.Constant(kind.vector, ir.Undefined), [0] * kind.vector.count
    first = builder.insert_element(nothing, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), len(zeros)), zeros))


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
    return _lanes(types.float32), lambda _c, builder, _s, arguments: _repeated(builder, _lanes, arguments[0])


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


# --- eight words


def _shuffled(builder: Any, one: Any, two: Any, places: list[int]) -> Any:
    """The lanes of two vectors, one after the other, by number."""
    return builder.shuffle_vector(one, two, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


@means(simd.all_words)
def _all_words(_typing: Any, _number: Any) -> Any:
    return _words(types.int64), lambda _c, builder, _s, arguments: _repeated(builder, _words, arguments[0])


@means(simd.load_words)
def _load_words(_typing: Any, array: Any, _index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = element(context, builder, signature, arguments, 0)
        return builder.load(builder.bitcast(place, _words.vector.as_pointer()), align=8)

    return _words(array, types.int64), generate


@means(simd.store_words)
def _store_words(_typing: Any, array: Any, _index: Any, _of_words: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = element(context, builder, signature, arguments, 0)
        builder.store(arguments[2], builder.bitcast(place, _words.vector.as_pointer()), align=8)
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
