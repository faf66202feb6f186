"""What the policy sees of one game, written into its row of the observations."""

from __future__ import annotations

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.lean_kernels import lean_kernel
from hotloop.envs.snake.board_kernels import has_bit
from hotloop.envs.snake.fill_kernels import fill
from hotloop.envs.snake.foresight_kernels import observe_foresight
from hotloop.envs.snake.layout_kernels import (
    BASIC10,
    DIRECTION,
    ENHANCED,
    FLOOD_FILL,
    FOOD,
    FORESIGHT,
    GRID,
    HEAD,
    LENGTH,
    NO_CELL,
    Rules,
)
from hotloop.envs.snake.rule_kernels import is_free, is_safe, on_board, open_cell, step_down, step_right, tail_cell

PRESENT = 255  # in a grid: bytes reach a network as 0..1


@lean_kernel
def observe(
    body: Array,
    occupied: Array,
    game: Array,
    board: Array,
    reached: Array,
    room: Array,
    env: int,
    rules: Rules,
    obs: Array,
) -> None:
    if rules.observation == GRID:
        observe_grid(body, game, env, rules, obs)
        return
    head = np.int64(body[env, game[env, HEAD]])
    open_to = open_cell(body, game, env, rules)
    at = observe_basic(occupied, game, env, rules, head, open_to, obs)
    if rules.observation >= FLOOD_FILL:
        direction, free = game[env, DIRECTION], rules.size * rules.size - game[env, LENGTH]
        observe_room(occupied, board, reached, room, env, rules, head, direction, open_to, free, obs, at)
    if rules.observation > FLOOD_FILL:
        tail = tail_cell(body, game, env)
        observe_tail(reached, room, env, rules, head, tail, game[env, LENGTH], obs)
    if rules.observation == FORESIGHT:
        observe_foresight(body, occupied, game, board, reached, env, rules, obs)


@lean_kernel
def observe_basic(occupied: Array, game: Array, env: int, rules: Rules, head: int, open_to: int, obs: Array) -> int:
    """Danger straight, left, right, back; food up, right, down, left; heading up, right, down. The next index."""
    x, y, direction, food = head & 63, head >> 6, game[env, DIRECTION], game[env, FOOD]
    obs[env, 0] = danger(occupied, env, rules, open_to, x, y, direction)
    obs[env, 1] = danger(occupied, env, rules, open_to, x, y, (direction + 3) & 3)
    obs[env, 2] = danger(occupied, env, rules, open_to, x, y, (direction + 1) & 3)
    at = 3
    if rules.observation != BASIC10:
        obs[env, 3] = danger(occupied, env, rules, open_to, x, y, (direction + 2) & 3)
        at = 4
    observe_side(obs, env, at, x, y, head if food == NO_CELL else food)
    for way in range(3):
        obs[env, at + 4 + way] = direction == way
    return at + 7


@lean_kernel
def danger(occupied: Array, env: int, rules: Rules, open_to: int, x: int, y: int, direction: int) -> bool:
    return not is_safe(occupied, env, rules, open_to, x + step_right(direction), y + step_down(direction))


@lean_kernel
def observe_side(obs: Array, env: int, at: int, x: int, y: int, cell: int) -> None:
    """Whether `cell` lies up, right, down, left of (x, y)."""
    obs[env, at] = (cell >> 6) < y
    obs[env, at + 1] = (cell & 63) > x
    obs[env, at + 2] = (cell >> 6) > y
    obs[env, at + 3] = (cell & 63) < x


@lean_kernel
def observe_room(
    occupied: Array,
    board: Array,
    reached: Array,
    room: Array,
    env: int,
    rules: Rules,
    head: int,
    direction: int,
    open_to: int,
    free: int,
    obs: Array,
    at: int,
) -> None:
    """Room straight, right and left as a share of all free cells; `enhanced`: then the free neighbours there."""
    for side in range(3):
        way = (direction + (side == 1) - (side == 2)) & 3
        x, y = (head & 63) + step_right(way), (head >> 6) + step_down(way)
        safe = is_safe(occupied, env, rules, open_to, x, y)
        room[side] = 0
        cells = room_towards(occupied, board, reached, room, env, rules, side, x, y) if safe else 0
        obs[env, at + side] = min(cells / max(free, 1), 1.0)
        if rules.observation >= ENHANCED:
            obs[env, at + 3 + side] = free_neighbours(occupied, env, rules, x, y) / 4.0 if safe else 0.0


@lean_kernel
def room_towards(
    occupied: Array,
    board: Array,
    reached: Array,
    room: Array,
    env: int,
    rules: Rules,
    side: int,
    x: int,
    y: int,
) -> int:
    """Cells reachable from (x, y), which is safe. The sides mostly open into one region, which is filled once.

    `room` keeps the sizes of the regions in `reached`; 0 marks a side without a region of its own.
    """
    bit = y * rules.stride + x
    for earlier in range(side):
        if room[earlier] > 0 and has_bit(reached, earlier, bit):
            return room[earlier]
    cells = fill(board, occupied, env, rules.stride, bit, reached, side)
    if is_free(occupied, env, rules, x, y):  # a fill from the freed tail joins regions that others see apart
        room[side] = cells
    return cells


@lean_kernel
def free_neighbours(occupied: Array, env: int, rules: Rules, x: int, y: int) -> int:
    count = 0
    for way in range(4):
        count += is_free(occupied, env, rules, x + step_right(way), y + step_down(way))
    return count


@lean_kernel
def observe_tail(
    reached: Array, room: Array, env: int, rules: Rules, head: int, tail: int, length: int, obs: Array
) -> None:
    """Where the tail is and whether it can be reached; `enhanced`: then how far it is, and the snake's length."""
    x, y = head & 63, head >> 6
    apart = abs((tail & 63) - x) + abs((tail >> 6) - y)
    at = 17 if rules.observation >= ENHANCED else 14
    observe_side(obs, env, at, x, y, tail)
    obs[env, at + 4] = apart == 1 or tail_touched(reached, room, rules, tail)
    if rules.observation >= ENHANCED:
        obs[env, at + 5] = apart / (2.0 * (rules.size - 1))
        obs[env, at + 6] = length / (rules.size * rules.size)


@lean_kernel
def tail_touched(reached: Array, room: Array, rules: Rules, tail: int) -> bool:
    """Whether a region beside the head reaches a cell beside the tail: a way from head to tail, without a fill."""
    touched = False
    for way in range(4):
        x, y = (tail & 63) + step_right(way), (tail >> 6) + step_down(way)
        if on_board(rules, x, y):
            for side in range(3):
                touched |= room[side] > 0 and has_bit(reached, side, y * rules.stride + x)
    return touched


@lean_kernel
def observe_grid(body: Array, game: Array, env: int, rules: Rules, obs: Array) -> None:
    """A row of [size * size * 3]: for each cell head, rest of the body, food."""
    for index in range(obs.shape[1]):
        obs[env, index] = 0
    slot, food = game[env, HEAD], game[env, FOOD]
    for part in range(game[env, LENGTH]):
        cell = np.int64(body[env, slot])
        obs[env, ((cell >> 6) * rules.size + (cell & 63)) * 3 + (part > 0)] = PRESENT
        slot = slot - 1 if slot > 0 else body.shape[1] - 1
    if food != NO_CELL:
        obs[env, ((food >> 6) * rules.size + (food & 63)) * 3 + 2] = PRESENT
