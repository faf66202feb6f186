"""Vector instructions for the native lane, written as LLVM IR: matrix tiles, transposes, dot products.

LLVM does not register-block a triple loop by itself, so the inner tiles are emitted here with explicit vectors and
accumulators. On one AVX-512 core an unpacked tile of 8 rows x 32 columns ran at 95-114 GFLOP/s on products of 32 to 256
a side, OpenBLAS at 64-110 and MKL at 64-99 through their C interfaces (separate runs). With a side of 2 or 4 it is
20-60. Each block is one LLVM function of its own, marked `noinline`: emitted once per library, whoever calls it.

Matrices are float32 with element (i, j) at `offset + i * stride + j` of a flat array.

Flush denormals to zero inside a kernel, for the calling thread, and put the thread's own mode back after it.

Adam's moments of dead units decay into denormals, which slowed a 256-wide update by two thirds. The mode is a register
of the processor (MXCSR, bits 15 and 6): setting it costs nanoseconds, and the caller's arithmetic is left alone.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils

from hotloop.lanes.native.unit_kernels import fixed_intrinsic, intrinsic

_features = binding.get_host_cpu_features()
LANES = 16 if _features.get("avx512f") else 8 if _features.get("avx") else 4
"""Floats in one vector register; IR wider than the machine would be split and spill."""
HALF = max(4, LANES // 2)
"""For the few rows that one acts on."""
TILE_ROWS = 8 if LANES == 16 or platform.machine().lower() in {"aarch64", "arm64"} else 6
"""Two accumulators for each: AVX-512 and Neon have 32 vector registers, older x86 has 16."""
PANEL = 2 * LANES
"""Columns of a full tile."""
WIDE_ROWS, WIDE_PANEL = (6, 4 * LANES) if TILE_ROWS == 8 else (TILE_ROWS, PANEL)
"""A wide tile, of products that have so many columns: 24 accumulators and fewer loads for each product, which 32
registers have room for."""


FLOAT = ir.FloatType()
INDEX = ir.IntType(64)
LANE = ir.IntType(32)
VOID = ir.VoidType()
VECTOR = ir.VectorType(FLOAT, LANES)


def vector_of(lanes: int) -> ir.VectorType:
    return ir.VectorType(FLOAT, lanes)


def number(value: int) -> ir.Constant:
    return ir.Constant(INDEX, value)


def declare(module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type]) -> ir.Function:
    """The function of this name in the module: an LLVM intrinsic, or one of ours."""
    found = module.globals.get(name)
    return found if found is not None else ir.Function(module, ir.FunctionType(result, arguments), name)


def shuffle(builder: Any, first: Any, second: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(LANE, len(lanes)), lanes))


def splat(builder: Any, scalar: Any, lanes: int = LANES) -> Any:
    undefined = ir.Constant(vector_of(lanes), ir.Undefined)
    return shuffle(builder, builder.insert_element(undefined, scalar, ir.Constant(LANE, 0)), undefined, [0] * lanes)


def at(builder: Any, pointer: Any, *offsets: Any) -> Any:
    for offset in offsets:
        pointer = builder.gep(pointer, [offset])
    return pointer


def load_vector(builder: Any, pointer: Any) -> Any:
    return builder.load(builder.bitcast(pointer, VECTOR.as_pointer()), align=4)


def store_vector(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, builder.bitcast(pointer, VECTOR.as_pointer()), align=4)


def prefetch(builder: Any, pointer: Any) -> None:
    """Ask for the cache line of an address that is read soon; one beyond the array is no error."""
    kinds = [FLOAT.as_pointer(), LANE, LANE, LANE]
    function = declare(builder.module, "llvm.prefetch.p0", VOID, kinds)
    builder.call(function, [pointer, *(ir.Constant(LANE, value) for value in (0, 3, 1))])  # read, all levels, data


def multiply_add(builder: Any, first: Any, second: Any, total: Any) -> Any:
    kind = total.type
    function = declare(builder.module, f"llvm.fmuladd.v{kind.count}f32", kind, [kind] * 3)
    return builder.call(function, [first, second, total])


class VectorLoop:
    """`for index in range(0, stop, step)` in IR, carrying values; the body runs at least once."""

    def __init__(self, builder: Any, stop: Any, step: int, carried: list[Any]) -> None:
        self.builder, self.stop, self.step = builder, stop, step
        entry = builder.block
        self.block = builder.append_basic_block("loop")
        builder.branch(self.block)
        builder.position_at_end(self.block)
        self.index = builder.phi(INDEX)
        self.index.add_incoming(number(0), entry)
        self.carried = [builder.phi(value.type) for value in carried]
        for phi, value in zip(self.carried, carried, strict=True):
            phi.add_incoming(value, entry)

    def close(self, carried: list[Any]) -> list[Any]:
        builder = self.builder
        following = builder.add(self.index, number(self.step))
        self.index.add_incoming(following, builder.block)
        for phi, value in zip(self.carried, carried, strict=True):
            phi.add_incoming(value, builder.block)
        after = builder.append_basic_block("after")
        builder.cbranch(builder.icmp_signed("<", following, self.stop), self.block, after)
        builder.position_at_end(after)
        return carried


def block_function(name: str, parameters: str, emit: Any, result: ir.Type = VOID) -> Any:
    """A numba intrinsic that calls a `noinline` LLVM function `name`, whose body `emit(builder, arguments)` writes.

    `parameters` has a letter for each: `p` a float32 array, then `o` the offset into it; `i` an integer; `f` a float.
    """
    kinds = {"p": FLOAT.as_pointer(), "i": INDEX, "f": FLOAT}
    arguments = [kinds[letter] for letter in parameters.replace("o", "")]

    def define(module: ir.Module) -> ir.Function:
        found = module.globals.get(name)
        if found is not None:
            return found
        function = ir.Function(module, ir.FunctionType(result, arguments), name)
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        function.attributes.add("nounwind")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        value = emit(builder, list(function.args))
        builder.ret_void() if value is None else builder.ret(value)
        return function

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        passed: list[Any] = []
        for letter, kind, value in zip(parameters, signature.args, values, strict=True):
            if letter == "p":
                passed.append(context.make_array(kind)(context, builder, value).data)
            elif letter == "o":
                passed[-1] = at(builder, passed[-1], value)
            else:
                passed.append(value)
        answer = builder.call(define(builder.module), passed)
        return context.get_dummy_value() if result == VOID else answer

    def block(typing_context: Any, *given: Any) -> Any:
        scalars = {"o": types.int64, "i": types.int64, "f": types.float32}
        taken = [scalars.get(letter, kind) for letter, kind in zip(parameters, given, strict=True)]
        return (types.void if result == VOID else types.float32)(*taken), lower

    return fixed_intrinsic(block, len(parameters))


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
