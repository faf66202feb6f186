"""What each way on leads to: can the tail still be followed, and is it a shortest way to the food? And hunger."""

from __future__ import annotations

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.lean_kernels import lean_kernel
from hotloop.envs.snake.board_kernels import flip_bit, has_bit
from hotloop.envs.snake.fill_kernels import fill, widen
from hotloop.envs.snake.layout_kernels import DIRECTION, FOOD, HEAD, HUNGRY, LENGTH, NO_CELL, Rules
from hotloop.envs.snake.rule_kernels import is_safe, on_board, open_cell, step_down, step_right, tail_cell

TAIL_AFTER, FOOD_WAY, HUNGER = 24, 27, 30  # where these features begin
SCRATCH = 3  # the row of `reached` that keeps no region beside the head


@lean_kernel
def observe_foresight(
    body: Array, occupied: Array, game: Array, board: Array, reached: Array, env: int, rules: Rules, obs: Array
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


@lean_kernel
def cell_towards(body: Array, game: Array, env: int, side: int) -> tuple[int, int]:
    """The cell straight, right or left of the head."""
    head, way = np.int64(body[env, game[env, HEAD]]), (game[env, DIRECTION] + (side == 1) - (side == 2)) & 3
    return (head & 63) + step_right(way), (head >> 6) + step_down(way)


@lean_kernel
def bit_of(rules: Rules, cell: int) -> int:
    return (cell >> 6) * rules.stride + (cell & 63)


@lean_kernel
def tail_follows(
    body: Array, occupied: Array, game: Array, board: Array, reached: Array, env: int, rules: Rules, x: int, y: int
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


@lean_kernel
def second_last(body: Array, game: Array, env: int) -> np.int64:
    """The cell of the body before the tail's."""
    slot = game[env, HEAD] - game[env, LENGTH] + 2
    return np.int64(body[env, slot if slot >= 0 else slot + body.shape[1]])


@lean_kernel
def observe_food_way(
    body: Array,
    occupied: Array,
    game: Array,
    board: Array,
    reached: Array,
    env: int,
    rules: Rules,
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
