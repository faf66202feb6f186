"""Kernels that are compiled once each and called through a pointer from other kernels.

Numba copies a callee's code into every caller's library and optimizes it again there: with ordinary kernels in place
of units the lane took 32 s of processor time to compile instead of 14, and ran no faster. A *unit* is compiled (and
cached) for itself; a caller only carries the name of the place in memory where the unit's address stands. What a run
does not need (branches, distributions) is neither compiled nor loaded for it: `prepare_units` fills in the rest, before
the first call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any

from llvmlite import binding, ir
from numba import extending, types
from numba.core import imputils, sigutils
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.np import arrayobj

from hotloop.core.kernel_cache import KernelCache

intrinsic: Any = extending.intrinsic  # its own type says that calls pass the typing context

vector = types.float32[::1]
whole = types.int64[::1]
index = types.int64
real = types.float32
real_vector = types.float64[::1]
real_matrix = types.float64[:, ::1]
mask_vector = types.boolean[::1]
matrix = types.Tuple((vector, index, index))  # data, offset, stride of a row
stepped_matrix = types.Tuple((vector, index, index, index))  # data, offset, step of a row, step of a column
place = types.Tuple((vector, index))  # data, offset
sizes = types.UniTuple(index, 3)


class _Unit:
    """A function, the types of its arguments, and the place for the address of its machine code."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self.function, self.signature, self.name = function, signature, f"hotloop_unit_{function.__name__}"
        self._address = ctypes.c_void_p()
        self._code: Any = None
        binding.add_symbol(self.name, ctypes.addressof(self._address))

    def prepare(self) -> None:
        if self._code is None:
            code: Any = CFunc(self.function, sigutils.normalize_signature(self.signature), {}, {"error_model": "numpy"})
            code._cache = KernelCache(self.function)
            code.compile()
            self._code, self._address.value = code, code.address


_units: dict[Any, _Unit] = {}
"""By what stands for them in other kernels."""


def unit(*arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a kernel that returns nothing and whose arguments have these types."""

    def decorate(function: Callable[..., Any]) -> Any:
        made = _Unit(function, types.void(*arguments))
        caller = _call_through(made)
        _units[caller] = made
        return caller

    return decorate


def _call_through(unit: _Unit) -> Any:
    """An intrinsic that calls a unit; arrays go by value, as `numba.cfunc` takes them."""

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = [context.get_value_type(kind) for kind in signature.args]
        function_type = ir.FunctionType(context.get_value_type(signature.return_type), kinds)
        place = builder.module.globals.get(unit.name)
        if place is None:
            place = ir.GlobalVariable(builder.module, function_type.as_pointer(), unit.name)
        builder.call(builder.load(place), values)
        return context.get_dummy_value()

    def call(typing_context: Any, *given: Any) -> Any:
        return unit.signature, lower

    return fixed_intrinsic(call, len(unit.signature.args))


def fixed_intrinsic(definition: Any, count: int) -> Any:
    """A numba intrinsic of `count` arguments, from one that is written for any number."""
    names = ["typing_context", *(f"argument{place}" for place in range(count))]
    definition.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    return intrinsic(definition)


@intrinsic
def flat(typing_context: Any, array: Any) -> Any:
    """A C-contiguous array as a vector of all its elements; numba's `reshape` compiles for a second and calls out."""

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, values[0])
        view = context.make_array(signature.return_type)(context, builder)
        arrayobj.populate_array(
            view,
            data=source.data,
            shape=[source.nitems],
            strides=[source.itemsize],
            itemsize=source.itemsize,
            meminfo=source.meminfo,
            parent=source.parent,
        )
        return imputils.impl_ret_borrowed(context, builder, signature.return_type, view._getvalue())

    return types.Array(array.dtype, 1, "C")(array), lower


def prepare_units(*kernels: Any, without: Iterable[Any] = ()) -> None:
    """Compile, or load from the cache, every unit that the kernels may call: seconds once, then milliseconds.

    `without` are units that this run's plan never leads to, and with them what only they call.
    """
    seen, waiting = set(without), list(kernels)
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in _units:
            _units[one].prepare()
        function = _units[one].function if one in _units else one.py_func
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        waiting += [each for each in called if isinstance(each, Dispatcher) or each in _units]


def prepare_kernel(function: Any, *arguments: Any) -> None:
    """Compile a kernel for these types of arguments, or load it; other types are refused from then on."""
    if not function.overloads:
        function.compile(arguments)
        function.disable_compile()
