"""What the policy sees of one game, written into its row of the observations.

What each way on leads to: can the tail still be followed, and is it a shortest way to the food? And hunger.
"""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.snake.fill_kernels import fill, flip_bit, has_bit, widen
from hotloop.workloads.snake.layout_kernels import (
    BASIC10,
    DIRECTION,
    ENHANCED,
    FLOOD_FILL,
    FOOD,
    FORESIGHT,
    GRID,
    HEAD,
    HUNGRY,
    LENGTH,
    NO_CELL,
    SnakeRules,
)
from hotloop.workloads.snake.rule_kernels import is_free, is_safe, on_board, open_cell, step_down, step_right, tail_cell

TAIL_AFTER, FOOD_WAY, HUNGER = 24, 27, 30  # where these features begin
SCRATCH = 3  # the row of `reached` that keeps no region beside the head


@lean_inline_kernel
def observe_foresight(
    body: Array, occupied: Array, game: Array, board: Array, reached: Array, env: int, rules: SnakeRules, obs: Array
) -> None:
    """For straight, right and left: can the tail then be followed, and does a shortest way to the food begin there?"""
    open_to = open_cell(body, game, env, rules)
    for side in range(3):
        x, y = cell_towards(body, game, env, side)
        safe = is_safe(occupied, env, rules, open_to, x, y)
        obs[env, TAIL_AFTER + side] = safe and tail_follows(body, occupied, game, board, reached, env, rules, x, y)
        obs[env, FOOD_WAY + side] = 0
    obs[env, HUNGER] = game[env, HUNGRY] / (game[env, HUNGRY] + rules.size * rules.size)
    if game[env, FOOD] != NO_CELL:
        tail = tail_cell(body, game, env)
        shut = NO_CELL if rules.free_tail else tail
        flip_bit(occupied, env, bit_of(rules, tail))  # by later steps it will have moved on
        observe_food_way(body, occupied, game, board, reached, env, rules, shut, obs)
        flip_bit(occupied, env, bit_of(rules, tail))


@lean_inline_kernel
def cell_towards(body: Array, game: Array, env: int, side: int) -> tuple[int, int]:
    """The cell straight, right or left of the head."""
    head, way = np.int64(body[env, game[env, HEAD]]), (game[env, DIRECTION] + (side == 1) - (side == 2)) & 3
    return (head & 63) + step_right(way), (head >> 6) + step_down(way)


@lean_inline_kernel
def bit_of(rules: SnakeRules, cell: int) -> int:
    return (cell >> 6) * rules.stride + (cell & 63)


@lean_kernel
def tail_follows(
    body: Array, occupied: Array, game: Array, board: Array, reached: Array, env: int, rules: SnakeRules, x: int, y: int
) -> bool:
    """Whether, with the head at (x, y), free cells lead to one beside the tail, or the tail's own may be entered.

    The tail has moved on by then, unless that step eats.
    """
    eats, bit, left = (y << 6) + x == game[env, FOOD], y * rules.stride + x, tail_cell(body, game, env)
    tail = left if eats else second_last(body, game, env)
    if not eats:
        flip_bit(occupied, env, bit_of(rules, left))
    fill(board, occupied, env, rules.stride, bit, reached, SCRATCH)
    if not eats:
        flip_bit(occupied, env, bit_of(rules, left))
    flip_bit(reached, SCRATCH, bit)  # the head's own cell is no way on
    follows = rules.free_tail and abs((tail & 63) - x) + abs((tail >> 6) - y) == 1
    for way in range(4):
        beside_x, beside_y = (tail & 63) + step_right(way), (tail >> 6) + step_down(way)
        if on_board(rules, beside_x, beside_y):
            follows |= has_bit(reached, SCRATCH, beside_y * rules.stride + beside_x)
    return follows


@lean_inline_kernel
def second_last(body: Array, game: Array, env: int) -> np.int64:
    """The cell of the body before the tail's."""
    slot = game[env, HEAD] - game[env, LENGTH] + 2
    return np.int64(body[env, slot if slot >= 0 else slot + body.shape[1]])


@lean_inline_kernel
def observe_food_way(
    body: Array,
    occupied: Array,
    game: Array,
    board: Array,
    reached: Array,
    env: int,
    rules: SnakeRules,
    shut: int,  # a cell that cannot be entered in the next step, though later
    obs: Array,
) -> None:
    """A wave runs from the food through free cells until it first meets what the head may enter next."""
    for word in range(reached.shape[1]):
        reached[SCRATCH, word] = np.uint64(0)
    flip_bit(reached, SCRATCH, bit_of(rules, game[env, FOOD]))
    growing, met = True, False
    while growing and not met:
        for side in range(3):
            x, y = cell_towards(body, game, env, side)
            if on_board(rules, x, y) and has_bit(reached, SCRATCH, y * rules.stride + x) and (y << 6) + x != shut:
                obs[env, FOOD_WAY + side] = 1
                met = True
        growing = widen(board, occupied, env, rules.stride, reached, SCRATCH)


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
    rules: SnakeRules,
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


@lean_inline_kernel
def observe_basic(
    occupied: Array, game: Array, env: int, rules: SnakeRules, head: int, open_to: int, obs: Array
) -> int:
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


@lean_inline_kernel
def danger(occupied: Array, env: int, rules: SnakeRules, open_to: int, x: int, y: int, direction: int) -> bool:
    return not is_safe(occupied, env, rules, open_to, x + step_right(direction), y + step_down(direction))


@lean_inline_kernel
def observe_side(obs: Array, env: int, at: int, x: int, y: int, cell: int) -> None:
    """Whether `cell` lies up, right, down, left of (x, y)."""
    obs[env, at] = (cell >> 6) < y
    obs[env, at + 1] = (cell & 63) > x
    obs[env, at + 2] = (cell >> 6) > y
    obs[env, at + 3] = (cell & 63) < x


@lean_inline_kernel
def observe_room(
    occupied: Array,
    board: Array,
    reached: Array,
    room: Array,
    env: int,
    rules: SnakeRules,
    head: int,
    direction: int,
    open_to: int,
    free: int,
    obs: Array,
    at: int,
) -> None:
    """Room straight, right and left as a share of all free cells; `enhanced`: then the free neighbors there."""
    for side in range(3):
        way = (direction + (side == 1) - (side == 2)) & 3
        x, y = (head & 63) + step_right(way), (head >> 6) + step_down(way)
        safe = is_safe(occupied, env, rules, open_to, x, y)
        room[side] = 0
        cells = room_towards(occupied, board, reached, room, env, rules, side, x, y) if safe else 0
        obs[env, at + side] = min(cells / max(free, 1), 1.0)
        if rules.observation >= ENHANCED:
            obs[env, at + 3 + side] = free_neighbors(occupied, env, rules, x, y) / 4.0 if safe else 0.0


@lean_inline_kernel
def room_towards(
    occupied: Array,
    board: Array,
    reached: Array,
    room: Array,
    env: int,
    rules: SnakeRules,
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


@lean_inline_kernel
def free_neighbors(occupied: Array, env: int, rules: SnakeRules, x: int, y: int) -> int:
    count = 0
    for way in range(4):
        count += is_free(occupied, env, rules, x + step_right(way), y + step_down(way))
    return count


@lean_inline_kernel
def observe_tail(
    reached: Array, room: Array, env: int, rules: SnakeRules, head: int, tail: int, length: int, obs: Array
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


@lean_inline_kernel
def tail_touched(reached: Array, room: Array, rules: SnakeRules, tail: int) -> bool:
    """Whether a region beside the head reaches a cell beside the tail: a way from head to tail, without a fill."""
    touched = False
    for way in range(4):
        x, y = (tail & 63) + step_right(way), (tail >> 6) + step_down(way)
        if on_board(rules, x, y):
            for side in range(3):
                touched |= room[side] > 0 and has_bit(reached, side, y * rules.stride + x)
    return touched


@lean_inline_kernel
def observe_grid(body: Array, game: Array, env: int, rules: SnakeRules, obs: Array) -> None:
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
