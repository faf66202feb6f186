"""One game's rules: start, turn, move, eat, die."""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import lean_inline_kernel, lean_kernel, next_below
from hotloop.core.types import Array
from hotloop.workloads.snake.fill_kernels import flip_bit, has_bit, nth_free_bit
from hotloop.workloads.snake.layout_kernels import DIRECTION, FOOD, HEAD, HUNGRY, LENGTH, NO_CELL, STEPS, SnakeRules

ALIVE, WON, HIT_WALL, HIT_BODY = range(4)


@lean_inline_kernel
def step_right(direction: int) -> int:
    """The change of x: directions are 0 up, 1 right, 2 down, 3 left."""
    return (2 - direction) * (direction & 1)


@lean_inline_kernel
def step_down(direction: int) -> int:
    return (direction - 1) * (1 - (direction & 1))


@lean_inline_kernel
def tail_cell(body: Array, game: Array, env: int) -> np.int64:
    slot = game[env, HEAD] - game[env, LENGTH] + 1
    return np.int64(body[env, slot if slot >= 0 else slot + body.shape[1]])


@lean_inline_kernel
def open_cell(body: Array, game: Array, env: int, rules: SnakeRules) -> int:
    """The cell of the body that the head may enter: the tail's, where the rules free it, or none."""
    return tail_cell(body, game, env) if rules.free_tail else NO_CELL


@lean_inline_kernel
def on_board(rules: SnakeRules, x: int, y: int) -> bool:
    return (x >= 0) & (x < rules.size) & (y >= 0) & (y < rules.size)


@lean_inline_kernel
def is_free(occupied: Array, env: int, rules: SnakeRules, x: int, y: int) -> bool:
    return on_board(rules, x, y) and not has_bit(occupied, env, y * rules.stride + x)


@lean_inline_kernel
def is_safe(occupied: Array, env: int, rules: SnakeRules, open_to: int, x: int, y: int) -> bool:
    """Whether the head may move to (x, y)."""
    if not on_board(rules, x, y):
        return False
    return not has_bit(occupied, env, y * rules.stride + x) or (y << 6) + x == open_to


@lean_kernel
def place_food(occupied: Array, game: Array, generator: Array, board: Array, env: int, rules: SnakeRules) -> None:
    """On any empty cell, each as likely; one draw. A full board gets none, and draws none."""
    empty = rules.size * rules.size - game[env, LENGTH]
    if empty == 0:
        game[env, FOOD] = NO_CELL
        return
    bit = nth_free_bit(board, occupied, env, next_below(generator, env, empty))
    y = bit // rules.stride
    game[env, FOOD] = (y << 6) + bit - y * rules.stride


@lean_inline_kernel
def start_game(
    body: Array, occupied: Array, game: Array, generator: Array, board: Array, env: int, rules: SnakeRules
) -> None:
    """Head in the middle, the body to its left, heading right."""
    middle = rules.size // 2
    for word in range(occupied.shape[1]):
        occupied[env, word] = np.uint64(0)
    for part in range(rules.start_length):
        x = middle - rules.start_length + 1 + part
        body[env, part] = (middle << 6) + x
        flip_bit(occupied, env, middle * rules.stride + x)
    game[env, HEAD], game[env, LENGTH], game[env, DIRECTION] = rules.start_length - 1, rules.start_length, 1
    game[env, STEPS], game[env, HUNGRY] = 0, 0
    place_food(occupied, game, generator, board, env, rules)


@lean_inline_kernel
def turned(rules: SnakeRules, direction: int, action: int) -> int:
    if rules.absolute:
        return direction if action == (direction + 2) & 3 else action & 3
    return (direction + (action == 2) - (action == 1)) & 3


@lean_kernel
def move(
    body: Array, occupied: Array, game: Array, generator: Array, board: Array, env: int, rules: SnakeRules, action: int
) -> tuple[int, float]:
    """How the step ended and its reward; a snake that dies stays as it was."""
    direction = turned(rules, game[env, DIRECTION], action)
    game[env, STEPS] += 1
    game[env, HUNGRY] += 1
    head, food = np.int64(body[env, game[env, HEAD]]), game[env, FOOD]
    x, y = (head & 63) + step_right(direction), (head >> 6) + step_down(direction)
    if not is_safe(occupied, env, rules, open_cell(body, game, env, rules), x, y):
        return HIT_BODY if on_board(rules, x, y) else HIT_WALL, rules.death_reward
    game[env, DIRECTION] = direction
    if (y << 6) + x == food:
        game[env, LENGTH] += 1
        game[env, HUNGRY] = 0
        put_head(body, occupied, game, env, rules, x, y)
        place_food(occupied, game, generator, board, env, rules)
        return WON if game[env, FOOD] == NO_CELL else ALIVE, rules.food_reward
    tail = tail_cell(body, game, env)
    flip_bit(occupied, env, (tail >> 6) * rules.stride + (tail & 63))
    put_head(body, occupied, game, env, rules, x, y)
    beyond = step_right(direction) * ((food & 63) - x) + step_down(direction) * ((food >> 6) - y)
    return ALIVE, rules.nearer_reward if beyond >= 0 else rules.farther_reward


@lean_inline_kernel
def put_head(body: Array, occupied: Array, game: Array, env: int, rules: SnakeRules, x: int, y: int) -> None:
    slot = game[env, HEAD] + 1
    slot = slot if slot < body.shape[1] else 0
    game[env, HEAD] = slot
    body[env, slot] = (y << 6) + x
    flip_bit(occupied, env, y * rules.stride + x)
