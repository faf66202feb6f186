"""Machine code of the ring: write rows, gather rows. `row_bytes` and the order of a row: see `layout`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.replay.copy_kernels import copy_bytes, prefetch

HEAD = 16
AHEAD = 8  # rows: far enough for main memory to answer, near enough to stay in the first cache


@inline_kernel
def copy_obs(memory: Any, start: int, obs: Any, row: int, next_obs: Any, env: int, mask: Any) -> None:
    """The observations and the mask of the row that starts at byte `start`."""
    width = obs.shape[1] * obs.itemsize
    copy_bytes(memory, start + HEAD, obs, row * width, width)
    copy_bytes(memory, start + HEAD + width, next_obs, env * width, width)
    actions = mask.shape[1]
    if actions > 0:
        copy_bytes(memory, start + HEAD + 2 * width, mask, env * actions, actions)


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
