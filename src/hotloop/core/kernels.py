"""Machine code: how our numba kernels are compiled, cached and drawn random numbers for.

Kernels live in files named `*_kernels.py` beside the part they serve and are decorated with `@kernel`; where their
machine code is kept, `kernel_cache.py` says. Division under numba's default error model checks for zero and does not
vectorize: `error_model="numpy"` cut an Adam step from 13.1 to 2.8 microseconds.

Machine code without reference counts.

Numba counts references to every array that a function takes, by atomic instructions; between many small functions
that was two fifths of a step with flood fills (77 against 46 microseconds for 256 games). Kernels that allocate
nothing and keep no array can be compiled without; one that allocates is refused by the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core.options import DefaultOptions

from hotloop.core.kernel_cache import KernelCache


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile to machine code on first use, kept on disk, without the GIL; `options` are numba's."""
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    dispatcher._cache = KernelCache(function)
    return dispatcher


def _known(*options: str) -> tuple[str, ...]:
    """Those of numba's inner options that this version has: without one it compiles the same code, for longer."""
    return tuple(option for option in options if hasattr(DefaultOptions, option))


_NOT_FROM_C = dict.fromkeys(_known("no_cfunc_wrapper"), True)
_NOT_FROM_PYTHON = dict.fromkeys(_known("no_cpython_wrapper"), True)
_WITHOUT_COUNTS = dict.fromkeys(_known("_nrt"), False)


def kernel(function: Callable[..., Any]) -> Any:
    """A kernel that Python calls."""
    return compiled(function, **_NOT_FROM_C)


def lean_kernel(function: Callable[..., Any]) -> Any:
    """The same, for functions that allocate nothing."""
    return compiled(function, **_NOT_FROM_C, **_WITHOUT_COUNTS)


def inline_kernel(function: Callable[..., Any]) -> Any:
    """A small kernel that only other kernels call: the ways in from Python and C were a third of its compile time."""
    return _inner(compiled(function, inline="never", **_NOT_FROM_C, **_NOT_FROM_PYTHON))


def lean_inline_kernel(function: Callable[..., Any]) -> Any:
    """The same, for functions that allocate nothing."""
    return _inner(compiled(function, **_NOT_FROM_C, **_NOT_FROM_PYTHON, **_WITHOUT_COUNTS))


def _inner(dispatcher: Any) -> Any:
    """Python has no way in, and is told so: numba would jump to address 0."""

    def add_overload(compiled: Any) -> None:
        dispatcher.overloads[tuple(compiled.signature.args)] = (
            compiled  # and not into the table that Python's calls use
        )

    def refuse(*values: Any, **named: Any) -> None:
        raise TypeError(f"`{dispatcher.py_func.__name__}` is a part of other kernels; Python cannot call it")

    dispatcher.add_overload, dispatcher._compile_for_args = add_overload, refuse
    return dispatcher


@kernel
def next_uint64(state: Any, index: int) -> Any:
    """Advance generator `index` of `state` [N] uint64 by one draw (SplitMix64: the state is a counter)."""
    state[index] += np.uint64(0x9E3779B97F4A7C15)
    z = state[index]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def next_uniform(state: Any, index: int) -> float:
    """A float64 in [0, 1) from generator `index`."""
    return float(next_uint64(state, index) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def next_below(state: Any, index: int, bound: int) -> int:
    """An integer in 0 .. bound-1 (bound below 2^53; the bias of the product method is below 2^-40 at our sizes)."""
    return int(next_uniform(state, index) * bound)
