"""Flush denormals to zero inside a kernel, for the calling thread, and put the thread's own mode back after it.

Adam's moments of dead units decay into denormals, which slowed a 256-wide update by two thirds. The mode is a register
of the processor (MXCSR, bits 15 and 6): setting it costs nanoseconds, and the caller's arithmetic is left alone.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from hotloop.lanes.native.unit_kernels import intrinsic

_ON_X86 = platform.machine().lower() in {"x86_64", "amd64"}
FLUSH = 0x8040 if _ON_X86 else 0
_BYTE_POINTER = ir.IntType(8).as_pointer()


def _access(builder: Any, name: str, slot: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_BYTE_POINTER])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
    builder.call(function, [builder.bitcast(slot, _BYTE_POINTER)])


@intrinsic
def float_mode(typing_context: Any) -> Any:
    """The thread's floating-point control word; 0 where we know none."""

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        slot = cgutils.alloca_once(builder, ir.IntType(32))
        if not _ON_X86:
            return ir.Constant(ir.IntType(32), 0)
        _access(builder, "stmxcsr", slot)
        return builder.load(slot)

    return types.int32(), lower


@intrinsic
def set_float_mode(typing_context: Any, mode: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if _ON_X86:
            slot = cgutils.alloca_once(builder, ir.IntType(32))
            builder.store(values[0], slot)
            _access(builder, "ldmxcsr", slot)
        return context.get_dummy_value()

    return types.void(types.int32), lower
