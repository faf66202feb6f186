"""Peak bytes and allocations of one call, measured apart from its time.

Counted: what the call obtains beyond what was held before it. Bytes: Python objects and numpy arrays (tracemalloc)
plus tensors (PyTorch's profiler). Allocations: blocks asked of Python's object allocator (each numpy array is at least
one) plus tensors. Not counted: buffers made beforehand, and memory that machine code takes without telling either.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.extras import can_train

Call = Callable[[], Any]
OBJECT_DOMAIN = 2  # PYMEM_DOMAIN_OBJ


@dataclass(frozen=True)
class PeakMemory:
    peak_bytes: int
    allocations: int


def measure_both(plain: Call, fast: Call) -> tuple[PeakMemory | None, PeakMemory | None]:
    """None where what counts is not installed: tensors by PyTorch's profiler, objects by machine code."""
    return (measure(plain), measure(fast)) if can_train() else (None, None)


def measure(call: Call) -> PeakMemory:
    call()
    gc.collect()
    tensor_bytes, tensors = _tensors(call)
    objects = max(0, _objects(call) - _objects(_nothing))
    return PeakMemory(_python_peak(call) + tensor_bytes, objects + tensors)


def _nothing() -> None:
    """What counting itself costs."""


def _python_peak(call: Call) -> int:
    tracemalloc.start()
    try:
        call()  # results that replace those of the call before are then already traced
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        return max(0, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()


def _tensors(call: Call) -> tuple[int, int]:
    """Peak bytes and number of tensor allocations."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        call()
    held = peak = count = 0
    for event in recorded.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
            count += event.nbytes() > 0
    return peak, count


class _Allocator(ctypes.Structure):
    """CPython's PyMemAllocatorEx."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


def _objects(call: Call) -> int:
    """Blocks asked of Python's object allocator during `call`; 0 where a debugging allocator is in place."""
    original, counting, counter, _ = _counting_allocator()
    if original.context:
        return 0
    counter[0] = 0
    ctypes.pythonapi.PyMem_SetAllocator(OBJECT_DOMAIN, ctypes.byref(counting))
    try:
        call()
    finally:
        ctypes.pythonapi.PyMem_SetAllocator(OBJECT_DOMAIN, ctypes.byref(original))
    return int(counter[0])


@functools.cache
def _counting_allocator() -> tuple[_Allocator, _Allocator, np.ndarray, tuple[Any, ...]]:
    """Python's own allocator and one that counts, then asks the same; machine code, since counting must not allocate.

    The allocator ignores its context pointer, which is where the counter's address travels.
    """
    import numba

    original = _Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(OBJECT_DOMAIN, ctypes.byref(original))
    pointer, size = numba.types.voidptr, numba.types.uintp
    real_malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(original.malloc)
    real_calloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(original.calloc)

    @numba.cfunc(pointer(pointer, size))
    def malloc(counter: Any, count: Any) -> Any:
        numba.carray(counter, (1,), np.int64)[0] += 1
        return real_malloc(counter, count)

    @numba.cfunc(pointer(pointer, size, size))
    def calloc(counter: Any, count: Any, width: Any) -> Any:
        numba.carray(counter, (1,), np.int64)[0] += 1
        return real_calloc(counter, count, width)

    counter = np.zeros(1, np.int64)
    counting = _Allocator(counter.ctypes.data, malloc.address, calloc.address, original.realloc, original.free)
    return original, counting, counter, (malloc, calloc)
