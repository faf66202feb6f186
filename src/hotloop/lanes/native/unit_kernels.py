"""Kernels that are compiled once each and called by name from other kernels.

Numba copies a callee's code into every caller's library and optimises it again there: eight calls deep, the lane took
23 s to compile. A *unit* is compiled (and cached) for itself; callers only carry its name, which LLVM resolves when it loads
them. So units must be in place before the first call of a kernel that uses them: `prepare_units`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import binding
from numba import types

_waiting: list[tuple[str, Any, Callable[..., Any]]] = []
_held: list[Any] = []

vector = types.float32[::1]
whole = types.int64[::1]
index = types.int64
real = types.float32


def unit(*arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a kernel that returns nothing and whose arguments have these types."""

    def decorate(function: Callable[..., Any]) -> Any:
        name, signature = f"hotloop_unit_{function.__name__}", types.void(*arguments)
        _waiting.append((name, signature, function))
        return types.ExternalFunction(name, signature)

    return decorate


def prepare_units() -> None:
    """Compile, or load from the cache, every unit known so far: seconds once, then milliseconds."""
    while _waiting:
        name, signature, function = _waiting.pop(0)
        compiled = numba.cfunc(signature, nopython=True, cache=True, error_model="numpy")(function)
        binding.add_symbol(name, compiled.address)
        _held.append(compiled)  # its code goes with it
