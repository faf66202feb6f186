"""Kernels that are compiled once each and called by name from other kernels.

Numba copies a callee's code into every caller's library and optimises it again there: with ordinary kernels in place
of units the lane took 32 s of processor time to compile instead of 14, and ran no faster. A *unit* is compiled (and
cached) for itself; callers only carry its name, which LLVM resolves when it loads them. So units must be in place
before a kernel that uses them is compiled or loaded: `prepare_units`.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from llvmlite import binding, ir
from numba import extending, types
from numba.core import cgutils, imputils, sigutils
from numba.core.ccallback import CFunc
from numba.np import arrayobj

from hotloop.core.kernel_cache import KernelCache

_waiting: list[tuple[str, Any, Callable[..., Any]]] = []
_held: list[Any] = []

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
rows_of_batch = types.Tuple((whole, vector, vector, vector, mask_vector))


def unit(*arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a kernel that returns nothing and whose arguments have these types."""

    def decorate(function: Callable[..., Any]) -> Any:
        name, signature = f"hotloop_unit_{function.__name__}", types.void(*arguments)
        _waiting.append((name, signature, function))
        return _call_by_name(name, signature)

    return decorate


def _call_by_name(name: str, signature: Any) -> Any:
    """An intrinsic that calls the unit of this name; arrays go by value, as `numba.cfunc` takes them."""

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = [context.get_value_type(kind) for kind in signature.args]
        function_type = ir.FunctionType(context.get_value_type(signature.return_type), kinds)
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), values)
        return context.get_dummy_value()

    def call(typing_context: Any, *given: Any) -> Any:
        return signature, lower

    return fixed_intrinsic(call, len(signature.args))


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


def prepare_units() -> None:
    """Compile, or load from the cache, every unit known so far: seconds once, then milliseconds."""
    while _waiting:
        name, signature, function = _waiting.pop(0)
        compiled: Any = CFunc(function, sigutils.normalize_signature(signature), {}, {"error_model": "numpy"})
        compiled._cache = KernelCache(function)
        compiled.compile()
        binding.add_symbol(name, compiled.address)
        _held.append(compiled)  # its code goes with it
