"""Machine code of the ring: write rows, gather rows. `row_bytes` and the order of a row: see `layout`.

Two instructions that numba has no word for: copy bytes between arrays, and fetch a cache line ahead of its use.

A loop over a handful of elements compiles to checks and remainders that cost more than the copy: with both, a
gather of 256 random rows of 2 x 11 floats fell from 42 to 5 microseconds.
"""

from __future__ import annotations

import math
from typing import Any

import numba.extending
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from hotloop.core.kernels import inline_kernel, kernel

intrinsic: Any = numba.extending.intrinsic  # its own annotation forgets that the typing context is not passed
_BYTE = ir.IntType(8)
_INT32 = ir.IntType(32)


def _byte_pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, _BYTE.as_pointer()), [offset])


@intrinsic
def copy_bytes(typing_context: Any, target: Any, target_byte: Any, source: Any, source_byte: Any, count: Any) -> Any:
    """copy_bytes(target, target_byte, source, source_byte, count): contiguous arrays of any shape, no bounds check."""
    if not (target.is_c_contig and source.is_c_contig and target.mutable):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = _byte_pointer(context, builder, signature.args[0], args[0], args[1])
        start = _byte_pointer(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, to, start, args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, byte: Any) -> Any:
    """prefetch(array, byte): ask for the cache line that holds `byte`; never faults."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _byte_pointer(context, builder, signature.args[0], args[0], args[1])
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, _INT32, _INT32, _INT32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, _INT32(0), _INT32(3), _INT32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


HEAD = 16
LARGEST_FLOAT = float(np.finfo(np.float32).max)
AHEAD = 8  # rows: far enough for main memory to answer, near enough to stay in the first cache


@inline_kernel
def copy_obs(memory: Any, start: int, obs: Any, row: int, next_obs: Any, env: int, mask: Any) -> None:
    """The observations and the mask of the row that starts at byte `start`; `obs` may have an action behind it."""
    width, next_width = obs.shape[1] * obs.itemsize, next_obs.shape[1] * next_obs.itemsize
    copy_bytes(memory, start + HEAD, obs, row * width, width)
    copy_bytes(memory, start + HEAD + width, next_obs, env * next_width, next_width)
    actions = mask.shape[1]
    if actions > 0:
        copy_bytes(memory, start + HEAD + width + next_width, mask, env * actions, actions)


@inline_kernel
def same_length(num_envs: int, action: Any, reward: Any, terminated: Any, truncated: Any, valid: Any) -> bool:
    lengths_agree = action.shape[0] == num_envs and reward.shape[0] == num_envs and valid.shape[0] == num_envs
    return lengths_agree and terminated.shape[0] == num_envs and truncated.shape[0] == num_envs


@kernel
def store_step(
    memory: Any,
    row_bytes: int,
    position: int,
    obs: Any,
    action: Any,
    reward: Any,
    terminated: Any,
    truncated: Any,
    next_obs: Any,
    mask: Any,
    valid: Any,
    gamma: float,
    timeout_gamma: float,
) -> int:
    """One-step transitions of all N envs, straight into the ring; how many were stored, or -1 for a wrong length."""
    num_envs = obs.shape[0]
    if not same_length(num_envs, action, reward, terminated, truncated, valid):
        return -1
    capacity = memory.size * memory.itemsize // row_bytes
    longs, floats = memory.view(np.int64), memory.view(np.float32)
    row, stored = position, 0
    for env in range(num_envs):
        if not valid[env]:
            continue
        start = row * row_bytes
        longs[start // 8] = action[env]
        floats[start // 4 + 2] = reward[env]
        discount = timeout_gamma if truncated[env] else gamma
        floats[start // 4 + 3] = 0.0 if terminated[env] else discount
        copy_obs(memory, start, obs, env, next_obs, env, mask)
        stored += 1
        row = row + 1 if row + 1 < capacity else 0
    return stored


@kernel
def store_one(
    memory: Any, row_bytes: int, position: int, obs: Any, action: int, reward: float, discount: float, next_obs: Any
) -> bool:
    """One transition between vectors of float32; False, and nothing stored, where a number is not finite."""
    if not abs(reward) <= LARGEST_FLOAT:
        return False
    for column in range(obs.shape[0]):
        if not (math.isfinite(obs[column]) and math.isfinite(next_obs[column])):
            return False
    start, width = position * row_bytes, obs.shape[0] * obs.itemsize
    longs, floats = memory.view(np.int64), memory.view(np.float32)
    longs[start // 8] = action
    floats[start // 4 + 2] = reward
    floats[start // 4 + 3] = discount
    copy_bytes(memory, start + HEAD, obs, 0, width)
    copy_bytes(memory, start + HEAD + width, next_obs, 0, width)
    return True


@kernel
def store_planned(
    memory: Any, row_bytes: int, position: int, count: int, plan: Any, values: Any, obs: Any, next_obs: Any, mask: Any
) -> None:
    """Write `count` planned rows: `plan` [rows, 3] window slot, env, action; `values` [rows, 2] return, discount."""
    capacity = memory.size * memory.itemsize // row_bytes
    longs, floats = memory.view(np.int64), memory.view(np.float32)
    row = position
    for planned in range(count):
        start = row * row_bytes
        longs[start // 8] = plan[planned, 2]
        floats[start // 4 + 2] = values[planned, 0]
        floats[start // 4 + 3] = values[planned, 1]
        copy_obs(memory, start, obs, plan[planned, 0], next_obs, plan[planned, 1], mask)
        row = row + 1 if row + 1 < capacity else 0


@kernel
def gather_rows(
    memory: Any,
    row_bytes: int,
    index: Any,
    sections: Any,
    slab: Any,
    action: Any,
    reward: Any,
    discount: Any,
    mask: Any,
) -> None:
    """Copy the rows `index` [k, B] apart into arrays; `sections` [S, 3]: offset in the row, width, offset in `slab`,
    all in bytes. The mask, if any, follows the last section of the row."""
    longs, floats = memory.view(np.int64), memory.view(np.float32)
    rows, action, reward, discount = index.reshape(-1), action.reshape(-1), reward.reshape(-1), discount.reshape(-1)
    actions = mask.shape[2]
    mask_start = sections[-1, 0] + sections[-1, 1]
    ahead = min(mask_start, 512)  # longer rows are fetched by the processor's own stream detection
    for drawn in range(rows.shape[0]):
        if drawn + AHEAD < rows.shape[0]:
            soon = rows[drawn + AHEAD] * row_bytes
            for byte in range(0, ahead, 64):
                prefetch(memory, soon + byte)
        start = rows[drawn] * row_bytes
        action[drawn] = longs[start // 8]
        reward[drawn] = floats[start // 4 + 2]
        discount[drawn] = floats[start // 4 + 3]
        for section in range(sections.shape[0]):
            width = sections[section, 1]
            copy_bytes(slab, sections[section, 2] + drawn * width, memory, start + sections[section, 0], width)
        if actions > 0:
            copy_bytes(mask, drawn * actions, memory, start + mask_start, actions)
